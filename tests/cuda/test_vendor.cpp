// The vendor engines. Without a GPU: which regions they claim and how they describe them. On a real
// GPU, or on the emulated one with the libraries of tests/cuda/vendor: the kernels around the
// library calls, and the calls.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "../cpu/region_builders.h"
#include "base/index.h"
#include "check_process.h"
#include "cuda/engines/products/conversions.h"
#include "cuda/engines/products/matrix_shape.h"
#include "cuda/engines/vendor/cublaslt_engine.h"
#include "cuda/engines/vendor/cudnn_api.h"
#include "cuda/engines/vendor/cudnn_engine.h"
#include "cuda/engines/vendor/gelu_epilogue.h"
#include "cuda/engines/vendor/vendor_parts.h"
#include "device_check.h"
#include "plan/fuse.h"

using namespace tenon;
using test::DeviceCheck;
using test::natural;
using test::transposed;

namespace {

constexpr DType F = DType::Float32, BF = DType::BFloat16, H = DType::Float16, D = DType::Float64;

cuda::Target with_libraries() {
  cuda::Target target;
  target.cublaslt = target.cudnn = true;
  return target;
}

struct Arithmetic {
  DType memory, compute, result;
  bool tf32;
  double tolerance;
};

DeviceCheck contraction(Op op, const Shape& a, const View& a_view, const Shape& b,
                        const View& b_view, const Shape& out, const Arithmetic& k,
                        bool keep_result = true) {
  return test::contraction_of<DeviceCheck>(
      {a, b, out, k.memory, k.memory, k.result, k.compute, op, k.tf32}, a_view, b_view,
      keep_result);
}

void say_no_plan(const Arithmetic& how, const NotSupported& e) {
  MESSAGE("no plan for compute ", std::string(name(how.compute)), ": ", std::string(e.what()));
}

/// Runs a conversion of whole operands alone.
template <class Conversion>
class CopyKernel final : public Kernel {
 public:
  CopyKernel(const Conversion& conversion, ValueId from, ValueId to)
      : conversion_(conversion), from_(from), to_(to) {}
  void run(const Binding& binding) const override {
    conversion_.run(binding.stream, binding.values[from_], binding.values[to_]);
  }

 private:
  const Conversion& conversion_;
  ValueId from_, to_;
};

constexpr Arithmetic kFp32{F, F, F, false, 2e-5};

DeviceCheck product(std::int64_t m, std::int64_t n, std::int64_t k, const Arithmetic& how = kFp32,
                    bool keep_result = true) {
  return contraction(Op::Matmul, {m, k}, natural({m, k}), {k, n}, natural({k, n}), {m, n}, how,
                     keep_result);
}

/// result + bias along an axis of [batch, rows, columns], then ReLU.
void add_bias_relu(DeviceCheck& t, const Shape& space, int axis, bool relu) {
  t.region.contraction.has_epilogue = true;
  t.region.map.space = space;
  Shape bias{1, 1, 1};
  bias[axis] = space[axis];
  const int sum = t.compute(Op::Add, F, t.accumulator(), t.load(t.leaf(F, bias)));
  t.store(relu ? t.compute(Op::Relu, F, sum) : sum);
}

/// Several results and a residual: an epilogue that no library fuses.
void add_epilogue(DeviceCheck& t, const Shape& space) {
  t.region.contraction.has_epilogue = true;
  t.region.map.space = space;
  const int acc = t.accumulator(), bias = t.load(t.leaf(F, {1, 1, space[2]}));
  const int sum = t.compute(Op::Add, F, acc, bias);
  const ValueId results[] = {t.store(t.compute(Op::Tanh, F, sum)),
                             t.store(t.compute(Op::Mul, F, sum, t.load(t.leaf(F, space))))};
  for (const ValueId result : results) t.values[at(result)].kind = Value::Kind::Arena;
}

constexpr double kGeluScale = 1.5957691216057308, kGeluCube = 0.044715;  // 2 sqrt(2 / pi)

enum class Input { Exact, Rounded, Stored };

/// sigmoid(x (cube x^2 + 1) scale); the tanh form of GELU is x times this.
int add_gelu_gate(DeviceCheck& t, int x, double cube) {
  const int square =
      t.compute(Op::Mul, F, t.compute(Op::Square, F, x), t.number(cube * kGeluScale));
  const int slope = t.compute(Op::Add, F, square, t.number(kGeluScale));
  return t.compute(Op::Sigmoid, F, t.compute(Op::Mul, F, slope, x));
}

/// gelu(result + bias) in 16 bits; its input is the sum, the rounded sum, or the rounded sum that
/// is stored too.
void add_gelu(DeviceCheck& t, const Shape& space, DType to, Input input, double cube = kGeluCube) {
  t.region.contraction.has_epilogue = true;
  t.region.map.space = space;
  int x = t.compute(Op::Add, F, t.accumulator(), t.load(t.leaf(F, {1, 1, space[2]})));
  if (input != Input::Exact) {
    const int rounded = t.compute(Op::Cast, to, x);
    if (input == Input::Stored) t.store(rounded);
    x = t.compute(Op::Cast, F, rounded);
  }
  t.store(t.compute(Op::Cast, to, t.compute(Op::Mul, F, add_gelu_gate(t, x, cube), x)));
}

/// result * gelu'(x) in 16 bits; x is 16-bit in memory.
void add_gelu_gradient(DeviceCheck& t, const Shape& space, DType to) {
  t.region.contraction.has_epilogue = true;
  t.region.map.space = space;
  const int x = t.compute(Op::Cast, F, t.load(t.leaf(to, space))), acc = t.accumulator();
  const int gate = add_gelu_gate(t, x, kGeluCube);
  const int rest = t.compute(Op::Mul, F, t.compute(Op::Sub, F, t.number(1), gate), x);
  const int cube = t.compute(Op::Mul, F, t.compute(Op::Square, F, x), t.number(3 * kGeluCube));
  const int inner =
      t.compute(Op::Mul, F, t.compute(Op::Add, F, cube, t.number(1)), t.number(kGeluScale));
  const int slope = t.compute(Op::Add, F, t.compute(Op::Mul, F, rest, inner), t.number(1));
  const int all = t.compute(Op::Mul, F, t.compute(Op::Mul, F, acc, gate), slope);
  t.store(t.compute(Op::Cast, to, all));
}

}  // namespace

// ---- Without a GPU ---------------------------------------------------------------------------

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
  CHECK(why == "an operand without a contiguous axis");
  CHECK_FALSE(cuda::matrix_shape(product(5, 6, 0).region.contraction, s, &why));
  CHECK(why == "an empty product");
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
  CHECK(why == "several batch axes");
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
        "whole numbers");
  CHECK(refused(cuda::cublaslt_engine(cuda::Target{}), product(5, 6, 7)) ==
        "cuBLASLt was not found");
  CHECK(refused(dnn, product(5, 6, 7)) == "it is not a convolution");
  CHECK(refused(cuda::cudnn_engine(cuda::Target{}), product(5, 6, 7)) == "cuDNN was not found");
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

// ---- With the libraries -----------------------------------------------------------------------

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
  CHECK(why == "images whose channels are not aligned to 8 bytes");
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
  CHECK(why == "an operand in a memory order that it does not support");
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
