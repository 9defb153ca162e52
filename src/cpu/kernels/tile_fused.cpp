// The fused loops of the machine at hand.
#include "cpu/kernels/tile_fused.h"

#include <cstring>

#include "cpu/kernels/isa.h"

namespace tenon::cpu {

FusedLoops fused_loops() {
#if defined(__x86_64__) || defined(__i386__)
  switch (best_isa()) {
    case Isa::Avx2:
      return fused_loops_avx2();
    case Isa::Avx512:
    case Isa::Avx512Bf16:
    case Isa::Amx:
      return fused_loops_avx512();
    default:
      break;
  }
#endif
  return fused_loops_base();
}

decltype(FusedLoop::run) FusedLoops::find(const char* form) const {
  for (const FusedLoop* loop = first; loop != first + count; ++loop)
    if (std::strcmp(loop->form, form) == 0) return loop->run;
  return nullptr;
}

}  // namespace tenon::cpu
