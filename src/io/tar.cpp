// Blocks of 512 bytes: a header, the file's bytes filled up with zeros, and so on until a block of
// zeros.
#include "io/tar.h"

#include <algorithm>
#include <array>
#include <new>
#include <optional>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/str.h"
#include "io/file.h"

namespace tenon::io {
namespace {

constexpr std::size_t kBlock = 512;
using Block = std::array<char, kBlock>;

// Places of a header's fields.
struct Field {
  std::size_t at, size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kUstar{257, 6}, kPrefix{345, 155};
constexpr std::size_t kType = 156;

std::string text(const Block& block, const Field& field) {
  const char* first = block.data() + field.at;
  return {first, std::find(first, first + field.size, '\0')};
}

// Octal digits between spaces or zeros; nothing for anything else.
std::optional<std::uint64_t> number(const Block& block, const Field& field) {
  std::uint64_t value = 0;
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

// The sum of all bytes, those of the checksum itself taken as spaces.
std::uint64_t checksum(const Block& block) {
  std::uint64_t sum = kChecksum.size * std::uint64_t{' '};
  for (std::size_t i = 0; i < kBlock; ++i)
    if (i < kChecksum.at || i >= kChecksum.at + kChecksum.size)
      sum += static_cast<unsigned char>(block[i]);
  return sum;
}

}  // namespace

struct TarReader::Source {
  std::string_view rest;
  std::optional<GunzipStream> packed;
  const std::string& name;
  std::uint64_t most;  // bytes that there can be

  Source(std::string_view bytes, const std::string& of)
      : rest(bytes), name(of), most(bytes.size()) {
    if (!is_gzip(bytes)) return;
    packed.emplace(bytes, name);
    most = most_unpacked(bytes.size());
  }
  std::size_t read(char* out, std::size_t room) {
    if (packed) return packed->read(out, room);
    const std::size_t taken = std::min(room, rest.size());
    rest.copy(out, taken);  // an empty file lies nowhere
    rest.remove_prefix(taken);
    return taken;
  }
  [[noreturn]] void cut_short() const {
    throw FormatError(cat(name, ": the archive is cut short: fetch it again"));
  }
};

TarReader::TarReader(std::string_view bytes, const std::string& name)
    : source_(std::make_unique<Source>(bytes, name)) {}
TarReader::~TarReader() = default;

void TarReader::skip(std::uint64_t bytes) {
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

bool TarReader::next() {
  for (;;) {
    skip(left_);
    place_ += left_;
    left_ = 0;
    Block block;
    const std::size_t taken = source_->read(block.data(), kBlock);
    if (taken != kBlock) source_->cut_short();
    place_ += kBlock;
    if (std::all_of(block.begin(), block.end(), [](char c) { return c == 0; })) return false;
    const auto size = number(block, kSize);
    if (!size || number(block, kChecksum) != checksum(block))
      throw FormatError(cat(source_->name, ": holds no tar archive, or a damaged one"));
    left_ = (*size + kBlock - 1) / kBlock * kBlock;
    if (block[kType] != '0' && block[kType] != '\0') continue;
    const std::string prefix = text(block, kUstar) == "ustar" ? text(block, kPrefix) : "";
    path_ = prefix.empty() ? text(block, kName) : cat(prefix, "/", text(block, kName));
    size_ = *size;
    return true;
  }
}

std::string TarReader::read(std::uint64_t limit) {
  if (size_ > limit)
    throw FormatError(cat(source_->name, ": '", path_, "' has ", size_, " bytes, more than the ",
                          limit, " that are allowed"));
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
    throw FormatError(cat(archive, ": the archive holds no '", missing.front(), "'"));
}

}  // namespace tenon::io
