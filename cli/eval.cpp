// tenon eval: evaluates a trained model and prints metrics, a confusion matrix or JSON.
#include <fmt/core.h>
#include <tenon/compute.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/train.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "errors.h"
#include "json.h"
#include "progress.h"
#include "terminal.h"
#include "trained.h"
#include "tuning.h"

namespace tenon::cli {
namespace {

struct EvalOptions {
  TrainedOptions trained;
  PartOptions part;
  std::string data, precision, confusion;
  int threads = 0;
  std::string device = "cpu", tune = "read";
  std::optional<std::int64_t> batch;
  bool json = false;
};

// "0.9123", or the reason why a metric is undefined.
std::string curve_text(const std::optional<double>& value) {
  if (!value) return "not computed: too many samples times classes";
  return std::isfinite(*value) ? figure_text(*value) : "not defined for these classes";
}

void print_class_figures(const train::Evaluation& e,
                         const std::function<void(const char*, const std::string&)>& fact) {
  const metrics::ConfusionMatrix& matrix = e.confusion;
  fact("accuracy", stdout_terminal().paint(TextStyle::Bold, percent(e.accuracy)));
  fact("balanced acc.", percent(matrix.balanced_accuracy()));
  if (matrix.classes() > 3) fact("top-3 accuracy", percent(e.top3_accuracy));
  if (matrix.classes() > 5) fact("top-5 accuracy", percent(e.top5_accuracy));
  fact("macro F1", percent(matrix.macro_f1()));
  fact("Matthews corr.", figure_text(matrix.matthews()));
  fact("ROC AUC", curve_text(e.roc_auc));
  fact("avg. precision", curve_text(e.average_precision));
  fact("log loss", figure_text(e.log_loss));
}

// The evaluated data, and what was excluded.
void print_measured(const train::Evaluation& e, const std::string& data,
                    const std::function<void(const char*, const std::string&)>& fact) {
  fact("data", fmt::format("{}: {}", part_text(*e.part, printable(data)),
                           part_size_text(e.items, e.of_items)));
  fact("seen in training",
       printable(e.seen ? to_string(*e.seen) : fmt::format("not known: {}", e.seen_unknown)));
  if (e.targets != e.items && e.errors == std::nullopt)
    fact("targets", fmt::format("{} counted", thousands(e.targets)));
  if (e.ignored > 0)
    fact("left out", fmt::format("{} targets that the loss ignores", thousands(e.ignored)));
  if (!e.broken.empty()) fact("broken", broken_text(e.broken));
  if (e.confusion.undecided() > 0)
    fact("no class", fmt::format("{} samples whose scores are not finite; they count as wrong",
                                 thousands(e.confusion.undecided())));
}

bool has_classes(const train::TrainedModel& model) {
  return model.task().output_form() == train::OutputForm::Classes;
}

// The rows of the task, without the accuracy that the tables of classes begin with.
std::vector<train::EvaluationRow> own_rows(const train::Evaluation& evaluation,
                                           const train::TrainedModel& model) {
  std::vector<train::EvaluationRow> rows = model.task().rows(evaluation);
  if (has_classes(model))
    std::erase_if(rows, [](const train::EvaluationRow& row) { return row.key == "accuracy"; });
  return rows;
}

void print_figures(const train::Evaluation& evaluation, const train::TrainedModel& model) {
  const Terminal& terminal = stdout_terminal();
  const std::function<void(const char*, const std::string&)> fact = [&](const char* name,
                                                                        const std::string& text) {
    fmt::print("{} {}\n", terminal.paint(TextStyle::Cyan, pad_right(name, 16)), text);
  };
  fact("model", fmt::format("{} ({})", model.settings().model, printable(model.file())));
  print_measured(evaluation, evaluation.data, fact);
  if (has_classes(model)) print_class_figures(evaluation, fact);
  for (const train::EvaluationRow& row : own_rows(evaluation, model)) {
    const std::string text = metric_text(row.value, row.form);
    if (!row.title.empty())
      fact(row.title.c_str(), row.headline ? terminal.paint(TextStyle::Bold, text) : text);
  }
  fact("loss", figure_text(evaluation.loss));
  fact("speed", fmt::format("{} items/s ({} in all)", rate(evaluation.items_per_s),
                            duration_text(evaluation.seconds)));
}

using Names = std::vector<std::string>;

int widest(const Names& names, int least) {
  for (const std::string& name : names) least = std::max(least, columns(name));
  return least;
}

// With up to this many classes all are listed, with more only those that occur.
constexpr int kAllShown = 1000;
bool is_shown(const metrics::ConfusionMatrix& matrix, int c) {
  return matrix.classes() <= kAllShown || matrix.support(c) + matrix.predicted(c) > 0;
}

void print_classes(const metrics::ConfusionMatrix& matrix, const Names& names) {
  const Terminal& terminal = stdout_terminal();
  const int width = widest(names, 5);
  fmt::print("\n{}\n",
             terminal.paint(TextStyle::Bold, pad_left("class", width) +
                                                 "  precision     recall         F1   samples"));
  for (int c = 0; c < matrix.classes(); ++c) {
    if (!is_shown(matrix, c)) continue;
    fmt::print("{}  {:>9}  {:>9}  {:>9}  {:>8}\n",
               pad_left(names[static_cast<std::size_t>(c)], width), percent(matrix.precision(c)),
               percent(matrix.recall(c)), percent(matrix.f1(c)), thousands(matrix.support(c)));
  }
}

// Names that fit into narrow columns: whole, truncated if they remain distinct, or class numbers.
Names column_names(const Names& names, int width) {
  Names out;
  out.reserve(names.size());
  for (const std::string& name : names) out.push_back(cut(name, width));
  Names sorted = out;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return out;
  for (std::size_t c = 0; c < out.size(); ++c) out[c] = std::to_string(c);
  return out;
}

// Rows are true classes. Shades are relative to the row, so rare classes show their errors, too.
void print_matrix(const metrics::ConfusionMatrix& matrix, const Names& names) {
  constexpr int kLongest = 24;  // longest row name
  const Terminal& terminal = stdout_terminal();
  std::int64_t largest = 0;
  for (const metrics::ConfusionMatrix::Cell& cell : matrix.cells())
    largest = std::max(largest, cell.count);
  const int classes = matrix.classes(), room = std::max(terminal.width, 80);
  const int left = std::min(widest(names, 7), kLongest);
  const int least =
      std::max(columns(std::to_string(largest)), columns(std::to_string(classes - 1)));
  const int most = (room - left - 1) / classes - 2;
  if (most < least) {
    fmt::print(
        "\nThe confusion matrix of {} classes is too wide for the terminal: --confusion FILE.csv "
        "writes it, --json prints it.\n",
        classes);
    return;
  }
  const int width = std::clamp(widest(names, 1), least, most) + 2;
  const Names heads = column_names(names, width - 2);
  const bool numbered = heads[0] != cut(names[0], width - 2);
  fmt::print("\n{}\n",
             terminal.paint(TextStyle::Bold,
                            "confusion: rows are true classes, columns are predicted classes"));
  std::string head = pad_left("", left + 1);
  for (const std::string& name : heads) head += pad_left(name, width);
  fmt::print("{}\n", terminal.paint(TextStyle::Cyan, head));
  for (int i = 0; i < classes; ++i) {
    const std::string& name = names[static_cast<std::size_t>(i)];
    const std::string row = cut(numbered ? fmt::format("{} {}", i, name) : name, left);
    std::string line = terminal.paint(TextStyle::Cyan, pad_left(row, left)) + " ";
    for (int j = 0; j < classes; ++j) {
      const std::int64_t count = matrix.count(i, j);
      const double share = static_cast<double>(count) /
                           static_cast<double>(std::max<std::int64_t>(1, matrix.support(i)));
      const std::string cell = pad_left(count == 0 ? "." : std::to_string(count), width - 1) + " ";
      // The square root makes small shares, the errors, more visible.
      line += count == 0 ? terminal.paint(TextStyle::Dim, cell)
                         : terminal.shade(0.12 + 0.88 * std::sqrt(std::min(1.0, share)), cell);
    }
    fmt::print("{}\n", line);
  }
}

// A table with true classes as rows and predicted classes as columns.
void write_matrix(const metrics::ConfusionMatrix& matrix, const Names& names,
                  const std::string& file) {
  std::string text = "true \\ predicted";
  for (const std::string& name : names) text += "," + io::csv_field(name);
  for (int i = 0; i < matrix.classes(); ++i) {
    text += "\n" + io::csv_field(names[static_cast<std::size_t>(i)]);
    for (int j = 0; j < matrix.classes(); ++j) text += "," + std::to_string(matrix.count(i, j));
  }
  io::write_file(file, text + "\n");
}

void print_worst(const metrics::ConfusionMatrix& matrix, const Names& names) {
  using Cell = metrics::ConfusionMatrix::Cell;
  std::vector<Cell> pairs = matrix.cells();
  std::erase_if(pairs, [](const Cell& cell) { return cell.target == cell.predicted; });
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Cell& a, const Cell& b) { return a.count > b.count; });
  if (pairs.empty()) {
    fmt::print("\nNo sample was predicted as another class.\n");
    return;
  }
  pairs.resize(std::min<std::size_t>(pairs.size(), 3));
  std::vector<std::string> words;
  words.reserve(pairs.size());
  for (const Cell& pair : pairs)
    words.push_back(fmt::format(
        "{} predicted as {} ({})", names[static_cast<std::size_t>(pair.target)],
        names[static_cast<std::size_t>(pair.predicted)], part_size_text(pair.count, 0)));
  fmt::print("\nmost frequent errors: {}\n", join(words, ", "));
}

