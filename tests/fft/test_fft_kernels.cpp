// The CPU's kernels for Fourier transforms against the composition of other operations, which the
// reference engine computes: lengths, layouts, parts that are zero or not read, gradients.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <tenon/tenon.h>
#include <tenon/vmap.h>

#include "cpu/kernels/isa.h"
#include "grad/numeric.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;
using Doubles = std::vector<double>;

Tensor draw(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float64) {
  return randn(shape, dtype, Generator(seed)).compute();
}

Doubles list(const Tensors& results) {
  Doubles out;
  for (const Tensor& x : results)
    for (const double v : cast(x, DType::Float64).to_vector<double>()) out.push_back(v);
  return out;
}

Doubles by_reference(const std::function<Tensors()>& f) {
  set_engine("reference");
  const Doubles out = list(f());
  set_engine("fast");
  return out;
}

void check_close(const Doubles& a, const Doubles& b, double limit) {
  REQUIRE(a.size() == b.size());
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    error += (a[i] - b[i]) * (a[i] - b[i]), norm += b[i] * b[i];
  CHECK(error <= limit * limit * norm);
}

Tensors parts(const Complex& z) { return {z.real, z.imaginary}; }

// All kinds of transforms of an axis. Of some, one part only is read.
Tensors all_kinds(const Complex& x, std::int64_t n, int axis) {
  Tensors out;
  const auto add = [&out](const Complex& z) { out.push_back(z.real), out.push_back(z.imaginary); };
  add(fft::fft(x, n, axis));
  add(fft::ifft(x, n, axis, fft::Norm::Ortho));
  add(fft::fft(x.real, n, axis));
  add(fft::rfft(x.real, n, axis));
  add(fft::ihfft(x.real, n, axis));
  out.push_back(fft::irfft(x, n, axis));
  out.push_back(fft::hfft(x, n, axis));
  out.push_back(fft::fft(x, n, axis).real);
  out.push_back(fft::ifft(x, n, axis).real);
  out.push_back(fft::fft(x, n, axis).imaginary);
  out.push_back(fft::rfft(x.imaginary, n, axis).imaginary);
  out.push_back(fft::ifft(x.imaginary, n, axis).real);
  return out;
}

}  // namespace

TEST_CASE("fft kernels: short rows, long rows and columns, cut off and filled up") {
  for (const DType dtype : {DType::Float64, DType::Float32}) {
    const double limit = dtype == DType::Float64 ? 1e-14 : 2e-6;
    for (const std::int64_t n : {1, 2, 6, 7, 22, 55, 61, 67, 134, 255, 256, 360, 539, 1018}) {
      for (const std::int64_t given : {n, n + 3, n / 2 + 1, std::int64_t{1}}) {
        CAPTURE(n);
        CAPTURE(given);
        const Complex rows(draw({3, given}, 1, dtype), draw({3, given}, 2, dtype));
        const auto f = [&] { return all_kinds(rows, n, -1); };
        check_close(list(f()), by_reference(f), limit);
      }
      for (const std::int64_t inner : {2, 19}) {
        CAPTURE(inner);
        const Complex columns(draw({2, n, inner}, 3, dtype), draw({2, n, inner}, 4, dtype));
        const auto f = [&] { return all_kinds(columns, n, 1); };
        check_close(list(f()), by_reference(f), limit);
      }
    }
  }
}

TEST_CASE("fft kernels: more rows than lanes, views, and 16-bit numbers") {
  const Complex many(draw({37, 30}, 5), draw({37, 30}, 6));
  const auto rows = [&] { return all_kinds(many, 30, -1); };
  check_close(list(rows()), by_reference(rows), 1e-14);
  const Complex view(transpose(slice(many.real, 1, 3, 20)),
                     transpose(slice(slice(many.imaginary, 0, 4, 5), 1, 0, 17)));
  const auto views = [&] { return all_kinds(view, 17, 0); };
  check_close(list(views()), by_reference(views), 1e-14);
  const Tensor half = cast(many.real, DType::BFloat16);
  check_close(list(parts(fft::rfft(half))), list(parts(fft::rfft(cast(half, DType::Float64)))),
              1e-6);
}

