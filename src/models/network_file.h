// Network files: from a parsed TOML text to a module.
//
// The builder goes through the layers in the order of the file and runs each one on a tensor
// without memory. So the next layer knows its input shape, and an error can state its line and the
// input shape.
#pragma once

#include <string>

#include <tenon/models.h>

#include "io/text/toml.h"

namespace tenon::models {

/// A recipe as the lines of a table [recipe], without those at their defaults; and back, with
/// FileFault for an unknown key.
std::string recipe_toml(const Recipe& recipe);
Recipe recipe_of(const io::TomlValue& table);

}  // namespace tenon::models
