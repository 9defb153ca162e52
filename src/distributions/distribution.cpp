// The class Distribution: shapes and dtypes of parameters and values, and calls of the family's
// functions.
#include <tenon/creation.h>
#include <tenon/error.h>

#include "distributions/family.h"

namespace tenon::distributions {
namespace {

// Refuses a plain number that the parameter cannot be. NaN is refused too.
void check_number(const Family& family, const ParameterOf& parameter, double number) {
  const auto refuse_unless = [&](bool allowed, const char* range) {
    if (!allowed)
      throw make_error<ValueError>(where(family.name), ": ", parameter.name, " is ", number,
                                   ", must be ", range);
  };
  switch (parameter.range) {
    case Range::Any:
      return refuse_unless(number == number, "a number");
    case Range::Positive:
      return refuse_unless(number > 0, "above 0");
    case Range::NotNegative:
      return refuse_unless(number >= 0, "0 or more");
    case Range::Probability:
      return refuse_unless(number >= 0 && number <= 1, "a probability from 0 to 1");
  }
}

// The dtype that the tensors have in common.
DType common_dtype(std::initializer_list<Argument> arguments) {
  DType dtype = DType::Float32;
  bool first = true;
  for (const Argument& each : arguments) {
    if (each.is_number()) continue;
    const DType own = is_floating(each.tensor().dtype()) ? each.tensor().dtype() : DType::Float32;
    dtype = first ? own : promote(dtype, own);
    first = false;
  }
  return dtype;
}

Shape common_batch(const Family& family, std::initializer_list<Argument> arguments) {
  Shape batch;
  const ParameterOf* parameter = family.parameters;
  for (const Argument& each : arguments) {
    const Shape shape = each.is_number() ? Shape{} : each.tensor().shape();
    if (shape.rank() < parameter->axes)
      throw make_error<ShapeError>(where(family.name), ": ", parameter->name, " is ", shape,
                                   ", needs at least ", parameter->axes, " axes");
    batch = broadcast_shapes(batch, without_last(shape, parameter->axes), where(family.name));
    ++parameter;
  }
  return batch;
}

void require_arguments(const Family& family, std::initializer_list<Argument> arguments) {
  std::size_t k = 0;
  for (const Argument& each : arguments) {
    if (each.is_number())
      check_number(family, family.parameters[k], each.number());
    else if (!each.tensor().defined())
      refuse_undefined(family.name, k, arguments.size());
    ++k;
  }
}

// The batch axes of a value after broadcasting; throws if the value does not fit.
Shape batch_of_value(const State& d, const Tensor& value) {
  require_defined(d.family->name, value);
  const int axes = d.event.rank();
  if (value.rank() < axes || last_of(value.shape(), axes) != d.event)
    throw make_error<ShapeError>(where(d.family->name), ": a value ", value.shape(),
                                 " of a distribution with the event shape ", d.event);
  return broadcast_shapes(without_last(value.shape(), axes), d.batch, where(d.family->name));
}

Tensor as_value(const State& d, const Tensor& value) {
  return is_floating(value.dtype()) ? value : cast(value, dtype_of_parameters(d));
}

// -infinity instead of log_prob() outside of the support, where log_prob() and its gradient are not
// asked.
Tensor masked_log_prob(const State& d, const Tensor& x) {
  const Family& family = *d.family;
  if (!family.outside) return family.log_prob(d, x);
  const Tensor outside = family.outside(d, x);
  Tensor mask = outside;
  for (int axis = 0; axis < d.event.rank(); ++axis) mask = unsqueeze(mask, -1);
  return where(outside, -kInfinite, family.log_prob(d, where(mask, family.inside, x)));
}

// A function of numbers, such as cdf().
Tensor of_number(const State& d, OfValue function, const char* name, const Tensor& x) {
  if (!function) refuse(d, name);
  const Called called(d.family->name);
  const Shape shape = batch_of_value(d, x);
  const Tensor at = as_value(d, x);
  return broadcast_to(function(d, at), shape);
}

Tensor of_state(const State& d, OfState function, const char* name) {
  if (!function) refuse(d, name);
  const Called called(d.family->name);
  return function(d);
}

// 16-bit numbers are computed in float32, and differences of large numbers in float64.
DType working_dtype(const State& d, DType dtype, bool exact) {
  if (exact && d.family->in_double) return DType::Float64;
  return item_size(dtype) == 2 ? DType::Float32 : dtype;
}

Tensor drawn(const State& d, const Shape& shape, const OptionalGenerator& generator) {
  const Called called(d.family->name);
  const Shape whole = joined(shape, joined(d.batch, d.event));
  if (d.parameters.empty()) return d.family->draw(d, whole, generator);
  const DType dtype = dtype_of_parameters(d);
  const Tensor x = d.family->draw(converted(d, working_dtype(d, dtype, false)), whole, generator);
  return is_floating(x.dtype()) ? cast(x, dtype) : x;
}

}  // namespace

Shape joined(const Shape& a, const Shape& b) {
  Shape out = a;
  for (const std::int64_t size : b) out.push_back(size);
  return out;
}
Shape without_last(const Shape& shape, int axes) {
  return Shape(shape.begin(), shape.rank() - axes);
}
Shape last_of(const Shape& shape, int axes) { return Shape(shape.end() - axes, axes); }

Tensor sum_last(const Tensor& x, int axes) {
  if (axes == 0) return x;
  Ints which;
  for (int k = 1; k <= axes; ++k) which.push_back(-k);
  return sum(x, which);
}

DType dtype_of_parameters(const State& d) {
  return d.parameters.empty() ? dtype_of_parameters(d.parts.back().state())
                              : d.parameters.front().dtype();
}

State converted(const State& d, DType dtype) {
  State out = d;
  for (Tensor& each : out.parameters) each = cast(each, dtype);
  return out;
}

void refuse(const State& d, const char* function, const char* advice) {
  throw make_error<NotSupported>(where(d.family->name), ": ", function,
                                 "() has no closed form for this distribution", advice);
}

State state_of(const Family& family, std::initializer_list<Argument> parameters) {
  const Called called(family.name);
  require_arguments(family, parameters);
  const DType dtype = common_dtype(parameters);
  State out{&family};
  out.batch = common_batch(family, parameters);
  const ParameterOf* parameter = family.parameters;
  for (const Argument& each : parameters) {
    const Tensor value =
        each.is_number() ? scalar(each.number(), dtype) : cast(each.tensor(), dtype);
    const Shape own = last_of(value.shape(), parameter->axes);
    out.parameters.push_back(broadcast_to(value, joined(out.batch, own)));
    ++parameter;
  }
  out.event = last_of(out[0].shape(), family.value_axes);
  return out;
}

std::shared_ptr<const State> shared(State state) {
  return std::make_shared<const State>(std::move(state));
}
std::shared_ptr<const State> made(const Family& family,
                                  std::initializer_list<Argument> parameters) {
  return shared(state_of(family, parameters));
}

Distribution::Distribution(std::shared_ptr<const State> state) noexcept
    : state_(std::move(state)) {}

const char* Distribution::name() const noexcept { return state_->family->name; }
const Shape& Distribution::batch_shape() const noexcept { return state_->batch; }
const Shape& Distribution::event_shape() const noexcept { return state_->event; }

Tensor Distribution::parameter(std::string_view name) const {
  const State& d = *state_;
  std::string names;
  for (std::size_t k = 0; k < d.parameters.size(); ++k) {
    const char* own = d.family->parameters[k].name;
    if (name == own) return d[k];
    names += (k == 0 ? " " : ", ") + std::string(own);
  }
  throw make_error<ValueError>(where(d.family->name), ": there is no parameter \"", name,
                               "\"; there are:", names.empty() ? " none" : names);
}

Distribution Distribution::expand(const Shape& batch_shape) const {
  const State& d = *state_;
  const Called called(d.family->name);
  if (d.family->expand) return Distribution(d.family->expand(d, batch_shape));
  State out = d;
  for (std::size_t k = 0; k < out.parameters.size(); ++k) {
    Tensor& each = out.parameters[k];
    const Shape own = last_of(each.shape(), d.family->parameters[k].axes);
    each = broadcast_to(each, joined(batch_shape, own));
  }
  out.batch = batch_shape;
  return Distribution(shared(std::move(out)));
}

bool Distribution::has_rsample() const noexcept {
  const State& d = *state_;
  if (d.parts.empty()) return d.family->reparameterized;
  return d.family->reparameterized && d.parts.back().has_rsample();
}

Tensor Distribution::sample(const Shape& shape, const OptionalGenerator& generator) const {
  return detach(drawn(*state_, shape, generator));
}

Tensor Distribution::rsample(const Shape& shape, const OptionalGenerator& generator) const {
  if (!has_rsample())
    throw make_error<NotSupported>(where(name()),
                                   ": samples have no gradient: use sample() and log_prob(), or a "
                                   "relaxed distribution");
  return drawn(*state_, shape, generator);
}

Tensor Distribution::log_prob(const Tensor& value) const {
  const State& d = *state_;
  const Called called(d.family->name);
  const Shape shape = batch_of_value(d, value);
  const Tensor x = as_value(d, value);
  const DType dtype = promote(x.dtype(), dtype_of_parameters(d));
  const DType working = working_dtype(d, dtype, true);
  const Tensor out = masked_log_prob(converted(d, working), cast(x, working));
  return broadcast_to(cast(out, dtype), shape);
}

Tensor Distribution::cdf(const Tensor& value) const {
  return of_number(*state_, state_->family->cdf, "cdf", value);
}
Tensor Distribution::icdf(const Tensor& probability) const {
  return of_number(*state_, state_->family->icdf, "icdf", probability);
}

Tensor Distribution::entropy() const {
  const State& d = *state_;
  const DType dtype = dtype_of_parameters(d);
  const State working = converted(d, working_dtype(d, dtype, true));
  return cast(of_state(working, d.family->entropy, "entropy"), dtype);
}
Tensor Distribution::mean() const { return of_state(*state_, state_->family->mean, "mean"); }
Tensor Distribution::variance() const {
  return of_state(*state_, state_->family->variance, "variance");
}
Tensor Distribution::stddev() const { return sqrt(variance()); }
Tensor Distribution::mode() const { return of_state(*state_, state_->family->mode, "mode"); }

Tensor Distribution::enumerate_support(bool expand) const {
  const State& d = *state_;
  const Tensor values = of_state(d, d.family->values, "enumerate_support");
  Ints ones(static_cast<std::size_t>(d.batch.rank()), 1);
  ones.insert(ones.begin(), values.size(0));
  ones.insert(ones.end(), d.event.begin(), d.event.end());
  const Tensor out = reshape(values, ones);
  return expand ? broadcast_to(out, joined({values.size(0)}, joined(d.batch, d.event))) : out;
}

}  // namespace tenon::distributions
