// Which activations a GPU keeps in NHWC, checked on plans.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "planning.h"
#include "thread_time.h"

using namespace tenon;

namespace {

Tensor normalised(const Tensor& y, const Tensor& scale) {
  const Moments m = batch_moments(y);
  return batch_norm(y, m.mean, m.var, scale, scale, 1e-5);
}

// Two 1 x 1 convolutions with normalisation between them and a residual sum around them, and
// gradients.
std::vector<Tensor> pointwise_block() {
  const Tensor x = test::leaf({4, 32, 6, 6}, DType::BFloat16),
               half = test::leaf({16, 32, 1, 1}, DType::BFloat16),
               wide = test::leaf({32, 16, 1, 1}, DType::BFloat16), scale = test::leaf({16}),
               wide_scale = test::leaf({32});
  const Tensor inner = relu(normalised(conv2d(x, half), scale));
  const Tensor y = relu(normalised(conv2d(cast(inner, DType::BFloat16), wide), wide_scale) + x);
  return grad(sum(y * y), std::vector<Tensor>{x, half, wide, scale, wide_scale});
}

std::ptrdiff_t count_contractions(const Program& program, bool products) {
  return std::count_if(program.steps.begin(), program.steps.end(), [products](const Step& step) {
    const Region& r = step.region;
    return r.kind == RegionKind::Contraction && (r.contraction.op == Op::Matmul) == products;
  });
}

bool is_natural(const View& view, const Shape& space) {
  return space.rank() == 0 || view.stride[space.rank() - 1] <= 1;
}

// The number of steps that read or write an activation in another order than they iterate over it.
std::ptrdiff_t count_turns(const Program& program) {
  return std::count_if(program.steps.begin(), program.steps.end(), [](const Step& step) {
    std::vector<Region> maps = step.region.parts;
    maps.push_back(step.region);
    return std::any_of(maps.begin(), maps.end(), [](const Region& r) {
      bool all = true;
      for (const MapInstr& i : r.map.instrs)
        all = all && (i.code != MapCode::Load || is_natural(i.view, r.map.space));
      for (const MapStore& s : r.map.stores) all = all && is_natural(s.view, r.map.space);
      return !all;
    });
  });
}

}  // namespace

TEST_CASE("layout: 1 x 1 convolutions are matrix products of pixels and channels on a GPU") {
  const std::vector<Tensor> roots = pointwise_block();
  const auto gpu = test::planned(roots), cpu = test::planned(roots, {Device::Kind::Cpu});
  CAPTURE(print_steps(*gpu));
  CHECK(count_contractions(*gpu, true) == 6);
  CHECK(count_contractions(*gpu, false) == 0);
  CHECK(count_contractions(*cpu, true) == 0);
  CHECK(count_contractions(*cpu, false) == 6);
  for (const Step& step : gpu->steps) {
    const Contraction& c = step.region.contraction;
    if (step.region.kind != RegionKind::Contraction || c.a_shape[0] != 4 * 36) continue;
    CHECK(c.a.stride[1] == 1);
    CHECK(c.a.stride[0] == c.a_shape[1]);
  }
}

TEST_CASE("layout: images are transposed where they enter and leave, and nowhere between") {
  const auto gpu = test::planned(pointwise_block());
  CAPTURE(print_steps(*gpu));
  CHECK(count_turns(*gpu) == 2);
}

TEST_CASE("layout: other convolutions, and full precision, keep NCHW") {
  const Tensor x = test::leaf({2, 16, 6, 6}, DType::BFloat16);
  for (const Shape& w : {Shape{16, 16, 3, 3}, Shape{12, 16, 1, 1}, Shape{8, 16, 1, 1}}) {
    const auto gpu = test::planned({conv2d(x, test::leaf(w, DType::BFloat16))});
    CHECK(count_contractions(*gpu, false) == 1);
  }
  const auto full = test::planned({conv2d(test::leaf({2, 16, 6, 6}), test::leaf({16, 16, 1, 1}))});
  CHECK(count_contractions(*full, false) == 1);
}

