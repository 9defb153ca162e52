// Generated kernels of map regions against the reference engine.
#include <doctest/doctest.h>

#include "../cpu/region_builders.h"
#include "cuda/engines/maps/map_engine.h"
#include "device_check.h"

using namespace tenon;
using test::DeviceCheck;

namespace {

constexpr DType F = DType::Float32;

DeviceCheck with_space(const Shape& space, bool rows = false) {
  return test::map_over<DeviceCheck>(space, rows);
}

const Engine& engine() {
  return cuda::map_engine(DeviceCheck::can_run() ? cuda::target_of(0) : cuda::Target());
}

void check(DeviceCheck& t, double tolerance = 2e-6) { t.check_device(engine(), tolerance); }

}  // namespace

TEST_CASE("cuda map: element-wise over many sizes") {
  for (const std::int64_t n : {0, 1, 3, 4, 10, 255, 256, 1025, 5000, 70001}) {
    CAPTURE(n);
    DeviceCheck t = with_space({n});
    const int x = t.load(t.leaf(F, {n})), y = t.load(t.leaf(F, {n}));
    const int s = t.load(t.leaf(F, {1}));
    const int product = t.compute(Op::Mul, F, x, y);
    t.store(t.compute(Op::Tanh, F, t.compute(Op::Add, F, product, s)));
    t.store(t.compute(Op::Sub, F, t.number(2), product));
    check(t);
  }
}

TEST_CASE("cuda map: scalar space") {
  DeviceCheck t = with_space({});
  t.store(t.compute(Op::Exp, F, t.load(t.leaf(F, {}))));
  check(t);
}

TEST_CASE("cuda map: broadcasts along every axis") {
  for (const Shape& space : {Shape{4, 6, 10}, Shape{70, 3, 33}, Shape{2, 1, 9}, Shape{5, 20, 1},
                             Shape{0, 3, 4}, Shape{4, 6, 16}}) {
    for (const bool rows : {false, true}) {
      CAPTURE(space.str());
      CAPTURE(rows);
      DeviceCheck t = with_space(space, rows);
      const std::int64_t a = space[0], b = space[1], c = space[2];
      int sum = t.load(t.leaf(F, space));
      for (const Shape& shape : {Shape{1, b, 1}, Shape{a, 1, 1}, Shape{1, 1, c}, Shape{a, 1, c},
                                 Shape{1, b, c}, Shape{1, 1, 1}})
        sum = t.compute(Op::Add, F, sum, t.load(t.leaf(F, shape)));
      const int row = t.compute(Op::Square, F, t.load(t.leaf(F, {a, b, 1})));
      t.store(t.compute(Op::Mul, F, sum, row));
      t.store(sum);
      t.store(t.compute(Op::Add, F, row, t.number(1)));
      check(t);
    }
  }
}

TEST_CASE("cuda map: strided, flipped and transposed loads and stores") {
  for (const Shape& space : {Shape{7, 11}, Shape{40, 300}}) {
    DeviceCheck t = with_space(space);
    const std::int64_t a = space[0], b = space[1];
    View transposed;
    transposed.stride[0] = 1;
    transposed.stride[1] = a;
    View flipped;
    flipped.offset = a * b - 1;
    flipped.stride[0] = -b;
    flipped.stride[1] = -1;
    View stepped;
    stepped.offset = 1;
    stepped.stride[0] = 3 * b;
    stepped.stride[1] = 2;
    const int x = t.load(t.leaf(F, {b, a}), &transposed);
    const int y = t.load(t.leaf(DType::Int64, {a, b}), &flipped);
    const int z = t.load(t.leaf(DType::BFloat16, {a, 3 * b}), &stepped);
    const int sum = t.compute(Op::Add, F, x, t.compute(Op::Cast, F, z));
    const ValueId out = t.output(F, {b, a});
    t.store_to(t.compute(Op::Mul, F, sum, t.compute(Op::Cast, F, y)), transposed, out);
    const ValueId copy = t.output(DType::Int64, {a, 3 * b});
    t.store_to(y, stepped, copy);
    check(t);
  }
}

