// Zip archives, 32 and 64 bit: read through the central directory from bytes in memory, and written
// with stored entries. All values of the directory are checked: entries must lie inside the
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
  std::string_view packed;  ///< its bytes as they lie in the archive
  std::uint64_t size = 0;   ///< of what they unpack to
  std::uint32_t crc = 0;
  bool deflated = false;
};

/// True when the bytes start as an archive with at least one entry does.
bool is_zip(std::string_view bytes) noexcept;

class ZipReader {
 public:
  /// The bytes must outlive the reader and its entries. Throws FormatError for what is no archive,
  /// is damaged or cut short, holds an entry twice, or unpacks to absurdly much; NotSupported for
  /// encrypted entries and other ways of packing, with their names.
  ZipReader(std::string_view bytes, std::string name);

  const std::vector<ZipEntry>& entries() const noexcept { return entries_; }
  const ZipEntry* find(std::string_view name) const noexcept;
  /// The bytes of a stored entry where they lie. Throws FormatError when the checksum is another (0
  /// is none), NotSupported when the entry is packed.
  std::string_view stored(const ZipEntry& entry) const;
  /// The bytes of any entry, unpacked. Throws FormatError for damaged ones.
  std::string unpacked(const ZipEntry& entry) const;
  /// The first bytes of any entry, `most` at the most, unchecked; those of a stored one lie in the
  /// archive, others in `room`.
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
  /// The entry's parts, one behind the other, which must outlive the pieces. Their first byte comes
  /// to a multiple of `alignment`.
  void add(const std::string& name, const std::vector<std::string_view>& parts,
           std::uint64_t alignment = 1);
  /// Everything, with the table at the end; once. The writer must outlive the pieces.
  std::vector<std::string_view> finish();

 private:
  struct Row {
    std::string name;
    std::uint64_t size, at;
    std::uint32_t crc;
  };
  void put(std::string text);

  std::deque<std::string> own_;  // headers; never moves them
  std::vector<std::string_view> pieces_;
  std::vector<Row> rows_;
  std::uint64_t at_ = 0;
};

}  // namespace tenon::io
