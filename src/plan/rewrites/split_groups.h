// Gradients of grouped convolutions on a GPU that keeps activations in NHWC.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Computes the weight gradient of a convolution with up to 4 groups group by group, with NHWC
/// activations. Libraries have few deterministic kernels for groups.
Roots split_groups(Roots roots, const PlanOptions& options);

}  // namespace tenon
