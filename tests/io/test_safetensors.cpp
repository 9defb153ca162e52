// safetensors: reading and writing, and every rule of the format violated in turn.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/ops.h>

#include "base/str.h"
#include "io/folder.h"
#include "io/tensors/safetensors.h"

using namespace tenon;

namespace {

std::string file(const std::string& json, const std::string& values) {
  std::string out(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(json.size() >> (8 * i) & 0xff);
  return out + json + values;
}

template <class E = FormatError>
std::string refusal(const std::string& bytes) {
  try {
    io::parse_safetensors(bytes, "x.safetensors");
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

std::string one(const std::string& fields) {
  return file("{\"t\":{" + fields + "}}", std::string(8, '\0'));
}

}  // namespace

TEST_CASE("safetensors: checksums detect every flipped bit, and other readers ignore them") {
  const TestFolder dir;
  const io::TensorMap tensors{{"b", Tensor::from({1.f, -2.f, 3.f}, {3})},
                              {"a", Tensor::from({true, false}, {2})},
                              {"empty", zeros({0})}};
  io::save_checked_safetensors(dir / "a", tensors, {{"note", "hi"}, {"tenon.crc32", "a copy's"}});
  const io::SafeTensors back = io::load_safetensors(dir / "a");
  CHECK(back.metadata ==
        io::Metadata{{"note", "hi"}});  // so that a changed copy has no stale checksums
  CHECK(io::inspect_safetensors(dir / "a").metadata == back.metadata);
  CHECK(back.tensors.at("b").to_vector<float>() == std::vector<float>{1, -2, 3});

  // The CRC-32 of each tensor's bytes, equal to Python's zlib.crc32().
  const std::string whole = io::read_file(dir / "a");
  CHECK(io::crc_text("123456789") == "cbf43926");
  CHECK(whole.find("\\\"a\\\":\\\"" + io::crc_text(std::string("\1\0", 2)) + "\\\"") !=
        std::string::npos);

  int read = 0;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      try {
        (void)io::parse_safetensors(bytes, "x");
        // Only two changes are not detected: the key of the checksums (without it there are none),
        // and the spaces after the header.
        if (whole[at] == ' ') continue;
        ++read;
        INFO("byte ", at, ", bit ", bit);
        CHECK(whole.substr(at - std::min<std::size_t>(at, 12), 24).find("crc32") !=
              std::string::npos);
      } catch (const Error&) {
      }
    }
  CHECK(read <= 8 * 11);
}

TEST_CASE("safetensors: malformed or misplaced checksums do not count as matching") {
  io::SafeTensorsHeader header;
  header.entries = {{"t", DType::UInt8, {2}, 0, 2, io::crc_text("ab")}};
  io::add_checksums(header);
  const std::string sums = header.metadata.at(io::kCrcKey), own = io::crc_text("ab");
  const auto with = [&](std::string_view was, const std::string& now) {
    std::string text = sums;
    text.replace(text.find(was), was.size(), now);
    header.metadata[io::kCrcKey] = text;
    return refusal(io::safetensors_header(header) + "ab");
  };
  CHECK(with(own, own) == "");
  CHECK(with(own, "").find("the checksum of its header is") != std::string::npos);
  CHECK(with(own, std::string(100'000, 'x')).size() <
        200);  // the message does not repeat the file's text
  CHECK(with("\"" + own + "\"", "1").find("expected none") != std::string::npos);
  CHECK(with("\"" + own + "\"", "{\"t\":\"" + own + "\"}").find("expected none") !=
        std::string::npos);
  CHECK(with("}", ",\"t\":\"" + own + "\"}").find("expected none") != std::string::npos);
  CHECK(with("\"t\"", "\"u\"").find("tensor 't' is " + own + ", expected none") !=
        std::string::npos);
  CHECK(with(sums, "\"" + own + "\"").find("expected none") != std::string::npos);
  CHECK(with(sums, std::string(100'000, '[')).find("expected none") != std::string::npos);
}

TEST_CASE("safetensors: the cost of checksums is linear in the number of tensors") {
  io::SafeTensorsHeader header;
  for (int k = 0; k < 60'000; ++k)
    header.entries.push_back({cat("layers.", k), DType::UInt8, {0}, 0, 0, io::crc_text("")});
  io::add_checksums(header);
  const std::string bytes = io::safetensors_header(header);
  const auto start = std::chrono::steady_clock::now();
  const io::SafeTensorsHeader back = io::parse_safetensors_header(bytes.substr(8), 0, "x");
  CHECK(back.entries.back().crc == "00000000");
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 2);
}

TEST_CASE("safetensors: round trip of every element type, with metadata") {
  TestFolder dir;
  std::vector<unsigned char> noise(8 * 15);
  for (std::size_t i = 0; i < noise.size(); ++i)
    noise[i] = static_cast<unsigned char>(i * 53 % 249);
  const std::vector<unsigned char> truths{1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 1};
  io::TensorMap tensors;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    const void* from =
        dtype == DType::Bool ? static_cast<const void*>(truths.data()) : noise.data();
    tensors[cat("layer.", name(dtype))] = Tensor::from_data(from, {3, 5}, dtype);
  }
  tensors["scalar"] = Tensor::from_data(noise.data(), Shape{}, DType::Float32);
  tensors["empty"] = Tensor::from_data(noise.data(), {0, 4}, DType::Float64);
  tensors["with \"quotes\" and \xc3\xa9"] = Tensor::from_data(noise.data(), {1}, DType::Int8);
  const io::Metadata metadata{{"format", "pt"}, {"note", "two\nlines"}};
  io::save_safetensors(dir / "a", tensors, metadata);
  io::save_safetensors(dir / "b", tensors, metadata);
  CHECK(io::read_file(dir / "a") == io::read_file(dir / "b"));

  const io::SafeTensors back = io::load_safetensors(dir / "a");
  CHECK(back.metadata == metadata);
  REQUIRE(back.tensors.size() == tensors.size());
  for (const auto& [key, t] : tensors) {
    const Tensor& other = back.tensors.at(key);
    CHECK(other.dtype() == t.dtype());
    CHECK(other.shape() == t.shape());
    CHECK(std::memcmp(other.data(), t.data(),
                      static_cast<std::size_t>(t.numel()) * item_size(t.dtype())) == 0);
  }
  const io::SafeTensorsInfo info = io::inspect_safetensors(dir / "a");
  CHECK(info.metadata == metadata);
  CHECK(info.tensors.at("layer.bfloat16").dtype == DType::BFloat16);
  CHECK(info.tensors.at("empty").shape == Shape{0, 4});
  // Values start at a multiple of 8, each tensor at a multiple of its element size.
  const std::string bytes = io::read_file(dir / "a");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  CHECK(length % 8 == 0);
}

TEST_CASE("safetensors: no tensors at all") {
  TestFolder dir;
  io::save_safetensors(dir / "none", {});
  CHECK(io::load_safetensors(dir / "none").tensors.empty());
}

TEST_CASE("safetensors: a truncated file is refused wherever it ends, in memory and on disk") {
  TestFolder dir;
  io::save_safetensors(dir / "a", {{"w", Tensor::from<float>({1, 2, 3}, {3})},
                                   {"b", Tensor::from<float>({4}, {1})}});
  const std::string bytes = io::read_file(dir / "a");
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    CHECK(refusal(bytes.substr(0, n)) != "");
    io::write_file(dir / "cut", bytes.substr(0, n));
    CHECK_THROWS_AS(io::load_safetensors(dir / "cut"), FormatError);
  }
  CHECK(refusal(bytes + "x") != "");
}

TEST_CASE("safetensors: headers that do not match the file") {
  const std::string good = "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]";
  CHECK(refusal(one(good)) == "");
  CHECK(
      refusal(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)).find("18446744073709551615") !=
      std::string::npos);
  CHECK(refusal(file("[]", "")) != "");
  CHECK(refusal(file("{", "")) != "");
  CHECK(refusal(file("{} x", "")) != "");
  CHECK(refusal(file(std::string(100'000, '['), "")) != "");
  CHECK(refusal(file("{\"a\":" + std::string(100'000, '[') + "}", "")) != "");
  CHECK(refusal(one("\"dtype\":\"F32\",\"shape\":[2]")) != "");
  CHECK(refusal(one(good + ",\"extra\":1")).find("extra") != std::string::npos);
  CHECK(refusal(one(good + ",\"shape\":[2]")).find("twice") != std::string::npos);
  CHECK(refusal(file("{\"t\":{" + good + "},\"t\":{" + good + "}}", std::string(8, '\0')))
            .find("twice") != std::string::npos);
  CHECK(refusal(file("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", "")).find("twice") !=
        std::string::npos);
  CHECK(refusal(file("{\"__metadata__\":{\"a\":1}}", "")) != "");
  CHECK(refusal(file("{\"__metadata__\":{\"a\":{}}}", "")) != "");
  CHECK(
      refusal(one("\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]")).find("not 12 bytes") !=
      std::string::npos);
  CHECK(refusal(one("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]")) != "");
  CHECK(refusal(one("\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]")) != "");
  CHECK(refusal(one("\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]")) != "");
  CHECK(refusal(one("\"dtype\":\"F32\",\"shape\":[[2]],\"data_offsets\":[0,8]")) != "");
  CHECK(refusal(one("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4294967296],\"data_"
                    "offsets\":[0,0]"))
            .find("more than 2^56") != std::string::npos);
  CHECK(refusal(one("\"dtype\":\"F32\",\"shape\":[0,18446744073709551615],\"data_offsets\":[0,0]"))
            .find("more than 2^56") != std::string::npos);
  CHECK(refusal(one("\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]")) !=
        "");
  CHECK(refusal<NotSupported>(one("\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[0,8]"))
            .find("F4") != std::string::npos);
}

TEST_CASE("safetensors: overlaps, gaps and bytes without a tensor") {
  const auto two = [](int a0, int a1, int b0, int b1) {
    const auto row = [](const char* key, int from, int to) {
      return cat("\"", key, "\":{\"dtype\":\"U8\",\"shape\":[", to - from, "],\"data_offsets\":[",
                 from, ",", to, "]}");
    };
    return file("{" + row("a", a0, a1) + "," + row("b", b0, b1) + "}", std::string(8, '\0'));
  };
  CHECK(refusal(two(0, 4, 4, 8)) == "");
  CHECK(refusal(two(4, 8, 0, 4)) == "");
  CHECK(refusal(two(0, 5, 4, 8)).find("overlap") != std::string::npos);
  CHECK(refusal(two(0, 3, 4, 8)).find("gap") != std::string::npos);
  CHECK(refusal(two(1, 4, 4, 8)).find("gap") != std::string::npos);
  CHECK(refusal(two(0, 4, 4, 7)) != "");
  CHECK(refusal(two(0, 4, 4, 9)) != "");
}

TEST_CASE("safetensors: names and values that cannot be written are refused") {
  TestFolder dir;
  const Tensor t = Tensor::from<float>({1}, {1});
  CHECK_THROWS_AS(io::save_safetensors(dir / "a", {{"__metadata__", t}}), ValueError);
  CHECK_THROWS_AS(io::save_safetensors(dir / "a", {{"\xff", t}}), ValueError);
  CHECK_THROWS_AS(io::save_safetensors(dir / "a", {{"t", Tensor()}}), ValueError);
  CHECK(dir.count() == 0);
}
