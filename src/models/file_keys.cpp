// Options of a layer in a network file, and initializers.
#include "models/file_keys.h"

#include <algorithm>
#include <cmath>

#include <tenon/error.h>
#include <tenon/initializers.h>

#include "base/contains.h"
#include "base/str.h"

namespace tenon::models {
namespace {

using io::TomlValue;
using Kind = TomlValue::Kind;

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

nn::init::FanMode fan_of(const TomlValue& table, const std::string& what) {
  const TomlValue* fan = table.find("fan");
  if (fan == nullptr || fan->text == "in") return nn::init::FanMode::In;
  if (fan->text != "out") throw FileFault{fan->line, cat(what, ": fan must be \"in\" or \"out\"")};
  return nn::init::FanMode::Out;
}

// { uniform = 0.1 } or { uniform = [-0.1, 0.2] }
FileDraw uniform_draw(const TomlValue& value, const Variables& variables, const std::string& what) {
  double low = 0, high = 0;
  if (value.is(Kind::List)) {
    if (value.items.size() != 2)
      throw FileFault{value.line, cat(what, ": uniform takes a limit or [low, high]")};
    low = number_of(value.items[0], variables, what);
    high = number_of(value.items[1], variables, what);
  } else {
    high = number_of(value, variables, what);
    low = -high;
  }
  if (!(low <= high))
    throw FileFault{value.line, cat(what, ": uniform from ", low, " to ", high, " is empty")};
  return {[=](const Shape& s, const OptionalGenerator& g) {
    return nn::init::uniform(s, low, high, g);
  }};
}

FileDraw draw_of_table(const TomlValue& table, const Variables& variables,
                       const std::string& what) {
  using nn::init::FanMode;
  if (table.entries.empty())
    throw FileFault{table.line, cat(what, " is empty; for example { normal = 0.02 }")};
  const auto& [name, value] = table.entries.front();
  if (name == "uniform") return uniform_draw(value, variables, what);
  const double amount = number_of(value, variables, cat(what, ": ", name));
  const FanMode fan = fan_of(table, what);
  if (name == "normal") {
    const TomlValue* at = table.find("mean");
    const double mean = at == nullptr ? 0 : number_of(*at, variables, what);
    return {[=](const Shape& s, const OptionalGenerator& g) {
      return nn::init::normal(s, mean, amount, g);
    }};
  }
  if (name == "xavier_uniform")
    return {[=](const Shape& s, const OptionalGenerator& g) {
              return nn::init::xavier_uniform(s, amount, g);
            },
            true};
  if (name == "xavier_normal")
    return {[=](const Shape& s, const OptionalGenerator& g) {
              return nn::init::xavier_normal(s, amount, g);
            },
            true};
  if (name == "kaiming_uniform")
    return {[=](const Shape& s, const OptionalGenerator& g) {
              return nn::init::kaiming_uniform(s, amount, fan, g);
            },
            true};
  if (name == "kaiming_normal")
    return {[=](const Shape& s, const OptionalGenerator& g) {
              return nn::init::kaiming_normal(s, amount, fan, g);
            },
            true};
  throw FileFault{table.line,
                  cat(what, ": there is no initializer '", name, "'",
                      near_miss(name, {"uniform", "normal", "xavier_uniform", "xavier_normal",
                                       "kaiming_uniform", "kaiming_normal"}))};
}

}  // namespace

std::string near_miss(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known.data(), static_cast<int>(known.size()));
  return cat(near.empty() ? "" : cat("; did you mean '", near, "'?"), " (", joined(known), ")");
}

void refuse_misspelt(const TomlValue& table, const std::string& what, const std::string& key) {
  for (const auto& [given, value] : table.entries)
    if (given != what && !nearest(given, &key, 1).empty())
      throw FileFault{value.line,
                      cat(what, " has no setting '", given, "'; did you mean '", key, "'?")};
}

double number_of(const TomlValue& value, const Variables& variables, const std::string& what) {
  if (value.is(Kind::Integer)) return static_cast<double>(value.whole);
  if (value.is(Kind::Real) && std::isfinite(value.real)) return value.real;
  if (!value.is(Kind::String))
    throw FileFault{value.line, cat(what, " is ", value.kind_name(), ", must be a number")};
  try {
    return variables.value(value.text);
  } catch (const ValueError& error) {
    throw FileFault{value.line, cat(what, ": ", error.what())};
  }
}

std::int64_t whole_of(const TomlValue& value, const Variables& variables, const std::string& what,
                      std::int64_t low, std::int64_t high) {
  const double number = number_of(value, variables, what);
  if (number != std::floor(number) || !(number >= static_cast<double>(low)) ||
      !(number <= static_cast<double>(high)))
    throw FileFault{value.line,
                    cat(what, " is ", number, ", must be a whole number from ", low, " to ", high)};
  return static_cast<std::int64_t>(number);
}

FileDraw draw_of(const TomlValue& value, const Variables& variables, const std::string& what) {
  if (value.is(Kind::Table)) return draw_of_table(value, variables, what);
  const bool scaled_by_fan = value.text.starts_with("xavier") ||
                             value.text.starts_with("kaiming") || value.text.starts_with("lecun");
  const std::vector<std::string> known = nn::init::names();
  const bool is_known = contains(known, value.text);
  if (value.is(Kind::String) && (is_known || scaled_by_fan)) {
    if (!is_known)
      throw FileFault{value.line, cat(what, ": there is no initializer '", value.text, "'",
                                      near_miss(value.text, known))};
    return {[name = value.text](const Shape& s, const OptionalGenerator& g) {
              return nn::init::by_name(name, s, g);
            },
            scaled_by_fan};
  }
  const double constant = number_of(value, variables, what);
  return {[=](const Shape& s, const OptionalGenerator&) { return full(s, constant); }};
}

