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

/// The state of one forward pass besides the tensor that each layer passes to the next.
class FilePass {
 public:
  FilePass() = default;
  /// The value kept under this name; null if there is none.
  const Tensor* find(const std::string& name) const {
    const auto found = kept_.find(name);
    return found == kept_.end() ? nullptr : &found->second;
  }
  const Tensor& kept(const std::string& name) const { return kept_.at(name); }
  void keep(const std::string& name, const Tensor& x) { kept_.insert_or_assign(name, x); }
  std::vector<std::string> names() const;
  /// Replaces the kept values by tensors of the same shape without memory or graph.
  void forget_graphs();

  /// If a sequence is computed position by position: the position of x [N, 1, …], an int64 scalar.
  Tensor position{};
  bool is_one_position() const { return position.defined(); }
  std::int64_t positions = 0;    ///< the most positions of a sequence
  std::vector<Tensor> state{};   ///< of all layers; updated in place
  std::vector<Tensor> memory{};  ///< what layers computed once from the encoder's output

 private:
  std::map<std::string, Tensor> kept_;
};
/// A pass has no inputs of its own (each_tensor.h).
template <class F>
void each_tensor(const FilePass&, F&&) {}

/// Applies a layer to a tensor.
using FileStep = std::function<Tensor(const Tensor&, FilePass&)>;

/// How a layer computes a sequence position by position. None: it cannot. Each: every position by
/// itself. State: with the tensors in FilePass::state, for any number of positions. Bounded: for at
/// most FilePass::positions positions, because a cache or table has that many rows.
enum class ByPosition { None, Each, State, Bounded };

struct FileLayer {
  nn::AnyModule module;
  FileStep step;
  ByPosition by_position = ByPosition::None;
  /// Initial state of `batch` sequences of up to `positions` positions.
  std::function<std::vector<Tensor>(std::int64_t batch, std::int64_t positions)> start{};
  /// Tensors that the layer computes from the encoder's output once for all positions; null: none.
  std::function<std::vector<Tensor>(const FilePass&)> look_up{};
};

/// A layer that applies a module to one tensor.
FileLayer layer_of(const nn::AnyModule& module, ByPosition by_position = ByPosition::None);

/// What the builder of a layer may use besides the layer's keys.
struct LayerContext {
  Tensor x;  ///< the layer's input for two samples: shape and dtype, without memory
  OptionalGenerator generator{};
  std::int64_t classes = 0;
  std::int64_t vocabulary = 0;  ///< number of tokens of the input
  std::string activation{};     ///< what the layer "activation" applies; "": none
  const FilePass* pass = nullptr;
  std::size_t state = 0, memory = 0;  ///< index of the layer's first tensor in a pass
  /// Returns a parameter of an earlier layer by its path; throws ValueError if there is none.
  std::function<Tensor(const std::string& path)> parameter{};
};

/// The shape of a tensor for messages, with N for the batch size: "[N, 64, 7, 7]".
std::string shape_text(const Tensor& x);

}  // namespace tenon::models
