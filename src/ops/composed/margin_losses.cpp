// Losses of margins, pairs, triplets, distributions, several labels and masks, built from other
// ops.
#include <cmath>
#include <numbers>

#include <tenon/elementwise.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/losses.h>
#include <tenon/statistics.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/losses.h"

namespace tenon {
namespace {

// max(0, x).
Tensor hinge(const Tensor& x) { return relu(x); }

void require_shape(const char* op, const char* what, const Tensor& x, const Shape& wanted) {
  if (x.shape() != wanted)
    throw make_error<ShapeError>(where(op), ": ", what, " is ", x.shape(), ", must be ", wanted);
}

void require_floating(const char* op, const Tensor& x) {
  if (!is_floating(x.dtype()))
    throw make_error<DTypeError>(where(op), ": takes floating tensors, not ", x.dtype(),
                                 ": cast it first");
}

// [N, C] for [C], and whether an axis was added.
Tensor as_rows(const char* op, const Tensor& x) {
  require_floating(op, x);
  if (x.rank() != 1 && x.rank() != 2)
    throw make_error<ShapeError>(where(op), ": takes [N, C] or [C], not ", x.shape());
  return x.rank() == 1 ? unsqueeze(x, 0) : x;
}

Tensor first_if(bool single, const Tensor& losses) { return single ? squeeze(losses, 0) : losses; }

}  // namespace

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& y, double margin,
                           Reduction reduction) {
  const Called called("margin_ranking_loss");
  require_equal_shapes("margin_ranking_loss", a, b);
  require_equal_shapes("margin_ranking_loss", a, y);
  return reduced_loss(hinge(margin - y * (a - b)), reduction);
}

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& y, double margin, Reduction reduction) {
  const Called called("hinge_embedding_loss");
  require_equal_shapes("hinge_embedding_loss", x, y);
  require_floating("hinge_embedding_loss", x);
  const Tensor apart = where(ne(y, 1), hinge(margin - x), 0.0), together = where(ne(y, -1), x, 0.0);
  return reduced_loss(apart + together, reduction);
}

Tensor soft_margin_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  const Called called("soft_margin_loss");
  require_equal_shapes("soft_margin_loss", x, y);
  require_floating("soft_margin_loss", x);
  return reduced_loss(-logsigmoid(y * x), reduction);
}

