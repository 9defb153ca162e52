// Reads zip archives: the end record, its 64-bit variant, the central directory, and the local
// header before each entry's bytes.
#include "io/archives/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/byte_order.h"
#include "io/file.h"

namespace tenon::io {
namespace {

constexpr std::uint32_t kEntryMark = 0x04034b50, kRowMark = 0x02014b50, kEndMark = 0x06054b50,
                        kEnd64Mark = 0x06064b50, kLocatorMark = 0x07064b50;
constexpr std::size_t kEntryHeader = 30, kRowHeader = 46, kEndRecord = 22, kEnd64Record = 56,
                      kLocator = 20, kLongestComment = 65535;
// Limit of the unpacked size of an archive: the larger of kMostUnpacked and kMostTimes its own
// size.
constexpr std::uint64_t kMostUnpacked = std::uint64_t{256} << 20, kMostTimes = 64;

std::uint16_t u16(std::string_view bytes, std::size_t at) {
  return read_little<std::uint16_t>(bytes.data() + at);
}
std::uint32_t u32(std::string_view bytes, std::size_t at) {
  return read_little<std::uint32_t>(bytes.data() + at);
}
std::uint64_t u64(std::string_view bytes, std::size_t at) {
  return read_little<std::uint64_t>(bytes.data() + at);
}

std::string_view shown_name(std::string_view name) { return name.substr(0, 120); }

// The 64-bit numbers that replace 32-bit numbers of all ones, in order.
class Zip64Field {
 public:
  explicit Zip64Field(std::string_view extra) {
    while (extra.size() >= 4) {
      const std::size_t size = u16(extra, 2);
      if (size > extra.size() - 4) return;
      if (u16(extra, 0) == 1) rest_ = extra.substr(4, size);
      extra.remove_prefix(4 + size);
    }
  }
  // False if a required number is missing.
  bool replace(std::uint64_t& number) {
    if (number != std::numeric_limits<std::uint32_t>::max()) return true;
    if (rest_.size() < 8) return false;
    number = u64(rest_, 0);
    rest_.remove_prefix(8);
    return true;
  }

 private:
  std::string_view rest_;
};

struct EndOfZip {
  std::uint64_t table = 0, size = 0, count = 0;
};

std::size_t find_end(std::string_view bytes, const std::string& name) {
  if (bytes.size() >= kEndRecord) {
    const std::size_t last = bytes.size() - kEndRecord;
    const std::size_t first = last > kLongestComment ? last - kLongestComment : 0;
    for (std::size_t at = last + 1; at-- > first;)
      if (u32(bytes, at) == kEndMark && u16(bytes, at + 20) <= last - at) return at;
  }
  throw make_error<FormatError>(FileName{name},
                                ": the table at the end of the zip archive is missing: the file is "
                                "truncated or not an archive, fetch it again");
}

EndOfZip read_end(std::string_view bytes, const std::string& name) {
  const std::size_t at = find_end(bytes, name);
  EndOfZip end{u32(bytes, at + 16), u32(bytes, at + 12), u16(bytes, at + 10)};
  if (u16(bytes, at + 4) != 0 && u16(bytes, at + 4) != 0xffff)
    throw make_error<NotSupported>(FileName{name},
                                   ": is one part of a zip archive in several files");
  if (at < kLocator || u32(bytes, at - kLocator) != kLocatorMark) return end;
  const std::uint64_t wide = u64(bytes, at - kLocator + 8);
  if (wide > at || at - wide < kEnd64Record ||
      u32(bytes, static_cast<std::size_t>(wide)) != kEnd64Mark)
    throw make_error<FormatError>(FileName{name},
                                  ": damaged zip archive: its 64-bit end record is not at ", wide);
  const auto from = static_cast<std::size_t>(wide);
  return {u64(bytes, from + 48), u64(bytes, from + 40), u64(bytes, from + 32)};
}

}  // namespace

bool is_zip(std::string_view bytes) noexcept {
  return bytes.size() >= 4 && u32(bytes, 0) == kEntryMark;
}

ZipReader::ZipReader(std::string_view bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  const EndOfZip end = read_end(bytes_, name_);
  if (end.table > bytes_.size() || end.size > bytes_.size() - end.table ||
      end.count > end.size / kRowHeader)
    throw make_error<FormatError>(FileName{name_}, ": damaged zip archive: its table of ",
                                  end.count, " entries is not inside the file");
  read_table(end.table, end.size, end.count);
  check_extent();
}

void ZipReader::read_table(std::uint64_t at, std::uint64_t size, std::uint64_t count) {
  std::string_view table =
      bytes_.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  entries_.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto damaged = [&](std::string_view what) {
      return make_error<FormatError>(FileName{name_}, ": damaged zip archive: entry ", i,
                                     " of its table ", what);
    };
    if (table.size() < kRowHeader || u32(table, 0) != kRowMark) throw damaged("is missing");
    const std::size_t name_size = u16(table, 28), extra_size = u16(table, 30);
    const std::size_t row = kRowHeader + name_size + extra_size + u16(table, 32);
    if (row > table.size()) throw damaged("is truncated");
    ZipEntry entry;
    entry.name = table.substr(kRowHeader, name_size);
    entry.crc = u32(table, 16);
    entry.size = u32(table, 24);
    std::uint64_t packed = u32(table, 20), header = u32(table, 42);
    Zip64Field wide(table.substr(kRowHeader + name_size, extra_size));
    if (!wide.replace(entry.size) || !wide.replace(packed) || !wide.replace(header))
      throw damaged("lacks its 64-bit sizes");
    const unsigned method = u16(table, 10);
    if ((u16(table, 8) & 1) != 0)
      throw make_error<NotSupported>(FileName{name_}, ": entry '", shown_name(entry.name),
                                     "' is encrypted");
    if (method != 0 && method != 8)
      throw make_error<NotSupported>(FileName{name_}, ": entry '", shown_name(entry.name),
                                     "' uses compression method ", method,
                                     "; stored (0) and deflated (8) are supported");
    entry.deflated = method == 8;
    if (header > bytes_.size() || bytes_.size() - header < kEntryHeader ||
        u32(bytes_, static_cast<std::size_t>(header)) != kEntryMark)
      throw damaged("does not point at an entry");
    const auto from = static_cast<std::size_t>(header);
    const std::uint64_t data =
        header + kEntryHeader + u16(bytes_, from + 26) + u16(bytes_, from + 28);
    if (data > bytes_.size() || packed > bytes_.size() - data)
      throw damaged(cat("('", shown_name(entry.name),
                        "') ends outside the file: the file is "
                        "truncated, fetch it again"));
    if (entry.deflated ? entry.size > most_unpacked(packed) : entry.size != packed)
      throw damaged(cat("('", shown_name(entry.name), "') cannot unpack from ", packed, " to ",
                        entry.size, " bytes"));
    entry.packed = bytes_.substr(static_cast<std::size_t>(data), static_cast<std::size_t>(packed));
    entries_.push_back(std::move(entry));
    table.remove_prefix(row);
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.name < b.name; });
}

