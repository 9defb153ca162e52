// The clean-up of graphs, with simplify.h: pure functions from the requested tensors to equivalent
// tensors. They run before the precision rewrites, and again before lowering (lower.h).
#pragma once

#include <optional>
#include <span>

#include <tenon/number.h>

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// The value of an element-wise op or a view whose inputs are constants with these values; none if
/// it is computed when the program runs.
std::optional<Scalar> folded_value(const Node& node, std::span<const Scalar> inputs);
/// Evaluates element-wise ops and views of constants at planning time.
Roots fold_constants(Roots roots, const PlanOptions& options);
/// Common subexpression elimination: equal nodes become one.
Roots share(Roots roots, const PlanOptions& options);

}  // namespace tenon
