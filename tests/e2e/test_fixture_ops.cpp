// Every op compared with PyTorch: values, gradients and, for some, second derivatives.
#include <algorithm>
#include <functional>

#include <tenon/compute.h>
#include <tenon/grad.h>

#include "cpu/kernels/isa.h"
#include "e2e/fixtures.h"

using namespace tenon;
using fixtures::alike;
using fixtures::distance;
using fixtures::Tensors;

namespace {

using In = std::vector<Tensor>;
using Function = std::function<Tensor(const In&)>;
using Functions = std::map<std::string, Function>;

Function unary(Tensor (*f)(const Tensor&)) {
  return [f](const In& in) { return f(in[0]); };
}
Function binary(Tensor (*f)(const Tensor&, const Tensor&)) {
  return [f](const In& in) { return f(in[0], in[1]); };
}

const std::map<std::string, Tensor (*)(const Tensor&)> kUnary = {{"neg", neg},
                                                                 {"abs", abs},
                                                                 {"sign", sign},
                                                                 {"exp", exp},
                                                                 {"expm1", expm1},
                                                                 {"log", log},
                                                                 {"log1p", log1p},
                                                                 {"sqrt", sqrt},
                                                                 {"rsqrt", rsqrt},
                                                                 {"reciprocal", reciprocal},
                                                                 {"square", square},
                                                                 {"sin", sin},
                                                                 {"cos", cos},
                                                                 {"tanh", tanh},
                                                                 {"sigmoid", sigmoid},
                                                                 {"relu", relu},
                                                                 {"erf", erf},
                                                                 {"floor", floor},
                                                                 {"ceil", ceil},
                                                                 {"round", round},
                                                                 {"trunc", trunc},
                                                                 {"logical_not", logical_not},
                                                                 {"isnan", isnan},
                                                                 {"isinf", isinf},
                                                                 {"isfinite", isfinite},
                                                                 {"silu", silu},
                                                                 {"softsign", softsign},
                                                                 {"log2", log2},
                                                                 {"log10", log10},
                                                                 {"exp2", exp2},
                                                                 {"tan", tan},
                                                                 {"mish", mish},
                                                                 {"hardtanh", hardtanh},
                                                                 {"relu6", relu6},
                                                                 {"hardsigmoid", hardsigmoid},
                                                                 {"sinh", sinh},
                                                                 {"cosh", cosh}};

const std::map<std::string, Tensor (*)(const Tensor&, const Tensor&)> kBinary = {
    {"add", add},
    {"sub", sub},
    {"mul", mul},
    {"div", div},
    {"pow", pow},
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
    {"matmul", matmul}};

void add_elementwise(Functions& f) {
  for (const auto& [name, function] : kUnary) f[name] = unary(function);
  for (const auto& [name, function] : kBinary) f[name] = binary(function);
  f["gelu"] = [](const In& in) { return gelu(in[0]); };
  f["gelu_tanh"] = [](const In& in) { return gelu(in[0], true); };
  f["leaky_relu"] = [](const In& in) { return leaky_relu(in[0], 0.2); };
  f["elu"] = [](const In& in) { return elu(in[0], 1.5); };
  f["softplus"] = [](const In& in) { return softplus(in[0], 2.0, 5.0); };
  f["clamp"] = [](const In& in) { return clamp(in[0], -1.0, 1.5); };
  f["detach"] = [](const In& in) { return in[0] * detach(in[0]); };
  f["pow_scalar"] = [](const In& in) { return pow(in[0], 3); };
  f["scalar_minus"] = [](const In& in) { return 2.5 - in[0]; };
  f["scalar_over"] = [](const In& in) { return 2.5 / in[0]; };
  f["maximum_ties"] = binary(maximum);
  f["minimum_ties"] = binary(minimum);
  f["remainder_negative"] = binary(remainder);
  f["where"] = [](const In& in) { return where(gt(in[0], 0), in[1], in[2]); };
  f["where_scalar"] = [](const In& in) { return where(gt(in[0], 0), in[1], 0.5); };
  f["int_remainder"] = binary(remainder);
  f["int_floor_divide"] = f["int_floor_divide_negative"] = binary(floor_divide);
  f["int_div"] = binary(div);
  f["uint8_add"] = binary(add);
  f["int8_mul"] = f["int_with_float"] = binary(mul);
  for (const auto dtype : {DType::Int32, DType::UInt8, DType::Float16, DType::BFloat16})
    f[std::string("to_") + name(dtype)] = [dtype](const In& in) { return cast(in[0], dtype); };
}

void add_reductions(Functions& f) {
  using Reduce = Tensor (*)(const Tensor&, const Axes&, bool);
  const std::map<std::string, Reduce> reductions = {
      {"sum", sum}, {"mean", mean}, {"logsumexp", logsumexp}, {"amax", amax}, {"amin", amin}};
  const std::map<std::string, Ints> axes = {
      {"0", {0}}, {"2", {2}}, {"02", {0, 2}}, {"all", {0, 1, 2}}};
  for (const auto& [name, reduce] : reductions) {
    for (const auto& [tag, list] : axes)
      f[name + "_" + tag] = [r = reduce, a = list](const In& in) { return r(in[0], a, false); };
    f[name + "_keepdim"] = [r = reduce](const In& in) { return r(in[0], {1}, true); };
  }
  f["amax_ties"] = [](const In& in) { return amax(in[0], {1}); };
  f["prod_1"] = [](const In& in) { return prod(in[0], {1}); };
  f["prod_all"] = [](const In& in) { return prod(in[0]); };
  f["var"] = [](const In& in) { return var(in[0], {1, 2}); };
  f["var_population"] = [](const In& in) { return var(in[0], {0}, false, 0); };
  f["norm"] = [](const In& in) { return norm(in[0]); };
  f["norm_axis"] = [](const In& in) { return norm(in[0], {1}); };
  f["all"] = [](const In& in) { return all(gt(in[0], -1.9), {1}); };
  f["any"] = [](const In& in) { return any(gt(in[0], 1.9), {1}); };
  f["argmax"] = [](const In& in) { return argmax(in[0]); };
  f["argmin"] = [](const In& in) { return argmin(in[0]); };
  f["argmax_0"] = [](const In& in) { return argmax(in[0], 0); };
  f["argmin_0"] = [](const In& in) { return argmin(in[0], 0); };
  f["sum_int8"] = [](const In& in) { return sum(in[0]); };
  f["sum_long"] = [](const In& in) { return sum(in[0], {0}); };
  f["softmax"] = [](const In& in) { return softmax(in[0]); };
  f["log_softmax"] = [](const In& in) { return log_softmax(in[0]); };
  f["softmax_1"] = [](const In& in) { return softmax(in[0], 1); };
  f["log_softmax_1"] = [](const In& in) { return log_softmax(in[0], 1); };
}

void add_shapes(Functions& f) {
  f["reshape"] = [](const In& in) { return reshape(in[0], {6, -1}); };
  f["permute_reshape"] = [](const In& in) { return reshape(permute(in[0], {2, 0, 1}), {10, 6}); };
  f["flatten"] = [](const In& in) { return flatten(in[0], 1); };
  f["permute"] = [](const In& in) { return permute(in[0], {2, 0, 1}); };
  f["transpose"] = [](const In& in) { return transpose(in[0], 0, 2); };
  f["expand"] = [](const In& in) { return expand(in[0], {4, 3, 5}); };
  f["squeeze"] = [](const In& in) { return squeeze(in[0], 1); };
  f["unsqueeze"] = [](const In& in) { return unsqueeze(in[0], -1); };
  f["slice"] = [](const In& in) { return slice(in[0], 1, 1, 4, 2); };
  f["slice_negative"] = [](const In& in) { return slice(in[0], 2, -4, -1); };
  f["select"] = [](const In& in) { return select(in[0], 1, -2); };
  f["flip"] = [](const In& in) { return flip(in[0], {0, 2}); };
  f["concat"] = [](const In& in) { return concat(in, 1); };
  f["stack"] = [](const In& in) { return stack(in, 1); };
  f["split"] = [](const In& in) {
    std::vector<Tensor> parts = split(in[0], 3, 1);
    std::reverse(parts.begin(), parts.end());
    return concat(parts, 1);
  };
  f["pad"] = [](const In& in) { return pad(in[0], {1, 2, 0, 3}, 0.5); };
  f["gather_0"] = [](const In& in) { return gather(in[0], 0, in[1]); };
  f["gather_1"] = [](const In& in) { return gather(in[0], 1, in[1]); };
  f["gather_squared"] = [](const In& in) { return square(gather(in[0], 1, in[1])); };
  f["scatter_add"] = [](const In& in) { return scatter_add(in[0], 1, in[1], in[2]); };
  f["index_select"] = [](const In& in) { return index_select(in[0], 1, in[1]); };
  f["one_hot"] = [](const In& in) { return one_hot(in[0], 7); };
}

Function convolution(const Conv2dOptions& options) {
  return [options](const In& in) {
    return conv2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), options);
  };
}

