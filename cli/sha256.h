// SHA-256 (FIPS 180-4), to verify downloads.
#pragma once

#include <cstddef>
#include <string>

namespace tenon::cli {

/// The digest in 64 hexadecimal digits.
std::string sha256(const void* data, std::size_t size);

/// The digest of a file of any size. Throws IoError.
std::string sha256_of_file(const std::string& path);

}  // namespace tenon::cli
