// Convolutions over images (conv_image.cuh) with so many taps that neither the filters nor their
// gradient sums fit the registers: the first layer of a ResNet, 7 x 7 over 3 channels.
//
// The horizontal stride is even, so two neighbouring taps of a pixel are one aligned word of the
// patch. A row with an odd number of taps is padded by a tap whose image value is zero. The filters
// are in shared memory in the order of tensor-core fragments, 16 bytes a thread. A warp computes 16
// pixels of two rows at a time, which share the loaded filters. For the weight gradient each warp
// has some taps at all pixels of its block. Bound by operand loads from shared memory, which take
// about twice as long as the global memory traffic.
#pragma once

#include "cuda/kernels/conv/conv_image.cuh"

namespace tenon::cuda {

/// C: as ImagePatch's, kColumns is 16, kStrideW and kRows are even. E: the epilogue.
template <class C, class E>
class ImageTapsBlock {
  using Patch = ImagePatch<C>;
  static constexpr int kLine = (C::kTapsW + 1) / 2 * 2;  // taps of a row, padded to an even number
  static constexpr int kTaps = C::kChannels * C::kTapsH * kLine, kSteps = (kTaps + 15) / 16;
  static constexpr int kTiles = C::kFilters / 8, kGroups = C::kFilters / 32;
  static constexpr int kPatch = (Patch::kShared + 7) / 8 * 8;
  static_assert(C::kFilters % 32 == 0 && C::kStrideW % 2 == 0 && C::kRows % 2 == 0 &&
                    C::kColumns == 16,
                "whole words and tiles");

  /// A lane's operands for one step of two neighbouring tiles of filters.
  struct alignas(16) Pair {
    unsigned of[2][2];
  };
  static constexpr int kPairs = kSteps * kTiles / 2 * 32;

 public:
  /// In 16-bit elements: the patch and the filters.
  static constexpr int kShared = kPatch + 8 * kPairs;

  TENON_DEVICE ImageTapsBlock(const ImageProblem& p, const E& epilogue, unsigned short* shared)
      : p_(p), epilogue_(epilogue), shared_(shared) {}

  TENON_DEVICE void run() {
    load_filters();
    int offsets[kSteps][2];
    list_offsets(offsets);
    Patch::clear_plane_of_zeros(shared_);
#pragma unroll 1
    for (int tile = static_cast<int>(blockIdx.x); tile < p_.tiles;
         tile += static_cast<int>(gridDim.x)) {
      const Patch patch(p_, static_cast<unsigned>(tile), shared_);
      patch.load(p_);
      __syncthreads();
#pragma unroll 1
      for (int row = 2 * Patch::warp(); row < C::kRows; row += C::kThreads / 16) {
        if (patch.row0 + row >= p_.rows) break;
        float sums[2][kTiles][4] = {};
        multiply(row, offsets, sums);
        for (int r = 0; r < 2; ++r)
          if (patch.row0 + row + r < p_.rows) finish(patch, row + r, sums[r]);
      }
      __syncthreads();
    }
  }

