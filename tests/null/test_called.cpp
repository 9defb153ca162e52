// Errors name the op that the user called, not an op that it is built of. Checked for every
// composed op with a wrong shape, axis, dtype or index, or without a tensor. Invalid indices are
// refused when they are read.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/pooling.h>
#include <tenon/recurrent.h>

using namespace tenon;

namespace {

/// A mistake in a call of the named op.
struct Mistake {
  const char* op;
  std::function<Tensor()> call;
};

void expect_named(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.op);
    std::string message = "nothing was refused";
    try {
      (void)mistake.call().eval();
    } catch (const Error& error) {
      message = error.what();
    }
    CAPTURE(message);
    CHECK(message.rfind(std::string(mistake.op) + ": ", 0) == 0);
  }
}

Tensor longs(const std::vector<std::int64_t>& values) {
  return Tensor::from(values, {std::ssize(values)});
}

const Shape kImages{2, 3, 8, 8}, kVolumes{2, 3, 4, 8, 8};

}  // namespace

TEST_CASE("called: wrong shapes and axes") {
  const Tensor x = ones({3, 4}), y = ones({3, 5}), v = ones({5});
  expect_named({
      {"logaddexp", [&] { return logaddexp(x, y); }},
      {"lerp", [&] { return lerp(x, y, 0.5); }},
      {"lerp", [&] { return lerp(x, x, y); }},
      {"isclose", [&] { return isclose(x, y); }},
      {"stddev", [&] { return stddev(x, 4); }},
      {"vector_norm", [&] { return vector_norm(x, 2, 4); }},
      {"cosine_similarity", [&] { return cosine_similarity(x, x, 3); }},
      {"rms_norm", [&] { return rms_norm(x, {4}, v); }},
      {"layer_norm", [&] { return layer_norm(x, {4}, v); }},
      {"group_norm", [&] { return group_norm(ones(kImages), 3, v); }},
      {"local_contrast_norm", [&] { return local_contrast_norm(ones(kImages), {.means = v}); }},
      {"all", [&] { return all(x, 5); }},
      {"any", [&] { return any(x, 5); }},
      {"min", [&] { return min(ones({0}), 0).values; }},
      {"argsort", [&] { return argsort(x, 4); }},
      {"cumprod", [&] { return cumprod(x, 3); }},
      {"broadcast_to",
       [&] {
         return broadcast_to(x, {5, 5});
       }},
      {"expand",
       [&] {
         return expand(x, {5, 5});
       }},
      {"stack",
       [&] {
         return stack({x, y});
       }},
      {"roll", [&] { return roll(x, {1}, {4}); }},
      {"repeat_interleave", [&] { return repeat_interleave(x, 2, 5); }},
      {"masked_fill", [&] { return masked_fill(x, v > 0, 1); }},
      {"prelu", [&] { return prelu(x, v); }},
      {"glu", [&] { return glu(x, 5); }},
      {"index", [&] { return x[9]; }},
      {"index",
       [&] {
         return x.index({0, 0, 0});
       }},
      {"index", [&] { return x.index({Slice(0, 2, 0)}); }},
      {"index_put", [&] { return x.index_put({9}, 1.0); }},
      {"index_put", [&] { return x.index_put({0}, v); }},
      {"index_put",
       [&] {
         return x.index_put({0, 0, 0}, 1.0, true);
       }},
      {"index_add",
       [&] {
         return index_add(x, 0, longs({0}), ones({2, 4}));
       }},
      {"linear", [&] { return linear(x, y); }},
      {"conv1d",
       [&] {
         return conv1d(ones({2, 3, 8}), ones({4, 2, 3}));
       }},
      {"conv3d",
       [&] {
         return conv3d(ones(kVolumes), ones({4, 3, 5, 3, 3}));
       }},
      {"conv_transpose1d",
       [&] {
         return conv_transpose1d(ones({2, 3, 8}), ones({4, 2, 3}));
       }},
      {"conv_transpose3d",
       [&] {
         return conv_transpose3d(ones(kImages), ones({4, 2, 3, 3, 3}));
       }},
      {"max_pool1d",
       [&] {
         return max_pool1d(ones({2, 3, 8}), {.kernel = 9});
       }},
      {"avg_pool1d",
       [&] {
         return avg_pool1d(ones({2, 3, 8}), {.kernel = 9});
       }},
      {"max_pool3d",
       [&] {
         return max_pool3d(ones({3, 8, 8}));
       }},
      {"max_pool3d",
       [&] {
         return max_pool3d(ones(kVolumes), {.kernel = {9, 1, 1}});
       }},
      {"avg_pool3d",
       [&] {
         return avg_pool3d(ones(kVolumes), {.kernel = {9, 1, 1}});
       }},
      {"adaptive_avg_pool3d",
       [&] {
         return adaptive_avg_pool3d(ones(kImages), {0, 1, 1});
       }},
      {"interpolate",
       [&] {
         return interpolate(x, {4, 4});
       }},
      {"scaled_dot_product_attention", [&] { return scaled_dot_product_attention(x, y, x); }},
      {"mse_loss", [&] { return mse_loss(x, y); }},
      {"kl_div", [&] { return kl_div(x, y); }},
      {"binary_cross_entropy", [&] { return binary_cross_entropy(x, x, {.weight = v}); }},
      {"cross_entropy", [&] { return cross_entropy(x, longs({0}), {.weight = v}); }},
  });
}

