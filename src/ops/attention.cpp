// Scaled dot-product attention (Vaswani et al., "Attention is all you need", 2017).
//
// One op over [batch, length, heads, size], whose second result is the logsumexp of each query's
// scores, and one op for the gradients, which recomputes the weights from the logsumexp (Dao et
// al., "FlashAttention", 2022): no scores are stored. Both ops have a decomposition into other ops.
// The decomposition is used for second derivatives, and runs where no engine supports the ops.
#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/make_error.h"
#include "graph/called.h"
#include "graph/precision.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr const char* kName = "scaled_dot_product_attention";

// Inputs and results of Attention. Its gradient reads y, the logsumexp and the gradient of y after
// the values, then the mask. With dropout the last input is int64[3]: the seed, the counter of the
// draw, and the threshold: of the 2^24 numbers that a draw can yield, those below the threshold
// drop a weight. The draw is that of a float32 tensor [batch, heads, query length, key length].
constexpr int kQuery = 0, kKey = 1, kValue = 2, kMask = 3;
constexpr int kResult = 3, kLogSumExp = 4, kOutputGrad = 5, kGradMask = 6;

[[noreturn]] void refuse(const Tensor& q, const Tensor& k, const Tensor& v, const char* why) {
  throw make_error<ShapeError>(where(kName), ": query ", q.shape(), ", key ", k.shape(),
                               " and value ", v.shape(), " do not fit: ", why);
}

void check(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (!is_floating(q.dtype()) || k.dtype() != q.dtype() || v.dtype() != q.dtype())
    throw make_error<DTypeError>(where(kName), ": query is ", q.dtype(), ", key ", k.dtype(),
                                 " and value ", v.dtype(), "; they must be of one floating type");
  if (q.rank() < 2 || k.rank() < 2 || v.rank() < 2)
    refuse(q, k, v, "all must be [..., length, size]");
  if (q.size(-1) != k.size(-1)) refuse(q, k, v, "query and key differ in size, the last axis");
  if (k.size(-2) != v.size(-2)) refuse(q, k, v, "key and value differ in length");
}

// ---- Decomposition into other ops ---------------------------------------------------------------

// Grouped heads: each head of a key or value [.., heads, length, size] serves `times` consecutive
// heads of the query.
Tensor repeat_heads(const Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  Ints sizes = to_ints(x.shape());
  const auto heads = static_cast<std::ptrdiff_t>(x.rank() - 3);
  Ints wide = sizes;
  wide.insert(wide.begin() + heads + 1, times);
  sizes[static_cast<std::size_t>(heads)] *= times;
  return reshape(expand(unsqueeze(x, x.rank() - 2), wide), sizes);
}

// The transpose, for gradients: sums over the query heads that one head has served.
Tensor sum_heads(const Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  const Tensor groups = reshape(x, {x.size(0), x.size(1) / times, times, x.size(2), x.size(3)});
  return sum(groups, {2});
}

// The scores, with minus infinity at hidden positions.
Tensor masked(Tensor scores, const Tensor& mask, bool causal) {
  const double hidden = -HUGE_VAL;
  if (mask.defined())
    scores = mask.dtype() == DType::Bool ? where(mask, scores, hidden)
                                         : scores + cast(mask, scores.dtype());
  if (!causal) return scores;
  const Tensor query = unsqueeze(arange(0, scores.size(-2)), 1), key = arange(0, scores.size(-1));
  return where(ge(query, key), scores, hidden);
}

Tensor scores_of(const Tensor& q, const Tensor& k, const Tensor& mask,
                 const AttentionAttrs& attrs) {
  return masked(matmul(q * attrs.scale, transpose(k)), mask, attrs.causal);
}

// The weights of a query whose keys are all masked are 0, as in PyTorch, and so are its gradients.
Tensor weights_of(const Tensor& scores, bool masks) {
  if (!masks) return softmax(scores, -1);
  const Tensor sees_none = eq(amax(scores, {-1}, true), -HUGE_VAL);
  return where(sees_none, 0, softmax(where(sees_none, 0, scores), -1));
}

Tensor swap_heads(const Tensor& x) { return transpose(x, 1, 2); }

// 16-bit operands are cast to float32 and results are rounded once: the error of rounded scores
// would exceed the last digits of their exponentials.
Tensor at_least_float32(const Tensor& x) {
  return is_floating(x.dtype()) && item_size(x.dtype()) == 2 ? cast(x, DType::Float32) : x;
}