 private:
  /// The columns of a tile are numbered as in ImageBlock, so that a thread ends with 8 neighbours.
  /// A warp reads filter after filter along the taps, channels innermost as stored. The target
  /// address is the sum of one term for the tap and one for the filter.
  TENON_DEVICE void load_filters() const {
    auto* pairs = reinterpret_cast<Pair*>(shared_ + kPatch);
    for (int i = static_cast<int>(threadIdx.x); i < kPairs; i += C::kThreads) pairs[i] = {};
    __syncthreads();
    constexpr int kEach = (Patch::kTaps + 31) / 32, kWarps = C::kThreads / 32, kAtOnce = 4;
    static_assert(C::kFilters % (kAtOnce * kWarps) == 0, "whole rounds");
    const auto* filters = static_cast<const unsigned short*>(p_.filters);
    long long from[kEach];
    int to[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int tap = e * 32 + static_cast<int>(threadIdx.x) % 32;
      const int channel = tap % C::kChannels, column = tap / C::kChannels % C::kTapsW,
                row = tap / (C::kChannels * C::kTapsW);
      from[e] = channel * p_.channel_stride + row * p_.row_stride + column * p_.column_stride;
      to[e] = tap < Patch::kTaps ? place_of_tap((channel * C::kTapsH + row) * kLine + column) : -1;
    }
#pragma unroll 1
    for (int first = Patch::warp(); first < C::kFilters; first += kAtOnce * kWarps) {
      unsigned short x[kAtOnce][kEach];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
#pragma unroll
        for (int e = 0; e < kEach; ++e)
          if (to[e] >= 0) x[u][e] = filters[(first + u * kWarps) * p_.filter_stride + from[e]];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
#pragma unroll
        for (int e = 0; e < kEach; ++e)
          if (to[e] >= 0) shared_[kPatch + to[e] + place_of_filter(first + u * kWarps)] = x[u][e];
    }
  }
  /// In 16-bit elements, 8 per Pair: [step][pair of tiles][lane][tile][half][tap].
  static TENON_DEVICE int place_of_tap(int k) {
    return k / 16 * (kTiles / 2) * 256 + k % 8 / 2 * 8 + k / 8 % 2 * 2 + k % 2;
  }
  static TENON_DEVICE int place_of_filter(int filter) {
    const int j = filter / 32 * 4 + filter % 8 / 2, c = filter % 32 / 8 * 2 + filter % 2;
    return j / 2 * 256 + c * 32 + j % 2 * 4;
  }

  /// The offsets of each step's two pairs of taps from a pixel's first tap, in words.
  TENON_DEVICE void list_offsets(int (&offsets)[kSteps][2]) const {
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int k = s * 16 + half * 8 + Patch::lane_column() * 2;
        const int channel = k / (C::kTapsH * kLine), row = k / kLine % C::kTapsH;
        const int at = channel * Patch::kPlane + row * Patch::kWidth + k % kLine;
        offsets[s][half] = (k < kTaps ? at : Patch::kPatch) / 2;
      }
  }
  /// Masks the padding tap: the second tap of a pair may be beyond the filter's row.
  static TENON_DEVICE unsigned mask(int step, int half) {
    const int k = step * 16 + half * 8 + Patch::lane_column() * 2;
    return static_cast<unsigned>(k) % kLine + 1 < C::kTapsW ? ~0u : 0xffffu;
  }

