// Facts, variables, initializers and frozen layers of a network file.
#include "models/file_head.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"
#include "models/activations.h"
#include "models/file_recipe.h"

namespace tenon::models {
namespace {

using io::TomlValue;
using Kind = TomlValue::Kind;

constexpr const char* kHeadKeys[] = {
    "name",  "about",      "input",         "classes",   "tokens", "masked",
    "pairs", "vocabulary", "activation",    "variables", "layers", "encoder",
    "init",  "freeze",     "rubbish_score", "recipe",    "blocks"};

std::string activation_of_file(const TomlValue& value) {
  const std::string& name = expect_kind(value, Kind::String, "activation", "\"relu\"").text;
  try {
    (void)named_activation(name);
  } catch (const ValueError& error) {
    throw FileFault{value.line, cat("'activation': ", error.what())};
  }
  return name;
}

// Checks the keys about inputs against each other, and derives Info::tokens.
void check_tokens(const TomlValue& tree, FileHead& head) {
  Info& info = head.info;
  const auto line = [&](const char* key) { return tree.find(key)->line; };
  if (info.masked && info.pairs)
    throw FileFault{line("masked"),
                    "'masked' and 'pairs': a translation network masks no "
                    "words; leave one of them out"};
  if ((info.masked || info.pairs) && tree.find("tokens") != nullptr && !info.tokens)
    throw FileFault{line("tokens"), cat("'tokens' is false, and '",
                                        info.masked ? "masked" : "pairs", "' is for tokens")};
  if (tree.find("vocabulary") != nullptr && (info.masked || info.pairs))
    throw FileFault{line("vocabulary"),
                    "'vocabulary': the tokens are the classes here; leave it out"};
  info.tokens = info.tokens || info.masked || info.pairs;
  if (info.pairs && (info.input.rank() != 2 || info.input[0] != 2))
    throw FileFault{line("input"), cat("'input' is ", info.input,
                                       "; with pairs = true it is 2 and the sequence length, as "
                                       "in input = [2, 64]")};
  if (!info.pairs && info.takes_tokens() && info.input.rank() != 1)
    throw FileFault{line("input"),
                    cat("'input' is ", info.input, "; ",
                        info.tokens ? "with tokens = true" : "where 'vocabulary' is given",
                        " it is the sequence length, as in input = [64]")};
  if (info.pairs && head.encoder == nullptr)
    throw FileFault{line("pairs"),
                    "'pairs' needs encoder = [ ... ], the layers that read the source"};
  if (!info.pairs && head.encoder != nullptr)
    throw FileFault{head.encoder->line,
                    "'encoder' is for translation networks: write pairs = true too"};
}

// "*" matches any characters.
bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t at = star; at <= name.size(); ++at)
    if (matches(rest, name.substr(at))) return true;
  return false;
}

}  // namespace

const TomlValue& expect_kind(const TomlValue& value, Kind kind, const char* key,
                             const char* example) {
  if (!value.is(kind))
    throw FileFault{value.line,
                    cat("'", key, "' is ", value.kind_name(), "; write ", key, " = ", example)};
  return value;
}

FileHead head_of_file(const TomlValue& tree, const std::string& path) {
  const Variables none;
  FileHead head;
  Info& info = head.info;
  info.name = path;
  const TomlValue *input = nullptr, *recipe = nullptr;
  for (const auto& [key, value] : tree.entries) {
    if (key == "name") {
      info.name = expect_kind(value, Kind::String, "name", "\"my_network\"").text;
    } else if (key == "about") {
      info.about = expect_kind(value, Kind::String, "about", "\"what it is for\"").text;
    } else if (key == "input") {
      input = &expect_kind(value, Kind::List, "input", "[1, 28, 28]");
      if (input->items.empty() || input->items.size() > 4)
        throw FileFault{value.line, "'input' must have 1 to 4 axes, as in input = [1, 28, 28]"};
    } else if (key == "activation") {
      head.activation = activation_of_file(value);
    } else if (key == "classes") {
      info.classes = whole_of(value, none, "'classes'");
    } else if (key == "tokens") {
      info.tokens = expect_kind(value, Kind::Boolean, "tokens", "true").truth;
    } else if (key == "masked") {
      info.masked = expect_kind(value, Kind::Boolean, "masked", "true").truth;
    } else if (key == "pairs") {
      info.pairs = expect_kind(value, Kind::Boolean, "pairs", "true").truth;
    } else if (key == "vocabulary") {
      info.vocabulary = whole_of(value, none, "'vocabulary'");
    } else if (key == "encoder") {
      head.encoder = &expect_kind(value, Kind::List, "encoder", "[ { embedding = 64 } ]");
    } else if (key == "rubbish_score") {
      info.rubbish_score = number_of(value, none, "'rubbish_score'");
    } else if (key == "recipe") {
      recipe = &expect_kind(value, Kind::Table, "recipe", "{ epochs = 5 }");
    } else if (key == "layers") {
      head.layers = &expect_kind(value, Kind::List, "layers", "[ \"flatten\", { linear = 10 } ]");
    } else if (std::find(std::begin(kHeadKeys), std::end(kHeadKeys), key) == std::end(kHeadKeys)) {
      throw FileFault{value.line,
                      cat("a network has no '", key, "'",
                          near_miss(key, {std::begin(kHeadKeys), std::end(kHeadKeys)}))};
    }
  }
  if (info.classes == 0)
    throw FileFault{0, "'classes' is missing: the number of outputs, as in classes = 10"};
  const Variables variables = variables_of_file(tree, info);
  if (recipe != nullptr) info.recipe = recipe_of(*recipe, variables);
  if (input == nullptr)
    throw FileFault{0, "'input' is missing: the shape of one sample, as in input = [1, 28, 28]"};
  if (head.layers == nullptr)
    throw FileFault{
        0,
        "'layers' is missing: a list such as layers = [ \"flatten\", { linear = \"classes\" } ]; "
        "above any [table], because keys after a table belong to the table"};
  for (const TomlValue& size : input->items)
    info.input.push_back(whole_of(size, variables, "'input'"));
  check_tokens(tree, head);
  return head;
}

