// Networks in files: from the tree of a TOML text to a module.
//
// The builder walks the layers in the order of the file and runs each on a tensor without memory,
// so that the next one knows its input, and an error its line and what arrived.
#pragma once

#include <string>

#include <tenon/models.h>

#include "io/toml.h"

namespace tenon::models {

/// A recipe as the lines of a table [recipe], without those at their defaults; and back, with
/// FileFault for an unknown key.
std::string recipe_toml(const Recipe& recipe);
Recipe recipe_of(const io::TomlValue& table);

}  // namespace tenon::models
