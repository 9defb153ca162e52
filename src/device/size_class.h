// Size classes of the memory pools, for the host and for GPUs.
#pragma once

#include <bit>
#include <cstddef>

namespace tenon {

/// Rounds up to 2^k or 3 * 2^(k-1) bytes and to a multiple of `alignment`, a power of two. At most
/// a third is lost, and there are few classes, so freed blocks are reused.
inline std::size_t size_class(std::size_t bytes, std::size_t alignment) {
  if (bytes <= alignment) return alignment;
  const std::size_t power = std::bit_ceil(bytes);
  const std::size_t three_quarters = power / 4 * 3;
  return bytes <= three_quarters && three_quarters % alignment == 0 ? three_quarters : power;
}

}  // namespace tenon
