// Fourier transforms against sums in float64, their derivatives, and spectrograms.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include <tenon/tenon.h>

#include "grad/numeric.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;
using Numbers = std::vector<std::complex<double>>;

Tensor draw(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float64) {
  return randn(shape, dtype, Generator(seed)).compute();
}

Complex draw_complex(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float64) {
  return {draw(shape, seed, dtype), draw(shape, seed + 1, dtype)};
}

Numbers numbers_of(const Complex& z) {
  const auto real = cast(z.real, DType::Float64).to_vector<double>(),
             imaginary = cast(z.imaginary, DType::Float64).to_vector<double>();
  Numbers out;
  for (std::size_t k = 0; k < real.size(); ++k) out.emplace_back(real[k], imaginary[k]);
  return out;
}

// The definition, for each row of n numbers.
Numbers sums(const Numbers& x, std::int64_t n, double sign) {
  Numbers out;
  for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(n))
    for (std::int64_t k = 0; k < n; ++k) {
      std::complex<double> sum = 0;
      for (std::int64_t j = 0; j < n; ++j)
        sum += x[row + static_cast<std::size_t>(j)] *
               std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) /
                                   static_cast<double>(n));
      out.push_back(sum);
    }
  return out;
}

double distance(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  double error = 0, norm = 0;
  for (std::size_t k = 0; k < found.size(); ++k) {
    error += std::norm(found[k] - expected[k]);
    norm += std::norm(expected[k]);
  }
  return std::sqrt(error / (norm > 0 ? norm : 1));
}

double distance(const Complex& found, const Complex& expected) {
  REQUIRE(found.shape() == expected.shape());
  return distance(numbers_of(found), numbers_of(expected));
}

Complex divided(const Complex& z, double by) { return {z.real / by, z.imaginary / by}; }

void check_derivatives(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  Tensors variables;
  for (const Tensor& x : inputs) variables.push_back(variable(x));
  const Tensors g = grad(f(variables), variables);
  const auto expected = numeric_gradient(f, inputs);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Tensor right = Tensor::from(expected[k], inputs[k].shape());
    CHECK(distance(g[k], right) < 1e-7);
  }
}

// A number that depends on all results and is not linear.
Tensor number_of(const Complex& z) {
  return (square(z.real) * 0.5 + z.imaginary * z.real + sin(z.imaginary)).sum();
}

}  // namespace

TEST_CASE("fft: transforms of every kind of length against the sums that define them") {
  for (const DType dtype : {DType::Float64, DType::Float32}) {
    const double limit = dtype == DType::Float64 ? 2e-14 : 3e-6;
    for (const std::int64_t n :
         {1,   2,   3,   4,   5,   7,   8,   16,  30,  63,   64,   65,   97,
          100, 127, 128, 131, 360, 503, 509, 512, 521, 1000, 1021, 1024, 1046}) {
      CAPTURE(n);
      const Complex x = draw_complex({3, n}, 10, dtype);
      const Complex found = fft::fft(x);
      CHECK(found.dtype() == dtype);
      CHECK(distance(numbers_of(found), sums(numbers_of(x), n, -1)) < limit);
      CHECK(distance(fft::ifft(found), x) < limit);
      const Complex half = fft::rfft(x.real);
      CHECK(half.shape() == Shape{3, n / 2 + 1});
      const Complex whole = fft::fft(x.real);
      CHECK(distance(half, Complex(slice(whole.real, 1, 0, n / 2 + 1),
                                   slice(whole.imaginary, 1, 0, n / 2 + 1))) < limit);
      CHECK(distance(fft::irfft(half, n), x.real) < limit);
    }
  }
}

