// The output of 'tenon train': progress, the summary of a run or of folds, and the next commands.
#include "train_output.h"

#include <fmt/core.h>
#include <tenon/compute.h>
#include <tenon/models.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "args.h"
#include "data_paths.h"
#include "errors.h"
#include "interrupt.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

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
    if (!fetched_mnist().present)
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

// The number of test samples that equal a training sample of their fold, in all and for each fold;
// "" if there are none.
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
  std::set<std::string> broken;
  for (const train::TrainResult& result : results)
    broken.insert(result.broken.begin(), result.broken.end());
  if (!broken.empty()) fmt::print("  {}\n", broken_text({broken.begin(), broken.end()}));
  fmt::print("  {} {}\n", terminal.paint(TextStyle::Cyan, pad_right("run folders", 14)),
             shell_word(folder + "/fold-1") + " …");
}

}  // namespace

std::shared_ptr<Progress> make_progress(const train::Settings& settings, const std::string& folder,
                                        bool quiet) {
  return std::make_shared<Progress>(
      [=](std::int64_t parameters) { return intro(settings, folder, parameters); }, settings.epochs,
      train::task_of(settings), quiet);
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
  if (quiet) {
    std::vector<std::string> facts = what_was_measured(result, *train::task_of(settings));
    if (!result.broken.empty()) facts.push_back(broken_text(result.broken));
    fmt::print("{}; {}; run folder {}\n", what_was_done(result), join(facts, "; "),
               printable(result.run_dir));
  } else {
    print_summary(result, settings, progress);
  }
  return kOk;
}

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

}  // namespace tenon::cli
