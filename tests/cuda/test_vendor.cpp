// The vendor engines without their libraries: which regions they claim, how they describe them,
// and, on a real or emulated GPU, the kernels around the library calls.
#include <doctest/doctest.h>

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "../cpu/region_builders.h"
#include "base/index.h"
#include "cuda/engines/products/conversions.h"
#include "cuda/engines/products/matrix_shape.h"
#include "cuda/engines/vendor/cublaslt_engine.h"
#include "cuda/engines/vendor/cudnn_engine.h"
#include "cuda/engines/vendor/gelu_epilogue.h"
#include "cuda/engines/vendor/vendor_parts.h"
#include "device_check.h"
#include "plan/regions/groups.h"
#include "vendor_regions.h"

using namespace tenon;
using namespace tenon::test::vendor;
using test::DeviceCheck;
using test::natural;
using test::transposed;

TEST_CASE("vendor: cuBLASLt supports strides with one contiguous axis") {
  cuda::MatrixShape s;
  std::string why;
  DeviceCheck t = product(5, 6, 7);
  CHECK(cuda::matrix_shape(t.region.contraction, s, &why));
  CHECK(s.m == 5);
  CHECK(s.n == 6);
  CHECK(s.k == 7);
  CHECK(s.a.plain);
  CHECK(s.a.rows.inner == 7);
  CHECK(s.b.rows.outer_stride == 6);

  t.region.contraction.a = transposed({5, 7});
  CHECK(cuda::matrix_shape(t.region.contraction, s, &why));
  CHECK_FALSE(s.a.plain);
  CHECK(s.a.rows.inner == 5);
  CHECK(s.a.rows.outer_stride == 5);

  t.region.contraction.a.stride[0] = 2;
  t.region.contraction.a.stride[1] = 14;
  CHECK_FALSE(cuda::matrix_shape(t.region.contraction, s, &why));
  CHECK(why == "takes only operands with a contiguous axis");
  CHECK_FALSE(cuda::matrix_shape(product(5, 6, 0).region.contraction, s, &why));
  CHECK(why == "does not run empty products");
}

TEST_CASE("vendor: cuBLASLt's batches are one axis, or rows") {
  cuda::MatrixShape s;
  std::string why;
  const Shape a{2, 3, 4, 5}, b{2, 3, 5, 6}, out{2, 3, 4, 6};
  DeviceCheck t = contraction(Op::Matmul, a, natural(a), b, natural(b), out, kFp32);
  CHECK(cuda::matrix_shape(t.region.contraction, s, &why));
  CHECK(s.batch == 6);
  CHECK(s.a.rows.batch_stride == 20);
  CHECK(s.b.rows.batch_stride == 30);

  View& right = t.region.contraction.b;  // the same matrix for all batches
  right.stride[0] = right.stride[1] = 0;
  s = {};
  CHECK(cuda::matrix_shape(t.region.contraction, s, &why));
  CHECK(s.batch == 1);
  CHECK(s.m == 24);

  right.stride[1] = 30;
  s = {};
  CHECK_FALSE(cuda::matrix_shape(t.region.contraction, s, &why));
  CHECK(why == "takes only batch axes that merge into one");
}

TEST_CASE("vendor: a 1x1 convolution is one product for each image") {
  const Shape x{3, 8, 4, 5}, w{6, 8, 1, 1}, y{3, 6, 4, 5};
  DeviceCheck t = contraction(Op::Conv2d, x, natural(x), w, natural(w), y, kFp32);
  Contraction& c = t.region.contraction;
  cuda::MatrixShape s;
  std::string why;
  CHECK(cuda::matrix_shape(cuda::as_product(c), s, &why));
  CHECK(s.batch == 3);
  CHECK(s.m == 6);
  CHECK(s.k == 8);
  CHECK(s.n == 20);
  CHECK(s.a.rows.batch_stride == 0);
  CHECK(s.b.rows.batch_stride == 160);
  c.attrs.conv.stride_w = 2;
  CHECK(cuda::as_product(c).op == Op::Conv2d);
  c.attrs.conv = {.pad_h = 1};
  CHECK(cuda::as_product(c).op == Op::Conv2d);
  c.attrs.conv = {.groups = 2};
  CHECK(cuda::as_product(c).op == Op::Conv2d);
  c.attrs.conv = {};
  c.op = Op::Conv2dWeightGrad;
  CHECK(cuda::as_product(c).op == Op::Conv2dWeightGrad);
}

