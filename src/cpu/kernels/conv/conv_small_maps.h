// Depthwise convolutions over small maps, and their gradients: one channel of a few pixels fills no
// vector, so the channels of an image, which are neighbours in memory, are computed as one row. A
// tap reads the row at a distance; where that is outside the channel's map, it reads zero.
//
// x, y [n, c, h, w] and w [c, 1, r, s], float32, stride 1, maps of the same size; y and dw may be
// null for an epilogue alone.
#pragma once

#include "cpu/kernels/contract.h"

namespace tenon::cpu {

/// Whether the passes of this shape are computed this way, for float32 operands.
bool has_small_maps(const ConvShape& shape, Math math);
std::size_t small_maps_workspace(const ConvShape& shape, ConvPass pass, int threads);
/// Forward and InputGrad.
void correlate_small_maps(const ConvShape& shape, ConvPass pass, const float* x, const float* w,
                          float* y, const Epilogue& epilogue, void* workspace);
/// The products of an element and a tap are added in float over up to 64 images, and beyond that in
/// double.
void correlate_small_weights(const ConvShape& shape, const float* x, const float* dy, float* dw,
                             const Epilogue& epilogue, void* workspace);

}  // namespace tenon::cpu
