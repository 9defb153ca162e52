// The native contraction engine on a GPU (the emulated one in CI) against the reference engine:
// every op, dtype, arithmetic, tile; odd sizes, strides, groups, dilation, batches, epilogues,
// empty results.
#include <doctest/doctest.h>

#include <tuple>
#include <utility>

#include "../cpu/region_builders.h"
#include "cuda/capture/graph.h"
#include "cuda/engines/products/native_engine.h"
#include "device_check.h"

using namespace tenon;
using test::add_epilogue;
using test::DeviceCheck;
using test::matrix_product;
using test::natural;
using test::tolerance_of;
using test::transposed;
using Case = test::ContractionCase;

namespace {

constexpr DType F = DType::Float32, BF = DType::BFloat16, H = DType::Float16;

DeviceCheck contraction(const Case& k, const View& a, const View& b, bool keep_result = true) {
  return test::contraction_of<DeviceCheck>(k, a, b, keep_result);
}

void check(DeviceCheck& t, const Case& k) {
  t.check_device(cuda::native_contraction_engine(cuda::target_of(0)), tolerance_of(k));
}

/// The native engine with a tile and a number of splits that it would not choose.
class TileEngine final : public Engine {
 public:
  TileEngine(const cuda::Tile& tile, int splits, bool serial = false)
      : tile_(tile), splits_(splits), serial_(serial) {}
  const char* name() const override { return "native"; }
  bool claims(const Region&, std::span<const Value>, std::string*) const override { return true; }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    return cuda::prepare_contraction(region, values, cuda::target_of(0), tile_, splits_, serial_);
  }

 private:
  const cuda::Tile tile_;
  const int splits_;
  const bool serial_;
};

void check_tile(DeviceCheck& t, const Case& k, const cuda::Tile& tile, int splits) {
  CAPTURE(tile.m);
  CAPTURE(tile.n);
  CAPTURE(splits);
  t.check_device(TileEngine(tile, splits), tolerance_of(k));
}

}  // namespace

TEST_CASE("native contraction: matrices, plain and transposed, with and without epilogue") {
  if (!DeviceCheck::can_run()) return;
  for (const auto& [m, n, k] : {std::tuple<int, int, int>{1, 1, 1},
                                {64, 10, 84},
                                {33, 130, 65},
                                {5, 3, 0},
                                {0, 4, 3},
                                {8, 16, 5000}})
    for (int mode = 0; mode < 4; ++mode) {
      const Case c = matrix_product(m, n, k);
      DeviceCheck t = contraction(c, (mode & 1) != 0 ? transposed(c.a) : natural(c.a),
                                  (mode & 1) != 0 ? natural(c.b) : transposed(c.b), mode != 2);
      if (mode >= 2) add_epilogue(t, {1, m, n}, mode == 3);
      check(t, c);
    }
}

TEST_CASE("native contraction: every tile, split and whole") {
  if (!DeviceCheck::can_run()) return;
  for (const auto& [dtype, compute, tf32] : {std::tuple<DType, DType, bool>{F, F, false},
                                             {F, F, true},
                                             {F, BF, false},
                                             {BF, BF, false},
                                             {H, H, false}}) {
    Case c = matrix_product(70, 92, 200, dtype, compute);
    c.tf32 = tf32;
    const cuda::GemmMath math = tf32           ? cuda::GemmMath::Tf32
                                : compute == F ? cuda::GemmMath::Fp32
                                               : cuda::GemmMath::Bf16;
    int mode = 0;
    for (const cuda::Tile& tile : cuda::gemm_tiles(math)) {
      DeviceCheck t = contraction(c, (mode & 1) != 0 ? transposed(c.a) : natural(c.a),
                                  (mode & 2) != 0 ? transposed(c.b) : natural(c.b));
      check_tile(t, c, tile, mode % 3 == 1 ? 3 : 1);
      ++mode;
    }
  }
}

