// Operations that take in elements one after another (running sums and extremes, scattered
// extremes), order statistics, and remainders: the CPU's kernels against the reference engine, and
// against definitions in float64.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tenon/elementwise.h>
#include <tenon/functional.h>
#include <tenon/joining.h>
#include <tenon/scattering.h>
#include <tenon/statistics.h>
#include <tenon/tenon.h>

using namespace tenon;

namespace in_order {

using Doubles = std::vector<double>;
using Longs = std::vector<std::int64_t>;

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

Doubles list(const Tensor& x) { return cast(x, DType::Float64).to_vector<double>(); }

void check_equal(const Doubles& a, const Doubles& b, double tolerance = 0) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    if (std::isnan(b[i]) || std::isinf(b[i])) {
      CHECK((std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i]));
    } else {
      CHECK(std::fabs(a[i] - b[i]) <= tolerance * (1 + std::fabs(b[i])));
    }
  }
}

// The same computation by the engine of loops over composed operations.
Doubles by_reference(const std::function<Tensor()>& f) {
  set_engine("reference");
  Doubles out;
  try {
    out = list(f());
  } catch (...) {
    set_engine("fast");
    throw;
  }
  set_engine("fast");
  return out;
}

Tensor input(const Shape& shape, DType dtype, std::uint64_t seed) {
  if (is_floating(dtype))
    return cast(randn(shape, DType::Float32, Generator(seed)), dtype).compute();
  return cast(randint(is_bool(dtype) || dtype == DType::UInt8 ? 0 : -3, is_bool(dtype) ? 2 : 4,
                      shape, DType::Int64, Generator(seed)),
              dtype)
      .compute();
}

constexpr DType kDTypes[] = {DType::Float32,  DType::Float64, DType::Float16,
                             DType::BFloat16, DType::Int64,   DType::Int32,
                             DType::Int8,     DType::UInt8,   DType::Bool};

double tolerance_of(DType dtype) {
  if (dtype == DType::BFloat16) return 2e-2;
  if (dtype == DType::Float16) return 2e-3;
  return dtype == DType::Float32 ? 2e-5 : 1e-12;
}

using Running = Tensor (*)(const Tensor& x, int axis);
const std::pair<const char*, Running> kRunning[] = {
    {"cumsum", [](const Tensor& x, int axis) { return cumsum(x, axis); }},
    {"cumprod", [](const Tensor& x, int axis) { return cumprod(x, axis); }},
    {"cummax", [](const Tensor& x, int axis) { return cummax(x, axis).values; }},
    {"cummax indices", [](const Tensor& x, int axis) { return cummax(x, axis).indices; }},
    {"cummin", [](const Tensor& x, int axis) { return cummin(x, axis).values; }},
    {"cummin indices", [](const Tensor& x, int axis) { return cummin(x, axis).indices; }}};

}  // namespace in_order

using namespace in_order;

TEST_CASE("in order: running operations of every dtype, odd sizes, each axis") {
  for (const DType dtype : kDTypes)
    for (const Shape& shape :
         {Shape{1}, Shape{7}, Shape{17, 1}, Shape{1, 33}, Shape{9, 5}, Shape{3, 11, 4},
          Shape{2, 5, 300}, Shape{0, 3}, Shape{3, 0}, Shape{}}) {
      const Tensor x = input(shape, dtype, 3);
      for (int axis = 0; axis < std::max(1, shape.rank()); ++axis)
        for (const auto& [what, f] : kRunning) {
          CAPTURE(what);
          CAPTURE(shape.str());
          CAPTURE(name(dtype));
          check_equal(list(f(x, axis)), by_reference([&, run = f] { return run(x, axis); }),
                      tolerance_of(dtype));
        }
    }
}

