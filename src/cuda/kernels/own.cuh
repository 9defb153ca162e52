// What an own kernel (tenon/cuda_kernel.h) may use without an include: 16-bit elements, and the
// arithmetic of tenon::scalar.
//
// Float16 and BFloat16 are the elements of such tensors in memory. They convert to float, and float
// converts to them, rounded to nearest even.
#pragma once

#include "cuda/kernels/intrinsics.cuh"
#include "scalar/arithmetic.h"

namespace tenon::cuda {

struct Float16 {
  unsigned short bits;
  Float16() = default;
  __device__ __forceinline__ Float16(float x) : bits(float_to_f16(x)) {}
  __device__ __forceinline__ operator float() const { return f16_to_float(bits); }
};

struct BFloat16 {
  unsigned short bits;
  BFloat16() = default;
  __device__ __forceinline__ BFloat16(float x) : bits(float_to_bf16(x)) {}
  __device__ __forceinline__ operator float() const { return bf16_to_float(bits); }
};

}  // namespace tenon::cuda
