// Arguments of activation functions on a GPU, real or emulated: kept in 16 bits for the gradient if
// everything computed from them is rounded, with gradients as close to float64's as the products'.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <vector>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "../base/distance.h"
#include "../null/planning.h"
#include "gpu.h"

using namespace tenon;
using test::distance;
using test::values;

namespace {

constexpr std::int64_t kRows = 320, kWidth = 256, kHidden = 1024;

Tensor numbers(const Shape& shape, double scale) {
  const Tensor k = arange(0, shape.numel());
  const Tensor x = cast(remainder(k * k * 31 + k * 7919, 1009), DType::Float32) / 504 - 1;
  return (x * scale).reshape(Ints(shape.begin(), shape.end())).eval();
}

struct Layers {
  Tensor x, w, bias, v;
  bool residual = false;

  Tensor forward() const {
    const Tensor hidden = matmul(x, w) + bias;
    const Tensor y = matmul(gelu(hidden, true), v);
    return residual ? y + mean(hidden, {-1}, true) : y;
  }
  std::vector<Tensor> roots() const {
    const Tensor loss = sum(square(forward()));
    std::vector<Tensor> all = grad(loss, std::vector<Tensor>{x, w, bias, v});
    all.push_back(loss);
    return all;
  }
};

Layers layers(DType dtype) {
  return {cast(numbers({kRows, kWidth}, 1), dtype), cast(numbers({kWidth, kHidden}, 0.1), dtype),
          cast(numbers({kHidden}, 1), dtype), cast(numbers({kHidden, kWidth}, 0.05), dtype)};
}

/// Hidden values in memory, by type.
int kept(const Program& program, DType dtype) {
  return test::stored(program, kRows * kHidden, dtype);
}

std::shared_ptr<const Program> planned(Precision precision, Device::Kind kind, bool residual,
                                       bool gradients) {
  set_precision(precision);
  const Layers l{test::leaf({kRows, kWidth}), test::leaf({kWidth, kHidden}), test::leaf({kHidden}),
                 test::leaf({kHidden, kWidth}), residual};
  const std::vector<Tensor> roots = gradients ? l.roots() : std::vector<Tensor>{l.forward()};
  set_precision(Precision::Fp32);
  return test::planned(roots, {kind});
}

}  // namespace

TEST_CASE("cuda argument precision: gradients equal float64's within the operands' rounding") {
  if (!test::has_gpu()) return;
  const auto wanted = values(layers(DType::Float64).roots());
  for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
    set_device("cuda");
    set_precision(precision);
    const auto got = values(layers(DType::Float32).roots());
    const auto again = values(layers(DType::Float32).roots());
    set_precision(Precision::Fp32);
    set_device("cpu");
    for (std::size_t k = 0; k < got.size(); ++k) {
      CAPTURE(k);
      CHECK(distance(got[k], wanted[k]) < (precision == Precision::Bf16 ? 8e-3 : 1e-3));
    }
    CHECK(got == again);
  }
}

TEST_CASE("cuda argument precision: values kept for the gradient have 16 bits") {
  constexpr Device::Kind kGpu = Device::Kind::Cuda;
  // The argument, the activation and its gradient.
  const auto gpu = planned(Precision::Bf16, kGpu, false, true);
  CHECK(kept(*gpu, DType::BFloat16) == 3);
  CHECK(kept(*gpu, DType::Float32) == 0);
  // Unchanged: in float32, where other steps read them, on a CPU.
  CHECK(kept(*planned(Precision::Fp32, kGpu, false, true), DType::Float32) == 3);
  CHECK(kept(*planned(Precision::Bf16, kGpu, true, true), DType::Float32) >= 1);
  CHECK(kept(*planned(Precision::Bf16, Device::Kind::Cpu, false, true), DType::BFloat16) == 0);
  // Nothing is kept for a gradient that is not computed.
  CHECK(kept(*planned(Precision::Bf16, kGpu, false, false), DType::BFloat16) == 1);
}
