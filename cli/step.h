// One training step or one inference of a model on random input, for summary, inspect and bench.
#pragma once

#include <tenon/compute.h>
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
  std::shared_ptr<optim::Optimizer> optimizer;  ///< null for an inference
  CompiledFunction function;
  std::vector<Tensor> inputs;  ///< [input] or [input, target]
};

/// Random input, random targets and the loss of the network's task, and the optimizer update.
/// Throws ValueError for an unknown model or a batch size below 1, UsageError for a negative norm.
/// Under ShapesOnly nothing is generated: the step can be planned at once, whatever the size of the
/// network.
Step training_step(const Network& network, std::int64_t batch, const UpdateOptions& update);
/// `result`: data type of the output.
Step inference_step(const Network& network, std::int64_t batch, DType result = DType::Float32);
/// Inputs shared by all steps of a launch (CompiledFunction::run_many).
std::vector<Tensor> shared_inputs(const Step& step);
/// `phase` is "train" or "infer". A 16-bit inference on a GPU returns its output in 16 bits, like
/// PyTorch's autocast.
Step make_step(const std::string& phase, const Network& network, std::int64_t batch,
               const UpdateOptions& update);

}  // namespace tenon::cli
