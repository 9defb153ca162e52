// The JSON writer: separators, escapes, numbers in their shortest form.
#include "json.h"

#include <fmt/core.h>

#include <cmath>

namespace tenon::cli {

Json& Json::key(std::string_view name) {
  value(name);
  text_ += ": ";
  after_key_ = true;
  return *this;
}

Json& Json::value(std::string_view text) {
  separate();
  text_ += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      text_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text_ += c;
    }
  }
  text_ += '"';
  return *this;
}

Json& Json::value(double number) {
  return std::isfinite(number) ? raw(fmt::format("{}", number)) : null();
}

Json& Json::open(char bracket) {
  separate();
  text_ += bracket;
  ++depth_;
  first_ = true;
  return *this;
}

Json& Json::close(char bracket) {
  --depth_;
  if (!first_) new_line();
  text_ += bracket;
  first_ = false;
  return *this;
}

Json& Json::raw(std::string_view token) {
  separate();
  text_ += token;
  return *this;
}

void Json::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ > 0) {
    if (!first_) text_ += lines_ ? "," : ", ";
    new_line();
  }
  first_ = false;
}

void Json::new_line() {
  if (!lines_) return;
  text_ += '\n';
  text_.append(2 * static_cast<std::size_t>(depth_), ' ');
}

}  // namespace tenon::cli