TEST_CASE("cuda map: in-place updates") {
  for (const std::int64_t n : {1, 10, 1030, 40000}) {
    DeviceCheck t = with_space({n});
    const ValueId p = t.leaf(F, {n}), v = t.leaf(F, {n}), w = t.leaf(F, {n});
    t.overwritten(p);
    t.overwritten(v);
    t.overwritten(w);
    const int old_p = t.load(p), old_v = t.load(v);
    const int rate = t.load(t.leaf(F, {}));
    const int gradient = t.load(t.leaf(F, {n}));
    const int new_v = t.compute(Op::Add, F, t.compute(Op::Mul, F, old_v, t.number(0.9)), gradient);
    const int new_p = t.compute(Op::Sub, F, old_p, t.compute(Op::Mul, F, new_v, rate));
    t.store_to(new_v, t.broadcast(v), v);
    t.store_to(new_p, t.broadcast(p), p);
    t.store_to(old_p, t.broadcast(w), w);  // a swap: w gets the old p
    t.store(t.compute(Op::Add, F, old_p, old_v));
    check(t);
  }
}

TEST_CASE("cuda map: softmax cross-entropy and its gradient") {
  for (const Shape& space : {Shape{64, 10}, Shape{5, 1}, Shape{3, 1000}, Shape{4, 1025},
                             Shape{6, 30000}, Shape{2, 70000}, Shape{0, 5}, Shape{700, 10}}) {
    CAPTURE(space.str());
    DeviceCheck t = with_space(space, true);
    const std::int64_t n = space[0], c = space[1];
    const int x = t.load(t.leaf(F, {n, c}));
    const int target =
        t.load(t.leaf(DType::Int64, {n, 1}, 0, static_cast<double>(std::min<std::int64_t>(c, 100))),
               nullptr, true);
    View columns;
    columns.stride[1] = 1;
    const int hit = t.compute(Op::Eq, DType::Bool, t.affine(columns, DType::Int64), target);
    const int top = t.row_reduce(Op::Max, x, F);
    const int shifted = t.compute(Op::Sub, F, x, top);
    const int e = t.compute(Op::Exp, F, shifted);
    const int total = t.row_reduce(Op::Sum, e, F);
    const int log_p = t.compute(Op::Sub, F, shifted, t.compute(Op::Log, F, total));
    const int picked = t.row_reduce(Op::Sum, t.compute(Op::Where, F, hit, log_p, t.number(0)), F);
    t.store(t.compute(Op::Neg, F, picked));
    t.reduce(picked, Op::Sum, 3, F);
    const int gradient =
        t.compute(Op::Sub, F, t.compute(Op::Div, F, e, total), t.compute(Op::Cast, F, hit));
    t.store(gradient);
    t.reduce(gradient, Op::Sum, 1, F);
    if (space[1] < 70000) t.store(t.row_reduce(Op::ArgMax, x, DType::Int64));
    check(t, 1e-5);
  }
}

TEST_CASE("cuda map: column sums read the 16-bit values that rows store") {
  for (const Shape& space : {Shape{40, 2000}, Shape{33, 1025}, Shape{300, 4098}})
    for (const bool stored : {true, false}) {
      CAPTURE(space.str());
      CAPTURE(stored);
      DeviceCheck t = with_space(space, true);
      const int x = t.load(t.leaf(F, space));
      const int rounded = t.compute(Op::Cast, DType::BFloat16,
                                    t.compute(Op::Sub, F, x, t.row_reduce(Op::Max, x, F)));
      if (stored) t.store(rounded);
      t.reduce(t.compute(Op::Cast, F, rounded), Op::Sum, 1, F);
      check(t, 1e-5);
      const auto kernel = engine().prepare(t.region, t.values, 1);
      const std::int64_t bytes = space.numel() * 2;
      CHECK(static_cast<std::int64_t>(kernel->workspace_bytes) < (stored ? bytes : 2 * bytes));
    }
}