  TENON_DEVICE void multiply(int row, const int (&offsets)[kSteps][2],
                             float (&sums)[2][kTiles][4]) const {
    const auto* words = reinterpret_cast<const unsigned*>(shared_);
    const auto* filters = reinterpret_cast<const Pair*>(shared_ + kPatch) + threadIdx.x % 32;
    const unsigned* pixels[2];
    for (int r = 0; r < 2; ++r) pixels[r] = words + Patch::pixel(row + r, Patch::lane_row()) / 2;
    constexpr int kLower = 8 * C::kStrideW / 2;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      unsigned b[kTiles][2];
#pragma unroll
      for (int j = 0; j < kTiles; j += 2) {
        const Pair pair = filters[(s * kTiles + j) / 2 * 32];
#pragma unroll
        for (int e = 0; e < 4; ++e) b[j + e / 2][e % 2] = pair.of[e / 2][e % 2];
      }
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        unsigned a[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
          a[e] = pixels[r][offsets[s][e / 2] + e % 2 * kLower] & mask(s, e / 2);
        Patch::multiply(sums[r], a, b);
      }
    }
  }

  TENON_DEVICE void finish(const Patch& patch, int row, const float (&sums)[kTiles][4]) {
    typename E::Sums none = E::no_sums();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = patch.column0 + Patch::lane_row() + half * 8;
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

/// The weight gradient, as in ImageGradientBlock.
template <class C, class P>
class ImageTapsGradientBlock {
  using Patch = ImagePatch<C>;
  static constexpr int kHigh = C::kFilters / 16, kWarps = C::kThreads / 32;
  // Tiles of taps per warp.
  static constexpr int kWide = (Patch::kTaps + 8 * kWarps - 1) / (8 * kWarps);
  static constexpr int kGradient = Patch::kPixels * Patch::kPitch;
  static_assert(C::kFilters % 16 == 0 && C::kColumns == 16, "whole tiles");

 public:
  /// Numbers of 16 bits: the gradient's pixels and the patch.
  static constexpr int kShared = kGradient + Patch::kShared;

  TENON_DEVICE ImageTapsGradientBlock(const ImageGradient& p, const P& prologue,
                                      unsigned short* shared)
      : p_(p), prologue_(prologue), shared_(shared) {}

  TENON_DEVICE void run() {
    float sums[kHigh][kWide][4] = {};
    int offsets[kWide];
#pragma unroll
    for (int j = 0; j < kWide; ++j) offsets[j] = Patch::offset(first_tap(j) + Patch::lane_row());
    Patch::clear_plane_of_zeros(shared_ + kGradient);
#pragma unroll 1
    for (int tile = static_cast<int>(blockIdx.x); tile < p_.at.tiles;
         tile += static_cast<int>(gridDim.x)) {
      const Patch patch(p_.at, static_cast<unsigned>(tile), shared_ + kGradient);
      patch.load(p_.at);
      patch.load_gradient(p_, prologue_, shared_);
      __syncthreads();
#pragma unroll 1
      for (int row = 0; row < C::kRows; ++row) add(patch, row, offsets, sums);
      __syncthreads();
    }
    leave(sums);
  }

 private:
  static TENON_DEVICE int first_tap(int j) { return (Patch::warp() * kWide + j) * 8; }

  /// Adds the products of a row of 16 pixels.
  TENON_DEVICE void add(const Patch& patch, int row, const int (&offsets)[kWide],
                        float (&sums)[kHigh][kWide][4]) const {
    const int pixel = Patch::pixel(row, Patch::lane_column() * 2);
    unsigned taps[kWide][2];
#pragma unroll
    for (int j = 0; j < kWide; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int from = pixel + half * 8 * C::kStrideW + offsets[j];
        taps[j][half] = patch.pair(from, from + C::kStrideW);
      }
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const unsigned short* gradient =
        shared_ + (row * 16 + lane / 16 * 8 + lane % 8) * Patch::kPitch + lane / 8 % 2 * 8;
#pragma unroll
    for (int i = 0; i < kHigh; ++i) {
      unsigned filters[4];
      ldmatrix_x4_trans(filters, gradient + i * 16);
      Patch::multiply(sums[i], filters, taps);
    }
  }

  /// Stores the partial result, through shared memory where it fits, so that whole lines are
  /// written.
  TENON_DEVICE void leave(const float (&sums)[kHigh][kWide][4]) const {
    constexpr int kSums = C::kFilters * Patch::kTaps;
    constexpr bool kTogether = 2 * kSums <= kShared && kSums % 4 == 0;
    float* to = p_.partials + static_cast<long long>(blockIdx.x) * kSums;
    float* all = kTogether ? reinterpret_cast<float*>(shared_) : to;
#pragma unroll
    for (int i = 0; i < kHigh; ++i)
#pragma unroll
      for (int j = 0; j < kWide; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int tap = first_tap(j) + Patch::lane_column() * 2 + e % 2;
          const int filter = i * 16 + Patch::lane_row() + e / 2 * 8;
          if (tap < Patch::kTaps) all[filter * Patch::kTaps + tap] = sums[i][j][e];
        }
    if constexpr (kTogether) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < kSums / 4; i += C::kThreads)
        reinterpret_cast<float4*>(to)[i] = reinterpret_cast<const float4*>(all)[i];
    }
  }

  const ImageGradient& p_;
  const P& prologue_;
  unsigned short* shared_;
};

}  // namespace tenon::cuda
