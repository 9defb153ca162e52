// tenon train: its options, the settings that they give, and starting or resuming a run or folds.
// train_output.cpp prints the progress and the summary.
//
// Precedence of settings: the model's recipe < --config < --set < options. The library checks their
// values.
#include <fmt/core.h>
#include <tenon/compute.h>
#include <tenon/models.h>
#include <tenon/train.h>

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "commands.h"
#include "data_paths.h"
#include "errors.h"
#include "interrupt.h"
#include "terminal.h"
#include "train_output.h"
#include "tuning.h"

namespace tenon::cli {
namespace {

// An option that sets a setting of the run.
struct Shortcut {
  const char* flag;
  const char* key;
  const char* value;
  const char* help;
  const char* group;
};

constexpr Shortcut kShortcuts[] = {
    {"--data", "data", "SPEC", kDataSpecHelp, "Data"},
    {"--augment", "augment", "LIST",
     "augmentation of training images, for example crop=4,flip,cutout=8 or "
     "resized_crop,randaugment ('tenon data show --help' lists all); none; auto: for image files "
     "resized_crop,flip (or the recipe of net.toml), for CIFAR the recipe's, else none",
     "Data"},
    {"--augment-on", "augment_on", "PLACE",
     "where image files are decoded and augmented: cpu; gpu (nvJPEG); both: decoded on the CPU, "
     "augmented on the GPU; auto: gpu if it has JPEG engines and there are fewer than 12 threads, "
     "else both, or cpu for crops and flips alone",
     "Data"},
    {"--broken", "broken", "HOW",
     "images that cannot be decoded: skip (the next image replaces them) or error", "Data"},
    {"--allow", "allow", "NOTES",
     "notes that --strict accepts: seen (samples of the test part that equal training samples)",
     "Data"},
    {"--sampling", "sampling", "HOW",
     "training samples of an epoch: uniform (each once) or balanced (drawn with replacement, every "
     "class equally often)",
     "Data"},
    {"--task", "task", "NAME",
     "classification, multi_label (several labels a sample), or regression (numeric targets, for "
     "example prices in a table); networks of text have a task of their own",
     "Data"},
    {"--weights", "weights", "FILE",
     "pretrained weights to start from: .safetensors, .pt or .pth, for example torchvision's or "
     "Hugging Face's; tensors that fit are loaded",
     "Pretrained weights and fine-tuning"},
    {"--tokenizer", "tokenizer", "FILE",
     "tokenizer for text: tokenizer.json, vocab.txt, vocab.json or their folder; copied into the "
     "run folder",
     "Pretrained weights and fine-tuning"},
    {"--freeze", "freeze", "NAME[,NAME]",
     "layers to freeze, for example features; their outputs are computed once and reused",
     "Pretrained weights and fine-tuning"},
    {"--unfreeze-after", "unfreeze_after", "N", "epochs after which frozen layers are trained too",
     "Pretrained weights and fine-tuning"},
    {"--keep-frozen", "keep_frozen", "WHERE",
     "where outputs of frozen layers are kept: memory; disk; auto: both, on disk if computing took "
     "1 s or more; off: recomputed in every step",
     "Pretrained weights and fine-tuning"},
    {"--frozen-variants", "frozen_variants", "K",
     "with --augment: compute frozen-layer outputs for K epochs of augmented images and reuse them "
     "in turn",
     "Pretrained weights and fine-tuning"},
    {"--rate-of", "rate_of", "LIST",
     "learning rates of layers as factors of --lr: features=0.1,classifier=1",
     "Pretrained weights and fine-tuning"},
    {"--head", "head", "LAYERS",
     "layers that replace the classifier of alexnet, vgg16, resnetN, inception_resnet_v2 or "
     "bert_classifier, for example 256,relu",
     "Pretrained weights and fine-tuning"},
    {"--lora", "lora", "rank=R[,...]",
     "LoRA fine-tuning: rank=8,alpha=16; targets=A+B names the layers with adapters, learn=A+B the "
     "layers trained in full",
     "Pretrained weights and fine-tuning"},
    {"--teacher", "teacher", "RUN", "run folder of a teacher, for knowledge distillation",
     "Pretrained weights and fine-tuning"},
    {"--temperature", "temperature", "T", "softmax temperature of distillation",
     "Pretrained weights and fine-tuning"},
    {"--distill-weight", "distill_weight", "X",
     "weight of the distillation loss; the loss on the labels has the rest",
     "Pretrained weights and fine-tuning"},
    {"--epochs", "epochs", "N", "passes over the training data",
     "Training (defaults come from the model's recipe)"},
    {"--batch", "batch", "N", "batch size", "Training (defaults come from the model's recipe)"},
    {"--lr", "lr", "X", "learning rate", "Training (defaults come from the model's recipe)"},
    {"--optimizer", "optimizer", "NAME", "optimizer",
     "Training (defaults come from the model's recipe)"},
    {"--schedule", "schedule", "NAME", "learning-rate schedule",
     "Training (defaults come from the model's recipe)"},
    {"--seed", "seed", "N", "random seed of weights, sample order, augmentation and dropout",
     "Training (defaults come from the model's recipe)"},
    {"--device", "device", "NAME", "device: cpu, cuda or cuda:N", "Machine"},
    {"--precision", "precision", "NAME",
     "precision of matrix products and convolutions (sums stay float32): fp32, tf32, bf16 or fp16; "
     "the CPU computes tf32 and fp16 in fp32",
     "Machine"},
    {"--layer-precision", "layer_precision", "LAYER=NAME",
     "precision of single layers: 0=fp32,3=tf32 ('tenon summary' shows the names)", "Machine"},
    {"--tune", "tune", "MODE", kTuneHelp, "Machine"},
    {"--threads", "threads", "N", "compute threads; results do not depend on their number",
     "Machine"},
};

// Settings that may change on resume without changing the results.
bool may_change_on_resume(const std::string& key) {
  return key == "epochs" || key == "threads" || key == "device" || key == "data" ||
         key == "strict" || key == "allow";
}

struct TrainOptions {
  std::string model, out, resume, config, memory_limit, target;
  std::vector<std::string> sets;
  std::vector<std::string> shortcuts = std::vector<std::string>(std::size(kShortcuts));
  int folds = 0;
  bool settings = false, quiet = false, strict = false;
};

using KeyValue = std::pair<std::string, std::string>;

KeyValue split_set(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError(fmt::format("--set: '{}' is not key=value", text),
                     "for example --set momentum=0.95; --settings lists the keys");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Values from the command line in order of precedence, with the option to name in errors.
struct Given {
  std::string source;
  KeyValue setting;
};

std::vector<Given> given_on_command_line(const TrainOptions& options) {
  std::vector<Given> given;
  for (const std::string& text : options.sets) given.push_back({"--set", split_set(text)});
  for (std::size_t i = 0; i < std::size(kShortcuts); ++i)
    if (!options.shortcuts[i].empty())
      given.push_back({kShortcuts[i].flag, {kShortcuts[i].key, options.shortcuts[i]}});
  if (options.strict) given.push_back({"--strict", {"strict", "true"}});
  return given;
}

void apply(train::Settings& settings, const Given& given) {
  try {
    settings.set(given.setting.first, given.setting.second);
  } catch (const ValueError& error) {
    if (given.source == "--set")
      throw UsageError(fmt::format("--set: {}", error.what()),
                       "'tenon train MODEL --settings' lists all keys with their values");
    // The library's message names the setting; replace it by the option.
    std::string text = error.what();
    const std::string subject = fmt::format("setting '{}'", given.setting.first);
    if (text.starts_with(subject)) text.replace(0, subject.size(), given.source);
    throw UsageError(text);
  }
}

// The model determines the recipe, the base of all settings, so it is found first. "": the settings
// file names the model.
std::string chosen_model(const TrainOptions& options) {
  if (!options.model.empty()) return options.model;
  for (const std::string& text : options.sets)
    if (const KeyValue set = split_set(text); set.first == "model") return set.second;
  train::Settings probe;
  probe.model.clear();
  if (!options.config.empty()) probe.apply_file(options.config);
  if (probe.model.empty())
    throw UsageError("tenon train: MODEL is missing",
                     "for example: tenon train lenet5; others: keras_cnn, fcn_r, mlp:784-300-10, "
                     "or a file of your own, net.toml");
  return "";
}

train::Settings make_settings(const TrainOptions& options) {
  train::Settings settings = train::Settings::resolve(chosen_model(options), options.config, {});
  const std::string model = settings.model, network = settings.network;
  for (const Given& given : given_on_command_line(options)) apply(settings, given);
  settings.model = model;
  settings.network = network;
  if (!options.target.empty()) {
    if (!settings.data.starts_with("csv:"))
      throw UsageError(fmt::format("--target: '{}' is not a table with columns", settings.data),
                       "name one with --data csv:FILE");
    if (options.target.find(',') != std::string::npos)
      throw UsageError(
          fmt::format("--target: '{}' contains a comma, which a data source cannot name",
                      options.target),
          "rename the column, or give its number: csv:FILE,column=3");
    settings.data += ",label=" + options.target;
  }
  return settings;
}

// The run folder: the given one, or a new one. "mlp:784-300-10" becomes "mlp-784-300-10", plus the
// first free number if that exists. A new folder is created immediately, so that another run
// started at the same time gets a different one; it is removed again if the run leaves it empty.
class RunPlace {
 public:
  RunPlace(const std::string& asked_for, const std::string& model) : path_(asked_for) {
    if (!path_.empty()) return;
    std::string name =
        models::is_network_file(model) ? std::filesystem::path(model).stem().string() : model;
    for (char& c : name)
      if (c == ':' || c == '/') c = '-';
    std::error_code error;
    made_all_ = std::filesystem::create_directory("runs", error);
    for (int number = 1; !made_; ++number) {
      path_ = number == 1 ? fmt::format("runs/{}", name) : fmt::format("runs/{}-{}", name, number);
      made_ = std::filesystem::create_directory(path_, error);
      // The run reports a folder that cannot be created.
      if (std::error_code ignored; error && !std::filesystem::exists(path_, ignored)) return;
    }
  }
  ~RunPlace() {
    std::error_code not_empty;
    if (made_) std::filesystem::remove(path_, not_empty);
    if (made_all_) std::filesystem::remove("runs", not_empty);
  }
  RunPlace(const RunPlace&) = delete;
  RunPlace& operator=(const RunPlace&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool made_ = false, made_all_ = false;  // created the folder; created "runs"
};

// The library's message would name its own option.
void refuse_folder_of_a_run(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(folder + "/settings.toml", ignored))
    throw UsageError(
        fmt::format("--out: {} already holds a run", folder),
        fmt::format("continue it with --resume {}, or choose another folder", shell_word(folder)));
}

train::FoldOptions fold_options(bool quiet) {
  return [quiet](int fold, const train::Settings& settings, const std::string& folder) {
    clear_status_line();
    if (!quiet && fold > 1) fmt::print("\n");
    return train::RunOptions{{make_progress(settings, folder, quiet)},
                             [] { return interrupted().load(); }};
  };
}

// Cross-validation: one run per fold, tested on its part and trained on the others.
int start_folds(const TrainOptions& options, const train::Settings& settings) {
  if (options.folds < 2) throw UsageError("--folds: give 2 or more");
  const RunPlace place(options.out, settings.model);
  const std::string& folder = place.path();
  if (train::folds_in(folder) > 0)
    throw UsageError(fmt::format("--out: {} already holds folds", folder),
                     fmt::format("continue them with --resume {}, or choose another folder",
                                 shell_word(folder)));
  for (int fold = 1; fold <= options.folds; ++fold)
    refuse_folder_of_a_run(fmt::format("{}/fold-{}", folder, fold));
  return finish_folds(
      train::start_folds(settings, options.folds, folder, fold_options(options.quiet)), settings,
      folder);
}

int start(const TrainOptions& options) {
  const train::Settings settings = make_settings(options);
  if (options.settings) {
    fmt::print("{}", settings.toml());
    return kOk;
  }
  set_threads(settings.threads);
  if (options.folds != 0) return start_folds(options, settings);
  const RunPlace place(options.out, settings.model);
  const std::string& folder = place.path();
  refuse_folder_of_a_run(folder);
  const auto progress = make_progress(settings, folder, options.quiet);
  const train::TrainResult result =
      train::start_run(settings, folder, {{progress}, [] { return interrupted().load(); }});
  return finish(result, settings, *progress, options.quiet);
}

// All other options would make the resumed run a different run.
std::vector<Given> resume_overrides(const TrainOptions& options) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError(
        fmt::format("{} cannot change when a run is resumed", what),
        fmt::format("--resume keeps the settings of {}; only --epochs, --device, --threads, "
                    "--strict, --allow, --data (if the data has moved), and some settings of "
                    "--set (drop_last, max_steps, workers ...) may differ. Omit --resume to start "
                    "a new run",
                    options.resume));
  };
  if (!options.model.empty()) refuse("MODEL");
  if (!options.target.empty()) refuse("--target");
  if (options.folds != 0) refuse("--folds");
  if (!options.out.empty()) refuse("--out");
  if (!options.config.empty()) refuse("--config");
  std::vector<Given> overrides = given_on_command_line(options);
  for (const Given& given : overrides)
    if (given.source != "--set" && !may_change_on_resume(given.setting.first)) refuse(given.source);
  return overrides;
}

int resume(const TrainOptions& options) {
  const std::vector<Given> given = resume_overrides(options);
  const bool folds = train::folds_in(options.resume) > 0;
  if (!folds) require_run(options.resume);
  train::Settings settings =
      folds ? train::settings_of_folds(options.resume) : train::Settings::of_run(options.resume);
  std::vector<KeyValue> overrides;
  overrides.reserve(given.size());
  for (const Given& each : given) {
    apply(settings, each);
    overrides.push_back(each.setting);
  }
  if (options.settings) {
    fmt::print("{}", settings.toml());
    return kOk;
  }
  set_threads(settings.threads);
  if (folds)
    return finish_folds(train::resume_folds(options.resume, fold_options(options.quiet), overrides),
                        settings, options.resume);
  const auto progress = make_progress(settings, options.resume, options.quiet);
  const train::TrainResult result = train::resume_run(
      options.resume, {{progress}, [] { return interrupted().load(); }}, overrides);
  return finish(result, settings, *progress, options.quiet);
}

int run_train(const TrainOptions& options) {
  if (!options.memory_limit.empty())
    set_memory_limit(parse_bytes("--memory-limit", options.memory_limit));
  catch_interrupts("stopping after the current step; Ctrl-C again stops at once");
  if (!options.quiet) show_tuning();
  return options.resume.empty() ? start(options) : resume(options);
}

// Values of a setting, for completion and help; the library checks them.
std::vector<std::string> words_for(const std::string& key) {
  if (key == "data") {
    std::vector<std::string> kinds;
    for (const data::SourceKind& kind : data::source_kinds())
      kinds.push_back(fmt::format("{}{}", kind.name, kind.needs_path ? ":" : ""));
    return kinds;
  }
  if (key == "task") return train::task_names();
  if (key == "augment")
    return {"auto",
            "none",
            "flip",
            "crop=4,flip",
            "crop=4,flip,cutout=8",
            "resized_crop,flip",
            "resized_crop,flip,randaugment"};
  if (key == "augment_on") return {"auto", "cpu", "gpu", "both"};
  if (key == "broken") return {"skip", "error"};
  if (key == "allow") return {"seen"};
  if (key == "sampling") return {"uniform", "balanced"};
  if (key == "keep_frozen") return {"auto", "memory", "disk", "off"};
  if (key == "optimizer") return optim::names();
  if (key == "schedule") return optim::schedule_names();
  if (key == "device") return {"cpu", "cuda"};
  if (key == "precision") return {"fp32", "tf32", "bf16", "fp16"};
  if (key == "tune") return {"off", "read", "write"};
  return {};
}

std::string help_of(const Shortcut& shortcut) {
  const std::string key = shortcut.key;
  const bool listed = key == "optimizer" || key == "schedule";
  return listed ? fmt::format("{}: {}", shortcut.help, join(words_for(key), ", ")) : shortcut.help;
}

// The default, for the help; "": the recipe's.
std::string fallback_of(const std::string& key) {
  static const std::map<std::string, std::string> fallbacks{
      {"data", "the model's: digits, scenes, random or numbers"},
      {"task", "classification"},
      {"augment", "auto"},
      {"augment_on", "auto"},
      {"keep_frozen", "auto"},
      {"unfreeze_after", "never"},
      {"broken", "skip"},
      {"allow", "none"},
      {"sampling", "uniform"},
      {"temperature", "4"},
      {"distill_weight", "0.5"},
      {"threads", "all CPUs"},
      {"seed", "0"},
      {"device", "cpu"},
      {"precision", "fp32"},
      {"tune", "read"}};
  const auto found = fallbacks.find(key);
  return found == fallbacks.end() ? "" : found->second;
}

void add_options(Command& command, TrainOptions& options) {
  Positional& model =
      command.positional(options.model, "MODEL",
                         "network: lenet5, resnet56, mlp:784-300-10 (sizes in the name); 'tenon "
                         "models' lists all; or a file of your own, net.toml",
                         false);
  model.suggestions = models::names();
  for (std::size_t i = 0; i < std::size(kShortcuts); ++i) {
    const Shortcut& shortcut = kShortcuts[i];
    command.group(shortcut.group)
        .option(options.shortcuts[i], shortcut.flag, shortcut.value, help_of(shortcut),
                fallback_of(shortcut.key))
        .suggestions = words_for(shortcut.key);
    if (std::string(shortcut.key) != "data") continue;
    command.option(options.target, "--target", "NAME",
                   "column of the table to predict, as csv:FILE,label=NAME does",
                   "label, class, target, y or the last one");
    command.option(options.folds, "--folds", "K",
                   "K-fold cross-validation: K runs, each tested on the part that it was not "
                   "trained on; prints the mean",
                   "one run");
    command.flag(options.strict, "--strict",
                 "treat notes as errors: data that would be skipped, converted or assumed");
  }
  command.option(options.memory_limit, "--memory-limit", "SIZE",
                 "refuse to start if the plan needs more memory, for example 800MB", "none");
  command.group("The run");
  command
      .option(options.out, "--out", "DIR", "run folder to write, new or empty",
              "runs/MODEL; runs/MODEL-2 and so on if it exists")
      .completes = Completes::Folders;
  command
      .option(
          options.resume, "--resume", "DIR",
          "continue this run, or these folds, with their saved settings; only --epochs, --device, "
          "--threads, --strict, --allow, --data (if the data has moved), and --set of settings "
          "such as drop_last and workers may differ")
      .completes = Completes::Folders;
  command
      .option(options.config, "--config", "FILE.toml",
              "read settings from a TOML file of key = value lines")
      .completes = Completes::Files;
  command.option(options.sets, "--set", "KEY=VALUE", "set any setting by name; can be repeated");
  command.flag(options.settings, "--settings",
               "print the resolved settings as TOML (a --config file) and exit");
  command.flag(options.quiet, "--quiet", "print only a line per epoch and one at the end");
}

}  // namespace

