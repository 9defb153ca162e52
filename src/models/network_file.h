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

/// A parsed network file. `info` is for the number of classes in the file.
struct ParsedNetwork {
  NetworkFile file;
  io::TomlValue tree;
  Info info;
};
/// Throws FormatError if the text does not describe a network.
ParsedNetwork parse_network(NetworkFile file);
/// Like create(NetworkFile), without parsing the file again.
nn::AnyModule create(const ParsedNetwork& network, const Options& options);

/// Builds a network in one pass, for keys that are known to be valid. Throws FormatError naming
/// `source` if they are not; random numbers may have been drawn by then.
nn::AnyModule network_of(const io::TomlValue& keys, const std::string& source,
                         const OptionalGenerator& generator);

}  // namespace tenon::models
