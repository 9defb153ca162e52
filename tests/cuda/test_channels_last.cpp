// Convolutions over NHWC feature maps: by cuDNN (on the emulated GPU by tests/cuda/vendor) and by
// the native engine, against the reference engine.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <tenon/compute.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "../cases/passes.h"
#include "../cpu/region_builders.h"
#include "cuda/engines/convolutions/image_engine.h"
#include "cuda/engines/products/native_engine.h"
#include "cuda/engines/vendor/cudnn_engine.h"
#include "device_check.h"
#include "made_on.h"
#include "plan/regions/groups.h"

using namespace tenon;
using test::check_near;
using test::DeviceCheck;
using test::made_on;
using test::natural;
using test::Values;

namespace {

constexpr DType F = DType::Float32, BF = DType::BFloat16;

/// With 16-bit operands, or in tf32; the result is float32 until it is stored.
DeviceCheck contraction(Op op, const Shape& a, const View& a_view, const Shape& b,
                        const View& b_view, const Shape& out, bool keep_result, bool tf32 = false) {
  const DType dtype = tf32 ? F : BF;
  return test::contraction_of<DeviceCheck>({a, b, out, dtype, dtype, F, dtype, op, tf32}, a_view,
                                           b_view, keep_result);
}

/// [N, C, H, W] stored as [N, H, W, C], filters [K, C, R, S] stored as [K, R, S, C].
View channels_inside(const Shape& s) {
  View view = natural(s);
  view.stride[0] = s[1] * s[2] * s[3], view.stride[1] = 1;
  view.stride[2] = s[3] * s[1], view.stride[3] = s[1];
  return view;
}
Shape channels_last_shape(const Shape& s) { return {s[0], s[2], s[3], s[1]}; }

enum class Behind { Nothing, Rounding, BiasRelu, More };

/// The epilogue: only rounding, a biased activation, or a residual.
void add_rounded_epilogue(DeviceCheck& t, Behind behind) {
  const DType stored = t.region.contraction.tf32() ? F : BF;
  if (behind == Behind::Nothing) return;
  Contraction& c = t.region.contraction;
  c.has_epilogue = true;
  const Shape space = t.region.map.space = epilogue_space(c.op, c.out_shape, c.channels_last);
  int value = t.accumulator();
  if (behind == Behind::More) {  // rounded already when it is read
    value = t.compute(Op::Cast, F, t.compute(Op::Cast, stored, value));
    value = t.compute(Op::Mul, F, value, t.load(t.leaf(F, space)));
  }
  if (behind == Behind::BiasRelu)
    value =
        t.compute(Op::Relu, F, t.compute(Op::Add, F, value, t.load(t.leaf(F, {1, 1, space[2]}))));
  t.store(t.compute(Op::Cast, stored, value));
}

/// A normalisation's gradient on its way to the weight gradient: per-channel vectors, another value
/// with the gradient's layout, one number; rounded. `along`: the axis of a further vector.
void add_gradient_prologue(DeviceCheck& t, int along = 1) {
  const MapProgram epilogue = std::exchange(t.region.map, {});
  const Shape space = t.region.map.space = t.region.contraction.b_shape;
  const auto vector = [&](int d) {
    Shape shape{1, 1, 1, 1};
    shape[d] = space[d];
    return t.load(t.leaf(F, shape));
  };
  int value = t.compute(Op::Cast, F, t.accumulator(BF));
  value = t.compute(Op::Mul, F, t.compute(Op::Sub, F, value, vector(1)), vector(along));
  View view = channels_inside(space);
  view.value = t.leaf(BF, space);
  const int other = t.compute(Op::Cast, F, t.load(view.value, &view));
  value = t.compute(Op::Add, F, value, t.compute(Op::Mul, F, other, t.number(0.25)));
  t.compute(Op::Cast, BF, value);
  t.region.prologue_b = std::exchange(t.region.map, epilogue);
}

/// Checks the engine if the library has a plan.
void check_planned(DeviceCheck& t, const Engine& engine, double tolerance) {
  try {
    engine.prepare(t.region, t.values, 1);
  } catch (const NotSupported& e) {
    MESSAGE("no plan: ", std::string(e.what()));
    return;
  }
  t.check_device(engine, tolerance);
}

/// An engine in one of its configurations.
struct InOneWay final : Engine {
  InOneWay(const Engine& of, const char* which) : engine(of), way(which) {}
  const char* name() const override { return engine.name(); }
  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    return engine.claims(region, values, why);
  }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    return engine.prepare_as(way, region, values, threads);
  }
  const Engine& engine;
  const char* way;
};

}  // namespace

