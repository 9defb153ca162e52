// The recipe of a network file: training settings that suit the network.
#pragma once

#include <tenon/models.h>

#include "io/text/toml.h"
#include "models/expression.h"

namespace tenon::models {

/// A recipe from a table [recipe]. Throws FileFault for an unknown key.
Recipe recipe_of(const io::TomlValue& table, const Variables& variables);

}  // namespace tenon::models
