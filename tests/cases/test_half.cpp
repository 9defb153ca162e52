// 16-bit values: what is rounded, and how often. Regions compute in float32 whatever they store,
// sums are float32, and a product is rounded after its bias. The same on a GPU:
// tests/cuda/test_half.cpp.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>
#include <tenon/pooling.h>

#include "cases/engines.h"

using namespace tenon;
using cases::with_engines_and_fusion;

namespace {

using Floats = std::vector<float>;
constexpr DType kHalf = DType::Float16, kBrain = DType::BFloat16;

Tensor stored(const Floats& values, const Shape& shape, DType dtype) {
  return cast(Tensor::from(values, shape), dtype).eval();
}
Tensor vector_of(const Floats& values, DType dtype = kHalf) {
  return stored(values, {static_cast<std::int64_t>(values.size())}, dtype);
}
Floats list(const Tensor& t) { return cast(t.eval(), DType::Float32).to_vector<float>(); }

// `big` is 2 / epsilon of this dtype. The next number is `big` + 2, and big + 1 + 1 reaches it only
// if nothing is rounded between the two additions.
struct Odd {
  DType dtype;
  float big;
};
constexpr Odd kOdds[] = {{kHalf, 2048}, {kBrain, 256}};

}  // namespace

TEST_CASE("half: a product is rounded once, after its bias") {
  with_engines_and_fusion([] {
    for (const auto& [t, big] : kOdds) {
      const Tensor x = stored({big, 1}, {1, 2}, t), w = stored({1, 1}, {1, 2}, t),
                   b = vector_of({1}, t);
      const auto is_rounded_once = [&, want = big + 2](const Tensor& y) {
        CHECK(y.dtype() == b.dtype());
        CHECK(list(y) == Floats{want});
      };
      is_rounded_once(linear(x, w, b));
      const CompiledFunction f = compile([](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{linear(in[0], in[1], in[2])};
      });
      for (int call = 0; call < 2; ++call) is_rounded_once(f({x, w, b})[0]);
      const Tensor image = reshape(x, {1, 2, 1, 1}).eval();
      is_rounded_once(conv2d(image, reshape(w, {1, 2, 1, 1}), b));
      is_rounded_once(conv1d(reshape(x, {1, 2, 1}), reshape(w, {1, 2, 1}), b));
      is_rounded_once(conv3d(reshape(x, {1, 2, 1, 1, 1}), reshape(w, {1, 2, 1, 1, 1}), b));
      is_rounded_once(conv_transpose2d(image, reshape(w, {2, 1, 1, 1}), b));
      is_rounded_once(
          conv_transpose3d(reshape(x, {1, 2, 1, 1, 1}), reshape(w, {2, 1, 1, 1, 1}), b));
    }
    // Sums above 65,504 that the bias brings back into range.
    const Tensor y = linear(stored({60000, 60000}, {1, 2}, kHalf), stored({1, 1}, {1, 2}, kHalf),
                            vector_of({-60000}));
    CHECK(list(y) == Floats{60000});
  });
}

TEST_CASE("half: parts of a filter's depth are summed before they are rounded") {
  with_engines_and_fusion([] {
    const Tensor x = stored({2048, 1, 1}, {1, 1, 3, 1, 1}, kHalf),
                 w = stored({1, 1, 1}, {1, 1, 3, 1, 1}, kHalf);
    CHECK(list(conv_transpose3d(x, w, {}, {.padding = {2, 0, 0}})) == Floats{2050});
    CHECK(list(conv3d(x, w)) == Floats{2050});
  });
}

TEST_CASE("half: 3-d pooling rounds its result once") {
  with_engines_and_fusion([] {
    for (const auto& [t, big] : kOdds) {
      const Tensor x = randn({2, 3, 5, 4, 7}).eval(), half = cast(x, t).eval();
      const Tensor g = randn({2, 3, 3, 5, 4}).eval(), h = cast(g, t).eval();
      const Pool3dOptions o{
          .kernel = {3, 2, 3}, .stride = {2, 1, 2}, .padding = {1, 1, 1}, .divisor = 5};
      const auto check = [&, dtype = t](const auto& pool) {
        const Tensor wide = cast(half, DType::Float32).eval(), y = pool(half, o);
        CHECK(y.dtype() == dtype);
        CHECK(list(y) == list(cast(pool(wide, o), dtype)));
        const Tensor d =
            grad(sum(cast(pool(half, o), DType::Float32) * cast(h, DType::Float32)), half);
        CHECK(d.dtype() == dtype);
        CHECK(list(d) ==
              list(cast(grad(sum(pool(wide, o) * cast(h, DType::Float32)), wide), dtype)));
      };
      check([](const Tensor& in, Pool3dOptions options) {
        options.divisor = 0;
        return max_pool3d(in, options);
      });
      check([](const Tensor& in, const Pool3dOptions& options) { return avg_pool3d(in, options); });
    }
  });
}

