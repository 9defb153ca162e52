// Accuracy of the float functions of scalar/ and of its own double functions, through the tile
// loops of every instruction set: errors in units of the last place against the next wider type
// over all magnitudes; edge values are checked exactly.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cpu/kernels/isa.h"
#include "cpu/kernels/tile/tile_table.h"

using namespace tenon;
using cpu::TileTable;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<const TileTable*> tables() {
  std::vector<const TileTable*> list{&cpu::tile_table_base()};
#if defined(__x86_64__)
  if (cpu::hardware_isa() >= cpu::Isa::Avx2) list.push_back(&cpu::tile_table_avx2());
  if (cpu::hardware_isa() >= cpu::Isa::Avx512) list.push_back(&cpu::tile_table_avx512());
#endif
  return list;
}

/// Distance from the exact result in units of its last place as a float (at least the smallest
/// denormal).
double ulps(float got, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(got) && std::isnan(rounded)) return 0;
  if (got == rounded) return 0;
  if (std::isinf(got) || std::isinf(rounded) || std::isnan(got) || std::isnan(rounded)) {
    // Beyond the largest finite number, infinity counts as the next number.
    const double limit = std::ldexp(1.0, 128);
    const double a = std::isinf(got) ? std::copysign(limit, got) : static_cast<double>(got);
    const double b =
        std::isinf(rounded) ? std::copysign(limit, rounded) : static_cast<double>(rounded);
    return std::isnan(a) || std::isnan(b) ? 1e30 : std::fabs(a - b) / std::ldexp(1.0, 104);
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(static_cast<double>(got) - exact) /
         std::ldexp(1.0, std::max(exponent - 24, -149));
}

/// Every `step`-th float by bits, and denser around zero and one.
std::vector<float> sampled_floats() {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 9001)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (int i = -200000; i <= 200000; ++i) x.push_back(static_cast<float>(i) * 1e-4f);
  for (int i = -20000; i <= 20000; ++i) x.push_back(1.0f + static_cast<float>(i) * 1e-6f);
  for (int i = -20000; i <= 20000; ++i)
    x.push_back(static_cast<float>(i) * 0.0055f);  // up to the limits of exp
  return x;
}

void check(Op op, double (*exact)(double), double bound) {
  static const std::vector<float> x = sampled_floats();
  std::vector<float> y(x.size());
  for (const TileTable* table : tables()) {
    table->op[static_cast<int>(op)][0](static_cast<std::int64_t>(x.size()), y.data(), x.data(),
                                       nullptr, nullptr);
    double worst = 0;
    float where = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(y[i], exact(static_cast<double>(x[i])));
      if (error > worst) worst = error, where = x[i];
    }
    CHECK_MESSAGE(worst <= bound,
                  "op " << static_cast<int>(op) << ": " << worst << " ulp at " << where);
  }
}

