// Numbers as written in tables: decimal commas, thousands separators, percent signs, typographic
// minus signs.
#pragma once

#include <string_view>

namespace tenon::io {

/// How the numbers of a file are written.
struct NumberFormat {
  char decimal = '.';
  /// Between groups of three digits; ' ' stands for a space. 0: numbers have none. No-break and
  /// thin spaces are taken for such in any case.
  char thousands = 0;
};

/// What was done to read a number: bits.
enum NumberSign : unsigned {
  kPercentSign = 1,      ///< "12 %" is 0.12
  kMinusSign = 2,        ///< U+2212
  kNoBreakSpace = 4,     ///< U+00A0, U+2009 or U+202F in or around it
  kFortranExponent = 8,  ///< "1.5D+03"
};

enum class NumberKind { None, Number, TooLarge };

/// A field as a number, spaces around it ignored. TooLarge: an infinity, or beyond float64.
/// `signs` gets what had to be undone.
NumberKind read_number(std::string_view field, const NumberFormat& format, double& value,
                       unsigned& signs) noexcept;

/// A field as a finite number as C writes it, spaces around it ignored; false when it is none.
bool parse_number(std::string_view field, double& value) noexcept;

}  // namespace tenon::io
