// Inverse hyperbolic functions and hypot(). Each value is computed in float64.
#include <limits>
#include <numbers>

#include <tenon/elementwise.h>
#include <tenon/error.h>

#include "ops/formula.h"
#include "ops/infer.h"

namespace tenon {
namespace {

constexpr double kLarge = 1e8;  // beyond, x² + 1 is x² in float64, and x² may overflow

Tensor log_of_double(const Tensor& x) { return log(x) + std::numbers::ln2; }
// An odd function from its values at |x|; 0 keeps its sign.
Tensor odd(const Tensor& x, const Tensor& value) {
  return where(eq(x, 0), x, where(lt(x, 0), -value, value));
}

}  // namespace

#define TENON_FORMULA_OF_ONE(name)                   \
  Tensor name(const Tensor& x) {                     \
    const Called called(#name);                      \
    require_defined(#name, x);                       \
    return formula(Formula::name, {to_floating(x)}); \
  }
TENON_FORMULA_OF_ONE(acosh)
TENON_FORMULA_OF_ONE(asinh)
TENON_FORMULA_OF_ONE(atanh)
#undef TENON_FORMULA_OF_ONE

Tensor hypot(const Tensor& a, const Tensor& b) {
  const Called called("hypot");
  const auto [x, y] = aligned("hypot", a, b);
  return formula(Formula::hypot, {to_floating(x), to_floating(y)},
                 x.dtype() == DType::Float64 ? 0 : 1);
}

Tensor value_acosh(FormulaInputs in, std::int64_t) {
  const Tensor above = in[0] - 1.0;
  return where(gt(in[0], kLarge), log_of_double(in[0]), log1p(above + sqrt(above * (above + 2.0))));
}
Tensor value_asinh(FormulaInputs in, std::int64_t) {
  const Tensor size = abs(in[0]), square = size * size;
  return odd(in[0], where(gt(size, kLarge), log_of_double(size),
                          log1p(size + square / (sqrt(square + 1.0) + 1.0))));
}
Tensor value_atanh(FormulaInputs in, std::int64_t) {
  const Tensor size = abs(in[0]);
  return odd(in[0], log1p(size * 2.0 / (1.0 - size)) * 0.5);
}
// Squares of operands of fewer bits are far from the limits of float64.
Tensor value_hypot(FormulaInputs in, std::int64_t squares_fit) {
  const Tensor infinite = isinf(in[0]) | isinf(in[1]);
  if (squares_fit != 0) return where(infinite, kInfinity, sqrt(in[0] * in[0] + in[1] * in[1]));
  const Tensor a = abs(in[0]), b = abs(in[1]), most = maximum(a, b), least = minimum(a, b);
  const Tensor part = least / where(eq(most, 0), 1.0, most);
  return where(infinite, kInfinity, most * sqrt(part * part + 1.0));
}

std::vector<Tensor> gradient_acosh(const Tensor& out, const Tensor& g) {
  return {g * rsqrt(square(input_of(out, 0)) - 1)};
}
std::vector<Tensor> gradient_asinh(const Tensor& out, const Tensor& g) {
  return {g * rsqrt(square(input_of(out, 0)) + 1)};
}
std::vector<Tensor> gradient_atanh(const Tensor& out, const Tensor& g) {
  return {g / (1 - square(input_of(out, 0)))};
}
std::vector<Tensor> gradient_hypot(const Tensor& out, const Tensor& g) {
  return {g * (input_of(out, 0) / out), g * (input_of(out, 1) / out)};
}

}  // namespace tenon
