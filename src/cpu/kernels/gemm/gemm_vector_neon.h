// Vectors of aarch64: 4 floats, 32 registers. In an unnamed namespace, for files of this
// instruction set.
#pragma once

#include <arm_neon.h>

#include "cpu/kernels/gemm/gemm_vector.h"

namespace tenon::cpu {
namespace {

struct Neon {
  using single = Neon;
  using reg = float32x4_t;
  static constexpr int lanes = 4;
  static constexpr int max_mr[5] = {0, 14, 12, 0, 6};
  static constexpr int max_dot_rows = 6;
  static constexpr bool has_pairs = false;
  static constexpr bool has_broadcast_operands = false;

  static reg zero() { return vdupq_n_f32(0.0f); }
  static reg load(const float* p) { return vld1q_f32(p); }
  static reg load_part(const float* p, int n) {
    float part[4] = {};
    __builtin_memcpy(part, p, sizeof(float) * static_cast<unsigned>(n));
    return vld1q_f32(part);
  }
  static reg broadcast(const float* p) { return vld1q_dup_f32(p); }
  static reg fma(reg a, reg b, reg c) { return vfmaq_f32(c, a, b); }
  static reg add(reg a, reg b) { return vaddq_f32(a, b); }
  static void store(float* p, reg v) { vst1q_f32(p, v); }
  static void store_part(float* p, reg v, int n) {
    __builtin_memcpy(p, &v, sizeof(float) * static_cast<unsigned>(n));
  }

  template <DType D>
  static reg load_as(const void* src, std::int64_t index, int n) {
    if constexpr (D == DType::Float32) {
      return load_part(static_cast<const float*>(src) + index, n);
    } else {
      std::uint16_t part[4] = {};
      __builtin_memcpy(part, static_cast<const std::uint16_t*>(src) + index,
                       sizeof(std::uint16_t) * static_cast<unsigned>(n));
      const uint16x4_t half = vld1_u16(part);
      if constexpr (D == DType::Float16) return vcvt_f32_f16(vreinterpret_f16_u16(half));
      return vreinterpretq_f32_u32(vshll_n_u16(half, 16));
    }
  }

  // Nearest even in the upper half; a NaN keeps its upper half and stays a NaN.
  static reg round_bf16(reg v) {
    const uint32x4_t u = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), odd);
    const uint32x4_t picked =
        vbslq_u32(vceqq_f32(v, v), rounded, vorrq_u32(u, vdupq_n_u32(0x400000)));
    return vreinterpretq_f32_u32(vandq_u32(picked, vdupq_n_u32(0xffff0000u)));
  }

  using mask = uint32x4_t;
  static mask greater_or_nan(reg a, reg b) {
    return vorrq_u32(vcgtq_f32(a, b), vmvnq_u32(vceqq_f32(a, a)));
  }
  static mask equal(reg a, reg b) { return vceqq_f32(a, b); }
  static reg select(mask m, reg yes, reg no) { return vbslq_f32(m, yes, no); }
  static reg mul(reg a, reg b) { return vmulq_f32(a, b); }
  static void split(reg& lo, reg& hi) {
    const float32x4x2_t parts = vuzpq_f32(lo, hi);
    lo = parts.val[0];
    hi = parts.val[1];
  }
  static void zip(reg& even, reg& odd) {
    const float32x4x2_t parts = vzipq_f32(even, odd);
    even = parts.val[0];
    odd = parts.val[1];
  }

  static void transpose(reg* r) {
    const float32x4x2_t a = vtrnq_f32(r[0], r[1]), b = vtrnq_f32(r[2], r[3]);
    r[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    r[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    r[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    r[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
  }
};

}  // namespace

}  // namespace tenon::cpu
