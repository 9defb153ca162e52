// Built-in networks: families that share an embedded file, and the resolved facts of one network.
//
// Most networks consist of their file. A family may add C++ functions: one that interprets the
// sizes in a name, and one that builds a class instead of the file's layers. The file describes
// such a network too; `tenon summary NAME
// --toml` prints it.
#pragma once

#include <string>
#include <vector>

#include <tenon/models.h>

#include "io/text/toml.h"
#include "models/expression.h"

namespace tenon::models {

/// The facts of a network, resolved from its name and file.
struct NetworkFacts {
  std::string name;        ///< without sizes: "bert_large"
  Info info;               ///< `parameters` is not set
  Variables variables;     ///< of the file and the name
  std::string activation;  ///< the file's; "": it has none
};

struct Family {
  const char* file;  ///< name of a file of networks/
  /// Writes the sizes in a name, `text`, into the keys of the network. Null: the sizes are the
  /// variables in the file's list `takes`, whole numbers of at least 1. Throws ValueError.
  void (*set_sizes)(io::TomlValue& keys, const std::string& name,
                    const std::string& text) = nullptr;
  /// Builds the network as a class. Null: the network is built from the file's layers.
  /// Options::classes is at least 1.
  nn::AnyModule (*build)(const NetworkFacts& facts, const Options& options) = nullptr;
  /// The sizes in a name, as in mlp:784-300-10, include the number of outputs. Options::classes
  /// then applies only to names without sizes.
  bool sizes_have_outputs = false;
};

void set_mlp_sizes(io::TomlValue& keys, const std::string& name, const std::string& text);
void set_gpt2_sizes(io::TomlValue& keys, const std::string& name, const std::string& text);
void set_bert_sizes(io::TomlValue& keys, const std::string& name, const std::string& text);
void set_transformer_sizes(io::TomlValue& keys, const std::string& name, const std::string& text);
nn::AnyModule build_gpt2(const NetworkFacts& facts, const Options& options);
nn::AnyModule build_bert(const NetworkFacts& facts, const Options& options);
nn::AnyModule build_transformer(const NetworkFacts& facts, const Options& options);

/// The value of a variable of the network, a whole number.
std::int64_t whole_variable(const NetworkFacts& facts, const char* name);

}  // namespace tenon::models
