// Lowers graph nodes to items: folds views into strides, inserts copies, casts and transposes where
// engines need them, and fixes the layout (NCHW or NHWC) of each activation. Items are described in
// lower.h.
#include "plan/regions/lower.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "ops/table.h"
#include "plan/layout/layout.h"
#include "plan/rewrites/pool_rules.h"
#include "plan/rewrites/sum_rules.h"

namespace tenon {

bool is_linear(const Ref& ref, const Shape& base) {
  if (ref.offset != 0 || ref.shape.numel() != base.numel()) return false;
  std::int64_t step = 1;
  for (int d = ref.shape.rank() - 1; d >= 0; --d) {
    if (ref.shape[d] != 1 && ref.stride[d] != step) return false;
    step *= ref.shape[d];
  }
  return true;
}

std::string item_title(const Item& item) {
  const std::string& label = label_text(item.label);
  return label.empty() ? op_info(item.op).name : cat(op_info(item.op).name, " (", label, ")");
}

namespace {

class Lowering {
 public:
  Lowering(const NumberedOrder& order, std::span<Node* const> leaves, const PlanOptions& options)
      : order_(order),
        refs_(order.nodes.size()),
        fold_views_(options.enabled(kLayout)),
        recomputes_(options.traits.is_queued && options.enabled(kFuse) &&
                    options.enabled(kRecompute)),
        channels_last_(options.traits.is_queued && options.enabled(kLayout) &&
                       options.enabled(kChannelsLast)),
        sums_deviations_(options.traits.is_queued && options.enabled(kFuse)),
        results_apart_(options.results_apart),
        convolves_last_(options.channels_last),
        options_(options),
        attention_step_(options.traits.attention.size_step) {
    for (std::size_t k = 0; k < leaves.size(); ++k) slots_.emplace(leaves[k], static_cast<int>(k));
  }

  Lowered run(std::span<const Tensor> roots) {
    const std::vector<Node*>& nodes = order_.nodes;
    out_.items.reserve(nodes.size());
    if (convolves_last_) find_rounded_filters(nodes);
    stores_16_bit_ = stores_activations_in_16_bits(nodes, options_);
    out_.stores_rounded = convolves_last_ || stores_16_bit_;
    find_deviations(roots, nodes);
    if (convolves_last_)
      for (const Node* node : nodes)
        if (is_needed(*node) && is_max_pool_grad(*node) && pools_channels_last(*node))
          pools_.add_gradient(*node);
    for (Node* node : nodes)
      if (is_needed(*node)) add(*node);
    for (const Tensor& root : roots) out_.outputs.push_back(output(*root.node()));
    order_assignments();
    for (int k = 0; k < static_cast<int>(out_.items.size()); ++k) {
      for (const Ref& arg : out_.items[k].args) user(arg.item, k);
      for (int before : out_.items[k].after) user(before, k);
    }
    return std::move(out_);
  }

 private:
  bool is_needed(const Node& node) const {
    return needed_.empty() || needed_[order_.index[&node]] != 0;
  }

  void user(int item, int by) {
    auto& users = out_.items[item].users;
    if (users.empty() || users[users.size() - 1] != by) users.push_back(by);
  }

  int push(Op op, const Node& node) {
    Item item;
    item.op = op;
    item.kind = op_info(op).kind;
    item.dtype = node.dtype;
    item.shape = node.shape;
    item.attrs = node.attrs;
    item.label = node.label;
    out_.items.push_back(std::move(item));
    return static_cast<int>(out_.items.size()) - 1;
  }

  Ref whole(int item) const {
    Ref ref;
    ref.item = item;
    ref.shape = out_.items[item].shape;
    contiguous_strides(ref.shape, ref.stride);
    return ref;
  }

  // A contiguous copy of what `ref` reads, cast to `dtype`.
  int add_cast(const Ref& ref, DType dtype, std::uint32_t label) {
    Item item;
    item.op = Op::Cast;
    item.kind = OpKind::Elementwise;
    item.dtype = dtype;
    item.shape = ref.shape;
    item.label = label;
    item.args.push_back(ref);
    out_.items.push_back(std::move(item));
    return static_cast<int>(out_.items.size()) - 1;
  }

