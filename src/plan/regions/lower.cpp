// Lowers graph nodes to items: folds views into strides, inserts copies and casts where engines
// need them, and orders assignments behind the readers of their variables. Items are described in
// lower.h; images in NHWC are lowered by lower_images.h.
#include "plan/regions/lower.h"

#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "ops/table.h"
#include "plan/layout/layout.h"
#include "plan/program/pass_tally.h"
#include "plan/regions/deviations.h"
#include "plan/regions/lower_images.h"
#include "plan/regions/lowered_nodes.h"
#include "plan/regions/row_updates.h"

namespace tenon {

namespace {

bool is_cast_up(const Node& node) {
  return node.op == Op::Cast && node.dtype == DType::Float32 && node.shape.rank() == 4 &&
         item_size(node.input(0)->dtype) == 2 && is_floating(node.input(0)->dtype);
}

/// Whether an index is constant along every axis but its own.
bool is_vector(const Ref& index, int axis) {
  for (int d = 0; d < index.shape.rank(); ++d)
    if (d != axis && index.shape[d] != 1 && index.stride[d] != 0) return false;
  return true;
}

class Lowering {
 public:
  Lowering(const NumberedOrder& order, std::span<Node* const> leaves, const PlanOptions& options,
           PassTally& tally)
      : order_(order),
        options_(options),
        tally_(tally),
        nodes_(order),
        sums_(order),
        images_(nodes_, options, tally),
        row_updates_(order),
        recomputes_(options.traits.recompute.is_cheap && options.enabled(kFuse) &&
                    options.enabled(kRecompute) && options.enabled(kRecomputeCentered)),
        stores_16_bit_(stores_activations_in_16_bits(order.nodes, options)),
        skips_casts_(stores_16_bit_ && options.enabled(kSkipCasts)),
        rounds_filters_(stores_16_bit_ && options.traits.stores_16_bits &&
                        options.enabled(kLowerFilterPrecision)) {
    for (std::size_t k = 0; k < leaves.size(); ++k) slots_.emplace(leaves[k], static_cast<int>(k));
  }

  Lowered run(std::span<const Tensor> roots) {
    Lowered out;
    out.stores_rounded = options_.channels_last || stores_16_bit_;
    if (options_.traits.recompute.is_cheap && options_.enabled(kFuse) &&
        options_.enabled(kSumDeviations)) {
      tally_.timed(
          kSumDeviations, [&] { sums_.find(roots); }, 0);
      tally_.count(kSumDeviations, sums_.count());
    }
    images_.look_ahead(order_.nodes, sums_);
    if (options_.enabled(kUpdateRows))
      tally_.timed(
          kUpdateRows, [&] { row_updates_.find(roots); }, 0);
    for (Node* node : order_.nodes)
      if (sums_.is_needed(*node)) add(*node);
    for (const Tensor& root : roots) out.outputs.push_back(output(*root.node()));
    order_assignments();
    for (int k = 0; k < nodes_.size(); ++k) {
      for (const Ref& arg : nodes_[k].args) user(arg.item, k);
      for (int before : nodes_[k].after) user(before, k);
    }
    out.items = nodes_.take();
    return out;
  }

 private:
  void user(int item, int by) {
    auto& users = nodes_[item].users;
    if (users.empty() || users[users.size() - 1] != by) users.push_back(by);
  }

  void add(Node& node) {
    const OpKind kind = op_info(node.op).kind;
    if (node.realised()) return add_leaf(node);
    if (kind == OpKind::View || node.op == Op::StopGradient || node.op == Op::WithUpdates)
      return add_view(node);
    if (kind == OpKind::Transfer)
      throw NotSupported(cat(where(op_info(node.op).name),
                             ": the body of a loop or branch runs on one device: move tensors "
                             "between devices outside of it"));
    if (images_.is_convolution(node)) return images_.add_convolution(node);
    std::vector<Ref> args = args_of(node);
    if (images_.is_rounded_filter(node)) return nodes_.recompute(&node, std::move(args));
    if (skips_casts_ && is_cast_up(node)) return nodes_.delay_cast(&node, args[0]);
    if (images_.is_pooling(node, args))
      return tally_.timed(kPoolingNhwc, [&] { images_.add_pooling(node, std::move(args)); });
    if (images_.is_product(node))
      return tally_.timed(kMultiplyPixels, [&] { images_.add_product(node, args); });
    const bool permuted = images_.is_elementwise(node, args);
    if (permuted) images_.permute(args, node.label);
    fit(node, args);
    if (node.op == Op::Assign) return add_assign(node, args);
    if (!permuted && is_recomputed(node, args))
      return tally_.timed(kRecomputeCentered, [&] { nodes_.recompute(&node, std::move(args)); });
    if (node.op == Op::Result) {
      // Each result of an op is one item, because an engine writes it once. Equal nodes may not
      // have been merged.
      const std::pair of{args[0].item, node.attrs.as<ResultAttrs>().index};
      const auto [known, is_first] = results_.emplace(of, nodes_.size());
      if (!is_first) {
        nodes_.place(&node) = nodes_.whole(known->second);
        return;
      }
    }
    add_item(node, std::move(args), permuted);
  }

