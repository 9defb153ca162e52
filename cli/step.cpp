// The step has the same content as a step of the Trainer: forward pass, loss, gradients and update
// in one program.
#include "step.h"

#include <tenon/grad.h>
#include <tenon/ops.h>
#include <tenon/shapes_only.h>
#include <tenon/task.h>
#include <tenon/train.h>

#include "errors.h"

namespace tenon::cli {
namespace {

// Output type of the last layer on a GPU under PyTorch's autocast: the input type of products in
// the current precision. On the CPU the output keeps its type, as in OpenVINO.
DType result_type() {
  if (current_device().kind != Device::Kind::Cuda) return DType::Float32;
  switch (precision()) {
    case Precision::Bf16:
      return DType::BFloat16;
    case Precision::Fp16:
      return DType::Float16;
    default:
      return DType::Float32;
  }
}

Shape with_batch(const Shape& sample, std::int64_t batch) {
  Shape shape({batch});
  for (const std::int64_t size : sample) shape.push_back(size);
  return shape;
}

// The random values, or a tensor without memory if nothing will be computed.
Tensor drawn(const Tensor& values) {
  return ShapesOnly::is_on() ? without_memory(values.shape(), values.dtype(), current_device())
                             : values.compute();
}

// The task and the loss that a run of the network would have.
struct Aim {
  std::shared_ptr<const train::Task> task;
  nn::Loss loss;
};

Aim aim_of(const Network& network, const nn::AnyModule& net) {
  train::Settings settings;
  settings.model = network.name;
  settings.network = network.text;
  if (!network.task.empty()) settings.task = network.task;
  const std::shared_ptr<const train::Task> task = train::task_of(settings);
  const models::Info info = network.info();
  return {task, task->loss({settings, info, net})};
}

std::shared_ptr<optim::Optimizer> make_optimizer(const nn::AnyModule& net,
                                                 const UpdateOptions& update) {
  const optim::OptimizerOptions has = optim::defaults(update.optimizer);
  optim::OptimizerOptions options{.lr = update.lr};
  if (has.weight_decay) options.weight_decay = update.weight_decay;
  if (has.momentum) options.momentum = update.momentum;
  if (has.beta2) options.beta2 = update.beta2;
  if (has.eps) options.eps = update.eps;
  return optim::create(update.optimizer, net, options);
}

constexpr std::int64_t kLargestBatch = 16'777'216;  // limit of the setting 'batch'

Step begin(const Network& network, std::int64_t batch) {
  if (batch < 1)
    throw UsageError("--batch: " + std::to_string(batch) + " is too small", "give 1 or more");
  if (batch > kLargestBatch)
    throw UsageError("--batch: " + std::to_string(batch) + " is too large",
                     "give " + std::to_string(kLargestBatch) + " at most, as in training");
  const models::Info info = network.info();
  manual_seed(0);
  const Shape input = with_batch(info.input, batch);
  const std::int64_t outputs = network.options.classes > 0 ? network.options.classes : info.classes;
  return {
      network.create(),
      nullptr,
      {},
      {drawn(info.takes_tokens() ? randint(0, info.input_tokens(outputs), input) : randn(input))}};
}

}  // namespace

Step training_step(const Network& network, std::int64_t batch, const UpdateOptions& update) {
  const double clip_norm = update.clip_norm;
  if (!(clip_norm >= 0))
    throw UsageError("--clip-norm is " + std::to_string(clip_norm) + ", must be at least 0",
                     "give a number above 0, or 0 for no clipping");
  Step step = begin(network, batch);
  const Aim aim = aim_of(network, step.net);
  const Shape scores = aim.task->scores(step.net(step.inputs[0])).shape();
  step.inputs.push_back(drawn(aim.task->random_targets(scores)));
  step.optimizer = make_optimizer(step.net, update);
  step.function = compile([net = step.net, optimizer = step.optimizer, clip_norm,
                           aim](const std::vector<Tensor>& inputs) {
    const Tensor loss = aim.loss(aim.task->scores(net(inputs[0])), inputs[1]);
    std::vector<Tensor> grads = grad(loss, optimizer->parameters());
    if (clip_norm > 0) grads = optim::clip_grad_norm(grads, clip_norm).grads;
    std::vector<Tensor> outputs = optimizer->updates(grads);
    outputs.insert(outputs.begin(), loss);
    return outputs;
  });
  return step;
}

Step inference_step(const Network& network, std::int64_t batch, DType result) {
  Step step = begin(network, batch);
  step.net.eval();
  step.function = compile([net = step.net, result](const std::vector<Tensor>& inputs) {
    return std::vector<Tensor>{cast(net(inputs[0]), result)};
  });
  return step;
}

std::vector<Tensor> shared_inputs(const Step& step) {
  std::vector<Tensor> out;
  for (const Tensor& input : step.inputs) {
    Ints shape{1};
    shape.insert(shape.end(), input.shape().begin(), input.shape().end());
    out.push_back(reshape(input, shape).compute());
  }
  return out;
}

Step make_step(const std::string& phase, const Network& network, std::int64_t batch,
               const UpdateOptions& update) {
  return phase == "train" ? training_step(network, batch, update)
                          : inference_step(network, batch, result_type());
}

}  // namespace tenon::cli
