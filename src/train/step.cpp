// Tracing of the training step and of the evaluation step.
#include "train/step.h"

#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "base/str.h"

namespace tenon::train {
namespace {

// Answers that are right, int64; 0 where targets are no class numbers.
Tensor count_correct(const Tensor& scores, const Tensor& target, bool classes) {
  if (!classes || is_floating(target.dtype()) || scores.rank() != target.rank() + 1)
    return scalar(0, DType::Int64);
  const Tensor predicted = argmax(scores, scores.rank() == 2 ? -1 : 1);
  return sum(eq(predicted, cast(target, DType::Int64)));
}

void check_loss(const Tensor& loss) {
  if (loss.rank() != 0)
    throw ShapeError(cat("Trainer: the loss is ", loss.shape(),
                         ", must be a scalar: reduce it with mean() or sum()"));
}

}  // namespace

TrainStep::TrainStep(const nn::AnyModule& net, const nn::Loss& loss, optim::Optimizer& optimizer,
                     const TrainOptions& options)
    : function_(compile([net, loss, &optimizer, clip_norm = options.clip_norm,
                         clip_value = options.clip_value, guarded = options.guard,
                         classes = options.classes](const std::vector<Tensor>& in) {
        net.train();
        const Tensor scores = net(in[0]);
        const Tensor value = loss(scores, in[1]);
        check_loss(value);
        std::vector<Tensor> grads = grad(value, optimizer.parameters());
        Tensor guard = guarded ? isfinite(value) : Tensor();
        if (clip_value > 0) grads = optim::clip_grad_value(grads, clip_value);
        if (clip_norm > 0) {
          optim::ClippedGrads clipped = optim::clip_grad_norm(grads, clip_norm);
          grads = std::move(clipped.grads);
          if (guarded) guard = logical_and(guard, isfinite(clipped.norm));
        }
        std::vector<Tensor> out{value, count_correct(scores, in[1], classes)};
        for (Tensor& update : optimizer.updates(grads, guard)) out.push_back(std::move(update));
        return out;
      })) {}

StepOutcome TrainStep::operator()(const data::Batch& batch) {
  const std::vector<Tensor>& out = function_({batch.input, batch.target});
  return {out[0].item(), static_cast<std::int64_t>(out[1].item())};
}

EvalStep::EvalStep(const nn::AnyModule& net, const nn::Loss& loss)
    : function_(compile([net, loss](const std::vector<Tensor>& in) {
        net.eval();
        const Tensor scores = net(in[0]);
        const Tensor value = loss(scores, in[1]);
        check_loss(value);
        return std::vector<Tensor>{value, scores};
      })) {}

EvalOutcome EvalStep::operator()(const data::Batch& batch) {
  const std::vector<Tensor>& out = function_({batch.input, batch.target});
  return {out[0].item(), out[1]};
}

}  // namespace tenon::train
