// Attention in tiles against a float64 computation by definition: lengths around the tiles' edges,
// groups of heads, masks, views, 16-bit types; bits and memory.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include <tenon/context.h>
#include <tenon/error.h>

#include "../run/attention_cases.h"

using namespace tenon;
using namespace tenon::test::attention;

namespace {

const Sizes kSizes[] = {{1, 1, 1, 2, 3, 1, 1},      {2, 4, 2, 3, 5, 4, 7},
                        {1, 2, 2, 57, 130, 40, 24}, {2, 6, 3, 129, 64, 33, 65},
                        {1, 3, 1, 300, 257, 16, 8}, {2, 2, 2, 64, 64, 64, 64}};

}  // namespace

TEST_CASE("attention: values and gradients around the edges of tiles") {
  for (const Sizes& s : kSizes)
    for (const Masked masked : {Masked::No, Masked::Causal, Masked::Bool, Masked::Added})
      check(s, masked, DType::Float32, 3e-6);
}

TEST_CASE("attention: 16-bit types") {
  for (const Sizes& s : kSizes)
    for (const Masked masked : {Masked::No, Masked::Causal, Masked::Bool}) {
      check(s, masked, DType::Float16, 3e-3);
      check(s, masked, DType::BFloat16, 2e-2);
    }
}

TEST_CASE("attention: float32 operands multiplied in bfloat16") {
  const PrecisionScope precision(Precision::Bf16);
  for (const Sizes& s : kSizes) check(s, Masked::Causal, DType::Float32, 2e-2);
}

TEST_CASE("attention: weights are dropped as dropout() drops them, gradients and theirs too") {
  const Sizes sizes[] = {{2, 4, 2, 3, 5, 4, 7}, {1, 2, 2, 9, 12, 8, 8}};
  for (const Sizes& s : sizes)
    for (const Masked masked : {Masked::No, Masked::Causal, Masked::Added}) {
      CAPTURE(s.keys);
      CAPTURE(static_cast<int>(masked));
      const Operands o = operands(s, masked);
      const auto wide = [](const Tensor& x) {
        return x.defined() ? cast(x, DType::Float64).eval() : x;
      };
      const Tensors in = {wide(o.q), wide(o.k), wide(o.v)};
      const Tensor mask = wide(o.mask), seed = wide(o.seed);
      const auto fused = [&](Generator& g) {
        AttentionOptions options;
        options.causal = masked == Masked::Causal;
        options.enable_gqa = true;
        options.dropout_p = 0.3;
        options.generator = &g;
        return scaled_dot_product_attention(in[0], in[1], in[2], mask, options);
      };
      const auto by_hand = [&](Generator& g) {
        const std::int64_t groups = s.heads / s.kv_heads;
        const auto repeated = [&](const Tensor& x) {
          const Tensor apart = unsqueeze(x, 2);
          return reshape(expand(apart, {s.batch, s.kv_heads, groups, s.keys, x.size(3)}),
                         {s.batch, s.heads, s.keys, x.size(3)});
        };
        const double scale = 1 / std::sqrt(static_cast<double>(s.size));
        Tensor scores = matmul(in[0], transpose(repeated(in[1]))) * scale;
        if (masked == Masked::Added) scores = scores + mask;
        if (masked == Masked::Causal)
          scores =
              where(ge(unsqueeze(arange(0, s.queries), 1), arange(0, s.keys)), scores, -HUGE_VAL);
        return matmul(dropout(softmax(scores, -1), 0.3, true, &g), repeated(in[2]));
      };
      const auto all = [&](const auto& attention) {
        Generator g(5);
        const Tensor y = attention(g);
        Tensors out = grad(sum(y * seed), in);
        const Tensors again = grad(sum(square(out[0])) + sum(square(out[2])), in);
        out.insert(out.end(), again.begin(), again.end());
        out.push_back(y);
        return out;
      };
      const Tensors one = all(fused), other = all(by_hand);
      for (std::size_t k = 0; k < one.size(); ++k) {
        CAPTURE(k);
        CHECK(distance(one[k], other[k]) < 1e-7);
      }
    }
}

