// tenon models: the networks that the command knows by name.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include <tenon/models.h>

#include "commands.h"
#include "json.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

struct Options {
  bool json = false;
};

void print_table(const std::vector<models::Info>& all) {
  int name = 4, input = 5, count = 10;
  for (const models::Info& model : all) {
    name = std::max(name, columns(model.name));
    input = std::max(input, columns(model.input.str()));
    count = std::max(count, columns(thousands(model.parameters)));
  }
  fmt::print("{}\n", stdout_terminal().paint(
                         TextStyle::Bold,
                         fmt::format("{}  {}  {}  about", pad_right("name", name),
                                     pad_right("input", input), pad_left("parameters", count))));
  for (const models::Info& model : all)
    fmt::print("{}  {}  {}  {}\n", pad_right(model.name, name), pad_right(model.input.str(), input),
               pad_left(thousands(model.parameters), count), model.about);
}

int run(const Options& options) {
  const std::vector<models::Info> all = models::list();
  if (!options.json) {
    print_table(all);
    return 0;
  }
  Json out = Json::array();
  for (const models::Info& model : all)
    out.push_back({{"name", model.name},
                   {"about", model.about},
                   {"input", std::vector<std::int64_t>(model.input.begin(), model.input.end())},
                   {"classes", model.classes},
                   {"parameters", model.parameters},
                   {"data", model.recipe.data}});
  print(out, 2);
  return 0;
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const models::Info& model : models::list()) names.push_back(model.name);
  return names;
}

Command models_command() {
  auto options = std::make_shared<Options>();
  Command command;
  command.name = "models";
  command.summary = "list the networks known by name";
  command.about =
      "Lists every network that train, summary, inspect and bench take by name, with the shape of "
      "one input, the number of its parameters, and what it is. Names and shapes of parameters are "
      "PyTorch's, so that weights load without a mapping.";
  command.examples = {{"tenon models", "All of them."},
                      {"tenon summary resnet50", "One of them, layer by layer."}};
  command.flag(options->json, "--json", "print JSON");
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace tenon::cli
