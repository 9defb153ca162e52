// Attention on a GPU (the emulated one in CI): values and gradients of 16-bit and float32 operands
// against a float64 computation by definition, and the number of launches.
#include "../run/attention_cases.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <tenon/context.h>

#include "cuda/device/driver.h"
#include "cuda/device/gpu.h"
#include "gpu.h"

using namespace tenon;
using namespace tenon::test::attention;

namespace {

void check_gpu(const Sizes& s, Masked masked, DType dtype, double tolerance) {
  test::attention::check(s, masked, dtype, tolerance, device("cuda"));
}

// Lengths around the edges of tiles, groups of heads, padded head sizes, large heads.
const Sizes kSizes[] = {{2, 4, 2, 3, 5, 8, 16},
                        {1, 2, 2, 57, 130, 40, 24},
                        {1, 3, 1, 129, 64, 64, 64},
                        {1, 2, 1, 70, 100, 128, 72}};

}  // namespace

TEST_CASE("GPU attention: values and gradients of 16-bit operands") {
  if (!test::has_gpu()) return;
  for (const Sizes& s : kSizes)
    for (const Masked masked : {Masked::No, Masked::Causal, Masked::Bool, Masked::Added})
      check_gpu(s, masked, DType::BFloat16, 2e-2);
  check_gpu(kSizes[1], Masked::Causal, DType::Float16, 3e-3);
}

TEST_CASE("GPU attention: values and gradients in tf32") {
  if (!test::has_gpu()) return;
  const PrecisionScope scope(Precision::Tf32);
  for (const Sizes& s : kSizes)
    for (const Masked masked : {Masked::Causal, Masked::Added})
      check_gpu(s, masked, DType::Float32, 2e-3);
}

TEST_CASE("GPU attention: float32 values and gradients are as accurate as the CPU's") {
  if (!test::has_gpu()) return;
  for (const Sizes& s : kSizes)
    for (const Masked masked : {Masked::No, Masked::Causal, Masked::Added}) {
      CAPTURE(s.queries);
      CAPTURE(static_cast<int>(masked));
      const Operands o = operands(s, masked);
      const Tensors there = results_on(device("cuda"), o, masked, DType::Float32, 0),
                    here = results(o, masked, DType::Float32),
                    exact = results(o, masked, DType::Float64);
      for (std::size_t k = 0; k < exact.size(); ++k) {
        CAPTURE(k);
        CHECK(distance(there[k], exact[k]) < 2 * distance(here[k], exact[k]) + 2e-7);
      }
    }
}

TEST_CASE("GPU attention: a query masked by the lowest finite number sees all keys alike") {
  if (!test::has_gpu()) return;
  Context context = current_context();
  context.device = device("cuda");
  const ContextScope scope(context);
  const float least = std::numeric_limits<float>::lowest();
  for (const std::int64_t length : {20, 70}) {
    CAPTURE(length);
    std::vector<float> hides(static_cast<std::size_t>(length * length));
    for (std::int64_t i = 0; i < length * length; ++i)
      if (i / length == 3 || i % length == 5) hides[static_cast<std::size_t>(i)] = least;
    const Tensor mask = Tensor::from<float>(hides, {length, length});
    const Tensor numbers = arange(0, 2 * length * 16, 1, DType::Float32);
    const Tensor q = variable(sin(numbers)), k = variable(cos(numbers));
    const Ints shape{1, 2, length, 16};
    const Tensor rows = reshape(q, shape), keys = reshape(k, shape);
    const Tensor y = scaled_dot_product_attention(rows, keys, keys, mask);
    const std::vector<float> row = slice(y, 2, 3, 4).to_vector<float>(),
                             mean = ::tenon::mean(keys, {2}, true).to_vector<float>();
    for (std::size_t i = 0; i < mean.size(); ++i) CHECK(std::abs(row[i] - mean[i]) < 1e-5F);
    for (const Tensor& slope : grad(sum(y * y), std::vector<Tensor>{q, k}))
      for (const float number : slope.to_vector<float>()) CHECK(std::isfinite(number));
    // Operands in types that the kernels do not read are cast.
    const Tensor wide =
        scaled_dot_product_attention(rows, keys, keys, cast(mask * 1e-38F, DType::Float64));
    const Tensor same = scaled_dot_product_attention(rows, keys, keys, mask * 1e-38F);
    CHECK(wide.to_vector<float>() == same.to_vector<float>());
  }
}

