// The update rules, term by term those of torch.optim, and their creation by name.
#include <memory>

#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include "base/str.h"
#include "base/system/option_ranges.h"

namespace tenon::optim {
namespace {

constexpr double kMost = 1e30;  // upper limit of eps and mu, which stay finite in float32

// With a decay of 1 the mean would never change, and the bias correction would divide by 0.
constexpr OptionRange<SgdOptions> kSgdRanges[] = {
    {"momentum", &SgdOptions::momentum, from_to(0, 1)},
    {"dampening", &SgdOptions::dampening, from_to(0, 1)},
};
constexpr OptionRange<AdamOptions> kAdamRanges[] = {
    {"beta1", &AdamOptions::beta1, from_below(0, 1)},
    {"beta2", &AdamOptions::beta2, from_below(0, 1)},
    {"eps", &AdamOptions::eps, from_to(0, kMost)},
};
constexpr OptionRange<RmsPropOptions> kRmsPropRanges[] = {
    {"alpha", &RmsPropOptions::alpha, from_to(0, 1)},
    {"eps", &RmsPropOptions::eps, from_to(0, kMost)},
    {"momentum", &RmsPropOptions::momentum, from_to(0, 1)},
};
constexpr OptionRange<LevenbergOptions> kLevenbergRanges[] = {
    {"mu", &LevenbergOptions::mu, from_to(1e-30, kMost)},
};

Tensor uphill(const Tensor& grad, bool maximize) { return maximize ? -grad : grad; }

Tensor decayed(const Tensor& grad, const Tensor& p, double weight_decay) {
  return weight_decay == 0 ? grad : grad + p * weight_decay;
}

std::string option(const char* name, double value, double standard) {
  return value == standard ? std::string() : cat(", ", name, "=", value);
}

}  // namespace

// ---- SGD ----------------------------------------------------------------------------------------

Sgd::Sgd(Parameters parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("sgd", options, kSgdRanges);
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0))
    throw ValueError("sgd: nesterov needs a momentum above 0 and no dampening");
  if (options.momentum != 0) momentum_ = add_slot("momentum_buffer");
}

void Sgd::prepare(const Tensor& taken, const Tensor&) {
  if (options_.dampening != 0) first_ = eq(taken, 0);
}

std::vector<Optimizer::Assignment> Sgd::rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                             double weight_decay) {
  const Tensor& p = parameter(k);
  Tensor g = decayed(uphill(grad, options_.maximize), p, weight_decay);
  if (momentum_ == nullptr) return {{p, p - lr * g}};
  const Tensor& buffer = (*momentum_)[k];
  Tensor v =
      buffer * options_.momentum + (options_.dampening == 0 ? g : g * (1 - options_.dampening));
  if (options_.dampening != 0) v = where(first_, g, v);  // the first gradient is not dampened
  g = options_.nesterov ? g + v * options_.momentum : v;
  return {{buffer, v}, {p, p - lr * g}};
}

std::string Sgd::describe() const {
  return cat("sgd(lr=", base_lr(), option("momentum", options_.momentum, 0),
             option("dampening", options_.dampening, 0),
             option("weight_decay", options_.weight_decay, 0),
             options_.nesterov ? ", nesterov" : "", options_.maximize ? ", maximize" : "", ")");
}

// ---- Adam, AdamW --------------------------------------------------------------------------------

Adam::Adam(Parameters parameters, const AdamOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("adam", options, kAdamRanges);
  exp_avg_ = add_slot("exp_avg");
  exp_avg_sq_ = add_slot("exp_avg_sq", 0);
  if (options.amsgrad) max_exp_avg_sq_ = add_slot("max_exp_avg_sq", 0);
}

AdamW::AdamW(Parameters parameters, const AdamWOptions& o)
    : Adam(std::move(parameters),
           {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, true, o.amsgrad, o.maximize}) {}

void Adam::prepare(const Tensor&, const Tensor& next) {
  correction1_ = 1 - pow(options_.beta1, next);
  correction2_sqrt_ = sqrt(1 - pow(options_.beta2, next));
}

