// DType: element types of tensors, the two 16-bit floating-point types, and type promotion.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <tenon/export.h>

namespace tenon {

/// Element type of a tensor; PyTorch's torch.dtype. Inside a category (integers, floating point),
/// the order is the order of promotion.
enum class DType : std::uint8_t {
  Bool,      ///< Truth value, one byte.
  UInt8,     ///< Unsigned 8-bit integer.
  Int8,      ///< Signed 8-bit integer.
  Int32,     ///< Signed 32-bit integer.
  Int64,     ///< Signed 64-bit integer.
  Float16,   ///< IEEE binary16 (half precision).
  BFloat16,  ///< The upper half of an IEEE binary32.
  Float32,   ///< IEEE binary32 (single precision).
  Float64    ///< IEEE binary64 (double precision).
};

/// Number of element types.
inline constexpr int kDTypeCount = 9;

/// Bytes of one element.
TENON_API std::size_t item_size(DType dtype) noexcept;
/// PyTorch's name without the prefix: "float32", "bfloat16", "bool", …
TENON_API const char* name(DType dtype) noexcept;
/// The dtype with this name(); also accepts "fp32", "fp64", "fp16" and "bf16". Throws ValueError
/// for an unknown name.
TENON_API DType dtype_from_name(const char* text);

/// Whether the dtype is a floating-point type.
constexpr bool is_floating(DType t) noexcept { return t >= DType::Float16; }
/// Whether the dtype is an integer type; bool is not.
constexpr bool is_integral(DType t) noexcept { return t >= DType::UInt8 && t <= DType::Int64; }
/// Whether the dtype is bool.
constexpr bool is_bool(DType t) noexcept { return t == DType::Bool; }

/// The dtype of an operation on tensors of two dtypes, by the array API's table. Where the table is
/// undefined (an integer with a floating-point type), the result is the floating-point type, as in
/// PyTorch. uint8 with int8 gives int32 (there is no int16); float16 with bfloat16 gives float32.
TENON_API DType promote(DType a, DType b) noexcept;

/// An IEEE binary16 value for storage; arithmetic is done in float.
struct float16 {
  std::uint16_t bits = 0;  ///< The bit pattern.
  /// Zero.
  float16() = default;
  /// Rounds to nearest even; overflows to infinity.
  TENON_API explicit float16(float value) noexcept;
  /// The exact value.
  TENON_API explicit operator float() const noexcept;
};

/// A bfloat16 value, the upper half of an IEEE binary32, for storage; arithmetic is done in float.
struct bfloat16 {
  std::uint16_t bits = 0;  ///< The bit pattern.
  /// Zero.
  bfloat16() = default;
  /// Rounds to nearest even; NaN stays NaN.
  explicit bfloat16(float value) noexcept {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(nan ? ((u >> 16) | 0x40u)
                                          : ((u + 0x7fffu + ((u >> 16) & 1u)) >> 16));
  }
  /// The exact value.
  explicit operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// The dtype of a C++ type as `DTypeOf<T>::value`; defined for the nine element types.
template <class T>
struct DTypeOf;
#define TENON_DTYPE_OF(T, D)                                           \
  /** The dtype of one C++ type. */                                    \
  template <>                                                          \
  struct DTypeOf<T> {                                                  \
    static constexpr DType value = DType::D; /**< The element type. */ \
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

/// The dtype of a C++ type: `dtype_of<float> == DType::Float32`. Defined for the nine element
/// types.
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace tenon