TEST_CASE("half: gradients of biased products have their operands' dtypes") {
  with_engines_and_fusion([] {
    for (const auto& [t, big] : kOdds) {
      const Tensor x = stored({big, 1, 3, 2}, {2, 2}, t), w = stored({1, 2, 4, 1}, {2, 2}, t),
                   b = vector_of({1, 1}, t);
      const auto gradients = grad(sum(linear(x, w, b)), std::vector<Tensor>{x, w, b});
      CHECK(list(gradients[0]) == Floats{5, 3, 5, 3});
      CHECK(list(gradients[1]) == list(vector_of({big + 3, 3, big + 3, 3}, t)));
      CHECK(list(gradients[2]) == Floats{2, 2});
      const Tensor y =
          conv2d(reshape(x, {1, 1, 2, 2}), reshape(w, {1, 1, 2, 2}), vector_of({1}, t));
      const auto slopes = grad(sum(y * y), std::vector<Tensor>{x, w});
      for (const Tensor& g : slopes) CHECK(g.dtype() == t);
      const Tensor twice = grad(sum(slopes[0]), w);
      CHECK(twice.dtype() == t);
      CHECK(list(twice).size() == 4);
    }
  });
}

TEST_CASE("half: a broadcast operand's gradient is summed in float32") {
  with_engines_and_fusion([] {
    constexpr std::int64_t kRows = 4096;  // where float16 would stop adding ones at 2,048
    const Tensor b = vector_of({1});
    CHECK(list(grad(sum(cast(b + zeros({kRows, 1}, kHalf), DType::Float32)), b))[0] == kRows);
    // One matrix for a batch of three: 2048 + 1 + 1.
    for (const auto& [t, big] : kOdds) {
      const Tensor x = stored({big, 1, 1}, {3, 1, 1}, t), w = stored({1}, {1, 1}, t);
      CHECK(list(grad(sum(matmul(x, w)), w)) == Floats{big + 2});
      CHECK(list(grad(sum(matmul(w, x)), w)) == Floats{big + 2});
    }
    // Parts are not rounded either: 2049 + 2049 is 4098, and float16 represents only 4096 and 4100.
    const Tensor x = stored({2048, 1, 2048, 1, 2, 0}, {3, 2, 1}, kHalf),
                 w = stored({1}, {1, 1}, kHalf);
    CHECK(list(grad(sum(matmul(x, w)), w)) == Floats{4100});
    const Tensor twice = broadcast_to(w, {3, 1, 1});
    CHECK(grad(sum(matmul(x, twice)), twice).dtype() == kHalf);
  });
}

TEST_CASE("half: composites round once") {
  for (const char* name : {"reference", "fast"}) {
    CAPTURE(name);
    set_engine(name);
    // Results do not depend on whether numbers are known at planning.
    CHECK(list(exp2(full({}, 10, kBrain)))[0] == 1024);
    CHECK(list(gelu(full({}, -3.5, kHalf)))[0] == list(gelu(vector_of({-3.5F})))[0]);
    CHECK(list(sinh(full({}, 11.75, kHalf)))[0] == list(sinh(vector_of({11.75F})))[0]);
    // Exponentials whose sum exceeds 65,504, in one row and in several.
    for (const std::int64_t rows : {1, 3}) {
      const Tensor x = cast(
          Tensor::from(Floats(static_cast<std::size_t>(70000 * rows), 1.0F), {rows, 70000}), kHalf);
      CHECK(list(softmax(x, 1))[0] == doctest::Approx(1.0 / 70000).epsilon(1e-2));
      CHECK(list(log_softmax(x, 1))[0] == doctest::Approx(-11.156).epsilon(1e-3));
      CHECK(std::abs(list(grad(sum(log_softmax(x, 1) * 2), x))[0]) < 0.05);
      CHECK(std::isfinite(list(grad(sum(softmax(x, 1) * 60000), x))[0]));
    }
    CHECK(list(softmax(zeros({1, 70000}, kHalf) + zeros({70000}, kHalf), 1))[0] ==
          doctest::Approx(1.0 / 70000).epsilon(1e-2));
    for (const bool tanh : {false, true})
      for (const float x : {-4.0F, -3.5F, -3.0F, -1.0F, 2.0F}) {
        const double wide = list(gelu(vector_of({x}, DType::Float32), tanh))[0];
        CHECK(list(gelu(vector_of({x}), tanh))[0] == doctest::Approx(wide).epsilon(1e-3));
      }
    CHECK(list(exp2(vector_of({10}, kBrain)))[0] == 1024);
    for (const float far : {100.5F, -100.5F, 127.75F, 0.3F}) {
      const Floats got = list(exp2(vector_of({far}, DType::Float32)));
      CHECK(std::abs(got[0] / std::exp2(static_cast<double>(far)) - 1) < 1.2e-7);
    }
    CHECK(std::isinf(list(exp2(vector_of({128}, DType::Float32)))[0]));
    CHECK(list(exp2(vector_of({-INFINITY}, DType::Float32)))[0] == 0);
    CHECK(std::isinf(list(exp2(vector_of({INFINITY}, DType::Float32)))[0]));
    CHECK(list(sinh(vector_of({11.75F})))[0] == doctest::Approx(63377).epsilon(1e-3));
    CHECK(list(cosh(vector_of({11.75F})))[0] == doctest::Approx(63377).epsilon(1e-3));
  }
  set_engine("fast");
}
