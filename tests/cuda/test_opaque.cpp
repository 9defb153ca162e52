// The opaque engine of the CUDA backend against the reference engine, on the emulated GPU or a
// real one.
#include <doctest/doctest.h>
#include <tenon/error.h>

#include <string>
#include <utility>
#include <vector>

#include "cuda/engines/opaque/opaque_engine.h"
#include "device_check.h"

using namespace tenon;
using test::DeviceCheck;

namespace {

using Inputs = std::vector<std::pair<DType, Shape>>;

DeviceCheck opaque(Op op, const Inputs& inputs, DType dtype, const Shape& out, double high = 11) {
  DeviceCheck t;
  t.region.kind = RegionKind::Opaque;
  t.region.opaque.op = op;
  for (const auto& [type, shape] : inputs) {
    t.region.opaque.inputs.push_back(t.leaf(type, shape, 0, high));
    t.region.opaque.shapes.push_back(shape);
  }
  t.region.opaque.outs = {t.output(dtype, out)};
  return t;
}

const Engine& engine() {
  return cuda::opaque_engine(DeviceCheck::can_run() ? cuda::target_of(0) : cuda::Target{});
}

void check(DeviceCheck& t, double tolerance = 1e-5) { t.check_device(engine(), tolerance); }

constexpr DType kOfEachSize[] = {DType::Bool, DType::BFloat16, DType::Float32, DType::Int64};
constexpr DType kFloating[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64};

}  // namespace

TEST_CASE("cuda opaque: concat along every axis, empty parts included") {
  for (const DType dtype : kOfEachSize)
    for (int axis = 0; axis < 3; ++axis) {
      Shape a{3, 4, 5}, b{3, 4, 5}, c{3, 4, 5}, out{3, 4, 5};
      b[axis] = 0;
      c[axis] = 16;
      out[axis] += 16;
      DeviceCheck t = opaque(Op::Concat, {{dtype, a}, {dtype, b}, {dtype, c}}, dtype, out);
      t.region.opaque.attrs = AxisAttrs{axis};
      check(t);
    }
  DeviceCheck empty = opaque(Op::Concat, {{DType::Float32, {0, 3}}, {DType::Float32, {0, 2}}},
                             DType::Float32, {0, 5});
  empty.region.opaque.attrs = AxisAttrs{1};
  check(empty);
}

TEST_CASE("cuda opaque: concat of many") {
  Inputs inputs;
  std::int64_t total = 0;
  for (int k = 0; k < 128; ++k) {
    inputs.push_back({DType::Float32, {2, k % 5}});
    total += k % 5;
  }
  DeviceCheck t = opaque(Op::Concat, inputs, DType::Float32, {2, total});
  t.region.opaque.attrs = AxisAttrs{1};
  check(t);
}

TEST_CASE("cuda opaque: padding of any axes, merged or not") {
  const std::vector<std::vector<std::int64_t>> margins = {{0, 0, 0, 0, 1, 2},
                                                          {2, 1, 0, 0, 0, 0},
                                                          {0, 0, 3, 0, 0, 0},
                                                          {1, 1, 1, 1, 1, 1},
                                                          {0, 0, 0, 0, 0, 0}};
  for (const DType dtype : kOfEachSize)
    for (const auto& margin : margins) {
      const Shape in{3, 4, 8};
      Shape out = in;
      for (int d = 0; d < 3; ++d)
        out[d] +=
            margin[static_cast<std::size_t>(2 * d)] + margin[static_cast<std::size_t>(2 * d + 1)];
      DeviceCheck t = opaque(Op::Pad, {{dtype, in}}, dtype, out);
      PadAttrs attrs{{}, {}, 1};
      for (int d = 0; d < 3; ++d) {
        attrs.before[d] = margin[static_cast<std::size_t>(2 * d)];
        attrs.after[d] = margin[static_cast<std::size_t>(2 * d + 1)];
      }
      t.region.opaque.attrs = attrs;
      check(t);
    }
  DeviceCheck number = opaque(Op::Pad, {{DType::Float32, {}}}, DType::Float32, {});
  number.region.opaque.attrs = PadAttrs{};
  check(number);
  DeviceCheck negative = opaque(Op::Pad, {{DType::Int8, {5}}}, DType::Int8, {8});
  negative.region.opaque.attrs = PadAttrs{{}, {3}, -2};
  check(negative);
  DeviceCheck empty = opaque(Op::Pad, {{DType::Float32, {2, 0}}}, DType::Float32, {2, 3});
  empty.region.opaque.attrs = PadAttrs{{0, 1}, {0, 2}, 0};
  check(empty);
}

