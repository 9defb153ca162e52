// Transforms of random values: y = f(x), x = f⁻¹(y), and log |dy / dx|.
#include <algorithm>

#include <tenon/creation.h>
#include <tenon/error.h>

#include "distributions/family.h"

namespace tenon::distributions {
namespace {

using Rule = std::shared_ptr<const TransformRule>;

// A transform of numbers without parameters that grows everywhere, as a row of functions.
struct NumberMap {
  const char* name;
  Op op;  // of forward(), or Op::kCount
  Tensor (*forward)(const Tensor& x);
  Tensor (*inverse)(const Tensor& y);
  Tensor (*log_slope)(const Tensor& x, const Tensor& y);
};
class NumberRule final : public TransformRule {
 public:
  explicit NumberRule(const NumberMap& map) : map_(map) {}
  const char* name() const override { return map_.name; }
  Tensor forward(const Tensor& x) const override { return map_.forward(x); }
  // The inverse of a result is its argument, also where results are rounded to 1. An evaluated
  // result may not know its argument any more.
  Tensor inverse(const Tensor& y) const override {
    const bool is_result = y.node()->op == map_.op && y.node()->input_count == 1;
    return is_result ? input_of(y, 0) : map_.inverse(y);
  }
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override {
    return map_.log_slope(x, y);
  }
  Tensor sign() const override { return ones({}); }

 private:
  const NumberMap& map_;
};

// y, but below 1, where the inverse is infinite.
Tensor below_1(const Tensor& y) {
  return clamp_max(y, 1 - (y.dtype() == DType::Float64 ? 0x1p-53 : 0x1p-24));
}

constexpr NumberMap kExp{"exp_transform", Op::Exp, [](const Tensor& x) { return exp(x); },
                         [](const Tensor& y) { return log(y); },
                         [](const Tensor& x, const Tensor&) { return x; }};
constexpr NumberMap kSigmoid{
    "sigmoid_transform", Op::Sigmoid, [](const Tensor& x) { return sigmoid(x); },
    [](const Tensor& y) {
      return logit(clamp_min(below_1(y), y.dtype() == DType::Float64 ? 0x1p-1022 : 0x1p-126));
    },
    [](const Tensor& x, const Tensor&) { return logsigmoid(x) + logsigmoid(-x); }};
constexpr NumberMap kTanh{"tanh_transform", Op::Tanh, [](const Tensor& x) { return tanh(x); },
                          [](const Tensor& y) { return atanh(-below_1(-below_1(y))); },
                          [](const Tensor& x, const Tensor&) {
                            return logsigmoid(x * 2) + logsigmoid(x * -2) + 2 * std::numbers::ln2;
                          }};
constexpr NumberMap kSoftplus{"softplus_transform", Op::kCount,
                              [](const Tensor& x) { return logaddexp(x, zeros_like(x)); },
                              [](const Tensor& y) { return y + log(-expm1(-y)); },
                              [](const Tensor& x, const Tensor&) { return logsigmoid(x); }};

// The tensor, or the number as a tensor of this dtype.
Tensor as_operand(const Argument& argument, DType dtype) {
  return argument.is_number() ? scalar(argument.number(), dtype) : argument.tensor();
}

class AffineRule final : public TransformRule {
 public:
  AffineRule(Argument loc, Argument scale, int axes)
      : loc_(std::move(loc)), scale_(std::move(scale)), axes_(axes) {}
  const char* name() const override { return "affine_transform"; }
  Tensor forward(const Tensor& x) const override { return loc(x) + scale(x) * x; }
  Tensor inverse(const Tensor& y) const override { return (y - loc(y)) / scale(y); }
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override {
    const Shape shape = broadcast_shapes(x.shape(), y.shape(), "affine_transform");
    return sum_last(broadcast_to(log(abs(scale(x))), shape), axes_);
  }
  int domain_axes() const override { return axes_; }
  int codomain_axes() const override { return axes_; }
  Tensor sign() const override { return tenon::sign(as_operand(scale_, DType::Float32)); }

 private:
  Tensor loc(const Tensor& x) const { return as_operand(loc_, x.dtype()); }
  Tensor scale(const Tensor& x) const { return as_operand(scale_, x.dtype()); }
  Argument loc_, scale_;
  int axes_;
};

class PowerRule final : public TransformRule {
 public:
  explicit PowerRule(Argument exponent) : exponent_(std::move(exponent)) {}
  const char* name() const override { return "power_transform"; }
  Tensor forward(const Tensor& x) const override { return pow(x, exponent(x)); }
  Tensor inverse(const Tensor& y) const override { return pow(y, 1 / exponent(y)); }
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override {
    return log(abs(exponent(x) * y / x));
  }
  Tensor sign() const override { return tenon::sign(exponent(ones({}))); }

 private:
  Tensor exponent(const Tensor& x) const { return as_operand(exponent_, x.dtype()); }
  Argument exponent_;
};

// y_k is the part sigmoid(x_k - log(n - k)) of what is left of the stick.
class StickBreakingRule final : public TransformRule {
 public:
  const char* name() const override { return "stick_breaking_transform"; }
  Tensor forward(const Tensor& x) const override {
    const Tensor z = offset(x);
    const Tensor left = exp(cumsum(logsigmoid(-z), -1));
    const Tensor before = pad(left, {1, 0}, 1.0);
    return pad(sigmoid(z), {0, 1}, 1.0) * before;
  }
  Tensor inverse(const Tensor& y) const override {
    const std::int64_t n = y.size(-1) - 1;
    const Tensor parts = slice(y, -1, 0, n);
    // What is left after each part, summed from the end, where it is small.
    const Tensor left = slice(flip(cumsum(flip(y, -1), -1), -1), -1, 1, n + 1);
    return log(parts) - log(left) + counts(parts);
  }
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor&) const override {
    const Tensor z = offset(x), log_left = cumsum(logsigmoid(-z), -1);
    return sum(logsigmoid(z) + log_left, -1);
  }
  int domain_axes() const override { return 1; }
  int codomain_axes() const override { return 1; }

