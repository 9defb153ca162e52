// Convolutions over 16-bit images of few channels (NCHW) with NHWC results.
//
// Tiles: a block has all filters and computes one tile of C::kRows x C::kColumns pixels after
// another. The patch of the image under the tile is in shared memory, by planes as in global
// memory. Each thread gathers its tensor-core operands from the patch (rows: pixels; k: taps of all
// channels, padded with zeros to a multiple of 16) and keeps the filters in registers. The columns
// of the products are numbered so that a thread ends with 8 neighbouring channels and stores them
// at once. The result goes to the epilogue only. Bandwidth-bound: the result is written once.
#pragma once

#include "cuda/kernels/conv/conv_image_args.cuh"
#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/gemm/gemm_math.cuh"
#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

/// The part of an image under a tile of the result.
///
/// C: kMath, kChannels, kTapsH, kTapsW, kStrideH, kStrideW, kFilters, kRows, kColumns, kThreads.
template <class C>
struct ImagePatch {
  static constexpr int kTaps = C::kChannels * C::kTapsH * C::kTapsW;
  static constexpr int kHeight = (C::kRows - 1) * C::kStrideH + C::kTapsH;
  // For even strides pairs of taps are read as words.
  static constexpr int kWidth =
      (C::kColumns - 1) * C::kStrideW + C::kTapsW + (C::kStrideW % 2 == 0 ? C::kTapsW % 2 : 0);
  static constexpr int kPlane = kHeight * kWidth, kPatch = C::kChannels * kPlane;
  /// The patch, and a plane of zeros for padding taps.
  static constexpr int kShared = kPatch + kPlane;
  static_assert(C::kColumns % 16 == 0, "whole tiles");

  unsigned short* patch;
  int image, row0, column0;  // position of the tile

  TENON_DEVICE ImagePatch(const ImageProblem& p, unsigned tile, unsigned short* shared)
      : patch(shared) {
    unsigned band = split<false>(tile, p.strips);
    image = static_cast<int>(split<false>(band, p.bands));
    row0 = static_cast<int>(band) * C::kRows;
    column0 = static_cast<int>(tile) * C::kColumns;
  }

