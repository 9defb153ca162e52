// Small files must not crash the process, use much memory or take more than linear time: TOML,
// network files, and the description of a model in a weight file.
#include <sys/resource.h>

#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "base/str.h"
#include "io/folder.h"
#include "io/text/toml.h"

using namespace tenon;

namespace {

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int k = 0; k < times; ++k) out += text;
  return out;
}

std::string toml_refusal(const std::string& text) {
  try {
    io::parse_toml(text, "x.toml");
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

std::string model_json(const std::string& network, const std::string& data) {
  const std::string quoted = io::toml_quoted(network);
  return cat(R"({"model": "net.toml", "network": )", quoted,
             R"(, "classes": 10, "input_mean": 0, "input_std": 1, "data": ")", data, "\"}");
}

std::string open_refusal(const TestFolder& folder, const std::string& json) {
  io::save_safetensors(folder / "m.safetensors", {{"0.weight", zeros({10, 4})}},
                       {{"tenon.model", json}});
  try {
    train::TrainedModel::open(folder / "m.safetensors");
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

std::int64_t peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

}  // namespace

TEST_CASE("small files: TOML that nests deeply is refused before it is built") {
  for (const int depth : {1000, 50'000, 1'000'000}) {
    CAPTURE(depth);
    CHECK(toml_refusal(repeated("a.", depth) + "a=1\n").find("deeper than 512") !=
          std::string::npos);
    CHECK(toml_refusal("[" + repeated("a.", depth) + "a]\nx=1\n").find("deeper than 512") !=
          std::string::npos);
    CHECK(toml_refusal(repeated("\"a\" . ", depth) + "a=1\n").find("512") != std::string::npos);
    CHECK(toml_refusal("x=" + repeated("[", depth)).find("deeper than 512") != std::string::npos);
    CHECK(toml_refusal("x=" + repeated("{a=", depth)).find("deeper than 512") != std::string::npos);
  }
  // The nesting of headers, keys and values counts together.
  CHECK(toml_refusal("[" + repeated("a.", 200) + "a]\n" + repeated("b.", 200) + "b={" +
                     repeated("c.", 200) + "c=1}\n")
            .find("deeper than 512") != std::string::npos);
  CHECK(toml_refusal(repeated("x.y = 1\n", 2)) !=
        "");  // toml++'s own error: the key exists already
  CHECK(toml_refusal(repeated("a.", 100) + "a=1\n") == "");
  CHECK(toml_refusal("x = [" + repeated("1.5, ", 50'000) + "]\n[t]\ny.z = { a = 1, b.c = 2 }\n") ==
        "");
  CHECK(toml_refusal("x = [" + repeated("1, ", 500'000) + "]\n").find("400,000") !=
        std::string::npos);
  const std::string deep = repeated("a.", 50'000) + "a=1\n";
  CHECK_THROWS_AS(models::info(models::NetworkFile{"net.toml", deep}), FormatError);
  const TestFolder folder;
  CHECK(open_refusal(folder, model_json(deep, "")).find("deeper than 512") != std::string::npos);
}

TEST_CASE("small files: 100,000 variables and blocks take time linear in their number") {
  const auto start = std::chrono::steady_clock::now();
  std::string variables = "[variables]\n";
  for (int k = 0; k < 100'000; ++k)
    variables += cat("v", k, " = \"", k == 0 ? "1" : cat("v", k - 1), "\"\n");
  const std::string layers =
      "input = [4]\nclasses = 2\nlayers = [ { linear = \"v99999\" }, "
      "{ linear = \"classes\" } ]\n";
  CHECK(models::info(models::NetworkFile{"net.toml", layers + variables}).parameters > 0);
  std::string blocks = "input = [4]\nclasses = 2\nlayers = [\n";
  for (int k = 0; k < 5'000; ++k) blocks += cat("{ block = \"b", k, "\" },\n");
  blocks += "{ linear = \"classes\" } ]\n";
  for (int k = 0; k < 5'000; ++k) blocks += cat("[blocks.b", k, "]\nlayers = [ \"relu\" ]\n");
  CHECK(models::info(models::NetworkFile{"net.toml", blocks}).parameters > 0);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK(seconds < 20);
}

TEST_CASE("small files: shapes are compared before a network takes memory") {
  const TestFolder folder;
  const std::string wide =
      "input = [4]\nclasses = 10\nlayers = [ { linear = 1000000 }, { linear = 1500 }, "
      "{ linear = \"classes\" } ]\n";
  const std::int64_t before = peak_megabytes();
  const std::string refused = open_refusal(folder, model_json(wide, ""));
  CHECK(refused.find("has '0.weight' as [10, 4] in place of [1000000, 4]") != std::string::npos);
  CHECK(peak_megabytes() - before < 500);  // 6.1 GB without the check
}

TEST_CASE("small files: a weight file cannot name a file of this machine as its data") {
  const TestFolder folder;
  const std::string net = "input = [4]\nclasses = 10\nlayers = [ { linear = \"classes\" } ]\n";
  for (const char* data :
       {"csv:/etc/passwd", "text:notes.txt", "folder:.", "npy:x.npy,y.npy",
        "digits:10,10,test=/etc/passwd", "mnist:/root", "spans:a.json", "whatever:x"}) {
    CAPTURE(data);
    CHECK(open_refusal(folder, model_json(net, data)).find("must not name files of this machine") !=
          std::string::npos);
  }
  for (const char* data : {"", "digits:10,10", "scenes", "mnist"}) {
    CAPTURE(data);
    CHECK(open_refusal(folder, model_json(net, data)).find("must not name files") ==
          std::string::npos);
  }
}
