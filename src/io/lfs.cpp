// Recognises Git LFS pointers by their first line.
#include "io/lfs.h"

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::io {

bool is_lfs_pointer(std::string_view bytes) noexcept {
  return bytes.starts_with("version https://git-lfs.github.com/spec/") ||
         bytes.starts_with("version https://hawser.github.com/spec/");
}

void refuse_lfs_pointer(std::string_view bytes, const std::string& name) {
  if (!is_lfs_pointer(bytes)) return;
  throw FormatError(cat(name,
                        ": is a Git LFS pointer, not the file itself: run 'git lfs pull' in its "
                        "repository, or download the file"));
}

}  // namespace tenon::io
