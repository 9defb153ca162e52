// The built-in networks: one table of the entries of all files in this folder.
#include <tenon/models.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include <tenon/error.h>

#include "base/str.h"
#include "models/entry.h"
#include "models/network_file.h"

namespace tenon::models {
namespace {

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> all;
    for (const auto& page : {lenet_entries, lenet5_1998_entries, perceptron_entries,
                             alexnet_entries, vgg_entries, resnet_entries, inception_resnet_entries,
                             language_entries, gpt2_entries, bert_entries, transformer_entries})
      for (Entry& entry : page()) all.push_back(std::move(entry));
    return all;
  }();
  return entries;
}

struct Choice {
  const Entry* entry;
  std::string sizes;
};

Choice choose(const std::string& name) {
  const std::size_t colon = name.find(':');
  const std::string stem = name.substr(0, colon);
  std::vector<std::string> names;
  for (const Entry& entry : table()) {
    names.push_back(entry.info.name);
    if (stem != entry.info.name) continue;
    if (colon != std::string::npos && entry.sized == nullptr)
      throw ValueError(cat("model '", name, "': ", stem, " has fixed sizes; write '", stem,
                           "', or mlp:784-300-10"));
    if (colon != std::string::npos && colon + 1 == name.size())
      throw ValueError(
          cat("model '", name, "': sizes are missing after the colon, as in mlp:784-300-10"));
    return {&entry, colon == std::string::npos ? "" : name.substr(colon + 1)};
  }
  const std::string near = nearest(stem, names.data(), static_cast<int>(names.size()));
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
  throw ValueError(cat("there is no model '", name, "'",
                       near.empty() ? "" : cat("; did you mean '", near, "'?"), " (", all, ")"));
}

Info describe(const Choice& choice) {
  const Entry& e = *choice.entry;
  return choice.sizes.empty() ? e.info : e.sized(e.info, choice.sizes);
}

}  // namespace

nn::ParameterOptions he_fan_out(nn::ParameterOptions options) {
  options.weight_init = [](const Shape& weight, const OptionalGenerator& generator) {
    return nn::init::kaiming_normal(weight, 0, nn::init::FanMode::Out, generator);
  };
  return options;
}

NameValues::NameValues(const std::string& model, const std::string& text,
                       const std::vector<std::string>& keys)
    : model_(model), text_(text) {
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(',', from), text.size());
    const std::string part = text.substr(from, end - from), key = part.substr(0, part.find('='));
    from = end + 1;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      std::string all;
      for (const std::string& known : keys) all += (all.empty() ? "" : ", ") + known;
      const std::string near = nearest(key, keys.data(), static_cast<int>(keys.size()));
      throw ValueError(cat("model '", model, ":", text, "': '", key, "' is no size of it",
                           near.empty() ? "" : cat("; did you mean '", near, "'?"), " (", all,
                           ")"));
    }
    values_.emplace_back(key, part.substr(std::min(key.size() + 1, part.size())));
  }
}

const std::string* NameValues::find(const char* key) const {
  const std::string* found = nullptr;
  for (const auto& [name, value] : values_)
    if (name == key) found = &value;
  return found;
}

void NameValues::refuse(const char* key, const std::string& what) const {
  throw ValueError(cat("model '", model_, ":", text_, "': ", key, " must be ", what));
}

void NameValues::whole(const char* key, std::int64_t& value) const {
  constexpr std::int64_t largest = 1 << 24;
  const std::string* text = find(key);
  if (text == nullptr) return;
  const char* last = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), last, value);
  if (error != std::errc() || stop != last || value < 1 || value > largest)
    refuse(key, cat("a number from 1 to ", largest, ", as in ", model_, ":", key, "=4"));
}

bool NameValues::number(const char* key, double low, double high, double& value) const {
  const std::string* text = find(key);
  if (text == nullptr) return false;
  const char* last = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), last, value);
  if (error != std::errc() || stop != last || !(value >= low && value <= high))
    refuse(key, cat("a number from ", low, " to ", high));
  return true;
}

void NameValues::word(const char* key, const std::vector<std::string>& choices,
                      std::string& value) const {
  const std::string* text = find(key);
  if (text == nullptr) return;
  if (std::find(choices.begin(), choices.end(), *text) == choices.end()) {
    std::string all;
    for (const std::string& known : choices) all += (all.empty() ? "" : ", ") + known;
    refuse(key, cat("one of ", all));
  }
  value = *text;
}

void require_heads(const std::string& model, const std::string& text, std::int64_t width,
                   std::int64_t heads) {
  if (width % heads != 0)
    throw ValueError(cat("model '", model, ":", text, "': a width of ", width,
                         " does not divide into ", heads, " heads"));
}

const std::vector<std::string>& transformer_activations() {
  static const std::vector<std::string> names{"gelu",    "gelu_tanh", "quick_gelu", "relu",
                                              "relu6",   "silu",      "mish",       "tanh",
                                              "sigmoid", "identity"};
  return names;
}

namespace {
constexpr double kQuickGelu = 1.702;
}

