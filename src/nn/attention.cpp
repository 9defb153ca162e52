// Multi-head attention as a layer on scaled_dot_product_attention, with a key-value cache for
// decoding; sinusoidal positions; RMSNorm.
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/transformer.h>

#include "base/make_error.h"
#include "base/str.h"
#include "graph/node.h"

namespace tenon::nn {

namespace {

void require_defined(std::initializer_list<std::pair<const char*, Tensor>> given) {
  for (const auto& [name, tensor] : given)
    if (!tensor.defined())
      throw make_error<ValueError>(where("attention"), ": the tensor given as ", name,
                                   " has no value: it was never assigned");
}

// The value of an integer tensor, if it is already in host memory.
std::optional<std::int64_t> known_number(const Tensor& x) {
  const Node& node = *x.node();
  if (node.op == Op::Constant) return node.attrs.as<ConstantAttrs>().value.whole();
  if (!node.realised() || node.op == Op::Variable || node.device.kind != Device::Kind::Cpu ||
      node.value->bytes() < item_size(node.dtype))
    return {};
  if (node.dtype == DType::Int64) return *static_cast<const std::int64_t*>(node.value->data());
  return *static_cast<const std::int32_t*>(node.value->data());
}

void check_position(const Tensor& position, std::int64_t positions) {
  require_defined({{"position", position}});
  if (position.dtype() != DType::Int64 && position.dtype() != DType::Int32)
    throw make_error<DTypeError>(where("attention"), ": the position is ", position.dtype(),
                                 ", must be int64 or int32");
  if (position.numel() != 1)
    throw make_error<ShapeError>(where("attention"), ": the position is ", position.shape(),
                                 ", must be one number");
  const std::optional<std::int64_t> number = known_number(position);
  if (number && (*number < 0 || *number >= positions))
    throw make_error<ValueError>(where("attention"), ": the position ", *number,
                                 " is outside a cache of ", positions,
                                 " positions, counted from 0");
}

}  // namespace

MultiheadAttention::MultiheadAttention(std::int64_t width, std::int64_t heads,
                                       const MultiheadAttentionOptions& options)
    : width_(width),
      heads_(heads),
      kv_heads_(options.kv_heads == 0 ? heads : options.kv_heads),
      options_(options) {
  if (width < 1 || heads < 1 || width % heads != 0)
    throw make_error<ValueError>("MultiheadAttention: a width of ", width, " does not divide into ",
                                 heads, " heads");
  if (kv_heads_ < 1 || heads % kv_heads_ != 0)
    throw make_error<ValueError>("MultiheadAttention: ", heads, " heads do not divide into ",
                                 kv_heads_, " groups");
  if (!(options.dropout >= 0 && options.dropout <= 1))
    throw make_error<ValueError>("MultiheadAttention: dropout is ", options.dropout,
                                 ", must be in [0, 1]");
  const std::int64_t kdim = options.kdim == 0 ? width : options.kdim,
                     vdim = options.vdim == 0 ? width : options.vdim;
  const std::int64_t of_keys = kv_heads_ * size_of_head();
  const OptionalGenerator& g = options.generator;
  if (kdim == width && vdim == width) {
    in_proj_weight_ =
        parameter("in_proj_weight", init::xavier_uniform({width + 2 * of_keys, width}, 1, g));
  } else {
    q_proj_weight_ = parameter("q_proj_weight", init::xavier_uniform({width, width}, 1, g));
    k_proj_weight_ = parameter("k_proj_weight", init::xavier_uniform({of_keys, kdim}, 1, g));
    v_proj_weight_ = parameter("v_proj_weight", init::xavier_uniform({of_keys, vdim}, 1, g));
  }
  if (options.bias) in_proj_bias_ = parameter("in_proj_bias", zeros({width + 2 * of_keys}));
  out_proj_ = child("out_proj", Linear(width, width, {.bias = options.bias, .generator = g}));
  if (options.bias) set_value(out_proj_->bias(), zeros({width}));
  if (!options.add_bias_kv) return;
  bias_k_ = parameter("bias_k", init::xavier_normal({1, 1, of_keys}, 1, g));
  bias_v_ = parameter("bias_v", init::xavier_normal({1, 1, of_keys}, 1, g));
}

std::string MultiheadAttention::describe() const {
  std::string text = cat("MultiheadAttention(", width_, ", ", heads_, " heads");
  if (kv_heads_ != heads_) text += cat(", kv_heads=", kv_heads_);
  if (options_.dropout != 0) text += cat(", dropout=", options_.dropout);
  if (!in_proj_bias_.defined()) text += ", bias=false";
  if (options_.add_bias_kv) text += ", add_bias_kv=true";
  if (options_.add_zero_attn) text += ", add_zero_attn=true";
  if (options_.batch_first) text += ", batch_first=true";
  return text + ")";
}

// Computes parts [first, end) from x; part 0: queries, 1: keys, 2: values. If the weights of the
// parts are one tensor, one product computes all of them, so each gradient is one product, too.
std::vector<Tensor> MultiheadAttention::project(int first, int end, const Tensor& x) const {
  const std::int64_t of_keys = kv_heads_ * size_of_head();
  const auto begin_of = [&](int part) { return part == 0 ? 0 : width_ + (part - 1) * of_keys; };
  const std::int64_t begin = begin_of(first), rows = begin_of(end) - begin;
  const Tensor weight = in_proj_weight_.defined() ? narrow(in_proj_weight_, 0, begin, rows)
                        : first == 0              ? q_proj_weight_
                        : first == 1              ? k_proj_weight_
                                                  : v_proj_weight_;
  if (x.rank() != 3 || x.size(2) != weight.size(1))
    throw make_error<ShapeError>(where("attention"), ": ", describe(), " takes a ",
                                 first == 0   ? "query"
                                 : first == 1 ? "key"
                                              : "value",
                                 options_.batch_first ? " [N, L, " : " [L, N, ", weight.size(1),
                                 "], not ", x.shape());
  const Tensor bias = in_proj_bias_.defined() ? narrow(in_proj_bias_, 0, begin, rows) : Tensor();
  const Tensor all = linear(x, weight, bias);
  std::vector<Tensor> parts;
  for (int part = first; part < end; ++part)
    parts.push_back(
        by_heads(narrow(all, 2, begin_of(part) - begin, begin_of(part + 1) - begin_of(part)),
                 part == 0 ? heads_ : kv_heads_));
  return parts;
}

// Reshapes [L, N, heads · size] to [N, heads, L, size].
Tensor MultiheadAttention::by_heads(const Tensor& x, std::int64_t heads) const {
  const Tensor parts = reshape(x, {x.size(0), x.size(1), heads, size_of_head()});
  return permute(parts, options_.batch_first ? Ints{0, 2, 1, 3} : Ints{1, 2, 0, 3});
}

// The mask for scores [N, heads, L, S]: floating (added to the scores) or bool (true: visible).
// Undefined if every key is visible.
Tensor MultiheadAttention::attention_mask(const AttentionMask& m, const Shape& scores,
                                          DType dtype) const {
  const std::int64_t batch = scores[0], queries = scores[2], keys = scores[3];
  Tensor mask = m.mask, padding = m.key_padding;
  for (const Tensor& given : {mask, padding})
    if (given.defined() && given.dtype() != DType::Bool && !is_floating(given.dtype()))
      throw make_error<DTypeError>(
          where("attention"), ": a mask is ", given.dtype(),
          ", must be bool (true: not seen) or floating (added to the scores)");
  if (mask.defined()) {
    if (mask.shape() == Shape{batch * heads_, queries, keys})
      mask = reshape(mask, {batch, heads_, queries, keys});
    else if (mask.shape() != Shape{queries, keys})
      throw make_error<ShapeError>(where("attention"), ": the mask is ", mask.shape(), ", must be ",
                                   Shape{queries, keys}, " or ",
                                   Shape{batch * heads_, queries, keys});
  }
  if (padding.defined()) {
    if (padding.shape() != Shape{batch, keys})
      throw make_error<ShapeError>(where("attention"), ": the mask of padded keys is ",
                                   padding.shape(), ", must be ", Shape{batch, keys});
    padding = reshape(padding, {batch, 1, 1, keys});
  }
  if (!mask.defined() && !padding.defined()) return {};
  const auto is_bool = [](const Tensor& t) { return !t.defined() || t.dtype() == DType::Bool; };
  if (is_bool(mask) && is_bool(padding))
    return logical_not(!mask.defined()      ? padding
                       : !padding.defined() ? mask
                                            : logical_or(mask, padding));
  const auto added = [&](const Tensor& t) {
    return t.dtype() == DType::Bool ? tenon::where(t, -HUGE_VAL, zeros({}, dtype)) : cast(t, dtype);
  };
  if (!mask.defined()) return added(padding);
  return padding.defined() ? added(mask) + added(padding) : added(mask);
}

// Keys that options append (add_bias_kv, add_zero_attn) are visible to every query.
MultiheadAttention::Seen MultiheadAttention::seen_by(const Tensor& queries,
                                                     const KeyValueCache& cache,
                                                     const AttentionMask& m) const {
  const std::int64_t batch = queries.size(0), length = queries.size(2), keys = cache.keys.size(2);
  const Tensor mask = attention_mask(m, {batch, heads_, length, keys}, queries.dtype());
  if (!options_.add_bias_kv && !options_.add_zero_attn) return {cache, mask, m.causal};
  const Ints one{batch, kv_heads_, 1, size_of_head()};
  std::vector<Tensor> all_keys{cache.keys}, all_values{cache.values};
  if (options_.add_bias_kv) {
    all_keys.push_back(expand(by_heads(cast(bias_k_, cache.keys.dtype()), kv_heads_), one));
    all_values.push_back(expand(by_heads(cast(bias_v_, cache.keys.dtype()), kv_heads_), one));
  }
  if (options_.add_zero_attn) {
    const Tensor nothing = zeros({batch, kv_heads_, 1, size_of_head()}, cache.keys.dtype());
    all_keys.push_back(nothing);
    all_values.push_back(nothing);
  }
  Tensor wide = mask;
  if (m.causal) {
    const Tensor before = ge(unsqueeze(arange(0, length), 1), arange(0, keys));
    wide = !mask.defined()               ? before
           : mask.dtype() == DType::Bool ? logical_and(mask, before)
                                         : tenon::where(before, mask, -HUGE_VAL);
  }
  const Ints added{0, static_cast<std::int64_t>(all_keys.size()) - 1};
  if (wide.defined()) wide = pad(wide, added, wide.dtype() == DType::Bool ? 1 : 0);
  return {{concat(all_keys, 2), concat(all_values, 2)}, wide, false};
}

// Concatenates the heads of [N, heads, L, size] and applies the output projection.
Tensor MultiheadAttention::joined(const Tensor& y) const {
  const std::int64_t batch = y.size(0), length = y.size(2);
  return (*out_proj_)(options_.batch_first
                          ? reshape(permute(y, {0, 2, 1, 3}), {batch, length, width_})
                          : reshape(permute(y, {2, 0, 1, 3}), {length, batch, width_}));
}

Tensor MultiheadAttention::attend(const Tensor& queries, const KeyValueCache& cache,
                                  const AttentionMask& m) const {
  const Seen seen = seen_by(queries, cache, m);
  return joined(scaled_dot_product_attention(queries, seen.cache.keys, seen.cache.values, seen.mask,
                                             {.causal = seen.causal,
                                              .dropout_p = is_training() ? options_.dropout : 0,
                                              .enable_gqa = kv_heads_ != heads_,
                                              .generator = options_.generator}));
}

WeightedResult MultiheadAttention::weigh(const Tensor& queries, const KeyValueCache& cache,
                                         const AttentionMask& m, HeadWeights heads) const {
  const Seen seen = seen_by(queries, cache, m);
  const auto for_queries = [&](const Tensor& x) {
    return kv_heads_ == heads_ ? x : repeat_interleave(x, heads_ / kv_heads_, 1);
  };
  const double scale = 1 / std::sqrt(static_cast<double>(size_of_head()));
  Tensor scores = matmul(queries * scale, transpose(for_queries(seen.cache.keys)));
  if (seen.mask.defined())
    scores = seen.mask.dtype() == DType::Bool ? tenon::where(seen.mask, scores, -HUGE_VAL)
                                              : scores + seen.mask;
  if (seen.causal)
    scores = tenon::where(ge(unsqueeze(arange(0, scores.size(2)), 1), arange(0, scores.size(3))),
                          scores, -HUGE_VAL);
  const Tensor weights =
      dropout(softmax(scores), options_.dropout, is_training(), options_.generator);
  return {joined(matmul(weights, for_queries(seen.cache.values))),
          heads == HeadWeights::Mean ? mean(weights, {1}) : weights};
}

namespace {

// Queries, keys, values and masks; unbatched ones get a batch axis of size 1.
struct Batched {
  Tensor query, key, value;
  AttentionMask mask;
  int axis = -1;  // position of the added batch axis; -1: none
};

Batched batched(const Tensor& query, const Tensor& key, const Tensor& value,
                const AttentionMask& mask, bool batch_first) {
  require_defined({{"query", query}, {"key", key}, {"value", value}});
  if (query.rank() != 2 || key.rank() != 2 || value.rank() != 2) return {query, key, value, mask};
  const int axis = batch_first ? 0 : 1;
  Batched out{unsqueeze(query, axis), unsqueeze(key, axis), unsqueeze(value, axis), mask, axis};
  if (key.node() == query.node()) out.key = out.query;
  if (value.node() == key.node()) out.value = out.key;
  if (mask.key_padding.defined() && mask.key_padding.rank() == 1)
    out.mask.key_padding = unsqueeze(mask.key_padding, 0);
  return out;
}

}  // namespace

std::pair<Tensor, KeyValueCache> MultiheadAttention::parts_of(const Tensor& query,
                                                              const Tensor& key,
                                                              const Tensor& value) const {
  const bool one = query.node() == key.node() && key.node() == value.node();
  if (!one || !in_proj_weight_.defined()) return {project(0, 1, query)[0], keys_of(key, value)};
  const std::vector<Tensor> parts = project(0, 3, query);
  return {parts[0], {parts[1], parts[2]}};
}

Tensor MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const AttentionMask& mask) const {
  const Batched b = batched(query, key, value, mask, options_.batch_first);
  const auto [queries, cache] = parts_of(b.query, b.key, b.value);
  const Tensor y = attend(queries, cache, b.mask);
  return b.axis < 0 ? y : squeeze(y, b.axis);
}

