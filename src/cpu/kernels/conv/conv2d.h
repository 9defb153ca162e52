// Convolution passes whose results exist only for their epilogue. conv2d_forward without y and
// conv2d_input_grad without dx keep one piece of an image at a time in scratch inside the
// workspace; conv2d_weight_grad without dw (for some images) keeps a piece of dw there.
#pragma once

#include "cpu/kernels/contract.h"

namespace tenon::cpu {

/// Bytes of the workspace of a pass, with or without a result.
std::size_t conv2d_workspace(const ConvShape& shape, ConvPass pass, Math math, int threads,
                             bool result_is_null);

/// The number of pixels of an image, of all channels of a group, that an epilogue gets at a time
/// (the last piece of an image may be smaller). 0 if rectangles have another form.
std::int64_t conv2d_piece(const ConvShape& shape, ConvPass pass, Math math, bool result_is_null);

}  // namespace tenon::cpu
