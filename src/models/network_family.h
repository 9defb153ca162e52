// Built-in networks: families that share an embedded file, and the resolved facts of one network.
//
// Most networks are their file alone. A family may add C++: the meaning of sizes in its names, and
// a class in place of the layers. The file describes such a network too; `tenon summary NAME
// --toml` prints it.
#pragma once

#include <string>
#include <vector>

#include <tenon/models.h>

#include "io/text/toml.h"
#include "models/expression.h"

namespace tenon::models {

/// A network as its name describes it.
struct NetworkFacts {
  std::string name;        ///< without sizes: "bert_large"
  Info info;               ///< `parameters` is not set
  Variables variables;     ///< of the file and the name
  std::string activation;  ///< the file's; "": it has none
};

struct Family {
  const char* file;  ///< of networks/
  /// Puts the sizes of a name, `text`, into the keys of the network. Null: the file's list `takes`
  /// names variables, which are whole numbers from 1. Throws ValueError.
  void (*set_sizes)(io::TomlValue& keys, const std::string& name,
                    const std::string& text) = nullptr;
  /// The network as a class. Null: the file's layers. Options::classes is at least 1.
  nn::AnyModule (*build)(const NetworkFacts& facts, const Options& options) = nullptr;
  /// The sizes in a name, as in mlp:784-300-10, include the outputs: Options::classes changes them
  /// in networks without sizes only.
  bool sizes_have_outputs = false;
};

void set_mlp_sizes(io::TomlValue& keys, const std::string& name, const std::string& text);
void set_gpt2_sizes(io::TomlValue& keys, const std::string& name, const std::string& text);
void set_bert_sizes(io::TomlValue& keys, const std::string& name, const std::string& text);
void set_transformer_sizes(io::TomlValue& keys, const std::string& name, const std::string& text);
nn::AnyModule build_gpt2(const NetworkFacts& facts, const Options& options);
nn::AnyModule build_bert(const NetworkFacts& facts, const Options& options);
nn::AnyModule build_transformer(const NetworkFacts& facts, const Options& options);

/// A whole number among the variables of a network.
std::int64_t whole_variable(const NetworkFacts& facts, const char* name);

}  // namespace tenon::models
