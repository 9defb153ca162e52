// Layout: which activations a GPU stores in NHWC (channels-last) instead of NCHW.
//
// In NHWC a convolution with 1 x 1 filters is a matrix product of pixels by channels, and so are
// both of its gradients. Element-wise ops, reductions and padding iterate over NHWC directly.
// Readers that expect [N, C, H, W] get a view with other strides; data is transposed only where
// another convolution or pooling needs NCHW.
//
// Where the device has fast NHWC kernels for larger filters and a graph has several such
// convolutions, their activations are NHWC too, and so is everything between them: results,
// element-wise values computed from them, pooled activations.
//
// Lowering asks these functions node by node. Decisions depend on channels, never on the batch
// size.
#pragma once

#include <span>

#include "graph/attrs.h"
#include "graph/node.h"
#include "plan/program/program.h"
#include "plan/program/ref.h"

namespace tenon {

/// The shape [N, C, H, W] as [N, H, W, C].
Shape channels_last(const Shape& images);
Ref channels_last(const Ref& images);
/// A reference to [N, H, W, C] as [N, C, H, W].
Ref channels_first(const Ref& images);
/// Whether channels are the innermost axis in memory of images [N, C, H, W].
bool has_channels_inside(const Ref& images);
/// Whether the op can also iterate over [N, H, W, C]: element-wise ops, reductions, padding.
bool reads_any_order(const Node& node);
/// The attributes of such an op over [N, H, W, C].
Attrs channels_last_attrs(const Node& node);

/// Whether a convolution or one of its gradients is a matrix product of pixels by channels for
/// which NHWC pays: 1 x 1 filters, stride 1, one group, no padding, multiplied in 16 bits or TF32,
/// rows of a multiple of 16 bytes.
bool is_pixel_product(const Node& node);

/// Whether a convolution with larger filters, or one of its gradients, can run in NHWC: in 16 bits,
/// or in TF32 with one group. Each group must have a multiple of 8 channels, or the convolution
/// reads images of few channels and makes such rows itself (plan/rewrites/few_channels.h).
bool is_image_convolution(const Node& node);
/// Whether a graph's larger convolutions keep their activations in NHWC: if there are several that
/// qualify and they are most of all. Decided on the graph as the user wrote it, because passes
/// rewrite convolutions; later passes use the stored decision (PlanOptions::channels_last).
bool keeps_channels_last(std::span<Node* const> nodes, const PlanOptions& options);
/// Whether activations of a graph that stay in NCHW are stored in 16 bits. On a GPU that rounds
/// operands: several convolutions multiply in 16 bits, and they are most of all. On the host:
/// several convolutions of many channels multiply in bfloat16.
bool stores_activations_in_16_bits(std::span<Node* const> nodes, const PlanOptions& options);
/// The 16-bit dtype that a convolution or one of its gradients multiplies in; Float32 if none.
DType lower_type(const Node& convolution);
/// Whether input `index` of such a convolution is an activation that its producer can round: the
/// result of a convolution or of element-wise ops, not filters and not an image of few channels.
bool reads_16_bit_image(const Node& convolution, int index);
/// Whether a max pooling, a normalisation across channels, or the gradient of one can iterate over
/// NHWC activations of 16 bits or float32 with a multiple of 8 channels.
bool pools_channels_last(const Node& node);
/// Whether input `index` of an NHWC convolution is an activation in NHWC. Otherwise the input is
/// filters or an image in NCHW.
bool takes_channels_last(const Node& node, int index);

}  // namespace tenon
