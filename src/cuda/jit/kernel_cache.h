// Compiled kernels on disk: one file a kernel, named by its key.
//
// A file is written under another name and renamed, so that processes which share the folder see
// whole files only; what is damaged, foreign or truncated is ignored and written anew. A folder
// that cannot be written is read only, one that others can write is not used (base/cache_file.h),
// and
// "" is no folder. Nothing here throws.
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

  /// The image, or "" when there is none.
  std::string read(const Digest& key) const noexcept;
  void write(const Digest& key, const std::string& image) const noexcept;
  /// Removes the files that were used longest ago until the rest is well within the limit.
  void shrink() const noexcept;
  std::string file_of(const Digest& key) const;

 private:
  std::string folder_;
  std::int64_t limit_;
};

}  // namespace tenon::cuda