// Refuses entries that share bytes or a name, and archives that unpack to too many bytes.
void ZipReader::check_extent() const {
  std::vector<const ZipEntry*> order;
  order.reserve(entries_.size());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (i > 0 && entries_[i].name == entries_[i - 1].name)
      throw make_error<FormatError>(FileName{name_}, ": damaged zip archive: '",
                                    shown_name(entries_[i].name), "' appears twice");
    order.push_back(&entries_[i]);
  }
  std::sort(order.begin(), order.end(), [](const ZipEntry* a, const ZipEntry* b) {
    return a->packed.data() < b->packed.data();
  });
  const char* covered = bytes_.data();
  const std::uint64_t most = std::max<std::uint64_t>(kMostUnpacked, bytes_.size() * kMostTimes);
  for (const ZipEntry* entry : order) {
    if (entry->packed.data() < covered)
      throw make_error<FormatError>(FileName{name_}, ": damaged zip archive: '",
                                    shown_name(entry->name), "' overlaps another entry");
    covered = entry->packed.data() + entry->packed.size();
    total = entry->size > most - total ? most + 1 : total + entry->size;
    if (total > most)
      throw make_error<FormatError>(FileName{name_}, ": unpacks to more than ", most,
                                    " bytes, more than ", kMostTimes,
                                    " times its own size: the file is damaged or malicious");
  }
}

const ZipEntry* ZipReader::find(std::string_view name) const noexcept {
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const ZipEntry& e, std::string_view wanted) { return e.name < wanted; });
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

void ZipReader::check_sum(const ZipEntry& entry, std::string_view bytes) const {
  if (entry.crc == 0) return;  // no checksum: PyTorch can leave it out
  const auto sum = static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  if (sum != entry.crc)
    throw make_error<FormatError>(
        FileName{name_}, ": entry '", shown_name(entry.name),
        "' is damaged: its checksum does not match, fetch the file again");
}

std::string_view ZipReader::stored(const ZipEntry& entry) const {
  if (entry.deflated)
    throw make_error<NotSupported>(FileName{name_}, ": entry '", shown_name(entry.name),
                                   "' is compressed; this format requires uncompressed entries");
  check_sum(entry, entry.packed);
  return entry.packed;
}

std::string ZipReader::unpacked(const ZipEntry& entry) const {
  if (!entry.deflated) return std::string(stored(entry));
  std::string out;
  try {
    out.resize(static_cast<std::size_t>(entry.size));
  } catch (const std::bad_alloc&) {
    throw MemoryError(cat(name_, ": entry '", shown_name(entry.name), "', ", entry.size,
                          " bytes, does not fit into memory"));
  }
  inflate_raw(entry.packed, out, name_, shown_name(entry.name));
  check_sum(entry, out);
  return out;
}

std::string_view ZipReader::start(const ZipEntry& entry, std::size_t most,
                                  std::string& room) const {
  if (!entry.deflated) return entry.packed.substr(0, most);
  room = inflate_start(entry.packed, most);
  return room;
}

}  // namespace tenon::io
