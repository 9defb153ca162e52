// Element-wise operations and products with an addend, composed from those of ops.h.
#include <cmath>
#include <limits>
#include <numbers>

#include <tenon/elementwise.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/rearrange.h>
#include <tenon/statistics.h>

#include "base/make_error.h"
#include "ops/formula.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// The largest finite number of a dtype.
double largest(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return 65504;
    case DType::BFloat16:
      return 0x1.FEp127;
    case DType::Float64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

// The number beside x; a beta of 0 does not read x, whose NaN would spread.
Tensor scaled(const Tensor& x, Scalar by) {
  if (by.real() == 1) return x;
  return by.is_zero() ? zeros_like(x) : mul(x, by);
}

Tensor with_addend(const char* op, const Tensor& x, const Tensor& product, Scalar beta,
                   Scalar alpha) {
  (void)broadcast_shapes(x.shape(), product.shape(), op);
  const Tensor shaped = scaled(product, alpha);
  return beta.is_zero() ? shaped : scaled(broadcast_to(x, product.shape()), beta) + shaped;
}

void require_rank(const char* op, const Tensor& x, int rank) {
  if (x.rank() != rank)
    throw make_error<ShapeError>(where(op), ": an operand is ", x.shape(), ", must have ", rank,
                                 rank == 1 ? " axis" : " axes");
}

// x * log(y), and 0 where x is 0 and the logarithm is not finite. Elsewhere the gradient of x is
// the logarithm, also where x is 0.
Tensor times_log(const Tensor& x, const Tensor& y, double pole,
                 Tensor (*logarithm)(const Tensor&)) {
  const Tensor number = to_floating(y);
  const Tensor cut = eq(x, 0) & (le(number, pole) | isposinf(number));
  const Tensor product = x * logarithm(where(cut, pole + 1, number));
  return where(cut, constant({}, 0, product.dtype()), product);
}

// Where both limits hold, the gradient is 1, as that of clamp().
Tensor limited(const char* op, const Tensor& x, Scalar limit, bool below) {
  const DType dtype = scalar_dtype(x.dtype(), limit);
  if (!is_floating(dtype)) return below ? maximum(x, limit) : minimum(x, limit);
  const Tensor y = cast(x, dtype);
  return where(below ? lt(y, limit) : gt(y, limit), scalar_operand(op, limit, {}, dtype), y);
}

}  // namespace

Tensor clamp_min(const Tensor& x, Scalar low) {
  const Called called("clamp_min");
  require_defined("clamp_min", x);
  return limited("clamp_min", x, low, true);
}
Tensor clamp_max(const Tensor& x, Scalar high) {
  const Called called("clamp_max");
  require_defined("clamp_max", x);
  return limited("clamp_max", x, high, false);
}

Tensor frac(const Tensor& x) {
  const Called called("frac");
  require_defined("frac", x);
  return x - trunc(x);
}
Tensor rad2deg(const Tensor& x) {
  const Called called("rad2deg");
  require_defined("rad2deg", x);
  return x * (180 / std::numbers::pi);
}
Tensor deg2rad(const Tensor& x) {
  const Called called("deg2rad");
  require_defined("deg2rad", x);
  return x * (std::numbers::pi / 180);
}

Tensor logit(const Tensor& x, std::optional<double> eps) {
  const Called called("logit");
  require_defined("logit", x);
  const Tensor p = to_floating(x);
  // The lower limit wins if eps is above a half, as in PyTorch.
  const Tensor inside = eps ? where(lt(p, *eps), *eps, where(gt(p, 1 - *eps), 1 - *eps, p)) : p;
  // The quotient is exact near a half. At 0 and 1, only the difference has the infinite gradient.
  const Tensor between = gt(inside, 0) & lt(inside, 1), safe = where(between, inside, 0.5);
  return where(between, log(safe / (1.0 - safe)), log(inside) - log1p(-inside));
}

Tensor entr(const Tensor& x) {
  const Called called("entr");
  require_defined("entr", x);
  return formula(Formula::entr, {to_floating(x)});
}
Tensor value_entr(FormulaInputs x, std::int64_t) {
  const Tensor& p = x[0];
  const Tensor positive = gt(p, 0) | isnan(p);
  const Tensor safe = where(positive, p, 1.0);
  return where(positive, -safe * log(safe),
               where(eq(p, 0), 0.0, full({}, -std::numeric_limits<double>::infinity(), p.dtype())));
}

