// Finds the expressions that changing numbers are part of, and computes them on the host.
#include "run/tuning/changing_numbers.h"

#include <algorithm>
#include <utility>

#include "base/index.h"
#include "graph/order.h"
#include "graph/tracing/body.h"
#include "plan/cleanup/graph_passes.h"
#include "run/number_buffer.h"

namespace tenon {
namespace {

constexpr char kMostChanges = 2, kBuiltIn = kMostChanges + 1;

bool can_be_leaf(const Node& node) {
  return !is_bool(node.dtype) && node.dtype != DType::Float16 && node.dtype != DType::BFloat16 &&
         node.shape.numel() > 0;
}

Scalar number_in(const Node& node) { return node.attrs.as<ConstantAttrs>().value; }

Tensor number_leaf(Scalar value, DType dtype, Device device) {
  Tensor leaf = make_data(number_buffer(value, dtype, device), {}, dtype);
  leaf.node()->is_number = true;
  return leaf;
}

// The leaf in the shape of the node that it replaces.
Tensor in_shape_of(const Node& node, Tensor leaf) {
  const Shape& shape = node.shape;
  if (shape.rank() == 0) return leaf;
  Shape of_ones;
  for (int a = 0; a < shape.rank(); ++a) of_ones.push_back(1);
  leaf = make_node(Op::Reshape, node.dtype, of_ones, {}, std::span(&leaf, 1));
  return shape.numel() == 1 ? leaf
                            : make_node(Op::Expand, node.dtype, shape, {}, std::span(&leaf, 1));
}

constexpr std::size_t kAligned = 64;  // bytes of alignment that engines may rely on for leaves

// The value of a slice of rows.
Tensor slice_leaf(const Node& slice, Device device) {
  const Node& rows = *slice.input(0);
  const auto bytes = static_cast<std::size_t>(slice.shape.numel()) * item_size(slice.dtype);
  const auto first = static_cast<std::size_t>(slice.attrs.as<SliceAttrs>().start[0]);
  const std::size_t row = bytes / static_cast<std::size_t>(slice.shape[0]);
  std::shared_ptr<Buffer> value = Buffer::window(rows.value, first * row, bytes);
  if (first * row % kAligned != 0) {
    std::shared_ptr<Buffer> copy = Buffer::allocate(bytes, device);
    copy->copy_from(*value, bytes);
    value = std::move(copy);
  }
  return make_data(std::move(value), slice.shape, slice.dtype);
}

// The number of summands if the node divides a sum by its second input.
std::int64_t summands_divided(const Node& node) {
  if (node.op != Op::Div || node.input(0)->op != Op::Sum || node.input(0)->realised()) return 0;
  return node.input(0)->input(0)->shape.numel() / std::max<std::int64_t>(1, node.shape.numel());
}

}  // namespace

bool is_slice_of_rows(const Node& node) noexcept {
  if (node.op != Op::Slice || node.realised()) return false;
  const Node& rows = *node.input(0);
  if (!rows.realised() || rows.op == Op::Variable || node.shape.numel() == 0) return false;
  if (rows.value->bytes() == 0) return false;  // an input of a function that is being compiled
  const auto& slice = *node.attrs.get_if<SliceAttrs>();
  if (node.shape.rank() == 0 || slice.step[0] != 1) return false;
  for (int a = 1; a < node.shape.rank(); ++a)
    if (slice.start[a] != 0 || slice.step[a] != 1 || node.shape[a] != rows.shape[a]) return false;
  return true;
}

std::optional<std::vector<char>> NumberHistory::note(std::span<const std::uint64_t> numbers) {
  if (last_.empty()) {
    // If an allocation fails, `last_` is still empty.
    changes_.assign(numbers.size(), 0);
    leaves_.assign(numbers.size(), 0);
    last_.assign(numbers.begin(), numbers.end());
    return std::nullopt;
  }
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (changes_[k] >= kMostChanges || numbers[k] == last_[k]) continue;
    last_[k] = numbers[k];
    leaves_[k] = ++changes_[k] == kMostChanges ? 1 : 0;
  }
  if (std::find(leaves_.begin(), leaves_.end(), 1) == leaves_.end()) return std::nullopt;
  return leaves_;
}

void NumberHistory::build_in(std::span<const std::uint32_t> numbers) noexcept {
  for (const std::uint32_t number : numbers) {
    leaves_[number] = 0;
    changes_[number] = kBuiltIn;
  }
}

