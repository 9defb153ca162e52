// Attrs: the small typed parameters of a node; plain bits, so that hashing and comparing are
// trivial.
//
// What changes from step to step (learning rate, step number, seed) is never an attribute but a
// leaf: an attribute is part of the program's key.
#pragma once

#include <cstdint>
#include <cstring>

#include <tenon/dtype.h>

namespace tenon {

/// The compute dtype of a contraction that is none of the dtypes: float32 operands rounded to TF32.
inline constexpr std::int64_t kTf32Compute = 100;
/// The compute dtype of a contraction as its attribute says it; 0 stands for its operands'
/// own.
constexpr std::int64_t compute_code(DType dtype) noexcept {
  return static_cast<std::int64_t>(dtype) + 1;
}

// clang-format off
/// Layout by op (unused entries stay zero):
///   Constant       f = value
///   Iota           i[0] = axis
///   Random         i[0] = 0 uniform, 1 normal (both float32), 2 raw 32-bit words (int64);
///                  i[1] = offset added to the counter (which draw of a program this is);
///                  ops/random.cpp says which word becomes which element
///   Cast           dtype of the node
///   Sum…Min        i[0] = bit mask of reduced axes
///   Permute        i[a] = input axis that becomes output axis a
///   Slice          i[2a], i[2a+1] = start and step (non-zero, may be negative) of axis a; the length
///                  is the node's shape
///   Concat         i[0] = axis
///   Pad            i[2a], i[2a+1] = elements before and after on axis a; f = fill value
///   Gather         i[0] = axis: out[.., j, ..] = x[.., index[.., j, ..], ..]; out and index have one
///                  shape, other axes agree with x
///   ScatterAdd     i[0] = axis; inputs (base, index, updates): base with updates added where Gather
///                  would have read
///   ToDevice       i[0] = kind of the device, i[1] = its index
///   Matmul         inputs [.., M, K] and [.., K, N], batch axes equal; i[0] = compute dtype + 1
///                  (0: the inputs' own)
///   Conv2d…        see ConvAttrs; i[8] = compute dtype + 1
///   MaxPool2d…     see PoolAttrs
///   Softmax…       always over the last axis
// clang-format on
struct Attrs {
  std::int64_t i[16] = {};
  double f = 0;
  bool operator==(const Attrs& o) const noexcept {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bytes are what is hashed
    return std::memcmp(this, &o, sizeof *this) == 0;
  }
};

/// i[0..6] of Conv2d and its gradients. The gradients' own output shape stands in the node.
struct ConvAttrs {
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1, dil_w = 1, groups = 1;
  static ConvAttrs from(const Attrs& a) {
    return {a.i[0], a.i[1], a.i[2], a.i[3], a.i[4], a.i[5], a.i[6]};
  }
  void store(Attrs& a) const {
    const std::int64_t v[7] = {stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups};
    std::memcpy(a.i, v, sizeof v);
  }
};

/// i[0..9] of the pooling ops. count_include_pad concerns averages only.
struct PoolAttrs {
  std::int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0,
               dil_h = 1, dil_w = 1;
  std::int64_t ceil_mode = 0, count_include_pad = 1;
  static PoolAttrs from(const Attrs& a) {
    return {a.i[0], a.i[1], a.i[2], a.i[3], a.i[4], a.i[5], a.i[6], a.i[7], a.i[8], a.i[9]};
  }
  void store(Attrs& a) const {
    const std::int64_t v[10] = {kernel_h, kernel_w, stride_h, stride_w,  pad_h,
                                pad_w,    dil_h,    dil_w,    ceil_mode, count_include_pad};
    std::memcpy(a.i, v, sizeof v);
  }
};

}  // namespace tenon