void add_contractions(Functions& f) {
  for (const char* name : {"matmul_batched", "matmul_broadcast", "matmul_vector", "vector_matmul",
                           "dot", "matmul_long"})
    f[name] = binary(matmul);
  f["matmul_transposed"] = [](const In& in) { return matmul(transpose(in[0]), transpose(in[1])); };
  f["linear"] = [](const In& in) { return linear(in[0], in[1], in[2]); };
  f["linear_no_bias"] = [](const In& in) { return linear(in[0], in[1]); };
  f["conv2d"] = f["conv2d_1x1"] = convolution({});
  f["conv2d_padding"] = convolution({.padding = {2, 1}});
  f["conv2d_stride"] = convolution({.stride = {2, 3}, .padding = {1, 1}});
  f["conv2d_dilation"] = convolution({.padding = {2, 1}, .dilation = {2, 3}});
  f["conv2d_groups"] = convolution({.padding = {1, 1}, .groups = 3});
  f["conv2d_depthwise"] = convolution({.stride = {2, 2}, .groups = 4});
  f["conv2d_stride_gap"] = convolution({.stride = {3, 3}});
  f["conv2d_all"] =
      convolution({.stride = {2, 2}, .padding = {2, 2}, .dilation = {2, 2}, .groups = 2});
}

