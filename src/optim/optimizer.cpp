// Common part of all optimizers: parameter groups, learning rate, step count, guarded assignments,
// state by name.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <unordered_map>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/option_ranges.h"
#include "grad/gradients.h"
#include "graph/node.h"
#include "graph/on_host.h"
#include "graph/tracing/traced_state.h"
#include "optim/row_gradient.h"

namespace tenon::optim {
namespace {

constexpr Range kRates = from_to(0, 1e30);

constexpr char kStep[] = "step";

DType dtype_of_rate(const std::vector<nn::NamedTensor>& parameters) {
  for (const nn::NamedTensor& p : parameters)
    if (p.tensor.defined() && p.tensor.dtype() == DType::Float64) return DType::Float64;
  return DType::Float32;
}

// The value, or what the target holds where the guard is false.
Tensor where_allowed(const Tensor& guard, const Tensor& value, const Tensor& target) {
  return guard.defined() ? where(guard, value, target) : value;
}

void write_scalar(const Tensor& target, double value) {
  if (target.dtype() == DType::Float64) return set_value(target, &value, sizeof value);
  const auto half = static_cast<float>(value);
  set_value(target, &half, sizeof half);
}

}  // namespace

Parameters::Parameters(const nn::ModuleBase& module)
    : groups{{module.named_trainable_parameters(), {}, {}}} {}

Parameters::Parameters(const std::vector<Tensor>& list) {
  ParameterGroup group;
  for (std::size_t k = 0; k < list.size(); ++k)
    group.parameters.push_back({cat("param.", k), list[k]});
  groups.push_back(std::move(group));
}

// What the update of a parameter needs.
struct Optimizer::Update {
  std::size_t k;
  const Tensor& grad;
  const Tensor& lr;
  double weight_decay;
};

Optimizer::Optimizer(std::vector<ParameterGroup> groups, double lr, double weight_decay)
    : step_(variable(scalar(0, DType::Float64), "step")), base_lr_(lr), lr_(lr) {
  require_range("optimizer", "lr", lr, kRates);
  require_range("optimizer", "weight_decay", weight_decay, kRates);
  std::unordered_map<const Node*, std::size_t> known;  // index of each parameter
  for (const ParameterGroup& given : groups) {
    Group group;
    const double rate = given.lr.value_or(lr);
    require_range("optimizer", "a group's lr", rate, kRates);
    group.lr_scale = lr > 0 ? rate / lr : 0;
    group.weight_decay = given.weight_decay.value_or(weight_decay);
    require_range("optimizer", "a group's weight_decay", group.weight_decay, kRates);
    group.lr = variable(scalar(rate, dtype_of_rate(given.parameters)), "lr");
    group.step = given.own_steps ? variable(scalar(0, DType::Float64), "step") : step_;
    for (const nn::NamedTensor& p : given.parameters) {
      if (!p.tensor.defined())
        throw make_error<ValueError>("optimizer: '", p.name,
                                     "' has no value: it was never assigned");
      if (!is_variable(p.tensor) || !is_floating(p.tensor.dtype()))
        throw make_error<ValueError>("optimizer: '", p.name,
                                     "' is not a floating variable and cannot be trained");
      const auto [at, is_new] = known.emplace(p.tensor.node(), parameters_.size());
      if (!is_new)
        throw make_error<ValueError>("optimizer: '", p.name, "' is given twice (also as '",
                                     names_[at->second], "')");
      parameters_.push_back(p.tensor);
      names_.push_back(p.name);
      group_of_.push_back(groups_.size());
    }
    groups_.push_back(std::move(group));
  }
  if (parameters_.empty())
    throw ValueError("optimizer: there are no parameters to train: unfreeze some, or pass others");
}

Optimizer::~Optimizer() = default;
void Optimizer::prepare(const Tensor&, const Tensor&) {}
const char* Optimizer::why_not_rows(double) const { return "its rule changes every row"; }

const std::vector<Tensor>* Optimizer::add_slot(const std::string& name,
                                               const SlotOptions& options) {
  auto slot = std::make_unique<Slot>();
  slot->name = name;
  slot->least = options.least;
  slot->start = options.start;
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    const Tensor& p = parameters_[k];
    const std::optional<Shape> shape = options.shape ? options.shape(k) : p.shape();
    slot->tensors.push_back(
        shape ? variable(full(*shape, options.start, options.dtype.value_or(p.dtype())),
                         cat(names_[k], ".", name))
              : Tensor());
  }
  slots_.push_back(std::move(slot));
  return &slots_.back()->tensors;
}

