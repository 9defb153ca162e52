// Splits element numbers into coordinates. Uses 32-bit counters where they suffice, and 64-bit
// counters (which need divide instructions) for arrays of 2^30 elements and more.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

template <bool Wide>
struct Counter {
  using type = unsigned;
};
template <>
struct Counter<true> {
  using type = unsigned long long;
};

/// Exact for n below 2^31, or for every n when Wide.
template <bool Wide>
__device__ __forceinline__ typename Counter<Wide>::type divide(typename Counter<Wide>::type n,
                                                               const Divisor& d) {
  if constexpr (Wide) {
    return n / d.value;
  } else {
    const unsigned high =
        static_cast<unsigned>((static_cast<unsigned long long>(n) * d.multiplier) >> 32);
    return (high + n) >> d.shift;
  }
}

/// Divides n: returns the quotient and sets n to the remainder.
template <bool Wide>
__device__ __forceinline__ typename Counter<Wide>::type split(typename Counter<Wide>::type& n,
                                                              const Divisor& d) {
  const typename Counter<Wide>::type quotient = divide<Wide>(n, d);
  n -= quotient * static_cast<typename Counter<Wide>::type>(d.value);
  return quotient;
}

/// The number of this thread in a one-dimensional grid.
template <bool Wide>
__device__ __forceinline__ typename Counter<Wide>::type thread_number() {
  return static_cast<typename Counter<Wide>::type>(blockIdx.x) * blockDim.x + threadIdx.x;
}

}  // namespace tenon::cuda
