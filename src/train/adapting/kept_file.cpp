// File format: magic (8 bytes), key (16), number of samples (8), bytes per record (8), the records,
// their digest (16). Numbers are in the machine's byte order, which the magic checks.
#include "train/adapting/kept_file.h"

#include <cstring>
#include <exception>

#include "base/str.h"

namespace tenon::train {
namespace {

constexpr char kEnding[] = ".kept";
constexpr std::int64_t kDay = 24 * 3600;  // in seconds

std::string name_of(const Digest& key) { return key.hex() + kEnding; }

struct Header {
  std::uint64_t magic = 0x313054504b4e4554ull;  // "TENKPT01" where the lowest byte comes first
  Digest key;
  std::int64_t examples = 0, bytes = 0;  // bytes of one record
  bool operator==(const Header&) const = default;
};

Header header_of(const Digest& key, std::int64_t examples, std::size_t bytes) {
  Header out;
  out.key = key;
  out.examples = examples;
  out.bytes = static_cast<std::int64_t>(bytes);
  return out;
}

std::string_view record(const void* first, std::size_t number, std::size_t bytes) {
  return {static_cast<const char*>(first) + number * bytes, bytes};
}

}  // namespace

KeptRecords::KeptRecords(std::unique_ptr<const io::MappedFile> file, std::size_t offset,
                         std::size_t bytes_of_one)
    : file_(std::move(file)),
      first_(reinterpret_cast<const std::byte*>(file_->bytes().data()) + offset),
      bytes_(bytes_of_one) {}

std::string KeptFolder::file_of(const Digest& key) const { return cat(path_, "/", name_of(key)); }

std::shared_ptr<const KeptRecords> KeptFolder::read(const Digest& key, std::int64_t examples,
                                                    std::size_t bytes_of_one,
                                                    std::string& why) const {
  why.clear();
  if (path_.empty()) return nullptr;
  const std::string name = file_of(key);
  try {
    const CacheFolder folder(path_);
    if (folder.fd() < 0 || !folder.holds(name_of(key))) return nullptr;
    const int fd = open_cache_file(name);
    if (fd < 0) throw IoError("another user may have written it");
    auto file = std::make_unique<const io::MappedFile>(std::make_unique<io::InputFile>(name, fd));
    const std::string_view bytes = file->bytes();
    const std::size_t count = static_cast<std::size_t>(examples);
    Header header;
    if (bytes.size() < sizeof header) throw FormatError("it is truncated");
    std::memcpy(&header, bytes.data(), sizeof header);
    if (!(header == header_of(key, examples, bytes_of_one)))
      throw FormatError("it belongs to other data or weights");
    if (bytes.size() != sizeof header + count * bytes_of_one + sizeof(Digest))
      throw FormatError("it is truncated");
    Digester sum;
    for (std::size_t k = 0; k < count; ++k)
      sum.add(record(bytes.data() + sizeof header, k, bytes_of_one));
    Digest wanted;
    std::memcpy(&wanted, bytes.data() + bytes.size() - sizeof wanted, sizeof wanted);
    file->require_whole();
    if (!(sum.result() == wanted)) throw FormatError("its checksum does not match");
    folder.touch(name_of(key));
    return std::make_shared<const KeptRecords>(std::move(file), sizeof header, bytes_of_one);
  } catch (const Error& error) {
    why = cat(name, " is not used: ", error.what());
  }
  return nullptr;
}

void KeptFolder::remove(const Digest& key) const noexcept try {
  const CacheFolder folder(path_);
  if (folder.fd() >= 0) folder.remove(name_of(key));
} catch (const std::exception&) {  // out of memory: the file stays until room is needed
  return;
}

void KeptFolder::make_room(std::int64_t bytes) const {
  if (path_.empty())
    throw KeptError("there is no folder for caches: set HOME, or TENON_CACHE to a folder");
  if (bytes > limit_)
    throw KeptError(cat(path_, ": ", size_text(bytes), " exceed the limit of ", size_text(limit_),
                        " ('frozen_cache')"));
  const CacheFolder folder(path_);
  // Files in a folder that Tenon does not use are not removed.
  if (!folder.refusal().empty()) throw KeptError(folder.refusal());
  if (folder.fd() < 0) return;  // the writer creates it
  folder.shrink(kEnding, limit_ - bytes, limit_ - bytes, kDay);
  // Twice as much: a full disk would stop more than this.
  if (const auto free = folder.free_bytes(); free && *free / 2 < bytes)
    throw KeptError(cat(path_, ": its disk has ", size_text(*free), " free, too little for ",
                        size_text(bytes)));
}

KeptWriter::KeptWriter(const KeptFolder& folder, const Digest& key, std::int64_t examples,
                       std::size_t bytes_of_one)
    : file_(folder.file_of(key)), bytes_(bytes_of_one) {
  const Header header = header_of(key, examples, bytes_of_one);
  write(&header, sizeof header);
}

void KeptWriter::refuse_problem() const {
  if (!file_.problem().empty()) throw KeptError(file_.problem());
}

void KeptWriter::write(const void* from, std::size_t bytes) {
  file_.write(from, bytes);
  refuse_problem();
}

void KeptWriter::add(std::span<const std::byte> records) {
  for (std::size_t k = 0; k < records.size() / bytes_; ++k)
    sum_.add(record(records.data(), k, bytes_));
  write(records.data(), records.size());
}

void KeptWriter::commit() {
  const Digest sum = sum_.result();
  write(&sum, sizeof sum);
  file_.commit();
  refuse_problem();
}

}  // namespace tenon::train