  void add_leaf(const Node& node) {
    const int item = nodes_.push(node.op == Op::Variable ? Op::Variable : Op::Data, node);
    const auto slot = slots_.find(&node);
    if (slot == slots_.end()) throw InternalError("a leaf of the graph has no slot");
    nodes_[item].slot = slot->second;
    nodes_[item].kind = OpKind::Leaf;
    nodes_.place(&node) = nodes_.whole(item);
  }

  /// Adds a node that reads its input with the same or other strides.
  void add_view(const Node& node) {
    const Ref input = nodes_.ref_of(node.input(0));
    Ref& place = nodes_.place(&node);
    place = op_info(node.op).kind == OpKind::View ? view(node, input) : input;
    images_.note_permuted(node, place);
  }

  Ref view(const Node& node, const Ref& in) {
    Ref out = in;
    out.shape = node.shape;
    switch (node.op) {
      case Op::Permute:
        for (int a = 0; a < node.shape.rank(); ++a)
          out.stride[a] = in.stride[node.attrs.as<PermuteAttrs>().axes[a]];
        break;
      case Op::Expand:
        for (int a = 0; a < node.shape.rank(); ++a)
          out.stride[a] = in.shape[a] == node.shape[a] ? in.stride[a] : 0;
        break;
      case Op::Slice:
        for (int a = 0; a < node.shape.rank(); ++a) {
          const auto& slice = node.attrs.as<SliceAttrs>();
          out.offset += slice.start[a] * in.stride[a];
          out.stride[a] = in.stride[a] * slice.step[a];
        }
        break;
      case Op::Reshape:
        if (!reshape_strides(in.shape, in.stride, node.shape, out.stride))
          out = nodes_.whole(nodes_.copy(in, node.label), node.shape);
        break;
      default:
        throw InternalError(
            cat("view ", op_info(node.op).name, " is not known to the layout pass"));
    }
    return options_.enabled(kLayout) ? out : nodes_.whole(nodes_.copy(out, node.label));
  }

  /// How a node reads its inputs, as the graph defines it.
  std::vector<Ref> args_of(const Node& node) {
    if (const Node* x = sums_.deviations_of(node); x != nullptr) return {nodes_.ref_of(x)};
    std::vector<Ref> args;
    args.reserve(node.input_count);
    const bool is_contraction = op_info(node.op).kind == OpKind::Contraction;
    for (Node* in : node.in())
      args.push_back(is_contraction ? operand(node, in) : nodes_.ref_of(in));
    return args;
  }

  // If an operand was cast from 16 bits to float32 and the convolution multiplies in 16 bits, reads
  // the operand before the cast.
  Ref operand(const Node& product, const Node* in) {
    const Ref* input = nodes_.input_of_cast(in);
    if (input == nullptr || lower_type(product) != in->input(0)->dtype) return nodes_.ref_of(in);
    return tally_.timed(kSkipCasts, [&] { return *input; });
  }

  /// Replaces arguments that the op's kernels cannot read with their strides by copies.
  void fit(const Node& node, std::vector<Ref>& args) {
    const OpKind kind = op_info(node.op).kind;
    const bool needs_whole = has_trait(node.op, kReadsWhole);
    if (has_trait(node.op, kIndexed) && options_.enabled(kShortenIndices))
      shorten_index(node, args[1]);
    if (kind == OpKind::Attention) fit_attention(node, args);
    if ((node.op == Op::ScatterAdd || node.op == Op::Scatter) &&
        options_.enabled(kShrinkScatterBases))
      shrink_base(args[0]);
    for (Ref& arg : args) {
      if (node.op == Op::Concat && reads_runs(arg, node)) continue;
      const bool strided = kind == OpKind::Contraction || kind == OpKind::Attention;
      if (needs_whole || (strided && !nodes_.has_memory(arg)))
        arg = nodes_.contiguous(arg, node.label);
    }
    if (rounds_filters_ && kind == OpKind::Contraction && args[1].shape.rank() == 4)
      args[1] = lower_filter_precision(node, args[1]);
  }

