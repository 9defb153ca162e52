// tenon models: lists the built-in networks.
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

struct ModelsOptions {
  bool json = false;
};

constexpr int kDescriptionWidth = 24;

void print_table(const std::vector<models::Info>& all) {
  int name = 4, input = 5, count = 10;
  for (const models::Info& model : all) {
    name = std::max(name, columns(model.name));
    input = std::max(input, columns(model.input.str()));
    count = std::max(count, columns(thousands(model.parameters)));
  }
  const auto row = [&](const std::string& a, const std::string& b, const std::string& c) {
    return fmt::format("{}  {}  {}", pad_right(a, name), pad_right(b, input), pad_left(c, count));
  };
  // In a terminal, wrap at words; on a narrow terminal the description is on the next line.
  const Terminal& terminal = stdout_terminal();
  const int left = name + input + count + 6;
  const bool beside = !terminal.interactive || left + kDescriptionWidth <= terminal.width;
  fmt::print("{}\n", terminal.paint(TextStyle::Bold, row("name", "input", "parameters") +
                                                         (beside ? "  about" : "")));
  for (const models::Info& model : all) {
    const std::string first = row(model.name, model.input.str(), thousands(model.parameters));
    if (!terminal.interactive) {
      fmt::print("{}  {}\n", first, model.about);
      continue;
    }
    const std::string about = wrap(model.about, terminal.width, beside ? left : 4);
    fmt::print("{}{}", first,
               beside ? about.substr(static_cast<std::size_t>(left) - 2) : "\n" + about);
  }
}

int run_models(const ModelsOptions& options) {
  const std::vector<models::Info> all = models::list();
  if (!options.json) {
    print_table(all);
    return 0;
  }
  Json out = Json::array();
  for (const models::Info& model : all) {
    const bool has_data = !model.takes_tokens() || model.pairs;  // others need --data
    out.push_back({{"name", model.name},
                   {"about", model.about},
                   {"input", std::vector<std::int64_t>(model.input.begin(), model.input.end())},
                   {"classes", model.classes},
                   {"parameters", model.parameters},
                   {"data", has_data ? Json(model.recipe.data) : Json()}});
  }
  print(out, 2);
  return 0;
}

}  // namespace

Command models_command() {
  auto options = std::make_shared<ModelsOptions>();
  Command command;
  command.name = "models";
  command.summary = "list the built-in networks";
  command.about =
      "Lists every network that train, summary, inspect and bench accept by name, with the shape "
      "of one input, the number of parameters and a description. Parameter names and shapes are "
      "PyTorch's, so weights load without a mapping.";
  command.examples = {{"tenon models", "All networks."},
                      {"tenon summary resnet50", "One network, layer by layer."}};
  command.flag(options->json, "--json", "print JSON");
  command.run = [options] { return run_models(*options); };
  return command;
}

}  // namespace tenon::cli