TEST_CASE("in order: running operations over views") {
  const Tensor x = input({12, 10, 6}, DType::Float32, 5);
  const Tensor views[] = {transpose(x, 0, 2), x.index({Slice(1, 11, 3), Slice(), 2}), flip(x, {1}),
                          expand(slice(x, 1, 0, 1), {12, 4, 6}), reshape(x, {30, 24})};
  for (const Tensor& view : views)
    for (int axis = 0; axis < view.rank(); ++axis)
      for (const auto& [what, f] : kRunning) {
        CAPTURE(what);
        CAPTURE(view.shape().str());
        check_equal(list(f(view, axis)), by_reference([&, run = f] { return run(view, axis); }),
                    2e-5);
      }
}

TEST_CASE(
    "in order: long rows are summed in double, with the same bits for any number of threads") {
  for (const Shape& shape : {Shape{100003}, Shape{37, 5001}, Shape{5001, 37}}) {
    const Tensor x = input(shape, DType::Float32, 7);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto values = x.to_vector<float>();
      std::int64_t inner = 1;
      for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
      const std::int64_t size = shape[axis];
      Doubles wanted(values.size());
      for (std::int64_t i = 0; i < x.numel(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const bool first = i / inner % size == 0;
        wanted[at] = values[at] + (first ? 0 : wanted[at - static_cast<std::size_t>(inner)]);
      }
      set_threads(1);
      const auto one = cumsum(x, axis).to_vector<float>();
      set_threads(3);
      CHECK(cumsum(x, axis).to_vector<float>() == one);
      set_threads(0);
      for (std::size_t i = 0; i < one.size(); i += 97)
        CHECK(one[i] == static_cast<float>(wanted[i]));
    }
  }
}

TEST_CASE("in order: NaN and infinities in running extremes") {
  const Tensor x = Tensor::from(Doubles{1, kInf, 2, kNan, kInf, kNan, -kInf, 3}, {8});
  CHECK(cummax(x, 0).indices.to_vector<std::int64_t>() == Longs{0, 1, 1, 3, 3, 5, 5, 5});
  CHECK(cummin(x, 0).indices.to_vector<std::int64_t>() == Longs{0, 0, 0, 3, 3, 5, 5, 5});
  CHECK(cummax(Tensor::from(Longs{2, 2, 1, 2}, {4}), 0).indices.to_vector<std::int64_t>() ==
        Longs{0, 1, 1, 3});
}

TEST_CASE("in order: gradients and second derivatives of running and whole products, with zeros") {
  const Tensor x = Tensor::from(Doubles{1.5, 0, -2, 0.5, 3, 1, 0, 0, 2, -1, 1.25, 0.75}, {3, 4});
  const Tensor w = input({3, 4}, DType::Float64, 11), v = input({3, 4}, DType::Float64, 12);
  const std::pair<const char*, std::function<Tensor(const Tensor&)>> cases[] = {
      {"cumprod axis 0", [&](const Tensor& t) { return sum(cumprod(t, 0) * w); }},
      {"cumprod axis 1", [&](const Tensor& t) { return sum(cumprod(t, 1) * w); }},
      {"cumprod reversed",
       [&](const Tensor& t) { return sum(flip(cumprod(flip(t, {1}), 1), {1}) * w); }},
      {"cumsum squared", [&](const Tensor& t) { return sum(square(cumsum(t, 1)) * w); }},
      {"prod axis 0", [&](const Tensor& t) { return sum(prod(t, 0) * w); }},
      {"prod axis 1", [&](const Tensor& t) { return sum(square(prod(t, 1))); }},
      {"prod of all", [&](const Tensor& t) { return prod(t + 1.0); }},
      {"prod of both axes",
       [&](const Tensor& t) {
         return sum(prod(reshape(t, {2, 3, 2}), {0, 2}) * 2.0);
       }},
      {"cummax", [&](const Tensor& t) { return sum(square(cummax(t, 1).values) * w); }}};
  for (const auto& [what, f] : cases) {
    CAPTURE(what);
    const auto slope = [&, run = f](const Tensor& t) { return sum(grad(run(t), t) * v); };
    for (const auto& function :
         {std::function<Tensor(const Tensor&)>(f), std::function<Tensor(const Tensor&)>(slope)}) {
      const Doubles found = list(grad(function(x), x)), at = list(x);
      // cummax has ties at the zeros, where the slope is not unique
      if (std::strcmp(what, "cummax") == 0) continue;
      for (std::size_t k = 0; k < at.size(); ++k) {
        Doubles above = at, below = at;
        above[k] += 1e-5, below[k] -= 1e-5;
        const double wanted = (function(Tensor::from(above, {3, 4})).item() -
                               function(Tensor::from(below, {3, 4})).item()) /
                              2e-5;
        CHECK(found[k] == doctest::Approx(wanted).epsilon(1e-5).scale(1));
      }
    }
    check_equal(list(grad(f(x), x)), by_reference([&, run = f] { return grad(run(x), x); }), 1e-12);
  }
}