  TENON_DEVICE void load(const ImageProblem& p) const {
    const auto* pixels = static_cast<const unsigned short*>(p.image) +
                         static_cast<long long>(image) * C::kChannels * p.height * p.width;
    const int top = row0 * C::kStrideH - p.pad_h, left = column0 * C::kStrideW - p.pad_w;
    constexpr int kAtOnce = 16;  // loads in flight
#pragma unroll 1
    for (int first = static_cast<int>(threadIdx.x); first < kPatch;
         first += kAtOnce * C::kThreads) {
      unsigned short x[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const int i = first + u * C::kThreads;
        const int plane = i / kPlane, row = top + i % kPlane / kWidth, column = left + i % kWidth;
        const bool exists =
            i < kPatch && row >= 0 && row < p.height && column >= 0 && column < p.width;
        x[u] = exists ? pixels[(plane * p.height + row) * p.width + column]
                      : static_cast<unsigned short>(0);
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
        if (const int i = first + u * C::kThreads; i < kPatch) patch[i] = x[u];
    }
  }

  struct alignas(16) Word {
    unsigned at[4];
  };
  /// The output gradient at the tile's pixels: kPitch elements per pixel, zeros outside.
  static constexpr int kPitch = C::kFilters + 8, kPixels = C::kRows * C::kColumns;
  static constexpr int kWords = C::kFilters / 8;  // words of 16 bytes per pixel
  TENON_DEVICE void load_gradient(const ImageGradient& p, NoPrologue, unsigned short* to) const {
    constexpr int kAtOnce = 8;
    static_assert(kPixels * kWords % (kAtOnce * C::kThreads) == 0, "whole rounds");
#pragma unroll kAtOnce
    for (int i = static_cast<int>(threadIdx.x); i < kPixels * kWords; i += C::kThreads) {
      Word x = {};
      if (const long long pixel = pixel_of(p.at, i / kWords); pixel >= 0)
        x = static_cast<const Word*>(p.gradient)[pixel * kWords + i % kWords];
      put_gradient(to, i, x);
    }
  }
  /// The same with a prologue applied (engines/products/print_prologue.h). A thread has the same
  /// filters at all its pixels. The prologue's further operands are indexed like the gradient, or
  /// by filter.
  template <class P>
  TENON_DEVICE void load_gradient(const ImageGradient& p, const P& prologue,
                                  unsigned short* to) const {
    using Memory = typename P::Memory;
    struct alignas(16) Several {
      Memory at[8];
    };
    constexpr int kAtOnce = 4;
    static_assert(C::kThreads % kWords == 0 && kPixels * kWords % (kAtOnce * C::kThreads) == 0 &&
                      sizeof(Several) == sizeof(Word),
                  "whole rounds of 16 bits");
    const int filter = static_cast<int>(threadIdx.x) % kWords * 8;
    long long by_filter[P::kLayouts + 1];
    for (long long& place : by_filter) place = filter;
#pragma unroll 1
    for (int first = static_cast<int>(threadIdx.x); first < kPixels * kWords;
         first += kAtOnce * C::kThreads) {
      Several x[kAtOnce];
      typename P::template Held<8> held[kAtOnce];
      bool exists[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const long long pixel = pixel_of(p.at, (first + u * C::kThreads) / kWords);
        exists[u] = pixel >= 0;
        if (!exists[u]) continue;
        const long long own = pixel * C::kFilters + filter;
        x[u] = *reinterpret_cast<const Several*>(static_cast<const Memory*>(p.gradient) + own);
        held[u] = prologue.template hold<8>(own, by_filter);
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        Word made = {};
        if (exists[u]) {
          float y[8];
          prologue.apply(x[u].at, held[u], y);
#pragma unroll
          for (int e = 0; e < 4; ++e)
            made.at[e] = C::kMath == Math::Bf16 ? pack_bf16(y[2 * e], y[2 * e + 1])
                                                : pack_f16(y[2 * e], y[2 * e + 1]);
        }
        put_gradient(to, first + u * C::kThreads, made);
      }
    }
  }
  /// The index of a tile's pixel in the result; -1 outside.
  TENON_DEVICE long long pixel_of(const ImageProblem& p, int pixel) const {
    const int row = row0 + pixel / C::kColumns, column = column0 + pixel % C::kColumns;
    if (row >= p.rows || column >= p.columns) return -1;
    return (static_cast<long long>(image) * p.rows + row) * p.columns + column;
  }
  static TENON_DEVICE void put_gradient(unsigned short* to, int word, const Word& x) {
    *reinterpret_cast<Word*>(to + word / kWords * kPitch + word % kWords * 8) = x;
  }
  static TENON_DEVICE void clear_plane_of_zeros(unsigned short* shared) {
    for (int i = static_cast<int>(threadIdx.x); i < kPlane; i += C::kThreads)
      shared[kPatch + i] = 0;
  }

  /// The offset of tap k from a pixel's first tap.
  static TENON_DEVICE int offset(int k) {
    const int channel = k / (C::kTapsH * C::kTapsW), row = k / C::kTapsW % C::kTapsH;
    return k < kTaps ? channel * kPlane + row * kWidth + k % C::kTapsW : kPatch;
  }
  static TENON_DEVICE int pixel(int row, int column) {
    return row * C::kStrideH * kWidth + column * C::kStrideW;
  }
  TENON_DEVICE unsigned pair(int first, int second) const { return pair_of(patch, first, second); }
  static TENON_DEVICE unsigned pair_of(const unsigned short* from, int first, int second) {
    return from[first] | static_cast<unsigned>(from[second]) << 16;
  }

  template <int kTiles>
  static TENON_DEVICE void multiply(float (&sums)[kTiles][4], const unsigned (&a)[4],
                                    const unsigned (&b)[kTiles][2]) {
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
      if constexpr (C::kMath == Math::Bf16)
        mma_bf16_m16n8k16(sums[j], a, b[j]);
      else
        mma_f16_m16n8k16(sums[j], a, b[j]);
  }
  static TENON_DEVICE int lane_row() { return static_cast<int>(threadIdx.x) % 32 / 4; }
  static TENON_DEVICE int lane_column() { return static_cast<int>(threadIdx.x) % 4; }
  static TENON_DEVICE int warp() { return static_cast<int>(threadIdx.x) / 32; }
};

template <class C, class E>
class ImageBlock {
  using Patch = ImagePatch<C>;
  static constexpr int kSteps = (Patch::kTaps + 15) / 16;
  static constexpr int kTiles = C::kFilters / 8, kGroups = C::kFilters / 32;
  static_assert(C::kFilters % 32 == 0, "whole tiles");

 public:
  static constexpr int kShared = Patch::kShared;

