// Scalar: a plain number as an operand, stored as a whole number or as floating point.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <tenon/export.h>

namespace tenon {

/// A plain number, accepted wherever an operation takes one. Whole numbers are stored exactly as
/// int64; other numbers are stored as float64, where the sign of zero is kept. An unsigned number
/// beyond int64 throws ValueError; pass it as a double.
class Scalar {
 public:
  /// The whole number 0.
  constexpr Scalar() noexcept = default;
  /// A number of any arithmetic type.
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Scalar(T v)  // NOLINT(google-explicit-constructor): numbers are given as they are
      : bits_(bits_of(v)), whole_(std::is_integral_v<T>) {}

  /// Whether it was constructed from an integer type.
  constexpr bool is_whole() const noexcept { return whole_ != 0; }
  /// The number as float64, rounded if necessary.
  constexpr double real() const noexcept {
    return is_whole() ? static_cast<double>(bits_) : std::bit_cast<double>(bits_);
  }
  /// The number as int64: truncated, limited to the range of int64, and 0 for NaN.
  constexpr std::int64_t whole() const noexcept {
    if (is_whole()) return bits_;
    const double v = real();
    if (v >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
    if (v < -0x1p63) return std::numeric_limits<std::int64_t>::min();
    return v == v ? static_cast<std::int64_t>(v) : 0;
  }
  /// Whether the number is 0.
  constexpr bool is_zero() const noexcept { return is_whole() ? bits_ == 0 : real() == 0; }

 private:
  template <class T>
  static constexpr std::int64_t bits_of(T v) {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(std::int64_t))
        if (v > static_cast<T>(std::numeric_limits<std::int64_t>::max())) refuse(v);
      return static_cast<std::int64_t>(v);
    } else {
      return std::bit_cast<std::int64_t>(static_cast<double>(v));
    }
  }
  [[noreturn]] TENON_API static void refuse(std::uint64_t value);

  std::int64_t bits_ = 0,
               whole_ = 1;  // plain integers, because node attributes are compared bytewise
};

}  // namespace tenon
