// Large images in bands of rows: convolutions, poolings and maps between them give the same bits as
// one after another, for every window, edge and number of threads.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include <tenon/eval.h>
#include <tenon/ops.h>

using namespace tenon;

namespace {

using Net = std::function<Tensor(const Tensor& x)>;

struct Result {
  std::vector<float> values;
  std::string steps;
  std::int64_t arena = 0;
};

Tensor random(const Shape& shape, std::uint64_t seed) {
  Generator data(seed);
  return randn(shape, DType::Float32, &data).eval();
}

Result run(const Net& net, const Tensor& x, bool chains) {
  set_pass_enabled("chain", chains);
  const std::vector<Tensor> out{net(x)};
  const Plan made = plan(out);
  eval(out);
  set_pass_enabled("chain", true);
  return {out[0].to_vector<float>(), made.steps(), made.arena_bytes()};
}

/// Compares with the plan without bands; returns the plan in bands.
std::string check(const Net& net, const Tensor& x) {
  const int before = threads();
  set_threads(2);
  const Result whole = run(net, x, false), bands = run(net, x, true);
  CAPTURE(whole.steps);
  CAPTURE(bands.steps);
  CHECK(bands.steps.find("rows at a time") != std::string::npos);
  CHECK(bands.arena < whole.arena);
  CHECK(bands.values == whole.values);
  for (const int count : {1, 5}) {
    set_threads(count);
    CHECK(run(net, x, true).values == whole.values);
  }
  set_threads(before);
  return bands.steps;
}

Tensor active(const Tensor& x, const Conv2dOptions& options, std::int64_t taps = 3) {
  const Tensor filter = random({8, x.size(1), taps, 3}, 7), bias = random({8}, 8);
  return relu(conv2d(x, filter, bias, options));
}

}  // namespace

TEST_CASE("bands: windows of convolutions, odd heights, one image and several") {
  for (const std::int64_t stride : {1, 2, 3})
    for (const std::int64_t padding : {0, 1, 2})
      for (const std::int64_t dilation : {1, 2}) {
        if (padding == 2 && dilation == 1 && stride > 1) continue;
        CAPTURE(stride);
        CAPTURE(padding);
        CAPTURE(dilation);
        const std::int64_t images = padding == 1 ? 3 : 1, side = images == 3 ? 231 : 397;
        const Conv2dOptions conv{
            .stride = {stride, 1}, .padding = {padding, 1}, .dilation = {dilation, 1}};
        check([&](const Tensor& x) { return max_pool2d(active(x, conv)); },
              random({images, 2, side * stride, side}, 5));
      }
}

TEST_CASE("bands: poolings with overlapping windows, skipped rows or windows beyond the edge") {
  const Tensor x = random({2, 3, 283, 290}, 5);
  for (const std::int64_t kernel : {2, 3})
    for (const std::int64_t stride : {1, 2, 3})
      for (const bool ceil_mode : {false, true}) {
        CAPTURE(kernel);
        CAPTURE(stride);
        CAPTURE(ceil_mode);
        Pool2dOptions pool{.kernel = {kernel, 2}, .stride = {stride, 2}, .ceil_mode = ceil_mode};
        check([&](const Tensor& in) { return avg_pool2d(active(in, {}), pool); }, x);
        pool.padding = {1, 1};
        pool.dilation = {kernel == 2 ? 2 : 1, 1};
        check([&](const Tensor& in) { return max_pool2d(active(in, {}), pool); }, x);
        pool.dilation = {1, 1};
        pool.count_include_pad = false;
        check([&](const Tensor& in) { return avg_pool2d(active(in, {}), pool); }, x);
      }
}

TEST_CASE("bands: one row at a time") {
  const std::string steps = check(
      [](const Tensor& x) {
        return max_pool2d(active(x, {.padding = {1, 1}}));
      },
      random({1, 3, 75, 6001}, 5));
  CHECK(steps.find(" 1 rows at a time") != std::string::npos);
}

