// Creation, order statistics, windows, einsum and losses: what PyTorch's samples
// (tests/conformance) do not show: random results, refusals, inverse operations, and losses against
// their definitions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

using Ints64 = std::vector<std::int64_t>;
using Doubles = std::vector<double>;

Tensor random(const Shape& shape, std::uint64_t seed = 1) {
  return randn(shape, DType::Float64, Generator(seed)).compute();
}
Doubles list(const Tensor& x) { return cast(x, DType::Float64).to_vector<double>(); }
Ints64 whole(const Tensor& x) { return x.to_vector<std::int64_t>(); }

void check_near(const Tensor& found, const Tensor& wanted, double tolerance = 1e-12) {
  REQUIRE(found.shape() == wanted.shape());
  const Doubles a = list(found), b = list(wanted);
  double error = 0, norm = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    error += (a[k] - b[k]) * (a[k] - b[k]), norm += b[k] * b[k];
  CHECK(std::sqrt(error) <= tolerance * (1 + std::sqrt(norm)));
}

// Slopes of sum(f(x) * weights) by central differences against grad().
void check_gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const Tensor weights = random(f(x).shape(), 99);
  const auto value = [&](const Doubles& at) {
    return (f(Tensor::from(at, x.shape())) * weights).sum().item();
  };
  const Doubles found = list(grad((f(x) * weights).sum(), x)), at = list(x);
  for (std::size_t k = 0; k < at.size(); ++k) {
    Doubles above = at, below = at;
    above[k] += 1e-5, below[k] -= 1e-5;
    CHECK(found[k] == doctest::Approx((value(above) - value(below)) / 2e-5).epsilon(1e-4));
  }
}

}  // namespace

TEST_CASE("composed ops: numbers at equal distances") {
  CHECK(list(linspace(0, 1, 5)) == Doubles{0, 0.25, 0.5, 0.75, 1});
  CHECK(list(linspace(3, 3, 1)) == Doubles{3});
  CHECK(linspace(0, 1, 0).numel() == 0);
  CHECK(linspace(-1, 1, 7, DType::Float32).to_vector<float>().back() == 1.0F);
  CHECK(list(logspace(0, 3, 4)) == Doubles{1, 10, 100, 1000});
  CHECK(whole(arange(4)) == Ints64{0, 1, 2, 3});
  CHECK(list(eye(2, 3)) == Doubles{1, 0, 0, 0, 1, 0});
  CHECK_THROWS_AS(linspace(0, 1, -1), ValueError);
  CHECK_THROWS_AS(eye(-1), ValueError);
}

TEST_CASE("composed ops: permutations and samples") {
  Ints64 order = whole(randperm(1000, Generator(3)));
  CHECK(order != whole(arange(1000)));
  CHECK(order == whole(randperm(1000, Generator(3))));
  std::sort(order.begin(), order.end());
  CHECK(order == whole(arange(1000)));

  const Tensor weights = Tensor::from({1.0, 0.0, 3.0}, {3});
  std::map<std::int64_t, int> counts;
  for (const std::int64_t k : whole(multinomial(weights, 40000, true, Generator(5)))) ++counts[k];
  CHECK(counts[1] == 0);
  CHECK(counts[2] == doctest::Approx(30000).epsilon(0.02));
  // Without replacement the first draw has the weights as probabilities.
  const Tensor rows = multinomial(expand(weights, {20000, 3}), 2, false, Generator(6));
  CHECK(rows.shape() == Shape{20000, 2});
  const Ints64 drawn = whole(rows);
  int first = 0;
  for (std::size_t k = 0; k < drawn.size(); k += 2) {
    CHECK(drawn[k] + drawn[k + 1] == 2);
    first += drawn[k] == 2;
  }
  CHECK(first == doctest::Approx(15000).epsilon(0.02));
  CHECK_THROWS_AS(multinomial(weights, 3, false, Generator(7)).compute(), ValueError);
  CHECK_THROWS_AS(multinomial(weights, 4), ValueError);
  CHECK_THROWS_AS(multinomial(arange(3), 1), DTypeError);

  const double share = bernoulli(full({100000}, 0.3), Generator(8)).mean().item();
  CHECK(share == doctest::Approx(0.3).epsilon(0.02));
  CHECK(rand_like(weights).dtype() == DType::Float64);
}

