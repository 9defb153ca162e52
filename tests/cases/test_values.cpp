// Values that a definition fixes: kinks, ties, signs of integer division, NaN, conversions, random
// words. All other values are covered by comparing engines with each other and gradients with
// differences, which cannot detect a wrong definition.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "base/philox.h"
#include "cases/engines.h"
#include "cases/lists.h"

using namespace tenon;
using namespace cases;

namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("values: gradients at kinks and ties are PyTorch's") {
  with_engines([] {
    const Tensor x = floats({-1, 0, 1, 2});
    CHECK(slope(relu(x), x) == Floats{0, 0, 1, 1});
    CHECK(slope(abs(x), x) == Floats{-1, 0, 1, 1});
    CHECK(slope(clamp(x, -1, 1), x) == Floats{1, 1, 1, 0});
    CHECK(slope(hardtanh(x), x) == Floats{0, 1, 0, 0});
    CHECK(slope(leaky_relu(x, 0.5), x) == Floats{0.5, 0.5, 1, 1});
    CHECK(slope(maximum(x, 1), x) == Floats{0, 0, 0.5, 1});
    CHECK(slope(minimum(x, floats({-1, 0, 0, 3})), x) == Floats{0.5, 0.5, 0, 1});
    CHECK(slope(sign(x) + floor(x) + round(x), x) == Floats{0, 0, 0, 0});
    CHECK(slope(pow(x, 0.0), x) == Floats{0, 0, 0, 0});
    CHECK(slope(pow(x, floats({2, 0, 0, 3})), x) == Floats{-2, 0, 0, 12});
    const Tensor e = floats({2, 0, 1, 2});
    CHECK(slope(pow(floats({0, 0, 1, 1}), e), e) == Floats{0, 0, 0, 0});
    const Tensor t = floats({1, 3, 3, 2});
    CHECK(slope(amax(t), t) == Floats{0, 0.5, 0.5, 0});
    const Tensor z = floats({0, 0});
    CHECK(slope(norm(z), z) == Floats{0, 0});
    CHECK(slope(binary_cross_entropy_with_logits(z, floats({0, 1}), Reduction::Sum), z) ==
          Floats{0.5, -0.5});
    CHECK(slope(softplus(z), z) == Floats{0.5, 0.5});
    const Tensor p = floats({0, 2, 3, 0, 5, 0}, {2, 3});
    CHECK(slope(prod(p, {1}), p) == Floats{6, 0, 0, 0, 0, 0});
  });
}

TEST_CASE("values: a zero gradient rule is not mistaken for a lost dependency") {
  const Tensor l = floats({0.5, 2.5, 7}), s = exp(floats({0.5, 0.25, 0.125}));
  s.compute();
  CHECK(list(grad(sum(floor(l / s)), l)) == Floats{0, 0, 0});
  const Tensor x = l * s;  // an input of the input does not depend on the input
  CHECK(list(grad(sum(where(gt(x, 1), 2, 3 * s)), x)) == Floats{0, 0, 0});
  const Tensor w = floats({1, 2, 3}), y = w * 2;
  y.compute();
  CHECK_THROWS_AS(grad(sum(y * l), w), ValueError);
}

TEST_CASE("values: no gradient of a branch not taken is NaN") {
  with_engines([] {
    const Tensor x = floats({-200, 0, 200});
    for (const Tensor& y : {elu(x), softplus(x), gelu(x), silu(x), mish(x), sigmoid(x), tanh(x),
                            binary_cross_entropy_with_logits(x, floats({0, 1, 0}), Reduction::Sum)})
      for (const float v : slope(y, x)) CHECK(std::isfinite(v));
  });
}

TEST_CASE("values: max_pool2d takes the first maximum") {
  with_engines([] {
    const Tensor x = floats({1, 1, 1, 1}, {1, 1, 2, 2});
    CHECK(slope(max_pool2d(x), x) == Floats{1, 0, 0, 0});
    const Tensor y = floats({0, kNan, 5, 1}, {1, 1, 2, 2});
    CHECK(std::isnan(max_pool2d(y).item()));
  });
}

TEST_CASE("values: max_pool2d with windows beyond the image") {
  with_engines([] {
    const Pool2dOptions past{
        .kernel = {2, 2}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {3, 3}};
    const Tensor x = floats({1, 2, 3, 4}, {1, 1, 2, 2});
    CHECK(max_pool2d(x, past).item() == -kInf);
    CHECK(slope(max_pool2d(x, past), x) == Floats{0, 0, 0, 0});
  });
}

