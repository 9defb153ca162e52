// Checkpoints that training scripts write (make_foreign_fixtures.py): other objects are not read
// but named, element types that Tenon lacks are converted or named, and names with wrappers and
// weight norms are matched.
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/published_weights.h>
#include <tenon/weights.h>

#include "base/str.h"
#include "io/folder.h"
#include "io/text/json.h"
#include "io/weight_norm.h"

using namespace tenon;

namespace {

const std::string kForeign = "tests/e2e/fixtures/weights/foreign/";

io::TensorMap expected_of(const std::string& part) {
  io::TensorMap out;
  for (const auto& [name, tensor] : io::load_safetensors(kForeign + "expected.safetensors").tensors)
    if (name.starts_with(part + "/")) out.emplace(name.substr(part.size() + 1), tensor);
  return out;
}

// Equal bits, except that any two NaN are equal.
bool same_values(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() != DType::Float32)
    return std::memcmp(a.data(), b.data(),
                       static_cast<std::size_t>(a.numel()) * item_size(a.dtype())) == 0;
  const auto x = a.to_vector<float>(), y = b.to_vector<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool both_nan = std::isnan(x[i]) && std::isnan(y[i]);
    if (!both_nan && std::memcmp(&x[i], &y[i], sizeof(float)) != 0) return false;
  }
  return true;
}

