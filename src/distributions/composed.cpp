// Distributions made of others: independent axes, mixtures, and transformed values.
#include <algorithm>

#include <tenon/creation.h>
#include <tenon/error.h>

#include "distributions/family.h"

namespace tenon::distributions {
namespace {

const Distribution& base_of(const State& d) { return d.parts.back(); }

// Values of the base, with gradients if there are any.
Tensor drawn_base(const State& d, const Shape& sample, const OptionalGenerator& generator) {
  const Distribution& base = base_of(d);
  return base.has_rsample() ? base.rsample(sample, generator) : base.sample(sample, generator);
}

// ---- Independent
std::shared_ptr<const State> independent(const Distribution& base, std::int64_t axes) {
  const int rank = base.batch_shape().rank();
  if (axes < 0 || axes > rank)
    throw make_error<ValueError>(where("Independent"), ": ", axes,
                                 " axes of a distribution with the batch shape ",
                                 base.batch_shape());
  State out{&kIndependent};
  out.batch = without_last(base.batch_shape(), static_cast<int>(axes));
  out.event = joined(last_of(base.batch_shape(), static_cast<int>(axes)), base.event_shape());
  out.parts = {base};
  out.number = axes;
  return shared(std::move(out));
}
// The sum over the axes that became part of the event.
Tensor summed(const State& d, const Tensor& x) { return sum_last(x, static_cast<int>(d.number)); }

// ---- Mixtures: parts are the weights and the components.
// Values with an axis for the components in front of the event.
Tensor for_components(const State& d, const Tensor& x) { return unsqueeze(x, -1 - d.event.rank()); }
// Probabilities of the components, with axes for the event.
Tensor weights_of(const State& d) {
  Tensor out = d.parts[0].parameter("probs");
  for (int axis = 0; axis < d.event.rank(); ++axis) out = unsqueeze(out, -1);
  return out;
}
int component_axis(const State& d) { return -1 - d.event.rank(); }

Tensor drawn_mixture(const State& d, const Shape& shape, const OptionalGenerator& generator) {
  const Shape sample = without_last(shape, d.batch.rank() + d.event.rank());
  Tensor index = d.parts[0].sample(sample, generator);
  const Tensor all = d.parts[1].sample(sample, generator);
  for (int axis = 0; axis <= d.event.rank(); ++axis) index = unsqueeze(index, -1);
  const Shape picked = joined(joined(sample, joined(d.batch, {1})), d.event);
  return squeeze(gather(all, component_axis(d), broadcast_to(index, picked)), component_axis(d));
}

std::shared_ptr<const State> expanded_mixture(const State& d, const Shape& batch) {
  State out = d;
  const Shape components = d.parts[1].batch_shape();
  out.parts = {d.parts[0].expand(batch), d.parts[1].expand(joined(batch, last_of(components, 1)))};
  out.batch = batch;
  return shared(std::move(out));
}

const Family kMixtureSameFamily{
    .name = "MixtureSameFamily",
    .parameters = {},
    .draw = drawn_mixture,
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor each = d.parts[1].log_prob(for_components(d, x));
          return logsumexp(each + d.parts[0].parameter("logits"), -1);
        },
    .mean =
        [](const State& d) { return sum(weights_of(d) * d.parts[1].mean(), component_axis(d)); },
    .variance =
        [](const State& d) {
          const Tensor weights = weights_of(d), means = d.parts[1].mean();
          const int axis = component_axis(d);
          const Tensor between = means - sum(weights * means, axis, true);
          return sum(weights * (d.parts[1].variance() + square(between)), axis);
        },
    .cdf =
        [](const State& d, const Tensor& x) {
          const Tensor each = d.parts[1].cdf(for_components(d, x));
          return sum(each * d.parts[0].parameter("probs"), -1);
        },
    .expand = expanded_mixture,
};

std::shared_ptr<const State> mixture(const Distribution& weights, const Distribution& components) {
  const Called called("MixtureSameFamily");
  if (weights.state().family != &kCategorical)
    throw make_error<ValueError>(where("MixtureSameFamily"), ": the mixture is a ", weights.name(),
                                 ", must be a Categorical");
  const Shape &all = components.batch_shape(), classes = weights.parameter("probs").shape();
  if (all.rank() == 0 || all.at(-1) != classes.at(-1))
    throw make_error<ShapeError>(where("MixtureSameFamily"), ": weights ", classes,
                                 " of components with the batch shape ", all,
                                 ", whose last axis must hold the components");
  State out{&kMixtureSameFamily};
  out.batch =
      broadcast_shapes(without_last(all, 1), weights.batch_shape(), where("MixtureSameFamily"));
  out.event = components.event_shape();
  out.parts = {weights, components};
  return expanded_mixture(out, out.batch);
}

// ---- Transformed values
std::shared_ptr<const State> transformed(const Distribution& base, const Transform& transform) {
  const Called called("TransformedDistribution");
  const TransformRule& rule = transform.rule();
  const Shape whole = joined(base.batch_shape(), base.event_shape());
  const int own = base.event_shape().rank(), input = std::max(own, rule.domain_axes());
  if (input > whole.rank())
    throw make_error<ShapeError>(where("TransformedDistribution"), ": ", rule.name(),
                                 " takes values of ", input, " axes, and those of ", base.name(),
                                 " have the shape ", whole);
  // Parameters of the transform may add axes. The shapes are those of values that are not computed.
  const Tensor y = transform(zeros(whole)), x = transform.inv()(y);
  const Distribution wide = base.expand(without_last(x.shape(), own));
  const int output = input + rule.codomain_axes() - rule.domain_axes();
  State out{&kTransformed};
  out.parts = {input > own ? Independent(wide, input - own) : wide};
  out.batch = without_last(y.shape(), output);
  out.event = last_of(y.shape(), output);
  out.transforms = {transform};
  return shared(std::move(out));
}

Tensor inverse_of(const State& d, const Tensor& y) { return d.transforms[0].rule().inverse(y); }

Tensor sign_of(const State& d, const char* function) {
  Tensor sign = d.transforms[0].rule().sign();
  if (!sign.defined()) refuse(d, function, ": the transform neither grows nor falls everywhere");
  return sign;
}

// p where the transform grows, 1 - p where it falls.
Tensor by_sign(const Tensor& sign, const Tensor& p) { return where(gt(sign, 0), p, 1 - p); }

}  // namespace