TEST_CASE("in order: gradient of a product in 16 bits") {
  const Tensor x = cast(Tensor::from(Doubles{1, 2, 4, 0.5}, {4}), DType::Float16);
  CHECK(list(grad(prod(x), x)) == Doubles{4, 2, 1, 8});
  CHECK(list(grad(sum(cumprod(x, 0)), x)) == Doubles{15, 7, 3, 8});
}

TEST_CASE("in order: scattered extremes against the composed operation") {
  const Tensor index = randint(0, 5, {7, 6}, DType::Int64, Generator(2)).compute();
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16,
                            DType::Int64, DType::Int32, DType::UInt8})
    for (const int axis : {0, 1})
      for (const bool self : {true, false})
        for (const ScatterReduction how : {ScatterReduction::Amax, ScatterReduction::Amin}) {
          CAPTURE(name(dtype));
          CAPTURE(axis);
          const Tensor base = input({8, 6}, dtype, 4), updates = input({7, 6}, dtype, 5);
          const auto f = [&] { return scatter_reduce(base, axis, index, updates, how, self); };
          check_equal(list(f()), by_reference(f));
        }
}

TEST_CASE("in order: scattered extremes of NaN and infinities, and shared gradients") {
  const Tensor base = Tensor::from(Doubles{0, 1, kNan, 3, -kInf}, {5}),
               updates = Tensor::from(Doubles{kNan, 5, 2, 1, 7, 7, -kInf}, {7});
  const Tensor index = Tensor::from(Longs{0, 0, 2, 1, 3, 3, 4}, {7});
  for (const ScatterReduction how : {ScatterReduction::Amax, ScatterReduction::Amin})
    for (const bool self : {true, false}) {
      const auto f = [&] { return scatter_reduce(base, 0, index, updates, how, self); };
      check_equal(list(f()), by_reference(f));
    }
  const Tensor x = Tensor::from(Doubles{1, 7}, {2}), u = Tensor::from(Doubles{7, 7, 2, 3}, {4});
  const Tensor at = Tensor::from(Longs{1, 1, 0, 0}, {4});
  const Tensor y =
      sum(scatter_reduce(x, 0, at, u, ScatterReduction::Amax) * Tensor::from(Doubles{2, 6}, {2}));
  const std::vector<Tensor> slopes = grad(y, std::vector<Tensor>{x, u});
  CHECK(list(slopes[0]) == Doubles{0, 2});
  CHECK(list(slopes[1]) == Doubles{2, 2, 0, 2});
}

TEST_CASE("in order: an index out of range is refused") {
  const Tensor index = Tensor::from(Longs{0, 3}, {2});
  CHECK_THROWS_AS(scatter_reduce(zeros({3}), 0, index, ones({2}), ScatterReduction::Amax).compute(),
                  ValueError);
}

