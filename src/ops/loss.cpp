// Losses, built from other ops. Losses with class weights or between distributions are in
// class_loss.cpp.
//
// For class indices the target's log-probability is selected by comparing with 0, 1, 2, …: only
// element-wise work and row sums, which fuse with the softmax. A gather's gradient would scatter.
#include <limits>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "ops/infer.h"
#include "ops/losses.h"

namespace tenon {
Tensor reduced_loss(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::None:
      return losses;
    case Reduction::Mean:
      return mean(losses);
    case Reduction::Sum:
      return sum(losses);
  }
  throw InternalError("a loss with an unknown reduction");
}

void require_equal_shapes(const char* op, const Tensor& input, const Tensor& target) {
  require_defined(op, input, target);
  if (input.shape() != target.shape())
    throw make_error<ShapeError>(where(op), ": input is ", input.shape(), ", target ",
                                 target.shape(), "; they must be equal: ",
                                 input.numel() == target.numel()
                                     ? cat("reshape(target, ", input.shape(), ") makes them so")
                                     : std::string("reshape one of them"));
}

Tensor classes_last(const Tensor& x) {
  if (x.rank() == 1) return x;
  Ints axes{0};
  for (int a = 2; a < x.rank(); ++a) axes.push_back(a);
  axes.push_back(1);
  return permute(x, axes);
}

void require_class_axis(const char* op, const Tensor& x) {
  if (x.rank() < 1)
    throw make_error<ShapeError>(where(op), ": input must be [C], [N, C] or [N, C, …], not ",
                                 x.shape());
  if (!is_floating(x.dtype()))
    throw make_error<DTypeError>(where(op), ": takes floating numbers, not ", x.dtype(),
                                 "; cast it first");
}

void require_class_indices(const char* op, const Tensor& x, const Tensor& target) {
  if (target.dtype() != DType::Int64 && target.dtype() != DType::Int32)
    throw make_error<DTypeError>(where(op), ": class indices are int64 or int32, not ",
                                 target.dtype(), "; cast them");
  Ints wanted = to_ints(x.shape());
  wanted.erase(wanted.begin() + (x.rank() > 1));
  if (target.shape() != to_shape(wanted))
    throw make_error<ShapeError>(where(op), ": input is ", x.shape(),
                                 ", so the class indices must be ", to_shape(wanted), ", not ",
                                 target.shape());
}

void require_probabilities(const char* op, const Tensor& x, const Tensor& target) {
  if (target.rank() < x.rank())
    throw make_error<DTypeError>(where(op), ": class indices are int64 or int32, not ",
                                 target.dtype(),
                                 ": cast them; probabilities have the input's shape ", x.shape());
  require_equal_shapes(op, x, target);
}

// Selects the indices from 0, 1, 2, … by gather(), which refuses indices out of range. This check
// depends on nothing else, so it runs concurrently with the computation of the loss.
Tensor require_classes(const char* op, const Tensor& index, std::int64_t classes) {
  const Called called(op);
  const Tensor numbers = arange(0, classes, 1, index.dtype());
  return reshape(gather(numbers, 0, reshape(index, {index.numel()})), to_ints(index.shape()));
}

