// The safetensors format: length of the JSON header (8 bytes, little-endian), the header, then the
// values without gaps.
//
// A file may contain checksums of its content, in metadata that other readers ignore. This reader
// verifies them and reports damaged content.
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
  std::string crc;                   ///< Checksum of those bytes in the file; "": none.
  /// The file's element type if Tenon lacks it, and how its values are converted to `dtype`.
  std::string stored{};
  Conversion conversion = Conversion::None;
};

struct SafeTensorsHeader {
  std::vector<SafeTensorsEntry> entries;  ///< In the order of their bytes.
  Metadata metadata;
};

/// Metadata key of the checksums: a JSON object that maps each tensor's name to the CRC-32 of its
/// bytes, and "__metadata__" to that of the header's other contents.
inline constexpr char kCrcKey[] = "tenon.crc32";

inline constexpr std::uint64_t kMaxSafeTensorsHeader =
    100'000'000;  // as in the reference implementation

/// Parses and checks the JSON: shapes match the bytes of a known type, the tensors cover each of
/// `data_bytes` once, and the header's own checksum is right, if there is one. The tensors'
/// checksums go to the entries and are removed from the metadata.
SafeTensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           const std::string& name);
/// Throws NotSupported for the first tensor whose element type Tenon lacks.
void require_readable(const SafeTensorsHeader& header, const std::string& name);

/// The first bytes of a file: length and JSON, padded so that values begin at a multiple of 8.
std::string safetensors_header(const SafeTensorsHeader& header);

/// The CRC-32 of bytes, eight hexadecimal digits.
std::string crc_text(std::string_view bytes);
/// Adds the checksum metadata. The entries already have the checksums of their values.
void add_checksums(SafeTensorsHeader& header);

/// Like save_safetensors(), with checksums.
void save_checked_safetensors(const std::string& path, const TensorMap& tensors,
                              const Metadata& metadata);

/// Parses a whole file in memory.
SafeTensors parse_safetensors(std::string_view bytes, const std::string& name);

}  // namespace tenon::io
