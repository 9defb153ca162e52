// Lowering of operations: ops for which no engine of the device exists are written in other ops.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Writes ops with several results in other ops if no engine of the device supports them: attention
/// of sizes that the device's kernels do not take.
Roots legalize(Roots roots, const PlanOptions& options);
/// Writes composite ops in primitive ops; formulas that an engine has loops for (FormulaSource) as
/// one element-wise op; and on a CPU, products of columns by rows as element-wise products.
Roots decompose(Roots roots, const PlanOptions& options);

}  // namespace tenon