Tensor activated(const std::string& name, const Tensor& x) {
  if (name == "gelu") return gelu(x);
  if (name == "gelu_tanh") return gelu(x, true);
  if (name == "quick_gelu") return x * sigmoid(x * kQuickGelu);
  return nn::activation(name)(x);
}

std::string activation_toml(const std::string& name) {
  if (name == "gelu_tanh") return "{ gelu = \"tanh\" }";
  if (name == "quick_gelu")
    return cat("{ keep = \"gated\" }, { scale = ", kQuickGelu,
               " }, \"sigmoid\", { multiply = \"gated\" }");
  return cat("\"", name, "\"");
}

std::vector<std::pair<std::string, std::int64_t>> named_sizes(
    const std::string& model, const std::string& text, const std::vector<std::string>& keys) {
  const NameValues values(model, text, keys);
  std::vector<std::pair<std::string, std::int64_t>> out;
  for (const std::string& key : keys) {
    std::int64_t value = 0;
    values.whole(key.c_str(), value);
    if (value > 0) out.emplace_back(key, value);
  }
  return out;
}

std::int64_t width_of(const std::string& model, const std::string& sizes, std::int64_t published) {
  for (const auto& [key, value] : named_sizes(model, sizes, {"width"})) published = value;
  return published;
}

nn::Sequential head_of(std::int64_t in, const Options& options) {
  constexpr std::int64_t kMostUnits = 1 << 24;
  constexpr std::string_view kDropout = "dropout=";
  const std::string& text = options.head;
  const auto number = [](std::string_view item, auto& value) {
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    return error == std::errc() && end == item.data() + item.size();
  };
  nn::Sequential out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    std::int64_t units = 0;
    double share = 0;
    if (number(item, units) && units >= 1 && units <= kMostUnits) {
      out.append(nn::Linear(in, units, {.generator = options.generator}));
      in = units;
    } else if (item.starts_with(kDropout) &&
               number(std::string_view(item).substr(kDropout.size()), share) && share >= 0 &&
               share < 1) {
      out.append(nn::Dropout(share, options.generator));
    } else if (!item.empty() && item.find('=') == std::string::npos && units == 0) {
      out.append(nn::activation(item));
    } else {
      throw ValueError(cat("head '", text, "': '", item,
                           "' is no layer: write numbers of units, activations and dropout=P, as "
                           "in 256,relu,dropout=0.5"));
    }
  }
  out.append(nn::Linear(in, options.classes, {.generator = options.generator}));
  return out;
}

std::string head_toml(const Options& options, const std::string& indent) {
  const std::string& text = options.head;
  std::string out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = item.find('=');
    const bool number = !item.empty() && item[0] >= '0' && item[0] <= '9';
    out += indent +
           (number                        ? cat("{ linear = ", item, " }")
            : equals != std::string::npos ? cat("{ dropout = ", item.substr(equals + 1), " }")
                                          : cat("\"", item, "\"")) +
           ",\n";
  }
  return out + indent + "{ linear = \"classes\" },\n";
}

nn::AnyModule create(const std::string& name, const Options& options) {
  if (is_network_file(name)) return create(read_network(name), options);
  const Choice choice = choose(name);
  if (options.classes < 0)
    throw ValueError(
        cat("model '", name, "': ", options.classes, " classes; at least 1 is needed"));
  if (!options.activation.empty() && !choice.entry->takes_activation)
    throw ValueError(cat("model '", name, "' has its own activations: leave 'activation' out"));
  if (!options.head.empty() && !choice.entry->takes_head)
    throw ValueError(cat(
        "model '", name,
        "' takes no head of one's own; alexnet, vgg16, vgg16_bn, resnetN, inception_resnet_v2 and "
        "bert_classifier do"));
  Options whole = options;
  if (whole.classes == 0) whole.classes = choice.entry->info.classes;
  return choice.entry->build(choice.sizes, whole);
}

Info info(const std::string& name) {
  return is_network_file(name) ? info(read_network(name)) : describe(choose(name));
}

std::string toml(const std::string& name, const Options& options) {
  if (is_network_file(name)) return read_network(name).text;
  const Choice choice = choose(name);
  const Info info = describe(choice);
  std::string sizes;
  for (const std::int64_t size : info.input) sizes += (sizes.empty() ? "" : ", ") + cat(size);
  std::string out = cat("# ", name, " as a file: change it, then tenon train FILE.toml\n");
  out += cat("name = ", io::toml_quoted(name), "\nabout = ", io::toml_quoted(info.about),
             "\ninput = [", sizes,
             "]\nclasses = ", options.classes > 0 ? options.classes : info.classes, "\n");
  if (info.tokens)
    out += cat(info.pairs ? "pairs" : info.masked ? "masked" : "tokens", " = true\n");
  if (info.vocabulary > 0 && !info.masked) out += cat("vocabulary = ", info.vocabulary, "\n");
  out += choice.entry->toml(choice.sizes, options);
  const std::string recipe = recipe_toml(info.recipe);
  return recipe.empty() ? out : out + "\n[recipe]\n" + recipe;
}

std::vector<Info> list() {
  std::vector<Info> out;
  for (const Entry& entry : table()) out.push_back(entry.info);
  return out;
}

}  // namespace tenon::models
