// The part of a network file besides its layers: facts, variables, initializers, frozen layers.
#pragma once

#include <tenon/models.h>

#include "io/text/toml.h"
#include "models/file_keys.h"

namespace tenon::models {

struct FileHead {
  Info info;
  std::string activation{};  ///< of the layer "activation"; "": the file has none
  const io::TomlValue* layers = nullptr;
  const io::TomlValue* encoder = nullptr;  ///< of a network that translates
};

/// Throws FileFault for keys that no file has and for what is missing. `path` is the name of a
/// network that says none.
FileHead head_of_file(const io::TomlValue& tree, const std::string& path);
/// `classes`, `vocabulary` where the network has one, and the table `variables`: numbers, and lists
/// of numbers. Each variable may use those before it.
Variables variables_of_file(const io::TomlValue& tree, const Info& info);
/// The list `init`: parameters by pattern, and the values they begin with, one after another.
void draw_values_of_file(const io::TomlValue& tree, const Variables& variables,
                         const nn::AnyModule& net, const OptionalGenerator& generator);
/// The list `freeze`.
void freeze_parts_of_file(const io::TomlValue& tree, nn::AnyModule net);

/// The value itself. Throws FileFault for another kind, with an example for `key`.
const io::TomlValue& expect_kind(const io::TomlValue& value, io::TomlValue::Kind kind,
                                 const char* key, const char* example);

}  // namespace tenon::models
