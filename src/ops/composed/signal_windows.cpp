// Windows of signals, computed in float64.
#include <numbers>

#include <tenon/error.h>
#include <tenon/signal_windows.h>
#include <tenon/special.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon::windows {
namespace {

constexpr double kPi = std::numbers::pi;

// The window of the numbers 0, 1, … of its elements and of the last number of its period. A window
// of one element is 1.
template <class F>
Tensor window(const char* name, std::int64_t count, bool symmetric, DType dtype, F&& f) {
  const Called called(name);
  if (count < 0)
    throw make_error<ValueError>(where(name), ": the count is ", count, ", must be at least 0");
  if (!is_floating(dtype))
    throw make_error<DTypeError>(where(name), ": the dtype is ", dtype, ", must be floating");
  if (count <= 1) return ones({count}, dtype);
  return cast(
      f(arange(0, count, 1, DType::Float64), static_cast<double>(symmetric ? count - 1 : count)),
      dtype);
}

Tensor cosines(const char* name, std::int64_t count, std::span<const double> factors,
               bool symmetric, DType dtype) {
  return window(name, count, symmetric, dtype, [factors](const Tensor& k, double period) {
    Tensor sum = zeros_like(k);
    for (std::size_t j = 0; j < factors.size(); ++j)
      sum = sum + cos(k * (2 * kPi * static_cast<double>(j) / period)) *
                      (j % 2 == 0 ? factors[j] : -factors[j]);
    return sum;
  });
}

}  // namespace

Tensor bartlett(std::int64_t count, bool symmetric, DType dtype) {
  return window("bartlett", count, symmetric, dtype,
                [](const Tensor& k, double period) { return 1 - abs(k * (2 / period) - 1); });
}
Tensor blackman(std::int64_t count, bool symmetric, DType dtype) {
  constexpr double kFactors[] = {0.42, 0.5, 0.08};
  return cosines("blackman", count, kFactors, symmetric, dtype);
}
Tensor cosine(std::int64_t count, bool symmetric, DType dtype) {
  return window("cosine", count, symmetric, dtype, [](const Tensor& k, double period) {
    return sin((k + 0.5) * (kPi / (period + 1)));
  });
}
Tensor hamming(std::int64_t count, bool symmetric, DType dtype) {
  return general_hamming(count, 0.54, symmetric, dtype);
}
Tensor hann(std::int64_t count, bool symmetric, DType dtype) {
  return general_hamming(count, 0.5, symmetric, dtype);
}
Tensor nuttall(std::int64_t count, bool symmetric, DType dtype) {
  constexpr double kFactors[] = {0.3635819, 0.4891775, 0.1365995, 0.0106411};
  return cosines("nuttall", count, kFactors, symmetric, dtype);
}
Tensor exponential(std::int64_t count, double tau, bool symmetric, DType dtype) {
  if (!(tau > 0))
    throw make_error<ValueError>(where("exponential"), ": tau is ", tau, ", must be above 0");
  return window("exponential", count, symmetric, dtype, [tau](const Tensor& k, double period) {
    return exp(abs(k - period / 2) * (-1 / tau));
  });
}
Tensor gaussian(std::int64_t count, double std, bool symmetric, DType dtype) {
  if (!(std > 0))
    throw make_error<ValueError>(where("gaussian"), ": std is ", std, ", must be above 0");
  return window("gaussian", count, symmetric, dtype, [std](const Tensor& k, double period) {
    return exp(square((k - period / 2) / std) * -0.5);
  });
}
Tensor general_cosine(std::int64_t count, std::span<const double> factors, bool symmetric,
                      DType dtype) {
  if (factors.empty()) throw make_error<ValueError>(where("general_cosine"), ": no factors");
  return cosines("general_cosine", count, factors, symmetric, dtype);
}
Tensor general_hamming(std::int64_t count, double alpha, bool symmetric, DType dtype) {
  const double factors[] = {alpha, 1 - alpha};
  return cosines("general_hamming", count, factors, symmetric, dtype);
}
Tensor kaiser(std::int64_t count, double beta, bool symmetric, DType dtype) {
  if (!(beta >= 0))
    throw make_error<ValueError>(where("kaiser"), ": beta is ", beta, ", must not be negative");
  return window("kaiser", count, symmetric, dtype, [beta](const Tensor& k, double period) {
    const Tensor inside = 1 - square(k * (2 / period) - 1);
    return i0(sqrt(maximum(inside, 0)) * beta) / i0(scalar(beta, DType::Float64));
  });
}

}  // namespace tenon::windows
