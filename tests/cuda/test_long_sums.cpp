// Sums over many rows on a GPU, real or emulated: of the columns of short rows in the same kernel,
// of updates to the long rows of an embedding, and of a normalisation's gradients with products
// stored in 16 bits; deterministic.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "../base/distance.h"
#include "../null/planning.h"
#include "gpu.h"

using namespace tenon;
using test::distance;

namespace {

Tensor drawn(const Shape& shape, double scale, std::int64_t seed) {
  const Tensor k = arange(0, shape.numel());
  const Tensor x = cast(remainder(k * k * (31 + seed) + k * 7919, 1009), DType::Float64) / 504 - 1;
  return (x * scale).reshape(Ints(shape.begin(), shape.end()));
}

/// The same graph on the GPU in float32, twice, and on the CPU in float64.
template <class Make>
void check(const Make& make, double tolerance) {
  const auto values = [&](DType dtype) {
    std::vector<Tensor> all = make(dtype);
    eval(all);
    for (Tensor& t : all) t = cast(t, DType::Float64);
    eval(all);
    std::vector<std::vector<double>> out;
    for (const Tensor& t : all) out.push_back(t.to_vector<double>());
    return out;
  };
  const auto wanted = values(DType::Float64);
  set_device("cuda");
  const auto got = values(DType::Float32), again = values(DType::Float32);
  set_device("cpu");
  CHECK(got == again);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    CAPTURE(k);
    CHECK(distance(got[k], wanted[k]) < tolerance);
  }
}

Tensor on(const Tensor& x, DType dtype) { return cast(x, dtype).eval(); }

std::vector<Tensor> norm_gradients(DType dtype, std::int64_t rows, std::int64_t length) {
  const Tensor x = on(drawn({rows, length}, 2, 0), dtype), w = on(drawn({length}, 1, 2), dtype),
               b = on(drawn({length}, 1, 4), dtype), g = on(drawn({rows, length}, 1, 6), dtype);
  const Tensor y = layer_norm(x, {length}, w, b);
  return grad(sum(y * y * g) + sum(x * g), std::vector<Tensor>{x, w, b});
}

/// Of rows of 16 bits, stored as `stored`: a normalisation behind a sum and a bias, or its gradient
/// beside a residual's with all sums over rows.
std::vector<Tensor> packed_rows(DType dtype, bool backward, DType stored, std::int64_t rows,
                                std::int64_t length) {
  const auto short_rows = [&](double scale, std::int64_t seed) {
    return cast(on(drawn({rows, length}, scale, seed), DType::BFloat16), dtype);
  };
  const auto vector = [&](std::int64_t seed) { return on(drawn({length}, 1, seed), dtype); };
  const Tensor x = short_rows(2, 0), residual = short_rows(1, 3), g = short_rows(1, 6);
  const Tensor w = vector(2), b = vector(4);
  if (!backward) {
    const Tensor stream = x + (residual + vector(8));
    return {cast(stream, stored), cast(layer_norm(stream, {length}, w, b), stored)};
  }
  std::vector<Tensor> all =
      grad(sum(layer_norm(x, {length}, w, b) * g), std::vector<Tensor>{x, w, b});
  all[0] = all[0] + residual;
  all.push_back(sum(all[0], 0));
  const Tensor mask = on(lt(drawn({rows, length}, 1, 9), 0.5), DType::Bool);
  all.push_back(cast(where(mask, all[0], 0), stored));
  all[0] = cast(all[0], stored);
  return all;
}

constexpr std::int64_t kWords = 5003, kWidth = 131;

std::vector<Tensor> embedding_gradient(DType dtype, const Tensor& index) {
  const Tensor w = on(drawn({kWords, kWidth}, 1, 0), dtype),
               g = on(drawn({index.numel(), kWidth}, 1, 3), dtype);
  return {grad(sum(embedding(index, w) * g), w)};
}

struct Block {
  Tensor x, w, v, scale;

  std::vector<Tensor> roots() const {
    const Tensor y = x + matmul(layer_norm(x, {x.size(1)}, scale), w);
    const Tensor z = y + matmul(layer_norm(y, {x.size(1)}, scale), v);
    return grad(sum(square(layer_norm(z, {x.size(1)})) * z), std::vector<Tensor>{x, w, v, scale});
  }
};

constexpr std::int64_t kRows = 2112, kSide = 512;

}  // namespace

