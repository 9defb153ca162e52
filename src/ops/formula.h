// Op::Formula: a function that is composed of other ops and has a gradient of its own. The planner
// writes it in other ops (decompose), so it is fused like any chain of element-wise ops.
//
// A formula is a line of formulas.inc and two functions in the file of its family.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#include <tenon/ops.h>

namespace tenon {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kPi = std::numbers::pi;

enum class Formula : std::int64_t {
#define TENON_FORMULA(name, in_double) name,
#include "ops/formulas.inc"
};

using FormulaInputs = std::span<const Tensor>;

#define TENON_FORMULA(name, in_double)                                 \
  Tensor value_##name(FormulaInputs operands, std::int64_t parameter); \
  std::vector<Tensor> gradient_##name(const Tensor& out, const Tensor& g);
#include "ops/formulas.inc"

/// The formula of operands whose first one is floating and has the dtype and shape of the result.
Tensor formula(Formula of, std::initializer_list<Tensor> operands, std::int64_t parameter = 0);
/// The whole parameter of a formula.
std::int64_t formula_parameter(const Tensor& out);
/// The parameter if the operands get one more axis in front.
std::int64_t behind_new_axis(Formula of, std::int64_t parameter);
/// The parameter of scatter_extreme counts its axis in steps of this number.
inline constexpr std::int64_t kAxisOfExtreme = 4;

/// An argument that nobody has a derivative for.
enum class Undifferentiable : std::int64_t { ZetaExponent, GammaParameter, AiryArgument };
/// x; a gradient that arrives is refused with ValueError instead of being left out. Numbers and
/// integers are returned as they are.
Tensor without_gradient(const Tensor& x, Undifferentiable what);

/// The value that `f` computes in float64, rounded to the dtype of x.
template <class F>
Tensor in_float64(const Tensor& x, F&& f) {
  return cast(f(cast(x, DType::Float64)), x.dtype());
}

/// A polynomial by Horner's rule; the coefficient of the highest power comes first.
Tensor polynomial(const Tensor& x, std::span<const double> coefficients);
/// A Chebyshev series at x / 2 by Clenshaw's recurrence, as in Cephes: the coefficient of the
/// highest degree comes first, and the last one counts half.
Tensor chebyshev_series(const Tensor& x, std::span<const double> coefficients);

}  // namespace tenon
