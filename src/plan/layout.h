// Layout: which images a GPU keeps with the channels last, [N, H, W, C]. Convolutions by filters
// of one pixel are matrix products of pixels by channels then, and so are both of their gradients;
// element-wise ops, reductions and padding behind one iterate over images as they lie. What reads
// such an image sees [N, C, H, W] by strides; nothing is transposed but where another convolution
// or pooling takes images in their own order.
//
// Where the device's convolutions by larger filters are fast over such images, and a graph has
// several of them, theirs lie so too, and everything between them: their results, what is computed
// of those element by element, pooled images.
//
// Part of lowering, which asks here node by node. Decisions go by channels, never by the batch.
#pragma once

#include <span>

#include "plan/lower.h"

namespace tenon {

/// [N, C, H, W] as [N, H, W, C].
Shape channels_last(const Shape& images);
Ref channels_last(const Ref& images);
/// [N, H, W, C] as [N, C, H, W].
Ref channels_first(const Ref& images);
/// Whether channels are the innermost axis of images [N, C, H, W] in memory.
bool has_channels_inside(const Ref& images);
/// Whether the op can as well iterate over images [N, H, W, C]: element-wise ones, reductions,
/// padding.
bool reads_any_order(const Node& node);
/// What such an op's attributes are over [N, H, W, C].
Attrs channels_last_attrs(const Node& node);

/// Whether a convolution or one of its gradients is a product of pixels by channels that is worth
/// more than images in their own order: filters of one pixel, of stride 1, in one group, unpadded,
/// multiplied in 16 bits or tf32, rows of whole 16 bytes.
bool is_pixel_product(const Node& node);

/// Whether a convolution by larger filters or one of its gradients, in 16 bits or, in one group, in
/// tf32, has rows of a multiple of 8 channels in each group, or reads images of a few channels
/// and makes such rows.
bool is_image_convolution(const Node& node);
/// Whether those of a graph keep their images with the channels last: several of them, which are
/// most. As the graph was written: passes rewrite convolutions, and go by what was decided before
/// them (PlanOptions::channels_last).
bool keeps_channels_last(std::span<Node* const> nodes, const PlanOptions& options);
/// Whether those of a graph whose images lie in their own order are stored in 16 bits. On a GPU
/// that rounds operands: several convolutions multiply in 16 bits, and most do; on the host:
/// several of many channels multiply in bfloat16.
bool stores_activations_in_16_bits(std::span<Node* const> nodes, const PlanOptions& options);
/// The 16-bit type that a convolution or one of its gradients multiplies in; Float32: none.
DType lower_type(const Node& convolution);
/// Whether input `index` of such a convolution is an image that can be rounded by who makes it, a
/// convolution or element-wise ops: neither filters nor an image of a few channels.
bool reads_16_bit_image(const Node& convolution, int index);
/// Whether a max pooling, a normalisation across channels, or the gradient of one can iterate over
/// images with the channels last, of 16 bits or float32 and a multiple of 8 channels.
bool pools_channels_last(const Node& node);
/// What input `index` of an image convolution is: images with the channels last (else filters, or a
/// image in its own order).
bool takes_channels_last(const Node& node, int index);

}  // namespace tenon
