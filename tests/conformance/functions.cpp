// Calls the ops of samples by name: adapters.py's names with Tenon's functions.
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>

#include <tenon/functional.h>
#include <tenon/pooling.h>

#include "conformance/arguments.h"
#include "conformance/composed_functions.h"
#include "conformance/samples.h"

using namespace tenon;

namespace conformance {
namespace {

Scalar scalar_of(const Operand& operand) { return std::get<Scalar>(operand); }
bool is_tensor(const Operand& operand) { return std::holds_alternative<Tensor>(operand); }
Tensor optional(const In& in, std::size_t k) { return k < in.size() ? tensor(in[k]) : Tensor(); }

Shape shape(const json& args) {
  const Ints sizes = ints(args, "sizes");
  return Shape(sizes.data(), static_cast<int>(sizes.size()));
}

/// One view of a random chain (fuzz.py, step()).
Tensor step(const Tensor& x, const json& what) {
  const auto kind = what.at(0).get<std::string>();
  if (kind == "permute") return permute(x, what.at(1));
  if (kind == "slice") return slice(x, what.at(1), what.at(2), what.at(3), what.at(4));
  if (kind == "flip") return flip(x, what.at(1));
  if (kind == "expand") return expand(x, what.at(1));
  if (kind == "select") return select(x, what.at(1), what.at(2));
  if (kind == "unsqueeze") return unsqueeze(x, what.at(1));
  if (kind == "reshape") return reshape(x, what.at(1));
  return mul(x, x);
}

void add_unary(Functions& f) {
#define TENON_ONE(name) \
  f[#name] = [](const In& in, const json&) -> Out { return {name(tensor(in[0]))}; };
  // clang-format off
  TENON_ONE(neg) TENON_ONE(abs) TENON_ONE(sign) TENON_ONE(exp) TENON_ONE(expm1) TENON_ONE(log)
  TENON_ONE(log1p) TENON_ONE(sqrt) TENON_ONE(rsqrt) TENON_ONE(reciprocal) TENON_ONE(square)
  TENON_ONE(sin) TENON_ONE(cos) TENON_ONE(tanh) TENON_ONE(sigmoid) TENON_ONE(relu) TENON_ONE(erf)
  TENON_ONE(floor) TENON_ONE(ceil) TENON_ONE(round) TENON_ONE(trunc) TENON_ONE(logical_not)
  TENON_ONE(isnan) TENON_ONE(isinf) TENON_ONE(isfinite) TENON_ONE(silu) TENON_ONE(softsign)
  TENON_ONE(log2) TENON_ONE(log10) TENON_ONE(exp2) TENON_ONE(tan) TENON_ONE(mish)
  TENON_ONE(hardtanh) TENON_ONE(relu6) TENON_ONE(hardsigmoid) TENON_ONE(sinh) TENON_ONE(cosh)
  TENON_ONE(zeros_like) TENON_ONE(ones_like) TENON_ONE(asin) TENON_ONE(acos) TENON_ONE(atan)
  TENON_ONE(hardswish) TENON_ONE(selu) TENON_ONE(logsigmoid)
  // clang-format on
#undef TENON_ONE
                                              f["gelu"] = [](const In& in, const json& a) -> Out {
    return {gelu(tensor(in[0]), flag(a, "tanh"))};
  };
  f["leaky_relu"] = [](const In& in, const json& a) -> Out {
    return {leaky_relu(tensor(in[0]), real(a, "slope", 0.01))};
  };
  f["elu"] = [](const In& in, const json& a) -> Out {
    return {elu(tensor(in[0]), real(a, "alpha", 1))};
  };
  f["softplus"] = [](const In& in, const json& a) -> Out {
    return {softplus(tensor(in[0]), real(a, "beta", 1), real(a, "threshold", 20))};
  };
  f["clamp"] = [](const In& in, const json& a) -> Out {
    return {clamp(tensor(in[0]), number(a.at("low")), number(a.at("high")))};
  };
  f["cast"] = [](const In& in, const json& a) -> Out { return {cast(tensor(in[0]), dtype(a))}; };
}

void add_binary(Functions& f) {
#define TENON_TWO(name)                                                    \
  f[#name] = [](const In& in, const json&) -> Out {                        \
    if (!is_tensor(in[0])) return {name(scalar_of(in[0]), tensor(in[1]))}; \
    if (!is_tensor(in[1])) return {name(tensor(in[0]), scalar_of(in[1]))}; \
    return {name(tensor(in[0]), tensor(in[1]))};                           \
  };
  // clang-format off
  TENON_TWO(add) TENON_TWO(sub) TENON_TWO(mul) TENON_TWO(div) TENON_TWO(pow) TENON_TWO(maximum)
  TENON_TWO(minimum) TENON_TWO(remainder) TENON_TWO(floor_divide) TENON_TWO(eq) TENON_TWO(ne)
  TENON_TWO(lt) TENON_TWO(le) TENON_TWO(gt) TENON_TWO(ge) TENON_TWO(logical_and)
  TENON_TWO(logical_or) TENON_TWO(logical_xor) TENON_TWO(atan2)
  // clang-format on
#undef TENON_TWO
                  f["where"] = [](const In& in, const json&) -> Out {
    const Tensor& c = tensor(in[0]);
    if (!is_tensor(in[1])) return {where(c, scalar_of(in[1]), tensor(in[2]))};
    if (!is_tensor(in[2])) return {where(c, tensor(in[1]), scalar_of(in[2]))};
    return {where(c, tensor(in[1]), tensor(in[2]))};
  };
}

void add_reductions(Functions& f) {
#define TENON_OVER(name)                                               \
  f[#name] = [](const In& in, const json& a) -> Out {                  \
    return {name(tensor(in[0]), ints(a, "axes"), flag(a, "keepdim"))}; \
  };
  // clang-format off
  TENON_OVER(sum) TENON_OVER(prod) TENON_OVER(mean) TENON_OVER(amax) TENON_OVER(amin)
  TENON_OVER(all) TENON_OVER(any) TENON_OVER(logsumexp) TENON_OVER(norm)
  // clang-format on
#undef TENON_OVER
          f["var"] = [](const In& in, const json& a) -> Out {
    return {var(tensor(in[0]), ints(a, "axes"), flag(a, "keepdim"), real(a, "correction", 1))};
  };
  f["argmax"] = [](const In& in, const json& a) -> Out {
    return {argmax(tensor(in[0]), a.at("axis"), flag(a, "keepdim"))};
  };
  f["argmin"] = [](const In& in, const json& a) -> Out {
    return {argmin(tensor(in[0]), a.at("axis"), flag(a, "keepdim"))};
  };
  f["softmax"] = [](const In& in, const json& a) -> Out {
    return {softmax(tensor(in[0]), a.at("axis"))};
  };
  f["log_softmax"] = [](const In& in, const json& a) -> Out {
    return {log_softmax(tensor(in[0]), a.at("axis"))};
  };
}

void add_shapes(Functions& f) {
#define TENON_SHAPE(name, ...) \
  f[#name] = [](const In& in, const json& a) -> Out { return {name(tensor(in[0]), __VA_ARGS__)}; };
  TENON_SHAPE(reshape, ints(a, "sizes"))
  TENON_SHAPE(flatten, a.at("start"), a.at("end"))
  TENON_SHAPE(permute, ints(a, "axes"))
  TENON_SHAPE(transpose, a.at("a"), a.at("b"))
  TENON_SHAPE(expand, ints(a, "sizes"))
  TENON_SHAPE(broadcast_to, shape(a))
  TENON_SHAPE(squeeze, a.at("axis"))
  TENON_SHAPE(unsqueeze, a.at("axis"))
  TENON_SHAPE(slice, a.at("axis"), a.at("start"), a.at("end"), a.at("step"))
  TENON_SHAPE(select, a.at("axis"), a.at("index"))
  TENON_SHAPE(flip, ints(a, "axes"))
  TENON_SHAPE(pad, ints(a, "padding"), number(a.at("value")))
  TENON_SHAPE(gather, a.at("axis"), tensor(in[1]))
  TENON_SHAPE(scatter_add, a.at("axis"), tensor(in[1]), tensor(in[2]))
  TENON_SHAPE(index_select, a.at("axis"), tensor(in[1]))
  TENON_SHAPE(one_hot, a.at("classes").get<std::int64_t>())
#undef TENON_SHAPE
  f["split"] = [](const In& in, const json& a) {
    return split(tensor(in[0]), a.at("size").get<std::int64_t>(), a.at("axis").get<int>());
  };
  const auto tensors = [](const In& in) {
    Out out;
    for (const Operand& operand : in) out.push_back(tensor(operand));
    return out;
  };
  f["concat"] = [tensors](const In& in, const json& a) -> Out {
    return {concat(tensors(in), a.at("axis"))};
  };
  f["stack"] = [tensors](const In& in, const json& a) -> Out {
    return {stack(tensors(in), a.at("axis"))};
  };
  f["views"] = [](const In& in, const json& a) -> Out {
    Tensor x = tensor(in[0]);
    for (const json& what : a.at("steps")) x = step(x, what);
    return {x};
  };
  f["full"] = [](const In&, const json& a) -> Out {
    return {full(shape(a), number(a.at("value")), dtype(a))};
  };
  f["arange"] = [](const In&, const json& a) -> Out {
    return {arange(number(a.at("start")), number(a.at("end")), number(a.at("step")), dtype(a))};
  };
}

/// The indices of x[…]; index tensors are operands.
std::vector<Index> indices(const In& in, const json& parts) {
  const auto end = [](const json& place) {
    return place.is_null() ? std::optional<std::int64_t>() : place.get<std::int64_t>();
  };
  std::vector<Index> all;
  for (const json& part : parts) {
    const auto kind = part.at(0).get<std::string>();
    if (kind == "tensor") all.emplace_back(tensor(in[part.at(1).get<std::size_t>()]));
    if (kind == "number") all.emplace_back(part.at(1).get<std::int64_t>());
    if (kind == "slice")
      all.emplace_back(Slice(end(part.at(1)), end(part.at(2)), part.at(3).get<std::int64_t>()));
    if (kind == "new axis") all.emplace_back(new_axis);
    if (kind == "rest") all.emplace_back(ellipsis);
  }
  return all;
}

EmbeddingOptions rows_of(const json& a) {
  EmbeddingOptions o;
  if (a.contains("padding")) o.padding_index = a.at("padding").get<std::int64_t>();
  if (a.contains("most")) o.max_norm = real(a, "most", 1);
  o.norm_type = real(a, "p", 2);
  o.scale_grad_by_freq = flag(a, "shares");
  return o;
}

void add_indexing(Functions& f) {
  f["index"] = [](const In& in, const json& a) -> Out {
    return {tensor(in[0]).index(indices(in, a.at("parts")))};
  };
  f["index_put"] = [](const In& in, const json& a) -> Out {
    return {
        tensor(in[0]).index_put(indices(in, a.at("parts")), tensor(in[1]), flag(a, "accumulate"))};
  };
  f["scatter"] = [](const In& in, const json& a) -> Out {
    const auto axis = a.at("axis").get<int>();
    if (is_tensor(in[2])) return {scatter(tensor(in[0]), axis, tensor(in[1]), tensor(in[2]))};
    return {scatter(tensor(in[0]), axis, tensor(in[1]), scalar_of(in[2]))};
  };
  f["embedding"] = [](const In& in, const json& a) -> Out {
    return {embedding(tensor(in[1]), tensor(in[0]), rows_of(a))};
  };
  f["embedding_bag"] = [](const In& in, const json& a) -> Out {
    const EmbeddingOptions rows = rows_of(a);
    EmbeddingBagOptions o{rows.padding_index, rows.max_norm, rows.norm_type,
                          rows.scale_grad_by_freq};
    const auto mode = a.at("mode").get<std::string>();
    o.mode = mode == "sum" ? BagMode::Sum : mode == "mean" ? BagMode::Mean : BagMode::Max;
    std::size_t k = 2;
    const Tensor offsets = flag(a, "offsets") ? tensor(in[k++]) : Tensor();
    const Tensor weights = flag(a, "weights") ? tensor(in[k]) : Tensor();
    o.include_last_offset = flag(a, "last");
    return {embedding_bag(tensor(in[1]), tensor(in[0]), offsets, o, weights)};
  };
  f["chunk"] = [](const In& in, const json& a) -> Out {
    return chunk(tensor(in[0]), a.at("count"), a.at("axis"));
  };
  f["unbind"] = [](const In& in, const json& a) -> Out {
    return unbind(tensor(in[0]), a.at("axis"));
  };
  f["isclose"] = [](const In& in, const json& a) -> Out {
    return {isclose(tensor(in[0]), tensor(in[1]), real(a, "rtol", 1e-5), real(a, "atol", 1e-8),
                    flag(a, "equal_nan"))};
  };
  f["meshgrid"] = [](const In& in, const json& a) -> Out {
    Out vectors;
    for (const Operand& operand : in) vectors.push_back(tensor(operand));
    return meshgrid(vectors, flag(a, "columns_first"));
  };
}

void add_contractions(Functions& f) {
  f["matmul"] = [](const In& in, const json&) -> Out {
    return {matmul(tensor(in[0]), tensor(in[1]))};
  };
  f["linear"] = [](const In& in, const json&) -> Out {
    return {linear(tensor(in[0]), tensor(in[1]), optional(in, 2))};
  };
  f["conv2d"] = [](const In& in, const json& a) -> Out {
    Conv2dOptions o;
    o.stride = pair(a, "stride"), o.padding = pair(a, "padding");
    o.dilation = pair(a, "dilation"), o.groups = a.at("groups");
    return {conv2d(tensor(in[0]), tensor(in[1]), optional(in, 2), o)};
  };
}

ClassLossOptions of_classes(const In& in, const json& a) {
  ClassLossOptions o{reduction(a), real(a, "smoothing", 0), optional(in, 2), {}};
  if (a.contains("ignore")) o.ignore_index = a.at("ignore").get<std::int64_t>();
  return o;
}

void add_losses(Functions& f) {
#define TENON_LOSS(name, ...)                                                             \
  f[#name] = [](const In& in, const json& a) -> Out {                                     \
    return {name(tensor(in[0]), tensor(in[1]), reduction(a) __VA_OPT__(, ) __VA_ARGS__)}; \
  };
  TENON_LOSS(mse_loss)
  TENON_LOSS(l1_loss)
  TENON_LOSS(binary_cross_entropy_with_logits)
  TENON_LOSS(smooth_l1_loss, real(a, "beta", 1))
  TENON_LOSS(huber_loss, real(a, "delta", 1))
#undef TENON_LOSS
  f["kl_div"] = [](const In& in, const json& a) -> Out {
    const Tensor loss = kl_div(tensor(in[0]), tensor(in[1]), reduction(a), flag(a, "log"));
    return {a.contains("batch") ? loss / a.at("batch").get<double>() : loss};
  };
  f["binary_cross_entropy"] = [](const In& in, const json& a) -> Out {
    return {binary_cross_entropy(tensor(in[0]), tensor(in[1]),
                                 {.reduction = reduction(a), .weight = optional(in, 2)})};
  };
  f["cross_entropy"] = [](const In& in, const json& a) -> Out {
    const ClassLossOptions o = of_classes(in, a);
    if (!o.weight.defined() && !o.ignore_index)
      return {cross_entropy(tensor(in[0]), tensor(in[1]), o.reduction, o.label_smoothing)};
    return {cross_entropy(tensor(in[0]), tensor(in[1]), o)};
  };
  f["nll_loss"] = [](const In& in, const json& a) -> Out {
    const ClassLossOptions o = of_classes(in, a);
    if (!o.weight.defined() && !o.ignore_index)
      return {nll_loss(tensor(in[0]), tensor(in[1]), o.reduction)};
    return {nll_loss(tensor(in[0]), tensor(in[1]), o)};
  };
}

void add_arguments(Functions& f) {
  f["celu"] = [](const In& in, const json& a) -> Out {
    return {celu(tensor(in[0]), real(a, "alpha", 1))};
  };
  f["glu"] = [](const In& in, const json& a) -> Out { return {glu(tensor(in[0]), a.at("axis"))}; };
  f["prelu"] = [](const In& in, const json&) -> Out {
    return {prelu(tensor(in[0]), tensor(in[1]))};
  };
  f["logaddexp"] = [](const In& in, const json&) -> Out {
    return {logaddexp(tensor(in[0]), tensor(in[1]))};
  };
  f["lerp"] = [](const In& in, const json&) -> Out {
    return {lerp(tensor(in[0]), tensor(in[1]), tensor(in[2]))};
  };
  f["cosine_similarity"] = [](const In& in, const json& a) -> Out {
    return {cosine_similarity(tensor(in[0]), tensor(in[1]), a.at("axis"), real(a, "eps", 1e-8))};
  };
  f["stddev"] = [](const In& in, const json& a) -> Out {
    return {stddev(tensor(in[0]), ints(a, "axes"), flag(a, "keepdim"), real(a, "correction", 1))};
  };
  f["vector_norm"] = [](const In& in, const json& a) -> Out {
    return {vector_norm(tensor(in[0]), real(a, "p", 2), ints(a, "axes"), flag(a, "keepdim"))};
  };
}

void add_norms(Functions& f) {
  f["layer_norm"] = [](const In& in, const json& a) -> Out {
    return {layer_norm(tensor(in[0]), shape(a), optional(in, 1), optional(in, 2),
                       real(a, "eps", 1e-5))};
  };
  f["rms_norm"] = [](const In& in, const json& a) -> Out {
    std::optional<double> eps;
    if (a.contains("eps")) eps = real(a, "eps", 0);
    return {rms_norm(tensor(in[0]), shape(a), optional(in, 1), eps)};
  };
  f["group_norm"] = [](const In& in, const json& a) -> Out {
    return {group_norm(tensor(in[0]), a.at("groups"), optional(in, 1), optional(in, 2),
                       real(a, "eps", 1e-5))};
  };
  f["batch_norm"] = [](const In& in, const json& a) -> Out {
    return {batch_norm(tensor(in[0]), tensor(in[1]), tensor(in[2]), optional(in, 3),
                       optional(in, 4), real(a, "eps", 1e-5))};
  };
  f["batch_norm_of_the_batch"] = [](const In& in, const json& a) -> Out {
    const Moments m = batch_moments(tensor(in[0]));
    return {batch_norm(tensor(in[0]), m.mean, m.var, optional(in, 1), optional(in, 2),
                       real(a, "eps", 1e-5))};
  };
  f["instance_norm"] = [](const In& in, const json& a) -> Out {
    return {instance_norm(tensor(in[0]), optional(in, 1), optional(in, 2), real(a, "eps", 1e-5))};
  };
  f["local_response_norm"] = [](const In& in, const json& a) -> Out {
    return {local_response_norm(tensor(in[0]), a.at("size"), real(a, "alpha", 1e-4),
                                real(a, "beta", 0.75), real(a, "k", 1))};
  };
  f["scaled_dot_product_attention"] = [](const In& in, const json& a) -> Out {
    AttentionOptions o;
    o.causal = flag(a, "causal"), o.enable_gqa = flag(a, "grouped"), o.scale = real(a, "scale", 0);
    return {scaled_dot_product_attention(tensor(in[0]), tensor(in[1]), tensor(in[2]),
                                         optional(in, 3), o)};
  };
}

void add_orders(Functions& f) {
  f["sort"] = [](const In& in, const json& a) {
    return both(sort(tensor(in[0]), a.at("axis"), flag(a, "descending")));
  };
  f["argsort"] = [](const In& in, const json& a) -> Out {
    return {argsort(tensor(in[0]), a.at("axis"), flag(a, "descending"))};
  };
  f["topk"] = [](const In& in, const json& a) {
    return both(topk(tensor(in[0]), a.at("count"), a.at("axis"), flag(a, "largest")));
  };
  f["max"] = [](const In& in, const json& a) {
    return both(max(tensor(in[0]), a.at("axis").get<int>(), flag(a, "keepdim")));
  };
  f["min"] = [](const In& in, const json& a) {
    return both(min(tensor(in[0]), a.at("axis").get<int>(), flag(a, "keepdim")));
  };
#define TENON_SHAPE(name, ...) \
  f[#name] = [](const In& in, const json& a) -> Out { return {name(tensor(in[0]), __VA_ARGS__)}; };
  const auto result_dtype = [](const json& a) {
    return a.contains("dtype") ? std::optional(dtype(a)) : std::nullopt;
  };
  f["cumsum"] = [result_dtype](const In& in, const json& a) -> Out {
    return {cumsum(tensor(in[0]), a.at("axis").get<int>(), result_dtype(a))};
  };
  f["cumprod"] = [result_dtype](const In& in, const json& a) -> Out {
    return {cumprod(tensor(in[0]), a.at("axis").get<int>(), result_dtype(a))};
  };
  TENON_SHAPE(roll, ints(a, "shifts"), ints(a, "axes"))
  TENON_SHAPE(repeat, ints(a, "sizes"))
  TENON_SHAPE(repeat_interleave, a.at("count"), a.at("axis"))
  TENON_SHAPE(tril, a.at("diagonal"))
  TENON_SHAPE(triu, a.at("diagonal"))
  TENON_SHAPE(masked_fill, tensor(in[1]), number(a.at("value")))
  TENON_SHAPE(index_add, a.at("axis"), tensor(in[1]), tensor(in[2]), number(a.at("alpha")))
#undef TENON_SHAPE
}

Triple triple(const json& args, const char* key) {
  return {args.at(key).at(0), args.at(key).at(1), args.at(key).at(2)};
}

void set(std::int64_t& size, const json& a, const char* key) { size = a.at(key).at(0); }
void set(Pair& sizes, const json& a, const char* key) { sizes = pair(a, key); }
void set(Triple& sizes, const json& a, const char* key) { sizes = triple(a, key); }

/// The stride, padding, dilation and groups of a convolution.
template <class Options>
void set_window(Options& o, const json& a) {
  set(o.stride, a, "stride");
  set(o.padding, a, "padding");
  set(o.dilation, a, "dilation");
  o.groups = a.at("groups");
}

template <class Options>
Options with_modes(Options o, const json& a) {
  o.ceil_mode = flag(a, "ceil");
  o.count_include_pad = a.value("count_pad", 1) != 0;
  return o;
}
Pool1dOptions pool1d(const json& a) {
  Pool1dOptions o;
  o.kernel = a.at("kernel").at(0), o.stride = a.at("stride").at(0);
  o.padding = a.at("padding").at(0), o.divisor = a.value("divisor", 0);
  if (a.contains("dilation")) o.dilation = a.at("dilation").at(0);
  return with_modes(o, a);
}
Pool2dOptions pool2d(const json& a) {
  Pool2dOptions o;
  o.kernel = pair(a, "kernel"), o.stride = pair(a, "stride"), o.padding = pair(a, "padding");
  if (a.contains("dilation")) o.dilation = pair(a, "dilation");
  return with_modes(o, a);
}
Pool3dOptions pool3d(const json& a) {
  Pool3dOptions o;
  o.kernel = triple(a, "kernel"), o.stride = triple(a, "stride");
  o.padding = triple(a, "padding"), o.divisor = a.value("divisor", 0);
  if (a.contains("dilation")) o.dilation = triple(a, "dilation");
  return with_modes(o, a);
}

void add_places(Functions& f) {
#define TENON_PLACES(name, argument) \
  f[#name] = [](const In& in, const json& a) -> Out { return both(name(tensor(in[0]), argument)); };
  TENON_PLACES(max_pool1d_with_indices, pool1d(a))
  TENON_PLACES(max_pool2d_with_indices, pool2d(a))
  TENON_PLACES(max_pool3d_with_indices, pool3d(a))
  TENON_PLACES(adaptive_max_pool1d_with_indices, a.at("sizes").at(0))
  TENON_PLACES(adaptive_max_pool2d_with_indices, pair(a, "sizes"))
  TENON_PLACES(adaptive_max_pool3d_with_indices, triple(a, "sizes"))
#undef TENON_PLACES
#define TENON_UNPOOL(name, options, Sizes, sizes)                                   \
  f[#name] = [](const In& in, const json& a) -> Out {                               \
    const std::optional<Sizes> output =                                             \
        a.contains("sizes") ? std::optional<Sizes>(sizes) : std::optional<Sizes>(); \
    return {name(tensor(in[0]), tensor(in[1]), options(a), output)};                \
  };
  TENON_UNPOOL(max_unpool1d, pool1d, std::int64_t, a.at("sizes").at(0).get<std::int64_t>())
  TENON_UNPOOL(max_unpool2d, pool2d, Pair, pair(a, "sizes"))
  TENON_UNPOOL(max_unpool3d, pool3d, Triple, triple(a, "sizes"))
#undef TENON_UNPOOL
}

void add_convolutions(Functions& f) {
#define TENON_CONV(name, Options, output_padding_of)                 \
  f[#name] = [](const In& in, const json& a) -> Out {                \
    Options o;                                                       \
    set_window(o, a);                                                \
    output_padding_of;                                               \
    return {name(tensor(in[0]), tensor(in[1]), optional(in, 2), o)}; \
  };
  TENON_CONV(conv1d, Conv1dOptions, (void)0)
  TENON_CONV(conv3d, Conv3dOptions, (void)0)
  TENON_CONV(conv_transpose1d, ConvTranspose1dOptions, set(o.output_padding, a, "output_padding"))
  TENON_CONV(conv_transpose2d, ConvTranspose2dOptions, set(o.output_padding, a, "output_padding"))
  TENON_CONV(conv_transpose3d, ConvTranspose3dOptions, set(o.output_padding, a, "output_padding"))
#undef TENON_CONV
  f["max_pool1d"] = [](const In& in, const json& a) -> Out {
    return {max_pool1d(tensor(in[0]), pool1d(a))};
  };
  f["avg_pool1d"] = [](const In& in, const json& a) -> Out {
    return {avg_pool1d(tensor(in[0]), pool1d(a))};
  };
  f["max_pool2d"] = [](const In& in, const json& a) -> Out {
    return {max_pool2d(tensor(in[0]), pool2d(a))};
  };
  f["avg_pool2d"] = [](const In& in, const json& a) -> Out {
    return {avg_pool2d(tensor(in[0]), pool2d(a), a.value("divisor", 0))};
  };
  f["max_pool3d"] = [](const In& in, const json& a) -> Out {
    return {max_pool3d(tensor(in[0]), pool3d(a))};
  };
  f["avg_pool3d"] = [](const In& in, const json& a) -> Out {
    return {avg_pool3d(tensor(in[0]), pool3d(a))};
  };
  add_places(f);
#define TENON_ADAPTIVE(name, sizes) \
  f[#name] = [](const In& in, const json& a) -> Out { return {name(tensor(in[0]), sizes)}; };
  TENON_ADAPTIVE(adaptive_avg_pool1d, a.at("sizes").at(0))
  TENON_ADAPTIVE(adaptive_max_pool1d, a.at("sizes").at(0))
  TENON_ADAPTIVE(adaptive_avg_pool2d, pair(a, "sizes"))
  TENON_ADAPTIVE(adaptive_max_pool2d, pair(a, "sizes"))
  TENON_ADAPTIVE(adaptive_avg_pool3d, triple(a, "sizes"))
  TENON_ADAPTIVE(adaptive_max_pool3d, triple(a, "sizes"))
#undef TENON_ADAPTIVE
}

Functions all_functions() {
  Functions f;
  add_arguments(f);
  add_norms(f);
  add_orders(f);
  add_convolutions(f);
  add_unary(f);
  add_binary(f);
  add_reductions(f);
  add_shapes(f);
  add_indexing(f);
  add_contractions(f);
  add_losses(f);
  add_composed(f);
  add_fourier_transforms(f);
  add_linear_algebra(f);
  add_more_losses(f);
  add_named_as_pytorch(f);
  add_special(f);
  return f;
}

}  // namespace

std::vector<Tensor> call(const Sample& sample, const std::vector<Operand>& operands) {
  static const Functions functions = all_functions();
  const auto found = functions.find(sample.op());
  if (found == functions.end())
    throw std::out_of_range(sample.op() + ": functions.cpp lacks an op that adapters.py names");
  return found->second(operands, sample.args());
}

}  // namespace conformance
