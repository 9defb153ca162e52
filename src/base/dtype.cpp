// Names, sizes and promotion of element types, and the conversions of IEEE binary16.
//
// Promotion is one explicit table: the array API's rows, completed where the standard leaves gaps.
#include <tenon/dtype.h>
#include <tenon/error.h>

#include <bit>
#include <string>
#include <string_view>

#include "base/epsilon.h"
#include "base/str.h"

namespace tenon {
namespace {

struct Row {
  const char* name;
  std::size_t size;
};

constexpr Row kRows[kDTypeCount] = {
    {"bool", 1},    {"uint8", 1},    {"int8", 1},    {"int32", 4},   {"int64", 8},
    {"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8},
};

struct Alias {
  std::string_view text;
  DType dtype;
};

constexpr Alias kAliases[] = {{"fp16", DType::Float16},  {"half", DType::Float16},
                              {"bf16", DType::BFloat16}, {"fp32", DType::Float32},
                              {"float", DType::Float32}, {"fp64", DType::Float64},
                              {"double", DType::Float64}};

constexpr int index(DType t) noexcept { return static_cast<int>(t); }

// Rows and columns in the order of the enum.
constexpr DType B = DType::Bool, U8 = DType::UInt8, I8 = DType::Int8, I32 = DType::Int32,
                I64 = DType::Int64, F16 = DType::Float16, BF = DType::BFloat16,
                F32 = DType::Float32, F64 = DType::Float64;
constexpr DType kPromotion[kDTypeCount][kDTypeCount] = {
    {B, U8, I8, I32, I64, F16, BF, F32, F64},       // bool
    {U8, U8, I32, I32, I64, F16, BF, F32, F64},     // uint8
    {I8, I32, I8, I32, I64, F16, BF, F32, F64},     // int8
    {I32, I32, I32, I32, I64, F16, BF, F32, F64},   // int32
    {I64, I64, I64, I64, I64, F16, BF, F32, F64},   // int64
    {F16, F16, F16, F16, F16, F16, F32, F32, F64},  // float16
    {BF, BF, BF, BF, BF, F32, BF, F32, F64},        // bfloat16
    {F32, F32, F32, F32, F32, F32, F32, F32, F64},  // float32
    {F64, F64, F64, F64, F64, F64, F64, F64, F64},  // float64
};

constexpr std::uint32_t kFloatInfinity = 0x7f800000u;
constexpr std::uint32_t kHalfOverflow = 0x47800000u;   // 2^16: beyond every finite binary16
constexpr std::uint32_t kHalfMinNormal = 0x38800000u;  // 2^-14

std::uint16_t half_bits(float value) noexcept {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000u);
  const std::uint32_t magnitude = u & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > kFloatInfinity) {
    half = 0x7e00u | ((magnitude >> 13) & 0x1ffu);  // a quiet NaN keeps its payload's top bits
  } else if (magnitude >= kHalfOverflow) {
    half = 0x7c00u;
  } else if (magnitude < kHalfMinNormal) {
    // Adding 0.5 aligns a subnormal's last bit with binary32's last bit, so the addition rounds it.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(aligned) - std::bit_cast<std::uint32_t>(0.5f);
  } else {
    // Rebias the exponent (127 to 15); a carry of the rounding may correctly reach infinity.
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    half = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace

std::size_t item_size(DType dtype) noexcept { return kRows[index(dtype)].size; }

const char* name(DType dtype) noexcept { return kRows[index(dtype)].name; }

DType dtype_from_name(const char* text) {
  const std::string_view wanted = text;
  std::string names[kDTypeCount];
  for (int i = 0; i < kDTypeCount; ++i) {
    if (wanted == kRows[i].name) return static_cast<DType>(i);
    names[i] = kRows[i].name;
  }
  for (const Alias& alias : kAliases)
    if (wanted == alias.text) return alias.dtype;
  const std::string near = nearest(wanted, names, kDTypeCount);
  std::string message = cat("dtype: '", wanted, "' is not an element type; ");
  if (!near.empty()) message += cat("did you mean '", near, "'? ");
  message += "The types are";
  for (const std::string& each : names) message += cat(" ", each);
  throw ValueError(message);
}

double epsilon_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::Float64:
      return 0x1p-52;
    case DType::Float16:
      return 0x1p-10;
    case DType::BFloat16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

DType promote(DType a, DType b) noexcept { return kPromotion[index(a)][index(b)]; }

float16::float16(float value) noexcept : bits(half_bits(value)) {}

float16::operator float() const noexcept {
  const std::uint32_t sign = (bits & 0x8000u) * 0x10000u;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u)
    return std::bit_cast<float>(sign | kFloatInfinity | ((magnitude & 0x3ffu) << 13));
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

}  // namespace tenon
