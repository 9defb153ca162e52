// The engine of loops and branches. It runs the program of a body as often as needed. It knows no
// device: the kernels of the body's steps queue their work on the stream of the loop's own step.
#pragma once

#include "plan/program/engine.h"

namespace tenon {

/// Claims opaque regions that have bodies (Opaque::bodies).
const Engine& loop_engine();

}  // namespace tenon
