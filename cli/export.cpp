// tenon export: writes the network of a run and its predictions as a saved program, which
// load_program() runs without the network's code.
#include <fmt/core.h>
#include <tenon/compute.h>
#include <tenon/saved_program.h>
#include <tenon/train.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"
#include "errors.h"
#include "json.h"
#include "terminal.h"
#include "trained.h"

namespace tenon::cli {
namespace {

struct ExportOptions {
  TrainedOptions trained;
  std::string file;
  bool json = false;
};

// A batch of two samples; its values do not matter.
Tensor example_of(const models::Info& info) {
  Shape shape{2};
  for (const std::int64_t size : info.input) shape.push_back(size);
  return zeros(shape, info.takes_tokens() ? DType::Int64 : DType::Float32);
}

io::Metadata metadata_of(const train::TrainedModel& model) {
  const train::Settings& settings = model.settings();
  io::Metadata out{{"model", settings.model}, {"task", model.task().name()}};
  if (!model.class_names().empty()) out.emplace("classes", Json(model.class_names()).dump());
  if (model.info().takes_tokens()) return out;
  out.emplace("normalize", settings.normalize);
  out.emplace("input_mean", fmt::format("{}", settings.input_mean));
  out.emplace("input_std", fmt::format("{}", settings.input_std));
  return out;
}

int run_export(const ExportOptions& options) {
  const train::TrainedModel model = open_trained(options.trained);
  if (translates(model))
    throw NotSupported(
        "a network that translates takes two inputs and runs once for each token: "
        "it is no program of one input");
  set_precision(precision_from_name(model.settings().precision));  // kept by each operation
  const auto predict = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{model.task().predictions(model.net()(in[0]))};
  };
  const Tensor example = example_of(model.info());
  save_program(options.file, predict, {example}, {.batched = {0}, .metadata = metadata_of(model)});
  const SavedProgram program = load_program(options.file);
  const Tensor result = program({example})[0];
  Shape input = example.shape(), output = result.shape();
  if (options.json) {
    print(Json{{"file", options.file},
               {"dtype", name(example.dtype())},
               {"input", std::vector<std::int64_t>(input.begin() + 1, input.end())},
               {"output", std::vector<std::int64_t>(output.begin() + 1, output.end())}},
          2);
    return kOk;
  }
  const auto sizes = [](const Shape& shape) {
    std::string out = "N";
    for (int axis = 1; axis < shape.rank(); ++axis) out += fmt::format(", {}", shape[axis]);
    return out;
  };
  fmt::print("{}: {} [{}] -> {} [{}]\n", printable(options.file), name(example.dtype()),
             sizes(input), name(result.dtype()), sizes(output));
  return kOk;
}

}  // namespace

Command export_command() {
  auto options = std::make_shared<ExportOptions>();
  Command command;
  command.name = "export";
  command.summary = "write a trained network as a program that runs without its code";
  command.about =
      "Writes the network of a run, its weights and the predictions of its task to one file, which "
      "load_program() of the library runs on a CPU or a GPU. The program takes a batch of any "
      "size: token ids, or numbers as the network takes them. Pixels must be scaled before, by "
      "the means and deviations in the metadata. The file is a safetensors file. It is loaded and "
      "run once before the command ends.";
  command.examples = {
      {"tenon export runs/lenet5 lenet5.tenon", "Then load_program(\"lenet5.tenon\") in C++."},
      {"tenon export resnet18 resnet18.tenon --weights resnet18.pth", "Weights of torchvision."}};
  add_trained(command, options->trained);
  command.positional(options->file, "FILE", "file to write").completes = Completes::Files;
  command.flag(options->json, "--json", "print JSON");
  command.run = [options] { return run_export(*options); };
  return command;
}

}  // namespace tenon::cli
