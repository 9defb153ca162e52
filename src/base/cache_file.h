// Files of caches: written whole or not at all, by many processes at once, and lost without harm.
// Files of users are io's.
//
// What is read of a cache is believed, and kernels are run: folders and files count only where no
// other user can have written them. That goes for a cache's folder, and for the user's folder of
// all caches, in which it lies: whoever may rename there says what it is. Folders are made for
// their owner alone, temporary names cannot be guessed, and links are not followed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

/// A folder of the user's caches by its name, as in "kernels"; "" where the user has none, which
/// the first caller logs. It is used only where the folder of all caches can be, too.
std::string cache_folder_of(const char* name);

/// 64 random bits as text, for names that no other user foresees.
std::string unguessable();

/// A folder of a cache, held open: names in it are those of the folder that was looked at, whatever
/// is renamed meanwhile. Throws std::bad_alloc.
class CacheFolder {
 public:
  explicit CacheFolder(const std::string& path);
  ~CacheFolder();
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  /// For openat() and its like; -1 where the folder is not there, or is refused.
  int fd() const noexcept { return fd_; }
  /// As why_refused().
  const std::string& refusal() const noexcept { return refusal_; }

 private:
  int fd_ = -1;
  std::string refusal_;
};

/// Why nothing may be read, written, listed or removed in a folder, or "": it, or a link to it, or
/// the folder of all caches that holds it, belongs to another user, or others may write into it.
/// One of this user's own is closed to others instead, unless it is sticky, as /tmp is. Each folder
/// that is refused is logged once.
std::string why_refused(const std::string& folder) noexcept;

/// Opens a file of a cache for reading: -1 where there is none, or one that cannot be believed,
/// which is logged once for each folder.
int open_cache_file(const std::string& path) noexcept;
/// All bytes; nothing where open_cache_file gives nothing, or beyond `most` bytes.
std::optional<std::string> read_cache_file(const std::string& path, std::size_t most);

/// A file of a cache that is being written under a name of its own; without commit() nothing stays
/// of it, but for a killed process's "NAME.*.tmp". Makes the folder.
class CacheFileWriter {
 public:
  explicit CacheFileWriter(std::string path);
  ~CacheFileWriter();
  CacheFileWriter(const CacheFileWriter&) = delete;
  CacheFileWriter& operator=(const CacheFileWriter&) = delete;

  /// What failed first, or "". Later calls do nothing then.
  const std::string& problem() const noexcept { return problem_; }
  void write(const void* from, std::size_t bytes);
  /// Gives the file its name.
  void commit();

 private:
  void fail(const char* action);
  void flush();
  std::optional<CacheFolder> folder_;
  std::string path_, name_, problem_, buffer_;  // name_: in the folder
  int fd_ = -1;
};

/// Writes the pieces one after another as one file. False when that fails for any reason.
bool write_cache_file(const std::string& path,
                      std::initializer_list<std::string_view> pieces) noexcept;

}  // namespace tenon
