// The engine of loops and branches: it runs the program of a body as often as it must. Knows no
// device: the kernels of the body's steps queue their own work where the step's is queued.
#pragma once

#include "plan/engine.h"

namespace tenon {

/// Claims opaque regions that have bodies (Opaque::bodies).
const Engine& loop_engine();

}  // namespace tenon
