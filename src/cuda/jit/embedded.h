// Headers for device code that are embedded in the library, and which of them a source needs.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system/packed_files.h"

namespace tenon {
extern const PackedFiles packed_headers;
}

namespace tenon::cuda {

/// An embedded file. Its text lives as long as the process.
struct EmbeddedFile {
  explicit EmbeddedFile(const std::pair<const std::string, std::string>& file)
      : name(file.first), text(file.second) {}

  std::string_view name;  // as it is included: "scalar/exp.h"
  std::string_view text;
};

/// All embedded files by name, unpacked at the first call. Comments of headers are left out; lines
/// keep their numbers.
const std::vector<EmbeddedFile>& embedded_files();

/// Text of an embedded header ("scalar/exp.h"); null if there is none.
const std::string* embedded_header(const std::string& name);

/// The embedded headers that `text` includes, directly or through others, each once, by name.
std::vector<std::pair<std::string, const std::string*>> headers_of(const std::string& text);

}  // namespace tenon::cuda
