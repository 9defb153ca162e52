// Regions that compute the same on other values, told by a key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/region.h"

namespace tenon {

/// All that a region and the values that it names are, but which these are and what people call
/// them.
using RegionKey = std::vector<std::uint64_t>;
struct RegionKeyHash {
  std::size_t operator()(const RegionKey& key) const;
};

/// The values of a program, as regions number them: each by the order in which it names them.
class RegionNumbering {
 public:
  /// The values that a region names, by their numbers.
  std::vector<ValueId> named(const Region& region);
  RegionKey key(const Region& region, const std::vector<ValueId>& named,
                std::span<const Value> values);
  /// The region with numbers in place of values, and without labels.
  Region numbered(const Region& region, const std::vector<ValueId>& named);

 private:
  void number(const std::vector<ValueId>& named);
  void forget(const std::vector<ValueId>& named);

  std::vector<ValueId> number_;  // by value; kNoValue outside a call
};

/// Calls one value by the name of another.
void rename_value(Region& region, ValueId from, ValueId to);

/// What stands for a value named by a region with a key: as the value, without label and slot.
Value without_name(const Value& value);

}  // namespace tenon
