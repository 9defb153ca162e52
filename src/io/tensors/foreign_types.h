// Element types of other libraries that Tenon does not have: which of them can be converted without
// changing a value, and how.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/dtype.h>

namespace tenon::io {

enum class Conversion : std::uint8_t {
  None,        ///< the element type exists in Tenon
  Int16,       ///< to int32
  UInt16,      ///< to int32
  UInt32,      ///< to int64
  E4M3FN,      ///< float8 without infinities, to float32
  E5M2,        ///< float8 with infinities, to float32
  E4M3FNUZ,    ///< float8 without infinities and without a negative zero, to float32
  E5M2FNUZ,    ///< the same with five bits of exponent, to float32
  E8M0FNU,     ///< a power of two, to float32
  Unreadable,  ///< no type of Tenon represents all of its values: complex, quantised, uint64
};

/// Converts elements in the machine's byte order to Tenon's type. Values do not change.
std::string converted(Conversion how, std::string_view bytes);

}  // namespace tenon::io