namespace {

// Basic blocks of a residual network, with gradients: every convolution reads and writes
// activations.
std::vector<Tensor> residual_blocks(int blocks, std::int64_t channels, std::int64_t images = 4,
                                    Precision precision = Precision::Bf16) {
  std::vector<Tensor> leaves{test::leaf({images, channels, 8, 8})};
  const PrecisionScope scope(precision);
  Tensor x = leaves[0];
  for (int k = 0; k < 2 * blocks; ++k) {
    leaves.push_back(test::leaf({channels, channels, 3, 3}));
    leaves.push_back(test::leaf({channels}));
    const Tensor y =
        normalised(conv2d(x, leaves[leaves.size() - 2], {}, {{1, 1}, {1, 1}}), leaves.back());
    x = k % 2 == 0 ? relu(y) : relu(y + x);
  }
  return grad(sum(x * x), leaves);
}

const test::Settings kWithCudnn{.kind = Device::Kind::Cuda, .convolves_channels_last = true};

std::int64_t largest_bytes(const Program& program, DType dtype) {
  std::int64_t most = 0;
  for (const Value& v : program.values)
    if (v.kind == Value::Kind::Arena && v.dtype == dtype) most = std::max(most, v.bytes);
  return most;
}

}  // namespace

TEST_CASE("layout: activations of convolutions with larger filters are NHWC in 16 bits and tf32") {
  for (const Precision precision : {Precision::Bf16, Precision::Tf32}) {
    const bool rounds = precision == Precision::Bf16;
    const auto gpu = test::planned(residual_blocks(3, 64, 4, precision), kWithCudnn);
    CAPTURE(print_steps(*gpu));
    int last = 0, wide = 0;
    for (const Step& step : gpu->steps) {
      const Region& r = step.region;
      if (r.kind != RegionKind::Contraction) continue;
      const Contraction& c = r.contraction;
      CHECK(c.a.stride[1] == 1);
      if (c.op == Op::Conv2dWeightGrad) continue;
      ++last;
      CHECK(c.channels_last);
      CHECK(c.b.stride[1] == 1);
      wide += c.out != kNoValue;
      for (const MapStore& store : r.map.stores)
        if (rounds)
          CHECK(gpu->values[static_cast<std::size_t>(store.view.value)].dtype == DType::BFloat16);
    }
    CHECK(last == 12);
    if (rounds) CHECK(wide == 1);  // the requested gradient
    // Transposed at the input (the first activation) and at the output (its gradient); filters too.
    CHECK(count_turns(*gpu) <= 3);
  }
}

TEST_CASE("layout: without cuDNN, or with few convolutions or channels, activations stay NCHW") {
  struct Network {
    int blocks;
    std::int64_t channels;
    test::Settings settings;
  };
  for (const auto& [blocks, channels, settings] :
       {Network{3, 64, {}}, Network{1, 64, kWithCudnn}, Network{3, 32, kWithCudnn},
        Network{3, 64, {Device::Kind::Cpu}}}) {
    const auto plan = test::planned(residual_blocks(blocks, channels), settings);
    for (const Step& step : plan->steps) CHECK_FALSE(step.region.contraction.channels_last);
  }
  const auto full = test::planned(residual_blocks(3, 64, 4, Precision::Fp32), kWithCudnn);
  for (const Step& step : full->steps) CHECK_FALSE(step.region.contraction.channels_last);
}

TEST_CASE("layout: max pooling between such convolutions works in NHWC and 16 bits") {
  std::vector<Tensor> leaves{test::leaf({2, 64, 16, 16})};
  const PrecisionScope bf16(Precision::Bf16);
  Tensor x = leaves[0];
  for (int k = 0; k < 4; ++k) {
    leaves.push_back(test::leaf({64, 64, 3, 3}));
    leaves.push_back(test::leaf({64}));
    const std::size_t last = leaves.size() - 1;
    x = relu(conv2d(x, leaves[last - 1], leaves[last], {{1, 1}, {1, 1}}));
    if (k % 2 == 1) x = max_pool2d(x, {.kernel = {2, 2}});
  }
  const auto gpu = test::planned(grad(sum(x * x), leaves), kWithCudnn);
  CAPTURE(print_steps(*gpu));
  int pools = 0;
  std::vector<ValueId> images, numbers;
  for (const Step& step : gpu->steps) {
    const Opaque& pool = step.region.opaque;
    if (step.region.kind != RegionKind::Opaque) {
      // No activation is kept for the gradient of its pooling.
      for (const ValueId image : images)
        CHECK(std::count(step.region.reads.begin(), step.region.reads.end(), image) == 0);
      continue;
    }
    ++pools;
    CHECK(pool.channels_last);
    CHECK(gpu->values[static_cast<std::size_t>(pool.out())].dtype == DType::BFloat16);
    if (pool.op == Op::MaxPool2d) {
      images.push_back(pool.inputs[0]);
      REQUIRE(pool.outs.size() == 2);
      numbers.push_back(pool.outs[1]);
      CHECK(gpu->values[static_cast<std::size_t>(numbers.back())].dtype == DType::UInt8);
    } else {
      CHECK(pool.inputs[0] == numbers.back());
      numbers.pop_back();
    }
  }
  CHECK(pools == 4);
  CHECK(numbers.empty());
}

