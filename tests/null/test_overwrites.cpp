// Which maps on a GPU write a large result over their operand. Plans only; values are tested in
// tests/cuda/test_overwrites.cpp.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "planning.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr std::int64_t kRows = 1 << 14, kColumns = 1031;  // float32: 64 MiB and a little more

int overwriting(const Program& p) {
  int count = 0;
  for (const Step& step : p.steps)
    count +=
        contains(step.region.why, std::string("overwrites an operand with its result")) ? 1 : 0;
  return count;
}

int overwriting(const std::vector<Tensor>& roots, Settings settings = {}) {
  return overwriting(*planned(roots, settings));
}

/// Rows of a table: a large value, computed by a step of its own.
Tensor large(std::int64_t rows = kRows, std::int64_t columns = kColumns,
             DType dtype = DType::Float32) {
  return index_select(leaf({7, columns}, dtype), 0, leaf({rows}, DType::Int64));
}

/// Some rows, gathered by a step of their own, so that the operand is stored.
Tensor some(const Tensor& x) { return index_select(x, 0, leaf({40}, DType::Int64)); }

Tensor less_largest(const Tensor& x) { return exp(x - amax(x, {1}, true)) + x; }

}  // namespace

TEST_CASE("overwrites: operands read element by element by the map alone") {
  CHECK(overwriting({some(less_largest(large()))}) == 1);
  CHECK(overwriting({some(exp(large(kRows, kColumns) * 2.0F))}) == 1);
  CHECK(overwriting({some(less_largest(large((1 << 13) + 1, 1031, DType::Float64)))}) == 1);
  CHECK(overwriting({some(less_largest(large(4099, 4099)))}) == 1);
  // Two operands: one of them is overwritten.
  CHECK(overwriting({some(large() * exp(large()))}) == 1);
  const auto p = planned({some(less_largest(large()))});
  CHECK(p->arena_bytes < kRows * kColumns * 4 * 3 / 2);
}

TEST_CASE("overwrites: each of several maps, of those in a row every other one") {
  const Tensor order = leaf({kRows}, DType::Int64), one = less_largest(large());
  const Tensor later = index_select(large(), 0, order);
  CHECK(overwriting({some(one), some(less_largest(later))}) == 2);
  CHECK(overwriting({some(less_largest(index_select(one, 0, order)))}) == 2);
  // Two maps that share a launch overwrite nothing.
  CHECK(overwriting({some(one), some(less_largest(large()))}) == 0);
}

TEST_CASE("overwrites: a map that runs after all other readers of its operand") {
  const Tensor x = large();
  const auto p = planned({some(less_largest(x)), some(x), some(exp(x))});
  CHECK(overwriting(*p) == 1);
  CHECK(p->arena_bytes < kRows * kColumns * 4 * 5 / 2);
  // Steps that wait for the map cannot read the value before it.
  const Tensor rows = cast(slice(amax(some(less_largest(x)), {1}), 0, 0, 40), DType::Int64);
  CHECK(overwriting({index_select(x, 0, rows)}) == 0);
  CHECK(overwriting({index_select(x, 0, rows), some(x)}) == 0);
}

TEST_CASE(
    "overwrites: neither if elements are read in another order nor if the operand is requested") {
  const Tensor x = large();
  CHECK(overwriting({some(exp(x) + flip(x, {1}))}) == 0);
  CHECK(overwriting({some(exp(x) + slice(x, 0, 0, 1))}) == 0);
  const Tensor square = large(4096, 4099);
  CHECK(overwriting({some(exp(slice(square, 1, 0, 4096)) +
                          transpose(slice(square, 1, 0, 4096), 0, 1))}) == 0);
  CHECK(overwriting({less_largest(x), x}) == 0);
  CHECK(overwriting({less_largest(x)}) == 0);
  CHECK(overwriting({some(cast(less_largest(x), DType::BFloat16))}) == 0);
  const Tensor given = leaf({kRows, kColumns}), kept = variable(given);
  CHECK(overwriting({some(less_largest(given))}) == 0);
  CHECK(overwriting({some(less_largest(kept))}) == 0);
}

TEST_CASE("overwrites: not small values, not on the host, not where memory is not planned") {
  CHECK(overwriting({some(less_largest(large(1 << 10)))}) == 0);
  CHECK(overwriting({some(less_largest(large()))}, {.kind = Device::Kind::Cpu}) == 0);
  CHECK(overwriting({some(less_largest(large()))}, {.disabled = {kPlanMemory}}) == 0);
}
