// The error message for an option outside its range.
#include "base/system/option_ranges.h"

#include <cmath>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon {
namespace {

// 16777216 rather than 1.6777216e+07.
std::string end_text(double end) {
  constexpr double kMostWhole = 9007199254740992;
  return std::abs(end) < kMostWhole && end == std::floor(end) ? cat(static_cast<std::int64_t>(end))
                                                              : cat(end);
}

template <class Number>
void require(std::string_view whose, std::string_view name, Number value, const Range& range) {
  if (!range.has(static_cast<double>(value)))
    throw ValueError(cat(whose, ": ", name, " is ", value, ", must be ", range.text()));
}

}  // namespace

std::string Range::text() const {
  const std::string lower = end_text(low), upper = end_text(high);
  if (std::isinf(high)) {
    std::string finite = high_open ? "finite" : "";
    if (std::isinf(low)) return finite;
    return cat(finite, high_open ? " and " : "", low_open ? "above " : "at least ", lower);
  }
  if (!low_open && !high_open) return cat("from ", lower, " to ", upper);
  return cat(low_open ? "above " : "at least ", lower, " and ", high_open ? "below " : "at most ",
             upper);
}

void require_range(std::string_view whose, std::string_view name, double value,
                   const Range& range) {
  require(whose, name, value, range);
}

void require_range(std::string_view whose, std::string_view name, std::int64_t value,
                   const Range& range) {
  require(whose, name, value, range);
}

}  // namespace tenon