// Fields common to all kinds of models, around the fields of one kind.
Json json_of(const train::Evaluation& evaluation, const train::TrainedModel& model,
             const Json& own) {
  Json json{{"model", model.settings().model},
            {"file", model.file()},
            {"data", evaluation.data},
            {"part", data::name(*evaluation.part)},
            {"items", evaluation.items}};
  if (evaluation.of_items > 0) json["of_items"] = evaluation.of_items;
  json["seen"] = nullptr;
  if (evaluation.seen) {
    json["seen"] = evaluation.seen->about();
    json["seen_exact"] = evaluation.seen->is_exact();
  }
  json["targets"] = evaluation.targets;
  json["ignored"] = evaluation.ignored;
  json["broken"] = evaluation.broken;
  json["notes"] = Json::array();
  for (const Note& note : evaluation.notes)
    json["notes"].push_back({{"text", to_string(note)}, {"count", note.count}});
  json["loss"] = evaluation.loss;
  json.update(own);
  json["seconds"] = evaluation.seconds;
  json["items_per_s"] = evaluation.items_per_s;
  return json;
}

// The task's own metrics.
Json own_figures(const train::Evaluation& evaluation, const train::TrainedModel& model) {
  Json json = Json::object();
  for (const train::EvaluationRow& row : own_rows(evaluation, model))
    if (!row.key.empty()) json[row.key] = row.value;
  return json;
}

