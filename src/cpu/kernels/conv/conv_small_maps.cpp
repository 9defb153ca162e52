// Masks and weights of all taps are laid out once for a call. Then a block of channels is computed
// for several images, so that its masks and weights stay in the L1 cache.
#include "cpu/kernels/conv/conv_small_maps.h"

#include <algorithm>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/kernels/conv/conv_small_rows.h"
#include "cpu/kernels/isa.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kMostPixels = 32, kMostTaps = 49, kMostRow = 32768;
constexpr std::int64_t kBlock = 512;        // elements of a block of channels
constexpr std::int64_t kImages = 8;         // images of a block, one after another
constexpr std::int64_t kSummedImages = 64;  // of a weight gradient, between sums in double

// Where the arrays of a call are, in floats.
struct Sizes {
  explicit Sizes(const ConvShape& s)
      : pixels(s.h * s.w),
        taps(s.r * s.s),
        row(s.c * pixels),
        channels(std::clamp<std::int64_t>(kBlock / pixels, 1, s.c)),
        blocks(divide_up(s.c, channels)),
        block(round_up(channels * pixels, 16)) {}

  const std::int64_t pixels, taps, row;
  const std::int64_t channels, blocks;  // channels of a block
  const std::int64_t block;             // floats of a block
};

// What a tap reads of a row: where it is, and which pixels of a map it reads.
class Taps {
 public:
  Taps(const ConvShape& shape, ConvPass pass, const Sizes& sizes, float* memory)
      : s_(shape), sizes_(sizes), sign_(pass == ConvPass::InputGrad ? -1 : 1) {
    masks_ = reinterpret_cast<std::uint32_t*>(memory);
    for (std::int64_t tap = 0; tap < sizes_.taps; ++tap) {
      std::uint32_t* const mask = masks_ + tap * sizes_.block;
      for (std::int64_t i = 0; i < sizes_.pixels; ++i) {
        const bool reads = inside(i / s_.w + sign_ * down(tap), s_.h) &&
                           inside(i % s_.w + sign_ * right(tap), s_.w);
        mask[i] = reads ? ~0u : 0u;
      }
      for (std::int64_t c = 1; c < sizes_.channels; ++c)
        std::copy_n(mask, sizes_.pixels, mask + c * sizes_.pixels);
    }
  }

  // sums[i] += a[i] * x[i shifted by the tap] for the elements [first, first + n) of a row, of
  // which sums and a are the first ones and x is the row's beginning.
  void add(MaskedProducts loop, std::int64_t tap, std::int64_t first, std::int64_t n, float* sums,
           const float* a, const float* x) const {
    const std::int64_t by = sign_ * (down(tap) * s_.w + right(tap)),
                       begin = std::max<std::int64_t>(0, -by - first),
                       end = std::min(n, sizes_.row - by - first);
    if (begin >= end) return;
    loop(end - begin, sums + begin, a + begin, x + (first + begin + by),
         masks_ + tap * sizes_.block + begin);
  }

 private:
  static bool inside(std::int64_t at, std::int64_t size) { return at >= 0 && at < size; }
  std::int64_t down(std::int64_t tap) const { return tap / s_.s * s_.dil_h - s_.pad_h; }
  std::int64_t right(std::int64_t tap) const { return tap % s_.s * s_.dil_w - s_.pad_w; }

  const ConvShape& s_;
  const Sizes& sizes_;
  const std::int64_t sign_;
  std::uint32_t* masks_;
};

}  // namespace

MaskedProducts masked_products() {
  switch (best_isa()) {
#if defined(__x86_64__)
    case Isa::Amx:
    case Isa::Avx512Bf16:
    case Isa::Avx512:
      return avx512_masked_products();
    case Isa::Avx2:
      return avx2_masked_products();
#endif
    default:
      return base_masked_products();
  }
}

bool has_small_maps(const ConvShape& s, Math math) {
  return math == Math::F32 && s.groups > 1 && s.groups == s.c && s.c == s.k && s.stride_h == 1 &&
         s.stride_w == 1 && s.p == s.h && s.q == s.w && s.h * s.w <= kMostPixels &&
         s.r * s.s <= kMostTaps && s.c * s.h * s.w <= kMostRow;
}

