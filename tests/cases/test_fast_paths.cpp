// Paths of the CPU for particular shapes, against the reference engine and plain loops: products of
// columns and of small matrices, convolutions over small maps and side-by-side windows, parts of
// values in concatenations, windows of images, integer division, distances, selections.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <tenon/elementwise.h>
#include <tenon/functional.h>
#include <tenon/rearrange.h>
#include <tenon/statistics.h>
#include <tenon/tenon.h>

using namespace tenon;

namespace fast_paths {

using Doubles = std::vector<double>;
using Longs = std::vector<std::int64_t>;
using Tensors = std::vector<Tensor>;

Doubles list(const Tensor& x) { return cast(x, DType::Float64).to_vector<double>(); }

Tensor random(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float32) {
  return cast(randn(shape, DType::Float32, Generator(seed)), dtype).compute();
}

std::vector<Doubles> values(const Tensors& tensors) {
  std::vector<Doubles> out;
  for (const Tensor& x : tensors) out.push_back(list(x));
  return out;
}

// The distance relative to the norm, of every result of both engines.
void check_engines(const std::function<Tensors()>& f, double tolerance = 2e-6) {
  const std::vector<Doubles> found = values(f());
  set_engine("reference");
  const std::vector<Doubles> wanted = values(f());
  set_engine("fast");
  REQUIRE(found.size() == wanted.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    CAPTURE(k);
    REQUIRE(found[k].size() == wanted[k].size());
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < found[k].size(); ++i)
      error += std::pow(found[k][i] - wanted[k][i], 2), norm += std::pow(wanted[k][i], 2);
    CHECK(std::sqrt(error) <= tolerance * (1e-30 + std::sqrt(norm)));
  }
}

// The value and the gradients of its weighted sum.
Tensors with_gradients(const Tensor& y, const Tensors& inputs) {
  Tensors out{y};
  for (const Tensor& g : grad(sum(y * random(y.shape(), 77, y.dtype())), inputs)) out.push_back(g);
  return out;
}

}  // namespace fast_paths

using namespace fast_paths;

TEST_CASE("fast paths: a matrix times a column, alone and with an epilogue") {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16})
    for (const auto& [m, k] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                               {2, 63},
                               {7, 64},
                               {9, 65},
                               {50, 1000},
                               {131, 2049},
                               {600, 3}}) {
      CAPTURE(name(dtype));
      CAPTURE(m);
      CAPTURE(k);
      const Tensor a = random({m, k}, 1, dtype), at = random({k, m}, 2, dtype),
                   wide = random({m, 2 * k}, 3, dtype), x = random({k}, 4, dtype),
                   spread = random({2 * k}, 5, dtype), bias = random({m}, 6, dtype);
      const double tolerance = dtype == DType::BFloat16 ? 1e-2 : 2e-6;
      const Tensor every = slice(spread, 0, 0, 2 * k, 2);
      check_engines(
          [&] {
            return Tensors{matmul(a, x),
                           matmul(transpose(at), x),
                           matmul(x, transpose(a)),
                           matmul(x, at),
                           matmul(a, every),
                           matmul(slice(wide, 1, 1, k + 1), x),
                           relu(matmul(a, x) * 2.0 + bias),
                           relu(matmul(transpose(at), x) + bias),
                           matmul(flip(a, {0}), x),
                           matmul(a, flip(x, {0}))};
          },
          tolerance);
      if (dtype != DType::BFloat16)
        check_engines([&] { return with_gradients(matmul(a, x), {a, x}); }, tolerance);
    }
}

TEST_CASE("fast paths: products of small matrices") {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16})
    for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{1, 1, 1},
                                  {8, 8, 8},
                                  {4, 4, 4},
                                  {3, 5, 7},
                                  {14, 33, 16},
                                  {6, 20, 64},
                                  {6, 20, 48},
                                  {5, 3, 33},
                                  {13, 9, 31}})
      for (const std::int64_t batch : {16, 17, 100}) {
        CAPTURE(name(dtype));
        CAPTURE(m);
        CAPTURE(n);
        const Tensor a = random({batch, m, k}, 1, dtype), b = random({batch, k, n}, 2, dtype),
                     at = random({batch, k, m}, 3, dtype), bt = random({batch, n, k}, 4, dtype),
                     one = random({k, n}, 5, dtype), bias = random({n}, 6, dtype);
        check_engines(
            [&] {
              return Tensors{matmul(a, b),
                             matmul(transpose(at), b),
                             matmul(a, transpose(bt)),
                             matmul(transpose(at), transpose(bt)),
                             relu(matmul(a, b) + bias),
                             matmul(a, broadcast_to(one, {batch, k, n})),
                             matmul(flip(a, {0}), b)};
            },
            dtype == DType::Float16 ? 2e-3 : 2e-6);
      }
}

