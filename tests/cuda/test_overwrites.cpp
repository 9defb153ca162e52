// Maps on a card (the emulated one in CI) that write large results over what they alone read: the
// numbers are those of the CPU, and the plan has one place for both.
#include <doctest/doctest.h>

#include <vector>

#include <tenon/eval.h>
#include <tenon/ops.h>

#include "card.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;

constexpr std::int64_t kRows = 1 << 14, kColumns = 1027;  // 64 MiB and a little more

// Rows of a table, each less its largest number, of which some are taken: before and behind the map
// stand ops that have launches of their own.
Tensor taken(const Tensor& table, const Tensor& index, const Tensor& places) {
  const Tensor x = index_select(table, 0, index);
  return index_select(exp(x - amax(x, {1}, true)) + x, 0, places);
}

struct Data {
  Tensor table = sin(cast(arange(0, 13 * kColumns), DType::Float32)).reshape({13, kColumns}).eval(),
         index = remainder(arange(0, kRows) * 7919, 13).eval(),
         places = remainder(arange(0, 40) * 1237, kRows).eval();
};

}  // namespace

TEST_CASE("overwrites: a large map's result takes the place of what it reads") {
  if (!test::has_card()) return;
  const Data here;
  const CompiledFunction f =
      compile([](const Tensors& x) { return Tensors{taken(x[0], x[1], x[2])}; });
  const Tensors there = {to(here.table, device("cuda")).eval(),
                         to(here.index, device("cuda")).eval(),
                         to(here.places, device("cuda")).eval()};
  const std::vector<float> got = f(there)[0].to_vector<float>();
  const std::vector<float> wanted =
      cast(taken(cast(here.table, DType::Float64), here.index, here.places), DType::Float32)
          .to_vector<float>();
  CHECK(f.plan(there).arena_bytes() < 3 * kRows * kColumns * 4 / 2);
  REQUIRE(got.size() == wanted.size());
  for (std::size_t k = 0; k < got.size(); ++k) CHECK(got[k] == doctest::Approx(wanted[k]));
}