TEST_CASE("called: wrong dtypes, and no tensor") {
  const Tensor x = ones({3, 4}), flags = x > 0, none;
  expect_named({
      {"lerp", [&] { return lerp(flags, flags, 0.5); }},
      {"smooth_l1_loss", [&] { return smooth_l1_loss(flags, flags); }},
      {"one_hot", [&] { return one_hot(x, 4); }},
      {"embedding", [&] { return embedding(x, x); }},
      {"index_add",
       [&] {
         return index_add(x, 0, ones({1}), ones({1, 4}));
       }},
      {"scatter", [&] { return scatter(x, 0, x, 1); }},
      {"index_put", [&] { return flags.index_put({longs({0})}, true, true); }},
      {"embedding", [&] { return embedding(none, x); }},
      {"linear", [&] { return linear(x, none); }},
      {"masked_fill", [&] { return masked_fill(x, none, 1); }},
      {"cross_entropy", [&] { return cross_entropy(x, none); }},
  });
  const Scope scope("head");
  CHECK_THROWS_WITH_AS(linear(x, none),
                       doctest::Contains("linear (head): tensor 2 of 2 has no value"), ValueError);
}

TEST_CASE("called: indices out of range, when they are read") {
  const Tensor x = ones({3, 4}), out = full({3, 4}, 7, DType::Int64), far = longs({0, 1, 9});
  expect_named({
      {"gather", [&] { return gather(x, 0, out); }},
      {"scatter_add", [&] { return scatter_add(x, 0, out, x); }},
      {"scatter", [&] { return scatter(x, 0, out, x); }},
      {"scatter", [&] { return scatter(x > 0, 0, out, x > 0); }},
      {"index_add", [&] { return index_add(x, 0, far, x); }},
      {"index_select", [&] { return index_select(x, 0, far); }},
      {"embedding", [&] { return embedding(far, x); }},
      {"one_hot", [&] { return one_hot(far, 4); }},
      {"index", [&] { return x[far]; }},
      {"index_put", [&] { return x.index_put({far}, 1); }},
      {"cross_entropy", [&] { return cross_entropy(x, far); }},
      {"nll_loss", [&] { return nll_loss(x, far, {.ignore_index = -100}); }},
  });
  // A mask is read while its op is being built. Errors of the mask's own computation must not get
  // the op's name.
  CHECK_THROWS_WITH_AS(x[gather(x, 0, out).select(1, 0) > 0], doctest::Contains("gather: index 7"),
                       ValueError);
  const Scope scope("words");
  CHECK_THROWS_WITH_AS(embedding(far, x).eval(), doctest::Contains("embedding (words): index 9"),
                       ValueError);
}

