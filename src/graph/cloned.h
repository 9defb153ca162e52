// Variables that stand for others while a module is cloned (nn/clone.cpp). The copy constructor of
// a module's class copies its tensors one by one; each copy of a variable's handle then refers to
// the variable's clone.
#pragma once

#include <unordered_map>

#include <tenon/tensor.h>

namespace tenon {

/// The clone of each variable.
using ClonedVariables = std::unordered_map<const Node*, Tensor>;

/// Sets the clones that copies of tensors on this thread refer to; null: none. Returns those from
/// before.
const ClonedVariables* set_cloned_variables(const ClonedVariables* clones) noexcept;

}  // namespace tenon
