// Cutting a map region into kernels: each one kernel's work, with rows, with one set of reduced
// axes, or with short rows and what is reduced into each of their columns.
//
// A later kernel reads what an earlier one left in values of the region or in temporaries, which
// are values after the program's own.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "plan/region.h"

namespace tenon::cuda {

enum class LoopNestKind : std::uint8_t { Elements, Rows, Columns };

struct LoopNest {
  LoopNestKind kind = LoopNestKind::Elements;
  MapProgram map;  // axes merged
};

/// The program's values, which must outlive it, and behind them temporaries, which have
/// Value::offset set.
class ValueTable {
 public:
  ValueTable() = default;
  ValueTable(std::span<const Value> own) : own_(own) {}

  const Value& operator[](std::size_t id) const {
    return id < own_.size() ? own_[id] : temporaries_[id - own_.size()];
  }
  std::size_t own_size() const { return own_.size(); }
  const std::vector<Value>& temporaries() const { return temporaries_; }
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

/// Registers of a lane for what a warp reads of its row and of the next one, and `more` numbers
/// beside each element.
std::int64_t registers_ahead(const MapProgram& map, std::int64_t more);
inline constexpr int kLeastAhead = 4;  // elements of an access to a row that is loaded ahead
/// Whether a kernel over rows that reduces their columns too gives each row to a warp: rows that
/// are short enough for that, and may be loaded ahead.
bool has_warp_rows(const MapProgram& map);
inline constexpr int kWarpsWithColumns = 8;  // of a block then

LoopNests split_into_loop_nests(const MapProgram& map, std::span<const Value> values);

}  // namespace tenon::cuda
