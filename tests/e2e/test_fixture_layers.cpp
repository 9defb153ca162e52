// Attention with weights, embedding tables, instance norm, convolutions and small layers compared
// with PyTorch: results and gradients of all inputs.
#include <functional>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/layers.h>
#include <tenon/transformer.h>

#include "e2e/fixtures.h"
#include "grad/numeric.h"

using namespace tenon;
using fixtures::distance;
using fixtures::part;
using fixtures::Tensors;

namespace {

struct Called {
  nn::AnyModule net;
  std::function<Tensors(const Tensors& in)> call;
};

bool has(const std::string& name, const char* word) { return name.find(word) != std::string::npos; }

Tensor mask_in(const Tensors& in, const char* key) {
  const auto it = in.find(key);
  if (it == in.end()) return {};
  return is_floating(it->second.dtype()) ? it->second : cast(it->second, DType::Bool);
}

Called weighed(const std::string& name) {
  const nn::MultiheadAttention net(8, 2,
                                   {.bias = name != "weights_bias_kv_zero_attn",
                                    .add_bias_kv = has(name, "bias_kv"),
                                    .add_zero_attn = has(name, "zero_attn")});
  const auto heads = has(name, "each") ? nn::HeadWeights::Each : nn::HeadWeights::Mean;
  return {net, [=](const Tensors& in) -> Tensors {
            const nn::AttentionMask mask{.mask = mask_in(in, "mask"),
                                         .key_padding = mask_in(in, "key_padding")};
            const auto [y, weights] =
                net(in.at("query"), in.at("key"), in.at("value"), mask, heads);
            const Tensor alone = net(in.at("query"), in.at("key"), in.at("value"), mask);
            CHECK(distance(alone, y) < 3e-6);
            return {{"output", y}, {"weights", weights}};
          }};
}

Called table(const std::string& name) {
  if (has(name, "bag")) {
    const BagMode mode = has(name, "sum")    ? BagMode::Sum
                         : has(name, "mean") ? BagMode::Mean
                                             : BagMode::Max;
    const nn::EmbeddingBag net(6, 4, {.padding_index = 2, .mode = mode});
    return {net, [net](const Tensors& in) -> Tensors {
              return {{"output", net(in.at("index"), in.at("offsets"))}};
            }};
  }
  EmbeddingOptions o;
  if (has(name, "padding")) o.padding_index = 3;
  if (has(name, "most")) o.max_norm = has(name, "sums") ? 1.5 : 1.0;
  if (has(name, "sums")) o.norm_type = 1;
  o.scale_grad_by_freq = has(name, "shares");
  const nn::Embedding net(6, 4, o);
  return {net, [net](const Tensors& in) -> Tensors { return {{"output", net(in.at("index"))}}; }};
}

Called instance(const std::string& name) {
  nn::InstanceNormOptions o;
  if (name == "instance_affine") o = {.eps = 1e-3, .affine = true};
  if (name == "instance_tracked")
    o = {.momentum = 0.3, .affine = true, .track_running_stats = true};
  nn::InstanceNorm2d net(3, o);
  return {net, [net, o](const Tensors& in) mutable -> Tensors {
            const Tensor y = net(in.at("x"));
            if (!o.track_running_stats) return {{"output", y}};
            y.compute();
            net.eval();
            Tensors out{{"output", y},
                        {"running_mean", net.running_mean()},
                        {"running_var", net.running_var()},
                        {"evaluated", net(in.at("x"))}};
            net.train();
            return out;
          }};
}

nn::AnyModule small(const std::string& name) {
  if (name == "conv1d")
    return nn::Conv1d(4, 6, 3, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2});
  if (name == "conv3d")
    return nn::Conv3d(2, 3, {2, 1, 3}, {.stride = {1, 2, 1}, .padding = {1, 0, 1}},
                      {.bias = false});
  if (name == "conv_transpose1d")
    return nn::ConvTranspose1d(4, 6, 3,
                               {.stride = 3, .padding = 1, .output_padding = 2, .groups = 2});
  if (name == "conv_transpose2d") return nn::ConvTranspose2d(2, 3, {2, 3}, {.stride = {2, 1}});
  if (name == "conv_transpose3d")
    return nn::ConvTranspose3d(2, 2, 2, {.stride = 2}, {.bias = false});
  if (name == "prelu") return nn::PReLU(3);
  if (name == "celu") return nn::CELU(1.5);
  if (name == "glu") return nn::GLU(1);
  if (name == "lp_pool1d") return nn::LPPool1d(4, 3, {.stride = 2, .ceil_mode = true});
  if (name == "lp_pool2d") return nn::LPPool2d(2, {2, 3});
  return nn::LPPool3d(2, 2, {.stride = 1});
}

