// The last check of a program: what passes promise one another about regions, and what engines may
// rely on.
#pragma once

#include "plan/program.h"

namespace tenon {

/// Throws InternalError, naming the step, when
/// - a region's lists of values are not those of its instructions, an instruction takes one behind
///   it, a view leaves its value, or a prologue or an epilogue does not fit its contraction;
/// - a chain cuts a kernel along an axis that it has not, or two kernels cut one value in two ways,
///   a part reads rows in a band that the one before it does not make there, or its engine does not
///   run it;
/// - a value is read before it is written, two steps write one, what somebody makes or gives is
///   read by nobody, or what has no memory is asked for;
/// - two live values overlap in the arena.
void verify_program(const Program& program);

}  // namespace tenon
