// Distributions of classes: as numbers, one-hot vectors and counts; and gumbel_softmax().
#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/statistics.h>

#include "distributions/family.h"

namespace tenon::distributions {
namespace {

constexpr ParameterOf kClassProbs{"probs", Range::Any, 1}, kClassLogits{"logits", Range::Any, 1};

std::int64_t classes(const State& d) { return d[0].shape().at(-1); }

// Classes of a whole shape by inversion of the sums of probabilities, computed in float64; the
// batch axes are the last ones of `shape`.
Tensor drawn_classes(const State& d, const Shape& shape, const OptionalGenerator& generator) {
  const Shape sample = without_last(shape, d.batch.rank());
  const std::int64_t rows = d.batch.numel(), draws = sample.numel();
  const Tensor until = cumsum(cast(d[0], DType::Float64), -1);
  const Tensor all = slice(until, -1, classes(d) - 1, classes(d));
  const Tensor u = open_uniform({draws, rows}, DType::Float64, generator);
  const Tensor at = transpose(u, 0, 1) * reshape(all, {rows, 1});
  const Tensor found = searchsorted(reshape(until, {rows, classes(d)}), at);
  return reshape(transpose(minimum(found, classes(d) - 1), 0, 1), to_ints(shape));
}

// A class of probability 0 adds nothing, also to the gradient.
Tensor entropy_of_classes(const State& d) { return -sum(d[0] * where(eq(d[0], 0), 0, d[1]), -1); }

Tensor not_one_hot(const State&, const Tensor& x) {
  return any(ne(x, 0) & ne(x, 1), -1) | ne(sum(x, -1), 1);
}

std::shared_ptr<const State> of_classes(const Family& family, const ClassProbabilities& both,
                                        std::int64_t count = 0) {
  State out = state_of(family, {both.probs, both.logits});
  out.number = count;
  return shared(std::move(out));
}

std::int64_t checked_count(std::int64_t count) {
  if (count < 0)
    throw make_error<ValueError>(where("Multinomial"), ": total_count is ", count,
                                 ", must be 0 or more");
  return count;
}

}  // namespace

const Family kCategorical{
    .name = "Categorical",
    .parameters = {kClassProbs, kClassLogits},
    .draw = drawn_classes,
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Shape batch = broadcast_shapes(x.shape(), d.batch, where("Categorical"));
          const Tensor index = unsqueeze(cast(broadcast_to(x, batch), DType::Int64), -1);
          return squeeze(gather(broadcast_to(d[1], joined(batch, {classes(d)})), -1, index), -1);
        },
    .outside = [](const State& d,
                  const Tensor& x) { return is_not_count(x) | ge(x, classes(d)) | isnan(x); },
    .mean = [](const State& d) { return full(d.batch, kNotANumber, d[0].dtype()); },
    .variance = [](const State& d) { return full(d.batch, kNotANumber, d[0].dtype()); },
    .mode = [](const State& d) { return argmax(d[0], -1); },
    .entropy = entropy_of_classes,
    .values = [](const State& d) { return arange(classes(d)); },
};
Categorical::Categorical(const Probs& probs)
    : Distribution(of_classes(kCategorical, {"Categorical", probs})) {}
Categorical::Categorical(const Logits& logits)
    : Distribution(of_classes(kCategorical, {"Categorical", logits})) {}

const Family kOneHotCategorical{
    .name = "OneHotCategorical",
    .parameters = {kClassProbs, kClassLogits},
    .value_axes = 1,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return one_hot(drawn_classes(d, without_last(shape, 1), generator), classes(d),
                         d[0].dtype());
        },
    .log_prob = [](const State& d, const Tensor& x) { return sum(where(gt(x, 0), d[1], 0), -1); },
    .outside = not_one_hot,
    .mean = [](const State& d) { return d[0]; },
    .variance = [](const State& d) { return d[0] * (1 - d[0]); },
    .mode = [](const State& d) { return one_hot(argmax(d[0], -1), classes(d), d[0].dtype()); },
    .entropy = entropy_of_classes,
    .values = [](const State& d) { return eye(classes(d), classes(d), d[0].dtype()); },
};
OneHotCategorical::OneHotCategorical(const Probs& probs)
    : Distribution(of_classes(kOneHotCategorical, {"OneHotCategorical", probs})) {}
OneHotCategorical::OneHotCategorical(const Logits& logits)
    : Distribution(of_classes(kOneHotCategorical, {"OneHotCategorical", logits})) {}

static const Family kMultinomial{
    .name = "Multinomial",
    .parameters = {kClassProbs, kClassLogits},
    .value_axes = 1,
    .in_double = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Shape each = joined({d.number}, without_last(shape, 1));
          return sum(one_hot(drawn_classes(d, each, generator), classes(d), d[0].dtype()), 0);
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor ways =
              std::lgamma(static_cast<double>(d.number) + 1) - sum(lgamma(x + 1), -1);
          return ways + sum(where(gt(x, 0), x * d[1], 0), -1);
        },
    .outside = [](const State& d,
                  const Tensor& x) { return any(is_not_count(x), -1) | ne(sum(x, -1), d.number); },
    .mean = [](const State& d) { return d[0] * d.number; },
    .variance = [](const State& d) { return d[0] * (1 - d[0]) * d.number; },
    .entropy =
        [](const State& d) {
          const auto n = static_cast<double>(d.number);
          const Tensor logits = d[1] - log1p(-minimum(d[0], 1 - 0x1p-53));
          const Tensor rest = mean_log_factorial(full({}, n, d[0].dtype()), d[0], logits);
          return entropy_of_classes(d) * n - std::lgamma(n + 1) + sum(rest, -1);
        },
};
Multinomial::Multinomial(std::int64_t total_count, const Probs& probs)
    : Distribution(of_classes(kMultinomial, {"Multinomial", probs}, checked_count(total_count))) {}
Multinomial::Multinomial(std::int64_t total_count, const Logits& logits)
    : Distribution(of_classes(kMultinomial, {"Multinomial", logits}, checked_count(total_count))) {}
std::int64_t Multinomial::total_count() const { return state().number; }

}  // namespace tenon::distributions

namespace tenon {

Tensor gumbel_softmax(const Tensor& logits, double temperature, bool hard, int axis,
                      const OptionalGenerator& generator) {
  const Called called("gumbel_softmax");
  require_defined("gumbel_softmax", logits);
  if (!(temperature > 0))
    throw make_error<ValueError>(where("gumbel_softmax"), ": the temperature is ", temperature,
                                 ", must be above 0");
  const int last = axis_of("gumbel_softmax", axis, logits.rank());
  const Tensor in = to_floating(logits);
  const Tensor noise = distributions::gumbel_noise(in.shape(), in.dtype(), generator);
  Tensor soft = softmax((in + noise) / temperature, last);
  if (!hard) return soft;
  const Tensor corner = scatter(zeros_like(soft), last, argmax(soft, last, true), 1);
  return corner + (soft - detach(soft));
}

}  // namespace tenon
