// Special functions against values with 40 digits, their ends and refusals; order statistics,
// samples and selections that PyTorch's samples (tests/conformance) do not show.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Doubles = std::vector<double>;
using Ints64 = std::vector<std::int64_t>;
using OfOne = Tensor (*)(const Tensor&);

Doubles list(const Tensor& x) { return cast(x, DType::Float64).to_vector<double>(); }
Tensor numbers(const Doubles& values) { return Tensor::from(values, {std::ssize(values)}); }

struct Point {
  const char* name;
  OfOne f;
  double x, value;
};
constexpr Point kPoints[] = {
#define TENON_VALUE(name, x, value) {#name, static_cast<OfOne>(name), x, value},
#define TENON_VALUE_OF_TWO(...)
#include "cases/special_values.inc"
#undef TENON_VALUE
#undef TENON_VALUE_OF_TWO
};

Tensor polygamma_of(const Tensor& n, const Tensor& x) {
  return polygamma(static_cast<std::int64_t>(list(n)[0]), x);
}
struct PointOfTwo {
  const char* name;
  Tensor (*f)(const Tensor&, const Tensor&);
  double a, x, value;
};
constexpr auto polygamma_f = polygamma_of;
const PointOfTwo kPointsOfTwo[] = {
#define TENON_VALUE(...)
#define TENON_VALUE_OF_TWO(name, a, x, value) {#name, TENON_F_##name, a, x, value},
#define TENON_F_zeta zeta
#define TENON_F_igamma igamma
#define TENON_F_igammac igammac
#define TENON_F_polygamma polygamma_f
#include "cases/special_values.inc"
#undef TENON_VALUE
#undef TENON_VALUE_OF_TWO
};

// The error relative to the value, and absolute near zeros.
void check_value(const char* name, double x, double found, double wanted, double tolerance) {
  INFO(std::string(name));
  CAPTURE(x);
  CHECK(std::fabs(found - wanted) <= tolerance * std::max(std::fabs(wanted), 0.3) + 1e-300);
}

