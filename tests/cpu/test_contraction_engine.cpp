// The contraction engine against the reference engine: views, batches, epilogues, dtypes,
// convolutions and their gradients.
#include <doctest/doctest.h>

#include <tuple>
#include <utility>

#include "region_builders.h"

using namespace tenon;
using test::add_epilogue;
using test::natural;
using test::RegionCheck;
using test::transposed;
using Case = test::ContractionCase;

namespace {

constexpr DType F = DType::Float32;

RegionCheck contraction(const Case& k, const View& a, const View& b, bool keep_result = true) {
  return test::contraction_of<RegionCheck>(k, a, b, keep_result);
}

double tolerance(const Case& k) { return k.result == DType::Float64 ? 1e-13 : 2e-5; }

}  // namespace

TEST_CASE("contraction: matrices, plain and transposed, with and without epilogue") {
  for (const auto& [m, n, k] : {std::tuple<int, int, int>{1, 1, 1},
                                {64, 10, 784},
                                {33, 130, 65},
                                {7, 300, 1},
                                {5, 3, 0},
                                {0, 4, 3},
                                {130, 2000, 40},
                                {8, 16, 5000}})
    for (const DType dtype : {F, DType::Float64, DType::BFloat16, DType::Float16})
      for (int mode = 0; mode < 4; ++mode) {
        const DType compute = dtype == DType::BFloat16 ? dtype : F;
        const Case c{{m, k}, {k, n}, {m, n}, dtype, dtype, dtype == DType::Float64 ? dtype : F,
                     compute};
        RegionCheck t = contraction(c, (mode & 1) != 0 ? transposed(c.a) : natural(c.a),
                                    (mode & 1) != 0 ? natural(c.b) : transposed(c.b), mode != 2);
        if (mode >= 2) add_epilogue(t, {1, m, n}, false);
        t.check(cpu::contraction_engine(), tolerance(c));
      }
}

TEST_CASE("contraction: 16-bit results") {
  for (const DType dtype : {DType::BFloat16, DType::Float16})
    for (const bool epilogue : {false, true}) {
      const Case c{{2, 33, 40}, {2, 40, 70}, {2, 33, 70}, dtype, dtype, dtype, dtype};
      RegionCheck t = contraction(c, natural(c.a), natural(c.b));
      if (epilogue) add_epilogue(t, {2, 33, 70}, true);
      t.check(cpu::contraction_engine(), 2e-2);
    }
}

TEST_CASE("contraction: batches: even, broadcast, uneven") {
  for (const DType dtype : {F, DType::Float64})
    for (int mode = 0; mode < 4; ++mode) {
      Case c{{3, 4, 9, 20}, {3, 4, 20, 31}, {3, 4, 9, 31}, dtype, dtype, dtype, dtype};
      View a = natural(c.a), b = natural(c.b);
      if (mode == 1)
        b.stride[0] = b.stride[1] = 0;  // one matrix for all batches: they fold into the rows
      if (mode == 2) b.stride[0] = 0;   // one matrix for each index of the second axis
      if (mode == 3) {                  // stored [4, 9, 3, 20]
        a.stride[0] = 20, a.stride[1] = 9 * 60, a.stride[2] = 60;
      }
      RegionCheck t = contraction(c, a, b, mode != 1);
      add_epilogue(t, {12, 9, 31}, mode == 3);
      t.check(cpu::contraction_engine(), tolerance(c));
    }
}

TEST_CASE("contraction: an update of a weight in the epilogue of its gradient") {
  const Case c{{70, 130}, {130, 33}, {70, 33}};
  RegionCheck t = contraction(c, natural(c.a), natural(c.b), false);
  t.region.contraction.has_epilogue = true;
  t.region.map.space = {1, 70, 33};
  const ValueId w = t.leaf(F, {1, 70, 33});
  t.overwritten(w);
  const int step = t.compute(Op::Mul, F, t.accumulator(), t.load(t.leaf(F, {1, 1, 1})));
  t.store_to(t.compute(Op::Sub, F, t.load(w), step), t.broadcast(w), w);
  t.check(cpu::contraction_engine(), 2e-5);
}

TEST_CASE("contraction: convolutions and their gradients") {
  struct Conv {
    std::int64_t n, c, h, w, k, r, s;
    ConvAttrs v;
  };
  for (const Conv& g : {Conv{2, 3, 9, 11, 8, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
                        Conv{1, 4, 13, 8, 6, 5, 3, {2, 3, 2, 0, 1, 2, 2}},
                        Conv{3, 16, 7, 7, 32, 1, 1, {1, 1, 0, 0, 1, 1, 1}},
                        Conv{5, 6, 4, 4, 10, 4, 4, {1, 1, 0, 0, 1, 1, 1}}}) {
    const std::int64_t p = (g.h + 2 * g.v.pad_h - g.v.dil_h * (g.r - 1) - 1) / g.v.stride_h + 1;
    const std::int64_t q = (g.w + 2 * g.v.pad_w - g.v.dil_w * (g.s - 1) - 1) / g.v.stride_w + 1;
    const Shape x{g.n, g.c, g.h, g.w}, w{g.k, g.c / g.v.groups, g.r, g.s}, y{g.n, g.k, p, q};
    for (const DType dtype : {F, DType::BFloat16})
      for (const auto& [c, space] :
           {std::pair<Case, Shape>{{x, w, y, dtype, dtype, F, dtype, Op::Conv2d},
                                   {g.n, g.k, p * q}},
            {{y, w, x, dtype, dtype, F, dtype, Op::Conv2dInputGrad}, {g.n, g.c, g.h * g.w}},
            {{x, y, w, dtype, dtype, F, dtype, Op::Conv2dWeightGrad},
             {1, g.k, g.c / g.v.groups * g.r * g.s}}})
        for (int mode = 0; mode < 3; ++mode) {
          RegionCheck t = contraction(c, natural(c.a), natural(c.b), mode != 1);
          t.region.contraction.attrs.conv = g.v;
          if (mode != 0) add_epilogue(t, space, mode == 1);
          t.check(cpu::contraction_engine(), 3e-5);
        }
  }
}
