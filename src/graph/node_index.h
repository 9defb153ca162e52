// The nodes of one walk by their place in it: a table that belongs to the walk, so that several
// threads may walk graphs which share nodes. Nodes are found by the number of their block, of which
// those that were made one after another have neighbouring ones: places stand in pages of a line of
// cache, and an open table says where a page is.
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
    std::uint32_t& own = places_[slot_of(node)];
    if (own != kAbsent) return false;
    own = place;
    return true;
  }
  /// Where the place of a node is kept: kAbsent until it is put there.
  std::uint32_t slot_of(const Node* node) {
    Page& page = pages_.empty() ? add(node->number) : pages_[find(node->number / kPage + 1)];
    return (page.key != 0 ? page : add(node->number)).first + node->number % kPage;
  }
  std::uint32_t& at_slot(std::uint32_t slot) { return places_[slot]; }
  /// kAbsent when the node is not there.
  std::uint32_t operator[](const Node* node) const {
    if (pages_.empty()) return kAbsent;
    const Page& page = pages_[find(node->number / kPage + 1)];
    return page.key == 0 ? kAbsent : places_[page.first + node->number % kPage];
  }
  bool contains(const Node* node) const { return (*this)[node] != kAbsent; }

 private:
  static constexpr std::uint32_t kPage = 16;  // places in 64 bytes
  struct Page {
    std::uint32_t key = 0;    // 0: none
    std::uint32_t first = 0;  // of its places
  };
  // Where a page stands or would stand. Keys come in long runs, and two runs that met would be
  // searched from end to end: they are scattered.
  std::size_t find(std::uint32_t key) const {
    const std::size_t mask = pages_.size() - 1;
    std::size_t at = (key * 0x9E3779B97F4A7C15ull) >> 32 & mask;
    while (pages_[at].key != 0 && pages_[at].key != key) at = (at + 1) & mask;
    return at;
  }
  Page& add(std::uint32_t number) {
    if (2 * (places_.size() / kPage + 1) > pages_.size()) grow();
    Page& page = pages_[find(number / kPage + 1)];
    page = {number / kPage + 1, static_cast<std::uint32_t>(places_.size())};
    places_.resize(places_.size() + kPage, kAbsent);
    return page;
  }
  void grow() {
    std::vector<Page> before(pages_.empty() ? 8 : 4 * pages_.size());
    before.swap(pages_);
    for (const Page& page : before)
      if (page.key != 0) pages_[find(page.key)] = page;
    places_.reserve(pages_.size() / 2 * kPage);
  }
  std::vector<Page> pages_;
  std::vector<std::uint32_t> places_;
};

/// topological_order() and the place of each node in it.
struct NumberedOrder {
  std::vector<Node*> nodes;
  NodeIndex index;
};
NumberedOrder numbered_order(std::span<const Tensor> roots, bool through_values = false);

}  // namespace tenon
