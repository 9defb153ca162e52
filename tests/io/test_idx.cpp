// IDX: all element types, and headers that do not match the file.
#include <zlib.h>

#include <string>

#include <doctest/doctest.h>
#include <tenon/error.h>

#include "io/tensors/idx.h"

using namespace tenon;

namespace {

std::string idx(int type, std::initializer_list<std::uint32_t> sizes, const std::string& values) {
  std::string out{'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (std::uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8)
      out.push_back(static_cast<char>(size >> shift & 0xff));
  return out + values;
}

std::string refusal(const std::string& bytes) {
  try {
    io::parse_idx(bytes, "x.idx");
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("IDX: element types and byte order") {
  const Tensor bytes = io::parse_idx(idx(8, {2, 3}, "abcdef"), "x");
  CHECK(bytes.shape() == Shape{2, 3});
  CHECK(bytes.to_vector<std::uint8_t>()[5] == 'f');
  CHECK(io::parse_idx(idx(9, {1}, "\xff"), "x").to_vector<std::int8_t>()[0] == -1);
  CHECK(io::parse_idx(idx(0x0B, {2}, std::string("\xff\xfe\x01\x02", 4)), "x")
            .to_vector<std::int32_t>() == std::vector<std::int32_t>{-2, 258});
  CHECK(io::parse_idx(idx(0x0C, {1}, std::string("\x00\x00\x01\x02", 4)), "x")
            .to_vector<std::int32_t>()[0] == 258);
  CHECK(io::parse_idx(idx(0x0D, {1}, std::string("\x3f\xc0\x00\x00", 4)), "x")
            .to_vector<float>()[0] == 1.5f);
  CHECK(io::parse_idx(idx(0x0E, {1}, std::string("\xbf\xf8\x00\x00\x00\x00\x00\x00", 8)), "x")
            .to_vector<double>()[0] == -1.5);
  CHECK(io::parse_idx(idx(8, {0, 5}, ""), "x").shape() == Shape{0, 5});
}

TEST_CASE("IDX: the header must agree with the file") {
  CHECK(refusal("") != "");
  CHECK(refusal("not idx") != "");
  CHECK(refusal(idx(7, {1}, "a")).find("element type 7") != std::string::npos);
  CHECK(refusal(idx(8, {}, "a")).find("rank 0") != std::string::npos);
  CHECK(refusal(std::string("\0\0\x08\xff", 4)).find("rank 255") != std::string::npos);
  CHECK(refusal(std::string("\0\0\x08\x03\0\0", 6)).find("ends inside") != std::string::npos);
  CHECK(refusal(idx(8, {4}, "abc")).find("truncated") != std::string::npos);
  CHECK(refusal(idx(8, {2}, "abc")) != "");
  // Implausible sizes, including sizes whose product is 0 or small modulo 2^64, are refused before
  // memory is allocated.
  CHECK(refusal(idx(8, {0xffffffff, 0xffffffff, 0xffffffff}, "abc")) != "");
  CHECK(refusal(idx(14, {0x80000000, 0x80000000, 4}, "")) != "");
  CHECK(refusal(idx(8, {0x10000, 0x10000, 0x10000, 0x10000}, "")) != "");
  CHECK(refusal(idx(8, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0}, "")) != "");
  CHECK(refusal(idx(8, {0, 0xffffffff, 0xffffffff, 0xffffffff}, "")) != "");
}

TEST_CASE(
    "IDX: a small gzip file that unpacks to many bytes is refused before memory is allocated") {
  // 600 MB of zeros, compressed to a thousandth.
  constexpr std::uint32_t kSide = 24'500;
  std::string header = idx(8, {kSide, kSide}, ""), packed(2 << 20, '\0');
  z_stream zlib{};
  REQUIRE(deflateInit2(&zlib, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  zlib.next_out = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  zlib.next_in = reinterpret_cast<Bytef*>(header.data());
  zlib.avail_in = static_cast<uInt>(header.size());
  REQUIRE(deflate(&zlib, Z_FINISH) == Z_STREAM_END);
  packed.resize(600'000, '\0');  // the length of the whole file
  deflateEnd(&zlib);
  const std::string message = refusal(packed);
  CHECK(message.find("unpack to 600250000, more than the limit of 268435456") != std::string::npos);
  CHECK(message.find("gunzip") != std::string::npos);
}