  // A contiguous copy of what `ref` reads. The same reference is copied only once.
  int copy(const Ref& ref, std::uint32_t label) {
    std::string key(reinterpret_cast<const char*>(&ref.item), sizeof ref.item);
    key.append(reinterpret_cast<const char*>(&ref.offset), sizeof ref.offset);
    for (int d = 0; d < ref.shape.rank(); ++d) {
      key.append(reinterpret_cast<const char*>(&ref.stride[d]), sizeof ref.stride[d]);
      const std::int64_t size = ref.shape[d];
      key.append(reinterpret_cast<const char*>(&size), sizeof size);
    }
    auto [it, fresh] = copies_.try_emplace(key, -1);
    if (!fresh) return it->second;
    return it->second = add_cast(ref, out_.items[ref.item].dtype, label);
  }

  // A reference that reads its base from end to end. Convolutions, pooling and data movement accept
  // nothing else.
  Ref contiguous(const Ref& ref, std::uint32_t label) {
    const Item& base = out_.items[ref.item];
    const bool has_memory = base.op != Op::Constant && base.op != Op::Iota;
    if (has_memory && is_linear(ref, base.shape)) return ref;
    return whole(copy(ref, label));
  }

  // An index that is constant along every axis but its own is read as a vector. Gathering rows of a
  // data set then needs one index a row, not one for each element.
  static void shorten_index(const Node& node, Ref& index) {
    const int axis = static_cast<int>(node.attrs.as<AxisAttrs>().axis);
    for (int d = 0; d < index.shape.rank(); ++d)
      if (d != axis && index.shape[d] != 1 && index.stride[d] != 0) return;
    index.stride[0] = index.stride[axis];
    index.shape = {index.shape[axis]};
  }

  // If the base is one number everywhere (the zeros of a gradient), reads that number instead.
  void base_16_bit(Ref& base) const {
    const bool constant = out_.items[base.item].op == Op::Constant;
    for (int d = 0; d < base.shape.rank(); ++d)
      if (base.shape[d] == 0 || (base.shape[d] != 1 && base.stride[d] != 0 && !constant)) return;
    base.shape = Shape{};
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
        if (!reshape_strides(in.shape, in.stride, node.shape, out.stride)) {
          out = whole(copy(in, node.label));
          contiguous_strides(node.shape, out.stride);
          out.shape = node.shape;
        }
        break;
      default:
        throw InternalError(
            cat("view ", op_info(node.op).name, " is not known to the layout pass"));
    }
    if (!fold_views_) {
      out = whole(copy(out, node.label));
    }
    return out;
  }

  // Whether every row starts at a multiple of the vector step.
  bool begins_on_step(const Ref& ref) const {
    if (attention_step_ == 1) return true;
    const int last = ref.shape.rank() - 1;
    bool fits = ref.stride[last] == 1 && ref.offset % attention_step_ == 0;
    for (int d = 0; d < last; ++d)
      fits = fits && (ref.shape[d] == 1 || ref.stride[d] % attention_step_ == 0);
    return fits;
  }

  // Whether a normalisation's centred value (x minus the mean of its channel) is recomputed by its
  // readers. They read x and the mean instead, which costs no more bytes, and the centred value is
  // never written.
  bool is_recomputed(const Node& node, const std::vector<Ref>& args) const {
    if (!recomputes_ || node.op != Op::Sub || node.shape.rank() != 4) return false;
    const Ref &x = args[0], &mean = args[1];
    const Item& product = out_.items[x.item];
    const bool stored = product.kind == OpKind::Contraction && is_linear(x, product.shape);
    const Shape& s = node.shape;
    return stored && s[1] > 1 && mean.stride[1] != 0 && (s[0] == 1 || mean.stride[0] == 0) &&
           (s[2] == 1 || mean.stride[2] == 0) && (s[3] == 1 || mean.stride[3] == 0);
  }

  static bool is_cast_up(const Node& node) {
    return node.op == Op::Cast && node.dtype == DType::Float32 && node.shape.rank() == 4 &&
           item_size(node.input(0)->dtype) == 2 && is_floating(node.input(0)->dtype);
  }

