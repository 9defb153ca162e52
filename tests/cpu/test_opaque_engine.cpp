// The opaque engine against the reference engine: movement and pooling, and the indices it refuses.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <tenon/error.h>

#include "region_check.h"

using namespace tenon;
using test::RegionCheck;

namespace {

constexpr DType kAll[] = {DType::Bool,     DType::UInt8,   DType::Int8,
                          DType::Int32,    DType::Int64,   DType::Float16,
                          DType::BFloat16, DType::Float32, DType::Float64};

RegionCheck opaque(Op op, const std::vector<std::pair<DType, Shape>>& inputs, DType dtype,
                   const Shape& out, double high = 11) {
  RegionCheck t;
  t.region.kind = RegionKind::Opaque;
  t.region.opaque.op = op;
  for (const auto& [type, shape] : inputs) {
    t.region.opaque.inputs.push_back(t.leaf(type, shape, 0, high));
    t.region.opaque.shapes.push_back(shape);
  }
  t.region.opaque.outs = {t.output(dtype, out)};
  return t;
}

void check(RegionCheck& t) { t.check(cpu::opaque_engine(), 1e-5); }

}  // namespace

TEST_CASE("opaque: concat along every axis") {
  for (const DType dtype : kAll)
    for (int axis = 0; axis < 3; ++axis) {
      Shape a{3, 4, 5}, b{3, 4, 5}, c{3, 4, 5}, out{3, 4, 5};
      b[axis] = 0;
      c[axis] = 7;
      out[axis] = a[axis] + 7;
      RegionCheck t = opaque(Op::Concat, {{dtype, a}, {dtype, b}, {dtype, c}}, dtype, out);
      t.region.opaque.attrs = AxisAttrs{axis};
      check(t);
    }
  RegionCheck large = opaque(Op::Concat, {{DType::Float32, {100000}}, {DType::Float32, {70001}}},
                             DType::Float32, {170001});
  large.region.opaque.attrs = AxisAttrs{0};
  check(large);
}

TEST_CASE("opaque: pad and crop") {
  for (const DType dtype : kAll) {
    RegionCheck t = opaque(Op::Pad, {{dtype, {3, 4, 5}}}, dtype, {4, 3, 9});
    t.region.opaque.attrs = PadAttrs{{0, -1, 3}, {1, 0, 1}, 2};
    check(t);
  }
  for (const DType dtype : {DType::UInt8, DType::BFloat16, DType::Float32, DType::Int64}) {
    // Padding between elements, as gradients of strided slices need; whole planes; one axis;
    // cropping.
    for (const auto& [from, to, before, after] :
         std::vector<std::tuple<Shape, Shape, std::int64_t, std::int64_t>>{
             {{700, 9, 1, 1}, {700, 9, 2, 1}, 0, 1},
             {{50, 3, 4, 5}, {50, 3, 7, 5}, 2, 1},
             {{60, 7, 5, 2}, {60, 7, 2, 2}, -1, -2},
             {{60, 7, 40, 1}, {60, 7, 43, 1}, 3, 0}}) {
      RegionCheck t = opaque(Op::Pad, {{dtype, from}}, dtype, to);
      t.region.opaque.attrs = PadAttrs{{0, 0, before, 0}, {0, 0, after, 0}, 3};
      check(t);
    }
  }
  RegionCheck empty = opaque(Op::Pad, {{DType::Float32, {2, 0}}}, DType::Float32, {2, 3});
  empty.region.opaque.attrs = PadAttrs{{0, 1}, {0, 2}, 0};
  check(empty);
}

TEST_CASE("opaque: gather and scatters") {
  for (const DType dtype : kAll)
    for (const DType index : {DType::Int32, DType::Int64})
      for (int axis = 0; axis < 3; ++axis) {
        Shape x{3, 4, 70}, picked = x;
        picked[axis] = 6;
        RegionCheck t = opaque(Op::Gather, {{dtype, x}, {index, picked}}, dtype, picked,
                               static_cast<double>(x[axis]));
        t.region.opaque.attrs = AxisAttrs{axis};
        check(t);
        for (const Op op : {Op::ScatterAdd, Op::Scatter}) {
          if (op == Op::ScatterAdd && dtype == DType::Bool) continue;
          RegionCheck s = opaque(op, {{dtype, x}, {index, picked}, {dtype, picked}}, dtype, x,
                                 static_cast<double>(x[axis]));
          s.region.opaque.attrs = AxisAttrs{axis};
          check(s);
        }
      }
}

