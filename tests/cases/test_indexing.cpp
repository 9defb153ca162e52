// Indexing, operators and methods of Tensor: values as in NumPy and PyTorch, gradients, and refused
// calls.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>

using namespace tenon;

namespace {

using Floats = std::vector<float>;
using Longs = std::vector<std::int64_t>;

// 0, 1, 2, … of a shape.
Tensor counted(const Shape& shape, DType dtype = DType::Float32) {
  return reshape(arange(0, shape.numel(), 1, dtype), Longs(shape.begin(), shape.end()));
}
Longs whole(const Tensor& t) { return cast(t, DType::Int64).to_vector<std::int64_t>(); }
Tensor longs(const Longs& values) { return Tensor::from(values, {std::ssize(values)}); }
Tensor bools(const std::vector<std::uint8_t>& values, const Shape& shape) {
  return cast(Tensor::from(values, shape), DType::Bool);
}

}  // namespace

TEST_CASE("indexing: numbers, slices, ellipsis, new axes") {
  const Tensor x = counted({2, 3, 4});
  CHECK(whole(x[1][2]) == Longs{20, 21, 22, 23});
  CHECK(whole(x[-1][-3][0]) == Longs{12});
  CHECK(x[Slice(1)].shape() == Shape{1, 3, 4});
  CHECK(whole(x.index({1, Slice(0, 2), 3})) == Longs{15, 19});
  CHECK(whole(x.index({ellipsis, 1})) == Longs{1, 5, 9, 13, 17, 21});
  CHECK(whole(x.index({0, ellipsis, Slice(std::nullopt, std::nullopt, -2)})) ==
        Longs{3, 1, 7, 5, 11, 9});
  CHECK(whole(x.index({0, 0, Slice(-3, -1)})) == Longs{1, 2});
  CHECK(whole(x.index({0, 0, Slice(2, std::nullopt, -1)})) == Longs{2, 1, 0});
  CHECK(x.index({new_axis, ellipsis, new_axis, 0}).shape() == Shape{1, 2, 3, 1});
  CHECK(x.index({Slice(5, 9)}).shape() == Shape{0, 3, 4});
  CHECK(x.index({}).shape() == x.shape());
  CHECK_THROWS_WITH_AS(x[2], doctest::Contains("outside axis 0"), ShapeError);
  CHECK_THROWS_WITH_AS(x.index({0, 0, 0, 0}), doctest::Contains("4 axes of a tensor [2, 3, 4]"),
                       ShapeError);
  CHECK_THROWS_AS(x.index({ellipsis, 0, ellipsis}), ValueError);
}

TEST_CASE("indexing: tensors of integers") {
  const Tensor x = counted({3, 4});
  CHECK(whole(x[longs({2, 0, -1})]) == Longs{8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11});
  CHECK(whole(x.index({longs({0, 1, 2}), longs({3, -1, 0})})) == Longs{3, 7, 8});
  CHECK(whole(x.index({Slice(), longs({1, 1})})) == Longs{1, 1, 5, 5, 9, 9});
  const Tensor table = x.index({unsqueeze(longs({0, 2}), 1), longs({1, 3})});
  CHECK(table.shape() == Shape{2, 2});
  CHECK(whole(table) == Longs{1, 3, 9, 11});
  const Tensor cube = counted({2, 3, 4});
  CHECK(cube.index({Slice(), longs({0, 1, 2, 1, 0}), Slice()}).shape() == Shape{2, 5, 4});
  // Index tensors with other indices between them: their axes come first.
  const Tensor apart = cube.index({longs({0, 1, 0, 1, 1}), Slice(), longs({3, 2, 1, 0, 0})});
  CHECK(apart.shape() == Shape{5, 3});
  CHECK(whole(apart[1]) == Longs{14, 18, 22});
  CHECK(x.index({cast(longs({1}), DType::Int32)}).shape() == Shape{1, 4});
  CHECK_THROWS_WITH_AS(x.index({cast(longs({1}), DType::UInt8)}), doctest::Contains("mask"),
                       DTypeError);
  CHECK_THROWS_AS(x[longs({3})].compute(), ValueError);
  CHECK_THROWS_AS(x[longs({-4})].compute(), ValueError);
  // Out of range for its axis, though the flat position is inside the tensor.
  CHECK_THROWS_AS(x.index({longs({0}), longs({5})}).compute(), ValueError);
  CHECK_THROWS_AS(x.index({longs({0, 1}), longs({0, 1, 2})}), ShapeError);
}

