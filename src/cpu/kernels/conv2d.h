// Convolution passes whose results exist for their epilogue alone: conv2d_forward without y and
// conv2d_input_grad without dx keep a piece of an image at a time in scratch inside the workspace,
// conv2d_weight_grad without dw (of some images) a piece of it.
#pragma once

#include "cpu/kernels/contract.h"

namespace tenon::cpu {

/// Bytes of the workspace of a pass, with or without a result.
std::size_t conv2d_workspace(const ConvShape& shape, ConvPass pass, Math math, int threads,
                             bool result_is_null);

/// The pixels of an image that an epilogue gets at a time, of all channels of a group, but for the
/// last piece of an image; 0 where rectangles come otherwise.
std::int64_t conv2d_piece(const ConvShape& shape, ConvPass pass, Math math, bool result_is_null);

}  // namespace tenon::cpu
