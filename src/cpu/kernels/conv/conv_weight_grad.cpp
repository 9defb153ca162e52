// Chooses the tiles of a weight gradient.
#include "cpu/kernels/conv/conv_weight_grad.h"

#include "cpu/kernels/conv/conv_bodies.h"

namespace tenon::cpu {

void correlate_weights(const ConvShape& shape, ConvOperand x, ConvOperand dy, float* dw, Math math,
                       const Epilogue& epilogue, void* workspace) {
  if (const KernelSet* blocks = block_weights(shape, math))
    return weights_in_blocks(shape, *blocks, x, dy, dw, epilogue, workspace);
  weights_in_vectors(shape, x, dy, dw, math, epilogue, workspace);
}

std::size_t correlate_weights_workspace(const ConvShape& shape, Math math, int threads) {
  if (const KernelSet* blocks = block_weights(shape, math))
    return weights_in_blocks_workspace(shape, *blocks, threads);
  return weights_in_vectors_workspace(shape, math, threads);
}

}  // namespace tenon::cpu
