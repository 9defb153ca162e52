// Builds nodes of loops and branches from bodies, for gradients and passes.
#pragma once

#include <span>
#include <vector>

#include <tenon/loops.h>

#include "graph/tracing/body.h"

namespace tenon {

/// The Scan node over its inputs (attrs.h), and all its results.
Tensor scan_node(std::span<const Tensor> inputs, ScanAttrs attrs);
ScanResult build_scan(std::span<const Tensor> inputs, ScanAttrs attrs);
/// The same for Cond.
Tensor cond_node(std::span<const Tensor> inputs, CondAttrs attrs);
std::vector<Tensor> build_cond(std::span<const Tensor> inputs, CondAttrs attrs);

}  // namespace tenon