std::vector<Optimizer::Assignment> Adam::rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                              double weight_decay) {
  const Tensor& p = parameter(k);
  const Tensor &m = (*exp_avg_)[k], &v = (*exp_avg_sq_)[k];
  const Tensor up = uphill(grad, options_.maximize);
  const Tensor g = options_.decoupled ? up : decayed(up, p, weight_decay);
  const Tensor shrunk = options_.decoupled && weight_decay != 0 ? p * (1 - lr * weight_decay) : p;
  const Tensor new_m = m + (g - m) * (1 - options_.beta1);
  const Tensor new_v = v * options_.beta2 + square(g) * (1 - options_.beta2);
  const Tensor square_mean =
      max_exp_avg_sq_ == nullptr ? new_v : maximum((*max_exp_avg_sq_)[k], new_v);
  const Tensor denominator = sqrt(square_mean) / cast(correction2_sqrt_, p.dtype()) + options_.eps;
  const Tensor rate = cast(cast(lr, DType::Float64) / correction1_, p.dtype());
  std::vector<Assignment> out{{m, new_m}, {v, new_v}};
  if (max_exp_avg_sq_ != nullptr) out.emplace_back((*max_exp_avg_sq_)[k], square_mean);
  out.emplace_back(p, shrunk - rate * (new_m / denominator));
  return out;
}

std::string Adam::describe() const {
  return cat(options_.decoupled ? "adamw(lr=" : "adam(lr=", base_lr(),
             option("beta1", options_.beta1, 0.9), option("beta2", options_.beta2, 0.999),
             option("eps", options_.eps, 1e-8), option("weight_decay", options_.weight_decay, 0),
             options_.amsgrad ? ", amsgrad" : "", options_.maximize ? ", maximize" : "", ")");
}

// ---- RMSProp ------------------------------------------------------------------------------------

RmsProp::RmsProp(Parameters parameters, const RmsPropOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("rmsprop", options, kRmsPropRanges);
  square_avg_ = add_slot("square_avg", 0);
  if (options.centered) grad_avg_ = add_slot("grad_avg");
  if (options.momentum != 0) momentum_ = add_slot("momentum_buffer");
}

std::vector<Optimizer::Assignment> RmsProp::rule(std::size_t k, const Tensor& grad,
                                                 const Tensor& lr, double weight_decay) {
  const Tensor& p = parameter(k);
  const Tensor g = decayed(uphill(grad, options_.maximize), p, weight_decay);
  const Tensor& s = (*square_avg_)[k];
  const Tensor new_s = s * options_.alpha + square(g) * (1 - options_.alpha);
  std::vector<Assignment> out{{s, new_s}};
  Tensor mean_square = new_s;
  if (grad_avg_ != nullptr) {
    const Tensor& a = (*grad_avg_)[k];
    const Tensor new_a = a + (g - a) * (1 - options_.alpha);
    out.emplace_back(a, new_a);
    mean_square = new_s - square(new_a);
  }
  Tensor direction = g / (sqrt(mean_square) + options_.eps);
  if (momentum_ != nullptr) {
    const Tensor& buffer = (*momentum_)[k];
    direction = buffer * options_.momentum + direction;
    out.emplace_back(buffer, direction);
  }
  out.emplace_back(p, p - lr * direction);
  return out;
}

std::string RmsProp::describe() const {
  return cat("rmsprop(lr=", base_lr(), option("alpha", options_.alpha, 0.99),
             option("eps", options_.eps, 1e-8), option("momentum", options_.momentum, 0),
             option("weight_decay", options_.weight_decay, 0),
             options_.centered ? ", centered" : "", options_.maximize ? ", maximize" : "", ")");
}

// ---- Levenberg–Marquardt ------------------------------------------------------------------------

Levenberg::Levenberg(Parameters parameters, const LevenbergOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("levenberg", options, kLevenbergRanges);
  curvature_ = add_slot("curvature", 0);
}

std::vector<Tensor> Levenberg::curvature_updates(const std::vector<Tensor>& grads,
                                                 const Tensor& keep, double share) const {
  if (grads.size() != parameters().size())
    throw ValueError(
        cat("levenberg: ", grads.size(), " gradients for ", parameters().size(), " parameters"));
  std::vector<Tensor> out;
  out.reserve(grads.size());
  for (std::size_t k = 0; k < grads.size(); ++k) {
    const Tensor& h = (*curvature_)[k];
    out.push_back(assign(h, h * cast(keep, h.dtype()) + square(grads[k]) * share));
  }
  return out;
}

std::vector<Optimizer::Assignment> Levenberg::rule(std::size_t k, const Tensor& grad,
                                                   const Tensor& lr, double weight_decay) {
  const Tensor& p = parameter(k);
  const Tensor g = decayed(grad, p, weight_decay);
  return {{p, p - lr * g / ((*curvature_)[k] + options_.mu)}};
}

std::string Levenberg::describe() const {
  return cat("levenberg(lr=", base_lr(), option("mu", options_.mu, 0.02),
             option("weight_decay", options_.weight_decay, 0), ")");
}

// ---- By name ------------------------------------------------------------------------------------

