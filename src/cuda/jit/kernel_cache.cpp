// File format: magic (8 bytes), key (16), bytes of the image (8), checksum of the image (8), image;
// numbers in the machine's byte order, which the magic checks.
#include "cuda/jit/kernel_cache.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/cache_file.h"
#include "base/folder_names.h"
#include "base/str.h"

namespace tenon::cuda {
namespace {

namespace fs = std::filesystem;

struct Header {
  std::uint64_t magic = 0x313042554b4e4554ull;  // "TENKUB01" where the lowest byte comes first
  std::uint64_t lo = 0, hi = 0;
  std::uint64_t bytes = 0, sum = 0;
};

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

using Clock = fs::file_time_type::clock;

// Marks a file as used; once a day is enough to tell which are old.
void touch(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type now = Clock::now();
  const fs::file_time_type then = fs::last_write_time(path, error);
  if (!error && now - then > std::chrono::hours(24)) fs::last_write_time(path, now, error);
}

}  // namespace

std::string KernelCache::file_of(const Digest& key) const {
  return cat(folder_, "/", key.hex(), ".kernel");
}

std::string KernelCache::read(const Digest& key) const noexcept {
  if (folder_.empty()) return {};
  try {
    const std::string path = file_of(key);
    std::string image = read_image(path, key);
    if (!image.empty()) touch(path);
    return image;
  } catch (const std::exception&) {  // out of memory: as good as not there
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
    // Looking through the folder at the first write, and then after every sixteenth of the limit.
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
  struct Entry {
    fs::path path;
    fs::file_time_type time;
    std::int64_t bytes;
  };
  try {
    std::vector<Entry> entries;
    std::int64_t total = 0;
    std::error_code error;
    for (const std::string& name : names_in(folder_, error)) {
      std::error_code ignored;
      const fs::path path = cat(folder_, "/", name);
      Entry entry{path, fs::last_write_time(path, ignored),
                  static_cast<std::int64_t>(fs::file_size(path, ignored))};
      if (ignored) continue;
      // What a killed process left behind.
      if (name.ends_with(".tmp") && Clock::now() - entry.time > std::chrono::hours(1))
        fs::remove(entry.path, ignored);
      if (!name.ends_with(".kernel")) continue;
      total += entry.bytes;
      entries.push_back(std::move(entry));
    }
    if (total <= limit_) return;
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.time < b.time; });
    for (const Entry& entry : entries) {
      if (total <= limit_ / 4 * 3) return;
      if (fs::remove(entry.path, error)) total -= entry.bytes;
    }
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace tenon::cuda
