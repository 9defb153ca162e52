// Unusual shapes, dtypes and indices: axes without elements, more axes than a shape allows, masks
// without axes, integers that a double cannot represent, repeated indices. Expected numbers are
// PyTorch's.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <tenon/compute.h>
#include <tenon/elementwise.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>
#include <tenon/pooling.h>

#include "cases/engines.h"
#include "cases/lists.h"

using namespace tenon;
using namespace cases;

namespace {}  // namespace

TEST_CASE("torch edges: an axis without elements has as many chunks as requested") {
  const Tensor x = zeros({0, 2});
  for (const std::int64_t count : {1, 2, 7}) {
    const std::vector<Tensor> parts = chunk(x, count, 0);
    REQUIRE(parts.size() == static_cast<std::size_t>(count));
    for (const Tensor& part : parts) CHECK(part.shape() == Shape{0, 2});
  }
  CHECK(chunk(x, 3, 1).size() == 2);
  CHECK_THROWS_AS(chunk(x, std::numeric_limits<std::int64_t>::max(), 0), ValueError);
  CHECK(split(x, 3, 0).size() == 1);
  // The largest count does not overflow.
  CHECK(chunk(zeros({3}), std::numeric_limits<std::int64_t>::max(), 0).size() == 3);
}

TEST_CASE("torch edges: repeats of shapes with the maximum rank") {
  with_engines([] {
    // Against repeating one axis after another with concat().
    const auto repeated = [](const Tensor& x, const Ints& counts) {
      Ints sizes(counts.size() - static_cast<std::size_t>(x.rank()), 1);
      sizes.insert(sizes.end(), x.shape().begin(), x.shape().end());
      Tensor y = reshape(x, sizes);
      for (std::size_t a = 0; a < counts.size(); ++a)
        y = concat(std::vector<Tensor>(static_cast<std::size_t>(counts[a]), y),
                   static_cast<int>(a));
      return y;
    };
    const Tensor x = reshape(arange(0, 12, 1, DType::Float32), {2, 3, 2}).compute();
    for (const Ints& counts : {Ints{2, 1, 2, 3, 2}, Ints{2, 2, 2, 2, 2}, Ints{1, 1, 2, 1, 2, 3, 2},
                               Ints{2, 1, 2, 1, 2, 2, 2, 2}}) {
      const Tensor y = repeat(x, counts), want = repeated(x, counts), slope = grad(sum(y), x);
      CHECK(y.shape() == want.shape());
      CHECK(list(y) == list(want));
      const std::int64_t times = want.numel() / x.numel();
      CHECK(list(slope) == Floats(12, static_cast<float>(times)));
    }
    const Tensor wide = reshape(x, {1, 2, 1, 3, 1, 2, 1, 1}).compute();
    CHECK(repeat(wide, {2, 2, 2, 2, 2, 2, 2, 2}).numel() == 12 * 256);
    const Tensor rows = repeat_interleave(wide, 3, 3);
    CHECK(rows.shape() == Shape{1, 2, 1, 9, 1, 2, 1, 1});
    CHECK(list(rows) == list(repeat_interleave(x, 3, 1)));
  });
}

TEST_CASE("torch edges: sizes whose product is beyond int64 are refused") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_AS(reshape(x, {kMost, 2, -1}), ShapeError);
  CHECK_THROWS_AS(reshape(x, {kMost, kMost}), ShapeError);
  CHECK_THROWS_AS(repeat(x, {1, kMost}), ShapeError);
  CHECK_THROWS_AS(repeat(x, {kMost, kMost, kMost}), ShapeError);
  CHECK_THROWS_AS(repeat_interleave(x, kMost, 1), ShapeError);
}

