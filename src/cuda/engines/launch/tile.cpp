// Texts and names of configurations.
#include "cuda/engines/launch/tile.h"

#include <charconv>

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/engines/launch/words.h"

namespace tenon::cuda {
namespace {

constexpr const char* kConstant = "  static constexpr ";

}  // namespace

ConfigText& ConfigText::type(const char* name, const std::string& value) {
  lines_ += cat("  using ", name, " = ", value, ";\n");
  return *this;
}

ConfigText& ConfigText::value(const char* type, const char* name, const std::string& text) {
  lines_ += cat(kConstant, type, " ", name, " = ", text, ";\n");
  return *this;
}

ConfigText& ConfigText::ints(std::initializer_list<std::pair<const char*, int>> constants) {
  const char* before = "int ";
  lines_ += kConstant;
  for (const auto& [name, number] : constants) {
    lines_ += cat(before, name, " = ", number);
    before = ", ";
  }
  lines_ += ";\n";
  return *this;
}

ConfigText& ConfigText::flags(std::initializer_list<std::pair<const char*, bool>> constants) {
  const char* before = "bool ";
  lines_ += kConstant;
  for (const auto& [name, flag] : constants) {
    lines_ += cat(before, name, " = ", truth(flag));
    before = ", ";
  }
  lines_ += ";\n";
  return *this;
}

ConfigText& ConfigText::tile(const Tile& tile) {
  for (const auto& [name, number] : {std::pair("kM", tile.m),
                                     {"kN", tile.n},
                                     {"kK", tile.k},
                                     {"kThreads", tile.threads},
                                     {"kStages", tile.stages},
                                     {"kThreadM", tile.thread_m},
                                     {"kThreadN", tile.thread_n}})
    if (number != 0) ints({{name, number}});
  return *this;
}

std::string config_text(std::string_view pattern, std::initializer_list<std::int64_t> numbers) {
  std::string text;
  const std::int64_t* number = numbers.begin();
  for (const char c : pattern) {
    if (c == '#')
      text += std::to_string(*number++);
    else
      text += c;
  }
  return text;
}

std::vector<std::int64_t> read_config(std::string_view pattern, std::string_view name) {
  std::vector<std::int64_t> numbers;
  const char *at = name.data(), *const end = at + name.size();
  for (const char c : pattern) {
    if (c != '#') {
      if (at == end || *at++ != c) return {};
      continue;
    }
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    // As config_text() writes it: no sign, no zeros in front.
    const bool written =
        error == std::errc() && number >= 0 && (*at != '0' || stop == at + 1) && *at != '-';
    if (!written) return {};
    numbers.push_back(number);
    at = stop;
  }
  if (at != end) return {};
  return numbers;
}

void refuse_config(const char* engine, const std::string& name) {
  throw NotSupported(cat(engine, " has no configuration '", name, "' for this region"));
}

}  // namespace tenon::cuda
