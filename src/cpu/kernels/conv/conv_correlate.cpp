// Expresses a convolution's passes as correlations and chooses their tiles.
#include "cpu/kernels/conv/conv_correlate.h"

#include "cpu/kernels/conv/conv_bodies.h"

namespace tenon::cpu {

Correlation correlation_of(const ConvShape& s, bool input_grad, bool in_scratch) {
  Correlation pass;
  pass.in_scratch = in_scratch;
  const std::int64_t c = s.c / s.groups, k = s.k / s.groups, taps = s.r * s.s;
  pass.images = s.n;
  pass.groups = s.groups;
  pass.in_channels = input_grad ? k : c;
  pass.out_channels = input_grad ? c : k;
  pass.out_h = input_grad ? s.h : s.p;
  pass.out_w = input_grad ? s.w : s.q;
  pass.rows = {input_grad, input_grad ? s.p : s.h, pass.out_h, s.r, s.stride_h, s.pad_h, s.dil_h};
  pass.cols = {input_grad, input_grad ? s.q : s.w, pass.out_w, s.s, s.stride_w, s.pad_w, s.dil_w};
  pass.filter_in_stride = input_grad ? c * taps : taps;
  pass.filter_out_stride = input_grad ? taps : c * taps;
  pass.filter_group_stride = k * c * taps;
  return pass;
}

void correlate(const Correlation& pass, ConvOperand in, ConvOperand w, float* out, Math math,
               const Epilogue& epilogue, void* workspace) {
  if (const KernelSet* blocks = block_correlation(pass, math))
    return correlate_blocks(pass, *blocks, in, w, out, epilogue, workspace);
  correlate_vectors(pass, in, w, out, math, epilogue, workspace);
}

std::int64_t correlate_piece(const Correlation& pass, Math math) {
  if (const KernelSet* blocks = block_correlation(pass, math))
    return correlate_blocks_piece(pass, *blocks);
  return correlate_vectors_piece(pass, math);
}

std::size_t correlate_workspace(const Correlation& pass, Math math, int threads) {
  if (const KernelSet* blocks = block_correlation(pass, math))
    return correlate_blocks_workspace(pass, *blocks, threads);
  return correlate_vectors_workspace(pass, math, threads);
}

}  // namespace tenon::cpu
