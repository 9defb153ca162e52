// Probabilities and logits: each form from the other.
#include <algorithm>

#include <tenon/error.h>

#include "base/epsilon.h"
#include "distributions/family.h"

namespace tenon::distributions {
namespace {

Tensor kept_inside(const Tensor& probs) {
  const double edge = epsilon_of(probs.dtype());
  return clamp(probs, edge, 1 - edge);
}

Argument inner_of(const Argument& probs) {
  if (probs.is_number()) return std::clamp(probs.number(), 0x1p-23, 1 - 0x1p-23);
  require_defined("Probs", probs.tensor());
  return kept_inside(to_floating(probs.tensor()));
}
Argument logits_of(const Argument& inner) {
  if (inner.is_number()) return std::log(inner.number()) - std::log1p(-inner.number());
  return log(inner.tensor()) - log1p(-inner.tensor());
}
Argument probs_of(const Argument& logits) {
  if (logits.is_number()) return 1 / (1 + std::exp(-logits.number()));
  require_defined("Logits", logits.tensor());
  return sigmoid(to_floating(logits.tensor()));
}

Tensor classes_of(const char* family, const Argument& given) {
  if (given.is_number() || (given.tensor().defined() && given.tensor().rank() == 0))
    throw make_error<ShapeError>(where(family),
                                 ": probabilities of classes are a tensor [.., classes], not one "
                                 "number");
  require_defined(family, given.tensor());
  if (given.tensor().size(-1) == 0)
    throw make_error<ShapeError>(where(family), ": probabilities ", given.tensor().shape(),
                                 " of no class");
  return to_floating(given.tensor());
}

}  // namespace

ProbsAndLogits::ProbsAndLogits(const Probs& given)
    : probs(given.value), inner(inner_of(given.value)), logits(logits_of(inner)) {}
ProbsAndLogits::ProbsAndLogits(const Logits& given)
    : probs(probs_of(given.value)), inner(inner_of(probs)), logits(given.value) {}

ClassProbabilities::ClassProbabilities(const char* family, const Probs& given) {
  const Tensor weights = classes_of(family, given.value);
  probs = weights / sum(weights, -1, true);
  logits = log(kept_inside(probs));
}
ClassProbabilities::ClassProbabilities(const char* family, const Logits& given) {
  logits = log_softmax(classes_of(family, given.value), -1);
  probs = softmax(logits, -1);
}

}  // namespace tenon::distributions