TEST_CASE("values: average pooling counts what PyTorch counts") {
  with_engines([] {
    const Tensor x = ones({1, 1, 3, 3});
    Pool2dOptions o;
    o.kernel = {2, 2};
    o.padding = {1, 1};
    CHECK(list(avg_pool2d(x, o)) == Floats{0.25, 0.5, 0.5, 1});
    o.count_include_pad = false;
    CHECK(list(avg_pool2d(x, o)) == Floats{1, 1, 1, 1});
    o = {};
    o.ceil_mode = true;
    CHECK(list(avg_pool2d(x, o)) == Floats{1, 1, 1, 1});
  });
}

TEST_CASE("values: integer division and remainder are Python's") {
  with_engines([] {
    const Longs a{-7, 7, -8, 8, -6, 0, 7}, b{2, -2, 3, -3, 3, 5, 7};
    for (const DType t : {DType::Int8, DType::Int32, DType::Int64}) {
      CHECK(whole(floor_divide(longs(a, t), longs(b, t))) == Longs{-4, -4, -3, -3, -2, 0, 1});
      CHECK(whole(remainder(longs(a, t), longs(b, t))) == Longs{1, -1, 1, -1, 0, 0, 0});
    }
    CHECK(list(floor_divide(cast(longs(a), DType::Float32), cast(longs(b), DType::Float32))) ==
          Floats{-4, -4, -3, -3, -2, 0, 1});
    CHECK(list(remainder(floats({-7.5, 7.5}), 2)) == Floats{0.5, 1.5});
    CHECK(whole(floor_divide(longs({-128}, DType::Int8), longs({100}, DType::Int8))) == Longs{-2});
    CHECK(list(div(longs({1, 3}), longs({2, 4}))) == Floats{0.5, 0.75});
    CHECK(list(floor_divide(1.0, floats({0.1F}))) ==
          Floats{9});  // as in Python: 0.1 in float32 is slightly larger
    CHECK(list(floor_divide(1.0, floats({0}))) == Floats{kInf});
  });
}

TEST_CASE("values: integers wrap, a sum of bools is or") {
  with_engines([] {
    CHECK(whole(add(longs({250, 10}, DType::UInt8), 10)) == Longs{4, 20});
    CHECK(whole(mul(longs({100, -100}, DType::Int8), 2)) == Longs{-56, 56});
    CHECK(whole(neg(longs({-128, 5}, DType::Int8))) == Longs{-128, -5});
    CHECK(whole(scatter_add(longs({100, -100}, DType::Int8), 0, longs({0, 1, 1}),
                            longs({100, -100, -3}, DType::Int8))) == Longs{-56, 53});
    CHECK(whole(pow(longs({-2, 3}), 3)) == Longs{-8, 27});
    const Tensor t = longs({0, 0, 1, 1}, DType::Bool), u = longs({0, 1, 0, 1}, DType::Bool);
    CHECK(whole(t + u) == Longs{0, 1, 1, 1});
    CHECK(whole(t * u) == Longs{0, 0, 0, 1});
    CHECK(whole(logical_xor(t, u)) == Longs{0, 1, 1, 0});
    CHECK(whole(lt(t, u)) == Longs{0, 1, 0, 0});
    CHECK(whole(t + 1) == Longs{1, 1, 2, 2});
    CHECK(whole(sum(longs({200, 100}, DType::UInt8))) == Longs{300});
    CHECK(whole(amax(u)) == Longs{1});
    CHECK(whole(argmax(longs({3, 9, 9}), 0)) == Longs{1});
    CHECK(whole(argmin(u, 0)) == Longs{0});
  });
}