TEST_CASE("GPU attention: a fully masked query gives 0 and has no gradients") {
  if (!test::has_gpu()) return;
  Context context = current_context();
  context.device = device("cuda");
  const ContextScope scope(context);
  for (const DType dtype : {DType::BFloat16, DType::Float16, DType::Float32})
    for (const bool added : {false, true})
      for (const std::int64_t keys : {40, 150}) {  // of one tile and of several
        CAPTURE(name(dtype));
        CAPTURE(added);
        CAPTURE(keys);
        const Tensor seen = logical_and(ne(unsqueeze(arange(0, 20), 1), 3), ge(arange(0, keys), 1));
        const Tensor mask =
            added ? where(seen, zeros({}), -HUGE_VAL) : broadcast_to(seen, {20, keys});
        const auto part = [&](std::int64_t length, double phase) {
          return cast(sin(arange(0, 2 * length * 16, 1, DType::Float32) + phase), dtype);
        };
        const Tensor q = variable(part(20, 0)), k = variable(part(keys, 1)),
                     v = variable(part(keys, 2));
        const Tensor y =
            scaled_dot_product_attention(reshape(q, {1, 2, 20, 16}), reshape(k, {1, 2, keys, 16}),
                                         reshape(v, {1, 2, keys, 16}), mask);
        const Tensors slopes = grad(sum(y * y), Tensors{q, k, v});
        const auto floats = [](const Tensor& t) {
          return cast(t, DType::Float32).to_vector<float>();
        };
        const std::vector<float> rows = floats(y), of_queries = floats(slopes[0]);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          CHECK(std::isfinite(rows[i]));
          CHECK(std::isfinite(of_queries[i]));
          if (i / 16 % 20 != 3) continue;
          CHECK(rows[i] == 0);
          CHECK(of_queries[i] == 0);
        }
        for (const Tensor& slope : {slopes[1], slopes[2]})
          for (const float number : floats(slope)) CHECK(std::isfinite(number));
      }
}

TEST_CASE("GPU attention: a 16-bit query that sees one key has no gradient") {
  if (!test::has_gpu()) return;
  // One tile, several tiles by warps and by warpgroups, and sizes that are computed without a
  // kernel.
  const std::pair<std::int64_t, std::int64_t> sizes[] = {
      {40, 16}, {130, 16}, {130, 128}, {320, 64}, {320, 128}, {6, 1}, {70, 1}, {70, 36}};
  for (const Precision precision : {Precision::Fp32, Precision::Bf16, Precision::Fp16})
    for (const DType dtype : {DType::BFloat16, DType::Float16, DType::Float32})
      for (const auto& [length, size] : sizes) {
        if ((dtype == DType::Float32) != (precision != Precision::Fp32)) continue;
        CAPTURE(name(dtype));
        CAPTURE(static_cast<int>(precision));
        CAPTURE(length);
        CAPTURE(size);
        const PrecisionScope scope(precision);
        const Tensors all = results_on(
            device("cuda"), operands({1, 2, 2, length, length, size, size}, Masked::Causal),
            Masked::Causal, dtype, 0);
        for (const float number : cast(slice(all[1], 2, 0, 1), DType::Float32).to_vector<float>())
          CHECK(std::abs(number) < 2e-5F);
      }
}

TEST_CASE("GPU attention: 16-bit gradients where one weight dominates") {
  if (!test::has_gpu()) return;
  const std::pair<std::int64_t, std::int64_t> sizes[] = {
      {3, 8}, {40, 16}, {130, 64}, {150, 128}, {320, 64}, {320, 128}, {70, 36}};
  for (const DType dtype : {DType::BFloat16, DType::Float16})
    for (const Masked masked : {Masked::No, Masked::Causal})
      for (const auto& [length, size] : sizes) {
        CAPTURE(name(dtype));
        CAPTURE(static_cast<int>(masked));
        CAPTURE(length);
        CAPTURE(size);
        // Each query is close to its own key, whose score is about 10 above the others.
        Operands o = operands({1, 2, 2, length, length, size, size}, masked);
        const Tensor unit = o.k / sqrt(sum(o.k * o.k, {-1}, true));
        const double root = std::sqrt(static_cast<double>(size));
        o.k = unit * root;
        o.q = unit * 10;
        for (Tensor* const x : {&o.q, &o.k, &o.v, &o.seed})
          *x = cast(cast(*x, dtype), DType::Float32).eval();
        const Tensors ours = results_on(device("cuda"), o, masked, dtype, 0),
                      exact = results(o, masked, DType::Float64);
        for (std::size_t k = 0; k < exact.size(); ++k) {
          CAPTURE(k);
          CHECK(distance(ours[k], exact[k]) < (dtype == DType::BFloat16 ? 1e-2 : 1.5e-3));
        }
      }
}

