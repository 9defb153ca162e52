// Adds items, and copies of items that users read with other strides.
#include "plan/regions/lowered_nodes.h"

#include "ops/table.h"

namespace tenon {
namespace {

/// A key for maps that identifies what a reference reads.
std::string key_of(const Ref& ref) {
  std::string key(reinterpret_cast<const char*>(&ref.item), sizeof ref.item);
  key.append(reinterpret_cast<const char*>(&ref.offset), sizeof ref.offset);
  for (int d = 0; d < ref.shape.rank(); ++d) {
    key.append(reinterpret_cast<const char*>(&ref.stride[d]), sizeof ref.stride[d]);
    const std::int64_t size = ref.shape[d];
    key.append(reinterpret_cast<const char*>(&size), sizeof size);
  }
  return key;
}

}  // namespace

LoweredNodes::LoweredNodes(const NumberedOrder& order) : order_(order), refs_(order.nodes.size()) {
  items_.reserve(order.nodes.size());
}

int LoweredNodes::push(Op op, const Node& node) {
  Item item;
  item.op = op;
  item.kind = op_info(op).kind;
  item.dtype = node.dtype;
  item.shape = node.shape;
  item.attrs = node.attrs;
  item.label = node.label;
  items_.push_back(std::move(item));
  return size() - 1;
}

int LoweredNodes::add_cast(const Ref& ref, DType dtype, std::uint32_t label) {
  Item item;
  item.op = Op::Cast;
  item.kind = OpKind::Elementwise;
  item.dtype = dtype;
  item.shape = ref.shape;
  item.label = label;
  item.args.push_back(ref);
  items_.push_back(std::move(item));
  return size() - 1;
}

int LoweredNodes::copy(const Ref& ref, std::uint32_t label) {
  const auto [known, is_first] = copies_.try_emplace(key_of(ref), size());
  if (is_first) add_cast(ref, (*this)[ref.item].dtype, label);
  return known->second;
}

int LoweredNodes::new_copy(const Ref& ref, std::uint32_t label) {
  copies_.clear();
  return copy(ref, label);
}

Ref LoweredNodes::whole(int item) const { return whole(item, (*this)[item].shape); }

Ref LoweredNodes::whole(int item, const Shape& shape) const {
  Ref ref;
  ref.item = item;
  ref.shape = shape;
  contiguous_strides(shape, ref.stride);
  return ref;
}

bool LoweredNodes::has_memory(const Ref& ref) const {
  const Op base = (*this)[ref.item].op;
  return base != Op::Constant && base != Op::Iota;
}

Ref LoweredNodes::contiguous(const Ref& ref, std::uint32_t label) {
  if (has_memory(ref) && is_linear(ref, (*this)[ref.item].shape)) return ref;
  return whole(copy(ref, label));
}

Ref LoweredNodes::ref_of(const Node* node) {
  if (const Ref* input = input_of_cast(node); input != nullptr && place(node).item < 0) {
    const int item = push(node->op, *node);
    (*this)[item].args.push_back(*input);
    place(node) = whole(item);
  }
  const std::vector<Ref>* args = arguments_of_recomputed(node);
  if (args == nullptr) return place(node);
  const int item = push(node->op, *node);
  (*this)[item].args = *args;
  return whole(item);
}

const std::vector<Ref>* LoweredNodes::arguments_of_recomputed(const Node* node) const {
  const auto found = again_.find(node);
  return found == again_.end() ? nullptr : &found->second;
}

const Ref* LoweredNodes::input_of_cast(const Node* node) const {
  const auto found = casts_.find(node);
  return found == casts_.end() ? nullptr : &found->second;
}

}  // namespace tenon
