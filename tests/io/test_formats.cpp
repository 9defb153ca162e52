// Weight files of NumPy and llama.cpp, and sharded files (make_format_fixtures.py): read value for
// value; files for NumPy have NumPy's bytes; damaged and implausible files are refused by name.
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/weights.h>

#include "base/str.h"
#include "io/archives/zip.h"
#include "io/folder.h"
#include "io/tensors/npy.h"
#include "io/tensors/weight_table.h"

using namespace tenon;

namespace {

const std::string kFormats = "tests/e2e/fixtures/weights/formats/";

io::TensorMap expected_of(const std::string& part) {
  io::TensorMap out;
  for (const auto& [name, tensor] : io::load_safetensors(kFormats + "expected.safetensors").tensors)
    if (name.starts_with(part + "/")) out.emplace(name.substr(part.size() + 1), tensor);
  return out;
}

void check_same(const io::TensorMap& got, const io::TensorMap& wanted) {
  CHECK(got.size() == wanted.size());
  for (const auto& [name, tensor] : wanted) {
    CAPTURE(name);
    REQUIRE(got.contains(name));
    const Tensor& is = got.at(name);
    CHECK(is.dtype() == tensor.dtype());
    REQUIRE(is.shape() == tensor.shape());
    CHECK(std::memcmp(is.data(), tensor.data(),
                      static_cast<std::size_t>(is.numel()) * item_size(is.dtype())) == 0);
  }
}

template <class E = FormatError>
std::string refusal(const std::string& path) {
  try {
    io::load_weights(path);
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

template <class T>
std::string little(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}
std::string gguf_text(const std::string& words) {
  return little<std::uint64_t>(words.size()) + words;
}

// A GGUF file with one tensor "w" of these sizes and type; `bytes` are its values.
std::string gguf(const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                 const std::string& bytes, std::uint64_t offset = 0, std::uint32_t version = 3) {
  std::string out = "GGUF" + little(version) + little<std::uint64_t>(1) + little<std::uint64_t>(0) +
                    gguf_text("w") + little(static_cast<std::uint32_t>(sizes.size()));
  for (const std::uint64_t size : sizes) out += little(size);
  out += little(type) + little(offset);
  out.resize((out.size() + 31) / 32 * 32);
  return out + bytes;
}

}  // namespace

TEST_CASE("formats: NumPy's archives, stored and deflated") {
  const io::TensorMap wanted = expected_of("npz");
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    CAPTURE(file);
    const io::WeightFile opened(kFormats + file);
    CHECK(opened.format() == "npz");
    check_same(opened.read_all(), wanted);
  }
  const io::WeightFile one(kFormats + "one.npy");
  CHECK(one.tensors()[0].name == "array");
  check_same(one.read_all(), {{"array", wanted.at("by columns")}});
}

TEST_CASE("formats: files for NumPy equal those that NumPy has read") {
  const TestFolder folder;
  const std::string path = folder / "ours.npz";
  io::save_weights(path, expected_of("npz"));
  check_same(io::load_weights(path), expected_of("npz"));
  CHECK(io::read_file(path) == io::read_file(kFormats + "ours.npz"));
  CHECK_THROWS_WITH_AS(io::save_weights(path, {{"w", zeros({2}, DType::BFloat16)}}),
                       doctest::Contains("bfloat16"), DTypeError);
  check_same(io::load_weights(path), expected_of("npz"));  // the old file is unchanged
}

TEST_CASE("formats: a damaged or implausible archive of arrays is refused") {
  const TestFolder folder;
  const std::string path = folder / "x.npz";
  const auto write = [&](const std::vector<std::string_view>& parts) {
    io::ZipWriter zip;
    zip.add("w.npy", parts);
    std::string out;
    for (const std::string_view piece : zip.finish()) out += piece;
    io::write_file(path, out);
  };
  const std::string header = io::npy_header({4}, DType::Float32);
  write({header, std::string_view("0123456789abcdef", 15)});
  CHECK(refusal(path).find("w.npy") != std::string::npos);
  write({io::npy_header({std::int64_t{1} << 40, 1 << 12}, DType::Float32)});
  CHECK(refusal(path).find("w.npy") != std::string::npos);
  write({"no array"});
  CHECK(refusal(path).find("not a .npy file") != std::string::npos);
  // Deflated zeros that unpack to a thousand times their size, more than the limit.
  std::string bytes = io::read_file(kFormats + "deflated.npz");
  bytes[bytes.size() / 2] ^= 0x55;
  io::write_file(path, bytes);
  CHECK_THROWS_AS(io::load_weights(path), Error);
}

TEST_CASE("formats: GGUF files are read, blocks as float32") {
  const io::WeightFile file(kFormats + "types.gguf");
  CHECK(file.format() == "gguf");
  check_same(file.read_all(), expected_of("gguf"));
  CHECK(file.metadata().at("tiny.count") == "7");
  CHECK(file.metadata().at("tiny.rate") == "0.5");
  CHECK(file.metadata().at("tiny.flag") == "true");
  CHECK(file.metadata().at("tiny.words") == "3 values");
  CHECK(file.metadata().at("general.architecture") == "llama");
  for (const io::StoredTensor& tensor : file.tensors())
    CHECK(tensor.stored == (tensor.name.find("q8_0") != std::string::npos   ? "q8_0"
                            : tensor.name.find("q4_0") != std::string::npos ? "q4_0"
                                                                            : ""));
}

TEST_CASE("formats: a truncated, unknown or implausible GGUF file is refused") {
  const TestFolder folder;
  const std::string path = folder / "x.gguf";
  const auto says = [&](const std::string& bytes) {
    io::write_file(path, bytes);
    return refusal(path);
  };
  const auto lacks = [&](const std::string& bytes) {
    io::write_file(path, bytes);
    return refusal<NotSupported>(path);
  };
  const std::string four(16, '\0');
  io::write_file(path, gguf({4}, 0, four));
  CHECK(io::load_weights(path).at("w").shape() == Shape{4});
  CHECK(says(gguf({5}, 0, four)).find("'w' ends beyond the file") != std::string::npos);
  CHECK(says(gguf({4}, 0, four, 8)).find("not aligned") != std::string::npos);
  CHECK(says(gguf({4}, 0, four, ~31ull)).find("beyond") != std::string::npos);
  CHECK(says(gguf({1ull << 40, 1ull << 40}, 0, four)).find("more than 2^56") != std::string::npos);
  CHECK(says(gguf({0, 1ull << 63}, 0, four)).find("more than 2^56") != std::string::npos);
  CHECK(says(gguf({16}, 8, four)).find("whole blocks") != std::string::npos);
  CHECK(says(gguf({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, four)).find("sizes") != std::string::npos);
  CHECK(lacks(gguf({256}, 12, four)).find("q4_K") != std::string::npos);
  CHECK(lacks(gguf({4}, 0, four, 0, 1)).find("version 1") != std::string::npos);
  CHECK(lacks(gguf({4}, 0, four, 0, 0x03000000)).find("big-endian") != std::string::npos);
  const std::string whole = io::read_file(kFormats + "types.gguf");
  for (std::size_t size = 9; size < whole.size(); size += 13)
    CHECK_THROWS_AS((io::write_file(path, whole.substr(0, size)), io::load_weights(path)), Error);
}

TEST_CASE("formats: sharded weights are read by their index") {
  const std::string index = "model.safetensors.index.json";
  const io::WeightFile file(kFormats + index);
  CHECK(file.format() == "safetensors in parts");
  check_same(file.read_all(), expected_of("parts"));
  CHECK(file.metadata().at("format") == "pt");

  const TestFolder folder;
  for (const char* part : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
    std::filesystem::copy_file(kFormats + part, folder / part);
  const auto says = [&](const std::string& json) {
    io::write_file(folder / index, json);
    return refusal(folder / index);
  };
  const std::string first = R"("h.0.weight":"model-00001-of-00002.safetensors",)";
  CHECK(says(R"({"weight_map":{)" + first + R"("h.7.weight":"model-00001-of-00002.safetensors"}})")
            .find("'h.7.weight' should be in model-00001") != std::string::npos);
  CHECK(says(R"({"weight_map":{"h.0.weight":"model-00001-of-00002.safetensors"}})")
            .find("contains 2 tensors, expected 1") != std::string::npos);
  for (const char* way_out : {"../x.safetensors", "/etc/passwd", "", "..", "a\\\\b"})
    CHECK(says(cat(R"({"weight_map":{"w":")", way_out, "\"}}"))
              .find("must be the name of a file in the index's folder") != std::string::npos);
  CHECK(says(R"({"weight_map":{"w":3}})").find("has no file") != std::string::npos);
  CHECK(says(R"({"weight_map":{}})").find("no tensors") != std::string::npos);
  CHECK(says(R"({"weights":{}})").find("weight_map") != std::string::npos);
  CHECK(says("{\"weight_map\":").find("not a JSON object") != std::string::npos);
  io::write_file(folder / index, R"({"weight_map":{"w":"gone.safetensors"}})");
  CHECK_THROWS_AS(io::load_weights(folder / index), IoError);
  // An index that names itself is not a weight file.
  CHECK(says(cat(R"({"weight_map":{"w":")", index, "\"}}")).find("unknown format of weight file") !=
        std::string::npos);
}
