// Decides which ops are written in other ops. The op table says how.
#include "plan/rewrites/legalize.h"

#include <memory>

#include "graph/node.h"
#include "ops/attention.h"
#include "ops/formula.h"
#include "ops/table.h"
#include "plan/program/formula_source.h"

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

const FormulaSource* formula_source(const PlanOptions& options) {
  for (const Engine* const engine : options.engines)
    if (const auto* source = dynamic_cast<const FormulaSource*>(engine)) return source;
  return nullptr;
}

// One instruction for a formula that the engine has loops for. They are of float32; float64 is
// computed by the formula's operations.
Tensor formula_in_one(const Node& node, std::span<const Tensor> inputs,
                      const FormulaSource& source) {
  if (node.dtype == DType::Float64) return {};
  const auto& formula = node.attrs.as<FormulaAttrs>();
  const char* const name = formula_name(formula.formula);
  std::shared_ptr<const ElementCode> code = source.formula(name, formula.parameter);
  if (code == nullptr) return {};
  ElementAttrs attrs;
  attrs.key.mix(reinterpret_cast<std::uintptr_t>(code->f32));
  attrs.name = intern_label(name);
  attrs.code = std::move(code);
  return make_node(Op::OwnElement, node.dtype, node.shape, Attrs(attrs), inputs);
}

// A product of columns by rows: one multiplication for each element of the result. Written so, it
// is fused with the operations on it. GPUs have kernels for it.
bool is_outer_product(const Node& node) {
  return node.op == Op::Matmul && node.input(0)->shape.at(-1) == 1 &&
         node.dtype == node.input(0)->dtype &&
         (node.dtype == DType::Float32 || node.dtype == DType::Float64) &&
         node.attrs.as<ContractionAttrs>().precision == Precision::Fp32;
}

Tensor outer_product(const Node& node, std::span<const Tensor> inputs) {
  const Tensor operands[2] = {
      make_node(Op::Expand, node.dtype, node.shape, {}, inputs.first(1)),
      make_node(Op::Expand, node.dtype, node.shape, {}, inputs.subspan(1, 1))};
  return make_node(Op::Mul, node.dtype, node.shape, {}, operands);
}

}  // namespace

Roots legalize(Roots roots, const PlanOptions& options) {
  const auto is_result = [](const Node& node) { return node.op == Op::Result; };
  return rewrite_where(
      roots, is_result, [&options](Node& node, std::span<const Tensor> inputs) -> Tensor {
        const Node& owner = *inputs[0].node();
        const OpInfo& info = op_info(owner.op);
        if (info.decompose_result == nullptr || is_left_to_engine(owner, options)) return {};
        if (options.traits.runs_in_order && has_trait(owner.op, kInOrder)) return {};
        return info.decompose_result(inputs[0], node.attrs.as<ResultAttrs>().index);
      });
}

Roots decompose(Roots roots, const PlanOptions& options) {
  const auto is_written = [](const Node& node) {
    return kind_of(node.op) == OpKind::Composite || is_outer_product(node);
  };
  const FormulaSource* const source = formula_source(options);
  return rewrite_where(
      roots, is_written, [&options, source](Node& node, std::span<const Tensor> inputs) -> Tensor {
        if (node.op == Op::Matmul)
          return options.traits.launches_kernels ? Tensor() : outer_product(node, inputs);
        const OpInfo& info = op_info(node.op);
        if (info.decompose == nullptr) return {};
        if (options.traits.has_response_norm && has_trait(node.op, kAcrossChannels)) return {};
        if (options.traits.runs_in_order && has_trait(node.op, kInOrder)) return {};
        if (node.op == Op::Formula && source != nullptr)
          if (Tensor whole = formula_in_one(node, inputs, *source); whole.defined()) return whole;
        return info.decompose(make_node(node.op, node.dtype, node.shape, node.attrs, inputs));
      });
}

}  // namespace tenon
