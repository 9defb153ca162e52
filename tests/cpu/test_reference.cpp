// The reference engine against sums written out by hand: regions are built as data, without graph
// or plan.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <tenon/error.h>

#include "cpu/cpu.h"

using namespace tenon;

namespace {

/// Values of a region and their memory, poisoned until written.
struct Memory {
  std::vector<Value> values;
  std::vector<std::vector<std::byte>> bytes;

  template <class T>
  ValueId put(const Shape& shape, const std::vector<T>& data) {
    const ValueId id = blank(dtype_of<T>, shape);
    std::memcpy(bytes.back().data(), data.data(), data.size() * sizeof(T));
    return id;
  }
  ValueId blank(DType dtype, const Shape& shape) {
    Value value;
    value.dtype = dtype;
    value.shape = shape;
    values.push_back(value);
    bytes.emplace_back(static_cast<std::size_t>(shape.numel()) * item_size(dtype), std::byte{0xff});
    return static_cast<ValueId>(values.size()) - 1;
  }
  template <class T>
  std::vector<T> get(ValueId id) const {
    std::vector<T> out(
        static_cast<std::size_t>(values[static_cast<std::size_t>(id)].shape.numel()));
    std::memcpy(out.data(), bytes[static_cast<std::size_t>(id)].data(), out.size() * sizeof(T));
    return out;
  }
  void run(const Region& region) {
    std::vector<std::byte*> pointers;
    for (auto& each : bytes) pointers.push_back(each.data());
    const Engine& engine = cpu::reference_engine();
    std::string why;
    REQUIRE(engine.claims(region, values, &why));
    engine.prepare(region, values, 1)->run({pointers.data(), nullptr});
  }
};

View view(ValueId id, std::initializer_list<std::int64_t> strides, std::int64_t offset = 0) {
  View v;
  v.value = id;
  v.offset = offset;
  int d = 0;
  for (const std::int64_t s : strides) v.stride[d++] = s;
  return v;
}

MapInstr load(DType dtype, const View& v) {
  MapInstr instr;
  instr.dtype = dtype;
  instr.view = v;
  return instr;
}

MapInstr apply(MapCode code, Op op, DType dtype, int a, int b = -1, bool per_row = false) {
  MapInstr instr;
  instr.code = code;
  instr.op = op;
  instr.dtype = dtype;
  instr.args[0] = a;
  instr.args[1] = b;
  instr.per_row = per_row;
  return instr;
}

Region opaque(const Memory& m, Op op, const Attrs& attrs, std::vector<ValueId> inputs,
              ValueId out) {
  Region region;
  region.kind = RegionKind::Opaque;
  for (const ValueId id : inputs)
    region.opaque.shapes.push_back(m.values[static_cast<std::size_t>(id)].shape);
  region.opaque.op = op;
  region.opaque.attrs = attrs;
  region.opaque.inputs = std::move(inputs);
  region.opaque.outs = {out};
  return region;
}

Region contraction(const Memory& m, Op op, const ContractionAttrs& attrs, ValueId a, ValueId b,
                   ValueId out) {
  Region region;
  region.kind = RegionKind::Contraction;
  Contraction& c = region.contraction;
  c.op = op;
  c.attrs = attrs;
  c.dtype = DType::Float64;
  c.out = out;
  c.a.value = a;
  c.b.value = b;
  const auto place = [&](ValueId id, Shape& shape, View* v) {
    shape = m.values[static_cast<std::size_t>(id)].shape;
    std::int64_t stride = 1;
    for (int d = shape.rank() - 1; v != nullptr && d >= 0; stride *= shape[d--])
      v->stride[d] = stride;
  };
  place(a, c.a_shape, &c.a);
  place(b, c.b_shape, &c.b);
  place(out, c.out_shape, nullptr);
  return region;
}

}  // namespace

TEST_CASE("reference: a map region centres rows, stores flipped, and sums columns") {
  Memory m;
  const ValueId x = m.put<float>({2, 3}, {1, 2, 6, -1, 0, 4});
  const ValueId y = m.blank(DType::Float32, {2, 3}), columns = m.blank(DType::Float32, {3});
  const ValueId tops = m.blank(DType::Float32, {2});
  Region region;
  MapProgram& map = region.map;
  map.space = {2, 3};
  map.has_rows = true;
  map.instrs = {load(DType::Float32, view(x, {3, 1})),
                apply(MapCode::RowReduce, Op::Max, DType::Float32, 0, -1, true),
                apply(MapCode::Compute, Op::Sub, DType::Float32, 0, 1)};
  map.stores = {{2, view(y, {3, -1}, 2)}, {1, view(tops, {1, 0})}};
  map.reduces = {{2, Op::Sum, 1u, columns}};
  m.run(region);
  CHECK(m.get<float>(y) == std::vector<float>{0, -4, -5, 0, -4, -5});
  CHECK(m.get<float>(tops) == std::vector<float>{6, 4});
  CHECK(m.get<float>(columns) == std::vector<float>{-10, -8, 0});
}

