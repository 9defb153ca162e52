// The step has the same content as a step of the Trainer: forward pass, loss, gradients and update
// in one program.
#include "step.h"

#include <tenon/grad.h>
#include <tenon/ops.h>
#include <tenon/shapes_only.h>

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

// Random integers below `limit`, or a tensor without memory if nothing will be computed.
Tensor drawn(const Shape& shape, std::int64_t limit) {
  return ShapesOnly::is_on() ? without_memory(shape, DType::Int64, current_device())
                             : randint(0, limit, shape).compute();
}

Tensor drawn_numbers(const Shape& shape) {
  return ShapesOnly::is_on() ? without_memory(shape, DType::Float32, current_device())
                             : randn(shape).compute();
}

std::shared_ptr<optim::Optimizer> make_optimizer(const nn::AnyModule& net,
                                                 const UpdateOptions& update) {
  const bool adam = update.optimizer.starts_with("adam");
  optim::OptimizerOptions options{.lr = update.lr, .weight_decay = update.weight_decay};
  if (update.optimizer == "sgd" || update.optimizer == "rmsprop")
    options.momentum = update.momentum;
  if (adam) options.beta2 = update.beta2;
  if (adam || update.optimizer == "levenberg") options.eps = update.eps;
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
  const std::int64_t outputs = network.options.classes > 0 ? network.options.classes : info.classes,
                     words = info.vocabulary > 0 && !info.masked ? info.vocabulary : outputs;
  return {network.create(),
          nullptr,
          {},
          {info.takes_tokens() ? drawn(input, words) : drawn_numbers(input)}};
}

}  // namespace

Step training_step(const Network& network, std::int64_t batch, const UpdateOptions& update) {
  const double clip_norm = update.clip_norm;
  if (!(clip_norm >= 0))
    throw UsageError("--clip-norm is " + std::to_string(clip_norm) + ", must be at least 0",
                     "give a number above 0, or 0 for no clipping");
  Step step = begin(network, batch);
  const Shape out = step.net(step.inputs[0]).shape();
  const std::int64_t classes = out[out.rank() - 1];
  const bool tokens = network.info().tokens;
  if (network.quantities)
    step.inputs.push_back(drawn_numbers({batch, classes}));
  else
    step.inputs.push_back(drawn(tokens ? Shape({batch * out[1]}) : Shape({batch}), classes));
  step.optimizer = make_optimizer(step.net, update);
  step.function = compile([net = step.net, optimizer = step.optimizer, clip_norm, tokens,
                           quantities = network.quantities](const std::vector<Tensor>& inputs) {
    const Tensor scores = net(inputs[0]);
    const Tensor loss = quantities
                            ? mse_loss(scores, inputs[1])
                            : cross_entropy(tokens ? flatten(scores, 0, 1) : scores, inputs[1]);
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
