// Dates and times in tables, and the numeric inputs that a network gets for them.
#pragma once

#include <string>
#include <string_view>

namespace tenon::data {

/// Orders of day, month and year, as bits, because a text may be valid in several.
enum DateOrder : unsigned { kYearFirst = 1, kDayFirst = 2, kMonthFirst = 4, kAnyOrder = 7 };

/// Conversion to and from "ymd", "dmy", "mdy"; kAnyOrder for other texts.
const char* name(DateOrder order);
DateOrder date_order(std::string_view name);

/// Reads a date, with or without a time of day. Gives the orders in which the text is one, 0 for no
/// date, and of those in `order` the seconds since 2000-01-01 00:00 (UTC where the text names its
/// offset). Forms:
///   2024-03-09, 2024/3/9, 20240309, 2024-03         in any order: the year has four digits
///   9.3.2024, 9 March 2024, 9-Mar-2024, Mar 9, 2024 in any order: day before month, or by name
///   9/3/2024, 9-3-2024                              day or month first
///   9/3/24, 9.3.24, 9-Mar-24                        where `order` says which: 69 to 99 are 1969 to
///                                                   1999, 00 to 68 are 2000 to 2068
/// each with "T" or spaces and 14:05, 14:05:30.25, 2:05 PM, and Z, UTC, +02:00 or +0200 after it.
/// `short_year` is set for a year of two digits, in whatever order.
unsigned read_date(std::string_view text, DateOrder order, double& seconds, bool& short_year);
unsigned read_date(std::string_view text, DateOrder order, double& seconds);

/// Explains why a text is not a date and what to do, for times without a date and two-digit years;
/// "" for other texts. `option` is the column's name in options.
std::string date_problem(std::string_view text, const std::string& option);

/// The components of a date that become inputs, in order: "year", "month", "weekday", "hour",
/// "days".
inline constexpr const char* kDateParts[] = {"year", "month", "weekday", "hour", "days"};

bool is_date_part(std::string_view name);

/// The component of that name, of a date in seconds since 2000-01-01 00:00.
double date_part(double seconds, std::string_view part);

}  // namespace tenon::data
