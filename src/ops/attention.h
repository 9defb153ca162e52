// What passes ask of an attention beside its attributes.
#pragma once

namespace tenon {

struct Node;

/// Whether a node is an attention, or the gradients of one, whose weights are dropped at random: it
/// draws numbers.
bool drops_weights(const Node& node);

}  // namespace tenon