  TENON_DEVICE ImageBlock(const ImageProblem& p, const E& epilogue, unsigned short* shared)
      : p_(p), epilogue_(epilogue), shared_(shared) {}

  TENON_DEVICE void run() {
    unsigned filters[kSteps][kTiles][2];
    load_filters(filters);
    int offsets[kSteps][4];
    list_offsets(offsets);
    Patch::clear_plane_of_zeros(shared_);
#pragma unroll 1
    for (int tile = static_cast<int>(blockIdx.x); tile < p_.tiles;
         tile += static_cast<int>(gridDim.x)) {
      const Patch patch(p_, static_cast<unsigned>(tile), shared_);
      patch.load(p_);
      __syncthreads();
      results(patch, filters, offsets);
      __syncthreads();
    }
  }

 private:
  TENON_DEVICE void results(const Patch& patch, const unsigned (&filters)[kSteps][kTiles][2],
                            const int (&offsets)[kSteps][4]) {
    constexpr int kAcross = C::kColumns / 16;
#pragma unroll 1
    for (int part = Patch::warp(); part < C::kRows * kAcross; part += C::kThreads / 32) {
      const int row = part / kAcross, column = part % kAcross * 16;
      if (patch.row0 + row >= p_.rows || patch.column0 + column >= p_.columns) continue;
      float sums[kTiles][4] = {};
      multiply(patch, row, column, offsets, filters, sums);
      finish(patch, row, column, sums);
    }
  }

  /// Tap k of a filter as channel, row and column.
  TENON_DEVICE unsigned filter_element(int filter, int k) const {
    if (k >= Patch::kTaps) return 0;
    const int channel = k / (C::kTapsH * C::kTapsW), row = k / C::kTapsW % C::kTapsH,
              column = k % C::kTapsW;
    return static_cast<const unsigned short*>(
        p_.filters)[filter * p_.filter_stride + channel * p_.channel_stride + row * p_.row_stride +
                    column * p_.column_stride];
  }

  /// Column c of tile j is filter (j / 4) 32 + (c / 2) 8 + (j % 4) 2 + c % 2.
  TENON_DEVICE void load_filters(unsigned (&filters)[kSteps][kTiles][2]) const {
    const int c = Patch::lane_row();
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int filter = j / 4 * 32 + c / 2 * 8 + j % 4 * 2 + c % 2;
          const int k = s * 16 + half * 8 + Patch::lane_column() * 2;
          filters[s][j][half] = filter_element(filter, k) | filter_element(filter, k + 1) << 16;
        }
  }

  /// The offsets of the thread's taps of each step from a pixel's first tap.
  TENON_DEVICE void list_offsets(int (&offsets)[kSteps][4]) const {
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int k = s * 16 + e / 2 * 8 + Patch::lane_column() * 2 + e % 2;
        offsets[s][e] = Patch::offset(k);
      }
  }

  TENON_DEVICE void multiply(const Patch& patch, int row, int column,
                             const int (&offsets)[kSteps][4],
                             const unsigned (&filters)[kSteps][kTiles][2],
                             float (&sums)[kTiles][4]) const {
    const int upper = Patch::pixel(row, column + Patch::lane_row());
    const int lower = upper + 8 * C::kStrideW;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const int(&at)[4] = offsets[s];
      const unsigned pixels[4] = {
          patch.pair(upper + at[0], upper + at[1]), patch.pair(lower + at[0], lower + at[1]),
          patch.pair(upper + at[2], upper + at[3]), patch.pair(lower + at[2], lower + at[3])};
      Patch::multiply(sums, pixels, filters[s]);
    }
  }

  TENON_DEVICE void finish(const Patch& patch, int row, int column,
                           const float (&sums)[kTiles][4]) {
    typename E::Sums none = E::no_sums();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = patch.column0 + column + Patch::lane_row() + half * 8;
      if (at >= p_.columns) continue;
      const long long pixel =
          (static_cast<long long>(patch.image) * p_.rows + patch.row0 + row) * p_.columns + at;
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        float x[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) x[e] = sums[g * 4 + e / 2][half * 2 + e % 2];
        epilogue_.template store_row<8>(0, pixel, g * 32 + Patch::lane_column() * 8, x, none);
      }
    }
  }

  const ImageProblem& p_;
  const E& epilogue_;
  unsigned short* shared_;
};

