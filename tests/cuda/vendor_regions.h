// Regions for tests of the vendor engines: products and convolutions with epilogues.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include <tenon/error.h>

#include "../cpu/region_builders.h"
#include "base/index.h"
#include "cuda/target.h"
#include "device_check.h"

namespace tenon::test::vendor {

inline constexpr DType F = DType::Float32, BF = DType::BFloat16, H = DType::Float16,
                       D = DType::Float64;

inline cuda::Target with_libraries() {
  cuda::Target target;
  target.cublaslt = target.cudnn = true;
  return target;
}

struct Arithmetic {
  DType memory, compute, result;
  bool tf32;
  double tolerance;
};

inline DeviceCheck contraction(Op op, const Shape& a, const View& a_view, const Shape& b,
                               const View& b_view, const Shape& out, const Arithmetic& k,
                               bool keep_result = true) {
  return test::contraction_of<DeviceCheck>(
      {a, b, out, k.memory, k.memory, k.result, k.compute, op, k.tf32}, a_view, b_view,
      keep_result);
}

inline void say_no_plan(const Arithmetic& how, const NotSupported& e) {
  MESSAGE("no plan for compute ", std::string(name(how.compute)), ": ", std::string(e.what()));
}

/// Runs a conversion of whole operands alone.
template <class Conversion>
class CopyKernel final : public Kernel {
 public:
  CopyKernel(const Conversion& conversion, ValueId from, ValueId to)
      : conversion_(conversion), from_(from), to_(to) {}
  void run(const Binding& binding) const override {
    conversion_.run(binding.stream, binding.values[from_], binding.values[to_]);
  }

 private:
  const Conversion& conversion_;
  ValueId from_, to_;
};

inline constexpr Arithmetic kFp32{F, F, F, false, 2e-5};

inline DeviceCheck product(std::int64_t m, std::int64_t n, std::int64_t k,
                           const Arithmetic& how = kFp32, bool keep_result = true) {
  return contraction(Op::Matmul, {m, k}, natural({m, k}), {k, n}, natural({k, n}), {m, n}, how,
                     keep_result);
}

/// result + bias along an axis of [batch, rows, columns], then ReLU.
inline void add_bias_relu(DeviceCheck& t, const Shape& space, int axis, bool relu) {
  t.region.contraction.has_epilogue = true;
  t.region.map.space = space;
  Shape bias{1, 1, 1};
  bias[axis] = space[axis];
  const int sum = t.compute(Op::Add, F, t.accumulator(), t.load(t.leaf(F, bias)));
  t.store(relu ? t.compute(Op::Relu, F, sum) : sum);
}

/// Several results and a residual: an epilogue that no library fuses.
inline void add_epilogue(DeviceCheck& t, const Shape& space) {
  t.region.contraction.has_epilogue = true;
  t.region.map.space = space;
  const int acc = t.accumulator(), bias = t.load(t.leaf(F, {1, 1, space[2]}));
  const int sum = t.compute(Op::Add, F, acc, bias);
  const ValueId results[] = {t.store(t.compute(Op::Tanh, F, sum)),
                             t.store(t.compute(Op::Mul, F, sum, t.load(t.leaf(F, space))))};
  for (const ValueId result : results) t.values[at(result)].kind = Value::Kind::Arena;
}

inline constexpr double kGeluScale = 1.5957691216057308, kGeluCube = 0.044715;  // 2 sqrt(2 / pi)

enum class Input { Exact, Rounded, Stored };

/// sigmoid(x (cube x^2 + 1) scale); the tanh form of GELU is x times this.
inline int add_gelu_gate(DeviceCheck& t, int x, double cube) {
  const int square =
      t.compute(Op::Mul, F, t.compute(Op::Square, F, x), t.number(cube * kGeluScale));
  const int slope = t.compute(Op::Add, F, square, t.number(kGeluScale));
  return t.compute(Op::Sigmoid, F, t.compute(Op::Mul, F, slope, x));
}

/// gelu(result + bias) in 16 bits; its input is the sum, the rounded sum, or the rounded sum that
/// is stored too.
inline void add_gelu(DeviceCheck& t, const Shape& space, DType to, Input input,
                     double cube = kGeluCube) {
  t.region.contraction.has_epilogue = true;
  t.region.map.space = space;
  int x = t.compute(Op::Add, F, t.accumulator(), t.load(t.leaf(F, {1, 1, space[2]})));
  if (input != Input::Exact) {
    const int rounded = t.compute(Op::Cast, to, x);
    if (input == Input::Stored) t.store(rounded);
    x = t.compute(Op::Cast, F, rounded);
  }
  t.store(t.compute(Op::Cast, to, t.compute(Op::Mul, F, add_gelu_gate(t, x, cube), x)));
}

/// result * gelu'(x) in 16 bits; x is 16-bit in memory.
inline void add_gelu_gradient(DeviceCheck& t, const Shape& space, DType to) {
  t.region.contraction.has_epilogue = true;
  t.region.map.space = space;
  const int x = t.compute(Op::Cast, F, t.load(t.leaf(to, space))), acc = t.accumulator();
  const int gate = add_gelu_gate(t, x, kGeluCube);
  const int rest = t.compute(Op::Mul, F, t.compute(Op::Sub, F, t.number(1), gate), x);
  const int cube = t.compute(Op::Mul, F, t.compute(Op::Square, F, x), t.number(3 * kGeluCube));
  const int inner =
      t.compute(Op::Mul, F, t.compute(Op::Add, F, cube, t.number(1)), t.number(kGeluScale));
  const int slope = t.compute(Op::Add, F, t.compute(Op::Mul, F, rest, inner), t.number(1));
  const int all = t.compute(Op::Mul, F, t.compute(Op::Mul, F, acc, gate), slope);
  t.store(t.compute(Op::Cast, to, all));
}

}  // namespace tenon::test::vendor
