// Native contractions whose operands are computed while they are loaded, against the reference
// engine: every op, every arithmetic, further values in all the ways that they can lie, odd sizes,
// padding, groups, batches; and the texts by NVRTC.
#include <doctest/doctest.h>

#include <tenon/device.h>
#include <tenon/ops.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "compiler.h"
#include "cpu/region_builders.h"
#include "cuda/cuda.h"
#include "cuda/engines/products/native_engine.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/nvrtc.h"
#include "device_check.h"

using namespace tenon;
using test::ContractionCase;
using test::DeviceCheck;
using test::natural;
using test::transposed;

namespace {

constexpr DType F = DType::Float32, BF = DType::BFloat16, H = DType::Float16;

struct How {
  DType memory = F, compute = F;
  bool tf32 = false;
};
const How kHow[] = {{F, F, false},
                    {F, F, true},
                    {F, BF, false},
                    {F, H, false},
                    {BF, BF, false},
                    {DType::UInt8, F, false},
                    {DType::UInt8, BF, false},
                    {H, F, true}};

double tolerance(const How& how) {
  // The reference engine keeps float32 operands as they are where float16 or tf32 is asked for.
  return how.tf32 || how.compute == H ? 3e-3 : 2e-5;
}

void check(DeviceCheck& t, const How& how) {
  t.check_device(cuda::native_contraction_engine(cuda::target_of(0)), tolerance(how));
}

/// What is done to an operand whose element is `x` of memory dtype `from`; returns the element.
using Chain = std::function<int(DeviceCheck&, int x, DType from)>;

/// Builds a prologue over an operand's axes: the epilogue of the region is put aside meanwhile.
void add_prologue(DeviceCheck& t, bool first, const Chain& chain) {
  const MapProgram epilogue = std::exchange(t.region.map, {});
  Contraction& c = t.region.contraction;
  t.region.map.space = first ? c.a_shape : c.b_shape;
  const DType from = t.values[static_cast<std::size_t>((first ? c.a : c.b).value)].dtype;
  chain(t, t.accumulator(from), from);
  (first ? t.region.prologue_a : t.region.prologue_b) = std::exchange(t.region.map, epilogue);
}

int to_float(DeviceCheck& t, int x, DType from) {
  return from == F ? x : t.compute(Op::Cast, F, x);
}

/// The last axis' own shape: a vector along axis `axis` of the operand.
Shape vector_along(const Shape& shape, int axis) {
  Shape v = shape;
  for (int d = 0; d < v.rank(); ++d)
    if (d != axis) v[d] = 1;
  return v;
}

/// x / 255 and the like.
int scaled(DeviceCheck& t, int x, DType from) {
  const int y = t.compute(Op::Mul, F, to_float(t, x, from), t.number(0.25));
  return t.compute(Op::Add, F, y, t.number(0.125));
}
/// A vector along each axis of the operand but the first, and one number.
int normalised(DeviceCheck& t, int x, DType from) {
  const Shape shape = t.region.map.space;
  int y = to_float(t, x, from);
  for (int d = 1; d < shape.rank(); ++d)
    y = t.compute(d == 1 ? Op::Sub : Op::Mul, F, y, t.load(t.leaf(F, vector_along(shape, d))));
  return t.compute(Op::Mul, F, y, t.load(t.leaf(F, vector_along(shape, -1))));
}
/// dy * (y > 0), y lying as dy does when the operand is contiguous; and a half precision value.
int masked(DeviceCheck& t, int x, DType from) {
  const Shape shape = t.region.map.space;
  const int y = t.load(t.leaf(F, shape)), z = t.load(t.leaf(H, shape));
  const int open = t.compute(Op::Gt, DType::Bool, y, t.number(0));
  const int kept = t.compute(Op::Where, F, open, to_float(t, x, from), t.number(0));
  return t.compute(Op::Add, F, kept, t.compute(Op::Cast, F, z));
}
/// Dropout by random numbers of the element's position.
int dropped(DeviceCheck& t, int x, DType from) {
  const View position = natural(t.region.map.space);
  const int u = t.random(t.leaf_of(DType::Int64, {2}, {1234, 7}), 0, F, 3);
  MapInstr& random = t.region.map.instrs.back();
  const ValueId state = random.view.value;
  random.view = position;
  random.view.value = state;
  const int keep = t.compute(Op::Ge, DType::Bool, u, t.number(0.3));
  return t.compute(Op::Where, F, keep, to_float(t, x, from), t.number(0));
}
const Chain kChains[] = {scaled, normalised, masked, dropped};

DeviceCheck matrices(std::int64_t m, std::int64_t n, std::int64_t k, const How& how, int layout) {
  const ContractionCase c{{m, k}, {k, n},      {m, n},     how.memory, how.memory,
                          F,      how.compute, Op::Matmul, how.tf32};
  DeviceCheck t =
      test::contraction_of<DeviceCheck>(c, (layout & 1) != 0 ? transposed(c.a) : natural(c.a),
                                        (layout & 2) != 0 ? transposed(c.b) : natural(c.b));
  return t;
}

struct Conv {
  std::int64_t n, c, h, w, k, r, s;
  ConvAttrs v;
};

DeviceCheck convolution(const Conv& g, Op op, const How& how) {
  const std::int64_t p = (g.h + 2 * g.v.pad_h - g.v.dil_h * (g.r - 1) - 1) / g.v.stride_h + 1;
  const std::int64_t q = (g.w + 2 * g.v.pad_w - g.v.dil_w * (g.s - 1) - 1) / g.v.stride_w + 1;
  const Shape x{g.n, g.c, g.h, g.w}, w{g.k, g.c / g.v.groups, g.r, g.s}, y{g.n, g.k, p, q};
  ContractionCase c{x, w, y, how.memory, how.memory, F, how.compute, op, how.tf32};
  if (op == Op::Conv2dInputGrad) c.a = y, c.out = x;
  if (op == Op::Conv2dWeightGrad) c.b = y, c.out = w;
  DeviceCheck t = test::contraction_of<DeviceCheck>(c, natural(c.a), natural(c.b));
  t.region.contraction.attrs.conv = g.v;
  return t;
}

/// The operand that has no prologue must be a floating one.
void make_float(DeviceCheck& t, bool first) {
  View& view = first ? t.region.contraction.a : t.region.contraction.b;
  const Shape shape = first ? t.region.contraction.a_shape : t.region.contraction.b_shape;
  if (is_floating(t.values[static_cast<std::size_t>(view.value)].dtype)) return;
  view.value = t.leaf(F, shape);
}

}  // namespace

