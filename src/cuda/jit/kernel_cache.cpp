// File format: magic (8 bytes), key (16), size of the image (8), checksum of the image (8), image.
// Numbers have the machine's byte order, which the magic number checks.
#include "cuda/jit/kernel_cache.h"

#include <atomic>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/str.h"
#include "base/system/cache_file.h"

namespace tenon::cuda {
namespace {

struct Header {
  std::uint64_t magic = 0x313042554b4e4554ull;  // "TENKUB01" where the lowest byte comes first
  std::uint64_t lo = 0, hi = 0;
  std::uint64_t bytes = 0, sum = 0;
};

constexpr char kEnding[] = ".kernel";
constexpr std::uint64_t kLargestImage = std::uint64_t{64} << 20;

std::string read_image(const std::string& path, const Digest& key) {
  const std::optional<std::string> file = read_cache_file(path, kLargestImage + sizeof(Header));
  Header header;
  const Header wanted;
  if (!file || file->size() <= sizeof header) return {};
  std::memcpy(&header, file->data(), sizeof header);
  if (header.magic != wanted.magic || header.lo != key.lo || header.hi != key.hi ||
      header.bytes != file->size() - sizeof header)
    return {};
  std::string image = file->substr(sizeof header);
  return checksum(image) == header.sum ? image : std::string();
}

constexpr std::int64_t kHour = 3600, kDay = 24 * kHour;  // in seconds

std::string name_of(const Digest& key) { return cat(key.hex(), kEnding); }

}  // namespace

std::string KernelCache::file_of(const Digest& key) const {
  return cat(folder_, "/", name_of(key));
}

std::string KernelCache::read(const Digest& key) const noexcept {
  if (folder_.empty()) return {};
  try {
    const std::string path = file_of(key);
    std::string image = read_image(path, key);
    if (image.empty()) return image;
    // Once a day is precise enough to find old files.
    if (const CacheFolder folder(folder_); folder.fd() >= 0) folder.touch(name_of(key), kDay);
    return image;
  } catch (const std::exception&) {  // out of memory: treated as missing
    return {};
  }
}

void KernelCache::write(const Digest& key, const std::string& image) const noexcept {
  static std::atomic<std::int64_t> written{-1};
  if (folder_.empty()) return;
  try {
    Header header;
    header.lo = key.lo;
    header.hi = key.hi;
    header.bytes = image.size();
    header.sum = checksum(image);
    const std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
    if (!write_cache_file(file_of(key), {head, image})) return;
    // Scans the folder at the first write, and then whenever a sixteenth of the limit has been
    // written.
    const std::int64_t bytes = static_cast<std::int64_t>(image.size());
    if (written.fetch_add(bytes + 1) == -1 || written.load() > limit_ / 16) {
      written = 0;
      shrink();
    }
  } catch (const std::exception&) {  // a kernel that is not kept is compiled again
    return;
  }
}

void KernelCache::shrink() const noexcept {
  try {
    const CacheFolder folder(folder_);
    if (folder.fd() >= 0) folder.shrink(kEnding, limit_, limit_ / 4 * 3, kHour);
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace tenon::cuda