TEST_CASE("reference: a region may overwrite what it reads") {
  Memory m;
  const ValueId x = m.put<std::int32_t>({4}, {1, 2, 3, 4});
  Region region;
  region.map.space = {4};
  region.map.instrs = {load(DType::Int32, view(x, {1}))};
  region.map.stores = {{0, view(x, {-1}, 3)}};
  m.run(region);
  CHECK(m.get<std::int32_t>(x) == std::vector<std::int32_t>{4, 3, 2, 1});
}

TEST_CASE("reference: integers wrap and floating results are rounded at each instruction") {
  Memory m;
  const ValueId a = m.put<std::uint8_t>({2}, {200, 3}), out = m.blank(DType::UInt8, {2});
  Region region;
  region.map.space = {2};
  region.map.instrs = {load(DType::UInt8, view(a, {1})),
                       apply(MapCode::Compute, Op::Add, DType::UInt8, 0, 0)};
  region.map.stores = {{1, view(out, {1})}};
  m.run(region);
  CHECK(m.get<std::uint8_t>(out) == std::vector<std::uint8_t>{144, 6});

  const ValueId f = m.put<float>({1}, {1.0f + 0x1p-23f}), square = m.blank(DType::Float32, {1});
  region.map.space = {1};
  region.map.instrs = {load(DType::Float32, view(f, {1})),
                       apply(MapCode::Compute, Op::Square, DType::Float32, 0)};
  region.map.stores = {{1, view(square, {1})}};
  m.run(region);
  CHECK(m.get<float>(square)[0] == (1.0f + 0x1p-23f) * (1.0f + 0x1p-23f));
}

TEST_CASE("reference: matrix product of a transposed view, with an epilogue and in bfloat16") {
  Memory m;
  const ValueId a = m.put<float>({3, 2}, {1, 4, 2, 5, 3, 6});  // read as [2, 3] = {1 2 3; 4 5 6}
  const ValueId b = m.put<float>({3, 1}, {1, 10, 100.25f}), out = m.blank(DType::Float32, {2, 1});
  Region region;
  region.kind = RegionKind::Contraction;
  Contraction& c = region.contraction;
  c.a = view(a, {1, 2});
  c.b = view(b, {1, 1});
  c.a_shape = {2, 3};
  c.b_shape = {3, 1};
  c.out_shape = {2, 1};
  c.has_epilogue = true;
  region.map.space = {1, 2, 1};
  region.map.instrs = {apply(MapCode::Accumulator, Op::Data, DType::Float32, -1),
                       apply(MapCode::Compute, Op::Neg, DType::Float32, 0)};
  region.map.stores = {{1, view(out, {2, 1, 1})}};
  m.run(region);
  CHECK(m.get<float>(out) == std::vector<float>{-321.75f, -655.5f});
  c.attrs.precision = Precision::Bf16;  // bfloat16 lacks 100.25; ties to even gives 100
  m.run(region);
  CHECK(m.get<float>(out) == std::vector<float>{-321, -654});
}

TEST_CASE("reference: a grouped, strided, padded convolution and its gradients are adjoint") {
  // <conv(x, w), g> == <x, input_grad(g, w)> == <w, weight_grad(x, g)>
  Memory m;
  std::vector<double> xs(2 * 4 * 5 * 6), ws(6 * 2 * 3 * 2), gs(2 * 6 * 3 * 6);
  std::uint32_t state = 7;
  for (auto* each : {&xs, &ws, &gs})
    for (double& v : *each)
      v = static_cast<double>((state = state * 1664525u + 1013904223u) >> 16) / 65536 - 0.5;
  const Shape xs_shape{2, 4, 5, 6}, ws_shape{6, 2, 3, 2}, gs_shape{2, 6, 3, 6};
  const ValueId x = m.put(xs_shape, xs), w = m.put(ws_shape, ws), g = m.put(gs_shape, gs);
  const ValueId y = m.blank(DType::Float64, gs_shape), dx = m.blank(DType::Float64, xs_shape);
  const ValueId dw = m.blank(DType::Float64, ws_shape);
  ConvAttrs conv;
  conv.stride_h = 2, conv.pad_h = 1, conv.pad_w = 1, conv.dil_w = 2, conv.groups = 2;
  const ContractionAttrs attrs{conv};
  m.run(contraction(m, Op::Conv2d, attrs, x, w, y));
  m.run(contraction(m, Op::Conv2dInputGrad, attrs, g, w, dx));
  m.run(contraction(m, Op::Conv2dWeightGrad, attrs, x, g, dw));
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  const double expected = dot(m.get<double>(y), gs);
  CHECK(std::fabs(expected) > 1e-3);
  CHECK(dot(m.get<double>(dx), xs) == doctest::Approx(expected).epsilon(1e-12));
  CHECK(dot(m.get<double>(dw), ws) == doctest::Approx(expected).epsilon(1e-12));
}

