// Reads tar archives: blocks of 512 bytes, a header, the file's bytes padded with zeros, and so on
// until a zero block. Values that do not fit a header, such as names longer than 100 bytes, are in
// a separate member before the file: type 'x' for POSIX, 'L' for GNU.
#include "io/archives/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <new>
#include <optional>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/file.h"
#include "io/lfs.h"

namespace tenon::io {
namespace {

constexpr std::size_t kBlock = 512;
using Block = std::array<char, kBlock>;

// Position and length of a header's field.
struct Field {
  std::size_t at, size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kUstar{257, 6}, kPrefix{345, 155};
constexpr std::size_t kType = 156;

std::string text(const Block& block, const Field& field) {
  const char* first = block.data() + field.at;
  return {first, std::find(first, first + field.size, '\0')};
}

// Reads octal digits padded with spaces or zeros, or GNU's binary number after a byte 0x80. nullopt
// for anything else.
std::optional<std::uint64_t> number(const Block& block, const Field& field) {
  std::uint64_t value = 0;
  if (block[field.at] == '\x80') {
    for (std::size_t k = 1; k < field.size; ++k) {
      if (value >> 56 != 0) return {};
      value = value << 8 | static_cast<unsigned char>(block[field.at + k]);
    }
    return value;
  }
  bool digits = false, ended = false;
  for (const char c : std::string_view(block.data() + field.at, field.size)) {
    if (c >= '0' && c <= '7' && !ended) {
      value = value * 8 + static_cast<std::uint64_t>(c - '0');
      digits = true;
    } else if (c == ' ' || c == '\0') {
      ended = digits;
    } else {
      return {};
    }
  }
  if (!digits) return {};
  return value;
}

// The sum of all bytes; the checksum's own bytes count as spaces.
std::uint64_t checksum(const Block& block) {
  std::uint64_t sum = kChecksum.size * std::uint64_t{' '};
  for (std::size_t i = 0; i < kBlock; ++i)
    if (i < kChecksum.at || i >= kChecksum.at + kChecksum.size)
      sum += static_cast<unsigned char>(block[i]);
  return sum;
}

// The values of an extended header; they apply to the next file.
struct Extension {
  std::optional<std::string> path;
  std::optional<std::uint64_t> size;
  bool sparse = false;  // the content begins with a map of holes
};

std::optional<std::uint64_t> decimal(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return value;
}

// Reads POSIX records: "LENGTH KEY=VALUE\n", where LENGTH counts the whole record. False if a
// record is damaged.
bool read_records(std::string_view records, Extension& out) {
  while (!records.empty()) {
    const std::size_t space = records.find(' ');
    const auto length = decimal(records.substr(0, std::min(space, records.size())));
    if (!length || *length <= space || *length > records.size()) return false;
    const std::string_view record =
        records.substr(space + 1, static_cast<std::size_t>(*length) - space - 1);
    records.remove_prefix(static_cast<std::size_t>(*length));
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos || !record.ends_with('\n')) return false;
    const std::string_view key = record.substr(0, equals),
                           value = record.substr(equals + 1, record.size() - equals - 2);
    if (key == "path") out.path = std::string(value);
    out.sparse = out.sparse || key.starts_with("GNU.sparse.");
    if (key == "size" && !(out.size = decimal(value))) return false;
  }
  return true;
}

}  // namespace

struct TarReader::Source {
  std::string_view rest;
  const InputFile* file = nullptr;  // if set, bytes are read from it at offset `at`
  std::uint64_t at = 0;
  std::optional<GunzipStream> packed;
  const std::string& name;
  std::uint64_t most;  // upper bound of the bytes of the archive

  Source(std::string_view bytes, const std::string& of)
      : rest(bytes), name(of), most(bytes.size()) {
    if (!is_gzip(bytes)) return;
    packed.emplace(bytes, name);
    most = most_unpacked(bytes.size());
  }
  explicit Source(const InputFile& from) : file(&from), name(from.path()), most(from.size()) {}
  std::size_t read(char* out, std::size_t room) {
    if (packed) return packed->read(out, room);
    if (file != nullptr) {
      const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(room, file->size() - at));
      file->read_at(at, out, taken);
      at += taken;
      return taken;
    }
    const std::size_t taken = std::min(room, rest.size());
    rest.copy(out, taken);  // string_view::copy accepts an empty range
    rest.remove_prefix(taken);
    return taken;
  }
  [[noreturn]] void cut_short() const {
    throw make_error<FormatError>(FileName{name}, ": the archive is truncated: fetch it again");
  }
};

