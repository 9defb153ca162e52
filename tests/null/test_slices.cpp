// Gradients of slices, selects and splits of one tensor: the number of steps, and the values.
#include <doctest/doctest.h>

#include <numeric>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "graph/order.h"
#include "planning.h"

using namespace tenon;
using test::planned;

namespace {

int count_nodes(const Tensor& root, Op op) {
  int count = 0;
  for (const Node* node : topological_order(std::span(&root, 1))) count += node->op == op ? 1 : 0;
  return count;
}

Tensor ramp(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 1.0f);
  return Tensor::from(values, shape);
}

/// Element k of axis 1 weighted by its index, however the tensor is split.
Tensor weighted(const std::vector<Tensor>& parts) {
  Tensor total = scalar(0.0);
  double weight = 1;
  for (const Tensor& part : parts) total = total + sum(part * weight++);
  return total;
}

}  // namespace

TEST_CASE("slices: the gradients of all parts of a tensor are one write") {
  const Tensor x = ramp({4, 96});
  for (const std::int64_t count : {2, 3, 32, 96}) {
    CAPTURE(count);
    const Tensor g = grad(weighted(chunk(x, count, 1)), x);
    CHECK(count_nodes(g, Op::Pad) == 0);
    CHECK(count_nodes(g, Op::Concat) == 1);
    CHECK(count_nodes(g, Op::Add) == 0);
    const std::vector<float> got = g.to_vector<float>();
    for (std::int64_t k = 0; k < 96; ++k)
      CHECK(got[static_cast<std::size_t>(k)] == static_cast<float>(k / (96 / count) + 1));
  }
}

TEST_CASE("slices: selects of a thousand steps are few writes, and no additions") {
  const Tensor x = ramp({1000, 3});
  const Tensor g = grad(weighted(unbind(x, 0)), x);
  CHECK(count_nodes(g, Op::Pad) == 0);
  CHECK(count_nodes(g, Op::Add) == 0);
  CHECK(count_nodes(g, Op::Concat) <= 9);  // a node takes 128 parts
  CHECK(g.to_vector<float>()[3 * 999 + 2] == 1000);
}

TEST_CASE("slices: elements outside all slices are padded once, and gaps are filled") {
  const Tensor x = ramp({2, 20});
  const Tensor g = grad(weighted({slice(x, 1, 3, 5), slice(x, 1, 5, 9), slice(x, 1, 12, 15)}), x);
  CHECK(count_nodes(g, Op::Pad) == 1);
  CHECK(count_nodes(g, Op::Concat) == 1);
  CHECK(count_nodes(g, Op::Add) == 0);
  const std::vector<float> row{0, 0, 0, 1, 1, 2, 2, 2, 2, 0, 0, 0, 3, 3, 3, 0, 0, 0, 0, 0};
  std::vector<float> expected = row;
  expected.insert(expected.end(), row.begin(), row.end());
  CHECK(g.to_vector<float>() == expected);
}

TEST_CASE("slices: only overlapping parts are added") {
  const Tensor x = ramp({12});
  std::vector<Tensor> windows;
  for (std::int64_t k = 0; k < 10; ++k) windows.push_back(slice(x, 0, k, k + 3));
  const Tensor g = grad(weighted(windows), x);
  CHECK(count_nodes(g, Op::Add) == 2);  // three layers
  CHECK(g.to_vector<float>() == std::vector<float>{1, 3, 6, 9, 12, 15, 18, 21, 24, 27, 19, 10});
}

TEST_CASE("slices: the gradient of gates takes no more steps than the gates") {
  const Tensor x = test::leaf({32, 128}), w = test::leaf({384, 128});
  const std::vector<Tensor> gates = chunk(linear(x, w), 3, 1);
  const Tensor y = sigmoid(gates[0]) * tanh(gates[1]) + sigmoid(gates[2]);
  const auto p = planned({grad(sum(y), w)}, {.kind = Device::Kind::Cpu});
  CAPTURE(print_steps(*p));
  int pads = 0;
  for (const Step& step : p->steps)
    pads += step.region.kind == RegionKind::Opaque && step.region.opaque.op == Op::Pad ? 1 : 0;
  CHECK(pads == 0);
  CHECK(p->steps.size() <= 6);
}

TEST_CASE("slices: builders refuse invalid sizes") {
  const Tensor x = ramp({4, 6});
  CHECK_THROWS_AS(narrow(x, 1, 4, 3), ValueError);
  CHECK_THROWS_AS(split(x, {2, 3}, 1), ShapeError);
  CHECK_THROWS_AS(chunk(x, 0), ValueError);
  CHECK(chunk(x, 4, 1).size() == 3);  // parts of two, as in PyTorch
  CHECK(unbind(x, -1).size() == 6);
  CHECK_THROWS_AS(topk(x, 7), ValueError);
}
