// The source that the CUDA backend generates for map regions: the same source for sizes of one
// pattern, no divisions over contiguous memory, valid for NVRTC with every dtype and for very large
// arrays. Needs no GPU.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../cpu/region_check.h"
#include "cuda/engines/maps/map_engine.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/nvrtc.h"

using namespace tenon;
using test::RegionCheck;

namespace {

constexpr DType F = DType::Float32;

RegionCheck with_space(const Shape& space, bool rows = false) {
  RegionCheck t;
  t.region.map.space = space;
  t.region.map.has_rows = rows;
  t.region.title = "test";
  return t;
}

std::string text_of(const RegionCheck& t) {
  return cuda::map_engine(cuda::Target()).prepare(t.region, t.values, 1)->source();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// tanh(x * y), with y the same for every row.
std::string scaled(std::int64_t rows, std::int64_t columns) {
  RegionCheck t = with_space({rows, columns});
  const int x = t.load(t.leaf(F, {rows, columns})), y = t.load(t.leaf(F, {columns}));
  t.store(t.compute(Op::Tanh, F, t.compute(Op::Mul, F, x, y)));
  return text_of(t);
}

std::string softmax_with_bias_gradient(std::int64_t rows, std::int64_t columns) {
  RegionCheck t = with_space({rows, columns}, true);
  const int x = t.load(t.leaf(F, {rows, columns}));
  const int e = t.compute(Op::Exp, F, t.compute(Op::Sub, F, x, t.row_reduce(Op::Max, x, F)));
  const int p = t.compute(Op::Div, F, e, t.row_reduce(Op::Sum, e, F));
  t.store(p);
  t.reduce(p, Op::Sum, 1, F);
  return text_of(t);
}

std::string column_sums(std::int64_t rows, std::int64_t columns) {
  RegionCheck t = with_space({rows, columns});
  t.reduce(t.load(t.leaf(F, {rows, columns})), Op::Sum, 1, F);
  return text_of(t);
}

/// Gives a small region the axes and strides of a very large one, whose memory does not exist.
void enlarge(RegionCheck& t) {
  constexpr std::int64_t factor = 1 << 20;
  const auto grow = [](View& view) {
    for (int d = 0; d < kMaxRank; ++d)
      if (view.stride[d] > 1) view.stride[d] *= factor;
  };
  Shape& space = t.region.map.space;
  space[space.rank() - 1] *= factor;
  for (MapInstr& instr : t.region.map.instrs) grow(instr.view);
  for (MapStore& store : t.region.map.stores) grow(store.view);
}

void check_compiles(const std::string& source) {
  const std::string between = "// ---- next launch ----";
  for (std::size_t from = 0; from < source.size();) {
    const std::size_t end = std::min(source.find(between, from), source.size());
    const std::string text = source.substr(from, end - from);
    from = end + between.size();
    for (const int arch : {80, 90}) {
      const auto result = cuda::nvrtc().compile(text, "kernel.cu", cuda::headers_of(text), arch);
      CHECK_MESSAGE(!result.image.empty(), result.log << "\n" << text);
    }
  }
}

bool have_nvrtc() {
  if (cuda::nvrtc().problem.empty()) return true;
  MESSAGE("skipped: " << cuda::nvrtc().problem);
  return false;
}

}  // namespace

TEST_CASE("map source: another batch size has the same source") {
  CHECK(scaled(32, 100) == scaled(64, 100));
  CHECK(scaled(32, 100) == scaled(4096, 120));  // a pattern, not a size
  CHECK(scaled(32, 100) != scaled(32, 99));
  CHECK(softmax_with_bias_gradient(32, 10) == softmax_with_bias_gradient(64, 10));
  CHECK(softmax_with_bias_gradient(1024, 1000) == softmax_with_bias_gradient(512, 1000));
  CHECK(column_sums(32, 84) == column_sums(64, 84));
  CHECK(column_sums(64, 84) == column_sums(100000, 84));
}

TEST_CASE("map source: contiguous memory has wide accesses and no division") {
  RegionCheck t = with_space({16, 16, 49});
  const int x = t.load(t.leaf(F, {16, 16, 49})), y = t.load(t.leaf(F, {16, 16, 49}));
  t.store(t.compute(Op::Add, F, x, y));
  const std::string text = text_of(t);
  CHECK(contains(text, "elements<4>"));
  CHECK_FALSE(contains(text, "quotient"));
  CHECK_FALSE(contains(text, "%"));
  CHECK(contains(scaled(32, 100), "quotient"));
}

TEST_CASE("map source: few elements with rows and columns are one launch") {
  const std::string small = softmax_with_bias_gradient(64, 10);
  CHECK(small.find("__global__") == small.rfind("__global__"));
  const std::string large = softmax_with_bias_gradient(1024, 1000);
  CHECK(large.find("__global__") != large.rfind("__global__"));
}

TEST_CASE("map source: no launch without elements") {
  CHECK(scaled(0, 100).empty());
  CHECK_FALSE(column_sums(0, 100).empty());  // empty sums are zero
  CHECK(column_sums(100, 0).empty());
}

TEST_CASE("map source: NVRTC accepts every op in every dtype") {
  if (!have_nvrtc()) return;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    RegionCheck t = with_space({64, 8}, true);
    const int a = t.load(t.leaf(dtype, {64, 8})), b = t.load(t.leaf(dtype, {8}));
    for (const OpRow& row : kOpRows) {
      if (row.function == nullptr || (!is_floating(dtype) && has_trait(row.op, kFloatingOnly)))
        continue;
      const DType result = has_trait(row.op, kTruth) ? DType::Bool : dtype;
      t.store(t.compute(row.op, result, a, is_elementwise(row.op, 2) ? b : -1));
    }
    for (int to = 0; to < kDTypeCount; ++to)
      t.store(t.compute(Op::Cast, static_cast<DType>(to), a));
    for (const Op op : {Op::Sum, Op::Prod, Op::Max, Op::Min}) t.store(t.row_reduce(op, a, dtype));
    t.store(t.row_reduce(Op::ArgMax, a, DType::Int64));
    t.reduce(a, Op::Sum, 1, dtype);
    CAPTURE(std::string(name(dtype)));
    check_compiles(text_of(t));
  }
}

