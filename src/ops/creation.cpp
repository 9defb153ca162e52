// Tensors of evenly spaced numbers, permutations and samples, composed from other ops.
#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/statistics.h>

#include "base/make_error.h"
#include "ops/index_check.h"
#include "ops/infer.h"

namespace tenon {
namespace {

void require_count(const char* op, std::int64_t count) {
  if (count < 0)
    throw make_error<ValueError>(where(op), ": the count is ", count, ", must be at least 0");
}

// Each half is computed from its own end, so that both ends are exact.
Tensor spaced(double start, double end, std::int64_t count) {
  const Tensor k = arange(0, count, 1, DType::Float64);
  const double steps = count > 1 ? static_cast<double>(count - 1) : 1, step = (end - start) / steps;
  if (count <= 1) return k + start;
  return where(k < static_cast<double>(count) / 2, k * step + start, end - (steps - k) * step);
}

}  // namespace

Tensor eye(std::int64_t rows, std::optional<std::int64_t> columns, DType dtype) {
  const Called called("eye");
  require_count("eye", rows);
  require_count("eye", columns.value_or(rows));
  return cast(eq(unsqueeze(arange(0, rows), 1), arange(0, columns.value_or(rows))), dtype);
}

Tensor arange(Scalar end, DType dtype) { return arange(0, end, 1, dtype); }

Tensor linspace(double start, double end, std::int64_t count, DType dtype) {
  const Called called("linspace");
  require_count("linspace", count);
  return cast(spaced(start, end, count), dtype);
}

Tensor logspace(double start, double end, std::int64_t count, double base, DType dtype) {
  const Called called("logspace");
  require_count("logspace", count);
  return cast(pow(scalar(base, DType::Float64), spaced(start, end, count)), dtype);
}

Tensor full_like(const Tensor& x, Scalar value) {
  require_defined("full_like", x);
  return full(x.shape(), value, x.dtype());
}
Tensor rand_like(const Tensor& x, const OptionalGenerator& generator) {
  require_defined("rand_like", x);
  return rand(x.shape(), x.dtype(), generator);
}
Tensor randn_like(const Tensor& x, const OptionalGenerator& generator) {
  require_defined("randn_like", x);
  return randn(x.shape(), x.dtype(), generator);
}

Tensor randperm(std::int64_t count, const OptionalGenerator& generator) {
  const Called called("randperm");
  require_count("randperm", count);
  return argsort(rand({count}, DType::Float64, generator));
}

Tensor bernoulli(const Tensor& probabilities, const OptionalGenerator& generator) {
  const Called called("bernoulli");
  require_defined("bernoulli", probabilities);
  if (!is_floating(probabilities.dtype()))
    throw make_error<DTypeError>(where("bernoulli"), ": probabilities are floating, not ",
                                 probabilities.dtype());
  const DType drawn =
      item_size(probabilities.dtype()) == 2 ? DType::Float32 : probabilities.dtype();
  return cast(rand(probabilities.shape(), drawn, generator) < cast(probabilities, drawn),
              probabilities.dtype());
}

Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement,
                   const OptionalGenerator& generator) {
  const Called called("multinomial");
  const OpPlace at = where("multinomial");
  require_defined("multinomial", weights);
  if (!is_floating(weights.dtype()))
    throw make_error<DTypeError>(at, ": weights are floating, not ", weights.dtype());
  if (weights.rank() < 1 || weights.rank() > 2 || weights.size(-1) == 0)
    throw make_error<ShapeError>(at, ": weights ", weights.shape(),
                                 "; they must be [classes] or [rows, classes], with a class");
  const std::int64_t classes = weights.size(-1);
  if (count < 1 || (!replacement && count > classes))
    throw make_error<ValueError>(at, ": ", count, " of ", classes, " classes",
                                 replacement ? "" : " without replacement");
  const Tensor w = detach(cast(weights, DType::Float64));
  Shape drawn_shape = w.shape();
  Tensor drawn;
  if (replacement) {
    drawn_shape[w.rank() - 1] = count;
    const Tensor until = cumsum(w, -1), all = slice(until, -1, classes - 1, classes);
    // A number in (0, all], which never falls on a class of weight 0.
    drawn = searchsorted(until, (1.0 - rand(drawn_shape, DType::Float64, generator)) * all);
  } else {
    const Tensor times = -log(1.0 - rand(drawn_shape, DType::Float64, generator)) / w;
    drawn = topk(where(w > 0.0, times, std::numeric_limits<double>::infinity()), count, -1, false)
                .indices;
  }
  // A class without a positive weight becomes an index out of range, which is refused at run time.
  const Tensor inside = minimum(drawn, classes - 1);
  const Tensor checked = where(gather(w, w.rank() - 1, inside) > 0.0, inside, classes);
  return checked + zeros_within(reshape(checked, {checked.numel()}), classes)
                       .reshape(to_ints(checked.shape()));
}

}  // namespace tenon
