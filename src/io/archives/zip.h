// Zip archives, 32 and 64 bit: read through the central directory from bytes in memory, and written
// with stored entries. All values of the directory are checked: entries must be inside the
// archive, must not overlap, and must decompress to no more than deflate can produce.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::io {

struct ZipEntry {
  std::string name;
  std::string_view packed;  ///< compressed bytes in the archive
  std::uint64_t size = 0;   ///< decompressed size
  std::uint32_t crc = 0;
  bool deflated = false;
};

/// Whether the bytes start like an archive with at least one entry.
bool is_zip(std::string_view bytes) noexcept;

class ZipReader {
 public:
  /// The bytes must outlive the reader and its entries. Throws FormatError if the archive is
  /// invalid, damaged or truncated, has an entry twice, or has implausible sizes; NotSupported for
  /// encrypted entries and other compression methods, by name.
  ZipReader(std::string_view bytes, std::string name);

  const std::vector<ZipEntry>& entries() const noexcept { return entries_; }
  const ZipEntry* find(std::string_view name) const noexcept;
  /// The bytes of a stored entry, without a copy. Throws FormatError if the checksum differs (0:
  /// none), NotSupported if the entry is compressed.
  std::string_view stored(const ZipEntry& entry) const;
  /// The decompressed bytes of any entry. Throws FormatError if they are damaged.
  std::string unpacked(const ZipEntry& entry) const;
  /// The first bytes of any entry, at most `most`, unchecked; for a stored entry they point into
  /// the archive, otherwise into `room`.
  std::string_view start(const ZipEntry& entry, std::size_t most, std::string& room) const;

 private:
  void read_table(std::uint64_t at, std::uint64_t size, std::uint64_t count);
  void check_extent() const;
  void check_sum(const ZipEntry& entry, std::string_view bytes) const;

  std::string_view bytes_;
  std::string name_;
  std::vector<ZipEntry> entries_;
};

/// Collects stored entries as pieces for write_pieces(). The same entries give the same bytes.
class ZipWriter {
 public:
  /// Adds an entry made of parts, which must outlive the pieces. Its first byte is at a multiple of
  /// `alignment`.
  void add(const std::string& name, const std::vector<std::string_view>& parts,
           std::uint64_t alignment = 1);
  /// All pieces including the central directory; call once. The writer must outlive the pieces.
  std::vector<std::string_view> finish();

 private:
  struct Row {
    std::string name;
    std::uint64_t size, at;
    std::uint32_t crc;
  };
  void put(std::string text);

  std::deque<std::string> own_;  // headers; a deque, so views stay valid
  std::vector<std::string_view> pieces_;
  std::vector<Row> rows_;
  std::uint64_t at_ = 0;
};

}  // namespace tenon::io
