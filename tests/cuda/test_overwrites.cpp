// Maps on a GPU (the emulated one in CI) that write large results over an input that only they
// read, and maps that must not: the numbers are those of the CPU in float64.
// tests/null/test_overwrites.cpp tests which maps overwrite.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/ops.h>

#include "../base/distance.h"
#include "gpu.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;

constexpr std::int64_t kTable = 13;

/// Inputs of a case: a table, the table row of each large row, and rows to compare.
struct Data {
  Tensor table, index, places;

  Data(std::int64_t rows, std::int64_t columns, DType dtype)
      : table(cast(sin(cast(arange(0, kTable * columns), DType::Float32)), dtype)
                  .reshape({kTable, columns})
                  .compute()),
        index(remainder(arange(0, rows) * 7919, kTable).compute()),
        places(remainder(arange(0, 40) * 1237, rows).compute()) {}
};

/// exp(x - row maximum) + x: element-wise ops before and after a row reduction.
Tensor less_largest(const Tensor& x) { return exp(x - amax(x, {1}, true)) + x; }

struct Case {
  std::string name;
  std::function<Tensors(const Tensor& large, const Tensor& index, const Tensor& places)> f;
  double most_arena = 0;  // in large values; 0: unknown
};

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases{
      {"the result takes the place of what is read",
       [](const Tensor& x, const Tensor&, const Tensor& places) {
         return Tensors{index_select(less_largest(x), 0, places)};
       },
       1.5},
      {"two in a row",
       [](const Tensor& x, const Tensor& index, const Tensor& places) {
         const Tensor once = index_select(less_largest(x), 0, index);
         return Tensors{index_select(less_largest(once), 0, places)};
       },
       2.5},
      {"another step reads it first",
       [](const Tensor& x, const Tensor&, const Tensor& places) {
         return Tensors{index_select(less_largest(x), 0, places), index_select(x, 0, places)};
       },
       1.5},
      {"another step that reads it waits for the map",
       [](const Tensor& x, const Tensor&, const Tensor& places) {
         const Tensor less = index_select(less_largest(x), 0, places);
         const Tensor later = places + cast(amax(less, {1}) * 0.0F, DType::Int64);
         return Tensors{less, index_select(x, 0, later)};
       }},
      {"it is read in another order too",
       [](const Tensor& x, const Tensor&, const Tensor& places) {
         return Tensors{index_select(exp(x) + flip(x, {1}), 0, places)};
       }},
      {"rows of it are read for all",
       [](const Tensor& x, const Tensor&, const Tensor& places) {
         return Tensors{index_select(exp(x) * slice(x, 0, 1, 2), 0, places)};
       }},
      {"it is asked for", [](const Tensor& x, const Tensor&, const Tensor& places) {
         return Tensors{index_select(less_largest(x), 0, places), x};
       }}};
  return cases;
}

void check(const Case& c, const Data& here) {
  CAPTURE(c.name);
  const auto rows_of = [&c](const Tensors& x) {
    return c.f(index_select(x[0], 0, x[1]), x[1], x[2]);
  };
  const CompiledFunction f = compile(rows_of);
  Tensors there;
  for (const Tensor* x : {&here.table, &here.index, &here.places})
    there.push_back(to(*x, device("cuda")).compute());
  const Tensors wanted = rows_of({cast(here.table, DType::Float64), here.index, here.places});
  const Tensors got = f(there);
  REQUIRE(got.size() == wanted.size());
  for (std::size_t k = 0; k < got.size(); ++k) CHECK(test::distance(got[k], wanted[k]) < 1e-6);
  const auto large = static_cast<double>(here.index.numel() * here.table.size(1)) *
                     static_cast<double>(item_size(here.table.dtype()));
  if (c.most_arena > 0)
    CHECK(static_cast<double>(f.plan(there).arena_bytes()) < c.most_arena * large);
}

}  // namespace

TEST_CASE("overwrites: large maps on a GPU, in float64") {
  if (!test::has_gpu()) return;
  const Data here((1 << 13) + 1, 1031, DType::Float64);  // 64 MiB and a little more
  for (const Case& c : all_cases()) check(c, here);
}

TEST_CASE("overwrites: large maps on a GPU, in float32") {
  if (!test::has_gpu()) return;
  check(all_cases()[0], Data(1 << 14, 1027, DType::Float32));
}