const AttentionAttrs& attention_attrs(const Node& node) { return node.attrs.as<AttentionAttrs>(); }

bool has_mask(const Node& node, int mask_at) {
  return node.input_count > mask_at + (drops_weights(node) ? 1 : 0);
}

// A uniform 24-bit number in [0, 1) is below the threshold / 2^24 with probability p.
constexpr double kNumbers = 1 << 24;

// The dropout input of the op.
Tensor dropping(double p, Generator generator) {
  std::int64_t draw = 0;
  const Tensor state = generator.next(&draw), at = arange(0, 3);
  const double below = std::ceil(static_cast<double>(static_cast<float>(p)) * kNumbers);
  const Tensor dropped = scalar(below, DType::Int64);
  return where(eq(at, 0), slice(state, 0, 0, 1),
               where(eq(at, 1), slice(state, 0, 1, 2) + draw, dropped));
}

// Attention's operands with heads before lengths and one key and value head for each query head,
// and the values computed from them.
class WrittenOut {
 public:
  WrittenOut(const Tensor& out, int mask_at)
      : attrs_(attention_attrs(*out.node())), precision_(attrs_.precision) {
    q_ = swap_heads(at_least_float32(input_of(out, kQuery)));
    groups_ = q_.size(1) / input_of(out, kKey).size(2);
    k_ = repeated(input_of(out, kKey));
    v_ = repeated(input_of(out, kValue));
    if (has_mask(*out.node(), mask_at)) mask_ = input_of(out, mask_at);
    if (drops_weights(*out.node())) {
      const Shape weights{q_.size(0), q_.size(1), q_.size(2), k_.size(2)};
      const Tensor drops = input_of(out, out.node()->input_count - 1);
      below_ = cast(slice(drops, 0, 2, 3), DType::Float64) * (1 / kNumbers);
      keep_ = ge(build_as(Op::Random, DType::Float32, weights, {slice(drops, 0, 0, 2)},
                          RandomAttrs{RandomKind::Uniform}),
                 cast(below_, DType::Float32));
    }
  }

  Tensor scores() const { return scores_of(q_, k_, mask_, attrs_); }
  Tensor weights() const { return weights_of(scores(), mask_.defined()); }
  Tensor result() const { return swap_heads(matmul(dropped(weights()), v_)); }

  // Applies dropout to weights or their gradient: dropped elements are zero, the others are scaled
  // up.
  Tensor dropped(const Tensor& x) const {
    return keep_.defined() ? where(keep_, x * cast(1 / (1 - below_), x.dtype()), 0.0) : x;
  }
  // The gradient with respect to the weights, given the result's gradient.
  Tensor weights_grad(const Tensor& g) const {
    return dropped(matmul(swap_heads(g), transpose(v_)));
  }
  // The gradient with respect to the scores, given the result's gradient.
  Tensor scores_grad(const Tensor& g) const {
    const Tensor p = weights(), dp = weights_grad(g);
    return p * (dp - sum(dp * p, {-1}, true));
  }
  Tensor query_grad(const Tensor& ds, const Tensor& k) const {
    return swap_heads(matmul(ds, k) * attrs_.scale);
  }
  Tensor key_grad(const Tensor& ds, const Tensor& q) const {
    return summed(matmul(transpose(ds), q * attrs_.scale));
  }
  Tensor value_grad(const Tensor& p, const Tensor& g) const {
    return summed(matmul(transpose(dropped(p)), swap_heads(g)));
  }

  Tensor repeated(const Tensor& x) const {
    return repeat_heads(swap_heads(at_least_float32(x)), groups_);
  }
  Tensor summed(const Tensor& x) const { return swap_heads(sum_heads(x, groups_)); }
  const Tensor& q() const { return q_; }
  const Tensor& k() const { return k_; }
  const Tensor& v() const { return v_; }
  double scale() const { return attrs_.scale; }

 private:
  const AttentionAttrs attrs_;
  const PrecisionScope precision_;  // of the products, as the op has captured it
  Tensor q_, k_, v_, mask_, keep_, below_;
  std::int64_t groups_ = 1;
};

// ---- Building ---------------------------------------------------------------------------------

Shape leading(const Tensor& x, int behind) { return Shape(x.shape().begin(), x.rank() - behind); }

