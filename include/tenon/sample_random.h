// Data sets whose samples are changed at random: where their random numbers come from.
//
// A sample's numbers depend on the seed, the epoch and the sample alone. Threads, the order of
// samples and a resume change none of them, as they would change those of a generator that samples
// share.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include <tenon/data.h>
#include <tenon/export.h>

namespace tenon::data {

/// The random numbers of one sample in one epoch. Words, uniform(), below() and chance() are the
/// same on every machine; normal() too but for the last bits of a logarithm. It is a generator as
/// those of <random> are, whose distributions take it; their results differ between standard
/// libraries.
class TENON_API SampleRandom {
 public:
  using result_type = std::uint32_t;
  SampleRandom(std::uint64_t seed, std::int64_t epoch, std::int64_t sample);
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()();
  double uniform();                         ///< in [0, 1)
  double uniform(double low, double high);  ///< in [low, high)
  double normal();                          ///< mean 0, variance 1
  /// 0 to count - 1. Throws ValueError where `count` is less than 1.
  std::int64_t below(std::int64_t count);
  bool chance(double probability);

 private:
  std::uint64_t seed_, key_, counter_ = 0;
  std::uint32_t words_[4] = {};
  int used_ = 4;
};

/// A set whose samples training sees changed at random, anew in each epoch, as noise or crops of
/// one's own:
///
///   struct Noisy : data::RandomDataset {
///     …
///     void get_sample(std::int64_t index, data::SampleRandom& random, void* input,
///                     void* target) const override {
///       float* x = static_cast<float*>(input);
///       for (std::int64_t k = 0; k < 2; ++k) x[k] = points[index][k] + 0.1 * random.normal();
///       *static_cast<std::int64_t*>(target) = labels[index];
///     }
///   };
///
/// Take every random number from `random`. Several threads call get_sample() at a time, for samples
/// in any order.
class TENON_API RandomDataset : public Dataset {
 public:
  /// Writes one sample.
  virtual void get_sample(std::int64_t index, SampleRandom& random, void* input,
                          void* target) const = 0;
  /// Without an epoch: the samples of epoch 0 by the seed 0.
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const final;
  void get_drawn(std::span<const std::int64_t> indices, std::uint64_t seed, std::int64_t epoch,
                 void* inputs, void* targets) const final;
  bool drawn_anew() const override { return true; }
};

}  // namespace tenon::data