std::size_t small_maps_workspace(const ConvShape& s, ConvPass pass, int threads) {
  const Sizes sizes(s);
  const std::int64_t masks = sizes.taps * sizes.block;
  const bool weights = pass == ConvPass::WeightGrad;
  const std::int64_t shared = weights ? 0 : round_up(sizes.taps * sizes.row, 16);
  const std::int64_t own =
      weights ? masks + 2 * round_up(sizes.channels * sizes.taps, 16) : sizes.block;
  return at((masks + shared + threads * own) * 4);
}

void correlate_small_maps(const ConvShape& s, ConvPass pass, const float* x, const float* w,
                          float* y, const Epilogue& epilogue, void* workspace) {
  const Sizes sizes(s);
  auto* const memory = static_cast<float*>(workspace);
  const Taps taps(s, pass, sizes, memory);
  float* const weights = memory + sizes.taps * sizes.block;
  for (std::int64_t tap = 0; tap < sizes.taps; ++tap)
    for (std::int64_t c = 0; c < s.c; ++c)
      std::fill_n(weights + tap * sizes.row + c * sizes.pixels, sizes.pixels,
                  w[c * sizes.taps + tap]);
  float* const scratch = weights + round_up(sizes.taps * sizes.row, 16);
  const MaskedProducts loop = masked_products();
  parallel_for(sizes.blocks * divide_up(s.n, kImages), [&](std::int64_t unit, int worker) {
    const std::int64_t c0 = unit % sizes.blocks * sizes.channels,
                       c1 = std::min(s.c, c0 + sizes.channels), first = c0 * sizes.pixels,
                       n = (c1 - c0) * sizes.pixels, image0 = unit / sizes.blocks * kImages;
    for (std::int64_t image = image0; image < std::min(s.n, image0 + kImages); ++image) {
      float* const out =
          y != nullptr ? y + image * sizes.row + first : scratch + worker * sizes.block;
      std::fill_n(out, n, 0.0f);
      for (std::int64_t tap = 0; tap < sizes.taps; ++tap)
        taps.add(loop, tap, first, n, out, weights + tap * sizes.row + first,
                 x + image * sizes.row);
      if (epilogue.fn != nullptr)
        epilogue.fn(epilogue.ctx, {worker, {image, c0, c1, 0, sizes.pixels}, out, sizes.pixels});
    }
  });
}

void correlate_small_weights(const ConvShape& s, const float* x, const float* dy, float* dw,
                             const Epilogue& epilogue, void* workspace) {
  const Sizes sizes(s);
  auto* const memory = static_cast<float*>(workspace);
  const Taps taps(s, ConvPass::WeightGrad, sizes, memory);
  const std::int64_t masks = sizes.taps * sizes.block,
                     results = round_up(sizes.channels * sizes.taps, 16);
  float* const scratch = memory + masks;
  const MaskedProducts loop = masked_products();
  parallel_for(sizes.blocks, [&](std::int64_t block, int worker) {
    const std::int64_t c0 = block * sizes.channels, c1 = std::min(s.c, c0 + sizes.channels),
                       first = c0 * sizes.pixels, n = (c1 - c0) * sizes.pixels;
    float* const sums = scratch + worker * (masks + 2 * results);
    auto* const totals = reinterpret_cast<double*>(sums + masks);
    std::fill_n(totals, (c1 - c0) * sizes.taps, 0.0);
    for (std::int64_t image0 = 0; image0 < s.n; image0 += kSummedImages) {
      std::fill_n(sums, masks, 0.0f);
      for (std::int64_t image = image0; image < std::min(s.n, image0 + kSummedImages); ++image)
        for (std::int64_t tap = 0; tap < sizes.taps; ++tap)
          taps.add(loop, tap, first, n, sums + tap * sizes.block, dy + image * sizes.row + first,
                   x + image * sizes.row);
      for (std::int64_t c = 0; c < c1 - c0; ++c)
        for (std::int64_t tap = 0; tap < sizes.taps; ++tap) {
          const float* const map = sums + tap * sizes.block + c * sizes.pixels;
          double total = totals[c * sizes.taps + tap];
          for (std::int64_t i = 0; i < sizes.pixels; ++i) total += static_cast<double>(map[i]);
          totals[c * sizes.taps + tap] = total;
        }
    }
    float* const out = dw != nullptr ? dw + c0 * sizes.taps : sums;
    for (std::int64_t i = 0; i < (c1 - c0) * sizes.taps; ++i)
      out[i] = static_cast<float>(totals[i]);
    if (epilogue.fn != nullptr)
      epilogue.fn(epilogue.ctx, {worker, {0, c0, c1, 0, sizes.taps}, out, sizes.taps});
  });
}

}  // namespace tenon::cpu
