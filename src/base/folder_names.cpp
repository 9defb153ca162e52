// By readdir.
#include "base/folder_names.h"

#include <dirent.h>

#include <cerrno>
#include <memory>

namespace tenon {

std::vector<std::string> names_in(const std::string& folder, std::error_code& error) {
  error.clear();
  const auto fail = [&error] {
    error.assign(errno, std::generic_category());
    return std::vector<std::string>();
  };
  struct Close {
    void operator()(DIR* open) const noexcept { ::closedir(open); }
  };
  const std::unique_ptr<DIR, Close> open(::opendir(folder.c_str()));
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

}  // namespace tenon
