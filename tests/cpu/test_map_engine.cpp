// The map engine against the reference engine: levels, tiles, passes, reductions, views, in-place
// stores, dtypes.
#include <doctest/doctest.h>

#include "region_builders.h"

using namespace tenon;
using test::RegionCheck;

namespace {

RegionCheck with_space(const Shape& space, bool rows = false) {
  return test::map_over<RegionCheck>(space, rows);
}

constexpr DType F = DType::Float32;

void check_map(RegionCheck& t, double tolerance = 2e-6) { t.check(cpu::map_engine(), tolerance); }

}  // namespace

TEST_CASE("map: element-wise over sizes around tiles and chunks") {
  for (const std::int64_t n : {0, 1, 3, 10, 63, 1023, 1024, 1025, 5000, 70001}) {
    RegionCheck t = with_space({n});
    const int x = t.load(t.leaf(F, {n})), y = t.load(t.leaf(F, {n}));
    const int s = t.load(t.leaf(F, {1}));
    const int product = t.compute(Op::Mul, F, x, y);
    t.store(t.compute(Op::Tanh, F, t.compute(Op::Add, F, product, s)));
    t.store(t.compute(Op::Sub, F, t.number(2), product));
    check_map(t);
  }
}

TEST_CASE("map: pairs of operations with one operand a row or an element, and results read twice") {
  for (const Shape& space : {Shape{3, 1500}, Shape{40, 33}, Shape{2, 1}}) {
    for (const bool rows : {false, true}) {
      for (const bool read_twice : {false, true}) {
        RegionCheck t = with_space(space, rows);
        const Shape of_row{space[0], 1};
        const int x = t.load(t.leaf(F, space)), mean = t.load(t.leaf(F, of_row)),
                  slope = t.load(t.leaf(F, of_row)), bias = t.load(t.leaf(F, of_row)),
                  beside = t.load(t.leaf(F, space));
        const int centred = t.compute(Op::Sub, F, x, mean);
        const int shifted = t.compute(Op::Add, F, t.compute(Op::Mul, F, centred, slope), bias);
        const int sum = t.compute(Op::Add, F, shifted, beside);
        t.store(t.compute(Op::Relu, F, sum));
        t.store(t.compute(Op::Relu, F, t.compute(Op::Add, F, x, beside)));
        t.store(t.compute(Op::Mul, F, t.compute(Op::Sub, F, x, beside), beside));
        if (read_twice) {
          t.store(centred);
          t.store(t.compute(Op::Square, F, sum));
        }
        check_map(t);
      }
    }
  }
}

TEST_CASE("map: scalar space") {
  RegionCheck t = with_space({});
  t.store(t.compute(Op::Exp, F, t.load(t.leaf(F, {}))));
  check_map(t);
}

TEST_CASE("map: broadcasts along every axis") {
  for (const Shape& space : {Shape{4, 6, 10}, Shape{3, 5, 1500}, Shape{70, 3, 33}, Shape{2, 1, 9},
                             Shape{5, 2000, 1}, Shape{0, 3, 4}}) {
    for (const bool rows : {false, true}) {
      RegionCheck t = with_space(space, rows);
      const std::int64_t a = space[0], b = space[1], c = space[2];
      int sum = t.load(t.leaf(F, space));
      for (const Shape& shape : {Shape{1, b, 1}, Shape{a, 1, 1}, Shape{1, 1, c}, Shape{a, 1, c},
                                 Shape{1, b, c}, Shape{1, 1, 1}})
        sum = t.compute(Op::Add, F, sum, t.load(t.leaf(F, shape)));
      const int row = t.compute(Op::Square, F, t.load(t.leaf(F, {a, b, 1})));
      t.store(t.compute(Op::Mul, F, sum, row));
      t.store(sum);
      t.store(t.compute(Op::Add, F, row, t.number(1)));
      check_map(t);
    }
  }
}

TEST_CASE("map: strided, flipped and transposed loads and stores") {
  for (const Shape& space : {Shape{7, 11}, Shape{40, 1100}, Shape{3, 70}}) {
    RegionCheck t = with_space(space);
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
    check_map(t);
  }
}

TEST_CASE("map: rows read backwards, in every dtype") {
  for (const DType dtype : {DType::Bool, DType::UInt8, DType::Int8, DType::Int32, DType::Int64,
                            DType::Float16, DType::BFloat16, F, DType::Float64})
    for (const std::int64_t length : {1, 2, 15, 33, 1500}) {
      RegionCheck t = with_space({3, length});
      View backwards;
      backwards.offset = length - 1;
      backwards.stride[0] = length;
      backwards.stride[1] = -1;
      t.store(t.load(t.leaf(dtype, {3, length}), &backwards));
      check_map(t);
    }
}

TEST_CASE("map: in-place updates") {
  for (const std::int64_t n : {1, 10, 1030, 40000}) {
    RegionCheck t = with_space({n});
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
    check_map(t);
  }
}

TEST_CASE("map: softmax cross-entropy and its gradient") {
  for (const Shape& space : {Shape{64, 10}, Shape{5, 1}, Shape{3, 1000}, Shape{4, 1025},
                             Shape{6, 30000}, Shape{2, 200000}, Shape{0, 5}}) {
    RegionCheck t = with_space(space, true);
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
    t.store(t.row_reduce(Op::ArgMax, x, DType::Int64));
    check_map(t, 1e-5);
  }
}

