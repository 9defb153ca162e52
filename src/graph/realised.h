// Values of nodes, and what a value that has released its inputs still knows of them.
#pragma once

#include <memory>

#include "device/buffer.h"
#include "graph/node.h"

namespace tenon {

/// Stores the value of a pending node. Unless the node is tracked, it releases its inputs and keeps
/// their Sources. Not for leaves.
void set_realised(Node& node, std::shared_ptr<Buffer> buffer);

/// Whether a value that has released its inputs may have been computed from a tensor. Certain if
/// false. An assignment keeps no list: every tensor that was built earlier counts.
bool may_have_read(const Node& value, const Node& tensor);
/// Whether that can be true of any tensor. False for most values of a graph.
bool may_have_read_any(const Node& value);

}  // namespace tenon