TEST_CASE(
    "vendor: a product uses the memory of an epilogue result of the same size that is not read") {
  DeviceCheck t = product(5, 6, 7, kFp32, false);
  add_epilogue(t, {1, 5, 6});
  const ValueId first = t.region.map.stores.at(0).view.value;
  CHECK(cuda::product_place(t.region, t.values, F) == first);
  CHECK(cuda::product_place(t.region, t.values, DType::BFloat16) == kNoValue);
  t.region.reads.push_back(first);  // an update
  CHECK(cuda::product_place(t.region, t.values, F) == t.region.map.stores.at(1).view.value);
  for (MapStore& store : t.region.map.stores) store.view.stride[2] = 0;
  CHECK(cuda::product_place(t.region, t.values, F) == kNoValue);
}

TEST_CASE("vendor: which epilogues a library fuses") {
  const auto fuses = [](DeviceCheck& t) {
    return cuda::simple_epilogue(t.region, t.values).has_value();
  };
  for (const bool relu : {false, true})
    for (const int axis : {1, 2}) {
      DeviceCheck t = product(5, 6, 7, kFp32, false);
      add_bias_relu(t, {1, 5, 6}, axis, relu);
      const auto e = cuda::simple_epilogue(t.region, t.values);
      REQUIRE(e.has_value());
      CHECK(e->relu == relu);
      CHECK(e->bias_axis == axis);
    }
  DeviceCheck more = product(5, 6, 7, kFp32, false);
  add_epilogue(more, {1, 5, 6});
  CHECK_FALSE(fuses(more));

  DeviceCheck twice = product(5, 6, 7, kFp32, false);
  twice.region.contraction.has_epilogue = true;
  twice.region.map.space = {1, 5, 6};
  const int bias = twice.load(twice.leaf(F, {1, 1, 6}));
  const int sum = twice.compute(Op::Add, F, twice.accumulator(), bias);
  twice.store(twice.compute(Op::Add, F, sum, bias));
  CHECK_FALSE(fuses(twice));

  DeviceCheck kept = product(5, 6, 7);
  add_bias_relu(kept, {1, 5, 6}, 2, true);
  CHECK_FALSE(fuses(kept));
}

TEST_CASE("vendor: which epilogues are GELU") {
  constexpr Arithmetic kHow{BF, BF, F, false, 0};
  const Shape space{1, 5, 8};
  const auto found = [](const DeviceCheck& t) { return cuda::gelu_epilogue(t.region, t.values); };
  for (const Input input : {Input::Exact, Input::Rounded, Input::Stored}) {
    DeviceCheck t = product(5, 8, 7, kHow, false);
    add_gelu(t, space, BF, input);
    const auto e = found(t);
    REQUIRE(e.has_value());
    CHECK_FALSE(e->gradient);
    CHECK(e->bias.value != kNoValue);
    CHECK(e->out == t.region.map.stores.back().view.value);
    CHECK((e->input == t.region.map.stores.front().view.value) == (input == Input::Stored));
    CHECK_FALSE(cuda::simple_epilogue(t.region, t.values).has_value());
  }
  DeviceCheck back = product(5, 8, 7, kHow, false);
  add_gelu_gradient(back, space, BF);
  const auto e = found(back);
  REQUIRE(e.has_value());
  CHECK(e->gradient);
  CHECK(e->bias.value == kNoValue);
  CHECK(e->input != kNoValue);

  const auto refused = [&](const Arithmetic& how, bool keep_result, double cube, Op behind) {
    DeviceCheck t = product(5, 8, 7, how, keep_result);
    add_gelu(t, space, BF, Input::Stored, cube);
    if (behind != Op::Data) t.store(t.compute(Op::Cast, BF, t.compute(behind, F, t.accumulator())));
    return !found(t).has_value();
  };
  CHECK_FALSE(refused(kHow, false, kGeluCube, Op::Data));
  // Stored twice, as an assignment does.
  DeviceCheck twice = product(5, 8, 7, kHow, false);
  add_gelu(twice, space, BF, Input::Exact);
  twice.store(twice.region.map.stores.back().source);
  CHECK_FALSE(found(twice).has_value());
  CHECK(refused(kHow, false, .0448, Op::Data));
  CHECK(refused(kFp32, false, kGeluCube, Op::Data));
  CHECK(refused(kHow, true, kGeluCube, Op::Data));
  CHECK(refused(kHow, false, kGeluCube, Op::Square));
}

