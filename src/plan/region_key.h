// Regions that compute the same on other values, told by a key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/index.h"
#include "plan/region.h"

namespace tenon {

struct Program;

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
  RegionKey words_;              // of a key in the making
};

/// For each step the first one of the program that computes the same on other values, as far as
/// keys tell: itself where there is none, or where it has bodies, which keys leave out.
class AlikeSteps {
 public:
  explicit AlikeSteps(const Program& program);

  int first(std::size_t step) const { return first_[step]; }
  bool is_first(std::size_t step) const { return at(first_[step]) == step; }
  /// By number of each value that the first one names, the value that the step has in its place;
  /// of other numbers nothing is said. Holds until the next call.
  std::span<const ValueId> renamed(std::size_t step);

 private:
  std::vector<int> first_;
  std::vector<std::vector<ValueId>> named_;  // by step
  std::vector<ValueId> renamed_;
};

/// Calls one value by the name of another.
void rename_value(Region& region, ValueId from, ValueId to);

/// What stands for a value named by a region with a key: as the value, without label and slot.
Value without_name(const Value& value);

}  // namespace tenon