WeightedResult MultiheadAttention::forward(const Tensor& query, const Tensor& key,
                                           const Tensor& value, const AttentionMask& mask,
                                           HeadWeights heads) const {
  const Batched b = batched(query, key, value, mask, options_.batch_first);
  const auto [queries, cache] = parts_of(b.query, b.key, b.value);
  WeightedResult y = weigh(queries, cache, b.mask, heads);
  return b.axis < 0 ? y : WeightedResult{squeeze(y.output, b.axis), squeeze(y.weights, 0)};
}

Tensor MultiheadAttention::forward(const Tensor& query, const KeyValueCache& cache,
                                   const AttentionMask& mask) const {
  require_defined({{"query", query}});
  const Tensor queries = project(0, 1, query)[0];
  check_cache(cache, queries.size(0));
  return attend(queries, cache, mask);
}

// Checks the cache: keys and values are [batch, kv_heads, positions, head size].
void MultiheadAttention::check_cache(const KeyValueCache& cache, std::int64_t batch) const {
  require_defined({{"keys of the cache", cache.keys}, {"values of the cache", cache.values}});
  const std::int64_t positions = cache.keys.rank() == 4 ? cache.keys.size(2) : 0;
  const Shape wanted{batch, kv_heads_, positions, size_of_head()};
  for (const Tensor& part : {cache.keys, cache.values}) {
    if (part.shape() != wanted)
      throw make_error<ShapeError>(where("attention"), ": ", describe(),
                                   " takes a cache of keys and values [", batch, ", ", kv_heads_,
                                   ", positions, ", size_of_head(), "] for a batch of ", batch,
                                   ", not ", cache.keys.shape(), " and ", cache.values.shape());
    const DType dtype = out_proj_->weight().dtype();
    if (part.dtype() != dtype)
      throw make_error<DTypeError>(where("attention"), ": the cache is ", part.dtype(),
                                   ", the layer's weights are ", dtype, ": cast it");
  }
}

