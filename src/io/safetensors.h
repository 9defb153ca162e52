// The safetensors format: the length of a JSON header (8 bytes, little-endian), the header, then
// the values without gaps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/io.h>

namespace tenon::io {

struct SafeTensorsEntry {
  std::string name;
  DType dtype = DType::Float32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  ///< Bytes after the header.
};

struct SafeTensorsHeader {
  std::vector<SafeTensorsEntry> entries;  ///< In the order of their bytes.
  Metadata metadata;
};

inline constexpr std::uint64_t kMaxSafeTensorsHeader =
    100'000'000;  // as in the reference implementation

/// Parses the JSON and checks it: known types, shapes that agree with the bytes, every byte of
/// `data_bytes` covered once.
SafeTensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           const std::string& name);

/// The first bytes of a file: length and JSON, padded so that values begin at a multiple of 8.
std::string safetensors_header(const SafeTensorsHeader& header);

/// Parses a whole file in memory.
SafeTensors parse_safetensors(std::string_view bytes, const std::string& name);

}  // namespace tenon::io