std::vector<Tensor> Optimizer::updates(TensorList grads, const Tensor& guard, const Tensor& rates) {
  if (rates.defined() && (rates.rank() != 1 || rates.size(0) != std::ssize(groups_)))
    throw make_error<ShapeError>("optimizer: the rates are ", rates.shape(), ", must be [",
                                 groups_.size(), "], one for each group");
  if (grads.size() != parameters_.size())
    throw make_error<ValueError>("optimizer: ", grads.size(), " gradients for ", parameters_.size(),
                                 " parameters");
  Scope scope("optimizer");
  std::vector<Tensor> out;
  std::vector<Assignment> counts;  // step counts of the groups
  const Node* prepared = nullptr;
  const auto count = [&](const Tensor& step) {
    if (step.node() == prepared) return;
    prepared = step.node();
    const auto same = [&](const Assignment& a) { return a.first.node() == prepared; };
    if (std::none_of(counts.begin(), counts.end(), same)) counts.emplace_back(step, step + 1);
    prepare(step, std::find_if(counts.begin(), counts.end(), same)->second);
  };
  count(step_);
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    const Tensor& p = parameters_[k];
    if (is_frozen(p)) continue;
    check_gradient(k, grads[k]);
    const Group& group = groups_[group_of_[k]];
    count(group.step);
    const Tensor rate =
        rates.defined() ? select(rates, 0, static_cast<std::int64_t>(group_of_[k])) : group.lr;
    const Tensor lr = rate.dtype() == p.dtype() ? rate : cast(rate, p.dtype());
    Scope name(names_[k]);
    for (Tensor& each : update({k, grads[k], lr, group.weight_decay}, guard))
      out.push_back(std::move(each));
  }
  for (const auto& [step, next] : counts)
    out.push_back(assign(step, where_allowed(guard, next, step)));
  return out;
}

void Optimizer::check_gradient(std::size_t k, const Tensor& grad) const {
  if (!grad.defined())
    throw make_error<ValueError>("optimizer: the gradient of '", names_[k],
                                 "' has no value: it was never assigned");
  if (!is_floating(grad.dtype()))
    throw make_error<DTypeError>("optimizer: the gradient of '", names_[k], "' is ", grad.dtype(),
                                 ", must be floating");
  if (grad.shape() != parameters_[k].shape())
    throw make_error<ShapeError>("optimizer: '", names_[k], "' is ", parameters_[k].shape(),
                                 ", its gradient ", grad.shape());
}

std::vector<Tensor> Optimizer::update(const Update& of, const Tensor& guard) {
  if (const std::optional<RowGradient> rows = row_gradient(of.grad))
    return row_updates(of, *rows, guard);
  std::vector<Tensor> out;
  for (const auto& [target, value] : rule(of.k, of.grad, of.lr, of.weight_decay))
    out.push_back(assign(target, where_allowed(guard, value, target)));
  return out;
}

// The rule computes new values of the rows that were read, which replace these rows in the
// parameter and in its state.
std::vector<Tensor> Optimizer::row_updates(const Update& of, const RowGradient& gradient,
                                           const Tensor& guard) {
  if (const char* reason = why_not_rows(of.weight_decay))
    throw make_error<ValueError>("optimizer: ", describe(), " cannot update single rows of '",
                                 names_[of.k], "', the weight of a sparse embedding: ", reason,
                                 ". Use sparse_adam, or adagrad or sgd without momentum and weight "
                                 "decay, or create the embedding without `sparse`");
  const RowGradient g = summed(gradient);
  if (g.index.size(0) == 0) return {};
  std::vector<Tensor*> tables{&parameters_[of.k]};
  for (const auto& slot : slots_) tables.push_back(&slot->tensors[of.k]);
  const RowsOnly rows(tables, g.index);
  std::vector<Tensor> out;
  for (const auto& [target, value] : rule(of.k, g.rows, of.lr, of.weight_decay))
    out.push_back(rows.assigned(target, where_allowed(guard, value, target)));
  return out;
}

