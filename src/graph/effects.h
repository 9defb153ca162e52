// Assignments that a value carries (Op::WithUpdates): found, carried out once, or taken off.
//
// A forward pass that renews a buffer hangs the assignment on the value beside which it was made.
// Whoever evaluates what depends on that value evaluates the assignment with it: with_effects()
// makes roots of what is carried, so that planner and engines know of plain assignments only. Where
// several calls in one graph renew the same variable, each sees what the call before has left.
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// What evaluating some tensors amounts to: `roots` are planned; the value of roots[k] is that of
/// results[k]. First the tensors asked for, then the assignments that they carry.
struct Effects {
  std::vector<Tensor> roots, results;
};
/// `order` is the topological order of `wanted`. Marks every assignment in it as heeded.
Effects with_effects(std::vector<Tensor> wanted, std::span<Node* const> order);

/// The same values carrying nothing, and the assignments that they carried: one a variable, those
/// of several calls chained.
struct Taken {
  std::vector<Tensor> values, assignments;
};
Taken take_effects(std::span<const Tensor> values);

/// The nodes of `order` that the values of `roots` are made from: all but what stands only in
/// assignments that are carried.
std::unordered_set<const Node*> made_from(std::span<Node* const> order,
                                          std::span<const Tensor> roots);

/// What a node's value is made from: all inputs but the assignments that it carries.
std::span<Node* const> value_inputs(const Node& node);

}  // namespace tenon
