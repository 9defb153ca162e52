// Random numbers for synthetic images, made of operations that every machine rounds in the same
// way.
//
// Only +, -, *, /, sqrt and conversions are used, which IEEE 754 rounds correctly, and no library
// function: the same seed gives the same bytes on every machine. Sources that include this header
// are named *_exact.cpp and are compiled without contraction to fused multiply-adds. Use one draw
// per statement, because the evaluation order of arguments is unspecified.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace tenon::data {

/// The stream of random numbers that belongs to one item: (seed, index) and a running counter.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t index) : seed_(seed), index_(index) {}

  /// In [0, 1).
  float uniform() { return uniform01(word()); }
  /// In [low, high).
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  /// In [0, count).
  int below(int count) {
    const std::uint64_t product =
        static_cast<std::uint64_t>(word()) * static_cast<std::uint64_t>(count);
    return static_cast<int>(product >> 32);
  }
  /// Mean 0, variance 1, within +-3.5: the sum of four uniforms, which needs no logarithm.
  float normal() {
    float sum = uniform();
    sum += uniform();
    sum += uniform();
    sum += uniform();
    return (sum - 2.0f) * 1.7320508f;
  }
  bool chance(float probability) { return uniform() < probability; }

 private:
  std::uint32_t word() {
    if (used_ == 4) {
      block_ = philox(seed_, counter_++, index_);
      used_ = 0;
    }
    return block_.v[used_++];
  }

  std::uint64_t seed_, index_, counter_ = 0;
  Philox4 block_{};
  int used_ = 4;
};

/// sin and cos for |angle| <= 1.6: Taylor polynomials, error below 1e-4, ample for drawing.
constexpr float exact_sin(float a) {
  const float s = a * a;
  return a * (1.0f - s * (1.0f / 6.0f) * (1.0f - s * (1.0f / 20.0f) * (1.0f - s * (1.0f / 42.0f))));
}
constexpr float exact_cos(float a) {
  const float s = a * a;
  return 1.0f - s * 0.5f *
                    (1.0f - s * (1.0f / 12.0f) *
                                (1.0f - s * (1.0f / 30.0f) * (1.0f - s * (1.0f / 56.0f))));
}

}  // namespace tenon::data