Command train_command() {
  auto options = std::make_shared<TrainOptions>();
  Command command;
  command.name = "train";
  command.summary = "train a network and keep the run in a folder";
  command.about =
      "Trains MODEL and writes settings, logs, checkpoints and the trained model to a run folder. "
      "Without options it uses the model's recipe and synthetic data, which needs no download; a "
      "language model needs --data. Settings come from the recipe, then --config, then --set, then "
      "the options below; later ones win.\n\nCtrl-C finishes the current step, saves a checkpoint "
      "and prints how to resume. Even after kill -9 the folder contains a complete checkpoint. A "
      "resumed run ends with the same weights, bit for bit, as an uninterrupted one. The same seed "
      "gives the same bits with any number of threads.";
  command.examples = {
      {"tenon train lenet5", "LeNet-5 on 60,000 synthetic digits, in under a minute."},
      {"tenon train keras_cnn --data mnist --epochs 5",
       "A larger network on MNIST ('tenon data fetch mnist' downloads it)."},
      {"tenon train mlp:784-300-10 --optimizer adam --lr 0.001 --out runs/small",
       "Two linear layers with sizes of your choice."},
      {"tenon train --resume runs/lenet5 --epochs 20", "Continue a stopped or finished run."},
      {"tenon new net.toml && tenon train net.toml",
       "A network of your own in a file; docs/model_toml.md describes the format."},
      {"tenon train lenet5 --settings > mine.toml && tenon train --config mine.toml",
       "All settings in a file that you can edit."},
  };
  add_options(command, *options);
  command.run = [options] { return run_train(*options); };
  return command;
}

}  // namespace tenon::cli
