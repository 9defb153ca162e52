// tenon summary: layers, sizes and multiply-adds of a model, and the planned memory of training and
// inference. Nothing is run.
#include <fmt/core.h>
#include <tenon/models.h>
#include <tenon/shapes_only.h>
#include <tenon/system.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include <tenon/train.h>

#include "commands.h"
#include "data_paths.h"
#include "errors.h"
#include "json.h"
#include "step.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

struct SummaryOptions {
  std::string model, memory_limit, precision;
  std::optional<std::int64_t> batch;
  bool json = false, toml = false;
};

struct Memory {
  std::int64_t train = 0, train_leaves = 0, infer = 0, infer_leaves = 0;
};

Memory plan_memory(const Network& network, std::int64_t batch) {
  const Step train = training_step(network, batch, network.update);
  const Plan train_plan = train.function.plan(train.inputs);
  const Step infer = inference_step(network, batch);
  const Plan infer_plan = infer.function.plan(infer.inputs);
  return {train_plan.peak_bytes(), train_plan.leaf_bytes(), infer_plan.peak_bytes(),
          infer_plan.leaf_bytes()};
}

std::string shorten(const std::string& text, int width) {
  return columns(text) <= width ? text
                                : text.substr(0, static_cast<std::size_t>(width - 3)) + "...";
}

void print_layers(const nn::ModuleSummary& summary) {
  const Terminal& terminal = stdout_terminal();
  int path = 5, kind = 4, shape = 6;
  for (const auto& row : summary.rows) {
    path = std::max(path, columns(printable(row.path)));
    kind = std::max(kind, std::min(columns(row.kind), 52));
    shape = std::max(shape, columns(row.output_text()));
  }
  fmt::print("{}\n",
             terminal.paint(TextStyle::Bold,
                            fmt::format("{}  {}  {}  {:>12}  {:>15}", pad_right("layer", path),
                                        pad_right("kind", kind), pad_right("output", shape),
                                        "parameters", "multiply-adds")));
  for (const auto& row : summary.rows)
    fmt::print("{}  {}  {}  {:>12}  {:>15}\n", pad_right(printable(row.path), path),
               pad_right(shorten(row.kind, kind), kind), pad_right(row.output_text(), shape),
               row.parameters == 0 ? "-" : thousands(row.parameters),
               row.multiply_adds == 0 ? "-" : thousands(row.multiply_adds));
}

void print_text(const nn::ModuleSummary& summary, const Memory& memory,
                const SummaryOptions& options, const std::string& model) {
  const Terminal& terminal = stdout_terminal();
  const auto fact = [&](const char* name, const std::string& text) {
    fmt::print("{} {}\n", terminal.paint(TextStyle::Cyan, pad_right(name, 14)), text);
  };
  fmt::print("{}  {} -> {}\n\n", terminal.paint(TextStyle::Bold, model),
             summary.inputs.front().str(), summary.outputs.front().str());
  print_layers(summary);
  fmt::print("\n");
  const std::string trainable = summary.trainable == summary.parameters
                                    ? "all trainable"
                                    : thousands(summary.trainable) + " trainable";
  fact("parameters", fmt::format("{} ({}), {}", thousands(summary.parameters),
                                 bytes_text(summary.parameter_bytes), trainable));
  fact("multiply-adds", fmt::format("{} a sample, {} a batch of {} (forward)",
                                    thousands(summary.multiply_adds / *options.batch),
                                    thousands(summary.multiply_adds), *options.batch));
  fact("to train",
       fmt::format("{} planned: {} of weights, optimizer state and input, {} of work space",
                   bytes_text(memory.train), bytes_text(memory.train_leaves),
                   bytes_text(memory.train - memory.train_leaves)));
  fact("to infer", fmt::format("{} planned: {} of weights and input, {} of work space",
                               bytes_text(memory.infer), bytes_text(memory.infer_leaves),
                               bytes_text(memory.infer - memory.infer_leaves)));
  const std::int64_t available = system_info().memory_available;
  if (available > 0) fact("this machine", bytes_text(available) + " of memory available");
}

