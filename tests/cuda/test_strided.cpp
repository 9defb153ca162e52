// Strided convolutions on a GPU, real or emulated: their gradients are expressed as convolutions of
// stride 1, with the same numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "../null/planning.h"
#include "gpu.h"
#include "made_on.h"

using namespace tenon;

namespace {

struct Sizes {
  std::int64_t channels, filters, height, width, kernel_h, kernel_w;
  Conv2dOptions options;
};

// Integers for which bfloat16 products and float32 sums are exact.
Tensor numbers(const Shape& shape, std::int64_t step) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(shape.numel()));
  for (std::int64_t k = 0; k < shape.numel(); ++k)
    values.push_back(static_cast<float>(k * step % 7 - 3));
  return Tensor::from(values, shape);
}

// The result and both gradients.
std::vector<std::vector<float>> results(const Sizes& s) {
  const Tensor x = numbers({2, s.channels, s.height, s.width}, 5),
               w = numbers({s.filters, s.channels / s.options.groups, s.kernel_h, s.kernel_w}, 3);
  const Tensor y = conv2d(x, w, {}, s.options);
  std::vector<Tensor> all = grad(sum(y * numbers(y.shape(), 11)), std::vector<Tensor>{x, w});
  all.push_back(y);
  std::vector<std::vector<float>> values;
  values.reserve(all.size());
  eval(all);
  for (const Tensor& t : all) values.push_back(t.to_vector<float>());
  return values;
}

bool has_strided(const Program& program, Op op) {
  return std::any_of(program.steps.begin(), program.steps.end(), [op](const Step& step) {
    const Contraction& c = step.region.contraction;
    return step.region.kind == RegionKind::Contraction && c.op == op && c.attrs.conv.stride_h > 1;
  });
}

}  // namespace

TEST_CASE("strided: convolutions and their gradients on a GPU equal the CPU's") {
  if (!test::has_gpu()) return;
  const Sizes all[] = {{16, 16, 8, 8, 3, 3, {{2, 2}, {1, 1}}},
                       {16, 17, 9, 7, 3, 3, {{2, 2}, {1, 1}}},
                       {17, 16, 7, 10, 3, 3, {{2, 2}, {0, 0}}},
                       {16, 16, 8, 6, 1, 1, {{2, 2}, {0, 0}}},
                       {18, 16, 7, 9, 1, 1, {{2, 3}, {0, 0}}},
                       {16, 16, 11, 13, 7, 7, {{2, 2}, {3, 3}}},
                       {16, 16, 12, 9, 5, 4, {{3, 2}, {2, 1}}},
                       {16, 16, 9, 9, 2, 2, {{4, 4}, {0, 0}}},
                       {16, 16, 6, 6, 1, 1, {{2, 2}, {1, 1}}},
                       {16, 16, 9, 5, 3, 1, {{1, 2}, {1, 0}}},
                       {16, 16, 8, 8, 3, 3, {{2, 2}, {1, 1}, {2, 2}}},
                       {32, 16, 8, 8, 1, 1, {{2, 2}, {0, 0}, {1, 1}, 2}}};
  for (const Sizes& s : all) {
    CAPTURE(s.kernel_h);
    CAPTURE(s.height);
    const auto wanted = results(s);
    for (const Precision precision : {Precision::Bf16, Precision::Tf32, Precision::Fp32}) {
      set_device("cuda");
      set_precision(precision);
      const auto got = results(s);
      set_precision(Precision::Fp32);
      set_device("cpu");
      CHECK(got == wanted);
    }
  }
}

TEST_CASE("strided: a plan has no slow gradients") {
  const auto plan = [](const Conv2dOptions& options, std::int64_t kernel, Precision precision,
                       Device::Kind kind) {
    set_precision(precision);
    const Tensor x = test::leaf({4, 64, 16, 16}), w = test::leaf({32, 64, kernel, kernel});
    const std::vector<Tensor> roots =
        grad(sum(square(conv2d(x, w, {}, options))), std::vector<Tensor>{x, w});
    set_precision(Precision::Fp32);
    return test::planned(roots, {kind});
  };
  constexpr Device::Kind kGpu = Device::Kind::Cuda;
  const auto three = plan({{2, 2}, {1, 1}}, 3, Precision::Bf16, kGpu);
  CHECK_FALSE(has_strided(*three, Op::Conv2dInputGrad));
  CHECK(has_strided(*three, Op::Conv2d));
  for (const Op op : {Op::Conv2d, Op::Conv2dInputGrad, Op::Conv2dWeightGrad})
    CHECK_FALSE(has_strided(*plan({{2, 2}}, 1, Precision::Bf16, kGpu), op));
  // Unchanged: in float32, on a CPU.
  CHECK(has_strided(*plan({{2, 2}, {1, 1}}, 3, Precision::Fp32, kGpu), Op::Conv2dInputGrad));
  CHECK(has_strided(*plan({{2, 2}, {1, 1}}, 3, Precision::Bf16, Device::Kind::Cpu),
                    Op::Conv2dInputGrad));
}

TEST_CASE("strided: a padded shortcut beside a strided one, with 16-bit images") {
  if (!test::has_gpu()) return;
  for (const std::int64_t size : {8, 9}) {
    CAPTURE(size);
    const auto step = [size] {
      std::vector<Tensor> wrt;
      const auto filter = [&wrt](std::int64_t to, std::int64_t from) {
        wrt.push_back(numbers({to, from, 3, 3}, 5) * 0.03f);
        return wrt.back();
      };
      Tensor x = numbers({3, 16, size, size}, 3) * 0.2f;
      for (int k = 0; k < 2; ++k) x = relu(conv2d(x, filter(16, 16), {}, {.padding = {1, 1}}) + x);
      const Tensor half = slice(slice(x, 2, 0, size, 2), 3, 0, size, 2);
      Tensor y = conv2d(x, filter(32, 16), {}, {.stride = {2, 2}, .padding = {1, 1}});
      y = relu(y + pad(half, {0, 0, 0, 0, 8, 8}));
      y = relu(conv2d(y, filter(32, 32), {}, {.padding = {1, 1}}) + y);
      std::vector<Tensor> all = grad(sum(square(y)), wrt);
      all.push_back(y);
      return all;
    };
    constexpr double kRounded = 0.04;
    const auto got = test::made_on("cuda", Precision::Bf16, step);
    test::check_near(got, test::made_on("cpu", Precision::Fp32, step), kRounded);
    CHECK(test::made_on("cuda", Precision::Bf16, step) == got);
  }
}