TEST_CASE("vendor: what is not claimed, and why") {
  std::string why;
  const auto refused = [&](const Engine& engine, const DeviceCheck& t) {
    return engine.claims(t.region, t.values, &why) ? std::string("claimed") : why;
  };
  const cuda::Target target = with_libraries();
  const Engine& lt = cuda::cublaslt_engine(target);
  const Engine& dnn = cuda::cudnn_engine(target);
  CHECK(refused(lt, product(5, 6, 7)) == "claimed");
  CHECK(refused(lt, product(5, 6, 7, {F, BF, F, false, 0})) == "claimed");
  CHECK(refused(lt, product(5, 6, 7, {DType::Int32, DType::Int32, DType::Int32, false, 0})) ==
        "takes floating-point numbers only");
  CHECK(refused(cuda::cublaslt_engine(cuda::Target{}), product(5, 6, 7)) ==
        "needs cuBLASLt, which was not found");
  CHECK(refused(dnn, product(5, 6, 7)) == "runs convolutions only");
  CHECK(refused(cuda::cudnn_engine(cuda::Target{}), product(5, 6, 7)) ==
        "needs cuDNN, which was not found");
}

// ---- On the emulated GPU ---------------------------------------------------------------------

namespace {

/// An engine whose product is computed on the host, so that only our own kernels run on the GPU.
class HostProduct final : public Engine {
 public:
  explicit HostProduct(const DeviceCheck& test) : test_(test) {}
  const char* name() const override { return "host product"; }
  bool claims(const Region&, std::span<const Value>, std::string*) const override { return true; }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    DeviceCheck bare = test_;
    bare.region.contraction.has_epilogue = false;
    bare.region.map = {};
    bare.region.contraction.out =
        bare.output(region.contraction.dtype, region.contraction.out_shape);
    return std::make_unique<Applied>(region, values, bare.run(cpu::reference_engine(), 1).back());
  }

 private:
  class Applied final : public Kernel {
   public:
    Applied(const Region& region, std::span<const Value> values, std::vector<std::byte> result)
        : result_(std::move(result)),
          epilogue_(cuda::target_of(0), region, values, region.map.space,
                    region.contraction.dtype) {
      workspace_bytes = result_.size();
    }
    void run(const Binding& binding) const override {
      cuda::memory().from_host(binding.workspace, result_.data(), result_.size(), 0);
      epilogue_.run(binding, binding.workspace);
    }

   private:
    std::vector<std::byte> result_;
    cuda::VendorEpilogue epilogue_;
  };
  const DeviceCheck& test_;
};

}  // namespace

TEST_CASE("vendor: an epilogue after the call") {
  if (!DeviceCheck::can_run()) return;
  for (const std::int64_t n : {1, 2, 6, 12, 33})
    for (const bool keep_result : {false, true}) {
      DeviceCheck t = product(9, n, 3, kFp32, keep_result);
      add_epilogue(t, {1, 9, n});
      t.check_device(HostProduct(t));
    }
  const Shape a{4, 5, 3}, b{4, 3, 6};
  DeviceCheck batches =
      contraction(Op::Matmul, a, natural(a), b, natural(b), {4, 5, 6}, kFp32, false);
  add_epilogue(batches, {4, 5, 6});
  batches.check_device(HostProduct(batches));
}

namespace {

float element(const std::byte* memory, DType dtype, std::int64_t i) {
  if (dtype == F) return reinterpret_cast<const float*>(memory)[i];
  if (dtype == BF) return static_cast<float>(reinterpret_cast<const bfloat16*>(memory)[i]);
  return static_cast<float>(reinterpret_cast<const float16*>(memory)[i]);
}

float rounded_to(DType dtype, float value) {
  if (dtype == F) return value;
  return dtype == BF ? static_cast<float>(bfloat16(value)) : static_cast<float>(float16(value));
}

}  // namespace

