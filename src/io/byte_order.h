// Converts values of either byte order to the machine's, in place.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tenon::io {

/// Reverses the bytes of each of `count` elements of `size` bytes.
inline void swap_bytes(void* data, std::size_t size, std::size_t count) {
  auto* at = static_cast<unsigned char*>(data);
  for (std::size_t i = 0; i < count; ++i, at += size) std::reverse(at, at + size);
}

template <class T>
T read_little(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::endian::native == std::endian::big) swap_bytes(&value, sizeof value, 1);
  return value;
}
template <class T>
T read_big(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::endian::native == std::endian::little) swap_bytes(&value, sizeof value, 1);
  return value;
}

/// Bools are stored as bytes; a foreign byte such as 2 must not become a bool's representation.
inline void normalize_bools(void* data, std::size_t count) {
  auto* at = static_cast<unsigned char*>(data);
  for (std::size_t i = 0; i < count; ++i) at[i] = at[i] != 0 ? 1 : 0;
}

}  // namespace tenon::io