TEST_CASE("cuda opaque: gather and scatters with one index for each element") {
  for (const DType dtype :
       {DType::Bool, DType::UInt8, DType::BFloat16, DType::Float32, DType::Int64})
    for (const DType index : {DType::Int32, DType::Int64})
      for (int axis = 0; axis < 3; ++axis) {
        Shape x{3, 4, 7}, picked = x;
        picked[axis] = 6;
        DeviceCheck t = opaque(Op::Gather, {{dtype, x}, {index, picked}}, dtype, picked,
                               static_cast<double>(x[axis]));
        t.region.opaque.attrs = AxisAttrs{axis};
        check(t);
        for (const Op op : {Op::ScatterAdd, Op::Scatter}) {
          if (op == Op::ScatterAdd && dtype == DType::Bool) continue;
          DeviceCheck s = opaque(op, {{dtype, x}, {index, picked}, {dtype, picked}}, dtype, x,
                                 static_cast<double>(x[axis]));
          s.region.opaque.attrs = AxisAttrs{axis};
          check(s);
        }
      }
}

TEST_CASE("cuda opaque: rows by a vector of indices") {
  struct Sizes {
    Shape x;
    int axis;
    std::int64_t count;
  };
  const Sizes sizes[] = {{{60, 1, 28, 28}, 0, 17}, {{5, 300}, 0, 1500}, {{7, 4, 5}, 1, 9},
                         {{2, 3, 4}, 2, 5},        {{5000}, 0, 2500},   {{4, 3}, 0, 0}};
  for (const DType dtype : {DType::UInt8, DType::Float16, DType::Float32})
    for (const Sizes& s : sizes)
      for (const Op op : {Op::Gather, Op::ScatterAdd, Op::Scatter}) {
        Shape picked = s.x;
        picked[s.axis] = s.count;
        Inputs inputs = {{dtype, s.x}, {DType::Int64, {s.count}}};
        if (op != Op::Gather) inputs.push_back({dtype, picked});
        DeviceCheck t = opaque(op, inputs, dtype, op == Op::Gather ? picked : s.x,
                               static_cast<double>(s.x[s.axis]));
        t.region.opaque.attrs = AxisAttrs{s.axis};
        check(t);
      }
}

TEST_CASE("cuda opaque: an index out of range is an error at the next read of a value") {
  if (!DeviceCheck::can_run()) return;
  for (const Op op : {Op::Gather, Op::ScatterAdd, Op::Scatter}) {
    DeviceCheck t;
    t.region.kind = RegionKind::Opaque;
    Opaque& o = t.region.opaque;
    o.op = op;
    o.attrs = AxisAttrs{0};
    o.inputs = {t.leaf_of(DType::Float32, {2}, {1, 2}), t.leaf_of(DType::Int64, {3}, {1, -1, 2})};
    if (op != Op::Gather) o.inputs.push_back(t.leaf_of(DType::Float32, {3}, {10, 20, 40}));
    for (const ValueId id : o.inputs)
      o.shapes.push_back(t.values[static_cast<std::size_t>(id)].shape);
    o.outs = {t.output(DType::Float32, op == Op::Gather ? Shape{3} : Shape{2})};
    const auto kernel = engine().prepare(t.region, t.values, 1);
    std::string text;
    try {
      t.run_on_gpu(*kernel);
    } catch (const ValueError& error) {
      text = error.what();
    }
    CAPTURE(text);
    const std::string name = op == Op::Gather       ? "gather"
                             : op == Op::ScatterAdd ? "scatter_add"
                                                    : "scatter";
    CHECK(text.find(name + ": index ") == 0);
    const bool first =
        text.find("index -1 is out of range for axis 0 of size 2, at element 1 of") !=
        std::string::npos;
    const bool second =
        text.find("index 2 is out of range for axis 0 of size 2, at element 2 of") !=
        std::string::npos;
    CHECK(first != second);
  }
}

