// The training steps of a run: prepared, queued, read back, and stopped if a value is not finite.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include <tenon/anomaly.h>
#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/str.h"
#include "data/samples/not_finite_samples.h"
#include "graph/on_host.h"
#include "train/batches/mixing.h"
#include "train/fitting/fit.h"

namespace tenon::train {
namespace {

constexpr std::int64_t kDenseLogSteps =
    100;  // each of the first steps is logged, because `verify` compares them
constexpr std::int64_t kLogEvery = 50;

std::string short_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

constexpr char kOverflown[] =
    ". The previous step produced weights that are not finite; they are not saved";

}  // namespace

std::string smaller_steps(double lr) {
  return cat(". Try a smaller learning rate (it was ", short_text(lr),
             "), clip the gradients (clip_norm = 1), or check the data");
}

// Checked on the host: a tensor that is saved is copied there in any case.
bool is_finite(const Tensor& t) {
  return !is_floating(t.dtype()) || all(isfinite(on_host(t))).item() != 0;
}

// Gradients may overflow when the loss does not. A run cannot continue from the result.
bool is_finite(const StateDict& state) {
  return std::all_of(state.begin(), state.end(),
                     [](const auto& entry) { return is_finite(entry.second); });
}

void Fit::open_steps() {
  t_.train_step->reopen();
  t_.train_step->use(resident_set(*train_));
  t_.train_step->require_classes(task_.least_scores(train_->dataset()));
  watch_finite();
  at_once_ = std::max(o_.steps_per_launch, 1);
  ahead_ = 1;
}

// A message about samples of a step that are not finite; "" if all are finite.
std::string Fit::fault_of_samples(const Tensor& input, const Tensor& target) const {
  if (is_finite(input) && is_finite(target)) return "";
  const data::Dataset& set = train_->dataset();
  if (set.in_memory())
    if (const data::NotFiniteSamples found = data::not_finite_samples(set); found.any())
      return found.text();
  return cat(is_finite(input) ? "a target" : "an input",
             " of this step is NaN or infinite when the data loader returns it");
}

void Fit::not_finite(const Queued& step, double loss) {
  Tensor input = step.input, target = step.target;
  if (!target.defined()) {
    const Tensor numbers = select(step.input, 0, step.row);
    input = t_.train_step->set()->input(numbers).compute();
    target = t_.train_step->set()->target(numbers).compute();
  }
  const std::string samples = fault_of_samples(input, target);
  // The same random draws as in the step that failed.
  Generator::current().set_state(step.seed, step.counter);
  t_.net.train();
  const std::string culprit = first_non_finite(t_.net, input);
  queue_.clear();
  t_.train_step->reopen();
  Generator::current().set_state(step.seed, step.counter);
  const bool kept = first_not_finite() == nullptr && is_finite(t_.optimizer->state_dict());
  if (kept) checkpoint();
  if (!kept && p_.step == 0)
    fail(1, culprit,
         cat("the loss is ", loss, ", because the initial weights are not finite",
             first_not_finite() != nullptr ? cat(" (the first: ", first_not_finite()->name, ")")
                                           : ""));
  if (!samples.empty())
    fail(p_.step + 1, samples,
         cat("the loss is ", loss, "; ", samples,
             kept ? ". The weights before this step are kept" : kOverflown,
             ". Remove these samples, or replace the values"));
  fail(p_.step + 1, culprit,
       cat("the loss is ", loss, "; ",
           culprit.empty() ? "every layer's output is finite, so it arises in the loss function"
                           : cat("the first value that is not finite is in ", culprit),
           kept ? ". The weights before this step are kept" : kOverflown, smaller_steps(step.lr)));
}

void Fit::fail(std::int64_t step, const std::string& culprit, const std::string& what) {
  if (folder_ != nullptr) folder_->append_json(json_event_line("not_finite", step, culprit));
  throw NumericError(cat("step ", step, ": ", what,
                         folder_ != nullptr && keeps_best() && best() != nullptr
                             ? cat(". best.safetensors holds the weights of epoch ", best()->epoch,
                                   ", the best so far, which are finite")
                             : ""));
}

// Buffers may contain infinities on purpose, for instance masks.
void Fit::watch_finite() {
  kept_finite_.clear();
  const std::vector<Tensor>& parameters = t_.optimizer->parameters();
  for (std::size_t k = 0; k < parameters.size(); ++k)
    kept_finite_.push_back({t_.optimizer->parameter_names()[k], parameters[k]});
  for (nn::NamedTensor& buffer : t_.net.named_buffers())
    if (is_finite(buffer.tensor)) kept_finite_.push_back(std::move(buffer));
}

// Gradients may overflow although the loss is finite. The next step's loss would show it, but too
// late for weights that are saved or returned before.
void Fit::require_finite() {
  if (checked_ == p_.step) return;
  if (const nn::NamedTensor* first = first_not_finite())
    fail(p_.step, first->name,
         cat("the loss is finite, but the step produced weights or running statistics that are not "
             "(the first: ",
             first->name, "); they are not saved", smaller_steps(t_.optimizer->lr())));
  checked_ = p_.step;
}

// The first tensor that a step has made infinite or NaN; null if there is none.
const nn::NamedTensor* Fit::first_not_finite() const {
  const auto found =
      std::find_if(kept_finite_.begin(), kept_finite_.end(),
                   [](const nn::NamedTensor& kept) { return !is_finite(kept.tensor); });
  return found == kept_finite_.end() ? nullptr : &*found;
}

// False at the end of the epoch's samples.
bool Fit::begin_steps() {
  if (!t_.train_step->set()) return begin_step_on_batch();
  const std::int64_t count = steps_of_launch();
  std::vector<std::int64_t> numbers;
  std::vector<Queued> steps;
  std::vector<double> rates;
  const std::uint64_t seed = Generator::current().seed(), before = Generator::current().counter();
  for (std::int64_t r = 0; r < count; ++r) {
    const std::vector<std::int64_t> batch = train_->next_numbers();
    if (batch.empty()) break;
    numbers.insert(numbers.end(), batch.begin(), batch.end());
    Queued& q = steps.emplace_back();
    q.row = r;
    q.items = std::ssize(batch);
    q.lr = t_.optimizer->base_lr() * schedule_->factor(begun() + r);
    rates.push_back(q.lr);
  }
  if (steps.empty()) return false;
  t_.optimizer->set_lr(rates.back());
  const Tensor input = Tensor::from(numbers, {std::ssize(steps), steps[0].items}),
               figures = begin_checked(
                   [&] { return t_.train_step->begin(input, rates, mix_of(std::ssize(steps))); });
  const std::uint64_t draws = (Generator::current().counter() - before) / steps.size();
  for (Queued& q : steps) {
    q.input = input;
    q.figures = figures;
    q.seed = seed;
    q.counter = before + draws * static_cast<std::uint64_t>(q.row);
    queue_.push_back(std::move(q));
  }
  return true;
}

// While anomalies are detected (tenon/anomaly.h), a step that has one throws before it takes
// effect.
Tensor Fit::begin_checked(const std::function<Tensor()>& begin) {
  if (!DetectAnomaly::is_on()) return begin();
  drain();
  try {
    return begin();
  } catch (const NumericError& error) {
    fail(p_.step + 1, error.layer().empty() ? error.operation() : error.layer(), error.what());
  }
}

bool Fit::begin_step_on_batch() {
  data::Batch batch;
  Queued q;
  q.seed = Generator::current().seed();
  q.counter = Generator::current().counter();
  if (!batches_->next(batch)) return false;
  t_.optimizer->set_lr(t_.optimizer->base_lr() * schedule_->factor(begun()));
  q.lr = t_.optimizer->lr();
  q.items = batch.size;
  q.input = std::move(batch.input);
  q.target = std::move(batch.target);
  q.figures = begin_checked([&] {
    return t_.train_step->begin(q.input, q.target,
                                o_.mixing.any() ? select(mix_of(1), 0, 0).compute() : Tensor());
  });
  queue_.push_back(std::move(q));
  return true;
}

// The mixup and cutmix parameters of the next steps, on the device; undefined without mixing.
Tensor Fit::mix_of(std::int64_t steps) const {
  if (!o_.mixing.any()) return {};
  const std::int64_t epoch = p_.epochs_in(begun()), batch = p_.steps_behind_epochs(begun());
  return mix_rows(o_.mixing, train_->input_shape(), {p_.loader_seed, epoch, 0}, batch, steps);
}

// The number of steps in the next launch: at most at_once_, all with whole batches, and not beyond
// a step after which the host must act. Smaller numbers are powers of two, because each number of
// runs is captured once.
std::int64_t Fit::steps_of_launch() const {
  if (DetectAnomaly::is_on()) return 1;
  std::int64_t most =
      std::min(total_ - begun(), p_.examples / p_.batch - p_.steps_behind_epochs(begun()));
  if (o_.stop_after > 0) most = std::min(most, o_.stop_after - begun());
  if (folder_ != nullptr && o_.checkpoint_steps > 0)
    most = std::min(most, o_.checkpoint_steps - begun() % o_.checkpoint_steps);
  if (t_.curvature) most = std::min(most, steps_until_curvature(1) + 1);
  if (most >= at_once_) return at_once_;
  return static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(most, 1))));
}

