// Attention and Transformer layers: caches, grouped queries, names, positions, errors, dropout.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/optim.h>
#include <tenon/transformer.h>

using namespace tenon;

namespace {

double largest_difference(const Tensor& a, const Tensor& b) {
  CHECK(a.shape() == b.shape());
  return amax(abs(a - b)).item();
}

}  // namespace

TEST_CASE("attention: decoding with a cache equals the whole sequence with a causal mask") {
  manual_seed(1);
  for (const bool first : {false, true}) {
    const nn::MultiheadAttention net(8, 4, {.batch_first = first, .kv_heads = 2});
    const int along = first ? 1 : 0;
    const Tensor x = randn(first ? Shape{2, 5, 8} : Shape{5, 2, 8}).compute();
    const Tensor whole = net(x, x, x, nn::AttentionMask{.causal = true});
    nn::KeyValueCache cache = net.empty_cache(2, 7);  // more positions than are used
    CHECK(cache.keys.shape() == Shape{2, 2, 7, 2});
    std::vector<Tensor> rows;
    for (std::int64_t place = 0; place < 5; ++place) {
      nn::CachedResult made =
          net(slice(x, along, place, place + 1), cache, scalar(place, DType::Int64));
      rows.push_back(made.output);
      cache = made.cache;
    }
    CHECK(largest_difference(concat(rows, along), whole) < 1e-6);
    CHECK_THROWS_AS(net(x, cache, scalar(0, DType::Int64)), ShapeError);
  }
}

TEST_CASE("attention: query, key and value of one x use one product and equal three") {
  manual_seed(4);
  for (const std::int64_t kv_heads : {4, 2}) {
    CAPTURE(kv_heads);
    const nn::MultiheadAttention net(8, 4, {.kv_heads = kv_heads});
    const Tensor x = randn({5, 3, 8}).compute(), y = randn({7, 3, 8}).compute();
    const auto copy = [](const Tensor& t) { return Tensor::from(t.to_vector<float>(), t.shape()); };
    const auto results = [&](const Tensor& query, const Tensor& key, const Tensor& value) {
      std::vector<Tensor> in{query};
      for (const nn::NamedTensor& p : net.named_parameters()) in.push_back(p.tensor);
      const Tensor out = net(query, key, value);
      std::vector<Tensor> all = grad(sum(out * out), in);
      all.push_back(out);
      return all;
    };
    const auto steps = [&](const std::vector<Tensor>& inputs) {
      const CompiledFunction f = compile([&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{net(in.front(), in[in.size() / 2], in.back())};
      });
      return f.plan(inputs).step_count();
    };
    const std::vector<Tensor> one = results(x, y, y), apart = results(x, y, copy(y));
    for (std::size_t k = 0; k < one.size(); ++k) CHECK(largest_difference(one[k], apart[k]) < 1e-5);
    const Tensor same = net(x, x, x), three = net(x, copy(x), copy(x));
    CHECK(largest_difference(same, three) < 1e-6);
    CHECK(steps({x}) < steps({x, copy(x), copy(x)}));
  }
}

TEST_CASE("transformer: a decoder gives the same output position by position") {
  manual_seed(2);
  nn::Transformer net(8, 2, 1, 2, {.dim_feedforward = 16, .dropout = 0.3});
  net.eval();
  const Tensor src = randn({4, 3, 8}).compute(), tgt = randn({5, 3, 8}).compute();
  const Tensor whole = net(src, tgt, nn::AttentionMask{}, nn::AttentionMask{.causal = true});
  std::vector<nn::DecoderCache> caches = net.decoder().start(net.encoder()(src), 5);
  std::vector<Tensor> rows;
  for (std::int64_t place = 0; place < 5; ++place) {
    auto made = net.decoder()(slice(tgt, 0, place, place + 1), caches, scalar(place, DType::Int64));
    rows.push_back(made.output);
    caches = made.caches;
  }
  CHECK(largest_difference(concat(rows, 0), whole) < 2e-6);
  caches.pop_back();
  CHECK_THROWS_AS(net.decoder()(slice(tgt, 0, 0, 1), caches, scalar(0, DType::Int64)), ValueError);
}

