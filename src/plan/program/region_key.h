// Keys of regions: two regions with equal keys compute the same on different values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/index.h"
#include "plan/program/region.h"

namespace tenon {

struct Program;

/// Everything in a region and in the values that it names, except the values' ids and texts for
/// printing.
using RegionKey = std::vector<std::uint64_t>;
struct RegionKeyHash {
  std::size_t operator()(const RegionKey& key) const;
};

/// The values of a program as a region numbers them: by the order in which the region names them.
class RegionNumbering {
 public:
  /// The values that a region names, by their number.
  std::vector<ValueId> named(const Region& region);
  RegionKey key(const Region& region, const std::vector<ValueId>& named,
                std::span<const Value> values);
  /// The region with numbers instead of value ids, and without labels.
  Region numbered(const Region& region, const std::vector<ValueId>& named);

 private:
  void number(const std::vector<ValueId>& named);
  void forget(const std::vector<ValueId>& named);

  std::vector<ValueId> number_;  // number of each value; kNoValue outside a call
  RegionKey words_;              // words of the key under construction
};

/// By step: the first step of the program with an equal key. A step stands for itself if there is
/// none, or if it has bodies, which keys do not cover.
class EqualSteps {
 public:
  explicit EqualSteps(const Program& program);

  int first(std::size_t step) const { return first_[step]; }
  bool is_first(std::size_t step) const { return at(first_[step]) == step; }
  /// By value of the first step: the value that `step` has in its place. Entries of values that the
  /// first step does not name are undefined. Valid until the next call.
  std::span<const ValueId> renamed(std::size_t step);

 private:
  std::vector<int> first_;
  std::vector<std::vector<ValueId>> named_;  // values that each step names
  std::vector<ValueId> renamed_;
};

/// Replaces the value `from` by `to` in a region.
void rename_value(Region& region, ValueId from, ValueId to);

/// A value without label and slot, as keys see it.
Value without_name(const Value& value);

}  // namespace tenon
