// The samples of an epoch, and weighted sampling.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// The samples of an epoch in order.
struct EpochSamples {
  std::vector<std::int64_t> numbers{};
  /// How often each was drawn before in this epoch, modulo 256; empty: never.
  std::vector<std::uint8_t> repeats{};
};

/// The class of each sample of a dataset whose targets are one class each, or kIgnoredTarget. Image
/// files are not decoded. Throws ValueError that begins with `who` for other targets.
std::vector<std::int64_t> labels_of(const Dataset& dataset, const char* who);

/// Draws epochs by weight. Weights become integers, so that every machine draws the same samples.
class WeightedDraws {
 public:
  /// For a dataset of `size` samples. Throws ValueError for weights that do not fit it.
  WeightedDraws(const WeightedSampling& how, std::int64_t size);
  /// Samples in an epoch.
  std::int64_t count() const { return count_; }
  /// The samples of an epoch; they depend on (seed, epoch, weights, count) alone. Thread-safe.
  EpochSamples of(std::uint64_t seed, std::int64_t epoch) const;

 private:
  std::vector<std::int64_t> with_replacement(std::uint64_t seed, std::int64_t epoch) const;
  std::vector<std::int64_t> without_replacement(std::uint64_t seed, std::int64_t epoch) const;

  std::int64_t count_;
  bool replacement_;
  std::vector<std::uint64_t> sums_;  // of the weights of the samples before and with each
};

}  // namespace tenon::data
