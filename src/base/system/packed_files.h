// Files that the build packs into the library (cmake/EmbedFiles.cmake).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct PackedFile {
  const char* name;
  std::size_t size;  // unpacked
};
/// One gzip stream of all files, and their sizes.
struct PackedFiles {
  const unsigned char* bytes;
  std::size_t size;
  const PackedFile* files;
  std::size_t count;
};

struct UnpackedFile {
  std::string_view name;
  std::string text;
};
/// The files, in their order. Throws InternalError if the stream is damaged.
std::vector<UnpackedFile> unpack(const PackedFiles& packed);

}  // namespace tenon
