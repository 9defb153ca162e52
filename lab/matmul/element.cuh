// The two element types of the ladder, float and bfloat16, and their conversions to and from float.
#pragma once

#include <cuda_bf16.h>

namespace lab {

using bf16 = __nv_bfloat16;

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __bfloat162float(x); }

template <class T>
__device__ __forceinline__ T from_float(float x) {
  return T(x);
}

}  // namespace lab
