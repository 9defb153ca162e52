// Element types, the two 16-bit floating types, and the promotion rules.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <tenon/export.h>

namespace tenon {

/// Element type of a tensor. The order is the order of promotion inside a category.
enum class DType : std::uint8_t {
  Bool,
  UInt8,
  Int8,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64
};

inline constexpr int kDTypeCount = 9;

/// Bytes of one element.
TENON_API std::size_t item_size(DType dtype) noexcept;
/// PyTorch's name without the prefix: "float32", "bfloat16", "bool", …
TENON_API const char* name(DType dtype) noexcept;
/// The inverse of name(); also takes "fp32", "fp64", "fp16", "bf16". Throws ValueError for an
/// unknown name.
TENON_API DType dtype_from_name(const char* text);

constexpr bool is_floating(DType t) noexcept { return t >= DType::Float16; }
constexpr bool is_integral(DType t) noexcept { return t >= DType::UInt8 && t <= DType::Int64; }
constexpr bool is_bool(DType t) noexcept { return t == DType::Bool; }

/// The type of an operation on two tensors: the array API's table; where that is undefined (integer
/// with floating), PyTorch's: the floating one. uint8 with int8 gives int32 (there is no int16),
/// float16 with bfloat16 gives float32.
TENON_API DType promote(DType a, DType b) noexcept;

/// IEEE binary16 as storage. Arithmetic happens in float.
struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  TENON_API explicit float16(
      float value) noexcept;  ///< Rounds to nearest even; overflows to infinity.
  TENON_API explicit operator float() const noexcept;
};

/// The upper half of an IEEE binary32 as storage. Arithmetic happens in float.
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  /// Rounds to nearest even; NaN stays NaN.
  explicit bfloat16(float value) noexcept {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(nan ? ((u >> 16) | 0x40u)
                                          : ((u + 0x7fffu + ((u >> 16) & 1u)) >> 16));
  }
  explicit operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

template <class T>
struct DTypeOf;
#define TENON_DTYPE_OF(T, D)                 \
  template <>                                \
  struct DTypeOf<T> {                        \
    static constexpr DType value = DType::D; \
  }
TENON_DTYPE_OF(bool, Bool);
TENON_DTYPE_OF(std::uint8_t, UInt8);
TENON_DTYPE_OF(std::int8_t, Int8);
TENON_DTYPE_OF(std::int32_t, Int32);
TENON_DTYPE_OF(std::int64_t, Int64);
TENON_DTYPE_OF(float16, Float16);
TENON_DTYPE_OF(bfloat16, BFloat16);
TENON_DTYPE_OF(float, Float32);
TENON_DTYPE_OF(double, Float64);
#undef TENON_DTYPE_OF

/// dtype_of<float> == DType::Float32, and so on for the nine element types.
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace tenon
