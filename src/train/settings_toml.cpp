// Flat TOML in: strings, whole numbers, floating numbers, booleans.
#include "train/settings.h"

#include <tenon/error.h>

#include <cstdint>
#include <cstdio>
#include <sstream>

#include "base/str.h"

// toml++ states as an assumption, which a release build compiles into undefined behaviour, that a
// table's name begins with a letter; a line break after "[" breaks it. Here its assertions throw
// instead, in every build. This is the only file that includes it, so there is no second copy of
// its functions.
namespace tenon::train {
struct BrokenAssumption {};
}  // namespace tenon::train
// GCC warns where an assertion stands in a noexcept function: ending the program is right there.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wterminate"
#endif
#undef NDEBUG
#define TOML_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : throw ::tenon::train::BrokenAssumption())
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace tenon::train {
namespace {

std::string text_of(const toml::node& node, const std::string& where) {
  if (const auto* s = node.as_string()) return s->get();
  if (const auto* i = node.as_integer()) return cat(i->get());
  if (const auto* f = node.as_floating_point()) return cat(f->get());
  if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
  throw FormatError(
      cat(where,
          ": a setting is a text, a number or a truth value; there are no tables and lists here"));
}

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
// letters outside ASCII reach it as the escapes that quoted text may hold, and nowhere else are
// they allowed.
std::string escape_non_ascii(const std::string& text, const std::string& source) {
  const auto refuse = [&](const char* what) { throw FormatError(cat(source, ": ", what)); };
  if (text.find("\"\"\"") != std::string::npos || text.find("'''") != std::string::npos)
    refuse("a setting has no text of several lines; use one pair of quotes");
  std::string out;
  bool literal = false;  // a single quote stands before, on this line
  for (std::size_t i = 0; i < text.size();) {
    const std::uint32_t code = next_code_point(text, i);
    if (code == 0) refuse("not UTF-8 text");
    if (code < 0x80) {
      literal = code != '\n' && (literal || code == '\'');
      out.push_back(static_cast<char>(code));
      continue;
    }
    if (literal) refuse("letters outside ASCII need double quotes, not single ones");
    char escape[12];
    std::snprintf(escape, sizeof escape, "\\U%08X", code);
    out += escape;
  }
  return out;
}

}  // namespace

std::vector<SettingText> parse_settings(const std::string& text, const std::string& source) {
  std::vector<SettingText> out;
  try {
    const toml::table table = toml::parse(escape_non_ascii(text, source), source);
    for (const auto& [key, node] : table) {
      const int line = static_cast<int>(node.source().begin.line);
      const std::string name(key.str());
      out.push_back({name, text_of(node, cat(source, ", line ", line, ", '", name, "'")), line});
    }
  } catch (const toml::parse_error& error) {
    throw FormatError(cat(source, ", line ", error.source().begin.line, ": ", error.description()));
  } catch (const BrokenAssumption&) {
    throw FormatError(cat(source, ": not TOML; write 'key = value' lines, without [tables]"));
  }
  return out;
}

}  // namespace tenon::train
