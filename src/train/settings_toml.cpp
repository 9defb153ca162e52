// Flat TOML in: strings, whole numbers, floating numbers, booleans.
#include "train/settings.h"

#include <sstream>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::train {
namespace {

std::string text_of(const toml::node& node, const std::string& where) {
  if (const auto* s = node.as_string()) return s->get();
  if (const auto* i = node.as_integer()) return cat(i->get());
  if (const auto* f = node.as_floating_point()) return cat(f->get());
  if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
  throw FormatError(
      cat(where,
          ": a setting is a text, a number or a truth value; there are no tables and lists here"));
}

}  // namespace

std::vector<SettingText> parse_settings(const std::string& text, const std::string& source) {
  std::vector<SettingText> out;
  try {
    const toml::table table = toml::parse(text, source);
    for (const auto& [key, node] : table) {
      const int line = static_cast<int>(node.source().begin.line);
      const std::string name(key.str());
      out.push_back({name, text_of(node, cat(source, ", line ", line, ", '", name, "'")), line});
    }
  } catch (const toml::parse_error& error) {
    throw FormatError(cat(source, ", line ", error.source().begin.line, ": ", error.description()));
  }
  return out;
}

}  // namespace tenon::train