// Converts [batch…, heads, length, size] to [batch, length, heads, size]; `lead` is the shape of
// the axes before the last two.
Tensor as_four_axes(const Tensor& x, const Shape& lead) {
  Ints sizes = to_ints(lead);
  sizes.insert(sizes.end(), {x.size(-2), x.size(-1)});
  Tensor y = broadcast_to(x, to_shape(sizes));
  while (y.rank() < 4) y = unsqueeze(y, 0);
  if (y.rank() > 4) y = reshape(y, {-1, y.size(-3), y.size(-2), y.size(-1)});
  return y;
}

struct Lead {
  Shape query, key;  // axes before length and size
};

// Adds leading axes of size 1.
Tensor with_rank(Tensor x, int rank) {
  while (x.rank() < rank) x = unsqueeze(x, 0);
  return x;
}

// The broadcast shape of the axes before the last two. With grouped heads the axis of heads is
// separate.
Lead lead_of(const Tensor& q, const Tensor& k, const Tensor& v, bool grouped) {
  const int behind = grouped ? 3 : 2;
  const Shape all = broadcast_shapes(
      broadcast_shapes(leading(q, behind), leading(k, behind), kName), leading(v, behind), kName);
  if (!grouped) return {all, all};
  Ints query = to_ints(all), key = query;
  query.push_back(q.size(-3));
  key.push_back(k.size(-3));
  return {to_shape(query), to_shape(key)};
}

Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                const AttentionAttrs& attrs, const AttentionOptions& options) {
  const Tensor weights = weights_of(scores_of(q, k, mask, attrs), mask.defined());
  return matmul(dropout(weights, options.dropout_p, options.dropout_p > 0, options.generator), v);
}

}  // namespace

bool drops_weights(const Node& node) {
  return op_info(node.op).kind == OpKind::Attention && !node.realised() &&
         node.input(node.input_count - 1)->dtype == DType::Int64;
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& mask, const AttentionOptions& options) {
  const Called called(kName);
  require_defined(kName, query, key, value);
  check(query, key, value);
  if (mask.defined() && mask.dtype() != DType::Bool && !is_floating(mask.dtype()))
    throw make_error<DTypeError>(where(kName), ": the mask is ", mask.dtype(),
                                 ", must be bool (true: seen) or floating (added to the scores)");
  const int rank = std::max({query.rank(), key.rank(), value.rank()});
  const Tensor q = with_rank(query, rank);
  Tensor k = with_rank(key, rank), v = with_rank(value, rank);
  if (options.enable_gqa) {
    if (rank < 3) refuse(query, key, value, "grouped heads need an axis of heads");
    const std::int64_t heads = q.size(-3), of_key = k.size(-3), of_value = v.size(-3);
    if (of_key < 1 || of_value < 1 || heads % of_key != 0 || heads % of_value != 0)
      refuse(query, key, value,
             "the query's number of heads is not a multiple of the key's and value's");
    if (of_key != of_value) {
      k = repeat_heads(k, heads / of_key);
      v = repeat_heads(v, heads / of_value);
    }
  }
  AttentionAttrs attrs;
  attrs.scale =
      options.scale != 0
          ? options.scale
          : 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(query.size(-1), 1)));
  attrs.causal = options.causal;
  if (query.dtype() == DType::Float32) attrs.precision = current_precision();
  const Lead lead = lead_of(q, k, v, options.enable_gqa);
  const bool empty = q.numel() == 0 || k.numel() == 0 || v.numel() == 0;
  const bool drops_some = options.dropout_p > 0 && options.dropout_p < 1;
  if (empty || (options.dropout_p != 0 && !drops_some)) {
    const std::int64_t groups = options.enable_gqa && k.size(-3) > 0 ? q.size(-3) / k.size(-3) : 1;
    return composed(q, repeat_heads(k, groups), repeat_heads(v, groups), mask, attrs, options);
  }
  std::vector<Tensor> inputs = {swap_heads(as_four_axes(q, lead.query)),
                                swap_heads(as_four_axes(k, lead.key)),
                                swap_heads(as_four_axes(v, lead.key))};
  Ints sizes = to_ints(lead.query);
  sizes.insert(sizes.end(), {query.size(-2), key.size(-2)});
  if (mask.defined()) {
    broadcast_shapes(mask.shape(), to_shape(sizes), kName);
    // Kernels read masks of floating dtypes of up to 32 bits.
    const bool is_wider = mask.dtype() == DType::Float64 && query.dtype() != DType::Float64;
    const Tensor read = is_wider ? cast(mask, DType::Float32) : mask;
    inputs.push_back(as_four_axes(broadcast_to(read, to_shape(sizes)), lead.query));
  }
  if (drops_some) {
    inputs.push_back(dropping(options.dropout_p, options.generator.value_or(Generator::current())));
  }
  const Tensor y = swap_heads(result_of(build(Op::Attention, inputs, attrs), 0));
  sizes.back() = value.size(-1);
  return reshape(y, sizes);
}