TEST_CASE("vendor: convolutions over images that the plan stores channels-last") {
  if (!DeviceCheck::can_run()) return;
  const cuda::Target target = cuda::target_of(0);
  const Engine &cudnn = cuda::cudnn_engine(target),
               &native = cuda::native_contraction_engine(target);
  struct Sizes {
    Shape x, w, y;
    ConvAttrs v;
  };
  const Sizes sizes[] = {{{2, 16, 9, 11}, {24, 16, 3, 3}, {2, 24, 5, 6}, {2, 2, 1, 1, 1, 1, 1}},
                         {{3, 24, 4, 5}, {16, 24, 3, 3}, {3, 16, 4, 5}, {1, 1, 1, 1, 1, 1, 1}},
                         {{2, 16, 5, 4}, {32, 16, 1, 1}, {2, 32, 3, 2}, {2, 2, 0, 0, 1, 1, 1}},
                         {{2, 48, 7, 6}, {32, 24, 5, 5}, {2, 32, 7, 6}, {1, 1, 2, 2, 1, 1, 2}},
                         {{2, 24, 9, 8}, {48, 8, 3, 3}, {2, 48, 5, 4}, {2, 2, 1, 1, 1, 1, 3}}};
  constexpr double kRounded = 1e-2, kInTf32 = 2e-3;
  for (const bool tf32 : {false, true})
    for (const Sizes& s : sizes)
      for (const Behind behind :
           {Behind::Nothing, Behind::Rounding, Behind::BiasRelu, Behind::More}) {
        CAPTURE(static_cast<int>(behind));
        CAPTURE(tf32);
        if (tf32 && behind == Behind::Rounding) continue;
        const bool keep = behind == Behind::Nothing;
        DeviceCheck all[] = {
            contraction(Op::Conv2d, s.x, channels_inside(s.x), s.w, channels_inside(s.w),
                        channels_last_shape(s.y), keep, tf32),
            contraction(Op::Conv2dInputGrad, s.y, channels_inside(s.y), s.w, channels_inside(s.w),
                        channels_last_shape(s.x), keep, tf32),
            contraction(Op::Conv2dWeightGrad, s.x, channels_inside(s.x), s.y, channels_inside(s.y),
                        s.w, keep, tf32)};
        for (DeviceCheck& t : all) {
          Contraction& c = t.region.contraction;
          c.attrs.conv = s.v;
          c.channels_last = c.op != Op::Conv2dWeightGrad;
          if (!c.channels_last && behind == Behind::BiasRelu) continue;
          add_rounded_epilogue(t, behind);
          const double tolerance = tf32 ? kInTf32 : keep ? 2e-5 : kRounded;
          if (target.cudnn) check_planned(t, cudnn, tolerance);
          t.check_device(native, tolerance);
          t.check_device(InOneWay(native, kReferenceConfiguration), tolerance);
          if (target.cudnn && c.op == Op::Conv2d && behind == Behind::BiasRelu)
            check_planned(t, InOneWay(cudnn, "fused-last-0"), tolerance);
        }
      }
}