TEST_CASE("fast paths: depthwise convolutions over small maps") {
  struct Map {
    std::int64_t n, c, h, w, r, s, pad_h, pad_w, dilation;
  };
  for (const Map& m : {Map{1, 2, 1, 1, 3, 3, 1, 1, 1}, Map{3, 5, 2, 2, 3, 3, 1, 1, 1},
                       Map{2, 64, 4, 4, 3, 3, 1, 1, 1}, Map{2, 7, 3, 5, 3, 5, 1, 2, 1},
                       Map{2, 3, 5, 5, 3, 3, 2, 2, 2}, Map{1, 33, 4, 7, 1, 3, 0, 1, 1},
                       Map{2, 6, 5, 6, 5, 5, 2, 2, 1}}) {
    CAPTURE(m.h);
    CAPTURE(m.r);
    const Tensor x = random({m.n, m.c, m.h, m.w}, 1), w = random({m.c, 1, m.r, m.s}, 2),
                 bias = random({m.c}, 3);
    const Conv2dOptions o{.padding = {m.pad_h, m.pad_w}, .dilation = m.dilation, .groups = m.c};
    check_engines([&] { return with_gradients(conv2d(x, w, {}, o), {x, w}); });
    check_engines([&] { return with_gradients(relu(conv2d(x, w, bias, o)) + x, {x, w, bias}); });
  }
  // What is outside a map is not read, whatever the neighbours hold.
  Doubles numbers(8, 1.0);
  numbers[4] = std::numeric_limits<double>::infinity();
  const Tensor x = cast(Tensor::from(numbers, {1, 2, 2, 2}), DType::Float32);
  const Doubles y = list(conv2d(x, ones({2, 1, 3, 3}), {}, {.padding = 1, .groups = 2}));
  for (int k = 0; k < 4; ++k) CHECK(y[static_cast<std::size_t>(k)] == 4);
}

TEST_CASE("fast paths: input gradients of side-by-side windows") {
  for (const auto& [r, s] : {std::pair<std::int64_t, std::int64_t>{2, 2}, {3, 2}, {4, 4}}) {
    const Tensor x = random({3, 5, 4 * r, 3 * s}, 1), w = random({6, 5, r, s}, 2),
                 bias = random({6}, 3);
    check_engines([&, h = r, v = s] {
      return with_gradients(conv2d(x, w, bias, {.stride = {h, v}}), {x, w, bias});
    });
    const Tensor low = random({2, 6, 3, 5}, 4);
    check_engines([&, h = r, v = s] {
      return with_gradients(conv_transpose2d(low, w, {}, {.stride = {h, v}}), {low, w});
    });
  }
  // Windows that leave a rest, or overlap, take the general path.
  const Tensor x = random({2, 3, 7, 7}, 5), w = random({4, 3, 2, 2}, 6);
  check_engines([&] { return with_gradients(conv2d(x, w, {}, {.stride = 2}), {x, w}); });
}

TEST_CASE("fast paths: concatenations of parts") {
  for (const DType dtype : {DType::Float32, DType::Int64, DType::Bool, DType::BFloat16}) {
    const Tensor x = cast(random({6, 5, 8}, 1), dtype).compute(),
                 y = cast(random({6, 5, 3}, 2), dtype).compute();
    check_engines(
        [&] {
          const Tensor sorted = sort(cast(x, DType::Float32), 2).values;
          return Tensors{
              concat({slice(x, 0, 2, 5), slice(x, 0, 0, 2)}, 0),
              concat({slice(x, 1, 2, 5), slice(x, 1, 0, 2)}, 1),
              concat({slice(x, 2, 2, 5), slice(x, 2, 0, 2), y}, 2),
              concat({slice(x, 2, 0, 8, 2), slice(x, 2, 1, 8, 2)}, 2),
              concat({flip(x, {0}), x}, 1),
              concat({flip(x, {0}), x}, 0),
              concat({flip(x, {2}), x}, 2),
              concat({transpose(x, 0, 1), transpose(x, 0, 1)}, 2),
              concat({slice(slice(x, 0, 1, 4), 1, 1, 3), slice(slice(x, 0, 3, 6), 1, 2, 4)}, 2),
              concat({slice(x, 1, 0, 0), slice(x, 1, 4, 5)}, 1),
              concat({slice(sorted, 2, 4, 8), slice(sorted, 2, 0, 4)}, 2),
              concat({expand(slice(x, 1, 0, 1), {6, 4, 8}), x}, 1),
              concat({expand(slice(x, 0, 0, 1), {6, 5, 8}), x}, 2),
              concat({expand(slice(slice(x, 0, 0, 1), 1, 2, 3), {6, 5, 8}), x}, 2),
              concat({expand(slice(x, 1, 0, 1), {6, 5, 8}), x}, 2),
              concat({slice(x + x, 2, 1, 3), slice(x, 2, 1, 3)}, 2),
              roll(x, {2, -3, 1}, {0, 1, 2}),
              roll(x, {5})};
        },
        0);
    if (is_bool(dtype)) break;
  }
}