// ---- Inference --------------------------------------------------------------------------------

namespace {

void require(const Node& node, bool holds, const char* what) {
  if (!holds) throw make_error<ShapeError>(where(node), ": ", what);
}

void check_operands(const Node& node, int mask_at) {
  const int inputs = node.input_count - (drops_weights(node) ? 1 : 0);
  require(node, inputs == mask_at || inputs == mask_at + 1,
          "takes query, key, value and may take a mask");
  const Shape &q = node.input(kQuery)->shape, &k = node.input(kKey)->shape,
              &v = node.input(kValue)->shape;
  require(node, q.rank() == 4 && k.rank() == 4 && v.rank() == 4,
          "operands are [batch, length, heads, size]");
  require(node, q[0] == k[0] && q[0] == v[0] && k[1] == v[1] && k[2] == v[2] && q[3] == k[3],
          "query, key and value do not fit");
  require(node, k[2] > 0 && q[2] % k[2] == 0,
          "the query's number of heads is not a multiple of the key's");
  require(node, q.numel() > 0 && k.numel() > 0 && v.numel() > 0, "an operand is empty");
  if (mask_at == kGradMask) {
    const Shape result{q[0], q[1], q[2], v[3]};
    require(node,
            node.input(kResult)->shape == result && node.input(kOutputGrad)->shape == result &&
                node.input(kLogSumExp)->shape == Shape({q[0], q[2], q[1]}),
            "the result, its log-sum-exp or its gradient does not fit");
  }
  if (inputs < node.input_count)
    require(node, node.input(inputs)->shape == Shape{3},
            "the dropout input must be int64[3] (seed, counter, threshold of 2^24)");
  if (inputs == mask_at) return;
  require(node, node.input(mask_at)->shape == Shape({q[0], q[2], q[1], k[1]}),
          "the mask is not [batch, heads, length of the query, length of the key]");
}

// The logsumexp has the dtype of the sums.
DType log_dtype(const Node& node) {
  return node.input(kQuery)->dtype == DType::Float64 ? DType::Float64 : DType::Float32;
}

}  // namespace

Inferred infer_attention_result(const Node& node, std::int64_t k) {
  check_operands(node, kMask);
  const Shape &q = node.input(kQuery)->shape, &v = node.input(kValue)->shape;
  if (k == 1) return {log_dtype(node), {q[0], q[2], q[1]}};
  return {node.input(kQuery)->dtype, {q[0], q[1], q[2], v[3]}};
}
Inferred infer_attention(const Node& node) { return infer_attention_result(node, 0); }
std::int64_t count_attention_results(const Node&) { return 2; }

Inferred infer_attention_grad_result(const Node& node, std::int64_t k) {
  check_operands(node, kGradMask);
  const Node& of = *node.input(static_cast<int>(k));
  return {of.dtype, of.shape};
}
Inferred infer_attention_grad(const Node& node) { return infer_attention_grad_result(node, 0); }
std::int64_t count_attention_grad_results(const Node&) { return 3; }

// ---- Decompositions ---------------------------------------------------------------------------

Tensor decompose_attention(const Tensor& out, std::int64_t k) {
  const WrittenOut w(out, kMask);
  if (k == 0) return cast(w.result(), out.node()->input(kQuery)->dtype);
  const Tensor scores = w.scores(), largest = amax(scores, {-1}, true),
               shift = where(eq(largest, -HUGE_VAL), 0, largest);
  return cast(squeeze(shift, -1) + log(sum(exp(scores - shift), {-1})), log_dtype(*out.node()));
}

Tensor decompose_attention_grad(const Tensor& out, std::int64_t k) {
  const WrittenOut w(out, kGradMask);
  const Tensor g = at_least_float32(input_of(out, kOutputGrad));
  const DType dtype = out.node()->input(static_cast<int>(k))->dtype;
  if (k == kValue) return cast(w.value_grad(w.weights(), g), dtype);
  const Tensor ds = w.scores_grad(g);
  return cast(k == kQuery ? w.query_grad(ds, w.k()) : w.key_grad(ds, w.q()), dtype);
}