TEST_CASE("values: arithmetic in every dtype") {
  with_engines([] {
    for (int k = 1; k < kDTypeCount; ++k) {
      const auto t = static_cast<DType>(k);
      const Tensor x = cast(floats({1, 2, 3, 4, 5, 6}, {2, 3}), t);
      CAPTURE(tenon::name(t));
      CHECK(list(x + x * 2 - 1) == Floats{2, 5, 8, 11, 14, 17});
      CHECK(list(maximum(x, 3)) == Floats{3, 3, 3, 4, 5, 6});
      CHECK(list(sum(x, {0})) == Floats{5, 7, 9});
      CHECK(list(amin(x, {1})) == Floats{1, 4});
      CHECK(list(prod(x, {1})) == Floats{6, 120});
      CHECK(list(transpose(x)) == Floats{1, 4, 2, 5, 3, 6});
      CHECK(list(where(gt(x, 3), x, 0)) == Floats{0, 0, 0, 4, 5, 6});
      CHECK(list(concat({x, flip(x, {1})}, 0)) == Floats{1, 2, 3, 4, 5, 6, 3, 2, 1, 6, 5, 4});
      CHECK(list(pad(x, {1, 0}, 2)) == Floats{2, 1, 2, 3, 2, 4, 5, 6});
      CHECK(list(gather(x, 1, Tensor::from<std::int64_t>({2, 0}, {2, 1}))) == Floats{3, 4});
      CHECK(list(square(x)) == Floats{1, 4, 9, 16, 25, 36});
      CHECK(whole(argmax(x, 1)) == Longs{2, 2});
    }
  });
}

TEST_CASE("values: float16 statistics have no overflowing intermediate") {
  with_engines([] {
    const Tensor x = full({4, 50}, 30000, DType::Float16);
    CHECK(list(mean(x, {1})) == Floats{30000, 30000, 30000, 30000});
    CHECK(list(var(x, {1})) == Floats{0, 0, 0, 0});
    CHECK(norm(full({4}, 300, DType::Float16)).item() == 600);
  });
}

TEST_CASE("values: regions of 16-bit values compute in float32 and round at stores") {
  with_engines([] {
    for (const DType t : {DType::Float16, DType::BFloat16}) {
      const Tensor x = cast(floats({12}), t);
      CHECK(list(cast(log(exp(x) * 100) - 4, DType::Float32))[0] ==
            doctest::Approx(12.605).epsilon(t == DType::Float16 ? 1e-3 : 8e-3));
      // A plain number is not rounded to the tensor's dtype, nor does it overflow there.
      CHECK(list(cast(cast(floats({1}), t) / 70000, DType::Float32))[0] ==
            doctest::Approx(1.0 / 70000).epsilon(8e-3));
    }
    const Tensor tenth = full({1}, 0.1, DType::Float16);
    CHECK(whole(eq(tenth, 0.1)) == Longs{1});
    CHECK(list(cast(tenth, DType::Float32) * 1024) == Floats{0.0999755859375F * 1024});
    CHECK(list(cast(exp2(cast(floats({10, 20}), DType::BFloat16)), DType::Float32)) ==
          Floats{1024, 1048576});
  });
}

TEST_CASE("values: NaN") {
  with_engines([] {
    const Tensor x = floats({1, kNan, 3});
    CHECK(std::isnan(amax(x).item()));
    CHECK(std::isnan(amin(x).item()));
    CHECK(argmax(x).item() == 1);
    CHECK(std::isnan(list(maximum(x, 2))[1]));
    CHECK(std::isnan(list(minimum(2, x))[1]));
    CHECK(std::isnan(list(clamp(x, 0, 1))[1]));
    CHECK(std::isnan(list(relu(x))[1]));
    CHECK(std::isnan(list(hardtanh(x))[1]));
    CHECK(whole(isnan(x)) == Longs{0, 1, 0});
    CHECK(whole(isfinite(floats({1, kNan, kInf, -kInf}))) == Longs{1, 0, 0, 0});
    CHECK(whole(any(x)) == Longs{1});
    CHECK(logsumexp(floats({-kInf, -kInf}), {0}).item() == -kInf);
    CHECK(logsumexp(floats({kInf, 1}), {0}).item() == kInf);
  });
}

