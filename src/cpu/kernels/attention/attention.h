// Attention and its gradients, one tile of scores at a time: memory never holds more scores.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/dtype.h>

#include "cpu/kernels/contract.h"

namespace tenon::cpu {

/// `heads` query heads share `kv_heads` key and value heads; neighbouring query heads share one.
/// Bf16: products round their operands, weights included, except lower-precision operands; sums are
/// float32.
struct AttentionShape {
  std::int64_t batch = 0, heads = 0, kv_heads = 0;
  std::int64_t queries = 0, keys = 0;     // lengths
  std::int64_t size = 0, value_size = 0;  // of a query's and a key's row, and of a value's
  float scale = 1;
  bool causal = false;  // query i sees keys up to i
  /// Operands and results are stored in 16 bits; values between them are not rounded to 16 bits.
  bool is_16_bit = false;
  Math math = Math::F32;
};

/// Element (b, i, h, e) of an operand, or (b, h, i, j) of a mask, is at data + sum of coordinate *
/// stride, in elements. Null data: there is none.
struct AttentionOperand {
  const std::byte* data = nullptr;
  DType dtype = DType::Float32;  // a floating one of 32 bits or less; of a mask bool too
  std::int64_t stride[4] = {};
};

struct AttentionInputs {
  AttentionOperand query, key, value, mask;
};

/// Contiguous [batch, length, heads, size]; null if the result is not wanted.
struct AttentionResult {
  std::byte* data = nullptr;
  DType dtype = DType::Float32;
};

/// y = softmax(scale q kᵀ, masked) v, or 0 for a query that sees no key. log [batch, heads,
/// queries] gets each query's log-sum-exp (may be null). The result does not depend on the number
/// of threads. workspace: 64-byte aligned, attention_workspace bytes.
void attention_forward(const AttentionShape& shape, const AttentionInputs& in, AttentionResult y,
                       float* log, void* workspace);

/// The results of attention_forward(), and the gradient of y.
struct AttentionForward {
  AttentionOperand y, dy;
  const float* log = nullptr;  // each query's log-sum-exp
};

struct AttentionGradients {
  AttentionResult query, key, value;
};

void attention_backward(const AttentionShape& shape, const AttentionInputs& in,
                        const AttentionForward& forward, const AttentionGradients& gradients,
                        void* workspace);

std::size_t attention_workspace(const AttentionShape& shape, bool backward, int threads);

}  // namespace tenon::cpu