TEST_CASE("composed ops: einsum equals sums of products") {
  const Tensor a = random({2, 3, 4}, 1), b = random({2, 4, 5}, 2), c = random({3, 3}, 3);
  check_near(einsum("bij,bjk->bik", {a, b}), matmul(a, b));
  check_near(einsum("bij,bjk", {a, b}), sum(matmul(a, b), 0));
  check_near(einsum("...ij,...jk->...ik", {a, b}), matmul(a, b));
  check_near(einsum("ii->i", {c}), diagonal(c));
  check_near(einsum("ii", {c}), trace(c));
  check_near(einsum("bij->jb", {a}), sum(permute(a, {2, 0, 1}), 2));
  check_near(einsum("bij,ii,bjk->ik", {a, c, b}), einsum("bik,i->ik", {matmul(a, b), diagonal(c)}));
  check_near(einsum("i,j->ij", {select(c, 0, 0), select(c, 0, 1)}),
             outer(select(c, 0, 0), select(c, 0, 1)));
  check_near(einsum("bij,bjk->bik", {a, slice(b, 0, 0, 1)}), matmul(a, slice(b, 0, 0, 1)));
  check_gradient([&](const Tensor& x) { return einsum("bij,bjk->ki", {x, b}); }, a);
  CHECK_THROWS_WITH_AS(einsum("ij,jk->ik", {c}), doctest::Contains("has 2 operands, and 1"),
                       ValueError);
  CHECK_THROWS_WITH_AS(einsum("ij->iz", {c}), doctest::Contains("'z' in the result only"),
                       ValueError);
  CHECK_THROWS_WITH_AS(einsum("i->i", {c}), doctest::Contains("operand 0 is [3, 3]"), ShapeError);
  CHECK_THROWS_AS(einsum("ij,jk->ik", {c, random({2, 2})}), ShapeError);
  CHECK_THROWS_AS(einsum("i?->i", {c}), ValueError);
}

TEST_CASE("composed ops: fold is the adjoint of unfold, and shuffles are inverse") {
  const Tensor x = random({2, 3, 7, 6}, 4);
  const WindowOptions o{.kernel = {3, 2}, .dilation = {1, 2}, .padding = {1, 0}, .stride = {2, 1}};
  const Tensor columns = unfold(x, o), y = random(columns.shape(), 5);
  CHECK(columns.shape() == Shape{2, 18, 16});
  CHECK(sum(columns * y).item() ==
        doctest::Approx(sum(x * fold(y, {7, 6}, o)).item()).epsilon(1e-10));
  check_near(grad(sum(columns * y), x), fold(y, {7, 6}, o));
  // A convolution is a product with the columns.
  const Tensor weight = random({5, 3, 3, 2}, 6);
  const Tensor product = matmul(reshape(weight, {5, 18}), columns);
  check_near(reshape(product, {2, 5, 4, 4}),
             conv2d(x, weight, {}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}}));
  CHECK_THROWS_AS(unfold(x, {.kernel = 9}), ShapeError);
  CHECK_THROWS_AS(fold(y, {7, 7}, o), ShapeError);

  const Tensor image = random({2, 8, 3, 5}, 7);
  CHECK(pixel_shuffle(image, 2).shape() == Shape{2, 2, 6, 10});
  CHECK(list(pixel_unshuffle(pixel_shuffle(image, 2), 2)) == list(image));
  CHECK(list(channel_shuffle(channel_shuffle(image, 2), 4)) == list(image));
  CHECK_THROWS_AS(pixel_shuffle(image, 3), ShapeError);
}

