// Vectorised loops of the special functions of scalar/special.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cpu/kernels/tile/tile_table.h"

namespace tenon::cpu {

/// A formula of ops/formulas.inc: float32, and the same values for float64 arrays.
struct FormulaLoops {
  const char* name = nullptr;
  std::int64_t parameter = 0;
  TileLoop f32 = nullptr, f64 = nullptr;
};

/// The loops of best_isa(); null: none for this formula.
const FormulaLoops* formula_loops(std::string_view name, std::int64_t parameter);

std::span<const FormulaLoops> base_formula_loops();
std::span<const FormulaLoops> avx2_formula_loops();
std::span<const FormulaLoops> avx512_formula_loops();

}  // namespace tenon::cpu
