// Resolves the name of a built-in network, and prints or builds the network.
#include "models/named_network.h"

#include <algorithm>
#include <utility>

#include <tenon/error.h>
#include <tenon/shapes_only.h>

#include "base/str.h"
#include "models/file_head.h"
#include "models/head.h"
#include "models/network_file.h"
#include "models/size_writer.h"

namespace tenon::models {
namespace {

using io::TomlValue;

// Keys that only embedded files have.
constexpr const char* kEmbeddedKeys[] = {"takes", "parameters", "head", "with_head", "like"};

// Keys above `layers`, in the order in which they are printed.
constexpr const char* kHeadOrder[] = {"about",         "input",  "classes",    "tokens",
                                      "masked",        "pairs",  "vocabulary", "activation",
                                      "rubbish_score", "freeze", "init"};

const TomlValue& required(const TomlValue& keys, const char* key, const std::string& network) {
  if (const TomlValue* value = keys.find(key)) return *value;
  throw InternalError(cat("the file of the network '", network, "' has no '", key, "'"));
}

// One key a line. A key of the embedded file keeps its line and comment; only a changed value is
// replaced.
std::string table_lines(const EmbeddedNetwork& file, const std::string& name,
                        const TomlValue& table) {
  const TomlValue* own = file.tree().find(name);
  std::string out;
  for (const auto& [key, value] : table.entries) {
    const TomlValue* given = own == nullptr ? nullptr : own->find(key);
    std::string line = cat(key, " = ", io::toml_text(value));
    if (given != nullptr && file.line(given->line).starts_with(key + " = ")) {
      const std::string_view was = file.line(given->line);
      const std::size_t comment = was.find(" # ");
      if (io::toml_text(*given) == io::toml_text(value)) {
        line = was;
      } else if (comment != std::string_view::npos) {
        line.resize(std::max(line.size(), comment), ' ');
        line += was.substr(comment);
      }
    }
    out += line + "\n";
  }
  return out;
}

// The TOML of the head that replaces the last layer of a network, with that layer's name.
std::string head_layer(const TomlValue& layers, const std::string& head) {
  return cat("  { sequence = [\n", head_toml(head, "    "),
             "  ], name = ", io::toml_quoted(layers.items.back().find("name")->text), " },\n");
}

std::string layers_toml(const EmbeddedNetwork& file, const TomlValue& layers,
                        const std::string& head) {
  if (head.empty()) return file.list_from(layers.line);
  return cat(file.lines(layers.line, layers.items.back().line), head_layer(layers, head), "]\n");
}

TomlValue with_other_last(const TomlValue& layers, const std::string& head) {
  TomlValue out = layers;
  const TomlValue parsed =
      io::parse_toml(cat("layers = [\n", head_layer(layers, head), "]\n"), "head");
  out.items.back() = parsed.find("layers")->items.front();
  return out;
}

}  // namespace

NamedNetwork::NamedNetwork(const Family& family, const std::string& name, const std::string& sizes)
    : family_(family), file_(embedded_network(family.file)), name_(name), sizes_(sizes) {
  TomlValue all = file_.facts_of(name);
  for (const TomlValue& one : required(all, "takes", name).items) takes_.push_back(one.text);
  parameters_ = required(all, "parameters", name).whole;
  if (const TomlValue* head = all.find("head")) head_ = head->text;
  if (const TomlValue* with_head = all.find("with_head")) with_head_ = *with_head;
  for (auto& [key, value] : all.entries)
    if (std::find(std::begin(kEmbeddedKeys), std::end(kEmbeddedKeys), key) ==
        std::end(kEmbeddedKeys))
      keys_.set(key, std::move(value));
  if (sizes.empty()) return;
  if (family.set_sizes != nullptr) {
    family.set_sizes(keys_, name, sizes);
    return;
  }
  std::vector<std::string> variables = takes_;
  std::erase_if(variables,
                [](const std::string& what) { return what == "classes" || what == "activation"; });
  if (variables.empty())
    throw ValueError(cat("model '", full_name(), "': ", name, " has fixed sizes; write '", name,
                         "', or mlp:784-300-10"));
  SizeWriter writer(keys_, name, sizes, variables);
  for (const std::string& variable : variables) writer.whole(variable);
}

std::string NamedNetwork::full_name() const {
  return sizes_.empty() ? name_ : cat(name_, ":", sizes_);
}

bool NamedNetwork::takes(const std::string& what) const {
  return std::find(takes_.begin(), takes_.end(), what) != takes_.end();
}

void NamedNetwork::check(const Options& options) const {
  if (options.classes < 0)
    throw ValueError(
        cat("model '", full_name(), "': ", options.classes, " classes; at least 1 is needed"));
  if (!options.activation.empty() && !takes("activation"))
    throw ValueError(
        cat("model '", full_name(), "' has its own activations: leave 'activation' out"));
  if (!options.head.empty() && (!with_head_ || !head_.empty()))
    throw ValueError(
        cat("model '", full_name(),
            "' does not support 'head'; alexnet, vgg16, vgg16_bn, resnetN, inception_resnet_v2 and "
            "bert_classifier do"));
  const std::int64_t classes = keys_.find("classes")->whole;
  if (options.classes > 0 && options.classes != classes && !takes("classes"))
    throw ValueError(cat("model '", full_name(), "' has ", classes, " outputs, not ",
                         options.classes, ": choose another network"));
}

NetworkFacts NamedNetwork::facts() const {
  try {
    const FileHead head = head_of_file(keys_, full_name());
    NetworkFacts out{name_, head.info, variables_of_file(keys_, head.info), head.activation};
    if (out.info.masked) out.info.vocabulary = out.info.classes;
    return out;
  } catch (const FileFault& fault) {
    throw InternalError(cat(family_.file, ".toml, line ", fault.line, ": ", fault.what));
  }
}

Info NamedNetwork::info() const {
  Info out = facts().info;
  out.parameters = parameters_;
  if (!sizes_.empty()) {
    const ShapesOnly scope;
    out.parameters = build({}).parameter_count();
  }
  return out;
}

nn::AnyModule NamedNetwork::build(const Options& options) const {
  if (family_.build == nullptr) {
    TomlValue keys = resolved(options);
    if (const std::string& head = head_in(options); !head.empty())
      keys.set("layers", with_other_last(*keys.find("layers"), head));
    return network_of(keys, full_name(), options.generator);
  }
  check(options);
  NetworkFacts all = facts();
  Options whole = options;
  if (whole.classes == 0) whole.classes = all.info.classes;
  return family_.build(all, whole);
}

const std::string& NamedNetwork::head_in(const Options& options) const {
  return options.head.empty() ? head_ : options.head;
}

TomlValue NamedNetwork::resolved(const Options& options) const {
  check(options);
  TomlValue keys = keys_;
  if (!head_in(options).empty()) overlay(keys, *with_head_);
  const bool outputs_are_named = family_.sizes_have_outputs && !sizes_.empty();
  if (options.classes > 0 && !outputs_are_named)
    keys.set("classes", io::toml_integer(options.classes));
  if (!options.activation.empty()) {
    (void)nn::activation(options.activation);  // throws for another name
    keys.set("activation", io::toml_string(options.activation));
  }
  return keys;
}

std::string NamedNetwork::toml(const Options& options) const {
  const TomlValue keys = resolved(options);
  std::string out = cat("# ", full_name(), " as a file: change it, then tenon train FILE.toml\n#\n",
                        file_.head_comment(), "name = ", io::toml_quoted(full_name()), "\n");
  for (const char* key : kHeadOrder)
    if (const TomlValue* value = keys.find(key);
        value != nullptr && !(value->is(TomlValue::Kind::List) && value->items.empty()))
      out += cat(key, " = ", io::toml_text(*value), "\n");
  const TomlValue* variables = keys.find("variables");
  const TomlValue* own = file_.tree().find("variables");
  const bool table = own != nullptr && file_.line(own->line).starts_with("[variables]");
  if (variables != nullptr && !table) out += cat("variables = ", io::toml_text(*variables), "\n");
  if (const TomlValue* encoder = keys.find("encoder")) out += file_.list_from(encoder->line);
  out += layers_toml(file_, *keys.find("layers"), head_in(options));
  if (variables != nullptr && table)
    out += cat("\n", file_.line(own->line), "\n", table_lines(file_, "variables", *variables));
  out += file_.blocks();
  if (const TomlValue* recipe = keys.find("recipe"))
    out += cat("\n[recipe]\n", table_lines(file_, "recipe", *recipe));
  return out;
}

std::int64_t whole_variable(const NetworkFacts& facts, const char* name) {
  return static_cast<std::int64_t>(facts.variables.value(name));
}

}  // namespace tenon::models
