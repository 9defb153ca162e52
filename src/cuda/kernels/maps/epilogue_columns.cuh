// Column reductions of an epilogue over some neighbouring rows of a result. A warp has the rows of
// kWarpColumns columns, four neighbouring columns a thread. It leaves its partial results in shared
// memory, one line of kWarpColumns floats for each number. One thread then combines the partial
// results of four warps for a column, always in the same order.
#pragma once

#include "cuda/kernels/maps/map_reduce.cuh"

namespace tenon::cuda {

inline constexpr int kWarpColumns = 128, kColumnWarps = 4;

template <int kRows>
TENON_DEVICE void put_columns(float* to, int lane, const float (&sums)[4]) {
  *reinterpret_cast<float4*>(to + lane * 4) = make_float4(sums[0], sums[1], sums[2], sums[3]);
}
/// Two lines: the means of kRows numbers each, and the sums of squared deviations from the means.
template <int kRows>
TENON_DEVICE void put_columns(float* to, int lane, const Spread<float> (&x)[4]) {
  float means[4], squares[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Moments<float> own = x[i].moments(float(kRows));
    means[i] = own.mean;
    squares[i] = own.squares;
  }
  put_columns<kRows>(to, lane, means);
  put_columns<kRows>(to + kWarpColumns, lane, squares);
}

/// `from`: a column of the first warp's line; the lines of the next warps follow at kPitch floats.
template <int kRows, int kPitch>
TENON_DEVICE float columns_sum(const float* from) {
  float sum = from[0];
#pragma unroll
  for (int w = 1; w < kColumnWarps; ++w) sum += from[w * kPitch];
  return sum;
}
template <int kRows, int kPitch>
TENON_DEVICE Moments<float> columns_moments(const float* from) {
  Moments<float> all = {float(kRows), from[0], from[kWarpColumns]};
#pragma unroll
  for (int w = 1; w < kColumnWarps; ++w)
    all = MomentsOf::combine(
        all, Moments<float>{float(kRows), from[w * kPitch], from[w * kPitch + kWarpColumns]});
  return all;
}

}  // namespace tenon::cuda
