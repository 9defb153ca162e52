// Random numbers of the reference engine: which Philox word each element gets.
//
// The numbering is part of the interface (docs/numerics.md); src/ops/random.cpp describes it.
#include <cmath>
#include <numbers>

#include "base/philox.h"
#include "cpu/engines/reference/reference.h"

namespace tenon::cpu::reference {

namespace {

double normal(std::uint32_t first, std::uint32_t second, bool cosine) {
  const double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(uniform01(first))));
  const double angle = 2 * std::numbers::pi * static_cast<double>(uniform01(second));
  return radius * (cosine ? std::cos(angle) : std::sin(angle));
}

}  // namespace

Array random(const RandomAttrs& attrs, DType dtype, const std::int64_t* state, std::int64_t count) {
  Array out(dtype, count);
  const auto key = static_cast<std::uint64_t>(state[0]);
  const auto draw = static_cast<std::uint64_t>(state[1]) + static_cast<std::uint64_t>(attrs.offset);
  for (std::int64_t i = 0; i < count; ++i) {
    const Philox4 block = philox(key, static_cast<std::uint64_t>(i / 4), draw);
    const auto word = static_cast<std::size_t>(i % 4), pair = word / 2 * 2;
    if (attrs.kind == RandomKind::Uniform) {
      out.set(i, static_cast<double>(uniform01(block.v[word])));
    } else if (attrs.kind == RandomKind::Normal) {
      out.set(i, normal(block.v[pair], block.v[pair + 1], word == pair));
    } else {
      out.set(i, static_cast<std::int64_t>(block.v[word]));
    }
  }
  return out;
}

}  // namespace tenon::cpu::reference