TEST_CASE("GPU attention: 16-bit results are within the rounding of weights and result") {
  if (!test::has_gpu()) return;
  // With u the half of the last digit's step beside 1: u times the sum of weights by sizes of
  // values, and u times the result.
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{40, 16}, {130, 64}, {320, 64}, {70, 36}};
  for (const DType dtype : {DType::BFloat16, DType::Float16})
    for (const auto& [length, size] : sizes) {
      CAPTURE(name(dtype));
      CAPTURE(length);
      CAPTURE(size);
      Operands o = operands({1, 2, 2, length, length, size, size}, Masked::Causal);
      for (Tensor* const x : {&o.q, &o.k, &o.v}) *x = cast(*x, dtype).eval();
      const double u = dtype == DType::BFloat16 ? 0x1p-8 : 0x1p-11;
      AttentionOptions options;
      options.causal = true;
      const auto wide = [](const Tensor& x) { return cast(x, DType::Float64); };
      const Tensor exact =
                       scaled_dot_product_attention(wide(o.q), wide(o.k), wide(o.v), {}, options),
                   most = scaled_dot_product_attention(wide(o.q), wide(o.k), abs(wide(o.v)), {},
                                                       options);
      const Operands there = on(o, device("cuda"));
      const Tensor ours =
          to(scaled_dot_product_attention(there.q, there.k, there.v, {}, options), device("cpu"));
      const Tensor allowed = (most + abs(exact)) * (1.02 * u) + 1e-6;
      CHECK(all(le(abs(wide(ours) - exact), allowed)).item<bool>());
    }
}

TEST_CASE("GPU attention: sequences of one tile: values, gradients, one launch each") {
  if (!test::has_gpu()) return;
  const Sizes more[] = {{2, 3, 3, 64, 64, 64, 64},
                        {2, 2, 2, 33, 61, 40, 24},
                        {1, 4, 2, 64, 1, 8, 64},
                        {1, 2, 2, 17, 64, 64, 8}};
  for (const Sizes& s : more)
    for (const Masked masked : {Masked::No, Masked::Causal, Masked::Bool, Masked::Added}) {
      check_gpu(s, masked, DType::BFloat16, 2e-2);
      check_gpu(s, masked, DType::Float16, 3e-3);
      // With a single key, gradients are differences that should be zero.
      const double apart = s.keys == 1 ? 20 : 1;
      check_gpu(s, masked, DType::Float32, 2e-6 * apart);
      const PrecisionScope scope(Precision::Tf32);
      check_gpu(s, masked, DType::Float32, 2e-3 * apart);
    }
}

TEST_CASE("GPU attention: dropout of weights in the kernel, values and gradients") {
  if (!test::has_gpu()) return;
  const Sizes more[] = {{2, 3, 3, 64, 64, 64, 64},
                        {2, 2, 2, 33, 61, 40, 24},
                        {2, 4, 2, 3, 5, 8, 16},
                        {1, 2, 1, 64, 64, 64, 64},
                        {2, 2, 2, 70, 100, 16, 24}};
  for (const Sizes& s : more)
    for (const Masked masked : {Masked::No, Masked::Causal, Masked::Bool}) {
      test::attention::check(s, masked, DType::BFloat16, 2e-2, device("cuda"), 0.25);
      test::attention::check(s, masked, DType::Float32, 3e-6, device("cuda"), 0.25);
    }
  const PrecisionScope scope(Precision::Bf16);
  test::attention::check(kSizes[1], Masked::Added, DType::Float32, 2e-2, device("cuda"), 0.1);
}

