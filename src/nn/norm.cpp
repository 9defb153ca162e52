// Normalization layers. BatchNorm updates its running statistics in forward(); the other layers
// have no state besides parameters.
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/nn.h>

#include "base/str.h"

namespace tenon::nn {
namespace {

constexpr double kEps = 1e-5, kMomentum = 0.1;

void check_sizes(std::int64_t size, const char* layer, const char* what) {
  if (size < 1) throw ValueError(cat(layer, ": ", what, " is ", size, ", must be at least 1"));
}

std::string eps_text(double eps) { return eps == kEps ? "" : cat(", eps=", eps); }

}  // namespace

BatchNorm::BatchNorm(const char* kind, int min_rank, int max_rank, std::int64_t channels,
                     const BatchNormOptions& options)
    : kind_(kind),
      min_rank_(min_rank),
      max_rank_(max_rank),
      channels_(channels),
      options_(options) {
  check_sizes(channels, kind, "the number of channels");
  if (options.momentum && !(*options.momentum >= 0 && *options.momentum <= 1))
    throw ValueError(cat(kind, ": momentum is ", *options.momentum, ", must be in [0, 1]"));
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

Tensor BatchNorm::forward(const Tensor& x) const {
  if (x.rank() < min_rank_ || x.rank() > max_rank_ || x.size(1) != channels_)
    throw ShapeError(
        cat(kind_, ": the input is ", x.shape(), ", must have ",
            min_rank_ == max_rank_ ? cat(max_rank_) : cat(min_rank_, " or ", max_rank_),
            " axes, the second of ", channels_));
  if (!is_training() && running_mean_.defined())
    return batch_norm(x, running_mean_, running_var_, weight_, bias_, options_.eps);
  const std::int64_t count = x.numel() / channels_;
  if (is_training() && count == 1)
    throw ValueError(cat(kind_, ": the input ", x.shape(),
                         " has one value per channel, so there is no variance: train with "
                         "larger batches, or call eval()"));
  Moments batch = batch_moments(x);
  if (running_mean_.defined()) renew(batch, count);
  // Moments of an empty batch are NaN, but the weight's gradient, an empty sum, must be 0.
  if (count == 0) batch = {zeros_like(batch.mean), ones_like(batch.var)};
  return batch_norm(x, batch.mean, batch.var, weight_, bias_, options_.eps);
}

void BatchNorm::renew(const Moments& batch, std::int64_t count) const {
  const Tensor batches = num_batches_tracked_ + 1;
  update(num_batches_tracked_, batches);
  // An empty batch changes no running statistics; it is only counted, as in PyTorch.
  if (count == 0) return;
  const Tensor share = options_.momentum ? scalar(*options_.momentum, running_mean_.dtype())
                                         : reciprocal(cast(batches, running_mean_.dtype()));
  const auto mixed = [&](const Tensor& old, const Tensor& now) {
    return old * (1 - share) + cast(now, old.dtype()) * share;
  };
  const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
  update(running_mean_, mixed(running_mean_, batch.mean));
  update(running_var_, mixed(running_var_, batch.var * unbiased));
}

std::string BatchNorm::describe() const {
  std::string text = cat(kind_, "(", channels_, eps_text(options_.eps));
  if (!options_.momentum) text += ", momentum=none";
  if (options_.momentum && *options_.momentum != kMomentum)
    text += cat(", momentum=", *options_.momentum);
  if (!options_.affine) text += ", affine=false";
  if (!options_.track_running_stats) text += ", track_running_stats=false";
  return text + ")";
}

LayerNorm::LayerNorm(const Shape& shape, const LayerNormOptions& options)
    : shape_(shape), eps_(options.eps) {
  for (std::int64_t size : shape) check_sizes(size, "LayerNorm", "a size");
  if (options.elementwise_affine) weight_ = parameter("weight", ones(shape));
  if (options.elementwise_affine && options.bias) bias_ = parameter("bias", zeros(shape));
}

Tensor LayerNorm::forward(const Tensor& x) const {
  return layer_norm(x, shape_, weight_, bias_, eps_);
}

std::string LayerNorm::describe() const {
  return cat("LayerNorm(", shape_, eps_text(eps_),
             weight_.defined() ? "" : ", elementwise_affine=false",
             weight_.defined() && !bias_.defined() ? ", bias=false)" : ")");
}

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options)
    : groups_(groups), channels_(channels), eps_(options.eps) {
  check_sizes(groups, "GroupNorm", "the number of groups");
  check_sizes(channels, "GroupNorm", "the number of channels");
  if (channels % groups != 0)
    throw ValueError(
        cat("GroupNorm: ", channels, " channels do not divide into ", groups, " groups"));
  if (!options.affine) return;
  weight_ = parameter("weight", ones({channels}));
  bias_ = parameter("bias", zeros({channels}));
}

Tensor GroupNorm::forward(const Tensor& x) const {
  if (x.rank() < 2 || x.size(1) != channels_)
    throw ShapeError(
        cat("GroupNorm: the input is ", x.shape(), ", must be [N, ", channels_, ", …]"));
  return group_norm(x, groups_, weight_, bias_, eps_);
}

std::string GroupNorm::describe() const {
  return cat("GroupNorm(", groups_, ", ", channels_, eps_text(eps_),
             weight_.defined() ? ")" : ", affine=false)");
}

LocalResponseNorm::LocalResponseNorm(std::int64_t size, const LocalResponseNormOptions& options)
    : size_(size), options_(options) {
  check_sizes(size, "LocalResponseNorm", "size");
}

Tensor LocalResponseNorm::forward(const Tensor& x) const {
  return local_response_norm(x, size_, options_.alpha, options_.beta, options_.k);
}

std::string LocalResponseNorm::describe() const {
  return cat("LocalResponseNorm(", size_, ", alpha=", options_.alpha, ", beta=", options_.beta,
             ", k=", options_.k, ")");
}

}  // namespace tenon::nn