Tensor multi_margin_loss(const Tensor& x, const Tensor& target, int p, double margin,
                         Reduction reduction) {
  const Called called("multi_margin_loss");
  require_defined("multi_margin_loss", x, target);
  if (p != 1 && p != 2)
    throw make_error<ValueError>(where("multi_margin_loss"), ": p is ", p, ", must be 1 or 2");
  const Tensor rows = as_rows("multi_margin_loss", x);
  require_class_indices("multi_margin_loss", x, target);
  const std::int64_t classes = rows.size(1);
  const Tensor index =
      require_classes("multi_margin_loss", reshape(target, {rows.size(0)}), classes);
  const Tensor own = gather(rows, 1, unsqueeze(index, 1));
  Tensor excess = hinge(margin - own + rows);
  if (p == 2) excess = square(excess);
  const Tensor others = ne(unsqueeze(index, 1), arange(0, classes, 1, index.dtype()));
  return reduced_loss(first_if(x.rank() == 1, mean(where(others, excess, 0.0), {1})), reduction);
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& y, double margin,
                             Reduction reduction) {
  const Called called("cosine_embedding_loss");
  require_equal_shapes("cosine_embedding_loss", a, b);
  require_defined("cosine_embedding_loss", y);
  const Tensor left = as_rows("cosine_embedding_loss", a),
               right = as_rows("cosine_embedding_loss", b);
  require_shape("cosine_embedding_loss", "y", y, a.rank() == 1 ? Shape{} : Shape{a.size(0)});
  // PyTorch adds its epsilon to the squares.
  constexpr double kEps = 1e-12;
  const Tensor squares = (sum(left * left, {1}) + kEps) * (sum(right * right, {1}) + kEps);
  const Tensor cosine = first_if(a.rank() == 1, sum(left * right, {1}) / sqrt(squares));
  return reduced_loss(where(eq(y, 1), 1.0 - cosine, where(eq(y, -1), hinge(cosine - margin), 0.0)),
                      reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletOptions& o) {
  const Called called("triplet_margin_loss");
  require_equal_shapes("triplet_margin_loss", anchor, positive);
  require_equal_shapes("triplet_margin_loss", anchor, negative);
  require_floating("triplet_margin_loss", anchor);
  if (!(o.margin > 0))
    throw make_error<ValueError>(where("triplet_margin_loss"), ": the margin is ", o.margin,
                                 ", must be positive");
  const auto distance = [&](const Tensor& x, const Tensor& y) {
    return vector_norm(x - y + o.eps, o.p, {-1});
  };
  Tensor far = distance(anchor, negative);
  if (o.swap) far = minimum(far, distance(positive, negative));
  return reduced_loss(hinge(distance(anchor, positive) - far + o.margin), o.reduction);
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                         const Tensor& negative, const TripletDistanceOptions& o) {
  constexpr const char* kName = "triplet_margin_with_distance_loss";
  const Called called(kName);
  require_equal_shapes(kName, anchor, positive);
  require_equal_shapes(kName, anchor, negative);
  require_floating(kName, anchor);
  if (!(o.margin > 0))
    throw make_error<ValueError>(where(kName), ": the margin is ", o.margin, ", must be positive");
  const auto distance = [&](const Tensor& x, const Tensor& y) {
    return o.distance ? o.distance(x, y) : pairwise_distance(x, y);
  };
  Tensor far = distance(anchor, negative);
  if (o.swap) far = minimum(far, distance(positive, negative));
  return reduced_loss(hinge(distance(anchor, positive) - far + o.margin), o.reduction);
}

Tensor info_nce_loss(const Tensor& a, const Tensor& b, double temperature, Reduction reduction) {
  const Called called("info_nce_loss");
  require_equal_shapes("info_nce_loss", a, b);
  require_floating("info_nce_loss", a);
  if (a.rank() != 2)
    throw make_error<ShapeError>(where("info_nce_loss"), ": takes [N, D], not ", a.shape());
  if (!(temperature > 0))
    throw make_error<ValueError>(where("info_nce_loss"), ": the temperature is ", temperature,
                                 ", must be positive");
  const Tensor logits = matmul(normalize(a), transpose(normalize(b))) / temperature,
               own = arange(0, a.size(0));
  return (cross_entropy(logits, own, reduction) +
          cross_entropy(transpose(logits), own, reduction)) /
         2.0;
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, Reduction reduction) {
  const Called called("poisson_nll_loss");
  require_equal_shapes("poisson_nll_loss", input, target);
  require_floating("poisson_nll_loss", input);
  Tensor losses = log_input ? exp(input) - target * input : input - target * log(input + eps);
  if (full) {
    const Tensor above = where(gt(target, 1), target, 1.0);
    const Tensor stirling = above * log(above) - above + log(above * (2 * std::numbers::pi)) * 0.5;
    losses = losses + where(gt(target, 1), stirling, 0.0);
  }
  return reduced_loss(losses, reduction);
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full,
                         double eps, Reduction reduction) {
  const Called called("gaussian_nll_loss");
  require_equal_shapes("gaussian_nll_loss", input, target);
  require_floating("gaussian_nll_loss", input);
  require_defined("gaussian_nll_loss", var);
  Tensor variance = var;
  if (var.rank() == input.rank() - 1 && input.rank() > 0) variance = unsqueeze(var, -1);
  Shape shared = input.shape();
  if (variance.shape() != shared && shared.rank() > 0) shared[shared.rank() - 1] = 1;
  if (variance.shape() != shared)
    throw make_error<ShapeError>(where("gaussian_nll_loss"), ": the variance is ", var.shape(),
                                 " for an input of ", input.shape(),
                                 "; its last axis may be 1 or missing");
  // The limit changes the value, not the gradient.
  variance = where(lt(variance, eps), eps + (variance - detach(variance)), variance);
  Tensor losses = (log(variance) + square(input - target) / variance) * 0.5;
  if (full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  return reduced_loss(losses, reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                                   Reduction reduction) {
  const Called called("multilabel_soft_margin_loss");
  require_equal_shapes("multilabel_soft_margin_loss", input, target);
  require_floating("multilabel_soft_margin_loss", input);
  if (input.rank() < 1)
    throw make_error<ShapeError>(where("multilabel_soft_margin_loss"), ": takes [.., C], not []");
  Tensor losses = -(target * logsigmoid(input) + (1.0 - target) * logsigmoid(-input));
  if (weight.defined()) losses = losses * weight;
  return reduced_loss(mean(losses, {-1}), reduction);
}

// Every label against every class that is no label.
Tensor multilabel_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  const Called called("multilabel_margin_loss");
  require_equal_shapes("multilabel_margin_loss", x, target);
  if (target.dtype() != DType::Int64 && target.dtype() != DType::Int32)
    throw make_error<DTypeError>(where("multilabel_margin_loss"),
                                 ": labels are int64 or int32, not ", target.dtype());
  const Tensor rows = as_rows("multilabel_margin_loss", x);
  const std::int64_t n = rows.size(0), classes = rows.size(1);
  const Tensor labels = cast(reshape(target, {n, classes}), DType::Int64);
  // Labels in front of the first -1.
  const Tensor named = eq(cumsum(eq(labels, -1), 1), 0);
  const Tensor index = require_classes("multilabel_margin_loss", where(named, labels, 0), classes);
  const Tensor hits =
      scatter_add(zeros({n, classes}, DType::Int64), 1, index, cast(named, DType::Int64));
  const Tensor other = unsqueeze(eq(hits, 0), 1),      // [N, 1, C]
      own = unsqueeze(gather(rows, 1, index), 2),      // [N, labels, 1]
      excess = hinge(1.0 - own + unsqueeze(rows, 1));  // [N, labels, C]
  const Tensor counted = where(other & unsqueeze(named, 2), excess, 0.0);
  return reduced_loss(first_if(x.rank() == 1, sum(counted, {1, 2}) / static_cast<double>(classes)),
                      reduction);
}

Tensor focal_loss(const Tensor& logits, const Tensor& target, double alpha, double gamma,
                  Reduction reduction) {
  const Called called("focal_loss");
  require_equal_shapes("focal_loss", logits, target);
  require_floating("focal_loss", logits);
  const Tensor missed = sigmoid(logits) * (1.0 - target) + sigmoid(-logits) * target;
  // A power below 1 has no finite gradient at 0.
  const Tensor none = eq(missed, 0);
  const auto power = [&] {
    return where(none, gamma == 0 ? 1.0 : 0.0, pow(where(none, 1.0, missed), gamma));
  };
  Tensor losses = binary_cross_entropy_with_logits(logits, target, Reduction::None);
  losses = losses * (gamma == 2 ? square(missed) : power());
  if (alpha >= 0) losses = losses * (target * alpha + (1.0 - target) * (1 - alpha));
  return reduced_loss(losses, reduction);
}

Tensor dice_loss(const Tensor& probabilities, const Tensor& target, double eps,
                 Reduction reduction) {
  const Called called("dice_loss");
  require_equal_shapes("dice_loss", probabilities, target);
  require_floating("dice_loss", probabilities);
  if (probabilities.rank() < 2)
    throw make_error<ShapeError>(where("dice_loss"), ": takes [N, …], not ", probabilities.shape());
  Ints axes;
  for (int k = 1; k < probabilities.rank(); ++k) axes.push_back(k);
  const Tensor both = sum(probabilities * target, axes);
  const Tensor all = sum(probabilities, axes) + sum(to_floating(target), axes);
  return reduced_loss(1.0 - (both * 2.0 + eps) / (all + eps), reduction);
}

}  // namespace tenon
