// ASCII decimal digits, independent of the locale.
#pragma once

namespace tenon {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace tenon
