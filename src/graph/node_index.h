// The nodes of one walk by their place in it: an open table that belongs to the walk, so that
// several threads may walk graphs which share nodes. Nodes are found by the number of their block;
// those that were made one after another share a line of cache. Lines are scattered: numbers come
// in long runs, and two runs that met would be searched from end to end.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/node.h"

namespace tenon {

class NodeIndex {
 public:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  /// False when the node is there already.
  bool insert(const Node* node, std::uint32_t place) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[find(node->number)];
    if (slot.number != 0) return false;
    slot = {node->number, place};
    ++count_;
    return true;
  }
  /// Of a node that is there.
  void set_place(const Node* node, std::uint32_t place) {
    slots_[find(node->number)].place = place;
  }
  /// kAbsent when the node is not there.
  std::uint32_t operator[](const Node* node) const {
    if (slots_.empty()) return kAbsent;
    const Slot& slot = slots_[find(node->number)];
    return slot.number == 0 ? kAbsent : slot.place;
  }
  bool contains(const Node* node) const { return (*this)[node] != kAbsent; }

 private:
  struct Slot {
    std::uint32_t number = 0;  // 0: empty
    std::uint32_t place = 0;
  };
  static constexpr std::uint32_t kLine = 8;  // slots in 64 bytes
  // Where the node stands or would stand: in its place of its line, or further on, by an odd step,
  // which meets every slot.
  std::size_t find(std::uint32_t number) const {
    const std::size_t mask = slots_.size() - 1;
    const std::uint64_t line = (number / kLine * 0x9E3779B97F4A7C15ull) >> 32;
    std::size_t at = (line * kLine + number % kLine) & mask;
    while (slots_[at].number != 0 && slots_[at].number != number) at = (at + kLine + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? 64 : 4 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before)
      if (slot.number != 0) slots_[find(slot.number)] = slot;
  }
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

/// topological_order() and the place of each node in it.
struct NumberedOrder {
  std::vector<Node*> nodes;
  NodeIndex index;
};
NumberedOrder numbered_order(std::span<const Tensor> roots, bool through_values = false);

}  // namespace tenon