TEST_CASE("reference: maximum pooling takes the first maximum, and NaN over any number") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Memory m;
  const ValueId x = m.put<float>({1, 1, 2, 4}, {5, 5, nan, 9, 5, 1, 7, 8});
  const ValueId g = m.put<float>({1, 1, 1, 2}, {1, 2});
  const ValueId y = m.blank(DType::Float32, {1, 1, 1, 2}),
                dx = m.blank(DType::Float32, {1, 1, 2, 4});
  PoolAttrs pool;
  pool.kernel_h = pool.kernel_w = pool.stride_h = pool.stride_w = 2;
  Attrs attrs = pool;
  m.run(opaque(m, Op::MaxPool2d, attrs, {x}, y));
  m.run(opaque(m, Op::MaxPool2dGrad, attrs, {x, g}, dx));
  CHECK(m.get<float>(y)[0] == 5);
  CHECK(std::isnan(m.get<float>(y)[1]));
  CHECK(m.get<float>(dx) == std::vector<float>{1, 0, 2, 0, 0, 0, 0, 0});
}

TEST_CASE("reference: average pooling divides by the padded or by the covered area") {
  Memory m;
  const ValueId x = m.put<float>({1, 1, 1, 3}, {3, 6, 9}),
                y = m.blank(DType::Float32, {1, 1, 1, 2});
  PoolAttrs pool;
  pool.kernel_w = 3, pool.stride_w = 3, pool.pad_w = 1, pool.ceil_mode = 1;
  Attrs attrs = pool;
  m.run(opaque(m, Op::AvgPool2d, attrs, {x},
               y));  // windows [pad 3 6] and [9 pad], the second cut off by the padded end
  CHECK(m.get<float>(y) == std::vector<float>{3, 4.5f});
  pool.count_include_pad = 0;
  attrs = pool;
  m.run(opaque(m, Op::AvgPool2d, attrs, {x}, y));
  CHECK(m.get<float>(y) == std::vector<float>{4.5f, 9});
}

TEST_CASE("reference: movement") {
  Memory m;
  const ValueId x = m.put<std::int32_t>({2, 2}, {1, 2, 3, 4});
  const Attrs attrs = AxisAttrs{1};
  const ValueId joined = m.blank(DType::Int32, {2, 4});
  m.run(opaque(m, Op::Concat, attrs, {x, x}, joined));
  CHECK(m.get<std::int32_t>(joined) == std::vector<std::int32_t>{1, 2, 1, 2, 3, 4, 3, 4});

  const Attrs padding = PadAttrs{{1}, {0, 1}, 7};  // one row before, one column after
  const ValueId padded = m.blank(DType::Int32, {3, 3});
  m.run(opaque(m, Op::Pad, padding, {x}, padded));
  CHECK(m.get<std::int32_t>(padded) == std::vector<std::int32_t>{7, 7, 7, 1, 2, 7, 3, 4, 7});

  const ValueId index = m.put<std::int64_t>({2, 1}, {1, 0}), picked = m.blank(DType::Int32, {2, 1});
  m.run(opaque(m, Op::Gather, attrs, {x, index}, picked));
  CHECK(m.get<std::int32_t>(picked) == std::vector<std::int32_t>{2, 3});
  const ValueId sums = m.blank(DType::Int32, {2, 2});
  m.run(opaque(m, Op::ScatterAdd, attrs, {x, index, picked}, sums));
  CHECK(m.get<std::int32_t>(sums) == std::vector<std::int32_t>{1, 4, 6, 4});

  const ValueId wrong = m.put<std::int64_t>({2, 1}, {0, 2});
  CHECK_THROWS_WITH_AS(m.run(opaque(m, Op::Gather, attrs, {x, wrong}, picked)),
                       doctest::Contains("gather: index 2 is out of range for axis 1 of size 2"),
                       ValueError);
}

TEST_CASE("reference: softmax as a separate step") {
  Memory m;
  const ValueId x = m.put<double>({2, 3}, {1, 2, 3, 1, 1, 1});
  const ValueId soft = m.blank(DType::Float64, {2, 3}), log_soft = m.blank(DType::Float64, {2, 3});
  m.run(opaque(m, Op::Softmax, {}, {x}, soft));
  m.run(opaque(m, Op::LogSoftmax, {}, {x}, log_soft));
  const double expected = std::exp(3.0) / (std::exp(1.0) + std::exp(2.0) + std::exp(3.0));
  CHECK(m.get<double>(soft)[2] == doctest::Approx(expected));
  CHECK(m.get<double>(soft)[5] == doctest::Approx(1.0 / 3));
  CHECK(m.get<double>(log_soft)[2] == doctest::Approx(std::log(expected)));
}

TEST_CASE("reference: an opaque op sees its own input shapes, not those of the memory") {
  Memory m;
  const ValueId flat = m.put<float>({4}, {1, 2, 3, 4}), out = m.blank(DType::Float32, {2, 4});
  const Attrs attrs = AxisAttrs{1};
  Region region = opaque(m, Op::Concat, attrs, {flat, flat}, out);
  region.opaque.shapes = {{2, 2}, {2, 2}};
  m.run(region);
  CHECK(m.get<float>(out) == std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4});
}
