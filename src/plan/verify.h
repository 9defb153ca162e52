// The final check of a program: what passes promise each other about regions, and what engines may
// rely on. It changes nothing.
#pragma once

#include "plan/program.h"

namespace tenon {

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
