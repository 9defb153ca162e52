// The fused loops for the current machine.
#include "cpu/kernels/tile/tile_fused.h"

#include <cstring>

#include "cpu/kernels/isa.h"

namespace tenon::cpu {

FusedLoops fused_loops() {
#if defined(__x86_64__) || defined(__i386__)
  if (best_isa() >= Isa::Avx512) return fused_loops_avx512();
#endif
  return {};
}

decltype(FusedLoop::run) FusedLoops::find(const char* form) const {
  for (const FusedLoop* loop = first; loop != first + count; ++loop)
    if (std::strcmp(loop->form, form) == 0) return loop->run;
  return nullptr;
}

}  // namespace tenon::cpu