// Steps from `more` steps after the queued ones to the next measurement, counted as if all epochs
// had the current number of steps.
std::int64_t Fit::steps_until_curvature(std::int64_t more) const {
  const std::int64_t step =
      p_.epochs_in(begun()) * p_.steps_per_epoch + p_.steps_behind_epochs(begun()) + more;
  return Curvature::steps_until_due(step, p_.batch, p_.steps_per_epoch);
}

// Reads all queued steps. On a GPU about a tenth of a second of steps is then queued ahead, so that
// the GPU does not wait for the host after every step.
void Fit::drain() {
  const std::size_t count = queue_.size();
  if (count == 0) return;
  while (!queue_.empty()) {
    account(queue_.front());
    queue_.pop_front();
  }
  if (current_device().kind == Device::Kind::Cpu) return;
  constexpr double kSecondsAhead = 0.1, kMostAhead = 128;
  const double each = seconds_since(drained_) / static_cast<double>(count);
  ahead_ = static_cast<std::size_t>(std::clamp(kSecondsAhead / each, 1.0, kMostAhead));
  if (o_.steps_per_launch == 0) at_once_ = std::max<std::int64_t>(at_once_, steps_in_launch(each));
  drained_ = Clock::now();
}

void Fit::account(const Queued& step) {
  const StepOutcome outcome = t_.train_step->read(step.figures, step.row);
  if (!std::isfinite(outcome.loss)) not_finite(Queued(step), outcome.loss);
  ++p_.step;
  // As in an evaluation, a step's weight in the epoch's mean is its number of counted targets.
  const double weight = outcome.counted.value_or(static_cast<double>(step.items));
  p_.loss_sum += outcome.total.value_or(outcome.loss * weight);
  p_.weight += weight;
  p_.correct += outcome.correct;
  p_.targets += outcome.targets.value_or(step.items * train_->dataset().target_shape().numel());
  p_.items += step.items;
  if (result_.first_step_seconds == 0) result_.first_step_seconds = seconds_since(start_);
  if (folder_ != nullptr && (p_.step <= kDenseLogSteps || p_.step % kLogEvery == 0))
    folder_->append_json(json_step_line(p_.step, outcome.loss, step.lr));
  if (folder_ != nullptr && !outcome.overflow.empty())
    folder_->append_json(
        json_event_line("overflow", p_.step,
                        cat("the gradient of ", outcome.overflow, "; the loss scale is halved")));
  speed_.add(step.items);
  report_step(step, outcome.loss);
}

