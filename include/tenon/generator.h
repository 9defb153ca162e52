// Generator: source of random numbers. Its whole state is a seed and a counter (docs/numerics.md).
#pragma once

#include <cstdint>

#include <tenon/export.h>

namespace tenon {

class Tensor;

/// A counter-based random number generator (Philox). A draw uses the seed and the next counter
/// value. Several threads may draw from one generator at once; which thread gets which counter
/// value then depends on timing. PyTorch: `torch.Generator`.
class TENON_API Generator {
 public:
  /// A generator with counter 0.
  explicit Generator(std::uint64_t seed = 0) : seed_(seed) {}
  /// The seed.
  std::uint64_t seed() const { return seed_; }
  /// Number of counter values used so far.
  std::uint64_t counter() const { return counter_; }
  /// Sets seed and counter. Must not be called while another thread draws.
  void set_state(std::uint64_t seed, std::uint64_t counter) { seed_ = seed, counter_ = counter; }
  /// Reserves `draws` counter values and returns the first.
  std::uint64_t advance(std::uint64_t draws) noexcept;
  /// A leaf tensor int64 [2] (seed, counter) for `draws` draws; reserves their counter values.
  /// Inside a function that is being compiled, returns the function's own leaf, which gets its
  /// value at each call; `offset` then receives the distance of these draws from the leaf's
  /// counter.
  Tensor next(std::int64_t* offset, std::int64_t draws = 1);
  /// The generator of the calling thread's context, used where no other is given.
  static Generator& current();

 private:
  std::uint64_t seed_, counter_ = 0;
};

/// Sets the seed of Generator::current() and its counter to 0. PyTorch: `torch.manual_seed`.
TENON_API void manual_seed(std::uint64_t seed);

}  // namespace tenon