TEST_CASE("map: row reductions of every kind and dtype") {
  for (const std::int64_t length : {0, 1, 5, 64, 777, 1024, 3000})
    for (const DType dtype :
         {F, DType::Float64, DType::Int32, DType::Int64, DType::UInt8, DType::BFloat16}) {
      RegionCheck t = with_space({9, length}, true);
      const int x = t.load(t.leaf(dtype, {9, length}, 1, 3));
      const DType sums = is_floating(dtype) ? dtype : DType::Int64;
      t.store(t.row_reduce(Op::Sum, x, sums));
      if (length < 30) t.store(t.row_reduce(Op::Prod, x, sums));
      if (length > 0) {
        t.store(t.row_reduce(Op::Max, x, dtype));
        t.store(t.row_reduce(Op::Min, x, dtype));
        t.store(t.row_reduce(Op::ArgMax, x, DType::Int64));
        t.store(t.row_reduce(Op::ArgMin, x, DType::Int64));
      }
      check_map(t);
    }
}

TEST_CASE("map: extrema return NaN, and the index of the first NaN") {
  const double nan = std::nan("");
  for (const std::int64_t length : {7, 100, 2500}) {
    RegionCheck t = with_space({2, length}, true);
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
    check_map(t);
  }
}

TEST_CASE("map: reductions over any axes") {
  for (const Shape& space :
       {Shape{4, 3, 5}, Shape{64, 16, 49}, Shape{3, 70, 1500}, Shape{200, 2, 3}, Shape{1, 1, 7},
        Shape{0, 3, 4}, Shape{3, 0, 2}, Shape{2, 3, 40000}, Shape{3000, 2, 40}})
    for (std::uint32_t axes = 0; axes < 8; ++axes) {
      RegionCheck t = with_space(space);
      const int x = t.load(t.leaf(F, space)), y = t.load(t.leaf(F, {1, space[1], 1}));
      const int product = t.compute(Op::Mul, F, x, y);
      t.reduce(x, Op::Sum, axes, F);
      t.reduce(product, Op::Sum, axes, DType::Float64);
      if (space.numel() != 0) t.reduce(product, Op::Max, axes, F);
      t.reduce(t.load(t.leaf(DType::Bool, space)), Op::Sum, axes, DType::Int64);
      if (axes % 3 == 1) t.reduce(x, Op::Sum, 7u & ~axes, F);
      t.store(product);
      check_map(t);
    }
}

TEST_CASE("map: one-axis reductions of large and small arrays") {
  for (const std::int64_t n : {0, 1, 10, 1500, 300000}) {
    RegionCheck t = with_space({n});
    const int x = t.load(t.leaf(F, {n}));
    t.reduce(x, Op::Sum, 1, F);
    t.reduce(t.compute(Op::Square, F, x), Op::Sum, 1, F);
    t.reduce(t.load(t.leaf(DType::Int32, {n})), Op::Sum, 1, DType::Int64);
    t.reduce(t.number(1), Op::Sum, 1, F);
    check_map(t);
  }
}

TEST_CASE("map: random numbers do not depend on tiles") {
  for (const Shape& space : {Shape{5}, Shape{257}, Shape{33, 41}, Shape{3, 5000}, Shape{50001}}) {
    RegionCheck t = with_space(space);
    const ValueId state = t.leaf_of(DType::Int64, {2}, {1234567, 89});
    t.store(t.random(state, 0, F, 0));
    t.store(t.random(state, 1, F, 3));
    t.store(t.random(state, 2, DType::Int64, 1));
    check_map(t);
  }
}

TEST_CASE("map: every op in every dtype") {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    for (const std::int64_t n : {5, 131}) {
      RegionCheck t = with_space({n});
      const int a = t.load(t.leaf(dtype, {n})), b = t.load(t.leaf(dtype, {n}));
      const int s = t.load(t.leaf(dtype, {1}));
      const int condition = t.load(t.leaf(DType::Bool, {n}));
      for (const OpRow& row : kOpRows) {
        const bool pair = is_elementwise(row.op, 2);
        if (row.function == nullptr || (!is_floating(dtype) && has_trait(row.op, kFloatingOnly)))
          continue;
        const DType result = has_trait(row.op, kTruth) ? DType::Bool : dtype;
        if (!pair) {
          t.store(t.compute(row.op, result, a));
          t.store(t.compute(row.op, result, t.compute(Op::Abs, dtype, a)));
          continue;
        }
        t.store(t.compute(row.op, result, a, b));
        t.store(t.compute(row.op, result, a, s));
        t.store(t.compute(row.op, result, s, b));
        t.store(t.compute(row.op, result, a, t.number(2, dtype)));
      }
      t.store(t.compute(Op::Where, dtype, condition, a, b));
      t.store(t.compute(Op::Where, dtype, condition, s, b));
      for (int to = 0; to < kDTypeCount; ++to) {
        t.store(t.compute(Op::Cast, static_cast<DType>(to), a));
        t.store(t.compute(Op::Cast, static_cast<DType>(to), s));
      }
      check_map(t, dtype == DType::Float64 ? 1e-12 : 2e-6);
    }
  }
}

TEST_CASE("map: a value used before and after a row's result, in rows longer than a tile") {
  for (const std::int64_t length : {900, 2500, 300000}) {
    RegionCheck t = with_space({3, length}, true);
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
    check_map(t, 1e-5);
  }
}