  // If an operand was cast from 16 bits to float32 and the convolution multiplies in 16 bits, reads
  // the operand before the cast.
  Ref operand(const Node& product, const Node* in) {
    const auto upcast = cast_up_.find(in);
    const bool was_16_bit = upcast != cast_up_.end() && lower_type(product) == in->input(0)->dtype;
    return was_16_bit ? upcast->second : ref_of(in);
  }

  Ref& place(const Node* node) { return refs_[order_.index[node]]; }

  // How users read the node. A recomputed node is added again for each user.
  Ref ref_of(const Node* node) {
    if (const auto upcast = cast_up_.find(node); upcast != cast_up_.end() && place(node).item < 0) {
      const int item = push(node->op, *node);
      out_.items[item].args = {upcast->second};
      place(node) = whole(item);
    }
    const auto again = again_.find(node);
    if (again == again_.end()) return place(node);
    const int item = push(node->op, *node);
    out_.items[item].args = again->second;
    return whole(item);
  }

  // Attention reads its logsumexp as stored, and a mask with the strides it has.
  void fit_attention(const Node& node, std::vector<Ref>& args) {
    const bool is_grad = node.op == Op::AttentionGrad;
    if (is_grad) args[4] = contiguous(args[4], node.label);
    const std::size_t operands = is_grad ? 6 : 3;
    for (std::size_t k = 0; k < operands; ++k)
      if (k != 4 && !begins_on_step(args[k])) args[k] = whole(copy(args[k], node.label));
  }

  // Whether an argument of an element-wise op has one element for each element of the result.
  bool spans_images(const Ref& arg) const {
    const Op base = out_.items[arg.item].op;
    if (base == Op::Constant || base == Op::Iota) return false;
    for (int d = 0; d < 4; ++d)
      if (arg.shape[d] != 1 && arg.stride[d] == 0) return false;
    return true;
  }

  bool is_channels_last(const Ref& arg) const {
    return last_.count(arg.item) != 0 && has_channels_inside(arg);
  }

  // Whether the op reads, element by element, an activation that this pass has stored in NHWC. Then
  // the op's result is NHWC too.
  bool reads_channels_last(const Node& node, const std::vector<Ref>& args) const {
    if (last_.empty() || node.shape.rank() != 4 || !reads_any_order(node)) return false;
    return std::any_of(args.begin(), args.end(), [this](const Ref& arg) {
      return is_channels_last(arg) && spans_images(arg);
    });
  }

  // An argument of an op that iterates over NHWC. NCHW activations are transposed, once for all
  // readers.
  Ref transposed_last(const Ref& arg, std::uint32_t label) {
    if (is_channels_last(arg) || !spans_images(arg) || arg.shape[1] == 1) return channels_last(arg);
    const int item = copy(channels_last(arg), label);
    last_.insert(item);
    return whole(item);
  }

  // Marks activations as NHWC: pixels that were spread for a strided gradient (strided.h), or a
  // slice of them.
  void note_images(const Ref& images) {
    if (out_.items[images.item].kind == OpKind::Movement && has_channels_inside(images))
      last_.insert(images.item);
  }

  // How users read an item that holds images [N, H, W, C].
  Ref images_of(int item, const Shape& shape) {
    last_.insert(item);
    Ref images = whole(item);
    images.shape = shape;
    contiguous_strides(shape, images.stride);
    return channels_first(images);
  }

  // Images as a matrix of pixels by channels, transposed if they are not NHWC.
  Ref pixels(const Ref& images, std::uint32_t label) {
    const Ref permuted = channels_last(images);
    const Shape& s = permuted.shape;
    Ref out = permuted;
    out.shape = {s[0] * s[1] * s[2], s[3]};
    const bool laid = out_.items[images.item].op != Op::Constant && has_channels_inside(images);
    if (laid && reshape_strides(s, permuted.stride, out.shape, out.stride)) return out;
    const int item = copy(permuted, label);
    last_.insert(item);
    const Shape matrix = out.shape;
    out = whole(item);
    out.shape = matrix;
    contiguous_strides(matrix, out.stride);
    return out;
  }

