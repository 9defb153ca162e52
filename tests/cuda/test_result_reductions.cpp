// Reductions of a product's epilogue over the whole result, on a GPU (the emulated one in CI; wgmma
// on a GPU with the instructions), against the reference engine: every engine that supports them,
// split and whole, ops and dtypes, odd sizes; and determinism.
#include <doctest/doctest.h>

#include <tenon/compute.h>
#include <tenon/ops.h>

#include <string>
#include <utility>
#include <vector>

#include "../cpu/region_builders.h"
#include "cuda/device/opening/driver.h"
#include "cuda/engines/convolutions/conv_config.h"
#include "cuda/engines/convolutions/conv_engine.h"
#include "cuda/engines/products/native_engine.h"
#include "cuda/engines/products/simt_engine.h"
#include "cuda/engines/products/wgmma_engine.h"
#include "device_check.h"
#include "plan/regions/groups.h"

using namespace tenon;
using test::DeviceCheck;
using test::matrix_product;
using test::natural;
using test::transposed;
using Case = test::ContractionCase;

namespace {

constexpr DType F = DType::Float32, BF = DType::BFloat16, H = DType::Float16;
constexpr std::uint32_t kAll = 7;

/// The sum of squares, the largest and the smallest of the result plus a bias, and with `stores` a
/// result of its own beside them.
void reduce_result(DeviceCheck& t, bool stores) {
  Contraction& c = t.region.contraction;
  c.has_epilogue = true;
  t.region.map.space = epilogue_space(c.op, c.out_shape, c.channels_last);
  const int acc = t.accumulator(c.dtype);
  t.reduce(t.compute(Op::Square, c.dtype, acc), Op::Sum, kAll, c.dtype);
  const int sum =
      t.compute(Op::Add, c.dtype, acc, t.load(t.leaf(c.dtype, {1, 1, t.region.map.space[2]})));
  t.reduce(sum, Op::Max, kAll, c.dtype);
  t.reduce(sum, Op::Min, kAll, c.dtype);
  if (stores) t.store(sum);
}

double tolerance(const Case& k) { return k.result == BF ? 1e-2 : test::tolerance_of(k); }

/// An engine that claims everything, as a function of region and values.
template <class Prepare>
class Any final : public Engine {
 public:
  explicit Any(Prepare prepare) : prepare_(std::move(prepare)) {}
  const char* name() const override { return "any"; }
  bool claims(const Region&, std::span<const Value>, std::string*) const override { return true; }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    return prepare_(region, values);
  }

 private:
  const Prepare prepare_;
};

/// Reduced alone, beside the result, beside another one.
template <class Make>
void check_all(const Make& make, const Engine& engine, double tolerance) {
  for (int mode = 0; mode < 3; ++mode) {
    CAPTURE(mode);
    DeviceCheck t = make(mode == 1);
    reduce_result(t, mode == 2);
    t.check_device(engine, tolerance);
  }
}

}  // namespace

TEST_CASE("cuda reduced results: matrix products of the native engine") {
  if (!DeviceCheck::can_run()) return;
  const Engine& native = cuda::native_contraction_engine(cuda::target_of(0));
  for (const auto& [m, n, k] : {std::tuple<int, int, int>{1, 1, 1},
                                {64, 10, 84},
                                {33, 130, 65},
                                {5, 3, 0},
                                {300, 784, 16},
                                {8, 16, 5000}}) {
    CAPTURE(m);
    CAPTURE(n);
    const Case c = matrix_product(m, n, k);
    const auto make = [&](bool keep) {
      return test::contraction_of<DeviceCheck>(c, transposed(c.a), natural(c.b), keep);
    };
    check_all(make, native, tolerance(c));
  }
  // Batches, and rows of the result that hold them.
  const Case c{{3, 4, 9, 20}, {3, 4, 20, 31}, {3, 4, 9, 31}};
  for (const bool one_matrix : {false, true}) {
    View b = natural(c.b);
    if (one_matrix) b.stride[0] = b.stride[1] = 0;
    const auto make = [&](bool keep) {
      return test::contraction_of<DeviceCheck>(c, natural(c.a), b, keep);
    };
    check_all(make, native, tolerance(c));
  }
}

