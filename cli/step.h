// One training step or one inference of a model on random input, for summary, inspect and bench.
#pragma once

#include <tenon/eval.h>
#include <tenon/models.h>
#include <tenon/nn.h>
#include <tenon/optim.h>

#include <memory>
#include <string>
#include <vector>

#include "data_paths.h"

namespace tenon::cli {

struct Step {
  nn::AnyModule net;
  std::shared_ptr<optim::Optimizer> optimizer;  ///< empty for an inference
  CompiledFunction function;
  std::vector<Tensor> inputs;  ///< [input] or [input, target]
};

/// Random normal input and random classes or tokens (of a regression, random normal targets), and
/// the update. Throws ValueError for an unknown model or a batch below 1, UsageError for a
/// norm below 0. Under ShapesOnly nothing is drawn: such a step can be planned and summed up at
/// once, however large the network.
Step training_step(const Network& network, std::int64_t batch, const UpdateOptions& update);
/// `result`: the type that what the network gives is rounded to.
Step inference_step(const Network& network, std::int64_t batch, DType result = DType::Float32);
/// Inputs that all steps of a launch share (CompiledFunction::run_many).
std::vector<Tensor> shared_inputs(const Step& step);
/// "train" or "infer"; of an inference in 16 bits on a GPU the result is stored so, as PyTorch's
/// autocast gives it.
Step make_step(const std::string& phase, const Network& network, std::int64_t batch,
               const UpdateOptions& update);

}  // namespace tenon::cli
