// Ranges of numeric options: one table for each struct of options, and one error message for all of
// them.
//
// NaN is in no range. An unset member (std::optional) is not checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tenon {

struct Range {
  double low = 0, high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;  ///< whether the end itself is outside

  constexpr bool has(double value) const {
    return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
  }
  /// "at least 0", "from 0 to 1", "at least 0 and below 1"
  std::string text() const;
};

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr Range at_least(double low) { return {low, kNoLimit, false, false}; }
constexpr Range from_to(double low, double high) { return {low, high, false, false}; }
constexpr Range from_below(double low, double high) { return {low, high, false, true}; }
constexpr Range above_to(double low, double high) { return {low, high, true, false}; }
constexpr Range between(double low, double high) { return {low, high, true, true}; }
constexpr Range finite_from(double low) { return {low, kNoLimit, false, true}; }
constexpr Range finite_above(double low) { return {low, kNoLimit, true, true}; }
constexpr Range any_finite() { return {-kNoLimit, kNoLimit, true, true}; }

/// Throws ValueError "WHOSE: NAME is VALUE, must be RANGE".
void require_range(std::string_view whose, std::string_view name, double value, const Range& range);
void require_range(std::string_view whose, std::string_view name, std::int64_t value,
                   const Range& range);

/// The range of one option.
template <class Options>
struct OptionRange {
  const char* name;
  std::variant<int Options::*, std::int64_t Options::*, double Options::*,
               std::optional<double> Options::*>
      member;
  Range range;
};

namespace option_ranges {

inline void require(std::string_view whose, const char* name, double value, const Range& range) {
  require_range(whose, name, value, range);
}
inline void require(std::string_view whose, const char* name, std::int64_t value,
                    const Range& range) {
  require_range(whose, name, value, range);
}
inline void require(std::string_view whose, const char* name, int value, const Range& range) {
  require_range(whose, name, std::int64_t{value}, range);
}
inline void require(std::string_view whose, const char* name, const std::optional<double>& value,
                    const Range& range) {
  if (value) require_range(whose, name, *value, range);
}

}  // namespace option_ranges

/// Throws ValueError as require_range() for the first option outside its range.
template <class Options, std::size_t kCount>
void check_options(std::string_view whose, const Options& options,
                   const OptionRange<Options> (&table)[kCount]) {
  for (const OptionRange<Options>& row : table)
    std::visit(
        [&](auto member) { option_ranges::require(whose, row.name, options.*member, row.range); },
        row.member);
}

}  // namespace tenon
