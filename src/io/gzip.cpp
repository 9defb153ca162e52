// Unpacking gzip with zlib. The output grows as it is produced: a small file cannot ask for much
// memory by what its header says.
#include <zlib.h>

#include <algorithm>
#include <limits>

#include <tenon/error.h>

#include "base/str.h"
#include "io/byte_order.h"
#include "io/file.h"

namespace tenon::io {
namespace {

class Inflater {
 public:
  explicit Inflater(const std::string& name) : name_(name) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK)
      throw MemoryError(cat(name, ": zlib found no memory"));
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::string run(std::string_view bytes, std::uint64_t limit) {
    std::string out;
    std::size_t used = 0;
    hint_ = size_hint(bytes);
    const std::size_t total = bytes.size();
    while (!bytes.empty()) {
      if (used == out.size()) grow(out, limit);
      const std::size_t fed = std::min<std::size_t>(bytes.size(), kPortion);
      const std::size_t room = std::min<std::size_t>(out.size() - used, kPortion);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream_.avail_in = static_cast<uInt>(fed);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + used);
      stream_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t taken = fed - stream_.avail_in;
      bytes.remove_prefix(taken);
      used += room - stream_.avail_out;
      if (status == Z_STREAM_END) {
        finished_ = true;
        if (!bytes.empty()) next_member(bytes, total);
      } else if (status != Z_OK && !(status == Z_BUF_ERROR && stream_.avail_out == 0)) {
        throw FormatError(cat(name_, ": corrupt gzip data near byte ", total - bytes.size(), " (",
                              stream_.msg != nullptr ? stream_.msg : "unexpected end",
                              "): fetch the file again"));
      }
    }
    drain(out, used, limit);
    out.resize(used);
    return out;
  }

 private:
  static constexpr std::size_t kPortion = 1u << 30;

  // The last four bytes give the unpacked size of the last member; believed as far as deflate,
  // which packs to no less than 1/1032, allows. One byte more lets the end be seen without growing.
  static std::uint64_t size_hint(std::string_view bytes) {
    const std::uint64_t most = bytes.size() * 1032;
    const std::uint64_t said =
        bytes.size() < 18 ? 0 : read_little<std::uint32_t>(bytes.data() + bytes.size() - 4);
    return std::clamp<std::uint64_t>(said + 1, 4096, std::max<std::uint64_t>(most, 4096));
  }

  // All input is taken, but some output may wait in zlib's window.
  void drain(std::string& out, std::size_t& used, std::uint64_t limit) {
    while (!finished_) {
      if (used == out.size()) grow(out, limit);
      const std::size_t room = std::min<std::size_t>(out.size() - used, kPortion);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + used);
      stream_.avail_out = static_cast<uInt>(room);
      stream_.avail_in = 0;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t got = room - stream_.avail_out;
      used += got;
      if (status == Z_STREAM_END) {
        finished_ = true;
      } else if (got == 0) {
        throw FormatError(cat(name_, ": gzip data ends too early, after ", used,
                              " unpacked bytes: the file is truncated, fetch it again"));
      }
    }
  }
  void grow(std::string& out, std::uint64_t limit) const {
    if (out.size() >= limit)
      throw FormatError(
          cat(name_, ": unpacks to more than the ", limit, " bytes that are allowed"));
    const std::uint64_t wanted =
        out.empty() ? hint_ : std::max<std::uint64_t>(out.size() + out.size() / 2, 4096);
    try {
      out.resize(static_cast<std::size_t>(std::min(wanted, limit)));
    } catch (const std::bad_alloc&) {
      throw MemoryError(cat(name_, ": what it unpacks to does not fit into memory (more than ",
                            out.size(), " bytes)"));
    }
  }
  void next_member(std::string_view bytes, std::size_t total) {
    if (!is_gzip(bytes))
      throw FormatError(cat(name_, ": ", bytes.size(),
                            " foreign bytes after the gzip data, from byte ",
                            total - bytes.size()));
    inflateReset(&stream_);
    finished_ = false;
  }

  const std::string& name_;
  z_stream stream_{};
  std::uint64_t hint_ = 0;
  bool finished_ = false;
};

}  // namespace

bool is_gzip(std::string_view bytes) noexcept {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

std::string gunzip(std::string_view bytes, const std::string& name, std::uint64_t limit) {
  return Inflater(name).run(bytes, limit);
}

}  // namespace tenon::io