TEST_CASE("values: sort is stable, NaN is largest, and unread results are not computed") {
  with_engines([] {
    const Tensor x = floats({2, kNan, -0.0f, kInf, 0, 2, -kInf, kNan});
    CHECK(whole(argsort(x)) == Longs{6, 2, 4, 0, 5, 3, 1, 7});
    CHECK(whole(argsort(x, 0, true)) == Longs{1, 7, 3, 0, 5, 2, 4, 6});
    CHECK(std::signbit(list(sort(x).values)[1]));
    CHECK(whole(topk(x, 3).indices) == Longs{1, 7, 3});
    CHECK(list(topk(x, 2, 0, false).values) == Floats{-kInf, 0});
    const auto [values, indices] = max(floats({1, 3, 3, 2, kNan, 0}, {2, 3}), 1);
    CHECK(list(slice(values, 0, 0, 1)) == Floats{3});
    CHECK(std::isnan(list(values)[1]));
    CHECK(whole(indices) == Longs{1, 1});
    const Tensor y = floats({3, 1, 3, 2});
    CHECK(slope(max(y, 0).values, y) == Floats{1, 0, 0, 0});
    CHECK(slope(topk(y, 2).values * floats({5, 7}), y) == Floats{5, 0, 7, 0});
  });
}

TEST_CASE("values: topk equals the start of a stable sort") {
  with_engines([] {
    const Tensor x = cast(randint(0, 40, {3, 777}, DType::Int64), DType::Float32);
    for (const bool largest : {true, false}) {
      const auto [values, indices] = topk(x, 60, 1, largest);
      const auto [sorted, places] = sort(x, 1, largest);
      CHECK(list(values) == list(slice(sorted, 1, 0, 60)));
      CHECK(whole(indices) == whole(slice(places, 1, 0, 60)));
    }
  });
}

TEST_CASE("values: conversions") {
  with_engines([] {
    const Tensor x = floats({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5});
    CHECK(list(round(x)) == Floats{-2, -2, 0, 0, 2, 2});
    CHECK(whole(cast(x, DType::Int32)) == Longs{-2, -1, 0, 0, 1, 2});
    CHECK(whole(cast(floats({0, -0.0F, 0.25, kNan}), DType::Bool)) == Longs{0, 0, 1, 1});
    CHECK(list(cast(cast(floats({1.00390625F, 3.1415927F}), DType::BFloat16), DType::Float32)) ==
          Floats{1, 3.140625F});
    CHECK(list(cast(cast(floats({65520, 1e-8F}), DType::Float16), DType::Float32)) ==
          Floats{kInf, 0});
  });
}

TEST_CASE("values: products of operands that several kernels compute") {
  with_engines([] {
    const Tensor a = floats({1, 1, 1, 1}, {1, 4}), b = floats({2, 2, 2, 2, 2, 2, 2, 2}, {2, 4});
    const Tensor both = a * 1000 + slice(b * 2, 0, 1, 2), w = ones({4, 1}).compute();
    CHECK(list(matmul(both, w)) == Floats{4016});
    CHECK(list(matmul(transpose(w), transpose(both))) == Floats{4016});
    CHECK(list(matmul(both * 0.5 + slice(b + 1, 0, 0, 1), w)) == Floats{2020});
    const auto doubles = [](const Tensor& t, const Ints& shape) {
      return reshape(cast(t, DType::Float64), shape).compute();
    };
    const Tensor image = doubles(a, {1, 1, 2, 2}), larger = doubles(b, {2, 1, 2, 2});
    const Tensor sum_of_both = image * 1000 + slice(larger * 2, 0, 1, 2);
    CHECK(list(conv2d(sum_of_both, doubles(w, {1, 1, 2, 2}))) == Floats{4016});
  });
}

TEST_CASE("values: gradients of a tensor that is used padded and unpadded") {
  with_engines([] {
    const Tensor x = floats({1, 2}, {1, 2}), w = floats({1, 1}, {1, 2});
    const Tensor c = floats({1, 1, 1, 1}, {2, 2}), d = floats({2, 2}, {1, 2});
    const Tensor y = matmul(x, transpose(w));
    const Tensor wide = x * w;
    const Tensor loss = sum(pad(wide, {0, 0, 0, 1}) * exp(c - 1)) + sum(wide * square(d) * 0.5);
    CHECK(list(matmul(grad(loss, wide), ones({2, 1}).compute())) == Floats{6});
    CHECK(list(grad(loss + sum(y), w)) == Floats{4, 8});
  });
}

