// Generator: where random numbers come from. Its whole state is two integers (docs/numerics.md).
#pragma once

#include <cstdint>

#include <tenon/export.h>

namespace tenon {

class Tensor;

/// A place in the stream of random numbers that a seed stands for: every draw takes the next
/// counter. Threads may draw from one generator at once; who gets which counter is then a matter of
/// timing.
class TENON_API Generator {
 public:
  explicit Generator(std::uint64_t seed = 0) : seed_(seed) {}
  std::uint64_t seed() const { return seed_; }
  std::uint64_t counter() const { return counter_; }
  /// Not while another thread draws.
  void set_state(std::uint64_t seed, std::uint64_t counter) { seed_ = seed, counter_ = counter; }
  /// Takes `draws` counters; returns the first.
  std::uint64_t advance(std::uint64_t draws) noexcept;
  /// int64[2] leaf (seed, counter) for so many draws; advances by them. Inside a function being
  /// compiled: the function's own leaf, fed at each call, and `offset` tells these draws from
  /// others.
  Tensor next(std::int64_t* offset, std::int64_t draws = 1);
  /// That of the calling thread's context, used where none is given.
  static Generator& current();

 private:
  std::uint64_t seed_, counter_ = 0;
};

/// Seeds Generator::current() and starts it at counter 0.
TENON_API void manual_seed(std::uint64_t seed);

}  // namespace tenon
