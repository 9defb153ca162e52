// Edge values as in PyTorch: NaN, infinities, tensors without axes, empty sums, and integers where
// networks use floating-point numbers. Expected numbers are PyTorch's.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/loops.h>
#include <tenon/ops.h>

#include "cases/engines.h"
#include "cases/lists.h"

using namespace tenon;
using namespace cases;

namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();
const float kMax = std::numeric_limits<float>::max();

/// Checks equality: NaN equals NaN, and signs of zeros count.
void check_same(const Floats& got, const Floats& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    if (std::isnan(want[k])) {
      CHECK(std::isnan(got[k]));
    } else {
      CHECK(got[k] == want[k]);
      CHECK(std::signbit(got[k]) == std::signbit(want[k]));
    }
  }
}

template <class E, class F>
void refuses(F&& call, const std::string& part) {
  std::string text;
  try {
    call();
  } catch (const E& error) {
    text = error.what();
  }
  CAPTURE(text);
  CHECK(text.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("edges: gradients at NaN") {
  with_engines([] {
    const Tensor x = floats({kNan, -1, 0, 5}), y = floats({1, kNan, 0, kNan});
    check_same(slope(relu(x), x), {1, 0, 0, 1});
    check_same(slope(clamp(x, -1, 1), x), {0, 1, 1, 0});
    check_same(slope(hardtanh(x), x), {0, 0, 1, 0});
    check_same(slope(relu6(x), x), {0, 0, 0, 1});
    check_same(slope(hardsigmoid(x) * 6, x), {0, 1, 1, 0});
    check_same(slope(abs(x), x), {0, -1, 0, 1});
    check_same(slope(maximum(x, y), x), {1, 1, 0.5, 1});
    check_same(slope(maximum(x, y), y), {1, 1, 0.5, 1});
    check_same(slope(minimum(x, y), x), {1, 1, 0.5, 1});
    for (const Tensor& v : {clamp(x, -1, 1), hardtanh(x), relu6(x), hardsigmoid(x), relu(x)})
      CHECK(std::isnan(list(v)[0]));
  });
}

TEST_CASE("edges: a NaN bound gives NaN without a gradient") {
  with_engines([] {
    const Tensor x = floats({-1, 2});
    check_same(list(clamp(x, kNan, 1)), {kNan, kNan});
    check_same(list(clamp(x, -1, kNan)), {kNan, kNan});
    check_same(slope(clamp(x, kNan, 1), x), {0, 0});
  });
}

TEST_CASE("edges: tied extrema share the gradient, NaN gets none") {
  with_engines([] {
    const Tensor x = Tensor::from(Floats{3, 1, 3, 2, 2, 2, kNan, 1, 2}, {3, 3});
    check_same(slope(amax(x, {1}), x),
               {0.5, 0, 0.5, 1.0F / 3, 1.0F / 3, 1.0F / 3, kNan, kNan, kNan});
    check_same(slope(amin(slice(x, 0, 0, 2), {1}), x),
               {0, 1, 0, 1.0F / 3, 1.0F / 3, 1.0F / 3, 0, 0, 0});
  });
}

TEST_CASE("edges: gradients where an intermediate would overflow") {
  with_engines([] {
    const Tensor x = floats({kMax, kMax, 0, 1});
    check_same(slope(norm(x), x), {0, 0, 0, 0});
    const Tensor y = floats({1, kMax, kInf});
    check_same(slope(logsumexp(y, {}), y), {0, 0, kNan});
    CHECK(logsumexp(floats({-kInf, -kInf}), {}).item() == -kInf);
    CHECK(logsumexp(floats({-kInf, 0}), {}).item() == 0);
    CHECK(logsumexp(floats({kInf, -kInf}), {}).item() == kInf);
    // 1e-8 is 0 in float16; as a number in an operation with a tensor it keeps its value.
    const Tensor h = cast(floats({0}), DType::Float16);
    CHECK(slope(pow(1e-8, h), h)[0] == doctest::Approx(std::log(1e-8)).epsilon(1e-3));
  });
}

TEST_CASE("edges: distance losses have gradients at infinite distances, and NaN at NaN") {
  with_engines([] {
    const Tensor x = floats({kInf, -kInf, kMax, 0.5F, -2, kNan}), y = floats({0, 0, 0, 0, 0, 0});
    const auto gradient = [&](const Tensor& loss) { return slope(loss, x); };
    check_same(gradient(huber_loss(x, y, Reduction::None, 1.5)),
               {1.5F, -1.5F, 1.5F, 0.5F, -1.5F, kNan});
    check_same(gradient(smooth_l1_loss(x, y, Reduction::None, 2)), {1, -1, 1, 0.25F, -1, kNan});
  });
}

TEST_CASE("edges: floor_divide and remainder by infinities and to zeros of either sign") {
  with_engines([] {
    const Tensor a = floats({1, -1, 1, -1, 0, -0.0F, kInf, -kMax, -kMax, 7});
    const Tensor b = floats({kInf, kInf, -kInf, -kInf, -3, 3, 2, 3e38F, kMax, 0});
    check_same(list(floor_divide(a, b)), {0, -1, -1, 0, -0.0F, -0.0F, kNan, -2, -1, kInf});
    check_same(list(remainder(floats({1, -1, kInf, 3, -3}), floats({kInf, kInf, 2, -kInf, -kInf}))),
               {1, kInf, kNan, -kInf, -3});
    const Tensor l = floats({5, 7});
    const Tensor s = (floats({2, 3}) * 1.5).compute();
    check_same(slope(floor_divide(l, s), l), {0, 0});
  });
}

TEST_CASE("edges: a zero gradient through a scale that was already evaluated") {
  const Tensor l = floats({5, 7}), w = variable(floats({2, 3}));
  const Tensor s = w * 1.5;
  s.compute();
  check_same(slope(floor(l / s), l), {0, 0});
  check_same(slope(round(l / s), w), {0, 0});
  const Tensor read = (l * 2).compute();
  check_same(slope(floor(read / s), l), {0, 0});
}

TEST_CASE("edges: a tensor without axes has axis 0 and -1") {
  with_engines([] {
    const Tensor x = scalar(-2.5);
    for (const int axis : {0, -1}) {
      CAPTURE(axis);
      for (auto* f : {sum, prod, mean, amax, amin, logsumexp}) {
        CHECK(f(x, {axis}, false).item() == -2.5);
        CHECK(f(x, {axis}, true).shape() == Shape{});
      }
      CHECK(norm(x, {axis}).item() == 2.5);
      CHECK(var(x, {axis}, false, 0).item() == 0);
      CHECK(all(x, {axis}).item() == 1);
      CHECK(any(x, {axis}).item() == 1);
      CHECK(argmax(x, axis).item() == 0);
      CHECK(argmin(x, axis, true).shape() == Shape{});
      CHECK(softmax(x, axis).item() == 1);
      CHECK(log_softmax(x, axis).item() == 0);
      CHECK(flip(x, {axis}).item() == -2.5);
      CHECK(transpose(x, axis, 0).shape() == Shape{});
      CHECK(squeeze(x, axis).item() == -2.5);
      CHECK(grad(softmax(x, axis), x).item() == 0);
      const Tensor zero = scalar(0, DType::Int64);
      CHECK(gather(x, axis, zero).shape() == Shape{});
      CHECK(gather(x, axis, longs({0, 0})).shape() == Shape{2});
      CHECK(gather(floats({1, 2}), axis, scalar(1, DType::Int64)).item() == 2);
      CHECK(scatter_add(x, axis, zero, scalar(3)).item() == 0.5);
      CHECK(index_select(x, axis, longs({0})).item() == -2.5);
    }
  });
  const Tensor x = scalar(1);
  refuses<ShapeError>([&] { sum(x, {1}); }, "sum: axis 1 is outside [-1, 0]");
  refuses<ShapeError>([&] { sum(x, {0, -1}); }, "given twice");
  refuses<ShapeError>([&] { argmax(x, 1); }, "argmax: axis 1");
  refuses<ShapeError>([&] { softmax(x, -2); }, "softmax: axis -2");
  refuses<ShapeError>([&] { sum(x, {std::int64_t{1} << 32}); }, "outside [-1, 0]");
  refuses<ShapeError>([&] { index_select(x, 0, longs({0, 0})); }, "index_select: 2 indices");
  refuses<ShapeError>([&] { slice(x, 0, 0, 1); }, "a scalar, which has no axes");
}

TEST_CASE("edges: reductions over no elements") {
  with_engines([] {
    const Tensor x = zeros({2, 0});
    check_same(list(logsumexp(x, {1})), {-kInf, -kInf});
    CHECK(logsumexp(x, {1}, true).shape() == Shape{2, 1});
    CHECK(logsumexp(cast(x, DType::Float16), {}).item() == -kInf);
    CHECK(logsumexp(x, {0}).shape() == Shape{0});
    CHECK(slope(logsumexp(x, {1}), x).empty());
  });
}

TEST_CASE("edges: integers in clamps, pooling and products") {
  with_engines([] {
    for (const DType t : {DType::Int8, DType::Int32, DType::Int64}) {
      CHECK(relu6(longs({-3, 4, 9}, t)).dtype() == t);
      CHECK(whole(relu6(longs({-3, 4, 9}, t))) == Longs{0, 4, 6});
      CHECK(whole(hardtanh(longs({-3, 0, 9}, t))) == Longs{-1, 0, 1});
    }
    CHECK(whole(relu6(longs({0, 4, 200}, DType::UInt8))) == Longs{0, 4, 6});
    CHECK(whole(hardtanh(longs({0, 4}, DType::UInt8))) == Longs{0, 1});
    CHECK(hardtanh(cast(longs({0, 4}), DType::Bool)).dtype() == DType::Float32);
    // float64 cannot represent 2^62 + 1.
    const std::int64_t big = (std::int64_t{1} << 62) + 1;
    const Tensor image = Tensor::from(Longs{-5, -7, big, -2, -9, -3, 1, 4, -8}, {1, 1, 3, 3});
    const Tensor pooled =
        max_pool2d(image, {.kernel = {2, 2}, .stride = {2, 2}, .padding = {1, 1}});
    CHECK(pooled.shape() == Shape{1, 1, 2, 2});
    CHECK(pooled.to_vector<std::int64_t>() == Longs{-5, big, 1, 4});
    const Tensor hanging = max_pool2d(cast(slice(image, 3, 0, 2), DType::Int8),
                                      {.kernel = {2, 2}, .stride = {2, 2}, .ceil_mode = true});
    CHECK(whole(hanging) == Longs{-2, 4});
    const Tensor a = Tensor::from(Longs{1, big, 3, 4}, {2, 2});
    const Tensor b = Tensor::from(Longs{5, 6, 1, 2}, {2, 2});
    const std::int64_t wrapped = std::numeric_limits<std::int64_t>::min() + 8;  // 2 * big + 6
    CHECK(whole(matmul(a, b)) == Longs{big + 5, wrapped, 19, 26});
    CHECK(whole(matmul(longs({100, 100}, DType::Int8), longs({2, 1}, DType::Int8))) == Longs{44});
    CHECK(whole(linear(longs({1, 2}), b, longs({1, 2}))) == Longs{18, 7});
    CHECK(matmul(zeros({2, 0}, DType::Int32), zeros({0, 3}, DType::Int32)).shape() == Shape{2, 3});
    CHECK(whole(sum(matmul(ones({3, 4, 5}, DType::Int32), ones({5, 2}, DType::Int32)))) ==
          Longs{120});
    CHECK(whole(arange(5, 0, -2, DType::UInt8)) == Longs{5, 3, 1});
    CHECK(arange(5, 0, -2, DType::UInt8).dtype() == DType::UInt8);
  });
}

TEST_CASE("edges: constants are checked like data") {
  const Tensor data = floats({1, 1});
  for (const Tensor& x : {data, ones({2})}) {
    refuses<ShapeError>([&] { expand(x, {3}); }, "expand: [2] does not broadcast to [3]");
    refuses<ShapeError>([&] { broadcast_to(x, {5}); }, "does not broadcast to [5]");
    refuses<ShapeError>([&] { reshape(x, {3}); }, "[2] has 2 elements");
    // An error, with and without other GPUs.
    CHECK_THROWS_AS(to(x, Device{Device::Kind::Cuda, 61}).compute(), DeviceError);
  }
}

TEST_CASE("edges: an index out of range is reported with its layer and position") {
  with_engines([] {
    const Scope scope("words");
    const Tensor x = floats({1, 2, 3}), index = Tensor::from(Longs{0, 1, 2, 7}, {2, 2});
    refuses<ValueError>(
        [&] {
          index_select(x, 0, longs({0, 2, 3})).compute();
        },
        "index_select (words): index 3 is out of range for axis 0 of size 3, at element "
        "2 of the indices");
    refuses<ValueError>(
        [&] {
          gather(reshape(floats({1, 2, 3, 4}), {2, 2}), 1, index).compute();
        },
        "index 2 is out of range for axis 1 of size 2, at element 2");
    refuses<ValueError>(
        [&] {
          scatter_add(x, 0, longs({0, -1}), floats({1, 1})).compute();
        },
        "scatter_add (words): index -1 is out of range for axis 0 of size 3, at "
        "element 1 of the indices");
  });
}

TEST_CASE("edges: a class out of range is refused and reported with its position") {
  with_engines([] {
    const Tensor x = Tensor::from(Floats(12, 0.5F), {3, 4}), left_out = longs({0, -100, 3});
    const ClassLossOptions ignoring{.ignore_index = -100};
    for (const std::int64_t wrong : {4L, -1L, 1L << 40}) {
      const Tensor target = longs({0, 3, wrong});
      const std::string end =
          "index " + std::to_string(wrong) + " is out of range for axis 0 of size 4, at element 2";
      refuses<ValueError>([&] { cross_entropy(x, target).compute(); }, "cross_entropy: " + end);
      refuses<ValueError>([&] { nll_loss(x, target).compute(); }, "nll_loss: " + end);
      refuses<ValueError>([&] { cross_entropy(x, target, ignoring).compute(); }, end);
      refuses<ValueError>([&] { one_hot(target, 4).compute(); }, "one_hot: index ");
      const CompiledFunction f = compile([&](const std::vector<Tensor>& in) {
        const Scope scope("head");
        const Tensor loss = cross_entropy(in[0], in[1]);
        return std::vector<Tensor>{loss, grad(loss, in[0])};
      });
      for (int call = 0; call < 3; ++call) {
        CHECK(std::isfinite(f({x, longs({0, 1, 2})})[0].item()));
        refuses<ValueError>([&] { f({x, target})[0].item(); }, "cross_entropy (head): " + end);
      }
    }
    CHECK(std::isfinite(cross_entropy(x, left_out, ignoring).item()));
    CHECK(list(cross_entropy(x, left_out, ignoring)) ==
          list(cross_entropy(slice(x, 0, 0, 1), longs({0}))));
    CHECK(list(cross_entropy(zeros({0, 4}), longs({}), Reduction::Sum)) == Floats{0});
    CHECK(whole(one_hot(longs({1, 0}), 2)) == Longs{0, 1, 1, 0});
    CHECK(one_hot(longs({}), 3).shape() == Shape{0, 3});
    refuses<ValueError>([&] { embedding(longs({3}), x).compute(); }, "index 3 is out of range");
  });
}

TEST_CASE("edges: errors name the op that was called") {
  const Tensor x = floats({1, 2});
  refuses<ShapeError>([&] { stack({x, floats({1})}, 0); }, "stack: ");
  refuses<ShapeError>([&] { mse_loss(x, floats({1})); }, "mse_loss: ");
  refuses<DTypeError>([&] { index_select(x, 0, floats({0})); }, "index_select: the index is");
  refuses<ValueError>([&] { clamp(longs({1}, DType::UInt8), -1, 2); }, "clamp: the number -1");
}

TEST_CASE("edges: gradients with respect to constant tensors equal those of variables") {
  using Function = std::function<Tensor(const Tensor&)>;
  const Tensor w = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto through_scan = [&w](const Tensor& x) {
    const auto step = [&x](const Tensor& carry, const Tensor& row) {
      return std::pair(carry + row * x, carry * zeros_like(x));
    };
    return scan(step, x + 0.0, w).first;
  };
  const auto through_cond = [&w](const Tensor& x) {
    const std::vector<Tensor> operands{w};
    return cond(
        gt(sum(w), 0),
        [&x](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * x}; },
        [](const std::vector<Tensor>& in) { return in; }, operands)[0];
  };
  const std::vector<std::pair<const char*, Function>> functions{
      {"itself", [](const Tensor& x) { return x * x; }},
      {"broadcast", [&w](const Tensor& x) { return w * x; }},
      {"reshape",
       [&w](const Tensor& x) {
         return matmul(w, reshape(x, {3, 1}));
       }},
      {"permute", [&w](const Tensor& x) { return matmul(w, transpose(unsqueeze(x, 0), 0, 1)); }},
      {"slice", [](const Tensor& x) { return exp(slice(x, 0, 1, 3)); }},
      {"cast", [](const Tensor& x) { return square(cast(x, DType::Float64)); }},
      {"narrow cast", [](const Tensor& x) { return square(cast(x, DType::BFloat16)); }},
      {"divisor", [&w](const Tensor& x) { return w / x; }},
      {"divided", [&w](const Tensor& x) { return x / w; }},
      {"exponent", [&w](const Tensor& x) { return pow(w, x); }},
      {"base", [&w](const Tensor& x) { return pow(x, w); }},
      {"modulus", [&w](const Tensor& x) { return remainder(w, x); }},
      {"where", [&w](const Tensor& x) { return where(gt(w, 2), x, w); }},
      {"softmax", [&w](const Tensor& x) { return log_softmax(w * x, 1) * w; }},
      {"scan", through_scan},
      {"cond", through_cond}};
  // Each is built again: variable() evaluates its argument, and values are not constants.
  using Maker = std::function<Tensor()>;
  const std::vector<std::pair<const char*, Maker>> made{
      {"ones", [] { return ones({3}); }},
      {"full", [] { return full({3}, 1.75); }},
      {"ones_like",
       [] {
         return ones_like(floats({1, 2, 3}));
       }},
      {"scalar, expanded", [] { return expand(scalar(1.5F), {3}); }},
      {"ones, reshaped",
       [] {
         return reshape(ones({3, 1}), {3});
       }},
      {"ones, sliced", [] { return slice(ones({5}), 0, 1, 4); }}};
  const auto check_gradients = [](const Function& f, const Maker& make) {
    const Tensor x = make(), v = variable(make());
    const Tensor y = sum(f(x)), of_v = sum(f(v)), dx = grad(y, x), dv = grad(of_v, v);
    // A tensor that depends on no variable drops its inputs when it is read.
    const Tensor ddx = grad(sum(dx * dx), x), ddv = grad(sum(dv * dv), v);
    // Constants are folded, which rounds at another point.
    const auto check_close = [](const Floats& got, const Floats& want) {
      REQUIRE(got.size() == want.size());
      for (std::size_t k = 0; k < got.size(); ++k)
        CHECK(got[k] == doctest::Approx(want[k]).epsilon(1e-5));
    };
    check_close(list(dx), list(dv));
    check_close(list(ddx), list(ddv));
  };
  with_engines([&] {
    for (const auto& [function, f] : functions)
      for (const auto& [maker, make] : made) {
        CAPTURE(function);
        CAPTURE(maker);
        check_gradients(f, make);
      }
  });
  const Tensor none = zeros({3}), one = scalar(2.0F);
  check_same(slope(w * none, none), {5, 7, 9});
  check_same(slope(w * one, one), {21});
  CHECK(list(grad(sum(matmul(ones({2, 3}), transpose(w, 0, 1))), w)) == Floats(6, 2));
}

TEST_CASE("edges: gradients of tensors that were already read") {
  const Tensor x = floats({1, 2}), w = variable(floats({3, 4}));
  // A gradient that does not depend on a variable has the gradient 0, read or not.
  const Tensor dw = grad(sum(x * w), w);
  CHECK(list(dw) == Floats{1, 2});
  CHECK(slope(dw * dw, w) == Floats{0, 0});
  // A value computed from another tensor has dropped its inputs after it was read.
  const Tensor y = exp(x);
  CHECK(list(y).size() == 2);
  refuses<ValueError>([&] { slope(y * y, x); },
                      "that was evaluated, and such a value keeps its graph only if");
}

TEST_CASE("edges: gradients of probabilities 0 and 1, and of atan2 at the origin") {
  with_engines([] {
    const auto learned = [](const Floats& p, const Floats& target) {
      const Tensor x = variable(floats(p));
      return slope(binary_cross_entropy(x, floats(target), {.reduction = Reduction::Sum}), x);
    };
    CHECK(learned({0, 1}, {0, 1}) == Floats{0, 0});
    CHECK(learned({0, 1}, {1, 0}) == Floats{-1e12F, 1e12F});
    CHECK(learned({1e-20F}, {1}) == Floats{-1e12F});
    CHECK(learned({0.5F, 0.25F}, {1, 0}) == Floats{-2, 1 / 0.75F});
    const Tensor p = floats({0, 1, 0, 1}), target = floats({0, 1, 1, 0});
    CHECK(list(binary_cross_entropy(p, target, {.reduction = Reduction::None})) ==
          Floats{0, 0, 100, 100});
    // A network with saturated outputs continues to learn.
    const Tensor logits = variable(floats({200, -200}));
    CHECK(slope(binary_cross_entropy(sigmoid(logits), floats({1, 0})), logits) == Floats{0, 0});
    for (const DType dtype : {DType::Float64, DType::BFloat16, DType::Float16}) {
      const Tensor x = variable(cast(p, dtype));
      for (const float g : slope(binary_cross_entropy(x, cast(target, dtype)), x))
        CHECK_FALSE(std::isnan(g));
    }
    const Tensor y = variable(floats({0, 3})), x = variable(floats({0, 4}));
    CHECK(slope(atan2(y, x), y) == Floats{0, 0.16F});
    CHECK(slope(atan2(y, x), x) == Floats{0, -0.12F});
  });
}

TEST_CASE("edges: logaddexp of equal numbers has all derivatives") {
  with_engines([] {
    const Tensor x = variable(floats({1, kInf, -kInf, 2, kInf, 0})),
                 y = floats({1, kInf, -kInf, -kInf, 3, 0});
    const Tensor z = logaddexp(x, y), dx = grad(sum(z), x);
    CHECK(list(z)[0] == doctest::Approx(1 + std::log(2.0)));
    CHECK(list(dx) == Floats{0.5F, 0.5F, 0.5F, 1, 1, 0.5F});
    CHECK(slope(dx, x) == Floats{0.25F, 0, 0, 0, 0, 0.25F});
  });
}