TEST_CASE("layout: an intermediate pooling stores indices of maxima only for a gradient") {
  const Tensor x = test::leaf({2, 64, 16, 16}), g = test::leaf({2, 64, 8, 8});
  const PrecisionScope bf16(Precision::Bf16);
  Tensor y = x;
  for (int k = 0; k < 3; ++k)
    y = relu(conv2d(y, test::leaf({64, 64, 3, 3}), Tensor(), {{1, 1}, {1, 1}}));
  const Tensor pooled = max_pool2d(y, {.kernel = {2, 2}});
  const auto gpu = test::planned({grad(sum(pooled * g), y)}, kWithCudnn);
  CAPTURE(print_steps(*gpu));
  int pools = 0;
  for (const Step& step : gpu->steps) {
    const Opaque& pool = step.region.opaque;
    if (step.region.kind != RegionKind::Opaque) continue;
    ++pools;
    if (pool.op == Op::MaxPool2d) CHECK(pool.outs[0] == kNoValue);
  }
  CHECK(pools == 2);
}

// A small AlexNet of 2012: groups, and normalisation between ReLUs and pooling.
TEST_CASE("layout: local response normalisation in NHWC is one kernel, forward and backward") {
  std::vector<Tensor> weights;
  const PrecisionScope bf16(Precision::Bf16);
  Tensor x = test::leaf({2, 64, 16, 16});
  for (const std::int64_t groups : {1, 2, 1}) {
    weights.push_back(test::leaf({64, 64 / groups, 5, 5}));
    weights.push_back(test::leaf({64}));
    x = relu(conv2d(x, weights[weights.size() - 2], weights.back(),
                    {.padding = {2, 2}, .groups = groups}));
    if (groups == 2) x = max_pool2d(local_response_norm(x, 5), {.kernel = {2, 2}});
  }
  const auto gpu = test::planned(grad(sum(x * x), weights), kWithCudnn);
  CAPTURE(print_steps(*gpu));
  int norms = 0;
  for (const Step& step : gpu->steps) {
    const Region& r = step.region;
    if (r.kind == RegionKind::Contraction && r.contraction.op == Op::Conv2d)
      CHECK(r.contraction.channels_last);
    if (r.kind != RegionKind::Opaque || kind_of(r.opaque.op) == OpKind::Movement) continue;
    norms += has_trait(r.opaque.op, kAcrossChannels);
    CHECK(r.opaque.channels_last);
    CHECK(gpu->values[static_cast<std::size_t>(r.opaque.out())].dtype == DType::BFloat16);
  }
  CHECK(norms == 2);
  // Without the library: one kernel too, in NCHW; on the CPU written in other ops.
  for (const Device::Kind kind : {Device::Kind::Cuda, Device::Kind::Cpu}) {
    norms = 0;
    const Tensor y = local_response_norm(test::leaf({2, 8, 3, 3}), 5);
    const auto plan = test::planned({y}, {kind});
    CAPTURE(print_steps(*plan));
    for (const Step& step : plan->steps)
      norms += step.region.kind == RegionKind::Opaque &&
               has_trait(step.region.opaque.op, kAcrossChannels);
    CHECK(norms == (kind == Device::Kind::Cuda ? 1 : 0));
  }
}

// The phases of a stride become channels: 11 x 11 filters in steps of 4 become 3 x 3 filters over
// 48 channels.
TEST_CASE("layout: an image of three channels is written once, in padded NHWC") {
  struct First {
    std::int64_t channels, side, stride, phases, taps;
  };
  // The last two are read in NCHW.
  for (const First& first : {First{3, 11, 4, 48, 3}, First{4, 5, 3, 40, 2}, First{3, 7, 2, 3, 7},
                             First{3, 3, 1, 3, 3}}) {
    const auto [channels, side, stride, phases, taps] = first;
    CAPTURE(first.side);
    const PrecisionScope bf16(Precision::Bf16);
    const Tensor image = test::leaf({2, channels, 43, 47});
    std::vector<Tensor> weights{test::leaf({64, channels, side, side})};
    Tensor x = relu(conv2d(image, weights[0], {}, {{stride, stride}, {1, 1}}));
    for (int k = 0; k < 3; ++k) {
      weights.push_back(test::leaf({64, 64, 3, 3}));
      x = relu(conv2d(x, weights.back(), {}, {{1, 1}, {1, 1}}));
    }
    const auto gpu = test::planned(grad(sum(x * x), weights), kWithCudnn);
    CAPTURE(print_steps(*gpu));
    std::vector<ValueId> images;
    for (const Step& step : gpu->steps) {
      const Contraction& c = step.region.contraction;
      if (step.region.kind != RegionKind::Contraction || c.op == Op::Conv2dInputGrad) continue;
      if (c.a_shape[1] == 64) continue;
      CHECK(c.a_shape[1] == phases);
      CHECK((c.op == Op::Conv2d ? c.b_shape : c.out_shape)[3] == taps);
      CHECK(gpu->values[static_cast<std::size_t>(c.a.value)].dtype == DType::BFloat16);
      CHECK((c.a.stride[1] == 1) == (phases > channels));
      images.push_back(c.a.value);
    }
    REQUIRE(images.size() == 2);
    CHECK(images[0] == images[1]);
  }
}

