// Walk: the library's view into a module tree: every state, parameter and buffer once, with its
// path.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nn/state.h"

namespace tenon::nn {

struct Walk {
  using Visitor = std::function<void(const std::string& path, Module::State::Entry& entry)>;
  /// Parameters and buffers, parents first, each tensor once (tied weights have the first path).
  static void entries(const Module& root, const Visitor& visit);
  template <class F>
  static void states(const Module& root, F&& visit);
  /// Training modes of all modules, and back: for what must run in another mode for a moment.
  static std::vector<bool> modes(const Module& root);
  static void set_modes(const Module& root, const std::vector<bool>& modes);
  static bool has_children(const Module& module);
  static std::int64_t own_parameters(const Module& module);
};

}  // namespace tenon::nn
