// Builds regions for the tests of several engines: iteration spaces of maps, views of matrices,
// contractions with an epilogue. `Check` is RegionCheck or a device's class derived from it.
#pragma once

#include <utility>

#include "region_check.h"

namespace tenon::test {

template <class Check>
Check map_over(const Shape& space, bool rows = false) {
  Check t;
  t.region.map.space = space;
  t.region.map.has_rows = rows;
  t.region.title = "test";
  return t;
}

inline View natural(const Shape& shape) {
  View view;
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    view.stride[d] = stride;
    stride *= shape[d];
  }
  return view;
}

/// The last two axes exchanged in memory.
inline View transposed(const Shape& shape) {
  const int r = shape.rank();
  Shape stored = shape;
  std::swap(stored[r - 1], stored[r - 2]);
  View view = natural(stored);
  std::swap(view.stride[r - 1], view.stride[r - 2]);
  return view;
}

struct ContractionCase {
  Shape a, b, out;
  DType dtype_a = DType::Float32, dtype_b = DType::Float32, result = DType::Float32,
        compute = DType::Float32;
  Op op = Op::Matmul;
  bool tf32 = false;
};

inline ContractionCase matrix_product(std::int64_t m, std::int64_t n, std::int64_t k,
                                      DType dtype = DType::Float32,
                                      DType compute = DType::Float32) {
  return {{m, k}, {k, n}, {m, n}, dtype, dtype, DType::Float32, compute};
}

/// The tolerance of a device's result. The reference engine does not round float32 operands.
inline double tolerance_of(const ContractionCase& k) {
  constexpr DType kFull = DType::Float32, kHalf = DType::Float16;
  if (k.result == DType::Float64) return 1e-13;
  const bool rounds = k.tf32 || (k.compute == kHalf && (k.dtype_a == kFull || k.dtype_b == kFull));
  return rounds ? 2e-3 : 2e-5;
}

template <class Check>
Check contraction_of(const ContractionCase& k, const View& a, const View& b,
                     bool keep_result = true) {
  Check t;
  t.region.kind = RegionKind::Contraction;
  t.region.title = "test";
  Contraction& c = t.region.contraction;
  c.op = k.op;
  c.dtype = k.result;
  c.attrs.precision = precision_of(k.compute, k.tf32);
  c.a = a, c.b = b;
  c.a_shape = k.a, c.b_shape = k.b, c.out_shape = k.out;
  c.a.value = t.leaf(k.dtype_a, k.a);
  c.b.value = t.leaf(k.dtype_b, k.b);
  if (keep_result) c.out = t.output(k.result, k.out);
  return t;
}

/// bias + tanh, ReLU of the bare result, and a product with a residual, over [batch, rows,
/// columns].
inline void add_epilogue(RegionCheck& t, const Shape& space, bool bias_of_rows) {
  t.region.contraction.has_epilogue = true;
  t.region.map.space = space;
  const DType dtype = t.region.contraction.dtype;
  const int acc = t.accumulator(dtype);
  const int bias =
      t.load(t.leaf(dtype, bias_of_rows ? Shape{1, space[1], 1} : Shape{1, 1, space[2]}));
  const int sum = t.compute(Op::Add, dtype, acc, bias);
  t.store(t.compute(Op::Tanh, dtype, sum));
  t.store(t.compute(Op::Relu, dtype, acc));
  t.store(t.compute(Op::Mul, dtype, sum, t.load(t.leaf(dtype, space))));
}

}  // namespace tenon::test
