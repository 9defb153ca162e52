// The clean-up passes. Each pass is a rule applied to every node, inputs before users; rewrite()
// walks the graph.
#include "plan/cleanup/graph_passes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

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

// Only ops whose double result, rounded once, equals the op's result in its dtype: correctly
// rounded ops.
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
      return !std::isnan(a) && !std::isnan(b) && (a != 0 || b != 0);  // zeros have signs
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

bool is_identity_view(const Node& node, const Node& in) {
  if (node.op == Op::StopGradient || node.op == Op::WithUpdates) return true;
  if (node.op == Op::Cast) return node.dtype == in.dtype;
  if (node.shape != in.shape) return false;
  if (node.op == Op::Reshape || node.op == Op::Expand) return true;
  if (node.op == Op::Permute) {
    const auto& axes = node.attrs.as<PermuteAttrs>().axes;
    for (int a = 0; a < node.shape.rank(); ++a)
      if (axes[a] != a) return false;
    return true;
  }
  if (node.op == Op::Slice) {
    const auto& slice = node.attrs.as<SliceAttrs>();
    for (int a = 0; a < node.shape.rank(); ++a)
      if (slice.start[a] != 0 || slice.step[a] != 1) return false;
    return true;
  }
  return false;
}

bool swaps_last_two(const Node& permute) {
  const int rank = permute.shape.rank();
  if (rank < 2) return false;
  const auto& axes = permute.attrs.as<PermuteAttrs>().axes;
  for (int a = 0; a < rank - 2; ++a)
    if (axes[a] != a) return false;
  return axes[rank - 2] == rank - 1 && axes[rank - 1] == rank - 2;
}

Tensor swap_last_two(const Tensor& x) {
  const int rank = x.rank();
  PermuteAttrs attrs;
  Shape shape = x.shape();
  for (int a = 0; a < rank; ++a) attrs.axes[a] = static_cast<std::uint8_t>(a);
  std::swap(attrs.axes[rank - 2], attrs.axes[rank - 1]);
  std::swap(shape[rank - 2], shape[rank - 1]);
  return make_node(Op::Permute, x.dtype(), shape, attrs, std::span(&x, 1));
}

Tensor view_as(const Tensor& x, const Shape& shape) {
  return make_node(Op::Reshape, x.dtype(), shape, {}, std::span(&x, 1));
}

// A convolution whose filter covers its whole input has one output pixel. It is the matrix product
// of flattened images and filters, and so are its gradients. `x` and `w` are the shapes of its
// input and weight.
bool covers_input(const ConvAttrs& a, const Shape& x, const Shape& w) {
  return a.groups == 1 && a.pad_h == 0 && a.pad_w == 0 && x[1] == w[1] && x[2] == w[2] &&
         x[3] == w[3] && (a.dil_h == 1 || w[2] == 1) && (a.dil_w == 1 || w[3] == 1);
}

Tensor product_of_convolution(const Node& node, std::span<const Tensor> inputs) {
  const bool forward = node.op == Op::Conv2d, input_grad = node.op == Op::Conv2dInputGrad;
  if (!forward && !input_grad && node.op != Op::Conv2dWeightGrad) return {};
  const Shape& x = input_grad ? node.shape : inputs[0].shape();
  const Shape& w = node.op == Op::Conv2dWeightGrad ? node.shape : inputs[1].shape();
  const auto& attrs = node.attrs.as<ContractionAttrs>();
  if (!covers_input(attrs.conv, x, w)) return {};
  const std::int64_t n = x[0], k = w[0], crs = w[1] * w[2] * w[3];
  Tensor a, b;
  Shape out;
  if (forward) {  // y [N, K] = x [N, CRS] w' [CRS, K]
    a = view_as(inputs[0], {n, crs});
    b = swap_last_two(view_as(inputs[1], {k, crs}));
    out = {n, k};
  } else if (input_grad) {  // dx [N, CRS] = dy [N, K] w [K, CRS]
    a = view_as(inputs[0], {n, k});
    b = view_as(inputs[1], {k, crs});
    out = {n, crs};
  } else {  // dw [K, CRS] = dy' [K, N] x [N, CRS]
    a = swap_last_two(view_as(inputs[1], {n, k}));
    b = view_as(inputs[0], {n, crs});
    out = {k, crs};
  }
  const Tensor operands[2] = {a, b};
  const ContractionAttrs product{{}, attrs.precision};
  return view_as(make_node(Op::Matmul, node.dtype, out, product, operands), node.shape);
}