TEST_CASE("torch edges: a mask without axes") {
  with_engines([] {
    const Tensor x = Tensor::from(Floats{1, 2, 3, 4, 5, 6}, {2, 3});
    const Tensor yes = full({}, true, DType::Bool), no = full({}, false, DType::Bool);
    CHECK(x[yes].shape() == Shape{1, 2, 3});
    CHECK(list(x[yes]) == list(x));
    CHECK(x[no].shape() == Shape{0, 2, 3});
    CHECK(x.index({Slice(), yes}).shape() == Shape{2, 1, 3});
    CHECK(list(x.index({1, yes})) == Floats{4, 5, 6});
    // Together with another index it is an index with one position or none.
    const Tensor places = longs({1, 0});
    CHECK(x.index({yes, places}).shape() == Shape{2, 3});
    CHECK(list(x.index({yes, places})) == Floats{4, 5, 6, 1, 2, 3});
    CHECK(list(x.index({yes, Slice(), longs({2, 2})})) == Floats{3, 6, 3, 6});
    CHECK(list(grad(sum(x[yes] * 2), x)) == Floats(6, 2));
    CHECK(list(grad(sum(x[no]), x)) == Floats(6, 0));
    CHECK(list(x.index_put({yes}, full({}, 9))) == Floats(6, 9));
    CHECK(list(x.index_put({no}, full({}, 9))) == list(x));
    CHECK(list(x.index_put({yes}, Tensor::from(Floats{7, 8, 9}, {3}))) == Floats{7, 8, 9, 7, 8, 9});
    CHECK(list(x.index_put({yes}, full({}, 1), true)) == Floats{2, 3, 4, 5, 6, 7});
    CHECK(list(x.index_put({no}, full({}, 1), true)) == list(x));
    const Tensor number = full({}, 5);
    CHECK(list(number[yes]) == Floats{5});
    CHECK(number[no].shape() == Shape{0});
    CHECK_THROWS_AS(zeros({2, 3})[full({3}, true, DType::Bool)], ShapeError);
  });
}

TEST_CASE("torch edges: the gradients of batch norm over an empty batch are 0") {
  with_engines([] {
    for (const Shape& shape : {Shape{0, 3}, Shape{0, 3, 4}, Shape{2, 3, 0, 4}}) {
      const Tensor x = zeros(shape), weight = ones({3}), bias = zeros({3});
      const Moments m = batch_moments(x);
      const Tensor y = batch_norm(x, m.mean, m.var, weight, bias);
      CHECK(y.shape() == shape);
      CHECK(list(grad(sum(y), weight)) == Floats{0, 0, 0});
      CHECK(list(grad(sum(y), bias)) == Floats{0, 0, 0});
      CHECK(grad(sum(y), x).shape() == shape);
    }
  });
}

TEST_CASE("torch edges: integers that float64 cannot represent are exact as plain numbers") {
  constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;
  with_engines([] {
    const Tensor x = longs({1, 2, kBig}), above = gt(x, 1);
    const Tensor one = longs({0});
    const std::vector<std::pair<Tensor, Longs>> all = {
        {pad(x, {1, 1}, kBig), {kBig, 1, 2, kBig, kBig}},
        {pad(reshape(x, {1, 3}), {0, 0, 1, 0}, -kBig), {-kBig, -kBig, -kBig, 1, 2, kBig}},
        {full({2}, kBig, DType::Int64), {kBig, kBig}},
        {cast(full({1}, kBig, DType::Int64), DType::Int64) + 0, {kBig}},
        {where(above, x, kBig), {kBig, 2, kBig}},
        {clamp(x, -kBig, kBig - 1), {1, 2, kBig - 1}},
        {x + kBig, {kBig + 1, kBig + 2, 2 * kBig}},
        {kBig - x, {kBig - 1, kBig - 2, 0}},
        {maximum(x, kBig), {kBig, kBig, kBig}},
        {remainder(kBig, x), {0, 1, 0}},
        {floor_divide(x, 3), {0, 0, kBig / 3}},
        {eq(x, kBig), {0, 0, 1}},
        {lt(x, kBig), {1, 1, 0}},
        {masked_fill(x, above, kBig), {1, kBig, kBig}},
        {scatter(x, 0, one, kBig), {kBig, 2, kBig}},
        {x.index_put({Slice(0, 1)}, kBig), {kBig, 2, kBig}},
        {index_add(x, 0, one, longs({3}), kBig), {1 + 3 * kBig, 2, kBig}},
        {arange(kBig, kBig + 9, 3), {kBig, kBig + 3, kBig + 6}},
        {cumsum(x, 0), {1, 3, kBig + 3}},
        {roll(x, {1}, {0}), {kBig, 1, 2}},
        {amax(x), {kBig}},
    };
    for (std::size_t k = 0; k < all.size(); ++k) {
      CAPTURE(k);
      CHECK(whole(all[k].first) == all[k].second);
    }
    const auto wrapped = static_cast<std::int64_t>(static_cast<std::uint64_t>(kBig) *
                                                   static_cast<std::uint64_t>(kBig));
    CHECK(whole(x * kBig) == Longs{kBig, 2 * kBig, wrapped});
  });
}

