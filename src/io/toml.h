// TOML as a tree that keeps line numbers for error messages and the order of entries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::io {

struct TomlEntry;

/// A value of a TOML text, or the whole text, which is a table.
struct TomlValue {
  enum class Kind { Text, Whole, Real, Truth, List, Table };
  Kind kind = Kind::Table;
  int line = 0;  ///< counted from 1; 0: of the whole text
  std::string text;
  std::int64_t whole = 0;
  double real = 0;
  bool truth = false;
  std::vector<TomlValue> items;       ///< of a list
  std::vector<TomlEntry> entries;     ///< of a table, as they stand
  std::vector<std::uint32_t> by_key;  ///< places in `entries`, keys in ascending order

  bool is(Kind wanted) const noexcept { return kind == wanted; }
  /// The entry of a table with this key; null: there is none.
  const TomlValue* find(const std::string& key) const;
  /// "a text", "a number", "a list": what it is, for messages.
  const char* kind_name() const noexcept;
};

struct TomlEntry {
  std::string key;
  TomlValue value;
};

/// Throws FormatError naming `source` and the line for what is not TOML, for text of several lines
/// ("""), for dates, and for more than 512 levels or 400,000 keys and values. Time and memory are
/// linear in the text, up to sorting keys.
TomlValue parse_toml(const std::string& text, const std::string& source);

/// The text as TOML has it between double quotes, with them.
std::string toml_quoted(const std::string& text);

}  // namespace tenon::io
