// Cutting a map region into sweeps: each one kernel's work, with rows or with one set of reduced
// axes, never both.
//
// A later sweep reads what an earlier one left in values of the region or in temporaries, which are
// values after the program's own.
#pragma once

#include <span>
#include <vector>

#include "plan/region.h"

namespace tenon::cuda {

enum class SweepKind : std::uint8_t { Elements, Rows, Columns };

struct Sweep {
  SweepKind kind = SweepKind::Elements;
  MapProgram map;  // axes merged
};

struct Sweeps {
  std::vector<Sweep> sweeps;   // in the order in which they run
  std::vector<Value> values;   // the program's, then temporaries; these have Value::offset set
  std::size_t own_values = 0;  // how many are the program's
  std::int64_t temporary_bytes = 0;
};

ValueId add_temporary(Sweeps& sweeps, DType dtype, const Shape& shape);

Sweeps cut_into_sweeps(const MapProgram& map, std::span<const Value> values);

}  // namespace tenon::cuda