std::vector<Tensor> gradient_entr(const Tensor& out, const Tensor& g) {
  return {g * (-1 - log(input_of(out, 0)))};  // infinite at 0
}

Tensor ndtr(const Tensor& x) {
  const Called called("ndtr");
  require_defined("ndtr", x);
  return 0.5 * (1.0 + erf(to_floating(x) * std::numbers::sqrt2 * 0.5));
}

Tensor isposinf(const Tensor& x) {
  const Called called("isposinf");
  require_defined("isposinf", x);
  return isinf(x) & gt(x, 0);
}
Tensor isneginf(const Tensor& x) {
  const Called called("isneginf");
  require_defined("isneginf", x);
  return isinf(x) & lt(x, 0);
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> positive,
                  std::optional<double> negative) {
  const Called called("nan_to_num");
  require_defined("nan_to_num", x);
  if (!is_floating(x.dtype())) return x;
  const double most = largest(x.dtype());
  const Tensor number = where(isnan(x), nan, x);
  return where(eq(x, kInfinity), positive.value_or(most),
               where(eq(x, -kInfinity), negative.value_or(-most), number));
}

Tensor softmin(const Tensor& x, int axis) {
  const Called called("softmin");
  require_defined("softmin", x);
  return softmax(-x, axis);
}

Tensor softshrink(const Tensor& x, double lambd) {
  const Called called("softshrink");
  require_defined("softshrink", x);
  if (!(lambd >= 0))
    throw make_error<ValueError>(where("softshrink"), ": lambd is ", lambd,
                                 ", must not be negative");
  // As in PyTorch, the threshold is an element of x, also where it is subtracted.
  const double edge = is_floating(x.dtype()) ? stored_value(lambd, x.dtype()) : lambd;
  return where(gt(x, edge), x - edge, where(lt(x, -edge), x + edge, x * 0.0));
}

Tensor hardshrink(const Tensor& x, double lambd) {
  const Called called("hardshrink");
  require_defined("hardshrink", x);
  return where(ge(x, -lambd) & le(x, lambd), 0.0, x);
}

Tensor tanhshrink(const Tensor& x) {
  const Called called("tanhshrink");
  require_defined("tanhshrink", x);
  return x - tanh(x);
}

Tensor threshold(const Tensor& x, Scalar threshold, Scalar value) {
  const Called called("threshold");
  require_defined("threshold", x);
  return where(le(x, threshold), scalar_operand("threshold", value, {}, x.dtype()), x);
}

Tensor fmax(const Tensor& a, const Tensor& b) {
  const Called called("fmax");
  require_defined("fmax", a, b);
  return where(isnan(a), b, where(isnan(b), a, maximum(a, b)));
}
Tensor fmin(const Tensor& a, const Tensor& b) {
  const Called called("fmin");
  require_defined("fmin", a, b);
  return where(isnan(a), b, where(isnan(b), a, minimum(a, b)));
}

Tensor fmod(const Tensor& a, const Tensor& b) {
  const Called called("fmod");
  require_defined("fmod", a, b);
  const Tensor negative = lt(a, 0);
  if (is_floating(promote(a.dtype(), b.dtype()))) {
    // Of magnitudes, because a remainder with the sign of b loses digits if |b| is much larger.
    const Tensor rest = remainder(where(negative, -a, a), where(lt(b, 0), -b, b));
    return where(negative, -rest, rest);
  }
  const Tensor floored = remainder(a, b);  // has the sign of b
  const Tensor other = ne(floored, 0) & ne(negative, lt(b, 0));
  return where(other, floored - b, floored);
}

Tensor heaviside(const Tensor& x, const Tensor& values) {
  const Called called("heaviside");
  require_defined("heaviside", x, values);
  const Tensor step = cast(gt(x, 0), promote(x.dtype(), values.dtype()));
  return where(eq(x, 0), values, where(isnan(x), x, step));
}

Tensor xlogy(const Tensor& x, const Tensor& y) {
  const Called called("xlogy");
  require_defined("xlogy", x, y);
  return times_log(x, y, 0, log);
}
Tensor xlog1py(const Tensor& x, const Tensor& y) {
  const Called called("xlog1py");
  require_defined("xlog1py", x, y);
  return times_log(x, y, -1, log1p);
}

