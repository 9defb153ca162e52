// Per-channel reductions of an epilogue, for results in which a channel is a row. Groups of lanes
// store partial results of their neighbouring elements. A second launch combines the partial
// results of each channel in order, one warp per channel, so the bits depend only on how the result
// is cut into parts. (The last block to finish could combine them without a second launch. Every
// block would then wait for the reply of an atomic counter, which takes longer.)
//
// The layout of partial results is [number][channel][part], with `pitch` parts a row, followed by
// the element count of each part. Every lane of a warp must call these functions.
#pragma once

#include "cuda/kernels/maps/map_reduce.cuh"

namespace tenon::cuda {

struct ChannelParts {
  float* partials;
  int channels, parts, pitch;

  TENON_DEVICE float* row(int number, int channel) const {
    return partials + (static_cast<long long>(number) * channels + channel) * pitch;
  }
};

/// The part of a channel that `Lanes` neighbouring lanes hold.
template <int Lanes>
struct ChannelPart {
  ChannelParts all;
  int channel, part;
  bool exists;         // this thread's elements
  bool leads;          // this thread stores the result
  float count, share;  // number of all lanes' elements; 1 / count

  TENON_DEVICE void put(int number, float x) const {
    if (leads) all.row(number, channel)[part] = x;
  }
  template <class Op, int N>
  TENON_DEVICE void reduce(int number, const float (&x)[N], float neutral) const {
    float y = exists ? x[0] : neutral;
#pragma unroll
    for (int v = 1; v < N; ++v)
      if (exists) y = Op::combine(y, x[v]);
    put(number, reduce_lanes<Op, Lanes>(y));
  }
  /// Stores the mean as `number`, and the sum of squared deviations from the mean as `number` + 1.
  template <int N>
  TENON_DEVICE void deviations(int number, const float (&x)[N]) const {
    float sum = 0, squares = 0;
#pragma unroll
    for (int v = 0; v < N; ++v)
      if (exists) sum += x[v];
    const float mean = reduce_lanes<SumOf, Lanes>(sum) * share;
#pragma unroll
    for (int v = 0; v < N; ++v)
      if (exists) squares += (x[v] - mean) * (x[v] - mean);
    put(number, mean);
    put(number + 1, reduce_lanes<SumOf, Lanes>(squares));
  }
};

/// Combines the partial results of a channel by a warp, four neighbouring ones a lane; all lanes
/// get the result.
template <class F>
TENON_DEVICE void for_parts(const ChannelParts& all, F&& f) {
#pragma unroll 8
  for (int p = static_cast<int>(threadIdx.x) % 32 * 4; p < all.parts; p += 128) f(p);
}
TENON_DEVICE float4 four_parts(const float* row, int part) {
  return *reinterpret_cast<const float4*>(row + part);
}

template <class Op>
TENON_DEVICE float combine_channel(const ChannelParts& all, int number, int channel,
                                   float neutral) {
  float sum = neutral;
  const float* row = all.row(number, channel);
  for_parts(all, [&](int p) {
    const float4 x = four_parts(row, p);
    const float each[] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int v = 0; v < 4; ++v)
      if (p + v < all.parts) sum = Op::combine(sum, each[v]);
  });
  return reduce_lanes<Op, 32>(sum);
}

/// `counts`: the row of `all` that holds the element counts.
TENON_DEVICE Moments<float> combine_moments(const ChannelParts& all, int number, int counts,
                                            int channel) {
  const float *means = all.row(number, channel), *squares = all.row(number + 1, channel),
              *sizes = all.row(counts, 0);
  // The overall mean as a difference from the first part's mean, then the deviation of each part's
  // mean from it: nothing cancels, however large the mean is.
  const float first = means[0];
  float count = 0, sum = 0, within = 0, between = 0;
  for_parts(all, [&](int p) {
    const float4 m = four_parts(means, p), s = four_parts(squares, p), n = four_parts(sizes, p);
    const float mean[] = {m.x, m.y, m.z, m.w}, inner[] = {s.x, s.y, s.z, s.w},
                size[] = {n.x, n.y, n.z, n.w};
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (p + v >= all.parts || size[v] == 0) continue;
      count += size[v], sum += size[v] * (mean[v] - first), within += inner[v];
    }
  });
  count = reduce_lanes<SumOf, 32>(count);
  sum = reduce_lanes<SumOf, 32>(sum);
  const float mean = count == 0 ? 0.f : first + sum / count;
  for_parts(all, [&](int p) {
    const float4 m = four_parts(means, p), n = four_parts(sizes, p);
    const float of_part[] = {m.x, m.y, m.z, m.w}, size[] = {n.x, n.y, n.z, n.w};
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (p + v >= all.parts || size[v] == 0) continue;
      between += size[v] * (of_part[v] - mean) * (of_part[v] - mean);
    }
  });
  return {count, mean, reduce_lanes<SumOf, 32>(within + between)};
}

}  // namespace tenon::cuda
