// Scaled-dot-product attention (Vaswani et al., "Attention is all you need", 2017).
#include <cmath>

#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/str.h"
#include "ops/infer.h"

namespace tenon {
namespace {

constexpr const char* kName = "scaled_dot_product_attention";

[[noreturn]] void refuse(const Tensor& q, const Tensor& k, const Tensor& v, const char* why) {
  throw ShapeError(cat(where(kName), ": query ", q.shape(), ", key ", k.shape(), " and value ",
                       v.shape(), " do not fit: ", why));
}

void check(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (!is_floating(q.dtype()) || k.dtype() != q.dtype() || v.dtype() != q.dtype())
    throw DTypeError(cat(where(kName), ": query is ", q.dtype(), ", key ", k.dtype(), " and value ",
                         v.dtype(), "; they must be of one floating type"));
  if (q.rank() < 2 || k.rank() != q.rank() || v.rank() != q.rank())
    refuse(q, k, v, "all must be [..., length, size], with as many axes");
  if (q.size(-1) != k.size(-1)) refuse(q, k, v, "query and key differ in size, the last axis");
  if (k.size(-2) != v.size(-2)) refuse(q, k, v, "key and value differ in length");
}

// Each head of a key or value serves as many heads of the query, one after another.
Tensor repeat_heads(const Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  Ints sizes(x.shape().begin(), x.shape().end());
  const auto heads = static_cast<std::ptrdiff_t>(x.rank() - 3);
  Ints wide = sizes;
  wide.insert(wide.begin() + heads + 1, times);
  sizes[static_cast<std::size_t>(heads)] *= times;
  return reshape(expand(unsqueeze(x, x.rank() - 2), wide), sizes);
}

// The scores with those of places that are not to be seen at minus infinity. A causal query at
// place i sees keys up to place i.
Tensor masked(Tensor scores, const Tensor& mask, bool causal) {
  const double hidden = -HUGE_VAL;
  if (mask.defined())
    scores = mask.dtype() == DType::Bool ? where(mask, scores, hidden)
                                         : scores + cast(mask, scores.dtype());
  if (!causal) return scores;
  const Tensor query = unsqueeze(arange(0, scores.size(-2)), 1), key = arange(0, scores.size(-1));
  return where(ge(query, key), scores, hidden);
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& mask, const AttentionOptions& options) {
  check(query, key, value);
  Tensor k = key, v = value;
  if (options.enable_gqa) {
    if (query.rank() < 3) refuse(query, key, value, "groups of heads need an axis of heads");
    const std::int64_t heads = query.size(-3), of_key = key.size(-3), of_value = value.size(-3);
    if (of_key < 1 || of_value < 1 || heads % of_key != 0 || heads % of_value != 0)
      refuse(query, key, value, "the query's heads are no multiple of the key's and the value's");
    k = repeat_heads(key, heads / of_key);
    v = repeat_heads(value, heads / of_value);
  }
  const double scale =
      options.scale != 0
          ? options.scale
          : 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(query.size(-1), 1)));
  const Tensor scores = masked(matmul(query * scale, transpose(k)), mask, options.causal);
  const Tensor weights = softmax(scores, -1);
  return matmul(dropout(weights, options.dropout_p, options.dropout_p > 0, options.generator), v);
}

}  // namespace tenon
