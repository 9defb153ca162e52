// The Trainer: checks its arguments; fit(), evaluate() and predict().
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include <tenon/error.h>
#include <tenon/train.h>

#include "base/str.h"
#include "base/system/option_ranges.h"
#include "train/batches/lengths.h"
#include "train/fitting/fit.h"

namespace tenon::train {

Callback::~Callback() = default;
void Callback::on_note(const std::string&) {}
void Callback::on_frozen(std::int64_t, std::int64_t) {}
void Callback::on_network(const nn::AnyModule&) {}
void Callback::on_start(std::int64_t, std::int64_t) {}
void Callback::on_step(const StepReport&) {}
void Callback::on_evaluation(data::Split, std::int64_t, std::int64_t) {}
void Callback::on_epoch(const EpochReport&) {}
void Callback::on_checkpoint(const std::string&) {}
bool Callback::should_stop(const EpochReport&) { return false; }

int steps_in_launch(double seconds) {
  constexpr double kSecondsOfLaunch = 4e-3, kMost = 32;
  require_range("steps_in_launch", "seconds", seconds, at_least(0));
  const double steps = std::ceil(std::clamp(kSecondsOfLaunch / seconds, 1.0, kMost));
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(steps)));
}

namespace {

constexpr OptionRange<TrainOptions> kTrainRanges[] = {
    {"epochs", &TrainOptions::epochs, at_least(1)},
    {"accumulate", &TrainOptions::accumulate, at_least(1)},
    {"max_steps", &TrainOptions::max_steps, at_least(0)},
    {"clip_norm", &TrainOptions::clip_norm, at_least(0)},
    {"clip_value", &TrainOptions::clip_value, at_least(0)},
    {"temperature", &TrainOptions::temperature, finite_above(0)},
    {"distill_weight", &TrainOptions::distill_weight, from_to(0, 1)},
    {"early_stopping", &TrainOptions::early_stopping, at_least(0)},
    {"evaluate_every", &TrainOptions::evaluate_every, at_least(1)},
    {"stage_epochs", &TrainOptions::stage_epochs, at_least(0)},
    {"steps_per_launch", &TrainOptions::steps_per_launch, at_least(0)},
    {"keep_checkpoints", &TrainOptions::keep_checkpoints, at_least(1)},
    {"checkpoint_steps", &TrainOptions::checkpoint_steps, at_least(0)},
    {"checkpoint_seconds", &TrainOptions::checkpoint_seconds, at_least(0)},
    {"stop_after", &TrainOptions::stop_after, at_least(0)},
};
constexpr OptionRange<data::Mixing> kMixingRanges[] = {
    {"mixing.mixup", &data::Mixing::mixup, finite_from(0)},
    {"mixing.cutmix", &data::Mixing::cutmix, finite_from(0)},
};
constexpr OptionRange<TrainOptions::Length> kLengthRanges[] = {
    {"earlier_lengths.until", &TrainOptions::Length::until, at_least(1)},
    {"earlier_lengths.total", &TrainOptions::Length::total, at_least(1)},
};

void check(const TrainOptions& options) {
  check_options("Trainer", options, kTrainRanges);
  check_options("Trainer", options.mixing, kMixingRanges);
  std::int64_t before = 0;
  for (const TrainOptions::Length& length : options.earlier_lengths) {
    check_options("Trainer", length, kLengthRanges);
    if (length.until <= before)
      throw ValueError(cat("Trainer: earlier_lengths.until is ", length.until, " behind ", before,
                           ", must be in ascending order"));
    before = length.until;
  }
  // Checks the schedule's options; the numbers of steps are not known yet.
  (void)schedule_of(options, 1, 1);
  if (options.stage_epochs > 0 && !options.next_stage)
    throw ValueError(cat("Trainer: stage_epochs is ", options.stage_epochs,
                         ", and next_stage an empty function"));
  if (options.resume && options.run_dir.empty())
    throw ValueError("Trainer: resume needs a run_dir");
  for (const std::shared_ptr<Callback>& callback : options.callbacks)
    if (callback == nullptr) throw ValueError("Trainer: one of the callbacks is a null pointer");
}

}  // namespace

Trainer::Trainer(nn::AnyModule net, nn::Loss loss, optim::Optimizer& optimizer,
                 TrainOptions options) {
  check(options);
  if (!loss)
    throw ValueError("Trainer: the loss is an empty function: give it one, as nn::MSELoss()");
  impl_ = std::make_unique<Impl>(net, std::move(loss), optimizer, std::move(options));
}

Trainer::~Trainer() = default;

TrainResult Trainer::fit(data::Loader& train, data::Loader* validation, data::Loader* test) {
  const ContextScope scope(impl_->context);
  return Fit(*impl_, train, validation, test).run();
}

Evaluation Trainer::evaluate(data::Loader& loader) {
  const ContextScope scope(impl_->context);
  const KeptModes modes(impl_->net);
  loader.set_epoch(0);  // augmented samples are the same each time
  return impl_->evaluate(loader, data::Split::Test);
}

Tensor Trainer::predict(const Tensor& inputs) {
  const ContextScope scope(impl_->context);
  const KeptModes modes(impl_->net);
  impl_->net.eval();
  return impl_->net(inputs).compute();
}

const nn::AnyModule& Trainer::net() const { return impl_->net; }

}  // namespace tenon::train
