// Parses sizes and writes them into variables and keys.
#include "models/size_writer.h"

#include <cmath>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "models/activations.h"
#include "models/file_head.h"

namespace tenon::models {

SizeWriter::SizeWriter(io::TomlValue& keys, const std::string& name, const std::string& text,
                       const std::vector<std::string>& taken)
    : keys_(keys), name_(name), text_(text), values_(name, text, taken) {}

void SizeWriter::set_variable(const std::string& key, io::TomlValue value) {
  io::TomlValue variables = *keys_.find("variables");
  variables.set(key, std::move(value));
  keys_.set("variables", std::move(variables));
}

void SizeWriter::whole(const std::string& key) {
  std::int64_t value = 0;
  if (values_.whole(key, value)) set_variable(key, io::toml_integer(value));
}

void SizeWriter::own_whole(const std::string& key) {
  std::int64_t value = 0;
  if (values_.whole(key, value)) keys_.set(key, io::toml_integer(value));
}

void SizeWriter::number(const std::string& key, double low, double high) {
  io::TomlValue value;
  value.kind = io::TomlValue::Kind::Real;
  if (values_.number(key, low, high, value.real)) set_variable(key, std::move(value));
}

void SizeWriter::transformer() {
  for (const char* key : {"layers", "heads", "width", "hidden", "context"}) whole(key);
  std::string activation;
  if (values_.word("activation", transformer_activations(), activation))
    keys_.set("activation", io::toml_string(activation));
  number("eps", 0, 1);
  require_heads();
}

void SizeWriter::require_heads() const {
  const double width = value("width"), heads = value("heads");
  if (std::fmod(width, heads) != 0)
    throw ValueError(cat("model '", name_, ":", text_, "': a width of ", width,
                         " does not divide into ", heads, " heads"));
}

double SizeWriter::value(const std::string& variable) const {
  return variables_of_file(keys_, Info{}).value(variable);
}

}  // namespace tenon::models
