// Compiled kernels on disk: one file per kernel, named by its key.
//
// A file is written under a temporary name and renamed, so that processes that share the folder
// only see complete files. Damaged, foreign or truncated files are ignored and rewritten. A folder
// that cannot be written is only read; a folder that other users can write is not used
// (base/system/cache_file.h); "" means no folder. No function here throws.
#pragma once

#include <cstdint>
#include <string>

#include "base/digest.h"

namespace tenon::cuda {

class KernelCache {
 public:
  static constexpr std::int64_t kLimit = std::int64_t{256} << 20;

  explicit KernelCache(std::string folder, std::int64_t limit = kLimit)
      : folder_(std::move(folder)), limit_(limit) {}

  /// The image, or "" if there is none.
  std::string read(const Digest& key) const noexcept;
  void write(const Digest& key, const std::string& image) const noexcept;
  /// Removes the least recently used files until the rest is well within the limit.
  void shrink() const noexcept;
  std::string file_of(const Digest& key) const;

 private:
  std::string folder_;
  std::int64_t limit_;
};

}  // namespace tenon::cuda
