// Git LFS pointers: small text files in place of large files, in a repository that was cloned
// without its large files.
#pragma once

#include <string>
#include <string_view>

namespace tenon::io {

/// True for the bytes, or the first bytes, of a pointer.
bool is_lfs_pointer(std::string_view bytes) noexcept;

/// Throws FormatError for a pointer, saying what it is and how its file is fetched.
void refuse_lfs_pointer(std::string_view bytes, const std::string& name);

}  // namespace tenon::io