TEST_CASE("vendor: operands converted before the call") {
  if (!DeviceCheck::can_run()) return;
  const auto check = [](cuda::MatrixRows rows, std::int64_t elements, DType from, DType to) {
    DeviceCheck t;
    const ValueId x = t.leaf(from, {elements});
    const cuda::RowCast cast(cuda::target_of(0), rows, from, to);
    const auto item = static_cast<std::int64_t>(item_size(to));
    const ValueId y = t.output(to, {static_cast<std::int64_t>(cast.bytes()) / item});
    const auto bytes = t.run_on_gpu(CopyKernel(cast, x, y))[0];
    int wrong = 0;
    const cuda::MatrixRows& to_rows = cast.result();
    for (std::int64_t z = 0; z < rows.batch; ++z)
      for (std::int64_t o = 0; o < rows.outer; ++o)
        for (std::int64_t i = 0; i < rows.inner; ++i) {
          const float value = element(
              t.initial(x), from, rows.offset + z * rows.batch_stride + o * rows.outer_stride + i);
          const float got =
              element(bytes.data(), to, z * to_rows.batch_stride + o * to_rows.outer_stride + i);
          wrong += got != rounded_to(to, value);
        }
    CHECK(wrong == 0);
  };
  for (const DType to : {BF, H}) {
    check({0, 1, 1, 1000, 0, 1000}, 1000, F, to);
    check({0, 1, 7, 13, 0, 13}, 91, F, to);
    check({5, 3, 4, 16, 96, 24}, 300, F, to);
    check({0, 2, 8, 24, 192, 24}, 400, F, to);
    check({0, 5, 3, 10, 0, 10}, 30, F, to);
  }
  check({0, 1, 4, 40, 0, 40}, 160, H, BF);
}

TEST_CASE("vendor: operands transposed before the call") {
  if (!DeviceCheck::can_run()) return;
  bool tf32 = false;  // in turn with as it is
  for (const cuda::MatrixRows& rows : {cuda::MatrixRows{0, 1, 1, 1, 0, 1},
                                       {0, 1, 70, 132, 0, 132},
                                       {0, 1, 66, 132, 0, 132},
                                       {8, 1, 65, 64, 0, 68},
                                       {3, 1, 130, 67, 0, 71}}) {
    DeviceCheck t;
    const ValueId x = t.leaf(F, {rows.offset + rows.outer * rows.outer_stride});
    const cuda::RowTranspose turn(cuda::target_of(0), rows, tf32 = !tf32);
    const ValueId y = t.output(F, {static_cast<std::int64_t>(turn.bytes()) / 4});
    struct Run final : Kernel {
      Run(const cuda::RowTranspose& c, ValueId from_id, ValueId to_id)
          : turn(c), in(from_id), out(to_id) {}
      void run(const Binding& binding) const override {
        turn.run(binding.stream, binding.values[in], binding.values[out]);
      }
      const cuda::RowTranspose& turn;
      ValueId in, out;
    };
    const auto bytes = t.run_on_gpu(Run(turn, x, y))[0];
    const auto* from = reinterpret_cast<const float*>(t.initial(x));
    const auto* to = reinterpret_cast<const float*>(bytes.data());
    int wrong = 0;
    for (std::int64_t o = 0; o < rows.outer; ++o)
      for (std::int64_t i = 0; i < rows.inner; ++i) {
        const float value = from[rows.offset + o * rows.outer_stride + i];
        const auto bits = (std::bit_cast<std::uint32_t>(value) + 0x1000u) & ~0x1fffu;
        const float expected = tf32 ? std::bit_cast<float>(bits) : value;
        wrong += to[i * turn.result().outer_stride + o] != expected;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("vendor: images transposed to channels last before the call, and back") {
  if (!DeviceCheck::can_run()) return;
  const DType pairs[][2] = {{F, F}, {F, BF}, {F, H}, {BF, BF}, {H, H}};
  for (const Shape& planes : {Shape{1, 1, 1}, {2, 33, 70}, {3, 8, 32}, {1, 40, 5}})
    for (const auto& [from, to] : pairs) {
      DeviceCheck t;
      const ValueId x = t.leaf(from, {planes.numel()});
      const cuda::PlaneTranspose turn(cuda::target_of(0), planes, from, to);
      const auto item = static_cast<std::int64_t>(item_size(to));
      const ValueId y = t.output(to, {static_cast<std::int64_t>(turn.bytes()) / item});
      const auto bytes = t.run_on_gpu(CopyKernel(turn, x, y))[0];
      int wrong = 0;
      for (std::int64_t p = 0; p < planes[0]; ++p)
        for (std::int64_t r = 0; r < planes[1]; ++r)
          for (std::int64_t c = 0; c < planes[2]; ++c) {
            const float value = element(t.initial(x), from, (p * planes[1] + r) * planes[2] + c);
            const float got = element(bytes.data(), to, (p * planes[2] + c) * planes[1] + r);
            wrong += got != rounded_to(to, value);
          }
      CHECK(wrong == 0);
    }
}