TEST_CASE("fast paths: windows of images and their sums, against plain loops") {
  struct Window {
    std::int64_t h, w, kh, kw, dilation, padding, sh, sw;
  };
  for (const Window& o : {Window{5, 6, 3, 3, 1, 1, 1, 1}, Window{7, 9, 2, 3, 2, 0, 2, 1},
                          Window{6, 40, 1, 33, 1, 0, 1, 2}, Window{4, 4, 4, 4, 1, 0, 1, 1},
                          Window{8, 8, 2, 2, 1, 0, 2, 2}, Window{5, 5, 1, 1, 1, 0, 1, 1}}) {
    const std::int64_t n = 2, c = 3,
                       rows = (o.h + 2 * o.padding - o.dilation * (o.kh - 1) - 1) / o.sh + 1,
                       columns = (o.w + 2 * o.padding - o.dilation * (o.kw - 1) - 1) / o.sw + 1;
    const WindowOptions options{.kernel = {o.kh, o.kw},
                                .dilation = o.dilation,
                                .padding = o.padding,
                                .stride = {o.sh, o.sw}};
    const Tensor x = random({n, c, o.h, o.w}, 1, DType::Float64),
                 g = random({n, c * o.kh * o.kw, rows * columns}, 2, DType::Float64);
    const Doubles from = list(x), back = list(g);
    Doubles wanted(back.size(), 0), sums(from.size(), 0);
    std::size_t at = 0;
    for (std::int64_t i = 0; i < n * c; ++i)
      for (std::int64_t k = 0; k < o.kh * o.kw; ++k)
        for (std::int64_t p = 0; p < rows * columns; ++p, ++at) {
          const std::int64_t r = p / columns * o.sh + k / o.kw * o.dilation - o.padding,
                             s = p % columns * o.sw + k % o.kw * o.dilation - o.padding;
          if (r < 0 || r >= o.h || s < 0 || s >= o.w) continue;
          const auto place = static_cast<std::size_t>((i * o.h + r) * o.w + s);
          wanted[at] = from[place], sums[place] += back[at];
        }
    CAPTURE(o.kw);
    CHECK(list(unfold(x, options)) == wanted);
    const Doubles folded = list(fold(g, {o.h, o.w}, options)),
                  slope = list(grad(sum(unfold(x, options) * g), x));
    for (std::size_t k = 0; k < sums.size(); ++k) {
      CHECK(folded[k] == doctest::Approx(sums[k]).epsilon(1e-12).scale(1));
      CHECK(slope[k] == doctest::Approx(sums[k]).epsilon(1e-12).scale(1));
    }
  }
}

