// tenon train: resolves settings, trains with progress output, prints a summary and the next
// commands.
//
// Precedence of settings: the model's recipe < --config < --set < options. The library checks their
// values.
#include <fmt/core.h>
#include <tenon/compute.h>
#include <tenon/models.h>
#include <tenon/train.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "data_paths.h"
#include "errors.h"
#include "interrupt.h"
#include "progress.h"
#include "terminal.h"
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

std::string intro(const train::Settings& settings, const std::string& folder,
                  std::int64_t parameters) {
  const models::Info info = settings.model_info();
  const std::string momentum =
      settings.optimizer == "sgd" ? fmt::format(", momentum {:g}", settings.momentum) : "";
  return fmt::format("{}  {} parameters, input {}\n",
                     stdout_terminal().paint(TextStyle::Bold, settings.model),
                     thousands(parameters), info.input.str()) +
         fmt::format(
             "data {}, {} epoch{}, batch {}, {} with lr {:g}{}, {} schedule, {} on {}, {} "
             "thread{}, "
             "seed {}\n",
             printable(settings.data), settings.epochs, settings.epochs == 1 ? "" : "s",
             settings.batch, settings.optimizer, settings.lr, momentum, settings.schedule,
             settings.precision, settings.device, threads(), threads() == 1 ? "" : "s",
             settings.seed) +
         fmt::format("run folder {}\n", printable(folder));
}

std::shared_ptr<Progress> make_progress(const train::Settings& settings, const std::string& folder,
                                        bool quiet) {
  return std::make_shared<Progress>(
      [=](std::int64_t parameters) { return intro(settings, folder, parameters); }, settings.epochs,
      train::task_of(settings), quiet);
}

std::string next_epochs(int epochs) { return std::to_string(epochs + std::max(1, epochs / 2)); }

// Options to continue a finished run. A step limit would end it at once.
std::string to_train_on(const train::TrainResult& result, const train::Settings& settings) {
  const bool limited = settings.max_steps > 0 && result.steps >= settings.max_steps;
  const bool epochs_left = std::ssize(result.epochs) < settings.epochs;
  std::string out;
  if (!limited || !epochs_left) out = "--epochs " + next_epochs(settings.epochs);
  if (limited) out += out.empty() ? "--set max_steps=0" : " --set max_steps=0";
  return out;
}

void print_next_steps(const train::TrainResult& result, const train::Settings& settings) {
  const std::string& folder = result.run_dir;
  const Terminal& terminal = stdout_terminal();
  std::vector<std::pair<std::string, std::string>> lines;
  const std::string run = shell_word(folder), data = shell_word(settings.data);
  const models::Info info = settings.model_info();
  const bool handwriting =
      settings.data.starts_with("digits") || settings.data.starts_with("mnist");
  const train::TaskWords words = train::task_of(settings)->words(info);
  lines.emplace_back("tenon eval " + run, words.evaluation);
  if (!words.purpose.empty())
    lines.emplace_back(fmt::format("tenon {} {} {}", words.command, run,
                                   settings.data == "numbers" ? "--prompt 'French: twenty-one'"
                                   : words.first.empty()      ? words.arguments
                                                              : words.first),
                       words.purpose);
  if (handwriting)
    lines.emplace_back(fmt::format("tenon predict {} --data {}", run, data),
                       "predictions for test samples, with images");
  if (info.input.rank() == 3)
    lines.emplace_back(
        fmt::format("tenon predict {} photo.jpg", run),
        handwriting ? "predict a photograph of your handwriting" : "predict your own image");
  lines.emplace_back("tenon verify " + run, "check that the run is reproducible bit for bit");
  lines.emplace_back(fmt::format("tenon train --resume {} {}", run, to_train_on(result, settings)),
                     "train on");
  if (settings.data.starts_with("digits")) {
    if (!holds_mnist(mnist_folder()))
      lines.emplace_back("tenon data fetch mnist", "download real handwriting, 12 MB");
    lines.emplace_back(fmt::format("tenon train {} --data mnist", settings.model),
                       "train on real handwriting");
  }
  int left = 0;
  for (const auto& [command, what] : lines) left = std::max(left, columns(command));
  fmt::print("\n{}\n", terminal.paint(TextStyle::Bold, "Next"));
  for (const auto& [command, what] : lines)
    fmt::print("  {}  {}\n", terminal.paint(TextStyle::Green, pad_right(command, left)), what);
}

// The best value of the monitored metric.
std::string best_text(const train::TrainResult& result, const train::Task& task) {
  const train::MetricInfo metric = task.metric(task.monitored());
  const bool own = result.best_figure == "validation " + metric.shown();
  return own ? metric_text(*result.best, metric.form) : figure_text(*result.best);
}

std::string samples_text(std::int64_t count) {
  return fmt::format("{} sample{}", thousands(count), count == 1 ? "" : "s");
}