TEST_CASE("vendor: convolutions over images of a few channels, and their filters' gradients") {
  const bool runs = DeviceCheck::can_run();
  const Engine& image = cuda::image_engine(runs ? cuda::target_of(0) : cuda::Target());
  struct Sizes {
    Shape x, w, y;
    ConvAttrs v;
  };
  // Result sizes that tiles of 8 x 32 pixels divide and others; 27, 75, 16 and 36 taps. Behind them
  // many taps, in tiles of 16 x 16: 147, and 144 in rows of an even number.
  const Sizes sizes[] = {{{2, 3, 9, 37}, {64, 3, 3, 3}, {2, 64, 9, 37}, {1, 1, 1, 1, 1, 1, 1}},
                         {{1, 3, 16, 32}, {32, 3, 5, 5}, {1, 32, 16, 32}, {1, 1, 2, 2, 1, 1, 1}},
                         {{2, 4, 11, 8}, {32, 4, 2, 2}, {2, 32, 6, 4}, {2, 2, 1, 0, 1, 1, 1}},
                         {{1, 1, 20, 70}, {64, 1, 6, 6}, {1, 64, 15, 33}, {1, 2, 0, 0, 1, 1, 1}},
                         {{2, 3, 40, 37}, {64, 3, 7, 7}, {2, 64, 20, 19}, {2, 2, 3, 3, 1, 1, 1}},
                         {{1, 4, 18, 33}, {32, 4, 6, 6}, {1, 32, 8, 15}, {2, 2, 1, 1, 1, 1, 1}}};
  for (const Sizes& s : sizes)
    for (const Behind behind :
         {Behind::Nothing, Behind::Rounding, Behind::BiasRelu, Behind::More}) {
      const bool keep = behind == Behind::Nothing;
      DeviceCheck forward = contraction(Op::Conv2d, s.x, natural(s.x), s.w, channels_inside(s.w),
                                        channels_last_shape(s.y), keep);
      forward.region.contraction.channels_last = true;
      DeviceCheck gradient = contraction(Op::Conv2dWeightGrad, s.x, natural(s.x), s.y,
                                         channels_inside(s.y), s.w, keep);
      for (DeviceCheck* t : {&forward, &gradient}) {
        t->region.contraction.attrs.conv = s.v;
        if (t == &forward || behind != Behind::BiasRelu) add_rounded_epilogue(*t, behind);
        if (t == &gradient && behind == Behind::BiasRelu) continue;
        std::string why;
        CHECK(image.claims(t->region, t->values, &why));
        CHECK(why == "");
        if (runs) t->check_device(image, keep ? 2e-5 : 1e-2);
      }
      if (behind == Behind::BiasRelu) continue;
      add_gradient_prologue(gradient);
      CHECK(image.capabilities(gradient.region, gradient.values).no_prologues == nullptr);
      CHECK(image.claims(gradient.region, gradient.values, nullptr));
      if (runs) gradient.check_device(image, keep ? 2e-5 : 1e-2);
    }
  DeviceCheck rows = contraction(Op::Conv2dWeightGrad, sizes[0].x, natural(sizes[0].x), sizes[0].y,
                                 channels_inside(sizes[0].y), sizes[0].w, true);
  rows.region.contraction.attrs.conv = sizes[0].v;
  add_gradient_prologue(rows, 2);
  std::string why;
  CHECK_FALSE(image.claims(rows.region, rows.values, &why));
  CHECK(
      why ==
      "applies only prologues whose operands have the gradient's layout or one element per filter");
  const Shape x{2, 3, 9, 37}, w{64, 3, 3, 3}, y{2, 64, 9, 37};
  DeviceCheck planes = contraction(Op::Conv2d, x, natural(x), w, channels_inside(w), y, true);
  CHECK_FALSE(image.claims(planes.region, planes.values, &why));
  CHECK(why == "runs only weight gradients, and convolutions with a channels-last result");
  planes = contraction(Op::Conv2d, x, channels_inside(x), w, channels_inside(w),
                       channels_last_shape(y), true);
  planes.region.contraction.channels_last = true;
  CHECK_FALSE(image.claims(planes.region, planes.values, &why));
  CHECK(why == "takes NCHW inputs only");
}

namespace {

/// How the first layer reads an image.
struct First {
  std::int64_t channels, height, width, side, stride;
};

/// Two residual blocks, one of them strided, behind such a layer.
template <class Layer, class Activation, class Pool>
Tensor residual_network(const Tensor& image, const First& first, Layer&& layer, Activation&& f,
                        Pool&& pool) {
  Tensor x = pool(f(layer(image, 64, first.side, first.stride)), {{3, 3}, {2, 2}, {1, 1}});
  x = pool(f(layer(f(layer(x, 64, 3, 1)), 64, 3, 1) + x), {.kernel = {2, 2}});
  return f(layer(f(layer(x, 64, 3, 2)), 64, 3, 1) + layer(x, 64, 1, 2));
}

/// Gradients with normalisation and smooth functions, so that no branch depends on a rounding.
std::vector<Tensor> smooth_step(const First& first) {
  std::int64_t seed = 0;
  const auto numbers = [&seed](const Shape& shape, double scale) {
    std::vector<float> all;
    ++seed;
    for (std::int64_t k = 0; k < shape.numel(); ++k)
      all.push_back(static_cast<float>(
          scale * std::sin(static_cast<double>(k * (2 * seed + 1) % 997 + seed))));
    return Tensor::from(all, shape);
  };
  std::vector<Tensor> weights;
  const auto layer = [&](const Tensor& x, std::int64_t filters, std::int64_t side,
                         std::int64_t stride) {
    const double terms = static_cast<double>(x.size(1) * side * side);
    weights.push_back(numbers({filters, x.size(1), side, side}, std::sqrt(2 / terms)));
    const Tensor y = conv2d(x, weights.back(), {}, {{stride, stride}, {side / 2, side / 2}});
    const Tensor scale = numbers({filters}, 0.2) + 1.0, bias = numbers({filters}, 0.1);
    weights.insert(weights.end(), {scale, bias});
    const Moments m = batch_moments(y);
    return batch_norm(y, m.mean, m.var, scale, bias, 1e-5);
  };
  const Tensor y = residual_network(
      numbers({2, first.channels, first.height, first.width}, 1), first, layer,
      [](const Tensor& x) { return tanh(x); },
      [](const Tensor& x, const Pool2dOptions& o) { return avg_pool2d(x, o); });
  const Tensor loss = sum(mean(y, {2, 3}) * numbers({2, 64}, 8));
  return grad(loss, weights);
}

/// Gradients in which all values are small integers that 16 bits represent: masks, sums where
/// branches meet, biases, pooling.
std::vector<Tensor> whole_step(const First& first) {
  std::int64_t seed = 0;
  const auto numbers = [&seed](const Shape& shape, std::int64_t every) {
    std::vector<float> all;
    ++seed;
    for (std::int64_t k = 0; k < shape.numel(); ++k) {
      const std::int64_t drawn = (k + 1) * (7919 + 2 * seed) % 10007;
      all.push_back(drawn % every != 0 ? 0.0f : drawn / every % 2 == 0 ? 1.0f : -1.0f);
    }
    return Tensor::from(all, shape);
  };
  std::vector<Tensor> weights;
  const auto layer = [&](const Tensor& x, std::int64_t filters, std::int64_t side,
                         std::int64_t stride) {
    weights.push_back(numbers({filters, x.size(1), side, side}, 61));
    weights.push_back(numbers({filters}, 2));
    return conv2d(x, weights[weights.size() - 2], weights.back(),
                  {{stride, stride}, {side / 2, side / 2}});
  };
  const Tensor y = residual_network(
      numbers({2, first.channels, first.height, first.width}, 2), first, layer,
      [](const Tensor& x) { return relu(x); },
      [](const Tensor& x, const Pool2dOptions& o) { return max_pool2d(x, o); });
  std::vector<Tensor> all = grad(sum(y * numbers(y.shape(), 5)), weights);
  all.push_back(y);
  return all;
}

}  // namespace

