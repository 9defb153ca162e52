// The two programs of training: one step (forward, loss, correct answers, gradients, guarded
// update) and one evaluation batch.
#pragma once

#include <cstdint>

#include <tenon/data.h>
#include <tenon/eval.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/train.h>

namespace tenon::train {

struct StepOutcome {
  double loss = 0;
  std::int64_t correct = 0;
};

class TrainStep {
 public:
  TrainStep(const nn::AnyModule& net, const nn::Loss& loss, optim::Optimizer& optimizer,
            const TrainOptions& options);
  StepOutcome operator()(const data::Batch& batch);

 private:
  CompiledFunction function_;
};

struct EvalOutcome {
  double loss = 0;
  Tensor scores;
};

class EvalStep {
 public:
  EvalStep(const nn::AnyModule& net, const nn::Loss& loss);
  EvalOutcome operator()(const data::Batch& batch);

 private:
  CompiledFunction function_;
};

}  // namespace tenon::train
