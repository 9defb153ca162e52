// Attention and its gradients, a tile of scores at a time: no more of them are ever in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/dtype.h>

#include "cpu/kernels/contract.h"

namespace tenon::cpu {

/// `heads` of the query share `kv_heads` of key and value, neighbours one. Bf16: products round
/// their operands, weights included, but those of `narrow` operands; sums are float32.
struct AttentionShape {
  std::int64_t batch = 0, heads = 0, kv_heads = 0;
  std::int64_t queries = 0, keys = 0;     // lengths
  std::int64_t size = 0, value_size = 0;  // of a query's and a key's row, and of a value's
  float scale = 1;
  bool causal = false;  // query i sees keys up to i
  /// Operands and results are stored in 16 bits: between them no number is rounded to so few.
  bool is_16_bit = false;
  Math math = Math::F32;
};

/// Element (b, i, h, e) of an operand, (b, h, i, j) of a mask, stands at data + sum of coordinate *
/// stride, in elements. No data: there is none.
struct AttentionOperand {
  const std::byte* data = nullptr;
  DType dtype = DType::Float32;  // a floating one of 32 bits or less; of a mask bool too
  std::int64_t stride[4] = {};
};

struct AttentionInputs {
  AttentionOperand query, key, value, mask;
};

/// Contiguous [batch, length, heads, size]; null where nobody reads it.
struct AttentionResult {
  std::byte* data = nullptr;
  DType dtype = DType::Float32;
};

/// y = softmax(scale q kᵀ, masked) v, 0 for a query that sees no key, and log [batch, heads,
/// queries], each query's logarithm of the sum of its exponentials (may be null). The result does
/// not depend on the number of threads. workspace: 64-byte aligned, attention_workspace bytes.
void attention_forward(const AttentionShape& shape, const AttentionInputs& in, AttentionResult y,
                       float* log, void* workspace);

/// The gradients with regard to query, key and value, given y, its logarithms and its gradient.
void attention_backward(const AttentionShape& shape, const AttentionInputs& in,
                        const AttentionOperand& y, const float* log, const AttentionOperand& dy,
                        AttentionResult dq, AttentionResult dk, AttentionResult dv,
                        void* workspace);

std::size_t attention_workspace(const AttentionShape& shape, bool backward, int threads);

}  // namespace tenon::cpu