namespace {

struct PoolCase {
  Shape x;
  PoolAttrs v;
};

std::int64_t pooled(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                    std::int64_t dil, bool ceil_mode) {
  const std::int64_t room = in + 2 * pad - (dil * (kernel - 1) + 1);
  std::int64_t out = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (out - 1) * stride >= in + pad) --out;
  return out;
}

void check_pools(const PoolCase& c, DType dtype) {
  const PoolAttrs& v = c.v;
  const bool ceil_mode = v.ceil_mode != 0;
  const Shape y{c.x[0], c.x[1], pooled(c.x[2], v.kernel_h, v.stride_h, v.pad_h, v.dil_h, ceil_mode),
                pooled(c.x[3], v.kernel_w, v.stride_w, v.pad_w, v.dil_w, ceil_mode)};
  const auto run = [&](Op op, const Inputs& inputs, const Shape& out) {
    DeviceCheck t = opaque(op, inputs, dtype, out);
    t.region.opaque.attrs = v;
    check(t);
  };
  run(Op::MaxPool2d, {{dtype, c.x}}, y);
  run(Op::MaxPool2dGather, {{dtype, c.x}, {dtype, c.x}}, y);
  run(Op::MaxPool2dGrad, {{dtype, c.x}, {dtype, y}}, c.x);
  if (v.dil_h != 1 || v.dil_w != 1) return;
  run(Op::AvgPool2d, {{dtype, c.x}}, y);
  run(Op::AvgPool2dGrad, {{dtype, y}}, c.x);
}

}  // namespace

TEST_CASE("cuda opaque: pooling and its gradients") {
  const PoolCase cases[] = {{{2, 3, 8, 8}, {2, 2, 2, 2, 0, 0, 1, 1, 0, 1}},
                            {{2, 3, 7, 9}, {2, 2, 2, 2, 0, 0, 1, 1, 0, 1}},
                            {{1, 2, 7, 9}, {3, 3, 2, 2, 1, 1, 1, 1, 0, 1}},
                            {{1, 2, 8, 10}, {3, 2, 2, 3, 1, 1, 1, 1, 1, 0}},
                            {{2, 1, 9, 11}, {3, 2, 1, 2, 1, 0, 2, 3, 1, 1}},
                            {{1, 1, 6, 7}, {2, 3, 3, 4, 0, 1, 1, 1, 0, 0}},
                            {{1, 2, 5, 5}, {5, 5, 1, 1, 2, 2, 1, 1, 0, 0}},
                            {{1, 2, 8, 11}, {2, 1, 3, 3, 0, 0, 1, 1, 0, 1}},
                            {{2, 1, 6, 10}, {1, 1, 2, 2, 0, 0, 1, 1, 0, 1}},
                            {{1, 3, 5, 8}, {2, 2, 3, 2, 0, 0, 2, 1, 0, 1}},
                            {{3, 2, 1, 1}, {1, 1, 1, 1, 0, 0, 1, 1, 0, 1}},
                            {{5, 9, 11, 11}, {2, 2, 2, 2, 0, 0, 1, 1, 0, 1}},
                            {{1, 2, 46, 47}, {2, 2, 2, 2, 0, 0, 1, 1, 0, 1}},
                            {{1, 2, 40, 70}, {3, 3, 2, 2, 1, 1, 1, 1, 0, 1}},
                            {{3, 3, 13, 15}, {3, 3, 2, 2, 0, 0, 1, 1, 0, 1}},
                            {{1, 1, 45, 43}, {41, 41, 1, 1, 0, 0, 1, 1, 0, 1}},
                            {{0, 2, 4, 4}, {2, 2, 2, 2, 0, 0, 1, 1, 0, 1}}};
  for (const PoolCase& c : cases) check_pools(c, DType::Float32);
  for (const DType dtype : kFloating) {
    check_pools(cases[0], dtype);
    check_pools(cases[3], dtype);
  }
}

