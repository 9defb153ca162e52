// Rewrites map programs for printing: merges axes, drops unused instructions, and finds what each
// value varies with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/program/region.h"

namespace tenon::cuda {

/// What a value depends on: nothing, coordinates other than the last, or the last coordinate.
enum class Level : std::uint8_t { Run, Row, Element };

/// The same program over as few axes as its views and reductions allow; at least one. In a program
/// with rows the row axis is not merged. Views of per-row instructions have no last stride.
MapProgram with_merged_axes(const MapProgram& map);

/// The instructions that the stores and reductions of `map` need, renumbered.
MapProgram without_unused(const MapProgram& map);

std::vector<Level> levels_of(const MapProgram& map);
/// For each instruction the number of row reductions that must come before it.
std::vector<int> depths_of(const MapProgram& map);

/// True if the region loads a value that it stores (element by element).
bool loads(const MapProgram& map, ValueId value);
bool stores(const MapProgram& map, ValueId value);
/// True if every offset of every view, in elements, and every element's number fit in 31 bits.
bool fits_int(const MapProgram& map);

inline bool has_view(const MapInstr& instr) {
  return instr.code == MapCode::Load || instr.code == MapCode::Affine;
}

}  // namespace tenon::cuda