namespace {

// Refuses an option that the chosen optimizer does not have; ignoring it silently would mislead.
void refuse(const std::string& optimizer, bool given, const char* option_name) {
  if (given) throw ValueError(cat(optimizer, " has no option '", option_name, "'"));
}

std::unique_ptr<Optimizer> make_sgd(Parameters&& p, const OptimizerOptions& o) {
  refuse("sgd", o.beta1.has_value(), "beta1");
  refuse("sgd", o.beta2.has_value(), "beta2");
  refuse("sgd", o.eps.has_value(), "eps");
  refuse("sgd", o.alpha.has_value(), "alpha");
  refuse("sgd", o.centered, "centered");
  const SgdOptions d;
  return std::make_unique<Sgd>(std::move(p),
                               SgdOptions{o.lr.value_or(d.lr), o.momentum.value_or(d.momentum),
                                          o.dampening.value_or(d.dampening),
                                          o.weight_decay.value_or(d.weight_decay), o.nesterov});
}

void refuse_for_adam(const std::string& name, const OptimizerOptions& o) {
  refuse(name, o.momentum.has_value(), "momentum");
  refuse(name, o.dampening.has_value(), "dampening");
  refuse(name, o.alpha.has_value(), "alpha");
  refuse(name, o.nesterov, "nesterov");
  refuse(name, o.centered, "centered");
}

std::unique_ptr<Optimizer> make_adam(Parameters&& p, const OptimizerOptions& o) {
  refuse_for_adam("adam", o);
  const AdamOptions d;
  return std::make_unique<Adam>(
      std::move(p),
      AdamOptions{o.lr.value_or(d.lr), o.beta1.value_or(d.beta1), o.beta2.value_or(d.beta2),
                  o.eps.value_or(d.eps), o.weight_decay.value_or(d.weight_decay), false});
}

std::unique_ptr<Optimizer> make_adamw(Parameters&& p, const OptimizerOptions& o) {
  refuse_for_adam("adamw", o);
  const AdamWOptions d;
  return std::make_unique<AdamW>(
      std::move(p),
      AdamWOptions{o.lr.value_or(d.lr), o.beta1.value_or(d.beta1), o.beta2.value_or(d.beta2),
                   o.eps.value_or(d.eps), o.weight_decay.value_or(d.weight_decay)});
}

std::unique_ptr<Optimizer> make_rmsprop(Parameters&& p, const OptimizerOptions& o) {
  refuse("rmsprop", o.beta1.has_value(), "beta1");
  refuse("rmsprop", o.beta2.has_value(), "beta2");
  refuse("rmsprop", o.dampening.has_value(), "dampening");
  refuse("rmsprop", o.nesterov, "nesterov");
  const RmsPropOptions d;
  return std::make_unique<RmsProp>(
      std::move(p), RmsPropOptions{o.lr.value_or(d.lr), o.alpha.value_or(d.alpha),
                                   o.eps.value_or(d.eps), o.weight_decay.value_or(d.weight_decay),
                                   o.momentum.value_or(d.momentum), o.centered});
}

std::unique_ptr<Optimizer> make_levenberg(Parameters&& p, const OptimizerOptions& o) {
  refuse_for_adam("levenberg", o);
  refuse("levenberg", o.beta1.has_value(), "beta1");
  refuse("levenberg", o.beta2.has_value(), "beta2");
  const LevenbergOptions d;
  return std::make_unique<Levenberg>(std::move(p),
                                     LevenbergOptions{o.lr.value_or(d.lr), o.eps.value_or(d.mu),
                                                      o.weight_decay.value_or(d.weight_decay)});
}

using MakeOptimizer = std::unique_ptr<Optimizer> (*)(Parameters&&, const OptimizerOptions&);
constexpr std::pair<const char*, MakeOptimizer> kOptimizers[] = {{"sgd", make_sgd},
                                                                 {"adam", make_adam},
                                                                 {"adamw", make_adamw},
                                                                 {"rmsprop", make_rmsprop},
                                                                 {"levenberg", make_levenberg}};

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, make] : kOptimizers) out.emplace_back(name);
  return out;
}

std::unique_ptr<Optimizer> create(const std::string& name, Parameters parameters,
                                  const OptimizerOptions& options) {
  for (const auto& [known, make] : kOptimizers)
    if (name == known) return make(std::move(parameters), options);
  const std::vector<std::string> known = names();
  const std::string near = nearest(name, known.data(), static_cast<int>(known.size()));
  throw ValueError(cat("'", name, "' is not an optimizer",
                       near.empty() ? "" : cat("; did you mean '", near, "'?"),
                       " (sgd, adam, adamw, rmsprop, levenberg)"));
}

}  // namespace tenon::optim