Function max_pool(const Pool2dOptions& options) {
  return [options](const In& in) { return max_pool2d(in[0], options); };
}
Function avg_pool(const Pool2dOptions& options) {
  return [options](const In& in) { return avg_pool2d(in[0], options); };
}

void add_pooling(Functions& f) {
  f["max_pool2d"] = max_pool({});
  f["max_pool2d_squared"] = [](const In& in) {
    return square(max_pool2d(in[0], {.kernel = {3, 3}, .stride = {2, 2}}));
  };
  f["max_pool2d_overlap"] = max_pool({.kernel = {3, 3}, .stride = {2, 2}});
  f["max_pool2d_padding"] = max_pool({.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}});
  f["max_pool2d_ceil"] = max_pool({.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true});
  f["max_pool2d_dilation"] = max_pool({.kernel = {2, 2}, .stride = {1, 1}, .dilation = {2, 3}});
  f["max_pool2d_ties"] = max_pool({.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}});
  f["avg_pool2d"] = avg_pool({});
  f["avg_pool2d_squared"] = [](const In& in) {
    return square(avg_pool2d(in[0], {.kernel = {3, 3}, .stride = {2, 2}}));
  };
  Pool2dOptions options{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  f["avg_pool2d_padding"] = avg_pool(options);
  options.count_include_pad = false;
  f["avg_pool2d_no_pad_count"] = avg_pool(options);
  options.ceil_mode = true;
  f["avg_pool2d_ceil_no_pad_count"] = avg_pool(options);
  options.count_include_pad = true;
  f["avg_pool2d_ceil"] = avg_pool(options);
  f["avg_pool2d_uneven"] = avg_pool({.kernel = {1, 4}, .stride = {2, 3}});
}