float one(Op op, float x) {
  float y = 0;
  cpu::tile_table().op[static_cast<int>(op)][0](1, &y, &x, nullptr, nullptr);
  return y;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

TEST_CASE("scalar: errors over all floats") {
  check(
      Op::Exp, [](double x) { return std::exp(x); }, 1.5);
  check(
      Op::Exp2, [](double x) { return std::exp2(x); }, 1.5);
  check(
      Op::Expm1, [](double x) { return std::expm1(x); }, 2);
  check(
      Op::Log, [](double x) { return std::log(x); }, 1.5);
  check(
      Op::Log1p, [](double x) { return std::log1p(x); }, 2);
  check(
      Op::Tanh, [](double x) { return std::tanh(x); }, 3);
  check(
      Op::Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 3);
  check(
      Op::Erf, [](double x) { return std::erf(x); }, 2);
  check(
      Op::Sin, [](double x) { return std::sin(x); }, 1);
  check(
      Op::Cos, [](double x) { return std::cos(x); }, 1);
  check(
      Op::Tan, [](double x) { return std::tan(x); }, 1);
  check(
      Op::Asin, [](double x) { return std::asin(x); }, 3);
  check(
      Op::Acos, [](double x) { return std::acos(x); }, 3);
  check(
      Op::Atan, [](double x) { return std::atan(x); }, 3);
  check(
      Op::Sinh, [](double x) { return std::sinh(x); }, 4);
  check(
      Op::Cosh, [](double x) { return std::cosh(x); }, 4);
  check(
      Op::Sqrt, [](double x) { return std::sqrt(x); }, 0.501);
  check(
      Op::Rsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.5);
  check(
      Op::Reciprocal, [](double x) { return 1 / x; }, 0.501);
}

#if __LDBL_MANT_DIG__ > 53
TEST_CASE("scalar: errors of double") {
  const auto check_wide = [](Op op, long double (*exact)(long double), double bound) {
    std::vector<double> x{0.0,   5e-324, 1e-310, 709.78, 709.79,
                          710.5, -745.1, -745.2, 1e300,  -1e300};
    for (std::uint64_t bits = 0; bits < (0x7ffull << 52); bits += 0x0001234567654321ull)
      for (const std::uint64_t sign : {0ull, 1ull << 63})
        x.push_back(std::bit_cast<double>(bits | sign));
    for (int i = -60000; i <= 60000; ++i) {
      x.push_back(i * 1e-4);
      x.push_back(i * 0.0125);  // up to the limits of exp
    }
    std::vector<double> y(x.size());
    for (const TileTable* table : tables()) {
      table->op[static_cast<int>(op)][static_cast<int>(cpu::TileType::F64)](
          static_cast<std::int64_t>(x.size()), y.data(), x.data(), nullptr, nullptr);
      double worst = 0, where = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const long double want = exact(static_cast<long double>(x[i]));
        const auto rounded = static_cast<double>(want);
        if (y[i] == rounded || (std::isnan(y[i]) && std::isnan(rounded))) continue;
        int exponent = 0;
        std::frexp(rounded, &exponent);
        const double error =
            std::isinf(rounded) != std::isinf(y[i]) || std::isnan(y[i])
                ? 1e30
                : static_cast<double>(std::fabs(y[i] - want) /
                                      std::ldexp(1.0L, std::max(exponent - 53, -1074)));
        if (error > worst) worst = error, where = x[i];
      }
      CHECK_MESSAGE(worst <= bound,
                    "op " << static_cast<int>(op) << ": " << worst << " ulp at " << where);
    }
  };
  check_wide(
      Op::Exp, [](long double x) { return std::exp(x); }, 1);
  check_wide(
      Op::Exp2, [](long double x) { return std::exp2(x); }, 1.5);
  check_wide(
      Op::Expm1, [](long double x) { return std::expm1(x); }, 2);
  check_wide(
      Op::Log, [](long double x) { return std::log(x); }, 1);
  check_wide(
      Op::Log1p, [](long double x) { return std::log1p(x); }, 1.5);
  check_wide(
      Op::Sin, [](long double x) { return std::sin(x); }, 1.5);
  check_wide(
      Op::Cos, [](long double x) { return std::cos(x); }, 1.5);
  check_wide(
      Op::Tan, [](long double x) { return std::tan(x); }, 3);
  check_wide(
      Op::Tanh, [](long double x) { return std::tanh(x); }, 3);
  check_wide(
      Op::Sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, 2.5);
  const auto at = [](Op op, double x) {
    double y = 0;
    cpu::tile_table().op[static_cast<int>(op)][static_cast<int>(cpu::TileType::F64)](
        1, &y, &x, nullptr, nullptr);
    return y;
  };
  constexpr double kEnd = std::numeric_limits<double>::infinity();
  for (const Op op : {Op::Exp, Op::Exp2, Op::Expm1, Op::Log, Op::Log1p, Op::Tanh, Op::Sigmoid,
                      Op::Sin, Op::Cos, Op::Tan})
    CHECK(std::isnan(at(op, std::numeric_limits<double>::quiet_NaN())));
  CHECK(at(Op::Exp, kEnd) == kEnd);
  CHECK(at(Op::Exp, -kEnd) == 0);
  CHECK(at(Op::Expm1, -kEnd) == -1);
  CHECK(at(Op::Log, 0.0) == -kEnd);
  CHECK(at(Op::Log, -0.0) == -kEnd);
  CHECK(at(Op::Log, kEnd) == kEnd);
  CHECK(at(Op::Log1p, -1.0) == -kEnd);
  CHECK(at(Op::Log1p, kEnd) == kEnd);
  for (const Op op : {Op::Log, Op::Log1p}) CHECK(std::isnan(at(op, -1.5)));
  for (const Op op : {Op::Sin, Op::Cos, Op::Tan}) CHECK(std::isnan(at(op, kEnd)));
  CHECK(at(Op::Tanh, -kEnd) == -1);
  CHECK(at(Op::Sigmoid, -kEnd) == 0);
  for (const Op op : {Op::Expm1, Op::Log1p, Op::Tanh, Op::Sin, Op::Tan}) {
    CHECK(std::signbit(at(op, -0.0)));
    CHECK(!std::signbit(at(op, 0.0)));
  }
}
#endif

