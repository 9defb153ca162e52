// Checks and scales a batch, and runs the compiled network on it.
#include "train/evaluating/predictor.h"

#include <memory>
#include <utility>

#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/task.h>
#include <tenon/train.h>

#include "base/str.h"
#include "data/pixels/scale.h"
#include "device/buffer.h"
#include "graph/node.h"
#include "train/batches/batches.h"

namespace tenon::train {
namespace {

CompiledFunction compiled(const nn::AnyModule& net, const std::shared_ptr<const Task>& task,
                          int views_rank) {
  return compile([net, task, views_rank](const std::vector<Tensor>& in) {
    const bool has_views = in[0].rank() == views_rank && in[0].size(1) > 1;
    Tensor scores = net(has_views ? views_as_examples(in[0]) : in[0]);
    if (has_views) scores = task->mean_over_views(scores, in[0].size(1), DType::Int64);
    return std::vector<Tensor>{task->predictions(scores)};
  });
}

constexpr int kViewsRank = 5;  // [N, views, channels, height, width]
constexpr int kNoViews = -1;

}  // namespace

Predictor::Predictor(const nn::AnyModule& net, const ResolvedModel& model)
    : context_(current_context()),
      model_(model.settings.model),
      sample_(model.info().input),
      takes_tokens_(model.info().takes_tokens()),
      classes_(model.settings.classes),
      mean_(model.images.scale.mean),
      deviation_(model.images.scale.std),
      function_(compiled(net, model.task, model.info().input.rank() <= 3 ? kViewsRank : kNoViews)) {
  if (!mean_.empty()) return;
  mean_ = {model.settings.input_mean};
  deviation_ = {model.settings.input_std};
}

std::int64_t Predictor::views_of(const Tensor& inputs) const {
  return inputs.rank() == kViewsRank && sample_.rank() <= 3 ? inputs.size(1) : 1;
}

// Texts may be shorter than the context. Images may have another size if the layers accept it; a
// perceptron flattens any input.
bool Predictor::takes(const Tensor& inputs) const {
  const Shape& shape = inputs.shape();
  const int rank = shape.rank();
  if (takes_tokens_)
    return inputs.dtype() == DType::Int64 && rank <= 3 && shape[rank - 1] <= sample_[0];
  if (sample_.rank() == 3 && rank == 4 && shape[1] == sample_[0]) return true;
  return inputs.numel() == shape[0] * views_of(inputs) * sample_.numel();
}

Tensor Predictor::scaled(const Tensor& bytes) const {
  const Shape& shape = bytes.shape();
  const int channel_axis = shape.rank() - 3;
  if (mean_.size() > 1 && (channel_axis < 1 || shape[channel_axis] != std::ssize(mean_)))
    throw ShapeError(cat("predict: the images are ", shape, ", and model '", model_, "' scales ",
                         mean_.size(), " channels: give images of bytes as [N, ", mean_.size(),
                         ", height, width]"));
  const auto numbers = Buffer::allocate(static_cast<std::size_t>(shape.numel()) * sizeof(float));
  const Shape sample(shape.begin() + 1, shape.rank() - 1);
  data::scale_samples(bytes.data_as<std::uint8_t>(), shape[0], sample, mean_, deviation_,
                      static_cast<float*>(numbers->data()));
  return make_data(numbers, shape, DType::Float32);
}

Tensor Predictor::operator()(const Tensor& inputs) const {
  if (inputs.rank() < 2)
    throw ShapeError(
        cat("predict: the images are ", inputs.shape(), ", must be [N, channels, height, width]"));
  const ContextScope scope(context_);
  if (inputs.size(0) == 0) return zeros({0, classes_}).compute();
  if (!takes(inputs))
    throw ShapeError(cat("predict: the input is ", inputs.shape(), ", and model '", model_,
                         "' takes samples of ", sample_, ": resize or reshape the input"));
  Tensor given = inputs.dtype() == DType::UInt8 ? scaled(inputs) : inputs;
  if (const Device here = current_device(); given.device() != here) given = given.to(here);
  return function_({given})[0];
}

}  // namespace tenon::train