TEST_CASE("cuda map: row reductions of every kind and dtype") {
  for (const std::int64_t length : {0, 1, 5, 64, 777, 3000})
    for (const DType dtype :
         {F, DType::Float64, DType::Int32, DType::Int64, DType::UInt8, DType::BFloat16}) {
      if (dtype != F && length != 5 && length != 777) continue;
      CAPTURE(length);
      CAPTURE(std::string(name(dtype)));
      DeviceCheck t = with_space({9, length}, true);
      const int x = t.load(t.leaf(dtype, {9, length}, 1, 3));
      const DType sums = is_floating(dtype) ? dtype : DType::Int64;
      t.store(t.row_reduce(Op::Sum, x, sums));
      t.store(t.row_reduce(Op::Prod, t.compute(Op::Minimum, dtype, x, t.number(1, dtype)), sums));
      t.store(t.row_reduce(Op::Max, x, dtype));
      t.store(t.row_reduce(Op::Min, x, dtype));
      t.store(t.row_reduce(Op::ArgMax, x, DType::Int64));
      t.store(t.row_reduce(Op::ArgMin, x, DType::Int64));
      check(t);
    }
}

TEST_CASE("cuda map: NaN wins in extrema: they return NaN, and the index of the first NaN") {
  const double nan = std::nan("");
  for (const std::int64_t length : {7, 100, 2500}) {
    DeviceCheck t = with_space({2, length}, true);
    std::vector<double> numbers(static_cast<std::size_t>(2 * length), 1.0);
    numbers[static_cast<std::size_t>(length - 2)] = nan;
    numbers[static_cast<std::size_t>(length - 1)] = nan;
    numbers[static_cast<std::size_t>(length + 3)] = -2;
    const int x = t.load(t.leaf_of(F, {2, length}, numbers));
    for (const Op op : {Op::Max, Op::Min}) {
      t.store(t.row_reduce(op, x, F));
      t.reduce(x, op, 1, F);
      t.reduce(x, op, 2, F);
    }
    t.store(t.row_reduce(Op::ArgMax, x, DType::Int64));
    t.store(t.row_reduce(Op::ArgMin, x, DType::Int64));
    check(t);
  }
}

TEST_CASE("cuda map: reductions over any axes") {
  for (const Shape& space : {Shape{64, 16, 49}, Shape{3, 70, 600}, Shape{1, 1, 7}, Shape{0, 3, 4},
                             Shape{3, 0, 2}, Shape{2, 3, 9000}, Shape{900, 2, 40}})
    for (std::uint32_t axes = 0; axes < 8; ++axes) {
      if (space[0] != 64 && axes % 3 != 1) continue;
      CAPTURE(space.str());
      CAPTURE(axes);
      DeviceCheck t = with_space(space);
      const int x = t.load(t.leaf(F, space)), y = t.load(t.leaf(F, {1, space[1], 1}));
      const int product = t.compute(Op::Mul, F, x, y);
      t.reduce(x, Op::Sum, axes, F);
      t.reduce(product, Op::Sum, axes, DType::Float64);
      t.reduce(product, Op::Max, axes, F);
      t.reduce(t.load(t.leaf(DType::Bool, space)), Op::Sum, axes, DType::Int64);
      if (axes == 1) t.reduce(x, Op::Sum, 6, F);
      t.store(product);
      check(t);
    }
}

TEST_CASE("cuda map: one-axis reductions of large and small arrays") {
  for (const std::int64_t n : {0, 1, 10, 1500, 300000}) {
    DeviceCheck t = with_space({n});
    const int x = t.load(t.leaf(F, {n}));
    t.reduce(x, Op::Sum, 1, F);
    t.reduce(t.compute(Op::Square, F, x), Op::Sum, 1, F);
    t.reduce(t.load(t.leaf(DType::Int32, {n})), Op::Sum, 1, DType::Int64);
    t.reduce(t.number(1), Op::Sum, 1, F);
    check(t);
  }
}