  static Ref matrix(const Ref& filters) {
    Ref out = filters;
    out.shape = {filters.shape[0], filters.shape[1]};
    return out;
  }
  static Ref transposed(const Ref& matrix) {
    Ref out = matrix;
    std::swap(out.shape[0], out.shape[1]);
    std::swap(out.stride[0], out.stride[1]);
    return out;
  }

  void add_pixel_product(const Node& node, const std::vector<Ref>& args) {
    const Ref image = pixels(args[0], node.label);
    std::vector<Ref> factors;
    if (node.op == Op::Conv2dWeightGrad) {
      factors = {transposed(pixels(args[1], node.label)), image};
    } else {
      const bool no_memory = out_.items[args[1].item].op == Op::Constant;
      const Ref w = matrix(no_memory ? contiguous(args[1], node.label) : args[1]);
      factors = {image, node.op == Op::Conv2d ? transposed(w) : w};
    }
    const int number = push(Op::Matmul, node);
    Item& item = out_.items[number];
    ContractionAttrs attrs = node.attrs.as<ContractionAttrs>();
    attrs.conv = {};
    item.attrs = attrs;
    item.shape = {factors[0].shape[0], factors[1].shape[1]};
    item.args = std::move(factors);
    if (node.op == Op::Conv2dWeightGrad) {
      Ref& ref = place(&node) = whole(number);
      ref.shape = node.shape;
      contiguous_strides(node.shape, ref.stride);
    } else {
      place(&node) = images_of(number, channels_last(node.shape));
    }
  }

  // The sum of squared deviations from a batch mean is computed beside the sum of that mean, in one
  // loop nest, so the deviations themselves need not be computed. For sums over rows this is not
  // done: a row stays in cache, and reading it twice costs nothing.
  void find_deviations(std::span<const Tensor> roots, std::span<Node* const> nodes) {
    constexpr std::int64_t kSamples = 1, kChannels = 2;
    if (!sums_deviations_) return;
    for (const Node* node : nodes) {
      Node* x = summed_deviations(*node);
      if (x == nullptr || x->shape.rank() < 2) continue;
      const std::int64_t axes = node->attrs.as<ReduceAttrs>().axes;
      if ((axes & kSamples) != 0 && (axes & kChannels) == 0) deviations_.emplace(node, x);
    }
    if (deviations_.empty()) return;
    needed_.assign(nodes.size(), 0);
    for (const Tensor& root : roots) needed_[order_.index[root.node()]] = 1;
    for (std::size_t k = nodes.size(); k-- > 0;) {
      if (needed_[k] == 0 || nodes[k]->realised()) continue;
      const auto found = deviations_.find(nodes[k]);
      if (found != deviations_.end())
        needed_[order_.index[found->second]] = 1;
      else
        for (Node* in : nodes[k]->in()) needed_[order_.index[in]] = 1;
    }
  }

  // Finds filters of NHWC convolutions that are rounded anyway: the rounding kernel also permutes
  // them to NHWC.
  void find_rounded_filters(std::span<Node* const> nodes) {
    for (const Node* node : nodes) {
      if (!is_image_convolution(*node) || node->op == Op::Conv2dWeightGrad) continue;
      const Node* w = node->input(1);
      if (!w->realised() && w->op == Op::Cast && w->input(0)->realised())
        rounded_filters_.insert(w);
    }
  }

  // Filters [K, C, R, S] stored as [K, R, S, C].
  Ref filters(const Node* node, std::uint32_t label) {
    const auto rounded = again_.find(node);
    const bool rounds = rounded_filters_.count(node) != 0 && rounded != again_.end();
    const Ref ref = rounds ? rounded->second[0] : ref_of(node);
    if (!rounds) return channels_inside(ref, label);
    const auto [place, fresh] = laid_filters_.try_emplace(node, -1);
    if (fresh) place->second = add_cast(channels_last(ref), node->dtype, node->label);
    return channels_first(whole(place->second));
  }