TEST_CASE("fft: long transforms, of float32 too, against float64") {
  for (const std::int64_t n : {4096, 30030, 65536, 65537, 100003}) {
    CAPTURE(n);
    const Complex x = draw_complex({n}, 20), found = fft::fft(x);
    // The energy is n times that of the signal, and some results by their sums.
    const double energy = (square(found.real) + square(found.imaginary)).sum().item(),
                 signal = (square(x.real) + square(x.imaginary)).sum().item();
    CHECK(energy / signal == doctest::Approx(static_cast<double>(n)).epsilon(1e-12));
    const Numbers in = numbers_of(x), out = numbers_of(found);
    for (const std::int64_t k : {std::int64_t{1}, n / 3, n - 1}) {
      std::complex<double> sum = 0;
      for (std::int64_t j = 0; j < n; ++j)
        sum += in[static_cast<std::size_t>(j)] *
               std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % n) /
                                   static_cast<double>(n));
      CHECK(std::abs(sum - out[static_cast<std::size_t>(k)]) < 1e-10 * std::sqrt(energy));
    }
    const Complex low(cast(x.real, DType::Float32), cast(x.imaginary, DType::Float32));
    CHECK(distance(numbers_of(fft::fft(low)), out) < 2e-6);
  }
}

TEST_CASE("fft: lengths, axes, scales, and the relations between the transforms") {
  using namespace fft;
  const Complex x = draw_complex({3, 6, 5}, 30);
  const auto axis_last = [](const Complex& z, int axis) {
    return Complex(transpose(z.real, axis, -1), transpose(z.imaginary, axis, -1));
  };
  CHECK(distance(fft::fft(x, {}, 1), axis_last(fft::fft(axis_last(x, 1)), 1)) < 1e-14);
  CHECK(distance(fft::fft(x, 4, 1),
                 fft::fft(Complex(slice(x.real, 1, 0, 4), slice(x.imaginary, 1, 0, 4)), {}, 1)) <
        1e-14);
  CHECK(distance(fft::fft(x, 9), fft::fft(Complex(pad(x.real, {0, 4}), pad(x.imaginary, {0, 4})))) <
        1e-14);
  CHECK(distance(fft::fft(x, {}, -1, Norm::Forward), divided(fft::fft(x), 5)) < 1e-14);
  CHECK(distance(fft::fft(x, {}, -1, Norm::Ortho), divided(fft::fft(x), std::sqrt(5))) < 1e-14);
  CHECK(distance(fft::ifft(x, {}, -1, Norm::Forward), divided(fft::ifft(x), 1.0 / 5)) < 1e-14);
  for (const Norm norm : {Norm::Backward, Norm::Ortho, Norm::Forward}) {
    CHECK(distance(ifftn(fftn(x, {}, norm), {}, norm), x) < 1e-14);
    CHECK(distance(irfftn(rfftn(x.real, {}, norm), {{3, 6, 5}, {}}, norm), x.real) < 1e-14);
    CHECK(distance(hfftn(ihfftn(x.real, {}, norm), {{3, 6, 5}, {}}, norm), x.real) < 1e-14);
    CHECK(distance(hfft(ihfft(x.real, {}, 1, norm), 6, 1, norm), x.real) < 1e-14);
  }
  CHECK(distance(fft2(x), fft::fft(fft::fft(x, {}, -1), {}, -2)) < 1e-14);
  CHECK(distance(ifft2(fft2(x)), x) < 1e-14);
  CHECK(distance(fftn(x, {{4, 7}, {}}), fft::fft(fft::fft(x, 4, 1), 7, 2)) < 1e-14);
  CHECK(distance(fftn(x, {{4, 7}, {2, 0}}), fft::fft(fft::fft(x, 4, 2), 7, 0)) < 1e-14);
  CHECK(rfft2(x.real).shape() == Shape{3, 6, 3});
  CHECK(irfft2(rfft2(x.real)).shape() == Shape{3, 6, 4});
  // Convolution theorem
  const Tensor a = draw({16}, 31), b = draw({16}, 32);
  Tensor expected = zeros({16}, DType::Float64);
  for (std::int64_t k = 0; k < 16; ++k) expected = expected + select(a, 0, k) * roll(b, {k}, {0});
  CHECK(distance(irfft(rfft(a) * rfft(b)), expected) < 1e-14);
  CHECK(ifftshift(fftshift(a)).to_vector<double>() == a.to_vector<double>());
  CHECK(fftshift(fftfreq(5)).to_vector<float>() == std::vector<float>{-0.4F, -0.2F, 0, 0.2F, 0.4F});
  CHECK(fftfreq(4, 0.5).to_vector<float>() == std::vector<float>{0, 0.5F, -1, -0.5F});
  CHECK(rfftfreq(4, 0.5).to_vector<float>() == std::vector<float>{0, 0.5F, 1});
  CHECK(fft::fft(zeros({0, 4})).shape() == Shape{0, 4});
  CHECK(fft::fft(arange(0, 4, 1)).dtype() == DType::Float32);
}

