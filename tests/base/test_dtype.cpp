// Element types: names, promotion laws, and the two 16-bit formats over every one of their values.
#include <doctest/doctest.h>
#include <tenon/dtype.h>
#include <tenon/error.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

using namespace tenon;

namespace {
DType at(int i) { return static_cast<DType>(i); }
float half(std::uint16_t bits) {
  float16 h;
  h.bits = bits;
  return static_cast<float>(h);
}
}  // namespace

TEST_CASE("dtype: names and sizes") {
  for (int i = 0; i < kDTypeCount; ++i) CHECK(dtype_from_name(name(at(i))) == at(i));
  CHECK(dtype_from_name("bf16") == DType::BFloat16);
  CHECK(dtype_from_name("fp32") == DType::Float32);
  CHECK(item_size(DType::Bool) == 1);
  CHECK(item_size(DType::BFloat16) == 2);
  CHECK(item_size(DType::Int64) == 8);
  CHECK_THROWS_WITH_AS(dtype_from_name("flaot32"), doctest::Contains("did you mean 'float32'"),
                       ValueError);
  CHECK_THROWS_AS(dtype_from_name(""), ValueError);
}

TEST_CASE("dtype: promotion is commutative, idempotent and has bool as identity") {
  for (int i = 0; i < kDTypeCount; ++i) {
    CHECK(promote(at(i), at(i)) == at(i));
    CHECK(promote(at(i), DType::Bool) == at(i));
    for (int j = 0; j < kDTypeCount; ++j) CHECK(promote(at(i), at(j)) == promote(at(j), at(i)));
  }
}

TEST_CASE("dtype: promotion across categories") {
  CHECK(promote(DType::UInt8, DType::Int8) == DType::Int32);
  CHECK(promote(DType::UInt8, DType::Int32) == DType::Int32);
  CHECK(promote(DType::Float16, DType::BFloat16) == DType::Float32);
  CHECK(promote(DType::Int64, DType::Float16) == DType::Float16);
  CHECK(promote(DType::Float32, DType::Float64) == DType::Float64);
}

TEST_CASE("dtype: every binary16 value survives the round trip through float") {
  for (std::uint32_t b = 0; b <= 0xffffu; ++b) {
    const auto bits = static_cast<std::uint16_t>(b);
    const float value = half(bits);
    if (std::isnan(value)) {
      CHECK(std::isnan(static_cast<float>(float16(value))));
    } else if (float16(value).bits != bits) {
      FAIL("binary16 ", b, " came back as ", float16(value).bits);
    }
  }
}

TEST_CASE("dtype: binary16 rounds to the nearest, ties to even") {
  for (std::uint32_t b = 0; b < 0x7bffu; ++b) {
    const auto low = static_cast<std::uint16_t>(b), high = static_cast<std::uint16_t>(b + 1);
    const float middle = (half(low) + half(high)) / 2;  // exact in binary32
    const std::uint16_t even = (b & 1u) != 0 ? high : low;
    const bool right = float16(middle).bits == even &&
                       float16(std::nextafter(middle, 0.0f)).bits == low &&
                       float16(std::nextafter(middle, 1e9f)).bits == high;
    if (!right) FAIL("wrong rounding above binary16 ", b);
  }
  CHECK(float16(65504.0f).bits == 0x7bff);
  CHECK(float16(65519.99f).bits == 0x7bff);
  CHECK(float16(65520.0f).bits == 0x7c00);
  CHECK(float16(-1e30f).bits == 0xfc00);
  CHECK(float16(-0.0f).bits == 0x8000);
  CHECK(float16(1e-30f).bits == 0);
}

TEST_CASE("dtype: bfloat16 round trip, ties, NaN and infinity") {
  for (std::uint32_t b = 0; b <= 0xffffu; ++b) {
    bfloat16 x;
    x.bits = static_cast<std::uint16_t>(b);
    const auto value = static_cast<float>(x);
    const bfloat16 back(value);
    if (std::isnan(value) ? !std::isnan(static_cast<float>(back)) : back.bits != x.bits)
      FAIL("bfloat16 ", b, " came back as ", back.bits);
  }
  CHECK(static_cast<float>(bfloat16(1.00390625f)) == 1.0f);       // a tie: to even, down
  CHECK(static_cast<float>(bfloat16(1.01171875f)) == 1.015625f);  // a tie: to even, up
  CHECK(std::isinf(static_cast<float>(bfloat16(std::numeric_limits<float>::max()))));
}
