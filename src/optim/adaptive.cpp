// Optimizers whose steps depend on running statistics of each element: Adagrad, SparseAdam,
// Adadelta, Adamax, NAdam, RAdam. Term by term those of torch.optim.
#include <cmath>

#include <tenon/optimizers.h>

#include "optim/row_gradient.h"
#include "optim/rule_parts.h"

namespace tenon::optim {
namespace {

constexpr OptionRange<AdagradOptions> kAdagradRanges[] = {
    {"lr_decay", &AdagradOptions::lr_decay, finite_from(0)},
    {"initial_accumulator_value", &AdagradOptions::initial_accumulator_value, kEps},
    {"eps", &AdagradOptions::eps, kEps},
};
constexpr OptionRange<SparseAdamOptions> kSparseAdamRanges[] = {
    {"beta1", &SparseAdamOptions::beta1, kDecay},
    {"beta2", &SparseAdamOptions::beta2, kDecay},
    {"eps", &SparseAdamOptions::eps, kEps},
};
constexpr OptionRange<AdadeltaOptions> kAdadeltaRanges[] = {
    {"rho", &AdadeltaOptions::rho, from_to(0, 1)},
    {"eps", &AdadeltaOptions::eps, kEps},
};
constexpr OptionRange<AdamaxOptions> kAdamaxRanges[] = {
    {"beta1", &AdamaxOptions::beta1, kDecay},
    {"beta2", &AdamaxOptions::beta2, kDecay},
    {"eps", &AdamaxOptions::eps, kEps},
};
constexpr OptionRange<NAdamOptions> kNAdamRanges[] = {
    {"beta1", &NAdamOptions::beta1, kDecay},
    {"beta2", &NAdamOptions::beta2, kDecay},
    {"eps", &NAdamOptions::eps, kEps},
    {"momentum_decay", &NAdamOptions::momentum_decay, finite_from(0)},
};
constexpr OptionRange<RAdamOptions> kRAdamRanges[] = {
    {"beta1", &RAdamOptions::beta1, kDecay},
    {"beta2", &RAdamOptions::beta2, kDecay},
    {"eps", &RAdamOptions::eps, kEps},
};

}  // namespace

// ---- Adagrad ------------------------------------------------------------------------------------

Adagrad::Adagrad(Parameters parameters, const AdagradOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("adagrad", options, kAdagradRanges);
  sum_ = add_slot("sum", {.least = 0, .start = options.initial_accumulator_value});
}

void Adagrad::prepare(const Tensor& taken, const Tensor&) {
  if (options_.lr_decay != 0) slowing_ = 1 + taken * options_.lr_decay;
}

const char* Adagrad::why_not_rows(double weight_decay) const {
  return weight_decay == 0 ? nullptr : "weight decay changes every row";
}

std::vector<Optimizer::Assignment> Adagrad::rule(std::size_t k, const Tensor& grad,
                                                 const Tensor& lr, double weight_decay) {
  const Tensor &p = parameter(k), &sum = (*sum_)[k];
  const Tensor g = decayed(uphill(grad, options_.maximize), p, weight_decay);
  const Tensor new_sum = sum + square(g);
  const Tensor rate = options_.lr_decay == 0 ? lr : divided(lr, slowing_);
  return {{sum, new_sum}, {p, p - rate * (g / (sqrt(new_sum) + options_.eps))}};
}

std::string Adagrad::describe() const {
  const AdagradOptions d;
  return described("adagrad", base_lr(),
                   {{"lr_decay", options_.lr_decay, d.lr_decay},
                    {"weight_decay", options_.weight_decay, d.weight_decay},
                    {"initial_accumulator_value", options_.initial_accumulator_value,
                     d.initial_accumulator_value},
                    {"eps", options_.eps, d.eps},
                    {"maximize", options_.maximize}});
}

// ---- SparseAdam ---------------------------------------------------------------------------------

SparseAdam::SparseAdam(Parameters parameters, const SparseAdamOptions& options)
    : Optimizer(parameters.groups, options.lr, 0), options_(options) {
  check_options("sparse_adam", options, kSparseAdamRanges);
  require_no_decay("sparse_adam", parameters.groups, "weight decay changes every row");
  exp_avg_ = add_slot("exp_avg");
  exp_avg_sq_ = add_slot("exp_avg_sq", {.least = 0});
}

const char* SparseAdam::why_not_rows(double) const { return nullptr; }

void SparseAdam::prepare(const Tensor&, const Tensor& next) {
  correction_ = sqrt(1 - pow(options_.beta2, next)) / (1 - pow(options_.beta1, next));
}

std::vector<Optimizer::Assignment> SparseAdam::rule(std::size_t k, const Tensor& grad,
                                                    const Tensor& lr, double) {
  if (is_unused(grad)) return {};  // as no row of an embedding was read
  const Tensor &p = parameter(k), &m = (*exp_avg_)[k], &v = (*exp_avg_sq_)[k];
  const Tensor g = uphill(grad, options_.maximize);
  const Tensor new_m = averaged(m, g, options_.beta1);
  const Tensor new_v = averaged(v, square(g), options_.beta2);
  const Tensor rate = like(cast(lr, DType::Float64) * correction_, lr);
  return {{m, new_m}, {v, new_v}, {p, p - rate * (new_m / (sqrt(new_v) + options_.eps))}};
}

std::string SparseAdam::describe() const {
  const SparseAdamOptions d;
  return described("sparse_adam", base_lr(),
                   {{"beta1", options_.beta1, d.beta1},
                    {"beta2", options_.beta2, d.beta2},
                    {"eps", options_.eps, d.eps},
                    {"maximize", options_.maximize}});
}

// ---- Adadelta -----------------------------------------------------------------------------------

Adadelta::Adadelta(Parameters parameters, const AdadeltaOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("adadelta", options, kAdadeltaRanges);
  square_avg_ = add_slot("square_avg", {.least = 0});
  acc_delta_ = add_slot("acc_delta", {.least = 0});
}

std::vector<Optimizer::Assignment> Adadelta::rule(std::size_t k, const Tensor& grad,
                                                  const Tensor& lr, double weight_decay) {
  const Tensor &p = parameter(k), &square_avg = (*square_avg_)[k], &acc_delta = (*acc_delta_)[k];
  const Tensor g = decayed(uphill(grad, options_.maximize), p, weight_decay);
  const Tensor new_square = averaged_square(square_avg, g, options_.rho);
  const Tensor delta = sqrt(acc_delta + options_.eps) / sqrt(new_square + options_.eps) * g;
  return {{square_avg, new_square},
          {acc_delta, averaged_square(acc_delta, delta, options_.rho)},
          {p, p - lr * delta}};
}

std::string Adadelta::describe() const {
  const AdadeltaOptions d;
  return described("adadelta", base_lr(),
                   {{"rho", options_.rho, d.rho},
                    {"eps", options_.eps, d.eps},
                    {"weight_decay", options_.weight_decay, d.weight_decay},
                    {"maximize", options_.maximize}});
}

// ---- Adamax -------------------------------------------------------------------------------------

Adamax::Adamax(Parameters parameters, const AdamaxOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("adamax", options, kAdamaxRanges);
  exp_avg_ = add_slot("exp_avg");
  exp_inf_ = add_slot("exp_inf", {.least = 0});
}

void Adamax::prepare(const Tensor&, const Tensor& next) {
  correction_ = 1 - pow(options_.beta1, next);
}

std::vector<Optimizer::Assignment> Adamax::rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                                double weight_decay) {
  const Tensor &p = parameter(k), &m = (*exp_avg_)[k], &largest = (*exp_inf_)[k];
  const Tensor g = decayed(uphill(grad, options_.maximize), p, weight_decay);
  const Tensor new_m = averaged(m, g, options_.beta1);
  const Tensor new_largest = maximum(largest * options_.beta2, abs(g) + options_.eps);
  return {{m, new_m},
          {largest, new_largest},
          {p, p - divided(lr, correction_) * (new_m / new_largest)}};
}

