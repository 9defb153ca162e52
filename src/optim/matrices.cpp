// Optimizers whose update of an element depends on the whole parameter: LAMB, Adafactor, Muon.
#include <algorithm>
#include <cmath>

#include <tenon/error.h>
#include <tenon/optimizers.h>

#include "base/epsilon.h"
#include "base/make_error.h"
#include "optim/rule_parts.h"

namespace tenon::optim {
namespace {

constexpr OptionRange<LambOptions> kLambRanges[] = {
    {"beta1", &LambOptions::beta1, kDecay},
    {"beta2", &LambOptions::beta2, kDecay},
    {"eps", &LambOptions::eps, kEps},
};
constexpr OptionRange<AdafactorOptions> kAdafactorRanges[] = {
    {"beta2_decay", &AdafactorOptions::beta2_decay, from_to(-kMostEps, 0)},
    {"eps1", &AdafactorOptions::eps1, kEps},
    {"eps2", &AdafactorOptions::eps2, kEps},
    {"d", &AdafactorOptions::d, finite_above(0)},
};
constexpr OptionRange<MuonOptions> kMuonRanges[] = {
    {"momentum", &MuonOptions::momentum, from_to(0, 1)},
    {"eps", &MuonOptions::eps, above_to(0, kMostEps)},
    {"ns_steps", &MuonOptions::ns_steps, from_to(1, 99)},
    {"adamw_beta1", &MuonOptions::adamw_beta1, kDecay},
    {"adamw_beta2", &MuonOptions::adamw_beta2, kDecay},
    {"adamw_eps", &MuonOptions::adamw_eps, kEps},
};

// Norms and products of 16-bit tensors are computed in float32.
Tensor wide(const Tensor& x) { return x.dtype() == DType::Float64 ? x : cast(x, DType::Float32); }

Tensor norm_of(const Tensor& x) { return sqrt(sum(square(wide(x)))); }

Tensor root_mean_square(const Tensor& x) {
  return norm_of(x) / std::sqrt(static_cast<double>(std::max<std::int64_t>(x.numel(), 1)));
}

// Replaces the singular values of a matrix by values near 1. The quintic's coefficients are those
// of the paper: they raise small singular values as fast as possible.
Tensor orthogonalized(const Tensor& matrix, int steps, double eps) {
  constexpr double kA = 3.4445, kB = -4.775, kC = 2.0315;
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = tall ? transpose(matrix, 0, 1) : matrix;
  x = x / maximum(norm_of(x), eps);
  for (int k = 0; k < steps; ++k) {
    const Tensor gram = matmul(x, transpose(x, 0, 1));
    x = x * kA + matmul(gram * kB + matmul(gram, gram) * kC, x);
  }
  return tall ? transpose(x, 0, 1) : x;
}

double rate_factor(MuonRate rate, double rows, double columns) {
  switch (rate) {
    case MuonRate::MatchRmsAdamW:
      return 0.2 * std::sqrt(std::max(rows, columns));
    case MuonRate::SpectralUnclamped:
      return std::sqrt(rows / columns);
    case MuonRate::Original:
      break;
  }
  return std::sqrt(std::max(1.0, rows / columns));
}

}  // namespace

// ---- LAMB ---------------------------------------------------------------------------------------

Lamb::Lamb(Parameters parameters, const LambOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("lamb", options, kLambRanges);
  exp_avg_ = add_slot("exp_avg");
  exp_avg_sq_ = add_slot("exp_avg_sq", {.least = 0});
}

void Lamb::prepare(const Tensor&, const Tensor& next) {
  correction1_ = 1 - pow(options_.beta1, next);
  correction2_ = 1 - pow(options_.beta2, next);
}

std::vector<Optimizer::Assignment> Lamb::rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                              double weight_decay) {
  const Tensor &p = parameter(k), &m = (*exp_avg_)[k], &v = (*exp_avg_sq_)[k];
  const Tensor g = uphill(grad, options_.maximize);
  const Tensor new_m = averaged(m, g, options_.beta1);
  const Tensor new_v = averaged_square(v, g, options_.beta2);
  const Tensor ratio =
      new_m / like(correction1_, p) / (sqrt(new_v / like(correction2_, p)) + options_.eps);
  const Tensor direction = decayed(ratio, p, weight_decay);
  const Tensor of_parameter = norm_of(p), of_direction = norm_of(direction);
  const Tensor both = logical_and(gt(of_parameter, 0), gt(of_direction, 0));
  const Tensor trust = where(both, of_parameter / of_direction, ones_like(of_parameter));
  return {{m, new_m}, {v, new_v}, {p, p - lr * like(trust, p) * direction}};
}

