// Test data for kernels and the distance between two results; used by the tuner.
//
// Contiguous elements, one pass, bandwidth-bound. Arrays do not overlap. compare_numbers overwrites
// its sums, one set per block; a block has 256 threads.
#pragma once

#include "cuda/kernels/element.cuh"
#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

TENON_DEVICE float number_of(unsigned bits, float scale) {
  const float even = static_cast<float>(bits) * (2.0f / 16777216.0f) - 1.0f;
  return scale < 0.0f ? (1.0f + 0.5f * even) * -scale : even * scale;
}

/// Random elements that depend on seed and position alone: floating-point numbers in [-scale,
/// scale), or near |scale| if scale is negative; integers from 0 to 7; bools.
template <class Element, bool kFloating, bool kTruth>
TENON_DEVICE void fill_numbers(void* data, long long count, unsigned long long seed, float scale) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    // splitmix64
    unsigned long long z = seed + static_cast<unsigned long long>(i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    const auto bits = static_cast<unsigned>(z >> 40);  // 24 of them
    if constexpr (kFloating)
      Element::store(data, i, static_cast<typename Element::Value>(number_of(bits, scale)));
    else
      Element::store(data, i, static_cast<typename Element::Value>(kTruth ? bits & 1 : bits & 7));
  }
}

/// Sums over the elements: the squares of (got - expected), the squares of `expected`, and the
/// number of elements that are finite in only one of the two, or are not finite in both and differ.
template <class Element>
TENON_DEVICE void compare_numbers(const void* expected, const void* got, long long count,
                                  double* sums) {
  double apart = 0, size = 0, broken = 0;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const auto x = static_cast<double>(Element::load(expected, i)),
               y = static_cast<double>(Element::load(got, i));
    const double difference = y - x;
    if (difference - difference == 0 && x - x == 0) {
      apart += difference * difference;
      size += x * x;
    } else if (x != y && (x == x || y == y)) {
      broken += 1;
    }
  }
  __shared__ double warps[3][8];
  for (int distance = 16; distance > 0; distance /= 2) {
    apart += shuffle_down(apart, distance);
    size += shuffle_down(size, distance);
    broken += shuffle_down(broken, distance);
  }
  if (threadIdx.x % 32 == 0) {
    warps[0][threadIdx.x / 32] = apart;
    warps[1][threadIdx.x / 32] = size;
    warps[2][threadIdx.x / 32] = broken;
  }
  __syncthreads();
  if (threadIdx.x >= 3) return;
  double sum = 0;
  for (int w = 0; w < 8; ++w) sum += warps[threadIdx.x][w];
  sums[blockIdx.x * 3 + threadIdx.x] = sum;
}

}  // namespace tenon::cuda
