// Attention, Transformer layers, RMS norm and rotary positions compared with PyTorch: results and
// gradients of all inputs.
#include <functional>
#include <string>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/transformer.h>

#include "e2e/fixtures.h"
#include "grad/numeric.h"

using namespace tenon;
using fixtures::distance;
using fixtures::part;
using fixtures::Tensors;

namespace {

struct LayerFixture {
  nn::AnyModule net;
  std::function<Tensor(const Tensors& in)> call;
};

Tensor input_of(const Tensors& in, const char* key) {
  const auto it = in.find(key);
  return it == in.end() ? Tensor() : it->second;
}

// Masks are stored as bytes.
Tensor mask_of(const Tensors& in, const char* key) {
  const Tensor mask = input_of(in, key);
  return mask.defined() && !is_floating(mask.dtype()) ? cast(mask, DType::Bool) : mask;
}

bool names(const std::string& name, const char* word) {
  return name.find(word) != std::string::npos;
}

LayerFixture attention_fixture(const std::string& name) {
  if (names(name, "grouped")) {
    const nn::MultiheadAttention net(8, 4, {.batch_first = true, .kv_heads = 2});
    return {net, [net](const Tensors& in) {
              const Tensor& x = in.at("query");
              return net(x, x, x, nn::AttentionMask{.causal = true});
            }};
  }
  nn::MultiheadAttentionOptions options{.bias = !names(name, "plain"),
                                        .batch_first = names(name, "first")};
  if (names(name, "widths")) options.kdim = options.vdim = 6;
  const nn::MultiheadAttention net(8, 2, options);
  return {net, [net](const Tensors& in) {
            const nn::AttentionMask mask{.mask = mask_of(in, "mask"),
                                         .key_padding = mask_of(in, "key_padding")};
            return net(in.at("query"), in.at("key"), in.at("value"), mask);
          }};
}

LayerFixture layer_fixture(const std::string& name) {
  nn::TransformerOptions options{.dim_feedforward = 12, .dropout = 0};
  if (names(name, "norm_first")) {
    options.norm_first = options.batch_first = true;
    options.activation = "gelu";
  }
  options.bias = !names(name, "plain");
  if (names(name, "encoder")) {
    const nn::TransformerEncoderLayer net(8, 2, options);
    return {net, [net](const Tensors& in) {
              return net(in.at("src"),
                         nn::AttentionMask{.key_padding = mask_of(in, "key_padding")});
            }};
  }
  const nn::TransformerDecoderLayer net(8, 2, options);
  return {net, [net](const Tensors& in) {
            return net(in.at("tgt"), in.at("memory"), nn::AttentionMask{.causal = true},
                       nn::AttentionMask{.key_padding = mask_of(in, "key_padding")});
          }};
}

LayerFixture transformer_fixture(const std::string& name) {
  if (names(name, "attention")) return attention_fixture(name);
  if (names(name, "coder")) return layer_fixture(name);
  if (name == "whole") {
    const nn::Transformer net(8, 2, 2, 2, {.dim_feedforward = 12, .dropout = 0});
    return {net, [net](const Tensors& in) {
              return net(in.at("src"), in.at("tgt"), nn::AttentionMask{},
                         nn::AttentionMask{.causal = true});
            }};
  }
  if (names(name, "rotary"))
    return {nn::Identity(), [turn = names(name, "interleaved")](const Tensors& in) {
              return nn::rotary(in.at("x"), {}, {.interleaved = turn});
            }};
  const nn::RMSNorm net = name == "rms" ? nn::RMSNorm({3, 4}, {.eps = 1e-5})
                                        : nn::RMSNorm({7}, {.elementwise_affine = false});
  return {net, [net](const Tensors& in) { return net(in.at("x")); }};
}

}  // namespace

TEST_CASE("fixtures: attention and Transformer layers give PyTorch's results and gradients") {
  for (const auto& entry : fixtures::load("transformer")) {
    const std::string& name = entry.first;
    const Tensors& stored = entry.second;
    CAPTURE(name);
    LayerFixture fixture = transformer_fixture(name);
    const Tensors weights = part(stored, "weights/"), in = part(stored, "in/");
    CHECK(fixture.net.load_state_dict(weights) == static_cast<int>(weights.size()));
    const Tensor result = fixture.call(in);
    CHECK(distance(result, stored.at("out/output")) < 3e-6);
    std::vector<Tensor> wanted;
    std::vector<std::string> keys;
    const StateDict parameters = fixture.net.state_dict();
    const Tensors gradients = part(stored, "d/");
    for (const auto& one : gradients) {
      keys.push_back(one.first);
      wanted.push_back(parameters.contains(one.first) ? parameters.at(one.first)
                                                      : in.at(one.first));
    }
    const std::vector<Tensor> found = grad(sum(result * stored.at("g/output")), wanted);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      CAPTURE(keys[k]);
      const Tensor& expected = gradients.at(keys[k]);
      // The gradient of the keys' bias is zero except for rounding, so it has no relative error.
      const double size = norm(found[k] - expected).item();
      CHECK((size < 3e-6 || distance(found[k], expected) < 2e-5));
    }
  }
}

TEST_CASE("attention: first and second gradients equal finite differences") {
  const auto stored = fixtures::load("transformer");
  for (const char* name : {"attention_both_added", "attention_grouped", "encoder", "decoder"}) {
    CAPTURE(name);
    LayerFixture fixture = transformer_fixture(name);
    fixture.net.load_state_dict(part(stored.at(name), "weights/"));
    fixture.net.to(DType::Float64);
    Tensors in = part(stored.at(name), "in/");
    std::vector<std::string> keys;
    std::vector<Tensor> at;
    for (auto& [key, tensor] : in)
      if (stored.at(name).contains("d/" + key)) {
        keys.push_back(key);
        at.push_back(cast(tensor, DType::Float64).compute());
      }
    const Tensor weight = stored.at(name).at("g/output");
    const auto value = [&](const std::vector<Tensor>& v) {
      for (std::size_t k = 0; k < v.size(); ++k) in[keys[k]] = v[k];
      return sum(fixture.call(in) * weight);
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
        for (std::size_t e = 0; e < g.size(); e += 7)
          CHECK(g[e] == doctest::Approx(numeric[k][e]).epsilon(1e-5));
      }
    }
  }
}
