// Commas separate the options of a data source, and can also occur in file names.
#include "data/samples/source_parts.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <string_view>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/file.h"
#include "io/text/numbers.h"

namespace tenon::data {
namespace {

bool is_sign_option(const std::string& part) {
  return part == "decimal=" || part == "thousands=" || part == "separator=" || part == "comment=";
}

}  // namespace

std::vector<std::string> source_parts(const std::string& rest, bool only_paths,
                                      const std::filesystem::path& base) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= rest.size();) {
    std::size_t end = std::min(rest.find(',', from), rest.size());
    const bool test = !parts.empty() && rest.compare(from, 5, "test=") == 0;
    const std::size_t path = test ? from + 5 : from;
    if (test || only_paths || parts.empty())
      for (std::size_t longer = rest.size(); longer > end; longer = rest.rfind(',', longer - 1))
        // The path need not be readable; opening it reports the reason.
        if (io::is_there((base / rest.substr(path, longer - path)).string())) end = longer;
    parts.push_back(rest.substr(from, end - from));
    if (end < rest.size() && is_sign_option(parts.back())) {
      // "decimal=,": the comma is the value. It also ends the part unless a second comma follows.
      parts.back() += ',';
      if (rest.compare(end + 1, 1, ",") == 0 || end + 1 == rest.size()) ++end;
    }
    from = end + 1;
  }
  return parts;
}

std::size_t path_in_part(const std::string& kind, const std::string& part, std::size_t which) {
  if (part.empty()) return std::string::npos;
  if (which == 0 || (kind == "npy" && which == 1)) return 0;
  if (part.starts_with("test=")) return 5;
  if (kind != "npy") return std::string::npos;
  if (part.starts_with("group=")) return 6;
  const bool word = part == "stratify" || part == "chronological";
  return word || part.find('=') != std::string::npos ? std::string::npos : 0;
}

bool same_path(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  if (a == b) return true;
  std::error_code ignored;
  if (fs::equivalent(a, b, ignored)) return true;
  const fs::path first = fs::weakly_canonical(a, ignored),
                 second = fs::weakly_canonical(b, ignored);
  return !first.empty() && first == second;
}

void refuse_part(const std::string& spec, const std::vector<std::string>& parts, std::size_t which,
                 const std::string& options) {
  if (parts[which].empty())
    throw ValueError(cat("data '", spec, "': nothing follows a comma; possible are ", options));
  std::string message = cat("data '", spec, "': '", parts[which], "' is not one of ", options);
  // The part may be the rest of a path with commas.
  const bool is_next = which == 1 || parts[which - 1].starts_with("test=");
  if (is_next && parts[which].find('=') == std::string::npos) {
    std::string path = parts[which - 1].substr(which == 1 ? 0 : 5);
    for (std::size_t k = which; k < parts.size() && parts[k].find('=') == std::string::npos; ++k)
      path += cat(",", parts[k]);
    message += cat(", and there is no file '", path, "'");
  }
  throw ValueError(message);
}

void refuse_repeated_options(const std::string& spec, const std::string& kind,
                             const std::vector<std::string>& parts) {
  constexpr std::string_view lists[] = {"drop", "category", "date"};
  std::map<std::string_view, std::string_view> given;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (path_in_part(kind, parts[k], k) == 0) continue;
    const std::string_view part = parts[k];
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals),
                           value = equals == part.npos ? "yes" : part.substr(equals + 1);
    if (std::find(std::begin(lists), std::end(lists), key) != std::end(lists)) continue;
    const auto [before, is_first] = given.emplace(key, value);
    if (!is_first && before->second != value)
      throw make_error<ValueError>("data '", spec, "': '", key, "' is given twice, as '",
                                   before->second, "' and as '", value, "': leave one of them out");
  }
}

std::int64_t spec_number(const std::string& text, const std::string& spec) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 0)
    throw ValueError(cat("data '", spec, "': '", text, "' is not a whole number"));
  return value;
}

double spec_share(const std::string& text, const std::string& spec) {
  const bool percent = text.ends_with('%');
  double value = 0;
  if (!io::parse_number(percent ? text.substr(0, text.size() - 1) : text, value))
    throw ValueError(cat("data '", spec, "': '", text, "' is not a share, such as 0.2"));
  return percent ? value / 100 : value;
}

}  // namespace tenon::data
