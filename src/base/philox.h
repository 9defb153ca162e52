// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a
// counter-based random number generator.
//
// A number depends on (seed, counter) alone, so any part of a stream can be computed anywhere, in
// any order, on CPU and GPU alike. Nothing here keeps state.
#pragma once

#include <cstdint>

namespace tenon {

struct Philox4 {
  std::uint32_t v[4];
};

/// Four 32-bit words for the 128-bit counter (lo, hi) under a 64-bit key.
constexpr Philox4 philox(std::uint64_t key, std::uint64_t lo, std::uint64_t hi) noexcept {
  std::uint32_t c0 = static_cast<std::uint32_t>(lo), c1 = static_cast<std::uint32_t>(lo >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(hi), c3 = static_cast<std::uint32_t>(hi >> 32);
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c0 = n0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = n2;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// A float in [0, 1) with 24 random bits.
constexpr float uniform01(std::uint32_t word) noexcept {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

}  // namespace tenon
