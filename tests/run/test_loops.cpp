// scan() and cond() on the CPU: values and gradients compared with unrolled loops, random draws,
// refused calls, and planning that does not depend on the number of steps.
#include "loop_cases.h"

#include <tenon/error.h>

#include <optional>

#include "graph/attrs.h"
#include "graph/node.h"
#include "graph/order.h"
#include "null/thread_time.h"

using namespace tenon;
using test::all_of;
using test::distance;
using test::draw;
using test::Tensors;
using test::unrolled;
using test::weigh;

namespace {

const Device kCpu{};

/// A GRU cell of this width: x [N, 3H] is the input's contribution to the gates.
ScanStep gru(const Tensor& weight, std::int64_t width) {
  return [=](const Tensors& c, const Tensors& x) {
    const Tensors of_x = split(x[0], width, 1), of_h = split(matmul(c[0], weight), width, 1);
    const Tensor reset = sigmoid(of_x[0] + of_h[0]), update = sigmoid(of_x[1] + of_h[1]);
    const Tensor fresh = tanh(of_x[2] + reset * of_h[2]);
    const Tensor h = fresh + update * (c[0] - fresh);
    return ScanResult{{h}, {h}};
  };
}

}  // namespace

TEST_CASE("loops: a scan equals the unrolled loop, gradients too") {
  for (const std::int64_t length : {1, 2, 7})
    for (const test::LoopCase& c : test::loop_cases(DType::Float64, length))
      test::check_loop(c, kCpu, 1e-12);
  for (const test::LoopCase& c : test::loop_cases(DType::Float32)) test::check_loop(c, kCpu, 3e-6);
}

TEST_CASE("loops: gradients differentiate again") {
  for (const test::LoopCase& c : test::loop_cases(DType::Float64, 3)) {
    CAPTURE(c.name);
    Tensors inputs = c.carry;
    inputs.insert(inputs.end(), c.weights.begin(), c.weights.end());
    const auto second = [&](const ScanResult& r) {
      return grad(weigh(grad(weigh(all_of(r)), inputs)), inputs);
    };
    const Tensors ours = second(scan(c.step(c.weights), c.carry, c.xs, c.options)),
                  theirs = second(unrolled(c.step(c.weights), c.carry, c.xs, c.options));
    for (std::size_t k = 0; k < inputs.size(); ++k) CHECK(distance(ours[k], theirs[k]) < 1e-11);
  }
}

TEST_CASE("loops: zero steps return the initial carry") {
  const Tensor c = draw({3}, 1), x = zeros({0, 3}, DType::Float64);
  const ScanResult r = scan(
      [](const Tensors& carry, const Tensors& row) {
        return ScanResult{{carry[0] + row[0]}, {carry[0]}};
      },
      {c}, {x});
  CHECK(distance(r.carry[0], c) == 0);
  CHECK(r.ys[0].shape() == Shape{0, 3});
  CHECK(distance(grad(sum(r.carry[0]), c), ones({3}, DType::Float64)) == 0);
}

TEST_CASE("loops: integers and bools are carried unchanged") {
  const Tensor x = Tensor::from<float>({3, -1, 4, -1, 5}, {5});
  const ScanResult r = scan(
      [](const Tensors& c, const Tensors& row) {
        const Tensor above = gt(row[0], 0.0);
        return ScanResult{{c[0] + cast(above, DType::Int64), logical_xor(c[1], above)}, {c[0]}};
      },
      {scalar(0, DType::Int64), scalar(false, DType::Bool)}, {x});
  CHECK(r.carry[0].item() == 3);
  CHECK(r.carry[1].item() == 1);
  CHECK(r.ys[0].to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 1, 2, 2});
}

