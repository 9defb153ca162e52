// The IDX reader. Nothing is allocated before the sizes in the header agree with the file's length,
// or with the largest possible content of a compressed file of that length. Values are decompressed
// directly into the tensor, because the first step of a training run waits for them.
#include "io/tensors/idx.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/str.h"
#include "graph/node.h"
#include "io/byte_order.h"
#include "io/file.h"
#include "io/lfs.h"
#include "io/sizes.h"

namespace tenon::io {
namespace {

constexpr std::uint64_t kLeastUnpacked = 256u << 20, kMostTimesUnpacked = 64;

struct IdxType {
  DType dtype;
  std::size_t size;
};

IdxType idx_type(int code, const std::string& name) {
  switch (code) {
    case 0x08:
      return {DType::UInt8, 1};
    case 0x09:
      return {DType::Int8, 1};
    case 0x0B:
      return {DType::Int32, 2};  // int16 becomes int32: Tenon has no 16-bit integers
    case 0x0C:
      return {DType::Int32, 4};
    case 0x0D:
      return {DType::Float32, 4};
    case 0x0E:
      return {DType::Float64, 8};
    default:
      throw FormatError(
          cat(name, ": IDX element type ", code, " at byte 2 is not one of 8, 9, 11, 12, 13, 14"));
  }
}

// The decoded header.
struct Header {
  IdxType type;
  std::vector<std::int64_t> sizes;
  std::uint64_t bytes = 0;  // size of the values
};

std::string sizes_text(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (std::size_t i = 0; i < sizes.size(); ++i) text += cat(i > 0 ? " x " : "", sizes[i]);
  return text;
}

[[noreturn]] void sizes_disagree(const Header& h, const std::string& name,
                                 const std::string& available) {
  throw FormatError(cat(name, ": the IDX header says ", sizes_text(h.sizes), " elements of ",
                        h.type.size, " bytes, but ", available,
                        " bytes follow it: the file is truncated or damaged, fetch it again"));
}

// Copies up to `room` next bytes of the file to `out` and returns how many it copied.
using NextBytes = std::function<std::size_t(void* out, std::size_t room)>;

Header read_header(const NextBytes& read, const std::string& name) {
  char magic[4] = {};
  const std::size_t got = read(magic, 4);
  if (std::string_view(magic, got) == "vers") {
    // A Git LFS pointer is shorter than a header may be, so it is recognised first.
    char rest[96] = {};
    refuse_lfs_pointer("vers" + std::string(rest, read(rest, sizeof rest)), name);
  }
  if (is_gzip({magic, got}))
    throw FormatError(cat(name, ": compressed twice: unpack it once with gunzip"));
  if (got < 4 || magic[0] != 0 || magic[1] != 0)
    throw FormatError(
        cat(name, ": not an IDX file: it does not start with two zero bytes, a type and a rank"));
  Header h{idx_type(static_cast<unsigned char>(magic[2]), name), {}};
  const int rank = static_cast<unsigned char>(magic[3]);
  if (rank < 1 || rank > kMaxRank)
    throw FormatError(cat(name, ": IDX rank ", rank, " at byte 3 is outside 1 to ", kMaxRank));
  char packed[4 * kMaxRank];
  const std::size_t wanted = 4 * static_cast<std::size_t>(rank), there = read(packed, wanted);
  if (there < wanted)
    throw FormatError(cat(name, ": ends inside its IDX header (", 4 + there, " of ", 4 + wanted,
                          " bytes): fetch the file again"));
  std::int64_t sizes[kMaxRank];
  for (int i = 0; i < rank; ++i) sizes[i] = read_big<std::uint32_t>(packed + 4 * i);
  h.sizes = {sizes, sizes + rank};
  std::uint64_t count = 0;
  if (!count_elements(std::span<const std::int64_t>(h.sizes), count))
    sizes_disagree(h, name, "fewer");
  h.bytes = count * h.type.size;
  return h;
}

Tensor read_values(const Header& h, const NextBytes& read, const std::string& name,
                   const IdxOptions& options) {
  const std::size_t count = static_cast<std::size_t>(h.bytes) / h.type.size;
  auto buffer = Buffer::allocate(count * item_size(h.type.dtype));
  char* values = static_cast<char*>(buffer->data());
  const std::size_t got = h.bytes == 0 ? 0 : read(values, static_cast<std::size_t>(h.bytes));
  char beyond = 0;
  if (got < h.bytes) sizes_disagree(h, name, cat(got));
  if (read(&beyond, 1) != 0) sizes_disagree(h, name, "more");
  if (h.type.size == 2) {  // int16 to int32 in place, from the last element backwards
    for (std::size_t i = count; i-- > 0;) {
      const std::int32_t wide = read_big<std::int16_t>(values + 2 * i);
      std::memcpy(values + 4 * i, &wide, sizeof wide);
    }
  } else if (h.type.size > 1 && std::endian::native == std::endian::little) {
    swap_bytes(values, h.type.size, count);
  }
  Shape shape(h.sizes.data(), static_cast<int>(h.sizes.size()));
  if (options.channel_axis && shape.rank() == 3) shape = {shape[0], 1, shape[1], shape[2]};
  return make_data(std::move(buffer), shape, h.type.dtype);
}

}  // namespace

bool is_idx(std::string_view bytes) noexcept {
  return bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0 && bytes[2] >= 8 && bytes[2] <= 14 &&
         bytes[3] >= 1;
}

Tensor parse_idx(std::string_view bytes, const std::string& name, const IdxOptions& options) {
  if (is_gzip(bytes)) {
    GunzipStream stream(bytes, name);
    const NextBytes read = [&stream](void* out, std::size_t room) {
      return stream.read(out, room);
    };
    const Header h = read_header(read, name);
    const std::uint64_t limit = options.limit.value_or(
        std::max<std::uint64_t>(kLeastUnpacked, kMostTimesUnpacked * bytes.size()));
    if (h.bytes > limit)
      throw FormatError(cat(name, ": its ", bytes.size(), " bytes unpack to ", h.bytes,
                            ", more than the limit of ", limit,
                            ": if that is right, unpack the file with gunzip"));
    if (h.bytes > most_unpacked(bytes.size())) sizes_disagree(h, name, "fewer");
    return read_values(h, read, name, options);
  }
  std::string_view rest = bytes;
  const NextBytes read = [&rest](void* out, std::size_t room) {
    const std::size_t taken = std::min(room, rest.size());
    if (taken != 0) std::memcpy(out, rest.data(), taken);
    rest.remove_prefix(taken);
    return taken;
  };
  const Header h = read_header(read, name);
  if (h.bytes != rest.size()) sizes_disagree(h, name, cat(rest.size()));
  return read_values(h, read, name, options);
}

Tensor load_idx(const std::string& path) { return parse_idx(read_file(path), path); }

}  // namespace tenon::io