void print_json(const train::Evaluation& evaluation, const train::TrainedModel& model,
                const Names& names) {
  const metrics::ConfusionMatrix& matrix = evaluation.confusion;
  Json classes = Json::array(), confusion = Json::array();
  for (int c = 0; c < matrix.classes(); ++c) {
    if (!is_shown(matrix, c)) continue;
    classes.push_back({{"class", c},
                       {"name", names[static_cast<std::size_t>(c)]},
                       {"precision", matrix.precision(c)},
                       {"recall", matrix.recall(c)},
                       {"f1", matrix.f1(c)},
                       {"support", matrix.support(c)}});
    if (matrix.classes() > kAllShown) continue;
    confusion.push_back(Json::array());
    for (int j = 0; j < matrix.classes(); ++j) confusion.back().push_back(matrix.count(c, j));
  }
  Json json = json_of(evaluation, model,
                      {{"accuracy", evaluation.accuracy},
                       {"balanced_accuracy", matrix.balanced_accuracy()},
                       {"top3_accuracy", evaluation.top3_accuracy},
                       {"top5_accuracy", evaluation.top5_accuracy},
                       {"macro_precision", matrix.macro_precision()},
                       {"macro_recall", matrix.macro_recall()},
                       {"macro_f1", matrix.macro_f1()},
                       {"weighted_f1", matrix.weighted_f1()},
                       {"matthews", matrix.matthews()},
                       {"log_loss", evaluation.log_loss},
                       {"undecided", matrix.undecided()}});
  if (evaluation.roc_auc) json["roc_auc"] = *evaluation.roc_auc;
  if (evaluation.average_precision) json["average_precision"] = *evaluation.average_precision;
  json.update(own_figures(evaluation, model));
  json["classes"] = classes;
  if (matrix.classes() <= kAllShown) {
    json["confusion"] = confusion;
  } else {
    for (const metrics::ConfusionMatrix::Cell& cell : matrix.cells())
      confusion.push_back({cell.target, cell.predicted, cell.count});
    json["confusion_cells"] = confusion;
  }
  print(json);
}

