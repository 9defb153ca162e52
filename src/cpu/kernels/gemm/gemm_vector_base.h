// Vectors of four floats for any CPU, by GCC's portable vector types (SSE2 on x86-64). In an
// unnamed namespace, like those of the other instruction sets.
#pragma once

#include "cpu/kernels/gemm/gemm_vector.h"

namespace tenon::cpu {
namespace {

struct Base {
  using single = Base;
  using reg [[gnu::vector_size(16)]] = float;
  static constexpr int lanes = 4;
  static constexpr int max_mr[5] = {0, 6, 5, 0, 2};
  static constexpr int max_dot_rows = 3;
  static constexpr bool has_pairs = false;
  static constexpr bool has_broadcast_operands = false;

  static reg zero() { return reg{}; }
  static reg load(const float* p) {
    reg v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static reg load_part(const float* p, int n) {
    reg v{};
    __builtin_memcpy(&v, p, sizeof(float) * static_cast<unsigned>(n));
    return v;
  }
  static reg broadcast(const float* p) { return reg{*p, *p, *p, *p}; }
  static reg fma(reg a, reg b, reg c) { return a * b + c; }
  static reg add(reg a, reg b) { return a + b; }
  static void store(float* p, reg v) { __builtin_memcpy(p, &v, sizeof v); }
  static void store_part(float* p, reg v, int n) {
    __builtin_memcpy(p, &v, sizeof(float) * static_cast<unsigned>(n));
  }

  template <DType D>
  static reg load_as(const void* src, std::int64_t index, int n) {
    if constexpr (D == DType::Float32) {
      return load_part(static_cast<const float*>(src) + index, n);
    } else {
      const std::uint16_t* half = static_cast<const std::uint16_t*>(src) + index;
      reg v{};
      for (int i = 0; i < n; ++i) v[i] = upcast<D>(half[i]);
      return v;
    }
  }

  template <DType D>
  static float upcast(std::uint16_t word) {
    if constexpr (D == DType::Float16) {
      float16 value;
      value.bits = word;
      return static_cast<float>(value);
    } else {
      const std::uint32_t u = static_cast<std::uint32_t>(word) << 16;
      float value;
      __builtin_memcpy(&value, &u, sizeof value);
      return value;
    }
  }

  // Nearest even in the upper half; a NaN keeps its upper half and stays a NaN.
  static reg round_bf16(reg v) {
    for (int i = 0; i < lanes; ++i) {
      const float value = v[i];
      std::uint32_t u;
      __builtin_memcpy(&u, &value, sizeof u);
      u = value != value ? u | 0x400000u : u + 0x7fffu + ((u >> 16) & 1u);
      u &= 0xffff0000u;
      float rounded;
      __builtin_memcpy(&rounded, &u, sizeof rounded);
      v[i] = rounded;
    }
    return v;
  }

  using mask [[gnu::vector_size(16)]] = std::int32_t;
  static mask greater_or_nan(reg a, reg b) { return (a > b) | (a != a); }
  static mask equal(reg a, reg b) { return a == b; }
  static reg select(mask m, reg yes, reg no) { return m ? yes : no; }
  static reg mul(reg a, reg b) { return a * b; }
  static void split(reg& lo, reg& hi) {
    const reg even = __builtin_shufflevector(lo, hi, 0, 2, 4, 6);
    hi = __builtin_shufflevector(lo, hi, 1, 3, 5, 7);
    lo = even;
  }
  static void zip(reg& even, reg& odd) {
    const reg low = __builtin_shufflevector(even, odd, 0, 4, 1, 5);
    odd = __builtin_shufflevector(even, odd, 2, 6, 3, 7);
    even = low;
  }

  static void transpose(reg* r) {
    const reg a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
              b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    const reg c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5),
              d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
  }
};

}  // namespace

}  // namespace tenon::cpu
