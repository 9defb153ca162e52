// Scalar functions with a GPU-specific implementation, real or emulated: errors in units in the
// last place over all floats.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <tenon/compute.h>
#include <tenon/ops.h>

#include "gpu.h"

using namespace tenon;

namespace {

std::vector<float> kernel() {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 90001)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (int i = -20000; i <= 20000; ++i) x.push_back(static_cast<float>(i) * 1e-3f);
  for (int i = -20000; i <= 20000; ++i) x.push_back(static_cast<float>(i) * 0.0055f);
  return x;
}

/// In units of the last place of the exact result, the smallest denormal at least.
double ulps(float got, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(exact) || std::isinf(rounded))
    return std::isnan(got) == std::isnan(exact) && (std::isnan(got) || got == rounded) ? 0 : 1e30;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(static_cast<double>(got) - exact) /
         std::ldexp(1.0, std::max(exponent - 24, -149));
}

void check(Tensor (*function)(const Tensor&), double (*exact)(double), double bound) {
  const std::vector<float> x = kernel();
  set_device("cuda");
  const std::vector<float> y =
      function(Tensor::from(x, {static_cast<std::int64_t>(x.size())})).compute().to_vector<float>();
  set_device("cpu");
  double worst = 0;
  float where = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], exact(static_cast<double>(x[i])));
    if (!(error <= worst)) worst = error, where = x[i];
  }
  CHECK_MESSAGE(worst <= bound, worst << " ulp at " << where);
}

}  // namespace

TEST_CASE("cuda functions: errors of exp, tanh and sigmoid") {
  if (!test::has_gpu()) return;
  check([](const Tensor& x) { return exp(x); }, [](double x) { return std::exp(x); }, 2);
  check([](const Tensor& x) { return tanh(x); }, [](double x) { return std::tanh(x); }, 3);
  check([](const Tensor& x) { return sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); },
        3);
}

TEST_CASE("cuda functions: relative errors of functions of 16-bit numbers, computed in float32") {
  if (!test::has_gpu()) return;
  struct Case {
    const char* name;
    Tensor (*function)(const Tensor&);
    double (*exact)(double);
    double bound, slope;  // of the error: bound + slope |x|
  };
  const Case cases[] = {{"exp", [](const Tensor& x) { return exp(x); },
                         [](double x) { return std::exp(x); }, 4e-7, 8e-8},
                        {"tanh", [](const Tensor& x) { return tanh(x); },
                         [](double x) { return std::tanh(x); }, 5e-6, 0},
                        {"sigmoid", [](const Tensor& x) { return sigmoid(x); },
                         [](double x) { return 1 / (1 + std::exp(-x)); }, 1e-6, 8e-8}};
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits < (1u << 16); ++bits)  // every bfloat16
    x.push_back(std::bit_cast<float>(bits << 16));
  for (const Case& c : cases) {
    CAPTURE(c.name);
    set_device("cuda");
    const Tensor half =
        cast(Tensor::from(x, {static_cast<std::int64_t>(x.size())}), DType::BFloat16).compute();
    const std::vector<float> y =
        c.function(cast(half, DType::Float32)).compute().to_vector<float>();
    set_device("cpu");
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double number = x[i], exact = c.exact(number);
      CAPTURE(number);
      if (!std::isfinite(number) || std::fabs(exact) > std::numeric_limits<float>::max()) {
        CHECK(ulps(y[i], exact) == 0);
        continue;
      }
      const double smallest = 1.2e-38;  // below, results may be 0
      const double error = std::fabs(static_cast<double>(y[i]) - exact);
      const double allowed = std::fabs(exact) * (c.bound + c.slope * std::fabs(number)) + smallest;
      if (!(error <= allowed)) CHECK(error <= allowed);
    }
  }
}