TEST_CASE("transformer: defaults, parameter names and counts are PyTorch's") {
  const nn::TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 12});
  std::vector<std::string> names;
  for (const nn::NamedTensor& p : layer.named_parameters()) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"self_attn.in_proj_weight", "self_attn.in_proj_bias",
                                          "self_attn.out_proj.weight", "self_attn.out_proj.bias",
                                          "linear1.weight", "linear1.bias", "linear2.weight",
                                          "linear2.bias", "norm1.weight", "norm1.bias",
                                          "norm2.weight", "norm2.bias"});
  const nn::Transformer net(16, 2, 1, 1, {.dim_feedforward = 32});
  const StateDict state = net.state_dict();
  CHECK(state.contains("encoder.layers.0.norm2.bias"));
  CHECK(state.contains("decoder.layers.0.multihead_attn.out_proj.weight"));
  CHECK(state.contains("decoder.norm.weight"));
}

TEST_CASE("transformer: a layer learns, and dropout is active in training only") {
  manual_seed(3);
  nn::TransformerEncoder net(1, 8, 2, {.dim_feedforward = 16, .dropout = 0.1}, true);
  const Tensor x = randn({4, 16, 8}).compute(), y = flip(x, {0}).compute();
  const auto first = net(x).to_vector<float>();
  CHECK(first != net(x).to_vector<float>());
  net.eval();
  CHECK(net(x).to_vector<float>() == net(x).to_vector<float>());
  net.train();
  optim::Adam adam(net, {.lr = 0.01});
  const double before = adam.step(mse_loss(net(x), y)).item();
  Tensor loss;
  for (int k = 0; k < 60; ++k) loss = adam.step(mse_loss(net(x), y));
  CHECK(loss.item() < 0.8 * before);
}

TEST_CASE("attention: wrong shapes and options are refused by name") {
  CHECK_THROWS_AS(nn::MultiheadAttention(8, 3), ValueError);
  CHECK_THROWS_AS(nn::MultiheadAttention(8, 4, {.kv_heads = 3}), ValueError);
  const nn::MultiheadAttention net(8, 2);
  const Tensor x = zeros({4, 2, 8});
  CHECK_THROWS_WITH_AS(net(x, x, zeros({4, 2, 7})), doctest::Contains("value [L, N, 8]"),
                       ShapeError);
  CHECK_THROWS_AS(net(x, x, x, nn::AttentionMask{.mask = zeros({3, 4})}), ShapeError);
  CHECK_THROWS_AS(net(x, x, x, nn::AttentionMask{.key_padding = zeros({4, 2})}), ShapeError);
  const Tensor whole = zeros({2, 4}, DType::Int64);  // int64, as from a tokenizer
  CHECK_THROWS_AS(net(x, x, x, nn::AttentionMask{.key_padding = whole}), DTypeError);
  CHECK_THROWS_AS(nn::TransformerEncoderLayer(8, 2, {.activation = "rellu"}), ValueError);
}