namespace {

struct Pooled {
  std::vector<double> maxima, taps, gradients;  // taps: numbers in their windows; 255: none inside
};

/// Maxima over images [N, H, W, C] and their gradients by plain loops; the first of equal ones
/// counts.
Pooled pool_last(const std::vector<double>& x, const std::vector<double>& g, const Shape& large,
                 const Shape& small, const PoolAttrs& v) {
  Pooled out;
  out.gradients.resize(x.size());
  const auto element = [](const Shape& s, std::int64_t n, std::int64_t i, std::int64_t j,
                          std::int64_t c) {
    return static_cast<std::size_t>(((n * s[1] + i) * s[2] + j) * s[3] + c);
  };
  for (std::int64_t n = 0; n < small[0]; ++n)
    for (std::int64_t p = 0; p < small[1]; ++p)
      for (std::int64_t q = 0; q < small[2]; ++q)
        for (std::int64_t c = 0; c < small[3]; ++c) {
          std::ptrdiff_t best = -1;
          std::int64_t tap = 255;
          for (std::int64_t k = 0; k < v.kernel_h; ++k)
            for (std::int64_t l = 0; l < v.kernel_w; ++l) {
              const std::int64_t i = p * v.stride_h - v.pad_h + k, j = q * v.stride_w - v.pad_w + l;
              if (i < 0 || i >= large[1] || j < 0 || j >= large[2]) continue;
              const std::size_t here = element(large, n, i, j, c);
              if (best >= 0 && x[here] <= x[static_cast<std::size_t>(best)]) continue;
              best = static_cast<std::ptrdiff_t>(here);
              tap = k * v.kernel_w + l;
            }
          out.taps.push_back(static_cast<double>(tap));
          out.maxima.push_back(best < 0 ? -HUGE_VAL : x[static_cast<std::size_t>(best)]);
          if (best >= 0)
            out.gradients[static_cast<std::size_t>(best)] += g[element(small, n, p, q, c)];
        }
  return out;
}

/// How many numbers differ from those expected, which the type holds exactly.
std::int64_t count_wrong(const std::vector<std::byte>& bytes, const std::vector<double>& expected,
                         DType dtype) {
  std::int64_t wrong = 0;
  const std::size_t size = item_size(dtype);
  REQUIRE(bytes.size() == size * expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto number = static_cast<float>(expected[i]);
    const bfloat16 wide(number);
    const float16 half(number);
    const auto whole = static_cast<std::uint8_t>(expected[i]);
    const void* exact = dtype == DType::BFloat16  ? static_cast<const void*>(&wide)
                        : dtype == DType::Float16 ? static_cast<const void*>(&half)
                        : dtype == DType::UInt8   ? static_cast<const void*>(&whole)
                                                  : &number;
    wrong += std::memcmp(bytes.data() + size * i, exact, size) != 0;
  }
  return wrong;
}

}  // namespace

