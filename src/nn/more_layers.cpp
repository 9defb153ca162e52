// Activations with arguments, distances of two inputs, the adaptive softmax.
#include <tenon/more_layers.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <tenon/error.h>
#include <tenon/joining.h>

#include "base/make_error.h"
#include "base/str.h"

namespace tenon::nn {

std::string Softmin::describe() const { return cat("Softmin(", axis_, ")"); }
std::string Softshrink::describe() const { return cat("Softshrink(", lambd_, ")"); }
std::string Hardshrink::describe() const { return cat("Hardshrink(", lambd_, ")"); }
std::string Threshold::describe() const { return cat("Threshold(", threshold_, ", ", value_, ")"); }
std::string CosineSimilarity::describe() const {
  return cat("CosineSimilarity(", axis_, eps_ == 1e-8 ? "" : cat(", eps=", eps_), ")");
}
std::string PairwiseDistance::describe() const {
  return cat("PairwiseDistance(", p_, eps_ == 1e-6 ? "" : cat(", eps=", eps_),
             keepdim_ ? ", keepdim=true" : "", ")");
}

// ---- Adaptive softmax ---------------------------------------------------------------------------

namespace {

Ints checked_cutoffs(std::int64_t classes, Ints cutoffs) {
  std::int64_t before = 0;
  for (const std::int64_t cutoff : cutoffs) {
    if (cutoff <= before || cutoff >= classes)
      throw make_error<ValueError>("AdaptiveLogSoftmaxWithLoss: a cutoff is ", cutoff,
                                   ", must be above ", before, " and below the ", classes,
                                   " classes");
    before = cutoff;
  }
  if (cutoffs.empty())
    throw ValueError(
        "AdaptiveLogSoftmaxWithLoss: there are no cutoffs: use Linear and "
        "CrossEntropyLoss for a single cluster");
  return cutoffs;
}

// Features of a cluster: div_value times fewer than the one before.
std::int64_t reduced(std::int64_t features, double div_value, std::size_t cluster) {
  return static_cast<std::int64_t>(std::floor(
      static_cast<double>(features) / std::pow(div_value, static_cast<double>(cluster + 1))));
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(std::int64_t features, std::int64_t classes,
                                                       const Ints& cutoffs,
                                                       const AdaptiveSoftmaxOptions& options)
    : features_(features),
      classes_(classes),
      cutoffs_(checked_cutoffs(classes, cutoffs)),
      head_(child("head", Linear(features, cutoffs_[0] + std::ssize(cutoffs_),
                                 {.bias = options.head_bias, .generator = options.generator}))) {
  if (!(options.div_value > 0 && std::isfinite(options.div_value)) ||
      reduced(features, options.div_value, cutoffs_.size() - 1) < 1)
    throw make_error<ValueError>("AdaptiveLogSoftmaxWithLoss: div_value is ", options.div_value,
                                 ", must be above 0 and leave the last of ", cutoffs_.size(),
                                 " clusters at least one of ", features, " features");
  const LinearOptions plain{.bias = false, .generator = options.generator};
  std::vector<AnyModule> tail;
  for (std::size_t k = 0; k < cutoffs_.size(); ++k) {
    const std::int64_t end = k + 1 < cutoffs_.size() ? cutoffs_[k + 1] : classes;
    const std::int64_t hidden = reduced(features, options.div_value, k);
    tail.emplace_back(
        Sequential(Linear(features, hidden, plain), Linear(hidden, end - cutoffs_[k], plain)));
  }
  tail_ = child("tail", ModuleList(tail));
}

AdaptiveSoftmaxResult AdaptiveLogSoftmaxWithLoss::forward(const Tensor& x,
                                                          const Tensor& target) const {
  if ((x.rank() != 1 && x.rank() != 2) || x.size(-1) != features_ ||
      target.rank() != x.rank() - 1 || (x.rank() == 2 && target.size(0) != x.size(0)))
    throw make_error<ShapeError>("AdaptiveLogSoftmaxWithLoss: the input is ", x.shape(),
                                 ", the target ", target.shape(), ", must be [N, ", features_,
                                 "] and [N], or [", features_, "] and []");
  // gather() refuses a class out of range when it is evaluated.
  const Tensor all = log_prob(x);
  const Tensor output = squeeze(gather(all, -1, unsqueeze(target, -1)), -1);
  return {output, -mean(output)};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& x) const {
  const Tensor head = log_softmax(head_(x), -1);
  std::vector<Tensor> parts{narrow(head, -1, 0, cutoffs_[0])};
  for (std::int64_t k = 0; k < tail_.size(); ++k)
    parts.push_back(log_softmax(tail_[k](x), -1) + narrow(head, -1, cutoffs_[0] + k, 1));
  return concat(parts, -1);
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& x) const {
  return argmax(log_prob(x), -1);
}

std::string AdaptiveLogSoftmaxWithLoss::describe() const {
  return cat("AdaptiveLogSoftmaxWithLoss(", features_, ", ", classes_, ")");
}

}  // namespace tenon::nn