  // Whether a concatenation reads a part of a value where it is: contiguous runs at one distance.
  // On GPUs the copy is a map that other launches take in. A value that a map computes is left to
  // the copy, because the map may then compute the part alone.
  bool reads_runs(const Ref& arg, const Node& concat) const {
    const OpKind kind = nodes_[arg.item].kind;
    const bool mapped = kind == OpKind::Elementwise || kind == OpKind::Reduction ||
                        kind == OpKind::ArgReduction || kind == OpKind::View;
    if (!options_.traits.runs_in_order || mapped || !nodes_.has_memory(arg)) return false;
    const int axis = static_cast<int>(concat.attrs.as<AxisAttrs>().axis);
    std::int64_t step = 1, pitch = 0, rows = 1;
    for (int d = arg.shape.rank() - 1; d >= 0; --d) {
      if (arg.shape[d] == 1) continue;
      if (d >= axis) {
        if (arg.stride[d] != step) return false;
        step *= arg.shape[d];
        continue;
      }
      if (rows == 1) pitch = arg.stride[d];
      if (arg.stride[d] != pitch * rows) return false;
      rows *= arg.shape[d];
    }
    return true;
  }

  // An index that is constant along every axis but its own is read as a vector. Gathering rows of a
  // data set then needs one index a row, not one for each element.
  void shorten_index(const Node& node, Ref& index) {
    const int axis = static_cast<int>(node.attrs.as<AxisAttrs>().axis);
    if (!is_vector(index, axis)) return;
    tally_.timed(kShortenIndices, [&] {
      index.stride[0] = index.stride[axis];
      index.shape = {index.shape[axis]};
    });
  }

  // If the base is one number everywhere (the zeros of a gradient), reads that number instead.
  void shrink_base(Ref& base) {
    const bool is_number = nodes_[base.item].op == Op::Constant;
    for (int d = 0; d < base.shape.rank(); ++d)
      if (base.shape[d] == 0 || (base.shape[d] != 1 && base.stride[d] != 0 && !is_number)) return;
    tally_.timed(kShrinkScatterBases, [&] { base.shape = Shape{}; });
  }

  // Attention reads its logsumexp as stored, and a mask with the strides it has.
  void fit_attention(const Node& node, std::vector<Ref>& args) {
    const bool is_grad = node.op == Op::AttentionGrad;
    if (is_grad) args[4] = nodes_.contiguous(args[4], node.label);
    const std::size_t operands = is_grad ? 6 : 3;
    for (std::size_t k = 0; k < operands; ++k)
      if (k != 4 && !begins_on_step(args[k]))
        args[k] = nodes_.whole(nodes_.copy(args[k], node.label));
  }

  // Whether every row starts at a multiple of the vector step.
  bool begins_on_step(const Ref& ref) const {
    const std::int64_t step = options_.traits.attention.size_step;
    if (step == 1) return true;
    const int last = ref.shape.rank() - 1;
    bool fits = ref.stride[last] == 1 && ref.offset % step == 0;
    for (int d = 0; d < last; ++d) fits = fits && (ref.shape[d] == 1 || ref.stride[d] % step == 0);
    return fits;
  }

  // Filters of a convolution over 16-bit activations that multiplies in 16 bits. They are rounded
  // once for all thread blocks, with the reduced axis innermost.
  Ref lower_filter_precision(const Node& product, const Ref& filters) {
    constexpr std::int64_t kSummedAtOnce = 8;
    const bool of_input = product.op == Op::Conv2dInputGrad;
    const DType low_dtype = lower_type(product);
    const Item& base = nodes_[filters.item];
    const bool rounds = low_dtype != DType::Float32 && base.dtype == DType::Float32 &&
                        base.kind == OpKind::Leaf && is_linear(filters, base.shape);
    if (!rounds || filters.shape[of_input ? 0 : 1] % kSummedAtOnce != 0 ||
        (product.op != Op::Conv2d && !of_input))
      return filters;
    const auto [known, is_first] =
        low_filters_.try_emplace({filters.item, low_dtype, of_input}, nodes_.size());
    if (is_first)
      tally_.timed(kLowerFilterPrecision, [&] {
        nodes_.add_cast(channels_last(of_input ? transposed(filters) : filters), low_dtype,
                        product.label);
      });
    const Ref laid = channels_first(nodes_.whole(known->second));
    return of_input ? transposed(laid) : laid;
  }

  // Whether a normalisation's centred value (x minus the mean of its channel) is recomputed by its
  // readers. They read x and the mean instead, which costs no more bytes, and the centred value is
  // never written.
  bool is_recomputed(const Node& node, const std::vector<Ref>& args) const {
    if (!recomputes_ || node.op != Op::Sub || node.shape.rank() != 4) return false;
    const Ref &x = args[0], &mean = args[1];
    const Item& product = nodes_[x.item];
    const bool stored = product.kind == OpKind::Contraction && is_linear(x, product.shape);
    const Shape& s = node.shape;
    return stored && s[1] > 1 && mean.stride[1] != 0 && (s[0] == 1 || mean.stride[0] == 0) &&
           (s[2] == 1 || mean.stride[2] == 0) && (s[3] == 1 || mean.stride[3] == 0);
  }

