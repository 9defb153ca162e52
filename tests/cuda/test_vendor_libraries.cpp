// The vendor engines with their libraries, on a real GPU, or on the emulated one with the libraries
// of tests/cuda/vendor.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <tenon/error.h>

#include "../cpu/region_builders.h"
#include "check_process.h"
#include "cuda/engines/vendor/cublaslt_engine.h"
#include "cuda/engines/vendor/cudnn_api.h"
#include "cuda/engines/vendor/cudnn_engine.h"
#include "cuda/engines/vendor/vendor_parts.h"
#include "device_check.h"
#include "plan/regions/groups.h"
#include "vendor_regions.h"

using namespace tenon;
using namespace tenon::test::vendor;
using test::DeviceCheck;
using test::natural;
using test::transposed;

namespace {

/// The target of a GPU with that library.
const cuda::Target* gpu_with(bool cuda::Target::*library) {
  if (!DeviceCheck::can_run()) return nullptr;
  static const cuda::Target target = cuda::target_of(0);
  if (!(target.*library)) {
    MESSAGE("skipped: no vendor library");
    return nullptr;
  }
  return &target;
}

constexpr Arithmetic kAll[] = {kFp32,
                               {F, F, F, true, 2e-3},
                               {F, BF, F, false, 2e-5},
                               {F, H, F, false, 2e-3},
                               {BF, BF, F, false, 2e-5},
                               {H, H, H, false, 2e-3},
                               {D, D, D, false, 1e-12}};

/// True if the library computes the epilogue; otherwise a kernel of ours follows the product.
bool is_fused(const Engine& engine, const DeviceCheck& t) {
  return engine.prepare(t.region, t.values, 0)->source().find("struct Epilogue") ==
         std::string::npos;
}

}  // namespace

TEST_CASE("vendor: cuBLASLt against the reference engine") {
  const cuda::Target* target = gpu_with(&cuda::Target::cublaslt);
  if (target == nullptr) return;
  const Engine& engine = cuda::cublaslt_engine(*target);
  const std::int64_t sizes[][3] = {{1, 1, 1}, {64, 10, 84}, {33, 17, 65}, {128, 96, 160}};
  for (const Arithmetic& how : kAll)
    for (const auto& size : sizes)
      for (const bool turn_a : {false, true})
        for (const bool turn_b : {false, true}) {
          const std::int64_t m = size[0], n = size[1], k = size[2];
          CAPTURE(m);
          CAPTURE(static_cast<int>(how.compute));
          DeviceCheck t =
              contraction(Op::Matmul, {m, k}, turn_a ? transposed({m, k}) : natural({m, k}), {k, n},
                          turn_b ? transposed({k, n}) : natural({k, n}), {m, n}, how);
          t.check_device(engine, how.tolerance);
        }
}

TEST_CASE("vendor: cuBLASLt's batches and epilogues") {
  const cuda::Target* target = gpu_with(&cuda::Target::cublaslt);
  if (target == nullptr) return;
  const Engine& engine = cuda::cublaslt_engine(*target);
  const Shape a{3, 20, 24}, b{3, 24, 40}, out{3, 20, 40};
  for (const Arithmetic& how : {kFp32, kAll[2]}) {
    DeviceCheck batches = contraction(Op::Matmul, a, natural(a), b, natural(b), out, how);
    batches.check_device(engine, how.tolerance);
    View same = natural(b);
    same.stride[0] = 0;
    DeviceCheck rows = contraction(Op::Matmul, a, natural(a), b, same, out, how);
    rows.check_device(engine, how.tolerance);
    for (const bool relu : {false, true})
      for (const int axis : {1, 2}) {
        DeviceCheck t = product(50, 36, 70, how, false);
        add_bias_relu(t, {1, 50, 36}, axis, relu);
        t.check_device(engine, how.tolerance);
      }
    DeviceCheck t = product(50, 36, 70, how);
    add_epilogue(t, {1, 50, 36});
    t.check_device(engine, how.tolerance);
  }
}