TEST_CASE("map source: a warp's 16-byte stores are contiguous, whatever else a kernel accesses") {
  constexpr DType H = DType::BFloat16, B = DType::Bool;
  struct Case {
    DType from, to, also;
    int neighbours;
  };
  for (const Case& c : {Case{F, F, F, 4}, Case{F, H, H, 8}, Case{H, H, H, 8}, Case{F, F, H, 4},
                        Case{H, F, F, 4}, Case{F, F, B, 4}, Case{F, B, H, 8}}) {
    CAPTURE(std::string(name(c.from)) + " to " + std::string(name(c.to)));
    CAPTURE(std::string(name(c.also)));
    RegionCheck t = with_space({4096});
    const int x = t.load(t.leaf(c.from, {4096}));
    t.store(t.compute(Op::Cast, c.to, t.compute(Op::Exp, c.from, x)));
    t.store(t.compute(Op::Cast, c.also, x));
    const std::string text = text_of(t);
    INFO(text);
    CHECK(contains(text, "elements<" + std::to_string(c.neighbours) + ">(a, e * "));
  }
}

TEST_CASE("map source: NVRTC accepts kernels over more than 2^31 elements, random numbers, iota") {
  if (!have_nvrtc()) return;
  for (const bool rows : {false, true}) {
    RegionCheck t = with_space({64, 80}, rows);
    View count;
    count.stride[1] = 1;
    const ValueId state = t.leaf_of(DType::Int64, {2}, {1, 2});
    int x = t.load(t.leaf(F, {64, 80}));
    x = t.compute(Op::Add, F, x, t.load(t.leaf(F, {80})));
    x = t.compute(Op::Add, F, x, t.affine(count, F));
    for (const std::int64_t kind : {0, 1})
      x = t.compute(Op::Mul, F, x, t.random(state, kind, F, 0));
    if (rows) x = t.compute(Op::Sub, F, x, t.row_reduce(Op::Max, x, F));
    t.store(x);
    check_compiles(text_of(t));
    t.reduce(x, Op::Sum, 1, F);
    t.reduce(x, Op::Sum, 2, F);
    enlarge(t);
    const std::string text = text_of(t);
    CHECK(contains(text, "using Index = long long"));
    check_compiles(text);
  }
}

TEST_CASE("map source: NVRTC accepts regions that share a launch") {
  RegionCheck t = with_space({84});
  std::vector<Region> regions;
  for (const std::int64_t n : {84, 120, 10}) {
    t.region.map = MapProgram();
    t.region.map.space = {n};
    const ValueId p = t.leaf(F, {n});
    t.store_to(t.compute(Op::Sub, F, t.load(p), t.load(t.leaf(F, {n}))), t.broadcast(p), p);
    regions.push_back(t.region);
  }
  t.region.map = MapProgram();
  t.region.map.space = {64, 10};
  t.reduce(t.load(t.leaf(F, {64, 10})), Op::Sum, 1, F);
  regions.push_back(t.region);
  t.region.kind = RegionKind::Joined;
  t.region.parts = regions;
  const std::string text = text_of(t);
  CHECK(contains(text, "part0[3]"));
  if (have_nvrtc()) check_compiles(text);
}

TEST_CASE("map source: NVRTC accepts regions in phases of a launch") {
  RegionCheck t = with_space({84});
  std::vector<Region> regions;
  const ValueId p = t.leaf(F, {5000}), g = t.leaf(F, {5000});
  const ValueId norm = t.store(t.row_reduce(Op::Max, t.load(t.leaf(F, {84})), F));
  regions.push_back(t.region);
  t.region.map = MapProgram();
  t.region.map.space = {5000};
  t.region.phase = 1;
  const int x = t.load(g), step = t.compute(Op::Div, F, x, t.load(norm));
  t.store_to(t.compute(Op::Sub, F, t.load(p), step), t.broadcast(p), p);
  regions.push_back(t.region);
  t.region.map = MapProgram();
  t.region.map.space = {5000};
  const int y = t.load(g);
  const ValueId squares = t.reduce(t.compute(Op::Mul, F, y, y), Op::Sum, 1, F);
  regions.push_back(t.region);
  t.region.map = MapProgram();
  t.region.map.space = {1};
  t.store(t.compute(Op::Sqrt, F, t.load(squares)));
  t.region.phase = 2;
  regions.push_back(t.region);
  t.region.kind = RegionKind::Joined;
  t.region.parts = regions;
  const std::string text = text_of(t);
  CHECK(contains(text, "ends_last"));
  if (have_nvrtc()) check_compiles(text);
}
