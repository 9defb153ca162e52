// Constants computed at planning time, and common subexpressions.
#include "plan/cleanup/graph_passes.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/node.h"
#include "ops/table.h"

namespace tenon {
namespace {

double round_to(DType dtype, double v) {
  switch (dtype) {
    case DType::Float32:
      return static_cast<float>(v);
    case DType::Float16:
      return static_cast<float>(float16(static_cast<float>(v)));
    case DType::BFloat16:
      return static_cast<float>(bfloat16(static_cast<float>(v)));
    default:
      return v;
  }
}

// Folds only correctly rounded ops: their double result, rounded once to the dtype, equals the op's
// result in that dtype.
bool fold_binary(Op op, double a, double b, double* out) {
  switch (op) {
    case Op::Add:
      *out = a + b;
      return true;
    case Op::Sub:
      *out = a - b;
      return true;
    case Op::Mul:
      *out = a * b;
      return true;
    case Op::Div:
      *out = a / b;
      return true;
    case Op::Maximum:
      *out = std::fmax(a, b);
      return !std::isnan(a) && !std::isnan(b) && (a != 0 || b != 0);  // +0 and -0 differ
    case Op::Minimum:
      *out = std::fmin(a, b);
      return !std::isnan(a) && !std::isnan(b) && (a != 0 || b != 0);
    default:
      return false;
  }
}

bool fold_unary(Op op, double a, double* out) {
  switch (op) {
    case Op::Neg:
      *out = -a;
      return true;
    case Op::Abs:
      *out = std::fabs(a);
      return true;
    case Op::Sqrt:
      *out = std::sqrt(a);
      return true;
    case Op::Square:
      *out = a * a;
      return true;
    case Op::Reciprocal:
      *out = 1 / a;
      return true;
    default:
      return false;
  }
}

Tensor constant(const Node& like, Scalar value) {
  return make_node(Op::Constant, like.dtype, like.shape, ConstantAttrs{value}, {});
}

Scalar constant_value(const Tensor& t) { return t.node()->attrs.as<ConstantAttrs>().value; }

bool is_constant(const Node* node) { return node->op == Op::Constant && !node->realised(); }

// A set of nodes of which no two are equal: an open hash table, allocated once at its final size.
class DistinctNodes {
 public:
  explicit DistinctNodes(std::size_t most) : slots_(std::bit_ceil(2 * most + 1)) {}

  /// The entry for a node equal to `node` with these inputs: the node found, or the empty entry
  /// where it belongs.
  Node*& find(const Node& node, std::span<Node* const> inputs) {
    const std::size_t hash = hash_of(node, inputs), mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].node != nullptr &&
           (slots_[at].hash != hash || !are_equal(node, inputs, *slots_[at].node)))
      at = (at + 1) & mask;
    slots_[at].hash = hash;
    return slots_[at].node;
  }

 private:
  static bool are_equal(const Node& a, std::span<Node* const> inputs, const Node& b) {
    return a.op == b.op && a.dtype == b.dtype && a.shape == b.shape && a.attrs == b.attrs &&
           std::equal(inputs.begin(), inputs.end(), b.in().begin(), b.in().end());
  }
  static std::size_t hash_of(const Node& n, std::span<Node* const> inputs) {
    std::uint64_t h = static_cast<std::uint64_t>(n.op) * 0x9E3779B97F4A7C15ull +
                      static_cast<std::uint64_t>(n.dtype);
    auto mix = [&h](std::uint64_t v) { h = (h ^ v) * 0xD6E8FEB86659FD93ull, h ^= h >> 32; };
    for (std::int64_t s : n.shape) mix(static_cast<std::uint64_t>(s));
    n.attrs.each_word(mix);
    for (const Node* in : inputs) mix(reinterpret_cast<std::uintptr_t>(in));
    return h;
  }

  struct Slot {
    std::size_t hash = 0;
    Node* node = nullptr;
  };
  std::vector<Slot> slots_;
};

}  // namespace

std::optional<Scalar> folded_value(const Node& node, std::span<const Scalar> inputs) {
  if (op_info(node.op).kind == OpKind::View) return inputs[0];
  const bool real = is_floating(node.dtype) && is_floating(node.input(0)->dtype);
  if (!real) return std::nullopt;
  const double a = inputs[0].real();
  if (node.op == Op::Cast) return round_to(node.dtype, a);
  double value = 0;
  const bool folded = inputs.size() == 1 ? fold_unary(node.op, a, &value)
                                         : fold_binary(node.op, a, inputs[1].real(), &value);
  // As in a region, a 16-bit number is kept in float32 until it is stored or cast.
  const DType kept = item_size(node.dtype) == 2 ? DType::Float32 : node.dtype;
  if (!folded) return std::nullopt;
  return round_to(kept, value);
}

Roots fold_constants(Roots roots, const PlanOptions&) {
  const auto fold = [](Node& node, std::span<const Tensor> inputs) -> Tensor {
    Scalar values[2];
    for (std::size_t k = 0; k < inputs.size(); ++k) values[k] = constant_value(inputs[k]);
    const std::optional<Scalar> value = folded_value(node, {values, inputs.size()});
    return value ? constant(node, *value) : Tensor{};
  };
  return rewrite(roots, fold, [](const Node&, std::span<Node* const> inputs) {
    return (inputs.size() == 1 || inputs.size() == 2) &&
           std::all_of(inputs.begin(), inputs.end(), is_constant);
  });
}

Roots share(Roots roots, const PlanOptions&) {
  DistinctNodes known(roots.order().nodes.size());
  GraphRewriter rewriter(roots);
  return rewriter.run(nullptr, [&](Node& node, std::span<Node* const> inputs) -> Tensor {
    // Never merge effects: each effect that was written must happen once.
    if (kind_of(node.op) == OpKind::Effect) return {};
    Node*& equal = known.find(node, inputs);
    if (equal != nullptr) return Tensor(equal);
    const bool kept = std::equal(inputs.begin(), inputs.end(), node.inputs());
    Tensor own = kept ? Tensor(&node) : rewriter.with_inputs(node, inputs);
    equal = own.node();
    return own;
  });
}

}  // namespace tenon
