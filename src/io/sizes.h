// Number of elements of the sizes in a header, with overflow checks.
#pragma once

#include <cstdint>
#include <span>

namespace tenon::io {

/// The product of the sizes into `count`; false when the sizes other than 0 make more than 2^56
/// elements, whether or not a 0 stands among them.
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
