// Chooses the loops of formulas at run time.
#include "cpu/kernels/formula/formula_loops.h"

#include "cpu/kernels/isa.h"

namespace tenon::cpu {
namespace {

std::span<const FormulaLoops> best_loops() {
#if defined(__x86_64__) || defined(__i386__)
  switch (best_isa()) {
    case Isa::Avx2:
      return avx2_formula_loops();
    case Isa::Avx512:
    case Isa::Avx512Bf16:
    case Isa::Amx:
      return avx512_formula_loops();
    default:
      break;
  }
#endif
  return base_formula_loops();
}

}  // namespace

const FormulaLoops* formula_loops(std::string_view name, std::int64_t parameter) {
  for (const FormulaLoops& loops : best_loops())
    if (name == loops.name && parameter == loops.parameter) return &loops;
  return nullptr;
}

}  // namespace tenon::cpu
