// Plain numbers beside tensors: integers of any size are exact, zeros keep their sign, and no
// number is rounded to 16 bits before it is used. The case table has the same for GPUs ("plain
// numbers").
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/nn.h>
#include <tenon/ops.h>

#include "cases/engines.h"

using namespace tenon;
using cases::with_engines_and_fusion;

namespace {

using Longs = std::vector<std::int64_t>;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                       kLeast = std::numeric_limits<std::int64_t>::min(),
                       kOdd = (std::int64_t{1} << 53) + 1;  // not representable in float64

Longs list(const Tensor& t) { return t.to_vector<std::int64_t>(); }
Longs truth(const Tensor& t) { return list(cast(t, DType::Int64)); }
Tensor longs(const Longs& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}
double only(const Tensor& t) { return cast(t.compute(), DType::Float64).to_vector<double>().at(0); }

}  // namespace

TEST_CASE("numbers: integers are exact") {
  with_engines_and_fusion([] {
    CHECK(list(full({2}, kOdd, DType::Int64)) == Longs{kOdd, kOdd});
    CHECK(list(full({1}, kMost, DType::Int64)) == Longs{kMost});
    CHECK(list(scalar(kLeast, DType::Int64)) == Longs{kLeast});
    CHECK(list(arange(kOdd, kOdd + 3)) == Longs{kOdd, kOdd + 1, kOdd + 2});
    CHECK(list(arange(kMost - 2, kMost)) == Longs{kMost - 2, kMost - 1});
    CHECK(list(arange(kMost, kLeast, kLeast)) == Longs{kMost, -1});
    CHECK(list(arange(kLeast, kMost, kMost)) == Longs{kLeast, -1, kMost - 1});
    const Tensor x = longs({0, 3, -3});
    CHECK(list(x + kOdd) == Longs{kOdd, kOdd + 3, kOdd - 3});
    CHECK(list(kOdd - x) == Longs{kOdd, kOdd - 3, kOdd + 3});
    CHECK(list(x * kOdd) == Longs{0, 3 * kOdd, -3 * kOdd});
    CHECK(list(where(eq(x, 0), kOdd, x)) == Longs{kOdd, 3, -3});
    CHECK(list(maximum(x, kMost)) == Longs{kMost, kMost, kMost});
    CHECK(list(pad(slice(x, 0, 0, 1), {1, 0}, kOdd)) == Longs{kOdd, 0});
    const Tensor y = longs({kOdd, kOdd + 1, kMost});
    CHECK(truth(eq(y, kOdd)) == Longs{1, 0, 0});
    CHECK(truth(gt(y, kOdd)) == Longs{0, 1, 1});
    CHECK(truth(lt(y, kMost)) == Longs{1, 1, 0});
    CHECK(list(clamp(y, 0, kOdd)) == Longs{kOdd, kOdd, kOdd});
    CHECK(list(floor_divide(y, kOdd)) == Longs{1, 1, 1023});
    CHECK(list(remainder(y, kOdd)) == Longs{0, 1, kMost - 1023 * kOdd});
    CHECK(truth(cast(full({1}, kOdd, DType::Int64), DType::Int32)) == Longs{1});
    for (const std::int64_t drawn : list(randint(kOdd, kOdd + 2, {50})))
      CHECK((drawn == kOdd || drawn == kOdd + 1));
  });
}

TEST_CASE("numbers: values beyond int64, and ranges of 16-bit dtypes") {
  CHECK_THROWS_AS(full({1}, 0x1p63, DType::Int64), ValueError);
  CHECK_THROWS_AS(full({1}, ~std::uint64_t{0}, DType::Float64), ValueError);
  CHECK_THROWS_AS(cast(longs({1}), DType::Int32) + kOdd, ValueError);
  CHECK_THROWS_AS(full({1}, 0.5, DType::Int64), ValueError);
  CHECK(truth(arange(3, 0, -1, DType::UInt8)) == Longs{3, 2, 1});
}

TEST_CASE("numbers: a zero keeps its sign") {
  with_engines_and_fusion([] {
    for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
      const Tensor x = cast(longs({2}), dtype).compute(), zero = zeros({1}, dtype);
      CHECK(only(x / -0.0) == -HUGE_VAL);
      CHECK(only(x / 0.0) == HUGE_VAL);
      CHECK(only(1 / full({1}, -0.0, dtype)) == -HUGE_VAL);
      CHECK(only(x / cast(full({1}, -0.0), dtype)) == -HUGE_VAL);
      CHECK(only(x / neg(zero)) == -HUGE_VAL);  // folded
      CHECK(only(x / maximum(neg(zero), zero)) == HUGE_VAL);
      CHECK(std::signbit(only(full({1}, -0.0, dtype))));
      CHECK(std::signbit(only(pad(slice(x, 0, 0, 0), {1, 0}, -0.0))));
      CHECK(std::signbit(only(where(gt(x, 0), -0.0, x))));
      CHECK(std::isnan(only(x / 0.0 + x / -0.0)));  // two constants, not one
    }
  });
}