std::string Adamax::describe() const {
  const AdamaxOptions d;
  return described("adamax", base_lr(),
                   {{"beta1", options_.beta1, d.beta1},
                    {"beta2", options_.beta2, d.beta2},
                    {"eps", options_.eps, d.eps},
                    {"weight_decay", options_.weight_decay, d.weight_decay},
                    {"maximize", options_.maximize}});
}

// ---- NAdam --------------------------------------------------------------------------------------

NAdam::NAdam(Parameters parameters, const NAdamOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("nadam", options, kNAdamRanges);
  exp_avg_ = add_slot("exp_avg");
  exp_avg_sq_ = add_slot("exp_avg_sq", {.least = 0});
  mu_product_ = add_slot(
      "mu_product", {.least = 0, .start = 1, .dtype = DType::Float64, .shape = [](std::size_t) {
                       return Shape{};
                     }});
}

void NAdam::prepare(const Tensor&, const Tensor& next) {
  const auto momentum = [&](const Tensor& step) {
    return options_.beta1 * (1 - 0.5 * pow(0.96, step * options_.momentum_decay));
  };
  mu_ = momentum(next);
  mu_next_ = momentum(next + 1);
  correction2_ = 1 - pow(options_.beta2, next);
}

std::vector<Optimizer::Assignment> NAdam::rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                               double weight_decay) {
  const Tensor &p = parameter(k), &m = (*exp_avg_)[k], &v = (*exp_avg_sq_)[k];
  const Tensor& product = (*mu_product_)[k];
  const Tensor up = uphill(grad, options_.maximize);
  const Tensor g = options_.decoupled ? up : decayed(up, p, weight_decay);
  const Tensor start = options_.decoupled ? shrunk(p, lr, weight_decay) : p;
  const Tensor new_m = averaged(m, g, options_.beta1);
  const Tensor new_v = averaged_square(v, g, options_.beta2);
  const Tensor new_product = product * mu_;
  const Tensor denominator = sqrt(new_v / like(correction2_, p)) + options_.eps;
  const Tensor rate = cast(lr, DType::Float64);
  const Tensor of_grad = like(rate * (1 - mu_) / (1 - new_product), p);
  const Tensor of_mean = like(rate * mu_next_ / (1 - new_product * mu_next_), p);
  return {{m, new_m},
          {v, new_v},
          {product, new_product},
          {p, start - (of_grad * g + of_mean * new_m) / denominator}};
}

