// Loops that keep one unit of a GPU busy and nothing else, to measure its peak rates.
//
// The results have no meaning. They are stored under a condition that is never true, so that the
// compiler does not remove the work.
#pragma once

#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

struct alignas(16) RateWord {
  float v[4];
};

/// Copies `count` words of 16 bytes. Bound by memory bandwidth.
TENON_DEVICE void rate_copy(RateWord* to, const RateWord* from, long long count) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    to[i] = from[i];
}

/// Per thread and round 16 fused multiply-adds in 16 independent chains.
TENON_DEVICE void rate_fma(float* out, float factor, long long rounds) {
  float sums[16];
  for (int i = 0; i < 16; ++i) sums[i] = static_cast<float>(threadIdx.x + i);
  for (long long round = 0; round < rounds; ++round)
#pragma unroll
    for (int i = 0; i < 16; ++i) sums[i] = sums[i] * factor + factor;
  float sum = 0;
  for (int i = 0; i < 16; ++i) sum += sums[i];
  if (sum == -1.0f) out[threadIdx.x] = sum;
}

/// Per warp and round 8 tensor-core products in 8 independent chains: 16x8x16 of bfloat16, or
/// 16x8x8 of tf32.
template <bool kTf32>
TENON_DEVICE void rate_mma(float* out, float factor, long long rounds) {
  float sums[8][4] = {};
  unsigned a[4], b[2];
  for (int i = 0; i < 4; ++i) a[i] = kTf32 ? to_tf32(factor) : pack_bf16(factor, factor);
  for (int i = 0; i < 2; ++i) b[i] = a[i];
  for (long long round = 0; round < rounds; ++round)
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if constexpr (kTf32)
        mma_tf32_m16n8k8(sums[i], a, b);
      else
        mma_bf16_m16n8k16(sums[i], a, b);
  float sum = 0;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 4; ++j) sum += sums[i][j];
  if (sum == -1.0f) out[threadIdx.x] = sum;
}

}  // namespace tenon::cuda