TEST_CASE("attention: a position outside the cache, and an invalid cache, are refused by name") {
  const nn::MultiheadAttention net(8, 4, {.batch_first = true, .kv_heads = 2});
  const Tensor x = randn({3, 1, 8}).compute();
  const nn::KeyValueCache cache = net.empty_cache(3, 5);
  const Scope scope("decoder.self_attn");
  const auto at = [&](const Tensor& place) { return net(x, cache, place).output.compute(); };
  const auto index = [](std::int64_t place) {
    return Tensor::from(std::vector<std::int64_t>{place}, {});
  };
  for (const std::int64_t place : {std::int64_t{-1}, std::int64_t{5}}) {
    const std::string text = "attention (decoder.self_attn): the position " +
                             std::to_string(place) + " is outside a cache of 5";
    CHECK_THROWS_WITH_AS(at(index(place)), doctest::Contains(text.c_str()), ValueError);
    CHECK_THROWS_AS(at(scalar(place, DType::Int64)), ValueError);
    CHECK_THROWS_AS(at(cast(index(place), DType::Int32).compute()), ValueError);
  }
  CHECK_THROWS_WITH_AS(at(scalar(1.0)), doctest::Contains("the position is float32"), DTypeError);
  CHECK_THROWS_AS(at(zeros({}, DType::Bool)), DTypeError);
  for (const Shape& shape : {Shape{2}, Shape{5}, Shape{3, 5}})
    CHECK_THROWS_WITH_AS(at(zeros(shape, DType::Int64)), doctest::Contains("must be one number"),
                         ShapeError);
  CHECK_THROWS_WITH_AS(at(Tensor()), doctest::Contains("given as position has no value"),
                       ValueError);
  CHECK(equal(at(zeros({1}, DType::Int64)), at(index(0))));
  CHECK(equal(at(cast(index(4), DType::Int32)), at(index(4))));

  const auto with = [&](const Tensor& keys, const Tensor& values) {
    const nn::KeyValueCache given{keys, values};
    (void)net(x, given, index(0)).output.compute();
  };
  const auto refuses_shape = [&](const Tensor& keys, const Tensor& values) {
    CHECK_THROWS_WITH_AS(with(keys, values),
                         doctest::Contains("takes a cache of keys and values [3, 2, positions, 2]"),
                         ShapeError);
    CHECK_THROWS_AS(net(x, nn::KeyValueCache{keys, values}).compute(), ShapeError);
  };
  const Tensor keys = cache.keys;
  for (const Shape& shape : {Shape{2, 2, 5, 2}, Shape{1, 2, 5, 2}, Shape{3, 4, 5, 2},
                             Shape{3, 2, 5, 3}, Shape{3, 2, 5}, Shape{3, 2, 6, 2}})
    refuses_shape(keys, zeros(shape));
  refuses_shape(zeros({3, 2, 5}), zeros({3, 2, 5}));
  for (const DType dtype : {DType::Int64, DType::BFloat16, DType::Float64})
    CHECK_THROWS_AS(with(cast(keys, dtype), cast(keys, dtype)), DTypeError);
  CHECK_THROWS_WITH_AS(with(keys, Tensor()),
                       doctest::Contains("given as values of the cache has no value"), ValueError);
}

TEST_CASE("attention: a query, key or value that was never assigned is named") {
  const nn::MultiheadAttention net(8, 2);
  const Tensor x = zeros({4, 2, 8}), none;
  CHECK_THROWS_WITH_AS(net(none, x, x), doctest::Contains("given as query has no value"),
                       ValueError);
  CHECK_THROWS_WITH_AS(net(x, none, x), doctest::Contains("given as key has no value"), ValueError);
  CHECK_THROWS_WITH_AS(net(x, x, none), doctest::Contains("given as value has no value"),
                       ValueError);
  CHECK_THROWS_WITH_AS(nn::rotary(none), doctest::Contains("rotary: x has no value"), ValueError);
}

TEST_CASE("attention: without keys the result is zero, as in PyTorch") {
  const Tensor q = randn({2, 3, 4}).compute(), keys = zeros({2, 0, 4}), values = zeros({2, 0, 5});
  CHECK(equal(scaled_dot_product_attention(q, keys, values), zeros({2, 3, 5})));
  CHECK(equal(grad(sum(scaled_dot_product_attention(q, keys, values)), q), zeros({2, 3, 4})));
}

TEST_CASE("positions: sinusoids are the paper's; rotary products depend on distances only") {
  const std::vector<float> p = nn::sinusoid_positions(3, 4).to_vector<float>();
  CHECK(p[0] == 0);
  CHECK(p[1] == 1);
  CHECK(p[4] == doctest::Approx(std::sin(1.0)));
  CHECK(p[11] == doctest::Approx(std::cos(2 / 100.0)));
  CHECK(nn::sinusoid_positions(2, 3).shape() == Shape{2, 3});
  CHECK_THROWS_AS(nn::sinusoid_positions(0, 4), ValueError);

  const Tensor q = randn({1, 6}).compute(), k = randn({1, 6}).compute();
  const auto product = [&](std::int64_t a, std::int64_t b) {
    const Tensor at_a = Tensor::from<std::int64_t>({a}, {1});
    const Tensor at_b = Tensor::from<std::int64_t>({b}, {1});
    return sum(nn::rotary(q, at_a) * nn::rotary(k, at_b)).item();
  };
  CHECK(product(3, 1) == doctest::Approx(product(9, 7)).epsilon(1e-4));
  CHECK_THROWS_AS(nn::rotary(zeros({2, 3})), ShapeError);
  CHECK_THROWS_AS(nn::rotary(zeros({2, 4}), zeros({3}, DType::Int64)), ShapeError);
}
