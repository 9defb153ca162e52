// TOML as a tree that keeps line numbers for error messages and the order of entries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::io {

struct TomlEntry;

/// A TOML value; the whole text is a table.
struct TomlValue {
  enum class Kind { String, Integer, Real, Boolean, List, Table };
  Kind kind = Kind::Table;
  int line = 0;  ///< from 1; 0: the whole text
  std::string text;
  std::int64_t whole = 0;
  double real = 0;
  bool truth = false;
  std::vector<TomlValue> items;       ///< items of a list
  std::vector<TomlEntry> entries;     ///< entries of a table, in file order
  std::vector<std::uint32_t> by_key;  ///< indices into `entries`, sorted by key

  bool is(Kind wanted) const noexcept { return kind == wanted; }
  /// The entry with this key; null if there is none.
  const TomlValue* find(const std::string& key) const;
  /// Gives the entry with this key the value; a new entry is the last.
  void set(const std::string& key, TomlValue value);
  /// Type name for messages: "a string", "an integer", "a list".
  const char* kind_name() const noexcept;
};

struct TomlEntry {
  std::string key;
  TomlValue value;
};

/// An integer and a string that are not from a file; `line` is 0.
TomlValue toml_integer(std::int64_t value);
TomlValue toml_string(const std::string& value);

/// Throws FormatError naming `source` and the line for invalid TOML, multi-line strings ("""),
/// dates, and more than 512 levels or 400,000 keys and values. Time and memory are linear in the
/// text, apart from sorting keys.
TomlValue parse_toml(const std::string& text, const std::string& source);

/// Quotes and escapes the text as a TOML string.
std::string toml_quoted(const std::string& text);

/// The value as TOML on one line: parse_toml() of "key = " and this text gives the value again.
std::string toml_text(const TomlValue& value);

}  // namespace tenon::io
