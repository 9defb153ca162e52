// The gamma function's logarithm and its derivatives, the Hurwitz zeta function, and the incomplete
// gamma functions. Each value is computed in float64.
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <tenon/error.h>
#include <tenon/special.h>

#include "base/make_error.h"
#include "ops/composed/special_tables.h"
#include "ops/formula.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// x without its nearest integer, so that sin(π x) is exact at integers.
Tensor part(const Tensor& x) { return x - round(x); }
Tensor is_whole(const Tensor& x) { return eq(x, floor(x)); }

// lgamma() of z >= 1: a polynomial times the zeros at 1 and 2, and Lanczos' sum from 3 on.
Tensor log_gamma_from_1(const Tensor& z) {
  const Tensor t = z - 2.0, near = t * (z - 1.0) * polynomial(t, tables::kLogGamma);
  const Tensor inverse = 1.0 / z;
  const Tensor sum =
      polynomial(inverse, tables::kLanczos) / polynomial(inverse, tables::kLanczosBelow);
  const Tensor far = log(sum) + (z - 0.5) * (log(z + (6.024680040776729583740234375 - 0.5)) - 1.0);
  return where(lt(z, 3), near, far);
}

Tensor log_gamma(const Tensor& x) {
  const Tensor negative = lt(x, 0), between = lt(x, 1);
  const Tensor value = log_gamma_from_1(where(negative, 1.0 - x, where(between, x + 1.0, x)));
  const Tensor reflected = log(kPi / abs(sin(part(x) * kPi))) - value;
  return where(isinf(x), kInfinity,
               where(negative, reflected, where(between, value - log(x), value)));
}

// digamma() of x >= 0: the recurrence ten times, then the asymptotic series.
Tensor digamma_from_0(const Tensor& x) {
  constexpr double kSeries[] = {1.0 / 12,  -691.0 / 32760, 1.0 / 132, -1.0 / 240,
                                1.0 / 252, -1.0 / 120,     1.0 / 12};
  Tensor below = 1.0 / x;
  for (int k = 1; k < 10; ++k) below = below + 1.0 / (x + static_cast<double>(k));
  const Tensor far = x + 10.0, inverse = 1.0 / far, square = inverse * inverse;
  return log(far) - inverse * 0.5 - square * polynomial(square, kSeries) - below;
}

Tensor digamma_value(const Tensor& x) {
  const Tensor negative = lt(x, 0);
  const Tensor value = digamma_from_0(where(negative, 1.0 - x, x));
  const Tensor turn = part(x) * kPi;
  const Tensor reflected = where(is_whole(x), kNan, value - kPi * cos(turn) / sin(turn));
  return where(negative, reflected, value);
}

// Denominators (2 k)! / B_2k of the Euler-Maclaurin series.
constexpr double kMaclaurin[] = {12.0,
                                 -720.0,
                                 30240.0,
                                 -1209600.0,
                                 47900160.0,
                                 -1.8924375803183791606e9,
                                 7.47242496e10,
                                 -2.950130727918164224e12,
                                 1.1646782814350067249e14,
                                 -4.5979787224074726105e15,
                                 1.8152105401943546773e17,
                                 -7.1661652561756670113e18};

// The sum of (q + k)^-s over k >= 0 for q > 0 and s > 1: ten terms, and the Euler-Maclaurin series
// of the others. `power(a)` is a^-s.
template <class Exponent, class Power>
Tensor zeta_from_0(const Exponent& s, const Tensor& q, Power&& power) {
  Tensor sum = power(q), last = sum;
  for (int k = 1; k < 10; ++k) last = power(q + static_cast<double>(k)), sum = sum + last;
  const Tensor end = q + 9.0, inverse = 1.0 / end, square = inverse * inverse;
  Tensor series = full({}, 1 / kMaclaurin[11], DType::Float64);
  for (int k = 10; k >= 0; --k)
    series = (s + (2.0 * k + 1)) * (s + (2.0 * k + 2)) * square * series + 1 / kMaclaurin[k];
  const Tensor rest = last * (end / (s - 1.0) - 0.5 + series * s * inverse);
  return where(eq(last, 0), sum, sum + rest);
}

// d^n cot(x) / dx^n as a polynomial in cot(x); the highest power comes first.
std::vector<double> cotangent_derivative(std::int64_t n) {
  std::vector<double> p{0, 1};  // by power
  for (std::int64_t k = 0; k < n; ++k) {
    std::vector<double> next(p.size() + 1, 0);
    for (std::size_t i = 1; i < p.size(); ++i) {
      next[i - 1] -= static_cast<double>(i) * p[i];
      next[i + 1] -= static_cast<double>(i) * p[i];
    }
    p = std::move(next);
  }
  return {p.rbegin(), p.rend()};
}

