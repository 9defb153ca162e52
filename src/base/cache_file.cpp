// Through a name of the process's own, and a rename: readers and other writers see whole files.
#include "base/cache_file.h"

#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "base/str.h"

namespace tenon {
namespace {

bool write_pieces(const std::string& path, std::initializer_list<std::string_view> pieces) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  bool good = true;
  for (const std::string_view piece : pieces)
    good = good && std::fwrite(piece.data(), 1, piece.size(), file) == piece.size();
  return std::fclose(file) == 0 && good;
}

}  // namespace

bool write_cache_file(const std::string& path,
                      std::initializer_list<std::string_view> pieces) noexcept {
  static std::atomic<int> counter{0};
  try {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    const std::string temporary = cat(path, ".", ::getpid(), ".", counter++, ".tmp");
    const bool good = write_pieces(temporary, pieces);
    if (good) std::filesystem::rename(temporary, path, error);
    if (good && !error) return true;
    std::filesystem::remove(temporary, error);
  } catch (const std::exception&) {  // out of memory: as a full disk
  }
  return false;
}

}  // namespace tenon