TEST_CASE(
    "attention: weights that are dropped, in float32 and 16 bits; all of them, or no such share") {
  for (const Masked masked : {Masked::No, Masked::Causal, Masked::Bool}) {
    check(kSizes[2], masked, DType::Float32, 3e-6, {}, 0.2);
    check(kSizes[2], masked, DType::BFloat16, 2e-2, {}, 0.2);
  }
  const Operands o = operands(kSizes[1], Masked::No);
  AttentionOptions options;
  options.enable_gqa = true;
  options.dropout_p = 1;
  CHECK(amax(abs(scaled_dot_product_attention(o.q, o.k, o.v, {}, options))).item() == 0);
  options.dropout_p = 1.5;
  CHECK_THROWS_AS(scaled_dot_product_attention(o.q, o.k, o.v, {}, options), ValueError);
}

TEST_CASE("attention: the same bits for any number of threads") {
  const Operands o = operands({2, 6, 3, 300, 257, 33, 65}, Masked::Causal);
  const Tensors once = results(o, Masked::Causal, DType::Float32);
  for (const int threads : {1, 2, 5}) {
    Context context = current_context();
    context.threads = threads;
    const ContextScope scope(context);
    const Tensors again = results(o, Masked::Causal, DType::Float32);
    for (std::size_t k = 0; k < once.size(); ++k)
      CHECK(once[k].to_vector<float>() == again[k].to_vector<float>());
  }
}

TEST_CASE("attention: large scores, fully masked queries, NaN") {
  const Operands o = operands({1, 1, 1, 70, 200, 8, 8}, Masked::No);
  const Tensor large = scaled_dot_product_attention(o.q * 1e4, o.k, o.v);
  CHECK(distance(large, scaled_dot_product_attention(cast(o.q, DType::Float64) * 1e4,
                                                     cast(o.k, DType::Float64),
                                                     cast(o.v, DType::Float64))) < 1e-3);
  // Query 3 sees no key; query 5 sees none of the first 150.
  const Tensor row = unsqueeze(arange(0, 70), 1), key = arange(0, 200);
  const Tensor seen = logical_and(ne(row, 3), logical_or(ne(row, 5), ge(key, 150)));
  const std::vector<float> y = scaled_dot_product_attention(o.q, o.k, o.v, seen).to_vector<float>();
  for (std::int64_t i = 0; i < 70 * 8; ++i)
    CHECK((y[static_cast<std::size_t>(i)] == 0) == (i / 8 == 3));
  const Tensor late = scaled_dot_product_attention(slice(o.q, 2, 5, 6), slice(o.k, 2, 150, 200),
                                                   slice(o.v, 2, 150, 200));
  const std::vector<float> wanted = late.to_vector<float>();
  for (std::size_t e = 0; e < 8; ++e) CHECK(y[40 + e] == doctest::Approx(wanted[e]).epsilon(1e-5));
  const Tensor broken = where(eq(reshape(arange(0, 70), {70, 1}), 11), NAN, o.q);
  const std::vector<float> z = scaled_dot_product_attention(broken, o.k, o.v).to_vector<float>();
  for (std::int64_t i = 0; i < 70 * 8; ++i)
    CHECK(std::isnan(z[static_cast<std::size_t>(i)]) == (i / 8 == 11));
}

TEST_CASE("attention: no scores in memory") {
  Context context = current_context();
  context.threads = 2;  // each thread has its own tiles
  const ContextScope scope(context);
  const Operands o = operands({1, 1, 1, 4096, 4096, 16, 16}, Masked::Causal);
  const CompiledFunction f = compile([](const Tensors& x) {
    AttentionOptions causal;
    causal.causal = true;
    const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], {}, causal);
    Tensors all = grad(sum(square(y)), x);
    all.push_back(y);
    return all;
  });
  CHECK(f.plan({o.q, o.k, o.v}).peak_bytes() < 16 << 20);  // the scores alone would take 64 MiB
}
