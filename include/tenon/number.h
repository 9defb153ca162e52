// Scalar: a plain number beside a tensor, kept as it was written.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <tenon/export.h>

namespace tenon {

/// Whole numbers are exact int64; others are float64, whose zero keeps its sign. Stands wherever a
/// number is given. An unsigned number beyond int64 is a ValueError: give it as a double.
class Scalar {
 public:
  constexpr Scalar() noexcept = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Scalar(T v)  // NOLINT(google-explicit-constructor): numbers are given as they are
      : bits_(bits_of(v)), whole_(std::is_integral_v<T>) {}

  /// Whether it was written as a whole number.
  constexpr bool is_whole() const noexcept { return whole_ != 0; }
  /// The nearest float64.
  constexpr double real() const noexcept {
    return is_whole() ? static_cast<double>(bits_) : std::bit_cast<double>(bits_);
  }
  /// Truncated; the nearest int64 of what lies beyond, and 0 for NaN.
  constexpr std::int64_t whole() const noexcept {
    if (is_whole()) return bits_;
    const double v = real();
    if (v >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
    if (v < -0x1p63) return std::numeric_limits<std::int64_t>::min();
    return v == v ? static_cast<std::int64_t>(v) : 0;
  }
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

  std::int64_t bits_ = 0, whole_ = 1;  // plain words: attributes of nodes are compared by them
};

}  // namespace tenon
