// TOML with toml++, with checks in front of it: toml++ recurses without a limit, and has undefined
// behaviour for some inputs. The text is scanned once and converted to ASCII before toml++ sees it.
#include "io/text/toml.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <sstream>
#include <tuple>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/lfs.h"

// toml++ asserts that a table's name begins with a letter. A release build turns the assertion into
// an assumption, so a line break after "[" is undefined behaviour. Here its assertions throw in
// every build. No other file includes toml++, so no second copy of its functions exists.
namespace tenon::io {
struct BrokenAssumption {};
}  // namespace tenon::io
// GCC warns about assertions that throw in noexcept functions. Terminating is right there.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wterminate"
#endif
#undef NDEBUG
#define TOML_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : throw ::tenon::io::BrokenAssumption())
#define TOML_EXCEPTIONS 1
// With streams, a failing allocation looks like a malformed number.
#define TOML_FLOAT_CHARCONV 1
// TOML 1.1: an inline table may span several lines and end in a comma.
#define TOML_ENABLE_UNRELEASED_FEATURES 1
#include <toml++/toml.h>

namespace tenon::io {
namespace {

constexpr int kDeepestToml = 512;            // nesting of tables and arrays
constexpr std::int64_t kMostToml = 400'000;  // keys and values

// Bounds depth and size of a TOML text before toml++ builds its tree, because toml++ walks and
// frees the tree by recursion. Each dot of a key is one more table. step() receives every character
// outside quotes and comments.
class TomlExtent {
 public:
  void step(char c) {
    switch (c) {
      case '.':
        ++here_;
        count();
        break;
      case '[':
      case '{':
        if (c == '[' && open_.empty() && !after_equals_) {
          here_ = header_ = 0;
          in_header_ = true;
          break;
        }
        open_.push_back(here_);
        within_ += here_ + 1;
        here_ = 0;
        count();
        break;
      case ']':
      case '}':
        if (in_header_) {
          header_ = std::max(header_, here_);
          break;
        }
        if (open_.empty()) break;
        within_ -= open_.back() + 1;
        here_ = 0;
        open_.pop_back();
        break;
      case '=':
        after_equals_ = true;
        count();
        break;
      case ',':
        here_ = 0;
        count();
        break;
      case '\n':
        here_ = 0;
        if (open_.empty()) after_equals_ = in_header_ = false;
        break;
      default:
        break;
    }
    deepest_ = std::max(deepest_, within_ + here_ + (in_header_ ? 0 : header_));
  }
  bool too_deep() const { return deepest_ > kDeepestToml; }
  bool too_much() const { return values_ > kMostToml; }

 private:
  void count() { ++values_; }

  std::vector<int> open_{};       // dots of the keys of open tables and arrays
  int within_ = 0, deepest_ = 0;  // open levels; the largest depth so far
  int here_ = 0, header_ = 0;     // dots of the current key; of the table header
  bool after_equals_ = false, in_header_ = false;
  std::int64_t values_ = 0;
};

// Returns the code point at text[i] and moves i past it; 0 if it is not UTF-8.
std::uint32_t next_code_point(const std::string& text, std::size_t& i) {
  const auto first = static_cast<unsigned char>(text[i++]);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2 ? 1 : 0;
  if (more == 0 || first > 0xf4) return 0;
  std::uint32_t code = first & (0x3fu >> more);
  for (int k = 0; k < more; ++k, ++i) {
    if (i >= text.size() || (static_cast<unsigned char>(text[i]) & 0xc0u) != 0x80u) return 0;
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
  }
  return code;
}

// Makes the text ASCII, because toml++ 3.3 has undefined behaviour when it tests whether a
// non-ASCII character is a space. Non-ASCII characters become escapes in double quotes, are dropped
// in comments, and are refused elsewhere.
class AsciiToml {
 public:
  AsciiToml(const std::string& text, const std::string& source) : text_(text), source_(source) {}

