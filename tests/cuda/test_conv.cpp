// The engine for convolutions on patches, on a GPU (the emulated one in CI), against the reference
// engine: every op, arithmetic, tile; odd sizes, strides, padding, groups, dilation, NHWC feature
// maps, epilogues. And its sources: they compile, and another batch size has the same source.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "../cpu/region_builders.h"
#include "compiler.h"
#include "cuda/engines/convolutions/conv_choice.h"
#include "cuda/engines/convolutions/conv_engine.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/jit.h"
#include "cuda/jit/nvrtc.h"
#include "device_check.h"

using namespace tenon;
using test::DeviceCheck;
using test::natural;

namespace {

constexpr DType F = DType::Float32, BF = DType::BFloat16, H = DType::Float16;

struct Conv {
  std::int64_t n, c, h, w, k, r, s;
  ConvAttrs v;
};

struct How {
  DType memory = F, compute = BF;
  bool tf32 = false;
};

View channels_last(const Shape& shape) {
  View view;
  view.stride[1] = 1;
  view.stride[3] = shape[1];
  view.stride[2] = shape[1] * shape[3];
  view.stride[0] = shape[1] * shape[3] * shape[2];
  return view;
}

/// Filters with the axis inside that a convolution, or its gradient with respect to the input, sums
/// over.
View summed_inside(const Shape& filters, Op op) {
  const bool of_input = op == Op::Conv2dInputGrad;
  View view =
      channels_last(of_input ? Shape{filters[1], filters[0], filters[2], filters[3]} : filters);
  if (of_input) std::swap(view.stride[0], view.stride[1]);
  return view;
}

/// epilogue: 0 none, 1 beside the result, 2 instead of it.
DeviceCheck convolution(const Conv& g, Op op, const How& how, int epilogue, bool last = false) {
  const std::int64_t p = (g.h + 2 * g.v.pad_h - g.v.dil_h * (g.r - 1) - 1) / g.v.stride_h + 1;
  const std::int64_t q = (g.w + 2 * g.v.pad_w - g.v.dil_w * (g.s - 1) - 1) / g.v.stride_w + 1;
  const Shape x{g.n, g.c, g.h, g.w}, w{g.k, g.c / g.v.groups, g.r, g.s}, y{g.n, g.k, p, q};
  DeviceCheck t;
  t.region.kind = RegionKind::Contraction;
  Contraction& c = t.region.contraction;
  c.op = op;
  c.attrs.precision = test::precision_of(how.compute, how.tf32);
  c.a_shape = op == Op::Conv2dInputGrad ? y : x;
  c.b_shape = op == Op::Conv2dWeightGrad ? y : w;
  c.out_shape = op == Op::Conv2d ? y : op == Op::Conv2dInputGrad ? x : w;
  c.a = last ? channels_last(c.a_shape) : natural(c.a_shape);
  c.b = natural(c.b_shape);
  c.a.value = t.leaf(how.memory, c.a_shape);
  c.b.value = t.leaf(how.memory, c.b_shape);
  c.attrs.conv = g.v;
  const Shape& out = c.out_shape;
  if (epilogue < 2) c.out = t.output(F, out);
  if (epilogue > 0) {
    c.has_epilogue = true;
    t.region.map.space = op == Op::Conv2dWeightGrad ? Shape{1, out[0], out[1] * out[2] * out[3]}
                                                    : Shape{out[0], out[1], out[2] * out[3]};
    const int bias = t.load(t.leaf(F, {1, t.region.map.space[1], 1}));
    const int sum = t.compute(Op::Add, F, t.accumulator(), bias);
    t.store(t.compute(Op::Relu, F, sum));
    t.store(t.compute(Op::Mul, F, sum, t.load(t.leaf(F, t.region.map.space))));
  }
  return t;
}

double tolerance(const How& how) {
  // The reference engine keeps float32 operands as they are.
  return how.tf32 || (how.compute == H && how.memory == F) ? 2e-3 : 2e-5;
}

const Op kOps[] = {Op::Conv2d, Op::Conv2dInputGrad, Op::Conv2dWeightGrad};
const How kHow[] = {{F, BF, false}, {F, F, true}, {BF, BF, false}, {F, H, false}};

/// The engine with a tile that it would not choose.
class TileEngine final : public Engine {
 public:
  explicit TileEngine(const cuda::ConvConfig& config) : config_(config) {}
  const char* name() const override { return "conv"; }
  bool claims(const Region&, std::span<const Value>, std::string*) const override { return true; }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    return cuda::prepare_conv(region, values, cuda::target_of(0), config_);
  }

