// Runs by folder: starting and resuming.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/shapes_only.h>
#include <tenon/train.h>

#include "base/background.h"
#include "base/make_error.h"
#include "base/str.h"
#include "device/parse.h"
#include "io/file.h"
#include "io/tensors/safetensors.h"
#include "run/tuning/tune.h"
#include "train/adapting/lora.h"
#include "train/batches/resident.h"
#include "train/fitting/step.h"
#include "train/runs/class_names.h"
#include "train/runs/data_digest.h"
#include "train/runs/model_file.h"
#include "train/runs/run_data.h"
#include "train/runs/run_folder.h"
#include "train/runs/sample_record.h"
#include "train/sessions/data_record.h"
#include "train/sessions/planned.h"
#include "train/sessions/session.h"
#include "train/settings/images.h"
#include "train/settings/published.h"
#include "train/settings/registered.h"
#include "train/settings/settings.h"

namespace tenon::train {
namespace {

namespace fs = std::filesystem;

// Plans the step of a run in the background, so that libraries start and kernels compile while
// weights are initialized and data is copied to the GPU. The run then finds this plan instead of
// planning again. Errors are ignored here: the run reports them. The network of this plan draws
// from its own generator, so the run's random numbers do not depend on this thread. `engines` are
// the engine choices of a resumed run.
std::optional<Plan> plan_ahead(Context context, const ResolvedRun& run, const DataSets& sets,
                               const TuneTable& engines) {
  try {
    context.generator = Generator(run.compute.seed);
    const ContextScope scope(context);
    const TuneRecord record(engines);
    const ShapesOnly shapes;
    Session session(run, sets);
    TrainStep step(session.net, session.loss, *session.optimizer, session.options("", false));
    step.use(resident_set(*session.train));
    return step.plan(*session.train);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Starts plan_ahead() if the step runs on a GPU. Timed measurements need the GPU alone, so a tuning
// run plans later. `resumed` is the folder of a resumed run.
std::future<std::optional<Plan>> start_planning(const ResolvedRun& run, const DataSets& sets,
                                                const std::string& resumed) {
  if (current_device().kind == Device::Kind::Cpu || tune() == Tune::Write) return {};
  return in_background([context = current_context(), &run, &sets,
                        engines = resumed.empty() ? TuneTable() : load_engines(resumed)] {
    return plan_ahead(context, run, sets, engines);
  });
}

// The model file contains the network as published, so a reader needs no adapters. The adapters are
// written to a file beside it, in the format of peft.
void write_without_adapters(const Session& session, const std::string& dir) {
  const std::string file = dir + "/model.safetensors";
  const io::Metadata metadata = io::inspect_safetensors(file).metadata;
  io::save_checked_safetensors(
      dir + "/adapters.safetensors", adapter_state(*session.adapted),
      {{"lora", session.run.settings.lora}, {"base", session.run.settings.weights}});
  io::save_checked_safetensors(file, merged_state(*session.adapted), metadata);
}

// Refuses settings that have no effect because another setting is missing. Only new runs are
// checked: resuming an older run with such settings computes the same results as before.
void refuse_settings_without_effect(const Settings& settings, const DataSource& source) {
  const Settings usual;
  const auto refuse = [&](const char* key, const char* why) {
    if (settings.get(key) != usual.get(key))
      throw ValueError(cat("setting '", key, "' is ", settings.get(key), ", but ", why,
                           ", or use the default ", usual.get(key)));
  };
  if (settings.teacher.empty())
    for (const char* key : {"temperature", "distill_weight"})
      refuse(key, "there is no teacher: give the run of a trained network, as in --teacher RUN");
  if (settings.freeze.empty())
    for (const char* key : {"frozen_variants", "keep_frozen"})
      refuse(key, "no layer is frozen: name layers, as in --freeze features");
  if (!source.has_images())
    for (const char* key : {"broken", "augment_on"})
      refuse(key, "the data holds no image files: give some, as in --data folder:DIR");
  if (settings.average == "none")
    for (const char* key : {"average_decay", "average_start"})
      refuse(key, "no average is kept: choose one, as in --set average=ema");
  if (settings.average == "swa")
    refuse("average_decay", "swa gives all epochs equal weight: choose --set average=ema");
  if (settings.get("tune") == "write" && parse_device(settings.device).kind == Device::Kind::Cpu)
    refuse("tune", "it needs a GPU: choose one, as in --device cuda");
}

// The number of samples in each part, and the notes of their readers. Parts of one file have the
// same notes, which are listed once.
std::vector<std::string> notes_on_data(const DataSets& sets) {
  const auto count = [](const std::shared_ptr<const data::Dataset>& set) {
    return set == nullptr ? std::string("none") : cat(set->size());
  };
  std::vector<std::string> out{cat("samples: ", count(sets.train), " for training, ",
                                   count(sets.validation), " for validation, ", count(sets.test),
                                   " for testing")};
  if (const auto table = sets.train->table(); table != nullptr && !table->label_text().empty())
    out.push_back(cat("label: ", table->label_text()));
  for (const auto& set : {sets.train, sets.validation, sets.test}) {
    if (set == nullptr) continue;
    for (const Note& note : set->notes())
      if (const std::string text = cat("note: ", to_string(note));
          std::find(out.begin(), out.end(), text) == out.end())
        out.push_back(text);
  }
  return out;
}

// Notes for a test part with files of its own, which should contain no training samples. Parts of
// one file may have equal rows.
Notes notes_on_test(const Settings& settings, const std::optional<SeenSamples>& seen) {
  if (!seen || seen->seen == 0) return {};
  Note note = note_on_seen(*seen, "the test part", settings.allow == "seen");
  note.first = settings.data;
  return {note};
}

RunOptions with_own_callbacks(RunOptions options, const Settings& settings,
                              const std::string& dir) {
  for (std::shared_ptr<Callback>& own : make_callbacks(settings, dir))
    options.callbacks.push_back(std::move(own));
  return options;
}

std::vector<std::string> broken_samples(const DataSets& sets) {
  std::vector<std::string> out;
  for (const auto& set : {sets.train, sets.validation, sets.test}) {
    if (set == nullptr) continue;
    const std::vector<std::string> names = set->broken();
    out.insert(out.end(), names.begin(), names.end());
  }
  return out;
}

TrainResult fit(const ResolvedRun& run, const std::string& dir, bool resume,
                const RunOptions& given) {
  const Settings& settings = run.settings;
  const RunOptions options = with_own_callbacks(given, settings, dir);
  // Opens the device while data is read, because starting a driver takes about as long. Errors of
  // the device are reported when the context is made.
  const std::future<Device> starting =
      in_background([&settings] { return device(settings.device); });
  const DataSets sets = open_data(run, resume ? dir : "");
  if (resume) require_classes_of_run(dir, *sets.train, settings.data);
  const bool resumes = resume && has_checkpoint(dir);
  const ContextScope scope(context_of(run));
  const bool known_ahead = run.frozen.layers.empty() && settings.teacher.empty();
  std::future<std::optional<Plan>> planning;  // holds the plan while the run needs it
  if (known_ahead) planning = start_planning(run, sets, resume ? dir : "");
  std::int64_t measured = known_ahead ? plan_within_limit(run, sets) : 0;
  Session session(run, sets, resumes);
  if (!run.frozen.layers.empty())
    session.keep_frozen(resumes ? load_latest_checkpoint(dir) : std::nullopt, options);
  if (!known_ahead) measured = plan_within_limit(session);
  if (measured > 0) session.measure_in_batches(measured);
  DataRecord record(sets, resume ? dir : "");
  const bool own_test = has_test_files(run.data);
  if (settings.strict) {
    refuse_notes(record.changes());
    if (own_test) refuse_notes(notes_on_test(settings, record.test_seen()));
  }
  TrainOptions o = session.options(dir, resume);
  o.data_digest = data_digest(*sets.train);
  if (!o.data_digest.empty()) o.model_metadata.emplace_back(kDataKey, o.data_digest);
  o.write_extra_files = [&record](const std::string& folder) { record.begin(folder); };
  o.before_results = [&record] { record.finish(); };
  o.callbacks = options.callbacks;
  session.tell = [&options](const std::string& note) {
    for (const auto& callback : options.callbacks) callback->on_note(note);
  };
  const std::vector<std::string> told = notes_on_data(sets);
  for (const std::string& note : told) session.tell(note);
  for (const std::string& note : session.notes) session.tell(note);
  for (const Note& note : record.changes()) session.tell(cat("note: ", to_string(note)));
  o.stop = options.stop;
  Trainer trainer(session.net, session.loss, *session.optimizer, std::move(o));
  TrainResult result = trainer.fit(*session.train, session.validation.get(), session.test.get());
  // All samples have been read, so their notes are complete.
  for (const std::string& note : notes_on_data(sets))
    if (std::find(told.begin(), told.end(), note) == told.end()) session.tell(note);
  result.broken = broken_samples(sets);
  if (result.test) {
    result.test_seen = record.test_seen();
    if (own_test)
      for (const Note& note : notes_on_test(settings, result.test_seen))
        session.tell(cat("note: ", to_string(note)));
  }
  if (session.adapted && result.reason != StopReason::Interrupted && !dir.empty())
    write_without_adapters(session, dir);
  return result;
}

// Settings that a resumed run may change: results do not depend on them, or (epochs, early
// stopping) they are meant to be changed. If the data is at another place, the number of samples is
// checked.
constexpr const char* kFreeToChange[] = {
    "epochs",     "max_steps",   "early_stopping",   "device",           "threads",
    "workers",    "data",        "keep_checkpoints", "checkpoint_steps", "checkpoint_seconds",
    "augment_on", "keep_frozen", "frozen_cache",     "drop_last",        "strict",
    "allow",      "callbacks",   "plugins"};

bool is_free_to_change(const std::string& key) {
  return std::find(std::begin(kFreeToChange), std::end(kFreeToChange), key) !=
         std::end(kFreeToChange);
}

}  // namespace

TrainResult start_run(const Settings& settings, const std::string& dir, const RunOptions& options) {
  require_in_range(settings);
  DataSource source(settings.data);
  refuse_settings_without_effect(settings, source);
  Settings known = as_published(settings);
  known.plugins = plugins_text();
  source = with_context_length(source, SettingsNetwork::keep(known).info());
  known.data = source.text;
  return fit(ResolvedRun(std::move(known), std::move(source)), dir, false, options);
}

void override_settings(Settings& settings,
                       const std::vector<std::pair<std::string, std::string>>& overrides) {
  for (const auto& [key, value] : overrides) {
    const std::string before = settings.get(key);
    settings.set(key, value);
    const bool free = settings.get(key) == before || is_free_to_change(key);
    const auto reads_alike = [&](const DataSource& data) {
      const models::Info& info = SettingsNetwork::keep(settings).info();
      const DataSource own(before);
      return have_same_reading(own, data) ||
             have_same_reading(own, with_context_length(data, info));
    };
    if (key == "data" && !reads_alike(DataSource(value)))
      throw ValueError(
          cat("setting 'data' of the run is '", before, "' and cannot become '", value,
              "' when it is resumed: the path may change, but not how the files are read and "
              "split. Give the same options after the path, or start a new run"));
    if (!free)
      throw ValueError(cat("setting '", key, "' of the run is '", before, "' and cannot become '",
                           value, "' when it is resumed: start a new run"));
  }
}

namespace {

// Compares settings.toml with the settings of the newest checkpoint. An edit that changes results
// is refused, because the rest of the run would not fit its beginning. A permitted change is
// reported, because it may be unintended.
std::vector<std::string> changes_by_hand(const Settings& settings, const std::string& dir) {
  const std::string text = settings_of_latest_checkpoint(dir);
  std::vector<std::string> told;
  if (text.empty()) return told;
  const Settings made_with = Settings::of_text(text, dir + "/checkpoints");
  const auto refuse = [&](const std::string& what, const std::string& back) {
    throw make_error<ValueError>(
        FileName{dir}, "/settings.toml: ", what,
        ": the file was changed, but a run is resumed with its original settings. ", back,
        ", or start a new run");
  };
  if (settings.network != made_with.network)
    refuse("the network differs from that of the newest checkpoint", "Set it back");
  for (const Settings::Key& key : settings.keys()) {
    const std::string before = made_with.get(key.name);
    if (key.value == before) continue;
    const bool named = key.name == "weights" || key.name == "teacher" || key.name == "tokenizer";
    const auto last_name = [](const std::string& path) { return fs::path(path).filename(); };
    // A path may differ if the run, or the file, was moved.
    if (key.name == "data" ? have_same_reading(DataSource(before), DataSource(key.value))
        : named            ? last_name(key.value) == last_name(before)
                           : is_free_to_change(key.name)) {
      told.push_back(cat("settings.toml says ", key.name, " = ", key.value,
                         ", the newest checkpoint ", before, ": the run continues with ",
                         key.value));
      continue;
    }
    refuse(
        cat("'", key.name, "' is '", key.value, "', and '", before, "' in the newest checkpoint"),
        cat("Set it back to '", before, "'"));
  }
  return told;
}

}  // namespace

TrainResult resume_run(const std::string& dir, const RunOptions& options,
                       const std::vector<std::pair<std::string, std::string>>& overrides) {
  Settings settings = settings_of_run(dir);
  if (!has_checkpoint(dir))
    throw make_error<IoError>(
        FileName{dir},
        " has lost its checkpoints, so it cannot be resumed: start a new run in another folder");
  const std::vector<std::string> told = changes_by_hand(settings, dir);
  for (const auto& callback : options.callbacks)
    for (const std::string& note : told) callback->on_note(note);
  override_settings(settings, overrides);
  DataSource source = locate_data(DataSource(settings.data), dir);
  settings.data = source.text;
  settings.teacher = locate_file(settings.teacher, dir);
  return fit(ResolvedRun(std::move(settings), std::move(source)), dir, true, options);
}

}  // namespace tenon::train
