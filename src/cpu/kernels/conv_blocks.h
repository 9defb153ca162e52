// Convolution passes in pairs of bfloat16 on block tiles (matrix registers): forward and input
// gradient, and the weight gradient. For shapes that fill such tiles well enough; the caller asks
// first.
#pragma once

#include "cpu/kernels/conv_correlate.h"

namespace tenon::cpu {

/// The kernels to correlate with, or null where vectors do as well.
const KernelSet* block_correlation(const Correlation& pass, Math math);
void correlate_blocks(const Correlation& pass, const KernelSet& kernels, ConvOperand in,
                      ConvOperand w, float* out, const Epilogue& epilogue, void* workspace);
std::size_t correlate_blocks_workspace(const Correlation& pass, int threads);

const KernelSet* block_weights(const ConvShape& shape, Math math);
void weights_in_blocks(const ConvShape& shape, const KernelSet& kernels, ConvOperand x,
                       ConvOperand dy, float* dw, const Epilogue& epilogue, void* workspace);
std::size_t weights_in_blocks_workspace(const ConvShape& shape, int threads);

}  // namespace tenon::cpu
