// Checks of graphs and programs: what passes promise each other, and what engines may rely on. They
// change nothing.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Throws InternalError if a node's dtype or shape differs from what its row of the op table
/// infers.
Roots verify_graph(Roots roots, const PlanOptions& options);

/// The check after a graph pass, or after passes that share a walk, in verified builds:
/// verify_graph(), and the number, dtypes and shapes of the requested tensors are the same. The
/// InternalError names the passes.
void verify_after(PassSet passes, const Roots& given, const Roots& made,
                  const PlanOptions& options);
/// The check after a pass over regions in verified builds: every region is complete, every value
/// that is read is given or written, and every value with memory is read. The InternalError names
/// the pass. Order and memory do not exist yet; verify_program() checks them.
void verify_after(PassId pass, const Program& program);

/// Throws InternalError, naming the step, in these cases:
/// * A region's lists of values do not match its instructions, an instruction uses a later one, a
///   view leaves its value, or a prologue or epilogue does not fit its contraction.
/// * A chain cuts a map along an axis that the map does not have, two maps cut one value in
///   different ways, a part reads rows in a band that the previous part does not compute there, or
///   the part's engine does not run it.
/// * A value is read before it is written, two steps write one value, a computed or given value has
///   no reader, or a value without memory is read.
/// * Two live values overlap in the arena.
void verify_program(const Program& program);

}  // namespace tenon