  // Filters of a convolution over 16-bit activations that multiplies in 16 bits. They are rounded
  // once for all thread blocks, with the reduced axis innermost.
  Ref lower_filter_precision(const Node& product, const Ref& filters) {
    constexpr std::int64_t kSummedAtOnce = 8;
    const bool of_input = product.op == Op::Conv2dInputGrad;
    const DType low_dtype = lower_type(product);
    const Item& base = out_.items[filters.item];
    const bool rounds = low_dtype != DType::Float32 && base.dtype == DType::Float32 &&
                        base.kind == OpKind::Leaf && is_linear(filters, base.shape);
    if (!rounds || filters.shape[of_input ? 0 : 1] % kSummedAtOnce != 0 ||
        (product.op != Op::Conv2d && !of_input))
      return filters;
    const auto [place, fresh] =
        lower_filter_precision_.try_emplace({filters.item, low_dtype, of_input}, -1);
    if (fresh)
      place->second = add_cast(channels_last(of_input ? transposed(filters) : filters), low_dtype,
                               product.label);
    const Ref laid = channels_first(whole(place->second));
    return of_input ? transposed(laid) : laid;
  }

  // What `ref` reads with axis 1 innermost in memory; transposed if it is not, once for all
  // readers.
  Ref channels_inside(const Ref& ref, std::uint32_t label) {
    const Item& base = out_.items[ref.item];
    const Ref permuted = channels_last(ref);
    const bool has_memory = base.op != Op::Constant && base.op != Op::Iota;
    if (has_memory && is_linear(permuted, base.shape)) return ref;
    return channels_first(whole(copy(permuted, label)));
  }

  void add_image_convolution(const Node& node) {
    std::vector<Ref> args;
    args.reserve(2);
    for (int k = 0; k < 2; ++k) {
      if (takes_channels_last(node, k)) {
        args.push_back(channels_inside(ref_of(node.input(k)), node.label));
        last_.insert(args.back().item);
      } else if (k == 1) {
        args.push_back(filters(node.input(k), node.label));
      } else {
        args.push_back(contiguous(ref_of(node.input(k)), node.label));
      }
    }
    const int number = push(node.op, node);
    Item& item = out_.items[number];
    item.args = std::move(args);
    item.channels_last = node.op != Op::Conv2dWeightGrad;
    if (!item.channels_last) {
      place(&node) = whole(number);
      return;
    }
    item.shape = channels_last(node.shape);
    place(&node) = images_of(number, item.shape);
  }

  // Pooling over [N, H, W, C]. The gradient of max pooling reads the position of each maximum in
  // its window, one byte each, instead of the input activation, which may have no other reader.
  void add_pooling(const Node& node, std::vector<Ref> args) {
    const auto lie = [&](const Ref& images) {
      return channels_last(channels_inside(images, node.label));
    };
    NumberedPools::Pool* const pool = pools_.find(node);
    const bool pools = node.op == NumberedPools::kOp;
    // belongs to a gradient, and nothing else requests the maxima
    if (pool != nullptr && pool->item < 0)
      pool->item = add_pool(node, lie(args[0]), pools ? node.shape : node.input(1)->shape);
    if (pool != nullptr && pools) {
      if (pool->maxima < 0) pool->maxima = add_result(pool->item, 0, node);
      place(&node) = images_of(pool->maxima, out_.items[pool->maxima].shape);
      return;
    }
    if (pool != nullptr && pool->numbers < 0) pool->numbers = add_result(pool->item, 1, node);
    for (std::size_t k = 0; k < args.size(); ++k)
      args[k] = pool != nullptr && k == 0 ? whole(pool->numbers) : lie(args[k]);
    const int number = push(node.op, node);
    Item& item = out_.items[number];
    item.args = std::move(args);
    item.channels_last = true;
    item.shape = channels_last(node.shape);
    place(&node) = images_of(number, item.shape);
  }

  /// Adds a pooling whose second result is the position of each maximum in its window.
  int add_pool(const Node& node, const Ref& images, const Shape& pooled) {
    const int number = push(NumberedPools::kOp, node);
    Item& item = out_.items[number];
    item.args.push_back(images);
    item.shape = channels_last(pooled);
    item.channels_last = true;
    item.results = 2;
    return number;
  }

