// The nodes of one walk by their position in it. The table belongs to the walk, so several threads
// may walk graphs that share nodes. A node is found by the number of its memory block. Nodes made
// one after another have neighbouring block numbers, so positions are stored in pages of one cache
// line, and an open hash table finds the page.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/node.h"

namespace tenon {

class NodeIndex {
 public:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  /// Returns false if the node is already in the table.
  bool insert(const Node* node, std::uint32_t place) {
    std::uint32_t& own = places_[slot_of(node)];
    if (own != kAbsent) return false;
    own = place;
    return true;
  }
  /// The slot for the node's position; it is kAbsent until the node is inserted.
  std::uint32_t slot_of(const Node* node) {
    Page& page = pages_.empty() ? add(node->number) : pages_[find(node->number / kPage + 1)];
    return (page.key != 0 ? page : add(node->number)).first + node->number % kPage;
  }
  std::uint32_t& at_slot(std::uint32_t slot) { return places_[slot]; }
  /// kAbsent if the node is not in the table.
  std::uint32_t operator[](const Node* node) const {
    if (pages_.empty()) return kAbsent;
    const Page& page = pages_[find(node->number / kPage + 1)];
    return page.key == 0 ? kAbsent : places_[page.first + node->number % kPage];
  }
  bool contains(const Node* node) const { return (*this)[node] != kAbsent; }

 private:
  static constexpr std::uint32_t kPage = 16;  // positions in 64 bytes
  struct Page {
    std::uint32_t key = 0;    // 0: none
    std::uint32_t first = 0;  // of its positions
  };
  // The slot of a page, or the slot where it would be inserted. Keys come in long runs; hashing
  // scatters them, because two adjoining runs would make a search long.
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

}  // namespace tenon
