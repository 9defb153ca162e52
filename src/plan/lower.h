// Lowering: from nodes to items whose arguments are strided references. After this, views no longer
// exist: `layout` has folded them into the way their users read, or has put a copy where no stride
// can express them.
#pragma once

#include <string>
#include <vector>

#include "base/small_int_vector.h"
#include "graph/node_index.h"
#include "plan/program.h"
#include "plan/strides.h"

namespace tenon {

/// How an item reads another one: element at coordinates c of `shape` lies at offset + sum c[d] *
/// stride[d] of the base's own row-major memory. For Iota the "memory" is the coordinate itself.
struct Ref {
  int item = -1;
  std::int64_t offset = 0;
  std::int64_t stride[kMaxRank] = {};
  Shape shape;
};

struct Item {
  Op op = Op::Data;
  OpKind kind = OpKind::Leaf;
  DType dtype = DType::Float32;
  Shape shape;
  Attrs attrs;
  std::uint32_t label = 0;
  int slot = -1;             // Data and Variable: index of the leaf
  int target = -1;           // Assign: the variable's item
  std::int64_t results = 1;  // that the op has
  std::vector<Ref> args;
  std::vector<int>
      after;  // items that must have run before (readers of a variable, before its assignment)
  SmallIntVector users;        // items that read this one or come after it
  bool wanted = false;         // an output of the program
  bool channels_last = false;  // a convolution or pooling whose result's images are [N, H, W, C]
  bool deviations = false;     // a Sum: of squared deviations from the argument's mean
};

/// Whether Result items stand for what the item makes.
inline bool has_several_results(const Item& item) {
  return has_trait(item.op, kSeveralResults) || item.results > 1;
}

struct Lowered {
  std::vector<Item> items;   // arguments before users
  std::vector<int> outputs;  // item per root; an Assign item for an assignment
  bool stores_rounded =
      false;  // images that are rounded on the way (plan/lower_activation_precision.h)
};

/// `order`: the nodes that the roots need.
Lowered lower(std::span<const Tensor> roots, const NumberedOrder& order,
              std::span<Node* const> leaves, const PlanOptions& options);

/// Whether the reference reads its base from end to end in order.
bool is_linear(const Ref& ref, const Shape& base);

/// "add (conv1)"
std::string item_title(const Item& item);

}  // namespace tenon