std::int64_t NumberHistory::bytes() const noexcept {
  return static_cast<std::int64_t>(sizeof *this + last_.capacity() * sizeof(std::uint64_t) +
                                   changes_.capacity() + leaves_.capacity());
}

// Puts leaves in place of changing expressions and slices, and records what the leaves hold.
class ChangingNumbers::Maker {
 public:
  Maker(const NumberedOrder& order, Device device)
      : order_(order), device_(device), step_of_(order.nodes.size(), -1) {}

  /// Finds the steps of constants and of values folded from them, and the slices.
  void find_steps(std::span<const char> leaves) {
    std::size_t number = 0;
    for (std::size_t n = 0; n < order_.nodes.size(); ++n) {
      const Node& node = *order_.nodes[n];
      if (node.realised()) continue;
      if (is_slice_of_rows(node)) {
        if (leaves[number++] != 0) add_slice(node, static_cast<std::uint32_t>(n));
      } else if (node.op == Op::Constant) {
        add_constant(node, static_cast<std::uint32_t>(n), leaves[number] != 0, number);
        ++number;
      } else if (node.input_count == 1 || node.input_count == 2) {
        add_folded(node, static_cast<std::uint32_t>(n));
      }
    }
  }

  /// A changing expression becomes a leaf if a node other than a constant reads it.
  void find_leaves(std::span<const Tensor> roots, std::vector<std::uint32_t>& unfit) {
    for (std::size_t n = 0; n < order_.nodes.size(); ++n) {
      const Node& node = *order_.nodes[n];
      if (node.realised() || step_of_[n] >= 0) continue;
      for (int k = 0; k < node.input_count; ++k)
        add_leaf(*node.input(k), k == 1 ? summands_divided(node) : 0, unfit);
    }
    for (const Tensor& root : roots) add_leaf(*root.node(), 0, unfit);
  }

  void build(std::span<const Tensor> roots, Graph& graph) {
    graph.roots = substitute(roots, instead_);
    for (Tensor& root : graph.roots)  // a leaf is copied by the program
      if (root.node()->realised())
        root = make_node(Op::Cast, root.dtype(), root.shape(), {}, std::span(&root, 1));
    graph.order = numbered_order(graph.roots);
    NodeIndex source;  // leaves of the original graph, then the new ones
    std::uint32_t own = 0;
    for (Node* node : order_.nodes)
      if (node->realised()) source.insert(node, own++);
    made_.insert(made_.end(), slices_.begin(), slices_.end());
    for (std::size_t k = 0; k < made_.size(); ++k)
      source.insert(made_[k].node(), own + static_cast<std::uint32_t>(k));
    for (Node* node : graph.order.nodes) {
      if (!node->realised()) continue;
      graph.leaves.push_back(node);
      const std::uint32_t place = source[node];
      out_->source_.push_back(place < own ? static_cast<std::int32_t>(place)
                                          : ~static_cast<std::int32_t>(place - own));
    }
  }

  std::shared_ptr<const ChangingNumbers> take() { return std::move(out_); }

 private:
  void add_slice(const Node& node, std::uint32_t n) {
    out_->slices_.push_back(n);
    slices_.push_back(slice_leaf(node, device_));
    instead_.emplace(&node, slices_.back());
  }

  void add_constant(const Node& node, std::uint32_t n, bool is_changing, std::size_t number) {
    Step step{n};
    if (is_changing) step.number = static_cast<std::int32_t>(number);
    if (const std::optional<Scalar> value = number_in(node)) add_step(step, *value, is_changing);
  }

  void add_folded(const Node& node, std::uint32_t n) {
    Step step{n};
    Scalar in[2];
    bool is_changing = false;
    for (int k = 0; k < node.input_count; ++k) {
      step.in[k] = step_of_[order_.index[node.input(k)]];
      if (step.in[k] < 0) return;
      in[k] = value_[at(step.in[k])];
      is_changing |= changes_[at(step.in[k])] != 0;
    }
    if (const std::optional<Scalar> value = folded_value(node, {in, node.input_count}))
      add_step(step, *value, is_changing);
  }

