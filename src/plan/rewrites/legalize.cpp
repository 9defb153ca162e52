// Decides which ops are written in other ops. The op table says how.
#include "plan/rewrites/legalize.h"

#include "graph/node.h"
#include "ops/attention.h"
#include "ops/table.h"

namespace tenon {
namespace {

// A query of one position, as in text generation, gains nothing from a fused engine: it has few
// scores.
bool is_left_to_engine(const Node& attention, const PlanOptions& options) {
  if (kind_of(attention.op) != OpKind::Attention) return false;
  const AttentionTraits& known = options.traits.attention;
  const auto fits = [&known](std::int64_t size) {
    return size <= known.largest_size && size % known.size_step == 0;
  };
  const bool draws = drops_weights(attention);
  const Shape& q = attention.input(0)->shape;
  if (known.most_heads > 0 && q[0] * q[2] > known.most_heads) return false;
  return (!draws || known.generates_dropout) && attention.dtype != DType::Float64 && q[1] > 1 &&
         fits(q[3]) && fits(attention.input(2)->shape[3]);
}

}  // namespace

Roots legalize(Roots roots, const PlanOptions& options) {
  const auto is_result = [](const Node& node) { return node.op == Op::Result; };
  return rewrite_where(
      roots, is_result, [&options](Node& node, std::span<const Tensor> inputs) -> Tensor {
        const Node& owner = *inputs[0].node();
        const OpInfo& info = op_info(owner.op);
        if (info.decompose_result == nullptr || is_left_to_engine(owner, options)) return {};
        return info.decompose_result(inputs[0], node.attrs.as<ResultAttrs>().index);
      });
}

Roots decompose(Roots roots, const PlanOptions& options) {
  const auto is_composite = [](const Node& node) { return kind_of(node.op) == OpKind::Composite; };
  return rewrite_where(
      roots, is_composite, [&options](Node& node, std::span<const Tensor> inputs) -> Tensor {
        const OpInfo& info = op_info(node.op);
        if (info.decompose == nullptr) return {};
        if (options.traits.has_response_norm && has_trait(node.op, kAcrossChannels)) return {};
        if (options.traits.runs_in_order && has_trait(node.op, kInOrder)) return {};
        return info.decompose(make_node(node.op, node.dtype, node.shape, node.attrs, inputs));
      });
}

}  // namespace tenon