 private:
  // log(n), …, log(1)
  static Tensor counts(const Tensor& x) { return log(arange(x.size(-1), 0, -1, x.dtype())); }
  static Tensor offset(const Tensor& x) { return x - counts(x); }
};

class InverseRule final : public TransformRule {
 public:
  explicit InverseRule(Transform of) : of_(std::move(of)) {}
  const char* name() const override { return of_.rule().name(); }
  Tensor forward(const Tensor& x) const override { return of_.rule().inverse(x); }
  Tensor inverse(const Tensor& y) const override { return of_.rule().forward(y); }
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override {
    return -of_.log_abs_det_jacobian(y, x);
  }
  int domain_axes() const override { return of_.rule().codomain_axes(); }
  int codomain_axes() const override { return of_.rule().domain_axes(); }
  Tensor sign() const override { return of_.rule().sign(); }
  const Transform& of() const { return of_; }

 private:
  Transform of_;
};

class IndependentRule final : public TransformRule {
 public:
  IndependentRule(Transform of, int axes) : of_(std::move(of)), axes_(axes) {}
  const char* name() const override { return "independent_transform"; }
  Tensor forward(const Tensor& x) const override { return of_(x); }
  Tensor inverse(const Tensor& y) const override { return of_.rule().inverse(y); }
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override {
    return sum_last(of_.log_abs_det_jacobian(x, y), axes_);
  }
  int domain_axes() const override { return of_.rule().domain_axes() + axes_; }
  int codomain_axes() const override { return of_.rule().codomain_axes() + axes_; }
  Tensor sign() const override { return of_.rule().sign(); }

 private:
  Transform of_;
  int axes_;
};

class ComposedRule final : public TransformRule {
 public:
  explicit ComposedRule(std::vector<Transform> parts) : parts_(std::move(parts)) {
    for (const Transform& each : parts_) {
      const TransformRule& rule = each.rule();
      const int missing = std::max(rule.domain_axes() - codomain_, 0);
      domain_ += missing, codomain_ += missing + rule.codomain_axes() - rule.domain_axes();
    }
  }
  const char* name() const override { return "compose"; }
  Tensor forward(const Tensor& x) const override {
    Tensor y = x;
    for (const Transform& each : parts_) y = each(y);
    return y;
  }
  Tensor inverse(const Tensor& y) const override {
    Tensor x = y;
    for (std::size_t k = parts_.size(); k > 0; --k) x = parts_[k - 1].rule().inverse(x);
    return x;
  }
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor&) const override {
    Tensor at = x, total = zeros({}, x.dtype());
    int axes = domain_;
    for (const Transform& each : parts_) {
      const TransformRule& rule = each.rule();
      const Tensor next = each(at);
      total = total + sum_last(rule.log_abs_det_jacobian(at, next), axes - rule.domain_axes());
      axes += rule.codomain_axes() - rule.domain_axes();
      at = next;
    }
    return total;
  }
  int domain_axes() const override { return domain_; }
  int codomain_axes() const override { return codomain_; }
  Tensor sign() const override {
    Tensor out = ones({});
    for (const Transform& each : parts_) {
      const Tensor sign = each.rule().sign();
      if (!sign.defined()) return {};
      out = out * sign;
    }
    return out;
  }

 private:
  std::vector<Transform> parts_;
  int domain_ = 0, codomain_ = 0;
};

Transform of_map(const NumberMap& map) { return Transform(std::make_shared<NumberRule>(map)); }

}  // namespace

TransformRule::~TransformRule() = default;

Transform::Transform(std::shared_ptr<const TransformRule> rule) : rule_(std::move(rule)) {
  if (!rule_) throw make_error<ValueError>(where("Transform"), ": the rule is a null pointer");
}
Transform Transform::inv() const {
  if (const auto* inverse = dynamic_cast<const InverseRule*>(rule_.get())) return inverse->of();
  return Transform(std::make_shared<InverseRule>(*this));
}

Transform affine_transform(const Argument& loc, const Argument& scale, int event_axes) {
  return Transform(std::make_shared<AffineRule>(loc, scale, event_axes));
}
Transform exp_transform() { return of_map(kExp); }
Transform power_transform(const Argument& exponent) {
  return Transform(std::make_shared<PowerRule>(exponent));
}
Transform sigmoid_transform() { return of_map(kSigmoid); }
Transform tanh_transform() { return of_map(kTanh); }
Transform softplus_transform() { return of_map(kSoftplus); }
Transform stick_breaking_transform() { return Transform(std::make_shared<StickBreakingRule>()); }
Transform compose(std::vector<Transform> transforms) {
  return Transform(std::make_shared<ComposedRule>(std::move(transforms)));
}
Transform independent_transform(const Transform& transform, int axes) {
  if (axes < 0)
    throw make_error<ValueError>(where("independent_transform"), ": ", axes,
                                 " axes; must be 0 or more");
  return Transform(std::make_shared<IndependentRule>(transform, axes));
}

}  // namespace tenon::distributions