  int add_result(int of, int index, const Node& node) {
    const int number = push(Op::Result, node);
    Item& item = out_.items[number];
    if (index == 1) item.dtype = DType::UInt8;
    item.shape = out_.items[of].shape;
    item.attrs = ResultAttrs{index};
    item.args.push_back(whole(of));
    return number;
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
    if (convolves_last_ && is_image_convolution(node)) return add_image_convolution(node);
    std::vector<Ref> args = args_of(node);
    if (rounded_filters_.count(&node) != 0) {
      again_.emplace(&node, std::move(args));
      return;
    }
    if (stores_16_bit_ && is_cast_up(node)) {
      cast_up_.emplace(&node, args[0]);
      return;
    }
    if (convolves_last_ && pools_channels_last(node) && is_channels_last(args[0]))
      return add_pooling(node, std::move(args));
    if (channels_last_ && is_pixel_product(node)) return add_pixel_product(node, args);
    const bool permuted = reads_channels_last(node, args);
    if (permuted)
      for (Ref& arg : args) arg = transposed_last(arg, node.label);
    fit(node, args);
    if (node.op == Op::Assign) return add_assign(node, args);
    if (!permuted && is_recomputed(node, args)) {
      again_.emplace(&node, std::move(args));
      return;
    }
    if (node.op == Op::Result) {
      // An engine writes each result once, even if equal nodes were not shared.
      const std::pair of{args[0].item, node.attrs.as<ResultAttrs>().index};
      const auto [known, is_first] = results_.emplace(of, static_cast<int>(out_.items.size()));
      if (!is_first) {
        place(&node) = whole(known->second);
        return;
      }
    }
    add_item(node, std::move(args), permuted);
  }

  void add_leaf(const Node& node) {
    const int item = push(node.op == Op::Variable ? Op::Variable : Op::Data, node);
    const auto slot = slots_.find(&node);
    if (slot == slots_.end()) throw InternalError("a leaf of the graph has no slot");
    out_.items[item].slot = slot->second;
    out_.items[item].kind = OpKind::Leaf;
    place(&node) = whole(item);
  }

  /// Adds a node that reads its input with the same or other strides.
  void add_view(const Node& node) {
    const Ref input = ref_of(node.input(0));
    place(&node) = op_info(node.op).kind == OpKind::View ? view(node, input) : input;
    if (convolves_last_ && node.op == Op::Permute && node.shape.rank() == 4)
      note_images(place(&node));
  }

  /// How a node reads its inputs, as the graph defines it.
  std::vector<Ref> args_of(const Node& node) {
    if (const auto deviating = deviations_.find(&node); deviating != deviations_.end())
      return {ref_of(deviating->second)};
    std::vector<Ref> args;
    args.reserve(node.input_count);
    const bool is_contraction = op_info(node.op).kind == OpKind::Contraction;
    for (Node* in : node.in()) args.push_back(is_contraction ? operand(node, in) : ref_of(in));
    return args;
  }

  /// Replaces arguments that the op's kernels cannot read with their strides by copies.
  void fit(const Node& node, std::vector<Ref>& args) {
    const OpKind kind = op_info(node.op).kind;
    const bool needs_whole = has_trait(node.op, kReadsWhole);
    if (has_trait(node.op, kIndexed)) shorten_index(node, args[1]);
    if (kind == OpKind::Attention) fit_attention(node, args);
    if (node.op == Op::ScatterAdd || node.op == Op::Scatter) base_16_bit(args[0]);
    for (Ref& arg : args) {
      const Item& base = out_.items[arg.item];
      const bool no_memory = base.op == Op::Constant || base.op == Op::Iota;
      const bool strided = kind == OpKind::Contraction || kind == OpKind::Attention;
      if (needs_whole || (strided && no_memory)) arg = contiguous(arg, node.label);
    }
    if (stores_16_bit_ && options_.traits.is_queued && kind == OpKind::Contraction &&
        args[1].shape.rank() == 4)
      args[1] = lower_filter_precision(node, args[1]);
  }