TEST_CASE("prologues: matrices, every arithmetic and layout") {
  if (!DeviceCheck::can_run()) return;
  int turn = 0;
  for (const auto& [m, n, k] : {std::tuple<int, int, int>{33, 70, 65}, {64, 96, 128}, {5, 3, 0}})
    for (const How& how : kHow)
      for (int side = 0; side < 3; ++side) {
        CAPTURE(turn);
        DeviceCheck t = matrices(m, n, k, how, turn % 4);
        if (side != 1) add_prologue(t, true, kChains[turn % 4]);
        if (side != 0) add_prologue(t, false, kChains[(turn / 4 + 1) % 4]);
        if (side == 0) make_float(t, false);
        if (side == 1) make_float(t, true);
        if (turn % 3 == 1) test::add_epilogue(t, {1, m, n}, turn % 2 == 0);
        check(t, how);
        ++turn;
      }
}

TEST_CASE("prologues: batches of matrices: even, broadcast, uneven") {
  if (!DeviceCheck::can_run()) return;
  for (int mode = 0; mode < 4; ++mode)
    for (const Chain& chain : kChains) {
      const ContractionCase c{{3, 4, 9, 20}, {3, 4, 20, 31}, {3, 4, 9, 31}};
      View a = natural(c.a), b = natural(c.b);
      if (mode == 1) b.stride[0] = b.stride[1] = 0;
      if (mode == 2) b.stride[0] = 0;
      if (mode == 3) a.stride[0] = 20, a.stride[1] = 9 * 60, a.stride[2] = 60;
      DeviceCheck t = test::contraction_of<DeviceCheck>(c, a, b);
      add_prologue(t, true, chain);
      if (mode == 0) add_prologue(t, false, normalised);
      CAPTURE(mode);
      check(t, {});
    }
}

