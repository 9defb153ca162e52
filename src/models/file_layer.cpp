// A layer of a network file, and what goes through a network beside the tensor.
#include "models/file_layer.h"

#include <tenon/shapes_only.h>

#include "base/str.h"

namespace tenon::models {

std::vector<std::string> FilePass::names() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : kept_) out.push_back(name);
  return out;
}

void FilePass::forget_graphs() {
  for (auto& [name, x] : kept_) x = without_memory(x.shape(), x.dtype(), x.device());
}

FileLayer layer_of(const nn::AnyModule& module, ByPosition by_position) {
  return {module, [module](const Tensor& x, FilePass&) { return module(x); }, by_position};
}

std::string shape_text(const Tensor& x) {
  std::string out = "[N";
  for (int axis = 1; axis < x.rank(); ++axis) out += cat(", ", x.size(axis));
  return out + "]";
}

}  // namespace tenon::models