TEST_CASE("loops: every step draws new numbers, and its gradient uses the same ones") {
  manual_seed(3);
  const Tensor x = ones({4, 64}, DType::Float64), w = variable(ones({64}, DType::Float64));
  const ScanResult r = scan(
      [&](const Tensors&, const Tensors& row) {
        return ScanResult{{}, {dropout(row[0] * w, 0.5)}};
      },
      {}, {x});
  const Tensor after = rand({4});
  const Tensor g = grad(sum(r.ys[0]), w);
  compute({r.ys[0], g});
  const auto y = r.ys[0].to_vector<double>(), of_w = g.to_vector<double>();
  for (std::size_t k = 0; k < 64; ++k) CHECK(of_w[k] == y[k] + y[64 + k] + y[128 + k] + y[192 + k]);
  CHECK(std::vector<double>(y.begin(), y.begin() + 64) !=
        std::vector<double>(y.begin() + 64, y.begin() + 128));
  // The draws advance the generator: later draws do not repeat them.
  manual_seed(3);
  CHECK(after.to_vector<float>() != rand({4}).to_vector<float>());
}

TEST_CASE("loops: compiled, called again and again") {
  const Tensor w = variable(draw({4, 12}, 5, DType::Float32), "w");
  auto step = compile([&](const Tensors& in) {
    const ScanResult r = scan(gru(w, 4), {in[0]}, {in[1]});
    const Tensor loss = sum(square(r.ys[0]));
    return Tensors{loss, assign(w, w - grad(loss, w) * 0.01)};
  });
  double before = 1e9;
  for (int k = 0; k < 5; ++k) {
    const double loss =
        step({draw({2, 4}, 6, DType::Float32), draw({9, 2, 12}, 7, DType::Float32)})[0].item();
    CHECK(loss < before);
    before = loss;
  }
}

TEST_CASE("loops: the plan of a scan does not grow with its steps") {
  const Tensor w = draw({64, 192}, 5, DType::Float32);
  const auto planned = [&](std::int64_t steps) {
    const Tensor rows = draw({steps, 8, 192}, 7, DType::Float32);
    test::Least least;  // built, differentiated and planned
    std::optional<Plan> p;
    for (int k = 0; k < test::kMostAttempts && !(least.seconds() < test::kCrowded * 0.05); ++k)
      least.attempt([&] {
        const ScanResult r = scan(gru(w, 64), {zeros({8, 64}) * 1.0}, {rows});
        p = plan(std::vector<Tensor>{r.carry[0], grad(sum(r.ys[0]), w)});
      });
    return std::pair(*p, least.seconds());
  };
  const auto few = planned(10), many = planned(1000);
  CHECK(few.first.step_count() == many.first.step_count());
  CHECK(few.first.node_count() == many.first.node_count());
  CHECK(many.second < test::kCrowded * 0.05);
}

TEST_CASE("loops: the forward pass runs once, although its gradient needs more of its values") {
  const Tensor w = draw({4, 12}, 5, DType::Float32);
  const ScanResult r =
      scan(gru(w, 4), {draw({2, 4}, 6, DType::Float32)}, {draw({3, 2, 12}, 7, DType::Float32)});
  const Tensor loss = sum(r.ys[0]);
  const std::string steps = plan(std::vector<Tensor>{loss, grad(loss, w)}).steps();
  std::size_t scans = 0;
  for (std::size_t at = steps.find("scan"); at != std::string::npos;
       at = steps.find("scan", at + 1))
    ++scans;
  CHECK_MESSAGE(scans == 2, steps);
}

TEST_CASE("loops: a gradient stores the sum that contains a product, and reads no row for it") {
  const Tensor w = draw({4, 4}, 5, DType::Float32);
  const ScanStep step = [&w](const Tensors& c, const Tensors& x) {
    const Tensor h = tanh(x[0] + matmul(c[0], w));
    return ScanResult{{h}, {h}};
  };
  const ScanResult r =
      scan(step, {draw({2, 4}, 6, DType::Float32)}, {draw({3, 2, 4}, 7, DType::Float32)});
  std::vector<std::int64_t> rows;
  const Tensor g = grad(sum(r.ys[0]), w);
  for (const Node* node : topological_order(std::vector<Tensor>{g}))
    if (!node->realised() && node->op == Op::Scan) rows.push_back(node->attrs.as<ScanAttrs>().rows);
  // The backward scan reads the gradient of each y, the carry before each step, and the sum.
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == 1);
  CHECK(rows[1] == 3);
}

