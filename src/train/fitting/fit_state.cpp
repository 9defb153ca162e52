// Files of a run in its folder, and resuming from them.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/ops.h>

#include "base/background.h"
#include "base/make_error.h"
#include "base/str.h"
#include "base/system/log.h"
#include "io/tensors/safetensors.h"
#include "train/adapting/tensor_names.h"
#include "train/batches/device_text.h"
#include "train/batches/lengths.h"
#include "train/fitting/fit.h"
#include "train/runs/data_digest.h"
#include "train/runs/epoch_table.h"
#include "train/runs/model_file.h"

namespace tenon::train {

void Fit::prepare() {
  p_.batch = train_->batch();
  p_.examples = train_->epoch_size();
  p_.data = o_.data_digest;
  p_.teacher = o_.teacher_digest;
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
  // Uses the engine choices of the earlier session, because another engine may sum in another order
  // and give other bits.
  engines_ = std::make_unique<TuneRecord>(o_.resume ? load_engines(folder_->path()) : TuneTable());
  engines_saved_ = engines_->table().size();
  if (!o_.tokenizer_json.empty()) io::write_file(folder_->file(kTokenizerFile), o_.tokenizer_json);
  if (o_.write_extra_files) o_.write_extra_files(folder_->path());
  folder_->open_logs(p_, own_metrics(task_));
  folder_->append_json(json_begin_line(o_.resume ? "resume" : "start", p_, total_,
                                       t_.optimizer->describe(), device_text()));
  if (last_saved_ < 0)
    checkpoint_in_background();
  else
    write_settings();
}

// A folder with settings counts as a run that can be resumed, so they are written last.
void Fit::write_settings() const {
  if (!o_.settings_toml.empty()) io::write_file(folder_->file("settings.toml"), o_.settings_toml);
}

void Fit::lay_out_steps() {
  total_ = p_.steps_of_epochs(o_.epochs);
  if (o_.max_steps > 0) total_ = std::min(total_, o_.max_steps);
  schedule_ = schedule_of(o_, total_, p_.steps_per_epoch);
}

// Finds missing or damaged names before anything is taken from the checkpoint. The tensors of a
// later stage are not known yet and are checked when the stage begins. A parameter group without
// state is permitted: the optimizer starts it with zeros.
void Fit::require_whole(const Checkpoint& checkpoint) const {
  if (stage_due(checkpoint.progress)) return;
  require_tensors(t_.net.state_dict(), checkpoint.model_state(), checkpoint.path);
  const StateDict saved = checkpoint.optimizer_state();
  StateDict known = t_.optimizer->state_dict();
  std::erase_if(known, [&](const auto& entry) { return saved.count(entry.first) == 0; });
  require_tensors(known, saved, checkpoint.path);
}

// A run that was stopped before its first checkpoint starts again from step 0. If the folder
// already has results, the run would overwrite them, so it is refused.
void Fit::require_nothing_kept() const {
  for (const char* name : {"model.safetensors", "best.safetensors"})
    if (std::filesystem::exists(folder_->file(name)))
      throw make_error<IoError>(
          FileName{folder_->path()},
          " has lost its checkpoints, so training would start over and overwrite ", name,
          ": start a new run in another folder");
}

// If drop_last changed, epochs have one step more or less. This takes effect in the current epoch,
// whose earlier batches are the same in both cases.
void Fit::take_other_cut(const Progress& saved) {
  const std::int64_t done = saved.steps_behind_epochs(saved.step);
  p_.first_epoch = saved.epochs_in(saved.step);
  p_.first_step = saved.step - done;
  epoch_is_whole_ = done > 0 && done == p_.steps_per_epoch;
}

void Fit::require_same_training(const Checkpoint& checkpoint) const {
  const Progress& saved = checkpoint.progress;
  const std::int64_t full = p_.examples / p_.batch, all = full + (p_.examples % p_.batch > 0);
  const bool by_drop_last = saved.steps_per_epoch == full || saved.steps_per_epoch == all;
  if (saved.batch != p_.batch || saved.examples != p_.examples || !by_drop_last)
    throw make_error<ValueError>(
        FileName{checkpoint.path}, " was made with batches of ", saved.batch, " from ",
        saved.examples, " samples (", saved.steps_per_epoch, " an epoch), not ", p_.batch, " from ",
        p_.examples, " (", p_.steps_per_epoch, "): resume with the original data and batch size");
  if (!saved.data.empty() && !p_.data.empty() && saved.data != p_.data)
    throw make_error<ValueError>(
        FileName{checkpoint.path},
        " was written with other training samples than the data has now: ",
        data_change(saved.data, p_.data),
        ". Samples that are now held out may have been trained on, so the run "
        "cannot be resumed: restore the data, or start a new run");
  if (!saved.teacher.empty() && !p_.teacher.empty() && saved.teacher != p_.teacher)
    throw make_error<ValueError>(
        FileName{checkpoint.path},
        " was written with another teacher: its weights have changed since. The "
        "rest of the run would be distilled from another network: "
        "restore the teacher's file, or start a new run");
}

void Fit::restore(Checkpoint checkpoint) {
  require_same_training(checkpoint);
  Progress& saved = checkpoint.progress;
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
    throw make_error<ValueError>(
        FileName{o_.run_dir}, " has done ", saved.step, " steps (", saved.epoch_of(saved.step),
        " epochs), more than the ",
        o_.max_steps > 0 && saved.step > o_.max_steps
            ? cat(o_.max_steps, " steps")
            : cat(o_.epochs, o_.epochs == 1 ? " epoch" : " epochs"),
        " that the run should end with: set at least as many epochs and steps, in all");
  if (stage_due(saved)) change_stage();
  t_.net.load_state_dict(checkpoint.model_state());
  t_.optimizer->load_state_dict(checkpoint.optimizer_state());
  if (t_.average) {
    const StateDict average = checkpoint.part(Checkpoint::kAveragePrefix);
    average.empty() ? t_.average->restart() : t_.average->load_state_dict(average);
  }
  if (optim::GradientAccumulator* sums = t_.train_step->accumulator())
    if (const StateDict kept = checkpoint.part(Checkpoint::kSumsPrefix); !kept.empty())
      sums->load_state_dict(kept);
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
  // If a step limit ended an epoch early and the epoch now continues, its report is removed. The
  // complete epoch is reported again.
  const std::int64_t under_way = epoch_is_whole_ ? p_.first_epoch + 1 : p_.epochs_in(p_.step) + 1;
  std::erase_if(p_.history,
                [&](const EpochReport& e) { return e.epoch >= under_way && p_.step < total_; });
  forget_lost_best();
}

// If the best weights cannot be read, no epoch counts as the best. Otherwise a run that ended with
// these weights would continue to train and never end.
void Fit::forget_lost_best() {
  const EpochReport* top = best();
  if (!keeps_best() || top == nullptr) return;
  try {
    (void)io::load_safetensors(folder_->file("best.safetensors"));
  } catch (const Error& error) {
    if (top->step == p_.step) return save_best(top->epoch);  // the checkpoint has the same weights
    log_message(
        LogLevel::Warning,
        cat("the best weights so far, of epoch ", top->epoch,
            ", cannot be read; the weights of the next best epoch will be kept: ", error.what()));
    for (EpochReport& e : p_.history) e.best = false;
    best_lost_ = p_.history.back().epoch;
  }
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

// The state of the run, on the device.
Checkpoint Fit::state() {
  p_.schedule = schedule_->state();
  p_.generator_seed = Generator::current().seed();
  p_.generator_counter = Generator::current().counter();
  Checkpoint out{"", {}, {}, o_.settings_toml};
  static_cast<StepState&>(out.progress) = p_;
  out.epochs = add_epochs(p_.history, out.tensors);
  for (const auto& [key, value] : o_.model_metadata)
    if (key == kModelKey) out.model = value;
  const auto add = [&out](const char* prefix, const StateDict& state) {
    for (const auto& [name, tensor] : state) out.tensors.emplace(prefix + name, tensor);
  };
  add(Checkpoint::kModelPrefix, t_.net.state_dict());
  add(Checkpoint::kOptimizerPrefix, t_.optimizer->state_dict());
  if (t_.average) add(Checkpoint::kAveragePrefix, t_.average->state_dict());
  if (const optim::GradientAccumulator* sums = t_.train_step->accumulator())
    add(Checkpoint::kSumsPrefix, sums->state_dict());
  if (const LossScale* scale = t_.train_step->loss_scale()) {
    out.tensors.emplace(Checkpoint::kLossScale, scale->scale);
    out.tensors.emplace(Checkpoint::kGoodSteps, scale->good_steps);
  }
  return out;
}

void Fit::checkpoint() {
  if (folder_ == nullptr) return;
  settle_checkpoint();
  save_engines();  // before results that depend on them
  if (last_saved_ == p_.step) return;
  require_finite();
  if (!is_finite(t_.optimizer->state_dict()))
    fail(p_.step, "",
         cat("the loss is finite, but the optimizer state is not, so it is not saved",
             smaller_steps(t_.optimizer->lr())));
  if (p_.step > 0) before_results();
  const std::string path = folder_->save(state(), o_.keep_checkpoints);
  last_saved_ = p_.step;
  last_checkpoint_ = Clock::now();
  t_.tell([&](Callback& c) { c.on_checkpoint(path); });
}

// Writes the first checkpoint. On a GPU another thread writes it while the first steps are compiled
// and run.
void Fit::checkpoint_in_background() {
  if (current_device().kind == Device::Kind::Cpu) {
    checkpoint();
    return write_settings();
  }
  Checkpoint kept = state();
  for (auto& [name, tensor] : kept.tensors) tensor = to(tensor, Device()).compute();
  last_saved_ = p_.step;
  aside_ = in_background([this, kept = std::move(kept)] {
    std::string path = folder_->save(kept, o_.keep_checkpoints);
    write_settings();
    return path;
  });
}

void Fit::settle_checkpoint() {
  if (!aside_.valid()) return;
  const std::string path = aside_.get();
  t_.tell([&](Callback& c) { c.on_checkpoint(path); });
}

void Fit::save_best(int epoch) const {
  before_results();
  io::save_checked_safetensors(folder_->file("best.safetensors"), t_.kept_net().state_dict(),
                               metadata({{"epoch", cat(epoch)}}));
}

io::Metadata Fit::metadata(io::Metadata more) const {
  more["format"] = "pt";
  for (const auto& [key, value] : o_.model_metadata) more[key] = value;
  return more;
}

}  // namespace tenon::train
