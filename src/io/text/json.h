// JSON: values, parser and printer.
//
// Values are trees of standard containers. Copying and building may throw std::bad_alloc. Moving,
// clearing and destroying allocate nothing, so running out of memory while a document is read or
// written is an error and never terminates the process. The parser calls a JsonSax for each event
// and builds nothing itself; readers of large or hostile files use it without a tree.
//
// Why not nlohmann's, which the command uses: its values allocate a stack while they are destroyed,
// and its printer takes no other values. Its parser alone, behind JsonSax, would save 180 lines and
// passes the same tests. It is not used: a tokenizer of 17 MB takes 2.2 times as long as events
// and 1.3 times as a tree, a zero byte counts as the end of the text, and its lexer appends to a
// string in a function that may not throw, which is safe only while the string has room.
// tests/io/test_json.cpp and tests/fuzz/json.cpp compare parser and printer with nlohmann's.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::io {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  // in file order

  struct exception : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  struct parse_error : exception {  // the text is not JSON
    using exception::exception;
  };
  struct type_error : exception {  // a value is of another kind
    using exception::exception;
  };
  struct out_of_range : exception {  // a key is missing, or a number does not fit
    using exception::exception;
  };

  Json() noexcept = default;  // null
  Json(std::nullptr_t) noexcept {}
  template <class T>
  requires std::is_arithmetic_v<T> Json(T value) {
    if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T>)
      value_ = std::conditional_t<std::is_same_v<T, bool>, bool, double>(value);
    else if (std::cmp_less(value, 0))
      value_ = static_cast<std::int64_t>(value);
    else
      value_ = static_cast<std::uint64_t>(value);
  }
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(std::string text) noexcept : value_(std::move(text)) {}
  Json(Array items) noexcept;
  template <class T>
  requires std::constructible_from<std::string, T> || std::is_arithmetic_v<T> Json(
      const std::vector<T>& items)
      : value_(Array(items.begin(), items.end())) {}
  Json(const std::map<std::string, std::string>& members);
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  static Json array();
  static Json object();
  static Json discarded();

  bool is_null() const noexcept { return is<std::monostate>(); }
  /// True for the result of parse_json_or_discard() for a text that is not JSON.
  bool is_discarded() const noexcept { return is<Discarded>(); }
  bool is_boolean() const noexcept { return is<bool>(); }
  bool is_number_integer() const noexcept { return is<std::int64_t>() || is<std::uint64_t>(); }
  bool is_number() const noexcept { return is_number_integer() || is<double>(); }
  bool is_string() const noexcept { return is<std::string>(); }
  bool is_array() const noexcept { return is<Array>(); }
  bool is_object() const noexcept { return is<Object>(); }

  /// The value as bool, a whole number, double, std::string, or a vector of those. Throws
  /// type_error for another kind and out_of_range for a whole number out of the range of T.
  template <class T>
  T get() const;
  const std::string& text() const;

  /// Items of an array; throws type_error for another kind.
  const Array& items() const;
  const Json* begin() const { return items().data(); }
  const Json* end() const { return items().data() + items().size(); }
  const Json& operator[](std::size_t place) const;
  /// Appends; null becomes an array.
  Json& append(Json item) &;
  Json&& append(Json item) && { return std::move(append(std::move(item))); }

  /// Members of an object; throws type_error for another kind.
  const Object& members() const;
  /// The member, or nullptr if there is none; linear in the number of members.
  const Json* find(std::string_view key) const noexcept;
  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  const Json& at(std::string_view key) const;
  const Json& operator[](std::string_view key) const { return at(key); }
  /// The member; created if it is missing. null becomes an object.
  Json& operator[](std::string_view key);
  template <class T>
  T value(std::string_view key, T otherwise) const {
    (void)members();
    const Json* found = find(key);
    return found != nullptr ? found->get<T>() : std::move(otherwise);
  }
  std::string value(std::string_view key, const char* otherwise) const {
    return value(key, std::string(otherwise));
  }
  /// Appends a member without looking for an equal key; null becomes an object.
  Json& add(std::string key, Json value) &;
  Json&& add(std::string key, Json value) && {
    return std::move(add(std::move(key), std::move(value)));
  }

  /// Number of items or members. null: 0; other values: 1.
  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }

  /// Numbers are compared by value. The order of members matters.
  friend bool operator==(const Json& a, const Json& b) { return a.equals(b); }

 private:
  friend class JsonBuilder;
  friend class JsonPrinter;
  struct Discarded {
    bool operator==(const Discarded&) const = default;
  };

  template <class T>
  bool is() const noexcept {
    return std::holds_alternative<T>(value_);
  }
  bool equals(const Json& other) const;
  bool truth() const;
  double number() const;
  std::int64_t whole(std::int64_t least, std::uint64_t most) const;
  Object& open_object();
  [[noreturn]] void wrong_kind(const char* wanted) const;

  // Non-negative integers are std::uint64_t.
  std::variant<std::monostate, Discarded, bool, std::int64_t, std::uint64_t, double, std::string,
               Array, Object>
      value_;
};

template <class T>
T Json::get() const {
  if constexpr (std::is_same_v<T, bool>) {
    return truth();
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(whole(std::numeric_limits<T>::min(),
                                static_cast<std::uint64_t>(std::numeric_limits<T>::max())));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(number());
  } else if constexpr (std::is_same_v<T, std::string>) {
    return text();
  } else {
    T out;
    for (const Json& item : items()) out.push_back(item.get<typename T::value_type>());
    return out;
  }
}

/// Parser events. An event that returns false ends the parse.
class JsonSax {
 public:
  virtual ~JsonSax() = default;
  virtual bool null() = 0;
  virtual bool boolean(bool value) = 0;
  virtual bool number_integer(std::int64_t value) = 0;  // negative
  virtual bool number_unsigned(std::uint64_t value) = 0;
  virtual bool number_float(double value) = 0;
  virtual bool string(std::string& value) = 0;  // may be moved from
  virtual bool start_object() = 0;
  virtual bool key(std::string& text) = 0;  // may be moved from
  virtual bool end_object() = 0;
  virtual bool start_array() = 0;
  virtual bool end_array() = 0;
  /// The text is not JSON at byte `position`, counted from 1.
  virtual bool parse_error(std::size_t position, const char* why) = 0;
};

/// True if the text is one JSON value and no event returned false. Time is linear in the text.
/// Memory: one byte for each open array or object, and the longest string.
bool sax_parse(std::string_view text, JsonSax& events);

/// Throws Json::parse_error if the text is not one complete JSON value, or nests deeper than 512.
/// Time and memory are linear in the text. If a key is repeated, its last value is used.
Json parse_json(std::string_view text);
/// The same, but returns a value that is_discarded() instead of throwing parse_error.
Json parse_json_or_discard(std::string_view text);

enum class NoUtf8 { Throws, IsReplaced };  // Json::type_error, or U+FFFD for each wrong byte
/// `indent` >= 0: one value a line, indented by that many spaces a level. Negative: one line.
std::string json_text(const Json& json, int indent = -1, NoUtf8 bytes = NoUtf8::Throws);

}  // namespace tenon::io
