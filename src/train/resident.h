// A training set held in a card's memory: batches are gathered there by number, so that a step
// takes nothing from the host but the numbers.
#pragma once

#include <optional>

#include <tenon/data.h>

namespace tenon::train {

struct ResidentSet {
  Tensor inputs, targets;  // as the set stores them: [N, …]
  bool scaled = false;     // bytes that become factor * x + offset, as the loader scales
  float factor = 1, offset = 0;

  /// The examples with these numbers (int64[B]) as the network takes them.
  Tensor input(const Tensor& numbers) const;
  Tensor target(const Tensor& numbers) const;
};

/// The shape of so many examples or targets.
Shape with_count(std::int64_t count, const Shape& shape);

/// The loader's set on the default device; none on the CPU, and for sets that are not in memory or
/// would take too much of the card's.
std::optional<ResidentSet> resident_set(const data::Loader& loader);

}  // namespace tenon::train