TEST_CASE("cuda opaque: maxima over images with the channels last and their gradients") {
  const PoolCase cases[] = {{{2, 27, 27, 16}, {3, 3, 2, 2, 0, 0, 1, 1, 0, 1}},
                            {{1, 20, 37, 64}, {3, 3, 2, 2, 1, 1, 1, 1, 0, 1}},
                            {{3, 13, 13, 24}, {3, 3, 2, 2, 0, 0, 1, 1, 0, 1}},
                            {{2, 9, 11, 8}, {3, 3, 1, 1, 1, 1, 1, 1, 0, 1}},
                            {{1, 10, 12, 40}, {3, 2, 2, 1, 1, 0, 1, 1, 0, 1}},
                            {{1, 7, 9, 8}, {4, 4, 2, 2, 2, 2, 1, 1, 0, 1}},
                            {{2, 8, 9, 72}, {2, 2, 2, 2, 0, 0, 1, 1, 0, 1}},
                            {{1, 5, 4, 8}, {3, 3, 2, 2, 1, 1, 1, 1, 1, 1}},
                            {{1, 1, 1, 8}, {3, 3, 2, 2, 1, 1, 1, 1, 0, 1}},
                            // Windows of many elements.
                            {{1, 19, 9, 64}, {16, 1, 1, 1, 8, 0, 1, 1, 0, 1}},
                            {{1, 9, 19, 128}, {1, 16, 1, 1, 0, 3, 1, 1, 0, 1}}};
  if (!DeviceCheck::can_run()) return;
  for (const PoolCase& c : cases)
    for (const DType dtype : {DType::BFloat16, DType::Float16, DType::Float32}) {
      CAPTURE(c.x.str());
      const PoolAttrs& v = c.v;
      const bool ceil_mode = v.ceil_mode != 0;
      const Shape small{c.x[0], pooled(c.x[1], v.kernel_h, v.stride_h, v.pad_h, 1, ceil_mode),
                        pooled(c.x[2], v.kernel_w, v.stride_w, v.pad_w, 1, ceil_mode), c.x[3]};
      // Small whole numbers: many of a window are equal, and all sums are exact.
      const auto numbers = [](const Shape& shape, std::int64_t factor, std::int64_t count) {
        std::vector<double> all;
        for (std::int64_t k = 0; k < shape.numel(); ++k)
          all.push_back(static_cast<double>(k * factor % 1009 % count - count / 2));
        return all;
      };
      const std::vector<double> x = numbers(c.x, 677, 7), g = numbers(small, 389, 11);
      const Pooled expected = pool_last(x, g, c.x, small, v);
      const auto check = [&](Op op, auto&& fill) {
        DeviceCheck t;
        t.region.kind = RegionKind::Opaque;
        Opaque& o = t.region.opaque;
        o.op = op;
        o.attrs = v;
        o.channels_last = true;
        fill(t, o);
        return t.run_on_gpu(*engine().prepare(t.region, t.values, 1));
      };
      const auto pooling = [&](DeviceCheck& t, Opaque& o) {
        o.shapes = {c.x};
        o.inputs = {t.leaf_of(dtype, c.x, x)};
      };
      const auto alone = check(Op::MaxPool2d, [&](DeviceCheck& t, Opaque& o) {
        pooling(t, o);
        o.outs = {t.output(dtype, small)};
      });
      CHECK(count_wrong(alone[0], expected.maxima, dtype) == 0);
      const auto both = check(Op::MaxPool2d, [&](DeviceCheck& t, Opaque& o) {
        pooling(t, o);
        o.outs = {t.output(dtype, small), t.output(DType::UInt8, small)};
      });
      CHECK(count_wrong(both[0], expected.maxima, dtype) == 0);
      CHECK(count_wrong(both[1], expected.taps, DType::UInt8) == 0);
      const auto taps = check(Op::MaxPool2d, [&](DeviceCheck& t, Opaque& o) {
        pooling(t, o);
        o.outs = {kNoValue, t.output(DType::UInt8, small)};
      });
      CHECK(count_wrong(taps[0], expected.taps, DType::UInt8) == 0);
      const auto gradients = check(Op::MaxPool2dGrad, [&](DeviceCheck& t, Opaque& o) {
        o.shapes = {small, small};
        o.inputs = {t.leaf_of(DType::UInt8, small, expected.taps), t.leaf_of(dtype, small, g)};
        o.outs = {t.output(dtype, c.x)};
      });
      CHECK(count_wrong(gradients[0], expected.gradients, dtype) == 0);
    }
}