TEST_CASE("opaque: rows of a table by a vector of indices") {
  std::vector<double> indices;
  for (int row = 0; row < 500; ++row)
    for (int j = 0; j < 256; ++j) indices.push_back(row * 7 % 100);
  for (const Op op : {Op::Gather, Op::ScatterAdd, Op::Scatter}) {
    RegionCheck t;
    t.region.kind = RegionKind::Opaque;
    Opaque& o = t.region.opaque;
    o.op = op;
    o.attrs = AxisAttrs{0};
    o.inputs = {t.leaf(DType::Float32, {100, 256}), t.leaf_of(DType::Int64, {500, 256}, indices)};
    if (op != Op::Gather) o.inputs.push_back(t.leaf(DType::Float32, {500, 256}));
    for (const ValueId id : o.inputs)
      o.shapes.push_back(t.values[static_cast<std::size_t>(id)].shape);
    o.outs = {t.output(DType::Float32, op == Op::Gather ? Shape{500, 256} : Shape{100, 256})};
    check(t);
  }
}

TEST_CASE("opaque: one index for each element, over several chunks") {
  constexpr std::int64_t kRows = 301, kColumns = 211;
  std::vector<double> indices;
  for (std::int64_t i = 0; i < kRows * kColumns; ++i)
    indices.push_back(static_cast<double>(i * 7919 % kColumns));
  for (const DType type : {DType::Int32, DType::Int64})
    for (const DType dtype : {DType::UInt8, DType::BFloat16, DType::Float32, DType::Float64})
      for (const Op op : {Op::Gather, Op::ScatterAdd, Op::Scatter})
        for (const int axis : {0, 1}) {
          CAPTURE(static_cast<int>(dtype));
          CAPTURE(static_cast<int>(op));
          CAPTURE(axis);
          const Shape shape{kRows, kColumns};
          RegionCheck t;
          t.region.kind = RegionKind::Opaque;
          Opaque& o = t.region.opaque;
          o.op = op;
          o.attrs = AxisAttrs{axis};
          o.inputs = {t.leaf(dtype, shape), t.leaf_of(type, shape, indices)};
          if (op != Op::Gather) o.inputs.push_back(t.leaf(dtype, shape));
          o.shapes.assign(o.inputs.size(), shape);
          o.outs = {t.output(dtype, shape)};
          check(t);
        }
}

TEST_CASE("opaque: an index of rank 1 broadcasts along all other axes") {
  for (const Op op : {Op::Gather, Op::ScatterAdd, Op::Scatter})
    for (int axis = 0; axis < 3; ++axis) {
      Shape x{3, 4, 70}, picked = x;
      picked[axis] = 6;
      std::vector<std::pair<DType, Shape>> inputs = {{DType::Float32, x}, {DType::Int64, {6}}};
      if (op != Op::Gather) inputs.push_back({DType::Float32, picked});
      RegionCheck t = opaque(op, inputs, DType::Float32, op == Op::Gather ? picked : x,
                             static_cast<double>(x[axis]));
      t.region.opaque.attrs = AxisAttrs{axis};
      check(t);
    }
}

TEST_CASE("opaque: the error about an index out of range names it") {
  for (const double bad : {-1.0, 4.0})
    for (const Op op : {Op::Gather, Op::ScatterAdd, Op::Scatter}) {
      RegionCheck t;
      t.region.kind = RegionKind::Opaque;
      Opaque& o = t.region.opaque;
      o.op = op;
      o.attrs = AxisAttrs{0};
      o.inputs = {t.leaf(DType::Float32, {4, 2}), t.leaf_of(DType::Int64, {2, 2}, {0, 1, bad, 3})};
      if (op != Op::Gather) o.inputs.push_back(t.leaf(DType::Float32, {2, 2}));
      for (const ValueId id : o.inputs)
        o.shapes.push_back(t.values[static_cast<std::size_t>(id)].shape);
      o.outs = {t.output(DType::Float32, op == Op::Gather ? Shape{2, 2} : Shape{4, 2})};
      std::string message;
      try {
        t.run(cpu::opaque_engine(), 1);
      } catch (const ValueError& error) {
        message = error.what();
      }
      CHECK(message.find(std::to_string(static_cast<int>(bad))) != std::string::npos);
      CHECK(message.find("axis 0 of size 4") != std::string::npos);
    }
}