Called called(const std::string& name) {
  if (has(name, "weights")) return weighed(name);
  if (has(name, "embedding") || has(name, "bag")) return table(name);
  if (has(name, "instance")) return instance(name);
  const nn::AnyModule net = small(name);
  return {net, [net](const Tensors& in) -> Tensors { return {{"output", net(in.at("x"))}}; }};
}

// The weighted sum of the results, with the fixture's weights.
Tensor total_of(const Tensors& results, const Tensors& stored) {
  Tensor total = scalar(0);
  for (const auto& [key, result] : results)
    if (!has(key, "running")) total = total + sum(result * stored.at("g/" + key));
  return total;
}

}  // namespace

TEST_CASE("fixtures: layers with all options give PyTorch's results and gradients") {
  for (const auto& entry : fixtures::load("layers")) {
    const std::string& name = entry.first;
    const Tensors& stored = entry.second;
    CAPTURE(name);
    Called layer = called(name);
    const Tensors weights = part(stored, "weights/"), in = part(stored, "in/");
    CHECK(layer.net.load_state_dict(weights, false) == static_cast<int>(weights.size()));
    const Tensors results = layer.call(in);
    for (const auto& result : results) {
      CAPTURE(result.first);
      CHECK(distance(result.second, stored.at("out/" + result.first)) < 3e-6);
    }
    const StateDict parameters = layer.net.state_dict();
    const Tensors gradients = part(stored, "d/");
    std::vector<Tensor> wanted;
    for (const auto& [key, gradient] : gradients)
      wanted.push_back(parameters.contains(key) ? parameters.at(key) : in.at(key));
    if (wanted.empty()) continue;
    const std::vector<Tensor> found = grad(total_of(results, stored), wanted);
    std::size_t k = 0;
    for (const auto& gradient : gradients) {
      CAPTURE(gradient.first);
      const Tensor& mine = found[k++];
      const double size = norm(mine - gradient.second).item();
      CHECK((size < 3e-6 || distance(mine, gradient.second) < 2e-5));
    }
  }
}

TEST_CASE("attention: with weights, first and second gradients equal finite differences") {
  const auto stored = fixtures::load("layers");
  for (const char* name : {"weights_bias_kv", "weights_zero_attn_each"}) {
    CAPTURE(name);
    Called layer = called(name);
    layer.net.load_state_dict(part(stored.at(name), "weights/"));
    layer.net.to(DType::Float64);
    Tensors in = part(stored.at(name), "in/");
    const std::vector<std::string> keys{"query", "key", "value"};
    std::vector<Tensor> at;
    for (const std::string& key : keys) at.push_back(cast(in[key], DType::Float64).compute());
    const auto value = [&](const std::vector<Tensor>& v) {
      for (std::size_t k = 0; k < v.size(); ++k) in[keys[k]] = v[k];
      return total_of(layer.call(in), stored.at(name));
    };
    const auto slope = [&](const std::vector<Tensor>& v) {
      Tensor total = scalar(0);
      for (const Tensor& g : grad(value(v), v)) total = total + sum(square(g));
      return total;
    };
    for (const ScalarFunction& f : {ScalarFunction(value), ScalarFunction(slope)}) {
      const auto numeric = numeric_gradient(f, at, 1e-6);
      const std::vector<Tensor> exact = grad(f(at), at);
      for (std::size_t k = 0; k < at.size(); ++k) {
        const std::vector<double> g = exact[k].to_vector<double>();
        for (std::size_t e = 0; e < g.size(); e += 11)
          CHECK(g[e] == doctest::Approx(numeric[k][e]).epsilon(1e-5));
      }
    }
  }
}