const Family kIndependent{
    .name = "Independent",
    .parameters = {},
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Shape sample = without_last(shape, d.batch.rank() + d.event.rank());
          return drawn_base(d, sample, generator);
        },
    .log_prob = [](const State& d, const Tensor& x) { return summed(d, base_of(d).log_prob(x)); },
    .mean = [](const State& d) { return base_of(d).mean(); },
    .variance = [](const State& d) { return base_of(d).variance(); },
    .mode = [](const State& d) { return base_of(d).mode(); },
    .entropy = [](const State& d) { return summed(d, base_of(d).entropy()); },
    .expand =
        [](const State& d, const Shape& batch) {
          const Shape own = last_of(base_of(d).batch_shape(), static_cast<int>(d.number));
          return independent(base_of(d).expand(joined(batch, own)), d.number);
        },
};
Independent::Independent(const Distribution& base, int axes)
    : Distribution(independent(base, axes)) {}
Distribution Independent::base() const { return base_of(state()); }

MixtureSameFamily::MixtureSameFamily(const Distribution& mixture_weights,
                                     const Distribution& components)
    : Distribution(distributions::mixture(mixture_weights, components)) {}
Distribution MixtureSameFamily::mixture() const { return state().parts[0]; }
Distribution MixtureSameFamily::components() const { return state().parts[1]; }

const Family kTransformed{
    .name = "TransformedDistribution",
    .parameters = {},
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Shape sample = without_last(shape, d.batch.rank() + d.event.rank());
          return d.transforms[0](drawn_base(d, sample, generator));
        },
    .log_prob =
        [](const State& d, const Tensor& y) {
          const TransformRule& rule = d.transforms[0].rule();
          const Tensor x = rule.inverse(y);
          const int axes = d.event.rank() - rule.codomain_axes();
          return base_of(d).log_prob(x) - sum_last(rule.log_abs_det_jacobian(x, y), axes);
        },
    .cdf =
        [](const State& d, const Tensor& y) {
          return by_sign(sign_of(d, "cdf"), base_of(d).cdf(inverse_of(d, y)));
        },
    .icdf =
        [](const State& d, const Tensor& p) {
          return d.transforms[0](base_of(d).icdf(by_sign(sign_of(d, "icdf"), p)));
        },
    .expand =
        [](const State& d, const Shape& batch) {
          const Shape& own = base_of(d).batch_shape();
          const Shape kept = last_of(own, own.rank() - d.batch.rank());
          return transformed(base_of(d).expand(joined(batch, kept)), d.transforms[0]);
        },
};
TransformedDistribution::TransformedDistribution(const Distribution& base,
                                                 const Transform& transform)
    : Distribution(transformed(base, transform)) {}
TransformedDistribution::TransformedDistribution(const Distribution& base,
                                                 std::vector<Transform> transforms)
    : Distribution(transformed(base, compose(std::move(transforms)))) {}
Distribution TransformedDistribution::base() const { return base_of(state()); }

LogisticNormal::LogisticNormal(const Argument& loc, const Argument& scale)
    : TransformedDistribution(
          [&] {
            const Normal normal(loc, scale);
            return normal.batch_shape().rank() == 0 ? normal.expand({1}) : Distribution(normal);
          }(),
          stick_breaking_transform()) {}
Tensor LogisticNormal::loc() const { return base_of(base().state()).parameter("loc"); }
Tensor LogisticNormal::scale() const { return base_of(base().state()).parameter("scale"); }

}  // namespace tenon::distributions
