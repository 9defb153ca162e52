// L-BFGS, step by step that of torch.optim.LBFGS. All vectors are flat: the elements of all
// parameters one after another, in float64 if a parameter is float64 and in float32 otherwise.
// Every product is evaluated at once, so that a longer history needs no new plans.
#include <tenon/lbfgs.h>

#include <algorithm>
#include <cmath>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/joining.h>
#include <tenon/ops.h>

#include "base/make_error.h"
#include "grad/gradients.h"
#include "graph/node.h"
#include "graph/tracing/traced_state.h"
#include "optim/line_search.h"
#include "optim/rule_parts.h"

namespace tenon::optim {
namespace {

constexpr OptionRange<LbfgsOptions> kLbfgsRanges[] = {
    {"lr", &LbfgsOptions::lr, from_to(0, 1e30)},
    {"max_iter", &LbfgsOptions::max_iter, at_least(1)},
    {"max_eval", &LbfgsOptions::max_eval, at_least(0)},
    {"tolerance_grad", &LbfgsOptions::tolerance_grad, at_least(0)},
    {"tolerance_change", &LbfgsOptions::tolerance_change, at_least(0)},
    {"history_size", &LbfgsOptions::history_size, at_least(1)},
};

// A number as data and not as a part of the plan: it differs in every step.
Tensor number(double value, DType dtype) {
  const Tensor out = Tensor::from<double>({value}, {});
  return dtype == DType::Float64 ? out : cast(out, dtype);
}

double dot(const Tensor& a, const Tensor& b) { return sum(a * b).item(); }
double largest(const Tensor& x) { return amax(abs(x)).item(); }

Tensor plus(const Tensor& a, const Tensor& b, double factor) {
  return (a + b * number(factor, a.dtype())).compute();
}

// The value of an evaluated tensor without the graph behind it.
Tensor value_of(const Tensor& t) { return make_data(t.node()->value, t.shape(), t.dtype()); }

}  // namespace

Lbfgs::Lbfgs(Parameters given, const LbfgsOptions& options) : options_(options), lr_(options.lr) {
  check_options("lbfgs", options, kLbfgsRanges);
  if (options_.max_eval == 0) options_.max_eval = std::max(1, options_.max_iter * 5 / 4);
  if (given.groups.size() != 1 || given.groups[0].lr || given.groups[0].weight_decay ||
      given.groups[0].own_steps)
    throw ValueError("lbfgs: all parameters are one group without settings of its own");
  for (const nn::NamedTensor& p : given.groups[0].parameters) {
    if (!p.tensor.defined() || !is_variable(p.tensor) || !is_floating(p.tensor.dtype()))
      throw make_error<ValueError>("lbfgs: '", p.name,
                                   "' is not a floating variable and cannot be trained");
    if (p.tensor.dtype() == DType::Float64) dtype_ = DType::Float64;
    size_ += p.tensor.numel();
    parameters_.push_back(p.tensor);
  }
  if (size_ == 0)
    throw ValueError("lbfgs: there are no parameters to train: unfreeze some, or pass others");
}

void Lbfgs::set_lr(double lr) {
  require_range("lbfgs", "lr", lr, from_to(0, 1e30));
  lr_ = lr;
}

Tensor Lbfgs::flat(TensorList values) const {
  std::vector<Tensor> parts;
  for (std::size_t k = 0; k < parameters_.size(); ++k)
    parts.push_back(is_frozen(parameters_[k]) ? zeros({parameters_[k].numel()}, dtype_)
                                              : cast(flatten(values[k]), dtype_));
  return concat(parts);
}

Lbfgs::Evaluation Lbfgs::evaluate(const Closure& closure, Tensor* loss) {
  const Tensor built = closure();
  if (!built.defined() || built.numel() != 1)
    throw ShapeError("lbfgs: the closure must return the loss, a scalar");
  const auto [gradients, reached] = gradients_of(built, parameters_);
  if (!reached)
    throw ValueError(
        "lbfgs: the loss does not depend on any parameter: the closure must build it anew from the "
        "parameters, and not return the result of a compiled function");
  const Tensor along = flat(gradients), grad = options_.maximize ? -along : along;
  compute({built, grad});
  ++evaluations_;
  if (loss != nullptr) *loss = value_of(built);
  return {options_.maximize ? -built.item() : built.item(), value_of(grad)};
}

// Sets the parameters to from + direction · length.
void Lbfgs::move(const Tensor& from, const Tensor& direction, double length) const {
  const Tensor all = from + direction * number(length, dtype_);
  std::vector<Tensor> work;
  std::int64_t begin = 0;
  for (const Tensor& p : parameters_) {
    const Tensor part = narrow(all, 0, begin, p.numel());
    begin += p.numel();
    if (!is_frozen(p))
      work.push_back(
          assign(p, cast(reshape(part, Ints(p.shape().begin(), p.shape().end())), p.dtype())));
  }
  compute(work);
}

// Adds the changes of the last step to the history.
void Lbfgs::remember(const Tensor& grad) {
  const Tensor y = (grad - last_grad_).compute();
  const Tensor s = (direction_ * number(length_, dtype_)).compute();
  const double curvature = dot(y, s);
  if (!(curvature > 1e-10)) return;
  if (std::ssize(history_) == options_.history_size) history_.erase(history_.begin());
  history_.push_back({value_of(y), value_of(s), 1 / curvature});
  scale_ = curvature / dot(y, y);
}

// -H · grad by the two loops of the paper.
Tensor Lbfgs::newton_direction(const Tensor& grad) const {
  std::vector<double> shares(history_.size());
  Tensor q = (-grad).compute();
  for (std::size_t k = history_.size(); k-- > 0;) {
    shares[k] = dot(history_[k].s, q) * history_[k].ro;
    q = value_of(plus(q, history_[k].y, -shares[k]));
  }
  q = value_of((q * number(scale_, dtype_)).compute());
  for (std::size_t k = 0; k < history_.size(); ++k) {
    const double back = dot(history_[k].y, q) * history_[k].ro;
    q = value_of(plus(q, history_[k].s, shares[k] - back));
  }
  return q;
}

// Moves the parameters along the direction; the loss and gradient there, unless no iteration
// follows that needs them.
Lbfgs::Evaluation Lbfgs::advance(const Closure& closure, const Evaluation& at, bool is_last,
                                 int budget) {
  const Tensor start = (flat(parameters_) * 1.0).compute();
  if (!options_.strong_wolfe) {
    move(start, direction_, length_);
    return is_last ? at : evaluate(closure);
  }
  const auto along = [&](double t) -> LinePoint {
    move(start, direction_, t);
    const auto [loss, grad] = evaluate(closure);
    return {t, loss, dot(grad, direction_), grad};
  };
  LinePoint found;
  try {
    found = strong_wolfe(along, {0, at.first, dot(at.second, direction_), at.second}, length_,
                         {largest(direction_), options_.tolerance_change, budget});
  } catch (...) {
    move(start, direction_, 0);
    throw;
  }
  length_ = found.t;
  move(start, direction_, length_);
  return {found.loss, found.grad};
}

Tensor Lbfgs::step(const Closure& closure) {
  if (!closure) throw ValueError("lbfgs: the closure is empty");
  Tensor first;
  const std::int64_t before = evaluations_;
  Evaluation at = evaluate(closure, &first);
  if (largest(at.second) <= options_.tolerance_grad) return first;
  for (int k = 1; k <= options_.max_iter; ++k) {
    ++iterations_;
    const bool is_first = !direction_.defined();
    if (!is_first) remember(at.second);
    direction_ = newton_direction(at.second);
    last_grad_ = at.second;
    length_ = is_first ? std::min(1.0, 1 / sum(abs(at.second)).item()) * lr_ : lr_;
    if (dot(at.second, direction_) > -options_.tolerance_change) break;
    const double loss = at.first;
    const auto used = static_cast<int>(evaluations_ - before);
    at = advance(closure, at, k == options_.max_iter, options_.max_eval - used);
    if (evaluations_ - before >= options_.max_eval ||
        largest(at.second) <= options_.tolerance_grad ||
        largest(direction_) * std::abs(length_) <= options_.tolerance_change ||
        std::abs(at.first - loss) < options_.tolerance_change)
      break;
  }
  return first;
}

StateDict Lbfgs::state_dict() const {
  const auto count = [](double value) { return scalar(value, DType::Float64); };
  StateDict out{{"n_iter", count(static_cast<double>(iterations_))},
                {"func_evals", count(static_cast<double>(evaluations_))},
                {"lr", count(lr_)},
                {"t", count(length_)},
                {"H_diag", count(scale_)}};
  if (direction_.defined()) {
    out.emplace("d", direction_);
    out.emplace("prev_flat_grad", last_grad_);
  }
  if (history_.empty()) return out;
  std::vector<Tensor> y, s;
  std::vector<double> ro;
  for (const Pair& pair : history_) {
    y.push_back(pair.y);
    s.push_back(pair.s);
    ro.push_back(pair.ro);
  }
  out.emplace("old_dirs", stack(y));
  out.emplace("old_stps", stack(s));
  out.emplace("ro", Tensor::from(ro, {std::ssize(ro)}));
  return out;
}

void Lbfgs::load_state_dict(const StateDict& state) {
  const bool has_history = state.contains("ro"), has_direction = has_history || state.contains("d");
  const std::int64_t count = has_history && state.at("ro").defined() ? state.at("ro").numel() : 0;
  StateDict wanted;
  for (const char* key : {"n_iter", "func_evals", "lr", "t", "H_diag"})
    wanted.emplace(key, zeros({}, DType::Float64));
  if (has_direction)
    for (const char* key : {"d", "prev_flat_grad"}) wanted.emplace(key, zeros({size_}, dtype_));
  if (has_history) {
    for (const char* key : {"old_dirs", "old_stps"})
      wanted.emplace(key, zeros({count, size_}, dtype_));
    wanted.emplace("ro", zeros({count}, DType::Float64));
  }
  for (const auto& [key, like] : wanted) {
    const auto it = state.find(key);
    if (it == state.end() || !it->second.defined())
      throw make_error<ValueError>("lbfgs: the saved state lacks '", key, "'");
    if (it->second.shape() != like.shape() || it->second.dtype() != like.dtype())
      throw make_error<ShapeError>("lbfgs: '", key, "' is saved as ", it->second.dtype(),
                                   it->second.shape(), ", expected ", like.dtype(), like.shape(),
                                   ": the state belongs to another network");
  }
  for (const auto& [key, tensor] : state)
    if (!wanted.contains(key))
      throw make_error<ValueError>("lbfgs: the saved state has '", key,
                                   "', which lbfgs does not have");
  set_lr(state.at("lr").item());
  const auto copy = [](const Tensor& t) {
    return Tensor::from_data(t.data(), t.shape(), t.dtype());
  };
  iterations_ = static_cast<std::int64_t>(state.at("n_iter").item());
  evaluations_ = static_cast<std::int64_t>(state.at("func_evals").item());
  length_ = state.at("t").item();
  scale_ = state.at("H_diag").item();
  direction_ = has_direction ? copy(state.at("d")) : Tensor();
  last_grad_ = has_direction ? copy(state.at("prev_flat_grad")) : Tensor();
  history_.clear();
  if (!has_history) return;
  const std::vector<double> ro = state.at("ro").to_vector<double>();
  for (std::int64_t k = 0; k < count; ++k)
    history_.push_back({copy(select(state.at("old_dirs"), 0, k).compute()),
                        copy(select(state.at("old_stps"), 0, k).compute()),
                        ro[static_cast<std::size_t>(k)]});
}

std::string Lbfgs::describe() const {
  const LbfgsOptions d;
  return described(
      "lbfgs", lr_,
      {{"max_iter", static_cast<double>(options_.max_iter), static_cast<double>(d.max_iter)},
       {"history_size", static_cast<double>(options_.history_size),
        static_cast<double>(d.history_size)},
       {"strong_wolfe", options_.strong_wolfe},
       {"maximize", options_.maximize}});
}

}  // namespace tenon::optim
