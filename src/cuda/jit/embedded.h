// Headers for device code that are embedded in the library, and which of them a source needs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::cuda {

/// The output of cmake/EmbedFiles.cmake: one gzip stream of all files, and their sizes.
struct PackedFile {
  const char* name;
  std::size_t size;  // unpacked
};
struct PackedFiles {
  const unsigned char* bytes;
  std::size_t size;
  const PackedFile* files;
  std::size_t count;
};
extern const PackedFiles packed_files;

/// An embedded file. Its text lives as long as the process.
struct EmbeddedFile {
  explicit EmbeddedFile(const std::pair<const std::string, std::string>& file)
      : name(file.first), text(file.second) {}

  std::string_view name;  // as it is included: "scalar/exp.h"
  std::string_view text;
};

/// All embedded files by name, unpacked at the first call.
const std::vector<EmbeddedFile>& embedded_files();

/// The embedded headers that `text` includes, directly or through others, each once, by name.
std::vector<std::pair<std::string, const std::string*>> headers_of(const std::string& text);

}  // namespace tenon::cuda
