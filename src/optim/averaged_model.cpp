// Averages of weights.
#include <tenon/averaging.h>
#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/make_error.h"
#include "base/system/option_ranges.h"
#include "graph/node.h"

namespace tenon::optim {
namespace {

constexpr char kPrefix[] = "module.", kCount[] = "n_averaged";

constexpr OptionRange<Averaging> kAveragingRanges[] = {
    {"averaging.decay", &Averaging::decay, from_below(0, 1)},
    {"averaging.start_epochs", &Averaging::start_epochs, at_least(0)},
};

const Averaging& checked(const Averaging& averaging) {
  check_options("AveragedModel", averaging, kAveragingRanges);
  return averaging;
}

// The value of the variable after the assignments of `step`.
Tensor value_after(const Tensor& variable, TensorList step) {
  for (const Tensor& assignment : step)
    if (assignment.node()->op == Op::Assign && assignment.node()->input(0) == variable.node())
      return assignment;
  return variable;
}

}  // namespace

Averaging ema(double decay, int start_epochs) {
  return checked({Averaging::Kind::Ema, decay, start_epochs});
}

Averaging swa(int start_epochs) {
  return checked({.kind = Averaging::Kind::Swa, .start_epochs = start_epochs});
}

AveragedModel::AveragedModel(const nn::AnyModule& net, const Averaging& averaging)
    : averaging_(checked(averaging)),
      net_(net),
      average_(nn::clone(net)),
      count_(variable(scalar(0, DType::Int64), kCount)) {
  if (!averaging.any())
    throw ValueError(
        "AveragedModel: no kind of average is given: use optim::ema() or optim::swa()");
  average_.eval();
  const auto add = [this](const std::vector<nn::NamedTensor>& from,
                          const std::vector<nn::NamedTensor>& to, bool are_buffers) {
    for (std::size_t k = 0; k < from.size(); ++k)
      pairs_.push_back({from[k].tensor, to[k].tensor, are_buffers});
  };
  add(net_.named_parameters(), average_.named_parameters(), false);
  add(net_.named_buffers(), average_.named_buffers(), true);
}

std::int64_t AveragedModel::count() const { return count_.item<std::int64_t>(); }

void AveragedModel::update() { tenon::compute(updates()); }

// Computed in float32 at least: a 16-bit average would not notice a share of 0.001.
std::vector<Tensor> AveragedModel::updates(TensorList step, const Tensor& guard) const {
  const Scope scope("average");
  const Tensor is_first = eq(count_, 0);
  const Tensor share = averaging_.kind == Averaging::Kind::Ema
                           ? scalar(1 - averaging_.decay, DType::Float64)
                           : reciprocal(cast(count_ + 1, DType::Float64));
  std::vector<Tensor> out;
  const auto set = [&](const Tensor& target, const Tensor& value) {
    out.push_back(assign(target, guard.defined() ? where(guard, value, target) : value));
  };
  for (const Pair& pair : pairs_) {
    const Tensor now = value_after(pair.source, step);
    if (pair.is_buffer || !is_floating(now.dtype())) {
      set(pair.average, now);
      continue;
    }
    const DType dtype = promote(now.dtype(), DType::Float32);
    const Tensor before = cast(pair.average, dtype);
    const Tensor mean = before + (cast(now, dtype) - before) * cast(share, dtype);
    set(pair.average, where(is_first, now, cast(mean, now.dtype())));
  }
  set(count_, count_ + 1);
  return out;
}

void AveragedModel::restart() {
  for (const Pair& pair : pairs_) set_value(pair.average, pair.source);
  set_value(count_, zeros({}, DType::Int64));
}

StateDict AveragedModel::state_dict() const {
  StateDict out{{kCount, count_}};
  for (const auto& [name, tensor] : average_.state_dict()) out.emplace(kPrefix + name, tensor);
  return out;
}

void AveragedModel::load_state_dict(const StateDict& state) {
  const auto count = state.find(kCount);
  if (count == state.end() || !count->second.defined() || count->second.numel() != 1)
    throw make_error<ValueError>("AveragedModel: the saved state has no number '", kCount,
                                 "': the state is not that of an AveragedModel");
  StateDict own;
  for (const auto& [name, tensor] : state)
    if (name != kCount)
      own.emplace(name.starts_with(kPrefix) ? name.substr(sizeof kPrefix - 1) : name, tensor);
  average_.load_state_dict(own);
  set_value(count_, reshape(cast(count->second, DType::Int64), {}));
}

}  // namespace tenon::optim
