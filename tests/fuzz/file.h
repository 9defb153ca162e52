// A file that a fuzzer writes its bytes to, for readers that take a path.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace tenon::fuzz {

/// The file is in a folder of this process, in memory if the system has a memory file system.
class File {
 public:
  explicit File(const std::string& name) {
    const char* base = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
    folder_ = std::string(base) + "/tenon-fuzz-" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/" + name;
  }
  ~File() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  void write(std::string_view bytes) const {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() ||
        std::fclose(file) != 0)
      std::abort();
  }

 private:
  std::string folder_, path_;
};

}  // namespace tenon::fuzz
