// Transforms made of others or of a distribution: parts side by side, other shapes, probabilities.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/rearrange.h>

#include "distributions/family.h"

namespace tenon::distributions {
namespace {

class ReshapeRule final : public TransformRule {
 public:
  ReshapeRule(const Shape& from, const Shape& to) : from_(from), to_(to) {}
  const char* name() const override { return "reshape_transform"; }
  Tensor forward(const Tensor& x) const override { return reshaped(x, from_, to_); }
  Tensor inverse(const Tensor& y) const override { return reshaped(y, to_, from_); }
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor&) const override {
    return zeros(without_last(x.shape(), from_.rank()), x.dtype());
  }
  int domain_axes() const override { return from_.rank(); }
  int codomain_axes() const override { return to_.rank(); }

 private:
  static Tensor reshaped(const Tensor& x, const Shape& from, const Shape& to) {
    if (x.rank() < from.rank() || last_of(x.shape(), from.rank()) != from)
      throw make_error<ShapeError>(where("reshape_transform"), ": takes values of shape ", from,
                                   ", not ", x.shape());
    return reshape(x, to_ints(joined(without_last(x.shape(), from.rank()), to)));
  }
  Shape from_, to_;
};

// y is uniform over (0, 1) if x has this distribution.
class CumulativeRule final : public TransformRule {
 public:
  explicit CumulativeRule(const Distribution& d) : d_(d) {}
  const char* name() const override { return "cumulative_distribution_transform"; }
  Tensor forward(const Tensor& x) const override { return d_.cdf(x); }
  Tensor inverse(const Tensor& y) const override { return d_.icdf(y); }
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor&) const override {
    return d_.log_prob(x);
  }
  Tensor sign() const override { return ones({}); }

 private:
  Distribution d_;
};

// Parts along an axis, each by its own transform: of several numbers, or slices of one.
class PartsRule final : public TransformRule {
 public:
  PartsRule(const char* name, std::vector<Transform> parts, Ints lengths, int axis)
      : name_(name), parts_(std::move(parts)), lengths_(std::move(lengths)), axis_(axis) {
    for (const std::int64_t length : lengths_) total_ += length;
  }
  const char* name() const override { return name_; }
  Tensor forward(const Tensor& x) const override {
    return of_parts(x, x,
                    [](const Transform& t, const Tensor& part, const Tensor&) { return t(part); });
  }
  Tensor inverse(const Tensor& y) const override {
    return of_parts(y, y, [](const Transform& t, const Tensor& part, const Tensor&) {
      return t.rule().inverse(part);
    });
  }
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override {
    return of_parts(x, y, [](const Transform& t, const Tensor& from, const Tensor& to) {
      return broadcast_to(t.log_abs_det_jacobian(from, to), from.shape());
    });
  }

 private:
  template <class F>
  Tensor of_parts(const Tensor& x, const Tensor& y, const F& f) const {
    if (x.rank() < -axis_ || x.size(axis_) != total_)
      throw make_error<ShapeError>(where(name_), ": the parts have ", total_,
                                   " numbers along axis ", axis_, ", and the values are ",
                                   x.shape());
    std::vector<Tensor> out;
    std::int64_t at = 0;
    for (std::size_t k = 0; k < parts_.size(); at += lengths_[k++])
      out.push_back(
          f(parts_[k], narrow(x, axis_, at, lengths_[k]), narrow(y, axis_, at, lengths_[k])));
    return concat(out, axis_);
  }
  const char* name_;
  std::vector<Transform> parts_;
  Ints lengths_;
  int axis_;
  std::int64_t total_ = 0;
};

Transform side_by_side(const char* name, std::vector<Transform> parts, const Ints& lengths,
                       int axis) {
  if (parts.empty()) throw make_error<ValueError>(where(name), ": there are no transforms");
  if (axis >= 0)
    throw make_error<ValueError>(where(name), ": the axis is ", axis,
                                 ", must be negative: samples add axes in front");
  if (lengths.size() != parts.size())
    throw make_error<ValueError>(where(name), ": ", lengths.size(), " lengths for ", parts.size(),
                                 " transforms");
  for (const std::int64_t length : lengths)
    if (length < 0)
      throw make_error<ValueError>(where(name), ": a length is ", length, ", must be 0 or more");
  for (const Transform& each : parts)
    if (each.rule().domain_axes() + each.rule().codomain_axes() > 0)
      throw make_error<ValueError>(where(name), ": ", each.rule().name(),
                                   " is a transform of vectors or matrices, must be of numbers");
  return Transform(std::make_shared<PartsRule>(name, std::move(parts), lengths, axis));
}

}  // namespace

Transform cumulative_distribution_transform(const Distribution& d) {
  const Called called("cumulative_distribution_transform");
  const bool known = d.event_shape().rank() == 0 && d.state().family->cdf && d.state().family->icdf;
  if (!known)
    throw make_error<NotSupported>(where("cumulative_distribution_transform"), ": ", d.name(),
                                   " has no cdf() and icdf() in closed form");
  return Transform(std::make_shared<CumulativeRule>(d));
}

Transform reshape_transform(const Shape& from, const Shape& to) {
  if (from.numel() != to.numel())
    throw make_error<ShapeError>(where("reshape_transform"), ": ", from, " and ", to,
                                 " have different numbers of elements");
  return Transform(std::make_shared<ReshapeRule>(from, to));
}

Transform concat_transform(std::vector<Transform> transforms, const Ints& lengths, int axis) {
  return side_by_side("concat_transform", std::move(transforms), lengths, axis);
}

Transform stack_transform(std::vector<Transform> transforms, int axis) {
  const Ints lengths(transforms.size(), 1);
  return side_by_side("stack_transform", std::move(transforms), lengths, axis);
}

}  // namespace tenon::distributions
