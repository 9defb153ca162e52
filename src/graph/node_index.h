// The nodes of one walk by number: an open table from address to number that belongs to the walk,
// so that several threads may walk graphs which share nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/node.h"

namespace tenon {

class NodeIndex {
 public:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  /// False when the node is there already.
  bool insert(const Node* node, std::uint32_t number) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[find(node)];
    if (slot.node != nullptr) return false;
    slot = {node, number};
    ++count_;
    return true;
  }
  /// Of a node that is there.
  void renumber(const Node* node, std::uint32_t number) { slots_[find(node)].number = number; }
  /// kAbsent when the node is not there.
  std::uint32_t operator[](const Node* node) const {
    if (slots_.empty()) return kAbsent;
    const Slot& slot = slots_[find(node)];
    return slot.node == nullptr ? kAbsent : slot.number;
  }
  bool contains(const Node* node) const { return (*this)[node] != kAbsent; }

 private:
  struct Slot {
    const Node* node = nullptr;
    std::uint32_t number = 0;
  };
  // Where the node stands or would stand. Addresses differ in their middle bits, which the product
  // carries to the top.
  std::size_t find(const Node* node) const {
    const std::size_t mask = slots_.size() - 1;
    auto at = static_cast<std::size_t>(
        (reinterpret_cast<std::uintptr_t>(node) * 0x9E3779B97F4A7C15ull) >> shift_);
    while (slots_[at].node != nullptr && slots_[at].node != node) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? 64 : 2 * slots_.size());
    before.swap(slots_);
    shift_ = 64;
    for (std::size_t size = slots_.size(); size > 1; size /= 2) --shift_;
    for (const Slot& slot : before)
      if (slot.node != nullptr) slots_[find(slot.node)] = slot;
  }
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
  int shift_ = 64;
};

/// topological_order() and the place of each node in it.
struct NumberedOrder {
  std::vector<Node*> nodes;
  NodeIndex index;
};
NumberedOrder numbered_order(std::span<const Tensor> roots, bool through_values = false);

}  // namespace tenon