  std::string escaped() {
    const std::size_t quotes = std::min(text_.find("\"\"\""), text_.find("'''"));
    if (quotes != std::string::npos) {
      line_ += static_cast<int>(
          std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(quotes), '\n'));
      refuse("multi-line strings are not supported: use one pair of quotes");
    }
    std::string out;
    for (std::size_t i = 0; i < text_.size();) {
      const std::uint32_t code = next_code_point(text_, i);
      if (code == 0) refuse("the text is not UTF-8");
      if (code < 0x80) {
        const char c = static_cast<char>(code);
        if (place_ == Place::Plain) extent_.step(c);
        step(c);
        if (extent_.too_deep()) refuse("tables and arrays nest deeper than 512");
        if (extent_.too_much()) refuse("more than 400,000 keys and values");
        out.push_back(c);
        continue;
      }
      if (place_ == Place::Comment) continue;
      if (place_ != Place::Quoted)
        refuse("characters outside ASCII are allowed only in double quotes and comments");
      char escape[12];
      std::snprintf(escape, sizeof escape, "\\U%08X", code);
      out += escape;
    }
    return out;
  }

 private:
  enum class Place { Plain, Quoted, Literal, Comment };

  void step(char c) {
    if (c == '\n') {
      ++line_;
      place_ = Place::Plain;
      escape_ = false;
    } else if (place_ == Place::Plain) {
      place_ = c == '"'    ? Place::Quoted
               : c == '\'' ? Place::Literal
               : c == '#'  ? Place::Comment
                           : Place::Plain;
    } else if (escape_) {
      escape_ = false;
    } else if (place_ == Place::Quoted && c == '\\') {
      escape_ = true;
    } else if ((place_ == Place::Quoted && c == '"') || (place_ == Place::Literal && c == '\'')) {
      place_ = Place::Plain;
    }
  }
  [[noreturn]] void refuse(const char* what) const {
    throw make_error<FormatError>(FileName{source_}, ", line ", LineNumber{line_}, ": ", what);
  }