TEST_CASE("vendor: the step of a residual network in 16 bits or tf32 has the CPU's gradients") {
  if (!DeviceCheck::can_run()) return;
  const auto step = [] { return smooth_step({3, 12, 12, 3, 1}); };
  const Values wanted = made_on("cpu", Precision::Fp32, step);
  for (const Precision precision : {Precision::Bf16, Precision::Fp16, Precision::Tf32}) {
    const Values got = made_on("cuda", precision, step);
    CHECK(made_on("cuda", precision, step) == got);
    check_near(got, wanted, precision == Precision::Bf16 ? 0.25 : 0.04);
  }
}

TEST_CASE("vendor: the step of a residual network over integers is exact in 16 bits and tf32") {
  if (!DeviceCheck::can_run()) return;
  // Phases of the first layer that are 3, 12, 48 and 36 channels; filters that the stride divides
  // and others; images of which the last rows are read and others.
  for (const First& first :
       {First{3, 12, 12, 3, 1}, First{3, 22, 25, 7, 2}, First{3, 43, 48, 11, 4},
        First{3, 31, 29, 4, 4}, First{4, 31, 30, 5, 3}}) {
    CAPTURE(first.channels);
    CAPTURE(first.side);
    const auto step = [&first] { return whole_step(first); };
    const Values wanted = made_on("cpu", Precision::Fp32, step);
    CHECK(made_on("cuda", Precision::Fp16, step) == wanted);
    CHECK(made_on("cuda", Precision::Tf32, step) == wanted);
  }
}

TEST_CASE("vendor: the step of a residual network over integers is exact without each NHWC pass") {
  if (!DeviceCheck::can_run()) return;
  const auto step = [] { return whole_step({3, 12, 12, 3, 1}); };
  const Values wanted = made_on("cpu", Precision::Fp32, step);
  for (const char* pass :
       {"permute_filters", "pooling_nhwc", "multiply_pixels", "elementwise_nhwc"}) {
    CAPTURE(std::string(pass));
    const cases::WithoutPass off(pass);
    CHECK(made_on("cuda", Precision::Fp16, step) == wanted);
  }
}

