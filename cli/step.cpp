// The measured step is what a trainer runs: forward, loss, gradients and update in one program.
#include "step.h"

#include <tenon/grad.h>
#include <tenon/ops.h>

#include "errors.h"

namespace tenon::cli {
namespace {

Shape with_batch(const Shape& sample, std::int64_t batch) {
  Shape shape({batch});
  for (const std::int64_t size : sample) shape.push_back(size);
  return shape;
}

Step begin(const std::string& model, std::int64_t batch) {
  if (batch < 1)
    throw UsageError("--batch: " + std::to_string(batch) + " is too small", "give 1 or more");
  const models::Info info = models::info(model);
  manual_seed(0);
  Step step{models::create(model), nullptr, {}, {}, with_batch(info.input, batch)};
  step.inputs.push_back(
      (info.tokens ? randint(0, info.classes, step.input) : randn(step.input)).eval());
  return step;
}

}  // namespace

Step training_step(const std::string& model, std::int64_t batch, double clip_norm) {
  if (!(clip_norm >= 0))
    throw UsageError("--clip-norm: " + std::to_string(clip_norm) + " is no norm",
                     "give a number above 0, or 0 for no clipping");
  Step step = begin(model, batch);
  const std::int64_t classes = step.net(step.inputs[0]).size(-1);
  const bool tokens = models::info(model).tokens;
  step.inputs.push_back(
      randint(0, classes, tokens ? Shape({batch * step.inputs[0].size(-1)}) : Shape({batch}))
          .eval());
  optim::SgdOptions options;
  options.lr = 1e-3, options.momentum = 0.9, options.weight_decay = 5e-4;
  step.optimizer = std::make_shared<optim::Sgd>(step.net, options);
  step.function = compile([net = step.net, optimizer = step.optimizer, clip_norm,
                           tokens](const std::vector<Tensor>& inputs) {
    const Tensor scores = net(inputs[0]);
    const Tensor loss = cross_entropy(tokens ? flatten(scores, 0, 1) : scores, inputs[1]);
    std::vector<Tensor> grads = grad(loss, optimizer->parameters());
    if (clip_norm > 0) grads = optim::clip_grad_norm(grads, clip_norm).grads;
    std::vector<Tensor> outputs = optimizer->updates(grads);
    outputs.insert(outputs.begin(), loss);
    return outputs;
  });
  return step;
}

Step inference_step(const std::string& model, std::int64_t batch) {
  Step step = begin(model, batch);
  step.net.eval();
  step.function = compile([net = step.net](const std::vector<Tensor>& inputs) {
    return std::vector<Tensor>{net(inputs[0])};
  });
  return step;
}

std::vector<Tensor> shared_inputs(const Step& step) {
  std::vector<Tensor> out;
  for (const Tensor& input : step.inputs) {
    Ints shape{1};
    shape.insert(shape.end(), input.shape().begin(), input.shape().end());
    out.push_back(reshape(input, shape).eval());
  }
  return out;
}

Step make_step(const std::string& phase, const std::string& model, std::int64_t batch,
               double clip_norm) {
  return phase == "train" ? training_step(model, batch, clip_norm) : inference_step(model, batch);
}

}  // namespace tenon::cli
