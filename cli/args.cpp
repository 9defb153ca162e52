// Tables of commands, and values of options. An error message suggests the nearest known word.
#include "args.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "errors.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

template <class T>
bool read_number(const std::string& text, T& out) {
  const char* first = text.data();
  const char* last = first + text.size();
  if (first != last && *first == '+') ++first;
  const auto result = std::from_chars(first, last, out);
  return result.ec == std::errc() && result.ptr == last;
}

template <class T>
void read_whole(const std::string& option, const std::string& text, T& out, const char* kind) {
  if (!read_number(text, out))
    throw UsageError(fmt::format("{}: '{}' is not {}", option, text, kind));
}

std::string small_letters(std::string_view word) {
  std::string out(word);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return out;
}

// Edit distance: substitutions, insertions, deletions and transpositions (Damerau-Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({change, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last.back();
}

}  // namespace

Command& Command::group(std::string heading) {
  heading_ = std::move(heading);
  return *this;
}

Option& Command::add(Option option) {
  option.group = heading_;
  options.push_back(std::move(option));
  return options.back();
}

Option& Command::flag(bool& target, std::string option_name, std::string help) {
  Option made;
  made.name = std::move(option_name);
  made.help = std::move(help);
  made.take = [&target](const std::string&) { target = true; };
  return add(std::move(made));
}

Positional& Command::positional(std::string& target, std::string place, std::string help,
                                bool required) {
  Positional made;
  made.name = std::move(place);
  made.help = std::move(help);
  made.required = required;
  made.take = [&target](const std::string& text) { target = text; };
  positionals.push_back(std::move(made));
  return positionals.back();
}

Positional& Command::positional(std::vector<std::string>& target, std::string place,
                                std::string help, bool required) {
  Positional made;
  made.name = std::move(place);
  made.help = std::move(help);
  made.required = required;
  made.many = true;
  made.take = [&target](const std::string& text) { target.push_back(text); };
  positionals.push_back(std::move(made));
  return positionals.back();
}

void read_value(const std::string& option, const std::string& text, int& out) {
  read_whole(option, text, out, "a whole number in range");
}
void read_value(const std::string& option, const std::string& text, std::int64_t& out) {
  read_whole(option, text, out, "a whole number in range");
}
void read_value(const std::string& option, const std::string& text, std::uint64_t& out) {
  read_whole(option, text, out, "a whole number, 0 or more");
}
void read_value(const std::string& option, const std::string& text, double& out) {
  if (!read_number(text, out) || !std::isfinite(out))
    throw UsageError(fmt::format("{}: '{}' is not a number", option, text));
}
void read_value(const std::string& option, const std::string& text, std::string& out) {
  if (text.empty()) throw UsageError(fmt::format("{}: the value is empty", option));
  out = text;
}
void read_value(const std::string&, const std::string& text, std::vector<std::string>& out) {
  out.push_back(text);
}

std::int64_t parse_bytes(const std::string& option, const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789.");
  const std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  static const struct {
    const char* name;
    double factor;
  } kUnits[] = {{"", 1},           {"B", 1},       {"K", 1024},        {"KB", 1e3},
                {"KiB", 1024},     {"M", 1048576}, {"MB", 1e6},        {"MiB", 1048576},
                {"G", 1073741824}, {"GB", 1e9},    {"GiB", 1073741824}};
  double amount = 0;
  for (const auto& known : kUnits) {
    if (unit != known.name) continue;
    if (!read_number(text.substr(0, digits), amount) || amount * known.factor > 9e18) break;
    return static_cast<std::int64_t>(amount * known.factor);
  }
  throw UsageError(fmt::format("{}: '{}' is not a size", option, text),
                   "write it as 800MB, 2GiB or a number of bytes");
}

std::vector<std::string> parse_list(const std::string& option, const std::string& text,
                                    const std::vector<std::string>& allowed) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  for (const std::string& part : parts)
    if (std::find(allowed.begin(), allowed.end(), part) == allowed.end())
      throw UsageError(fmt::format("{}: '{}' is not one of {}", option, part, join(allowed, ", ")),
                       did_you_mean(nearest(part, allowed)));
  return parts;
}

std::string did_you_mean(const std::string& near) {
  return near.empty() ? "" : fmt::format("did you mean {}?", near);
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string small = small_letters(word);
  std::string best;
  const std::size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  std::size_t best_cost = 1 + (word.size() - dashes) / 3;
  for (const std::string& candidate : candidates) {
    const std::string other = small_letters(candidate);
    const bool prefix = small != other && small.size() >= 3 && other.starts_with(small);
    const std::size_t cost = prefix ? 1 : distance(small, other);
    if (cost <= best_cost && (best.empty() || cost < best_cost)) best = candidate, best_cost = cost;
  }
  return best;
}

}  // namespace tenon::cli