 private:
  const cuda::ConvConfig config_;
};

/// For the oldest and the newest GPU.
void check_compiles(const Kernel& kernel, const std::string& what) {
  const std::string text = kernel.source();
  const std::size_t second = text.find(cuda::kNextLaunch);
  for (const std::string& part :
       {text.substr(0, second), second == std::string::npos ? "" : text.substr(second)})
    for (const int arch : {80, 90}) {
      if (part.empty()) continue;
      const cuda::CompileResult result =
          cuda::nvrtc().compile(part, "conv.cu", cuda::headers_of(part), arch);
      CHECK_MESSAGE(!result.image.empty(), what << ": " << result.log);
    }
}

}  // namespace

TEST_CASE("patch convolution: forward and gradients") {
  if (!DeviceCheck::can_run()) return;
  int turn = 0;
  for (const Conv& g : {Conv{2, 3, 9, 11, 8, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
                        Conv{1, 4, 13, 8, 6, 5, 3, {2, 3, 2, 0, 1, 2, 2}},
                        Conv{3, 16, 7, 7, 32, 1, 1, {1, 1, 0, 0, 1, 1, 1}},
                        Conv{5, 6, 4, 4, 10, 4, 4, {1, 1, 0, 0, 1, 1, 1}},
                        Conv{2, 3, 15, 14, 4, 7, 7, {2, 2, 3, 3, 1, 1, 1}},
                        Conv{3, 40, 5, 9, 33, 3, 3, {1, 1, 0, 2, 2, 1, 1}},
                        Conv{9, 24, 5, 5, 20, 3, 3, {1, 1, 0, 0, 1, 1, 1}},
                        Conv{2, 2, 6, 300, 5, 3, 3, {1, 2, 1, 1, 1, 1, 1}},
                        Conv{2, 17, 12, 13, 36, 9, 9, {1, 1, 0, 0, 1, 1, 1}},
                        Conv{2, 3, 15, 14, 20, 11, 11, {1, 1, 0, 0, 1, 1, 1}},
                        Conv{7, 1, 28, 28, 6, 5, 5, {1, 1, 2, 2, 1, 1, 1}}})
    for (const Op op : kOps) {
      if (op == Op::Conv2dInputGrad && (g.v.stride_h != 1 || g.v.stride_w != 1)) continue;
      if (op == Op::Conv2dWeightGrad && g.r * g.s > 49) continue;  // of few channels and fewer taps
      const How& how = kHow[turn % 4];
      const bool last = op != Op::Conv2dInputGrad && turn % 5 == 0;
      DeviceCheck t = convolution(g, op, how, turn++ % 3, last);
      const int number = static_cast<int>(op);
      CAPTURE(number);
      CAPTURE(g.h);
      t.check_device(cuda::conv_engine(cuda::target_of(0)), tolerance(how));
    }
}

TEST_CASE("patch convolution: every tile") {
  if (!DeviceCheck::can_run()) return;
  const Conv g{5, 12, 8, 7, 40, 3, 3, {1, 1, 1, 0, 1, 1, 1}};
  int turn = 0;
  for (const Op op : kOps) {
    cuda::ConvShape shape;
    DeviceCheck t = convolution(g, op, {}, 0);
    REQUIRE(cuda::conv_shape(t.region, t.values, shape) == nullptr);
    for (cuda::ConvConfig config : cuda::conv_configs(GpuModel(), shape, 1)) {
      const How& how = kHow[turn++ % 2 * 2];
      t = convolution(g, op, how, turn % 3);
      if (turn % 3 == 0) {  // several chunks of channels, or several turns of one cell
        if (!shape.filter_gradient) config.chunk = 1;
        config.cells = 4;
        config.images = 1;
      }
      CAPTURE(config.tile.m);
      CAPTURE(config.tile.n);
      t.check_device(TileEngine(config), tolerance(how));
    }
  }
}

TEST_CASE("convolution by rows: forward and gradients") {
  if (!DeviceCheck::can_run()) return;
  int turn = 0, ran = 0, other = 0;
  for (const Conv& g : {Conv{3, 16, 32, 32, 16, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
                        Conv{2, 32, 16, 16, 32, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
                        Conv{5, 64, 8, 8, 32, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
                        Conv{3, 32, 8, 8, 64, 1, 1, {1, 1, 0, 0, 1, 1, 1}},
                        Conv{1, 16, 20, 24, 48, 5, 3, {1, 1, 4, 2, 2, 2, 1}},
                        Conv{3, 48, 10, 8, 16, 3, 1, {1, 1, 0, 0, 1, 1, 1}}})
    for (const Op op : kOps) {
      const DType memory = other++ % 4 == 3 ? H : BF;
      const How how{memory, memory, false};
      cuda::ConvShape shape;
      DeviceCheck t = convolution(g, op, how, 0);
      REQUIRE(cuda::conv_shape(t.region, t.values, shape) == nullptr);
      int tile = 0;
      for (const cuda::ConvConfig& config : cuda::conv_configs(GpuModel(), shape, 1)) {
        // Filters' gradients have many tiles: each case takes some of them.
        if (!config.by_rows || (op == Op::Conv2dWeightGrad && tile++ % 4 != other % 4)) continue;
        t = convolution(g, op, how, turn++ % 3);
        Contraction& c = t.region.contraction;
        if (op != Op::Conv2dWeightGrad && turn % 2 == 0) {
          const ValueId filters = c.b.value;
          c.b = summed_inside(c.b_shape, op);
          c.b.value = filters;
        }
        const std::string name = cuda::config_name(config);
        CAPTURE(name);
        CAPTURE(g.h);
        CAPTURE(g.r);
        t.check_device(TileEngine(config), tolerance(how));
        ++ran;
      }
    }
  CHECK(ran >= 20);
}

TEST_CASE("patch convolution: what it does not claim") {
  std::string why;
  const cuda::Target target;
  const Conv strided{2, 3, 9, 9, 4, 3, 3, {2, 2, 1, 1, 1, 1, 1}};
  DeviceCheck t = convolution(strided, Op::Conv2dInputGrad, {}, 0);
  CHECK_FALSE(cuda::conv_engine(target).claims(t.region, t.values, &why));
  CHECK(why == "computes input gradients only of convolutions with stride 1");
  t = convolution(strided, Op::Conv2d, {F, F, false}, 0);
  CHECK_FALSE(cuda::conv_engine(target).claims(t.region, t.values, &why));
  CHECK(why == "computes in tf32 and 16-bit types only, not in float32");
  const Conv large{256, 256, 56, 56, 256, 3, 3, {1, 1, 1, 1, 1, 1, 1}};
  cuda::Target with_libraries = target;
  with_libraries.cudnn = true;
  t = convolution(large, Op::Conv2d, {}, 0);
  CHECK(cuda::conv_engine(target).claims(t.region, t.values, &why));
  CHECK_FALSE(cuda::conv_engine(with_libraries).claims(t.region, t.values, &why));
  CHECK(why == "leaves large convolutions to faster engines");
  CHECK(cuda::conv_engine(with_libraries).is_able(t.region, t.values));  // as it was recorded
  t = convolution(large, Op::Conv2dWeightGrad, {}, 0);
  CHECK_FALSE(cuda::conv_engine(target).claims(t.region, t.values, &why));
  CHECK(why == "leaves large convolutions to faster engines");
}

TEST_CASE("patch convolution source: sources compile, another batch size has the same source") {
  // The emulator has compiled such sources above.
  const bool compiles = cuda::nvrtc().problem.empty() && !test::compiler_is_emulated();
  if (!compiles) MESSAGE("texts are compared, not compiled: " << cuda::nvrtc().problem);
  struct Sizes {
    std::int64_t batch, another, c, h, k, r;
  };
  for (const Op op : kOps)
    for (const How& how : kHow)
      for (const Sizes& s : {Sizes{128, 125, 1, 28, 32, 3}, Sizes{64, 61, 6, 14, 16, 5},
                             Sizes{128, 65, 32, 13, 64, 3}}) {
        const auto kernel = [&](std::int64_t batch) {
          const DeviceCheck t =
              convolution({batch, s.c, s.h, s.h, s.k, s.r, s.r, {1, 1, 0, 0, 1, 1, 1}}, op, how, 0);
          return cuda::conv_engine({}).prepare(t.region, t.values, 1);
        };
        const auto first = kernel(s.batch);
        CHECK(first->source() == kernel(s.another)->source());
        if (compiles) check_compiles(*first, std::to_string(static_cast<int>(op)));
      }
}