// a^-n for a whole n, by squaring.
Tensor inverse_power(const Tensor& a, std::int64_t n) {
  Tensor factor = 1.0 / a, out;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) out = out.defined() ? out * factor : factor;
    factor = factor * factor;
  }
  return out;
}

Tensor polygamma_value(std::int64_t n, const Tensor& x) {
  if (n == 0) return digamma_value(x);
  const Tensor negative = lt(x, 0);
  const double sign = n % 2 == 0 ? -1 : 1, factorial = std::tgamma(static_cast<double>(n) + 1);
  const Tensor value = zeta_from_0(static_cast<double>(n) + 1, where(negative, 1.0 - x, x),
                                   [n](const Tensor& a) { return inverse_power(a, n + 1); }) *
                       (sign * factorial);
  const Tensor turn = part(x) * kPi;
  const Tensor slope = polynomial(cos(turn) / sin(turn), cotangent_derivative(n)) *
                       std::pow(kPi, static_cast<double>(n) + 1);
  const Tensor pole = le(x, 0) & is_whole(x);
  return where(pole, sign * kInfinity, where(negative, value * -sign - slope, value));
}

Tensor zeta_value(const Tensor& s, const Tensor& q) {
  const auto positive = [&s](const Tensor& at) {
    return zeta_from_0(s, at, [&s](const Tensor& a) { return pow(a, -s); });
  };
  // For q < 0, terms of negative numbers come first: they are a difference of two sums.
  const Tensor size = abs(q), rest = size - floor(size), sign = 1.0 - remainder(s, 2.0) * 2.0;
  const Tensor reflected = positive(1.0 - rest) + sign * (positive(rest) - positive(size + 1.0));
  const Tensor below = where(is_whole(q), kInfinity, where(is_whole(s), reflected, kNan));
  const Tensor value = where(le(q, 0), below, where(isinf(q), 0.0, positive(q)));
  const Tensor known = where(eq(s, 1), kInfinity, where(lt(s, 1), kNan, value));
  return where(isnan(s) | isnan(q), s + q, known);
}

}  // namespace

Tensor lgamma(const Tensor& x) {
  const Called called("lgamma");
  require_defined("lgamma", x);
  return formula(Formula::lgamma, {to_floating(x)});
}

Tensor polygamma(std::int64_t n, const Tensor& x) {
  const Called called("polygamma");
  require_defined("polygamma", x);
  constexpr std::int64_t kMost = 169;  // the factorial of a higher order is infinite
  if (n < 0 || n > kMost)
    throw make_error<ValueError>(where("polygamma"), ": the order is ", n, ", must be from 0 to ",
                                 kMost);
  return formula(Formula::polygamma, {to_floating(x)}, n);
}

Tensor digamma(const Tensor& x) {
  const Called called("digamma");
  require_defined("digamma", x);
  return polygamma(0, x);
}

Tensor mvlgamma(const Tensor& x, std::int64_t p) {
  const Called called("mvlgamma");
  require_defined("mvlgamma", x);
  if (p < 1) throw make_error<ValueError>(where("mvlgamma"), ": p is ", p, ", must be at least 1");
  const Tensor in = to_floating(x);
  Tensor sum = lgamma(in);
  for (std::int64_t k = 1; k < p; ++k) sum = sum + lgamma(in - 0.5 * static_cast<double>(k));
  return sum + 0.25 * static_cast<double>(p) * static_cast<double>(p - 1) * std::log(kPi);
}

Tensor zeta(const Tensor& s, const Tensor& q) {
  const Called called("zeta");
  const auto [a, b] = aligned("zeta", s, q);
  return formula(Formula::zeta, {without_gradient(to_floating(a), Undifferentiable::ZetaExponent),
                                 to_floating(b)});
}

Tensor value_lgamma(FormulaInputs x, std::int64_t) { return log_gamma(x[0]); }
Tensor value_polygamma(FormulaInputs x, std::int64_t order) { return polygamma_value(order, x[0]); }
Tensor value_zeta(FormulaInputs in, std::int64_t) { return zeta_value(in[0], in[1]); }

std::vector<Tensor> gradient_lgamma(const Tensor& out, const Tensor& g) {
  return {g * digamma(input_of(out, 0))};
}
std::vector<Tensor> gradient_polygamma(const Tensor& out, const Tensor& g) {
  return {g * polygamma(formula_parameter(out) + 1, input_of(out, 0))};
}
std::vector<Tensor> gradient_zeta(const Tensor& out, const Tensor& g) {
  const Tensor s = input_of(out, 0), q = input_of(out, 1);
  // The gradient of s is refused where it is built: s passes without_gradient().
  return {g, g * (-s * zeta(s + 1, q))};
}

}  // namespace tenon
