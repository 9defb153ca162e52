// What bodies of loops and branches capture and what they compute themselves. Where a tensor was
// created decides, whoever holds it. A tensor created outside is an operand, with a gradient of its
// own.
#include "loop_cases.h"

#include <functional>

#include "graph/node.h"

using namespace tenon;
using test::distance;
using test::draw;
using test::Tensors;
using test::unrolled;
using test::weigh;

namespace {

/// How a body obtains a tensor.
enum class Way { Reference, Copy, List, View };
constexpr Way kWays[] = {Way::Reference, Way::Copy, Way::List, Way::View};

std::function<Tensor()> reader(const Tensor& x, Way way) {
  switch (way) {
    case Way::Reference:
      return [&x] { return x; };
    case Way::Copy:
      return [x] { return x; };
    case Way::List:
      return [list = Tensors{x, x}] { return list[1]; };
    case Way::View:
      return [&x] { return slice(unsqueeze(x, 0), 1, 0, 3); };
  }
  return {};
}

ScanStep step_with(const Tensor& x, Way way) {
  return [read = reader(x, way)](const Tensors& carry, const Tensors& row) {
    const Tensor own = reshape(full({3, 1}, 0.5, DType::Float64), {1, 3});
    return ScanResult{{carry[0] * 0.5 + row[0] * read() * own}, {exp(carry[0] * read())}};
  };
}

struct Made {
  const char* name;
  std::function<Tensor(const Tensor& variable)> make;
};

const std::vector<Made>& all_made() {
  static const std::vector<Made> made{
      {"ones", [](const Tensor&) { return ones({3}, DType::Float64); }},
      {"a number, expanded",
       [](const Tensor&) { return expand(scalar(0.75, DType::Float64), {3}); }},
      {"ones, sliced", [](const Tensor&) { return slice(ones({5}, DType::Float64), 0, 1, 4); }},
      {"ones, cast", [](const Tensor&) { return cast(ones({3}), DType::Float64); }},
      {"a variable, sliced", [](const Tensor& v) { return slice(v, 0, 2, 5); }},
      {"a variable, transposed",
       [](const Tensor& v) {
         return select(transpose(reshape(v, {3, 2}), 0, 1), 0, 1);
       }},
      {"a value", [](const Tensor& v) { return slice(v * 0.5, 0, 1, 4); }}};
  return made;
}

std::size_t inputs_of_scan(const ScanResult& r) {
  const Node* const scan = r.ys[0].node()->input(0);
  REQUIRE(scan->op == Op::Scan);
  return scan->input_count;
}

}  // namespace

TEST_CASE("loop operands: gradients with respect to tensors created outside a scan") {
  const Tensor v = draw({6}, 3), c = draw({2, 3}, 4), rows = draw({5, 2, 3}, 5);
  for (const Made& made : all_made())
    for (const Way way : kWays) {
      CAPTURE(made.name);
      CAPTURE(static_cast<int>(way));
      const Tensor x = made.make(v);
      const ScanResult ours = scan(step_with(x, way), {c}, {rows}),
                       theirs = unrolled(step_with(x, way), {c}, {rows});
      const Tensor loss = weigh({ours.carry[0], ours.ys[0]}),
                   wanted = weigh({theirs.carry[0], theirs.ys[0]});
      CHECK(distance(grad(loss, x), grad(wanted, x)) < 1e-12);
      CHECK(distance(grad(loss, v), grad(wanted, v)) < 1e-12);
    }
}

TEST_CASE("loop operands: gradients with respect to tensors created outside a branch") {
  const Tensor v = draw({6}, 3), w = draw({2, 3}, 4);
  for (const Made& made : all_made())
    for (const Way way : kWays)
      for (const bool taken : {true, false}) {
        CAPTURE(made.name);
        CAPTURE(static_cast<int>(way));
        CAPTURE(taken);
        const Tensor x = made.make(v);
        const Branch read = [of_x = reader(x, way)](const Tensors& in) {
          return Tensors{exp(in[0] * of_x())};
        };
        const Branch other = [](const Tensors& in) { return in; };
        const Tensor positive = gt(sum(square(w)), 0);
        const Tensor y = taken ? cond(positive, read, other, {w})[0]
                               : cond(logical_not(positive), other, read, {w})[0];
        CHECK(distance(grad(weigh({y}), x), grad(weigh(read({w})), x)) < 1e-12);
      }
}

TEST_CASE("loop operands: an inner loop captures tensors of the outer loop") {
  const Tensor c = draw({3}, 4), rows = draw({4, 3}, 5);
  const auto through = [&](const auto& inner_scan) {
    return [&, inner_scan](const Tensors& carry, const Tensors& row) {
      const Tensor x = ones({3}, DType::Float64);
      const ScanStep inner = [&](const Tensors& in, const Tensors& r) {
        return ScanResult{{in[0] * 0.5 + r[0] * x * x}, {in[0]}};
      };
      const ScanResult r = inner_scan(inner, Tensors{carry[0]}, Tensors{rows * row[0]});
      return ScanResult{{r.carry[0]}, {grad(sum(r.carry[0]), x)}};
    };
  };
  const auto looped = [](const ScanStep& s, const Tensors& in, const Tensors& xs) {
    return scan(s, in, xs);
  };
  const auto written_out = [](const ScanStep& s, const Tensors& in, const Tensors& xs) {
    return unrolled(s, in, xs);
  };
  const ScanResult ours = scan(through(looped), Tensors{c}, Tensors{rows}),
                   theirs = unrolled(through(written_out), Tensors{c}, Tensors{rows});
  CHECK(distance(ours.carry[0], theirs.carry[0]) < 1e-12);
  CHECK(distance(ours.ys[0], theirs.ys[0]) < 1e-12);
}

TEST_CASE("loop operands: a tensor created in a body belongs to it, whoever holds the tensor") {
  const Tensor c = draw({2, 3}, 4), rows = draw({5, 2, 3}, 5);
  Tensors kept;
  const auto with = [&](bool keeps) {
    return scan(
        [&](const Tensors& carry, const Tensors& row) {
          const Tensor own = full({1, 3}, 0.5, DType::Float64), view = expand(own, {2, 3});
          if (keeps) kept.insert(kept.end(), {own, view});
          return ScanResult{{carry[0] + row[0] * view}, {carry[0] * own}};
        },
        {c}, {rows});
  };
  CHECK(inputs_of_scan(with(false)) == 2);
  CHECK(inputs_of_scan(with(true)) == 2);
  // In another loop it comes from outside.
  const auto read = [&](const Tensors& carry, const Tensors& row) {
    return ScanResult{{carry[0] + row[0] * kept[1]}, {carry[0] * kept[0]}};
  };
  const ScanResult r = scan(read, {c}, {rows}), wanted = unrolled(read, {c}, {rows});
  CHECK(inputs_of_scan(r) == 4);
  for (const Tensor& x : kept)
    CHECK(distance(grad(weigh({r.carry[0], r.ys[0]}), x),
                   grad(weigh({wanted.carry[0], wanted.ys[0]}), x)) < 1e-12);
}
