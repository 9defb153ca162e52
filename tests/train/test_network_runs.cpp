// Runs of network files: the same bits as built-in networks, and folders that do not need the file.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/train.h>

#include "base/str.h"
#include "io/folder.h"
#include "train/settings/resolved.h"

using namespace tenon;
using train::Settings;

namespace {

constexpr char kNet[] = R"(input = [1, 28, 28]
classes = 10
layers = [ { max_pool2d = 4 }, "flatten", { linear = 12 }, "batch_norm1d", "tanh",
           { linear = "classes" } ]
[recipe]
data = "digits:200,50"
epochs = 2
batch = 20
optimizer = "adam"
lr = 0.01
)";

void check_same_weights(const std::string& a, const std::string& b) {
  const auto x = io::load_safetensors(a).tensors, y = io::load_safetensors(b).tensors;
  REQUIRE(x.size() == y.size());
  for (const auto& [name, value] : x) {
    CAPTURE(name);
    const auto bytes = static_cast<std::size_t>(value.numel()) * item_size(value.dtype());
    CHECK(std::memcmp(value.data(), y.at(name).data(), bytes) == 0);
  }
}

}  // namespace

TEST_CASE("network runs: the file of a built-in network trains with the same bits") {
  const TestFolder folder;
  io::write_file(folder / "mine.toml", models::toml("lenet5"));
  for (const std::string& model : {std::string("lenet5"), folder / "mine.toml"}) {
    const Settings s = Settings::resolve(model, "", {{"data", "digits:200,50"}, {"epochs", "1"}});
    CHECK(s.lr == 0.1);
    train::start_run(s, folder / (model == "lenet5" ? "page" : "file"));
  }
  check_same_weights(folder / "page/model.safetensors", folder / "file/model.safetensors");
}

TEST_CASE("network runs: a moved run does not need its network file") {
  const TestFolder folder;
  const std::string file = folder / "net.toml";
  io::write_file(file, kNet);
  const Settings s = Settings::for_model(file);
  CHECK(s.optimizer == "adam");
  CHECK(s.data == "digits:200,50");
  train::start_run(s, folder / "whole");
  int steps = 0;
  train::start_run(s, folder / "half", {{}, [&steps] { return ++steps == 13; }});
  std::filesystem::remove(file);
  std::filesystem::rename(folder / "half", folder / "moved");
  train::resume_run(folder / "moved");
  check_same_weights(folder / "whole/model.safetensors", folder / "moved/model.safetensors");
  const auto run = train::TrainedModel::open(folder / "moved");
  const auto alone = train::TrainedModel::open(folder / "moved/model.safetensors");
  CHECK(run.settings().model_toml() == kNet);
  CHECK(alone.settings().model_toml() == kNet);
  CHECK(run.evaluate().accuracy == alone.evaluate("digits:200,50").accuracy);
  CHECK(train::verify_run(folder / "moved", 5).passed());
  // A run's settings can be used for the next run.
  CHECK(Settings::resolve("", folder / "moved/settings.toml", {}).network == kNet);
  CHECK(Settings::resolve("lenet5", folder / "moved/settings.toml", {}).network.empty());
}

TEST_CASE("network runs: errors are found before a folder is created") {
  const TestFolder folder;
  const std::string file = folder / "net.toml";
  CHECK_THROWS_AS(Settings::for_model(file), IoError);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kNet;
    text.replace(text.find(from), from.size(), to);
    io::write_file(file, text);
    return file;
  };
  CHECK_THROWS_WITH_AS(Settings::for_model(with("adam", "adem")),
                       doctest::Contains("line 9: setting 'optimizer' is 'adem'"), FormatError);
  CHECK_THROWS_WITH_AS(Settings::for_model(with("0.01", "-0.01")), doctest::Contains("line 10"),
                       FormatError);
  const auto run = [&](const std::string& from, const std::string& to) {
    train::start_run(Settings::for_model(with(from, to)), folder / "run");
  };
  CHECK_THROWS_WITH_AS(run("28, 28", "32, 32"), doctest::Contains("change 'input'"), ShapeError);
  CHECK_THROWS_WITH_AS(run("\"classes\"", "3"),
                       doctest::Contains("end the file's layers with { linear = \"classes\" }"),
                       ShapeError);
  // Maps: of a network whose outputs are no vector, and of targets that are classes of pixels.
  io::save_npy(folder / "x.npy", zeros({20, 1, 28, 28}).compute());
  io::save_npy(folder / "one.npy", zeros({20, 1}).compute());
  io::save_npy(folder / "pixels.npy", zeros({20, 28, 28}, DType::Int64).compute());
  const auto maps = [&](const std::string& task, const std::string& targets) {
    const std::string other_file = folder / "other.toml";
    io::write_file(other_file,
                   "input = [1, 28, 28]\nclasses = 1\nlayers = [ { conv2d = 1, kernel = 1 } ]\n");
    Settings other = Settings::for_model(other_file);
    other.set("task", task);
    other.set("data", "npy:" + (folder / "x.npy") + "," + (folder / targets));
    train::start_run(other, folder / "run");
  };
  CHECK_THROWS_WITH_AS(
      maps("regression", "one.npy"),
      doctest::Contains("end the file's layers with \"flatten\" and { linear = \"classes\" }"),
      ShapeError);
  CHECK_THROWS_WITH_AS(maps("classification", "pixels.npy"),
                       doctest::Contains("a class for each pixel needs a task of your own"),
                       ShapeError);
  CHECK_FALSE(std::filesystem::exists(folder / "run"));
  Settings s = Settings::for_model(with("adam", "sgd"));
  s.set("model", "lenet5");
  CHECK(s.network.empty());
  CHECK_THROWS_AS(s.set("model", folder / "gone.toml"), IoError);
  CHECK(s.model == "lenet5");
}