TEST_CASE("cuda opaque: numbers of maxima where there are NaN and nothing finite") {
  if (!DeviceCheck::can_run()) return;
  const double nan = std::nan(""), inf = HUGE_VAL;
  // Windows of 2 x 2: the last NaN, or the first of equal maxima.
  const double rows[2][8] = {{1, nan, -inf, -inf, 2, nan, inf, 3},
                             {3, nan, -inf, -inf, 5, 1, 4, inf}};
  const Shape image{1, 2, 8, 8}, small{1, 1, 4, 8};
  std::vector<double> x;
  for (const auto& row : rows)
    for (const double value : row) x.insert(x.end(), 8, value);
  DeviceCheck t;
  t.region.kind = RegionKind::Opaque;
  Opaque& o = t.region.opaque;
  o.op = Op::MaxPool2d;
  o.attrs = PoolAttrs{2, 2, 2, 2};
  o.channels_last = true;
  o.shapes = {image};
  o.inputs = {t.leaf_of(DType::Float32, image, x)};
  o.outs = {t.output(DType::Float32, small), t.output(DType::UInt8, small)};
  const auto got = t.run_on_gpu(*engine().prepare(t.region, t.values, 1));
  std::vector<double> taps;
  for (const double tap : {3, 0, 1, 0}) taps.insert(taps.end(), 8, tap);
  CHECK(count_wrong(got[1], taps, DType::UInt8) == 0);
  std::vector<float> maxima(32);
  std::memcpy(maxima.data(), got[0].data(), got[0].size());
  CHECK(std::isnan(maxima[0]));
  CHECK(maxima[8] == -HUGE_VALF);
  CHECK(std::isnan(maxima[16]));
  CHECK(maxima[24] == HUGE_VALF);
}