  /// Adds a node that computes something. `permuted`: it iterates over [N, H, W, C].
  void add_item(const Node& node, std::vector<Ref> args, bool permuted) {
    const int number = nodes_.push(node.op, node);
    Item& item = nodes_[number];
    item.args = std::move(args);
    item.deviations = sums_.deviations_of(node) != nullptr;
    if (has_trait(node.op, kSeveralResults)) item.results = op_info(node.op).result_count(node);
    if (permuted) {
      item.shape = channels_last(node.shape);
      item.attrs = channels_last_attrs(node);
      nodes_.place(&node) = images_.images_of(number, item.shape);
      return;
    }
    Ref ref = nodes_.whole(number);
    if (node.op == Op::Iota) {
      std::memset(ref.stride, 0, sizeof ref.stride);
      ref.stride[node.attrs.as<AxisAttrs>().axis] = 1;
    }
    nodes_.place(&node) = ref;
  }

  void add_assign(const Node& node, const std::vector<Ref>& args) {
    const int target = args[0].item;
    if (nodes_[target].op != Op::Variable)
      throw ValueError(cat(where("assign"), ": the target is not a variable"));
    if (!assigned_.emplace(target, 0).second) {
      const std::string& label = label_text(nodes_[target].label);
      throw ValueError(cat("assign", label.empty() ? "" : cat(" (", label, ")"),
                           ": the variable is assigned twice in one evaluation"));
    }
    // A variable whose value is assigned elsewhere may be assigned itself (a swap), so its value is
    // copied first.
    Ref value = args[1];
    if (nodes_[value.item].op == Op::Variable) value = nodes_.whole(nodes_.copy(value, node.label));
    int item = value.item;
    if (!updates_rows(node, target, item)) {
      item = nodes_.push(Op::Assign, node);
      nodes_[item].args.push_back(value);
    }
    nodes_[item].target = target;
    assigned_[target] = item;
    nodes_.place(&node) = value;
    assigns_[&node] = item;
  }

  // Whether the scatter writes into the variable itself. It must not read the variable again as its
  // index or updates, nor another variable, which may be assigned by a step that waits for this
  // one.
  bool updates_rows(const Node& assignment, int target, int scatter) {
    const std::vector<Ref>& args = nodes_[scatter].args;
    if (!row_updates_.contains(assignment) || args[0].item != target ||
        nodes_[args[1].item].op == Op::Variable || nodes_[args[2].item].op == Op::Variable)
      return false;
    tally_.count(kUpdateRows, 1);
    return true;
  }

  int output(const Node& node) {
    if (auto it = assigns_.find(&node); it != assigns_.end()) return it->second;
    const Ref ref = nodes_.ref_of(&node);
    const Item& base = nodes_[ref.item];
    const bool computed = base.kind != OpKind::Leaf || base.op == Op::Random;
    int item = computed && is_linear(ref, base.shape) ? ref.item : nodes_.copy(ref, node.label);
    // This result gets a copy of its own.
    if (options_.results_apart && nodes_[item].wanted)
      item = nodes_.new_copy(nodes_.whole(item), node.label);
    nodes_[item].wanted = true;
    return item;
  }

  // An assignment waits for all readers of the variable's old value.
  void order_assignments() {
    for (int k = 0; k < nodes_.size(); ++k)
      for (const Ref& arg : nodes_[k].args)
        if (auto it = assigned_.find(arg.item); it != assigned_.end() && it->second != k)
          nodes_[it->second].after.push_back(k);
  }

  const NumberedOrder& order_;
  const PlanOptions& options_;
  PassTally& tally_;
  LoweredNodes nodes_;
  DeviationSums sums_;
  ImageLowering images_;
  RowUpdates row_updates_;
  const bool recomputes_, stores_16_bit_, skips_casts_, rounds_filters_;
  std::unordered_map<const Node*, int> slots_;
  std::unordered_map<const Node*, int> assigns_;
  std::unordered_map<int, int> assigned_;  // variable item to Assign item
  // Items by source item, dtype and whether they serve an input gradient.
  std::map<std::tuple<int, DType, bool>, int> low_filters_;
  std::map<std::pair<int, int>, int> results_;  // items by owner and result index
};

}  // namespace

Lowered lower(std::span<const Tensor> roots, const NumberedOrder& order,
              std::span<Node* const> leaves, const PlanOptions& options, PassTally& tally) {
  return Lowering(order, leaves, options, tally).run(roots);
}

}  // namespace tenon