Tensor ldexp(const Tensor& x, const Tensor& exponent) {
  const Called called("ldexp");
  require_defined("ldexp", x, exponent);
  const DType both = promote(x.dtype(), exponent.dtype());
  const DType dtype = is_floating(both) ? both : DType::Float32;
  const DType computed = item_size(dtype) == 2 ? DType::Float32 : dtype;  // 2^exponent may overflow
  return cast(cast(x, computed) * exp2(cast(exponent, computed)), dtype);
}

Tensor logaddexp2(const Tensor& a, const Tensor& b) {
  const Called called("logaddexp2");
  require_defined("logaddexp2", a, b);
  return logaddexp(a * std::numbers::ln2, b * std::numbers::ln2) * std::numbers::log2e;
}

Tensor float_power(const Tensor& x, const Tensor& exponent) {
  const Called called("float_power");
  require_defined("float_power", x, exponent);
  return pow(cast(x, DType::Float64), cast(exponent, DType::Float64));
}

Tensor isin(const Tensor& x, const Tensor& test, bool invert) {
  const Called called("isin");
  require_defined("isin", x, test);
  if (test.numel() == 0) return full(x.shape(), invert ? 1 : 0, DType::Bool);
  const Tensor flat = reshape(x, {x.numel()}), tested = reshape(test, {test.numel()});
  constexpr std::int64_t kCompared = 64;  // more are sorted, and searched in logarithmic time
  Tensor found;
  if (test.numel() <= kCompared) {
    found = any(eq(unsqueeze(flat, 1), tested), 1);
  } else {
    const Tensor sorted = sort(tested, 0).values;
    found =
        eq(index_select(sorted, 0, minimum(searchsorted(sorted, flat), test.numel() - 1)), flat);
  }
  const Tensor shaped = reshape(found, to_ints(x.shape()));
  return invert ? ~shaped : shaped;
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
  const Called called("addcmul");
  require_defined("addcmul", x, a, b);
  return x + scaled(a * b, value);
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
  const Called called("addcdiv");
  require_defined("addcdiv", x, a, b);
  return x + scaled(a / b, value);
}
Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  const Called called("addmm");
  require_defined("addmm", x, a, b);
  require_rank("addmm", a, 2), require_rank("addmm", b, 2);
  return with_addend("addmm", x, matmul(a, b), beta, alpha);
}
Tensor addmv(const Tensor& x, const Tensor& matrix, const Tensor& vector, Scalar beta,
             Scalar alpha) {
  const Called called("addmv");
  require_defined("addmv", x, matrix, vector);
  require_rank("addmv", matrix, 2), require_rank("addmv", vector, 1);
  return with_addend("addmv", x, matmul(matrix, vector), beta, alpha);
}
Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  const Called called("addr");
  require_defined("addr", x, a, b);
  require_rank("addr", a, 1), require_rank("addr", b, 1);
  return with_addend("addr", x, outer(a, b), beta, alpha);
}
Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  const Called called("baddbmm");
  require_defined("baddbmm", x, a, b);
  require_rank("baddbmm", a, 3), require_rank("baddbmm", b, 3);
  return with_addend("baddbmm", x, matmul(a, b), beta, alpha);
}
Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  const Called called("addbmm");
  require_defined("addbmm", x, a, b);
  require_rank("addbmm", a, 3), require_rank("addbmm", b, 3);
  return with_addend("addbmm", x, cast(sum(matmul(a, b), 0), promote(a.dtype(), b.dtype())), beta,
                     alpha);
}

Tensor dist(const Tensor& a, const Tensor& b, double p) {
  const Called called("dist");
  require_defined("dist", a, b);
  return vector_norm(a - b, p);
}
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  const Called called("pairwise_distance");
  require_defined("pairwise_distance", a, b);
  return vector_norm(a - b + eps, p, {-1}, keepdim);
}

Tensor cross(const Tensor& a, const Tensor& b, int axis) {
  const Called called("cross");
  const OpPlace at = where("cross");
  require_defined("cross", a, b);
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), at);
  const int d = axis_of("cross", axis, shape.rank());
  if (shape.rank() == 0 || a.rank() != b.rank() || a.size(d) != 3 || b.size(d) != 3)
    throw make_error<ShapeError>(at, ": ", a.shape(), " and ", b.shape(), "; axis ", axis,
                                 " of both must have 3 elements");
  const Tensor left = broadcast_to(a, shape), right = broadcast_to(b, shape);
  return roll(left, {-1}, {d}) * roll(right, {-2}, {d}) -
         roll(left, {-2}, {d}) * roll(right, {-1}, {d});
}

}  // namespace tenon