TEST_CASE("loops: invalid shapes are refused on the user's line") {
  const Tensor c = zeros({3}), x = zeros({4, 3});
  const ScanStep good = [](const Tensors& carry, const Tensors& row) {
    return ScanResult{{carry[0] + row[0]}, {}};
  };
  const Tensor v = variable(zeros({3}), "v");
  Scope scope("encoder");
  CHECK_THROWS_WITH_AS(scan(good, {c}, {x, zeros({5, 3})}),
                       "scan (encoder): xs[1] is [5, 3], the scan has 4 steps: its first axis must "
                       "have as many",
                       ShapeError);
  CHECK_THROWS_AS(scan(good, {c}, {scalar(1.0)}), ShapeError);
  CHECK_THROWS_AS(scan(good, {c}, {}), ValueError);
  CHECK_THROWS_WITH_AS(scan(good, {c}, {x}, {.length = -5}),
                       doctest::Contains("scan (encoder): a length of -5 steps"), ValueError);
  CHECK_THROWS_AS(scan(ScanStep(), {c}, {x}), ValueError);
  CHECK_THROWS_AS(scan(good, {Tensor()}, {x}), ValueError);
  CHECK_THROWS_WITH_AS(scan(
                           [](const Tensors& carry, const Tensors&) {
                             return ScanResult{{sum(carry[0])}, {}};
                           },
                           {c}, {x}),
                       "scan (encoder): carry 0 begins as float32[3] and a step returns float32[]",
                       ShapeError);
  CHECK_THROWS_AS(scan(
                      [](const Tensors& carry, const Tensors&) {
                        return ScanResult{{cast(carry[0], DType::Float64)}, {}};
                      },
                      {c}, {x}),
                  DTypeError);
  CHECK_THROWS_AS(scan(
                      [](const Tensors&, const Tensors&) {
                        return ScanResult{{}, {}};
                      },
                      {c}, {x}),
                  ValueError);
  CHECK_THROWS_AS(scan(
                      [&](const Tensors& carry, const Tensors&) {
                        return ScanResult{{assign(v, carry[0])}, {}};
                      },
                      {c}, {x}),
                  NotSupported);
  CHECK_THROWS_AS(scan(
                      [&](const Tensors& carry, const Tensors&) {
                        (void)carry[0].to_vector<float>();
                        return ScanResult{{carry[0]}, {}};
                      },
                      {c}, {x}),
                  ValueError);
}

TEST_CASE("loops: cond runs one of two branches, and so do its gradients") {
  const Tensor a = variable(draw({3}, 1)), b = draw({3}, 2);
  for (const bool holds : {true, false}) {
    const Tensor p = eq(sum(b), sum(b) + (holds ? 0.0 : 1.0));  // known at run time only
    const Tensors r = cond(
        p,
        [](const Tensors& x) {
          return Tensors{x[0] * x[1], exp(x[0])};
        },
        [&](const Tensors& x) {
          return Tensors{x[0] - a, log(x[1] * 0.0)};
        },
        {a, b});
    const Tensor& value = r[0];
    CHECK(distance(value, holds ? a * b : a - a) < 1e-15);
    const Tensor g = grad(sum(value * b), a);
    CHECK(distance(g, holds ? b * b : zeros({3}, DType::Float64)) < 1e-15);
  }
  CHECK_THROWS_AS(
      cond(
          b, [](const Tensors& x) { return x; }, [](const Tensors& x) { return x; }, {a}),
      ShapeError);
  CHECK_THROWS_AS(cond(
                      scalar(true, DType::Bool), [](const Tensors& x) { return x; },
                      [](const Tensors& x) { return Tensors{sum(x[0])}; }, {a}),
                  ShapeError);
}