namespace {

template <class T>
void check_division() {
  std::mt19937_64 bits(7);
  std::vector<T> a, b;
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  for (const T x : {T(0), T(1), T(-1), T(7), T(-7), kLeast, kMost, T(kLeast + 1)})
    for (const T y : {T(0), T(1), T(-1), T(3), T(-3), kLeast, kMost})
      a.push_back(x), b.push_back(y);
  for (int k = 0; k < 5000; ++k) {
    a.push_back(static_cast<T>(static_cast<std::int64_t>(bits()) >> (bits() % 64)));
    b.push_back(static_cast<T>(static_cast<std::int64_t>(bits()) >> (bits() % 64)));
  }
  // Multiples and their neighbours, up to the largest exact size.
  for (int k = 0; k < 5000; ++k) {
    const auto y = static_cast<T>(1 + bits() % 100000), q = static_cast<T>(bits() % 20000);
    const std::int64_t near = static_cast<std::int64_t>(bits() % 3) - 1;
    a.push_back(static_cast<T>(static_cast<std::int64_t>(y) * q + near)),
        b.push_back(k % 2 == 0 ? y : T(-y));
  }
  const auto n = static_cast<std::int64_t>(a.size());
  const Tensor x = Tensor::from(a, {n}), y = Tensor::from(b, {n});
  const auto floors = floor_divide(x, y).template to_vector<T>(),
             rests = remainder(x, y).template to_vector<T>();
  int wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    T floor = 0, rest = 0;
    if (b[i] == -1) floor = static_cast<T>(0 - static_cast<std::uint64_t>(a[i]));
    if (b[i] != 0 && b[i] != -1) {
      rest = static_cast<T>(a[i] % b[i]), floor = static_cast<T>(a[i] / b[i]);
      if (rest != 0 && (rest < 0) != (b[i] < 0)) rest = static_cast<T>(rest + b[i]), --floor;
    }
    if (floors[i] == floor && rests[i] == rest) continue;
    if (++wrong < 5) MESSAGE(a[i], " / ", b[i], ": ", floors[i], " rest ", rests[i]);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("fast paths: integers are divided exactly, whatever their size") {
  check_division<std::int64_t>();
  check_division<std::int32_t>();
}

TEST_CASE("fast paths: distances by products keep the digits of close rows") {
  const Tensor a = random({30, 7}, 1), far = (a + 1000.0).compute();
  const auto copied = [](const Tensor& x) { return Tensor::from(x.to_vector<float>(), x.shape()); };
  const Tensor b =
      copied(concat({slice(far, 0, 0, 9), slice(far, 0, 4, 20) + 1e-3, random({6, 7}, 2)}));
  for (const Tensor& given : {a, copied(far)}) {
    const Tensor x = variable(given);
    const Tensor found = cdist(x, b),
                 wanted = cdist(cast(x, DType::Float64), cast(b, DType::Float64));
    CHECK(found.dtype() == DType::Float32);
    const Doubles f = list(found), w = list(wanted);
    for (std::size_t k = 0; k < f.size(); ++k)
      CHECK(f[k] == doctest::Approx(w[k]).epsilon(1e-6).scale(1e-3));
    const Tensor weight = random({30, 31}, 3);
    const Doubles g = list(grad(sum(found * weight), x)),
                  h = list(grad(sum(wanted * cast(weight, DType::Float64)), x));
    for (std::size_t k = 0; k < g.size(); ++k)
      CHECK(g[k] == doctest::Approx(h[k]).epsilon(1e-4).scale(1));
  }
  CHECK(list(cdist(far, far))[0] == 0);
  const Tensor spoilt = where(eq(arange(7), 0), std::numeric_limits<double>::quiet_NaN(), a);
  CHECK(std::isnan(list(cdist(spoilt, b))[3]));
  CHECK(cdist(random({2, 30, 4}, 4), random({1, 28, 4}, 5)).shape() == Shape{2, 30, 28});
  CHECK(cdist(zeros({30, 4}), zeros({0, 4})).shape() == Shape{30, 0});
}

TEST_CASE("fast paths: nonzero elements, against plain loops") {
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{1}, Shape{9}, Shape{3, 0, 2}, Shape{4, 5}, Shape{2, 3, 1, 5}}) {
    const Tensor x = where(gt(random(shape, 3), 0), 1.0, zeros(shape)).compute();
    const Doubles ones = list(x);
    Longs wanted;
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < x.numel(); ++k) {
      if (ones[static_cast<std::size_t>(k)] == 0) continue;
      ++count;
      Longs place;
      std::int64_t rest = k;
      for (int d = shape.rank() - 1; d >= 0; --d)
        place.insert(place.begin(), rest % shape[d]), rest /= shape[d];
      wanted.insert(wanted.end(), place.begin(), place.end());
    }
    const Tensor found = nonzero(x);
    CHECK(found.shape() == Shape{count, shape.rank()});
    CHECK(found.to_vector<std::int64_t>() == wanted);
  }
}

TEST_CASE("fast paths: the likelihood of stored and of computed probabilities") {
  const Tensor x = random({5, 4}, 1), logp = log_softmax(x).compute();
  const Tensor target = Tensor::from(Longs{0, 3, 2, 2, 1}, {5});
  CHECK(nll_loss(logp, target).item() ==
        doctest::Approx(nll_loss(log_softmax(x), target).item()).epsilon(1e-6));
  const Doubles slope = list(grad(nll_loss(logp, cast(target, DType::Int32)), logp));
  for (std::int64_t k = 0; k < 20; ++k)
    CHECK(slope[static_cast<std::size_t>(k)] ==
          doctest::Approx(k % 4 == Longs{0, 3, 2, 2, 1}[static_cast<std::size_t>(k / 4)] ? -0.2 : 0)
              .epsilon(1e-6));
  CHECK_THROWS_AS((void)nll_loss(logp, target + 2).item(), ValueError);
}

