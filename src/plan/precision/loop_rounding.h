// Which loop operands and loop results a GPU stores in 16 bits. Loops only; values outside loops
// are handled in rounding.h.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Rounds values once in front of a scan if all steps share them and only products read them,
/// rounded. A carry that only such products read is carried rounded.
Roots round_loop_operands(Roots roots, const PlanOptions& options);
/// Stores a stacked result of a scan rounded if all its readers round it.
Roots round_loop_results(Roots roots, const PlanOptions& options);

}  // namespace tenon