TEST_CASE("cuda long sums: rows of two warps up to a block, after a sum and a bias") {
  if (!test::has_gpu()) return;
  for (const std::int64_t length : {641, 700, 768, 1000, 1024}) {
    CAPTURE(length);
    check(
        [length](DType dtype) {
          const Tensor x = on(drawn({9, length}, 2, 0), dtype),
                       y = on(drawn({9, length}, 1, 2), dtype),
                       bias = on(drawn({length}, 1, 4), dtype),
                       w = on(drawn({length}, 1, 6), dtype), b = on(drawn({length}, 1, 8), dtype);
          const Tensor stream = x + (y + bias);
          return std::vector<Tensor>{stream, layer_norm(stream, {length}, w, b)};
        },
        2e-6);
  }
}

TEST_CASE("cuda long sums: columns of a normalisation's gradients") {
  if (!test::has_gpu()) return;
  for (const auto& [rows, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {2048, 64}, {2051, 257}, {4100, 130}, {2100, 512}, {2100, 768}, {2500, 1024}})
    check([r = rows, n = length](DType dtype) { return norm_gradients(dtype, r, n); }, 3e-5);
}

TEST_CASE("cuda long sums: 16-bit rows are loaded ahead, each by one warp") {
  if (!test::has_gpu()) return;
  for (const auto& [rows, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {2048, 64}, {2051, 264}, {2201, 768}, {2500, 1024}})
    for (const DType stored : {DType::Float32, DType::BFloat16})
      for (const bool backward : {false, true})
        check([=, r = rows,
               n = length](DType dtype) { return packed_rows(dtype, backward, stored, r, n); },
              stored == DType::Float32 ? 3e-5 : 3e-3);
}

TEST_CASE("cuda long sums: updates of long rows in the order of their indices") {
  if (!test::has_gpu()) return;
  const auto spread = [] { return remainder(arange(0, 3001) * 7919, kWords); };
  check([&](DType dtype) { return embedding_gradient(dtype, spread()); }, 3e-6);
  check([](DType dtype) { return embedding_gradient(dtype, zeros({4097}, DType::Int64)); }, 3e-6);
  check([](DType dtype) { return embedding_gradient(dtype, arange(kWords - 1, kWords)); }, 3e-6);
  // Most indices are equal: more of one than a block lists at a time.
  check(
      [](DType dtype) {
        const Tensor k = arange(0, 9001);
        return embedding_gradient(dtype, where(lt(remainder(k, 3), 2), 17, remainder(k, 40)));
      },
      3e-6);
  // Added to existing values.
  check(
      [&](DType dtype) {
        const Tensor base = on(drawn({kWords, kWidth}, 1, 0), dtype),
                     rows = on(drawn({3001, kWidth}, 1, 5), dtype);
        return std::vector<Tensor>{index_add(base, 0, spread(), rows, 2)};
      },
      3e-6);
}

TEST_CASE("cuda long sums: products beside normalisations are stored in 16 bits") {
  if (!test::has_gpu()) return;
  const auto made = [](DType dtype) {
    return Block{on(drawn({kRows, kSide}, 1, 0), dtype), on(drawn({kSide, kSide}, 0.05, 2), dtype),
                 on(drawn({kSide, kSide}, 0.05, 4), dtype), on(drawn({kSide}, 1, 6), dtype)};
  };
  const auto values = [](std::vector<Tensor> all) {
    for (Tensor& t : all) t = cast(t, DType::Float64);
    eval(all);
    std::vector<std::vector<double>> out;
    for (const Tensor& t : all) out.push_back(t.to_vector<double>());
    return out;
  };
  const auto wanted = values(made(DType::Float64).roots());
  set_device("cuda");
  set_precision(Precision::Bf16);
  const auto got = values(made(DType::Float32).roots()),
             again = values(made(DType::Float32).roots());
  set_precision(Precision::Fp32);
  set_device("cpu");
  CHECK(got == again);
  for (std::size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    CHECK(distance(got[k], wanted[k]) < 1e-2);
  }
}

TEST_CASE("cuda long sums: which products are rounded") {
  const auto rounded = [](Precision precision, std::int64_t rows) {
    set_precision(precision);
    const Block block{test::leaf({rows, kSide}), test::leaf({kSide, kSide}),
                      test::leaf({kSide, kSide}), test::leaf({kSide})};
    const auto program = test::planned(block.roots());
    set_precision(Precision::Fp32);
    return std::count_if(program->steps.begin(), program->steps.end(), [](const Step& step) {
      return step.region.kind == RegionKind::Contraction &&
             step.region.contraction.dtype == DType::BFloat16;
    });
  };
  // Two products forward and the two gradients that normalisations read.
  CHECK(rounded(Precision::Bf16, kRows) == 4);
  CHECK(rounded(Precision::Bf16, 1024) == 0);
  CHECK(rounded(Precision::Fp16, kRows) == 0);
  CHECK(rounded(Precision::Fp32, kRows) == 0);
}
