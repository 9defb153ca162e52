// The Trainer: epochs of steps, evaluation, checkpoints, logs, stopping.
//
// Where a run stands is a number of steps; epoch, place in the epoch, learning rate and order of
// the examples follow from it, and what does not follow (weights, moments, generator, sums of the
// epoch under way) is in the checkpoint. That is why a resumed run ends with the bits of one that
// was never stopped.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <future>
#include <limits>
#include <memory>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "base/background.h"
#include "base/log.h"
#include "base/str.h"
#include "graph/on_host.h"
#include "io/safetensors.h"
#include "run/tune.h"
#include "train/batches.h"
#include "train/curvature.h"
#include "train/data_digest.h"
#include "train/evaluate.h"
#include "train/kept_modes.h"
#include "train/last_batch.h"
#include "train/lengths.h"
#include "train/mixing.h"
#include "train/records.h"
#include "train/run_folder.h"
#include "train/step.h"
#include "train/tensor_names.h"

namespace tenon::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::int64_t kDenseLogSteps =
    100;  // the first steps are logged one by one: `verify` compares them
constexpr std::int64_t kLogEvery = 50;

std::string short_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

StateDict copy(const StateDict& state) {
  StateDict out;
  for (const auto& [name, tensor] : state)
    out.emplace(name, Tensor::from_data(tensor.data(), tensor.shape(), tensor.dtype(), Device{}));
  return out;
}

// The figure that tells a better epoch: accuracy before loss, validation before training.
struct Monitored {
  const char* name;
  double value;
  bool higher_is_better;
  bool better_than(const Monitored& other) const {
    return higher_is_better ? value > other.value : value < other.value;
  }
};

Monitored monitored(const EpochReport& e) {
  if (e.validation_accuracy) return {"validation accuracy", *e.validation_accuracy, true};
  if (e.validation_loss) return {"validation loss", *e.validation_loss, false};
  return {"training loss", e.train_loss, false};
}

// Speed over the last second or so.
class Speedometer {
 public:
  void add(std::int64_t items) {
    items_ += items;
    const double passed = seconds_since(mark_);
    if (passed < 0.25 && speed_ > 0) return;
    const double now = static_cast<double>(items_) / std::max(passed, 1e-9);
    speed_ = speed_ > 0 ? 0.6 * speed_ + 0.4 * now : now;
    restart();
  }
  void restart() { items_ = 0, mark_ = Clock::now(); }
  double speed() const { return speed_; }

 private:
  std::int64_t items_ = 0;
  double speed_ = 0;
  Clock::time_point mark_ = Clock::now();
};

constexpr char kOverflown[] =
    ". The step before made weights that are not finite, which are not saved";

std::string smaller_steps(double lr) {
  return cat(". Try a smaller learning rate (it was ", short_text(lr),
             "), clip the gradients (clip_norm = 1), or look at the data");
}

}  // namespace

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

struct Trainer::Impl {
  Impl(const nn::AnyModule& module, nn::Loss l, optim::Optimizer& o, TrainOptions opts)
      : first{module, &o}, net(module), loss(std::move(l)), options(std::move(opts)) {
    begin(first);
  }

  // The programs of a stage; nothing of an earlier one is left.
  void begin(const Stage& stage) {
    net = stage.net;
    optimizer = stage.optimizer;
    train_step.emplace(net, loss, *optimizer, options);
    eval_step.emplace(net, options.evaluation_loss ? options.evaluation_loss : loss,
                      options.tokens);
    curvature.reset();
    if (const auto* rule = dynamic_cast<const optim::Levenberg*>(optimizer))
      curvature.emplace(net, loss, *rule, options.classes, options.tokens);
  }

  Evaluation evaluate(data::Loader& loader, data::Split part) {
    return train::evaluate(*eval_step, loader, options.classes,
                           [this, part](std::int64_t batch, std::int64_t batches) {
                             tell([&](Callback& c) { c.on_evaluation(part, batch, batches); });
                           });
  }
  bool stop_asked() const { return options.stop && options.stop(); }
  template <class F>
  void tell(F&& f) {
    for (const std::shared_ptr<Callback>& callback : options.callbacks) f(*callback);
  }

  const Context context = current_context();  // in which it computes, whoever calls
  const Stage first;                          // without loaders
  nn::AnyModule net;                          // of the stage under way
  nn::Loss loss;
  optim::Optimizer* optimizer = nullptr;
  TrainOptions options;
  std::optional<TrainStep> train_step;
  std::optional<EvalStep> eval_step;
  std::optional<Curvature> curvature;  // of Levenberg–Marquardt's rates
};