Variables variables_of_file(const TomlValue& tree, const Info& info) {
  Variables out;
  out.set("classes", static_cast<double>(info.classes));
  if (info.vocabulary > 0) out.set("vocabulary", static_cast<double>(info.vocabulary));
  const TomlValue* table = tree.find("variables");
  if (table == nullptr) return out;
  for (const auto& [name, value] :
       expect_kind(*table, Kind::Table, "variables", "{ width = 64 }").entries) {
    const bool taken = name == "classes" || name == "vocabulary";
    if (!Variables::is_name(name) || taken)
      throw FileFault{value.line, cat("'", name, "' cannot name a variable",
                                      taken ? ": it is a key at the top of the file"
                                            : ": use letters, digits and _")};
    const std::string what = cat("variable '", name, "'");
    if (!value.is(Kind::List)) {
      out.set(name, number_of(value, out, what));
      continue;
    }
    std::vector<double> numbers;
    numbers.reserve(value.items.size());
    for (const TomlValue& item : value.items) numbers.push_back(number_of(item, out, what));
    out.set_list(name, std::move(numbers));
  }
  return out;
}

// init = [ { parameters = "*", values = { uniform = 0.1 } } ]; items are applied in order.
void draw_values_of_file(const TomlValue& tree, const Variables& variables,
                         const nn::AnyModule& net, const OptionalGenerator& generator) {
  const TomlValue* list = tree.find("init");
  if (list == nullptr) return;
  constexpr char kExample[] = "[ { parameters = \"*.bias\", values = 0 } ]";
  constexpr std::size_t kMostItems = 1'000;  // each is matched against all parameters
  if (list->items.size() > kMostItems)
    throw FileFault{list->line, cat("'init' has more than ", kMostItems, " items")};
  const std::vector<nn::NamedTensor> parameters = net.named_parameters();
  for (const TomlValue& item : expect_kind(*list, Kind::List, "init", kExample).items) {
    const TomlValue *pattern = item.find("parameters"), *values = item.find("values");
    if (!item.is(Kind::Table) || pattern == nullptr || !pattern->is(Kind::String) ||
        std::count(pattern->text.begin(), pattern->text.end(), '*') > 3 || values == nullptr ||
        item.entries.size() != 2)
      throw FileFault{item.line, cat("an item of 'init' says which parameters get which values, "
                                     "as in init = ",
                                     kExample)};
    const FileDraw draw = draw_of(*values, variables, "init");
    bool found = false;
    for (const nn::NamedTensor& p : parameters) {
      if (!matches(pattern->text, p.name)) continue;
      found = true;
      if (p.tensor.rank() > 1 || !draw.scaled_by_fan)
        set_value(p.tensor, draw.make(p.tensor.shape(), generator));
    }
    if (!found)
      throw FileFault{item.line, cat("init: no parameter is named '", pattern->text, "'")};
  }
}

void freeze_parts_of_file(const TomlValue& tree, nn::AnyModule net) {
  const TomlValue* list = tree.find("freeze");
  if (list == nullptr) return;
  for (const TomlValue& part : expect_kind(*list, Kind::List, "freeze", "[\"features\"]").items) {
    try {
      net.freeze(expect_kind(part, Kind::String, "freeze", "[\"features\"]").text);
    } catch (const ValueError& error) {
      throw FileFault{part.line, error.what()};
    }
  }
}

}  // namespace tenon::models