// ---- Gradients --------------------------------------------------------------------------------

Gradients vjp_attention(const Tensor& out, std::span<const Tensor> cotangents) {
  const Tensor& g = cotangents[0];
  const AttentionAttrs& attrs = attention_attrs(*out.node());
  const bool masks = has_mask(*out.node(), kMask);
  if (!g.defined()) return Gradients(static_cast<std::size_t>(out.node()->input_count));
  std::vector<Tensor> inputs = {input_of(out, kQuery), input_of(out, kKey), input_of(out, kValue),
                                result_of(out, 0),     result_of(out, 1),   g};
  if (masks) inputs.push_back(input_of(out, kMask));
  if (drops_weights(*out.node())) inputs.push_back(input_of(out, out.node()->input_count - 1));
  Gradients gradients = results_of(build(Op::AttentionGrad, inputs, attrs));
  gradients.resize(static_cast<std::size_t>(out.node()->input_count));
  if (!masks) return gradients;
  const Tensor mask = input_of(out, kMask);
  if (is_floating(mask.dtype()))
    gradients[kMask] = cast(WrittenOut(out, kMask).scores_grad(at_least_float32(g)), mask.dtype());
  return gradients;
}

// With p the weights, D the dropout, dp = D(g vᵀ), d = rowsum(dp p), ds = p (dp - d): dq = scale ds
// k, dk = scale dsᵀ q, dv = D(p)ᵀ g. The result and the logsumexp are functions of the other
// inputs, so gradients through them are attributed to those inputs.
Gradients vjp_attention_grad(const Tensor& out, std::span<const Tensor> cotangents) {
  const WrittenOut w(out, kGradMask);
  const Tensor g = at_least_float32(input_of(out, kOutputGrad)), p = w.weights();
  const Tensor dp = w.weights_grad(g);
  const Tensor centred = dp - sum(dp * p, {-1}, true), ds = p * centred;
  const auto plus = [](Tensor& to, const Tensor& x) { to = to.defined() ? to + x : x; };
  const auto of_result = [&](int k) {
    const Tensor& given = cotangents[static_cast<std::size_t>(k)];
    return given.defined() ? at_least_float32(given) : given;
  };
  const auto rounded = [&](const Tensor& x, int input) {
    return x.defined() ? cast(x, out.node()->input(input)->dtype) : x;
  };
  Tensor to_q, to_k, to_v, to_g, to_p, of_ds;  // gradients with respect to each
  if (const Tensor gq = of_result(kQuery); gq.defined()) {
    plus(of_ds, matmul(swap_heads(gq) * w.scale(), transpose(w.k())));
    plus(to_k, w.key_grad(ds, swap_heads(gq)));
  }
  if (const Tensor gk = of_result(kKey); gk.defined()) {
    plus(of_ds, matmul(w.q() * w.scale(), transpose(w.repeated(gk))));
    plus(to_q, w.query_grad(ds, w.repeated(gk)));
  }
  if (const Tensor gv = of_result(kValue); gv.defined()) {
    plus(to_p, w.dropped(matmul(swap_heads(g), transpose(w.repeated(gv)))));
    plus(to_g, swap_heads(matmul(w.dropped(p), w.repeated(gv))));
  }
  if (of_ds.defined()) {
    const Tensor mean = sum(of_ds * p, {-1}, true), of_dp = p * (of_ds - mean);
    plus(to_p, of_ds * centred - dp * mean);
    plus(to_g, swap_heads(matmul(w.dropped(of_dp), w.v())));
    plus(to_v, w.value_grad(of_dp, g));
  }
  Gradients gradients(static_cast<std::size_t>(out.node()->input_count));
  if (!to_p.defined()) return gradients;
  const Tensor of_scores = p * (to_p - sum(to_p * p, {-1}, true));
  plus(to_q, w.query_grad(of_scores, w.k()));
  plus(to_k, w.key_grad(of_scores, w.q()));
  gradients[kQuery] = rounded(to_q, kQuery);
  gradients[kKey] = rounded(to_k, kKey);
  gradients[kValue] = rounded(to_v, kValue);
  gradients[kOutputGrad] = rounded(to_g, kOutputGrad);
  if (has_mask(*out.node(), kGradMask) && is_floating(input_of(out, kGradMask).dtype()))
    gradients[kGradMask] = cast(of_scores, input_of(out, kGradMask).dtype());
  return gradients;
}

}  // namespace tenon