namespace {

// One call of fit(): from where the run stands to its end.
class Fit {
 public:
  Fit(Trainer::Impl& impl, data::Loader& train, data::Loader* validation, data::Loader* test)
      : t_(impl),
        o_(impl.options),
        train_(&train),
        batches_(std::in_place, train),
        validation_(validation),
        test_(test) {
    modes_.emplace_back(impl.first.net);
  }
  TrainResult run();

 private:
  void prepare();
  void require_whole(const Checkpoint& checkpoint) const;
  void require_nothing_kept() const;
  void restore(Checkpoint checkpoint);
  void save_engines();
  bool stage_due(const Progress& progress) const {
    return !staged_ && o_.stage_epochs > 0 && progress.epochs_in(progress.step) >= o_.stage_epochs;
  }
  void lay_out_steps();
  void take_other_cut(const Progress& saved);
  void change_stage();
  void go_on_in_next_stage();
  void open_steps();
  bool epoch();
  // A step that has been begun and whose figures have not been read.
  struct Queued {
    Tensor input, target;  // or the numbers of examples, and nothing
    Tensor figures;
    std::int64_t row = 0;  // of the numbers and figures, which steps of one launch share
    std::int64_t items = 0;
    double lr = 0;
    std::uint64_t seed = 0, counter = 0;  // of the generator, before it
  };
  bool begin_steps();
  bool begin_step_on_batch();
  std::int64_t steps_of_launch() const;
  std::int64_t steps_until_curvature(std::int64_t more) const;
  Tensor mix_of(std::int64_t steps) const;
  void drain();
  void account(const Queued& step);
  /// Steps begun, read or not.
  std::int64_t begun() const { return p_.step + static_cast<std::int64_t>(queue_.size()); }
  [[noreturn]] void not_finite(const Queued& step, double loss);
  [[noreturn]] void fail(std::int64_t step, const std::string& culprit, const std::string& what);
  void watch_finite();
  void require_finite();
  const nn::NamedTensor* first_not_finite() const;
  void report_step(const Queued& step, double loss);
  std::optional<double> train_accuracy() const;
  // Of two models of language the one that is less surprised is the better one.
  bool has_accuracy(const data::Loader& loader) const {
    return o_.classes && !o_.tokens && loader.dataset().classes() > 0;
  }
  void end_epoch();
  void validate(EpochReport& report);
  void note_best(EpochReport& report);
  /// Whether the weights that stay are those of the best epoch.
  bool keeps_best() const { return o_.keep_best && validation_ != nullptr; }
  TestReport measure_test(const EpochReport& kept);
  void test(const EpochReport& kept);
  io::Metadata metadata(io::Metadata more) const;
  Checkpoint state();
  void checkpoint();
  void checkpoint_aside();
  void settle_checkpoint();
  bool due() const;
  bool stop_asked() const {
    return (o_.stop_after > 0 && begun() >= o_.stop_after) || t_.stop_asked();
  }
  bool finished() const { return p_.step >= total_ || early_stop(); }
  bool early_stop() const;
  const EpochReport* best() const;
  void save_best(int epoch) const;
  void forget_lost_best();
  void finish();

