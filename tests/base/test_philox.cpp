// Philox4x32-10 against the known-answer vectors published with Random123 (tests/kat_vectors), and
// uniform01's range.
#include <doctest/doctest.h>

#include <cstdint>

#include "base/philox.h"

using namespace tenon;

namespace {
struct Vector {
  std::uint64_t lo, hi, key;
  std::uint32_t out[4];
};
// Random123 lists 32-bit words, lowest first; here two words make one 64-bit argument.
constexpr Vector kVectors[] = {
    {0, 0, 0, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
    {~0ull, ~0ull, ~0ull, {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
    {0x85a308d3243f6a88ull,
     0x0370734413198a2eull,
     0x299f31d0a4093822ull,
     {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
};
}  // namespace

TEST_CASE("philox: known answers") {
  for (const Vector& vector : kVectors) {
    const Philox4 words = philox(vector.key, vector.lo, vector.hi);
    for (int i = 0; i < 4; ++i) CHECK(words.v[i] == vector.out[i]);
  }
}

TEST_CASE("philox: uniform01 is in [0, 1)") {
  CHECK(uniform01(0) == 0.0f);
  CHECK(uniform01(~0u) < 1.0f);
  CHECK(uniform01(~0u) > 0.9999999f);
}
