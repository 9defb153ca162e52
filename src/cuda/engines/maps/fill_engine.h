// Maps that write one number everywhere: the initial values of variables. Others fill as part of
// what they compute. The driver does it, so a program's first values wait for no compiler.
#pragma once

#include "cuda/target.h"
#include "plan/engine.h"

namespace tenon::cuda {

/// Claims maps of one number and one contiguous result that the driver can fill.
const Engine& fill_engine(const Target& target);

}  // namespace tenon::cuda
