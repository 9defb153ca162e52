// Fetching files over the network (or file://), resumable.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tenon::cli {

/// A partial download, which one process at a time may write, check and rename.
class PartFile {
 public:
  /// Opens or creates the file. Throws IoError if another process has it.
  explicit PartFile(std::string path);
  /// Removes the file if it is empty: it does not help the next attempt.
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  const std::string& path() const { return path_; }
  int file() const { return file_; }
  std::int64_t size() const;
  /// Makes the file empty.
  void clear();
  /// Gives the file its final name. Throws IoError.
  void rename_to(const std::string& target);

 private:
  std::string path_;
  int file_ = -1;
};

/// Resumes `part` from its current size until `url` is complete. `progress` gets bytes so far and
/// in all (0: unknown) and returns false to stop. Throws IoError naming the URL and the reason;
/// the bytes received so far stay in `part`.
void download(const std::string& url, PartFile& part,
              const std::function<bool(std::int64_t, std::int64_t)>& progress);

}  // namespace tenon::cli
