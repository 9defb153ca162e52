// Writes zip archives: stored entries, the central directory, and 64-bit records where sizes
// require them.
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/str.h"
#include "io/archives/zip.h"
#include "io/byte_order.h"

namespace tenon::io {
namespace {

constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint16_t kPadding = 0x4246;  // tag of padding, as in PyTorch
constexpr std::uint16_t kUtf8Names = 1 << 11;

template <class T>
void put_little(std::string& out, T value) {
  if constexpr (std::endian::native == std::endian::big) swap_bytes(&value, sizeof value, 1);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}
void put16(std::string& out, std::uint64_t value) {
  put_little(out, static_cast<std::uint16_t>(value));
}
void put32(std::string& out, std::uint64_t value) {
  put_little(out, static_cast<std::uint32_t>(value));
}

std::uint64_t clipped(std::uint64_t value) { return std::min(value, kMost32); }

// The common fields of an entry's header and its row in the directory, from version to sizes. The
// date is the first that zip can represent, so the same entries give the same bytes.
void put_common(std::string& out, std::uint32_t crc, std::uint64_t size) {
  put16(out, kUtf8Names);
  put16(out, 0);
  put16(out, 0);
  put16(out, 0x21);
  put32(out, crc);
  put32(out, clipped(size));
  put32(out, clipped(size));
}

}  // namespace

void ZipWriter::put(std::string text) {
  at_ += text.size();
  pieces_.emplace_back(own_.emplace_back(std::move(text)));
}

void ZipWriter::add(const std::string& name, const std::vector<std::string_view>& parts,
                    std::uint64_t alignment) {
  std::uint64_t size = 0;
  uLong crc = 0;
  for (const std::string_view part : parts) {
    size += part.size();
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
  }
  rows_.push_back({name, size, at_, static_cast<std::uint32_t>(crc)});
  std::string extra;
  if (size >= kMost32) {
    put16(extra, 1);
    put16(extra, 16);
    put_little(extra, size);
    put_little(extra, size);
  }
  constexpr std::uint64_t header = 30;
  if (alignment > 1) {
    const std::uint64_t end = at_ + header + name.size() + extra.size() + 4;
    const std::uint64_t pad = (alignment - end % alignment) % alignment;
    put16(extra, kPadding);
    put16(extra, pad);
    extra.append(static_cast<std::size_t>(pad), 'Z');
  }
  std::string out("PK\3\4");
  put16(out, size >= kMost32 ? 45 : 20);
  put_common(out, static_cast<std::uint32_t>(crc), size);
  put16(out, name.size());
  put16(out, extra.size());
  put(out + name + extra);
  for (const std::string_view part : parts) pieces_.push_back(part);
  at_ += size;
}

std::vector<std::string_view> ZipWriter::finish() {
  std::string table;
  for (const Row& row : rows_) {
    std::string wide;
    if (row.size >= kMost32) {
      put_little(wide, row.size);
      put_little(wide, row.size);
    }
    if (row.at >= kMost32) put_little(wide, row.at);
    table += "PK\1\2";
    put16(table, 45);
    put16(table, wide.empty() ? 20 : 45);
    put_common(table, row.crc, row.size);
    put16(table, row.name.size());
    put16(table, wide.empty() ? 0 : wide.size() + 4);
    table.append(10, '\0');  // no comment, first disk, no attributes
    put32(table, clipped(row.at));
    table += row.name;
    if (wide.empty()) continue;
    put16(table, 1);
    put16(table, wide.size());
    table += wide;
  }
  const std::uint64_t begin = at_, size = table.size(), count = rows_.size();
  put(std::move(table));
  constexpr std::uint64_t most_rows = 0xffff;
  std::string end;
  if (count >= most_rows || size >= kMost32 || begin >= kMost32) {
    end += "PK\6\6";
    put_little(end, std::uint64_t{44});
    put16(end, 45);
    put16(end, 45);
    end.append(8, '\0');  // disks
    for (const std::uint64_t number : {count, count, size, begin}) put_little(end, number);
    end += "PK\6\7";
    put32(end, 0);
    put_little(end, begin + size);
    put32(end, 1);
  }
  end += "PK\5\6";
  put32(end, 0);
  put16(end, std::min(count, most_rows));
  put16(end, std::min(count, most_rows));
  put32(end, clipped(size));
  put32(end, clipped(begin));
  put16(end, 0);
  put(std::move(end));
  return std::move(pieces_);
}

}  // namespace tenon::io