TEST_CASE(
    "vendor: grouped convolutions between others are channels-last, with the CPU's gradients") {
  if (!DeviceCheck::can_run()) return;
  const auto step = [] {
    std::int64_t seed = 0;
    const auto numbers = [&seed](const Shape& shape, double scale) {
      std::vector<float> all;
      ++seed;
      for (std::int64_t k = 0; k < shape.numel(); ++k)
        all.push_back(static_cast<float>(
            scale * std::sin(static_cast<double>(k * (2 * seed + 1) % 997 + seed))));
      return Tensor::from(all, shape);
    };
    std::vector<Tensor> weights;
    Tensor x = numbers({2, 3, 27, 27}, 1);
    const auto layer = [&](std::int64_t filters, std::int64_t side, const Conv2dOptions& o) {
      const std::int64_t channels = x.size(1) / o.groups;
      weights.push_back(numbers({filters, channels, side, side},
                                std::sqrt(2.0 / static_cast<double>(channels * side * side))));
      weights.push_back(numbers({filters}, 0.1));
      x = tanh(conv2d(x, weights[weights.size() - 2], weights.back(), o));
    };
    layer(96, 11, {.stride = {4, 4}, .padding = {2, 2}});
    layer(128, 5, {.padding = {2, 2}, .groups = 2});
    x = avg_pool2d(local_response_norm(x, 5, 2, 0.75, 1), {.kernel = {3, 3}, .stride = {2, 2}});
    layer(64, 3, {.padding = {1, 1}});
    layer(64, 3, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2});
    return grad(sum(mean(x, {2, 3}) * numbers({2, 64}, 8)), weights);
  };
  const Values wanted = made_on("cpu", Precision::Fp32, step);
  for (const Precision precision : {Precision::Fp16, Precision::Tf32})
    check_near(made_on("cuda", precision, step), wanted, 0.04);
}

TEST_CASE("vendor: filters without assignments are kept in 16 bits in the layout of convolutions") {
  if (!DeviceCheck::can_run() || !cuda::target_of(0).cudnn) return;
  set_device("cuda");
  set_precision(Precision::Bf16);
  manual_seed(3);
  std::vector<Tensor> filters;
  const Tensor x = randn({2, 64, 6, 5}).compute();
  for (const auto& [in, out, side] : {std::array<std::int64_t, 3>{64, 64, 3},
                                      {64, 128, 1},
                                      {128, 64, 3},
                                      {64, 64, 5},
                                      {64, 8, 1}})
    filters.push_back(variable(randn({out, in, side, side}) * 0.05));
  const auto through = [&](Tensor y) {
    for (const Tensor& w : filters)
      y = tanh(conv2d(y, w, {}, {.padding = {w.size(2) / 2, w.size(2) / 2}}));
    return y;
  };
  // Compiled anew each time, because library calls are not captured on the emulated GPU.
  const auto fixed = [&] {
    return compile([&](const std::vector<Tensor>& in) { return std::vector{through(in[0])}; });
  };
  const auto scores = [&] { return fixed()({x})[0].to_vector<float>(); };
  const auto plain = [&] { return through(x).compute().to_vector<float>(); };
  CHECK(scores() == plain());
  const auto copy = [&](std::size_t k) { return filters[k].node()->leaf->rounded; };
  CHECK(copy(0).shape() == Shape{64, 9, 64});
  CHECK(copy(1).shape() == filters[1].shape());  // filters of one pixel keep their layout
  CHECK(copy(3).shape() == Shape{64, 25, 64});
  CHECK_FALSE(copy(4).defined());  // 512 numbers
  CHECK(copy(0).dtype() == DType::BFloat16);
  // The copies are made once: the program neither casts nor transposes filters.
  const std::string steps = fixed().plan({x}).steps();
  CAPTURE(steps);
  CHECK(steps.find("cast over [64, 9, 64]") == std::string::npos);
  const Node* const made = copy(0).node();
  scores();
  CHECK(copy(0).node() == made);
  // After another assignment the copy is renewed in its place.
  set_value(filters[0], randn({64, 64, 3, 3}) * 0.05);
  CHECK(scores() == plain());
  CHECK(copy(0).node() == made);
  // A step that assigns the filters rounds them itself, because they are small.
  const auto trained = compile([&](const std::vector<Tensor>& in) {
    return std::vector{assign(filters[0], filters[0] * 0.5), sum(through(in[0]))};
  });
  trained({x});
  CHECK(scores() == plain());
  set_precision(Precision::Fp32);
  set_device("cpu");
}

TEST_CASE("vendor: the cuDNN engine does not claim channels-last images that cuDNN cannot read") {
  const Shape x{2, 3, 9, 9}, w{16, 3, 3, 3}, y{2, 16, 7, 7};
  DeviceCheck t =
      contraction(Op::Conv2d, x, natural(x), w, channels_inside(w), channels_last_shape(y), true);
  t.region.contraction.channels_last = true;
  std::string why;
  cuda::Target target;
  target.cudnn = true;
  CHECK_FALSE(cuda::cudnn_engine(target).claims(t.region, t.values, &why));
  CHECK(why ==
        "takes channels-last images only with a multiple of 8 channels, in tf32 or a 16-bit type");
}