std::string Lamb::describe() const {
  const LambOptions d;
  return described("lamb", base_lr(),
                   {{"beta1", options_.beta1, d.beta1},
                    {"beta2", options_.beta2, d.beta2},
                    {"eps", options_.eps, d.eps},
                    {"weight_decay", options_.weight_decay, 0},
                    {"maximize", options_.maximize}});
}

// ---- Adafactor ----------------------------------------------------------------------------------

Adafactor::Adafactor(Parameters parameters, const AdafactorOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("adafactor", options, kAdafactorRanges);
  // The mean squares of a matrix are stored as means of its rows (axis -1) and columns (axis -2).
  const auto without = [this](int axis) {
    return [this, axis](std::size_t k) -> std::optional<Shape> {
      Shape shape = parameter(k).shape();
      if (shape.rank() < 2) return std::nullopt;
      shape[shape.rank() + axis] = 1;
      return shape;
    };
  };
  row_var_ = add_slot("row_var", {.least = 0, .shape = without(-1)});
  col_var_ = add_slot("col_var", {.least = 0, .shape = without(-2)});
  variance_ =
      add_slot("variance", {.least = 0, .shape = [this](std::size_t k) -> std::optional<Shape> {
                              const Shape& shape = parameter(k).shape();
                              return shape.rank() < 2 ? std::optional(shape) : std::nullopt;
                            }});
}

void Adafactor::prepare(const Tensor&, const Tensor& next) {
  share_ = pow(next, options_.beta2_decay);
  limit_ = rsqrt(next);
}

std::vector<Optimizer::Assignment> Adafactor::rule(std::size_t k, const Tensor& grad,
                                                   const Tensor& lr, double weight_decay) {
  const Tensor& p = parameter(k);
  const Tensor g = uphill(grad, options_.maximize);
  const double eps = options_.eps1.value_or(epsilon_of(p.dtype()));
  const Tensor share = like(share_, p), squares = square(g);
  std::vector<Assignment> out;
  const auto renewed = [&](const Tensor& mean, const Tensor& value) {
    out.emplace_back(mean, mean + (value - mean) * share);
    return out.back().second;
  };
  Tensor estimate;
  if (p.rank() < 2) {
    estimate = renewed((*variance_)[k], squares);
  } else {
    const Tensor rows = renewed((*row_var_)[k], mean(squares, {-1}, true));
    const Tensor columns = renewed((*col_var_)[k], mean(squares, {-2}, true));
    estimate = rows * columns / maximum(mean(rows, {-2}, true), eps);
  }
  const Tensor direction = g * rsqrt(maximum(estimate, eps * eps));
  const Tensor excess = maximum(root_mean_square(direction) / options_.d, 1.0);
  const Tensor scale = maximum(root_mean_square(p), options_.eps2) / excess;
  const Tensor rate =
      like(cast(scale, DType::Float64) * minimum(cast(lr, DType::Float64), limit_), p);
  out.emplace_back(p, shrunk(p, lr, weight_decay) - rate * direction);
  return out;
}

