// Recurrent layers and cells compared with PyTorch: results, final states and gradients of all
// inputs; first and second numeric derivatives.
#include <functional>
#include <string>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/recurrent.h>

#include "e2e/fixtures.h"
#include "grad/numeric.h"

using namespace tenon;
using fixtures::distance;
using fixtures::part;
using fixtures::Tensors;

namespace {

/// The layer of a case and its results by name.
struct Fixture {
  nn::AnyModule net;
  std::function<Tensors(const Tensors& in)> call;
};

Tensor given(const Tensors& in, const char* key) {
  const auto it = in.find(key);
  return it == in.end() ? Tensor() : it->second;
}

bool has(const std::string& name, const char* word) { return name.find(word) != std::string::npos; }

template <class Layer>
Fixture layer_of(const nn::RecurrentOptions& options) {
  const Layer layer(5, 4, options);
  return {layer, [layer](const Tensors& in) -> Tensors {
            const Tensor x = given(in, "x"), h = given(in, "hidden"), c = given(in, "cell");
            if constexpr (std::is_same_v<Layer, nn::LSTM>) {
              const auto [output, state] = layer(x, nn::LstmState{h, c}, given(in, "lengths"));
              return {{"output", output}, {"hidden", state.hidden}, {"cell", state.cell}};
            } else {
              const auto [output, hidden] = layer(x, h, given(in, "lengths"));
              return {{"output", output}, {"hidden", hidden}};
            }
          }};
}

template <class Cell>
Fixture cell_of(const nn::CellOptions& options) {
  const Cell cell(5, 4, options);
  return {cell, [cell](const Tensors& in) -> Tensors {
            const Tensor x = given(in, "x"), h = given(in, "hidden"), c = given(in, "cell");
            if constexpr (std::is_same_v<Cell, nn::LSTMCell>) {
              const nn::LstmState state = cell(x, nn::LstmState{h, c});
              return {{"hidden", state.hidden}, {"cell", state.cell}};
            } else {
              return {{"hidden", cell(x, h)}};
            }
          }};
}

Fixture fixture_of(const std::string& name) {
  if (has(name, "_cell")) {
    nn::CellOptions options{.bias = !has(name, "plain")};
    if (has(name, "relu")) options.nonlinearity = "relu";
    if (has(name, "rnn")) return cell_of<nn::RNNCell>(options);
    return has(name, "gru") ? cell_of<nn::GRUCell>(options) : cell_of<nn::LSTMCell>(options);
  }
  nn::RecurrentOptions options;
  options.bias = !has(name, "plain");
  options.bidirectional = has(name, "both") || has(name, "unbatched") || name == "lstm_proj";
  options.batch_first = has(name, "deep") || has(name, "both_lengths");
  if (has(name, "deep") || has(name, "both") || name == "lstm_proj") options.num_layers = 2;
  if (has(name, "proj")) options.proj_size = name == "lstm_proj" ? 3 : 2;
  if (has(name, "relu")) options.nonlinearity = "relu";
  if (has(name, "rnn")) return layer_of<nn::RNN>(options);
  return has(name, "gru") ? layer_of<nn::GRU>(options) : layer_of<nn::LSTM>(options);
}

Tensor weighted_sum(const Tensors& results, const Tensors& weights) {
  Tensor total = scalar(0);
  for (const auto& [key, weight] : weights) total = total + sum(results.at(key) * weight);
  return total;
}

}  // namespace

TEST_CASE("fixtures: recurrent layers give PyTorch's results, states and gradients") {
  for (const auto& entry : fixtures::load("recurrent")) {
    const std::string& name = entry.first;
    const Tensors& stored = entry.second;
    CAPTURE(name);
    Fixture fixture = fixture_of(name);
    const Tensors weights = part(stored, "weights/"), in = part(stored, "in/");
    CHECK(fixture.net.load_state_dict(weights) == static_cast<int>(weights.size()));
    const Tensors results = fixture.call(in);
    const Tensors expected = part(stored, "out/"), gradients = part(stored, "d/");
    for (const auto& one : expected) {
      CAPTURE(one.first);
      CHECK(distance(results.at(one.first), one.second) < 2e-6);
    }
    std::vector<Tensor> wanted;
    std::vector<std::string> keys;
    const StateDict parameters = fixture.net.state_dict();
    for (const auto& [key, value] : gradients) {
      keys.push_back(key);
      wanted.push_back(parameters.contains(key) ? parameters.at(key) : in.at(key));
    }
    const std::vector<Tensor> found = grad(weighted_sum(results, part(stored, "g/")), wanted);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      CAPTURE(keys[k]);
      CHECK(distance(found[k], gradients.at(keys[k])) < 1e-5);
    }
  }
}

TEST_CASE("recurrent: first and second gradients equal finite differences") {
  const auto stored = fixtures::load("recurrent");
  for (const char* name : {"lstm_both_lengths", "gru_both", "rnn_lengths", "lstm_proj"}) {
    CAPTURE(name);
    Fixture fixture = fixture_of(name);
    fixture.net.load_state_dict(part(stored.at(name), "weights/"));
    fixture.net.to(DType::Float64);
    Tensors in = part(stored.at(name), "in/");
    const Tensors weights = part(stored.at(name), "g/");
    const Tensor x = cast(in.at("x"), DType::Float64).compute();
    const Tensor h = cast(in.at("hidden"), DType::Float64).compute();
    const auto value = [&](const std::vector<Tensor>& v) {
      in["x"] = v[0], in["hidden"] = v[1];
      return weighted_sum(fixture.call(in), weights);
    };
    // The squared norm of the gradient; its gradient contains second derivatives.
    const auto slope = [&](const std::vector<Tensor>& v) {
      const std::vector<Tensor> g = grad(value(v), v);
      return sum(square(g[0])) + sum(square(g[1]));
    };
    const std::vector<Tensor> at{x, h};
    for (const ScalarFunction& f : {ScalarFunction(value), ScalarFunction(slope)}) {
      const auto numeric = numeric_gradient(f, at, 1e-6);
      const std::vector<Tensor> exact = grad(f(at), at);
      for (std::size_t k = 0; k < at.size(); ++k) {
        const std::vector<double> g = exact[k].to_vector<double>();
        for (std::size_t e = 0; e < g.size(); e += 3)
          CHECK(g[e] == doctest::Approx(numeric[k][e]).epsilon(1e-5));
      }
    }
  }
}
