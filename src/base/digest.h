// A 128-bit digest for cache keys: protects against chance, not against forgery.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

struct Digest {
  std::uint64_t lo = 0, hi = 0;
  bool operator==(const Digest&) const = default;
  bool operator<(const Digest& other) const {
    return lo != other.lo ? lo < other.lo : hi < other.hi;
  }
  /// 32 hexadecimal digits.
  std::string hex() const;
};

/// Digests a sequence of strings; the boundaries between strings change the digest.
class Digester {
 public:
  void add(std::string_view text);
  void add(std::uint64_t number);
  Digest result() const;

 private:
  std::uint64_t a_ = 0x243f6a8885a308d3ull, b_ = 0x13198a2e03707344ull;  // digits of pi
};

/// 64-bit checksum of bytes.
std::uint64_t checksum(std::string_view bytes);

}  // namespace tenon
