// An axis, a node's number or an element's place, signed everywhere in the library, as the standard
// containers want it; and how many units cover so many of them.
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
