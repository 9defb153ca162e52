// Two lanes of multiply-and-shift mixing with different multipliers.
#include "base/digest.h"

#include <cstring>

namespace tenon {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  return x ^ (x >> 32);
}

}  // namespace

std::string Digest::hex() const {
  std::string text(32, '0');
  for (int i = 0; i < 32; ++i) {
    const std::uint64_t word = i < 16 ? hi : lo;
    text[static_cast<std::size_t>(i)] = "0123456789abcdef"[(word >> (60 - 4 * (i % 16))) & 15];
  }
  return text;
}

void Digester::add(std::uint64_t number) {
  a_ = mix(a_ ^ number) * 0x9e3779b97f4a7c15ull;
  b_ = mix(b_ + number * 0xc2b2ae3d27d4eb4full) + a_;
}

void Digester::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, text.size() - i < 8 ? text.size() - i : 8);
    add(word);
  }
}

Digest Digester::result() const { return {mix(a_ + 3 * b_), mix(b_ ^ (a_ >> 7))}; }

std::uint64_t checksum(std::string_view bytes) {
  Digester digester;
  digester.add(bytes);
  return digester.result().lo;
}

}  // namespace tenon