TEST_CASE("numbers: no number is rounded to 16 bits before it is used") {
  for (const char* name : {"reference", "fast"}) {
    set_engine(name);
    const Tensor x = cast(Tensor::from(std::vector<float>{35008}, {1}), DType::Float16).compute();
    CHECK(only(x / 70000) == 0.5);
    CHECK(only(x * (1 / 70000.0)) == 0.5);
    CHECK(only(x - 70000) == -35008);  // the even one of the two nearest
    const Tensor y = cast(Tensor::from(std::vector<float>{256}, {1}), DType::BFloat16).compute();
    CHECK(only(y - 257) == -1);
  }
  set_engine("fast");
}

// 10^6 terms of 0.1, which float32 adds one by one to 100,958. For any number of rows and columns,
// because different kernels handle them.
TEST_CASE("numbers: long sums of products stay accurate") {
  constexpr std::int64_t kLong = 1000000;
  const auto is_near = [](const Tensor& y) {
    CHECK(only(reshape(y, {-1})) == doctest::Approx(kLong * 0.1).epsilon(2e-5));
  };
  for (const std::int64_t rows : {1, 2, 8})
    for (const std::int64_t columns : {1, 2, 8}) {
      CAPTURE(rows);
      CAPTURE(columns);
      const Tensor a = full({rows, kLong}, 0.1).compute();
      is_near(matmul(a, ones({kLong, columns}).compute()));
      is_near(matmul(a, transpose(ones({columns, kLong}).compute())));
    }
  const Tensor tenths = full({kLong}, 0.1).compute();
  is_near(matmul(tenths, ones({kLong}).compute()));
  is_near(sum(tenths * 1.0));
  set_engine("reference");
  is_near(matmul(tenths, ones({kLong}).compute()));
  set_engine("fast");
}

TEST_CASE("numbers: a long dot has the same bits for any number of threads") {
  const Tensor a = rand({3, 100003}).compute(), b = rand({100003}).compute();
  const int before = threads();
  set_threads(1);
  const std::vector<float> alone = matmul(a, b).to_vector<float>();
  set_threads(4);
  CHECK(matmul(a, b).to_vector<float>() == alone);
  set_threads(before);
}

TEST_CASE("numbers: a float64 tensor does not make a float32 network compute in float64") {
  const Tensor x = Tensor::from({1.0, 2.0}, {1, 2});  // a list of doubles
  REQUIRE(x.dtype() == DType::Float64);
  const Tensor w = ones({3, 2}), image = ones({1, 1, 4, 4}), filter = ones({2, 1, 3, 3});
  const Tensor wide = cast(image, DType::Float64), bias = zeros({3}, DType::Float64);
  CHECK_THROWS_WITH_AS(linear(x, w), doctest::Contains("to(DType::Float32)"), DTypeError);
  CHECK_THROWS_AS(linear(cast(x, DType::Float32), w, bias), DTypeError);
  CHECK_THROWS_AS(matmul(w, transpose(x)), DTypeError);
  CHECK_THROWS_AS(matmul(cast(w, DType::BFloat16), transpose(x)), DTypeError);
  CHECK_THROWS_AS(conv2d(wide, filter), DTypeError);
  CHECK_THROWS_AS(conv_transpose2d(wide, ones({1, 2, 3, 3})), DTypeError);
  CHECK_THROWS_AS(conv3d(ones({1, 1, 3, 3, 3}, DType::Float64), ones({1, 1, 2, 2, 2})), DTypeError);
  nn::Sequential net(nn::Linear(2, 4), nn::Tanh(), nn::Linear(4, 1));
  CHECK_THROWS_AS(net(x), DTypeError);
  CHECK_THROWS_AS(net(ones({1, 2}) * x), DTypeError);
  // Numbers, and tensors that numbers make, are float32.
  Tensor y = cast(x, DType::Float32) * 2.0 + 0.5;
  y = y * scalar(0.5) + full({2}, 0.25) - arange(0, 2, 1, DType::Float32) * 1e-3;
  CHECK(net(y).dtype() == DType::Float32);
  CHECK(nn::init::constant({2, 2}, 0.5).dtype() == DType::Float32);
  CHECK(matmul(cast(w, DType::Float64), transpose(x)).dtype() == DType::Float64);
  CHECK(matmul(ones({2, 2}, DType::Int32), transpose(x)).dtype() == DType::Float64);
  CHECK(matmul(cast(w, DType::BFloat16), ones({2, 1})).dtype() == DType::Float32);
}