std::string what_was_done(const train::TrainResult& result) {
  const bool early = result.reason == train::StopReason::EarlyStop;
  return fmt::format("{} after {} step{} in {}", early ? "Stopped early" : "Done",
                     thousands(result.steps), result.steps == 1 ? "" : "s",
                     duration_text(result.seconds));
}

// Each number with the part that it was measured on, and how many samples that was.
std::vector<std::string> what_was_measured(const train::TrainResult& result,
                                           const train::Task& task) {
  std::vector<std::string> lines;
  if (result.validation_samples == 0)
    lines.push_back(fmt::format("no validation part: the weights of the last epoch ({}) are kept",
                                result.kept_epoch));
  else if (!result.best && !result.best_figure.empty())
    lines.push_back(
        fmt::format("no epoch is the best: the validation loss was not a number (NaN); the "
                    "weights of the last epoch ({}) are kept",
                    result.kept_epoch));
  else if (result.best)
    lines.push_back(fmt::format("best {} {} (epoch {}, {})", result.best_figure,
                                best_text(result, task), result.best_epoch,
                                samples_text(result.validation_samples)));
  if (!result.test) return lines;
  const train::TestReport& test = *result.test;
  lines.push_back(fmt::format("test {} (epoch {}, {}, measured once)",
                              metrics_text(task, test.metrics, test.loss, false), test.epoch,
                              samples_text(test.samples)));
  if (result.test_seen && result.test_seen->seen > 0)
    lines.push_back(
        fmt::format("training has seen {} of the test part", to_string(*result.test_seen)));
  return lines;
}

void print_summary(const train::TrainResult& result, const train::Settings& settings,
                   const Progress& progress) {
  const Terminal& terminal = stdout_terminal();
  const auto fact = [&](const char* name, const std::string& text) {
    fmt::print("  {} {}\n", terminal.paint(TextStyle::Cyan, pad_right(name, 11)), text);
  };
  fmt::print("\n{}\n", terminal.paint(TextStyle::Bold, what_was_done(result)));
  for (const std::string& line : what_was_measured(result, *train::task_of(settings)))
    fmt::print("{}\n", terminal.paint(TextStyle::Bold, line));
  fact("parameters", fmt::format("{} ({})", thousands(progress.parameters()),
                                 bytes_text(4 * progress.parameters())));
  if (const double first = progress.first_step_seconds(); first > 0)
    fact("first step", fmt::format("{} after the command began", duration_text(first)));
  fact("memory",
       fmt::format("{} of tensors at the highest point", bytes_text(runner_stats().peak_memory)));
  if (result.data_seconds > 0)
    fact("data", fmt::format("waited for during {} ({:.1f} %)", duration_text(result.data_seconds),
                             100 * result.data_seconds / std::max(result.seconds, 1e-9)));
  if (!result.broken.empty()) fact("broken", broken_text(result.broken));
  fact("model", printable(result.run_dir) + "/model.safetensors");
  fact("run folder", printable(result.run_dir) + "  (settings, logs, checkpoints)");
  print_next_steps(result, settings);
}

int finish(const train::TrainResult& result, const train::Settings& settings,
           const Progress& progress, bool quiet) {
  clear_status_line();
  if (result.reason == train::StopReason::Interrupted) {
    fmt::print(
        "\nstopped after step {}; everything is saved in {}\nresume with: tenon train --resume "
        "{}\n",
        thousands(result.steps), printable(result.run_dir), shell_word(result.run_dir));
    return interrupt_code();
  }
  if (progress.first_step_seconds() == 0)
    fmt::print("this run is already finished; {}\n",
               settings.max_steps > 0 && result.steps >= settings.max_steps
                   ? "max_steps ended it: --set max_steps=0 removes the limit"
                   : "--epochs N trains on, where N counts all epochs");
  if (quiet)
    fmt::print("{}; {}; run folder {}\n", what_was_done(result),
               join(what_was_measured(result, *train::task_of(settings)), "; "),
               printable(result.run_dir));
  else
    print_summary(result, settings, progress);
  return kOk;
}

// Metrics of the folds, on the part that each was not trained on.
struct FoldFigure {
  std::string name;
  train::MetricForm form;
  std::vector<double> values{};
};

void add_figures(std::vector<FoldFigure>& figures, const train::Task& task,
                 const train::TestReport& test) {
  const auto add = [&](const std::string& name, train::MetricForm form, double value) {
    auto found = std::find_if(figures.begin(), figures.end(),
                              [&](const FoldFigure& figure) { return figure.name == name; });
    if (found == figures.end()) found = figures.insert(found, {name, form});
    found->values.push_back(value);
  };
  const std::string first = task.monitored();
  if (!test.metrics[first]) add("test loss", train::MetricForm::Figure, test.loss);
  for (const train::MetricInfo& metric : task.metrics())
    if (const std::optional<double> value = test.metrics[metric.name])
      add(metric.name == first ? "test " + metric.shown() : metric.shown(), metric.form, *value);
}