TEST_CASE("in order: every rank of a row, with ties, NaN and infinities") {
  for (const DType dtype : kDTypes) {
    if (is_bool(dtype)) continue;
    for (const std::int64_t n : {1, 2, 5, 33, 700}) {
      Tensor x = input({3, n}, dtype, 8);
      if (is_floating(dtype) && n > 4) {
        const Tensor ramp = arange(n);
        x = where(eq(ramp, 2), kNan,
                  where(eq(ramp, 4), kInf, where(eq(ramp, 1), -kInf, round(x * 2.0))));
        x = cast(x, dtype).compute();
      }
      const ValuesAndIndices all = sort(x, 1, false, true);
      const Doubles values = list(all.values), indices = list(all.indices);
      for (std::int64_t k = 1; k <= n; k += n < 40 ? 1 : 61) {
        const auto [value, index] = kthvalue(x, k, 1);
        Doubles wanted, places;
        for (std::int64_t r = 0; r < 3; ++r) {
          wanted.push_back(values[static_cast<std::size_t>(r * n + k - 1)]);
          places.push_back(indices[static_cast<std::size_t>(r * n + k - 1)]);
        }
        CAPTURE(name(dtype));
        CAPTURE(n);
        CAPTURE(k);
        check_equal(list(value), wanted);
        check_equal(list(index), places);
        check_equal(by_reference([&, kth = k] { return kthvalue(x, kth, 1).indices; }), places);
      }
    }
  }
}

// Lengths at which the kernels change: vectors, a heap of 64, histograms from 256 on, tiles of
// 1,024.
TEST_CASE("in order: order statistics and products at the ends of blocks") {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Int64, DType::BFloat16})
    for (std::int64_t block = 2; block <= 2048; block *= 2)
      for (const std::int64_t n : {block - 1, block, block + 1}) {
        CAPTURE(name(dtype));
        CAPTURE(n);
        const Tensor x = cast(round(input({2, n}, DType::Float64, 11) * 3.0), dtype).compute();
        const Doubles all = list(x);
        for (const std::int64_t k : {std::int64_t{1}, std::min<std::int64_t>(n, 64),
                                     std::min<std::int64_t>(n, 65), (n + 1) / 2, n}) {
          CAPTURE(k);
          const auto [value, index] = kthvalue(x, k, 1);
          Doubles wanted, places;
          for (std::int64_t r = 0; r < 2; ++r) {
            std::vector<std::pair<double, double>> row;
            for (std::int64_t i = 0; i < n; ++i)
              row.emplace_back(all[static_cast<std::size_t>(r * n + i)], static_cast<double>(i));
            std::sort(row.begin(), row.end());
            wanted.push_back(row[static_cast<std::size_t>(k - 1)].first);
            places.push_back(row[static_cast<std::size_t>(k - 1)].second);
          }
          check_equal(list(value), wanted);
          check_equal(list(index), places);
        }
        // Factors near 1, so that no product overflows; of integers, ones and few others.
        const Tensor factors = is_floating(dtype)
                                   ? cast(1.0 + input({2, n}, DType::Float64, 12) * 0.01, dtype)
                                   : where(eq(remainder(arange(n), 61), 7), x, 1);
        const Doubles given = list(factors.compute());
        Doubles of_rows(2, 1.0);
        for (std::size_t i = 0; i < given.size(); ++i)
          of_rows[i / static_cast<std::size_t>(n)] *= given[i];
        const double tolerance = dtype == DType::Float64    ? 1e-12
                                 : dtype == DType::BFloat16 ? 4e-3
                                                            : 3e-7;
        check_equal(list(prod(factors, {1})), of_rows, tolerance);
        check_equal(list(prod(transpose(factors, 0, 1).compute(), {0})), of_rows, tolerance);
        check_equal(list(prod(factors)), {of_rows[0] * of_rows[1]}, tolerance);
      }
}

TEST_CASE("in order: a quantile by number is that by tensor") {
  const Tensor x = input({5, 31}, DType::Float32, 9), wide = input({301}, DType::Float64, 10);
  for (const QuantileMode mode : {QuantileMode::Linear, QuantileMode::Lower, QuantileMode::Higher,
                                  QuantileMode::Nearest, QuantileMode::Midpoint})
    for (const double q : {0.0, 0.1, 0.25, 0.5, 0.75, 0.983, 1.0})
      for (const bool keep : {false, true}) {
        CAPTURE(q);
        const Tensor list_q = Tensor::from(Doubles{q}, {1});
        for (const int axis : {0, 1})
          check_equal(list(quantile(x, q, axis, keep, mode)),
                      list(quantile(x, cast(list_q, DType::Float32), axis, keep, mode)));
        check_equal(list(quantile(wide, q, {}, keep, mode)),
                    list(quantile(wide, list_q, {}, keep, mode)));
      }
  const Tensor spoilt = Tensor::from(Doubles{1, kNan, 3, 4, 5, 6}, {2, 3});
  check_equal(list(quantile(spoilt, 0.5, 1)), {kNan, 5});
  check_equal(list(median(spoilt, 1).values), {kNan, 5});
  CHECK(median(spoilt, 1).indices.to_vector<std::int64_t>() == Longs{1, 1});
  const Tensor twice = Tensor::from(Doubles{kNan, 2, kNan, 4}, {4});
  CHECK(median(twice, 0).indices.to_vector<std::int64_t>() == Longs{2});
  CHECK(list(grad(sum(quantile(x, 0.5, 1)), x)) == list(grad(sum(median(x, 1).values), x)));
}

