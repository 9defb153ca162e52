// Arguments of the attention kernels; host and device share these structs.
#pragma once

#include "cuda/kernels/tensor_map.cuh"

namespace tenon::cuda {

constexpr int kAttentionThreads = 128;  // four warps of 16 rows each
// Rows of a block's own tile: queries, or keys for key gradients.
constexpr int kAttentionRows = 64;
constexpr int kAttentionBoxBytes = 64 * 128;  // 64 rows of 64 16-bit elements in shared memory
constexpr int kAttentionTaken = 2 * kAttentionRows;  // floats of 64 queries in `delta`

/// Element (b, i, h, e) of an operand is at data + b * stride[0] + i * stride[1] + h * stride[2] +
/// e. Element (b, h, i, j) of a mask is at data + the sum of coordinate * stride.
struct AttentionOperand {
  const void* data = nullptr;
  long long stride[4] = {};
};

/// Element (b, i, h, e) of a result is at data + b * stride[0] + i * stride[1] + h * stride[2] + e.
/// Pairs of elements are aligned. Null: the result is not wanted.
struct AttentionResult {
  void* data = nullptr;
  long long stride[3] = {};
};

/// Partial sums of a gradient over 64 rows at a time, across all samples of the batch: the sum of
/// element e of head h is at data + rows / 64 * pitch + h * size + e. Null: not wanted.
struct AttentionSums {
  float* data = nullptr;
  long long pitch = 0;
};

/// log and delta are contiguous [batch, heads, queries].
struct AttentionArgs {
  AttentionOperand q, k, v, mask, y, dy;
  float* log = nullptr;  // log-sum-exp of each query's scores; null: not wanted
  // rowsum(dy * y). For the warpgroup kernels, it holds for every 64 queries their 64 log-sum-exps
  // and then their 64 deltas. For float32 operands, the deltas are followed by the factors that
  // make each query's weights sum to 1.
  float* delta = nullptr;
  AttentionResult out;           // y, or the gradient of q
  AttentionResult out_k, out_v;  // the gradients of k and v
  // Sums of the gradients of q, k and v; warpgroup kernels only.
  AttentionSums sums, sums_k, sums_v;
  long long batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0;
  float scale = 1;
  int unused = 0;  // explicit padding
  // Dropout: seed and counter of the draw. A random number in [0, 2^24) below the threshold drops
  // its weight.
  const long long* drops = nullptr;
};

/// The operands of the warpgroup kernels as [batch, heads, length, size], in boxes of 64 x 64.
struct AttentionMaps {
  TensorMap q, k, v, dy;
};

}  // namespace tenon::cuda
