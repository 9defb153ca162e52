// Traces and runs the curvature measurement, one sample at a time.
#include "train/batches/curvature.h"

#include <algorithm>
#include <memory>

#include <tenon/context.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

namespace tenon::train {
namespace {

constexpr std::uint64_t kOrderOfExamples = 0x6375727661747572;  // another order than the training's

}  // namespace

Curvature::Curvature(const nn::AnyModule& net, const nn::Loss& loss,
                     const optim::Levenberg& optimizer, std::shared_ptr<const Task> task)
    : net_(net), loss_(loss), optimizer_(optimizer), task_(std::move(task)) {}

std::vector<Tensor> Curvature::trace(const Tensor& input, const Tensor& target, const Tensor& keep,
                                     std::int64_t examples) const {
  net_.eval();
  const Tensor scores = task_->scores(net_(input)),
               wanted = task_->drawn_targets(scores, task_->targets(target));
  return optimizer_.curvature_updates(grad(loss_(scores, wanted), optimizer_.parameters()), keep,
                                      1.0 / static_cast<double>(examples));
}

std::int64_t Curvature::steps_until_due(std::int64_t step, std::int64_t batch,
                                        std::int64_t steps_per_epoch) {
  if (step == 0 || step > steps_per_epoch)
    return (steps_per_epoch - step % steps_per_epoch) % steps_per_epoch;
  std::int64_t due = (kExamples / 10 + batch - 1) / batch;
  while (due < step) due += due / 4 + 1;
  return std::min(due, steps_per_epoch) - step;
}

void Curvature::measure(const data::Loader& train, std::int64_t step) {
  Context context = current_context();
  context.precision = Precision::Fp32;
  const ContextScope scope(context);
  data::LoaderOptions o = train.options();
  o.batch = 1;
  o.shuffle = true;
  o.workers = 0;
  o.augment = {};
  o.seed ^= kOrderOfExamples;
  // The set outlives this call.
  data::Loader examples({std::shared_ptr<void>(), &train.dataset()}, o);
  examples.set_epoch(step);
  const std::int64_t count = std::min(kExamples, train.dataset().size());
  if (count != examples_)
    function_ = compile(
        [this, count](const std::vector<Tensor>& in) { return trace(in[0], in[1], in[2], count); });
  examples_ = count;
  const Tensor none = scalar(0.0).eval(), all = scalar(1.0).eval();
  data::Batch one;
  for (std::int64_t k = 0; k < count; ++k) {
    examples.next(one);
    function_({one.input, one.target, k == 0 ? none : all});
  }
}

}  // namespace tenon::train