namespace {

template <class T>
T remainder_by_library(T a, T b) {
  const T r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

template <class T, class Bits>
void check_remainders(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> a, b;
  const auto any = [&] {
    const Bits bits = static_cast<Bits>(random());
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  };
  const T special[] = {0,
                       -T(0),
                       1,
                       -1,
                       3,
                       -3,
                       T(0.1),
                       std::numeric_limits<T>::infinity(),
                       -std::numeric_limits<T>::infinity(),
                       std::numeric_limits<T>::quiet_NaN(),
                       std::numeric_limits<T>::denorm_min(),
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::min()};
  for (const T x : special)
    for (const T y : special) a.push_back(x), b.push_back(y);
  for (int k = 0; k < 4000; ++k) a.push_back(any()), b.push_back(any());
  // Quotients near whole numbers, of all sizes.
  std::uniform_real_distribution<T> mantissa(1, 2);
  for (int k = 0; k < 20000; ++k) {
    const T divisor = mantissa(random) * (random() % 2 == 0 ? T(1) : T(-1));
    const T whole =
        std::floor(mantissa(random) * std::ldexp(T(1), static_cast<int>(random() % 60)));
    T dividend = divisor * whole;
    if (random() % 3 == 0) dividend = std::nextafter(dividend, T(0));
    if (random() % 3 == 1) dividend = std::nextafter(dividend, 2 * dividend);
    a.push_back(random() % 2 == 0 ? dividend : -dividend), b.push_back(divisor);
  }
  const auto n = static_cast<std::int64_t>(a.size());
  const auto found = remainder(Tensor::from(a, {n}), Tensor::from(b, {n})).template to_vector<T>();
  int wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const T wanted = remainder_by_library(a[i], b[i]);
    const bool same = std::isnan(wanted)
                          ? std::isnan(found[i])
                          : found[i] == wanted && std::signbit(found[i]) == std::signbit(wanted);
    if (same) continue;
    if (++wrong < 5) MESSAGE(a[i], " % ", b[i], ": ", found[i], " instead of ", wanted);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("remainders: those of the C library, bit for bit") {
  check_remainders<float, std::uint32_t>(1);
  check_remainders<double, std::uint64_t>(2);
}

TEST_CASE("remainders: whole numbers divided by zero are zero") {
  for (const DType dtype : {DType::Int64, DType::Int32, DType::Int8, DType::UInt8}) {
    const Tensor x = cast(Tensor::from(Longs{7, 0, 5}, {3}), dtype), zero = zeros({3}, dtype);
    CHECK(list(floor_divide(x, zero)) == Doubles{0, 0, 0});
    CHECK(list(remainder(x, zero)) == Doubles{0, 0, 0});
  }
}

TEST_CASE("in order: the product of one index does not spread to other indices") {
  const Tensor index = Tensor::from<std::int64_t>({0, 0, 1, 2, 1, 2}, {6});
  const Tensor updates = Tensor::from<double>({kInf, 2, 3, kNan, 5, 7}, {6});
  const auto product = [&] {
    return scatter_reduce(ones({4}, DType::Float64), 0, index, updates, ScatterReduction::Prod);
  };
  check_equal(list(product()), {kInf, 15, kNan, 1});
  check_equal(by_reference(product), {kInf, 15, kNan, 1});
}
