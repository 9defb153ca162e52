// Edge cases of attention: queries without visible keys, a single key, 16-bit operands. Both
// engines against a float64 computation; decompositions through second derivatives and float64.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "cases/engines.h"

using namespace tenon;
using cases::with_engines;

namespace {

using Doubles = std::vector<double>;
constexpr DType kTypes[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64};

Doubles list(const Tensor& t) { return cast(t, DType::Float64).to_vector<double>(); }

// Numbers in [-2, 2] that every dtype represents.
Tensor numbers(const Shape& shape, DType dtype, int seed) {
  Doubles values(static_cast<std::size_t>(shape.numel()));
  std::uint32_t state = 12345u + 7919u * static_cast<std::uint32_t>(seed);
  for (double& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<double>(static_cast<int>(state >> 26) - 32) / 16;
  }
  return cast(Tensor::from(values, shape), dtype).eval();
}

struct Operands {
  Tensor q, k, v, g;
};

Operands operands(std::int64_t queries, std::int64_t keys, std::int64_t size, DType dtype) {
  return {numbers({2, 2, queries, size}, dtype, 1), numbers({2, 2, keys, size}, dtype, 2),
          numbers({2, 2, keys, size}, dtype, 3), numbers({2, 2, queries, size}, dtype, 4)};
}

struct Results {
  Tensor y, dq, dk, dv;
};

Results attended(const Operands& o, const Tensor& mask, bool causal) {
  AttentionOptions options;
  options.causal = causal;
  Results r;
  r.y = scaled_dot_product_attention(o.q, o.k, o.v, mask, options);
  const std::vector<Tensor> wrt = {o.q, o.k, o.v}, d = grad(sum(r.y * o.g), wrt);
  r.dq = d[0], r.dk = d[1], r.dv = d[2];
  return r;
}

double distance(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}
double norm(const Doubles& a) { return distance(a, Doubles(a.size())); }

}  // namespace

TEST_CASE("attention edges: a fully masked query gives 0 and has no gradients") {
  with_engines([] {
    for (const DType dtype : kTypes)
      for (const bool added : {false, true})
        for (const std::int64_t keys : {3, 150}) {
          CAPTURE(name(dtype));
          CAPTURE(added);
          CAPTURE(keys);
          const Operands o = operands(4, keys, 8, dtype);
          const Tensor seen = logical_and(ne(arange(0, 4).reshape({4, 1}), 1),
                                          ge(arange(0, keys), 1));  // query 1 sees none
          const Tensor mask = added
                                  ? where(seen, zeros({}, dtype), full({}, -HUGE_VAL, dtype)).eval()
                                  : broadcast_to(seen, {4, keys}).eval();
          const Results r = attended(o, mask, false);
          const Tensor twice = grad(sum(square(r.dq)), o.k);  // through its decomposition
          const Doubles y = list(r.y), dq = list(r.dq);
          for (const Doubles& all : {y, dq, list(r.dk), list(r.dv)})
            CHECK(std::all_of(all.begin(), all.end(), [](double x) { return std::isfinite(x); }));
          for (std::size_t i = 0; i < y.size(); ++i)
            if (i / 8 % 4 == 1) {
              CHECK(y[i] == 0);
              CHECK(dq[i] == 0);
            }
          CHECK(norm(list(r.dk)) > 0);
          // No query sees the first key.
          const Doubles first = list(select(r.dk, 2, 0));
          CHECK(norm(first) == 0);
          const Doubles second = list(twice);
          CHECK(
              std::all_of(second.begin(), second.end(), [](double x) { return std::isfinite(x); }));
        }
  });
}

TEST_CASE("attention edges: all queries fully masked") {
  with_engines([] {
    const Operands o = operands(3, 5, 4, DType::Float32);
    const Results r = attended(o, full({3, 5}, false, DType::Bool).eval(), false);
    for (const Tensor& t : {r.y, r.dq, r.dk, r.dv}) CHECK(norm(list(t)) == 0);
  });
}

TEST_CASE("attention edges: NaN is not hidden") {
  with_engines([] {
    Operands o = operands(2, 3, 4, DType::Float32);
    o.q = (o.q * full({}, NAN)).eval();
    const Doubles y = list(attended(o, full({2, 3}, true, DType::Bool).eval(), false).y);
    CHECK(std::all_of(y.begin(), y.end(), [](double x) { return std::isnan(x); }));
  });
}

TEST_CASE("attention edges: with one key, queries and keys have zero gradients in every dtype") {
  with_engines([] {
    for (const DType dtype : kTypes)
      for (const std::int64_t size : {1, 3, 8}) {
        CAPTURE(name(dtype));
        CAPTURE(size);
        const Operands o = operands(5, 1, size, dtype);
        const Results r = attended(o, {}, false);
        CHECK(norm(list(r.dq)) == 0);
        CHECK(norm(list(r.dk)) == 0);
        CHECK(list(r.y) == list(broadcast_to(o.v, o.q.shape())));
      }
  });
}

TEST_CASE("attention edges: 16-bit results are within one rounding of float64's") {
  with_engines([] {
    for (const DType dtype : {DType::Float16, DType::BFloat16})
      for (const bool causal : {false, true})
        for (const std::int64_t keys : {1, 6, 64, 129, 300})
          for (const std::int64_t size : {1, 8, 24})
            for (const double sharpness : {1.0, 8.0}) {
              CAPTURE(name(dtype));
              CAPTURE(causal);
              CAPTURE(keys);
              CAPTURE(size);
              CAPTURE(sharpness);
              Operands o = operands(std::min<std::int64_t>(keys, 70), keys, size, dtype);
              o.q = (o.q * sharpness).eval();
              const Operands wide = {
                  cast(o.q, DType::Float64).eval(), cast(o.k, DType::Float64).eval(),
                  cast(o.v, DType::Float64).eval(), cast(o.g, DType::Float64).eval()};
              const Results got = attended(o, {}, causal), want = attended(wide, {}, causal);
              const double rounding = dtype == DType::Float16 ? 0x1p-11 : 0x1p-8;
              const auto near = [&](const Tensor& a, const Tensor& b) {
                const Doubles x = list(a), y = list(b);
                double allowed = 0;  // half a unit in the last place, and float32's error
                for (const double v : y) {
                  const double each = rounding * std::fabs(v) + 2e-5 * sharpness + 6e-8;
                  allowed += each * each;
                }
                CHECK(distance(x, y) <= std::sqrt(allowed));
              };
              near(got.y, want.y);
              near(got.dq, want.dq);
              near(got.dk, want.dk);
              near(got.dv, want.dv);
            }
  });
}
