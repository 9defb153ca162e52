// Opens trained models: the settings, the network and its weights, and the names of the classes.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/shapes_only.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>
#include <tenon/train.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/file.h"
#include "io/tensors/safetensors.h"
#include "models/weights/published_config.h"
#include "run/tuning/tune.h"
#include "train/adapting/frozen.h"
#include "train/adapting/lora.h"
#include "train/adapting/standardized.h"
#include "train/adapting/tensor_names.h"
#include "train/evaluating/opened.h"
#include "train/runs/model_file.h"
#include "train/runs/run_folder.h"
#include "train/runs/sample_record.h"
#include "train/sessions/session.h"
#include "train/settings/images.h"
#include "train/settings/published.h"
#include "train/settings/settings.h"

namespace tenon::train {
namespace {

namespace fs = std::filesystem;

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(io::system_path(path), ignored);
}

void load_whole(nn::AnyModule net, const StateDict& state, const std::string& file) {
  try {
    net.load_state_dict(state);
  } catch (const Error&) {
    require_tensors(net.state_dict(), state, file);
    throw;
  }
}

// The network of the settings. If the state has means and deviations, the network standardizes its
// inputs with them.
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

// Compares names and shapes before the network allocates memory, because a small file may describe
// a network of many gigabytes.
void require_shapes(const ResolvedModel& model, std::int64_t classes, const StateDict& state,
                    const std::string& file) {
  const ShapesOnly scope;
  const nn::AnyModule net = net_for(model, classes, state);
  require_tensors((has_adapters(state) ? with_adapters(net, adapters_of(model)) : net).state_dict(),
                  state, file);
}

// The state of an unfinished run may contain adapters; they are merged into the weights.
void load_weights_of_run(nn::AnyModule net, const ResolvedModel& model, const StateDict& state,
                         const std::string& file) {
  if (!has_adapters(state)) return load_whole(net, state, file);
  const nn::AnyModule adapted = with_adapters(net, adapters_of(model));
  load_whole(adapted, state, file);
  net.load_state_dict(merged_state(adapted));
  net.unfreeze();
}

struct Weights {
  std::string file;
  StateDict state;
  io::Metadata metadata;
};

// A model file contains its tokenizer, so it can be used outside its run folder.
std::shared_ptr<const data::Tokenizer> tokenizer_within(const io::Metadata& metadata,
                                                        const std::string& file) {
  const auto json = metadata.find(kTokenizerKey);
  if (json == metadata.end()) return nullptr;
  return std::make_shared<const data::Tokenizer>(data::Tokenizer::parse(json->second, file));
}

// The model file. If the run has not ended: its best weights, else the weights of its newest
// checkpoint.
Weights weights_of_run(const std::string& dir) {
  for (const char* name : {"model.safetensors", "best.safetensors"})
    if (const std::string file = cat(dir, "/", name); io::is_there(file)) {
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
  return {checkpoint->path, checkpoint->kept_state(), std::move(metadata)};
}

std::shared_ptr<const data::Vocabulary> vocabulary_of(const std::string& text_unit,
                                                      const std::vector<std::string>& tokens) {
  const data::TextUnit unit = data::text_unit(text_unit);
  return std::make_shared<const data::Vocabulary>(unit == data::TextUnit::Bytes
                                                      ? data::Vocabulary::of("", unit)
                                                      : data::Vocabulary(unit, tokens));
}

// Takes the number and the names of the classes from the config of published weights.
void use_published(const models::PublishedConfig& config, Settings& settings,
                   std::vector<std::string>& class_names) {
  if (config.regression && find_task(settings.task)->output_form() != OutputForm::Values)
    throw make_error<NotSupported>(
        FileName{config.path},
        ": the network predicts numbers, not classes: train it with --task "
        "regression, or use a classification network");
  if (settings.classes > 0 && settings.classes != config.classes)
    throw make_error<ValueError>("setting 'classes' is ", settings.classes, ", and ",
                                 FileName{config.path}, " says ", config.classes,
                                 ": leave 'classes' out");
  settings.classes = config.classes;
  class_names = config.class_names;
}

// With the current device, tuning and threads instead of those of the training.
ResolvedModel resolved_here(Settings&& settings) {
  settings.device = current_device().str();
  settings.tune = name(tune());
  settings.threads = threads();
  return ResolvedModel(std::move(settings));
}

}  // namespace

TrainedModel::TrainedModel() : task_(find_task(Settings().task)), net_(nn::Identity()) {}

TrainedModel TrainedModel::open(const std::string& run_or_file) {
  TrainedModel out;
  Settings settings;
  Weights weights;
  std::vector<std::string> names;
  if (is_folder(run_or_file)) {
    settings = settings_of_run(run_or_file);
    out.run_ = run_or_file;
    weights = weights_of_run(run_or_file);
    out.tokenizer_ = tokenizer_of(settings, run_or_file);
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
      throw make_error<FormatError>(
          FileName{run_or_file}, " does not say which model it belongs to (no '", kModelKey,
          "' in its metadata): give the run's folder, or the network's name and this "
          "file with --weights");
    ModelDescription model = model_from_json(text->second, run_or_file);
    settings = std::move(model.settings);
    names = std::move(model.class_names);
    out.text_unit_ = std::move(model.text_unit);
    out.table_ = std::move(model.table);
    out.tokenizer_ = tokenizer_within(file.metadata, run_or_file);
    weights = {run_or_file, std::move(file.tensors), {}};
    // If the file is in its run folder, the folder records which samples training has seen.
    if (const std::string dir = fs::path(run_or_file).parent_path().string();
        io::is_there((dir.empty() ? "." : dir) + "/settings.toml")) {
      out.run_ = dir.empty() ? "." : dir;
      settings.data = settings_of_run(out.run_).data;
      if (const auto digest = file.metadata.find(kDataKey); digest != file.metadata.end())
        out.data_digest_ = digest->second;
    }
  }
  ResolvedModel model = resolved_here(std::move(settings));
  out.load_record();
  out.context_ = context_of(model);
  const ContextScope scope(out.context_);
  const std::int64_t classes = model.settings.classes > 0 ? model.settings.classes : 10;
  require_shapes(model, classes, weights.state, weights.file);
  out.net_ = net_for(model, classes, weights.state);
  load_weights_of_run(out.net_, model, weights.state, weights.file);
  out.net_.eval();
  out.hold(std::move(model));
  out.file_ = weights.file;
  out.class_names_ = std::move(names);
  out.name_classes(classes);
  return out;
}

TrainedModel TrainedModel::with_weights(const Settings& settings, const std::string& file) {
  TrainedModel out;
  out.foreign_ = true;
  const std::optional<models::PublishedConfig> config =
      settings.network.empty() ? models::published_config(file, settings.model) : std::nullopt;
  Settings used = settings;
  used.weights = file;
  used = as_published(std::move(used));
  used.weights = settings.weights;
  if (config) use_published(*config, used, out.class_names_);
  if (used.classes == 0) used.classes = SettingsNetwork::keep(used).info().classes;
  ResolvedModel model = resolved_here(std::move(used));
  out.tokenizer_ = tokenizer_of(model.settings, "");
  out.context_ = context_of(model);
  const ContextScope scope(out.context_);
  const std::int64_t classes = model.settings.classes;
  out.net_ = make_net(model, classes);
  TakenWeights taken = take_all_weights(out.net_, model.settings.model, file);
  if (settings.strict) refuse_weight_notes(taken.notes, file, settings.model);
  out.weights_note_ = taken.note + config_words(file, settings.model);
  use_images_of(model, config && !config->normalize.empty() ? config->normalize : taken.normalize);
  out.net_.eval();
  out.hold(std::move(model));
  out.file_ = file;
  out.name_classes(classes);
  return out;
}

void TrainedModel::load_record() {
  if (run_.empty()) {
    record_problem_ = "a model file without its run folder does not list them";
    return;
  }
  const std::string file = cat(run_, "/", kSampleRecordFile);
  if (!io::is_there(file)) {
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

// Classes without a name get their number as name. The network may have more outputs than the text
// has tokens.
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
  out.hold(ResolvedModel(Settings()));
  out.file_ = weights.file;
  out.given_net_ = true;
  return out;
}

// Prepares the requests.
void TrainedModel::hold(ResolvedModel&& model) {
  const ContextScope scope(context_);
  settings_ = model.settings;
  task_ = model.task;
  Predictor predictor(net_, model);
  opened_ = std::make_shared<const Opened>(
      Opened{std::move(model), std::move(predictor), TextPredictor(net_, task_)});
}

const ResolvedModel& TrainedModel::resolved() const { return opened_->model; }
const models::Info& TrainedModel::info() const { return resolved().info(); }

void TrainedModel::set_precision(Precision precision) {
  ResolvedModel model = resolved();
  model.set_precision(precision);
  context_.precision = precision;
  hold(std::move(model));
}

void TrainedModel::set_preprocess(const std::string& steps) {
  ResolvedModel model = resolved();
  // Without image files, "auto" means no normalization. With `preprocess` set, it would mean
  // another scaling, so the present one is made explicit.
  if (!model.images.any_size && model.settings.normalize == "auto")
    model.settings.normalize = "none";
  model.set_image_setting("preprocess", steps);
  hold(std::move(model));
}

void TrainedModel::set_background(const std::string& colour) {
  if (info().input.rank() != 3)
    throw ValueError(cat("model '", settings().model, "' takes no images"));
  ResolvedModel model = resolved();
  model.set_image_setting("background", colour);
  hold(std::move(model));
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

}  // namespace tenon::train