TEST_CASE("torch edges: cumulative sums and products in the requested dtype") {
  with_engines([] {
    const Tensor x = cast(longs({100, 100, 3}), DType::Int32).compute();
    CHECK(cumsum(x, 0).dtype() == DType::Int64);
    CHECK(cumsum(x, 0, DType::Int32).dtype() == DType::Int32);
    CHECK(whole(cumsum(x, 0, DType::Int32)) == Longs{100, 200, 203});
    CHECK(whole(cumprod(x, 0, DType::Int32)) == Longs{100, 10000, 30000});
    CHECK(whole(cumsum(x, 0, DType::Int8)) == Longs{100, -56, -53});  // wraps around
    const Tensor y = cumsum(x, 0, DType::Float64);
    CHECK(y.dtype() == DType::Float64);
    CHECK(list(y) == Floats{100, 200, 203});
    // Elements are cast before they are summed.
    const Tensor fractions = Tensor::from(Floats{1.75F, 1.75F, -0.5F}, {3});
    CHECK(whole(cumsum(fractions, 0, DType::Int32)) == Longs{1, 2, 2});
    const Tensor halves = cumsum(fractions, 0, DType::Float16);
    CHECK(halves.dtype() == DType::Float16);
    CHECK(list(grad(sum(halves), fractions)) == Floats{3, 2, 1});
  });
}

TEST_CASE("torch edges: if max_unpool gets an index twice, each value has the gradient") {
  with_engines([] {
    const Tensor x = Tensor::from(Floats{1, 2, 3, 4}, {1, 1, 4});
    const Tensor at = reshape(longs({2, 0, 2, 5}), {1, 1, 4}).compute();
    Pool1dOptions pool;
    pool.kernel = 2;
    const Tensor y = max_unpool1d(x, at, pool);
    const Tensor w = reshape(arange(1, 9, 1, DType::Float32), {1, 1, 8});
    const Tensor slope = grad(sum(y * w), x), squared = grad(sum(square(y)), x),
                 second = grad(sum(squared * x), x);
    CHECK(list(y) == Floats{2, 0, 3, 0, 0, 4, 0, 0});
    CHECK(list(slope) == Floats{3, 1, 3, 6});
    CHECK(list(squared) == Floats{6, 4, 6, 8});
    CHECK(list(second) == Floats{14, 8, 14, 16});
    // With overlapping windows several find the same maximum, and each passes the gradient on.
    Pool1dOptions overlapping;
    overlapping.kernel = 3;
    overlapping.stride = 1;
    const Tensor signal = Tensor::from(Floats{1, 2, 5, 3, 4, 0}, {1, 1, 6});
    const ValuesAndIndices maxima = max_pool1d_with_indices(signal, overlapping);
    const Tensor again = max_unpool1d(maxima.values, maxima.indices, overlapping, 6);
    const Tensor through = grad(sum(again * slice(w, 2, 0, 6)), signal);
    CHECK(list(again) == Floats{0, 0, 5, 0, 4, 0});
    CHECK(list(through) == Floats{0, 0, 9, 0, 5, 0});
  });
}

