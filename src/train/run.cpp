// Runs by folder: starting, resuming, and opening the trained model.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>
#include <tenon/train.h>

#include <tenon/shapes_only.h>
#include "base/background.h"
#include "base/make_error.h"
#include "base/str.h"
#include "data/text/span_dataset.h"
#include "device/parse.h"
#include "io/file.h"
#include "io/tensors/safetensors.h"
#include "models/weights/published_config.h"
#include "run/tuning/tune.h"
#include "train/adapting/frozen.h"
#include "train/adapting/lora.h"
#include "train/adapting/standardized.h"
#include "train/adapting/tensor_names.h"
#include "train/batches/resident.h"
#include "train/evaluating/opened.h"
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
#include "train/settings/settings.h"
#include "train/texts/spans.h"

namespace tenon::train {
namespace {

namespace fs = std::filesystem;

// Plans the step of a run that is about to begin: libraries are started and kernels compiled while
// weights are drawn and data goes to the GPU. The run takes the plan as its own: a step is planned
// once. What is wrong with it, the run itself will say. Its own network draws from a generator of
// its own: the run's numbers depend on no thread beside it. `engines` are those of a run that is
// resumed.
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

// The model's file contains the network as it was published, so a reader need not know of adapters.
// The adapters are in a file beside it, in the form of peft.
void write_without_adapters(const Session& session, const std::string& dir) {
  const std::string file = dir + "/model.safetensors";
  const io::Metadata metadata = io::inspect_safetensors(file).metadata;
  io::save_checked_safetensors(
      dir + "/adapters.safetensors", adapter_state(*session.adapted),
      {{"lora", session.run.settings.lora}, {"base", session.run.settings.weights}});
  io::save_checked_safetensors(file, merged_state(*session.adapted), metadata);
}

void load_whole(nn::AnyModule net, const StateDict& state, const std::string& file) {
  try {
    net.load_state_dict(state);
  } catch (const Error&) {
    require_tensors(net.state_dict(), state, file);
    throw;
  }
}

// The network of the settings, with means and deviations around it where the state has them.
nn::AnyModule net_for(const ResolvedModel& model, std::int64_t classes, const StateDict& state) {
  const nn::AnyModule net = make_net(model, classes);
  const auto mean = state.find(kInputMean), target = state.find(kTargetMean);
  if (mean == state.end()) return net;
  return standardized(net, mean->second.shape(),
                      target == state.end() ? std::optional<Shape>() : target->second.shape());
}

LoraOptions adapters_of(const ResolvedModel& model) {
  return model.lora ? *model.lora : LoraOptions();
}

// Compares names and shapes before the network takes memory: a small file may describe a network of
// many gigabytes.
void require_shapes(const ResolvedModel& model, std::int64_t classes, const StateDict& state,
                    const std::string& file) {
  const ShapesOnly scope;
  const nn::AnyModule net = net_for(model, classes, state);
  require_tensors((has_adapters(state) ? with_adapters(net, adapters_of(model)) : net).state_dict(),
                  state, file);
}

// Of a run that has not ended the adapters are added here.
void load_weights_of_run(nn::AnyModule net, const ResolvedModel& model, const StateDict& state,
                         const std::string& file) {
  if (!has_adapters(state)) return load_whole(net, state, file);
  const nn::AnyModule adapted = with_adapters(net, adapters_of(model));
  load_whole(adapted, state, file);
  net.load_state_dict(merged_state(adapted));
  net.unfreeze();
}

// Settings that another one gives something to do. Asked of a new run alone: one that was begun
// with them computed as it would have without.
void refuse_idle(const Settings& settings) {
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
  if (!data::is_image_source(settings.data))
    for (const char* key : {"broken", "augment_on"})
      refuse(key, "the data holds no image files: give some, as in --data folder:DIR");
  if (settings.get("tune") == "write" && parse_device(settings.device).kind == Device::Kind::Cpu)
    refuse("tune", "it needs a GPU: choose one, as in --device cuda");
}

// How many samples each part has, and what their readers did that people should know. Parts of one
// file say the same.
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

// For a test part with files of its own, which should hold no training samples. Within one file,
// equal rows may be in both parts.
Notes notes_on_test(const Settings& settings, const std::optional<SeenSamples>& seen) {
  if (!seen || seen->seen == 0) return {};
  Note note = note_on_seen(*seen, "the test part", settings.allow == "seen");
  note.first = settings.data;
  return {note};
}

TrainResult fit(const ResolvedRun& run, const std::string& dir, bool resume,
                const RunOptions& options) {
  const Settings& settings = run.settings;
  // A driver takes as long to start as data to be read. What is wrong with a device is said below.
  const std::future<Device> starting =
      in_background([&settings] { return device(settings.device); });
  const DataSets sets = open_data(run, resume ? dir : "");
  if (resume) require_classes_of_run(dir, *sets.train, settings.data);
  const bool goes_on = resume && has_checkpoint(dir);
  const ContextScope scope(context_of(run));
  std::future<std::optional<Plan>> planning;  // holds the plan while the run needs it
  // Measurements want the GPU for themselves.
  if (current_device().kind != Device::Kind::Cpu && tune() != Tune::Write &&
      run.frozen.layers.empty() && settings.teacher.empty())
    planning = in_background([context = current_context(), &run, &sets,
                              engines = resume ? load_engines(dir) : TuneTable()] {
      return plan_ahead(context, run, sets, engines);
    });
  const bool known_ahead = run.frozen.layers.empty() && settings.teacher.empty();
  std::int64_t measured = known_ahead ? plan_within_limit(run, sets) : 0;
  Session session(run, sets, goes_on);
  if (!run.frozen.layers.empty())
    session.keep_frozen(goes_on ? load_latest_checkpoint(dir) : std::nullopt, options);
  if (!known_ahead) measured = plan_within_limit(session);
  if (measured > 0) session.measure_in_batches(measured);
  DataRecord record(sets, resume ? dir : "");
  const bool own_test = has_test_files(settings.data);
  if (settings.strict) {
    refuse_notes(record.changes());
    if (own_test) refuse_notes(notes_on_test(settings, record.test_seen()));
  }
  TrainOptions o = session.options(dir, resume);
  o.data_digest = data_digest(*sets.train);
  if (!o.data_digest.empty()) o.model_metadata.emplace_back(kDataKey, o.data_digest);
  o.write_beside = [&record](const std::string& folder) { record.begin(folder); };
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
  // What reading the samples lost of them is known by now.
  for (const std::string& note : notes_on_data(sets))
    if (std::find(told.begin(), told.end(), note) == told.end()) session.tell(note);
  for (const auto& set : {sets.train, sets.validation, sets.test})
    if (set != nullptr)
      for (const std::string& name : set->broken()) result.broken.push_back(name);
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

// What a run computes does not depend on these, or (epochs, early stopping) is meant to be changed.
// Data may be elsewhere; the number of its samples is checked.
constexpr const char* kFreeToChange[] = {
    "epochs",     "max_steps",   "early_stopping",   "device",           "threads",
    "workers",    "data",        "keep_checkpoints", "checkpoint_steps", "checkpoint_seconds",
    "augment_on", "keep_frozen", "frozen_cache",     "drop_last",        "strict",
    "allow"};

bool is_free_to_change(const std::string& key) {
  return std::find(std::begin(kFreeToChange), std::end(kFreeToChange), key) !=
         std::end(kFreeToChange);
}

bool has_file(const std::string& path) {
  std::error_code ignored;
  return fs::exists(io::system_path(path), ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(io::system_path(path), ignored);
}

Settings settings_of_run(const std::string& dir) {
  const std::string file = dir + "/settings.toml";
  if (!is_folder(dir)) throw make_error<IoError>(FileName{dir}, ": there is no such run folder");
  if (const int folds = has_file(file) ? 0 : folds_in(dir); folds > 0)
    throw make_error<IoError>(FileName{dir}, " holds ", folds,
                              " folds, and each fold is a run: give one of them, as in ", dir,
                              "/fold-1");
  if (!has_file(file))
    throw make_error<IoError>(
        FileName{dir},
        " holds no run: settings.toml is missing, which a run writes after its first "
        "checkpoint. If the run was stopped earlier, start it again");
  return Settings::of_run(dir);
}

struct Weights {
  std::string file;
  StateDict state;
  io::Metadata metadata;
};

// A file that was moved out of its run holds its tokenizer too.
std::shared_ptr<const data::Tokenizer> tokenizer_within(const io::Metadata& metadata,
                                                        const std::string& file) {
  const auto json = metadata.find(kTokenizerKey);
  if (json == metadata.end()) return nullptr;
  return std::make_shared<const data::Tokenizer>(data::Tokenizer::parse(json->second, file));
}

// The model's file, or of a run that has not ended its best weights, or else those of its newest
// checkpoint.
Weights weights_of_run(const std::string& dir) {
  for (const char* name : {"model.safetensors", "best.safetensors"})
    if (const std::string file = cat(dir, "/", name); has_file(file)) {
      io::SafeTensors held = io::load_safetensors(file);
      return {file, std::move(held.tensors), std::move(held.metadata)};
    }
  std::optional<Checkpoint> checkpoint = load_latest_checkpoint(dir);
  if (!checkpoint)
    throw make_error<IoError>(
        FileName{dir}, " holds no weights yet: wait for the first checkpoint, or resume the run");
  io::Metadata metadata;
  if (!checkpoint->model.empty()) metadata.emplace(kModelKey, checkpoint->model);
  if (!checkpoint->progress.data.empty()) metadata.emplace(kDataKey, checkpoint->progress.data);
  return {checkpoint->path, checkpoint->model_state(), std::move(metadata)};
}

std::shared_ptr<const data::Vocabulary> vocabulary_of(const std::string& text_unit,
                                                      const std::vector<std::string>& tokens) {
  const data::TextUnit unit = data::text_unit(text_unit);
  return std::make_shared<const data::Vocabulary>(unit == data::TextUnit::Bytes
                                                      ? data::Vocabulary::of("", unit)
                                                      : data::Vocabulary(unit, tokens));
}

// Classes as the config of published weights has them.
void use_published(const models::PublishedConfig& config, Settings& settings,
                   std::vector<std::string>& class_names) {
  if (config.regression && find_task(settings.task)->output_form() != OutputForm::Values)
    throw NotSupported(cat(config.path,
                           ": the network predicts numbers, not classes: train it with --task "
                           "regression, or use a classification network"));
  if (settings.classes > 0 && settings.classes != config.classes)
    throw ValueError(cat("setting 'classes' is ", settings.classes, ", and ", config.path, " says ",
                         config.classes, ": leave 'classes' out"));
  settings.classes = config.classes;
  class_names = config.class_names;
}

}  // namespace

TrainResult start_run(const Settings& settings, const std::string& dir, const RunOptions& options) {
  require_in_range(settings);
  refuse_idle(settings);
  refuse_tested_training(settings.data);
  Settings known = as_published(settings);
  known.data = as_long_as_seen(settings.data, SettingsNetwork::keep(known).info());
  return fit(ResolvedRun(std::move(known)), dir, false, options);
}

void override_settings(Settings& settings,
                       const std::vector<std::pair<std::string, std::string>>& overrides) {
  for (const auto& [key, value] : overrides) {
    const std::string before = settings.get(key);
    settings.set(key, value);
    const bool free = settings.get(key) == before || is_free_to_change(key);
    if (key == "data" && !read_alike(before, value) &&
        !read_alike(before, as_long_as_seen(value, SettingsNetwork::keep(settings).info())))
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

// A file that was edited between two sessions would make the rest another run. A change that is
// allowed is reported, so that an unintended change is seen.
std::vector<std::string> changes_by_hand(const Settings& settings, const std::string& dir) {
  const std::string text = settings_of_latest_checkpoint(dir);
  std::vector<std::string> told;
  if (text.empty()) return told;
  const Settings made_with = Settings::of_text(text, dir + "/checkpoints");
  const auto refuse = [&](const std::string& what, const std::string& back) {
    throw ValueError(
        cat(dir, "/settings.toml: ", what,
            ": the file was changed, but a run is resumed with its original settings. ", back,
            ", or start a new run"));
  };
  if (settings.network != made_with.network)
    refuse("the network differs from that of the newest checkpoint", "Set it back");
  for (const Settings::Key& key : settings.keys()) {
    const std::string before = made_with.get(key.name);
    if (key.value == before) continue;
    const bool named = key.name == "weights" || key.name == "teacher" || key.name == "tokenizer";
    const auto last_name = [](const std::string& path) { return fs::path(path).filename(); };
    // A path may be another where the run, or what it names, was moved.
    if (key.name == "data" ? read_alike(before, key.value)
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
  settings.data = locate_data(settings.data, dir);
  settings.teacher = locate_file(settings.teacher, dir);
  return fit(ResolvedRun(std::move(settings)), dir, true, options);
}

TrainedModel::TrainedModel() : task_(find_task(Settings().task)), net_(nn::Identity()) {}

TrainedModel TrainedModel::open(const std::string& run_or_file) {
  TrainedModel out;
  Weights weights;
  std::vector<std::string> names;
  if (is_folder(run_or_file)) {
    out.settings_ = settings_of_run(run_or_file);
    out.run_ = run_or_file;
    weights = weights_of_run(run_or_file);
    out.tokenizer_ = tokenizer_of(out.settings_, run_or_file);
    if (const auto text = weights.metadata.find(kModelKey); text != weights.metadata.end()) {
      ModelDescription model = model_from_json(text->second, weights.file);
      names = std::move(model.class_names);
      out.text_unit_ = std::move(model.text_unit);
      out.table_ = std::move(model.table);
    }
    if (const auto digest = weights.metadata.find(kDataKey); digest != weights.metadata.end())
      out.data_digest_ = digest->second;
  } else {
    io::SafeTensors file = io::load_safetensors(run_or_file);
    const auto text = file.metadata.find(kModelKey);
    if (text == file.metadata.end())
      throw FormatError(
          cat(run_or_file, " does not say which model it belongs to (no '", kModelKey,
              "' in its metadata): give the run's folder, or the network's name and this "
              "file with --weights"));
    ModelDescription model = model_from_json(text->second, run_or_file);
    out.settings_ = std::move(model.settings);
    names = std::move(model.class_names);
    out.text_unit_ = std::move(model.text_unit);
    out.table_ = std::move(model.table);
    out.tokenizer_ = tokenizer_within(file.metadata, run_or_file);
    weights = {run_or_file, std::move(file.tensors), {}};
    // Within the folder of its run it is known which samples training has seen.
    if (const std::string dir = fs::path(run_or_file).parent_path().string();
        has_file((dir.empty() ? "." : dir) + "/settings.toml")) {
      out.run_ = dir.empty() ? "." : dir;
      out.settings_.data = settings_of_run(out.run_).data;
      if (const auto digest = file.metadata.find(kDataKey); digest != file.metadata.end())
        out.data_digest_ = digest->second;
    }
  }
  SettingsNetwork::keep(out.settings_);
  out.task_ = task_of(out.settings_);
  out.load_record();
  out.compute_here();
  const ContextScope scope(out.context_);
  const std::int64_t classes = out.settings_.classes > 0 ? out.settings_.classes : 10;
  const ResolvedModel model(out.settings_);
  require_shapes(model, classes, weights.state, weights.file);
  out.net_ = net_for(model, classes, weights.state);
  load_weights_of_run(out.net_, model, weights.state, weights.file);
  out.net_.eval();
  out.resolve();
  out.file_ = weights.file;
  out.class_names_ = std::move(names);
  out.name_classes(classes);
  return out;
}

TrainedModel TrainedModel::with_weights(const Settings& settings, const std::string& file) {
  TrainedModel out;
  out.settings_ = settings;
  out.foreign_ = true;
  out.settings_.weights = file;
  const std::optional<models::PublishedConfig> config =
      settings.network.empty() ? models::published_config(file, settings.model) : std::nullopt;
  out.settings_ = as_published(std::move(out.settings_));
  out.settings_.weights = settings.weights;
  if (config) use_published(*config, out.settings_, out.class_names_);
  const models::Info& info = SettingsNetwork::keep(out.settings_).info();
  if (out.settings_.classes == 0) out.settings_.classes = info.classes;
  out.task_ = task_of(out.settings_);
  out.tokenizer_ = tokenizer_of(out.settings_, "");
  out.compute_here();
  const ContextScope scope(out.context_);
  out.net_ = make_net(ResolvedModel(out.settings_), out.settings_.classes);
  TakenWeights taken = take_all_weights(out.net_, out.settings_.model, file);
  out.weights_note_ = taken.note + config_words(file, settings.model);
  out.settings_ =
      with_images_of(std::move(out.settings_), info.input,
                     config && !config->normalize.empty() ? config->normalize : taken.normalize);
  out.net_.eval();
  out.resolve();
  out.file_ = file;
  out.name_classes(out.settings_.classes);
  return out;
}

void TrainedModel::load_record() {
  if (run_.empty()) {
    record_problem_ = "a model file without its run folder does not list them";
    return;
  }
  const std::string file = cat(run_, "/", kSampleRecordFile);
  if (!has_file(file)) {
    record_problem_ = cat("there is no ", file);
    return;
  }
  try {
    record_ = std::make_shared<const SampleRecord>(SampleRecord::load(file));
  } catch (const Error& error) {
    record_problem_ = error.what();
    record_notes_ = {{"the list of training samples cannot be read", 1, record_problem_}};
  }
}

// Wherever it was trained.
void TrainedModel::compute_here() {
  settings_.device = current_device().str();
  settings_.tune = name(tune());
  settings_.threads = threads();
  context_ = context_of(ResolvedModel(settings_));
}

// With numbers, where the names of others are not known. A text may have fewer tokens than the
// network has outputs.
void TrainedModel::name_classes(std::int64_t classes) {
  const bool own_tokens = !text_unit_.empty() && tokenizer_ == nullptr;
  if (own_tokens && !class_names_.empty() && std::ssize(class_names_) <= classes) {
    vocabulary_ = vocabulary_of(text_unit_, class_names_);
    for (std::int64_t i = std::ssize(class_names_); i < classes; ++i)
      class_names_.push_back(cat("<", i, ">"));
    return;
  }
  const bool named = task_->output_form() != OutputForm::Values;
  if (static_cast<std::int64_t>(class_names_.size()) == classes && named) return;
  class_names_.clear();
  if (!named) return;
  const bool words = info().tokens && tokenizer_ != nullptr;
  if (words && tokenizer_->size() <= classes)
    for (std::int64_t i = 0; i < classes; ++i) class_names_.push_back(tokenizer_->token(i));
  if (words && !class_names_.empty()) return;
  for (std::int64_t i = 0; i < classes; ++i) class_names_.push_back(std::to_string(i));
  if (own_tokens) vocabulary_ = vocabulary_of(text_unit_, class_names_);
}

TrainedModel TrainedModel::open(const std::string& run_or_file, const nn::AnyModule& net) {
  TrainedModel out;
  if (is_folder(run_or_file)) out.run_ = run_or_file;
  const Weights weights = is_folder(run_or_file)
                              ? weights_of_run(run_or_file)
                              : Weights{run_or_file, io::load_safetensors(run_or_file).tensors, {}};
  out.context_ = current_context();
  out.net_ = net;
  out.net_.load_state_dict(weights.state);
  out.net_.eval();
  out.resolve();
  out.file_ = weights.file;
  out.given_net_ = true;
  return out;
}

void TrainedModel::resolve() {
  const ContextScope scope(context_);
  ResolvedModel model(settings_);
  Predictor predictor(net_, model);
  opened_ = std::make_shared<const Opened>(Opened{std::move(model), std::move(predictor)});
}

const models::Info& TrainedModel::info() const { return opened_->model.info(); }

void TrainedModel::set_precision(Precision precision) {
  settings_.precision = name(precision);
  context_.precision = precision;
  resolve();
}

void TrainedModel::set_preprocess(const std::string& steps) {
  // Pixels stay scaled as they were, which for other images is another way.
  if (!own_sizes(settings_) && settings_.normalize == "auto") settings_.normalize = "none";
  settings_.set("preprocess", steps);
  resolve();
}

void TrainedModel::set_background(const std::string& colour) {
  if (info().input.rank() != 3)
    throw ValueError(cat("model '", settings_.model, "' takes no images"));
  settings_.set("background", colour);
  resolve();
}

bool TrainedModel::fits_images() const { return !given_net_ && opened_->model.images.any_size; }

Tensor TrainedModel::fit(const io::Image& image) const {
  return data::preprocess_image(image, image_options(opened_->model, info().input));
}

std::shared_ptr<data::Dataset> TrainedModel::fit(
    std::shared_ptr<const data::ImageFiles> images) const {
  data::ImageOptions options = image_options(opened_->model, info().input);
  options.broken_left_out = true;
  return data::image_dataset(std::move(images), options);
}

io::ImageReading TrainedModel::image_reading(int channels) const {
  return {channels, opened_->model.images.backdrop};
}

std::string TrainedModel::fitting() const {
  return image_options(opened_->model, info().input).resize.text();
}

Tensor TrainedModel::predict(const Tensor& images) const {
  if (!given_net_) return opened_->predict(images);
  const ContextScope scope(context_);
  return net_(images).compute();
}

Tensor TrainedModel::predict_text(const std::string& text) const {
  const models::Info& info = this->info();
  if (!given_net_ && net_.as<models::Decoder>() != nullptr) return next_token(tokens_of(text));
  const OutputForm form = task_->output_form();
  const bool hidden_token = form == OutputForm::HiddenToken,
             one_class = form == OutputForm::Classes || hidden_token;
  if (tokenizer_ == nullptr || given_net_ || !info.takes_tokens() || !one_class)
    throw ValueError(cat(file_, ": model '", settings_.model,
                         form == OutputForm::Answer ? "' finds answers in texts: ask it a question"
                         : form == OutputForm::Translation ? "' translates texts: use translate()"
                                                           : "' takes no text"));
  const ContextScope scope(context_);
  const std::size_t tab = hidden_token ? std::string::npos : text.find('\t');
  data::TypedTokens row;
  if (tab == std::string::npos)
    row.tokens = data::encode_within(*tokenizer_, text, text_length(opened_->model));
  else
    row = data::encode_pair_within(*tokenizer_, std::string_view(text).substr(0, tab),
                                   std::string_view(text).substr(tab + 1),
                                   text_length(opened_->model));
  std::vector<std::int64_t>& tokens = row.tokens;
  const std::int64_t length = std::ssize(tokens);
  if (length == 0) throw ValueError("predict: the text is empty");
  tokens.insert(tokens.end(), row.types.begin(), row.types.end());
  const Tensor scores =
      net_(Tensor::from(tokens, row.types.empty() ? Shape{1, length} : Shape{1, 2, length}));
  if (!hidden_token) return task_->predictions(reshape(scores, {scores.numel()})).compute();
  const auto hidden = std::find(tokens.begin(), tokens.end(), tokenizer_->number("[MASK]"));
  if (hidden == tokens.end())
    throw ValueError(cat("predict: model '", settings_.model,
                         "' predicts the word at [MASK], and the text has no [MASK]"));
  const std::int64_t place = hidden - tokens.begin();
  return softmax(reshape(slice(scores, 1, place, place + 1), {scores.size(2)})).compute();
}

void TrainedModel::require_spans() const {
  if (tokenizer_ == nullptr || given_net_ || task_->output_form() != OutputForm::Answer)
    throw ValueError(cat(file_, ": model '", settings_.model, "' does not answer questions"));
}

Answer TrainedModel::answer(const std::string& question, const std::string& text) const {
  require_spans();
  const ContextScope scope(context_);
  data::SpanOptions options;
  options.length = std::min(options.length, info().input[0]);
  options.question = std::min(options.question, options.length / 3);
  options.stride = std::min(options.stride, options.length / 4);
  const data::SpanDataset set({{"the question", question, data::span_text(*tokenizer_, text)}},
                              *tokenizer_, options, "a question");
  return answers_of(net_, set, false)[0];
}

std::vector<AskedQuestion> TrainedModel::answers(const Selection& data, std::int64_t start,
                                                 std::int64_t count) const {
  require_spans();
  const ContextScope scope(context_);
  const std::shared_ptr<data::Dataset> opened = open_set(data);
  const auto* set = opened->as<data::SpanDataset>();
  if (set == nullptr)
    throw ShapeError(
        cat("'", data.data, "' has no questions: give a file of questions, as in spans:FILE"));
  const data::SpanDataset part = set->part(start, count < 0 ? std::ssize(set->questions()) : count);
  const std::vector<Answer> given = answers_of(net_, part, lacks_answers(*set));
  std::vector<AskedQuestion> out;
  out.reserve(given.size());
  for (std::size_t k = 0; k < given.size(); ++k) {
    const data::SpanQuestion& asked = part.questions()[k];
    const SpanMeasure measure = measure_answer(given[k].text, asked.answers);
    out.push_back({cat(data.data, ", question ", start + static_cast<std::int64_t>(k) + 1),
                   asked.question, given[k], asked.answers, measure.exact, measure.f1});
  }
  return out;
}

}  // namespace tenon::train