TEST_CASE("called: a tensor without a value") {
  const Tensor none, x = ones({2, 2}), image = ones({1, 1, 4, 4});
  const Tensor at = Tensor::from<std::int64_t>({0, 1}, {2});
  const std::pair<const char*, Tensor (*)(const Tensor&)> unary[] = {
      {"neg", neg},          {"abs", abs},           {"sign", sign},
      {"exp", exp},          {"exp2", exp2},         {"expm1", expm1},
      {"log", log},          {"log1p", log1p},       {"log2", log2},
      {"log10", log10},      {"sqrt", sqrt},         {"rsqrt", rsqrt},
      {"square", square},    {"sin", sin},           {"cos", cos},
      {"tan", tan},          {"asin", asin},         {"acos", acos},
      {"atan", atan},        {"sinh", sinh},         {"cosh", cosh},
      {"tanh", tanh},        {"sigmoid", sigmoid},   {"relu", relu},
      {"erf", erf},          {"floor", floor},       {"ceil", ceil},
      {"round", round},      {"trunc", trunc},       {"isnan", isnan},
      {"isinf", isinf},      {"isfinite", isfinite}, {"reciprocal", reciprocal},
      {"silu", silu},        {"mish", mish},         {"logical_not", logical_not},
      {"relu6", relu6},      {"hardtanh", hardtanh}, {"hardsigmoid", hardsigmoid},
      {"softsign", softsign}};
  std::vector<Mistake> mistakes;
  for (const auto& [op, f] : unary) mistakes.push_back({op, [f = f, none] { return f(none); }});
  const std::pair<const char*, Tensor (*)(const Tensor&, const Tensor&)> binary[] = {
      {"add", add},
      {"sub", sub},
      {"mul", mul},
      {"div", div},
      {"pow", pow},
      {"atan2", atan2},
      {"maximum", maximum},
      {"minimum", minimum},
      {"remainder", remainder},
      {"floor_divide", floor_divide},
      {"eq", eq},
      {"ne", ne},
      {"lt", lt},
      {"le", le},
      {"gt", gt},
      {"ge", ge},
      {"logical_and", logical_and},
      {"logical_or", logical_or},
      {"logical_xor", logical_xor},
      {"logaddexp", logaddexp},
      {"matmul", matmul},
      {"mse_loss", [](const Tensor& a, const Tensor& b) { return mse_loss(a, b); }}};
  for (const auto& [op, f] : binary) {
    mistakes.push_back({op, [f = f, x, none] { return f(x, none); }});
    mistakes.push_back({op, [f = f, x, none] { return f(none, x); }});
  }
  const std::vector<Mistake> others = {
      {"add", [&] { return none + 1; }},
      {"sub", [&] { return 1 - none; }},
      {"mul",
       [&] {
         Tensor y;
         return y *= 2;
       }},
      {"gt", [&] { return none > 0; }},
      {"pow", [&] { return pow(none, 2); }},
      {"clamp", [&] { return clamp(none, 0, 1); }},
      {"gelu", [&] { return gelu(none); }},
      {"leaky_relu", [&] { return leaky_relu(none); }},
      {"elu", [&] { return elu(none); }},
      {"softplus", [&] { return softplus(none); }},
      {"cast", [&] { return cast(none, DType::Float64); }},
      {"sum", [&] { return sum(none); }},
      {"prod", [&] { return prod(none); }},
      {"mean", [&] { return mean(none); }},
      {"var", [&] { return var(none); }},
      {"amax", [&] { return amax(none); }},
      {"amin", [&] { return amin(none); }},
      {"argmax", [&] { return argmax(none); }},
      {"logsumexp", [&] { return logsumexp(none, 0); }},
      {"norm", [&] { return none.norm(); }},
      {"cumsum", [&] { return cumsum(none, 0); }},
      {"softmax", [&] { return softmax(none, 0); }},
      {"log_softmax", [&] { return log_softmax(none, 0); }},
      {"reshape", [&] { return none.view({4}); }},
      {"flatten", [&] { return flatten(none); }},
      {"permute",
       [&] {
         return permute(none, {1, 0});
       }},
      {"transpose", [&] { return transpose(none, 0, 1); }},
      {"squeeze", [&] { return squeeze(none); }},
      {"unsqueeze", [&] { return unsqueeze(none, 0); }},
      {"slice", [&] { return slice(none, 0, 0, 1); }},
      {"select", [&] { return select(none, 0, 0); }},
      {"flip", [&] { return flip(none, {0}); }},
      {"narrow", [&] { return narrow(none, 0, 0, 1); }},
      {"chunk", [&] { return chunk(none, 2)[0]; }},
      {"expand", [&] { return none.expand({2}); }},
      {"concat",
       [&] {
         return concat({x, none}, 0);
       }},
      {"stack",
       [&] {
         return stack({x, none}, 0);
       }},
      {"where", [&] { return where(none, x, x); }},
      {"where", [&] { return where(x > 0, x, none); }},
      {"gather", [&] { return gather(none, 0, at); }},
      {"index_select", [&] { return index_select(none, 0, at); }},
      {"scatter_add", [&] { return scatter_add(none, 0, at, x); }},
      {"masked_fill", [&] { return masked_fill(none, x > 0, 1); }},
      {"index", [&] { return none[0]; }},
      {"index_put", [&] { return x.index_put({0}, none); }},
      {"one_hot", [&] { return one_hot(none, 3); }},
      {"sort", [&] { return sort(none).values; }},
      {"topk", [&] { return topk(none, 1).values; }},
      {"tril", [&] { return tril(none); }},
      {"linear", [&] { return linear(x, none); }},
      {"conv2d", [&] { return conv2d(image, none); }},
      {"max_pool2d", [&] { return max_pool2d(none, {}); }},
      {"avg_pool2d", [&] { return avg_pool2d(none, {}); }},
      {"layer_norm", [&] { return layer_norm(none, {2}); }},
      {"rms_norm", [&] { return rms_norm(none, {2}); }},
      {"group_norm", [&] { return group_norm(none, 1); }},
      {"embedding", [&] { return embedding(none, x); }},
      {"cross_entropy", [&] { return cross_entropy(none, at); }},
      {"scaled_dot_product_attention", [&] { return scaled_dot_product_attention(x, none, x); }},
      {"grad", [&] { return grad(none, x); }},
      {"grad", [&] { return grad(sum(x), none); }},
      {"variable", [&] { return variable(none); }},
      {"to", [&] { return none.to(Device{}); }},
  };
  mistakes.insert(mistakes.end(), others.begin(), others.end());
  expect_named(mistakes);
}