TEST_CASE("fft: gradients, whatever the precision of products is") {
  const PrecisionScope scope(Precision::Bf16);
  for (const std::int64_t n : {5, 12, 66, 521}) {
    CAPTURE(n);
    const Tensor a = draw({n}, 40), b = draw({n}, 41);
    check_derivatives([](const Tensors& x) { return number_of(fft::fft(Complex(x[0], x[1]))); },
                      {a, b});
    check_derivatives([](const Tensors& x) { return number_of(fft::rfft(x[0])); }, {a});
    check_derivatives(
        [&](const Tensors& x) { return square(fft::irfft(Complex(x[0], x[1]), n)).sum(); }, {a, b});
    CHECK(distance(fft::irfft(fft::rfft(a), n), a) < 1e-13);
  }
}

TEST_CASE("fft: complex numbers") {
  const Complex a = draw_complex({4, 4}, 50), b = draw_complex({4}, 52);
  const Numbers x = numbers_of(a);
  Numbers y;
  for (int row = 0; row < 4; ++row)
    for (const auto& z : numbers_of(b)) y.push_back(z);
  Numbers product, quotient, exponential, conjugate;
  for (std::size_t k = 0; k < x.size(); ++k) {
    product.push_back(x[k] * y[k]);
    quotient.push_back(x[k] / y[k]);
    exponential.push_back(std::exp(x[k]));
    conjugate.push_back(std::conj(x[k]));
  }
  CHECK(distance(numbers_of(a * b), product) < 1e-15);
  CHECK(distance(numbers_of(a / b), quotient) < 1e-14);
  CHECK(distance(numbers_of(exp(a)), exponential) < 1e-14);
  CHECK(distance(numbers_of(conj(a)), conjugate) == 0);
  CHECK(distance(a + b - b, a) < 1e-14);
  CHECK(distance(polar(abs(a), angle(a)), a) < 1e-14);
  CHECK(distance(view_as_complex(view_as_real(a)), a) == 0);
  CHECK(distance(matmul(a, a) - matmul(a, a), Complex(zeros({4, 4}, DType::Float64))) == 0);
  const Complex eyes(eye(4, {}, DType::Float64));
  CHECK(distance(matmul(a, eyes), a) == 0);
  check_derivatives(
      [](const Tensors& p) { return number_of(Complex(p[0], p[1]) / Complex(p[1], p[0])); },
      {a.real, a.imaginary});
  check_derivatives(
      [](const Tensors& p) {
        return square(abs(Complex(p[0], p[1])) + angle(Complex(p[0], p[1]))).sum();
      },
      {a.real, a.imaginary});
  // Absolute values without overflow, and their gradients at 0 and at equal parts.
  CHECK(abs(Complex(Tensor::from({3e200}, {1}), Tensor::from({4e200}, {1}))).item() ==
        doctest::Approx(5e200));
  const Tensor zero = variable(zeros({1}, DType::Float64)),
               one = variable(ones({1}, DType::Float64));
  CHECK(grad(abs(Complex(zero, zero * 0.0)).sum(), zero).item() == 0);
  CHECK(grad(abs(Complex(one, one.detach())).sum(), one).item() == doctest::Approx(std::sqrt(0.5)));
  CHECK_THROWS_AS(Complex(zeros({2}), zeros({3})), ShapeError);
  CHECK_THROWS_AS(view_as_complex(zeros({2, 3})), ShapeError);
}

