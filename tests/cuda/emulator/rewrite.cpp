// Finds kernels by their qualifier. A scanner of strings and brackets is enough, because the
// preprocessor has removed comments and macros. Line markers stay, so that errors name the lines
// of the source.
#include "rewrite.h"

#include <cctype>
#include <cstddef>
#include <stdexcept>

namespace tenon_emulator {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Position of `word` as a token at or after `from`; npos when there is none.
std::size_t find_word(const std::string& text, const std::string& word, std::size_t from) {
  for (std::size_t at = text.find(word, from); at != std::string::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) {
      return at;
    }
  }
  return std::string::npos;
}

std::size_t skip_space(const std::string& text, std::size_t at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
  return at;
}

/// The position after the bracket that closes the one at `at`.
std::size_t skip_brackets(const std::string& text, std::size_t at) {
  const char open = text[at];
  const char close = open == '(' ? ')' : '}';
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      // A digit before ' is a separator of digits.
      if (c == '\'' && at > 0 && std::isdigit(static_cast<unsigned char>(text[at - 1])) != 0) {
        continue;
      }
      for (++at; at < text.size() && text[at] != c; ++at) at += text[at] == '\\' ? 1 : 0;
    } else if (c == open) {
      ++depth;
    } else if (c == close && --depth == 0) {
      return at + 1;
    }
  }
  throw std::runtime_error("a kernel's brackets do not match");
}

/// Start of the declaration that contains `at`: after the last ; { } or line marker.
std::size_t declaration_start(const std::string& text, std::size_t at) {
  std::size_t start = text.find_last_of(";{}", at);
  start = start == std::string::npos ? 0 : start + 1;
  const std::size_t line = text.rfind("\n#", at);
  if (line != std::string::npos && line >= start) {
    return text.find('\n', line + 1) + 1;
  }
  return start;
}

/// Swaps the words of "__shared__ alignas(n)": the emulator's __shared__ ends in `static`, after
/// which alignas would apply to the type.
void swap_alignas(std::string& text) {
  const std::string word = "tenon_shared_variable";
  const std::string storage = "__attribute__((section(\"tenon_shared\"), used)) static";
  for (std::size_t at = find_word(text, word, 0); at != std::string::npos;
       at = find_word(text, word, at)) {
    const std::size_t next = skip_space(text, at + word.size());
    std::string moved;
    std::size_t end = at + word.size();
    if (text.compare(next, 7, "alignas") == 0) {
      end = skip_brackets(text, skip_space(text, next + 7));
      moved = text.substr(next, end - next) + " ";
    }
    text.replace(at, end - at, moved + storage);
  }
}

struct Found {
  std::string name, bounds;
  std::size_t end = 0;  // after its body; npos for a declaration without a body
};

/// Reads on after __global__ and removes __launch_bounds__.
Found read_kernel(std::string& text, std::size_t at) {
  Found found;
  const std::string bounds = "__launch_bounds__";
  std::string word;
  for (;; ++at) {
    if (at >= text.size()) throw std::runtime_error("__global__ without a function");
    if (text.compare(at, bounds.size(), bounds) == 0) {
      const std::size_t open = skip_space(text, at + bounds.size());
      const std::size_t close = skip_brackets(text, open);
      found.bounds = text.substr(open + 1, close - open - 2);
      text.replace(at, close - at, close - at, ' ');
    } else if (is_word(text[at])) {
      const std::size_t start = at;
      while (at + 1 < text.size() && is_word(text[at + 1])) ++at;
      word = text.substr(start, at + 1 - start);
    } else if (text[at] == '(' && !word.empty()) {
      if (word != "__attribute__") break;
      at = skip_brackets(text, at) - 1;
    }
  }
  found.name = word;
  const std::size_t next = skip_space(text, skip_brackets(text, at));
  found.end =
      next < text.size() && text[next] == '{' ? skip_brackets(text, next) : std::string::npos;
  return found;
}

/// The first argument of __launch_bounds__, or the most threads that a block can have.
std::string most_threads(const std::string& bounds) {
  int depth = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    depth += bounds[i] == '(' ? 1 : bounds[i] == ')' ? -1 : 0;
    if (bounds[i] == ',' && depth == 0) return bounds.substr(0, i);
  }
  return bounds.empty() ? "1024" : bounds;
}

}  // namespace

std::string lowered_name(std::size_t number) { return "tenon_lowered_" + std::to_string(number); }

std::string rewrite_kernels(const std::string& source,
                            const std::vector<std::string>& expressions) {
  std::string text = source;
  swap_alignas(text);
  const std::string qualifier = "__global__";
  for (std::size_t at = find_word(text, qualifier, 0); at != std::string::npos;
       at = find_word(text, qualifier, at)) {
    const std::size_t start = declaration_start(text, at);
    const bool plain = text.substr(start, at - start).find("extern \"C\"") != std::string::npos;
    text.replace(at, qualifier.size(), qualifier.size(), ' ');
    const Found found = read_kernel(text, at);
    if (plain && found.end != std::string::npos) {
      text.insert(found.end, " static const ::tenon_emulator::Entered<" + found.name + "> " +
                                 found.name + "_entered{\"" + found.name + "\", (" +
                                 most_threads(found.bounds) + ")};");
    }
  }
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    text += "\nstatic const ::tenon_emulator::Entered<(" + expressions[i] + ")> " +
            lowered_name(i) + "_entered{\"" + lowered_name(i) + "\", 1024};";
  }
  return text + "\n";
}

}  // namespace tenon_emulator
