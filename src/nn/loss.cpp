// Contribution of a batch to the mean loss over a whole dataset.
//
// A mean of batch means is correct only if every batch has the same weight. Therefore each batch
// returns the sum of its losses and its weight, both in float64, and the caller divides once at the
// end.
#include <cstdint>

#include <tenon/nn.h>
#include <tenon/ops.h>

namespace tenon::nn {
namespace {

// PyTorch's default ignore_index. Datasets use it for padding, too.
constexpr std::int64_t kUsuallyIgnored = -100;

Tensor number(double value) { return scalar(value, DType::Float64); }

Tensor sum_of(const Tensor& x) { return sum(cast(x, DType::Float64)); }

double samples(const Tensor& target) {
  return target.rank() == 0 ? 1 : static_cast<double>(target.size(0));
}

}  // namespace

Tensor CrossEntropyLoss::counts(const Tensor& target) const {
  if (is_floating(target.dtype()) || (!weight.defined() && !ignore_index)) return {};
  const Tensor left_out = ignore_index ? eq(target, *ignore_index) : Tensor();
  if (!weight.defined()) return cast(logical_not(left_out), DType::Float32);
  // The loss itself refuses a target that is neither a class nor ignored.
  const Tensor known = logical_and(ge(target, 0), lt(target, weight.size(0)));
  const Tensor classes = where(known, target, 0);
  const Ints shape(target.shape().begin(), target.shape().end());
  const Tensor own = reshape(index_select(weight, 0, flatten(classes)), shape);
  return left_out.defined() ? where(left_out, 0, own) : own;
}

std::optional<std::int64_t> Loss::ignored() const {
  if (ignored_ || each_) return ignored_;
  return kUsuallyIgnored;
}

Tensor Loss::kept(const Tensor& target) const {
  const std::optional<std::int64_t> left_out = ignored();
  if (is_floating(target.dtype()) || !left_out) return {};
  return ne(target, *left_out);
}

bool Loss::counts_vary(const Tensor& target) const {
  return kept(target).defined() || (counts_ && counts_(target).defined());
}

Tensor Loss::counted(const Tensor& target) const {
  if (counts_)
    if (const Tensor counts = counts_(target); counts.defined()) return sum_of(counts);
  if (const Tensor left = kept(target); left.defined()) return sum_of(left);
  const bool classes = !is_floating(target.dtype());
  return number(classes && each_ ? static_cast<double>(target.numel()) : samples(target));
}

LossTerms Loss::terms(const Tensor& output, const Tensor& target) const {
  const Tensor count = counted(target);
  if (!each_) {
    const Tensor total = cast(call_(output, target), DType::Float64) * count;
    return {counts_vary(target) ? where(gt(count, 0), total, 0) : total, count};
  }
  Tensor losses = each_(output, target);
  if (const Tensor left = kept(target); left.defined() && left.shape() == losses.shape())
    losses = where(left, losses, 0);
  if (!is_floating(target.dtype())) return {sum_of(losses), count};
  // A sample may have several losses; the sample's loss is their mean.
  const double each = samples(target) / static_cast<double>(losses.numel());
  return {each == 1 ? sum_of(losses) : sum_of(losses) * each, count};
}

}  // namespace tenon::nn
