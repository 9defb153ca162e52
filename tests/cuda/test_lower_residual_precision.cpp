// Residual streams on a GPU, real or emulated: stored in 16 bits with their gradients, which are as
// close to float64's as the products' operands allow.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tenon/compute.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "../base/distance.h"
#include "../null/planning.h"
#include "gpu.h"

using namespace tenon;
using test::distance;

namespace {

constexpr std::int64_t kRows = 4096, kWidth = 256;
constexpr int kBlocks = 2;

enum class Norm : std::uint8_t { Before, Behind };  // each part

Tensor numbers(const Shape& shape, double scale) {
  const Tensor k = arange(0, shape.numel());
  const Tensor x = cast(remainder(k * k * 31 + k * 7919, 1009), DType::Float32) / 504 - 1;
  return (x * scale).reshape(Ints(shape.begin(), shape.end())).compute();
}

/// Blocks of one layer each on a stream [kRows, kWidth].
struct Stack {
  Tensor x;
  std::vector<Tensor> weights, biases;
  Norm norm = Norm::Before;

  Tensor forward() const {
    const auto normalised = [](const Tensor& t) { return layer_norm(t, {kWidth}, {}, {}, 1e-5); };
    Tensor y = x;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const auto part = [&](const Tensor& t) { return matmul(t, weights[k]) + biases[k]; };
      y = norm == Norm::Before ? y + part(normalised(y)) : normalised(y + part(y));
    }
    return norm == Norm::Before ? normalised(y) : y;
  }
  std::vector<Tensor> roots(const Tensor& target) const {
    std::vector<Tensor> leaves = weights;
    leaves.insert(leaves.end(), biases.begin(), biases.end());
    leaves.push_back(x);
    const Tensor loss = sum(square(forward() - target)) / kRows;
    std::vector<Tensor> all = grad(loss, leaves);
    all.push_back(loss);
    return all;
  }
};

Stack stack(DType dtype, Norm norm) {
  Stack s;
  s.norm = norm;
  s.x = cast(numbers({kRows, kWidth}, 1), dtype);
  for (int k = 0; k < kBlocks; ++k) {
    s.weights.push_back(cast(numbers({kWidth, kWidth}, 0.05 + 0.01 * k), dtype));
    s.biases.push_back(cast(numbers({kWidth}, 0.5), dtype));
  }
  return s;
}

std::vector<std::vector<double>> gradients(DType dtype, Norm norm) {
  const Tensor target = cast(numbers({1, kWidth}, 2), dtype);
  return test::values(stack(dtype, norm).roots(target));
}

/// Values as large as the stream in the plan's memory, of a type.
int stored(const Program& program, DType dtype) {
  return test::stored(program, kRows * kWidth, dtype);
}

std::shared_ptr<const Program> planned(Precision precision, Device::Kind kind, Norm norm) {
  const PrecisionScope scope(precision);
  Stack s;
  s.norm = norm;
  s.x = test::leaf({kRows, kWidth});
  for (int k = 0; k < kBlocks; ++k) {
    s.weights.push_back(test::leaf({kWidth, kWidth}));
    s.biases.push_back(test::leaf({kWidth}));
  }
  std::vector<Tensor> roots = s.roots(test::leaf({1, kWidth}));
  roots.erase(roots.end() - 2);  // the gradient with regard to x, which is as large
  return test::planned(roots, {kind});
}

}  // namespace

TEST_CASE("cuda residual precision: gradients equal float64's within the operands' rounding") {
  if (!test::has_gpu()) return;
  for (const Norm norm : {Norm::Before, Norm::Behind}) {
    CAPTURE(static_cast<int>(norm));
    const auto wanted = gradients(DType::Float64, norm);
    set_device("cuda");
    set_precision(Precision::Bf16);
    const auto got = gradients(DType::Float32, norm);
    set_precision(Precision::Fp32);
    set_device("cpu");
    for (std::size_t k = 0; k < got.size(); ++k) {
      CAPTURE(k);
      CHECK(distance(got[k], wanted[k]) < 1e-2);
    }
  }
}