  const std::string &text_, &source_;
  TomlExtent extent_;
  Place place_ = Place::Plain;
  bool escape_ = false;
  int line_ = 1;
};

TomlValue tree_of(const toml::node& node, const std::string& source);

TomlValue table_of(const toml::table& table, const std::string& source) {
  TomlValue out;
  using Place = std::tuple<unsigned, unsigned, TomlValue, std::string>;
  std::vector<Place> places;
  places.reserve(table.size());
  for (const auto& [key, node] : table) {
    const toml::source_position at = key.source().begin;
    places.emplace_back(at.line, at.column, tree_of(node, source), std::string(key.str()));
    if (std::get<2>(places.back()).line == 0)
      std::get<2>(places.back()).line = static_cast<int>(at.line);
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  out.entries.reserve(places.size());
  for (auto& [line, column, value, key] : places)
    out.entries.push_back({std::move(key), std::move(value)});
  out.by_key.resize(out.entries.size());
  std::iota(out.by_key.begin(), out.by_key.end(), 0U);
  std::sort(out.by_key.begin(), out.by_key.end(), [&out](std::uint32_t a, std::uint32_t b) {
    return out.entries[a].key < out.entries[b].key;
  });
  return out;
}

TomlValue tree_of(const toml::node& node, const std::string& source) {
  TomlValue out;
  if (const auto* table = node.as_table()) {
    out = table_of(*table, source);
  } else if (const auto* list = node.as_array()) {
    out.kind = TomlValue::Kind::List;
    out.items.reserve(list->size());
    for (const toml::node& item : *list) out.items.push_back(tree_of(item, source));
  } else if (const auto* text = node.as_string()) {
    out.kind = TomlValue::Kind::String;
    out.text = text->get();
  } else if (const auto* whole = node.as_integer()) {
    out.kind = TomlValue::Kind::Integer;
    out.whole = whole->get();
  } else if (const auto* real = node.as_floating_point()) {
    out.kind = TomlValue::Kind::Real;
    out.real = real->get();
  } else if (const auto* truth = node.as_boolean()) {
    out.kind = TomlValue::Kind::Boolean;
    out.truth = truth->get();
  } else {
    throw make_error<FormatError>(FileName{source}, ", line ", LineNumber{node.source().begin.line},
                                  ": dates are not supported: write the date in double quotes");
  }
  out.line = static_cast<int>(node.source().begin.line);
  return out;
}

}  // namespace

const TomlValue* TomlValue::find(const std::string& key) const {
  const auto found = std::lower_bound(by_key.begin(), by_key.end(), key,
                                      [this](std::uint32_t place, const std::string& wanted) {
                                        return entries[place].key < wanted;
                                      });
  return found != by_key.end() && entries[*found].key == key ? &entries[*found].value : nullptr;
}

void TomlValue::set(const std::string& key, TomlValue value) {
  const auto place = std::lower_bound(
      by_key.begin(), by_key.end(), key,
      [this](std::uint32_t at, const std::string& wanted) { return entries[at].key < wanted; });
  if (place != by_key.end() && entries[*place].key == key) {
    entries[*place].value = std::move(value);
    return;
  }
  by_key.insert(place, static_cast<std::uint32_t>(entries.size()));
  entries.push_back({key, std::move(value)});
}

TomlValue toml_integer(std::int64_t value) {
  TomlValue out;
  out.kind = TomlValue::Kind::Integer;
  out.whole = value;
  return out;
}

TomlValue toml_string(const std::string& value) {
  TomlValue out;
  out.kind = TomlValue::Kind::String;
  out.text = value;
  return out;
}

const char* TomlValue::kind_name() const noexcept {
  switch (kind) {
    case TomlValue::Kind::String:
      return "a string";
    case TomlValue::Kind::Integer:
      return "an integer";
    case TomlValue::Kind::Real:
      return "a number";
    case TomlValue::Kind::Boolean:
      return "a boolean";
    case TomlValue::Kind::List:
      return "a list";
    case TomlValue::Kind::Table:
      break;
  }
  return "a table";
}

TomlValue parse_toml(const std::string& text, const std::string& source) {
  refuse_lfs_pointer(text, source);
  const std::string ascii = AsciiToml(text, source).escaped();
  try {
    // The source's name is not passed: toml++ copies it in a noexcept function, so a failing
    // allocation would terminate the program.
    TomlValue out = tree_of(toml::parse(ascii), source);
    out.line = 0;
    return out;
  } catch (const toml::parse_error& error) {
    const std::string_view what = error.description();
    const bool no_kind = what.find("could not determine value type") != std::string_view::npos;
    throw make_error<FormatError>(FileName{source}, ", line ",
                                  LineNumber{error.source().begin.line}, ": ", what,
                                  no_kind ? "; put text in double quotes" : "");
  } catch (const BrokenAssumption&) {
    throw make_error<FormatError>(FileName{source}, ": not TOML; write 'key = value' lines");
  }
}

std::string toml_quoted(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (code < 0x20 || code == 0x7f)
      out += cat("\\u00", kDigits[code >> 4], kDigits[code & 15]);
    else
      out += c;
  }
  return out + "\"";
}

namespace {
bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}
}  // namespace

std::string toml_text(const TomlValue& value) {
  const auto joined = [](const auto& parts, const auto& text) {
    std::string out;
    for (const auto& part : parts) out += (out.empty() ? "" : ", ") + text(part);
    return out;
  };
  switch (value.kind) {
    case TomlValue::Kind::String:
      return toml_quoted(value.text);
    case TomlValue::Kind::Integer:
      return cat(value.whole);
    case TomlValue::Kind::Real: {
      const std::string digits = cat(value.real);
      return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
    }
    case TomlValue::Kind::Boolean:
      return value.truth ? "true" : "false";
    case TomlValue::Kind::List: {
      const bool tables = !value.items.empty() && value.items[0].is(TomlValue::Kind::Table);
      const std::string items = joined(value.items, toml_text);
      return tables ? cat("[ ", items, " ]") : cat("[", items, "]");
    }
    case TomlValue::Kind::Table:
      break;
  }
  return cat("{ ",
             joined(value.entries,
                    [](const TomlEntry& entry) {
                      const bool bare = std::all_of(entry.key.begin(), entry.key.end(), is_bare);
                      return cat(bare && !entry.key.empty() ? entry.key : toml_quoted(entry.key),
                                 " = ", toml_text(entry.value));
                    }),
             " }");
}

}  // namespace tenon::io