TEST_CASE("vendor: cuBLASLt's biases and GELU in 16 bits") {
  const cuda::Target* target = gpu_with(&cuda::Target::cublaslt);
  if (target == nullptr) return;
  const Engine& engine = cuda::cublaslt_engine(*target);
  for (const DType to : {BF, H})
    for (const std::int64_t n : {40, 36})
      for (const Input input : {Input::Exact, Input::Rounded, Input::Stored}) {
        CAPTURE(n);
        CAPTURE(static_cast<int>(input));
        const Arithmetic how{to, to, F, false, 2e-3};
        DeviceCheck t = product(50, n, 72, how, false);
        add_gelu(t, {1, 50, n}, to, input);
        CHECK(is_fused(engine, t) == (to == BF && n == 40));
        t.check_device(engine, how.tolerance);
        DeviceCheck back = product(50, n, 72, how, false);
        add_gelu_gradient(back, {1, 50, n}, to);
        CHECK(is_fused(engine, back) == (n == 40));
        back.check_device(engine, how.tolerance);
        DeviceCheck biased = product(50, n, 72, how, false);
        biased.region.contraction.has_epilogue = true;
        biased.region.map.space = {1, 50, n};
        const int bias = biased.load(biased.leaf(F, {1, 1, n}));
        biased.store(
            biased.compute(Op::Cast, to, biased.compute(Op::Add, F, biased.accumulator(), bias)));
        CHECK(is_fused(engine, biased) == (to == BF));
        biased.check_device(engine, how.tolerance);
      }
}

TEST_CASE("vendor: without a GELU epilogue in cuBLASLt, a kernel of ours follows the product") {
  const cuda::Target* target = gpu_with(&cuda::Target::cublaslt);
  if (target == nullptr) return;
  const Engine& engine = cuda::cublaslt_engine(*target);
  const Arithmetic how{BF, BF, F, false, 2e-3};
  DeviceCheck back = product(50, 40, 72, how, false);
  add_gelu_gradient(back, {1, 50, 40}, BF);
  if (!is_fused(engine, back)) return;
  setenv("TENON_FAKE_OLD_CUBLASLT", "1", 1);
  const bool heeded = !is_fused(engine, back);
  for (const Input input : {Input::Exact, Input::Rounded, Input::Stored}) {
    if (!heeded) break;  // a real library
    CAPTURE(static_cast<int>(input));
    DeviceCheck t = product(50, 40, 72, how, false);
    add_gelu(t, {1, 50, 40}, BF, input);
    CHECK_FALSE(is_fused(engine, t));
    t.check_device(engine, how.tolerance);
  }
  if (heeded) back.check_device(engine, how.tolerance);
  unsetenv("TENON_FAKE_OLD_CUBLASLT");
}

TEST_CASE("vendor: a ReLU that the library fuses keeps NaN") {
  const cuda::Target* target = gpu_with(&cuda::Target::cublaslt);
  if (target == nullptr) return;
  DeviceCheck t = product(8, 8, 8, kFp32, false);
  add_bias_relu(t, {1, 8, 8}, 2, true);
  const float nan = NAN;
  std::memcpy(t.initial(t.region.contraction.a.value), &nan, sizeof nan);
  t.check_device(cuda::cublaslt_engine(*target));
}

TEST_CASE("vendor: 1x1 convolutions by cuBLASLt") {
  const cuda::Target* target = gpu_with(&cuda::Target::cublaslt);
  if (target == nullptr) return;
  const Engine& engine = cuda::cublaslt_engine(*target);
  const Shape x{3, 16, 4, 5}, w{24, 16, 1, 1}, y{3, 24, 4, 5};
  for (const Arithmetic& how : kAll)
    for (const bool epilogue : {false, true}) {
      if (epilogue && how.result != F) continue;
      DeviceCheck forward =
          contraction(Op::Conv2d, x, natural(x), w, natural(w), y, how, !epilogue);
      DeviceCheck back =
          contraction(Op::Conv2dInputGrad, y, natural(y), w, natural(w), x, how, !epilogue);
      if (epilogue) {
        add_epilogue(forward, {3, 24, 20});
        add_bias_relu(back, {3, 16, 20}, 1, true);
      }
      forward.check_device(engine, how.tolerance);
      back.check_device(engine, how.tolerance);
    }
  const Shape odd{3, 16, 3, 3}, odd_y{3, 24, 3, 3};
  DeviceCheck t = contraction(Op::Conv2d, odd, natural(odd), w, natural(w), odd_y, kFp32);
  std::string why;
  CHECK_FALSE(engine.claims(t.region, t.values, &why));
  CHECK(why == "takes convolutions only if each channel of an image is a multiple of 8 bytes");
}