TEST_CASE("cuda residual precision: in bfloat16 on a GPU, stream and gradient have 16 bits") {
  constexpr Device::Kind kGpu = Device::Kind::Cuda;
  for (const Norm norm : {Norm::Before, Norm::Behind}) {
    CAPTURE(static_cast<int>(norm));
    CHECK(stored(*planned(Precision::Bf16, kGpu, norm), DType::Float32) == 0);
    CHECK(stored(*planned(Precision::Bf16, kGpu, norm), DType::BFloat16) >= kBlocks);
    // Scaled gradients and a stream's largest numbers may exceed float16's range.
    CHECK(stored(*planned(Precision::Fp16, kGpu, norm), DType::Float32) >= kBlocks);
    CHECK(stored(*planned(Precision::Fp32, kGpu, norm), DType::BFloat16) == 0);
    CHECK(stored(*planned(Precision::Bf16, Device::Kind::Cpu, norm), DType::BFloat16) == 0);
  }
}

TEST_CASE("cuda residual precision: kept values, results and other sums stay float32") {
  if (!test::has_gpu()) return;
  constexpr std::int64_t kMany = 1024;  // squared, as large as what is rounded
  // The first number of the first tensor that `f` gives, all of which are computed together.
  const auto on_gpu = [](Precision precision, const auto& f) {
    set_device("cuda");
    set_precision(precision);
    std::vector<Tensor> out = f();
    compute(out);
    set_precision(Precision::Fp32);
    set_device("cpu");
    return out[0].to_vector<float>()[0];
  };
  const auto columns = [] { return full({kMany, 256}, 0.01).compute(); };

  // Handles of intermediate tensors are destroyed before the computation; otherwise they would be
  // requested.
  SUBCASE("a state that grows by little and is read by a product") {
    const float value = on_gpu(Precision::Bf16, [&]() -> std::vector<Tensor> {
      const Tensor state = variable(full({kMany, kMany}, 1.0)), w = columns();
      const auto step = [&]() -> std::vector<Tensor> {
        const Tensor next = state + full({kMany, kMany}, 1e-3);
        return {assign(state, next), sum(matmul(next, w))};
      };
      for (int k = 0; k < 3; ++k) compute(step());
      return {state};
    });
    CHECK(value == doctest::Approx(1.003).epsilon(1e-5));
  }
  SUBCASE("weights of steps within a graph") {
    const float value = on_gpu(Precision::Bf16, [&]() -> std::vector<Tensor> {
      const Tensor x = full({256, kMany}, 1.0).compute(),
                   step = full({kMany, kMany}, 1e-3).compute();
      Tensor w = full({kMany, kMany}, 1.0).compute(), read = zeros({256, kMany});
      for (int k = 0; k < 3; ++k) {
        w = w + step * sigmoid(mean(matmul(x, w))) * 2;  // by the sigmoid of about 1,024: 1
        read = read + matmul(x, w);
      }
      return {amin(w, {0, 1}), read};
    });
    CHECK(value == doctest::Approx(1.006).epsilon(1e-5));
  }
  SUBCASE("a sum in float32 that somebody rounds") {
    const float value = on_gpu(Precision::Fp32, [&]() -> std::vector<Tensor> {
      const Tensor x = full({kMany, kMany}, 1.0).compute(),
                   u = full({kMany, kMany}, 1.00237).compute();
      const Tensor s = x + u - mean(x, {-1}, true) + mean(u, {-1}, true), w = columns();
      return {amax(s, {0, 1}), matmul(cast(s, DType::BFloat16), cast(w, DType::BFloat16))};
    });
    CHECK(value == doctest::Approx(2.00474).epsilon(1e-6));
  }
  const auto stream = [&](double value) {
    const Tensor x = full({kMany, kMany}, value).compute(), w = full({kMany, kMany}, 0.0).compute();
    return x + matmul(layer_norm(x, {kMany}, {}, {}, 1e-5), w);
  };
  SUBCASE("a stream that is asked for by a view") {
    const float value = on_gpu(Precision::Bf16, [&]() -> std::vector<Tensor> {
      const Tensor y = stream(1.00237);
      return {reshape(y, {kMany * kMany}), sum(layer_norm(y, {kMany}, {}, {}, 1e-5) * y)};
    });
    CHECK(value == doctest::Approx(1.00237).epsilon(1e-6));
  }
  SUBCASE("numbers of 16 bits that were cut to whole ones, beside a stream") {
    const float value = on_gpu(Precision::Bf16, [&]() -> std::vector<Tensor> {
      const Tensor y = stream(1), b = cast(full({4}, 2.75).compute(), DType::BFloat16);
      return {cast(cast(cast(b, DType::Int32), DType::BFloat16), DType::Float32),
              sum(layer_norm(y, {kMany}, {}, {}, 1e-5) * y)};
    });
    CHECK(value == 2);
  }
}
