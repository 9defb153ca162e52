// Number of elements of the sizes in a header, with overflow checks.
#pragma once

#include <cstdint>
#include <span>

namespace tenon::io {

/// Stores the product of the sizes in `count`. Returns false if the non-zero sizes give more than
/// 2^56 elements, even if another size is 0.
template <class Size>
bool count_elements(std::span<const Size> sizes, std::uint64_t& count) noexcept {
  constexpr std::uint64_t most = std::uint64_t{1} << 56;
  std::uint64_t product = 1;
  bool empty = false;
  for (const Size size : sizes) {
    const auto n = static_cast<std::uint64_t>(size);
    if (n == 0) {
      empty = true;
    } else if (n > most / product) {
      return false;
    } else {
      product *= n;
    }
  }
  count = empty ? 0 : product;
  return true;
}

}  // namespace tenon::io