TEST_CASE("composed ops: borders") {
  const Tensor x = Tensor::from({1.0, 2.0, 3.0}, {3});
  CHECK(list(pad(x, {2, 1}, PadMode::Reflect)) == Doubles{3, 2, 1, 2, 3, 2});
  CHECK(list(pad(x, {2, 1}, PadMode::Replicate)) == Doubles{1, 1, 1, 2, 3, 3});
  CHECK(list(pad(x, {2, 1}, PadMode::Circular)) == Doubles{2, 3, 1, 2, 3, 1});
  CHECK(list(pad(x, {-1, 2}, PadMode::Replicate)) == Doubles{2, 3, 3, 3});
  CHECK_THROWS_AS(pad(x, {3, 0}, PadMode::Reflect), ShapeError);
  CHECK_THROWS_AS(pad(x, {4, 0}, PadMode::Circular), ShapeError);
  CHECK_THROWS_AS(pad(x, {1}, PadMode::Reflect), ValueError);
  for (const PadMode mode : {PadMode::Reflect, PadMode::Replicate, PadMode::Circular})
    check_gradient([&](const Tensor& t) { return pad(t, {2, 1}, mode); }, x);
}

TEST_CASE("composed ops: positions in sorted numbers, also of NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t n : {0, 1, 2, 3, 7, 8, 100}) {
    const Tensor sorted = cast(arange(n) * 2, DType::Float64);
    const Tensor values = Tensor::from(Doubles{-1, 0, 1, 6, 7, 1000}, {6});
    Ints64 left, right;
    const Doubles in = list(sorted);
    for (const double v : list(values)) {
      left.push_back(std::lower_bound(in.begin(), in.end(), v) - in.begin());
      right.push_back(std::upper_bound(in.begin(), in.end(), v) - in.begin());
    }
    CHECK(whole(searchsorted(sorted, values)) == left);
    CHECK(whole(searchsorted(sorted, values, true)) == right);
    CHECK(whole(bucketize(values, sorted)) == left);
  }
  const Tensor with_nan = Tensor::from(Doubles{1, 2, nan, nan}, {4});
  CHECK(whole(searchsorted(with_nan, Tensor::from(Doubles{nan, 3}, {2}))) == Ints64{2, 2});
  CHECK(whole(searchsorted(with_nan, Tensor::from(Doubles{nan, 3}, {2}), true)) == Ints64{4, 2});
  CHECK_THROWS_AS(searchsorted(random({2, 3}), random({3, 3})), ShapeError);
}

TEST_CASE("composed ops: statistics with NaN, empty tensors and refusals") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = Tensor::from(Doubles{3, nan, 1, 2, 4, 5}, {2, 3});
  CHECK(std::isnan(list(median(x, 1).values)[0]));
  CHECK(whole(median(x, 1).indices) == Ints64{1, 1});
  CHECK(std::isnan(quantile(x, 0.5).item()));
  CHECK(quantile(select(x, 0, 1), 0.25).item() == 3);
  CHECK_THROWS_AS(quantile(x, 1.5), ValueError);
  CHECK_THROWS_AS(median(zeros({0}), 0), ShapeError);
  const auto [most, at] = cummax(Tensor::from(Doubles{1, 3, 3, nan, 9}, {5}), 0);
  CHECK(whole(at) == Ints64{0, 1, 2, 3, 3});
  CHECK(std::isnan(list(most)[4]));
  CHECK(whole(bincount(Tensor::from(Ints64{1, 3, 1}, {3}), {}, 6)) == Ints64{0, 2, 0, 1, 0, 0});
  CHECK_THROWS_AS(bincount(Tensor::from(Ints64{-1}, {1})), ValueError);
  CHECK(list(histc(Tensor::from(Doubles{0, 0.5, 1, 2, nan}, {5}), 2, 0, 1)) == Doubles{1, 2});
  const UniqueElements none = unique(zeros({0, 2}));
  CHECK(none.values.numel() == 0);
  CHECK(none.inverse.shape() == Shape{0, 2});
  CHECK(nonzero(zeros({2, 2})).shape() == Shape{0, 2});
  CHECK_THROWS_AS(masked_scatter(zeros({3}), ones({3}, DType::Bool), ones({2})).compute(),
                  ValueError);
  check_gradient(
      [](const Tensor& t) {
        return quantile(t, Tensor::from(Doubles{0.3, 0.8}, {2}), 1);
      },
      random({3, 6}, 8));
  check_gradient([](const Tensor& t) { return cummax(t, 1).values; }, random({2, 9}, 9));
  check_gradient([](const Tensor& t) { return logcumsumexp(t, 0); }, random({40, 2}, 10));
}

