// What the attention kernels are given; host and device share it.
#pragma once

#include "cuda/kernels/tensor_map.cuh"

namespace tenon::cuda {

constexpr int kAttentionThreads = 128;  // four warps of 16 rows each
constexpr int kAttentionRows = 64;  // of a block's own tile: queries, or keys for their gradients
constexpr int kAttentionBoxBytes = 64 * 128;  // 64 rows of 64 16-bit elements in shared memory
constexpr int kAttentionTaken = 2 * kAttentionRows;  // numbers that 64 queries have in `delta`

/// Element (b, i, h, e) of an operand stands at data + b * stride[0] + i * stride[1] + h *
/// stride[2] + e, of a mask (b, h, i, j) at data + sum of coordinate * stride.
struct AttentionOperand {
  const void* data = nullptr;
  long long stride[4] = {};
};

/// Element (b, i, h, e) of a result stands at data + b * stride[0] + i * stride[1] + h * stride[2]
/// + e; pairs of elements are aligned. Null: not asked for.
struct AttentionResult {
  void* data = nullptr;
  long long stride[3] = {};
};

/// Sums of a gradient's 64 rows at a time, whichever text these are of: those of element e of head
/// h stand at data + rows / 64 * pitch + h * size + e. Null: not asked for.
struct AttentionSums {
  float* data = nullptr;
  long long pitch = 0;
};

/// log and delta are contiguous [batch, heads, queries].
struct AttentionArgs {
  AttentionOperand q, k, v, mask, y, dy;
  float* log = nullptr;  // of each query's sum of exponentials; null: not asked for
  // rowsum(dy y); by warpgroups of 64 queries the logarithms, then these; of float32 operands, then
  // what makes the sum of a query's weights 1.
  float* delta = nullptr;
  AttentionResult out;                 // y, or the gradient of q
  AttentionResult out_k, out_v;        // the gradients of k and v
  AttentionSums sums, sums_k, sums_v;  // of those of q, k and v; by warpgroups alone
  long long batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0;
  float scale = 1;
  int unused = 0;  // in place of padding
  // Of weights that are dropped at random: seed and counter of the draw, and of 2^24 numbers how
  // many, from 0 on, drop.
  const long long* drops = nullptr;
};

/// The operands of attention by warpgroups as [batch, heads, length, size], in boxes of 64 x 64.
struct AttentionMaps {
  TensorMap q, k, v, dy;
};

}  // namespace tenon::cuda