TEST_CASE("indexing: an index out of range is reported as given, with its axis") {
  const Tensor x = counted({3, 4, 5});
  const auto told = [](const Tensor& y, const char* text) {
    CHECK_THROWS_WITH_AS(y.compute(), doctest::Contains(text), ValueError);
  };
  told(x[longs({0, -9})], "index: index -9 is out of range for axis 0 of size 3, at element 1");
  told(x.index({longs({0, 2}), longs({1, 9})}),
       "index: index 9 is out of range for axis 1 of size 4");
  told(x.index({longs({0, 4}), Slice(), longs({1, 9})}),
       "index: index 4 is out of range for axis 0 of size 3");
  told(x.index_put({longs({7})}, 1), "index_put: index 7 is out of range for axis 0 of size 3");
  told(x.index_put({longs({0}), longs({-5})}, 1, true),
       "index_put: index -5 is out of range for axis 1");
  CHECK_THROWS_WITH_AS(x[3], doctest::Contains("index: index 3 is outside axis 0"), ShapeError);
  CHECK_THROWS_WITH_AS(x.index_put({0}, counted({9})),
                       doctest::Contains("index_put: [1, 9] does not"), ShapeError);
}

TEST_CASE("indexing: masks") {
  const Tensor x = counted({2, 3});
  CHECK(whole(x[x > 2.5]) == Longs{3, 4, 5});
  CHECK(x[x > 100].shape() == Shape{0});
  CHECK(whole(x[bools({0, 1}, {2})]) == Longs{3, 4, 5});
  CHECK(whole(x.index({Slice(), bools({1, 0, 1}, {3})})) == Longs{0, 2, 3, 5});
  CHECK_THROWS_WITH_AS(x[bools({1, 0, 1}, {3})], doctest::Contains("does not fit [2, 3]"),
                       ShapeError);
  const CompiledFunction f =
      compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0][in[0] > 1]}; });
  CHECK_THROWS_AS(f({x}), Error);
}

TEST_CASE("indexing: gradients go to the positions that were read") {
  const Tensor x = counted({3, 4});
  const Tensor y = sum(square(x.index({longs({1, 1, 0}), Slice(1, 3)})));
  CHECK(whole(grad(y, x)) == Longs{0, 2, 4, 0, 0, 20, 24, 0, 0, 0, 0, 0});
  const Tensor v = counted({2});
  const Tensor put = x.index_put({Slice(0, 2), 1}, v);
  const std::vector<Tensor> slopes = grad(sum(put * counted({3, 4})), std::vector<Tensor>{x, v});
  CHECK(whole(slopes[0]) == Longs{0, 0, 2, 3, 4, 0, 6, 7, 8, 9, 10, 11});
  CHECK(whole(slopes[1]) == Longs{1, 5});
}