TEST_CASE("scalar: edges") {
  for (const Op op :
       {Op::Exp, Op::Exp2, Op::Expm1, Op::Log, Op::Log1p, Op::Tanh, Op::Sigmoid, Op::Erf, Op::Sin,
        Op::Cos, Op::Sqrt, Op::Tan, Op::Asin, Op::Acos, Op::Atan, Op::Sinh, Op::Cosh})
    CHECK(std::isnan(one(op, kNan)));
  CHECK(one(Op::Exp, kInf) == kInf);
  for (int n = -149; n < 128; ++n)
    CHECK(one(Op::Exp2, static_cast<float>(n)) == std::ldexp(1.0f, n));
  CHECK(one(Op::Exp2, 128.0f) == kInf);
  CHECK(same(one(Op::Exp2, -kInf), 0.0f));
  CHECK(same(one(Op::Exp, -kInf), 0.0f));
  CHECK(one(Op::Exp, 0.0f) == 1.0f);
  CHECK(one(Op::Exp, 88.73f) == kInf);
  CHECK(one(Op::Exp, 88.72f) < kInf);
  CHECK(one(Op::Expm1, -kInf) == -1.0f);
  CHECK(one(Op::Expm1, kInf) == kInf);
  CHECK(one(Op::Log, 0.0f) == -kInf);
  CHECK(one(Op::Log, -0.0f) == -kInf);
  CHECK(one(Op::Log, kInf) == kInf);
  CHECK(std::isnan(one(Op::Log, -1.0f)));
  CHECK(one(Op::Log1p, -1.0f) == -kInf);
  CHECK(one(Op::Log1p, kInf) == kInf);
  CHECK(std::isnan(one(Op::Log1p, -1.5f)));
  CHECK(one(Op::Tanh, kInf) == 1.0f);
  CHECK(one(Op::Tanh, -kInf) == -1.0f);
  CHECK(one(Op::Sigmoid, kInf) == 1.0f);
  CHECK(same(one(Op::Sigmoid, -kInf), 0.0f));
  CHECK(one(Op::Erf, kInf) == 1.0f);
  CHECK(std::isnan(one(Op::Sin, kInf)));
  CHECK(one(Op::Rsqrt, 0.0f) == kInf);
  for (const Op op : {Op::Expm1, Op::Log1p, Op::Tanh, Op::Erf, Op::Sin}) {
    CHECK(same(one(op, -0.0f), -0.0f));
    CHECK(same(one(op, 0.0f), 0.0f));
    if (op != Op::Erf) CHECK(same(one(op, 1e-45f), 1e-45f));
  }
}

TEST_CASE("scalar: powers") {
  const float special[] = {0.0f,  -0.0f,  1.0f,  -1.0f,       0.5f,        -0.5f, 2.0f,
                           -2.0f, 3.0f,   -3.0f, kInf,        -kInf,       kNan,  1e-40f,
                           3e38f, -3e38f, 7.5f,  16777216.0f, 33554433.0f, 1e-3f, 100.0f};
  std::vector<float> x, y;
  for (const float a : special)
    for (const float b : special) x.push_back(a), y.push_back(b);
  for (std::uint32_t i = 0; i < 400000; ++i) {
    x.push_back(std::bit_cast<float>(i * 10007u % 0x7f800000u));
    y.push_back(static_cast<float>(static_cast<int>(i * 7919u % 4000u) - 2000) * 0.0037f);
  }
  std::vector<float> z(x.size());
  for (const TileTable* table : tables()) {
    table->op[static_cast<int>(Op::Pow)][0](static_cast<std::int64_t>(x.size()), z.data(), x.data(),
                                            y.data(), nullptr);
    double worst = 0;
    float wx = 0, wy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::pow(static_cast<double>(x[i]), static_cast<double>(y[i]));
      const double error = ulps(z[i], exact);
      if (error > worst) worst = error, wx = x[i], wy = y[i];
    }
    CHECK_MESSAGE(worst <= 1, worst << " ulp at " << wx << " ^ " << wy);
  }
}

TEST_CASE("scalar: 16-bit types round as the storage types do") {
  std::vector<float> x, y;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 4093)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  y.resize(x.size());
  for (const TileTable* table : tables()) {
    int wrong = 0;
    table->rounded[static_cast<int>(DType::Float16)](static_cast<std::int64_t>(x.size()), y.data(),
                                                     x.data(), nullptr, nullptr);
    for (std::size_t i = 0; i < x.size(); ++i)
      wrong += !same(y[i], static_cast<float>(float16(x[i])));
    table->rounded[static_cast<int>(DType::BFloat16)](static_cast<std::int64_t>(x.size()), y.data(),
                                                      x.data(), nullptr, nullptr);
    for (std::size_t i = 0; i < x.size(); ++i)
      wrong += !same(y[i], static_cast<float>(bfloat16(x[i])));
    CHECK(wrong == 0);
  }
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::vector<float> wide(65536);
  for (const TileTable* table : tables()) {
    int wrong = 0;
    table->load[static_cast<int>(DType::Float16)](1, 65536, wide.data(), halves.data(), 65536, 1);
    for (std::size_t i = 0; i < halves.size(); ++i)
      wrong += !same(wide[i], static_cast<float>(std::bit_cast<float16>(halves[i])));
    CHECK(wrong == 0);
  }
}
