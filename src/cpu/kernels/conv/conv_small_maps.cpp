// Weights and masks of all taps are laid out once for a call; then each image is a few vector
// loops.
#include "cpu/kernels/conv/conv_small_maps.h"

#include <algorithm>
#include <bit>

#include "base/index.h"
#include "base/thread_pool.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kMostPixels = 32, kMostTaps = 49, kMostRow = 32768;

std::int64_t row_of(const ConvShape& s) { return s.c * s.h * s.w; }

// For every tap: its distance, its weight for each element of the row, and a mask with all bits set
// for each element that the tap reads.
class Taps {
 public:
  Taps(const ConvShape& shape, ConvPass pass, const float* weights, void* memory)
      : s_(shape), row_(row_of(shape)), sign_(pass == ConvPass::InputGrad ? -1 : 1) {
    weight_ = static_cast<float*>(memory);
    bits_ = reinterpret_cast<std::uint32_t*>(weight_ + s_.r * s_.s * row_);
    const std::int64_t taps = s_.r * s_.s, pixels = s_.h * s_.w;
    for (std::int64_t tap = 0; tap < taps; ++tap)
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        const bool reads = inside(pixel / s_.w + sign_ * down(tap), s_.h) &&
                           inside(pixel % s_.w + sign_ * right(tap), s_.w);
        for (std::int64_t channel = 0; channel < s_.c; ++channel) {
          const std::int64_t i = tap * row_ + channel * pixels + pixel;
          weight_[i] = weights[channel * taps + tap];
          bits_[i] = reads ? ~0u : 0u;
        }
      }
  }

  void run(const float* x, float* y) const {
    std::fill_n(y, row_, 0.0f);
    for (std::int64_t tap = 0; tap < s_.r * s_.s; ++tap) {
      const std::int64_t by = sign_ * (down(tap) * s_.w + right(tap)),
                         begin = std::max<std::int64_t>(0, -by), end = std::min(row_, row_ - by);
      const float *weight = weight_ + tap * row_, *from = x + by;
      const std::uint32_t* bits = bits_ + tap * row_;
#pragma GCC ivdep
      for (std::int64_t i = begin; i < end; ++i)
        y[i] += weight[i] * std::bit_cast<float>(std::bit_cast<std::uint32_t>(from[i]) & bits[i]);
    }
  }

 private:
  static bool inside(std::int64_t at, std::int64_t size) { return at >= 0 && at < size; }
  std::int64_t down(std::int64_t tap) const { return tap / s_.s * s_.dil_h - s_.pad_h; }
  std::int64_t right(std::int64_t tap) const { return tap % s_.s * s_.dil_w - s_.pad_w; }

  const ConvShape& s_;
  const std::int64_t row_, sign_;
  float* weight_;
  std::uint32_t* bits_;
};

}  // namespace

bool has_small_maps(const ConvShape& s, ConvPass pass, Math math) {
  return pass != ConvPass::WeightGrad && math == Math::F32 && s.groups > 1 && s.groups == s.c &&
         s.c == s.k && s.stride_h == 1 && s.stride_w == 1 && s.p == s.h && s.q == s.w &&
         s.h * s.w <= kMostPixels && s.r * s.s <= kMostTaps && row_of(s) <= kMostRow;
}

std::size_t small_maps_workspace(const ConvShape& s, int threads) {
  const std::int64_t row = round_up(row_of(s), 16);
  return at((2 * s.r * s.s * row_of(s) + 16 + threads * row) * 4);
}

void correlate_small_maps(const ConvShape& s, ConvPass pass, const float* x, const float* w,
                          float* y, const Epilogue& epilogue, void* workspace) {
  const Taps taps(s, pass, w, workspace);
  const std::int64_t row = row_of(s);
  float* const scratch = static_cast<float*>(workspace) + round_up(2 * s.r * s.s * row, 16);
  parallel_for(s.n, [&](std::int64_t image, int worker) {
    float* const out = y != nullptr ? y + image * row : scratch + worker * round_up(row, 16);
    taps.run(x + image * row, out);
    if (epilogue.fn != nullptr)
      epilogue.fn(epilogue.ctx, {worker, {image, 0, s.c, 0, s.h * s.w}, out, s.h * s.w});
  });
}

}  // namespace tenon::cpu