std::string what_of(const io::WeightFile& file, const std::string& name) {
  for (const io::Unread& one : file.unread())
    if (one.name == name) return one.what;
  return "";
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("foreign: objects other than tensors are named and never constructed") {
  std::filesystem::remove("/tmp/tenon_was_run");
  for (const char* name : {"objects.pt", "objects4.pt", "objects_legacy.pt"}) {
    CAPTURE(name);
    const io::WeightFile file(kForeign + name);
    const io::TensorMap got = file.read_all();
    CHECK(got.size() == 5);
    CHECK(got.at("state_dict.w").to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
    CHECK(got.at("odd.inside.0").to_vector<float>() == std::vector<float>{5, 5});
    CHECK(got.at("0.5").item() == 4);
    CHECK(file.metadata().at("epoch") == "7");
    CHECK(what_of(file, "args") == "an object of 'argparse.Namespace'");
    CHECK(what_of(file, "scalar").find("scalar'") != std::string::npos);
    CHECK(what_of(file, "path") == "an object of 'pathlib.PurePosixPath'");
    CHECK(what_of(file, "own") == "an object of '__main__.Own'");
    CHECK(what_of(file, "colour") == "an object of '__main__.Colour'");
    CHECK(what_of(file, "complex_tensor") == "a tensor of complex64 [2]");
    CHECK(what_of(file, "sparse").find("_rebuild_sparse_tensor") != std::string::npos);
    CHECK(what_of(file, "class") == "the name '__main__.Own'");
    CHECK(what_of(file, "large") == "a number of more than 64 bits");
    CHECK(what_of(file, "runs").find("open'") != std::string::npos);
    CHECK(what_of(file, "?") == "an entry whose key is neither a string nor a number");
    for (const char* there : {"array", "set", "frozen", "bytes", "mutable", "when", "day", "slots",
                              "dictionary", "counter", "complex", "decimal", "function"}) {
      CAPTURE(there);
      CHECK(what_of(file, there) != "");
    }
    for (const char* plain : {"none", "dtype", "device", "size", "rate"})
      CHECK(what_of(file, plain) == "");
    REQUIRE(file.notes().size() == 1);
    CHECK(file.notes()[0].count == std::ssize(file.unread()));
    CHECK(file.notes()[0].text.find("not read: 'args', an object of 'argparse.Namespace'") !=
          std::string::npos);
  }
  CHECK(!std::filesystem::exists("/tmp/tenon_was_run"));
  CHECK_THROWS_WITH_AS(io::WeightFile(kForeign + "whole.pt"), doctest::Contains("'__main__.Own'"),
                       NotSupported);
}

TEST_CASE("foreign: unknown element types are converted exactly, or named") {
  const io::TensorMap wanted = expected_of("types");
  REQUIRE(wanted.size() == 10);
  for (const char* name : {"types.pt", "types.safetensors"}) {
    CAPTURE(name);
    const io::WeightFile file(kForeign + name);
    const io::TensorMap got = file.read_all();
    CHECK(got.size() == wanted.size());
    for (const auto& [key, tensor] : wanted) {
      CAPTURE(key);
      REQUIRE(got.contains(key));
      CHECK(same_values(got.at(key), tensor));
    }
    CHECK(what_of(file, "uint64") == "a tensor of uint64 [6]");
    CHECK(what_of(file, "complex64") == "a tensor of complex64 [2]");
    bool said = false;
    for (const Note& note : file.notes())
      said = said || (note.count == 2 && note.text.find("2 of float8_e4m3fn read as float32") == 0);
    CHECK(said);
  }
  CHECK(what_of(io::WeightFile(kForeign + "types.pt"), "quantised") != "");
  CHECK_THROWS_WITH_AS(io::load_safetensors(kForeign + "types.safetensors"),
                       doctest::Contains("element type"), NotSupported);
  // A wanted tensor that is not read is missing; the message says what the file has instead.
  const models::WeightFit fit = models::fit_weights(
      io::WeightFile(kForeign + "types.pt"), {{"complex64", zeros({2})}, {"float32", zeros({3})}});
  CHECK(fit.differences().find("'complex64' is a tensor of complex64") != std::string::npos);
}

TEST_CASE("foreign: weight norms are computed, other parametrizations refused by name") {
  io::TensorMap wanted = expected_of("norms");
  const io::WeightFile file(kForeign + "norms.pt");
  const io::TensorMap all = wanted;
  wanted.erase("spectral.weight");
  const models::WeightFit fit = models::fit_weights(file, wanted);
  CHECK(fit.missing.empty());
  for (const auto& [name, tensor] : wanted) {
    CAPTURE(name);
    const auto got = cast(fit.tensors.at(name), DType::Float32).to_vector<float>(),
               right = tensor.to_vector<float>();
    REQUIRE(got.size() == right.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == doctest::Approx(right[i]).epsilon(name.starts_with("half") ? 2e-3 : 1e-6));
  }
  CHECK_THROWS_WITH_AS(
      models::fit_weights(file, all),
      doctest::Contains("'spectral.weight' is computed from '0._u', '0._v', 'original'"),
      NotSupported);
  bool said = false;
  for (const std::string& deed : fit.done)
    said = said || deed.find("5 computed from the two tensors of a weight norm") == 0;
  CHECK(said);
  // A network that has a parameter of this name keeps the name.
  const io::TensorMap own{{"older.weight_g", zeros({2, 1})}, {"older.weight_v", zeros({2, 3})}};
  CHECK(models::fit_weights(file, own).tensors.size() == 2);
}

TEST_CASE("foreign: wrappers inside names are removed") {
  const io::TensorMap wanted = expected_of("wrapped");
  const models::WeightFit fit =
      models::fit_weights(io::WeightFile(kForeign + "wrapped.pt"), wanted);
  CHECK(fit.differences() == "");
  for (const auto& [name, tensor] : wanted) CHECK(same_values(fit.tensors.at(name), tensor));
  std::string said;
  for (const std::string& deed : fit.done) said += deed + "; ";
  CHECK(said.find("'_orig_mod.' removed from 2 names") != std::string::npos);
  CHECK(said.find("'_checkpoint_wrapped_module.' removed from 1 names") != std::string::npos);
  // A network that has a part named "module" keeps the name.
  const TestFolder folder;
  io::save_weights(folder / "w.pt", {{"a.module.w", ones({2})}});
  CHECK(models::fit_weights(io::WeightFile(folder / "w.pt"), {{"a.module.w", zeros({2})}})
            .tensors.size() == 1);
  CHECK(
      models::fit_weights(io::WeightFile(folder / "w.pt"), {{"a.w", zeros({2})}}).tensors.size() ==
      1);
}

TEST_CASE("foreign: a folder is opened as the file that Hugging Face would read") {
  const TestFolder folder;
  CHECK_THROWS_WITH_AS(io::WeightFile(folder / "."), doctest::Contains("pytorch_model.bin"),
                       FormatError);
  io::save_weights(folder / "pytorch_model.bin", {{"a", ones({2})}});
  CHECK(io::WeightFile(folder / ".").format() == "pt");
  io::save_weights(folder / "part.safetensors", {{"a", ones({2})}});
  io::write_file(folder / "model.safetensors.index.json",
                 R"({"weight_map": {"a": "part.safetensors"}})");
  CHECK(io::WeightFile(folder / ".").format() == "safetensors in parts");
  io::save_weights(folder / "model.safetensors", {{"a", ones({2})}});
  CHECK(io::WeightFile(folder / ".").path() == folder / "./model.safetensors");
}

TEST_CASE("foreign: 300,000 tensors and their index are read in time linear in their number") {
  const TestFolder folder;
  constexpr int kTensors = 300'000;
  std::string header = "{", index = R"({"weight_map":{)";
  for (int k = 0; k < kTensors; ++k) {
    const char* comma = k == 0 ? "" : ",";
    header += cat(comma, "\"model.layers.", k, ".weight\":{\"dtype\":\"F32\",\"shape\":[1],",
                  "\"data_offsets\":[", 4 * k, ",", 4 * k + 4, "]}");
    index += cat(comma, "\"model.layers.", k, ".weight\":\"many.safetensors\"");
  }
  header += "}";
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  io::write_file(folder / "many.safetensors", bytes + header + std::string(4 * kTensors, '\0'));
  io::write_file(folder / "many.index.json", index + "}}");
  const auto start = std::chrono::steady_clock::now();
  CHECK(io::load_weights(folder / "many.index.json").size() == kTensors);
  CHECK(io::load_safetensors(folder / "many.safetensors").tensors.size() == kTensors);
  CHECK(seconds_since(start) < 30);  // eight minutes with a search per key
}

TEST_CASE("json: repeated keys, depth and errors agree with nlohmann's parser") {
  using io::Json;
  const Json json = io::parse_json(R"({"b": 1, "a": [1, {"c": null}, "x"], "b": 2.5})");
  CHECK(io::json_text(json) == R"({"b":2.5,"a":[1,{"c":null},"x"]})");
  for (const char* wrong : {"", "{", "[1,]", "{\"a\":}", "1 2", "nul", "{\"a\" 1}", "\"\\x\""}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(io::parse_json(wrong), Json::parse_error);
    CHECK(io::parse_json_or_discard(wrong).is_discarded());
  }
  const std::string deep = std::string(400, '[') + std::string(400, ']'),
                    deeper = std::string(100'000, '[') + std::string(100'000, ']');
  CHECK(io::parse_json(deep).is_array());
  CHECK_THROWS_AS(io::parse_json(deeper), Json::parse_error);
  CHECK(io::parse_json("17").is_number());
}
