// Shared by the attention tests of both devices: operands as layers store them, values with all
// gradients, the distance of two tensors.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include <tenon/compute.h>
#include <tenon/context.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "../base/distance.h"

namespace tenon::test::attention {

using tenon::test::distance;

using Tensors = std::vector<Tensor>;

struct Sizes {
  std::int64_t batch, heads, kv_heads, queries, keys, size, value_size;
};

enum class Masked { No, Causal, Bool, Added };

struct Operands {
  Tensor q, k, v, mask, seed;
};

// Stored as [batch, length, heads, size], as layers store them.
inline Tensor stored(const Shape& shape, Generator& g) {
  return transpose(randn({shape[0], shape[2], shape[1], shape[3]}, DType::Float32, g).compute(), 1,
                   2);
}

inline Operands operands(const Sizes& s, Masked masked) {
  Generator g(7);
  Operands o;
  o.q = stored({s.batch, s.heads, s.queries, s.size}, g);
  o.k = stored({s.batch, s.kv_heads, s.keys, s.size}, g);
  o.v = stored({s.batch, s.kv_heads, s.keys, s.value_size}, g);
  o.seed = stored({s.batch, s.heads, s.queries, s.value_size}, g);
  const Tensor noise = randn({s.batch, 1, s.queries, s.keys}, DType::Float32, g).compute();
  // Every query sees the first key.
  if (masked == Masked::Bool) o.mask = logical_or(gt(noise, 0), eq(arange(0, s.keys), 0)).compute();
  if (masked == Masked::Added) o.mask = noise;
  return o;
}

/// The value, then the gradients of all operands; dropout uses the same draw every time.
inline Tensors results(const Operands& o, Masked masked, DType dtype, double dropout = 0) {
  Generator drawn(11);
  const Tensor q = cast(o.q, dtype), k = cast(o.k, dtype), v = cast(o.v, dtype);
  AttentionOptions options;
  options.causal = masked == Masked::Causal;
  options.enable_gqa = true;
  options.dropout_p = dropout;
  options.generator = drawn;
  const Tensor mask = masked == Masked::Added ? cast(o.mask, dtype) : o.mask;
  const Tensor y = scaled_dot_product_attention(q, k, v, mask, options);
  Tensors wanted = {q, k, v};
  if (masked == Masked::Added) wanted.push_back(mask);
  Tensors all = grad(y, wanted, cast(o.seed, dtype));
  all.insert(all.begin(), y);
  compute(all);
  return all;
}

inline Operands on(const Operands& o, Device device) {
  const auto moved = [device](const Tensor& x) {
    return x.defined() ? to(x, device).compute() : x;
  };
  return {moved(o.q), moved(o.k), moved(o.v), moved(o.mask), moved(o.seed)};
}

inline Tensors results_on(Device device, const Operands& o, Masked masked, DType dtype,
                          double dropout) {
  Context context = current_context();
  context.device = device;  // where numbers are drawn
  const ContextScope scope(context);
  return results(on(o, device), masked, dtype, dropout);
}

/// Compares a result computed on a device in a dtype with float64 on the CPU.
inline void check(const Sizes& s, Masked masked, DType dtype, double tolerance, Device device = {},
                  double dropout = 0) {
  CAPTURE(s.queries);
  CAPTURE(s.keys);
  CAPTURE(s.size);
  CAPTURE(static_cast<int>(masked));
  CAPTURE(static_cast<int>(dtype));
  CAPTURE(dropout);
  const Operands o = operands(s, masked);
  const Tensors ours = results_on(device, o, masked, dtype, dropout),
                exact = results(o, masked, DType::Float64, dropout);
  for (std::size_t k = 0; k < ours.size(); ++k) {
    CAPTURE(k);
    CHECK(ours[k].shape() == exact[k].shape());
    CHECK(distance(ours[k], exact[k]) < tolerance);
  }
}

}  // namespace tenon::test::attention