// A permutation of `x`, or of the tensor that `x` permutes; undefined if the two permutations
// cancel.
Tensor permuted(const Node& node, const Tensor& x) {
  const Node& in = *x.node();
  if (in.op != Op::Permute || in.realised()) return {};
  Tensor base(in.input(0));
  const auto &outer = node.attrs.as<PermuteAttrs>(), &inner = in.attrs.as<PermuteAttrs>();
  PermuteAttrs attrs;
  bool identity = true;
  for (int a = 0; a < node.shape.rank(); ++a) {
    attrs.axes[a] = inner.axes[outer.axes[a]];
    identity &= attrs.axes[a] == a;
  }
  if (identity) return base;
  return make_node(Op::Permute, node.dtype, node.shape, attrs, std::span(&base, 1));
}

// (A B)ᵀ = Bᵀ Aᵀ. Operands may have any strides, results are written row by row, so transposes of
// products move to the products' operands, down to the leaves. Each product is transposed once,
// however often it is used. The walk is not recursive: in a chain of linear layers every weight
// gradient asks for the transpose of all products behind the layer.
class Transposes {
 public:
  static bool is_product(const Node& node) { return node.op == Op::Matmul && !node.realised(); }

  Tensor of(const Tensor& x) {
    std::vector<Node*> open{x.node()};
    while (!open.empty()) {
      Node* const node = open.back();
      if (const std::size_t before = open.size(); is_product(*node) && !is_made(node)) {
        for (Node* in : {node->input(0), node->input(1)})
          if (!is_made(in)) open.push_back(in);
        if (open.size() > before) continue;
      }
      open.pop_back();
      if (!is_made(node)) made_.emplace(node, transpose(Tensor(node)));
    }
    return made_.at(x.node());
  }

 private:
  bool is_made(const Node* node) const { return made_.find(node) != made_.end(); }

  Tensor transpose(const Tensor& x) const {
    const Node& node = *x.node();
    if (is_product(node)) {
      const Tensor operands[2] = {made_.at(node.input(1)), made_.at(node.input(0))};
      Shape shape = node.shape;
      std::swap(shape[shape.rank() - 2], shape[shape.rank() - 1]);
      const LabelGuard label(node.label);
      return make_node(Op::Matmul, node.dtype, shape, node.attrs, operands);
    }
    Tensor swapped = swap_last_two(x);
    Tensor merged = permuted(*swapped.node(), x);
    return merged.defined() ? merged : swapped;
  }

  std::unordered_map<const Node*, Tensor> made_;  // by the node that they are the transpose of
};

Tensor drop_noop(Node& node, std::span<const Tensor> inputs, Transposes& transposes) {
  if (inputs.empty()) return {};
  if (Tensor product = product_of_convolution(node, inputs); product.defined()) return product;
  const Tensor& x = inputs[0];
  const Node& in = *x.node();
  if (is_identity_view(node, in)) return x;
  if (node.op == Op::Reshape && in.op == Op::Reshape && !in.realised()) {
    Tensor base(in.input(0));
    if (base.shape() == node.shape) return base;
    return make_node(Op::Reshape, node.dtype, node.shape, {}, std::span(&base, 1));
  }
  if (node.op != Op::Permute) return {};
  if (Transposes::is_product(in) && swaps_last_two(node)) return transposes.of(x);
  return permuted(node, x);
}

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
  // As in a region: 16-bit numbers are float32 until they are stored or cast.
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

Roots drop_noops(Roots roots, const PlanOptions&) {
  Transposes transposes;
  const auto drop = [&transposes](Node& node, std::span<const Tensor> inputs) {
    return drop_noop(node, inputs, transposes);
  };
  const auto may_be_noop = [](const Node& node) {
    const OpKind kind = kind_of(node.op);
    return kind == OpKind::View || kind == OpKind::Contraction || node.op == Op::Cast ||
           node.op == Op::StopGradient || node.op == Op::WithUpdates;
  };
  return rewrite_where(roots, may_be_noop, drop);
}

Roots share(Roots roots, const PlanOptions&) {
  DistinctNodes known(roots.order().nodes.size());
  GraphRewriter rewriter(roots);
  return rewriter.run([&](Node& node, std::span<Node* const> inputs) -> Tensor {
    // Effects are never shared: an effect happens as often as it is written.
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