  /// Adds a node that computes something. `permuted`: it iterates over [N, H, W, C].
  void add_item(const Node& node, std::vector<Ref> args, bool permuted) {
    const int item = push(node.op, node);
    out_.items[item].args = std::move(args);
    out_.items[item].deviations = deviations_.count(&node) != 0;
    if (has_trait(node.op, kSeveralResults))
      out_.items[item].results = op_info(node.op).result_count(node);
    if (permuted) {
      out_.items[item].shape = channels_last(node.shape);
      out_.items[item].attrs = channels_last_attrs(node);
      place(&node) = images_of(item, out_.items[item].shape);
      return;
    }
    Ref ref = whole(item);
    if (node.op == Op::Iota) {
      std::memset(ref.stride, 0, sizeof ref.stride);
      ref.stride[node.attrs.as<AxisAttrs>().axis] = 1;
    }
    place(&node) = ref;
  }

  void add_assign(const Node& node, const std::vector<Ref>& args) {
    const int target = args[0].item;
    if (out_.items[target].op != Op::Variable)
      throw ValueError(cat(where("assign"), ": the target is not a variable"));
    if (!assigned_.emplace(target, 0).second) {
      const std::string& label = label_text(out_.items[target].label);
      throw ValueError(cat("assign", label.empty() ? "" : cat(" (", label, ")"),
                           ": the variable is assigned twice in one evaluation"));
    }
    // A variable whose value is assigned elsewhere may be assigned itself (a swap), so its value is
    // copied first.
    Ref value = args[1];
    if (out_.items[value.item].op == Op::Variable) value = whole(copy(value, node.label));
    const int item = push(Op::Assign, node);
    out_.items[item].args.push_back(value);
    out_.items[item].target = target;
    assigned_[target] = item;
    place(&node) = value;
    assigns_[&node] = item;
  }

  int output(const Node& node) {
    if (auto it = assigns_.find(&node); it != assigns_.end()) return it->second;
    const Ref ref = ref_of(&node);
    const Item& base = out_.items[ref.item];
    const bool computed = base.kind != OpKind::Leaf || base.op == Op::Random;
    int item = computed && is_linear(ref, base.shape) ? ref.item : copy(ref, node.label);
    if (results_apart_ && out_.items[item].wanted) {
      copies_.clear();  // the copy belongs to this assignment alone
      item = copy(whole(item), node.label);
    }
    out_.items[item].wanted = true;
    return item;
  }

  // An assignment waits for all readers of the variable's old value.
  void order_assignments() {
    for (int k = 0; k < static_cast<int>(out_.items.size()); ++k)
      for (const Ref& arg : out_.items[k].args)
        if (auto it = assigned_.find(arg.item); it != assigned_.end() && it->second != k)
          out_.items[it->second].after.push_back(k);
  }

  const NumberedOrder& order_;
  std::vector<Ref> refs_;  // by number of the node; without an item: not lowered yet
  bool fold_views_, recomputes_, channels_last_, sums_deviations_, results_apart_;
  bool convolves_last_, stores_16_bit_ = false;
  const PlanOptions& options_;
  std::int64_t attention_step_;
  std::unordered_map<const Node*, int> slots_;
  std::unordered_map<const Node*, std::vector<Ref>> again_;
  std::unordered_map<const Node*, Ref> cast_up_;  // activations before their cast to float32
  std::unordered_map<const Node*, int> assigns_;
  std::unordered_map<int, int> assigned_;  // variable item to Assign item
  std::unordered_map<std::string, int> copies_;
  std::unordered_set<int> last_;  // items that hold images [N, H, W, C]
  // sums of squared deviations, by the centred value
  std::unordered_map<const Node*, Node*> deviations_;
  // by number of the node; only in graphs with sums of squared deviations
  std::vector<char> needed_;
  std::unordered_set<const Node*> rounded_filters_;
  // Items by source item, dtype and whether they serve an input gradient.
  std::map<std::tuple<int, DType, bool>, int> lower_filter_precision_;
  std::unordered_map<const Node*, int> laid_filters_;  // items that hold filters as [K, R, S, C]
  std::map<std::pair<int, int>, int> results_;         // items by owner and result index
  NumberedPools pools_;
  Lowered out_;
};

}  // namespace

Lowered lower(std::span<const Tensor> roots, const NumberedOrder& order,
              std::span<Node* const> leaves, const PlanOptions& options) {
  return Lowering(order, leaves, options).run(roots);
}

}  // namespace tenon
