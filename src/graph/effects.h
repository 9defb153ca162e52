// Assignments that a value carries (Op::WithUpdates): finding them, carrying them out once, or
// removing them.
//
// A forward pass that updates a buffer attaches the assignment to a value computed in the same
// place. Evaluating anything that depends on that value also evaluates the assignment:
// with_effects() turns carried assignments into roots, so that the planner and engines see plain
// assignments only. If several calls in one graph update the same variable, each call sees the
// result of the previous one.
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// The result of with_effects(): `roots` are planned, first the requested tensors, then the
/// assignments that they carry. The value of roots[k] is the value of results[k].
struct Effects {
  std::vector<Tensor> roots, results;
};
/// `order` is the topological order of `wanted`. Marks every assignment in it as handled.
Effects with_effects(std::vector<Tensor> wanted, std::span<Node* const> order);

/// The same values without carried assignments, and the assignments: one for each variable, with
/// those of several calls chained.
struct Taken {
  std::vector<Tensor> values, assignments;
};
Taken take_effects(std::span<const Tensor> values);

/// The nodes of `order` that the values of `roots` depend on, without nodes that only carried
/// assignments use.
std::unordered_set<const Node*> made_from(std::span<Node* const> order,
                                          std::span<const Tensor> roots);

/// The inputs that a node's value depends on: all but the assignments that it carries.
std::span<Node* const> value_inputs(const Node& node);

}  // namespace tenon
