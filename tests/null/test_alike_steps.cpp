// Steps that compute the same on different values are found by their regions' keys.
#include <doctest/doctest.h>

#include <tenon/ops.h>

#include "base/contains.h"
#include "plan/program/region_key.h"
#include "planning.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// The index of the step that computes an output.
std::size_t step_of(const Program& p, std::size_t output) {
  const ValueId made = p.outputs[output].value;
  for (std::size_t s = 0; s < p.steps.size(); ++s)
    if (tenon::contains(p.steps[s].region.writes, made)) return s;
  FAIL("no step writes the output");
  return 0;
}

}  // namespace

TEST_CASE("alike steps: products of the same shapes, whatever their operands") {
  const auto x = [] { return leaf({32, 48}); };
  const auto w = [] { return leaf({48, 32}); };
  const Tensor square = leaf({32, 32});
  const auto p = planned({matmul(x(), w()), matmul(x(), w()), matmul(x(), leaf({48, 40})),
                          matmul(square, square), matmul(leaf({32, 32}), leaf({32, 32}))},
                         {.kind = Device::Kind::Cpu});
  EqualSteps alike(*p);
  std::vector<std::size_t> steps;
  for (std::size_t k = 0; k < p->outputs.size(); ++k) steps.push_back(step_of(*p, k));
  const std::size_t first = std::min(steps[0], steps[1]), second = std::max(steps[0], steps[1]);
  CHECK(alike.is_first(first));
  CHECK(alike.first(second) == static_cast<int>(first));
  for (std::size_t k = 2; k < steps.size(); ++k) CHECK(alike.is_first(steps[k]));

  const std::span<const ValueId> renamed = alike.renamed(second);
  const Contraction &from = p->steps[first].region.contraction,
                    &to = p->steps[second].region.contraction;
  CHECK(renamed[at(from.a.value)] == to.a.value);
  CHECK(renamed[at(from.b.value)] == to.b.value);
  CHECK(renamed[at(from.out)] == to.out);
}

TEST_CASE("alike steps: maps that differ in an operation, a stride or a number are not") {
  const auto x = [] { return leaf({64, 64}); };
  const auto p = planned({tanh(x()), exp(x()), tanh(transpose(x())), tanh(x()) * 2.0, tanh(x())},
                         {.kind = Device::Kind::Cpu});
  const EqualSteps alike(*p);
  int firsts = 0;
  for (std::size_t s = 0; s < p->steps.size(); ++s) firsts += alike.is_first(s) ? 1 : 0;
  CHECK(p->steps.size() == 5);
  CHECK(firsts == 4);
}
