// The tile bodies of convolution passes: vectors for every shape, and block tiles (matrix
// registers) for pairs of bfloat16 in shapes that fill such tiles well enough.
#pragma once

#include "cpu/kernels/conv/conv_geometry.h"

namespace tenon::cpu {

void correlate_vectors(const Correlation& pass, ConvOperand in, ConvOperand w, float* out,
                       Math math, const Epilogue& epilogue, void* workspace);
std::size_t correlate_vectors_workspace(const Correlation& pass, Math math, int threads);
std::int64_t correlate_vectors_piece(const Correlation& pass, Math math);

/// The kernels for correlation in blocks, or null if vectors are at least as fast.
const KernelSet* block_correlation(const Correlation& pass, Math math);
void correlate_blocks(const Correlation& pass, const KernelSet& kernels, ConvOperand in,
                      ConvOperand w, float* out, const Epilogue& epilogue, void* workspace);
std::size_t correlate_blocks_workspace(const Correlation& pass, const KernelSet& kernels,
                                       int threads);
std::int64_t correlate_blocks_piece(const Correlation& pass, const KernelSet& kernels);

void weights_in_vectors(const ConvShape& shape, ConvOperand x, ConvOperand dy, float* dw, Math math,
                        const Epilogue& epilogue, void* workspace);
std::size_t weights_in_vectors_workspace(const ConvShape& shape, Math math, int threads);

const KernelSet* block_weights(const ConvShape& shape, Math math);
void weights_in_blocks(const ConvShape& shape, const KernelSet& kernels, ConvOperand x,
                       ConvOperand dy, float* dw, const Epilogue& epilogue, void* workspace);
std::size_t weights_in_blocks_workspace(const ConvShape& shape, const KernelSet& kernels,
                                        int threads);

}  // namespace tenon::cpu
