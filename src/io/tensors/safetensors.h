// The safetensors format: length of the JSON header (8 bytes, little-endian), the header, then the
// values without gaps.
//
// A file may hold checksums of its content, in metadata that other readers ignore; this reader
// reports damaged content.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/io.h>

#include "io/tensors/foreign_types.h"

namespace tenon::io {

struct SafeTensorsEntry {
  std::string name;
  DType dtype = DType::Float32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  ///< Bytes after the header.
  std::string crc;                   ///< Of those bytes, as the file has it; "" where it has none.
  /// The file's element type where it is none of Tenon's, and how values of it become `dtype`'s.
  std::string stored{};
  Conversion conversion = Conversion::None;
};

struct SafeTensorsHeader {
  std::vector<SafeTensorsEntry> entries;  ///< In the order of their bytes.
  Metadata metadata;
};

/// The metadata with the checksums: a JSON object of each tensor's name and the CRC-32 of its
/// bytes, and as "__metadata__" that of the header's other contents.
inline constexpr char kCrcKey[] = "tenon.crc32";

inline constexpr std::uint64_t kMaxSafeTensorsHeader =
    100'000'000;  // as in the reference implementation

/// Parses the JSON and checks it: shapes that agree with the bytes of a known type, every byte of
/// `data_bytes` covered once, and the header's own checksum where there are checksums; these go to
/// the entries and are no metadata of the result.
SafeTensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           const std::string& name);
/// Throws NotSupported for the first tensor whose element type Tenon lacks.
void require_readable(const SafeTensorsHeader& header, const std::string& name);

/// The first bytes of a file: length and JSON, padded so that values begin at a multiple of 8.
std::string safetensors_header(const SafeTensorsHeader& header);

/// The CRC-32 of bytes, eight hexadecimal digits.
std::string crc_text(std::string_view bytes);
/// Adds the metadata with the checksums, those of the values being in the entries.
void add_checksums(SafeTensorsHeader& header);

/// As save_safetensors(), with checksums.
void save_checked_safetensors(const std::string& path, const TensorMap& tensors,
                              const Metadata& metadata);

/// Parses a whole file in memory.
SafeTensors parse_safetensors(std::string_view bytes, const std::string& name);

}  // namespace tenon::io