void print_json(const nn::ModuleSummary& summary, const Memory& memory,
                const SummaryOptions& options, const std::string& model) {
  const auto sizes = [](const Shape& shape) {
    return std::vector<std::int64_t>(shape.begin(), shape.end());
  };
  Json layers = Json::array();
  for (const auto& row : summary.rows)
    layers.push_back({{"path", row.path},
                      {"kind", row.kind},
                      {"output", sizes(row.outputs.front())},
                      {"parameters", row.parameters},
                      {"multiply_adds", row.multiply_adds}});
  print(Json{{"model", model},
             {"batch", *options.batch},
             {"input", sizes(summary.inputs.front())},
             {"output", sizes(summary.outputs.front())},
             {"parameters", summary.parameters},
             {"trainable", summary.trainable},
             {"multiply_adds_per_sample", summary.multiply_adds / *options.batch},
             {"train_bytes", memory.train},
             {"infer_bytes", memory.infer},
             {"layers", layers}});
}

int run_summary(SummaryOptions options) {
  const Network network = network_of(options.model);
  const std::string& model = network.name;
  if (options.toml) {
    fmt::print("{}", network.toml());
    return kOk;
  }
  if (!options.batch) options.batch = network.batch;
  set_precision(
      precision_from_name(options.precision.empty() ? network.precision : options.precision));
  const std::int64_t limit =
      options.memory_limit.empty() ? 0 : parse_bytes("--memory-limit", options.memory_limit);
  const ShapesOnly at_once;  // weights are not initialized
  const Step step = inference_step(network, *options.batch);
  const nn::ModuleSummary summary = step.net.summary(step.inputs[0]);
  const Memory memory = plan_memory(network, *options.batch);
  if (options.json)
    print_json(summary, memory, options, model);
  else
    print_text(summary, memory, options, model);
  if (limit > 0 && memory.train > limit)
    throw MemoryError(fmt::format("{} with batch {}: a training step needs {}, the limit is {}",
                                  model, *options.batch, bytes_text(memory.train),
                                  bytes_text(limit)));
  return kOk;
}

}  // namespace

Command summary_command() {
  auto options = std::make_shared<SummaryOptions>();
  Command command;
  command.name = "summary";
  command.summary = "show a model's layers, parameters, multiply-adds and memory";
  command.about =
      "Prints every layer with its output shape, parameters and multiply-adds, and the memory of a "
      "training step (with the optimizer of the recipe or the run) and of an inference. Memory is "
      "planned, not measured: the numbers are exact before anything runs. With --memory-limit, "
      "exit code 6 means that training does not fit.";
  command.examples = {
      {"tenon summary lenet5", "With the batch size of its recipe."},
      {"tenon summary mlp:784-300-10 --batch 256", "A network with sizes of your choice."},
      {"tenon summary fcn_r --batch 4096 --memory-limit 500MB",
       "Check whether training fits into 500 MB."},
      {"tenon summary resnet18 --toml > mine.toml",
       "The network as a file that you can edit and train: tenon train mine.toml."}};
  Positional& model = command.positional(options->model, "MODEL", kModelHelp);
  model.suggestions = models::names();
  command.option(options->batch, "--batch", "N", "batch size", "the model's recipe");
  command
      .option(options->precision, "--precision", "NAME",
              "precision of matrix products and convolutions", "fp32; for a run, the run's own")
      .choices = {"fp32", "tf32", "bf16", "fp16"};
  command.option(options->memory_limit, "--memory-limit", "SIZE",
                 "fail if training needs more, for example 800MB", "none");
  command.flag(options->json, "--json", "print JSON");
  command.flag(options->toml, "--toml",
               "print the network as a TOML file for train, summary, inspect and bench");
  command.run = [options] { return run_summary(*options); };
  return command;
}

}  // namespace tenon::cli