TEST_CASE("values: ranges, slices and padding") {
  with_engines([] {
    CHECK(whole(arange(5, 0, -2)) == Longs{5, 3, 1});
    CHECK(list(arange(0, 1, 0.25, DType::Float32)) == Floats{0, 0.25, 0.5, 0.75});
    const Tensor x = longs({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    CHECK(whole(slice(x, 0, 2, -1, 3)) == Longs{2, 5, 8});
    CHECK(whole(slice(x, 0, 8, 1, -3)) == Longs{8, 5, 2});
    CHECK(whole(slice(x, 0, -1, std::numeric_limits<std::int64_t>::min(), -4)) == Longs{9, 5, 1});
    CHECK(whole(pad(slice(x, 0, 0, 3), {-1, 2}, 7)) == Longs{1, 2, 7, 7});
    const Tensor m = reshape(slice(x, 0, 0, 6), {2, 3});
    CHECK(whole(transpose(m)) == Longs{0, 3, 1, 4, 2, 5});
    CHECK(whole(index_select(m, 1, longs({2, 0}))) == Longs{2, 0, 5, 3});
    CHECK(whole(scatter_add(zeros({4}, DType::Int64), 0, longs({1, 1, 3}), longs({5, 6, 7}))) ==
          Longs{0, 11, 0, 7});
    CHECK(whole(one_hot(longs({1, 0}), 3)) == Longs{0, 1, 0, 1, 0, 0});
    CHECK(whole(select(m, 0, -1)) == Longs{3, 4, 5});
  });
}

TEST_CASE("values: an index out of range is an error when the value is read") {
  with_engines([] {
    const Tensor x = floats({1, 2, 3});
    for (const Longs& index : {Longs{0, 3}, Longs{-1}}) {
      CHECK_THROWS_AS(gather(x, 0, longs(index)).compute(), ValueError);
      CHECK_THROWS_AS(scatter_add(x, 0, longs(index), ones({longs(index).size(0)})).compute(),
                      ValueError);
    }
  });
}

TEST_CASE("values: cross entropy") {
  with_engines([] {
    const Tensor logits = floats({1, 2, 3, 1, 1, 1}, {2, 3});
    const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)) - 3,
                 second = std::log(3.0);
    CHECK(cross_entropy(logits, longs({2, 0})).item() == doctest::Approx((first + second) / 2));
    CHECK(cross_entropy(logits, longs({2, 0}), Reduction::Sum).item() ==
          doctest::Approx(first + second));
    CHECK(cross_entropy(logits, one_hot(longs({2, 0}), 3, DType::Float32)).item() ==
          doctest::Approx((first + second) / 2));
    const double smooth = 0.9 * second + 0.1 * second;
    CHECK(list(cross_entropy(logits, longs({2, 0}), Reduction::None, 0.1))[1] ==
          doctest::Approx(smooth));
    CHECK_THROWS_AS(cross_entropy(logits, longs({2, 3})).item(), ValueError);
    CHECK_THROWS_AS(cross_entropy(logits, longs({-1, 0})).item(), ValueError);
  });
}

TEST_CASE("values: random numbers follow their definition") {
  with_engines([] {
    Generator g(42);
    const Floats u = list(rand({5, 2}, DType::Float32, g));
    const Floats n = list(randn({6}, DType::Float32, g));
    const Longs r = whole(randint(-5, 12, {7}, DType::Int64, g));
    CHECK(g.counter() == 3);
    for (std::uint64_t k = 0; k < u.size(); ++k)
      CHECK(u[k] == uniform01(philox(42, k / 4, 0).v[k % 4]));
    for (std::uint64_t k = 0; k < n.size(); ++k) {
      const Philox4 block = philox(42, k / 4, 1);
      const double u1 = 1 - static_cast<double>(uniform01(block.v[k % 4 & 2]));
      const double angle =
          2 * 3.14159265358979 * static_cast<double>(uniform01(block.v[(k % 4 & 2) + 1]));
      const double wanted =
          std::sqrt(-2 * std::log(u1)) * (k % 2 == 0 ? std::cos(angle) : std::sin(angle));
      CHECK(n[k] == doctest::Approx(wanted).epsilon(1e-5));
    }
    for (std::uint64_t k = 0; k < r.size(); ++k)
      CHECK(r[k] == static_cast<std::int64_t>(philox(42, k / 4, 2).v[k % 4] * 17ull >> 32) - 5);
  });
}