TEST_CASE("cuda map: random numbers equal the reference's") {
  for (const Shape& space : {Shape{5}, Shape{257}, Shape{33, 41}, Shape{50001}}) {
    DeviceCheck t = with_space(space);
    const ValueId state = t.leaf_of(DType::Int64, {2}, {1234567, 89});
    t.store(t.random(state, 0, F, 0));
    t.store(t.random(state, 1, F, 3));
    t.store(t.random(state, 2, DType::Int64, 1));
    check(t);
  }
}

TEST_CASE("cuda map: every op in every dtype") {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    CAPTURE(std::string(name(dtype)));
    const std::int64_t n = 131;
    DeviceCheck t = with_space({n});
    const int a = t.load(t.leaf(dtype, {n})), b = t.load(t.leaf(dtype, {n}));
    const int s = t.load(t.leaf(dtype, {1}));
    const int condition = t.load(t.leaf(DType::Bool, {n}));
    for (const OpRow& row : kOpRows) {
      if (row.function == nullptr || (!is_floating(dtype) && has_trait(row.op, kFloatingOnly)))
        continue;
      const DType result = has_trait(row.op, kTruth) ? DType::Bool : dtype;
      if (is_elementwise(row.op, 1)) {
        t.store(t.compute(row.op, result, a));
        t.store(t.compute(row.op, result, t.compute(Op::Abs, dtype, a)));
        continue;
      }
      t.store(t.compute(row.op, result, a, b));
      t.store(t.compute(row.op, result, s, b));
      t.store(t.compute(row.op, result, a, t.number(2, dtype)));
    }
    t.store(t.compute(Op::Where, dtype, condition, a, b));
    for (int to = 0; to < kDTypeCount; ++to)
      t.store(t.compute(Op::Cast, static_cast<DType>(to), a));
    check(t, dtype == DType::Float64 ? 1e-12 : 2e-6);
  }
}

TEST_CASE("cuda map: a value used before and after a row's result, in rows of every length") {
  for (const std::int64_t length : {30, 900, 2500, 40001, 50000, 100000}) {
    CAPTURE(length);
    DeviceCheck t = with_space({3, length}, true);
    const ValueId p = t.leaf(F, {3, length});
    t.overwritten(p);
    const int x = t.load(p);
    const int doubled = t.compute(Op::Mul, F, x, t.number(2));  // needed only after the reduction
    const int squares = t.row_reduce(Op::Sum, t.compute(Op::Square, F, x), F);
    const int scale = t.compute(Op::Rsqrt, F, squares);
    const int scaled = t.compute(Op::Mul, F, doubled, scale);
    const int second = t.row_reduce(Op::Max, scaled, F);
    t.store(t.compute(Op::Sub, F, scaled, second));
    t.store(squares);
    t.store(t.compute(Op::Exp, F, x));
    t.store_to(t.compute(Op::Add, F, x, squares), t.broadcast(p), p);
    const std::string text = engine().prepare(t.region, t.values, 1)->source();
    CHECK((text.find("staged") != std::string::npos) == (length == 40001 || length == 50000));
    check(t, 1e-5);
  }
}

TEST_CASE("cuda map: sums shared by many blocks are joined too, with the same bits as alone") {
  DeviceCheck t = with_space({10});
  std::vector<Region> regions;
  for (const std::int64_t n : {48000, 300, 1, 9600, 48000}) {
    t.region.map = MapProgram();
    t.region.map.space = {n};
    const int x = t.load(t.leaf(F, {n}));
    t.reduce(t.compute(Op::Mul, F, x, x), Op::Sum, 1, F);
    regions.push_back(t.region);
  }
  const auto kernel = t.together(engine(), regions);
  CHECK(kernel->workspace_bytes > 0);
  if (!DeviceCheck::can_run()) return;
  const auto got = t.run_on_gpu(*kernel);
  CHECK(got == t.run_on_gpu(*kernel));  // the tickets are zero again
  for (std::size_t k = 0; k < regions.size(); ++k)
    CHECK(got[k] ==
          t.run_on_gpu(*cuda::map_engine(cuda::target_of(0)).prepare(regions[k], t.values, 1))[k]);
}

