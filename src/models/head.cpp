// Parses the text of a head, and returns its layers as modules or as TOML.
#include "models/head.h"

#include <charconv>
#include <string_view>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::models {
namespace {

// A linear layer (units > 0), dropout (dropout >= 0) or an activation.
struct HeadLayer {
  std::int64_t units = 0;
  double dropout = -1;
  std::string activation{};
};

std::vector<HeadLayer> read_head(const std::string& text) {
  constexpr std::int64_t kMostUnits = 1 << 24;
  constexpr std::string_view kDropout = "dropout=";
  const auto number = [](std::string_view item, auto& value) {
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    return error == std::errc() && end == item.data() + item.size();
  };
  std::vector<HeadLayer> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    HeadLayer layer;
    const bool units = number(item, layer.units) && layer.units >= 1 && layer.units <= kMostUnits;
    const bool dropout = !units && item.starts_with(kDropout) &&
                         number(std::string_view(item).substr(kDropout.size()), layer.dropout) &&
                         layer.dropout >= 0 && layer.dropout < 1;
    if (units || dropout) {
      out.push_back(layer);
    } else if (!item.empty() && item.find('=') == std::string::npos && layer.units == 0) {
      (void)nn::activation(item);  // throws for another name
      layer.activation = item;
      out.push_back(layer);
    } else {
      throw ValueError(
          cat("head '", text, "': '", item,
              "' is not a layer: write numbers of units, activations and dropout=P, as "
              "in 256,relu,dropout=0.5"));
    }
  }
  return out;
}

}  // namespace

nn::Sequential head_of(std::int64_t in, const Options& options) {
  nn::Sequential out;
  for (const HeadLayer& layer : read_head(options.head))
    if (!layer.activation.empty()) {
      out.append(nn::activation(layer.activation));
    } else if (layer.units > 0) {
      out.append(nn::Linear(in, layer.units, {.generator = options.generator}));
      in = layer.units;
    } else {
      out.append(nn::Dropout(layer.dropout, options.generator));
    }
  out.append(nn::Linear(in, options.classes, {.generator = options.generator}));
  return out;
}

std::string head_toml(const std::string& text, const std::string& indent) {
  std::string out;
  for (const HeadLayer& layer : read_head(text))
    out += indent +
           (!layer.activation.empty() ? cat("\"", layer.activation, "\"")
            : layer.units > 0         ? cat("{ linear = ", layer.units, " }")
                                      : cat("{ dropout = ", layer.dropout, " }")) +
           ",\n";
  return out + indent + "{ linear = \"classes\" },\n";
}

}  // namespace tenon::models
