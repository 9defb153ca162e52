// Traces the training step and the evaluation step.
#include "train/fitting/step.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <unordered_set>

#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include <tenon/shapes_only.h>
#include "base/str.h"
#include "grad/gradients.h"
#include "graph/node.h"
#include "optim/row_gradient.h"
#include "train/batches/batches.h"
#include "train/batches/kept_modes.h"
#include "train/batches/mixing.h"
#include "train/tasks/tasks.h"

namespace tenon::train {
namespace {

// The number of targets that are not ignored, int64.
Tensor count_targets(const Tensor& target, const Tensor& kept) {
  return kept.defined() ? sum(cast(kept, DType::Int64)) : scalar(target.numel(), DType::Int64);
}

void check_loss_value(const Tensor& loss) {
  if (loss.rank() != 0)
    throw ShapeError(cat("Trainer: the loss is ", loss.shape(),
                         ", must be a scalar: reduce it with mean() or sum()"));
}

// All figures of a step in one tensor, so that the host reads once.
Tensor in_one(const std::vector<Tensor>& figures) {
  std::vector<Tensor> parts;
  parts.reserve(figures.size());
  for (const Tensor& f : figures) parts.push_back(reshape(cast(f, DType::Float64), {1}));
  return concat(parts, 0);
}

void append(std::vector<Tensor>& to, std::vector<Tensor> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Tensor figure(double value) { return variable(scalar(value)); }

Tensor leaf(const Shape& shape, DType dtype) {
  return without_memory(shape, dtype, current_device());
}

// Placeholders for a batch of the loader.
std::vector<Tensor> leaves_of(const data::Loader& loader, std::int64_t count) {
  const data::Dataset& data = loader.dataset();
  const bool scales = loader.options().scale && data.input_dtype() == DType::UInt8;
  return {leaf(with_count(count, data.input_shape()), scales ? DType::Float32 : data.input_dtype()),
          leaf(with_count(count, data.target_shape()), data.target_dtype())};
}

// Indices of the tensors that are not among the parameters.
std::vector<std::size_t> others_of(const std::vector<Tensor>& tensors,
                                   const std::vector<nn::NamedTensor>& parameters) {
  std::unordered_set<const Node*> own;
  for (const nn::NamedTensor& p : parameters) own.insert(p.tensor.node());
  std::vector<std::size_t> others;
  for (std::size_t k = 0; k < tensors.size(); ++k)
    if (!own.contains(tensors[k].node())) others.push_back(k);
  return others;
}

// Sums and counts of an evaluation in one piece, and the scores if the metrics need them.
std::vector<Tensor> evaluation_of(nn::AnyModule net, const nn::Loss& loss, const Task& task,
                                  std::int64_t views, const std::vector<Tensor>& in) {
  net.eval();
  Tensor scores = task.scores(net(views > 1 ? views_as_examples(in[0]) : in[0]));
  if (views > 1) scores = task.mean_over_views(scores, views, in[1].dtype());
  const Tensor target = task.targets(in[1]);
  check_loss_value(loss(scores, target));
  const nn::LossTerms terms = loss.terms(scores, target);
  const Tensor kept = loss.kept(target);
  const bool keeps_scores = task.needs_scores();
  const Tensor correct =
      keeps_scores ? scalar(0, DType::Int64) : task.correct(scores, target, kept);
  std::vector<Tensor> out{
      in_one({terms.total, terms.counted, correct, count_targets(target, kept)})};
  if (keeps_scores) out.push_back(scores);
  return out;
}

bool on_gpu() { return current_device().kind != Device::Kind::Cpu; }

}  // namespace

Tensor mean_of_views(const Tensor& scores, std::int64_t views, bool quantities) {
  if (scores.rank() < 1 || views < 1 || scores.size(0) % views != 0)
    throw ShapeError(cat("mean_of_views: scores ", scores.shape(), " are not of ", views,
                         " views for each sample"));
  const auto by_view = [&](const Tensor& x) {
    Ints sizes{scores.size(0) / views, views};
    for (int axis = 1; axis < x.rank(); ++axis) sizes.push_back(x.size(axis));
    return reshape(x, sizes);
  };
  if (quantities || scores.rank() != 2) return mean(by_view(scores), 1);
  // The logarithm of the mean of the softmax, and the scale that it takes from the scores.
  const Tensor logs = log_softmax(scores), of_views = by_view(logs);
  const Tensor most = amax(of_views, {1}, true);
  return log(mean(exp(of_views - most), 1)) + most.squeeze(1) +
         mean(by_view(mean(scores - logs, -1, true)), 1);
}

LossScale::LossScale() : scale(figure(kStart)), good_steps(figure(0)) {}

TrainStep::TrainStep(const nn::AnyModule& net, const nn::Loss& loss, optim::Optimizer& optimizer,
                     const TrainOptions& options)
    : net_(net),
      loss_(loss),
      teacher_(options.teacher),
      temperature_(options.temperature),
      distill_weight_(options.distill_weight),
      optimizer_(optimizer),
      clip_norm_(options.clip_norm),
      clip_value_(options.clip_value),
      task_(task_of(options, loss)),
      guarded_(options.guard),
      mixes_(options.mixing.any()),
      open_(variable(ones({}, DType::Bool), "guard")) {
  if (precision() == Precision::Fp16 || net.has_precision(Precision::Fp16)) scale_.emplace();
  if (mixes_ && !task_->takes_mixing())
    throw ValueError("Trainer: mixing is for images, not for sequences of tokens");
  if (options.accumulate > 1) accumulator_.emplace(optimizer, options.accumulate);
  require_own_parameters();
  compile_steps();
}

void TrainStep::compile_steps() {
  on_batch_ = compile([this](const std::vector<Tensor>& in) {
    return trace(in[0], in[1], mixes_ ? in[2] : Tensor(), {}, on_gpu());
  });
  on_numbers_ = compile([this](const std::vector<Tensor>& in) {
    return trace(set_->input(in[0]), set_->target(in[0]), mixes_ ? in[2] : Tensor(), in[1],
                 on_gpu());
  });
}

// Includes parameters that are frozen now, because they may be trained later.
void TrainStep::require_own_parameters() const {
  const std::vector<nn::NamedTensor> own = net_.named_parameters();
  const std::vector<Tensor>& learning = optimizer_.parameters();
  if (others_of(learning, own).size() == learning.size())
    throw ValueError(
        cat("Trainer: none of the network's ", own.size(),
            " parameters belongs to the optimizer, so nothing would be trained: the optimizer was "
            "made for another network, whose first parameter is '",
            optimizer_.parameter_names()[0], "' ", learning[0].shape()));
}

// Parameters outside the network may belong to the loss.
void TrainStep::require_reached(const Tensor& loss) const {
  const std::vector<Tensor>& learning = optimizer_.parameters();
  const std::vector<std::size_t> others = others_of(learning, net_.named_parameters());
  if (others.empty()) return;
  std::vector<Tensor> asked;
  asked.reserve(others.size());
  for (const std::size_t k : others) asked.push_back(learning[k]);
  const std::vector<char> reached = are_reached(loss, asked);
  const auto none = std::find(reached.begin(), reached.end(), 0);
  if (none == reached.end()) return;
  const std::size_t k = others[static_cast<std::size_t>(none - reached.begin())];
  throw ValueError(cat("Trainer: the optimizer's '", optimizer_.parameter_names()[k], "' ",
                       learning[k].shape(),
                       " is not a parameter of the network, and the loss does not depend on it, "
                       "so it would not be trained"));
}

void TrainStep::average(const optim::AveragedModel* average) {
  if (std::exchange(average_, average) != average) compile_steps();
}

void TrainStep::use(std::optional<ResidentSet> set) { set_ = std::move(set); }

// Unscales the gradients of the scaled loss. If one is not finite, the step is skipped and the
// scale is halved. A step without counted targets has no gradients that could overflow.
void TrainStep::scale_gradients(std::vector<Tensor>& grads, const Tensor& any, Tensor& guard,
                                std::vector<Tensor>& figures, std::vector<Tensor>& updates) {
  const Tensor back = reciprocal(scale_->scale);
  Tensor fine = scalar(true, DType::Bool);
  for (Tensor& g : grads) {
    const optim::GradientElements elements(g);
    Tensor finite = all(isfinite(elements.values()));
    if (any.defined()) finite = logical_or(finite, logical_not(any));
    figures.push_back(finite);
    fine = logical_and(fine, finite);
    g = elements.with(elements.values() * back);
  }
  const Tensor good = scale_->good_steps + 1, grow = ge(good, LossScale::kGrowth);
  const Tensor raised = minimum(scale_->scale * 2, scalar(LossScale::kMost));
  updates.push_back(assign(scale_->scale, where(fine, where(grow, raised, scale_->scale),
                                                maximum(scale_->scale * 0.5, scalar(1.0)))));
  updates.push_back(assign(scale_->good_steps,
                           where(logical_and(fine, logical_not(grow)), good, zeros_like(good))));
  guard = guard.defined() ? logical_and(guard, fine) : fine;
}

Tensor TrainStep::with_teacher(const Tensor& loss, const Tensor& scores, const Tensor& input,
                               const Tensor& target) {
  teacher_->eval();
  const Tensor given = task_->scores((*teacher_)(input));
  if (given.shape() != scores.shape())
    throw ShapeError(cat("Trainer: the teacher gives ", given.shape(), " where the network gives ",
                         scores.shape(), ": a teacher of the same classes is needed"));
  return loss * (1 - distill_weight_) +
         task_->distillation(scores, given, target, temperature_) * distill_weight_;
}

std::vector<Tensor> TrainStep::trace(const Tensor& given, const Tensor& target, const Tensor& mix,
                                     const Tensor& rates, bool queued) {
  net_.train();
  const Mixed mixed(mix);
  const Tensor input = mixes_ ? mixed.input(given) : given;
  std::vector<Tensor> values{task_->scores(net_(input))};
  const Tensor wanted = task_->targets(target);
  if (values[0].rank() == 2 && values[0].size(1) < least_scores_ && !is_floating(target.dtype()))
    throw ShapeError(cat("Trainer: the network gives ", values[0].shape(), " where the data has ",
                         least_scores_, " classes: it needs as many outputs"));
  values.push_back(mixes_ ? mixed.loss(loss_, values[0], wanted) : loss_(values[0], wanted));
  check_loss_value(values[1]);
  const Tensor kept = loss_.kept(wanted);
  counts_vary_ = loss_.counts_vary(wanted);
  const Tensor counted = counts_vary_ ? loss_.counted(wanted) : Tensor();
  if (teacher_) values[1] = with_teacher(values[1], values[0], input, wanted);
  const std::vector<Tensor> renewed = take_updates(values);  // guarded below, like the step
  const Tensor &scores = values[0], &value = values[1];
  require_reached(value);
  const Tensor differentiated = scale_ ? value * scale_->scale : value;
  auto [grads, learns] = gradients_of(differentiated, optimizer_.parameters());
  if (!learns)
    throw ValueError(
        cat("Trainer: the loss depends on none of the optimizer's ", grads.size(),
            " parameters, so nothing would be trained: the network's output or the loss "
            "may be detached, or built under NoGrad"));
  std::vector<Tensor> figures{
      value, task_->correct(scores, mixes_ ? mixed.main_target(wanted) : wanted, kept)},
      updates;
  Tensor guard = guarded_ ? isfinite(value) : Tensor();
  const Tensor any = counts_vary_ ? gt(counted, 0) : Tensor();
  if (counts_vary_) {
    // Without counted targets the mean is NaN; such a step has loss 0 and no effect.
    figures[0] = where(any, value, 0);
    figures.push_back(counted);
    // With a teacher or mixing, the loss is not a sum of losses of single samples.
    const Tensor mean = cast(figures[0], DType::Float64) * counted;
    figures.push_back(teacher_ || mixes_ ? mean
                                         : where(any, mean, loss_.terms(scores, wanted).total));
    figures.push_back(count_targets(wanted, kept));
    if (guarded_) guard = isfinite(figures[0]);
  }
  if (guarded_ && queued) {
    guard = logical_and(open_, guard);
    updates.push_back(assign(open_, guard));
  }
  if (any.defined()) guard = guard.defined() ? logical_and(guard, any) : any;
  if (scale_) scale_gradients(grads, any, guard, figures, updates);
  std::vector<Tensor> out{in_one(figures)};
  append(out, step_updates(std::move(grads), guard, rates, renewed));
  append(out, std::move(updates));
  return out;
}

// Updates of weights, accumulated gradients, running statistics and the average. `guard` decides
// whether the batch counts; undefined: it does.
std::vector<Tensor> TrainStep::step_updates(std::vector<Tensor> grads, Tensor guard,
                                            const Tensor& rates,
                                            const std::vector<Tensor>& renewed) {
  std::optional<optim::GradientAccumulator::Sums> sums;
  if (accumulator_) {
    sums = accumulator_->add(grads);
    grads = sums->means;
  }
  if (clip_value_ > 0) grads = optim::clip_grad_value(grads, clip_value_);
  if (clip_norm_ > 0) {
    optim::ClippedGrads clipped = optim::clip_grad_norm(grads, clip_norm_);
    grads = std::move(clipped.grads);
    if (guard.defined()) guard = logical_and(guard, isfinite(clipped.norm));
  }
  Tensor steps = guard;  // whether the weights change
  if (sums) steps = guard.defined() ? logical_and(guard, sums->complete) : sums->complete;
  std::vector<Tensor> out = optimizer_.updates(grads, steps, rates);
  if (sums) append(out, accumulator_->updates(*sums, guard));
  for (const Tensor& update : renewed)
    out.push_back(guard.defined() ? guarded(update, guard) : update);
  if (average_ != nullptr) append(out, average_->updates(out, steps));
  return out;
}

Plan TrainStep::plan(const data::Loader& loader) {
  const std::int64_t count = std::min(loader.batch(), loader.dataset().size());
  const auto with_mix = [&](std::vector<Tensor> in) {
    if (mixes_) in.push_back(leaf({kMixNumbers}, DType::Float32));
    return in;
  };
  if (set_) {
    const Shape rates{std::ssize(optimizer_.rates(0))};
    return on_numbers_.plan(
        with_mix({leaf({count}, DType::Int64), leaf(rates, optimizer_.rate_dtype())}));
  }
  return on_batch_.plan(with_mix(leaves_of(loader, count)));
}

Tensor TrainStep::begin(const Tensor& input, const Tensor& target, const Tensor& mix) {
  if (mixes_) return on_batch_({input, target, mix})[0];
  return on_batch_({input, target})[0];
}

Tensor TrainStep::begin(const Tensor& numbers, const std::vector<double>& rates,
                        const Tensor& mix) {
  std::vector<double> of_groups;
  for (double rate : rates)
    for (double of_group : optimizer_.rates(rate)) of_groups.push_back(of_group);
  const std::int64_t steps = numbers.size(0), all = std::ssize(of_groups);
  const Shape shape{steps, all / steps};
  const Tensor rows =
      optimizer_.rate_dtype() == DType::Float64
          ? Tensor::from(of_groups, shape)
          : Tensor::from(std::vector<float>(of_groups.begin(), of_groups.end()), shape);
  std::vector<Tensor> in{numbers, rows};
  if (mixes_) in.push_back(mix);
  return on_numbers_.run_many(static_cast<int>(steps), in)[0];
}

StepOutcome TrainStep::read(const Tensor& figures, std::int64_t row) const {
  const std::int64_t count = figures.size(-1);
  const double* values = figures.data_as<double>() + row * count;
  StepOutcome out{values[0], static_cast<std::int64_t>(values[1])};
  std::int64_t first = 2;
  if (counts_vary_) {
    out.counted = values[2];
    out.total = values[3];
    out.targets = static_cast<std::int64_t>(values[4]);
    first = 5;
  }
  for (std::int64_t k = first; k < count; ++k)
    if (values[k] == 0 && out.overflow.empty())
      out.overflow = optimizer_.parameter_names()[static_cast<std::size_t>(k - first)];
  return out;
}

void TrainStep::reopen() {
  const bool yes = true;
  set_value(open_, &yes, sizeof yes);
}

EvalStep::EvalStep(const nn::AnyModule& net, const nn::Loss& loss, std::shared_ptr<const Task> task)
    : net_(net), loss_(loss), task_(std::move(task)) {
  set_views(1);
}

void EvalStep::set_views(std::int64_t views) {
  if (views == views_) return;
  views_ = views;
  function_ =
      compile([net = net_, loss = loss_, task = task_, views](const std::vector<Tensor>& in) {
        return evaluation_of(net, loss, *task, views, in);
      });
}

void EvalStep::require_fits(const data::Loader& loader) {
  const KeptModes modes(net_);
  Context context = current_context();  // so that draws here do not change the run's random numbers
  context.generator = Generator(0);
  const ContextScope scope(context);
  const ShapesOnly shapes;
  const data::Dataset& set = loader.dataset();
  const std::vector<Tensor> out = evaluation_of(
      net_, loss_, *task_, set.views(), leaves_of(loader, std::min(loader.batch(), set.size())));
  if (const std::int64_t least = task_->least_scores(set); least > 0 && task_->needs_scores())
    require_scores(out[1], least, true);
}

Plan EvalStep::plan(const data::Loader& loader, std::int64_t batch) {
  set_views(loader.dataset().views());
  return function_.plan(leaves_of(loader, std::min(batch, loader.dataset().size())));
}

EvalOutcome EvalStep::operator()(const data::Batch& batch) {
  const std::vector<Tensor>& out = function_({batch.input, batch.target});
  const std::vector<double> figures = out[0].to_vector<double>();
  return {figures[0], figures[1], static_cast<std::int64_t>(figures[2]),
          static_cast<std::int64_t>(figures[3]), task_->needs_scores() ? out[1] : Tensor()};
}

}  // namespace tenon::train