CachedResult MultiheadAttention::forward(const Tensor& x, const KeyValueCache& cache,
                                         const Tensor& position) const {
  const int along = options_.batch_first ? 1 : 0;
  require_defined({{"input", x}});
  if (x.rank() != 3 || x.size(along) != 1)
    throw make_error<ShapeError>(where("attention"), ": ", describe(),
                                 " decodes one position at a time, not ", x.shape());
  check_cache(cache, x.size(1 - along));
  check_position(position, cache.keys.size(2));
  const Tensor number = reshape(position, {}), positions = arange(0, cache.keys.size(2));
  const Tensor here = unsqueeze(eq(positions, number), 1), behind = gt(positions, number);
  const KeyValueCache made = keys_of(x, x);
  const KeyValueCache next{tenon::where(here, made.keys, cache.keys),
                           tenon::where(here, made.values, cache.values)};
  const Tensor y = attend(project(0, 1, x)[0], next, {.mask = unsqueeze(behind, 0)});
  if (known_number(position)) return {y, next};
  return {tenon::where(lt(number, 0), NAN, y), next};  // NaN if the position is outside the cache
}

KeyValueCache MultiheadAttention::keys_of(const Tensor& key, const Tensor& value) const {
  if (key.node() != value.node() || !in_proj_weight_.defined())
    return {project(1, 2, key)[0], project(2, 3, value)[0]};
  const std::vector<Tensor> parts = project(1, 3, key);
  return {parts[0], parts[1]};
}

