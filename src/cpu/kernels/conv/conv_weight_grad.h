// The weight gradient of a convolution: a correlation whose reduction runs over pixels and images.
#pragma once

#include "cpu/kernels/conv/conv_geometry.h"

namespace tenon::cpu {

void correlate_weights(const ConvShape& shape, ConvOperand x, ConvOperand dy, float* dw, Math math,
                       const Epilogue& epilogue, void* workspace);
std::size_t correlate_weights_workspace(const ConvShape& shape, Math math, int threads);

}  // namespace tenon::cpu