TEST_CASE("torch edges: max_unpool of planes and volumes gathers its gradient") {
  with_engines([] {
    const Tensor at = longs({3, 3, 0, 3});
    const Tensor w = arange(1, 5, 1, DType::Float32);
    const Tensor x = Tensor::from(Floats{1, 2, 3, 4}, {1, 1, 2, 2});
    const Tensor plane =
        max_unpool2d(x, reshape(at, {1, 1, 2, 2}), Pool2dOptions{.kernel = 1}, Pair{2, 2});
    CHECK(list(grad(sum(plane * reshape(w, {1, 1, 2, 2})), x)) == Floats{4, 4, 1, 4});
    CHECK(list(plane) == Floats{3, 0, 0, 4});
    const Tensor volume = max_unpool3d(reshape(x, {1, 1, 1, 2, 2}), reshape(at, {1, 1, 1, 2, 2}),
                                       Pool3dOptions{.kernel = 1}, Triple{1, 2, 2});
    CHECK(list(grad(sum(volume * reshape(w, {1, 1, 1, 2, 2})), x)) == Floats{4, 4, 1, 4});
  });
}

// Of PyTorch 2.15 on a CPU; its CUDA kernels convert the number to the tensor's dtype, too.
TEST_CASE("torch edges: which operations round a number to 16 bits") {
  with_engines([] {
    const auto on = [](DType dtype, float x) { return cast(Tensor::from(Floats{x}, {1}), dtype); };
    const auto one = [](const Tensor& y) {
      return cast(y.compute(), DType::Float32).item<float>();
    };
    const Tensor x = on(DType::BFloat16, 5.5F);
    CHECK(one(remainder(x, 0.1)) == 0.0947265625F);
    CHECK(one(remainder(5.3, on(DType::BFloat16, 0.25F))) == 0.0625F);
    CHECK(one(pow(on(DType::BFloat16, 1e30F), 0.33)) == 7985954816.0F);
    CHECK(one(pow(1.01, on(DType::BFloat16, 64))) == 1.6484375F);
    CHECK(one(atan2(on(DType::BFloat16, 0.2F), 0.3)) == 0.5859375F);
    CHECK(one(floor_divide(4.999, on(DType::BFloat16, 2.5F))) == 2.0F);
    CHECK(one(softshrink(on(DType::BFloat16, 0.2F), 0.07)) == 0.130859375F);
    CHECK(std::isnan(one(remainder(on(DType::Float16, 2), 1e-9))));
    // Here the number stays exact.
    CHECK(one(pow(1e-8, on(DType::Float16, 0.5F))) > 0);
    CHECK(one(floor_divide(on(DType::BFloat16, 3), 0.1)) == 29.0F);
    CHECK(one(on(DType::Float16, 7) / 70000) > 0);
    CHECK(one(on(DType::BFloat16, 0.2F) * 0.1234) == 0.024658203125F);
    CHECK(one(on(DType::Float32, 5.5F) % 0.1) == std::fmod(5.5F, 0.1F));
  });
}

TEST_CASE("torch edges: 16-bit linear interpolation is rounded once") {
  with_engines([] {
    for (const DType dtype : {DType::Float16, DType::BFloat16})
      for (const bool corners : {false, true}) {
        const Tensor x = cast(sin(arange(0, 2 * 3 * 5 * 7, 1, DType::Float32)), dtype)
                             .reshape({2, 3, 5, 7})
                             .compute();
        const Tensor wide = cast(x, DType::Float32).compute();
        const auto larger = [&](const Tensor& t) {
          return interpolate(t, {11, 13}, Interpolation::Linear, corners);
        };
        const Tensor y = larger(x);
        CHECK(y.dtype() == dtype);
        CHECK(list(y) == list(cast(larger(wide), dtype)));
        const Tensor w = cos(arange(0, 2 * 3 * 11 * 13, 1, DType::Float32)).reshape({2, 3, 11, 13});
        const Tensor seen = cast(cast(w, dtype).compute(), DType::Float32).compute();
        const Tensor slope = grad(sum(larger(x) * cast(seen, dtype)), x),
                     want = grad(sum(larger(wide) * seen), wide);
        CHECK(list(slope) == list(cast(want, dtype)));
      }
  });
}
