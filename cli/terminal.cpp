// Terminal detection, ANSI sequences and small text helpers.
#include "terminal.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "output.h"

namespace tenon::cli {
namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

bool speaks_utf8() {
  std::string locale = variable("LC_ALL");
  if (locale.empty()) locale = variable("LC_CTYPE");
  if (locale.empty()) locale = variable("LANG");
  std::transform(locale.begin(), locale.end(), locale.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

Terminal look_at(int descriptor) {
  Terminal terminal;
  const std::string kind = variable("TERM");
  terminal.interactive = isatty(descriptor) != 0 && kind != "dumb" && !kind.empty();
  terminal.color = terminal.interactive && variable("NO_COLOR").empty();
  terminal.utf8 = terminal.interactive && speaks_utf8();
  winsize size{};
  if (terminal.interactive && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.width = std::min<int>(size.ws_col, 120);
  return terminal;
}

bool status_shown = false;

}  // namespace

std::string Terminal::paint(TextStyle style, std::string_view text) const {
  static constexpr const char* kCodes[] = {"0", "1", "2", "1;31", "32", "33", "34", "36"};
  if (!color || style == TextStyle::Plain) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<int>(style)], text);
}

std::string Terminal::shade(double level, std::string_view text) const {
  if (!color) return std::string(text);
  // The 24 greys of the 256-colour palette; ink that stays readable on them.
  const int grey = 232 + std::clamp(static_cast<int>(std::lround(level * 23.0)), 0, 23);
  return fmt::format("\x1b[48;5;{};38;5;{}m{}\x1b[0m", grey, level > 0.55 ? 16 : 253, text);
}

const Terminal& stdout_terminal() {
  static const Terminal terminal = look_at(STDOUT_FILENO);
  return terminal;
}

const Terminal& stderr_terminal() {
  static const Terminal terminal = look_at(STDERR_FILENO);
  return terminal;
}

void status_line(const std::string& text) {
  if (!stderr_terminal().interactive) return;
  flush_output();
  std::fputs(fmt::format("\r{}\x1b[K", cut(text, stderr_terminal().width - 1)).c_str(), stderr);
  std::fflush(stderr);
  status_shown = true;
}

void clear_status_line() {
  if (!status_shown) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  status_shown = false;
}

namespace {

// Bytes of the character at the start of the text; 0 if it is invalid.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
  // Overlong forms, surrogates, and what lies beyond Unicode.
  const bool outside = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
                       (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f);
  return outside ? 0 : size;
}

char32_t code_point(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  constexpr unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  char32_t code = lead & masks[character.size()];
  for (const char c : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

// Control characters of ASCII and Latin-1 (U+0080 to U+009F); characters that change the direction
// of the text after them, so that one name looks like another; and characters that are invisible or
// begin a line. Joiners are kept, because Persian words and emoji contain them.
bool is_control(std::string_view character) {
  const char32_t c = code_point(character);
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200b || c == 0x200e ||
         c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
         c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = character_bytes(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = character_bytes(text), bytes = std::max<std::size_t>(size, 1);
    const std::string_view character = text.substr(0, bytes);
    text.remove_prefix(bytes);
    if (character == "\n")
      out += "\\n";
    else if (character == "\t")
      out += "\\t";
    else if (size > 0 && !is_control(character))
      out += character;
    else
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  for (std::size_t from = 0;; out += '\n') {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    out += printable(text.substr(from, end - from));
    if (end == text.size()) return out;
    from = end + 1;
  }
}

std::string shell_word(std::string_view text) {
  if (text.starts_with('-'))
    return shell_word("./" + std::string(text));  // never read as an option
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:,=+@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  if (printable(text) != text) {  // $'...' of bash, zsh and ksh
    std::string escaped;
    for (const char c : text)
      escaped += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    return "$'" + printable(escaped) + "'";
  }
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string join(const std::vector<std::string>& parts, const std::string& between) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : between) + part;
  return out;
}

std::string thousands(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, ",");
  return digits;
}

std::string bytes_text(std::int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < (std::int64_t{1} << 20)) return fmt::format("{:.1f} KiB", value / 1024);
  if (bytes < (std::int64_t{1} << 30)) return fmt::format("{:.1f} MiB", value / 1048576);
  return fmt::format("{:.2f} GiB", value / 1073741824);
}

std::string duration_text(double seconds) {
  if (seconds < 0.95) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string wrap(std::string_view text, int width, int indent) {
  std::string out, line(static_cast<std::size_t>(indent), ' ');
  int used = indent;
  bool fresh = true;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\n') {
      out += line + "\n";
      line.assign(static_cast<std::size_t>(indent), ' ');
      used = indent, fresh = true, ++i;
      continue;
    }
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(" \n", i), text.size());
    const std::string_view word = text.substr(i, end - i);
    if (!fresh && used + 1 + columns(word) > width) {
      out += line + "\n";
      line.assign(static_cast<std::size_t>(indent), ' ');
      used = indent, fresh = true;
    }
    if (!fresh) line += ' ', ++used;
    line += word;
    used += columns(word);
    fresh = false;
    i = end;
  }
  return fresh ? out : out + line + "\n";
}

int columns(std::string_view text) {
  int count = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\x1b') escape = true;
    if (!escape && (static_cast<unsigned char>(c) & 0xc0u) != 0x80u) ++count;
    if (escape && c == 'm') escape = false;
  }
  return count;
}

std::string cut(std::string_view text, int width) {
  std::string out;
  bool escape = false;
  int used = 0;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
    if (c == '\x1b') escape = true;
    if (!escape && starts) ++used;
    if (escape || used <= width) out += c;
    if (escape && c == 'm') escape = false;
  }
  return out;
}

std::string pad_right(const std::string& text, int width) {
  return text + std::string(static_cast<std::size_t>(std::max(0, width - columns(text))), ' ');
}

std::string pad_left(const std::string& text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - columns(text))), ' ') + text;
}

}  // namespace tenon::cli
