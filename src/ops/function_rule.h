// The gradient of an Op::Function node (tenon/function.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <tenon/function.h>

#include "graph/node.h"
#include "graph/tracing/body.h"

namespace tenon {

struct FunctionRule {
  const char* name = nullptr;                       // lives as long as the process
  detail::OnList<const FunctionContext&> backward;  // may be empty
  // Of functions that the library makes: the gradient of each input of a node.
  std::function<std::vector<Tensor>(const Tensor& out, std::span<const Tensor> cotangents)>
      of_node{};
  // Of checkpoint(): computes the values from the arguments, and whether the values carry
  // assignments, which the body does not repeat. The gradient is in grad/recompute.h.
  std::shared_ptr<const Body> recomputed{};
  bool carries_updates = false;
  /// The gradient of each argument of the node, as the backward function returns it.
  std::vector<Tensor> gradients(const Tensor& out, std::span<const Tensor> cotangents) const;
};

/// The rule of an Op::Function node.
const FunctionRule& rule_of_function(const Node& function);

/// The same values, computed without Op::Function nodes.
std::vector<Tensor> without_functions(std::span<const Tensor> roots);

/// Whether input `k` is a value that the function hides, or a saved tensor: no gradient flows to
/// it.
bool is_hidden_input(const Node& function, int k);

/// Throws the ValueError for a gradient that would flow to input `k`, which the forward function
/// reads although it is not an argument; does nothing for other inputs.
void refuse_captured(const Node& function, int k);

}  // namespace tenon
