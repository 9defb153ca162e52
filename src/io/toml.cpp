// TOML with toml++, with checks for inputs that toml++ does not guard against.
#include "io/toml.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <sstream>
#include <tuple>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/lfs.h"

// toml++ states as an assumption, which a release build compiles into undefined behaviour, that a
// table's name begins with a letter; a line break after "[" breaks it. Here its assertions throw
// instead, in every build. This is the only file that includes it, so there is no second copy of
// its functions.
namespace tenon::io {
struct BrokenAssumption {};
}  // namespace tenon::io
// GCC warns where an assertion stands in a noexcept function: ending the program is right there.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wterminate"
#endif
#undef NDEBUG
#define TOML_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : throw ::tenon::io::BrokenAssumption())
#define TOML_EXCEPTIONS 1
// TOML 1.1: an inline table may go over several lines, and end in a comma.
#define TOML_ENABLE_UNRELEASED_FEATURES 1
#include <toml++/toml.h>

namespace tenon::io {
namespace {

constexpr int kDeepestToml = 512;            // tables and lists within each other
constexpr std::int64_t kMostToml = 400'000;  // keys and values

// How deep a TOML text nests and how much it holds, told before toml++ builds anything of it: each
// dot of a key is a table, and trees are walked and freed by recursion. step() gets every letter
// that is in no quotes and no comment.
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

  std::vector<int> open_{};       // dots of the keys whose values are open
  int within_ = 0, deepest_ = 0;  // levels of what is open; the most so far
  int here_ = 0, header_ = 0;     // dots of the key being read; of the table's header
  bool after_equals_ = false, in_header_ = false;
  std::int64_t values_ = 0;
};

// The code point that starts at text[i], which moves past it; 0 for what is not UTF-8.
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

// toml++ 3.3 runs into undefined behaviour when it asks whether an accented letter is a space. So
// letters outside ASCII reach it as the escapes that quoted text may hold; in comments they are
// left out, and nowhere else are they allowed.
class AsciiToml {
 public:
  AsciiToml(const std::string& text, const std::string& source) : text_(text), source_(source) {}

  std::string escaped() {
    if (text_.find("\"\"\"") != std::string::npos || text_.find("'''") != std::string::npos)
      refuse("there is no text of several lines here; use one pair of quotes");
    std::string out;
    for (std::size_t i = 0; i < text_.size();) {
      const std::uint32_t code = next_code_point(text_, i);
      if (code == 0) refuse("not UTF-8 text");
      if (code < 0x80) {
        const char c = static_cast<char>(code);
        if (place_ == Place::Plain) extent_.step(c);
        step(c);
        if (extent_.too_deep())
          refuse("tables and lists stand more than 512 deep within each other");
        if (extent_.too_much()) refuse("there are more than 400,000 keys and values up to here");
        out.push_back(c);
        continue;
      }
      if (place_ == Place::Comment) continue;
      if (place_ != Place::Quoted)
        refuse("letters outside ASCII need double quotes, and are fine in comments");
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
    out.kind = TomlValue::Kind::Text;
    out.text = text->get();
  } else if (const auto* whole = node.as_integer()) {
    out.kind = TomlValue::Kind::Whole;
    out.whole = whole->get();
  } else if (const auto* real = node.as_floating_point()) {
    out.kind = TomlValue::Kind::Real;
    out.real = real->get();
  } else if (const auto* truth = node.as_boolean()) {
    out.kind = TomlValue::Kind::Truth;
    out.truth = truth->get();
  } else {
    throw make_error<FormatError>(FileName{source}, ", line ", LineNumber{node.source().begin.line},
                                  ": there are no dates here");
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

const char* TomlValue::kind_name() const noexcept {
  switch (kind) {
    case TomlValue::Kind::Text:
      return "a text";
    case TomlValue::Kind::Whole:
      return "a whole number";
    case TomlValue::Kind::Real:
      return "a number";
    case TomlValue::Kind::Truth:
      return "a truth value";
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
    // Without the name of the source: toml++ copies it in a noexcept function, where a failing
    // allocation would end the program.
    TomlValue out = tree_of(toml::parse(ascii), source);
    out.line = 0;
    return out;
  } catch (const toml::parse_error& error) {
    const std::string_view what = error.description();
    const bool no_kind = what.find("could not determine value type") != std::string_view::npos;
    throw make_error<FormatError>(FileName{source}, ", line ",
                                  LineNumber{error.source().begin.line}, ": ", what,
                                  no_kind ? "; text stands in double quotes" : "");
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

}  // namespace tenon::io