void check_list(const Tensor& found, const Doubles& wanted) {
  const Doubles values = list(found);
  REQUIRE(values.size() == wanted.size());
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    CAPTURE(k);
    if (std::isnan(wanted[k]))
      CHECK(std::isnan(values[k]));
    else if (std::isinf(wanted[k]))
      CHECK(values[k] == wanted[k]);
    else
      CHECK(values[k] == doctest::Approx(wanted[k]).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("special functions: values in float64 and float32") {
  for (const Point& p : kPoints) {
    // A large angle has lost digits before its sine is taken.
    check_value(p.name, p.x, list(p.f(numbers({p.x})))[0], p.value,
                4e-15 * (1 + std::fabs(p.x) / 20));
    const Tensor single = cast(numbers({p.x}), DType::Float32);
    const double near = list(p.f(cast(single, DType::Float64)))[0];
    const double rounded = static_cast<double>(static_cast<float>(near));
    // Two functions are computed in float, the others in double and rounded once.
    const bool in_float = std::string(p.name) == "erfc" || std::string(p.name) == "erfinv";
    if (std::isfinite(rounded))
      check_value(p.name, p.x, list(p.f(single))[0], near, in_float ? 4e-7 : 1.2e-7);
  }
  for (const PointOfTwo& p : kPointsOfTwo)
    check_value(p.name, p.x, list(p.f(numbers({p.a}), numbers({p.x})))[0], p.value, 2e-13);
}

TEST_CASE("special functions: zeros, poles, infinities and NaN") {
  const Tensor ends = numbers({0.0, -0.0, kInf, -kInf, kNan});
  check_list(erfc(ends), {1, 1, 0, 2, kNan});
  check_list(erfcx(ends), {1, 1, 0, kInf, kNan});
  check_list(erfinv(numbers({0, 1, -1, 1.5, kNan})), {0, kInf, -kInf, kNan, kNan});
  check_list(ndtri(numbers({0, 1, 0.5, -0.1, kNan})), {-kInf, kInf, 0, kNan, kNan});
  check_list(log_ndtr(ends), {std::log(0.5), std::log(0.5), 0, -kInf, kNan});
  check_list(lgamma(numbers({0, -3, 1, 2, kInf, -kInf, kNan})),
             {kInf, kInf, 0, 0, kInf, kInf, kNan});
  check_list(digamma(numbers({0.0, -0.0, -3, kInf, kNan})), {-kInf, kInf, kNan, kInf, kNan});
  check_list(polygamma(1, numbers({0, -2, kInf})), {kInf, kInf, 0});
  check_list(sinc(numbers({0, 1, -2, kInf, kNan})), {1, 0, 0, 0, kNan});
  check_list(i0e(ends), {1, 1, 0, 0, kNan});
  check_list(i1(ends), {0, 0, kInf, -kInf, kNan});
  check_list(modified_bessel_k0(numbers({0, -1, kInf})), {kInf, kNan, 0});
  check_list(bessel_j0(ends), {1, 1, 0, 0, kNan});
  check_list(bessel_y1(numbers({0, -1, kInf})), {-kInf, kNan, 0});
  check_list(zeta(numbers({1, 0.5, 2, 2, 2.5, kNan}), numbers({2, 2, -3, -1.5, -1.5, 1})),
             {kInf, kNan, kInf, 4 + 1 / 2.25 + 4.934802200544679, kNan, kNan});
  check_list(igamma(numbers({0, 2, 2, -1, kInf, 0}), numbers({1, 0, kInf, 1, 1, 0})),
             {1, 0, 1, kNan, 0, kNan});
  check_list(atanh(numbers({1, -1, 2})), {kInf, -kInf, kNan});
  check_list(acosh(numbers({1, 0.5, 1e300})), {0, kNan, std::acosh(1e300)});
  check_list(hypot(numbers({3e300, kInf, 0, kNan}), numbers({4e300, kNan, 0, 1})),
             {5e300, kInf, 0, kNan});
}

// The loops of float32 against the operations that compute float64: lengths around vectors and
// blocks, views, 16-bit types, and a graph around the function.
TEST_CASE("special functions: float32 agrees with float64 for every length and dtype") {
  struct Range {
    const char* name;
    OfOne f;
    double low, high;
  };
  const Range ranges[] = {{"erfc", erfc, -6, 9},
                          {"erfinv", erfinv, -1, 1},
                          {"ndtri", ndtri, 0, 1},
                          {"lgamma", lgamma, -9.3, 40},
                          {"digamma", digamma, -9.3, 40},
                          {"polygamma", [](const Tensor& x) { return polygamma(1, x); }, -9.3, 40},
                          {"i0e", i0e, -30, 30},
                          {"i1e", i1e, -30, 30},
                          {"i0", i0, -30, 30},
                          {"i1", i1, -30, 30},
                          {"bessel_j0", bessel_j0, -40, 40},
                          {"bessel_j1", bessel_j1, -40, 40}};
  for (const Range& range : ranges)
    for (const std::int64_t n : {0, 1, 2, 15, 16, 17, 63, 64, 65, 129, 1023, 1025, 4099}) {
      INFO(std::string(range.name));
      CAPTURE(n);
      const Tensor ramp = (arange(n, DType::Float64) + 0.37) / static_cast<double>(n + 1);
      const Tensor x = cast(ramp * (range.high - range.low) + range.low, DType::Float32).compute();
      const Doubles wanted = list(range.f(cast(x, DType::Float64))), found = list(range.f(x));
      REQUIRE(found.size() == wanted.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        CHECK(std::fabs(found[i] - wanted[i]) <= 4e-7 * std::max(std::fabs(wanted[i]), 0.3));
      // Each element has the same bits alone, in a view and among others.
      CHECK(list(range.f(flip(x, {0}))) == list(flip(range.f(x), {0})));
      if (n > 2) CHECK(list(range.f(slice(x, 0, 1, n, 2))) == list(slice(range.f(x), 0, 1, n, 2)));
      if (n > 1)
        CHECK(list(range.f(slice(x, 0, n / 2, n / 2 + 1)))[0] ==
              found[static_cast<std::size_t>(n / 2)]);
      const Tensor half = cast(x, DType::BFloat16);
      const Tensor rounded = cast(range.f(cast(half, DType::Float32)), DType::BFloat16);
      check_list(range.f(half).compute(), list(rounded.compute()));
    }
  const Tensor x = Tensor::from(
      std::vector<float>{0.0f, -0.0f, 3.0f, 3e38f, 1e-40f, std::numeric_limits<float>::infinity()},
      {6});
  const Tensor y = slice(x, 0, 2, 3);
  CHECK(list(hypot(x, full({6}, 4)))[2] == 5);
  CHECK(list(hypot(x, x))[3] == kInf);
  CHECK(list(hypot(x, x))[4] == doctest::Approx(std::sqrt(2.0) * 1e-40).epsilon(1e-4));
  CHECK(list(hypot(x, y * kNan))[5] == kInf);
  CHECK(std::isnan(list(hypot(x, y * kNan))[0]));
  const double far = 2e6;  // beyond the fast reduction of angles
  CHECK(list(bessel_j0(cast(numbers({far, 1, 2 * far}), DType::Float32))) ==
        list(cast(bessel_j0(numbers({far, 1, 2 * far})), DType::Float32)));
}

TEST_CASE("special functions: ends in float32") {
  const auto single = [](const Tensor& x) { return cast(x, DType::Float32); };
  const Tensor ends = single(numbers({0.0, -0.0, kInf, -kInf, kNan}));
  check_list(erfc(ends), {1, 1, 0, 2, kNan});
  check_list(erfc(single(numbers({9.5, 11, 1e30, -1e30}))),
             {list(erfc(numbers({9.5})))[0], 0, 0, 2});
  check_list(erfinv(single(numbers({0, 1, -1, 1.5, kNan}))), {0, kInf, -kInf, kNan, kNan});
  check_list(ndtri(single(numbers({0, 1, 0.5, -0.1, kNan}))), {-kInf, kInf, 0, kNan, kNan});
  check_list(lgamma(single(numbers({0, -3, 1, 2, kInf, -kInf, kNan, -1e30}))),
             {kInf, kInf, 0, 0, kInf, kInf, kNan, kInf});
  check_list(digamma(single(numbers({0.0, -0.0, -3, kInf, kNan, -kInf}))),
             {-kInf, kInf, kNan, kInf, kNan, kNan});
  check_list(polygamma(1, single(numbers({0, -2, kInf, kNan}))), {kInf, kInf, 0, kNan});
  check_list(i0e(ends), {1, 1, 0, 0, kNan});
  check_list(i1e(ends), {0, 0, 0, 0, kNan});
  check_list(i0(ends), {1, 1, kInf, kInf, kNan});
  check_list(i1(ends), {0, 0, kInf, -kInf, kNan});
  check_list(i0(single(numbers({1e4, -1e4}))), {kInf, kInf});
  check_list(bessel_j0(ends), {1, 1, 0, 0, kNan});
  check_list(bessel_j1(ends), {0, 0, 0, 0, kNan});
}

TEST_CASE("special functions: gradients at their own formulas") {
  const auto slope = [](const std::function<Tensor(const Tensor&)>& f, double x) {
    const Tensor at = variable(numbers({x}));
    return list(grad(f(at).sum(), at))[0];
  };
  // At 0 the derivatives of these are limits, and their graph divides by x.
  CHECK(slope(bessel_j1, 0) == doctest::Approx(0.5));
  CHECK(slope(i1, 0) == doctest::Approx(0.5));
  CHECK(slope(i1e, 0) == doctest::Approx(0.5));
  CHECK(slope(sinc, 0) == doctest::Approx(0));
  CHECK(slope([](const Tensor& x) { return lgamma(x); }, 1e-3) ==
        doctest::Approx(list(digamma(numbers({1e-3})))[0]));
  CHECK(slope([](const Tensor& x) { return zeta(scalar(3, DType::Float64), x); }, 2) ==
        doctest::Approx(-3 * list(zeta(numbers({4}), numbers({2})))[0]));
  const Tensor x = variable(numbers({1.5}));
  CHECK_THROWS_AS(grad(airy_ai(x).sum(), x), ValueError);
  CHECK_THROWS_AS(grad(zeta(x, numbers({2})).sum(), x), ValueError);
  CHECK_THROWS_AS(grad(igamma(x, numbers({2})).sum(), x), ValueError);
  // The other operand has its gradient.
  CHECK(slope([&](const Tensor& y) { return igamma(x, y); }, 2) ==
        doctest::Approx(std::exp(0.5 * std::log(2.0) - 2 - std::lgamma(1.5))));
}

TEST_CASE("special functions: refusals") {
  CHECK_THROWS_AS(polygamma(-1, numbers({1})), ValueError);
  CHECK_THROWS_AS(mvlgamma(numbers({1}), 0), ValueError);
  CHECK_THROWS_AS(legendre_polynomial_p(numbers({1}), 5000), ValueError);
  CHECK_THROWS_AS(zeta(zeros({2}), zeros({3})), ShapeError);
  CHECK_THROWS_AS(multi_dot({zeros({2, 3}), zeros({2, 3})}), ShapeError);
  CHECK_THROWS_AS(grid_sample(zeros({1, 1, 2, 2}), zeros({1, 1, 1, 3})), ShapeError);
  CHECK_THROWS_AS(affine_grid(zeros({1, 3, 3}), {1, 1, 2, 2}), ShapeError);
  CHECK_THROWS_AS(interpolate(zeros({1, 1, 2}), {4}, InterpolateOptions{.antialias = true}),
                  ValueError);
  CHECK_THROWS_AS(
      scatter_reduce(zeros({2}), 0, zeros({3}, DType::Int64), zeros({2}), ScatterReduction::Sum),
      ShapeError);
  CHECK_THROWS_AS(masked::sum(zeros({2}), zeros({2})), DTypeError);
  CHECK_THROWS_AS(windows::hann(-1), ValueError);
  CHECK_THROWS_AS(frexp(zeros({2}, DType::Int64)), DTypeError);
  CHECK_THROWS_AS(gcd(zeros({2}), zeros({2})), DTypeError);
}

TEST_CASE("parts of numbers: neighbours, exponents and signs in every dtype") {
  for (const DType dtype : {DType::Float64, DType::Float32, DType::Float16, DType::BFloat16}) {
    CAPTURE(name(dtype));
    const Tensor x = cast(numbers({0, 1, -1, 3.5, -0.75, 64, 1000, 0.0}), dtype);
    const Tensor up = nextafter(x, full({}, kInf, dtype));
    CHECK(list(all(gt(up, x)))[0] == 1);
    // Nothing lies between: going back gives the same number.
    CHECK(list(nextafter(up, full({}, -kInf, dtype))) == list(x));
    const auto [mantissa, exponent] = frexp(x);
    CHECK(list(cast(mantissa, DType::Float64) * exp2(cast(exponent, DType::Float64))) == list(x));
    CHECK(list(all(lt(abs(mantissa), 1) & (ge(abs(mantissa), 0.5) | eq(x, 0))))[0] == 1);
  }
  CHECK(list(nextafter(numbers({0.0}), numbers({1.0})))[0] == std::nextafter(0.0, 1.0));
  CHECK(list(nextafter(numbers({kInf}), numbers({0.0})))[0] == std::numeric_limits<double>::max());
  CHECK(list(nextafter(numbers({std::numeric_limits<double>::max()}), numbers({kInf})))[0] == kInf);
  CHECK(list(signbit(numbers({-0.0, 0.0, -2, kInf, -kInf}))) == Doubles{1, 0, 1, 0, 1});
}

TEST_CASE("samples: moments and ranges") {
  const auto moments = [](const Tensor& x) {
    return std::pair(list(mean(cast(x, DType::Float64)))[0],
                     list(stddev(cast(x, DType::Float64)))[0]);
  };
  const Shape shape{40000};
  const auto near = [](double wanted) { return doctest::Approx(wanted).epsilon(0.03); };
  CHECK(moments(normal(shape, 3, 2, DType::Float32, Generator(1))).first == near(3));
  CHECK(moments(normal(shape, 3, 2, DType::Float32, Generator(1))).second == near(2));
  CHECK(moments(exponential(shape, 4, DType::Float32, Generator(2))).first == near(0.25));
  CHECK(moments(geometric(shape, 0.25, DType::Float32, Generator(3))).first == near(4));
  CHECK(list(amin(geometric(shape, 0.25, DType::Float32, Generator(3))))[0] == 1);
  CHECK(moments(uniform(shape, 2, 6, DType::Float64, Generator(4))).first == near(4));
  CHECK(list(median(cauchy(shape, 5, 1, DType::Float32, Generator(5))))[0] == near(5));
  CHECK(moments(log(log_normal(shape, 1, 0.5, DType::Float64, Generator(6)))).first == near(1));
  const Tensor x = randn(shape, DType::Float32, Generator(7));
  const auto [center, width] = moments(alpha_dropout(x, 0.3, true, Generator(8)));
  CHECK(std::fabs(center) < 0.03);
  CHECK(width == near(1));
  const Tensor channels = feature_alpha_dropout(ones({4, 3, 5}), 0.5, true, Generator(9));
  CHECK(list(amax(channels, {2})) == list(amin(channels, {2})));
  const Tensor slopes = rrelu(full({1000}, -1), 0.1, 0.3, true, Generator(10));
  CHECK(list(amin(slopes))[0] >= -0.3);
  CHECK(list(amax(slopes))[0] <= -0.1);
  CHECK(randint_like(x, 3, 5, Generator(11)).dtype() == DType::Float32);
}

TEST_CASE("fractional pooling: places of PyTorch") {
  const Tensor x = reshape(arange(256, DType::Float32), {1, 1, 16, 16});
  const Tensor samples = Tensor::from({0.99, 0.5}, {1, 1, 2});  // for the width, for the height
  const auto [values, indices] = fractional_max_pool2d(x, 1, 8, cast(samples, DType::Float32));
  CHECK(list(slice(flatten(values), 0, 0, 8)) == Doubles{0, 2, 4, 6, 8, 10, 12, 15});
  CHECK(list(indices) == list(values));
  const auto volume = fractional_max_pool3d(reshape(x, {1, 4, 4, 4, 4}), 2, 2);
  CHECK(volume.values.shape() == Shape{1, 4, 2, 2, 2});
  CHECK(list(gather(reshape(x, {4, 64}), 1, reshape(volume.indices, {4, 8}))) ==
        list(volume.values));
  CHECK_THROWS_AS(fractional_max_pool2d(x, 3, 15), ShapeError);
}

TEST_CASE("histograms of rows") {
  const Tensor x = Tensor::from({0.1, 0.2, 0.9, 0.8, 0.5, 0.1, 1.0, 1.0}, {4, 2});
  const Histogram found = histogramdd(x, Ints{2, 2}, {.ranges = {{0, 1}, {0, 1}}});
  CHECK(list(found.counts) == Doubles{1, 0, 1, 2});
  CHECK(found.edges.size() == 2);
  CHECK(list(found.edges[0]) == Doubles{0, 0.5, 1});
  const Histogram dense = histogramdd(x, Ints{2, 2}, {.ranges = {{0, 1}, {0, 1}}, .density = true});
  CHECK(list(dense.counts) == Doubles{1, 0, 1, 2});
  CHECK(list(histogram(numbers({}), 2).counts) == Doubles{0, 0});
}

TEST_CASE("masked: indices, and reductions over no element") {
  const Tensor x = Tensor::from({3.0, 1.0, 2.0, 5.0, 4.0, 6.0}, {2, 3});
  const Tensor mask = gt(x, 2) & lt(x, 6), none = gt(x, 10);
  CHECK(list(masked::argmax(x, mask, 1)) == Doubles{0, 0});
  CHECK(list(masked::argmin(x, mask, 1)) == Doubles{0, 1});
  CHECK(list(masked::argmax(x, mask)) == Doubles{3});
  CHECK(masked::argmin(x, mask, {}, true).shape() == Shape{1, 1});
  CHECK(list(masked::sum(x, none)) == Doubles{0});
  CHECK(list(masked::prod(x, none)) == Doubles{1});
  CHECK(list(masked::amax(x, none)) == Doubles{-kInf});
  CHECK(list(masked::amin(cast(x, DType::Int8), none)) == Doubles{127});
  CHECK(std::isnan(list(masked::mean(x, none))[0]));
  CHECK(std::isnan(list(masked::median(x, none, 1))[1]));
}

TEST_CASE("gradients of a median with equal elements, and of entr at 0, are PyTorch's") {
  const Tensor x = variable(numbers({2, 1, 2, 3, 2}));
  const double third = 1.0 / 3;
  check_list(grad(median(x), x), {third, 0, third, 0, third});
  const Tensor y = variable(numbers({1, kNan, 0, kNan}));
  check_list(grad(median(y), y), {0, 0, 0, 1});
  const Tensor p = variable(numbers({0, 1, -1}));
  check_list(grad(entr(p).sum(), p), {kInf, -1, kNan});
}

TEST_CASE("unique and masked_select keep gradients, and compute pending inputs once") {
  const Tensor x = Tensor::from({3.0, 1.0, 2.0}, {3});
  CHECK(list(grad(masked_select(square(x), gt(square(x), 2)).sum(), x)) == Doubles{6, 0, 4});
  const Tensor v = variable(x);
  CHECK(list(grad(unique(v * 2).values.sum(), v)) == Doubles{2, 2, 2});
}

TEST_CASE("segments that do not fill their axis are refused at run time") {
  const Tensor lengths = Tensor::from(Ints64{1, 1}, {2});
  CHECK_THROWS_AS((void)list(segment_reduce(ones({4}), lengths, ScatterReduction::Sum)),
                  ValueError);
}
