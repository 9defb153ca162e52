// Datasets with random augmentation of your own: RandomDataset and its random numbers.
//
// A sample's random numbers depend on (seed, epoch, sample) alone. The number of threads, the order
// of samples and a resume do not change them, unlike a generator that samples share.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include <tenon/data.h>
#include <tenon/export.h>

namespace tenon::data {

/// The random numbers of one sample in one epoch. Words, uniform(), below() and chance() are the
/// same on every machine; normal() may differ in the last bits of a logarithm. The class is a
/// uniform random bit generator for the distributions of the standard header random, whose results
/// differ between standard libraries.
class TENON_API SampleRandom {
 public:
  using result_type = std::uint32_t;  ///< a random word
  /// The random numbers of a sample in an epoch. Different streams, from 0 to 65535, have
  /// independent numbers, for instance those of several transforms.
  SampleRandom(std::uint64_t seed, std::int64_t epoch, std::int64_t sample,
               std::uint64_t stream = 0);
  static constexpr result_type min() { return 0; }  ///< the smallest word
  /// The largest word.
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()();                 ///< the next random word
  double uniform();                         ///< uniform in [0, 1)
  double uniform(double low, double high);  ///< uniform in [low, high)
  double normal();                          ///< normal with mean 0 and variance 1
  /// Uniform integer from 0 to count - 1. Throws ValueError for a count below 1.
  std::int64_t below(std::int64_t count);
  bool chance(double probability);  ///< true with this probability

 private:
  std::uint64_t seed_, key_, counter_ = 0;
  std::uint32_t words_[4] = {};
  int used_ = 4;
};

/// A dataset whose samples training sees with new random changes in each epoch, for instance noise
/// or crops:
///
/// @code
/// struct Noisy : data::RandomDataset {
///   Noisy() : RandomDataset({.input_shape = {2}, .classes = 4}) {}
///   std::int64_t size() const override { return 1000; }
///   void get_sample(std::int64_t index, data::SampleRandom& random, void* input,
///                   void* target) const override {
///     float* x = static_cast<float*>(input);
///     for (std::int64_t k = 0; k < 2; ++k) x[k] = points[index][k] + 0.1 * random.normal();
///     *static_cast<std::int64_t*>(target) = labels[index];
///   }
/// };
/// @endcode
///
/// Take every random number from `random`. Several threads call get_sample() at the same time, for
/// samples in any order.
class TENON_API RandomDataset : public DatasetWith<AugmentedSamples> {
 public:
  using DatasetWith::DatasetWith;
  /// Writes one sample.
  ///
  /// @param index   the sample, in [0, size())
  /// @param random  the random numbers of this sample in this epoch
  /// @param input   room for one input
  /// @param target  room for one target
  virtual void get_sample(std::int64_t index, SampleRandom& random, void* input,
                          void* target) const = 0;
  /// Writes samples as in epoch 0 with seed 0.
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const final;
  /// Writes samples with the random numbers of an epoch of training.
  void get_augmented(std::span<const std::int64_t> indices, std::uint64_t seed, std::int64_t epoch,
                     void* inputs, void* targets) const final;
};

}  // namespace tenon::data