TEST_CASE("fft: short-time transforms are inverted, and see a tone at its frequency") {
  const Tensor x = draw({2, 400}, 60);
  const Tensor window =
      (0.5 - 0.5 * cos(arange(0, 32, 1, DType::Float64) * (2 * std::numbers::pi / 32))).compute();
  for (const bool onesided : {true, false})
    for (const bool normalized : {true, false}) {
      const StftOptions o{.size = 40,
                          .hop = 8,
                          .window = window,
                          .normalized = normalized,
                          .onesided = onesided,
                          .length = 400};
      const Complex found = stft(x, o);
      CHECK(found.shape() == Shape{2, onesided ? 21 : 40, 51});
      CHECK(distance(istft(found, o), x) < 1e-13);
    }
  const Tensor tone = cos(arange(0, 800, 1, DType::Float64) * (2 * std::numbers::pi * 5 / 64));
  const Tensor power = abs(stft(tone, {.size = 64, .center = false}));
  CHECK(power.shape() == Shape{33, 47});
  CHECK(argmax(select(power, 1, 20)).item<std::int64_t>() == 5);
  CHECK_THROWS_AS(stft(x, {}), ValueError);
  CHECK_THROWS_AS(stft(zeros({10}), {.size = 64, .center = false}), ShapeError);
  CHECK_THROWS_AS(stft(x, {.size = 16, .window = window}), ShapeError);
  CHECK_THROWS_AS(istft(Complex(zeros({3, 4})), {.size = 64}), ShapeError);
  check_derivatives([&](const Tensors& p) { return number_of(stft(p[0], {.size = 16})); },
                    {draw({60}, 61)});
}

TEST_CASE("fft: mel filters are triangles between corners at equal distances in mel") {
  for (const bool slaney : {false, true}) {
    const std::int64_t n = 8001;
    const Tensor filters = mel_filters({.filters = 10,
                                        .frequencies = n,
                                        .rate = 16000,
                                        .low = 100,
                                        .high = 7000,
                                        .slaney = slaney});
    CHECK(filters.shape() == Shape{n, 10});
    const Tensor peaks = filters.argmax(0);
    double previous = 0;
    for (std::int64_t k = 0; k < 10; ++k) {
      const double peak = static_cast<double>(select(peaks, 0, k).item<std::int64_t>());
      CHECK(peak > previous);
      previous = peak;
      const double area = select(filters, 1, k).sum().item();
      if (slaney) CHECK(area == doctest::Approx(1).epsilon(0.01));
    }
    CHECK(select(filters, 0, 50).sum().item() == 0);
    CHECK(select(filters, 0, 7500).sum().item() == 0);
  }
  // The middle corner of one HTK filter: half of the mels of 8 kHz.
  const Tensor one = mel_filters({.filters = 1, .frequencies = 8001, .rate = 16000});
  const double middle = 700 * (std::pow(10, std::log10(1 + 8000 / 700.0) / 2) - 1);
  CHECK(one.argmax(0).item() == doctest::Approx(middle).epsilon(0.001));
  CHECK_THROWS_AS(mel_filters({.filters = 0, .frequencies = 10}), ValueError);
  CHECK_THROWS_AS(mel_filters({.frequencies = 10, .low = 9000}), ValueError);
}

TEST_CASE("fft: refusals name the operation") {
  Complex parts;
  parts.real = ones({4});
  CHECK_THROWS_WITH_AS(fft::fft(parts), doctest::Contains("fft: tensor 2 of 2 has no value"),
                       ValueError);
  CHECK_THROWS_AS(fft::irfft(parts), ValueError);
  parts.imaginary = ones({5});
  CHECK_THROWS_WITH_AS(fft::irfft(parts),
                       doctest::Contains("shapes [4] and [5]; they must be equal"), ShapeError);
  CHECK_THROWS_AS(fft::ifft(parts), ShapeError);
  CHECK_THROWS_WITH_AS(fft::fft(scalar(1.0)), doctest::Contains("fft::fft"), ShapeError);
  CHECK_THROWS_WITH_AS(fft::rfft(zeros({3}), 0), doctest::Contains("fft::rfft: a transform of 0"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(fft::irfft(zeros({1})), doctest::Contains("fft::irfft"), ShapeError);
  CHECK_THROWS_AS(fft::fft(zeros({3}), {}, 1), ShapeError);
  CHECK_THROWS_AS(fft::fftn(zeros({3, 3}), {{2}, {0, 1}}), ValueError);
  CHECK_THROWS_AS(fft::fftn(zeros({3, 3}), {{}, {0, 0}}), ValueError);
  CHECK_THROWS_AS(fft::rfftn(scalar(1.0)), ShapeError);
}
