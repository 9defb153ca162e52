// The part of a network file outside its layers: facts, variables, initializers, frozen layers.
#pragma once

#include <tenon/models.h>

#include "io/text/toml.h"
#include "models/file_keys.h"

namespace tenon::models {

struct FileHead {
  Info info;
  std::string activation{};  ///< what the layer "activation" applies; "" if the file names none
  const io::TomlValue* layers = nullptr;
  const io::TomlValue* encoder = nullptr;  ///< null unless the network translates
};

/// Reads and checks the top-level keys. Throws FileFault for an unknown or a missing key. `path`
/// names a network whose file has no `name`.
FileHead head_of_file(const io::TomlValue& tree, const std::string& path);
/// `classes`, `vocabulary` if the network has one, and the entries of the table `variables`:
/// numbers and lists of numbers. Each variable may use the variables before it.
Variables variables_of_file(const io::TomlValue& tree, const Info& info);
/// Applies the list `init`: sets the initial values of parameters, selected by name pattern, in
/// order.
void draw_values_of_file(const io::TomlValue& tree, const Variables& variables,
                         const nn::AnyModule& net, const OptionalGenerator& generator);
/// Freezes the parts that the list `freeze` names.
void freeze_parts_of_file(const io::TomlValue& tree, nn::AnyModule net);

/// Returns `value`. Throws FileFault, with an example for `key`, if the value has another kind.
const io::TomlValue& expect_kind(const io::TomlValue& value, io::TomlValue::Kind kind,
                                 const char* key, const char* example);

}  // namespace tenon::models
