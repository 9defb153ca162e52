// Chooses the tile bodies of a pass.
#include "cpu/kernels/conv/conv_correlate.h"

#include "cpu/kernels/conv/conv_bodies.h"

namespace tenon::cpu {

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
