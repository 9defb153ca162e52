// Writing JSON: what --json prints. No reading, no tree.
//
// Calls nest as the text does; the writer places commas and indentation. Numbers that are not
// finite become null.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::cli {

class Json {
 public:
  /// `lines`: one value a line, indented; otherwise all on one line.
  explicit Json(bool lines = true) : lines_(lines) {}

  Json& open_object() { return open('{'); }
  Json& close_object() { return close('}'); }
  Json& open_array() { return open('['); }
  Json& close_array() { return close(']'); }
  Json& key(std::string_view name);
  Json& value(std::string_view text);
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(double number);
  template <std::integral T>
  Json& value(T number) {
    if constexpr (std::same_as<T, bool>)
      return raw(number ? "true" : "false");
    else
      return raw(std::to_string(number));
  }
  Json& null() { return raw("null"); }
  template <class T>
  Json& member(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  const std::string& text() const { return text_; }

 private:
  Json& open(char bracket);
  Json& close(char bracket);
  Json& raw(std::string_view token);
  void separate();
  void new_line();

  std::string text_;
  int depth_ = 0;
  bool lines_, first_ = true, after_key_ = false;
};

}  // namespace tenon::cli