TarReader::TarReader(std::string_view bytes, const std::string& name)
    : source_(std::make_unique<Source>(bytes, name)) {}
TarReader::TarReader(const InputFile& file) : source_(std::make_unique<Source>(file)) {}
TarReader::~TarReader() = default;

void TarReader::skip(std::uint64_t bytes) {
  if (source_->file != nullptr) {
    if (bytes > source_->file->size() - source_->at) source_->cut_short();
    source_->at += bytes;
    return;
  }
  if (!source_->packed) {
    if (bytes > source_->rest.size()) source_->cut_short();
    source_->rest.remove_prefix(static_cast<std::size_t>(bytes));
    return;
  }
  std::array<char, 64 * kBlock> scratch;
  while (bytes > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, scratch.size()));
    if (source_->read(scratch.data(), part) != part) source_->cut_short();
    bytes -= part;
  }
}

// Reads the content of the extended header whose own header was just read.
std::string TarReader::read_extension() {
  constexpr std::uint64_t kMostExtension = 1 << 20;
  path_ = "an extended header";
  return read(kMostExtension);
}

bool TarReader::next() {
  Extension extension;
  for (;;) {
    skip(left_);
    place_ += left_;
    left_ = 0;
    Block block;
    const std::size_t taken = source_->read(block.data(), kBlock);
    refuse_lfs_pointer({block.data(), taken}, source_->name);
    if (taken != kBlock) source_->cut_short();
    place_ += kBlock;
    if (std::all_of(block.begin(), block.end(), [](char c) { return c == 0; })) return false;
    const auto size = number(block, kSize);
    const auto damaged = [&] {
      return make_error<FormatError>(FileName{source_->name},
                                     ": not a tar archive, or a damaged one");
    };
    if (!size || number(block, kChecksum) != checksum(block)) throw damaged();
    const char type = block[kType];
    const bool header = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    size_ = header ? *size : extension.size.value_or(*size);
    if (size_ > UINT64_MAX - kBlock) throw damaged();
    left_ = (size_ + kBlock - 1) / kBlock * kBlock;
    if (type == 'x' && !read_records(read_extension(), extension)) throw damaged();
    if (type == 'L') {
      const std::string name = read_extension();
      extension.path = name.substr(0, name.find('\0'));
    }
    if (header) continue;
    const std::string prefix = text(block, kUstar) == "ustar" ? text(block, kPrefix) : "";
    path_ = extension.path   ? *extension.path
            : prefix.empty() ? text(block, kName)
                             : cat(prefix, "/", text(block, kName));
    const bool sparse = extension.sparse;
    extension = {};
    if (sparse) {
      ++passed_over_;
      continue;
    }
    if (type == '0' || type == '7' || (type == '\0' && !path_.ends_with('/'))) return true;
    if (type != '5' && type != '\0') ++passed_over_;
  }
}

std::string TarReader::read(std::uint64_t limit) {
  if (size_ > limit)
    throw make_error<FormatError>(FileName{source_->name}, ": '", path_, "' has ", size_,
                                  " bytes, more than the ", limit, " that are allowed");
  if (size_ > source_->most || left_ < size_) source_->cut_short();
  std::string out;
  try {
    out.resize(static_cast<std::size_t>(size_));
  } catch (const std::bad_alloc&) {
    throw MemoryError(
        cat(source_->name, ": '", path_, "', ", size_, " bytes, does not fit into memory"));
  }
  if (source_->read(out.data(), out.size()) != out.size()) source_->cut_short();
  left_ -= size_;
  place_ += size_;
  return out;
}

void unpack_tar(const std::string& archive, const std::string& folder,
                const std::vector<std::string>& names) {
  std::vector<std::string> missing = names;
  const std::string bytes = read_file(archive);
  for (TarReader reader(bytes, archive); !missing.empty() && reader.next();) {
    const std::string& path = reader.path();
    const std::string last = path.substr(path.rfind('/') + 1);
    const auto wanted = std::find(missing.begin(), missing.end(), last);
    if (wanted == missing.end()) continue;
    write_file(cat(folder, "/", last), reader.read(kMaxFile));
    missing.erase(wanted);
  }
  if (!missing.empty())
    throw make_error<FormatError>(FileName{archive}, ": the archive does not contain '",
                                  missing.front(), "'");
}

}  // namespace tenon::io
