// The items of a graph while it is lowered, and how users read each node.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/index.h"
#include "graph/order.h"
#include "plan/regions/items.h"

namespace tenon {

class LoweredNodes {
 public:
  explicit LoweredNodes(const NumberedOrder& order);

  int size() const { return static_cast<int>(items_.size()); }
  Item& operator[](int item) { return items_[at(item)]; }
  const Item& operator[](int item) const { return items_[at(item)]; }
  std::vector<Item> take() { return std::move(items_); }

  /// Adds an item for the node, with this op and without arguments.
  int push(Op op, const Node& node);
  /// Adds a contiguous copy of what `ref` reads, cast to `dtype`.
  int add_cast(const Ref& ref, DType dtype, std::uint32_t label);
  /// A contiguous copy of what `ref` reads. The same reference is copied only once.
  int copy(const Ref& ref, std::uint32_t label);
  /// Copies `ref` even if it was copied before.
  int new_copy(const Ref& ref, std::uint32_t label);

  /// Reads an item from end to end.
  Ref whole(int item) const;
  /// Reads an item from end to end, with another shape.
  Ref whole(int item, const Shape& shape) const;
  /// Whether the reference reads memory, and not one number or a count.
  bool has_memory(const Ref& ref) const;
  /// A reference to the same elements that reads its base from end to end; a copy if necessary.
  /// Convolutions, pooling and data movement accept nothing else.
  Ref contiguous(const Ref& ref, std::uint32_t label);

  /// How users read a node that has been lowered.
  Ref& place(const Node* node) { return refs_[order_.index[node]]; }
  /// The same for any input. Adds a recomputed node again for each user, and a delayed cast now.
  Ref ref_of(const Node* node);

  /// Every user computes the node itself, from these arguments.
  void recompute(const Node* node, std::vector<Ref> args) { again_.emplace(node, std::move(args)); }
  /// The arguments of a recomputed node; null for any other node.
  const std::vector<Ref>* arguments_of_recomputed(const Node* node) const;
  /// Delays a cast: it becomes an item when a user reads it. Convolutions may read `input`
  /// directly.
  void delay_cast(const Node* cast, const Ref& input) { casts_.emplace(cast, input); }
  /// The input of a delayed cast; null for any other node.
  const Ref* input_of_cast(const Node* node) const;

 private:
  const NumberedOrder& order_;
  std::vector<Item> items_;
  std::vector<Ref> refs_;  // by number of the node; no item: the node is not lowered yet
  std::unordered_map<const Node*, std::vector<Ref>> again_;
  std::unordered_map<const Node*, Ref> casts_;
  std::unordered_map<std::string, int> copies_;
};

}  // namespace tenon
