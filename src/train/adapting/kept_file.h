// Records of frozen-layer outputs: in memory, or in a file of the user's cache.
//
// A file is named by a digest of everything its values depend on. It is written under a temporary
// name and renamed, and used only if its checksum matches: damaged or foreign files are recomputed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "base/digest.h"
#include "base/system/cache_file.h"
#include "io/file.h"

namespace tenon::train {

/// Records cannot be stored on disk; the run continues without.
class KeptError : public IoError {
 public:
  using IoError::IoError;
};

/// Records of equal length, one per sample.
class KeptRecords {
 public:
  KeptRecords(std::vector<std::byte> records, std::size_t bytes_of_one)
      : memory_(std::move(records)), first_(memory_.data()), bytes_(bytes_of_one) {}
  KeptRecords(std::unique_ptr<const io::MappedFile> file, std::size_t offset,
              std::size_t bytes_of_one);
  KeptRecords(const KeptRecords&) = delete;
  KeptRecords& operator=(const KeptRecords&) = delete;

  /// Throws FormatError if the file was truncated while it was read.
  void require_whole() const {
    if (file_ != nullptr) file_->require_whole();
  }
  const std::byte* at(std::int64_t example) const {
    return first_ + static_cast<std::size_t>(example) * bytes_;
  }

 private:
  std::vector<std::byte> memory_;
  std::unique_ptr<const io::MappedFile> file_;
  const std::byte* first_;
  std::size_t bytes_;
};

/// The cache files of a folder that many processes may use at the same time.
class KeptFolder {
 public:
  /// Limit in bytes of all files.
  KeptFolder(std::string path, std::int64_t limit) : path_(std::move(path)), limit_(limit) {}

  const std::string& path() const noexcept { return path_; }
  std::string file_of(const Digest& key) const;
  /// The records, or null if there are none. Then `why` names a file that failed its check, and is
  /// empty if there is no file.
  std::shared_ptr<const KeptRecords> read(const Digest& key, std::int64_t examples,
                                          std::size_t bytes_of_one, std::string& why) const;
  /// Records already read stay readable.
  void remove(const Digest& key) const noexcept;
  /// Removes the least recently used files until `bytes` more are within the limit. Throws
  /// KeptError if they exceed the limit, if the disk is full, or if the folder is refused
  /// (CacheFolder::refusal); in that case no file is touched.
  void make_room(std::int64_t bytes) const;

 private:
  std::string path_;
  std::int64_t limit_;
};

/// A file being written; it is deleted unless commit() is called.
class KeptWriter {
 public:
  /// All members throw KeptError.
  KeptWriter(const KeptFolder& folder, const Digest& key, std::int64_t examples,
             std::size_t bytes_of_one);

  /// Appends records.
  void add(std::span<const std::byte> records);
  void commit();

 private:
  void write(const void* from, std::size_t bytes);
  void refuse_problem() const;
  CacheFileWriter file_;
  std::size_t bytes_;
  Digester sum_;
};

}  // namespace tenon::train
