// Items: operations whose arguments are strided references, as lowering (lower.h) makes them and
// fusion (fuse.h) groups them. There are no views among them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/small_int_vector.h"
#include "graph/attrs.h"
#include "graph/op.h"
#include "ops/table.h"
#include "plan/program/ref.h"
#include "plan/program/strides.h"

namespace tenon {

struct Item {
  Op op = Op::Data;
  OpKind kind = OpKind::Leaf;
  DType dtype = DType::Float32;
  Shape shape;
  Attrs attrs;
  std::uint32_t label = 0;
  int slot = -1;  // Data and Variable: index of the leaf
  // Of an Assign, or of a scatter that writes into a variable itself: the variable's item.
  int target = -1;
  std::int64_t results = 1;  // number of results of the op
  std::vector<Ref> args;
  std::vector<int>
      after;  // items that must run before this one (readers of a variable, before its assignment)
  SmallIntVector users;        // items that read this one or must come after it
  bool wanted = false;         // an output of the program
  bool channels_last = false;  // a convolution or pooling whose result is stored as [N, H, W, C]
  bool deviations = false;     // a Sum of squared deviations from the argument's mean
};

/// Whether the item has several results, each represented by a Result item.
inline bool has_several_results(const Item& item) {
  return has_trait(item.op, kSeveralResults) || item.results > 1;
}

struct Lowered {
  std::vector<Item> items;   // arguments before users
  std::vector<int> outputs;  // one item for each root; for an assignment its Assign item
  bool stores_rounded =
      false;  // activations are stored rounded (plan/precision/lower_activation_precision.h)
};

/// Whether the reference reads its base from end to end in order.
bool is_linear(const Ref& ref, const Shape& base);

/// For example "add (conv1)".
std::string item_title(const Item& item);

}  // namespace tenon