TEST_CASE("vendor: cuDNN against the reference engine") {
  const cuda::Target* target = gpu_with(&cuda::Target::cudnn);
  if (target == nullptr) return;
  const Engine& engine = cuda::cudnn_engine(*target);
  struct Sizes {
    Shape x, w, y;
    ConvAttrs v;
  };
  const Sizes sizes[] = {{{4, 1, 28, 28}, {6, 1, 5, 5}, {4, 6, 28, 28}, {1, 1, 2, 2, 1, 1, 1}},
                         {{2, 8, 9, 11}, {16, 8, 3, 3}, {2, 16, 5, 6}, {2, 2, 1, 1, 1, 1, 1}},
                         {{2, 8, 9, 11}, {8, 4, 3, 3}, {2, 8, 5, 7}, {1, 1, 0, 0, 2, 2, 2}},
                         {{3, 32, 14, 14}, {64, 32, 1, 1}, {3, 64, 14, 14}, {}}};
  int planned = 0;
  const auto check = [&](DeviceCheck& t, const ConvAttrs& v, const Arithmetic& how) {
    t.region.contraction.attrs.conv = v;
    try {
      engine.prepare(t.region, t.values, 1);
    } catch (const NotSupported& e) {
      say_no_plan(how, e);
      return;
    }
    ++planned;
    t.check_device(engine, how.tolerance);
  };
  for (const Arithmetic& how : kAll)
    for (const Sizes& s : sizes) {
      DeviceCheck y = contraction(Op::Conv2d, s.x, natural(s.x), s.w, natural(s.w), s.y, how);
      check(y, s.v, how);
      DeviceCheck x =
          contraction(Op::Conv2dInputGrad, s.y, natural(s.y), s.w, natural(s.w), s.x, how);
      check(x, s.v, how);
      DeviceCheck w =
          contraction(Op::Conv2dWeightGrad, s.x, natural(s.x), s.y, natural(s.y), s.w, how);
      check(w, s.v, how);
      if (how.result != F) continue;
      DeviceCheck fused =
          contraction(Op::Conv2d, s.x, natural(s.x), s.w, natural(s.w), s.y, how, false);
      add_bias_relu(fused, {s.y[0], s.y[1], s.y[2] * s.y[3]}, 1, true);
      check(fused, s.v, how);
    }
  CHECK(planned > 0);
}