int run_eval(const EvalOptions& options) {
  if (options.batch && *options.batch < 1)
    throw UsageError(fmt::format("--batch: {} is too small", *options.batch), "give 1 or more");
  use_threads(options.threads);
  set_device(options.device);
  set_tuning(options.tune);
  train::TrainedModel model = open_trained(options.trained, options.part.strict);
  if (!options.trained.preprocess.empty() && model.info().input.rank() != 3)
    throw UsageError(fmt::format("--preprocess: {} takes no images", model.settings().model));
  if (!options.precision.empty()) model.set_precision(precision_from_name(options.precision));
  std::chrono::steady_clock::time_point
      shown;  // the first batch is shown, because one batch may take seconds
  const auto progress = [&shown](std::int64_t batch, std::int64_t batches) {
    const auto now = std::chrono::steady_clock::now();
    if (now - shown < std::chrono::milliseconds(100)) return;
    shown = now;
    const double done =
        static_cast<double>(batch) / static_cast<double>(std::max<std::int64_t>(1, batches));
    status_line(fmt::format("testing {} {:3.0f} %", bar_text(done, 30), done * 100));
  };
  const std::optional<data::Split> part = options.part.split();
  const train::Evaluation evaluation =
      model.evaluate(options.data, {.part = part,
                                    .batch = options.batch.value_or(0),
                                    .strict = options.part.strict,
                                    .allow_seen = options.part.allows_seen(),
                                    .progress = progress});
  clear_status_line();
  print_notes(evaluation.notes);
  const bool classes = has_classes(model);
  if (!options.confusion.empty() && !classes)
    throw UsageError(
        fmt::format("--confusion: {} does not classify samples", model.settings().model));
  if (!classes) {
    if (options.json)
      print(json_of(evaluation, model, own_figures(evaluation, model)));
    else
      print_figures(evaluation, model);
    return kOk;
  }
  Names names = model.class_names();
  while (static_cast<int>(names.size()) < evaluation.confusion.classes())
    names.push_back(std::to_string(names.size()));  // the data has more classes than the model
  if (!options.confusion.empty()) write_matrix(evaluation.confusion, names, options.confusion);
  if (options.json) {
    print_json(evaluation, model, names);
    return kOk;
  }
  for (std::string& name : names) name = printable(name);
  print_figures(evaluation, model);
  print_classes(evaluation.confusion, names);
  print_matrix(evaluation.confusion, names);
  print_worst(evaluation.confusion, names);
  return kOk;
}

}  // namespace

Command eval_command() {
  auto options = std::make_shared<EvalOptions>();
  Command command;
  command.name = "eval";
  command.summary = "measure a trained model on held-out data";
  command.about =
      "Evaluates the model of a run folder (its best epoch) and prints accuracy, loss, precision "
      "and recall of each class, the confusion matrix and the most frequent errors. For a language "
      "model it prints the loss per token and the perplexity. The run's data is split as in "
      "training and its test part is used; all samples of other files are used. The output states "
      "which part was measured and its number of samples. Of more than 1,000 classes only those "
      "that occur are listed.";
  command.examples = {
      {"tenon eval runs/lenet5", "On the test part of the data it was trained on."},
      {"tenon eval runs/flowers --data csv:others.csv", "On every row of another table."},
      {"tenon eval runs/flowers --part validation", "On the part that selected the best epoch."},
      {"tenon eval runs/lenet5/model.safetensors --json", "A single file, and JSON for programs."},
      {"tenon eval resnet18 --weights resnet18.pth --data npy:x.npy,y.npy",
       "Weights of torchvision."}};
  add_trained(command, options->trained);
  add_image(command, options->trained);
  command.option(options->data, "--data", "SPEC", kDataSpecHelp, "the run's own");
  add_part(command, options->part);
  command
      .option(options->confusion, "--confusion", "FILE.csv",
              "write the confusion matrix to a table")
      .completes = Completes::Files;
  command.option(options->batch, "--batch", "N", "batch size", "chosen for speed");
  command
      .option(options->precision, "--precision", "NAME",
              "precision of matrix products and convolutions", "the run's own")
      .choices = {"fp32", "tf32", "bf16", "fp16"};
  command.option(options->device, "--device", "NAME", "device: cpu, cuda or cuda:N", "cpu");
  add_tune_option(command, options->tune);
  command.option(options->threads, "--threads", "N", "compute threads", "all CPUs");
  command.flag(options->json, "--json", "print JSON");
  command.run = [options] { return run_eval(*options); };
  return command;
}

}  // namespace tenon::cli