void add_losses(Functions& f) {
  const auto cross = [](Reduction reduction) {
    return [reduction](const In& in) { return cross_entropy(in[0], in[1], reduction); };
  };
  f["cross_entropy_mean"] = f["cross_entropy_spatial"] = cross(Reduction::Mean);
  f["cross_entropy_sum"] = cross(Reduction::Sum);
  f["cross_entropy_none"] = cross(Reduction::None);
  f["cross_entropy_smoothing"] = [](const In& in) {
    return cross_entropy(in[0], in[1], Reduction::Mean, 0.1);
  };
  f["cross_entropy_probabilities"] = [](const In& in) {
    return cross_entropy(in[0], softmax(in[1], 1));
  };
  f["nll_loss"] = [](const In& in) { return nll_loss(log_softmax(in[0], 1), in[1]); };
  f["mse_loss"] = [](const In& in) { return mse_loss(in[0], in[1]); };
  f["mse_loss_none"] = [](const In& in) { return mse_loss(in[0], in[1], Reduction::None); };
  f["l1_loss"] = [](const In& in) { return l1_loss(in[0], in[1]); };
  f["smooth_l1_loss"] = [](const In& in) {
    return smooth_l1_loss(in[0], in[1], Reduction::Mean, 0.7);
  };
  f["huber_loss"] = [](const In& in) { return huber_loss(in[0], in[1], Reduction::Sum, 1.3); };
  f["bce_with_logits"] = [](const In& in) {
    return binary_cross_entropy_with_logits(in[0], sigmoid(in[1]));
  };
}

void add_norms(Functions& f) {
  f["batch_norm"] = [](const In& in) {
    const Moments m = batch_moments(in[0]);
    return batch_norm(in[0], m.mean, m.var, in[1], in[2]);
  };
  f["batch_norm_given"] = [](const In& in) {
    return batch_norm(in[0], in[1], in[2], in[3], in[4], 1e-3);
  };
  f["layer_norm"] = [](const In& in) { return layer_norm(in[0], {3, 5}, in[1], in[2]); };
  f["layer_norm_plain"] = [](const In& in) { return layer_norm(in[0], {5}, {}, {}, 1e-2); };
  f["group_norm"] = [](const In& in) { return group_norm(in[0], 2, in[1], in[2]); };
}

Functions all_functions() {
  Functions f;
  add_elementwise(f);
  add_reductions(f);
  add_shapes(f);
  add_contractions(f);
  add_pooling(f);
  add_losses(f);
  add_norms(f);
  return f;
}

/// Sum over k and all elements of weights[k] * tensors[k]; the next derivative is taken of it.
Tensor weighted(const std::vector<Tensor>& tensors, const std::vector<Tensor>& weights) {
  Tensor total = sum(tensors[0] * weights[0]);
  for (std::size_t k = 1; k < tensors.size(); ++k) total = total + sum(tensors[k] * weights[k]);
  return total;
}

struct Case {
  std::string name;
  const Tensors& stored;
  In inputs, floating;               // all inputs, and the inputs with a gradient
  std::vector<std::string> numbers;  // indices of the floating inputs

  Case(const std::string& case_name, const Tensors& tensors) : name(case_name), stored(tensors) {
    for (int k = 0; tensors.count("in" + std::to_string(k)) != 0; ++k) {
      const Tensor& value = tensors.at("in" + std::to_string(k));
      inputs.push_back(is_floating(value.dtype()) ? variable(value) : value);
      if (!is_floating(value.dtype())) continue;
      floating.push_back(inputs.back());
      numbers.push_back(std::to_string(k));
    }
  }

