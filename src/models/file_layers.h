// The layers that a network in a file may name: one table of kinds, each with what makes it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tenon/nn.h>

#include "models/file_keys.h"

namespace tenon::models {

/// What a layer does with a tensor; modules called in it have parameters.
using FileStep = std::function<Tensor(const Tensor&)>;

struct FileLayer {
  nn::AnyModule module;
  FileStep step;
};

/// The layer that a module of one tensor is.
FileLayer layer_of(const nn::AnyModule& module);

/// What a layer is made for.
struct FileArrival {
  Tensor x;  ///< of the right shape and dtype, without memory, for two examples
  Generator* generator = nullptr;
  std::int64_t classes = 0;
  /// A parameter that stands earlier in the network, by its path; throws ValueError.
  std::function<Tensor(const std::string& path)> parameter{};
};

/// Makes a layer of the table. Throws FileFault, and what its module's constructor throws.
FileLayer make_file_layer(LayerKeys& keys, const FileArrival& arrival);
/// The kinds of the table.
const std::vector<std::string>& file_layer_names();
/// "[N, 64, 7, 7]", of a tensor for two examples.
std::string shape_text(const Tensor& x);

}  // namespace tenon::models