TEST_CASE("cuda opaque: a maximum over a window larger than the image") {
  if (!DeviceCheck::can_run()) return;
  const Shape image{1, 1, 2, 2}, one{1, 1, 1, 1};
  const auto run = [&](Op op, const Shape& second, const Shape& out) {
    DeviceCheck t;
    t.region.kind = RegionKind::Opaque;
    Opaque& o = t.region.opaque;
    o.op = op;
    o.attrs = PoolAttrs{2, 2, 1, 1, 1, 1, 3, 3, 0, 1};
    o.shapes = {image, second};
    o.inputs = {t.leaf_of(DType::Float32, image, {1, 2, 3, 4}),
                t.leaf_of(DType::Float32, second, {5, 6, 7, 8})};
    if (op == Op::MaxPool2d) o.shapes.pop_back(), o.inputs.pop_back();
    o.outs = {t.output(DType::Float32, out)};
    const auto bytes = t.run_on_gpu(*engine().prepare(t.region, t.values, 1))[0];
    std::vector<float> got(bytes.size() / sizeof(float));
    std::memcpy(got.data(), bytes.data(), bytes.size());
    return got;
  };
  CHECK(run(Op::MaxPool2d, image, one) == std::vector<float>{-INFINITY});
  CHECK(run(Op::MaxPool2dGather, image, one) == std::vector<float>{0});
  CHECK(run(Op::MaxPool2dGrad, one, image) == std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("cuda opaque: a maximum is the first of equal ones, or NaN") {
  DeviceCheck t;
  t.region.kind = RegionKind::Opaque;
  Opaque& o = t.region.opaque;
  o.op = Op::MaxPool2dGrad;
  o.attrs = PoolAttrs{2, 2, 2, 2, 0, 0, 1, 1, 0, 1};
  o.shapes = {{1, 1, 2, 4}, {1, 1, 1, 2}};
  o.inputs = {t.leaf_of(DType::Float32, o.shapes[0], {1, 1, 3, NAN, 1, 1, NAN, 4}),
              t.leaf_of(DType::Float32, o.shapes[1], {5, 7})};
  o.outs = {t.output(DType::Float32, o.shapes[0])};
  check(t);
}

TEST_CASE("cuda opaque: softmax that was not decomposed") {
  for (const DType dtype : kFloating)
    for (const Op op : {Op::Softmax, Op::LogSoftmax})
      for (const Shape& shape : {Shape{5, 10}, Shape{2, 3, 700}, Shape{4, 1}, Shape{0, 3}}) {
        DeviceCheck t = opaque(op, {{dtype, shape}}, dtype, shape);
        check(t);
      }
}

TEST_CASE("cuda opaque: sorting, in every dtype, of rows of one part and of several") {
  for (const DType dtype : {DType::Bool, DType::UInt8, DType::Int8, DType::Int32, DType::Int64,
                            DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
    DeviceCheck t = opaque(Op::Sort, {{dtype, {3, 37}}}, dtype, {3, 37});
    t.region.opaque.outs.push_back(t.output(DType::Int64, {3, 37}));
    t.region.opaque.attrs = SortAttrs{37, 1};
    check(t);
  }
  for (const auto& [length, count] :
       {std::pair<std::int64_t, std::int64_t>{1024, 1024}, {1025, 1025}, {2500, 7}, {3100, 3100}})
    for (const DType dtype : {DType::Float32, DType::Int64}) {
      CAPTURE(length);
      DeviceCheck t = opaque(Op::Sort, {{dtype, {2, length}}}, dtype, {2, count}, 50);
      t.region.opaque.outs.push_back(t.output(DType::Int64, {2, count}));
      t.region.opaque.attrs = SortAttrs{count, length % 2};
      check(t);
    }
}

TEST_CASE("cuda opaque: only the indices of a sort, and a sort of no elements") {
  DeviceCheck t;
  t.region.kind = RegionKind::Opaque;
  Opaque& o = t.region.opaque;
  o.op = Op::Sort;
  o.attrs = SortAttrs{5, 0};
  o.inputs = {t.leaf_of(DType::Float32, {5}, {1, NAN, -INFINITY, 0, -0.0})};
  o.shapes = {{5}};
  o.outs = {kNoValue, t.output(DType::Int64, {5})};
  check(t);
  DeviceCheck empty = opaque(Op::Sort, {{DType::Float32, {0, 4}}}, DType::Float32, {0, 4});
  empty.region.opaque.outs.push_back(kNoValue);
  empty.region.opaque.attrs = SortAttrs{4, 0};
  check(empty);
}

TEST_CASE("cuda opaque: what is not claimed, and why") {
  std::string why;
  DeviceCheck pool =
      opaque(Op::MaxPool2d, {{DType::Int32, {1, 1, 2, 2}}}, DType::Int32, {1, 1, 1, 1});
  CHECK_FALSE(engine().claims(pool.region, pool.values, &why));
  CHECK(why == "pools and normalises floating-point numbers only");
  DeviceCheck map;
  CHECK_FALSE(engine().claims(map.region, map.values, &why));
  CHECK(why == "runs opaque regions only (single operations that are not fused)");
}

TEST_CASE("cuda opaque: a new batch size has the same source") {
  const auto source = [](std::int64_t batch) {
    DeviceCheck t = opaque(Op::MaxPool2d, {{DType::Float32, {batch, 6, 28, 28}}}, DType::Float32,
                           {batch, 6, 14, 14});
    t.region.opaque.attrs = PoolAttrs{2, 2, 2, 2, 0, 0, 1, 1, 0, 1};
    return cuda::opaque_engine(cuda::Target{}).prepare(t.region, t.values, 1)->source();
  };
  CHECK(source(64) == source(7));
  CHECK_FALSE(source(64).empty());
}

TEST_CASE(
    "cuda opaque: response normalisation across channels, and its gradient, in both layouts") {
  const auto run = [](const Shape& x, DType dtype, std::int64_t size, bool last) {
    CAPTURE(size);
    CAPTURE(last);
    const double tolerance = dtype == DType::Float32   ? 2e-6
                             : dtype == DType::Float64 ? 1e-12
                                                       : 1e-2;
    for (const Op op : {Op::ResponseNorm, Op::ResponseNormGrad}) {
      Inputs inputs{{dtype, x}};
      if (op == Op::ResponseNormGrad) inputs.push_back({dtype, x});
      DeviceCheck t = opaque(op, inputs, dtype, x, 3);
      t.region.opaque.attrs = ResponseAttrs{size, 0.4, 0.75, 2};
      t.region.opaque.channels_last = last;
      check(t, tolerance);
    }
  };
  for (const DType dtype : kFloating)
    for (const std::int64_t size : {1, 4, 5}) run({2, 7, 3, 5}, dtype, size, false);
  run({3, 4}, DType::Float32, 3, false);
  run({2, 3, 2}, DType::Float32, 12, false);  // a window wider than the channels
  run({0, 3, 2}, DType::Float32, 5, false);
  for (const DType dtype : {DType::Float16, DType::BFloat16})
    for (const std::int64_t size : {1, 2, 5, 8, 9})
      for (const std::int64_t channels : {8, 24}) run({2, 3, 5, channels}, dtype, size, true);
}
