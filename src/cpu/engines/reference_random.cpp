// Random numbers of the reference engine: which Philox word belongs to which element.
#include <cmath>
#include <numbers>

#include "base/philox.h"
#include "cpu/engines/reference.h"

namespace tenon::cpu::reference {

Array random(const Attrs& attrs, DType dtype, const std::int64_t* state, std::int64_t count) {
  Array out(dtype, count);
  const auto key = static_cast<std::uint64_t>(state[0]);
  const auto draw = static_cast<std::uint64_t>(state[1]) + static_cast<std::uint64_t>(attrs.i[1]);
  for (std::int64_t i = 0; i < count; ++i) {
    if (attrs.i[0] == 0) {
      out.set(i, static_cast<double>(
                     uniform01(philox(key, static_cast<std::uint64_t>(i / 4), draw).v[i % 4])));
    } else {
      const Philox4 words = philox(key, static_cast<std::uint64_t>(i / 2), draw);
      const double radius =
          std::sqrt(-2 * std::log(1 - static_cast<double>(uniform01(words.v[0]))));
      const double angle = 2 * std::numbers::pi * static_cast<double>(uniform01(words.v[1]));
      out.set(i, radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)));
    }
  }
  return out;
}

}  // namespace tenon::cpu::reference
