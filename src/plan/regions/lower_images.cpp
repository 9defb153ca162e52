// Images [N, H, W, C]: which items hold them, and how convolutions, pooling and element-wise ops
// read and write them. Readers that expect [N, C, H, W] get a view with other strides.
#include "plan/regions/lower_images.h"

#include <algorithm>
#include <utility>

#include "ops/table.h"
#include "plan/layout/layout.h"

namespace tenon {
namespace {

Ref matrix(const Ref& filters) {
  Ref out = filters;
  out.shape = {filters.shape[0], filters.shape[1]};
  return out;
}

}  // namespace

Ref transposed(const Ref& matrix) {
  Ref out = matrix;
  std::swap(out.shape[0], out.shape[1]);
  std::swap(out.stride[0], out.stride[1]);
  return out;
}

ImageLowering::ImageLowering(LoweredNodes& nodes, const PlanOptions& options, PassTally& tally)
    : nodes_(nodes),
      tally_(tally),
      convolves_(options.channels_last),
      permutes_filters_(convolves_ && options.enabled(kPermuteFilters)),
      pools_images_(convolves_ && options.enabled(kPoolingNhwc)),
      multiplies_(options.traits.rewrites_convolutions && options.enabled(kLayout) &&
                  options.enabled(kChannelsLast) && options.enabled(kMultiplyPixels)),
      maps_(options.enabled(kElementwiseNhwc)) {}

void ImageLowering::look_ahead(std::span<Node* const> nodes, const DeviationSums& sums) {
  if (permutes_filters_)
    for (const Node* node : nodes) {
      if (!is_image_convolution(*node) || node->op == Op::Conv2dWeightGrad) continue;
      const Node* w = node->input(1);
      if (!w->realised() && w->op == Op::Cast && w->input(0)->realised())
        rounded_filters_.insert(w);
    }
  if (pools_images_)
    for (const Node* node : nodes)
      if (sums.is_needed(*node) && is_max_pool_grad(*node) && pools_channels_last(*node))
        pools_.add_gradient(*node);
}

bool ImageLowering::is_convolution(const Node& node) const {
  return convolves_ && is_image_convolution(node);
}

void ImageLowering::add_convolution(const Node& node) {
  std::vector<Ref> args;
  args.reserve(2);
  for (int k = 0; k < 2; ++k) {
    if (takes_channels_last(node, k)) {
      args.push_back(channels_inside(nodes_.ref_of(node.input(k)), node.label));
      last_.insert(args.back().item);
    } else if (k == 1) {
      args.push_back(filters(node.input(k), node.label));
    } else {
      args.push_back(nodes_.contiguous(nodes_.ref_of(node.input(k)), node.label));
    }
  }
  const int number = nodes_.push(node.op, node);
  Item& item = nodes_[number];
  item.args = std::move(args);
  item.channels_last = node.op != Op::Conv2dWeightGrad;
  if (!item.channels_last) {
    nodes_.place(&node) = nodes_.whole(number);
    return;
  }
  item.shape = channels_last(node.shape);
  nodes_.place(&node) = images_of(number, item.shape);
}

// Filters [K, C, R, S] stored as [K, R, S, C].
Ref ImageLowering::filters(const Node* node, std::uint32_t label) {
  const std::vector<Ref>* rounded =
      is_rounded_filter(*node) ? nodes_.arguments_of_recomputed(node) : nullptr;
  if (rounded == nullptr) return channels_inside(nodes_.ref_of(node), label);
  const auto [laid, is_first] = laid_filters_.try_emplace(node, nodes_.size());
  if (is_first)
    tally_.timed(kPermuteFilters, [&] {
      nodes_.add_cast(channels_last(rounded->front()), node->dtype, node->label);
    });
  return channels_first(nodes_.whole(laid->second));
}

// The value of `ref` with axis 1 innermost in memory. If it is not, transposes it once for all
// readers.
Ref ImageLowering::channels_inside(const Ref& ref, std::uint32_t label) {
  const Ref permuted = channels_last(ref);
  if (nodes_.has_memory(ref) && is_linear(permuted, nodes_[ref.item].shape)) return ref;
  return channels_first(nodes_.whole(nodes_.copy(permuted, label)));
}

bool ImageLowering::is_pooling(const Node& node, const std::vector<Ref>& args) const {
  return pools_images_ && pools_channels_last(node) && is_channels_last(args[0]);
}

// The gradient of max pooling reads the position of each maximum in its window, one byte each,
// instead of the input activation, which may have no other reader.
void ImageLowering::add_pooling(const Node& node, std::vector<Ref> args) {
  const auto lie = [&](const Ref& images) {
    return channels_last(channels_inside(images, node.label));
  };
  NumberedPools::Pool* const pool = pools_.find(node);
  const bool pools = node.op == NumberedPools::kOp;
  // The pooling belongs to a gradient, and nothing else reads the maxima.
  if (pool != nullptr && pool->item < 0)
    pool->item = add_pool(node, lie(args[0]), pools ? node.shape : node.input(1)->shape);
  if (pool != nullptr && pools) {
    if (pool->maxima < 0) pool->maxima = add_result(pool->item, 0, node);
    nodes_.place(&node) = images_of(pool->maxima, nodes_[pool->maxima].shape);
    return;
  }
  if (pool != nullptr && pool->numbers < 0) pool->numbers = add_result(pool->item, 1, node);
  for (std::size_t k = 0; k < args.size(); ++k)
    args[k] = pool != nullptr && k == 0 ? nodes_.whole(pool->numbers) : lie(args[k]);
  const int number = nodes_.push(node.op, node);
  Item& item = nodes_[number];
  item.args = std::move(args);
  item.channels_last = true;
  item.shape = channels_last(node.shape);
  nodes_.place(&node) = images_of(number, item.shape);
}

// A pooling whose second result is the position of each maximum in its window.
int ImageLowering::add_pool(const Node& node, const Ref& images, const Shape& pooled) {
  const int number = nodes_.push(NumberedPools::kOp, node);
  Item& item = nodes_[number];
  item.args.push_back(images);
  item.shape = channels_last(pooled);
  item.channels_last = true;
  item.results = 2;
  return number;
}

int ImageLowering::add_result(int of, int index, const Node& node) {
  const int number = nodes_.push(Op::Result, node);
  Item& item = nodes_[number];
  if (index == 1) item.dtype = DType::UInt8;
  item.shape = nodes_[of].shape;
  item.attrs = ResultAttrs{index};
  item.args.push_back(nodes_.whole(of));
  return number;
}

bool ImageLowering::is_product(const Node& node) const {
  return multiplies_ && is_pixel_product(node);
}

void ImageLowering::add_product(const Node& node, const std::vector<Ref>& args) {
  const Ref image = pixels(args[0], node.label);
  std::vector<Ref> factors;
  if (node.op == Op::Conv2dWeightGrad) {
    factors = {transposed(pixels(args[1], node.label)), image};
  } else {
    const bool is_number = nodes_[args[1].item].op == Op::Constant;
    const Ref w = matrix(is_number ? nodes_.contiguous(args[1], node.label) : args[1]);
    factors = {image, node.op == Op::Conv2d ? transposed(w) : w};
  }
  const int number = nodes_.push(Op::Matmul, node);
  Item& item = nodes_[number];
  ContractionAttrs attrs = node.attrs.as<ContractionAttrs>();
  attrs.conv = {};
  item.attrs = attrs;
  item.shape = {factors[0].shape[0], factors[1].shape[1]};
  item.args = std::move(factors);
  nodes_.place(&node) = node.op == Op::Conv2dWeightGrad
                            ? nodes_.whole(number, node.shape)
                            : images_of(number, channels_last(node.shape));
}

// Images as a matrix of pixels by channels, transposed if they are not NHWC.
Ref ImageLowering::pixels(const Ref& images, std::uint32_t label) {
  const Ref permuted = channels_last(images);
  const Shape& s = permuted.shape;
  Ref out = permuted;
  out.shape = {s[0] * s[1] * s[2], s[3]};
  const bool laid = nodes_[images.item].op != Op::Constant && has_channels_inside(images);
  if (laid && reshape_strides(s, permuted.stride, out.shape, out.stride)) return out;
  const int item = nodes_.copy(permuted, label);
  last_.insert(item);
  return nodes_.whole(item, out.shape);
}

bool ImageLowering::is_elementwise(const Node& node, const std::vector<Ref>& args) const {
  if (!maps_ || last_.empty() || node.shape.rank() != 4 || !reads_any_order(node)) return false;
  return std::any_of(args.begin(), args.end(),
                     [this](const Ref& arg) { return is_channels_last(arg) && spans_images(arg); });
}

void ImageLowering::permute(std::vector<Ref>& args, std::uint32_t label) {
  tally_.timed(kElementwiseNhwc, [&] {
    for (Ref& arg : args) arg = transposed_last(arg, label);
  });
}

bool ImageLowering::is_channels_last(const Ref& arg) const {
  return last_.count(arg.item) != 0 && has_channels_inside(arg);
}

// Whether an argument of an element-wise op has one element for each element of the result.
bool ImageLowering::spans_images(const Ref& arg) const {
  if (!nodes_.has_memory(arg)) return false;
  for (int d = 0; d < 4; ++d)
    if (arg.shape[d] != 1 && arg.stride[d] == 0) return false;
  return true;
}

// An argument of an op that iterates over NHWC. NCHW activations are transposed, once for all
// readers.
Ref ImageLowering::transposed_last(const Ref& arg, std::uint32_t label) {
  if (is_channels_last(arg) || !spans_images(arg) || arg.shape[1] == 1) return channels_last(arg);
  const int item = nodes_.copy(channels_last(arg), label);
  last_.insert(item);
  return nodes_.whole(item);
}

Ref ImageLowering::images_of(int item, const Shape& shape) {
  last_.insert(item);
  return channels_first(nodes_.whole(item, shape));
}

void ImageLowering::note_permuted(const Node& node, const Ref& images) {
  if (convolves_ && node.op == Op::Permute && node.shape.rank() == 4 &&
      nodes_[images.item].kind == OpKind::Movement && has_channels_inside(images))
    last_.insert(images.item);
}

}  // namespace tenon
