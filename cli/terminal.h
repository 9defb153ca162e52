// Capabilities of the terminal: colours, block characters, width; and one status line that can be
// redrawn.
//
// Nothing here prints results. Output that is not for a terminal stays plain ASCII.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

enum class TextStyle { Plain, Bold, Dim, Red, Green, Yellow, Blue, Cyan };

struct Terminal {
  bool interactive = false;  ///< a terminal that understands ANSI sequences
  bool color = false;        ///< and may be coloured (NO_COLOR is not set)
  bool utf8 = false;         ///< and shows UTF-8
  int width = 80;

  /// The text in this colour; unchanged if colours are off.
  std::string paint(TextStyle style, std::string_view text) const;
  /// The text on a background shade of grey, 0 (black) to 1 (white).
  std::string shade(double level, std::string_view text) const;
};

const Terminal& stdout_terminal();
const Terminal& stderr_terminal();

/// Redraws the status line at the bottom (stderr); nothing if stderr is not a terminal.
void status_line(const std::string& text);
/// Removes the status line, before anything else is printed.
void clear_status_line();

// ---- Words and numbers

/// Whether the bytes are well-formed UTF-8 (RFC 3629).
bool is_utf8(std::string_view text);
/// The text on one line: invalid UTF-8 and control characters are printed as \n or \xNN.
std::string printable(std::string_view text);
/// The same for each line.
std::string printable_lines(std::string_view text);
/// A word for a shell's command line: quoted if necessary, and never read as an option.
std::string shell_word(std::string_view text);

std::string join(const std::vector<std::string>& parts, const std::string& between);
/// "61,706"
std::string thousands(std::int64_t value);
/// "1.4 MiB"
std::string bytes_text(std::int64_t bytes);
/// "42 s", "3 min 20 s", "1 h 5 min"
std::string duration_text(double seconds);
/// Breaks text at spaces so that no line is longer than `width`, each indented.
std::string wrap(std::string_view text, int width, int indent);
/// Columns that a UTF-8 text takes.
int columns(std::string_view text);
/// The start of a text that fits into this many columns.
std::string cut(std::string_view text, int width);
/// Adds spaces up to `width` columns, on the right (or the left).
std::string pad_right(const std::string& text, int width);
std::string pad_left(const std::string& text, int width);

}  // namespace tenon::cli
