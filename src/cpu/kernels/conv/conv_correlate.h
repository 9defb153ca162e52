// Forward convolution and input gradient as one routine: a correlation of every image with packed
// filters.
#pragma once

#include "cpu/kernels/conv/conv_geometry.h"

namespace tenon::cpu {

void correlate(const Correlation& pass, ConvOperand in, ConvOperand w, float* out, Math math,
               const Epilogue& epilogue, void* workspace);
/// The largest number of pixels of each output channel that the epilogue gets at a time.
std::int64_t correlate_piece(const Correlation& pass, Math math);
std::size_t correlate_workspace(const Correlation& pass, Math math, int threads);

}  // namespace tenon::cpu