TEST_CASE("cuda reduced results: every tile, split and whole") {
  if (!DeviceCheck::can_run()) return;
  for (const auto& [dtype, compute, tf32] :
       {std::tuple<DType, DType, bool>{F, F, false}, {F, F, true}, {F, BF, false}, {H, H, false}}) {
    Case c = matrix_product(70, 92, 200, dtype, compute);
    c.tf32 = tf32;
    const cuda::GemmMath math = tf32           ? cuda::GemmMath::Tf32
                                : compute == F ? cuda::GemmMath::Fp32
                                               : cuda::GemmMath::Bf16;
    int turn = 0;
    for (const cuda::Tile& tile : cuda::gemm_tiles(math)) {
      const int splits = turn % 3 == 1 ? 3 : 1;
      CAPTURE(tile.m);
      CAPTURE(tile.n);
      CAPTURE(splits);
      const Any engine([&](const Region& region, std::span<const Value> values) {
        return cuda::prepare_contraction(region, values, cuda::target_of(0), tile, splits);
      });
      DeviceCheck t =
          test::contraction_of<DeviceCheck>(c, natural(c.a), transposed(c.b), turn % 2 == 0);
      reduce_result(t, turn % 4 == 3);
      t.check_device(engine, tolerance(c));
      ++turn;
    }
  }
}

TEST_CASE("cuda reduced results: the defining sums, in every dtype") {
  if (!DeviceCheck::can_run()) return;
  const Any engine([](const Region& region, std::span<const Value> values) {
    return cuda::native_contraction_engine(cuda::target_of(0))
        .prepare_as(kReferenceConfiguration, region, values, 1);
  });
  for (const DType dtype : {F, BF, DType::Float64, DType::Int32, DType::Int64}) {
    CAPTURE(dtype);
    Case c{{2, 33, 40}, {2, 40, 68}, {2, 33, 68}, dtype, dtype, dtype, dtype};
    const auto make = [&](bool keep) {
      return test::contraction_of<DeviceCheck>(c, natural(c.a), natural(c.b), keep);
    };
    check_all(make, engine, tolerance(c));
  }
}

TEST_CASE("cuda reduced results: gradients of filters") {
  if (!DeviceCheck::can_run()) return;
  struct Conv {
    std::int64_t n, c, h, k, r;
    ConvAttrs v;
  };
  const Conv convs[] = {
      {64, 1, 28, 6, 5, {}}, {20, 6, 14, 16, 5, {}}, {5, 8, 9, 12, 3, {2, 2, 1, 1, 1, 1, 2}}};
  for (const Conv& g : convs)
    for (const bool tf32 : {false, true}) {
      CAPTURE(g.c);
      CAPTURE(tf32);
      const std::int64_t p = (g.h + 2 * g.v.pad_h - g.r) / g.v.stride_h + 1;
      Case c{{g.n, g.c, g.h, g.h}, {g.n, g.k, p, p}, {g.k, g.c / g.v.groups, g.r, g.r}};
      c.op = Op::Conv2dWeightGrad;
      c.tf32 = tf32;
      if (!tf32) c.compute = BF;
      const auto make = [&](bool keep) {
        DeviceCheck t = test::contraction_of<DeviceCheck>(c, natural(c.a), natural(c.b), keep);
        t.region.contraction.attrs.conv = g.v;
        return t;
      };
      check_all(make, cuda::native_contraction_engine(cuda::target_of(0)), tolerance(c));
      const Engine& conv = cuda::conv_engine(cuda::target_of(0));
      DeviceCheck t = make(true);
      reduce_result(t, false);
      CHECK(conv.capabilities(t.region, t.values).no_reductions == nullptr);
      check_all(make, conv, tolerance(c));
    }
}

TEST_CASE("cuda reduced results: float32 products without tensor cores") {
  if (!DeviceCheck::can_run()) return;
  const Case sizes[] = {matrix_product(132, 264, 53), matrix_product(140, 268, 411)};
  for (const Case& c : sizes)
    for (const char* configuration : {"128x128/1", "128x64/1", "128x128/3"}) {
      CAPTURE(configuration);
      const Any engine([&](const Region& region, std::span<const Value> values) {
        return cuda::prepare_simt(region, values, cuda::target_of(0), configuration);
      });
      const auto make = [&](bool keep) {
        return test::contraction_of<DeviceCheck>(c, transposed(c.a), natural(c.b), keep);
      };
      check_all(make, engine, tolerance(c));
    }
}