std::string NAdam::describe() const {
  const NAdamOptions d;
  return described("nadam", base_lr(),
                   {{"beta1", options_.beta1, d.beta1},
                    {"beta2", options_.beta2, d.beta2},
                    {"eps", options_.eps, d.eps},
                    {"weight_decay", options_.weight_decay, d.weight_decay},
                    {"momentum_decay", options_.momentum_decay, d.momentum_decay},
                    {"decoupled", options_.decoupled},
                    {"maximize", options_.maximize}});
}

// ---- RAdam --------------------------------------------------------------------------------------

RAdam::RAdam(Parameters parameters, const RAdamOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("radam", options, kRAdamRanges);
  exp_avg_ = add_slot("exp_avg");
  exp_avg_sq_ = add_slot("exp_avg_sq", {.least = 0});
}

void RAdam::prepare(const Tensor&, const Tensor& next) {
  const double longest = 2 / (1 - options_.beta2) - 1;  // the paper's rho of infinitely many steps
  correction1_ = 1 - pow(options_.beta1, next);
  const Tensor decay = pow(options_.beta2, next), correction2 = 1 - decay;
  const Tensor length = longest - 2 * next * decay / correction2;
  is_adaptive_ = gt(length, 5);
  // Below 5 the root may be NaN; it is not selected then.
  rectified_ = sqrt((length - 4) * (length - 2) * longest /
                    ((longest - 4) * (longest - 2) * length) * correction2);
}

std::vector<Optimizer::Assignment> RAdam::rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                               double weight_decay) {
  const Tensor &p = parameter(k), &m = (*exp_avg_)[k], &v = (*exp_avg_sq_)[k];
  const Tensor up = uphill(grad, options_.maximize);
  const Tensor g = options_.decoupled ? up : decayed(up, p, weight_decay);
  const Tensor start = options_.decoupled ? shrunk(p, lr, weight_decay) : p;
  const Tensor new_m = averaged(m, g, options_.beta1);
  const Tensor new_v = averaged_square(v, g, options_.beta2);
  const Tensor adaptive = like(rectified_, p) / (sqrt(new_v) + options_.eps);
  const Tensor step = divided(lr, correction1_) * new_m;
  return {{m, new_m}, {v, new_v}, {p, start - where(is_adaptive_, step * adaptive, step)}};
}

std::string RAdam::describe() const {
  const RAdamOptions d;
  return described("radam", base_lr(),
                   {{"beta1", options_.beta1, d.beta1},
                    {"beta2", options_.beta2, d.beta2},
                    {"eps", options_.eps, d.eps},
                    {"weight_decay", options_.weight_decay, d.weight_decay},
                    {"decoupled", options_.decoupled},
                    {"maximize", options_.maximize}});
}

}  // namespace tenon::optim
