// Classification losses with class weights and an ignored class, and losses between distributions.
// Plain cross entropy is in loss.cpp.
#include <limits>

#include <tenon/error.h>
#include <tenon/functional.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/losses.h"

namespace tenon {
namespace {

// A factor for each class, in the dtype of the losses; undefined: 1.
Tensor class_weights(const char* op, const Tensor& weight, const Tensor& logp) {
  if (!weight.defined()) return ones({logp.size(-1)}, logp.dtype());
  if (weight.shape() != Shape{logp.size(-1)})
    throw make_error<ShapeError>(where(op), ": the weight is ", weight.shape(), ", must be [",
                                 logp.size(-1), "]: one for each class");
  return cast(weight, logp.dtype());
}

// Losses, and the weight with which each counts in a mean.
struct Weighted {
  Tensor losses, counts;
};

Tensor reduced(const Weighted& w, Reduction reduction) {
  if (reduction != Reduction::Mean) return reduced_loss(w.losses, reduction);
  return sum(w.losses) / sum(w.counts);
}

// logp [.., C], target [..]. A target that is neither a class nor the ignored class is refused at
// run time; until then its loss is NaN.
Weighted picked(const char* op, const Tensor& logp, const Tensor& target, const Tensor& weights,
                const ClassLossOptions& o) {
  const std::int64_t classes = logp.size(-1);
  const Tensor left_out = o.ignore_index ? eq(target, *o.ignore_index) : Tensor();
  const Tensor wanted = o.ignore_index ? where(left_out, 0, target) : target;
  const Tensor hit = eq(unsqueeze(require_classes(op, wanted, classes), -1),
                        arange(0, classes, 1, target.dtype()));
  const Tensor own = sum(where(hit, weights, 0), {-1});
  Tensor losses = -sum(where(hit, logp * weights, 0), {-1});
  if (o.label_smoothing != 0)
    losses = losses * (1 - o.label_smoothing) -
             sum(logp * weights, {-1}) * (o.label_smoothing / static_cast<double>(classes));
  const Tensor known = logical_and(ge(wanted, 0), lt(wanted, classes));
  losses = where(known, losses, std::numeric_limits<double>::quiet_NaN());
  if (!o.ignore_index) return {losses, own};
  return {where(left_out, 0, losses), where(left_out, 0, own)};
}

void require_smoothing(const char* op, double smoothing) {
  if (!(smoothing >= 0 && smoothing <= 1))
    throw make_error<ValueError>(where(op), ": the label smoothing ", smoothing,
                                 " is outside [0, 1]");
}

// Near 0 and 1 logarithms are limited to -100 and slopes to 10^12, as in PyTorch. So a certain
// wrong prediction costs 100, not infinity, and a certain right one has the slope 0, not 0 ·
// infinity.
Tensor of_probability(const Tensor& p, const Tensor& target) {
  constexpr double kLeast = 1e-12, kSteepest = 1e12, kSteepestOfHalf = 32768;
  const Tensor still = detach(p), inner = gt(still * (1 - still), kLeast);
  const Tensor safe = where(inner, p, 0.5);
  const auto bounded = [](const Tensor& x) { return maximum(log(x), -100); };
  const double steepest = p.dtype() == DType::Float16 ? kSteepestOfHalf : kSteepest;
  const Tensor certain = (target - 1) * bounded(1 - still) - target * bounded(still) +
                         (p - still) * ((still - target) * steepest);
  return where(inner, (target - 1) * log(1 - safe) - target * log(safe), certain);
}

Tensor times(const Tensor& losses, const Tensor& weight) {
  return weight.defined() ? losses * weight : losses;
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const ClassLossOptions& o) {
  const Called called("cross_entropy");
  constexpr const char* kName = "cross_entropy";
  require_defined(kName, logits, target);
  require_class_axis(kName, logits);
  require_smoothing(kName, o.label_smoothing);
  const Tensor logp = log_softmax(classes_last(logits), -1);
  const Tensor weights = class_weights(kName, o.weight, logp);
  if (!is_floating(target.dtype())) {
    require_class_indices(kName, logits, target);
    return reduced(picked(kName, logp, target, weights, o), o.reduction);
  }
  require_probabilities(kName, logits, target);
  Tensor wanted = classes_last(target);
  if (o.label_smoothing != 0)
    wanted =
        wanted * (1 - o.label_smoothing) + o.label_smoothing / static_cast<double>(logp.size(-1));
  return reduced_loss(-sum(wanted * logp * weights, {-1}), o.reduction);
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const ClassLossOptions& o) {
  const Called called("nll_loss");
  constexpr const char* kName = "nll_loss";
  require_defined(kName, log_probabilities, target);
  require_class_axis(kName, log_probabilities);
  require_class_indices(kName, log_probabilities, target);
  if (o.label_smoothing != 0)
    throw make_error<ValueError>(where(kName), ": has no label smoothing: use cross_entropy");
  const Tensor logp = classes_last(log_probabilities);
  return reduced(picked(kName, logp, target, class_weights(kName, o.weight, logp), o), o.reduction);
}

Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction, bool log_target) {
  const Called called("kl_div");
  require_equal_shapes("kl_div", input, target);
  if (log_target) return reduced_loss(exp(target) * (target - input), reduction);
  // 0 log 0 is 0, and so is its gradient.
  const Tensor positive = gt(target, 0);
  const Tensor entropy = where(positive, target * log(where(positive, target, 1)), 0);
  return reduced_loss(entropy - target * input, reduction);
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const BinaryLossOptions& o) {
  const Called called("binary_cross_entropy");
  require_equal_shapes("binary_cross_entropy", input, target);
  if (o.pos_weight.defined())
    throw make_error<ValueError>(where("binary_cross_entropy"),
                                 ": has no pos_weight: use binary_cross_entropy_with_logits");
  return reduced_loss(times(of_probability(to_floating(input), target), o.weight), o.reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryLossOptions& o) {
  const Called called("binary_cross_entropy_with_logits");
  require_equal_shapes("binary_cross_entropy_with_logits", input, target);
  const Tensor x = to_floating(input), positive = ge(x, 0);
  // log(1 + exp(-x)), weighted where the target is positive.
  const Tensor softplus_minus = where(positive, 0, -x) + log1p(exp(where(positive, -x, x)));
  const Tensor factor = o.pos_weight.defined() ? 1 + target * (o.pos_weight - 1) : Tensor();
  const Tensor losses = (1 - target) * x + times(softplus_minus, factor);
  return reduced_loss(times(losses, o.weight), o.reduction);
}

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& target,
                            const ClassLossOptions& options, const Tensor& bias) {
  const Called called("linear_cross_entropy");
  return cross_entropy(linear(x, weight, bias), target, options);
}

}  // namespace tenon