TEST_CASE("opaque: pooling") {
  PoolAttrs v;
  v.kernel_h = 3, v.kernel_w = 2, v.stride_h = 2, v.stride_w = 2, v.pad_h = 1, v.pad_w = 0;
  const Shape x{2, 3, 9, 8}, y{2, 3, 5, 4};
  for (const DType d : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16}) {
    RegionCheck cases[] = {
        opaque(Op::MaxPool2d, {{d, x}}, d, y), opaque(Op::MaxPool2dGrad, {{d, x}, {d, y}}, d, x),
        opaque(Op::MaxPool2dGather, {{d, x}, {d, x}}, d, y), opaque(Op::AvgPool2d, {{d, x}}, d, y),
        opaque(Op::AvgPool2dGrad, {{d, y}}, d, x)};
    for (RegionCheck& t : cases) {
      t.region.opaque.attrs = v;
      check(t);
    }
  }
}

TEST_CASE("opaque: sorting, in every dtype, of short and long rows, all or a few") {
  for (const DType dtype : kAll)
    for (const auto& sizes : {std::pair<std::int64_t, std::int64_t>{1, 1},
                              {37, 37},
                              {37, 3},
                              {3000, 3000},
                              {3000, 40},
                              {3000, 65},
                              {3000, 740}})
      for (const std::int64_t descending : {0, 1}) {
        const std::int64_t length = sizes.first, count = sizes.second;
        CAPTURE(length);
        CAPTURE(count);
        RegionCheck t = opaque(Op::Sort, {{dtype, {5, length}}}, dtype, {5, count});
        t.region.opaque.outs.push_back(t.output(DType::Int64, {5, count}));
        t.region.opaque.attrs = SortAttrs{count, descending};
        check(t);
      }
}

TEST_CASE("opaque: top-k with k in the hundreds, of sorted rows and of equal elements") {
  constexpr std::int64_t kLength = 2011, kCount = 300;
  std::vector<double> rising, falling, equal(kLength, 3.0), nothing(kLength, std::nan(""));
  for (std::int64_t i = 0; i < kLength; ++i) {
    rising.push_back(static_cast<double>(i));
    falling.push_back(static_cast<double>(kLength - i));
  }
  for (const std::vector<double>& row : {rising, falling, equal, nothing})
    for (const std::int64_t descending : {0, 1}) {
      RegionCheck t;
      t.region.kind = RegionKind::Opaque;
      Opaque& o = t.region.opaque;
      o.op = Op::Sort;
      o.attrs = SortAttrs{kCount, descending};
      o.inputs = {t.leaf_of(DType::Float32, {kLength}, row)};
      o.shapes = {{kLength}};
      o.outs = {t.output(DType::Float32, {kCount}), t.output(DType::Int64, {kCount})};
      check(t);
    }
}

TEST_CASE("opaque: a sort is stable, zeros are equal, and NaN sorts last") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::Float16, DType::Float32, DType::Float64})
    for (const std::int64_t descending : {0, 1}) {
      RegionCheck t;
      t.region.kind = RegionKind::Opaque;
      Opaque& o = t.region.opaque;
      o.op = Op::Sort;
      o.attrs = SortAttrs{9, descending};
      o.inputs = {t.leaf_of(dtype, {9}, {2, nan, -0.0, inf, 0.0, -inf, 2, nan, -1})};
      o.shapes = {{9}};
      o.outs = {kNoValue, t.output(DType::Int64, {9})};
      check(t);
      const auto bytes = t.run(cpu::opaque_engine(), 1)[0];
      std::vector<std::int64_t> got(9);
      std::memcpy(got.data(), bytes.data(), bytes.size());
      CHECK(got == (descending != 0 ? std::vector<std::int64_t>{1, 7, 3, 0, 6, 2, 4, 8, 5}
                                    : std::vector<std::int64_t>{5, 8, 2, 4, 0, 6, 3, 1, 7}));
    }
}