// Clipped gradients of the loss; undefined for frozen parameters.
std::vector<Tensor> Optimizer::gradients_for_step(const Tensor& loss, const Clip& clip) const {
  if (!loss.defined())
    throw ValueError("step: the loss is a tensor without a value: it was never assigned");
  if (loss.numel() != 1)
    throw make_error<ShapeError>("step: the loss is ", loss.shape(),
                                 ", not a scalar: reduce it with sum or mean");
  std::vector<Tensor> learning;
  std::copy_if(parameters_.begin(), parameters_.end(), std::back_inserter(learning),
               [](const Tensor& p) { return !is_frozen(p); });
  if (learning.empty())
    throw make_error<ValueError>("step: all ", parameters_.size(),
                                 " parameters are frozen: unfreeze() those to train");
  const auto [gradients, reached] = gradients_of(loss, learning);
  if (!reached)
    throw make_error<ValueError>(
        "step: the loss does not depend on any of the ", learning.size(),
        " trainable parameters, so there is nothing to update. It may come from "
        "another network, from a value after detach(), or from the result of a "
        "compiled function, which has no graph: in the last case compile the "
        "whole step (forward pass, grad() and updates())");
  const std::vector<Tensor> limited = clipped(gradients, clip);
  std::vector<Tensor> out;
  std::size_t next = 0;
  for (const Tensor& p : parameters_) out.push_back(is_frozen(p) ? Tensor() : limited[next++]);
  return out;
}

Tensor Optimizer::step(const Tensor& loss, const Clip& clip, TensorList with) {
  return evaluate_step(loss, updates(gradients_for_step(loss, clip)), with);
}

Tensor Optimizer::evaluate_step(const Tensor& loss, std::vector<Tensor> updates, TensorList with) {
  updates.insert(updates.end(), with.begin(), with.end());
  // The step assigns to a variable; its loss is the value from before.
  updates.push_back(is_variable(loss) ? detach(loss) : loss);
  tenon::compute(updates);
  // The result holds the value without the graph behind it.
  return make_data(updates.back().node()->value, loss.shape(), loss.dtype());
}

std::vector<double> Optimizer::rates(double lr) const {
  std::vector<double> out;
  for (const Group& group : groups_) out.push_back(lr * group.lr_scale);
  return out;
}

DType Optimizer::rate_dtype() const {
  for (const Group& group : groups_)
    if (group.lr.dtype() == DType::Float64) return DType::Float64;
  return DType::Float32;
}

void Optimizer::set_lr(double lr) {
  require_range("optimizer", "lr", lr, kRates);
  if (lr == lr_) return;
  lr_ = lr;
  for (const Group& group : groups_) write_scalar(group.lr, lr * group.lr_scale);
}

std::int64_t Optimizer::steps() const { return static_cast<std::int64_t>(step_.item()); }

StateDict Optimizer::state_dict() const {
  StateDict out;
  out.emplace(kStep, step_);
  out.emplace("lr", scalar(lr_, DType::Float64));
  for (const auto& slot : slots_)
    for (std::size_t k = 0; k < names_.size(); ++k)
      if (slot->tensors[k].defined())
        out.emplace(cat(names_[k], ".", slot->name), slot->tensors[k]);
  for (std::size_t k = 0; k < names_.size(); ++k)
    if (begins_own_steps(k)) out.emplace(cat(names_[k], ".", kStep), groups_[group_of_[k]].step);
  return out;
}

