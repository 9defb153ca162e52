// Networks with 16-bit activations between bfloat16 convolutions: values and gradients agree with
// float32 within bfloat16's rounding, and have the same bits for any number of threads.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

using namespace tenon;

namespace {

Tensor random(const Shape& shape, std::uint64_t seed, float scale = 1) {
  Generator data(seed);
  return (randn(shape, DType::Float32, &data) * scale).eval();
}

/// A residual network's stem, a block that halves the image and one that does not.
struct Net {
  Tensor x, first, a, b, c, down, scale, shift;

  Net(const Shape& images, std::int64_t channels)
      : x(random(images, 1)),
        first(random({channels, images[1], 3, 3}, 2, .2f)),
        a(random({channels, channels, 3, 3}, 3, .1f)),
        b(random({2 * channels, channels, 1, 1}, 4, .2f)),
        c(random({2 * channels, 2 * channels, 3, 3}, 5, .1f)),
        down(random({2 * channels, channels, 1, 1}, 6, .2f)),
        scale(random({2 * channels, 1, 1}, 7)),
        shift(random({2 * channels, 1, 1}, 8)) {}

  static Tensor normalised(const Tensor& y) {
    const Moments m = batch_moments(y);
    return batch_norm(y, m.mean, m.var, {}, {}, 1e-5);
  }

  /// The loss and its gradients.
  std::vector<Tensor> values() const {
    const Conv2dOptions same{.padding = {1, 1}}, half{.stride = {2, 2}, .padding = {1, 1}};
    const Tensor stem = relu(normalised(conv2d(x, first, {}, same)));
    const Tensor inner = relu(normalised(conv2d(stem, a, {}, half)));
    const Tensor wide = normalised(conv2d(inner, b)) * scale + shift;
    const Tensor beside = normalised(conv2d(stem, down, {}, {.stride = {2, 2}}));
    const Tensor sum = relu(wide + beside);
    const Tensor out = relu(normalised(conv2d(sum, c, {}, same)) + sum);
    const Tensor loss = mean(out * out * 0.5 + out);
    std::vector<Tensor> all = grad(loss, std::vector<Tensor>{first, a, b, c, down, scale, shift});
    all.push_back(loss);
    all.push_back(mean(out, {2, 3}));
    return all;
  }
};

std::vector<std::vector<float>> run(const Net& net, std::string* steps = nullptr) {
  const std::vector<Tensor> all = net.values();
  if (steps != nullptr) *steps = plan(all).steps();
  eval(all);
  std::vector<std::vector<float>> out;
  for (const Tensor& t : all) out.push_back(t.to_vector<float>());
  return out;
}

double error(const std::vector<float>& got, const std::vector<float>& want) {
  double square = 0, norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    square += std::pow(static_cast<double>(got[i]) - static_cast<double>(want[i]), 2);
    norm += std::pow(static_cast<double>(want[i]), 2);
  }
  return std::sqrt(square / norm);
}

}  // namespace

TEST_CASE("activation precision: a bfloat16 network compared with float32") {
  const int before = threads();
  // The last one has several parallel chunks for each image.
  for (const auto& [images, channels] :
       {std::pair(Shape{4, 3, 14, 14}, 16), {Shape{3, 5, 9, 7}, 24}, {Shape{2, 3, 61, 60}, 64}}) {
    CAPTURE(images.str());
    const Net net(images, channels);
    const auto want = run(net);
    set_precision(Precision::Bf16);
    std::string steps;
    set_threads(2);
    const auto got = run(net, &steps);
    CAPTURE(steps);
    CHECK(steps.find("bfloat16") != std::string::npos);
    for (std::size_t k = 0; k < want.size(); ++k) {
      CAPTURE(k);
      CHECK(error(got[k], want[k]) < 0.1);  // few images: masks differ
    }
    for (const int count : {1, 3}) {
      set_threads(count);
      CHECK(run(net) == got);
    }
    set_precision(Precision::Fp32);
    set_threads(before);
  }
}

// Deviations of a convolution's result, and their squares, that convolutions read as activations.
TEST_CASE("activation precision: a variance whose deviations are activations, too") {
  const Tensor x = random({4, 3, 12, 12}, 1), first = random({16, 3, 3, 3}, 2, .2f);
  const std::vector<Tensor> filters{random({16, 16, 1, 1}, 3, .2f), random({16, 16, 1, 1}, 4, .2f),
                                    random({16, 16, 1, 1}, 5, .2f)};
  for (const bool reads_squares : {true, false}) {
    CAPTURE(reads_squares);
    const auto values = [&] {
      const Tensor stem = relu(conv2d(x, first, {}, {.padding = {1, 1}}));
      const Tensor y = conv2d(stem, filters[0]), d = y - mean(y, {0, 2, 3}, true);
      const Tensor squares = square(d), spread = mean(squares, {0, 2, 3}, true);
      const Tensor z = relu(conv2d(reads_squares ? squares : d, filters[1]) * rsqrt(spread + 1e-5));
      const std::vector<Tensor> all{spread, mean(conv2d(z, filters[2]), {2, 3})};
      eval(all);
      return std::pair(all[0].to_vector<float>(), all[1].to_vector<float>());
    };
    const auto want = values();
    set_precision(Precision::Bf16);
    const auto got = values();
    set_precision(Precision::Fp32);
    CHECK(error(got.first, want.first) < 0.02);
    CHECK(error(got.second, want.second) < 0.1);
  }
}