  void add_step(const Step& step, const Scalar& value, bool is_changing) {
    step_of_[step.node] = static_cast<std::int32_t>(out_->steps_.size());
    out_->steps_.push_back(step);
    value_.push_back(value);
    changes_.push_back(is_changing ? 1 : 0);
  }

  void add_leaf(const Node& node, std::int64_t summands, std::vector<std::uint32_t>& unfit) {
    const std::int32_t step = step_of_[order_.index[&node]];
    if (step < 0 || changes_[at(step)] == 0) return;
    if (!can_be_leaf(node)) {
      out_->add_numbers(step, unfit);
      return;
    }
    if (leaf_of_.insert(&node, static_cast<std::uint32_t>(out_->leaves_.size()))) {
      out_->leaves_.push_back({step, 0});
      made_.push_back(number_leaf(value_[at(step)], node.dtype, device_));
      instead_.emplace(&node, in_shape_of(node, made_.back()));
    }
    if (summands != 0) out_->leaves_[leaf_of_[&node]].summands = summands;
  }

  const NumberedOrder& order_;
  const Device device_;
  std::shared_ptr<ChangingNumbers> out_ = std::make_shared<ChangingNumbers>();
  std::vector<std::int32_t> step_of_;  // by node; -1: none
  std::vector<Scalar> value_;          // by step
  std::vector<char> changes_;          // by step
  Substitution instead_;
  std::vector<Tensor> made_, slices_;
  NodeIndex leaf_of_;
};

std::shared_ptr<const ChangingNumbers> ChangingNumbers::make(const NumberedOrder& order,
                                                             std::span<const Tensor> roots,
                                                             std::span<const char> leaves,
                                                             Device device, Graph& graph,
                                                             std::vector<std::uint32_t>& unfit) {
  Maker maker(order, device);
  maker.find_steps(leaves);
  maker.find_leaves(roots, unfit);
  if (!unfit.empty()) return nullptr;
  maker.build(roots, graph);
  return maker.take();
}

void ChangingNumbers::add_numbers(std::int32_t step, std::vector<std::uint32_t>& numbers) const {
  std::vector<std::int32_t> waiting{step};
  std::vector<char> seen(steps_.size(), 0);
  while (!waiting.empty()) {
    const std::int32_t next = waiting.back();
    waiting.pop_back();
    if (next < 0 || std::exchange(seen[at(next)], 1) != 0) continue;
    const Step& s = steps_[at(next)];
    if (s.number >= 0) numbers.push_back(static_cast<std::uint32_t>(s.number));
    waiting.insert(waiting.end(), {s.in[0], s.in[1]});
  }
}

std::vector<Tensor> ChangingNumbers::values(const NumberedOrder& order, Device device,
                                            std::vector<std::uint32_t>& unfit) const {
  std::vector<Scalar> value;
  value.reserve(steps_.size());
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    const Node& node = *order.nodes[step.node];
    if (node.op == Op::Constant) {
      value.push_back(number_in(node));
      continue;
    }
    Scalar in[2];
    for (int i = 0; i < node.input_count; ++i) in[i] = value[at(step.in[i])];
    const std::optional<Scalar> folded = folded_value(node, {in, node.input_count});
    if (!folded) {
      add_numbers(static_cast<std::int32_t>(k), unfit);
      return {};
    }
    value.push_back(*folded);
  }
  for (const Leaf& leaf : leaves_) {
    const Scalar now = value[at(leaf.step)];
    const bool divides = leaf.summands != 0 && now.real() == static_cast<double>(leaf.summands);
    if (now.is_zero() || divides) add_numbers(leaf.step, unfit);
  }
  if (!unfit.empty()) return {};
  std::vector<Tensor> out;
  out.reserve(leaves_.size() + slices_.size());
  for (const Leaf& leaf : leaves_) {
    const Node& node = *order.nodes[steps_[at(leaf.step)].node];
    out.push_back(number_leaf(value[at(leaf.step)], node.dtype, device));
  }
  for (const std::uint32_t slice : slices_) out.push_back(slice_leaf(*order.nodes[slice], device));
  return out;
}

std::vector<Node*> ChangingNumbers::leaves(std::span<Node* const> own,
                                           std::span<const Tensor> values) const {
  std::vector<Node*> out;
  out.reserve(source_.size());
  for (const std::int32_t source : source_)
    out.push_back(source >= 0 ? own[at(source)] : values[at(~source)].node());
  return out;
}

}  // namespace tenon
