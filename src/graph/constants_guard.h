// ConstantsGuard: what NoGrad does, for graphs that are rebuilt or traced later.
#pragma once

#include "graph/node.h"

namespace tenon {

/// While it lives, this thread builds constants, or builds none.
class ConstantsGuard {
 public:
  explicit ConstantsGuard(bool on) noexcept : previous_(set_building_constants(on)) {}
  ~ConstantsGuard() { set_building_constants(previous_); }
  ConstantsGuard(const ConstantsGuard&) = delete;
  ConstantsGuard& operator=(const ConstantsGuard&) = delete;

 private:
  bool previous_;
};

}  // namespace tenon