TEST_CASE("GPU attention: dropout drops the same weights as on the CPU") {
  if (!test::has_gpu()) return;
  using Places = std::pair<std::int64_t, std::int64_t>;
  for (const Places& places : {Places{128, 64}, {128, 61}, {64, 64}, {64, 61}}) {
    const std::int64_t queries = places.first, keys = places.second;
    CAPTURE(queries);
    CAPTURE(keys);
    Operands o = operands({1, 2, 2, queries, keys, 16, 64}, Masked::No);
    // Values pick weights out, and so do gradients of the result for those of values.
    const auto picking = [](std::int64_t rows) {
      const Tensor one = eq(unsqueeze(arange(0, rows), 1), arange(0, 64));
      return expand(reshape(cast(one, DType::Float32), {1, 1, rows, 64}), {1, 2, rows, 64}).eval();
    };
    o.v = picking(keys);
    o.seed = picking(queries);
    const Tensors there = results_on(device("cuda"), o, Masked::No, DType::BFloat16, 0.4),
                  here = results(o, Masked::No, DType::Float32, 0.4);
    const auto dropped = [](const Tensor& x) {
      std::vector<bool> out;
      for (const float value : cast(x, DType::Float32).to_vector<float>())
        out.push_back(value == 0);
      return out;
    };
    for (const std::size_t k : {std::size_t{0}, std::size_t{3}})
      CHECK(dropped(there[k]) == dropped(here[k]));
  }
}

TEST_CASE("GPU attention: long sequences by warpgroup products, the same bits every time") {
  if (!test::has_gpu()) return;
  if (!cuda::has_tensor_maps() || cuda::target_of(0).arch != 90) {
    MESSAGE("skipped: no Hopper GPU");
    return;
  }
  const Sizes sizes[] = {{2, 4, 2, 256, 256, 64, 64},   {1, 4, 2, 300, 391, 64, 64},
                         {1, 3, 1, 515, 257, 64, 64},   {1, 2, 2, 1024, 1024, 64, 64},
                         {1, 4, 2, 300, 391, 128, 128}, {1, 2, 2, 640, 256, 128, 128}};
  for (const Sizes& s : sizes)
    for (const Masked masked : {Masked::No, Masked::Causal}) {
      check_gpu(s, masked, DType::BFloat16, 2e-2);
      check_gpu(s, masked, DType::Float16, 3e-3);
      const Operands o = on(operands(s, masked), device("cuda"));
      const Tensors once = results(o, masked, DType::BFloat16),
                    again = results(o, masked, DType::BFloat16);
      for (std::size_t k = 0; k < once.size(); ++k)
        CHECK(cast(once[k], DType::Float32).to_vector<float>() ==
              cast(again[k], DType::Float32).to_vector<float>());
    }
}

TEST_CASE("GPU attention: long sequences with broadcast or reversed operands") {
  if (!test::has_gpu()) return;
  constexpr std::int64_t kLength = 300;
  Generator g(5);
  const auto drawn = [&g](std::int64_t batch, std::int64_t heads) {
    return cast(test::attention::stored({batch, heads, kLength, 64}, g), DType::BFloat16).eval();
  };
  AttentionOptions options;
  options.causal = true;
  const auto check_both = [&](const Tensors& stored, const auto& laid) {
    const auto attended = [&](const Tensors& x) {
      const Tensor k = laid(x[1]);
      const Tensor y = scaled_dot_product_attention(x[0], k, k, {}, options);
      Tensors all = grad(y, Tensors{x[0], x[1]}, laid(x[2]));
      all.push_back(y);
      eval(all);
      return all;
    };
    Tensors moved, wide;
    for (const Tensor& x : stored) {
      moved.push_back(to(x, device("cuda")).eval());
      wide.push_back(cast(x, DType::Float64));
    }
    const Tensors there = attended(moved), here = attended(wide);
    for (std::size_t i = 0; i < here.size(); ++i) {
      CAPTURE(i);
      CHECK(distance(there[i], here[i]) < 2e-2);
    }
  };
  const auto repeated = [](const Tensor& x) { return expand(x, {2, 2, kLength, 64}); };
  check_both({drawn(2, 2), drawn(1, 2), drawn(1, 2)}, repeated);
  check_both({drawn(2, 2), drawn(2, 1), drawn(2, 1)}, repeated);
  check_both({drawn(2, 2), drawn(2, 2), drawn(2, 2)}, [](const Tensor& x) { return flip(x, {2}); });
  check_both({drawn(1, 1), drawn(1, 1), drawn(1, 1)}, [](const Tensor& x) { return x; });
}

