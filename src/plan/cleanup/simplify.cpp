// Rules about views, products and convolutions: each replaces one node, given its rewritten inputs.
#include "plan/cleanup/simplify.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/node.h"
#include "ops/table.h"

namespace tenon {
namespace {

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

bool is_convolution_over_whole_input(const Node& node, std::span<Node* const> inputs) {
  const bool by_input = node.op == Op::Conv2dInputGrad, by_weight = node.op == Op::Conv2dWeightGrad;
  if (node.op != Op::Conv2d && !by_input && !by_weight) return false;
  return covers_input(node.attrs.as<ContractionAttrs>().conv,
                      by_input ? node.shape : inputs[0]->shape,
                      by_weight ? node.shape : inputs[1]->shape);
}

Tensor product_of_convolution(const Node& node, std::span<const Tensor> inputs) {
  const bool forward = node.op == Op::Conv2d, input_grad = node.op == Op::Conv2dInputGrad;
  const Shape& x = input_grad ? node.shape : inputs[0].shape();
  const Shape& w = node.op == Op::Conv2dWeightGrad ? node.shape : inputs[1].shape();
  const auto& attrs = node.attrs.as<ContractionAttrs>();
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

// The input gradient of a convolution whose windows are side by side and cover the input: each
// pixel gets its gradient from one window, so that it is a product over the filters for all
// windows, whose elements are then put in their places. `w` is the shape of the weight.
bool is_gradient_of_tiles(const Node& node, std::span<Node* const> inputs) {
  if (node.op != Op::Conv2dInputGrad) return false;
  const ConvAttrs& a = node.attrs.as<ContractionAttrs>().conv;
  const Shape &dy = inputs[0]->shape, &w = inputs[1]->shape, &x = node.shape;
  const auto tiles = [](std::int64_t size, std::int64_t windows, std::int64_t window,
                        std::int64_t stride, std::int64_t pad, std::int64_t dilation) {
    return window > 1 && stride == window && dilation == 1 && pad == 0 && size == windows * window;
  };
  return a.groups == 1 && x.numel() > 0 && dy.numel() > 0 &&
         tiles(x[2], dy[2], w[2], a.stride_h, a.pad_h, a.dil_h) &&
         tiles(x[3], dy[3], w[3], a.stride_w, a.pad_w, a.dil_w);
}

// dx [N, C, P, R, Q, S] = w' [CRS, K] dy [N, K, PQ], permuted.
Tensor product_of_tiles(const Node& node, std::span<const Tensor> inputs) {
  const Shape &dy = inputs[0].shape(), &w = inputs[1].shape();
  const std::int64_t n = dy[0], k = dy[1], pixels = dy[2] * dy[3], crs = w[1] * w[2] * w[3];
  const Tensor filters = swap_last_two(view_as(inputs[1], {1, k, crs}));
  const Tensor each =
      make_node(Op::Expand, filters.dtype(), {n, crs, k}, {}, std::span(&filters, 1));
  const Tensor operands[2] = {each, view_as(inputs[0], {n, k, pixels})};
  const ContractionAttrs attrs{{}, node.attrs.as<ContractionAttrs>().precision};
  const Tensor product =
      view_as(make_node(Op::Matmul, node.dtype, {n, crs, pixels}, attrs, operands),
              {n, w[1], w[2], w[3], dy[2], dy[3]});
  const PermuteAttrs axes{{0, 1, 4, 2, 5, 3}};
  const Shape placed{n, w[1], dy[2], w[2], dy[3], w[3]};
  return view_as(make_node(Op::Permute, node.dtype, placed, axes, std::span(&product, 1)),
                 node.shape);
}

// A permutation of a permutation as one permutation of the tensor below; that tensor itself if the
// two cancel.
Tensor merged_permutes(const Node& node, const Node& in) {
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

// (A B)ᵀ = Bᵀ Aᵀ. Transposes of products move to the products' operands, down to the leaves,
// because operands may have any strides, but results are written row by row. Each product is
// transposed once, however often it is used. The walk is not recursive: in a chain of linear layers
// every weight gradient needs the transpose of all products behind the layer.
class Transposes {
 public:
  static bool is_product(const Node& node) { return is_pending(node, Op::Matmul); }

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
    const Tensor swapped = swap_last_two(x);
    return is_pending(node, Op::Permute) ? merged_permutes(*swapped.node(), node) : swapped;
  }

  std::unordered_map<const Node*, Tensor> made_;  // by the node whose transpose it is
};

bool has_no_effect(const Node& node, std::span<Node* const> inputs) {
  return !inputs.empty() && is_identity_view(node, *inputs[0]);
}

bool is_view_of_view(const Node& node, std::span<Node* const> inputs) {
  return (node.op == Op::Reshape || node.op == Op::Permute) && is_pending(*inputs[0], node.op);
}

Tensor merged_views(const Node& node, const Node& in) {
  if (node.op == Op::Permute) return merged_permutes(node, in);
  const Tensor base(in.input(0));
  return base.shape() == node.shape ? base : view_as(base, node.shape);
}

bool is_transposed_product(const Node& node, std::span<Node* const> inputs) {
  return node.op == Op::Permute && Transposes::is_product(*inputs[0]) && swaps_last_two(node);
}

bool may_match(const Node& node) {
  const OpKind kind = kind_of(node.op);
  return kind == OpKind::View || kind == OpKind::Contraction || node.op == Op::Cast ||
         node.op == Op::StopGradient || node.op == Op::WithUpdates;
}

}  // namespace

Roots simplify(Roots roots, const PlanOptions& options, const RuleLog& log) {
  Transposes transposes;
  const NodeRule rules[] = {
      {kConvolutionsToProducts, is_convolution_over_whole_input, product_of_convolution},
      {kDropNoops, has_no_effect, [](Node&, std::span<const Tensor> in) { return in[0]; }},
      {kMergeViews, is_view_of_view,
       [](Node& node, std::span<const Tensor> in) { return merged_views(node, *in[0].node()); }},
      {kMoveTransposes, is_transposed_product,
       [&transposes](Node&, std::span<const Tensor> in) { return transposes.of(in[0]); }},
      {kConvolutionsToProducts, is_gradient_of_tiles, product_of_tiles}};
  // GPUs have kernels for convolutions with strides, or rewrite them (strided.cpp).
  const std::span all(rules);
  const auto known = options.traits.launches_kernels ? all.first(all.size() - 1) : all;
  return apply_rules(roots, options, may_match, known, log);
}

}  // namespace tenon