TEST_CASE("fft kernels: the same bits whatever the number of threads is, a long row too") {
  for (const Shape& shape :
       {Shape{40, 96}, Shape{5, 1000}, Shape{2, 1 << 16}, Shape{1, 65537}, Shape{64, 40}}) {
    CAPTURE(shape);
    const Complex x(draw(shape, 7, DType::Float32), draw(shape, 8, DType::Float32));
    const auto f = [&] {
      Tensors out = parts(fft::fft(x));
      out.push_back(fft::rfft(x.real).real);
      out.push_back(fft::fft(x, {}, 0).imaginary);
      return list(out);
    };
    const int before = threads();
    set_threads(1);
    const Doubles alone = f();
    set_threads(3);
    CHECK(f() == alone);
    set_threads(before);
  }
}

TEST_CASE("fft kernels: every instruction set") {
  const Complex x(draw({20, 210}, 9), draw({20, 210}, 10)),
      low(draw({3, 572}, 11, DType::Float32), draw({3, 572}, 12, DType::Float32));
  const Doubles expected = list(parts(fft::fft(x))), expected_low = list(parts(fft::fft(low)));
  for (const cpu::Isa isa : {cpu::Isa::Base, cpu::Isa::Avx2, cpu::Isa::Avx512}) {
    cpu::set_isa_limit(isa);
    check_close(list(parts(fft::fft(x))), expected, 1e-15);
    check_close(list(parts(fft::fft(low))), expected_low, 1e-6);
    cpu::set_isa_limit(cpu::Isa::Neon);
  }
}

TEST_CASE("fft kernels: a row that is not finite leaves the others as they are") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t n : {12, 300, 67}) {
    const Tensor x = draw({4, n}, 13);
    const Tensor broken =
        concat({slice(x, 0, 0, 2), full({1, n}, kNan, DType::Float64), slice(x, 0, 3, 4)});
    for (const bool real : {true, false}) {
      const auto rows = [&](const Tensor& t) {
        const Complex y = real ? fft::rfft(t) : fft::fft(Complex(t, t));
        return list({slice(y.real, 0, 0, 2), slice(y.imaginary, 0, 3, 4)});
      };
      CHECK(rows(broken) == rows(x));
      CHECK(std::isnan(select(fft::rfft(broken).real, 0, 2).sum().item()));
    }
  }
}

TEST_CASE("fft kernels: gradients of the first and second order, and vmap") {
  for (const std::int64_t n : {6, 7, 67, 260}) {
    CAPTURE(n);
    const Complex x(draw({2, n}, 14), draw({2, n}, 15));
    const auto number = [&](const Tensors& in) {
      Tensor sum;
      for (const Tensor& y : all_kinds(Complex(in[0], in[1]), n, -1)) {
        const Tensor part = (square(y) * y).sum();
        sum = sum.defined() ? sum + part : part;
      }
      return sum;
    };
    const auto first = [&] {
      const Tensors in{variable(x.real), variable(x.imaginary)};
      return grad(number(in), in);
    };
    check_close(list(first()), by_reference(first), 1e-12);
    const auto second = [&] {
      const Tensors in{variable(x.real), variable(x.imaginary)};
      const Tensors g = grad(number(in), in);
      return grad(square(g[0]).sum() + square(g[1]).sum(), in);
    };
    check_close(list(second()), by_reference(second), 1e-12);
    const Tensors given{x.real, x.imaginary};
    const Tensors in{variable(x.real), variable(x.imaginary)}, g = grad(number(in), in);
    if (n < 60) {
      const auto expected = numeric_gradient(number, given);
      for (std::size_t k = 0; k < 2; ++k)
        check_close(list({g[k]}), list({Tensor::from(expected[k], {2, n})}), 1e-6);
    }
    const auto one = vmap([n](const Tensor& row) { return fft::rfft(row, n).imaginary; });
    CHECK(list({one(x.real)}) == list({fft::rfft(x.real).imaginary}));
  }
}

TEST_CASE("fft kernels: transforms without numbers") {
  CHECK(fft::rfft(zeros({0, 6})).real.shape() == Shape{0, 4});
  CHECK(fft::irfft(zeros({0, 4})).shape() == Shape{0, 6});
  CHECK(list(parts(fft::fft(zeros({2, 0}), 3))) == Doubles(12, 0.0));
}