TEST_CASE("GPU attention: long sequences: gradients of keys only") {
  if (!test::has_gpu()) return;
  const Operands o = on(operands({1, 4, 2, 300, 391, 64, 64}, Masked::Causal), device("cuda"));
  const Tensors all = results(o, Masked::Causal, DType::BFloat16);
  AttentionOptions options;
  options.causal = options.enable_gqa = true;
  const Tensor q = cast(o.q, DType::BFloat16), k = cast(o.k, DType::BFloat16),
               v = cast(o.v, DType::BFloat16);
  const Tensor y = scaled_dot_product_attention(q, k, v, {}, options);
  const Tensor alone = grad(y, Tensors{k}, cast(o.seed, DType::BFloat16))[0];
  CHECK(cast(alone, DType::Float32).to_vector<float>() ==
        cast(all[2], DType::Float32).to_vector<float>());
}

TEST_CASE("GPU attention: float32 operands multiplied in 16 bits") {
  if (!test::has_gpu()) return;
  for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
    const PrecisionScope scope(precision);
    for (const Masked masked : {Masked::Causal, Masked::Added})
      check_gpu(kSizes[1], masked, DType::Float32, precision == Precision::Bf16 ? 2e-2 : 3e-3);
  }
}

TEST_CASE("GPU attention: operands that tensor cores do not support are decomposed") {
  if (!test::has_gpu()) return;
  check_gpu({1, 2, 2, 20, 30, 36, 20}, Masked::Causal, DType::BFloat16, 3e-2);
  check_gpu({1, 2, 2, 20, 30, 36, 20}, Masked::Causal, DType::Float32, 5e-5);
  check_gpu({1, 2, 2, 20, 30, 136, 16}, Masked::No, DType::Float32, 5e-5);
}

TEST_CASE("GPU attention: rows that are not aligned are copied first; the same bits every time") {
  if (!test::has_gpu()) return;
  const Operands o = operands({1, 2, 2, 40, 40, 17, 16}, Masked::No);
  for (const DType dtype : {DType::BFloat16, DType::Float32}) {
    const Tensor x = cast(to(o.q, device("cuda")), dtype).eval(),
                 part = slice(x, -1, 1, 17);  // begins at an odd element
    const auto y = [&] { return scaled_dot_product_attention(part, part, part).eval(); };
    const Tensor wide = cast(slice(cast(o.q, dtype), -1, 1, 17), DType::Float64);
    CHECK(distance(y(), scaled_dot_product_attention(wide, wide, wide)) <
          (dtype == DType::Float32 ? 2e-6 : 2e-2));
    CHECK(cast(y(), DType::Float32).to_vector<float>() ==
          cast(y(), DType::Float32).to_vector<float>());
  }
}

TEST_CASE("GPU attention: one step forward, one backward, nothing between the products") {
  if (!test::has_gpu()) return;
  const Operands o = on(operands({1, 2, 2, 64, 64, 64, 64}, Masked::No), device("cuda"));
  const CompiledFunction f = compile([](const Tensors& x) {
    const Tensors in = {x[0], x[1], x[2]};
    Tensors gradients = grad(scaled_dot_product_attention(x[0], x[1], x[2]), in, x[3]);
    for (Tensor& g : gradients) g = transpose(g, 1, 2);  // as they are stored
    return gradients;
  });
  for (const DType dtype : {DType::BFloat16, DType::Float32}) {
    Tensors in;
    for (const Tensor& x : {o.q, o.k, o.v, o.seed}) in.push_back(cast(x, dtype).eval());
    CHECK(f.plan(in).step_count() == 2);
  }
}

TEST_CASE("GPU attention: no weights in memory with dropout") {
  if (!test::has_gpu()) return;
  const Operands o = on(operands({1, 2, 2, 512, 512, 16, 16}, Masked::No), device("cuda"));
  const CompiledFunction f = compile([](const Tensors& x) {
    AttentionOptions options;
    options.dropout_p = 0.1;
    return grad(scaled_dot_product_attention(x[0], x[1], x[2], {}, options),
                Tensors{x[0], x[1], x[2]}, x[3]);
  });
  for (const DType dtype : {DType::BFloat16, DType::Float32}) {
    Tensors in;
    for (const Tensor& x : {o.q, o.k, o.v, o.seed}) in.push_back(cast(x, dtype).eval());
    CHECK(f.plan(in).arena_bytes() < 256 * 512 * static_cast<std::int64_t>(item_size(dtype)));
  }
}