// The mean loss of the epoch so far; NaN if no target counted.
double Fit::mean_loss() const {
  return p_.weight > 0 ? p_.loss_sum / p_.weight : std::numeric_limits<double>::quiet_NaN();
}

// The accuracy of the epoch so far; sequences have a target for each token.
std::optional<double> Fit::train_accuracy() const {
  if (!task_.has_training_accuracy(train_->dataset())) return {};
  return static_cast<double>(p_.correct) / static_cast<double>(p_.targets);
}

void Fit::report_step(const Queued& step, double loss) {
  if (o_.callbacks.empty()) return;
  StepReport r;
  r.epoch = p_.epoch_of(p_.step);
  r.step = p_.step;
  r.step_in_epoch = p_.steps_behind_epochs(p_.step - 1) + 1;
  r.steps_per_epoch = p_.steps_per_epoch;
  r.loss = loss;
  r.mean_loss = mean_loss();
  r.accuracy = train_accuracy();
  r.lr = step.lr;
  r.items = step.items;
  r.items_per_s = speed_.speed();
  const auto steps_left = static_cast<double>(total_ - p_.step),
             per_step = static_cast<double>(p_.batch);
  const double epochs_left = std::ceil(steps_left / static_cast<double>(p_.steps_per_epoch));
  r.seconds_left =
      steps_left * per_step / std::max(speed_.speed(), 1e-9) + epochs_left * evaluation_seconds_;
  t_.tell([&](Callback& c) { c.on_step(r); });
}

}  // namespace tenon::train