LayerKeys::LayerKeys(const TomlValue& layer, const Variables& variables)
    : layer_(layer), variables_(variables) {
  if (layer.is(Kind::String)) {
    kind_ = layer.text;
  } else if (layer.is(Kind::Table) && !layer.entries.empty()) {
    kind_ = layer.entries.front().key;
  } else {
    throw FileFault{layer.line,
                    cat("a layer is ", layer.is(Kind::Table) ? "an empty table" : layer.kind_name(),
                        ", must be its name, \"relu\", or a table that begins with it, "
                        "{ linear = 10 }",
                        layer.is(Kind::List) ? "; several are { sequence = [ ... ] }" : "")};
  }
  requested_ = {kind_, "name"};
}

std::string LayerKeys::label(const std::string& key) const {
  return key == kind_ ? kind_ : cat(kind_, ": ", key);
}

const TomlValue* LayerKeys::find(const std::string& key) {
  if (std::find(requested_.begin(), requested_.end(), key) == requested_.end())
    requested_.push_back(key);
  return layer_.is(Kind::Table) ? layer_.find(key) : nullptr;
}

const TomlValue* LayerKeys::own() {
  const TomlValue* value = find(kind_);
  if (value == nullptr || !value->is(Kind::Boolean)) return value;
  if (!value->truth)
    throw FileFault{value->line, cat(kind_, " = false is not a layer: leave it out")};
  return nullptr;
}

const TomlValue& LayerKeys::own(const char* what, const char* example) {
  const TomlValue* value = own();
  if (value == nullptr) refuse(cat(kind_, " needs ", what, ", as in ", example));
  return *value;
}

double LayerKeys::number(const std::string& key, double fallback, double low, double high) {
  const TomlValue* value = key == kind_ ? own() : find(key);
  if (value == nullptr) return fallback;
  const double out = number_of(*value, variables_, label(key));
  if (!(out >= low && out <= high))
    throw FileFault{value->line,
                    cat(label(key), " is ", out, ", must be from ", low, " to ", high)};
  return out;
}

std::int64_t LayerKeys::whole(const std::string& key, std::int64_t fallback, std::int64_t low,
                              std::int64_t high) {
  const TomlValue* value = key == kind_ ? own() : find(key);
  return value == nullptr ? fallback : whole_of(*value, variables_, label(key), low, high);
}

std::int64_t LayerKeys::own_whole(const char* what, const char* example, std::int64_t low) {
  return whole_of(own(what, example), variables_, cat(kind_, ": ", what), low);
}

bool LayerKeys::boolean(const std::string& key, bool fallback) {
  const TomlValue* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is(Kind::Boolean))
    throw FileFault{value->line,
                    cat(label(key), " is ", value->kind_name(), ", must be true or false")};
  return value->truth;
}

std::string LayerKeys::text(const std::string& key) {
  const TomlValue* value = key == kind_ ? own() : find(key);
  if (value == nullptr) return "";
  if (!value->is(Kind::String))
    throw FileFault{value->line, cat(label(key), " is ", value->kind_name(), ", must be a string")};
  return value->text;
}

std::string LayerKeys::word(const std::string& key, const std::vector<std::string>& choices) {
  std::string given = text(key);
  if (given.empty()) return choices.front();
  if (std::find(choices.begin(), choices.end(), given) == choices.end())
    throw FileFault{find(key)->line, cat(label(key), " is '", given, "', which it does not take",
                                         near_miss(given, choices))};
  return given;
}

std::vector<std::int64_t> LayerKeys::axes(const std::string& key, std::size_t count,
                                          std::int64_t fallback, std::int64_t low) {
  const TomlValue* value = key == kind_ ? own() : find(key);
  if (value == nullptr) return std::vector<std::int64_t>(count, fallback);
  if (!value->is(Kind::List))
    return std::vector<std::int64_t>(count, whole_of(*value, variables_, label(key), low));
  if (value->items.size() != count)
    throw FileFault{value->line, cat(label(key), " has ", value->items.size(),
                                     " numbers, must be one for all axes, or ", count)};
  std::vector<std::int64_t> out;
  out.reserve(count);
  for (const TomlValue& item : value->items)
    out.push_back(whole_of(item, variables_, label(key), low));
  return out;
}

Pair LayerKeys::pair(const std::string& key, std::int64_t fallback, std::int64_t low) {
  const std::vector<std::int64_t> both = axes(key, 2, fallback, low);
  return {both[0], both[1]};
}

std::optional<FileDraw> LayerKeys::draw(const std::string& key) {
  const TomlValue* value = find(key);
  return value == nullptr ? std::nullopt
                          : std::optional<FileDraw>(draw_of(*value, variables_, label(key)));
}

std::string LayerKeys::first_of(const std::vector<std::string>& words) const {
  for (const io::TomlEntry& entry : layer_.entries)
    if (std::find(words.begin(), words.end(), entry.key) != words.end()) return entry.key;
  return "";
}

void LayerKeys::refuse_missing(const std::string& key, const std::string& what) const {
  if (layer_.is(Kind::Table)) refuse_misspelt(layer_, kind_, key);
  refuse(what);
}

void LayerKeys::finish() const {
  if (!layer_.is(Kind::Table)) return;
  for (const auto& [key, value] : layer_.entries)
    if (std::find(requested_.begin(), requested_.end(), key) == requested_.end())
      throw FileFault{value.line,
                      cat(kind_, " has no setting '", key, "'", near_miss(key, requested_))};
}

}  // namespace tenon::models
