// Source text of configurations.
#include "cuda/engines/launch/tile.h"

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/engines/launch/words.h"

namespace tenon::cuda {
namespace {

constexpr const char* kConstant = "  static constexpr ";

int printed(int number) { return number; }
const char* printed(bool flag) { return truth(flag); }

template <class T>
std::string line_of(const char* type, std::initializer_list<std::pair<const char*, T>> constants) {
  std::string line = cat(kConstant, type, " ");
  for (const auto& constant : constants)
    line += cat(&constant == constants.begin() ? "" : ", ", constant.first, " = ",
                printed(constant.second));
  return line + ";\n";
}

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
  lines_ += line_of("int", constants);
  return *this;
}

ConfigText& ConfigText::flags(std::initializer_list<std::pair<const char*, bool>> constants) {
  lines_ += line_of("bool", constants);
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

void refuse_config(const char* engine, const std::string& name) {
  throw NotSupported(cat(engine, " has no configuration '", name, "' for this region"));
}

}  // namespace tenon::cuda
