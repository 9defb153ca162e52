// Element types in memory and the types that kernels compute in. 16-bit floating-point elements are
// cast to float; integers are cast to 64 bits and wrap around when stored.
//
// One struct per dtype; generated source passes its name to a kernel: element::Float32.
#pragma once

#include "scalar/convert.h"

namespace tenon::cuda::element {

template <class Storage_, class Value_>
struct Plain {
  using Storage = Storage_;
  using Value = Value_;
  static __device__ __forceinline__ Value load(const void* p, long long i) {
    return static_cast<Value>(static_cast<const Storage*>(p)[i]);
  }
  static __device__ __forceinline__ void store(void* p, long long i, Value v) {
    static_cast<Storage*>(p)[i] = static_cast<Storage>(v);
  }
};

using UInt8 = Plain<unsigned char, long long>;
using Int8 = Plain<signed char, long long>;
using Int32 = Plain<int, long long>;
using Int64 = Plain<long long, long long>;
using Float32 = Plain<float, float>;
using Float64 = Plain<double, double>;

struct Float16 {
  using Storage = unsigned short;
  using Value = float;
  static __device__ __forceinline__ Value load(const void* p, long long i) {
    return scalar::from_float16(static_cast<const Storage*>(p)[i]);
  }
  static __device__ __forceinline__ void store(void* p, long long i, Value v) {
    static_cast<Storage*>(p)[i] = static_cast<Storage>(scalar::float16_of(v));
  }
};

struct BFloat16 {
  using Storage = unsigned short;
  using Value = float;
  static __device__ __forceinline__ Value load(const void* p, long long i) {
    return scalar::from_bfloat16(static_cast<const Storage*>(p)[i]);
  }
  static __device__ __forceinline__ void store(void* p, long long i, Value v) {
    static_cast<Storage*>(p)[i] = static_cast<Storage>(scalar::bfloat16_of(v));
  }
};

}  // namespace tenon::cuda::element
