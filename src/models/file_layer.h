// A layer of a network file: its module, what it does with a tensor, and what goes through a
// network beside that tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tenon/nn.h>

#include "models/file_keys.h"

namespace tenon::models {

/// What goes through a network beside the tensor that each layer hands to the next.
class FilePass {
 public:
  FilePass() = default;
  /// What was kept under this name; null: nothing.
  const Tensor* find(const std::string& name) const {
    const auto found = kept_.find(name);
    return found == kept_.end() ? nullptr : &found->second;
  }
  const Tensor& kept(const std::string& name) const { return kept_.at(name); }
  void keep(const std::string& name, const Tensor& x) { kept_.insert_or_assign(name, x); }
  std::vector<std::string> names() const;
  /// Without what leads to them.
  void forget_graphs();

  /// If a sequence is computed position by position: the position of x [N, 1, …], an int64 scalar.
  Tensor place{};
  bool is_one_place() const { return place.defined(); }
  std::int64_t places = 0;       ///< that there are at most
  std::vector<Tensor> state{};   ///< of all layers, before this place, then after it
  std::vector<Tensor> memory{};  ///< what layers made of an encoder's result

 private:
  std::map<std::string, Tensor> kept_;
};
/// A pass has no inputs of its own (each_tensor.h).
template <class F>
void each_tensor(const FilePass&, F&&) {}

/// What a layer does with a tensor; modules called in it have parameters.
using FileStep = std::function<Tensor(const Tensor&, FilePass&)>;

/// How a layer takes a sequence place by place. `None`: it does not; `Each`: each place alone;
/// `State`: by what it keeps in FilePass::state, for as many places as there are; `Places`: by what
/// it keeps of so many places.
enum class ByPlace { None, Each, State, Places };

struct FileLayer {
  nn::AnyModule module;
  FileStep step;
  ByPlace by_place = ByPlace::None;
  /// State before the first of `places` places, of `batch` sequences.
  std::function<std::vector<Tensor>(std::int64_t batch, std::int64_t places)> start{};
  /// What it makes of an encoder's result, once for all places; null: nothing.
  std::function<std::vector<Tensor>(const FilePass&)> look_up{};
};

/// The layer that a module of one tensor is.
FileLayer layer_of(const nn::AnyModule& module, ByPlace by_place = ByPlace::None);

/// What a layer is made for.
struct FileArrival {
  Tensor x;  ///< of the right shape and dtype, without memory, for two samples
  OptionalGenerator generator{};
  std::int64_t classes = 0;
  std::int64_t vocabulary = 0;  ///< of tokens that arrive
  std::string activation{};     ///< of the file; "": it has none
  const FilePass* pass = nullptr;
  std::size_t state = 0, memory = 0;  ///< index of the layer's tensors in a pass
  /// A parameter of an earlier layer, by its path; throws ValueError.
  std::function<Tensor(const std::string& path)> parameter{};
};

/// "[N, 64, 7, 7]", of a tensor for two samples.
std::string shape_text(const Tensor& x);

}  // namespace tenon::models
