// Cuts a map region into kernels. One kernel handles rows, one set of reduced axes, or short rows
// together with the reductions into their columns.
//
// A later kernel reads what an earlier one stored in values of the region or in temporaries.
// Temporaries are numbered after the program's own values.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "plan/program/region.h"

namespace tenon::cuda {

enum class LoopNestKind : std::uint8_t { Elements, Rows, Columns };

struct LoopNest {
  LoopNestKind kind = LoopNestKind::Elements;
  MapProgram map;  // axes merged
};

/// The program's values, which must outlive the table, followed by temporaries with Value::offset
/// set.
class ValueTable {
 public:
  ValueTable() = default;
  ValueTable(std::span<const Value> own) : own_(own) {}

  const Value& operator[](std::size_t id) const {
    return id < own_.size() ? own_[id] : temporaries_[id - own_.size()];
  }
  std::size_t own_size() const { return own_.size(); }
  ValueId add(const Value& temporary) {
    temporaries_.push_back(temporary);
    return static_cast<ValueId>(own_.size() + temporaries_.size()) - 1;
  }

 private:
  std::span<const Value> own_;
  std::vector<Value> temporaries_;
};

struct LoopNests {
  std::vector<LoopNest> nests;  // in the order in which they run
  ValueTable values;
  std::int64_t temporary_bytes = 0;
};

ValueId add_temporary(LoopNests& nests, DType dtype, const Shape& shape);

/// Registers of a lane for the loaded elements of a warp's row and of the next row, and `more`
/// numbers per element.
std::int64_t registers_ahead(const MapProgram& map, std::int64_t more);
inline constexpr int kLeastAhead = 4;  // elements of an access to a row that is loaded ahead
/// True if a kernel that reduces rows and their columns assigns each row to a warp: the rows are
/// short enough and can be prefetched.
bool has_warp_rows(const MapProgram& map);
inline constexpr int kWarpsWithColumns = 8;  // of a block then

LoopNests split_into_loop_nests(const MapProgram& map, std::span<const Value> values);

}  // namespace tenon::cuda