TEST_CASE("indexing: putting values at ranges") {
  const Tensor x = counted({3, 4});
  CHECK(whole(x.index_put({1}, -1)) == Longs{0, 1, 2, 3, -1, -1, -1, -1, 8, 9, 10, 11});
  CHECK(whole(x) == whole(counted({3, 4})));
  CHECK(whole(x.index_put({-1, Slice(1, std::nullopt, 2)}, counted({2}) - 5)) ==
        Longs{0, 1, 2, 3, 4, 5, 6, 7, 8, -5, 10, -4});
  CHECK(whole(x.index_put({Slice(std::nullopt, std::nullopt, -2), 0}, counted({2}) - 5)) ==
        Longs{-4, 1, 2, 3, 4, 5, 6, 7, -5, 9, 10, 11});
  CHECK(whole(x.index_put({Slice(2, 2)}, 7)) == whole(x));
  CHECK(whole(x.index_put({0, Slice(0, 2)}, 1, true)) ==
        Longs{1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(whole(x.index_put({ellipsis}, 3)) == Longs(12, 3));
  // Every range of a small axis, against a loop.
  for (std::int64_t start = -6; start <= 6; ++start)
    for (std::int64_t end = -6; end <= 6; ++end)
      for (std::int64_t step : {-3, -2, -1, 1, 2, 3}) {
        CAPTURE(start);
        CAPTURE(end);
        CAPTURE(step);
        const Tensor axis = counted({5});
        const Longs places = whole(axis[Slice(start, end, step)]);
        Longs expected = whole(axis);
        for (std::size_t k = 0; k < places.size(); ++k)
          expected[static_cast<std::size_t>(places[k])] = -1 - static_cast<std::int64_t>(k);
        const Tensor values = -1 - counted({std::ssize(places)});
        REQUIRE(whole(axis.index_put({Slice(start, end, step)}, values)) == expected);
      }
  CHECK_THROWS_AS(x.index_put({Slice(0, 2)}, counted({3})), ShapeError);
  CHECK_THROWS_AS(x.index_put({3}, 1), ShapeError);
  CHECK_THROWS_AS(counted({2}, DType::Int64).index_put({0}, full({}, 1.5)), DTypeError);
}

TEST_CASE("indexing: putting values at positions of index tensors and masks") {
  const Tensor x = counted({3, 4});
  const float nan = std::nanf("");
  CHECK(whole(x.index_put({x > 9}, -1)) == Longs{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -1});
  CHECK(whole(x.index_put({x > 9}, counted({2}) - 2)) ==
        Longs{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -2, -1});
  CHECK(whole(x.index_put({bools({1, 0, 0}, {3})}, counted({4}) - 4)) ==
        Longs{-4, -3, -2, -1, 4, 5, 6, 7, 8, 9, 10, 11});
  // The last of equal positions counts, even beside a NaN.
  const Tensor twice =
      counted({4}).index_put({longs({1, -1, 1})}, Tensor::from<float>({nan, 5, 6}, {3}));
  CHECK(twice.to_vector<float>() == Floats{0, 6, 2, 5});
  CHECK(whole(counted({4}).index_put({longs({1, 3, 1})}, 1, true)) == Longs{0, 3, 2, 4});
  CHECK(whole(x.index_put({longs({0, 2}), longs({3, 0})}, 0)) ==
        Longs{0, 1, 2, 0, 4, 5, 6, 7, 0, 9, 10, 11});
  const Tensor flags = bools({0, 0, 1}, {3}).index_put({longs({0, 2})}, bools({1, 0}, {2}));
  CHECK(whole(flags) == Longs{1, 0, 0});
  CHECK_THROWS_AS(x.index_put({longs({7})}, 1).compute(), ValueError);
}

TEST_CASE("operators: comparisons, masks, remainders, with numbers on both sides") {
  const Tensor x = counted({4});
  CHECK(whole(x > 1) == Longs{0, 0, 1, 1});
  CHECK(whole(1 >= x) == Longs{1, 1, 0, 0});
  CHECK(whole(x == 2) == Longs{0, 0, 1, 0});
  CHECK(whole(2 != x) == Longs{1, 1, 0, 1});
  CHECK(whole(x < flip(x, {0})) == Longs{1, 1, 0, 0});
  CHECK(whole(x <= x) == Longs{1, 1, 1, 1});
  CHECK(whole((x > 0) & ~(x > 2)) == Longs{0, 1, 1, 0});
  CHECK(whole((x < 1) | (x == 3.0)) == Longs{1, 0, 0, 1});
  CHECK(whole((x < 2) ^ (x > 0)) == Longs{1, 0, 1, 1});
  CHECK(whole(x % 3) == Longs{0, 1, 2, 0});
  CHECK((x == 2).dtype() == DType::Bool);
  CHECK_THROWS_WITH_AS(x & x, doctest::Contains("takes masks of bool, not float32"), DTypeError);
}

TEST_CASE("operators: compound assignment gives the handle a new value") {
  Tensor x = counted({3});
  const Tensor before = x;
  x += 1;
  x *= x;
  x -= counted({3});
  x /= 2.0;
  CHECK(x.to_vector<float>() == Floats{0.5, 1.5, 3.5});
  CHECK(whole(before) == Longs{0, 1, 2});
  x += full({}, 1.0, DType::Float64);
  CHECK(x.dtype() == DType::Float32);
  CHECK_THROWS_WITH_AS(x += ones({2, 3}), doctest::Contains("operator+=: the result is [2, 3]"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(x *= ones({2, 3}), doctest::Contains("write x = x * y"), ShapeError);
  Tensor n = arange(0, 3);
  CHECK_THROWS_AS(n += 0.5, DTypeError);
  n %= 2;
  CHECK(whole(n) == Longs{0, 1, 0});
  Tensor mask = n > 0;
  mask |= n == 0;
  mask &= arange(0, 3) < 2;
  mask ^= arange(0, 3) < 1;
  CHECK(whole(mask) == Longs{0, 1, 0});
  Tensor w = variable(ones({3}), "w");
  CHECK_THROWS_WITH_AS(w -= 0.1, doctest::Contains("w is a variable"), ValueError);
}

TEST_CASE("methods: each equals the function of the same name") {
  const Tensor x = counted({2, 3});
  CHECK(x.sum().item() == 15);
  CHECK(whole(x.sum(0)) == Longs{3, 5, 7});
  CHECK(whole(x.sum({})) == Longs{15});
  CHECK(x.mean({0, 1}, true).shape() == Shape{1, 1});
  CHECK(whole(x.mean(-1)) == Longs{1, 4});
  CHECK(whole(x.amax(1)) == Longs{2, 5});
  CHECK(x.var(1, false, 0).to_vector<float>()[0] == doctest::Approx(2.0 / 3));
  CHECK(whole(x.reshape({3, -1}).transpose()) == Longs{0, 2, 4, 1, 3, 5});
  CHECK(whole(x.argmax()) == Longs{2, 2});
  CHECK(x.softmax().sum(-1).to_vector<float>()[0] == doctest::Approx(1));
  CHECK(whole(x.matmul(x.transpose())) == Longs{5, 14, 14, 50});
  CHECK(x.to(DType::Int32).dtype() == DType::Int32);
  CHECK(whole(x.pow(2).clamp(1, 9)) == Longs{1, 1, 4, 9, 9, 9});
  CHECK(x.dim() == 2);
  CHECK(x.size(-1) == 3);
  CHECK(x.numel() == 6);
  CHECK(full({}, (std::int64_t{1} << 40) + 1, DType::Int64).item<std::int64_t>() ==
        (std::int64_t{1} << 40) + 1);
  CHECK(whole(x.view({3, 2}).flip(0)) == Longs{4, 5, 2, 3, 0, 1});
  CHECK(x.unsqueeze(0).unsqueeze(-1).squeeze().shape() == x.shape());
  CHECK(x.max().item() == 5);
  CHECK(x.min().item() == 0);
  CHECK(whole(x.max(1).values) == Longs{2, 5});
  CHECK(whole(x.min(0).indices) == Longs{0, 0, 0});
  CHECK(whole(x.topk(2).indices) == Longs{2, 1, 2, 1});
  CHECK(whole(x.sort(-1, true).values) == Longs{2, 1, 0, 5, 4, 3});
  CHECK(whole(x.cumsum(1)) == Longs{0, 1, 3, 3, 7, 12});
  CHECK(x.split(2, 1)[1].shape() == Shape{2, 1});
  CHECK(x.unbind().size() == 2);
  CHECK(whole(x.gather(1, longs({2, 0}).view({2, 1}))) == Longs{2, 3});
  CHECK(whole(x.index_select(1, longs({1}))) == Longs{1, 4});
  CHECK(whole(x.masked_fill(x > 3, -1)) == Longs{0, 1, 2, 3, -1, -1});
  CHECK(whole(x.scatter_add(0, longs({1}).view({1, 1}), ones({1, 1}))) == Longs{0, 1, 2, 4, 4, 5});
  CHECK(whole(x.repeat({1, 2})) == Longs{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(whole(x.triu()) == Longs{0, 1, 2, 0, 4, 5});
  CHECK(x.neg().exp().log1p().isfinite().all().item<bool>());
  CHECK(x.stddev(Axes{}, false, 0).item() == doctest::Approx(std::sqrt(35.0 / 12)));
  CHECK(x[1][0].item<float>() == 3.0f);
  CHECK(x[1][0].item<int>() == 3);
  CHECK_THROWS_AS(x.item<float>(), ShapeError);
}

TEST_CASE("comparing: allclose and equal agree with PyTorch") {
  const float nan = std::nanf(""), inf = INFINITY;
  const auto f = [](const Floats& v) { return Tensor::from(v, {std::ssize(v)}); };
  const Tensor a = f({1, 1, inf, inf, nan, 0}), b = f({1.000005F, 1.0001F, inf, 1, nan, 1e-9F});
  CHECK(whole(isclose(a, b)) == Longs{1, 0, 1, 0, 0, 1});
  CHECK(whole(isclose(b, a, 0, 1e-3, true)) == Longs{1, 1, 1, 0, 1, 1});
  CHECK(whole(isclose(f({1}), f({inf}))) == Longs{0});
  CHECK(counted({3}).allclose(counted({3}, DType::Int32)));
  CHECK_FALSE(a.allclose(a));
  CHECK(a.allclose(a, 1e-5, 1e-8, true));
  CHECK(isclose(full({1}, 5, DType::UInt8), full({1}, 7, DType::UInt8), 0, 2).item<bool>());
  CHECK(counted({2, 2}).equal(counted({2, 2})));
  CHECK_FALSE(counted({2, 2}).equal(counted({4})));
  CHECK_FALSE(a.equal(a));
  CHECK(zeros({0}).equal(zeros({0})));
  CHECK_THROWS_AS(isclose(a, b, -1), ValueError);
  CHECK_THROWS_WITH_AS(a.allclose(counted({5})), doctest::Contains("allclose: shapes"), ShapeError);
}

TEST_CASE("names: functions of plain numbers are the standard library's") {
  using namespace std;  // NOLINT: what a user's program may have
  static_assert(is_same_v<decltype(sqrt(2.0)), double>);
  static_assert(is_same_v<decltype(exp(1.0f)), float>);
  static_assert(is_same_v<decltype(abs(-1)), int>);
  static_assert(is_same_v<decltype(pow(2.0, 3.0)), double>);
  static_assert(is_same_v<decltype(2.0 > 1.0), bool>);
  CHECK(sqrt(2.0) * sqrt(2.0) == doctest::Approx(2));
  CHECK(isnan(log(-1.0)));
  CHECK(round(2.5) == 3);
}

// An index gives a value, so an assignment to it would change nothing that is kept.
TEST_CASE("indexing: an indexed tensor cannot be assigned to") {
  static_assert(!std::is_assignable_v<decltype(std::declval<Tensor&>()[0]), Tensor>);
  static_assert(!std::is_assignable_v<decltype(std::declval<Tensor&>()[0]), const Tensor&>);
  static_assert(!std::is_assignable_v<decltype(std::declval<Tensor&>().index({})), Tensor>);
  static_assert(!std::is_assignable_v<Tensor, Tensor>);
  static_assert(std::is_assignable_v<Tensor&, Tensor>);
  static_assert(std::is_assignable_v<Tensor&, const Tensor&>);
  static_assert(std::is_copy_assignable_v<Tensor> && std::is_nothrow_move_assignable_v<Tensor>);
  Tensor x = zeros({2, 2});
  x = x.index_put({0}, ones({2}));
  x = x.index_put({1, 1}, 7);
  CHECK(x.to_vector<float>() == Floats{1, 1, 0, 7});
}