TEST_CASE("bands: several convolutions, maps between them, additional operands") {
  const Tensor x = random({2, 3, 301, 301}, 5), gate = random({2, 8, 150, 150}, 6);
  const Tensor first = random({4, 3, 3, 3}, 1), second = random({8, 4, 3, 3}, 2);
  const Tensor beside = random({2, 8, 301, 301}, 3), column = random({1, 1, 301, 1}, 4);
  const Conv2dOptions same{.padding = {1, 1}};
  const std::string steps = check(
      [&](const Tensor& in) {
        const Tensor made = conv2d(relu(conv2d(in, first, {}, same)), second, {}, same);
        return max_pool2d(tanh(made + beside)) * gate;
      },
      x);
  CAPTURE(steps);
  CHECK(steps.find("conv2d+relu, conv2d+add+tanh, max_pool2d, mul over 2 entries") !=
        std::string::npos);
  check([&](const Tensor& in) { return avg_pool2d(conv2d(in * column, first, {}, same)); },
        random({4, 3, 301, 301}, 5));
  // Different padding above and below.
  check([&](const Tensor& in) { return max_pool2d(active(pad(in, {0, 0, 1, 2}), {})); }, x);
}

TEST_CASE("bands: the last convolution writes rows of the whole result") {
  const Tensor x = random({2, 2, 401, 400}, 5), beside = random({2, 4, 401, 400}, 3);
  const Tensor first = random({4, 2, 3, 3}, 1), second = random({4, 4, 3, 3}, 2);
  const Conv2dOptions same{.padding = {1, 1}};
  const auto twice = [&](const Tensor& in, std::int64_t stride) {
    const Conv2dOptions last{.stride = {stride, stride}, .padding = {1, 1}};
    return conv2d(relu(conv2d(in, first, {}, same)), second, {}, last);
  };
  check([&](const Tensor& in) { return relu(twice(in, 1) * 0.5f + beside); }, x);
  check([&](const Tensor& in) { return twice(in, 2); }, x);
}

TEST_CASE("bands: bfloat16 products, bfloat16 images and grouped filters") {
  const Tensor x = random({2, 4, 300, 301}, 5);
  set_precision(Precision::Bf16);
  check([](const Tensor& in) { return max_pool2d(active(in, {.padding = {1, 1}})); }, x);
  set_precision(Precision::Fp32);
  const Tensor filter = random({8, 2, 3, 3}, 1);
  check([&](const Tensor& in) { return max_pool2d(conv2d(in, filter, {}, {.groups = 2})); }, x);
  const Tensor wide = random({8, 3, 3, 3}, 1);
  check(
      [&](const Tensor& in) {
        const Tensor half = cast(in, DType::BFloat16).eval();
        return cast(max_pool2d(conv2d(half, cast(wide, DType::BFloat16))), DType::Float32);
      },
      random({4, 3, 300, 301}, 5));
}

TEST_CASE("bands: one function for images of other sizes and numbers") {
  const Tensor filter = random({8, 3, 3, 3}, 7);
  const Net net = [&](const Tensor& x) {
    const Tensor made = relu(conv2d(x, filter, {}, {.padding = {1, 1}}));
    return max_pool2d(made, {.kernel = {3, 3}, .stride = {2, 2}});
  };
  const CompiledFunction f =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; });
  const auto check_size = [&](std::int64_t images, std::int64_t rows) {
    CAPTURE(images);
    CAPTURE(rows);
    const Tensor x = random({images, 3, rows, 300}, 5);
    CHECK(f({x})[0].to_vector<float>() == run(net, x, false).values);
  };
  for (const std::int64_t images : {2, 3, 4, 5, 9, 6, 1, 7}) check_size(images, 301);
  for (const std::int64_t rows : {400, 500, 600, 637, 90, 451, 463, 1001, 465}) check_size(3, rows);
}
