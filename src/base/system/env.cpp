// The only file of the library that reads the environment.
#include "base/system/env.h"

#include <tenon/error.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/str.h"

namespace tenon {

std::string env_text(const char* name, const char* fallback) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : fallback;
}

std::int64_t env_int(const char* name, std::int64_t fallback) {
  const std::string text = env_text(name);
  if (text.empty()) return fallback;
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    throw ValueError(cat("environment variable ", name, " is '", text, "'; give an integer"));
  return value;
}

bool env_flag(const char* name, bool fallback) {
  const std::string text = env_text(name);
  if (text.empty()) return fallback;
  for (const std::string_view yes : {"1", "true", "yes", "on"})
    if (text == yes) return true;
  for (const std::string_view no : {"0", "false", "no", "off"})
    if (text == no) return false;
  throw ValueError(cat("environment variable ", name, " is '", text, "'; give 1 or 0"));
}

std::string user_cache_folder() {
  if (std::string own = env_text("TENON_CACHE"); !own.empty()) return own;
  // A relative path would place the cache in the current folder.
  if (const std::string base = env_text("XDG_CACHE_HOME"); base.starts_with('/'))
    return base + "/tenon";
  const std::string home = env_text("HOME");
  return home.starts_with('/') ? home + "/.cache/tenon" : std::string();
}

}  // namespace tenon
