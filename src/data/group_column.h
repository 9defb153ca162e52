// The column of a file of lines whose equal values stay in one part.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::data {

class GroupColumn {
 public:
  /// By its number, from 0, or by its name in the first line; "" is none.
  explicit GroupColumn(std::string column) : column_(std::move(column)) {
    std::size_t number = 0;
    const char *first = column_.data(), *last = first + column_.size();
    const auto [end, error] = std::from_chars(first, last, number);
    if (!column_.empty() && error == std::errc() && end == last) place_ = number;
  }

  /// Of the first line: whether it names the column. Throws ValueError where it should and does
  /// not.
  bool is_header(const std::vector<std::string_view>& fields) {
    if (column_.empty() || place_) return false;
    const auto found = std::find_if(fields.begin(), fields.end(), [&](std::string_view field) {
      return std::equal(field.begin(), field.end(), column_.begin(), column_.end(),
                        [](char a, char b) { return lower(a) == lower(b); });
    });
    if (found == fields.end())
      throw ValueError(
          cat("its first line names no column '", column_,
              "': give the group's column by its name there, or by its number from 0"));
    place_ = static_cast<std::size_t>(found - fields.begin());
    return true;
  }

  /// The line's group, which is taken out of its fields; "" where there is no such column. Throws
  /// FormatError that begins with `where`.
  std::string take(std::vector<std::string_view>& fields, const std::string& where) const {
    if (!place_) return "";
    if (*place_ >= fields.size() || fields[*place_].empty())
      throw FormatError(cat(where, " has no group in column ", *place_, " (counted from 0)"));
    std::string group(fields[*place_]);
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(*place_));
    return group;
  }

 private:
  static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
  std::string column_;
  std::optional<std::size_t> place_;
};

}  // namespace tenon::data