namespace {

bool is_stored(const Tensor& x) {
  return kind_of(x.node()->op) == OpKind::Leaf || x.node()->realised();
}

// -logp[.., target] over the last axis. A class out of range yields NaN until the error is
// reported. Of stored numbers only those of the targets are read; others are picked by the
// reduction that computes them.
Tensor picked_loss(const char* op, const Tensor& logp, const Tensor& target) {
  const std::int64_t classes = logp.size(-1);
  const Tensor index = unsqueeze(require_classes(op, target, classes), -1);
  const Tensor numbers = arange(0, classes, 1, target.dtype());
  const Tensor picked =
      classes > 0 && is_stored(logp)
          ? squeeze(gather(logp, logp.rank() - 1, clamp(cast(index, DType::Int64), 0, classes - 1)),
                    -1)
          : sum(where(eq(index, numbers), logp, 0), {-1});
  const Tensor known = logical_and(ge(target, 0), lt(target, classes));
  return where(known, -picked, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, Reduction reduction,
                     double label_smoothing) {
  const Called called("cross_entropy");
  require_defined("cross_entropy", logits, target);
  require_class_axis("cross_entropy", logits);
  if (!(label_smoothing >= 0 && label_smoothing <= 1))
    throw make_error<ValueError>(where("cross_entropy"), ": the label smoothing ", label_smoothing,
                                 " is outside [0, 1]");
  const Tensor logp = log_softmax(classes_last(logits), -1);
  const double kept = 1 - label_smoothing, classes = static_cast<double>(logp.size(-1));
  Tensor losses;
  if (is_floating(target.dtype())) {
    require_probabilities("cross_entropy", logits, target);
    Tensor weights = classes_last(target);
    if (label_smoothing != 0) weights = weights * kept + label_smoothing / classes;
    losses = -sum(weights * logp, {-1});
  } else {
    require_class_indices("cross_entropy", logits, target);
    losses = picked_loss("cross_entropy", logp, target);
    if (label_smoothing != 0)
      losses = losses * kept - sum(logp, {-1}) * (label_smoothing / classes);
  }
  // With probabilities as targets the mean is over samples, not over samples and classes: `losses`
  // has one element for each sample.
  return reduced_loss(losses, reduction);
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, Reduction reduction) {
  const Called called("nll_loss");
  require_defined("nll_loss", log_probabilities, target);
  require_class_axis("nll_loss", log_probabilities);
  require_class_indices("nll_loss", log_probabilities, target);
  return reduced_loss(picked_loss("nll_loss", classes_last(log_probabilities), target), reduction);
}

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  const Called called("mse_loss");
  require_equal_shapes("mse_loss", input, target);
  return reduced_loss(square(input - target), reduction);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  const Called called("l1_loss");
  require_equal_shapes("l1_loss", input, target);
  return reduced_loss(abs(input - target), reduction);
}

namespace {

// The square, or 0 where the difference is far, so that an infinite distance leaves no NaN in the
// gradient of the branch not taken. A NaN difference is not far, and its gradient is NaN.
Tensor square_of_near(const Tensor& difference, const Tensor& is_far) {
  return square(where(is_far, 0, difference));
}

}  // namespace

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction, double beta) {
  const Called called("smooth_l1_loss");
  require_equal_shapes("smooth_l1_loss", input, target);
  if (!(beta >= 0))
    throw make_error<ValueError>(where("smooth_l1_loss"), ": beta is ", beta,
                                 "; it must not be negative");
  const Tensor difference = input - target, distance = abs(difference);
  if (beta == 0) return reduced_loss(distance, reduction);
  const Tensor is_far = ge(distance, beta);
  return reduced_loss(
      where(is_far, distance - 0.5 * beta, square_of_near(difference, is_far) * (0.5 / beta)),
      reduction);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction, double delta) {
  const Called called("huber_loss");
  require_equal_shapes("huber_loss", input, target);
  if (!(delta > 0))
    throw make_error<ValueError>(where("huber_loss"), ": delta is ", delta,
                                 "; it must be positive");
  const Tensor difference = input - target, distance = abs(difference);
  const Tensor is_far = ge(distance, delta);
  return reduced_loss(
      where(is_far, (distance - 0.5 * delta) * delta, square_of_near(difference, is_far) * 0.5),
      reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        Reduction reduction) {
  const Called called("binary_cross_entropy_with_logits");
  require_equal_shapes("binary_cross_entropy_with_logits", input, target);
  const Tensor x = to_floating(input), positive = ge(x, 0);
  // log(1 + exp(-x)) in the form that does not overflow. Uses branches, not abs, so that the
  // gradient at 0 is exact.
  const Tensor softplus_minus = where(positive, 0, -x) + log1p(exp(where(positive, -x, x)));
  return reduced_loss((1 - target) * x + softplus_minus, reduction);
}

}  // namespace tenon
