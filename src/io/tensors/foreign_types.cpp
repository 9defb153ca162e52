// Exact conversion of small integers and 8-bit floating-point numbers to larger types.
#include "io/tensors/foreign_types.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <tenon/error.h>

namespace tenon::io {
namespace {

template <class From, class To>
std::string upcast(std::string_view bytes) {
  const std::size_t count = bytes.size() / sizeof(From);
  std::string out(count * sizeof(To), '\0');
  for (std::size_t i = 0; i < count; ++i) {
    From from{};
    std::memcpy(&from, bytes.data() + i * sizeof from, sizeof from);
    const To value = from;
    std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
  }
  return out;
}

// An IEEE 754 style format: one sign bit, exponent bits, fraction bits.
struct SmallFloat {
  int exponent_bits, bias;
  bool infinities;     // largest exponent: infinities and NaN; if false, only all ones is NaN
  bool unsigned_zero;  // "fnuz": 0x80 is the only NaN
};

float value_of(const SmallFloat& type, unsigned code) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const int fraction_bits = 7 - type.exponent_bits;
  const unsigned fraction = code & ((1U << fraction_bits) - 1),
                 exponent = (code & 0x7fU) >> fraction_bits;
  const float sign = code < 0x80U ? 1.0F : -1.0F;
  if (type.unsigned_zero && code == 0x80U) return kNan;
  if (!type.unsigned_zero && !type.infinities && (code & 0x7fU) == 0x7fU) return kNan;
  if (type.infinities && exponent == (1U << type.exponent_bits) - 1)
    return fraction != 0 ? kNan : sign * std::numeric_limits<float>::infinity();
  const unsigned whole = exponent == 0 ? fraction : fraction | 1U << fraction_bits;
  const int power = static_cast<int>(exponent == 0 ? 1 : exponent) - type.bias - fraction_bits;
  return sign * std::ldexp(static_cast<float>(whole), power);
}

float power_of_two(unsigned code) {
  constexpr unsigned kNan = 0xff;
  constexpr int kBias = 127;
  return code == kNan ? std::numeric_limits<float>::quiet_NaN()
                      : std::ldexp(1.0F, static_cast<int>(code) - kBias);
}

template <class Value>
std::string from_codes(std::string_view bytes, const Value& value) {
  std::array<float, 256> table{};
  for (unsigned code = 0; code < table.size(); ++code) table[code] = value(code);
  std::string out(bytes.size() * sizeof(float), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    std::memcpy(out.data() + i * sizeof(float), &table[static_cast<unsigned char>(bytes[i])],
                sizeof(float));
  return out;
}

std::string from_small(std::string_view bytes, const SmallFloat& type) {
  return from_codes(bytes, [&type](unsigned code) { return value_of(type, code); });
}

}  // namespace

std::string converted(Conversion how, std::string_view bytes) {
  switch (how) {
    case Conversion::None:
      return std::string(bytes);
    case Conversion::Int16:
      return upcast<std::int16_t, std::int32_t>(bytes);
    case Conversion::UInt16:
      return upcast<std::uint16_t, std::int32_t>(bytes);
    case Conversion::UInt32:
      return upcast<std::uint32_t, std::int64_t>(bytes);
    case Conversion::E4M3FN:
      return from_small(bytes, {4, 7, false, false});
    case Conversion::E5M2:
      return from_small(bytes, {5, 15, true, false});
    case Conversion::E4M3FNUZ:
      return from_small(bytes, {4, 8, false, true});
    case Conversion::E5M2FNUZ:
      return from_small(bytes, {5, 16, false, true});
    case Conversion::E8M0FNU:
      return from_codes(bytes, power_of_two);
    case Conversion::Unreadable:
      break;
  }
  throw InternalError("values of a type that Tenon lacks were asked for");
}

}  // namespace tenon::io