TEST_CASE(
    "GPU attention: gradients are written into a joint projection's gradient without a copy") {
  if (!test::has_gpu()) return;
  constexpr std::int64_t kBatch = 2, kHeads = 4, kKvHeads = 2, kSize = 16;
  constexpr std::int64_t kRow = (kHeads + 2 * kKvHeads) * kSize;
  AttentionOptions options;
  options.causal = options.enable_gqa = true;
  for (const std::int64_t length : {std::int64_t{9}, std::int64_t{70}}) {
    CAPTURE(length);
    // [batch, length, (query heads, key heads, value heads) * size]
    const auto gradient = [&](const Tensors& in) {
      const auto part = [&](std::int64_t first, std::int64_t heads) {
        const Tensor columns = slice(in[0], 2, first * kSize, (first + heads) * kSize);
        return transpose(reshape(columns, {kBatch, length, heads, kSize}), 1, 2);
      };
      const Tensor y = scaled_dot_product_attention(part(0, kHeads), part(kHeads, kKvHeads),
                                                    part(kHeads + kKvHeads, kKvHeads), {}, options);
      return grad(y, Tensors{in[0]}, in[1]);
    };
    Generator g(5);
    const Tensor x = randn({kBatch, length, kRow}, DType::Float32, &g).eval(),
                 seed = randn({kBatch, kHeads, length, kSize}, DType::Float32, &g).eval();
    for (const DType dtype : {DType::BFloat16, DType::Float32}) {
      Tensors there, exact;
      for (const Tensor& one : {x, seed}) {
        there.push_back(cast(to(one, device("cuda")), dtype).eval());
        exact.push_back(cast(cast(one, dtype), DType::Float64).eval());
      }
      const CompiledFunction f = compile(gradient);
      CHECK(distance(f(there)[0], gradient(exact)[0]) < (dtype == DType::Float32 ? 2e-6 : 2e-2));
      CHECK(f.plan(there).step_count() == 2);
    }
  }
}

TEST_CASE("GPU attention: long sequences: sums of gradients start where the gradients are stored") {
  if (!test::has_gpu()) return;
  if (!cuda::has_tensor_maps() || cuda::target_of(0).arch != 90) {
    MESSAGE("skipped: no Hopper GPU");
    return;
  }
  constexpr std::int64_t kBatch = 2, kHeads = 4, kKvHeads = 2;
  AttentionOptions options;
  options.causal = options.enable_gqa = true;
  for (const std::int64_t size : {64, 128}) {
    CAPTURE(size);
    const std::int64_t length = 384 - size, row = (kHeads + 2 * kKvHeads) * size;
    const auto gradient = [&](const Tensors& in) {
      const Tensor all = add(in[0], in[1]);
      const auto part = [&](std::int64_t first, std::int64_t heads) {
        const Tensor columns = slice(all, 2, first * size, (first + heads) * size);
        return transpose(reshape(columns, {kBatch, length, heads, size}), 1, 2);
      };
      const Tensor y = scaled_dot_product_attention(part(0, kHeads), part(kHeads, kKvHeads),
                                                    part(kHeads + kKvHeads, kKvHeads), {}, options);
      const Tensor g = reshape(grad(y, Tensors{all}, in[2])[0], {kBatch * length, row});
      return Tensors{g, sum(g.dtype() == DType::BFloat16 ? cast(g, DType::Float32) : g, 0)};
    };
    Generator g(7);
    Tensors there, exact;
    for (const Shape& shape :
         {Shape({kBatch, length, row}), Shape({row}), Shape({kBatch, kHeads, length, size})}) {
      const Tensor one = cast(randn(shape, DType::Float32, &g), DType::BFloat16).eval();
      there.push_back(to(one, device("cuda")).eval());
      exact.push_back(cast(one, DType::Float64).eval());
    }
    const CompiledFunction f = compile(gradient);
    const Tensors found = f(there), again = f(there), expected = gradient(exact);
    CHECK(distance(found[0], expected[0]) < 2e-2);
    CHECK(distance(found[1], expected[1]) < 2e-2);
    CHECK(distance(found[1], sum(cast(to(found[0], device("cpu")), DType::Float64), 0)) < 1e-2);
    CHECK(found[1].to_vector<float>() == again[1].to_vector<float>());
    CHECK(f.plan(there).fusion().find("reads sums of 64 rows") != std::string::npos);
  }
}
