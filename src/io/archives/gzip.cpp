// Decompression of gzip with zlib. The output of gunzip() grows as it is produced, so a small file
// cannot request much memory through its header.
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/byte_order.h"
#include "io/file.h"

namespace tenon::io {
namespace {

constexpr std::size_t kPortion = 1u << 30;  // zlib's counters have 32 bits

// The last four bytes give the unpacked size of the last member. The hint is limited to what
// deflate can produce from these bytes. One extra byte lets the end be seen without growing.
std::uint64_t size_hint(std::string_view bytes) {
  const std::uint64_t said =
      bytes.size() < 18 ? 0 : read_little<std::uint32_t>(bytes.data() + bytes.size() - 4);
  return std::clamp<std::uint64_t>(said + 1, 4096,
                                   std::max<std::uint64_t>(most_unpacked(bytes.size()), 4096));
}

void grow(std::string& out, std::uint64_t hint, std::uint64_t limit, const std::string& name) {
  const std::uint64_t wanted =
      out.empty() ? hint : std::max<std::uint64_t>(out.size() + out.size() / 2, 4096);
  try {
    out.resize(static_cast<std::size_t>(std::min(wanted, limit)));
  } catch (const std::bad_alloc&) {
    throw MemoryError(cat(name, ": the unpacked content does not fit into memory (more than ",
                          out.size(), " bytes)"));
  }
}

}  // namespace

struct GunzipStream::Impl {
  std::string_view rest;  // packed bytes not yet consumed
  std::size_t total;
  const std::string& name;
  z_stream zlib{};
  std::uint64_t unpacked = 0;
  bool finished = false;  // at the end of a member

  void next_member() {
    if (!is_gzip(rest))
      throw make_error<FormatError>(FileName{name}, ": ", rest.size(),
                                    " bytes that are not gzip after the gzip data, from byte ",
                                    total - rest.size());
    inflateReset(&zlib);
    finished = false;
  }
};

GunzipStream::GunzipStream(std::string_view bytes, const std::string& name)
    : impl_(new Impl{bytes, bytes.size(), name}) {
  if (inflateInit2(&impl_->zlib, 15 + 16) != Z_OK)
    throw MemoryError(cat(name, ": zlib ran out of memory"));
}

GunzipStream::~GunzipStream() { inflateEnd(&impl_->zlib); }

std::size_t GunzipStream::read(void* out, std::size_t room) {
  Impl& m = *impl_;
  std::size_t used = 0;
  while (used < room) {
    if (m.finished) {
      if (m.rest.empty()) break;
      m.next_member();
    }
    const std::size_t fed = std::min(m.rest.size(), kPortion);
    const std::size_t free = std::min(room - used, kPortion);
    m.zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(m.rest.data()));
    m.zlib.avail_in = static_cast<uInt>(fed);
    m.zlib.next_out = static_cast<Bytef*>(out) + used;
    m.zlib.avail_out = static_cast<uInt>(free);
    const int status = inflate(&m.zlib, Z_NO_FLUSH);
    m.rest.remove_prefix(fed - m.zlib.avail_in);
    used += free - m.zlib.avail_out;
    m.unpacked += free - m.zlib.avail_out;
    m.finished = status == Z_STREAM_END;
    if (m.finished || status == Z_OK) continue;
    if (status == Z_BUF_ERROR && m.rest.empty())
      throw make_error<FormatError>(FileName{m.name}, ": gzip data ends too early, after ",
                                    m.unpacked,
                                    " unpacked bytes: the file is truncated, fetch it again");
    throw make_error<FormatError>(FileName{m.name}, ": corrupt gzip data near byte ",
                                  m.total - m.rest.size(), " (",
                                  m.zlib.msg != nullptr ? m.zlib.msg : "unexpected end",
                                  "): the file is damaged, fetch it again");
  }
  return used;
}

void inflate_raw(std::string_view packed, std::string& out, const std::string& file,
                 std::string_view entry) {
  z_stream zlib{};
  if (inflateInit2(&zlib, -15) != Z_OK)
    throw make_error<MemoryError>(FileName{file}, ": entry '", entry, "': zlib ran out of memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(
      &zlib, [](z_stream* z) { return inflateEnd(z); });
  std::size_t fed = 0, used = 0;
  char beyond = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const std::size_t in = std::min(packed.size() - fed, kPortion);
    const std::size_t free = used < out.size() ? std::min(out.size() - used, kPortion) : 1;
    zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + fed));
    zlib.avail_in = static_cast<uInt>(in);
    zlib.next_out = reinterpret_cast<Bytef*>(used < out.size() ? out.data() + used : &beyond);
    zlib.avail_out = static_cast<uInt>(free);
    status = inflate(&zlib, Z_NO_FLUSH);
    fed += in - zlib.avail_in;
    used += free - zlib.avail_out;
    if (used > out.size()) break;
  }
  if (status != Z_STREAM_END || used != out.size())
    throw make_error<FormatError>(FileName{file}, ": entry '", entry,
                                  "': corrupt deflate data near byte ", fed, ", expected ",
                                  out.size(), " unpacked bytes: fetch the file again");
}

std::string inflate_start(std::string_view packed, std::size_t most) {
  z_stream zlib{};
  if (inflateInit2(&zlib, -15) != Z_OK) throw MemoryError("zlib ran out of memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(
      &zlib, [](z_stream* z) { return inflateEnd(z); });
  std::string out(most, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  zlib.avail_in = static_cast<uInt>(std::min(packed.size(), kPortion));
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(most);
  inflate(&zlib, Z_SYNC_FLUSH);
  out.resize(most - zlib.avail_out);
  return out;
}

bool is_gzip(std::string_view bytes) noexcept {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

std::string gunzip(std::string_view bytes, const std::string& name, std::uint64_t limit) {
  GunzipStream stream(bytes, name);
  const std::uint64_t hint = size_hint(bytes);
  std::string out;
  std::size_t used = 0;
  while (used == out.size()) {
    char beyond = 0;
    if (used == limit && stream.read(&beyond, 1) == 0) break;
    if (used == limit)
      throw make_error<FormatError>(FileName{name}, ": unpacks to more than ", limit,
                                    " bytes, the limit");
    grow(out, hint, limit, name);
    used += stream.read(out.data() + used, out.size() - used);
  }
  out.resize(used);
  return out;
}

}  // namespace tenon::io
