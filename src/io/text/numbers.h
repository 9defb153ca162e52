// Numbers as written in tables: decimal commas, thousands separators, percent signs, typographic
// minus signs.
#pragma once

#include <string_view>

namespace tenon::io {

/// Number format of a file.
struct NumberFormat {
  char decimal = '.';
  /// Separator of groups of three digits; ' ' for a space; 0: none. No-break and thin spaces are
  /// always accepted.
  char thousands = 0;
};

/// Conversions applied to read a number: bits.
enum NumberSign : unsigned {
  kPercentSign = 1,      ///< "12 %" is 0.12
  kMinusSign = 2,        ///< U+2212
  kNoBreakSpace = 4,     ///< U+00A0, U+2009 or U+202F in or around the number
  kFortranExponent = 8,  ///< "1.5D+03"
};

enum class NumberKind { None, Number, TooLarge };

/// Parses a number, ignoring spaces around it. TooLarge: infinity, or beyond float64. `signs`
/// receives the conversions that were needed.
NumberKind read_number(std::string_view field, const NumberFormat& format, double& value,
                       unsigned& signs) noexcept;

/// Parses a finite number in C syntax, ignoring spaces around it; false if it is not one.
bool parse_number(std::string_view field, double& value) noexcept;

}  // namespace tenon::io