TEST_CASE("values: random numbers repeat with their seed and differ between draws") {
  manual_seed(5);
  const Floats a = list(rand({8})), b = list(rand({8}));
  manual_seed(5);
  CHECK(list(rand({8})) == a);
  CHECK(list(rand({8})) == b);
  CHECK(a != b);
  for (const DType t : {DType::Float16, DType::BFloat16})
    for (const float v : list(rand({4096}, t))) REQUIRE((v >= 0 && v < 1));
}

TEST_CASE("values: random numbers have their distributions") {
  manual_seed(1);
  const Tensor n = randn({100000}), u = rand({100000}), d = dropout(ones({100000}), 0.25);
  CHECK(std::fabs(mean(n).item()) < 0.02);
  CHECK(var(n).item() == doctest::Approx(1).epsilon(0.02));
  CHECK(mean(u).item() == doctest::Approx(0.5).epsilon(0.01));
  CHECK(mean(d).item() == doctest::Approx(1).epsilon(0.01));
  CHECK(amax(d).item() == doctest::Approx(1 / 0.75));
  CHECK(mean(bernoulli({100000}, 0.3)).item() == doctest::Approx(0.3).epsilon(0.02));
}

TEST_CASE("values: response normalisation and adaptive pooling are PyTorch's") {
  with_engines([] {
    const Tensor x = reshape(remainder(arange(0, 10, 1, DType::Float32), 7) - 3, {1, 5, 2});
    const Floats odd = list(local_response_norm(x, 3, 0.5, 0.75, 2));
    const Floats even = list(local_response_norm(x, 4, 0.5, 0.75, 2));
    const Floats odd_wanted{-1.132186f, -0.9584147f, -0.3650208f, 0,           0.3650208f,
                            0.6857857f, 0.9988601f,  -0.9988601f, -0.6857857f, -0.3773952f};
    const Floats even_wanted{-1.239392f, -1.005947f, -0.4016009f, 0,           0.3236612f,
                             0.6909745f, 1.086219f,  -1.113263f,  -0.7421754f, -0.3710877f};
    for (std::size_t i = 0; i < odd.size(); ++i) {
      CHECK(odd[i] == doctest::Approx(odd_wanted[i]).epsilon(1e-5));
      CHECK(even[i] == doctest::Approx(even_wanted[i]).epsilon(1e-5));
    }
    const Tensor y = reshape(remainder(arange(0, 35, 1, DType::Float32), 11), {1, 5, 7});
    const Floats mean = list(adaptive_avg_pool2d(y, {3, 4}));
    const Floats mean_wanted{4,         5.5f,      3.833333f, 3.5f, 5.333333f, 5,
                             4.555556f, 4.833333f, 5.75f,     4.5f, 4.666667f, 2.5f};
    for (std::size_t i = 0; i < mean.size(); ++i)
      CHECK(mean[i] == doctest::Approx(mean_wanted[i]).epsilon(1e-6));
    CHECK(list(adaptive_max_pool2d(y, {3, 4})) ==
          Floats{8, 10, 10, 6, 10, 10, 10, 9, 10, 9, 10, 5});
  });
  CHECK_THROWS_AS(adaptive_avg_pool2d(zeros({2, 3}), {1, 1}), ShapeError);
  CHECK_THROWS_AS(adaptive_avg_pool2d(zeros({2, 3, 4}), {0, 1}), ValueError);
  CHECK_THROWS_AS(adaptive_max_pool2d(zeros({2, 3, 4}, DType::Int64), {1, 1}), DTypeError);
  CHECK_THROWS_AS(local_response_norm(zeros({4}), 3), ShapeError);
  CHECK_THROWS_AS(local_response_norm(zeros({4, 4}), 0), ValueError);
}

