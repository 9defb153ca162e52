// A hand-written parser of a few date formats: independent of the locale, without allocations.
#include "data/tables/dates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "base/digit.h"
#include "base/str.h"
#include "data/tables/fields.h"

namespace tenon::data {
namespace {

constexpr std::int64_t kDaySeconds = 86'400;

// Days from 2000-01-01 in the Gregorian calendar (Howard Hinnant, "chrono-Compatible Low-Level Date
// Algorithms").
std::int64_t days_from(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
  const std::int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  constexpr std::int64_t kFrom = 730'425;  // 2000-01-01 from 0000-03-01
  return era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - kFrom;
}

struct Civil {
  std::int64_t year, month;
};
Civil civil_from(std::int64_t days) {
  days += 730'425;
  const std::int64_t era = (days >= 0 ? days : days - 146'096) / 146'097,
                     of_era = days - era * 146'097;
  const std::int64_t year = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const std::int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  const std::int64_t shifted = (5 * of_year + 2) / 153;
  const std::int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {year + era * 400 + (month <= 2 ? 1 : 0), month};
}

bool is_date(std::int64_t year, std::int64_t month, std::int64_t day) {
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  constexpr std::array<std::int64_t, 12> kDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return day <= kDays[static_cast<std::size_t>(month - 1)] + (leap && month == 2 ? 1 : 0);
}

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

class Text {
 public:
  explicit Text(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  char front() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool take(char c) {
    if (front() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_any_of(std::string_view chars) {
    if (rest_.empty() || chars.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_spaces() {
    while (take(' ')) {
    }
  }
  // Reads at most `most` digits; returns their number.
  int number(std::int64_t& value, int most) {
    int digits = 0;
    for (value = 0; digits < most && is_digit(front()); ++digits) {
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return digits;
  }
  // Reads the following letters, in lower case.
  std::string word() {
    std::string out;
    for (; (small(front()) >= 'a' && small(front()) <= 'z'); rest_.remove_prefix(1))
      out.push_back(small(front()));
    return out;
  }

 private:
  std::string_view rest_;
};

std::int64_t month_named(const std::string& word) {
  constexpr std::array<const char*, 12> kMonths{"january",   "february", "march",    "april",
                                                "may",       "june",     "july",     "august",
                                                "september", "october",  "november", "december"};
  for (std::size_t k = 0; k < kMonths.size(); ++k)
    if (word == kMonths[k] || (word.size() == 3 && std::string_view(kMonths[k]).starts_with(word)))
      return static_cast<std::int64_t>(k) + 1;
  return word == "sept" ? 9 : 0;
}

// The numbers of a date as written, and the orders of day and month in which they are a valid date.
struct ReadDate {
  std::int64_t year = 0, first = 0, second = 0;  // month and day if `orders` has kYearFirst
  unsigned orders = 0;
  bool short_year = false;
};

// Reads a year of four digits, or of two digits as strptime() interprets them.
bool read_year(Text& text, std::int64_t& year, bool& short_year) {
  const int digits = text.number(year, 4);
  short_year = digits == 2;
  if (short_year) year += year < 69 ? 2000 : 1900;
  return digits == 4 || short_year;
}

ReadDate with_year(ReadDate date, bool short_year) {
  date.short_year = short_year && date.orders != 0;
  return date;
}

ReadDate dated(std::int64_t year, std::int64_t month, std::int64_t day) {
  return {year, month, day, is_date(year, month, day) ? kAnyOrder : 0u};
}

ReadDate month_first_by_name(Text& text) {
  const std::int64_t month = month_named(text.word());
  std::int64_t day = 0, year = 0;
  text.take('.');
  text.skip_spaces();
  if (month == 0 || text.number(day, 2) == 0) return {};
  text.take(',');
  text.skip_spaces();
  bool short_year = false;
  return read_year(text, year, short_year) ? with_year(dated(year, month, day), short_year)
                                           : ReadDate{};
}

ReadDate year_first(Text& text, std::int64_t year) {
  std::int64_t month = 0, day = 0;
  const char separator = text.front();
  if (is_digit(separator))
    return text.number(month, 2) == 2 && text.number(day, 2) == 2 ? dated(year, month, day)
                                                                  : ReadDate{};
  if (!text.take_any_of("-/.") || text.number(month, 2) == 0) return {};
  if (separator == '-' && text.done()) return dated(year, month, 1);
  return text.take(separator) && text.number(day, 2) > 0 ? dated(year, month, day) : ReadDate{};
}

ReadDate day_or_month_first(Text& text, std::int64_t first) {
  const char separator = text.front();
  if (!text.take_any_of("-/. ")) return {};
  text.skip_spaces();
  std::int64_t second = 0, year = 0;
  bool short_year = false;
  if (text.number(second, 2) == 0) {
    second = month_named(text.word());
    text.take('.');
    text.take_any_of("-/,");
    text.skip_spaces();
    return second > 0 && read_year(text, year, short_year)
               ? with_year(dated(year, second, first), short_year)
               : ReadDate{};
  }
  if (separator == ' ' || !text.take(separator) || !read_year(text, year, short_year)) return {};
  if (separator == '.') return with_year(dated(year, second, first), short_year);
  const unsigned orders = (is_date(year, second, first) ? kDayFirst : 0u) |
                          (is_date(year, first, second) ? kMonthFirst : 0u);
  return with_year({year, first, second, orders}, short_year);
}

// Reads a time of day in seconds; false if the text is not a time.
bool read_time(Text& text, double& seconds) {
  std::int64_t hour = 0, minute = 0, second = 0;
  double fraction = 0;
  if (text.number(hour, 2) == 0 || !text.take(':') || text.number(minute, 2) != 2) return false;
  if (text.take(':')) {
    if (text.number(second, 2) != 2) return false;
    if (text.take_any_of(".,")) {
      std::int64_t digits = 0;
      const int count = text.number(digits, 12);
      fraction = static_cast<double>(digits) / std::pow(10.0, count);
    }
  }
  text.skip_spaces();
  if (small(text.front()) == 'a' || small(text.front()) == 'p') {
    const std::string half = text.word();
    if ((half != "am" && half != "pm") || hour < 1 || hour > 12) return false;
    hour = hour % 12 + (half == "pm" ? 12 : 0);
  }
  seconds = static_cast<double>(hour * 3600 + minute * 60 + second) + fraction;
  return hour < 24 && minute < 60 && second <= 60;
}

// Reads an offset such as "Z", "UTC" or "+02:00": the seconds to add to get UTC.
bool read_offset(Text& text, double& seconds) {
  text.skip_spaces();
  if (text.done()) return true;
  const bool west = text.front() == '-';
  if (!text.take_any_of("+-")) {
    const std::string zone = text.word();
    return (zone == "z" || zone == "utc" || zone == "gmt") && text.done();
  }
  std::int64_t hours = 0, minutes = 0;
  if (text.number(hours, 2) != 2) return false;
  text.take(':');
  const int digits = text.number(minutes, 2);
  seconds += static_cast<double>((hours * 3600 + minutes * 60) * (west ? 1 : -1));
  return (digits == 0 || digits == 2) && hours < 24 && minutes < 60 && text.done();
}

ReadDate read_day(Text& text) {
  if (!is_digit(text.front())) return month_first_by_name(text);
  std::int64_t number = 0;
  const int digits = text.number(number, 4);
  if (digits == 4) return year_first(text, number);
  return digits <= 2 ? day_or_month_first(text, number) : ReadDate{};
}

}  // namespace

const char* name(DateOrder order) {
  return order == kYearFirst ? "ymd" : order == kDayFirst ? "dmy" : "mdy";
}

DateOrder date_order(std::string_view text) {
  for (const DateOrder order : {kYearFirst, kDayFirst, kMonthFirst})
    if (text == name(order)) return order;
  return kAnyOrder;
}

unsigned read_date(std::string_view field, DateOrder order, double& seconds, bool& short_year) {
  Text text(trimmed(field));
  const ReadDate date = read_day(text);
  short_year = date.short_year;
  if (date.orders == 0) return 0;
  double time = 0;
  if (text.front() == ',') text.take(',');
  if (!text.done()) {
    if (!text.take_any_of("Tt ")) return 0;
    text.skip_spaces();
    if (!read_time(text, time) || !read_offset(text, time)) return 0;
  }
  // 24-03-09 may begin with the year or the day, and no other date can resolve this.
  if (short_year && (order == kAnyOrder || order == kYearFirst)) return 0;
  const bool month_first = date.orders == kAnyOrder || (date.orders & order) == kMonthFirst;
  const std::int64_t month = month_first ? date.first : date.second,
                     day = month_first ? date.second : date.first;
  if ((date.orders & order) != 0)
    seconds = static_cast<double>(days_from(date.year, month, day) * kDaySeconds) + time;
  return date.orders;
}

unsigned read_date(std::string_view field, DateOrder order, double& seconds) {
  bool short_year = false;
  return read_date(field, order, seconds, short_year);
}

std::string date_problem(std::string_view field, const std::string& option) {
  Text text(trimmed(field));
  double seconds = 0;
  if (read_time(text, seconds) && text.done())
    return cat(
        "is a time without a date: convert the column to numbers, such as hours and "
        "minutes, or leave it out (drop=",
        option, ")");
  for (const DateOrder order : {kDayFirst, kMonthFirst})
    if (bool short_year = false; read_date(field, order, seconds, short_year) != 0 && short_year)
      return cat(
          "has a year of two digits: dayfirst=yes or dayfirst=no reads it, with the year at "
          "the end (69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068); else write "
          "years with four digits");
  return {};
}

bool is_date_part(std::string_view part) {
  return std::find(std::begin(kDateParts), std::end(kDateParts), part) != std::end(kDateParts);
}

double date_part(double seconds, std::string_view part) {
  const double days = std::floor(seconds / kDaySeconds);
  if (part == "days") return seconds / kDaySeconds;
  if (part == "hour") return std::floor((seconds - days * kDaySeconds) / 3600);
  const auto day = static_cast<std::int64_t>(days);
  if (part == "weekday")
    return static_cast<double>(((day + 5) % 7 + 7) % 7);  // day 0, 2000-01-01, is a Saturday
  const Civil civil = civil_from(day);
  return static_cast<double>(part == "year" ? civil.year : civil.month);
}

}  // namespace tenon::data
