// Chains: convolutions and poolings run slice by slice give the same results as one after another,
// for any number of threads, and keep no whole tensor of values that only they read.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "../base/distance.h"

using namespace tenon;
using test::distance;

namespace {

struct Case {
  std::int64_t samples = 65;  // two at a time; the last one alone
  std::int64_t channels = 3;  // 27 taps are recomputed, 36 are not
  Pool2dOptions pool = {.kernel = {2, 2}};
  bool average = false, activation = true, keeps = false;
  Precision precision = Precision::Fp32;
};

struct Result {
  std::vector<float> losses, pooled, kept, filter, bias;
  bool operator==(const Result&) const = default;
  std::string steps, why;
  std::int64_t arena = 0;
};

bool same(const Result& a, const Result& b) {
  return a.losses == b.losses && a.pooled == b.pooled && a.kept == b.kept && a.filter == b.filter &&
         a.bias == b.bias;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Three steps of gradient descent of a convolution, its bias, an activation and a pooling.
Result train(const Case& c, bool chains) {
  set_pass_enabled("chain", chains);
  set_precision(c.precision);
  Generator data(5);
  const auto random = [&data](const Shape& shape) {
    return randn(shape, DType::Float32, data).compute();
  };
  const Tensor x = random({c.samples, c.channels, 34, 34});
  Tensor filter = variable(random({16, c.channels, 3, 3}) * 0.2f, "filter");
  Tensor bias = variable(random({16}), "bias");
  CompiledFunction step = compile([&](const std::vector<Tensor>& in) {
    const Tensor made = conv2d(in[0], filter, bias);
    const Tensor active = c.activation ? relu(made) : made;
    const Tensor pooled = c.average ? avg_pool2d(active, c.pool) : max_pool2d(active, c.pool);
    const Tensor loss = mean(pooled * pooled * in[1]);
    const std::vector<Tensor> of{filter, bias};
    const std::vector<Tensor> g = grad(loss, of);
    std::vector<Tensor> out{loss, pooled};
    if (c.keeps) out.push_back(active);
    out.push_back(assign(filter, filter - 0.5f * g[0]));
    out.push_back(assign(bias, bias - 0.5f * g[1]));
    return out;
  });
  const Tensor weight = random({c.samples, 1, 1, 1});
  Result result;
  for (int k = 0; k < 3; ++k) {
    const std::vector<Tensor>& out = step({x, weight});
    result.losses.push_back(static_cast<float>(out[0].item()));
    if (k > 0) continue;
    result.pooled = out[1].to_vector<float>();
    if (c.keeps) result.kept = out[2].to_vector<float>();
  }
  result.filter = filter.to_vector<float>();
  result.bias = bias.to_vector<float>();
  const Plan plan = step.plan({x, weight});
  result.steps = plan.steps();
  result.why = plan.fusion();
  result.arena = plan.arena_bytes();
  set_precision(Precision::Fp32);
  set_pass_enabled("chain", true);
  return result;
}

/// The convolution's result, in bytes.
std::int64_t made_bytes(const Case& c) { return c.samples * 16 * 32 * 32 * 4; }

/// With and without chains, on two threads and others: the same forward bits; gradients may differ
/// by the order of their sums.
Result check(const Case& c, double bound = 2e-6) {
  const int before = threads();
  set_threads(2);  // arenas have a workspace for each thread
  const Result whole = train(c, false), chained = train(c, true);
  CHECK_FALSE(contains(whole.steps, "chain"));
  CHECK(contains(chained.steps, "chain"));
  CHECK(chained.losses[0] == whole.losses[0]);
  CHECK(chained.pooled == whole.pooled);
  CHECK(chained.kept == whole.kept);
  CHECK(distance(chained.filter, whole.filter) < bound);
  CHECK(distance(chained.bias, whole.bias) < bound);
  CHECK(distance(chained.losses, whole.losses) < bound);
  CHECK(same(train(c, true), chained));
  for (int count : {1, 3, 7}) {
    set_threads(count);
    CHECK(same(train(c, true), chained));
  }
  set_threads(before);
  return chained;
}

}  // namespace

TEST_CASE("chains: a convolution of few taps is recomputed, and its result is never stored whole") {
  const Case c;
  const Result chained = check(c);
  CHECK(contains(chained.why, "is recomputed"));
  CHECK(contains(chained.why, "never whole tensors"));
  CHECK(chained.arena < made_bytes(c));
}

TEST_CASE("chains: more threads than slices need no more memory") {
  const int before = threads();
  std::vector<std::int64_t> arenas;
  for (int count : {8, 40, 80}) {
    set_threads(count);
    arenas.push_back(train(Case(), true).arena);
  }
  set_threads(before);
  CHECK(arenas[0] < arenas[1]);
  CHECK(arenas[2] - arenas[1] < (arenas[1] - arenas[0]) / 20);
}

TEST_CASE("chains: a convolution of many taps is kept for the gradient") {
  Case c;
  c.channels = 4;
  const Result chained = check(c);
  CHECK_FALSE(contains(chained.why, "is recomputed"));
  CHECK(chained.arena > made_bytes(c));
  CHECK(chained.arena < 2 * made_bytes(c));  // the pooling's gradient is not stored whole
}

TEST_CASE("chains: requested results are whole tensors") {
  Case c;
  c.keeps = true;
  const Result chained = check(c);
  CHECK_FALSE(contains(chained.why, "is recomputed"));
}

TEST_CASE("chains: windows that overlap or extend beyond the edge, averages, bfloat16 products") {
  Case c;
  c.pool = {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  check(c);
  c.average = true;
  check(c);
  c.activation = false;  // the weight gradient reads the average's gradient directly
  check(c);
  c = {};
  c.precision = Precision::Bf16;
  check(c, 2e-5);
}

TEST_CASE("chains: samples that divide into slices, and a prime number of them") {
  Case c;
  for (std::int64_t samples : {64 + 3, 96, 128}) {
    c.samples = samples;
    check(c);
  }
}

TEST_CASE("chains: an empty batch and a single sample are not chained") {
  for (std::int64_t samples : {0, 1}) {
    const Tensor x = zeros({samples, 3, 34, 34}), filter = ones({16, 3, 3, 3});
    const Tensor pooled = max_pool2d(relu(conv2d(x, filter)));
    const std::vector<Tensor> of{filter};
    std::vector<Tensor> out = grad(sum(pooled), of);
    out.push_back(pooled);
    CHECK_FALSE(contains(plan(out).steps(), "chain"));
    compute(out);
    CHECK(out[0].to_vector<float>() == std::vector<float>(16 * 27, 0));
    CHECK(out[1].shape() == Shape{samples, 16, 16, 16});
  }
}

TEST_CASE("chains: refused with a reason") {
  Case c;
  c.samples = 20;
  CHECK_FALSE(contains(train(c, true).steps, "chain"));  // 1.3 MB stay in cache anyway
  Generator data(5);
  const auto why = [&](std::int64_t samples, std::int64_t side, std::int64_t inputs, bool drops) {
    const Tensor x = randn({samples, inputs, side, side}, DType::Float32, data).compute();
    const Tensor filter = randn({16, inputs, 3, 3}, DType::Float32, data).compute();
    const Tensor made = conv2d(x, filter);
    const std::vector<Tensor> out{
        max_pool2d(drops ? dropout(made, 0.5) : made, {.kernel = {2, 2}})};
    return plan(out).fusion();
  };
  CHECK(contains(why(8, 200, 16, false), "are too few for 16 slices"));
  CHECK(contains(why(16, 300, 16, false), "entries do not stay in cache"));
  CHECK(contains(why(300, 18, 160, false), "packs the operands"));
  CHECK_FALSE(contains(why(100, 34, 3, true), "chain conv2d"));  // random numbers in between
  CHECK(contains(why(100, 34, 3, false), "chain conv2d, max_pool2d"));
  CHECK(contains(why(100, 34, 32, false), "products take most of the time"));
}

TEST_CASE("chains: any steps that share a sliced axis, bit for bit") {
  Generator data(5);
  const Tensor x = randn({67, 3, 80, 81}, DType::Float32, data).compute();
  const Pool2dOptions window{.kernel = {3, 2}, .stride = {1, 1}};
  const auto made = [&](bool chains) {
    set_pass_enabled("chain", chains);
    const Tensor pooled = max_pool2d(x, window);
    const Tensor rows = softmax(pooled * 2.0f, 3);
    const std::vector<Tensor> out{avg_pool2d(rows, window), sum(rows, {1, 3})};
    const std::string text = plan(out).steps();
    CHECK(contains(text, "chain") == chains);
    CHECK(contains(text, "avg_pool2d over 67 entries") == chains);
    compute(out);
    set_pass_enabled("chain", true);
    return std::pair(out[0].to_vector<float>(), out[1].to_vector<float>());
  };
  const int before = threads();
  const auto whole = made(false);
  for (int count : {1, 2, 5}) {
    set_threads(count);
    CHECK(made(true) == whole);
  }
  set_threads(before);
}