// How many test samples equal training samples of their fold, of each fold too; "" for none.
std::string seen_in_folds(const std::vector<train::TrainResult>& results) {
  std::int64_t seen = 0, samples = 0;
  bool exact = true;
  std::vector<std::string> each;
  for (const train::TrainResult& result : results) {
    if (!result.test_seen) continue;
    seen += result.test_seen->about(), samples += result.test_seen->samples;
    exact = exact && result.test_seen->is_exact();
    each.push_back(thousands(result.test_seen->about()));
  }
  if (seen == 0) return "";
  return fmt::format("training has seen {}{} of {} of the test parts  ({})", exact ? "" : "about ",
                     thousands(seen), samples_text(samples), join(each, ", "));
}

void print_folds(const std::vector<train::TrainResult>& results, const train::Task& task,
                 const std::string& folder) {
  const Terminal& terminal = stdout_terminal();
  std::vector<FoldFigure> figures;
  std::int64_t samples = 0;
  for (const train::TrainResult& result : results) {
    if (!result.test) continue;
    add_figures(figures, task, *result.test);
    samples += result.test->samples;
  }
  fmt::print(
      "\n{}\n",
      terminal.paint(
          TextStyle::Bold,
          fmt::format("{} folds, each tested on the part that it was not trained on ({} in total)",
                      results.size(), samples_text(samples))));
  for (const FoldFigure& figure : figures) {
    const auto text = [&](double v) { return metric_text(v, figure.form); };
    double sum = 0, squares = 0;
    for (const double v : figure.values) sum += v;
    const double count = static_cast<double>(figure.values.size()), mean = sum / count;
    for (const double v : figure.values) squares += (v - mean) * (v - mean);
    std::vector<std::string> each;
    for (const double v : figure.values) each.push_back(text(v));
    fmt::print("  {} {} ± {}  ({})\n", terminal.paint(TextStyle::Cyan, pad_right(figure.name, 14)),
               text(mean), text(std::sqrt(squares / std::max(count - 1, 1.0))), join(each, ", "));
  }
  if (const std::string seen = seen_in_folds(results); !seen.empty()) fmt::print("  {}\n", seen);
  fmt::print("  {} {}\n", terminal.paint(TextStyle::Cyan, pad_right("run folders", 14)),
             shell_word(folder + "/fold-1") + " …");
}

// The library's message would name its own option.
void refuse_folder_of_a_run(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(folder + "/settings.toml", ignored))
    throw UsageError(
        fmt::format("--out: {} already holds a run", folder),
        fmt::format("continue it with --resume {}, or choose another folder", shell_word(folder)));
}

// Results of all folds; only the last one can be interrupted.
int finish_folds(const std::vector<train::TrainResult>& results, const train::Settings& settings,
                 const std::string& folder) {
  clear_status_line();
  if (results.back().reason != train::StopReason::Interrupted) {
    print_folds(results, *train::task_of(settings), folder);
    return kOk;
  }
  fmt::print(
      "\nstopped in fold {}; everything is saved in {}\nresume with: tenon train --resume {}\n",
      results.size(), printable(folder), shell_word(folder));
  return interrupt_code();
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

void add_options(Command& command, TrainOptions& options) {
  Positional& model =
      command.positional(options.model, "MODEL",
                         "network: lenet5, resnet56, mlp:784-300-10 (sizes in the name); 'tenon "
                         "models' lists all; or a file of your own, net.toml",
                         false);
  model.suggestions = models::names();
  for (std::size_t i = 0; i < std::size(kShortcuts); ++i) {
    const Shortcut& shortcut = kShortcuts[i];
    const std::string fallback = std::string(shortcut.key) == "data"
                                     ? "the model's: digits, scenes, random or numbers"
                                 : std::string(shortcut.key) == "task"           ? "classification"
                                 : std::string(shortcut.key) == "augment"        ? "auto"
                                 : std::string(shortcut.key) == "augment_on"     ? "auto"
                                 : std::string(shortcut.key) == "keep_frozen"    ? "auto"
                                 : std::string(shortcut.key) == "unfreeze_after" ? "never"
                                 : std::string(shortcut.key) == "broken"         ? "skip"
                                 : std::string(shortcut.key) == "allow"          ? "none"
                                 : std::string(shortcut.key) == "sampling"       ? "uniform"
                                 : std::string(shortcut.key) == "temperature"    ? "4"
                                 : std::string(shortcut.key) == "distill_weight" ? "0.5"
                                 : std::string(shortcut.key) == "threads"        ? "all CPUs"
                                 : std::string(shortcut.key) == "seed"           ? "0"
                                 : std::string(shortcut.key) == "device"         ? "cpu"
                                 : std::string(shortcut.key) == "precision"      ? "fp32"
                                 : std::string(shortcut.key) == "tune"           ? "read"
                                                                                 : "";
    command.group(shortcut.group)
        .option(options.shortcuts[i], shortcut.flag, shortcut.value, help_of(shortcut), fallback)
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
      "and prints how to resume. Even after kill -9 the folder holds a complete checkpoint. A "
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