namespace {

/// Number of plans that the library has made; -1 for a real library.
int plans_made() {
  const auto count = reinterpret_cast<int (*)()>(dlsym(
      dlopen(cuda::loaded_cudnn().path.c_str(), RTLD_NOW | RTLD_NOLOAD), "tenon_fake_cudnn_plans"));
  return count == nullptr ? -1 : count();
}

/// Announces convolutions of x with `more` rows to the engine.
DeviceCheck expected(const Engine& engine, std::int64_t more, const std::string& configuration) {
  const Shape x{2, 8, 13 + more, 13}, w{24, 8, 3, 3}, y{2, 24, 11 + more, 11};
  DeviceCheck t = contraction(Op::Conv2d, x, natural(x), w, natural(w), y, kFp32);
  engine.announce(configuration, t.region, t.values);
  return t;
}

void wait_for_plans(int count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (plans_made() < count && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(plans_made() == count);
}

}  // namespace

TEST_CASE("vendor: cuDNN plans what is announced before it is requested") {
  const cuda::Target* target = gpu_with(&cuda::Target::cudnn);
  if (target == nullptr || plans_made() < 0) {
    MESSAGE("skipped: needs the fake cuDNN");
    return;
  }
  const Engine& engine = cuda::cudnn_engine(*target);
  const int before = plans_made();
  expected(engine, 0, "no such configuration");
  expected(engine, 0, "5000");
  const DeviceCheck t = expected(engine, 0, "");
  wait_for_plans(before + 1);
  engine.prepare(t.region, t.values, 1);
  CHECK(plans_made() == before + 1);
  engine.prepare(t.region, t.values, 1);  // the first plan was destroyed with its kernel
  CHECK(plans_made() == before + 2);
  // Of many plans that were never requested, the latest are kept.
  std::vector<DeviceCheck> many;
  for (std::int64_t k = 1; k <= 80; ++k) {
    many.push_back(expected(engine, k, ""));
    wait_for_plans(before + 2 + static_cast<int>(k));
  }
  engine.prepare(many.back().region, many.back().values, 1);
  CHECK(plans_made() == before + 82);
  engine.prepare(many.front().region, many.front().values, 1);
  CHECK(plans_made() == before + 83);
}

// Run in a child only.
TEST_CASE("vendor: (a process that ends while it expects plans)" * doctest::skip()) {
  const cuda::Target* target = gpu_with(&cuda::Target::cudnn);
  if (target == nullptr) return;
  for (std::int64_t k = 0; k < 20; ++k) expected(cuda::cudnn_engine(*target), k, "");
  wait_for_plans(2);
}

TEST_CASE("vendor: a process may end while cuDNN makes plans") {
  if (gpu_with(&cuda::Target::cudnn) == nullptr || plans_made() < 0) {
    MESSAGE("skipped: needs the fake cuDNN");
    return;
  }
  test::check_process("TENON_FAKE_CUDNN_MS=20 timeout 50", "vendor: (a process that ends while*");
}

namespace {

/// cuDNN's engine in one of its configurations.
struct CudnnInWay final : public Engine {
  CudnnInWay(const Engine& inner, const char* which) : engine(inner), way(which) {}
  const char* name() const override { return "cudnn"; }
  bool claims(const Region&, std::span<const Value>, std::string*) const override { return true; }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    return engine.prepare_as(way, region, values, threads);
  }
  const Engine& engine;
  const char* way;
};

}  // namespace

TEST_CASE("vendor: cuDNN with channels-last images transposed around it") {
  const cuda::Target* target = gpu_with(&cuda::Target::cudnn);
  if (target == nullptr) return;
  const Engine& cudnn = cuda::cudnn_engine(*target);
  const CudnnInWay engine(cudnn, "last-0");
  struct Sizes {
    Shape x, w, y;
    ConvAttrs v;
  };
  const Sizes sizes[] = {{{2, 8, 9, 11}, {40, 8, 3, 3}, {2, 40, 5, 6}, {2, 2, 1, 1, 1, 1, 1}},
                         {{3, 40, 7, 7}, {48, 40, 1, 1}, {3, 48, 7, 7}, {}},
                         {{2, 16, 3, 3}, {8, 16, 3, 3}, {2, 8, 1, 1}, {}}};
  int planned = 0;
  for (const Arithmetic& how : kAll)
    for (const Sizes& s : sizes)
      for (const bool epilogue : {false, true}) {
        if (epilogue && how.result != F) continue;
        DeviceCheck all[] = {
            contraction(Op::Conv2d, s.x, natural(s.x), s.w, natural(s.w), s.y, how, !epilogue),
            contraction(Op::Conv2dInputGrad, s.y, natural(s.y), s.w, natural(s.w), s.x, how,
                        !epilogue),
            contraction(Op::Conv2dWeightGrad, s.x, natural(s.x), s.y, natural(s.y), s.w, how,
                        !epilogue)};
        for (DeviceCheck& t : all) {
          const Contraction& c = t.region.contraction;
          t.region.contraction.attrs.conv = s.v;
          if (epilogue) add_epilogue(t, epilogue_space(c.op, c.out_shape, c.channels_last));
          const auto names = cudnn.configurations(t.region, t.values);
          if (std::find(names.begin(), names.end(), "last-0") == names.end()) {
            CHECK_THROWS_AS(engine.prepare(t.region, t.values, 1), NotSupported);
            continue;
          }
          try {
            engine.prepare(t.region, t.values, 1);
          } catch (const NotSupported& e) {
            say_no_plan(how, e);
            continue;
          }
          ++planned;
          t.check_device(engine, how.tolerance);
        }
      }
  CHECK(planned > 0);
}

namespace {

/// A view [N, C, H, W] whose axes have the memory order `order`, innermost first.
View in_order(const Shape& s, const int (&order)[4]) {
  View view = natural(s);
  std::int64_t step = 1;
  for (const int a : order) {
    view.stride[a] = step;
    step *= s[a];
  }
  return view;
}

}  // namespace