// Whether parameter k is the first of a group with its own step count. The count is saved under
// this parameter's name.
bool Optimizer::begins_own_steps(std::size_t k) const {
  return groups_[group_of_[k]].step.node() != step_.node() &&
         (k == 0 || group_of_[k] != group_of_[k - 1]);
}

// The start of groups with their own step count that the saved state does not have.
StateDict Optimizer::beginnings(const StateDict& state) const {
  StateDict out;
  for (std::size_t first = 0; first < names_.size(); ++first) {
    if (!begins_own_steps(first)) continue;
    StateDict group{{cat(names_[first], ".", kStep), scalar(0, DType::Float64)}};
    for (std::size_t k = first; k < names_.size() && group_of_[k] == group_of_[first]; ++k)
      for (const auto& slot : slots_)
        if (const Tensor& t = slot->tensors[k]; t.defined())
          group.emplace(cat(names_[k], ".", slot->name), full(t.shape(), slot->start, t.dtype()));
    if (std::none_of(group.begin(), group.end(),
                     [&](const auto& entry) { return state.contains(entry.first); }))
      out.insert(group.begin(), group.end());
  }
  return out;
}

// Checks that steps could have produced the values: counts are whole, moments are finite, and
// moments of squares, which may overflow to infinity, are not negative. One program checks all of
// them.
void Optimizer::check_values(const StateDict& state) const {
  std::vector<std::string> names;
  std::vector<double> least;
  std::vector<Tensor> fine;
  for (const auto& slot : slots_)
    for (std::size_t k = 0; k < names_.size(); ++k) {
      if (!slot->tensors[k].defined()) continue;
      names.push_back(cat(names_[k], ".", slot->name));
      least.push_back(slot->least);
      const Tensor value = on_host(state.at(names.back()));
      fine.push_back(all(slot->least == 0 ? ge(value, 0) : isfinite(value)));
    }
  tenon::compute(fine);
  for (std::size_t k = 0; k < fine.size(); ++k)
    if (fine[k].item() == 0)
      throw make_error<ValueError>("optimizer: '", names[k],
                                   "' of the saved state has values that are ",
                                   least[k] == 0 ? "negative or NaN" : "not finite");
  const auto check_count = [&](const std::string& name) {
    const double steps = state.at(name).item();
    if (!(steps >= 0 && steps <= 0x1p53 && steps == std::floor(steps)))
      throw make_error<ValueError>("optimizer: '", name, "' of the saved state is ", steps,
                                   ", must be a number of steps");
  };
  check_count(kStep);
  for (std::size_t k = 0; k < names_.size(); ++k)
    if (begins_own_steps(k)) check_count(cat(names_[k], ".", kStep));
  require_range("optimizer", "'lr' of the saved state", state.at("lr").item(), kRates);
}

void Optimizer::load_state_dict(const StateDict& given) {
  const StateDict own = state_dict();
  StateDict state = beginnings(given);
  state.insert(given.begin(), given.end());
  for (const auto& [name, tensor] : own) {
    const auto it = state.find(name);
    if (it == state.end())
      throw make_error<ValueError>("optimizer: the saved state lacks '", name,
                                   "': the state belongs to another optimizer");
    if (!it->second.defined())
      throw make_error<ValueError>("optimizer: '", name, "' of the saved state has no value");
    if (it->second.shape() != tensor.shape() || it->second.dtype() != tensor.dtype())
      throw make_error<ShapeError>("optimizer: '", name, "' is saved as ", it->second.dtype(),
                                   it->second.shape(), ", expected ", tensor.dtype(),
                                   tensor.shape(), ": the state belongs to another network");
  }
  for (const auto& [name, tensor] : state)
    if (own.count(name) == 0)
      throw make_error<ValueError>("optimizer: the saved state has '", name,
                                   "', which this optimizer does not have");
  check_values(state);
  for (const auto& [name, tensor] : own)
    if (name != "lr") set_value(tensor, state.at(name));
  set_lr(state.at("lr").item());
}

}  // namespace tenon::optim
