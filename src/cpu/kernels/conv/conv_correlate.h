// Forward convolution and input gradient as one routine: a correlation of every image with packed
// filters.
#pragma once

#include "cpu/kernels/conv/conv_geometry.h"

namespace tenon::cpu {

/// A pass in neutral terms: `in` is the input (x, or dy for the input gradient), `out` the output.
struct Correlation {
  std::int64_t images = 0, groups = 1;
  std::int64_t in_channels = 0, out_channels = 0;  // of one group
  std::int64_t out_h = 0, out_w = 0;
  PassAxis rows, cols;
  std::int64_t filter_in_stride = 0, filter_out_stride = 0,
               filter_group_stride = 0;  // elements of w
  bool in_scratch = false;  // the result exists for the epilogue only, a unit of it at a time
};

Correlation correlation_of(const ConvShape& shape, bool input_grad, bool in_scratch);

void correlate(const Correlation& pass, ConvOperand in, ConvOperand w, float* out, Math math,
               const Epilogue& epilogue, void* workspace);
/// The largest number of pixels of each output channel that the epilogue gets at a time.
std::int64_t correlate_piece(const Correlation& pass, Math math);
std::size_t correlate_workspace(const Correlation& pass, Math math, int threads);

}  // namespace tenon::cpu