// The network for CIFAR-10 of cuda-convnet. 3 x 3 filters over as few channels stay in NCHW.
TEST_CASE("layout: large filters compensate for few channels") {
  for (const std::int64_t side : {5, 3}) {
    const PrecisionScope bf16(Precision::Bf16);
    std::vector<Tensor> weights;
    Tensor x = test::leaf({2, 3, 16, 16});
    for (const std::int64_t filters : {32, 32, 64}) {
      weights.push_back(test::leaf({filters, x.size(1), side, side}));
      x = relu(conv2d(x, weights.back(), {}, {{1, 1}, {side / 2, side / 2}}));
    }
    const auto gpu = test::planned(grad(sum(x * x), weights), kWithCudnn);
    CAPTURE(print_steps(*gpu));
    int last = 0;
    for (const Step& step : gpu->steps) last += step.region.contraction.channels_last;
    CHECK(last == (side == 5 ? 5 : 0));
  }
}

TEST_CASE("layout: weight gradients are rounded to bfloat16 before use, but not to float16") {
  for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
    const PrecisionScope scope(precision);
    std::vector<Tensor> weights;
    Tensor x = test::leaf({2, 64, 8, 8});
    for (int k = 0; k < 4; ++k) {
      weights.push_back(test::leaf({64, 64, 3, 3}));
      x = relu(conv2d(x, weights.back(), {}, {{1, 1}, {1, 1}}));
    }
    std::vector<Tensor> updated = grad(sum(x * x), weights);
    for (std::size_t k = 0; k < weights.size(); ++k) updated[k] = weights[k] - updated[k] * 0.1;
    const auto gpu = test::planned(updated, kWithCudnn);
    CAPTURE(print_steps(*gpu));
    int rounded = 0;
    for (const Step& step : gpu->steps) {
      const Region& r = step.region;
      if (r.kind != RegionKind::Contraction || r.contraction.op != Op::Conv2dWeightGrad) continue;
      for (const MapInstr& instr : r.map.instrs)
        rounded +=
            instr.op == Op::Cast && instr.dtype == DType::BFloat16 &&
            r.map.instrs[static_cast<std::size_t>(instr.args[0])].code == MapCode::Accumulator;
    }
    CHECK(rounded == (precision == Precision::Bf16 ? 4 : 0));
  }
}

TEST_CASE("layout: a normalisation's gradient is two kernels over 16-bit activations") {
  const auto gpu = test::planned(residual_blocks(3, 64, 32), kWithCudnn);
  CAPTURE(print_steps(*gpu));
  constexpr std::int64_t kImage = 32 * 64 * 8 * 8;
  int kernels = 0;
  for (const Step& step : gpu->steps) {
    const Region& r = step.region;
    if (r.kind == RegionKind::Contraction || r.kind == RegionKind::Opaque) continue;
    kernels += std::any_of(r.reads.begin(), r.reads.end(), [&](ValueId id) {
      return gpu->values[static_cast<std::size_t>(id)].shape.numel() == kImage;
    });
  }
  // For each layer: two kernels for the moments, one that applies them, two for the gradient; plus
  // the ends.
  CHECK(kernels <= 6 * 5 + 6);
  // The gradient behind the last block stays float32, because no convolution computed it.
  CHECK(largest_bytes(*gpu, DType::BFloat16) == 2 * kImage);
}

TEST_CASE("layout: planning of NHWC takes linear time") {
  const std::vector<Tensor> one = residual_blocks(6, 64), four = residual_blocks(24, 64);
  test::InTurn times;
  for (int k = 0; k < test::kMostAttempts; ++k) {
    times.attempt([&] { test::planned(one, kWithCudnn); },
                  [&] { test::planned(four, kWithCudnn); });
    if (k > 1 && times.ratio() < 10) break;
  }
  CHECK(times.ratio() < 10);  // 16 if all pairs are compared
}