// The planner gives filters the layout of the products that read them. A library that takes them
// for [K, C, R, S] computes wrong numbers of the right shape.
TEST_CASE("vendor: cuDNN reads operands in their memory order, or does not claim them") {
  const cuda::Target* target = gpu_with(&cuda::Target::cudnn);
  if (target == nullptr) return;
  const Engine& cudnn = cuda::cudnn_engine(*target);
  const int orders[][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}, {0, 3, 2, 1}};
  const int unknown[4] = {2, 3, 1, 0};
  // As many filters as channels, so that only the numbers distinguish the axes.
  const Shape x{2, 16, 9, 11}, w{16, 16, 3, 3}, y{2, 16, 9, 11};
  const ConvAttrs attrs{1, 1, 1, 1, 1, 1, 1};
  int planned = 0;
  for (const Arithmetic& how : kAll)
    for (const auto& of_a : orders)
      for (const auto& of_b : orders) {
        DeviceCheck all[] = {
            contraction(Op::Conv2d, x, in_order(x, of_a), w, in_order(w, of_b), y, how),
            contraction(Op::Conv2dInputGrad, y, in_order(y, of_a), w, in_order(w, of_b), x, how),
            contraction(Op::Conv2dWeightGrad, x, in_order(x, of_a), y, in_order(y, of_b), w, how)};
        for (DeviceCheck& t : all) {
          t.region.contraction.attrs.conv = attrs;
          if (!cudnn.claims(t.region, t.values, nullptr)) continue;
          for (const char* way : {"", "0", "last-0"}) {
            CAPTURE(way);
            const CudnnInWay engine(cudnn, way);
            try {
              engine.prepare(t.region, t.values, 1);
            } catch (const NotSupported&) {  // no plan in this way and type
              continue;
            }
            ++planned;
            t.check_device(engine, how.tolerance);
          }
        }
      }
  CHECK(planned > 0);
  DeviceCheck t = contraction(Op::Conv2d, x, natural(x), w, in_order(w, unknown), y, kFp32);
  t.region.contraction.attrs.conv = attrs;
  std::string why;
  CHECK_FALSE(cudnn.claims(t.region, t.values, &why));
  CHECK(why == "does not support the memory order of an operand");
}

// On a GPU that has cuDNN: Fourier transforms of filters take 100 MB.
TEST_CASE("vendor: cuDNN's plans with large workspaces have full precision") {
  const cuda::Target* target = gpu_with(&cuda::Target::cudnn);
  if (target == nullptr) return;
  const Engine& cudnn = cuda::cudnn_engine(*target);
  const CudnnInWay engine(cudnn, "large-0");
  const Shape x{2, 96, 27, 27}, w{256, 96, 5, 5}, y{2, 256, 27, 27};
  const Arithmetic rounded{F, F, F, true, 2e-3};
  for (const Arithmetic& how : {kFp32, rounded})
    for (const bool epilogue : {false, true}) {
      DeviceCheck all[] = {
          contraction(Op::Conv2d, x, natural(x), w, natural(w), y, how, !epilogue),
          contraction(Op::Conv2dInputGrad, y, natural(y), w, natural(w), x, how, !epilogue),
          contraction(Op::Conv2dWeightGrad, x, natural(x), y, natural(y), w, how, !epilogue)};
      for (DeviceCheck& t : all) {
        const Contraction& c = t.region.contraction;
        t.region.contraction.attrs.conv = {1, 1, 2, 2, 1, 1, 1};
        if (epilogue) add_epilogue(t, epilogue_space(c.op, c.out_shape, c.channels_last));
        const auto names = cudnn.configurations(t.region, t.values);
        CHECK((std::find(names.begin(), names.end(), "large-0") != names.end()) == !how.tf32);
        if (how.tf32) continue;
        std::unique_ptr<Kernel> kernel;
        try {
          kernel = engine.prepare(t.region, t.values, 1);
        } catch (const NotSupported& e) {
          say_no_plan(how, e);
          continue;
        }
        CHECK(kernel->workspace_bytes > std::size_t{64} << 20);
        t.check_device(engine, how.tolerance);
      }
    }
}
