// Convolutions over images of few channels, on a GPU that keeps activations in NHWC. A graph
// rewrite; the layout itself is chosen in plan/layout/layout.h.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Rewrites convolutions over an image, and their weight gradients, so that a row of channels is a
/// multiple of 16 bytes.
Roots fill_channels(Roots roots, const PlanOptions& options);

}  // namespace tenon