TEST_CASE("cuda map: several regions share a launch") {
  // Updates of parameters of several sizes and a reduction, as one program's values.
  DeviceCheck t = with_space({10});
  std::vector<Region> regions;
  const ValueId rate = t.leaf(F, {});
  for (const std::int64_t n : {10, 84, 1030, 0, 6}) {
    t.region.map = MapProgram();
    t.region.map.space = {n};
    const ValueId p = t.leaf(F, {n});
    t.overwritten(p);
    const int gradient = t.load(t.leaf(F, {n}));
    const int step = t.compute(Op::Mul, F, gradient, t.load(rate));
    t.store_to(t.compute(Op::Sub, F, t.load(p), step), t.broadcast(p), p);
    regions.push_back(t.region);
  }
  t.region.map = MapProgram();
  t.region.map.space = {64, 10};
  t.reduce(t.load(t.leaf(F, {64, 10})), Op::Sum, 1, F);
  regions.push_back(t.region);
  const auto kernel = t.together(engine(), regions);
  const std::string text = kernel->source();
  CHECK(text.find("__global__") == text.rfind("__global__"));
  CHECK(text.find("part2::nest") == std::string::npos);  // equal updates are one function
  if (!DeviceCheck::can_run()) return;
  const auto got = t.run_on_gpu(*kernel);
  std::vector<std::vector<std::byte>> expected;
  for (const Region& region : regions) {
    t.region = region;
    const auto one = t.run(cpu::reference_engine(), 1);
    const std::size_t changed = static_cast<std::size_t>(&region - regions.data());
    expected.push_back(one[changed]);
  }
  t.compare_all(expected, got, 1e-6);
}

TEST_CASE("cuda map: many regions take few launches") {
  DeviceCheck t = with_space({7});
  const ValueId rate = t.leaf(F, {});
  std::vector<Region> regions;
  for (int k = 0; k < 150; ++k) {
    t.region.map = MapProgram();
    t.region.map.space = {7};
    const ValueId p = t.leaf(F, {7});
    t.overwritten(p);
    const int step = t.compute(Op::Mul, F, t.load(t.leaf(F, {7})), t.load(rate));
    t.store_to(t.compute(Op::Sub, F, t.load(p), step), t.broadcast(p), p);
    regions.push_back(t.region);
  }
  std::vector<std::vector<std::byte>> expected;
  for (std::size_t k = 0; k < regions.size(); ++k) {
    t.region = regions[k];
    expected.push_back(t.run(cpu::reference_engine(), 1)[k]);
  }
  // The limit of a launch's arguments before CUDA 12.1, and since.
  for (const int bytes : {4096, 32764}) {
    CAPTURE(bytes);
    cuda::Target target = DeviceCheck::can_run() ? cuda::target_of(0) : cuda::Target();
    target.launch_bytes = std::min(target.launch_bytes, bytes);
    const auto kernel = t.together(cuda::map_engine(target), regions);
    const std::string text = kernel->source();
    int launches = 0;
    for (std::size_t from = text.find("__global__"); from != std::string::npos;
         from = text.find("__global__", from + 1))
      ++launches;
    CHECK(launches >= (target.launch_bytes == 4096 ? 2 : 1));
    CHECK(launches <= (target.launch_bytes == 4096 ? 4 : 1));
    if (DeviceCheck::can_run()) t.compare_all(expected, t.run_on_gpu(*kernel), 1e-6);
  }
}