namespace {

// -log of the probability of a target, by summing over every path of classes.
double ctc_by_paths(const Doubles& logp, int time, int classes, const Ints64& target) {
  double total = 0;
  std::vector<int> path(static_cast<std::size_t>(time), 0);
  for (bool more = true; more;) {
    Ints64 read;
    double log_probability = 0;
    for (int t = 0; t < time; ++t) {
      const int c = path[static_cast<std::size_t>(t)];
      log_probability += logp[static_cast<std::size_t>(t * classes + c)];
      if (c != 0 && (t == 0 || path[static_cast<std::size_t>(t - 1)] != c)) read.push_back(c);
    }
    if (read == target) total += std::exp(log_probability);
    more = false;
    for (int& c : path) {
      if (++c < classes) {
        more = true;
        break;
      }
      c = 0;
    }
  }
  return -std::log(total);
}

}  // namespace

TEST_CASE("composed ops: connectionist temporal classification equals the sum over all paths") {
  constexpr int kTime = 6, kClasses = 3;
  const Tensor logits = random({kTime, 4, kClasses}, 11), logp = log_softmax(logits, 2);
  const std::vector<Ints64> targets{{1, 2}, {2, 2, 1}, {}, {1}};
  const Ints64 inputs{6, 6, 4, 1};
  const Tensor padded = Tensor::from(Ints64{1, 2, 7, 2, 2, 1, 9, 9, 9, 1, 8, 8}, {4, 3}),
               steps = Tensor::from(inputs, {4}), lengths = Tensor::from(Ints64{2, 3, 0, 1}, {4});
  const Doubles found =
      list(ctc_loss(logp, padded, steps, lengths, {.reduction = Reduction::None}));
  for (std::size_t n = 0; n < 4; ++n) {
    const Tensor own = slice(select(logp, 1, static_cast<std::int64_t>(n)), 0, 0, inputs[n]);
    CHECK(found[n] == doctest::Approx(ctc_by_paths(list(own), static_cast<int>(inputs[n]), kClasses,
                                                   targets[n])));
  }
  check_gradient(
      [&](const Tensor& x) {
        return ctc_loss(log_softmax(x, 2), padded, steps, lengths, {.reduction = Reduction::Sum});
      },
      logits);
  CHECK(ctc_loss(logp, padded, steps, lengths).item() ==
        doctest::Approx((found[0] / 2 + found[1] / 3 + found[2] + found[3]) / 4));
  // A target that does not fit.
  const Tensor long_one = Tensor::from(Ints64{1, 1, 1}, {1, 3}),
               three = Tensor::from(Ints64{3}, {1});
  const Tensor one = slice(logp, 1, 0, 1);
  CHECK(std::isinf(ctc_loss(one, long_one, three, three).item()));
  CHECK(ctc_loss(one, long_one, three, three, {.zero_infinity = true}).item() == 0);
  const Tensor flat = grad(ctc_loss(one, long_one, three, three, {.zero_infinity = true}), one);
  CHECK(list(flat) == Doubles(static_cast<std::size_t>(flat.numel()), 0));
  CHECK_THROWS_AS(ctc_loss(one, long_one, Tensor::from(Ints64{7}, {1}), three).compute(),
                  ValueError);
  CHECK_THROWS_AS(ctc_loss(one, Tensor::from(Ints64{1, 3, 1}, {1, 3}), three, three).compute(),
                  ValueError);
  CHECK_THROWS_AS(ctc_loss(one, long_one, three, three, {.blank = 3}), ValueError);
}