  Trainer::Impl& t_;
  const TrainOptions& o_;
  data::Loader* train_;
  std::optional<Batches> batches_;
  data::Loader *validation_, *test_;
  std::deque<KeptModes> modes_;  // of the modules of each stage
  std::unique_ptr<optim::Schedule> schedule_;
  std::unique_ptr<RunFolder> folder_;
  std::future<std::string> aside_;       // the checkpoint that another thread writes
  std::unique_ptr<TuneRecord> engines_;  // that the run uses
  std::size_t engines_saved_ = 0;        // rows
  Progress p_;
  std::int64_t total_ = 0;
  StateDict best_weights_;
  int best_lost_ = 0;  // the epoch after which those of the run so far could not be read
  std::deque<Queued> queue_;
  std::size_t ahead_ = 1;     // steps begun before the oldest is read
  std::int64_t at_once_ = 1;  // steps of a launch
  Clock::time_point drained_ = Clock::now();
  Speedometer speed_;
  Clock::time_point start_ = Clock::now(), epoch_start_, last_checkpoint_;
  std::int64_t last_saved_ = -1;
  std::int64_t checked_ = 0;                  // the step whose values require_finite() has seen
  std::vector<nn::NamedTensor> kept_finite_;  // what a step makes of finite values
  double evaluation_seconds_ = 0;
  double waited_before_ = 0;     // for batches, before this epoch
  double waited_earlier_ = 0;    // in the stage before
  bool staged_ = false;          // the next stage has begun
  bool epoch_is_whole_ = false;  // that the checkpoint stands in, by another drop_last
  bool asked_to_stop_ = false;   // by a callback
  TrainResult result_;
};

void Fit::prepare() {
  p_.batch = train_->batch();
  p_.examples = train_->dataset().size();
  p_.data = o_.data_digest;
  p_.steps_per_epoch = train_->batches();
  p_.loader_seed = train_->state().seed;
  lay_out_steps();
  if (o_.run_dir.empty()) return;
  folder_ = std::make_unique<RunFolder>(o_.run_dir, o_.resume);
  result_.run_dir = folder_->path();
  if (o_.resume) {
    if (std::optional<Checkpoint> checkpoint = load_latest_checkpoint(
            folder_->path(), [this](const Checkpoint& c) { require_whole(c); }))
      restore(std::move(*checkpoint));
    else
      require_nothing_kept();
  }
  // The same engines as before: another order of sums would give other bits.
  engines_ = std::make_unique<TuneRecord>(o_.resume ? load_engines(folder_->path()) : TuneTable());
  engines_saved_ = engines_->table().size();
  // By its settings the run goes on: they are there last.
  if (!o_.tokenizer_json.empty()) io::write_file(folder_->file(kTokenizerFile), o_.tokenizer_json);
  if (o_.write_beside) o_.write_beside(folder_->path());
  if (!o_.settings_toml.empty()) io::write_file(folder_->file("settings.toml"), o_.settings_toml);
  folder_->open_logs(p_);
  folder_->append_json(
      json_begin_line(o_.resume ? "resume" : "start", p_, total_, t_.optimizer->describe()));
  if (last_saved_ < 0) checkpoint_aside();
}

void Fit::lay_out_steps() {
  total_ = p_.steps_of_epochs(o_.epochs);
  if (o_.max_steps > 0) total_ = std::min(total_, o_.max_steps);
  schedule_ = schedule_of(o_, total_, p_.steps_per_epoch);
}

// A name that is damaged is found before anything is taken from the checkpoint. What a later stage
// has is known when that begins; the optimizer begins with zeros where a group has no state yet.
void Fit::require_whole(const Checkpoint& checkpoint) const {
  if (stage_due(checkpoint.progress)) return;
  require_tensors(t_.net.state_dict(), checkpoint.model_state(), checkpoint.path);
  const StateDict saved = checkpoint.optimizer_state();
  StateDict known = t_.optimizer->state_dict();
  std::erase_if(known, [&](const auto& entry) { return saved.count(entry.first) == 0; });
  require_tensors(known, saved, checkpoint.path);
}

// A run that was stopped before its first checkpoint begins anew; one that has come further would
// write over what it made.
void Fit::require_nothing_kept() const {
  for (const char* name : {"model.safetensors", "best.safetensors"})
    if (std::filesystem::exists(folder_->file(name)))
      throw IoError(cat(folder_->path(),
                        " has lost its checkpoints, so it would begin anew and "
                        "write over ",
                        name, ": start a new run in another folder"));
}

// With drop_last changed an epoch has a step more or less: from the one under way on, whose batches
// so far are the same.
void Fit::take_other_cut(const Progress& saved) {
  const std::int64_t done = saved.steps_behind_epochs(saved.step);
  p_.first_epoch = saved.epochs_in(saved.step);
  p_.first_step = saved.step - done;
  epoch_is_whole_ = done > 0 && done == p_.steps_per_epoch;
}

void Fit::restore(Checkpoint checkpoint) {
  Progress& saved = checkpoint.progress;
  const std::int64_t full = p_.examples / p_.batch, all = full + (p_.examples % p_.batch > 0);
  const bool by_drop_last = saved.steps_per_epoch == full || saved.steps_per_epoch == all;
  if (saved.batch != p_.batch || saved.examples != p_.examples || !by_drop_last)
    throw ValueError(
        cat(checkpoint.path, " was made with batches of ", saved.batch, " from ", saved.examples,
            " examples (", saved.steps_per_epoch, " an epoch), not ", p_.batch, " from ",
            p_.examples, " (", p_.steps_per_epoch,
            "): resume with the data and the batch size that the run was started with"));
  if (!saved.data.empty() && !p_.data.empty() && saved.data != p_.data)
    throw ValueError(
        cat(checkpoint.path, " was made with other training samples than the data gives now: ",
            data_change(saved.data, p_.data),
            ". Some of the samples that are now held out may have been trained on, so the run "
            "cannot go on: restore the data, or start a new run"));
  if (saved.steps_per_epoch != p_.steps_per_epoch) {
    take_other_cut(saved);
    saved.steps_per_epoch = p_.steps_per_epoch;
    saved.first_epoch = p_.first_epoch;
    saved.first_step = p_.first_step;
  }
  p_.first_epoch = saved.first_epoch;
  p_.first_step = saved.first_step;
  lay_out_steps();
  if (saved.step > total_)
    throw ValueError(
        cat(o_.run_dir, " has done ", saved.step, " steps (", saved.epoch_of(saved.step),
            " epochs), more than the ", total_,
            " that it is to end with: ask for as many epochs and steps at least, in all"));
  if (stage_due(saved)) change_stage();
  t_.net.load_state_dict(checkpoint.model_state());
  t_.optimizer->load_state_dict(checkpoint.optimizer_state());
  if (const LossScale* scale = t_.train_step->loss_scale()) {
    const auto stored = checkpoint.tensors.find(Checkpoint::kLossScale),
               good = checkpoint.tensors.find(Checkpoint::kGoodSteps);
    if (stored != checkpoint.tensors.end()) set_value(scale->scale, stored->second);
    if (good != checkpoint.tensors.end()) set_value(scale->good_steps, good->second);
  }
  schedule_->load_state(saved.schedule);
  Generator::current().set_state(saved.generator_seed, saved.generator_counter);
  p_ = std::move(checkpoint.progress);
  last_saved_ = checked_ = p_.step;
  // An epoch that was cut short by a limit of steps and now goes on is reported again when it is
  // whole.
  const std::int64_t under_way = epoch_is_whole_ ? p_.first_epoch + 1 : p_.epochs_in(p_.step) + 1;
  std::erase_if(p_.history,
                [&](const EpochReport& e) { return e.epoch >= under_way && p_.step < total_; });
  forget_lost_best();
}

// A run that ended by weights which cannot be read would train on and never end.
void Fit::forget_lost_best() {
  const EpochReport* top = best();
  if (!keeps_best() || top == nullptr) return;
  try {
    (void)io::load_safetensors(folder_->file("best.safetensors"));
  } catch (const Error& error) {
    if (top->step == p_.step) return save_best(top->epoch);  // the checkpoint has them
    log_message(LogLevel::Warning,
                cat("the best weights so far, of epoch ", top->epoch,
                    ", cannot be read; those of the best epoch to come are kept: ", error.what()));
    for (EpochReport& e : p_.history) e.best = false;
    best_lost_ = p_.history.back().epoch;
  }
}

// The programs and batches of the stage before are gone when the next one is asked for.
void Fit::change_stage() {
  staged_ = true;
  waited_earlier_ += batches_->waited();
  waited_before_ = 0;
  batches_.reset();
  t_.train_step.reset();
  t_.eval_step.reset();
  const Stage next = o_.next_stage();
  if (next.optimizer == nullptr || next.train == nullptr)
    throw ValueError("Trainer: next_stage gives no optimizer or no training loader");
  if (next.train->batch() != p_.batch || next.train->dataset().size() != p_.examples ||
      next.train->batches() != p_.steps_per_epoch)
    throw ValueError(cat("Trainer: next_stage gives batches of ", next.train->batch(), " from ",
                         next.train->dataset().size(), " examples where the run has ", p_.batch,
                         " from ", p_.examples, ": they must be as many"));
  train_ = next.train;
  validation_ = next.validation;
  test_ = next.test;
  batches_.emplace(*train_);
  require_trains_on_last_batch(next.net, *train_);
  modes_.emplace_front(next.net);  // what both stages have is left as the first found it
  t_.begin(next);
}

// What the optimizers have in common, and the scale of the loss, is as it was.
void Fit::go_on_in_next_stage() {
  const StateDict before = t_.optimizer->state_dict();
  std::optional<LossScale> scale;
  if (t_.train_step->loss_scale() != nullptr) scale = *t_.train_step->loss_scale();
  change_stage();
  t_.optimizer->load_state_dict(before);
  if (const LossScale* own = t_.train_step->loss_scale(); own != nullptr && scale) {
    set_value(own->scale, scale->scale);
    set_value(own->good_steps, scale->good_steps);
  }
  if (folder_ != nullptr)
    folder_->append_json(json_event_line("stage", p_.step, t_.optimizer->describe()));
  open_steps();
}

void Fit::open_steps() {
  t_.train_step->reopen();
  t_.train_step->use(resident_set(*train_));
  t_.train_step->require_classes(o_.classes ? train_->dataset().classes() : 0);
  watch_finite();
  at_once_ = std::max(o_.steps_per_launch, 1);
  ahead_ = 1;
}

const EpochReport* Fit::best() const {
  const EpochReport* found = nullptr;
  for (const EpochReport& e : p_.history)
    if (e.best) found = &e;
  return found;
}

bool Fit::early_stop() const {
  if (asked_to_stop_) return true;
  const EpochReport* top = best();
  if (o_.early_stopping <= 0 || p_.history.empty()) return false;
  // Of a run whose every figure is NaN none is the best: it counts from the first one on.
  const int since = top != nullptr ? top->epoch : std::max({o_.evaluate_every, best_lost_, 1});
  return p_.history.back().epoch - since >= o_.early_stopping;
}

bool Fit::due() const {
  if (folder_ == nullptr) return false;
  if (o_.checkpoint_steps > 0 && begun() % o_.checkpoint_steps == 0) return true;
  return o_.checkpoint_seconds > 0 && seconds_since(last_checkpoint_) >= o_.checkpoint_seconds;
}

void Fit::save_engines() {
  const TuneTable table = engines_->table();
  if (table.size() == engines_saved_) return;
  io::write_file(folder_->file("engines.tune"), table.text());
  folder_->append_json(json_event_line("engines", p_.step, table.summary()));
  engines_saved_ = table.size();
}

// Where the run stands, on the device.
Checkpoint Fit::state() {
  p_.schedule = schedule_->state();
  p_.generator_seed = Generator::current().seed();
  p_.generator_counter = Generator::current().counter();
  Checkpoint out{"", {}, p_};
  for (const auto& [name, tensor] : t_.net.state_dict())
    out.tensors.emplace(Checkpoint::kModelPrefix + name, tensor);
  for (const auto& [name, tensor] : t_.optimizer->state_dict())
    out.tensors.emplace(Checkpoint::kOptimizerPrefix + name, tensor);
  if (const LossScale* scale = t_.train_step->loss_scale()) {
    out.tensors.emplace(Checkpoint::kLossScale, scale->scale);
    out.tensors.emplace(Checkpoint::kGoodSteps, scale->good_steps);
  }
  return out;
}

// The host gets what is to be saved anyway.
bool is_finite(const Tensor& t) {
  return !is_floating(t.dtype()) || all(isfinite(on_host(t))).item() != 0;
}

// Gradients may overflow where the loss does not: what comes of that is no state to go on from.
bool is_finite(const StateDict& state) {
  return std::all_of(state.begin(), state.end(),
                     [](const auto& entry) { return is_finite(entry.second); });
}

void Fit::checkpoint() {
  if (folder_ == nullptr) return;
  settle_checkpoint();
  save_engines();  // before what was computed with them
  if (last_saved_ == p_.step) return;
  require_finite();
  if (!is_finite(t_.optimizer->state_dict()))
    fail(p_.step, "",
         cat("the loss is finite, but the optimizer's state is not, and is not saved",
             smaller_steps(t_.optimizer->lr())));
  const std::string path = folder_->save(state(), o_.keep_checkpoints);
  last_saved_ = p_.step;
  last_checkpoint_ = Clock::now();
  t_.tell([&](Callback& c) { c.on_checkpoint(path); });
}

// The first one, which nothing has been computed for yet: on a card the host has time to write it
// while the first steps are compiled and run.
void Fit::checkpoint_aside() {
  if (current_device().kind == Device::Kind::Cpu) return checkpoint();
  Checkpoint kept = state();
  for (auto& [name, tensor] : kept.tensors) tensor = to(tensor, Device()).eval();
  last_saved_ = p_.step;
  aside_ = in_background(
      [this, kept = std::move(kept)] { return folder_->save(kept, o_.keep_checkpoints); });
}

void Fit::settle_checkpoint() {
  if (!aside_.valid()) return;
  const std::string path = aside_.get();
  t_.tell([&](Callback& c) { c.on_checkpoint(path); });
}

void Fit::not_finite(const Queued& step, double loss) {
  const Tensor input = step.target.defined()
                           ? step.input
                           : t_.train_step->set()->input(select(step.input, 0, step.row)).eval();
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
         cat("the loss is ", loss, ", as the weights that training began with are not finite",
             first_not_finite() != nullptr ? cat(" (the first: ", first_not_finite()->name, ")")
                                           : ""));
  fail(p_.step + 1, culprit,
       cat("the loss is ", loss, "; ",
           culprit.empty() ? "every layer's output is finite, so the loss function made it"
                           : cat("the first place that is not finite is ", culprit),
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

// Buffers may hold infinities on purpose, as masks do.
void Fit::watch_finite() {
  kept_finite_.clear();
  const std::vector<Tensor>& parameters = t_.optimizer->parameters();
  for (std::size_t k = 0; k < parameters.size(); ++k)
    kept_finite_.push_back({t_.optimizer->parameter_names()[k], parameters[k]});
  for (nn::NamedTensor& buffer : t_.net.named_buffers())
    if (is_finite(buffer.tensor)) kept_finite_.push_back(std::move(buffer));
}

// Gradients that overflow beside a finite loss show in the next step's loss, which is too late for
// what is saved or handed over before it.
void Fit::require_finite() {
  if (checked_ == p_.step) return;
  if (const nn::NamedTensor* first = first_not_finite())
    fail(p_.step, first->name,
         cat("the loss is finite, but the step made weights or running statistics that are not "
             "(the first: ",
             first->name, "); they are not saved", smaller_steps(t_.optimizer->lr())));
  checked_ = p_.step;
}

// Null where all is finite that a step makes of finite values.
const nn::NamedTensor* Fit::first_not_finite() const {
  const auto found =
      std::find_if(kept_finite_.begin(), kept_finite_.end(),
                   [](const nn::NamedTensor& kept) { return !is_finite(kept.tensor); });
  return found == kept_finite_.end() ? nullptr : &*found;
}

// False at the end of the epoch's examples.
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
               figures = t_.train_step->begin(input, rates, mix_of(std::ssize(steps)));
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
  q.figures = t_.train_step->begin(q.input, q.target,
                                   o_.mixing.any() ? select(mix_of(1), 0, 0).eval() : Tensor());
  queue_.push_back(std::move(q));
  return true;
}

// What the next steps' batches are mixed by, on the device; undefined where nothing is.
Tensor Fit::mix_of(std::int64_t steps) const {
  if (!o_.mixing.any()) return {};
  const std::int64_t epoch = p_.epochs_in(begun()), batch = p_.steps_behind_epochs(begun());
  return mix_rows(o_.mixing, train_->input_shape(), {p_.loader_seed, epoch, 0}, batch, steps);
}

// As many whole batches as at_once_ allows, none beyond a step after which the host has something
// to do. Fewer come in powers of two: each number of runs is captured once.
std::int64_t Fit::steps_of_launch() const {
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

// From `more` steps behind those begun on, counted as if all epochs had been cut alike.
std::int64_t Fit::steps_until_curvature(std::int64_t more) const {
  const std::int64_t step =
      p_.epochs_in(begun()) * p_.steps_per_epoch + p_.steps_behind_epochs(begun()) + more;
  return Curvature::steps_until_due(step, p_.batch, p_.steps_per_epoch);
}

// Reads what has been begun. On a card about a tenth of a second of steps is then begun ahead, so
// that it need not wait for the host after every one.
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
  // In the mean of its epoch a step counts as in an evaluation: by its targets that count.
  const double weight = outcome.counted.value_or(static_cast<double>(step.items));
  p_.loss_sum += outcome.loss * weight;
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

// Of the epoch so far; sequences have a target for each token.
std::optional<double> Fit::train_accuracy() const {
  const data::Dataset& set = train_->dataset();
  if (!o_.classes || set.classes() == 0 || (!o_.tokens && set.target_shape().rank() > 0)) return {};
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
  r.mean_loss = p_.loss_sum / p_.weight;
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

// Trains to the end of the epoch under way. False when it was interrupted.
bool Fit::epoch() {
  train_->set_state(
      {p_.loader_seed, p_.epochs_in(p_.step), p_.steps_behind_epochs(p_.step) * p_.batch});
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
    // Asked after the step was reported, as `stop` may depend on a callback.
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
  r.train_loss = p_.loss_sum / p_.weight;
  r.train_accuracy = train_accuracy();
  r.lr = t_.optimizer->lr();
  r.seconds = p_.seconds;
  r.items_per_s = static_cast<double>(p_.items) / std::max(p_.seconds, 1e-9);
  r.data_seconds = batches_->waited() - waited_before_;
  waited_before_ += r.data_seconds;
  if (r.epoch % std::max(o_.evaluate_every, 1) == 0 || p_.step == total_) validate(r);
  note_best(r);
  schedule_->observe(r.validation_loss.value_or(r.train_loss));
  p_.history.push_back(r);
  p_.loss_sum = p_.weight = p_.seconds = 0;
  p_.correct = p_.items = p_.targets = 0;
  if (folder_ != nullptr) {
    folder_->append_csv(csv_line(r));
    folder_->append_json(json_line(r));
  }
  checkpoint();
  t_.tell([&](Callback& c) {
    c.on_epoch(r);
    asked_to_stop_ = c.should_stop(r) || asked_to_stop_;
  });
}

// Samples that are drawn anew come as in the first epoch each time, also after a resume.
void Fit::validate(EpochReport& r) {
  if (validation_ == nullptr) return;
  validation_->set_epoch(0);
  const Evaluation evaluation = t_.evaluate(*validation_, data::Split::Validation);
  evaluation_seconds_ = evaluation.seconds;
  r.validation_loss = evaluation.loss;
  if (has_accuracy(*validation_)) r.validation_accuracy = evaluation.accuracy;
  if (!evaluation.errors) return;
  r.validation_mae = evaluation.errors->mae();
  r.validation_r2 = evaluation.errors->r2();
}

TestReport Fit::measure_test(const EpochReport& kept) {
  test_->set_epoch(0);
  const Evaluation evaluation = t_.evaluate(*test_, data::Split::Test);
  TestReport out;
  out.epoch = kept.epoch;
  out.step = kept.step;
  out.samples = evaluation.items;
  out.loss = evaluation.loss;
  if (has_accuracy(*test_)) out.accuracy = evaluation.accuracy;
  if (evaluation.errors) {
    out.mae = evaluation.errors->mae();
    out.r2 = evaluation.errors->r2();
  }
  return out;
}

// A run that has ended before has its figures in its log: of the same weights they are not measured
// again.
void Fit::test(const EpochReport& kept) {
  if (test_ == nullptr) return;
  result_.test = folder_ != nullptr ? folder_->test_report(kept.step) : std::nullopt;
  if (result_.test) return;
  result_.test = measure_test(kept);
  if (folder_ != nullptr) folder_->append_json(json_line(*result_.test));
}

void Fit::save_best(int epoch) const {
  io::save_checked_safetensors(folder_->file("best.safetensors"), t_.net.state_dict(),
                               metadata({{"epoch", cat(epoch)}}));
}

void Fit::note_best(EpochReport& r) {
  if (validation_ != nullptr && !r.validation_loss) return;  // not measured, so not compared
  const EpochReport* top = best();
  // Accuracies of scores that are NaN are numbers.
  const bool known = !std::isnan(monitored(r).value) && !std::isnan(r.validation_loss.value_or(0));
  r.best = known && (top == nullptr || monitored(r).better_than(monitored(*top)));
  if (!r.best || !keeps_best()) return;
  require_finite();
  if (folder_ != nullptr)
    save_best(r.epoch);
  else
    best_weights_ = copy(t_.net.state_dict());
}

io::Metadata Fit::metadata(io::Metadata more) const {
  more["format"] = "pt";
  for (const auto& [key, value] : o_.model_metadata) more[key] = value;
  return more;
}

// Leaves the weights that are kept in the network, measures them and writes the model's file.
void Fit::finish() {
  t_.net.eval();
  const EpochReport* top = best();
  const bool ended = result_.reason != StopReason::Interrupted;
  const bool chosen = keeps_best() && top != nullptr;
  if (ended && chosen && top->step != p_.step) {
    if (folder_ != nullptr)
      best_weights_ = io::load_safetensors(folder_->file("best.safetensors")).tensors;
    if (!best_weights_.empty()) t_.net.load_state_dict(best_weights_);
  }
  if (top != nullptr) {
    result_.best = monitored(*top).value;
    result_.best_figure = monitored(*top).name;
    result_.best_epoch = top->epoch;
  }
  if (ended) {
    EpochReport kept;
    kept.epoch = chosen ? top->epoch : p_.epoch_of(p_.step);
    kept.step = chosen ? top->step : p_.step;
    result_.kept_epoch = kept.epoch;
    test(kept);
  }
  if (validation_ != nullptr)
    result_.validation_samples =
        validation_->options().drop_last
            ? validation_->dataset().size() / validation_->batch() * validation_->batch()
            : validation_->dataset().size();
  result_.epochs = p_.history;
  result_.steps = p_.step;
  result_.seconds = seconds_since(start_);
  result_.data_seconds = waited_earlier_ + batches_->waited();
  if (folder_ == nullptr) return;
  folder_->rewrite_csv(p_.history);
  if (ended)
    io::save_checked_safetensors(folder_->file("model.safetensors"), t_.net.state_dict(),
                                 metadata({{"steps", cat(p_.step)}}));
  folder_->append_json(json_event_line(ended ? "end" : "interrupted", p_.step));
}

namespace {

// A class has one number in all parts, or figures of one part would be of other classes.
void require_same_classes(const data::Loader& train, const data::Loader* other, data::Split part) {
  if (other == nullptr || !train.dataset().text_unit().empty()) return;
  const std::vector<std::string> known = train.dataset().class_names(),
                                 given = other->dataset().class_names();
  for (std::size_t c = 0; c < std::min(known.size(), given.size()); ++c)
    if (known[c] != given[c])
      throw ValueError(cat("Trainer: class ", c, " is '", known[c], "' in the training part and '",
                           given[c], "' in the ", data::name(part),
                           " part: open both with the same class names (CsvOptions::class_names, "
                           "CsvOptions::columns)"));
}

}  // namespace

TrainResult Fit::run() {
  require_same_classes(*train_, validation_, data::Split::Validation);
  require_same_classes(*train_, test_, data::Split::Test);
  if (t_.optimizer != t_.first.optimizer) t_.begin(t_.first);  // of an earlier call
  require_trains_on_last_batch(t_.net, *train_);
  prepare();
  open_steps();
  last_checkpoint_ = Clock::now();
  // A run that goes on has no final model yet: an older one would pass for it.
  if (folder_ != nullptr && !finished())
    std::filesystem::remove(folder_->file("model.safetensors"));
  t_.tell([&](Callback& c) {
    c.on_network(t_.net);
    c.on_start(p_.step, total_);
  });
  if (epoch_is_whole_) end_epoch();
  while (!finished()) {
    if (stage_due(p_) && !stop_asked()) go_on_in_next_stage();
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

}  // namespace

int steps_in_launch(double seconds) {
  constexpr double kSecondsOfLaunch = 4e-3, kMost = 32;
  const double steps = std::ceil(std::clamp(kSecondsOfLaunch / seconds, 1.0, kMost));
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(steps)));
}

Trainer::Trainer(nn::AnyModule net, nn::Loss loss, optim::Optimizer& optimizer,
                 TrainOptions options) {
  if (options.epochs < 1)
    throw ValueError(cat("Trainer: epochs is ", options.epochs, ", must be at least 1"));
  if (options.steps_per_launch < 0)
    throw ValueError(cat("Trainer: steps_per_launch is ", options.steps_per_launch,
                         ", must be at least 1, or 0 for a choice by time"));
  if (options.stage_epochs < 0 || (options.stage_epochs > 0 && !options.next_stage))
    throw ValueError(cat(
        "Trainer: stage_epochs is ", options.stage_epochs,
        options.stage_epochs < 0 ? ", must be at least 0" : ", and next_stage an empty function"));
  if (options.resume && options.run_dir.empty())
    throw ValueError("Trainer: resume needs a run_dir");
  if (!loss)
    throw ValueError("Trainer: the loss is an empty function: give it one, as nn::MSELoss()");
  for (const std::shared_ptr<Callback>& callback : options.callbacks)
    if (callback == nullptr) throw ValueError("Trainer: one of the callbacks is a null pointer");
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
  loader.set_epoch(0);  // samples that are drawn anew are the same each time
  return impl_->evaluate(loader, data::Split::Test);
}

Tensor Trainer::predict(const Tensor& inputs) {
  const ContextScope scope(impl_->context);
  const KeptModes modes(impl_->net);
  impl_->net.eval();
  return impl_->net(inputs).eval();
}

const nn::AnyModule& Trainer::net() const { return impl_->net; }

}  // namespace tenon::train
