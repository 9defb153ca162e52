// Orthogonal polynomials by their recurrences in float64. Gradients are those of the recurrence,
// which is exact.
#include <algorithm>
#include <cstdint>

#include <tenon/error.h>
#include <tenon/special.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// P_0 = 1, P_1 = first(x), P_k from P_(k - 1) and P_(k - 2).
struct Family {
  const char* name;
  Tensor (*first)(const Tensor& x);
  Tensor (*next)(const Tensor& x, double k, const Tensor& last, const Tensor& before);
  bool shifted = false;  // of 2 x - 1
};

constexpr std::int64_t kMostDegree = 1024;

void require_degree(const Family& family, std::int64_t most) {
  if (most > kMostDegree)
    throw make_error<ValueError>(where(family.name), ": the degree is ", most, ", must be at most ",
                                 kMostDegree);
}

// Calls use(k, P_k) for the degrees 0 to `most`.
template <class Use>
void each_degree(const Family& family, const Tensor& x, std::int64_t most, Use&& use) {
  Tensor before = ones_like(x), last = family.first(x);
  for (std::int64_t k = 0; k <= most; ++k) {
    if (k >= 2) {
      const Tensor next = family.next(x, static_cast<double>(k), last, before);
      before = last, last = next;
    }
    use(k, k == 0 ? before : last);
  }
}

DType result_of_number(DType x) { return is_floating(x) ? x : DType::Float32; }

Tensor argument(const Family& family, const Tensor& x) {
  const Tensor wide = cast(x, DType::Float64);
  return family.shifted ? wide * 2 - 1 : wide;
}

Tensor of_degree(const Family& family, const Tensor& x, std::int64_t n) {
  const Called called(family.name);
  require_defined(family.name, x);
  require_degree(family, n);
  const Tensor at = argument(family, x);
  Tensor out = zeros_like(at);
  each_degree(family, at, n, [&](std::int64_t, const Tensor& value) { out = value; });
  return cast(out, result_of_number(x.dtype()));
}

Tensor of_degrees(const Family& family, const Tensor& x, const Tensor& n) {
  const Called called(family.name);
  const auto [a, b] = aligned(family.name, x, n);
  const DType dtype = result_of_number(a.dtype());
  const Tensor at = argument(family, a), degree = trunc(cast(b, DType::Float64));
  Tensor out = zeros_like(at);
  if (at.numel() == 0) return cast(out, dtype);
  const double most = cast(amax(n), DType::Float64).to_vector<double>()[0];
  require_degree(family, static_cast<std::int64_t>(std::clamp(most, -1.0, kMostDegree + 1.0)));
  each_degree(family, at, static_cast<std::int64_t>(std::max(most, -1.0)),
              [&](std::int64_t k, const Tensor& value) {
                out = where(eq(degree, static_cast<double>(k)), value, out);
              });
  return cast(out, dtype);
}

// ---- The recurrences

using Step = const Tensor&;

Tensor twice(Step x) { return x * 2; }
Tensor itself(Step x) { return x; }
Tensor chebyshev_v_first(Step x) { return x * 2 - 1; }
Tensor chebyshev_w_first(Step x) { return x * 2 + 1; }
Tensor laguerre_first(Step x) { return 1 - x; }
Tensor chebyshev(Step x, double, Step last, Step before) { return x * 2 * last - before; }
Tensor hermite(Step x, double k, Step last, Step before) {
  return x * 2 * last - before * (2 * (k - 1));
}
Tensor hermite_e(Step x, double k, Step last, Step before) { return x * last - before * (k - 1); }
Tensor laguerre(Step x, double k, Step last, Step before) {
  return ((2 * k - 1 - x) * last - before * (k - 1)) / k;
}
Tensor legendre(Step x, double k, Step last, Step before) {
  return (x * last * (2 * k - 1) - before * (k - 1)) / k;
}

}  // namespace

#define TENON_POLYNOMIAL(name, ...)                                                              \
  Tensor name(const Tensor& x, std::int64_t n) { return of_degree({#name, __VA_ARGS__}, x, n); } \
  Tensor name(const Tensor& x, const Tensor& n) { return of_degrees({#name, __VA_ARGS__}, x, n); }
TENON_POLYNOMIAL(chebyshev_polynomial_t, itself, chebyshev)
TENON_POLYNOMIAL(chebyshev_polynomial_u, twice, chebyshev)
TENON_POLYNOMIAL(chebyshev_polynomial_v, chebyshev_v_first, chebyshev)
TENON_POLYNOMIAL(chebyshev_polynomial_w, chebyshev_w_first, chebyshev)
TENON_POLYNOMIAL(shifted_chebyshev_polynomial_t, itself, chebyshev, true)
TENON_POLYNOMIAL(shifted_chebyshev_polynomial_u, twice, chebyshev, true)
TENON_POLYNOMIAL(shifted_chebyshev_polynomial_v, chebyshev_v_first, chebyshev, true)
TENON_POLYNOMIAL(shifted_chebyshev_polynomial_w, chebyshev_w_first, chebyshev, true)
TENON_POLYNOMIAL(hermite_polynomial_h, twice, hermite)
TENON_POLYNOMIAL(hermite_polynomial_he, itself, hermite_e)
TENON_POLYNOMIAL(laguerre_polynomial_l, laguerre_first, laguerre)
TENON_POLYNOMIAL(legendre_polynomial_p, itself, legendre)
#undef TENON_POLYNOMIAL

}  // namespace tenon
