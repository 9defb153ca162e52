// Gradients accumulated over several batches. One graph serves all batches: whether a batch
// completes a step is a value, not a property of the graph, so that steps can be queued on a GPU.
#include <tenon/averaging.h>
#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/option_ranges.h"
#include "optim/row_gradient.h"

namespace tenon::optim {
namespace {

constexpr char kBatches[] = "batches";

std::string sum_of(const std::string& parameter) { return parameter + ".gradient_sum"; }

}  // namespace

GradientAccumulator::GradientAccumulator(Optimizer& optimizer, int batches)
    : optimizer_(optimizer),
      batches_(batches),
      filled_(variable(scalar(0, DType::Int64), kBatches)) {
  require_range("GradientAccumulator", kBatches, std::int64_t{batches}, at_least(1));
  for (std::size_t k = 0; k < optimizer.parameters().size(); ++k) {
    const Tensor& p = optimizer.parameters()[k];
    sums_.push_back(variable(zeros(p.shape(), promote(p.dtype(), DType::Float32)),
                             sum_of(optimizer.parameter_names()[k])));
  }
}

Tensor GradientAccumulator::step(const Tensor& loss, const Clip& clip, TensorList with) {
  const Sums sums = add(optimizer_.gradients_for_step(loss, {}));
  std::vector<Tensor> learning;
  for (const Tensor& mean : sums.means)
    if (mean.defined()) learning.push_back(mean);
  const std::vector<Tensor> limited = clipped(learning, clip);
  std::vector<Tensor> gradients = sums.means;
  auto next = limited.begin();
  for (Tensor& gradient : gradients)
    if (gradient.defined()) gradient = *next++;
  std::vector<Tensor> work = optimizer_.updates(gradients, sums.complete);
  for (Tensor& update : updates(sums)) work.push_back(std::move(update));
  return Optimizer::evaluate_step(loss, std::move(work), with);
}

std::int64_t GradientAccumulator::pending() const { return filled_.item<std::int64_t>(); }

// The sums are float32 at least, also for 16-bit parameters.
GradientAccumulator::Sums GradientAccumulator::add(TensorList grads) const {
  if (grads.size() != sums_.size())
    throw make_error<ValueError>("GradientAccumulator: ", grads.size(), " gradients for ",
                                 sums_.size(), " parameters");
  const Scope scope("accumulation");
  Sums out{{}, ge(filled_ + 1, batches_), {}};
  for (std::size_t k = 0; k < sums_.size(); ++k) {
    const Tensor& sum = sums_[k];
    if (grads[k].defined() && row_gradient(grads[k]))
      throw make_error<ValueError>("GradientAccumulator: the gradient of '",
                                   optimizer_.parameter_names()[k],
                                   "' has only the rows that were read, and the sum of several "
                                   "batches has all rows: create the embedding without `sparse`");
    out.sums.push_back(grads[k].defined() ? sum + cast(grads[k], sum.dtype()) : Tensor());
    out.means.push_back(grads[k].defined()
                            ? cast(out.sums[k] / batches_, optimizer_.parameters()[k].dtype())
                            : Tensor());
  }
  return out;
}

std::vector<Tensor> GradientAccumulator::updates(const Sums& sums, const Tensor& guard) const {
  const Scope scope("accumulation");
  std::vector<Tensor> out;
  const auto set = [&](const Tensor& target, const Tensor& so_far) {
    const Tensor value = where(sums.complete, zeros_like(so_far), so_far);
    out.push_back(assign(target, guard.defined() ? where(guard, value, target) : value));
  };
  for (std::size_t k = 0; k < sums_.size(); ++k)
    if (sums.sums[k].defined()) set(sums_[k], sums.sums[k]);
  set(filled_, filled_ + 1);
  return out;
}

StateDict GradientAccumulator::state_dict() const {
  StateDict out{{kBatches, filled_}};
  for (std::size_t k = 0; k < sums_.size(); ++k)
    out.emplace(sum_of(optimizer_.parameter_names()[k]), sums_[k]);
  return out;
}

void GradientAccumulator::load_state_dict(const StateDict& state) {
  const StateDict own = state_dict();
  for (const auto& [name, tensor] : own) {
    const auto saved = state.find(name);
    if (saved == state.end() || !saved->second.defined())
      throw make_error<ValueError>("GradientAccumulator: the saved state lacks '", name, "'");
    if (saved->second.shape() != tensor.shape())
      throw make_error<ShapeError>("GradientAccumulator: '", name, "' is saved as ",
                                   saved->second.shape(), ", expected ", tensor.shape());
  }
  for (const auto& [name, tensor] : state)
    if (!own.contains(name))
      throw make_error<ValueError>("GradientAccumulator: the saved state has '", name,
                                   "', which belongs to another optimizer");
  for (const auto& [name, tensor] : own) set_value(tensor, cast(state.at(name), tensor.dtype()));
}

}  // namespace tenon::optim
