// Walk: the library's view of a module tree: every state, parameter and buffer once, with its path.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "nn/state.h"

namespace tenon::nn {

struct Walk {
  using Visitor = std::function<void(const std::string& path, ModuleState::Entry& entry)>;
  /// Parameters and buffers, parents first, each tensor once (tied weights have the first path).
  static void entries(const ModuleBase& root, const Visitor& visit);
  /// Every name of every tensor, tied ones included.
  static void names(const ModuleBase& root, const Visitor& visit);
  /// Every state once, parents first, with its path.
  static void states(const ModuleBase& root,
                     const std::function<void(ModuleState& state, const std::string& path)>& visit);
  /// Saves and restores the training modes of all modules, for code that runs in another mode for a
  /// moment. Restoring allocates nothing, because destructors call it.
  using Modes = std::vector<std::pair<std::shared_ptr<ModuleState>, bool>>;
  static Modes modes(const ModuleBase& root);
  static void set_modes(const Modes& modes) noexcept;
  using Child = std::pair<std::string, AnyModule>;
  /// The direct children and the module's own parameters and buffers.
  static const std::vector<Child>& children(const ModuleBase& module) {
    return module.state_->children;
  }
  static const std::vector<ModuleState::Entry>& own_entries(const ModuleBase& module) {
    return module.state_->entries;
  }
  /// Says that the module is a container which is not called itself.
  static void mark_list(ModuleBase& module) { module.state_->is_list = true; }
  static bool is_list(const ModuleBase& module) { return module.state_->is_list; }
  static ModuleState& state(const ModuleBase& module) { return *module.state_; }
  /// Reports to the trace of this thread that a compiled function calls the module.
  static void note_called(const ModuleBase& module);
  /// Throws ValueError if `caller`, which is called inside `root`, calls a layer that learns and
  /// that no module has registered.
  static void require_registered(const ModuleBase& module, const ModuleBase& caller,
                                 const ModuleBase& root);
  /// Number of elements of the module's own parameters that are not in `counted`; adds them to it.
  static std::int64_t own_parameters(const ModuleBase& module,
                                     std::unordered_set<const Node*>& counted);
};

}  // namespace tenon::nn
