// Sizes of a perceptron in its name: mlp:784-300-10.
#include <charconv>

#include <tenon/error.h>

#include "base/str.h"
#include "models/network_family.h"

namespace tenon::models {
namespace {

constexpr std::int64_t kLargestLayer = 1 << 24;

std::vector<std::int64_t> sizes_of(const std::string& text) {
  std::vector<std::int64_t> sizes;
  const char *at = text.data(), *end = at + text.size();
  for (;;) {
    std::int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 1 || size > kLargestLayer || (next != end && *next != '-'))
      throw ValueError(cat("model 'mlp:", text, "': the sizes are numbers from 1 to ",
                           kLargestLayer, " joined with '-', as in mlp:784-300-10"));
    sizes.push_back(size);
    if (next == end) break;
    at = next + 1;
  }
  if (sizes.size() < 2)
    throw ValueError(
        cat("model 'mlp:", text, "': at least an input and an output size are needed"));
  return sizes;
}

}  // namespace

void set_mlp_sizes(io::TomlValue& keys, const std::string&, const std::string& text) {
  const std::vector<std::int64_t> sizes = sizes_of(text);
  io::TomlValue input, hidden, variables;
  input.kind = hidden.kind = io::TomlValue::Kind::List;
  input.items.push_back(io::toml_integer(sizes.front()));
  for (std::size_t k = 1; k + 1 < sizes.size(); ++k)
    hidden.items.push_back(io::toml_integer(sizes[k]));
  variables.set("hidden", std::move(hidden));
  keys.set("input", std::move(input));
  keys.set("classes", io::toml_integer(sizes.back()));
  keys.set("variables", std::move(variables));
}

}  // namespace tenon::models
