// Conversions between signed indices, which the library uses everywhere, and the unsigned ones of
// standard containers; and division rounded up.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon {

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::int64_t divide_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit;
}

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return divide_up(n, unit) * unit;
}

}  // namespace tenon
