// Optimizers that use the signs of gradients, or average the parameters: Rprop, Lion, ASGD.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/optimizers.h>

#include "base/make_error.h"
#include "optim/rule_parts.h"

namespace tenon::optim {
namespace {

constexpr OptionRange<RpropOptions> kRpropRanges[] = {
    {"eta_minus", &RpropOptions::eta_minus, between(0, 1)},
    {"eta_plus", &RpropOptions::eta_plus, finite_above(1)},
    {"step_min", &RpropOptions::step_min, above_to(0, kMostEps)},
    {"step_max", &RpropOptions::step_max, above_to(0, kMostEps)},
};
constexpr OptionRange<AsgdOptions> kAsgdRanges[] = {
    {"lambd", &AsgdOptions::lambd, finite_from(0)},
    {"alpha", &AsgdOptions::alpha, finite_from(0)},
    {"t0", &AsgdOptions::t0, finite_from(0)},
};
constexpr OptionRange<LionOptions> kLionRanges[] = {
    {"beta1", &LionOptions::beta1, from_to(0, 1)},
    {"beta2", &LionOptions::beta2, from_to(0, 1)},
};

}  // namespace

// ---- Rprop --------------------------------------------------------------------------------------

Rprop::Rprop(Parameters parameters, const RpropOptions& options)
    : Optimizer(parameters.groups, options.lr, 0), options_(options) {
  check_options("rprop", options, kRpropRanges);
  if (options.step_min > options.step_max)
    throw make_error<ValueError>("rprop: step_min is ", options.step_min,
                                 ", must be at most step_max, ", options.step_max);
  require_no_decay("rprop", parameters.groups, "the rule uses only the signs of gradients");
  prev_ = add_slot("prev");
  step_size_ = add_slot("step_size", {.least = 0});
}

std::vector<Optimizer::Assignment> Rprop::rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                               double) {
  const Tensor &p = parameter(k), &prev = (*prev_)[k], &size = (*step_size_)[k];
  const Tensor up = uphill(grad, options_.maximize);
  const Tensor agreement = up * prev;
  const Tensor turns = lt(agreement, 0);
  // A step size of 0 is the start: sizes are never below step_min. It becomes the learning rate,
  // which a schedule may have changed since the optimizer was made.
  const Tensor old = where(eq(size, 0), lr, size);
  const auto number = [&](double value) { return scalar(value, p.dtype()); };
  const Tensor factor = where(turns, number(options_.eta_minus),
                              where(gt(agreement, 0), number(options_.eta_plus), number(1)));
  const Tensor new_size = clamp(old * factor, options_.step_min, options_.step_max);
  const Tensor g = where(turns, number(0), up);  // no step where the gradient changed its sign
  return {{prev, g}, {size, new_size}, {p, p - sign(g) * new_size}};
}

std::string Rprop::describe() const {
  const RpropOptions d;
  return described("rprop", base_lr(),
                   {{"eta_minus", options_.eta_minus, d.eta_minus},
                    {"eta_plus", options_.eta_plus, d.eta_plus},
                    {"step_min", options_.step_min, d.step_min},
                    {"step_max", options_.step_max, d.step_max},
                    {"maximize", options_.maximize}});
}

// ---- Lion ---------------------------------------------------------------------------------------

Lion::Lion(Parameters parameters, const LionOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("lion", options, kLionRanges);
  exp_avg_ = add_slot("exp_avg");
}

std::vector<Optimizer::Assignment> Lion::rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                              double weight_decay) {
  const Tensor &p = parameter(k), &m = (*exp_avg_)[k];
  const Tensor g = uphill(grad, options_.maximize);
  const Tensor direction = sign(m * options_.beta1 + g * (1 - options_.beta1));
  return {{m, m * options_.beta2 + g * (1 - options_.beta2)},
          {p, shrunk(p, lr, weight_decay) - lr * direction}};
}

std::string Lion::describe() const {
  const LionOptions d;
  return described("lion", base_lr(),
                   {{"beta1", options_.beta1, d.beta1},
                    {"beta2", options_.beta2, d.beta2},
                    {"weight_decay", options_.weight_decay, d.weight_decay},
                    {"maximize", options_.maximize}});
}

// ---- ASGD ---------------------------------------------------------------------------------------

Asgd::Asgd(Parameters parameters, const AsgdOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("asgd", options, kAsgdRanges);
  eta_ = add_slot(
      "eta", {.least = 0, .dtype = DType::Float64, .shape = [](std::size_t) { return Shape{}; }});
  ax_ = add_slot("ax");
}

void Asgd::prepare(const Tensor& taken, const Tensor& next) {
  mu_ = 1 / maximum(taken - options_.t0, 1.0);
  next_ = next;
}

std::vector<Optimizer::Assignment> Asgd::rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                              double weight_decay) {
  const Tensor &p = parameter(k), &eta = (*eta_)[k], &ax = (*ax_)[k];
  const Tensor g = decayed(uphill(grad, options_.maximize), p, weight_decay);
  const Tensor rate = cast(lr, DType::Float64);
  // As in PyTorch, a step uses the rate that the step before computed. The first one, where it is
  // still 0, uses the learning rate.
  const Tensor used = like(where(eq(eta, 0), rate, eta), p);
  const Tensor new_p = p * (1 - used * options_.lambd) - used * g;
  return {{ax, ax + (new_p - ax) * like(mu_, p)},
          {eta, rate / pow(1 + rate * options_.lambd * next_, options_.alpha)},
          {p, new_p}};
}

std::string Asgd::describe() const {
  const AsgdOptions d;
  return described("asgd", base_lr(),
                   {{"lambd", options_.lambd, d.lambd},
                    {"alpha", options_.alpha, d.alpha},
                    {"t0", options_.t0, d.t0},
                    {"weight_decay", options_.weight_decay, d.weight_decay},
                    {"maximize", options_.maximize}});
}

}  // namespace tenon::optim