TEST_CASE("fast paths: products of columns by rows") {
  using namespace fast_paths;
  for (const DType dtype : {DType::Float32, DType::Float64})
    for (const Shape& sizes : {Shape{1, 1, 1}, Shape{2, 1, 7}, Shape{1, 33, 1}, Shape{3, 17, 65},
                               Shape{2, 0, 3}, Shape{1, 5, 1025}}) {
      CAPTURE(sizes[1]);
      CAPTURE(sizes[2]);
      const std::int64_t batch = sizes[0], m = sizes[1], n = sizes[2];
      // Views: every other element, and a transposed row.
      const Tensor column = slice(random({batch, 2 * m, 1}, 1, dtype), 1, 0, 2 * m, 2);
      const Tensor row = transpose(random({batch, n, 1}, 2, dtype), 1, 2);
      const Doubles a = list(column), b = list(row), found = list(matmul(column, row));
      const Doubles shifted = list(matmul(column, row) * 2.0 + 1.0);
      const Tensor weights = random({batch, m, n}, 3, dtype);
      const Doubles w = list(weights);
      const Tensors slopes = grad(sum(matmul(column, row) * weights), Tensors{column, row});
      const Doubles da = list(slopes[0]), db = list(slopes[1]);
      REQUIRE(found.size() == static_cast<std::size_t>(batch * m * n));
      REQUIRE(da.size() == a.size());
      Doubles wanted_a(a.size()), wanted_b(b.size());
      for (std::size_t k = 0; k < found.size(); ++k) {
        const std::size_t i = k / static_cast<std::size_t>(n),
                          j = k / static_cast<std::size_t>(m * n) * static_cast<std::size_t>(n) +
                              k % static_cast<std::size_t>(n);
        const double product = a[i] * b[j];
        const double rounded =
            dtype == DType::Float64 ? product : static_cast<double>(static_cast<float>(product));
        CHECK(found[k] == rounded);
        CHECK(shifted[k] == doctest::Approx(2 * rounded + 1).epsilon(1e-6));
        wanted_a[i] += w[k] * b[j];
        wanted_b[j] += w[k] * a[i];
      }
      for (std::size_t i = 0; i < a.size(); ++i)
        CHECK(std::fabs(da[i] - wanted_a[i]) <= 1e-5 * (1 + std::fabs(wanted_a[i])));
      for (std::size_t j = 0; j < b.size(); ++j)
        CHECK(std::fabs(db[j] - wanted_b[j]) <= 1e-5 * (1 + std::fabs(wanted_b[j])));
    }
}

TEST_CASE("fast paths: runs of every length in concatenations") {
  for (const DType dtype : {DType::UInt8, DType::BFloat16, DType::Float32, DType::Float64})
    for (std::int64_t width = 0; width <= 36; ++width) {
      CAPTURE(width);
      const std::int64_t rows = 5, others = 3;
      const Tensor a = cast(arange(0, rows * width, 1), dtype).compute(),
                   b = cast(arange(100, 100 + rows * others, 1), dtype).compute();
      const Tensor x = reshape(a, {rows, width}), y = reshape(b, {rows, others});
      const Doubles found = list(concat({x, y, x}, 1)), first = list(x), second = list(y);
      Doubles wanted;
      for (std::int64_t r = 0; r < rows; ++r)
        for (const auto& [from, count] :
             {std::pair(&first, width), {&second, others}, {&first, width}})
          wanted.insert(wanted.end(), from->begin() + r * count, from->begin() + (r + 1) * count);
      CHECK(found == wanted);
    }
}

TEST_CASE("fast paths: reductions over the first axis, whatever the number of rows is") {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Int32})
    for (const std::int64_t rows : {1, 3, 4, 7, 8, 9, 15, 16, 21, 130, 1000}) {
      CAPTURE(rows);
      const Tensor x = random({rows, 37}, 5, DType::Float32) * 4.0;
      const Tensor y = cast(x, dtype).compute();
      check_engines(
          [&] {
            return Tensors{sum(y, 0), amax(y, 0), amin(y, 0), sum(y * y, 0)};
          },
          dtype == DType::BFloat16 ? 1e-2 : 1e-6);
    }
  // An element that is not a number is the extreme of its column alone.
  Doubles some(16 * 2, 1.0);
  some[9] = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = cast(Tensor::from(some, {16, 2}), DType::Float32);
  const Doubles largest = list(amax(x, 0)), sums = list(sum(x, 0));
  CHECK(largest[0] == 1);
  CHECK(std::isnan(largest[1]));
  CHECK(sums[0] == 16);
  CHECK(std::isnan(sums[1]));
}
