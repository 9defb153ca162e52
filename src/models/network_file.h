// Network files: from a TOML text to a module.
//
// The builder goes through the layers in the order of the file and runs each one on a tensor
// without memory. So the next layer knows its input shape, and an error can state its line and the
// input shape.
#pragma once

#include <string>

#include <tenon/models.h>

#include "io/text/toml.h"

namespace tenon::models {

/// A network file after it was read. `info` is that of the file's own number of classes.
struct ParsedNetwork {
  NetworkFile file;
  io::TomlValue tree;
  Info info;
};
/// Throws FormatError for a text that describes no network.
ParsedNetwork parse_network(NetworkFile file);
/// As create() of the file, without reading it again.
nn::AnyModule create(const ParsedNetwork& network, const Options& options);

/// A network whose keys are known to be right, built in one pass: values are drawn on the way.
/// Throws FormatError naming `source` for others, then with random numbers drawn already.
nn::AnyModule network_of(const io::TomlValue& keys, const std::string& source,
                         const OptionalGenerator& generator);

}  // namespace tenon::models