TEST_CASE("native contraction: mixed dtypes, odd sizes") {
  if (!DeviceCheck::can_run()) return;
  for (const auto& [a, b, compute] :
       {std::tuple<DType, DType, DType>{F, BF, BF}, {H, F, F}, {BF, BF, F}, {F, F, H}, {BF, H, BF}})
    for (int mode = 0; mode < 2; ++mode) {
      Case c = matrix_product(37, 45, 51, F, compute);
      c.dtype_a = a;
      c.dtype_b = b;
      DeviceCheck t = contraction(c, mode == 1 ? transposed(c.a) : natural(c.a),
                                  mode == 1 ? natural(c.b) : transposed(c.b));
      check(t, c);
    }
}

TEST_CASE("native contraction: 16-bit lines read in reverse") {
  if (!DeviceCheck::can_run()) return;
  for (const DType dtype : {BF, H})
    for (int mode = 0; mode < 2; ++mode) {  // the left operand's, the right one's
      const Case c = matrix_product(37, 45, 200, dtype, dtype);
      View a = natural(c.a), b = transposed(c.b);
      View& permuted = mode == 0 ? a : b;
      permuted.offset = 199;
      permuted.stride[mode == 0 ? 1 : 0] = -1;
      DeviceCheck t = contraction(c, a, b);
      check(t, c);
    }
}

TEST_CASE("native contraction: 16-bit, float64 and integer results") {
  if (!DeviceCheck::can_run()) return;
  for (const DType dtype : {BF, H, DType::Float64, DType::Int32, DType::Int64, DType::UInt8}) {
    const DType compute = dtype;
    const Case c{{2, 33, 40}, {2, 40, 68}, {2, 33, 68}, dtype, dtype, dtype, compute};
    DeviceCheck t = contraction(c, natural(c.a), natural(c.b));
    check(t, c);
  }
}

TEST_CASE("native contraction: batches: even, broadcast, uneven") {
  if (!DeviceCheck::can_run()) return;
  for (const DType dtype : {F, DType::Float64})
    for (int mode = 0; mode < 5; ++mode) {
      const Case c{{3, 4, 9, 20}, {3, 4, 20, 31}, {3, 4, 9, 31}, dtype, dtype, dtype, dtype};
      View a = natural(c.a), b = natural(c.b);
      if (mode == 1) b.stride[0] = b.stride[1] = 0;  // one matrix for all: batches become rows
      if (mode == 2) b.stride[0] = 0;
      if (mode == 3) {  // stored [4, 9, 3, 20]
        a.stride[0] = 20, a.stride[1] = 9 * 60, a.stride[2] = 60;
      }
      if (mode == 4) {  // rows in reverse
        a.offset = 8 * 20;
        a.stride[2] = -20;
      }
      DeviceCheck t = contraction(c, a, b, mode != 1);
      add_epilogue(t, {12, 9, 31}, mode == 3);
      check(t, c);
    }
}

TEST_CASE("native contraction: an update of a weight in the epilogue of its gradient") {
  if (!DeviceCheck::can_run()) return;
  const Case c{{70, 130}, {130, 32}, {70, 32}};
  DeviceCheck t = contraction(c, natural(c.a), natural(c.b), false);
  t.region.contraction.has_epilogue = true;
  t.region.map.space = {1, 70, 32};
  const ValueId w = t.leaf(F, {1, 70, 32});
  t.overwritten(w);
  const int step = t.compute(Op::Mul, F, t.accumulator(), t.load(t.leaf(F, {1, 1, 1})));
  t.store_to(t.compute(Op::Sub, F, t.load(w), step), t.broadcast(w), w);
  check(t, c);
}

