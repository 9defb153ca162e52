// A temporary folder for one test's files, removed with its contents.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tenon-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::filesystem::filesystem_error("mkdtemp", {});
    path_ = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  int count() const {
    int n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      n += entry.exists() ? 1 : 0;
    return n;
  }

 private:
  std::string path_;
};