/// Weight gradient: sums over pixels of output gradient (rows: filters) times the image under the
/// taps (columns). A block sums its share of the tiles, each warp some of the pixels, and
/// overwrites one partial result; conv_sum.cuh adds the partial results.
///
/// P: the gradient's prologue, or NoPrologue.
template <class C, class P>
class ImageGradientBlock {
  using Patch = ImagePatch<C>;
  static constexpr int kHigh = C::kFilters / 16, kWide = (Patch::kTaps + 7) / 8;
  static constexpr int kWarps = C::kThreads / 32, kPitch = Patch::kPitch;
  static constexpr int kSums = C::kFilters * kWide * 8;
  static_assert(C::kFilters % 16 == 0, "whole tiles");

 public:
  /// In 16-bit elements: the gradient's pixels and the patch; later overwritten by the warps' sums.
  static constexpr int kGradient = Patch::kPixels * kPitch;
  static constexpr int kShared =
      kGradient + Patch::kShared > 2 * kSums ? kGradient + Patch::kShared : 2 * kSums;

  TENON_DEVICE ImageGradientBlock(const ImageGradient& p, const P& prologue, unsigned short* shared)
      : p_(p), prologue_(prologue), shared_(shared) {}

  TENON_DEVICE void run() {
    float sums[kHigh][kWide][4] = {};
    int offsets[kWide];
#pragma unroll
    for (int j = 0; j < kWide; ++j) offsets[j] = Patch::offset(j * 8 + Patch::lane_row());
    Patch::clear_plane_of_zeros(shared_ + kGradient);
#pragma unroll 1
    for (int tile = static_cast<int>(blockIdx.x); tile < p_.at.tiles;
         tile += static_cast<int>(gridDim.x)) {
      const Patch patch(p_.at, static_cast<unsigned>(tile), shared_ + kGradient);
      patch.load(p_.at);
      patch.load_gradient(p_, prologue_, shared_);
      __syncthreads();
      add(patch, offsets, sums);
      __syncthreads();
    }
    leave(sums);
  }

 private:
  TENON_DEVICE void add(const Patch& patch, const int (&offsets)[kWide],
                        float (&sums)[kHigh][kWide][4]) const {
    constexpr int kAcross = C::kColumns / 16;
    // The thread's pixels are this one, the next, and both 8 further on.
    const int first = Patch::lane_column() * 2;
#pragma unroll 1
    for (int step = Patch::warp(); step < C::kRows * kAcross; step += kWarps) {
      const int row = step / kAcross, column = step % kAcross * 16;
      const int at = Patch::pixel(row, column + first);
      unsigned taps[kWide][2];
#pragma unroll
      for (int j = 0; j < kWide; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int from = at + half * 8 * C::kStrideW + offsets[j];
          taps[j][half] = patch.pair(from, from + C::kStrideW);
        }
      const unsigned short* pixel = shared_ + (step * 16 + first) * kPitch + Patch::lane_row();
#pragma unroll
      for (int i = 0; i < kHigh; ++i) {
        const unsigned short* from = pixel + i * 16;
        const unsigned filters[4] = {Patch::pair_of(from, 0, kPitch),
                                     Patch::pair_of(from, 8, kPitch + 8),
                                     Patch::pair_of(from, 8 * kPitch, 9 * kPitch),
                                     Patch::pair_of(from, 8 * kPitch + 8, 9 * kPitch + 8)};
        Patch::multiply(sums[i], filters, taps);
      }
    }
  }

  /// Adds the warps' sums in order and stores the block's partial result.
  TENON_DEVICE void leave(const float (&sums)[kHigh][kWide][4]) const {
    auto* all = reinterpret_cast<float*>(shared_);
    for (int turn = 0; turn < kWarps; ++turn) {
      if (Patch::warp() == turn) {
#pragma unroll
        for (int i = 0; i < kHigh; ++i)
#pragma unroll
          for (int j = 0; j < kWide; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              const int row = i * 16 + Patch::lane_row() + e / 2 * 8;
              float& sum = all[row * kWide * 8 + j * 8 + Patch::lane_column() * 2 + e % 2];
              sum = turn == 0 ? sums[i][j][e] : sum + sums[i][j][e];
            }
      }
      __syncthreads();
    }
    float* to = p_.partials + static_cast<long long>(blockIdx.x) * C::kFilters * Patch::kTaps;
    for (int i = static_cast<int>(threadIdx.x); i < C::kFilters * Patch::kTaps; i += C::kThreads)
      to[i] = all[i / Patch::kTaps * kWide * 8 + i % Patch::kTaps];
  }

  const ImageGradient& p_;
  const P& prologue_;
  unsigned short* shared_;
};

}  // namespace tenon::cuda
