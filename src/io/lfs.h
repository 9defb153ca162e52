// Git LFS pointers: small text files in place of large files, in a repository that was cloned
// without its large files.
#pragma once

#include <string>
#include <string_view>

namespace tenon::io {

/// Whether the bytes, or first bytes, are a Git LFS pointer.
bool is_lfs_pointer(std::string_view bytes) noexcept;

/// Throws FormatError for a pointer, with instructions for fetching its file.
void refuse_lfs_pointer(std::string_view bytes, const std::string& name);

}  // namespace tenon::io
