// The IDX reader: nothing is allocated before the sizes of the header have been found to agree with
// the file's length.
#include "io/idx.h"

#include <cstring>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/str.h"
#include "io/byte_order.h"
#include "io/file.h"
#include "io/sizes.h"

namespace tenon::io {
namespace {

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
      return {DType::Int32, 2};  // int16 widens: Tenon has no 16-bit integers
    case 0x0C:
      return {DType::Int32, 4};
    case 0x0D:
      return {DType::Float32, 4};
    case 0x0E:
      return {DType::Float64, 8};
    default:
      throw FormatError(
          cat(name, ": IDX element type ", code, " at byte 2 is none of 8, 9, 11, 12, 13, 14"));
  }
}

Shape idx_shape(std::string_view bytes, std::size_t item, const std::string& name) {
  const int rank = static_cast<unsigned char>(bytes[3]);
  if (rank < 1 || rank > kMaxRank)
    throw FormatError(cat(name, ": IDX rank ", rank, " at byte 3 is outside 1 to ", kMaxRank));
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(rank);
  if (bytes.size() < header)
    throw FormatError(cat(name, ": ends inside its IDX header (", bytes.size(), " of ", header,
                          " bytes): fetch the file again"));
  const std::uint64_t available = bytes.size() - header;
  std::int64_t sizes[kMaxRank];
  for (int i = 0; i < rank; ++i) sizes[i] = read_big<std::uint32_t>(bytes.data() + 4 + 4 * i);
  std::uint64_t count = 0;
  const bool sane =
      count_elements(std::span<const std::int64_t>(sizes, static_cast<std::size_t>(rank)), count);
  if (!sane || count * item != available) {
    std::string text;
    for (int i = 0; i < rank; ++i) text += cat(i > 0 ? " x " : "", sizes[i]);
    throw FormatError(cat(name, ": the IDX header says ", text, " elements of ", item,
                          " bytes, but ", available,
                          " bytes follow it: the file is truncated or damaged, fetch it again"));
  }
  return Shape(sizes, rank);
}

Tensor widen_int16(const char* at, const Shape& shape) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = read_big<std::int16_t>(at + 2 * i);
  return Tensor::from(values, shape);
}

}  // namespace

bool is_idx(std::string_view bytes) noexcept {
  return bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0 && bytes[2] >= 8 && bytes[2] <= 14 &&
         bytes[3] >= 1;
}

Tensor parse_idx(std::string_view bytes, const std::string& name, const IdxOptions& options) {
  if (is_gzip(bytes)) {
    const std::string unpacked = gunzip(bytes, name, options.limit);
    if (is_gzip(unpacked))
      throw FormatError(cat(name, ": compressed twice: unpack it once with gunzip"));
    return parse_idx(unpacked, name, options);
  }
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0)
    throw FormatError(
        cat(name, ": not an IDX file: it does not start with two zero bytes, a type and a rank"));
  const IdxType type = idx_type(static_cast<unsigned char>(bytes[2]), name);
  Shape shape = idx_shape(bytes, type.size, name);
  const char* values = bytes.data() + 4 + 4 * static_cast<std::size_t>(shape.rank());
  if (options.channel_axis && shape.rank() == 3) shape = {shape[0], 1, shape[1], shape[2]};
  if (type.size == 1) return Tensor::from_data(values, shape, type.dtype);
  if (type.size == 2) return widen_int16(values, shape);
  std::string native(values, static_cast<std::size_t>(shape.numel()) * type.size);
  if constexpr (std::endian::native == std::endian::little)
    swap_bytes(native.data(), type.size, static_cast<std::size_t>(shape.numel()));
  return Tensor::from_data(native.data(), shape, type.dtype);
}

Tensor load_idx(const std::string& path) { return parse_idx(read_file(path), path); }

}  // namespace tenon::io
