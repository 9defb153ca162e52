// The epochs of a run: stages, evaluation after each epoch, choice of the best epoch, and the end.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/str.h"
#include "io/tensors/safetensors.h"
#include "train/fitting/fit.h"
#include "train/fitting/last_batch.h"
#include "train/fitting/part_fits.h"

namespace tenon::train {
namespace {

StateDict copy(const StateDict& state) {
  StateDict out;
  for (const auto& [name, tensor] : state)
    out.emplace(name, Tensor::from_data(tensor.data(), tensor.shape(), tensor.dtype(), Device{}));
  return out;
}

}  // namespace

// Frees the programs and batches of the last stage before requesting the next stage.
void Fit::change_stage() {
  staged_ = true;
  waited_earlier_ += batches_->waited();
  waited_before_ = 0;
  batches_.reset();
  t_.train_step.reset();
  t_.eval_step.reset();
  const Stage next = o_.next_stage();
  if (next.optimizer == nullptr || next.train == nullptr)
    throw ValueError("Trainer: next_stage must return an optimizer and a training loader");
  if (next.train->batch() != p_.batch || next.train->epoch_size() != p_.examples ||
      next.train->batches() != p_.steps_per_epoch)
    throw ValueError(cat("Trainer: next_stage returned batches of ", next.train->batch(), " from ",
                         next.train->epoch_size(), " samples where the run has ", p_.batch,
                         " from ", p_.examples,
                         ": batch size and number of samples must stay the same"));
  train_ = next.train;
  validation_ = next.validation;
  test_ = next.test;
  batches_.emplace(*train_);
  require_trains_on_last_batch(next.net, *train_);
  modes_.emplace_front(next.net);  // restored in reverse order, to the modes before the run
  t_.begin(next);
  require_parts_fit();
}

void Fit::require_parts_fit() {
  if (validation_ != nullptr)
    require_part_fits(*t_.eval_step, *train_, *validation_, data::Split::Validation);
  if (test_ != nullptr) require_part_fits(*t_.eval_step, *train_, *test_, data::Split::Test);
}

// The state that both optimizers share, and the loss scale, are carried over.
void Fit::continue_in_next_stage() {
  const StateDict before = t_.optimizer->state_dict();
  const StateDict average = t_.average ? t_.average->state_dict() : StateDict();
  std::optional<LossScale> scale;
  if (t_.train_step->loss_scale() != nullptr) scale = *t_.train_step->loss_scale();
  change_stage();
  t_.optimizer->load_state_dict(before);
  if (t_.average) t_.average->load_state_dict(average);
  if (const LossScale* own = t_.train_step->loss_scale(); own != nullptr && scale) {
    set_value(own->scale, scale->scale);
    set_value(own->good_steps, scale->good_steps);
  }
  if (folder_ != nullptr)
    folder_->append_json(json_event_line("stage", p_.step, t_.optimizer->describe()));
  open_steps();
}

std::string Fit::figure() const {
  if (validation_ == nullptr) return "training loss";
  const std::string metric = task_.monitored();
  return metric.empty() ? "validation loss" : "validation " + task_.metric(metric).shown();
}

Fit::Monitored Fit::monitored(const EpochReport& e) const {
  const std::string metric = task_.monitored();
  if (const auto value = e.validation_metrics[metric]) {
    const MetricInfo info = task_.metric(metric);
    return {"validation " + info.shown(), *value, info.higher_is_better};
  }
  if (e.validation_loss) return {"validation loss", *e.validation_loss, false};
  return {"training loss", e.train_loss, false};
}

// Epochs that were judged by another metric, as before a resume without a validation part, are not
// compared.
const EpochReport* Fit::best() const {
  const EpochReport* found = nullptr;
  for (const EpochReport& e : p_.history)
    if (e.best && monitored(e).name == figure()) found = &e;
  return found;
}

bool Fit::early_stop() const {
  if (asked_to_stop_) return true;
  const EpochReport* top = best();
  if (o_.early_stopping <= 0 || p_.history.empty()) return false;
  // If the metric was always NaN, no epoch is the best, and counting starts at the first epoch.
  int since = top != nullptr ? top->epoch : std::max({o_.evaluate_every, best_lost_, 1});
  if (top == nullptr)
    for (const EpochReport& e : p_.history)
      if (monitored(e).name != figure() && (e.validation_loss || validation_ == nullptr))
        since = std::max(since, e.epoch + 1);
  return p_.history.back().epoch - since >= o_.early_stopping;
}

// Trains to the end of the current epoch. False if interrupted.
bool Fit::epoch() {
  train_->set_state(
      {p_.loader_seed, p_.epochs_in(p_.step), p_.steps_behind_epochs(p_.step) * p_.batch});
  if (o_.averaging.kind == optim::Averaging::Kind::Ema)
    t_.train_step->average(averages_in(p_.epochs_in(p_.step) + 1) ? &*t_.average : nullptr);
  epoch_start_ = Clock::now();
  speed_.restart();
  const double before = p_.seconds;
  drained_ = Clock::now();
  while (begun() < total_) {
    if (t_.curvature) {
      if (steps_until_curvature(0) == 0) drain(), t_.curvature->measure(*train_, begun());
    }
    if (!begin_steps()) break;
    const bool whole = p_.steps_behind_epochs(begun()) == 0 || begun() == total_;
    if (whole || queue_.size() >= ahead_) drain();
    if (aside_.valid() && aside_.wait_for(Clock::duration::zero()) == std::future_status::ready)
      settle_checkpoint();
    p_.seconds = before + seconds_since(epoch_start_);
    if (whole) break;
    // Checked after the step was reported, because a callback may set `stop`.
    const bool stop = stop_asked(), save = !stop && due();
    if (stop || save) drain();
    if (stop) return false;
    if (save) checkpoint();
  }
  end_epoch();
  return true;
}

void Fit::end_epoch() {
  require_finite();
  EpochReport r;
  r.epoch = p_.epoch_of(p_.step);
  r.step = p_.step;
  r.train_loss = mean_loss();
  r.train_accuracy = train_accuracy();
  r.lr = t_.optimizer->lr();
  r.seconds = p_.seconds;
  r.items_per_s = static_cast<double>(p_.items) / std::max(p_.seconds, 1e-9);
  r.data_seconds = batches_->waited() - waited_before_;
  waited_before_ += r.data_seconds;
  average_epoch(r);
  if (r.epoch % std::max(o_.evaluate_every, 1) == 0 || p_.step == total_) validate(r);
  note_best(r);
  schedule_->observe(r.validation_loss.value_or(r.train_loss));
  p_.history.push_back(r);
  p_.loss_sum = p_.weight = p_.seconds = 0;
  p_.correct = p_.items = p_.targets = 0;
  if (folder_ != nullptr) {
    folder_->append_csv(r);
    folder_->append_json(json_line(r));
  }
  checkpoint();
  t_.tell([&](Callback& c) {
    c.on_epoch(r);
    asked_to_stop_ = c.should_stop(r) || asked_to_stop_;
  });
}

bool Fit::averages_in(std::int64_t epoch) const { return epoch > o_.averaging.start_epochs; }

// Before its first epoch the average is a copy of the weights.
void Fit::average_epoch(const EpochReport& r) {
  if (!t_.average) return;
  if (!averages_in(r.epoch))
    t_.average->restart();
  else if (o_.averaging.kind == optim::Averaging::Kind::Swa)
    t_.average->update();
}

// The mean of several weights has never processed data, so its running statistics do not fit. An
// exponential average stays close to the current weights.
void Fit::measure_average() {
  if (o_.averaging.kind != optim::Averaging::Kind::Swa || t_.average->count() == 0 ||
      std::exchange(average_measured_, p_.step) == p_.step)
    return;
  update_batch_norm(t_.average->net(), *train_);
}

// Augmentation, if any, is that of epoch 0 in every validation, also after a resume.
void Fit::validate(EpochReport& r) {
  if (validation_ == nullptr) return;
  measure_average();
  validation_->set_epoch(0);
  const Evaluation evaluation = t_.evaluate(*validation_, data::Split::Validation);
  evaluation_seconds_ = evaluation.seconds;
  r.validation_samples = evaluation.items;
  r.validation_loss = evaluation.loss;
  r.validation_metrics = evaluation.metrics;
  if (const std::string metric = task_.monitored();
      !metric.empty() && !r.validation_metrics[metric])
    throw ValueError(cat("Trainer: task '", task_.name(), "' monitors '", metric,
                         "', which its meter has not set: set it in Meter::finish()"));
}

TestReport Fit::measure_test(const EpochReport& kept) {
  test_->set_epoch(0);
  const Evaluation evaluation = t_.evaluate(*test_, data::Split::Test);
  TestReport out;
  out.epoch = kept.epoch;
  out.step = kept.step;
  out.samples = evaluation.items;
  out.loss = evaluation.loss;
  out.metrics = evaluation.metrics;
  return out;
}

// If the log of a finished run has test results for these weights, they are not measured again.
void Fit::test(const EpochReport& kept) {
  if (test_ == nullptr) return;
  result_.test = folder_ != nullptr ? folder_->test_report(kept.step) : std::nullopt;
  if (result_.test) return;
  result_.test = measure_test(kept);
  if (folder_ != nullptr) folder_->append_json(json_line(*result_.test));
}

void Fit::note_best(EpochReport& r) {
  if (validation_ != nullptr && !r.validation_loss) return;  // not validated, so not compared
  const EpochReport* top = best();
  // The loss is checked too, because the accuracy of NaN scores is a number.
  const bool known = !std::isnan(monitored(r).value) && !std::isnan(r.validation_loss.value_or(0));
  r.best = known && (top == nullptr || monitored(r).better_than(monitored(*top)));
  if (!r.best || !keeps_best()) return;
  require_finite();
  if (folder_ != nullptr)
    save_best(r.epoch);
  else
    best_weights_ = copy(t_.kept_net().state_dict());
}

// NaN is never the best; if every epoch gave NaN, the last weights are kept.
void Fit::name_best(const EpochReport* top) {
  std::vector<EpochReport> compared;
  for (const EpochReport& e : p_.history)
    if (monitored(e).name == figure()) compared.push_back(e);
  if (compared.empty()) return;
  result_.best_figure = figure();
  if (top != nullptr) {
    result_.best = monitored(*top).value;
    result_.best_epoch = top->epoch;
  } else {
    const auto loss_is_nan = [](const EpochReport& e) {
      return std::isnan(e.validation_loss.value_or(e.train_loss));
    };
    const auto is_nan = [&](const EpochReport& e) {
      return loss_is_nan(e) || std::isnan(monitored(e).value);
    };
    if (!std::all_of(compared.begin(), compared.end(), is_nan)) return;
    const bool losses = std::all_of(compared.begin(), compared.end(), loss_is_nan);
    const std::string part = validation_ != nullptr ? "validation" : "training";
    const std::string note =
        cat("the ", losses ? part + " loss" : figure(), " was NaN in all ", compared.size(),
            compared.size() == 1 ? " time" : " times",
            " it was measured: there is no best epoch, and the weights of the last epoch are kept. "
            "Check the network's outputs, and whether the loss ignores all targets");
    t_.tell([&](Callback& c) { c.on_note(note); });
  }
}

// The number of samples of the last validation, also of an earlier session: without images that
// could not be decoded. Logs of earlier builds lack the number.
std::int64_t Fit::validated() const {
  for (auto epoch = p_.history.rbegin(); epoch != p_.history.rend(); ++epoch)
    if (epoch->validation_samples > 0) return epoch->validation_samples;
  const std::int64_t all = validation_->dataset().size(), batch = validation_->batch();
  return validation_->options().drop_last ? all / batch * batch : all;
}

// Loads the weights that are kept into the network, measures them and writes the model file.
void Fit::finish() {
  t_.net.eval();
  const EpochReport* top = best();
  const bool ended = result_.reason != StopReason::Interrupted;
  const bool chosen = keeps_best() && top != nullptr;
  if (ended && chosen && top->step != p_.step) {
    if (folder_ != nullptr)
      best_weights_ = io::load_safetensors(folder_->file("best.safetensors")).tensors;
    if (!best_weights_.empty()) nn::AnyModule(t_.kept_net()).load_state_dict(best_weights_);
  } else if (ended) {
    measure_average();
  }
  if (ended && t_.average) t_.net.load_state_dict(t_.kept_net().state_dict());
  name_best(top);
  if (ended) {
    EpochReport kept;
    kept.epoch = chosen ? top->epoch : p_.epoch_of(p_.step);
    kept.step = chosen ? top->step : p_.step;
    result_.kept_epoch = kept.epoch;
    test(kept);
  }
  if (validation_ != nullptr) result_.validation_samples = validated();
  result_.epochs = p_.history;
  result_.steps = p_.step;
  result_.seconds = seconds_since(start_);
  result_.data_seconds = waited_earlier_ + batches_->waited();
  if (folder_ == nullptr) return;
  folder_->rewrite_csv(p_.history);
  before_results();
  if (ended)
    io::save_checked_safetensors(folder_->file("model.safetensors"), t_.net.state_dict(),
                                 metadata({{"steps", cat(p_.step)}}));
  folder_->append_json(json_event_line(ended ? "end" : "interrupted", p_.step));
}

TrainResult Fit::run() {
  if (t_.optimizer != t_.first.optimizer) t_.begin(t_.first);  // left by an earlier call
  require_trains_on_last_batch(t_.net, *train_);
  require_parts_fit();
  if (t_.average) t_.average->restart();
  prepare();
  open_steps();
  last_checkpoint_ = Clock::now();
  // A run that continues has no final model yet; an older file would be mistaken for it.
  if (folder_ != nullptr && !finished())
    std::filesystem::remove(folder_->file("model.safetensors"));
  t_.tell([&](Callback& c) {
    c.on_network(t_.net);
    c.on_start(p_.step, total_);
  });
  if (epoch_is_whole_) end_epoch();
  while (!finished()) {
    if (stage_due(p_) && !stop_asked()) continue_in_next_stage();
    if (stop_asked() || !epoch()) {
      result_.reason = StopReason::Interrupted;
      break;
    }
  }
  checkpoint();
  require_finite();
  if (result_.reason != StopReason::Interrupted && p_.step < total_)
    result_.reason = StopReason::EarlyStop;
  finish();
  return std::move(result_);
}

}  // namespace tenon::train
