// Looks embedded headers up and follows includes.
#include "cuda/jit/embedded.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace tenon::cuda {
namespace {

using Headers = std::map<std::string, std::string, std::less<>>;

const Headers& all_headers() {
  static const auto* const instance = [] {
    auto* made = new Headers;
    for (UnpackedFile& file : unpack(packed_headers))
      made->emplace(file.name, std::move(file.text));
    return made;
  }();
  return *instance;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  return start == std::string_view::npos ? std::string_view() : text.substr(start);
}

// The name in `#include "name"`; empty for any other line.
std::string_view included(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with('#')) return {};
  line = trimmed(line.substr(1));
  if (!line.starts_with("include")) return {};
  line = trimmed(line.substr(7));
  const std::size_t end = line.find('"', 1);
  if (!line.starts_with('"') || end == std::string_view::npos) return {};
  return line.substr(1, end - 1);
}

using Found = std::map<std::string, const std::string*>;

void follow(std::string_view text, Found& found) {
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view name = included(text.substr(start, end - start));
    start = end + 1;
    if (name.empty()) continue;
    const std::string* header = embedded_header(std::string(name));
    if (header != nullptr && found.emplace(name, header).second) follow(*header, found);
  }
}

}  // namespace

const std::vector<EmbeddedFile>& embedded_files() {
  static const auto* const instance =
      new std::vector<EmbeddedFile>(all_headers().begin(), all_headers().end());
  return *instance;
}

const std::string* embedded_header(const std::string& name) {
  const auto it = all_headers().find(name);
  return it == all_headers().end() ? nullptr : &it->second;
}

std::vector<std::pair<std::string, const std::string*>> headers_of(const std::string& text) {
  Found found;
  follow(text, found);
  return {found.begin(), found.end()};
}

}  // namespace tenon::cuda