TEST_CASE("network runs: tables are standardized, for regression and classification") {
  const TestFolder folder;
  std::string rows = "a,b,y\n";
  for (int k = 0; k < 120; ++k) rows += cat(k % 7, ",", 100 * (k % 5), ",", 10 * (k % 7) + 3, "\n");
  io::write_file(folder / "t.csv", rows);
  io::write_file(folder / "net.toml",
                 "input = [2]\nclasses = 1\nlayers = [ { linear = 8 }, \"tanh\", { linear = "
                 "\"classes\" } ]\n[recipe]\nepochs = 3\n");
  Settings s = Settings::for_model(folder / "net.toml");
  s.set("data", cat("csv:", folder / "t.csv", ",label=y"));
  s.set("task", "regression");
  train::start_run(s, folder / "run");
  const auto model = train::TrainedModel::open(folder / "run");
  const StateDict state = model.net().state_dict();
  CHECK(state.contains("input_mean"));
  CHECK(state.contains("0.weight"));
  CHECK(model.evaluate().errors.has_value());
  // The same results as the mlp of these sizes.
  Settings page = Settings::for_model("mlp:2-8-1");
  for (const Settings::Key& key : s.keys())
    if (key.name != "model") page.set(key.name, key.value);
  page.set("activation", "tanh");
  train::start_run(page, folder / "page");
  check_same_weights(folder / "run/model.safetensors", folder / "page/model.safetensors");
}

TEST_CASE("network runs: adapters of a file's layers equal those of the built-in network") {
  const TestFolder folder;
  std::string text;
  for (int k = 0; k < 60; ++k) text += "the sea is wide and the land is far\n";
  io::write_file(folder / "text.txt", text);
  const std::string name = "gpt2:layers=1,heads=2,width=16,context=8";
  io::write_file(folder / "mine.toml", models::toml(name));
  for (const std::string& model : {name, folder / "mine.toml"}) {
    const Settings s = Settings::resolve(model, "",
                                         {{"data", "text:" + (folder / "text.txt") + ",length=8"},
                                          {"epochs", "1"},
                                          {"lora", "rank=2,targets=c_attn+c_proj"}});
    train::start_run(s, folder / (model == name ? "page" : "file"));
  }
  check_same_weights(folder / "page/adapters.safetensors", folder / "file/adapters.safetensors");
  check_same_weights(folder / "page/model.safetensors", folder / "file/model.safetensors");
}

TEST_CASE("network runs: a file's augmentation is applied and checked") {
  const TestFolder folder;
  const std::string file = folder / "net.toml";
  const std::string net =
      "input = [3, 16, 16]\nclasses = 2\nlayers = [ \"flatten\", { linear = \"classes\" } ]\n"
      "[recipe]\n";
  const auto changes = [&](const std::string& recipe, const std::string& data) {
    io::write_file(file, net + recipe);
    Settings s = Settings::for_model(file);
    s.data = data;
    return train::ResolvedRun(Settings(s)).augmentation.steps.text();
  };
  const auto list = [](const std::string& text) { return data::Transforms::parse(text).text(); };
  const std::string usual = list("resized_crop,flip");
  CHECK(changes("epochs = 1\n", "folder:in") == usual);
  CHECK(changes("augment = \"none\"\n", "folder:in") == data::Transforms().text());
  CHECK(changes("augment = \"auto\"\n", "folder:in") == usual);
  CHECK(changes("augment = \"resized_crop,flip,jitter=0.9\"\n", "folder:in") ==
        list("resized_crop,flip,jitter=0.9"));
  CHECK(changes("augment = \"resized_crop,flip\"\n", "digits") == data::Transforms().text());
  Settings given = Settings::for_model(file);
  given.set("data", "folder:in");
  given.set("augment", "flip");
  CHECK(train::ResolvedRun(Settings(given)).augmentation.steps.text() == list("flip"));
  // The augmentation of a built-in network is for CIFAR's images.
  Settings named = Settings::for_model("resnet20");
  named.data = "folder:in";
  CHECK(train::ResolvedRun(Settings(named)).augmentation.steps.text() == usual);
  CHECK_THROWS_WITH_AS(changes("epochs = 1\naugment = \"flipp\"\n", "folder:in"),
                       doctest::Contains("net.toml, line 6: setting 'augment' is 'flipp'"),
                       FormatError);
  CHECK_THROWS_WITH_AS(changes("normalize = \"0.5,0.5/0.2,0.2\"\n", "folder:in"),
                       doctest::Contains("net.toml, line 5: setting 'normalize' has numbers for 2"),
                       FormatError);
}