TEST_CASE("composed ops: losses without a counterpart in PyTorch") {
  const Tensor logits = random({3, 4}, 12),
               target = cast(gt(random({3, 4}, 13), 0), DType::Float64);
  check_near(focal_loss(logits, target, -1, 0), binary_cross_entropy_with_logits(logits, target),
             1e-10);
  const Tensor p = sigmoid(logits);
  const Tensor missed = where(gt(target, 0), 1.0 - p, p);
  check_near(focal_loss(logits, target, 0.25, 2, Reduction::None),
             where(gt(target, 0), 0.25 * ones_like(p), 0.75 * ones_like(p)) * square(missed) *
                 -log(1.0 - missed),
             1e-10);
  CHECK(dice_loss(target, target).item() == doctest::Approx(0));
  const Tensor a = random({5, 3}, 14), b = random({5, 3}, 15);
  const auto unit = [](const Tensor& x) { return x / norm(x, {1}, true); };
  const Tensor cosines = matmul(unit(a), transpose(unit(b))) / 0.1;
  const Tensor both =
      (diagonal(log_softmax(cosines, 0)) + diagonal(log_softmax(cosines, 1))) / -2.0;
  check_near(info_nce_loss(a, b, 0.1, Reduction::None), both, 1e-10);
  check_near(info_nce_loss(a, b, 0.1), mean(both), 1e-10);
  CHECK_THROWS_AS(info_nce_loss(a, b, 0), ValueError);
  check_gradient(
      [&](const Tensor& x) {
        return triplet_margin_loss(x, b, random({5, 3}, 16), {.margin = 3, .swap = true});
      },
      a);
}

TEST_CASE("composed ops: fmod of magnitudes far apart") {
  const auto of = [](float a, float b) {
    return fmod(Tensor::from({a}, {1}), Tensor::from({b}, {1}));
  };
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(of(3, -1e30F).item() == 3);
  CHECK(of(-3, 1e10F).item() == -3);
  CHECK(of(1, -infinity).item() == 1);
  CHECK(of(-5, infinity).item() == -5);
  CHECK(of(1e-3F, -360).item() == static_cast<double>(1e-3F));
  for (const float a : {5.5F, -5.5F, 0.25F, -0.25F})
    for (const float b : {2.0F, -2.0F, 0.75F}) CHECK(of(a, b).item() == std::fmod(a, b));
  const Tensor x = Tensor::from({5.5, -5.5, 0.0, 0.25}, {4}),
               y = Tensor::from({2.0, 2.0, 2.0, -3.0}, {4});
  CHECK(list(grad(fmod(x, y).sum(), x)) == Doubles{1, 1, 1, 1});
  CHECK(list(grad(fmod(x, y).sum(), y)) == Doubles{-2, 2, 0, 0});
}

TEST_CASE("composed ops: gradients at poles and ties") {
  const Tensor zero = Tensor::from({0.0, 0.0, 0.0, 1.0}, {4});
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor y = Tensor::from({2.0, 0.5, 0.0, 3.0}, {4});
  const Doubles products = list(xlogy(zero, y));
  CHECK((products[0] == 0 && products[1] == 0 && products[2] == 0));
  CHECK(products[3] == doctest::Approx(std::log(3.0)).epsilon(1e-15));
  const Doubles g = list(grad(xlogy(zero, y).sum(), zero));
  CHECK(g[0] == doctest::Approx(std::log(2.0)));
  CHECK(g[1] == doctest::Approx(std::log(0.5)));
  CHECK((g[2] == 0 && g[3] == doctest::Approx(std::log(3.0))));
  const Tensor beside = Tensor::from({2.0, 0.5, -1.0, 3.0}, {4});
  const Doubles g1 = list(grad(xlog1py(zero, beside).sum(), zero));
  CHECK(g1[1] == doctest::Approx(std::log1p(0.5)));
  CHECK(g1[2] == 0);
  CHECK(list(xlogy(Tensor::from({0.0, 0.0}, {2}), Tensor::from({infinity, -1.0}, {2}))) ==
        Doubles{0, 0});

  const Tensor p = Tensor::from({0.0, 1.0, 0.5}, {3});
  CHECK(list(logit(p)) == Doubles{-infinity, infinity, 0});
  CHECK(list(grad(logit(p).sum(), p)) == Doubles{infinity, infinity, 4});

  const Tensor at = Tensor::from({1.0, 0.0, 2.0}, {3});
  CHECK(list(grad(clamp_min(at, 1).sum(), at)) == Doubles{1, 0, 1});
  CHECK(list(grad(clamp_max(at, 1).sum(), at)) == Doubles{1, 1, 0});
  const Tensor same = Tensor::from({1.0, 0.0, 2.0}, {3});
  CHECK(list(grad(fmax(at, same).sum(), at)) == Doubles{0.5, 0.5, 0.5});
  CHECK(list(grad(fmin(at, same).sum(), at)) == Doubles{0.5, 0.5, 0.5});
}

