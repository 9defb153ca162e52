// The table of passes: what prints, documents and switches them off agrees with it.
#include <doctest/doctest.h>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/loops.h>
#include <tenon/ops.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/str.h"
#include "plan/program/passes.h"
#include "planning.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("passes: each one has a row in the table of a plan's passes") {
  const std::vector<Tensor> roots{relu(linear(leaf({64, 120}), leaf({84, 120})))};
  for (const Device::Kind kind : {Device::Kind::Cpu, Device::Kind::Cuda}) {
    const std::string table = "\n" + print_passes(*planned(roots, {.kind = kind}));
    for (int k = 0; k < int{kPassCount}; ++k)
      CHECK_MESSAGE(contains(table, cat("\n", pass_info(k).name, " ")), pass_info(k).name);
  }
}

TEST_CASE("passes: one that is switched off has no row for its rewrite") {
  const std::vector<Tensor> roots{relu(linear(leaf({64, 120}), leaf({84, 120})))};
  const std::string table = "\n" + print_passes(*planned(roots, {.disabled = {kShare, kFactors}}));
  CHECK(!contains(table, "\nshare "));
  CHECK(!contains(table, "\nfactors "));
  CHECK(contains(table, "\ndrop_noops "));
}

TEST_CASE("passes: the architecture page lists each one and marks those that are required") {
  const std::string page = io::read_file("docs/internals/planner.md");
  for (int k = 0; k < int{kPassCount}; ++k) {
    const PassInfo& pass = pass_info(k);
    const std::string name = cat("`", pass.name, "`");
    CHECK_MESSAGE((contains(page, cat("| ", name)) || contains(page, cat(", ", name, " | "))),
                  name);
    CHECK_MESSAGE(contains(page, cat("| ", name, " * |")) == (pass.required != nullptr), name);
  }
}

TEST_CASE("passes: names are distinct, and a required one says why it is") {
  const std::vector<std::string> names = pass_names();
  REQUIRE(names.size() == std::size_t{kPassCount});
  for (int k = 0; k < int{kPassCount}; ++k) {
    const PassInfo& pass = pass_info(k);
    CHECK(std::count(names.begin(), names.end(), pass.name) == 1);
    if (pass.required == nullptr) continue;
    CHECK_THROWS_WITH_AS(set_pass_enabled(pass.name, false), doctest::Contains(pass.required),
                         ValueError);
    CHECK_NOTHROW(set_pass_enabled(pass.name, true));
  }
}

TEST_CASE("passes: a set contains what was added, whatever the number of the pass") {
  const PassSet set{kChannelsLast, kVerifyProgram};
  for (int k = 0; k < int{kPassCount}; ++k) {
    const bool is_in = k == kChannelsLast || k == kVerifyProgram;
    CHECK(set.contains(static_cast<PassId>(k)) == is_in);
  }
  CHECK(PassSet::of_bits(PassSet::bit(kVerifyProgram)).contains(kVerifyProgram));
}

namespace {

/// A branch of a branch.
std::vector<Tensor> nested(const Tensor& x) {
  using Tensors = std::vector<Tensor>;
  const auto inner = [](const Tensors& in) {
    return cond(
        gt(sum(in[0]), 1.0), [](const Tensors& all) { return Tensors{sin(all[0])}; },
        [](const Tensors& all) { return Tensors{square(all[0])}; }, in);
  };
  return cond(gt(sum(x), 0.0), inner, [](const Tensors& in) { return Tensors{neg(in[0])}; }, {x});
}

int steps_of(const Program& program, Op op) {
  return static_cast<int>(
      std::count_if(program.steps.begin(), program.steps.end(), [op](const Step& step) {
        return step.region.kind == RegionKind::Opaque && step.region.opaque.op == op;
      }));
}

}  // namespace

TEST_CASE("passes: no branch is left for a GPU, not even one inside a branch") {
  const std::vector<Tensor> roots = nested(leaf({3, 5}));
  CHECK(steps_of(*planned(roots, {.kind = Device::Kind::Cpu}), Op::Cond) == 1);
  CHECK(steps_of(*planned(roots, {.kind = Device::Kind::Cuda}), Op::Cond) == 0);
}

TEST_CASE("passes: a loop without merging keeps no result that nothing reads") {
  using Tensors = std::vector<Tensor>;
  const Tensor rows = leaf({5, 3, 4}), w = leaf({4, 4});
  const ScanResult loop = scan(
      [&w](const Tensors& c, const Tensors& row) {
        const Tensor h = tanh(row[0] + matmul(c[0], w));
        return ScanResult{{h}, {square(h), exp(h)}};
      },
      {leaf({3, 4})}, {rows});
  for (const Device::Kind kind : {Device::Kind::Cpu, Device::Kind::Cuda})
    for (const PassSet disabled : {PassSet{}, PassSet{kMergeLoops}}) {
      const auto program = planned({loop.ys[1]}, {.kind = kind, .disabled = disabled});
      REQUIRE(steps_of(*program, Op::Scan) == 1);
      for (const Step& step : program->steps)
        for (const auto& body : step.region.opaque.bodies) CHECK(body->outputs.size() == 2);
    }
}

namespace {

const MapProgram& only_map(const Program& program) {
  REQUIRE(program.steps.size() == 1);
  REQUIRE(program.steps[0].region.kind == RegionKind::Map);
  return program.steps[0].region.map;
}

std::ptrdiff_t loads_of(const MapProgram& map) {
  return std::count_if(map.instrs.begin(), map.instrs.end(),
                       [](const MapInstr& instr) { return instr.code == MapCode::Load; });
}

}  // namespace

TEST_CASE("passes: equal loads and contiguous axes of a map become one") {
  const Tensor x = leaf({4, 6, 1, 5});
  const std::vector<Tensor> roots{tanh(x) * x + x};
  for (const Device::Kind kind : {Device::Kind::Cpu, Device::Kind::Cuda}) {
    const auto both = planned(roots, {.kind = kind});
    CHECK(loads_of(only_map(*both)) == 1);
    CHECK(only_map(*both).space == Shape{120});
    const auto all_loads = planned(roots, {.kind = kind, .disabled = {kMergeLoads}});
    CHECK(loads_of(only_map(*all_loads)) == 3);
    CHECK(only_map(*all_loads).space == Shape{120});
    const auto all_axes = planned(roots, {.kind = kind, .disabled = {kCollapseAxes}});
    CHECK(loads_of(only_map(*all_axes)) == 1);
    CHECK(only_map(*all_axes).space == Shape{4, 6, 1, 5});
  }
}

TEST_CASE("passes: the axes of a row are one axis, also without collapsed axes") {
  const Tensor x = leaf({3, 4, 5, 6});
  const std::vector<Tensor> roots{x - amax(x, {2, 3}, true)};
  for (const PassSet disabled : {PassSet{}, PassSet{kCollapseAxes}}) {
    const auto program = planned(roots, {.kind = Device::Kind::Cpu, .disabled = disabled});
    const MapProgram& map = only_map(*program);
    CHECK(map.has_rows);
    CHECK(map.space == (disabled.contains(kCollapseAxes) ? Shape{3, 4, 30} : Shape{12, 30}));
  }
}