TEST_CASE("layout: the gradient of a strided 1 x 1 convolution is spread in NHWC") {
  for (const std::int64_t side : {16, 15}) {
    CAPTURE(side);
    const auto weights = [](std::int64_t filters, std::int64_t taps) {
      return test::leaf({filters, 64, taps, taps});
    };
    const PrecisionScope scope(Precision::Bf16);
    Tensor x = test::leaf({4, 64, side, side});
    std::vector<Tensor> all;
    for (int k = 0; k < 4; ++k) {
      all.push_back(weights(64, 3));
      x = relu(conv2d(x, all.back(), {}, {.padding = {1, 1}}));
    }
    all.push_back(weights(64, 1));
    all.push_back(weights(64, 1));
    const Tensor y = relu(conv2d(x, all[4])), z = relu(conv2d(x, all[5], {}, {.stride = {2, 2}}));
    const auto p = test::planned(grad(sum(y * y) + sum(z * z), all),
                                 {.kind = Device::Kind::Cuda, .convolves_channels_last = true});
    CAPTURE(print_steps(*p));
    CHECK(count_turns(*p) == 2);  // of the input image, and of the pixels that the stride selects
    CHECK(std::none_of(p->steps.begin(), p->steps.end(), [](const Step& step) {
      const Contraction& c = step.region.contraction;
      return step.region.kind == RegionKind::Contraction && c.op == Op::Conv2dInputGrad &&
             c.attrs.conv.stride_h > 1;
    }));
  }
}

TEST_CASE("layout: a requested gradient is not rounded where pixels are spread") {
  const PrecisionScope scope(Precision::Bf16);
  const Tensor x = test::leaf({4, 64, 16, 16});
  std::vector<Tensor> weights;
  const auto filters = [&weights](std::int64_t taps) {
    return weights.emplace_back(test::leaf({64, 64, taps, taps}));
  };
  Tensor y = relu(conv2d(x, filters(1), {}, {.stride = {2, 2}}));
  for (int k = 0; k < 4; ++k) y = relu(conv2d(y, filters(3), {}, {.padding = {1, 1}}));
  const auto p = test::planned(grad(sum(y * y), std::vector{x}),
                               {.kind = Device::Kind::Cuda, .convolves_channels_last = true});
  CAPTURE(print_steps(*p));
  CHECK(std::any_of(p->steps.begin(), p->steps.end(), [](const Step& step) {
    const Contraction& c = step.region.contraction;
    return step.region.kind == RegionKind::Contraction && c.op == Op::Conv2dInputGrad &&
           c.attrs.conv.stride_h == 2 && c.dtype == DType::Float32;
  }));
}

// Convolutions that cover their whole input become products during planning and no longer count.
TEST_CASE("layout: all passes use the layout decided on the user's graph") {
  const DType half = DType::BFloat16;
  Tensor y = test::leaf({4, 64, 8, 8}, half);
  for (int layer = 0; layer < 3; ++layer)
    y = relu(conv2d(y, test::leaf({64, 64, 3, 3}, half), {}, {.padding = {1, 1}}));
  std::vector<Tensor> roots{y};
  for (const std::int64_t kernel : {3, 3, 8, 8})
    roots.push_back(conv2d(test::leaf({4, 3, 8, 8}), test::leaf({5, 3, kernel, kernel})));
  const auto p = test::planned(roots, {.convolves_channels_last = true});
  for (const Step& step : p->steps) CHECK_FALSE(step.region.contraction.channels_last);
  roots.pop_back();
  const auto most = test::planned(roots, {.convolves_channels_last = true});
  CHECK(std::any_of(most->steps.begin(), most->steps.end(),
                    [](const Step& step) { return step.region.contraction.channels_last; }));
}

TEST_CASE("layout: on a GPU attention with more heads than grid blocks is decomposed") {
  const auto launches = [](std::int64_t batch) {
    const Tensor q = test::leaf({batch, 8, 2, 8});
    const auto gpu = test::planned({scaled_dot_product_attention(q, q, q)}, {Device::Kind::Cuda});
    return std::count_if(gpu->steps.begin(), gpu->steps.end(), [](const Step& step) {
      return step.region.kind == RegionKind::Opaque && step.region.opaque.op == Op::Attention;
    });
  };
  CHECK(launches(8191) == 1);
  CHECK(launches(8192) == 0);
}