  void compare(const Tensor& computed, const std::string& key, double tolerance) const {
    const double error = distance(computed, stored.at(key));
    CHECK_MESSAGE(error <= tolerance, name << "/" << key << ": relative norm " << error
                                           << ", allowed " << tolerance << "; shape "
                                           << computed.shape().str() << ", PyTorch's "
                                           << stored.at(key).shape().str());
  }

  void check(const Function& function) const {
    const Tensor out = function(inputs);
    CHECK_MESSAGE(out.dtype() == stored.at("out").dtype(),
                  name << ": gives " << tenon::name(out.dtype()) << ", PyTorch "
                       << tenon::name(stored.at("out").dtype()));
    compare(out, "out", is_floating(out.dtype()) ? 2e-6 : 0);
    if (stored.count("g") == 0) return;
    std::vector<Tensor> first = grad(weighted({out}, {stored.at("g")}), floating);
    for (std::size_t k = 0; k < first.size(); ++k) compare(first[k], "d" + numbers[k], 5e-6);
    if (stored.count("h" + numbers[0]) == 0) return;
    std::vector<Tensor> weights;
    for (const std::string& number : numbers) weights.push_back(stored.at("h" + number));
    first = grad(weighted({function(inputs)}, {stored.at("g")}), floating);
    const std::vector<Tensor> second = grad(weighted(first, weights), floating);
    for (std::size_t k = 0; k < second.size(); ++k) compare(second[k], "dd" + numbers[k], 2e-5);
  }
};

void check_all() {
  const Functions functions = all_functions();
  const auto cases = fixtures::load("ops");
  for (const auto& entry : cases) {
    const auto& name = entry.first;
    const auto& tensors = entry.second;
    CAPTURE(name);
    REQUIRE_MESSAGE(functions.count(name) == 1,
                    "make_fixtures.py has a case that this test lacks: " << name);
    Case(name, tensors).check(functions.at(name));
  }
  for (const auto& entry : functions)
    if (kUnary.count(entry.first) == 0)
      CHECK_MESSAGE(cases.count(entry.first) == 1,
                    "this test has a case that make_fixtures.py lacks: " << entry.first);
}

}  // namespace

TEST_CASE("fixtures: ops agree with PyTorch in value, gradient and second derivative") {
  check_all();
}

TEST_CASE("fixtures: the reference engine agrees with PyTorch as well") {
  set_engine("reference");
  check_all();
  set_engine("fast");
}

TEST_CASE("fixtures: the fast engine agrees with every instruction set of this machine") {
  for (const cpu::Isa isa : {cpu::Isa::Base, cpu::Isa::Avx2, cpu::Isa::Avx512}) {
    if (cpu::hardware_isa() < isa || cpu::hardware_isa() == cpu::Isa::Neon) continue;
    cpu::set_isa_limit(isa);
    clear_caches();  // programs planned for other kernels have workspaces of other sizes
    CAPTURE(std::string(cpu::name(isa)));
    check_all();
  }
  cpu::set_isa_limit(cpu::hardware_isa());
  clear_caches();
}

TEST_CASE("fixtures: functions of zeros, infinities, NaN and large numbers equal PyTorch's") {
  Functions functions = all_functions();
  functions["amax"] = [](const In& in) { return amax(in[0], {1}); };
  functions["amin"] = [](const In& in) { return amin(in[0], {1}); };
  functions["sum"] = [](const In& in) { return sum(in[0], {1}); };
  functions["logsumexp"] = [](const In& in) { return logsumexp(in[0], {1}); };
  functions["softplus"] = [](const In& in) { return softplus(in[0]); };
  for (const std::string engine : {"fast", "reference"}) {
    set_engine(engine);
    for (const auto& entry : fixtures::load("special")) {
      const auto& name = entry.first;
      const auto& tensors = entry.second;
      In inputs{tensors.at("in0")};
      if (tensors.count("in1") != 0) inputs.push_back(tensors.at("in1"));
      CHECK_MESSAGE(alike(functions.at(name)(inputs), tensors.at("out"), 5e-6),
                    name << " by the " << engine << " engine");
    }
  }
  set_engine("fast");
}
