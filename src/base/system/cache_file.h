// Cache files: written whole or not at all, by many processes at once, and lost without harm. Files
// of users belong to src/io.
//
// Cached data is trusted, and cached kernels are executed. So a folder or file is used only if no
// other user can have written it. The same applies to the folder of all caches, because a user who
// may rename entries there controls the caches. Folders are created for their owner alone,
// temporary names cannot be guessed, and links are not followed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

/// The folder of one of the user's caches, for example "kernels"; "" if the user has none, which
/// the first call logs. It is used only if the folder of all caches can be used.
std::string cache_folder_of(const char* name);

/// 64 random bits as text, for names that no other user can predict.
std::string unguessable();

/// An open cache folder. Names are resolved in the folder that was checked, even if folders are
/// renamed meanwhile. Throws std::bad_alloc.
class CacheFolder {
 public:
  explicit CacheFolder(const std::string& path);
  ~CacheFolder();
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  /// For openat() and similar calls; -1 if the folder does not exist or is refused.
  int fd() const noexcept { return fd_; }
  /// Why nothing may be read, written, listed or removed in the folder, or "" if it may. A folder
  /// is refused if the folder, a link to it, or the folder of all caches that contains it belongs
  /// to another user, or if others may write into it. If others may write into a folder of this
  /// user, that access is removed instead, unless the folder is sticky, like /tmp. Each refused
  /// folder is logged once.
  const std::string& refusal() const noexcept { return refusal_; }

  // The folder must be open. Links are never followed.

  /// Whether there is an entry of this name, whatever it is.
  bool holds(const std::string& name) const noexcept;
  /// Marks a file as used now. Marks of the last `seconds` stay as they are.
  void touch(const std::string& name, std::int64_t seconds = 0) const noexcept;
  void remove(const std::string& name) const noexcept;
  /// If files whose names end in `ending` have more than `most` bytes, removes the least recently
  /// used ones until they have at most `left`. Also removes temporary files whose time differs by
  /// more than `stale` seconds from now, which killed processes left behind. Throws std::bad_alloc.
  void shrink(std::string_view ending, std::int64_t most, std::int64_t left,
              std::int64_t stale) const;
  /// Free bytes of its disk; nullopt if they are unknown.
  std::optional<std::int64_t> free_bytes() const noexcept;

 private:
  int fd_ = -1;
  std::string refusal_;
};

/// Opens a cache file for reading. Returns -1 if the file does not exist or cannot be trusted; the
/// latter is logged once for each folder.
int open_cache_file(const std::string& path) noexcept;
/// All bytes; empty if open_cache_file fails or the file has more than `most` bytes.
std::optional<std::string> read_cache_file(const std::string& path, std::size_t most);

/// A cache file being written under a temporary name. Without commit() the file is removed; only a
/// killed process leaves "NAME.*.tmp" behind. Creates the folder.
class CacheFileWriter {
 public:
  explicit CacheFileWriter(std::string path);
  ~CacheFileWriter();
  CacheFileWriter(const CacheFileWriter&) = delete;
  CacheFileWriter& operator=(const CacheFileWriter&) = delete;

  /// The first failure, or "". Later calls do nothing after a failure.
  const std::string& problem() const noexcept { return problem_; }
  void write(const void* from, std::size_t bytes);
  /// Renames the file to its final name.
  void commit();

 private:
  void fail(const char* action);
  void flush();
  std::optional<CacheFolder> folder_;
  std::string path_, name_, problem_, buffer_;  // name_: in the folder
  int fd_ = -1;
};

/// Writes the pieces one after another as one file. Returns false if that fails for any reason.
bool write_cache_file(const std::string& path,
                      std::initializer_list<std::string_view> pieces) noexcept;

}  // namespace tenon