std::string Adafactor::describe() const {
  const AdafactorOptions d;
  return described("adafactor", base_lr(),
                   {{"beta2_decay", options_.beta2_decay, d.beta2_decay},
                    {"eps1", options_.eps1.value_or(0), 0},
                    {"eps2", options_.eps2, d.eps2},
                    {"d", options_.d, d.d},
                    {"weight_decay", options_.weight_decay, d.weight_decay},
                    {"maximize", options_.maximize}});
}

// ---- Muon ---------------------------------------------------------------------------------------

Muon::Muon(Parameters parameters, const MuonOptions& options)
    : Optimizer(std::move(parameters.groups), options.lr, options.weight_decay), options_(options) {
  check_options("muon", options, kMuonRanges);
  for (std::size_t k = 0; k < this->parameters().size(); ++k) {
    const Tensor& p = parameter(k);
    chosen_.push_back(p.rank() >= 2 && p.numel() > 0 &&
                      (!options.chosen || options.chosen(parameter_names()[k], p)));
  }
  const auto only = [this](bool chosen) {
    return [this, chosen](std::size_t k) {
      return chosen_[k] == chosen ? std::optional(parameter(k).shape()) : std::nullopt;
    };
  };
  momentum_ = add_slot("momentum_buffer", {.shape = only(true)});
  exp_avg_ = add_slot("exp_avg", {.shape = only(false)});
  exp_avg_sq_ = add_slot("exp_avg_sq", {.least = 0, .shape = only(false)});
}

void Muon::prepare(const Tensor&, const Tensor& next) {
  correction1_ = 1 - pow(options_.adamw_beta1, next);
  correction2_ = 1 - pow(options_.adamw_beta2, next);
}

std::vector<Optimizer::Assignment> Muon::rule(std::size_t k, const Tensor& grad, const Tensor& lr,
                                              double weight_decay) {
  const Tensor& p = parameter(k);
  const Tensor g = uphill(grad, options_.maximize), start = shrunk(p, lr, weight_decay);
  if (!chosen_[k]) return adamw_rule(k, g, lr, start);
  const Tensor& buffer = (*momentum_)[k];
  const Tensor new_buffer = averaged(buffer, g, options_.momentum);
  const Tensor update = options_.nesterov ? g + (new_buffer - g) * options_.momentum : new_buffer;
  const Tensor matrix = wide(flatten(update, 1));
  const double factor = rate_factor(options_.rate, static_cast<double>(matrix.size(0)),
                                    static_cast<double>(matrix.size(1)));
  const Tensor direction = reshape(like(orthogonalized(matrix, options_.ns_steps, options_.eps), p),
                                   Ints(p.shape().begin(), p.shape().end()));
  return {{buffer, new_buffer}, {p, start - lr * factor * direction}};
}

std::vector<Optimizer::Assignment> Muon::adamw_rule(std::size_t k, const Tensor& grad,
                                                    const Tensor& lr, const Tensor& start) const {
  const Tensor &p = parameter(k), &m = (*exp_avg_)[k], &v = (*exp_avg_sq_)[k];
  const Tensor new_m = averaged(m, grad, options_.adamw_beta1);
  const Tensor new_v = averaged_square(v, grad, options_.adamw_beta2);
  const Tensor denominator = sqrt(new_v / like(correction2_, p)) + options_.adamw_eps;
  return {{m, new_m}, {v, new_v}, {p, start - divided(lr, correction1_) * (new_m / denominator)}};
}

std::string Muon::describe() const {
  const MuonOptions d;
  return described(
      "muon", base_lr(),
      {{"momentum", options_.momentum, d.momentum},
       {"weight_decay", options_.weight_decay, 0},
       {"nesterov", options_.nesterov},
       {"ns_steps", static_cast<double>(options_.ns_steps), static_cast<double>(d.ns_steps)},
       {"match_rms_adamw", options_.rate == MuonRate::MatchRmsAdamW},
       {"spectral_unclamped", options_.rate == MuonRate::SpectralUnclamped},
       {"maximize", options_.maximize}});
}

}  // namespace tenon::optim
