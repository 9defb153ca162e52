// Engine for maps that write one number everywhere: the initial values of variables. The driver
// fills the memory, so a program's initial values need no compilation. Other regions fill as part
// of their computation.
#pragma once

#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// Claims maps of one number and one contiguous result that the driver can fill.
const Engine& fill_engine(const Target& target);

}  // namespace tenon::cuda
