// Lists folders with readdir.
#include "base/system/folder_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace tenon {

namespace {

struct Close {
  void operator()(DIR* open) const noexcept { ::closedir(open); }
};

std::vector<std::string> names_of(std::unique_ptr<DIR, Close> open, std::error_code& error) {
  error.clear();
  const auto fail = [&error] {
    error.assign(errno, std::generic_category());
    return std::vector<std::string>();
  };
  if (open == nullptr) return fail();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(open.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return errno == 0 ? names : fail();
}

}  // namespace

std::vector<std::string> names_in(const std::string& folder, std::error_code& error) {
  return names_of(std::unique_ptr<DIR, Close>(::opendir(folder.c_str())), error);
}

std::vector<std::string> names_in(int folder, std::error_code& error) {
  // A duplicated descriptor would share the read position, so the folder is opened again.
  const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const open = again < 0 ? nullptr : ::fdopendir(again);
  if (open == nullptr && again >= 0) ::close(again);
  return names_of(std::unique_ptr<DIR, Close>(open), error);
}

}  // namespace tenon