TEST_CASE("native contraction: convolutions and their gradients") {
  if (!DeviceCheck::can_run()) return;
  struct Conv {
    std::int64_t n, c, h, w, k, r, s;
    ConvAttrs v;
  };
  int turn = 0;
  for (const Conv& g : {Conv{2, 3, 9, 11, 8, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
                        Conv{1, 4, 13, 8, 6, 5, 3, {2, 3, 2, 0, 1, 2, 2}},
                        Conv{3, 16, 7, 7, 32, 1, 1, {1, 1, 0, 0, 1, 1, 1}},
                        Conv{5, 6, 4, 4, 10, 4, 4, {1, 1, 0, 0, 1, 1, 1}},
                        Conv{2, 3, 15, 14, 4, 7, 7, {2, 2, 3, 3, 1, 1, 1}},
                        Conv{1, 2, 36, 5, 3, 33, 2, {1, 1, 1, 1, 1, 1, 1}},
                        Conv{7, 1, 28, 28, 6, 5, 5, {1, 1, 2, 2, 1, 1, 1}}}) {
    const std::int64_t p = (g.h + 2 * g.v.pad_h - g.v.dil_h * (g.r - 1) - 1) / g.v.stride_h + 1;
    const std::int64_t q = (g.w + 2 * g.v.pad_w - g.v.dil_w * (g.s - 1) - 1) / g.v.stride_w + 1;
    const Shape x{g.n, g.c, g.h, g.w}, w{g.k, g.c / g.v.groups, g.r, g.s}, y{g.n, g.k, p, q};
    for (const auto& [dtype, tf32] : {std::pair<DType, bool>{F, false}, {F, true}, {BF, false}}) {
      for (const auto& [c, space] :
           {std::pair<Case, Shape>{{x, w, y, dtype, dtype, F, dtype, Op::Conv2d, tf32},
                                   {g.n, g.k, p * q}},
            {{y, w, x, dtype, dtype, F, dtype, Op::Conv2dInputGrad, tf32}, {g.n, g.c, g.h * g.w}},
            {{x, y, w, dtype, dtype, F, dtype, Op::Conv2dWeightGrad, tf32},
             {1, g.k, g.c / g.v.groups * g.r * g.s}}}) {
        const int mode = turn++ % 3;
        DeviceCheck t = contraction(c, natural(c.a), natural(c.b), mode != 1);
        t.region.contraction.attrs.conv = g.v;
        if (mode != 0) add_epilogue(t, space, mode == 1);
        const int op = static_cast<int>(c.op);  // clang 14 captures no structured binding
        CAPTURE(op);
        CAPTURE(g.h);
        check(t, c);
      }
    }
  }
}

TEST_CASE("native contraction: a convolution of a channels-last image") {
  if (!DeviceCheck::can_run()) return;
  const Shape x{2, 8, 6, 5}, w{12, 8, 3, 3}, y{2, 12, 6, 5};
  const Case c{x, w, y, F, F, F, F, Op::Conv2d};
  View a;
  a.stride[0] = 240, a.stride[1] = 1, a.stride[2] = 40, a.stride[3] = 8;
  DeviceCheck t = contraction(c, a, natural(w));
  t.region.contraction.attrs.conv = ConvAttrs{1, 1, 1, 1, 1, 1, 1};
  check(t, c);
}

// ---- Splits whose sums are added in turn

namespace {

/// Two tiles of the arithmetic and splits that do not divide, each added up in turn.
void check_in_turn(DeviceCheck& t, const Case& k, std::int64_t copy_bytes, int turn) {
  const cuda::GemmMath math = k.tf32                        ? cuda::GemmMath::Tf32
                              : k.compute == DType::Float32 ? cuda::GemmMath::Fp32
                                                            : cuda::GemmMath::Bf16;
  const auto tiles = cuda::gemm_tiles(math);
  for (int i = 0; i < 2; ++i) {
    const cuda::Tile& tile = tiles[static_cast<std::size_t>(turn + i * 5) % tiles.size()];
    const TileEngine engine(tile, 2 + (turn + i) % 4, true);
    CAPTURE(tile.m);
    CAPTURE(tile.n);
    t.check_device(engine, tolerance_of(k));
    CHECK(engine.prepare(t.region, t.values, 1)->workspace_bytes ==
          static_cast<std::size_t>(copy_bytes));
  }
}

}  // namespace

TEST_CASE("native contraction: splits added in turn to the result or to a float32 copy") {
  if (!DeviceCheck::can_run()) return;
  int turn = 0;
  for (const auto& [dtype, out, tf32] : {std::tuple<DType, DType, bool>{F, F, false},
                                         {F, F, true},
                                         {BF, BF, false},
                                         {BF, F, false},
                                         {H, H, false}})
    for (const auto& [m, n, k] : {std::tuple<int, int, int>{70, 92, 700}, {129, 7, 1030}}) {
      Case c = matrix_product(m, n, k, dtype, dtype);
      c.result = out;
      c.tf32 = tf32;
      DeviceCheck t = contraction(c, turn % 2 == 0 ? natural(c.a) : transposed(c.a), natural(c.b));
      check_in_turn(t, c, out == F ? 0 : 4 * m * n, turn++);
    }
}

TEST_CASE("native contraction: splits added in turn, with batches and an epilogue") {
  if (!DeviceCheck::can_run()) return;
  for (int mode = 0; mode < 4; ++mode) {
    const Case c{{3, 2, 37, 410}, {3, 2, 410, 52}, {3, 2, 37, 52}};
    View a = natural(c.a), b = natural(c.b);
    if (mode == 1) b.stride[0] = b.stride[1] = 0;  // one matrix for all: batches become rows
    DeviceCheck t = contraction(c, a, b, mode != 2);
    if (mode >= 2) add_epilogue(t, {6, 37, 52}, mode == 2);
    check_in_turn(t, c, mode >= 2 ? 4 * 6 * 37 * 52 : 0, mode);
  }
}

TEST_CASE("native contraction: splits added in turn, of convolutions and their gradients") {
  if (!DeviceCheck::can_run()) return;
  int turn = 0;
  for (const std::int64_t groups : {1, 2}) {
    const std::int64_t q = 7 + groups;  // rows of pairs of pixels, or an odd number
    const Shape x{3, 6, 13, q + 2}, w{10, 6 / groups, 3, 3}, y{3, 10, 11, q};
    for (const auto& [dtype, tf32] : {std::pair<DType, bool>{F, false}, {F, true}, {BF, false}})
      for (const Case& c :
           {Case{x, w, y, dtype, dtype, dtype, dtype, Op::Conv2d, tf32},
            Case{y, w, x, dtype, dtype, dtype, dtype, Op::Conv2dInputGrad, tf32},
            Case{x, y, w, dtype, dtype, dtype, dtype, Op::Conv2dWeightGrad, tf32}}) {
        DeviceCheck t = contraction(c, natural(c.a), natural(c.b));
        t.region.contraction.attrs.conv = ConvAttrs{1, 1, 0, 0, 1, 1, groups};
        check_in_turn(t, c, dtype == F ? 0 : 4 * c.out.numel(), turn++);
      }
  }
}

namespace {

/// Runs a kernel through a graph that is launched twice.
class Replayed final : public Kernel {
 public:
  explicit Replayed(const Kernel& kernel) : kernel_(kernel) {
    workspace_bytes = kernel.workspace_bytes;
  }
  void run(const Binding& binding) const override {
    const cuda::CaptureStream captured;
    cuda::Graph graph(cuda::context_of(0));
    graph.capture(captured.get(), {}, [&] {
      kernel_.run({binding.values, binding.workspace, captured.get()});
    });
    graph.instantiate();
    for (int time = 0; time < 3; ++time) graph.launch(static_cast<cuda::CUstream>(binding.stream));
    cuda::synchronize(0);
  }

 private:
  const Kernel& kernel_;
};

}  // namespace

TEST_CASE("native contraction: splits added in turn, in a graph that is launched again") {
  if (!DeviceCheck::can_run() || !cuda::can_capture()) return;
  for (const DType result : {F, BF}) {
    Case c = matrix_product(70, 92, 1300, BF, BF);
    c.result = result;
    DeviceCheck t = contraction(c, natural(c.a), natural(c.b));
    const cuda::Tile& tile = cuda::gemm_tiles(cuda::GemmMath::Bf16)[5];
    const auto kernel = TileEngine(tile, 5, true).prepare(t.region, t.values, 1);
    CHECK(t.run_on_gpu(Replayed(*kernel)) == t.run_on_gpu(*kernel));
  }
}