KeyValueCache MultiheadAttention::empty_cache(std::int64_t batch, std::int64_t positions) const {
  const Shape shape{batch, kv_heads_, positions, size_of_head()};
  return {zeros(shape, out_proj_->weight().dtype()), zeros(shape, out_proj_->weight().dtype())};
}

Tensor sinusoid_positions(std::int64_t length, std::int64_t width, DType dtype) {
  if (length < 1 || width < 1)
    throw make_error<ValueError>("sinusoid_positions: [", length, ", ", width,
                                 "] must be at least 1");
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(length * width));
  for (std::int64_t position = 0; position < length; ++position)
    for (std::int64_t column = 0; column < width; ++column) {
      const double share = static_cast<double>(column - column % 2) / static_cast<double>(width);
      const double angle = static_cast<double>(position) / std::pow(10000.0, share);
      values.push_back(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return cast(Tensor::from(values, {length, width}), dtype);
}

RMSNorm::RMSNorm(const Shape& shape, const RMSNormOptions& options)
    : shape_(shape), eps_(options.eps) {
  for (const std::int64_t size : shape)
    if (size < 1) throw make_error<ValueError>("RMSNorm: a size is ", size, ", must be at least 1");
  if (shape.rank() == 0) throw ValueError("RMSNorm: the shape has no axes");
  if (options.elementwise_affine) weight_ = parameter("weight", ones(shape));
}

Tensor RMSNorm::forward(const Tensor& x) const { return rms_norm(x, shape_, weight_, eps_); }

std::string RMSNorm::describe() const {
  return cat("RMSNorm(", shape_, eps_ ? cat(", eps=", *eps_) : "",
             weight_.defined() ? ")" : ", elementwise_affine=false)");
}

}  // namespace tenon::nn
