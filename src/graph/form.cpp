// Builds a form in one walk over the nodes, including the nodes of bodies.
#include "graph/form.h"

#include <cmath>
#include <cstring>

#include "graph/host_code.h"
#include "graph/node.h"
#include "graph/order.h"
#include "graph/tracing/body.h"

namespace tenon {
namespace {

class Former {
 public:
  GraphForm run(const NumberedOrder& order, std::span<const Tensor> roots) {
    out_.fixed.reserve(4 * order.nodes.size());
    out_.sizes.reserve(4 * order.nodes.size());
    out_.extents.reserve(order.nodes.size());
    for (const Node* node : order.nodes) {
      describe(*node);
      if (node->realised()) continue;
      attributes(*node);
      for (const Node* in : node->in()) fixed(order.index[in]);
    }
    for (const Tensor& root : roots) fixed(order.index[root.node()] | 1ull << 40);
    return std::move(out_);
  }

 private:
  void fixed(std::uint64_t word) { out_.fixed.push_back(word); }
  void size(std::int64_t size) { out_.sizes.push_back(size); }

  void describe(const Node& node) {
    // A computed value is a leaf like any other.
    const Op op = node.realised() && node.op != Op::Variable ? Op::Data : node.op;
    fixed(static_cast<std::uint64_t>(op) | static_cast<std::uint64_t>(node.dtype) << 8 |
          static_cast<std::uint64_t>(node.shape.rank()) << 16 |
          static_cast<std::uint64_t>(node.realised()) << 24 |
          static_cast<std::uint64_t>(node.is_number) << 25 |
          static_cast<std::uint64_t>(node.input_count) << 32);
    fixed(node.label);
    extents(node.shape, ~0ull);
  }

  // Records the extents of some axes of a shape.
  void extents(const Shape& shape, std::uint64_t axes) {
    const auto first = static_cast<std::uint32_t>(out_.sizes.size());
    for (int d = 0; d < shape.rank(); ++d)
      if ((axes >> d & 1u) != 0) size(shape[d]);
    out_.extents.push_back({first, static_cast<std::uint32_t>(out_.sizes.size()) - first});
  }

  void number(double value) {
    constexpr double kMost = 1ll << 53;
    if (std::fabs(value) <= kMost && std::trunc(value) == value)
      out_.numbers.push_back(static_cast<std::int64_t>(value));
  }

  void attributes(const Node& node) {
    if (const auto* slice = node.attrs.get_if<SliceAttrs>()) {
      for (int d = 0; d < node.shape.rank(); ++d) size(slice->start[d]), size(slice->step[d]);
    } else if (const auto* pad = node.attrs.get_if<PadAttrs>()) {
      for (int d = 0; d < node.shape.rank(); ++d) size(pad->before[d]), size(pad->after[d]);
      std::uint64_t value;
      std::memcpy(&value, &pad->value, sizeof value);
      fixed(value);
    } else if (const auto* scan = node.attrs.get_if<ScanAttrs>()) {
      size(scan->length);
      for (const std::int64_t word : {scan->reverse, scan->carries, scan->rows})
        fixed(static_cast<std::uint64_t>(word));
      body(*scan->body);
    } else if (const auto* call = node.attrs.get_if<HostCallAttrs>()) {
      for (const std::uint64_t word : {call->name, call->code.lo, call->code.hi}) fixed(word);
      for (const TensorType& type : call->types->types) {
        fixed(static_cast<std::uint64_t>(type.dtype) | static_cast<std::uint64_t>(type.shape.rank())
                                                           << 8);
        extents(type.shape, ~0ull);
      }
    } else if (const auto* cond = node.attrs.get_if<CondAttrs>()) {
      for (const std::int64_t word : {cond->operands, cond->captured})
        fixed(static_cast<std::uint64_t>(word));
      body(*cond->on_true);
      body(*cond->on_false);
    } else {
      if (const auto* constant = node.attrs.get_if<ConstantAttrs>()) number(constant->value.real());
      if (node.op == Op::Sum)
        extents(node.input(0)->shape,
                static_cast<std::uint64_t>(node.attrs.as<ReduceAttrs>().axes));
      node.attrs.each_word([this](std::uint64_t word) { fixed(word); });
    }
  }

  // Bodies may share nodes; a node that was visited before is recorded by its number.
  void body(const Body& body) {
    fixed(body.parameters.size() | std::uint64_t{body.results.size()} << 32);
    for (const Tensor& parameter : body.parameters) inner(*parameter.node());
    for (const Node* node : topological_order(body.results)) {
      if (!inner(*node) || node->realised()) continue;
      attributes(*node);
      for (const Node* in : node->in()) fixed(inner_[in]);
    }
    for (const Tensor& result : body.results) fixed(inner_[result.node()] | 1ull << 40);
  }

  // Returns whether the node is new.
  bool inner(const Node& node) {
    if (!inner_.insert(&node, inner_count_)) {
      fixed(inner_[&node] | 1ull << 41);
      return false;
    }
    ++inner_count_;
    describe(node);
    return true;
  }

  GraphForm out_;
  NodeIndex inner_;
  std::uint32_t inner_count_ = 0;
};

}  // namespace

GraphForm form_of(const NumberedOrder& order, std::span<const Tensor> roots) {
  return Former().run(order, roots);
}

}  // namespace tenon
