// Small layers: instance norm, channel dropout, activations with arguments, and the cross-entropy
// loss as a layer.
#include <tenon/error.h>
#include <tenon/layers.h>

#include "base/str.h"

namespace tenon::nn {

InstanceNorm::InstanceNorm(const char* kind, int rank, std::int64_t channels,
                           const InstanceNormOptions& options)
    : kind_(kind), rank_(rank), channels_(channels), options_(options) {
  if (channels < 1)
    throw ValueError(cat(kind, ": the number of channels is ", channels, ", must be at least 1"));
  if (!(options.momentum >= 0 && options.momentum <= 1))
    throw ValueError(cat(kind, ": momentum is ", options.momentum, ", must be in [0, 1]"));
  const Shape shape{channels};
  if (options.affine) {
    weight_ = parameter("weight", ones(shape));
    bias_ = parameter("bias", zeros(shape));
  }
  if (options.track_running_stats) {
    running_mean_ = buffer("running_mean", zeros(shape));
    running_var_ = buffer("running_var", ones(shape));
    num_batches_tracked_ = buffer("num_batches_tracked", zeros({}, DType::Int64));
  }
}

Tensor InstanceNorm::forward(const Tensor& x) const {
  const bool alone = x.rank() == rank_ - 1;
  if ((!alone && x.rank() != rank_) || x.size(alone ? 0 : 1) != channels_)
    throw ShapeError(cat(kind_, ": the input is ", x.shape(), ", must have ", rank_,
                         " axes, the second of ", channels_, ", or ", rank_ - 1,
                         " without a batch"));
  return alone ? squeeze(normalised(unsqueeze(x, 0)), 0) : normalised(x);
}

Tensor InstanceNorm::normalised(const Tensor& x) const {
  if (!is_training() && running_mean_.defined())
    return batch_norm(x, running_mean_, running_var_, weight_, bias_, options_.eps);
  if (is_training() && running_mean_.defined()) renew(x);
  return instance_norm(x, weight_, bias_, options_.eps);
}

// Updates the running statistics with the means, over samples, of means and unbiased variances. As
// in PyTorch, num_batches_tracked exists but is not counted.
void InstanceNorm::renew(const Tensor& x) const {
  if (x.numel() == 0) return;
  Ints places;
  for (int axis = 2; axis < x.rank(); ++axis) places.push_back(axis);
  const DType dtype = running_mean_.dtype();
  const Tensor wide = cast(x, dtype);
  const auto mixed = [&](const Tensor& old, const Tensor& now) {
    return old * (1 - options_.momentum) + mean(now, {0}) * options_.momentum;
  };
  update(running_mean_, mixed(running_mean_, mean(wide, places)));
  update(running_var_, mixed(running_var_, var(wide, places)));
}

std::string InstanceNorm::describe() const {
  std::string text = cat(kind_, "(", channels_);
  if (options_.eps != InstanceNormOptions().eps) text += cat(", eps=", options_.eps);
  if (options_.momentum != InstanceNormOptions().momentum)
    text += cat(", momentum=", options_.momentum);
  if (options_.affine) text += ", affine=true";
  if (options_.track_running_stats) text += ", track_running_stats=true";
  return text + ")";
}

ChannelDropout::ChannelDropout(const char* kind, int rank, double p, Generator* generator)
    : kind_(kind), rank_(rank), p_(p), generator_(generator) {
  if (!(p >= 0 && p <= 1)) throw ValueError(cat(kind, ": p is ", p, ", must be in [0, 1]"));
}

Tensor ChannelDropout::forward(const Tensor& x) const {
  if (x.rank() != rank_)
    throw ShapeError(cat(kind_, ": the input is ", x.shape(), ", must have ", rank_, " axes"));
  if (!is_training() || p_ == 0) return x;
  Shape one{x.size(0), x.size(1)};
  while (one.rank() < rank_) one.push_back(1);
  return x * dropout(ones(one, x.dtype()), p_, true, generator_);
}

std::string ChannelDropout::describe() const { return cat(kind_, "(p=", p_, ")"); }

PReLU::PReLU(std::int64_t count, double slope) {
  if (count < 1)
    throw ValueError(cat("PReLU: the number of slopes is ", count, ", must be at least 1"));
  weight_ = parameter("weight", full({count}, slope));
}

std::string PReLU::describe() const { return cat("PReLU(", weight_.size(0), ")"); }
std::string CELU::describe() const { return cat("CELU(", alpha_, ")"); }
std::string GLU::describe() const { return cat("GLU(", axis_, ")"); }

Tensor CrossEntropyLoss::operator()(const Tensor& logits, const Tensor& target) const {
  if (!weight.defined() && !ignore_index)
    return cross_entropy(logits, target, reduction, label_smoothing);
  return cross_entropy(logits, target,
                       ClassLossOptions{reduction, label_smoothing, weight, ignore_index});
}

}  // namespace tenon::nn