TEST_CASE("cuda reduced results: products of wgmma") {
  if (!DeviceCheck::can_run()) return;
  const cuda::Target target = cuda::target_of(0);
  if (target.arch != 90 || !cuda::has_tensor_maps()) {
    MESSAGE("skipped: no Hopper GPU, or a driver without tensor maps");
    return;
  }
  struct Sized {
    std::int64_t m, n, k;
    const char* configuration;
  };
  const Sized sizes[] = {{3, 5, 7, ""},
                         {130, 67, 33, ""},
                         {1544, 1800, 72, ""},
                         {3000, 4099, 64, ""},
                         {64, 17000, 328, ""},
                         {520, 392, 1160, "128-1/4"},
                         {520, 392, 1160, "128-2/1"},
                         {520, 395, 1160, "128-2/2"},
                         {64, 392, 1160, "64-1/6"},
                         {520, 392, 1160, "64-2/3"},
                         {1544, 1800, 72, "64-2/1"},
                         {2500, 2600, 72, "128-1/1"}};
  for (const Sized& s : sizes)
    for (const bool tf32 : {false, true}) {
      CAPTURE(s.m);
      CAPTURE(s.n);
      CAPTURE(s.configuration);
      CAPTURE(tf32);
      Case c = matrix_product(s.m, s.n, s.k, tf32 ? F : BF, tf32 ? F : BF);
      c.tf32 = tf32;
      const Any engine([&](const Region& region, std::span<const Value> values) {
        return cuda::prepare_wgmma(region, values, target, s.configuration);
      });
      const auto make = [&](bool keep) {
        return test::contraction_of<DeviceCheck>(c, natural(c.a), transposed(c.b), keep);
      };
      check_all(make, engine, tolerance(c));
    }
}

namespace {

using Formula = std::vector<Tensor> (*)(const std::vector<Tensor>&);

const Formula kFormulas[] = {
    [](const std::vector<Tensor>& in) {
      const Tensor y = linear(in[0], in[1]);
      return std::vector<Tensor>{sum(square(y)), y};
    },
    [](const std::vector<Tensor>& in) {
      const Tensor y = linear(in[0], in[1]), z = tanh(y);
      return std::vector<Tensor>{y, z, sum(y * z)};
    },
    [](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{sum(square(linear(in[0], in[1]) * (1.0 / in[2])))};
    },
    [](const std::vector<Tensor>& in) {
      const Tensor y = conv2d(in[3], in[4]);
      return std::vector<Tensor>{amax(y), amin(y), y};
    }};

struct Found {
  std::vector<double> numbers;
  int steps = 0;
};

Found run(Formula formula, const char* device, bool merged) {
  set_device(device);
  set_pass_enabled("reductions", merged);
  manual_seed(4);
  const std::vector<Tensor> in{randn({70, 120}).compute(), randn({84, 120}).compute(),
                               Tensor::from(std::vector<float>{1.7f}, {1}),
                               randn({6, 3, 12, 12}).compute(), randn({5, 3, 3, 3}).compute()};
  CompiledFunction function = compile(formula);
  Found found;
  std::vector<Tensor> out;
  for (int k = 0; k < 3; ++k) out = function(in);
  found.steps = function.plan(in).step_count();
  for (const Tensor& t : out) found.numbers.push_back(cast(sum(t), DType::Float64).item());
  set_pass_enabled("reductions", true);
  set_device("cpu");
  return found;
}

}  // namespace

TEST_CASE("cuda reduced results: programs with and without them, and the CPU's") {
  if (!DeviceCheck::can_run()) return;
  int number = 0;
  for (const Formula formula : kFormulas) {
    CAPTURE(number++);
    const Found merged = run(formula, "cuda", true), apart = run(formula, "cuda", false),
                cpu = run(formula, "cpu", true);
    CHECK(merged.steps < apart.steps);
    for (std::size_t k = 0; k < cpu.numbers.size(); ++k) {
      CAPTURE(k);
      CHECK(merged.numbers[k] == doctest::Approx(cpu.numbers[k]).epsilon(1e-4));
      CHECK(apart.numbers[k] == doctest::Approx(cpu.numbers[k]).epsilon(1e-4));
    }
  }
}
