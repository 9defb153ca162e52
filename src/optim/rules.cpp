// The update rules of sgd, adam, adamw, rmsprop and levenberg; the first four are, term by term,
// those of torch.optim.
#include <tenon/error.h>
#include <tenon/optim.h>

#include "base/make_error.h"
#include "optim/rule_parts.h"

namespace tenon::optim {
namespace {

constexpr OptionRange<SgdOptions> kSgdRanges[] = {
    {"momentum", &SgdOptions::momentum, from_to(0, 1)},
    {"dampening", &SgdOptions::dampening, from_to(0, 1)},
};
constexpr OptionRange<AdamOptions> kAdamRanges[] = {
    {"beta1", &AdamOptions::beta1, kDecay},
    {"beta2", &AdamOptions::beta2, kDecay},
    {"eps", &AdamOptions::eps, kEps},
};
constexpr OptionRange<RmsPropOptions> kRmsPropRanges[] = {
    {"alpha", &RmsPropOptions::alpha, from_to(0, 1)},
    {"eps", &RmsPropOptions::eps, kEps},
    {"momentum", &RmsPropOptions::momentum, from_to(0, 1)},
};
constexpr OptionRange<LevenbergOptions> kLevenbergRanges[] = {
    {"mu", &LevenbergOptions::mu, from_to(1e-30, kMostEps)},
};

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

const char* Sgd::why_not_rows(double weight_decay) const {
  if (options_.momentum != 0) return "momentum changes every row";
  return weight_decay == 0 ? nullptr : "weight decay changes every row";
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
  return described("sgd", base_lr(),
                   {{"momentum", options_.momentum, 0},
                    {"dampening", options_.dampening, 0},
                    {"weight_decay", options_.weight_decay, 0},
                    {"nesterov", options_.nesterov},
                    {"maximize", options_.maximize}});
}

// ---- Adam, AdamW --------------------------------------------------------------------------------

Adam::Adam(Parameters parameters, const AdamOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("adam", options, kAdamRanges);
  exp_avg_ = add_slot("exp_avg");
  exp_avg_sq_ = add_slot("exp_avg_sq", {.least = 0});
  if (options.amsgrad) max_exp_avg_sq_ = add_slot("max_exp_avg_sq", {.least = 0});
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
  const Tensor start = options_.decoupled ? shrunk(p, lr, weight_decay) : p;
  const Tensor new_m = averaged(m, g, options_.beta1);
  const Tensor new_v = averaged_square(v, g, options_.beta2);
  const Tensor square_mean =
      max_exp_avg_sq_ == nullptr ? new_v : maximum((*max_exp_avg_sq_)[k], new_v);
  const Tensor denominator = sqrt(square_mean) / like(correction2_sqrt_, p) + options_.eps;
  std::vector<Assignment> out{{m, new_m}, {v, new_v}};
  if (max_exp_avg_sq_ != nullptr) out.emplace_back((*max_exp_avg_sq_)[k], square_mean);
  out.emplace_back(p, start - divided(lr, correction1_) * (new_m / denominator));
  return out;
}

std::string Adam::describe() const {
  return described(options_.decoupled ? "adamw" : "adam", base_lr(),
                   {{"beta1", options_.beta1, 0.9},
                    {"beta2", options_.beta2, 0.999},
                    {"eps", options_.eps, 1e-8},
                    {"weight_decay", options_.weight_decay, 0},
                    {"amsgrad", options_.amsgrad},
                    {"maximize", options_.maximize}});
}

// ---- RMSProp ------------------------------------------------------------------------------------

RmsProp::RmsProp(Parameters parameters, const RmsPropOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("rmsprop", options, kRmsPropRanges);
  square_avg_ = add_slot("square_avg", {.least = 0});
  if (options.centered) grad_avg_ = add_slot("grad_avg");
  if (options.momentum != 0) momentum_ = add_slot("momentum_buffer");
}

std::vector<Optimizer::Assignment> RmsProp::rule(std::size_t k, const Tensor& grad,
                                                 const Tensor& lr, double weight_decay) {
  const Tensor& p = parameter(k);
  const Tensor g = decayed(uphill(grad, options_.maximize), p, weight_decay);
  const Tensor& s = (*square_avg_)[k];
  const Tensor new_s = averaged_square(s, g, options_.alpha);
  std::vector<Assignment> out{{s, new_s}};
  Tensor mean_square = new_s;
  if (grad_avg_ != nullptr) {
    const Tensor& a = (*grad_avg_)[k];
    const Tensor new_a = averaged(a, g, options_.alpha);
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
  return described("rmsprop", base_lr(),
                   {{"alpha", options_.alpha, 0.99},
                    {"eps", options_.eps, 1e-8},
                    {"momentum", options_.momentum, 0},
                    {"weight_decay", options_.weight_decay, 0},
                    {"centered", options_.centered},
                    {"maximize", options_.maximize}});
}

// ---- Levenberg–Marquardt ------------------------------------------------------------------------

Levenberg::Levenberg(Parameters parameters, const LevenbergOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("levenberg", options, kLevenbergRanges);
  curvature_ = add_slot("curvature", {.least = 0});
}

std::vector<Tensor> Levenberg::curvature_updates(TensorList grads, const Tensor& keep,
                                                 double share) const {
  if (grads.size() != parameters().size())
    throw make_error<ValueError>("levenberg: ", grads.size(), " gradients for ",
                                 parameters().size(), " parameters");
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
  return described("levenberg", base_lr(),
                   {{"mu", options_.mu, 0.02}, {"weight_decay", options_.weight_decay, 0}});
}

}  // namespace tenon::optim
