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
  template <class F>
  static void states(const ModuleBase& root, F&& visit);
  /// Saves and restores the training modes of all modules, for code that runs in another mode for a
  /// moment. Restoring allocates nothing, because destructors call it.
  using Modes = std::vector<std::pair<std::shared_ptr<ModuleState>, bool>>;
  static Modes modes(const ModuleBase& root);
  static void set_modes(const Modes& modes) noexcept;
  /// Reports to the trace of this thread that a compiled function calls the module.
  static void note_called(const ModuleBase& module);
  /// Throws ValueError if `caller`, which is called inside `root`, calls a layer that learns and
  /// that no module has registered.
  static void require_registered(const ModuleBase& module, const ModuleBase& caller,
                                 const ModuleBase& root);
  static bool has_children(const ModuleBase& module);
  /// Number of elements of the module's own parameters that are not in `counted`; adds them to it.
  static std::int64_t own_parameters(const ModuleBase& module,
                                     std::unordered_set<const Node*>& counted);
};

}  // namespace tenon::nn