TEST_CASE("prologues: convolutions and their gradients; what is padded stays zero") {
  if (!DeviceCheck::can_run()) return;
  int turn = 0;
  for (const Conv& g : {Conv{2, 3, 9, 11, 8, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
                        Conv{1, 4, 13, 8, 6, 5, 3, {2, 3, 2, 0, 1, 2, 2}},
                        Conv{3, 16, 7, 8, 12, 1, 1, {1, 1, 0, 0, 1, 1, 1}},
                        Conv{2, 3, 15, 14, 4, 7, 7, {2, 2, 3, 3, 1, 1, 1}}})
    for (const Op op : {Op::Conv2d, Op::Conv2dInputGrad, Op::Conv2dWeightGrad})
      for (int side = 0; side < 2; ++side) {
        const How& how = kHow[turn % 8];
        DeviceCheck t = convolution(g, op, how);
        add_prologue(t, side == 0, kChains[(turn / 2) % 4]);
        make_float(t, side == 1);
        CAPTURE(turn);
        check(t, how);
        ++turn;
      }
}

TEST_CASE("prologues: the kernel that tuning compares with") {
  if (!DeviceCheck::can_run()) return;
  int turn = 0;
  for (const Op op : {Op::Matmul, Op::Conv2d, Op::Conv2dInputGrad, Op::Conv2dWeightGrad})
    for (const Chain& chain : kChains) {
      const How how{turn % 3 == 0 ? DType::UInt8 : F};
      DeviceCheck t = op == Op::Matmul
                          ? matrices(9, 7, 21, how, turn % 4)
                          : convolution({2, 4, 9, 8, 6, 3, 3, {2, 2, 1, 1, 1, 1, 2}}, op, how);
      add_prologue(t, turn % 2 == 0, chain);
      make_float(t, turn % 2 == 1);
      ++turn;
      const auto kernel = cuda::native_contraction_engine(cuda::target_of(0))
                              .prepare_as(kReferenceConfiguration, t.region, t.values, 1);
      t.compare_all(t.run(cpu::reference_engine(), 1), t.run_on_gpu(*kernel), 2e-5);
    }
}

TEST_CASE("prologues: dropout draws the same numbers as in a map") {
  if (!DeviceCheck::can_run()) return;
  std::vector<float> numbers(31 * 44);
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k % 17) / 8 - 1;
  const auto drawn = [&](const char* device_name) {
    set_device(device_name);
    Generator generator(5);
    const Tensor x = Tensor::from(numbers, {31, 44}), w = Tensor::from(numbers, {31, 44});
    std::vector<std::vector<float>> twice;
    for (int k = 0; k < 2; ++k)
      twice.push_back(linear(dropout(x, 0.4, true, &generator), w).to_vector<float>());
    set_device("cpu");
    return twice;
  };
  const auto here = drawn("cpu"), there = drawn("cuda:0");
  CHECK(here[0] != here[1]);
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t i = 0; i < here[k].size(); ++i)
      CHECK(static_cast<double>(there[k][i]) ==
            doctest::Approx(static_cast<double>(here[k][i])).epsilon(1e-4));
}

TEST_CASE("prologues: sources compile for the oldest and the newest GPU") {
  if (!cuda::nvrtc().problem.empty()) {
    MESSAGE("skipped: " << cuda::nvrtc().problem);
    return;
  }
  int turn = 0;
  for (const Op op : {Op::Matmul, Op::Conv2d, Op::Conv2dInputGrad, Op::Conv2dWeightGrad})
    for (const Chain& chain : kChains) {
      const How& how = kHow[turn % 8];
      DeviceCheck t = op == Op::Matmul
                          ? matrices(64, 96, 128, how, turn % 4)
                          : convolution({2, 4, 9, 8, 6, 3, 3, {2, 2, 1, 1, 1, 1, 2}}, op, how);
      add_prologue(t, turn % 2 == 0, chain);
      make_float(t, turn % 2 == 1);
      ++turn;
      for (const int arch : {80, 90}) {
        if (arch == 80 && test::compiler_is_emulated()) continue;
        cuda::Target target;
        target.arch = arch;
        const std::string text =
            cuda::native_contraction_engine(target).prepare(t.region, t.values, 1)->source();
        const cuda::CompileResult result =
            cuda::nvrtc().compile(text, "prologue.cu", cuda::headers_of(text), arch);
        CHECK_MESSAGE(!result.image.empty(), result.log);
      }
    }
}