TEST_CASE("values: local contrast normalisation divides by the neighbourhood of each position") {
  // Against sums by hand in float64, for odd and even windows, with and without means.
  const std::int64_t height = 5, width = 7;
  manual_seed(11);
  const Tensor x = randn({2, 3, height, width}).compute(),
               means = randn({2, 3, height, width}).compute();
  const Floats values = list(x), centres = list(means);
  for (const std::int64_t size : {1, 2, 3, 6, 9})
    for (const bool centred : {false, true}) {
      const LocalContrastNormOptions options{size, 0.8, 0.75, 1.2, centred ? means : Tensor()};
      const Floats made = list(local_contrast_norm(x, options));
      for (std::int64_t i = 0; i < x.numel(); ++i) {
        const std::int64_t row = i / width % height, column = i % width;
        double sum = 0;
        for (std::int64_t r = row - (size - 1) / 2; r <= row + size / 2; ++r)
          for (std::int64_t c = column - (size - 1) / 2; c <= column + size / 2; ++c) {
            if (r < 0 || c < 0 || r >= height || c >= width) continue;
            const auto k = static_cast<std::size_t>(i + (r - row) * width + c - column);
            const double d =
                static_cast<double>(values[k]) - (centred ? static_cast<double>(centres[k]) : 0.0);
            sum += d * d;
          }
        const auto k = static_cast<std::size_t>(i);
        const double v = sum / static_cast<double>(size * size);
        CHECK(made[k] ==
              doctest::Approx(static_cast<double>(values[k]) * std::pow(1.2 + 0.8 * v, -0.75))
                  .epsilon(1e-5));
      }
    }
  CHECK(local_contrast_norm(zeros({0, 2, 3, 3})).shape() == Shape{0, 2, 3, 3});
  CHECK(local_contrast_norm(ones({1, 1, 3, 3}, DType::BFloat16)).dtype() == DType::BFloat16);
  CHECK_THROWS_AS(local_contrast_norm(zeros({4, 4})), ShapeError);
  CHECK_THROWS_AS(local_contrast_norm(zeros({1, 1, 4, 4}), {.size = 0}), ValueError);
  CHECK_THROWS_AS(local_contrast_norm(zeros({1, 1, 4, 4}, DType::Int64)), DTypeError);
  CHECK_THROWS_AS(local_contrast_norm(zeros({1, 1, 4, 4}), {.means = zeros({2, 1, 4, 4})}),
                  ShapeError);
}

TEST_CASE("values: attention is PyTorch's") {
  const auto sequence = [](const Shape& shape, int step, int modulus) {
    const Tensor place = arange(0, shape.numel(), 1, DType::Float32);
    return reshape(remainder(place * step, modulus) / modulus - 0.4,
                   Ints(shape.begin(), shape.end()));
  };
  with_engines([&] {
    const Tensor q = sequence({2, 4, 3, 5}, 7, 11), k = sequence({2, 2, 4, 5}, 5, 13),
                 v = sequence({2, 2, 4, 2}, 3, 7);
    const Floats causal =
        list(scaled_dot_product_attention(q, k, v, {}, {.causal = true, .enable_gqa = true}));
    const Floats causal_wanted{-0.4f,       0.02857143f, 0.005674114f, -0.03904092f,
                               0.1194615f,  -0.112912f,  -0.4f,        0.02857143f,
                               0.05987859f, -0.048075f,  0.1551753f,   -0.1218371f};
    const Tensor seen = ne(remainder(reshape(arange(0, 12), {3, 4}), 3), 1);
    const Floats masked =
        list(scaled_dot_product_attention(q, k, v, seen, {.scale = 0.7, .enable_gqa = true}));
    const Floats masked_wanted{0.001051612f, -0.2060168f, 0.3862388f,  -0.1851898f,
                               0.06702221f,  -0.1512154f, 0.04300337f, -0.2188182f,
                               0.3857143f,   -0.1857143f, 0.1258476f,  -0.1963484f};
    for (std::size_t i = 0; i < causal_wanted.size(); ++i) {
      CHECK(causal[i] == doctest::Approx(causal_wanted[i]).epsilon(1e-4));
      CHECK(masked[i] == doctest::Approx(masked_wanted[i]).epsilon(1e-4));
    }
    CHECK(list(scaled_dot_product_attention(ones({1, 2}), ones({1, 2}), ones({1, 2}),
                                            scalar(false, DType::Bool))) == Floats{0, 0});
  });
  const Tensor x = zeros({2, 3, 4});
  CHECK_THROWS_AS(scaled_dot_product_attention(x, zeros({2, 3, 5}), x), ShapeError);
  CHECK_THROWS_AS(scaled_dot_product_attention(x, zeros({2, 2, 4}), x), ShapeError);
  CHECK_THROWS_AS(scaled_dot_product_attention(x, x, zeros({2, 3, 4}, DType::Float64)), DTypeError);
  CHECK_THROWS_AS(
      scaled_dot_product_attention(x, zeros({3, 3, 4}), zeros({3, 3, 4}), {}, {.enable_gqa = true}),
      ShapeError);
}