TEST_CASE("called: which of several tensors has no value") {
  const Tensor none, x = ones({2, 2}), signal = ones({1, 1, 4}), volume = ones({1, 1, 4, 4, 4});
  const Tensor at = Tensor::from<std::int64_t>({0, 1}, {2});
  const std::vector<std::pair<std::string, std::function<Tensor()>>> calls = {
      {"conv1d: tensor 1 of 2 has no value", [&] { return conv1d(none, signal); }},
      {"conv1d: tensor 2 of 2 has no value", [&] { return conv1d(signal, none); }},
      {"conv3d: tensor 1 of 2 has no value", [&] { return conv3d(none, volume); }},
      {"conv3d: tensor 2 of 2 has no value", [&] { return conv3d(volume, none); }},
      {"conv_transpose1d: tensor 2 of 2", [&] { return conv_transpose1d(signal, none); }},
      {"conv_transpose3d: tensor 1 of 2", [&] { return conv_transpose3d(none, volume); }},
      {"mse_loss: tensor 1 of 2 has no value", [&] { return mse_loss(none, x); }},
      {"mse_loss: tensor 2 of 2 has no value", [&] { return mse_loss(x, none); }},
      {"kl_div: tensor 2 of 2 has no value", [&] { return kl_div(x, none); }},
      {"cross_entropy: tensor 2 of 2 has no value", [&] { return cross_entropy(x, none); }},
      {"nll_loss: tensor 1 of 2 has no value", [&] { return nll_loss(none, at); }},
      {"scaled_dot_product_attention: tensor 3 of 3 has no value",
       [&] { return scaled_dot_product_attention(x, x, none); }},
      {"index: the tensor that is index 1 has no value",
       [&] {
         return x.index({0, none});
       }},
      {"index_put: the tensor that is index 0 has no value",
       [&] { return x.index_put({none}, 1.0); }},
      {"index_put: the value has none", [&] { return x.index_put({at}, none); }},
      {"BatchNorm2d: its input has no value", [&] { return nn::BatchNorm2d(3)(none); }},
      {"GroupNorm: its input has no value", [&] { return nn::GroupNorm(1, 3)(none); }},
      {"LSTM(2, 3) was given an input without a value",
       [&] { return nn::LSTM(2, 3)(none).output; }},
      {"grad: input 1 is a tensor without a value",
       [&] {
         return grad(sum(x), std::vector<Tensor>{x, none})[0];
       }},
      {"eval: the tensor has no value", [&] { return none.eval(); }},
      {"item: the tensor has no value", [&] { return x * none.item(); }},
      {"str: the tensor has no value", [&] { return x * static_cast<double>(none.str().size()); }},
  };
  for (const auto& [message, call] : calls)
    CHECK_THROWS_WITH_AS(call(), doctest::Contains(message.c_str()), ValueError);
}

TEST_CASE("called: 1-d and transposed convolutions name their own settings") {
  const Tensor signal = ones({1, 4, 8}), filter = ones({4, 4, 3});
  CHECK_THROWS_WITH_AS(conv1d(signal, filter, {}, {.stride = 0}),
                       doctest::Contains("conv1d: stride 0; at least 1"), ValueError);
  CHECK_THROWS_WITH_AS(conv1d(signal, filter, {}, {.padding = -1}),
                       doctest::Contains("conv1d: padding -1 is negative"), ValueError);
  CHECK_THROWS_WITH_AS(conv_transpose1d(signal, filter, {}, {.dilation = 0}),
                       doctest::Contains("conv_transpose1d: dilation 0; at least 1"), ValueError);
  CHECK_THROWS_WITH_AS(
      conv_transpose2d(ones({1, 4, 8, 8}), ones({4, 2, 3, 3}), {}, {.groups = 3}),
      doctest::Contains("conv_transpose2d: 4 input channels do not divide into 3 groups"),
      ShapeError);
}
