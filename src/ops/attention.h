// Properties of attention nodes that passes need besides the attributes.
#pragma once

namespace tenon {

struct Node;

/// Whether a node is an attention with dropout, or the gradient of one: it draws random numbers.
bool drops_weights(const Node& node);

}  // namespace tenon