TEST_CASE("composed ops: losses far from the decision") {
  const Tensor x = Tensor::from({16.0F, 17.0F, 18.0F, 40.0F, 200.0F, -200.0F}, {6}),
               ones_of = ones({6});
  for (const double gamma : {0.0, 0.5, 1.0, 1.5, 2.0}) {
    CAPTURE(gamma);
    for (const float g :
         grad(focal_loss(x, ones_of, 0.25, gamma, Reduction::Sum), x).to_vector<float>())
      CHECK(std::isfinite(g));
  }
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor input = variable(Tensor::from({1.0F, 1.0F}, {2})),
               target = Tensor::from({2.0F, 2.0F}, {2}), var = Tensor::from({infinity, -1.0F}, {2});
  const Tensor loss = gaussian_nll_loss(input, target, var, false, 1e-6, Reduction::None);
  CHECK(loss.to_vector<float>()[0] == infinity);
  CHECK(loss.to_vector<float>()[1] == doctest::Approx((std::log(1e-6) + 1e6) / 2));
  CHECK(grad(loss.sum(), input).to_vector<float>()[0] == 0);
}

TEST_CASE("composed ops: products of numbers, large lists and impossible sizes") {
  const Tensor a = random({5, 6}, 1), b = random({5, 6}, 2), v = random({6}, 3);
  check_near(einsum("ij,ij->ij", {a, b}), a * b);
  check_near(einsum("ij,ij->ji", {a, b}), transpose(a * b));
  check_near(einsum("ij,j->ij", {a, v}), a * v);
  check_near(einsum("j,ij->ij", {v, a}), a * v);
  check_near(einsum("ij,ij->i", {a, b}), sum(a * b, {1}));
  check_near(einsum("ij,ij->", {a, b}), sum(a * b));
  check_near(einsum("i,j->ij", {select(a, 1, 0), v}), unsqueeze(select(a, 1, 0), 1) * v);
  check_near(einsum("i,j->ji", {select(a, 1, 0), v}), unsqueeze(v, 1) * select(a, 1, 0));
  check_gradient([&](const Tensor& x) { return einsum("ij,ij->i", {x, b}); }, a);
  check_gradient([&](const Tensor& x) { return einsum("ij,j->ij", {x, v}); }, a);
  CHECK_THROWS_WITH_AS(einsum("......->", {a}), doctest::Contains("twice"), ValueError);

  const Tensor numbers = randint(0, 500, {300}, DType::Int64, Generator(4)).compute(),
               tested = randint(0, 500, {200}, DType::Int64, Generator(5)).compute();
  const Ints64 in = whole(numbers), list_of = whole(tested);
  const auto found = isin(numbers, tested).to_vector<bool>();
  for (std::size_t k = 0; k < in.size(); ++k)
    CHECK(found[k] == (std::find(list_of.begin(), list_of.end(), in[k]) != list_of.end()));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor with_nan =
      concat({arange(0, 100, 1, DType::Float64), full({1}, nan, DType::Float64)});
  CHECK(list(cast(isin(Tensor::from({nan, 3.0, 0.5}, {3}), with_nan), DType::Int64)) ==
        Doubles{0, 1, 0});

  CHECK_THROWS_AS(take(a, ones({2})), DTypeError);
  CHECK_THROWS_WITH_AS(unflatten(a, 0, {-1, 0}), doctest::Contains("[-1, 0]"), ShapeError);
  const WindowOptions huge{.kernel = std::int64_t{1} << 32, .padding = std::int64_t{1} << 31};
  CHECK_THROWS_AS(fold(zeros({1, 4, 4}), 4, huge), Error);
  CHECK_THROWS_AS(unfold(zeros({1, 1, 4, 4}), huge), Error);
}
