// Settings: keys, values, files, and defaults that follow from the optimizer.
#include <doctest/doctest.h>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/train.h>

#include "io/folder.h"
#include "train/runs/model_file.h"
#include "train/runs/records.h"

using namespace tenon;
using train::Settings;

TEST_CASE("settings: a model has its recipe") {
  CHECK(Settings::for_model("lenet5").optimizer == "sgd");
  CHECK(Settings::for_model("fcn_r").optimizer == "adam");
  CHECK(Settings::for_model("mlp:4-3-2").model == "mlp:4-3-2");
  CHECK_THROWS_WITH_AS(Settings::for_model("lenet6"), doctest::Contains("did you mean 'lenet5'"),
                       ValueError);
}

TEST_CASE("settings: recipes are those of docs/models.md") {
  struct Row {
    const char *name, *optimizer, *schedule;
    double lr, momentum, weight_decay;
    std::int64_t batch, epochs;
    double clip_norm;
  };
  const Row rows[] = {{"fcn_s", "sgd", "constant", 0.01, 0, 0, 64, 1, 0},
                      {"alexnet_s", "sgd", "constant", 0.01, 0, 0, 16, 1, 0},
                      {"alexnet_r", "sgd", "cosine", 0.01, 0.9, 0, 128, 40, 0},
                      {"alexnet_2012", "sgd", "multistep", 0.01, 0.9, 5e-4, 128, 90, 0},
                      {"vgg16", "sgd", "cosine", 0.01, 0.9, 5e-4, 32, 74, 0},
                      {"vgg16_bn", "sgd", "cosine", 0.01, 0.9, 5e-4, 32, 74, 0},
                      {"vgg16_head", "sgd", "cosine", 0.01, 0.9, 0, 32, 10, 0},
                      {"resnet50", "sgd", "cosine", 0.0125, 0.9, 1e-4, 16, 90, 0},
                      {"resnet56", "sgd", "cosine", 0.1, 0.9, 1e-4, 128, 15, 0},
                      {"lstm", "sgd", "constant", 0.1, 0, 0, 128, 20, 5},
                      {"keras_rnn", "adam", "constant", 0.001, 0, 0, 64, 10, 0},
                      {"gpt2", "adamw", "cosine", 6e-4, 0, 0.1, 12, 2, 1},
                      {"lenet5_1998", "levenberg", "multistep", 0.005, 0, 0.002, 10, 20, 0}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Settings s = Settings::for_model(row.name);
    CHECK(s.optimizer == row.optimizer);
    CHECK(s.schedule == row.schedule);
    CHECK(s.lr == doctest::Approx(row.lr));
    CHECK(s.momentum == doctest::Approx(row.momentum));
    CHECK(s.weight_decay == doctest::Approx(row.weight_decay));
    CHECK(s.batch == row.batch);
    CHECK(s.epochs == row.epochs);
    CHECK(s.clip_norm == doctest::Approx(row.clip_norm));
  }
  CHECK(Settings::for_model("alexnet_2012").milestones == "30,60,80");
  CHECK(Settings::for_model("alexnet_2012").input_std == 1.0 / 255);  // for pixels from 0 to 255
  CHECK(Settings::for_model("alexnet_2012").normalize == "none");
  CHECK(Settings::for_model("alexnet").normalize == "auto");
  CHECK(Settings::for_model("gpt2").beta2 == doctest::Approx(0.95));
  CHECK(Settings::for_model("transformer").label_smoothing == doctest::Approx(0.1));
}

TEST_CASE("settings: every key is written, read back and described") {
  Settings s = Settings::for_model("keras_cnn");
  s.set("data", "csv:a \"b\"\\c.csv");
  s.set("lr", "0.012345678901234567");
  s.set("shuffle", "no");
  s.set("seed", "123456789012");
  const TestFolder folder;
  io::write_file(folder / "settings.toml", s.toml());
  Settings back;
  back.apply_file(folder / "settings.toml");
  CHECK(back.toml() == s.toml());
  CHECK(back.lr == s.lr);
  CHECK(back.data == s.data);
  CHECK_FALSE(back.shuffle);
  for (const Settings::Key& key : s.keys()) {
    CAPTURE(key.name);
    CHECK_FALSE(key.help.empty());
    CHECK(s.get(key.name) == key.value);
    CHECK(back.get(key.name) == key.value);
  }
}

TEST_CASE("settings: wrong keys and values are refused with the allowed ones") {
  Settings s;
  CHECK_THROWS_WITH_AS(s.set("epoch", "3"), doctest::Contains("did you mean 'epochs'"), ValueError);
  CHECK_THROWS_WITH_AS(s.set("optimizer", "smd"), doctest::Contains("did you mean 'sgd'"),
                       ValueError);
  CHECK_THROWS_WITH_AS(s.set("epochs", "3.5"), doctest::Contains("a whole number"), ValueError);
  CHECK_THROWS_WITH_AS(s.set("batch", "0"), doctest::Contains("from 1 to 16777216"), ValueError);
  CHECK_THROWS_WITH_AS(s.set("epochs", "0"), doctest::Contains("from 1 to 1000000"), ValueError);
  for (const auto& key_entry :
       std::vector<std::pair<std::string, std::string>>{{"lr", "nan"},
                                                        {"lr", "-1"},
                                                        {"lr", ""},
                                                        {"lr", "1e"},
                                                        {"momentum", "2"},
                                                        {"shuffle", "maybe"},
                                                        {"precision", "fp8"},
                                                        {"schedule", "sine"},
                                                        {"model", "vgg"},
                                                        {"activation", "rely"},
                                                        {"data", ""},
                                                        {"threads", "-1"},
                                                        {"seed", "1e3"},
                                                        {"augment", "flop"},
                                                        {"augment", "crop"},
                                                        {"augment", "crop=0"},
                                                        {"augment", "flip,"},
                                                        {"augment", "flip,flip"},
                                                        {"augment", "crop=4,crop=4"},
                                                        {"augment", "cutout=4x"},
                                                        {"epochs", "99999999999999999999"}}) {
    const auto& key = key_entry.first;
    const auto& value = key_entry.second;
    CAPTURE(key);
    CAPTURE(value);
    CHECK_THROWS_AS(s.set(key, value), ValueError);
  }
}

TEST_CASE("settings: the learning rate follows the optimizer unless it is given, in any order") {
  Settings a = Settings::for_model("lenet5"), b = a;
  a.set("optimizer", "adam");
  CHECK(a.lr == 0.001);
  b.set("lr", "0.02");
  b.set("optimizer", "adam");
  CHECK(b.lr == 0.02);
  CHECK(b.momentum == 0);
}

TEST_CASE("settings: the options of an optimizer have its defaults unless they are given") {
  Settings s = Settings::for_model("lenet5");
  s.set("optimizer", "lion");
  CHECK(s.lr == 1e-4);
  CHECK(s.beta2 == 0.99);
  s.set("optimizer", "muon");
  CHECK(s.momentum == 0.95);
  CHECK(s.nesterov);
  CHECK(s.weight_decay == 0.1);
  s.set("beta2", "0.9");
  s.set("optimizer", "adagrad");
  CHECK(s.eps == 1e-10);
  CHECK(s.beta2 == 0.9);
  CHECK_FALSE(s.nesterov);
}

TEST_CASE("settings: milestones are epochs, or epochs with factors of the learning rate") {
  Settings s;
  for (const char* fine : {"", "3,6.5", "3=0.4,6.5=0.02"}) s.set("milestones", fine);
  for (const char* wrong : {"3,", "3,2", "0,1", "3=", "3=-1", "3=0.4,6", "3,6=0.2", "=1", "x"})
    CHECK_THROWS_WITH_AS(s.set("milestones", wrong), doctest::Contains("ascending"), ValueError);
}

// Runs, models and checkpoints of earlier builds are read with their names of settings.
TEST_CASE("settings: names of earlier builds are read from files, and from files only") {
  const TestFolder folder;
  const std::string file = folder / "settings.toml";
  io::write_file(file, "picture = \"resize=64,center_crop\"\naugment_on = \"card\"\n");
  Settings settings;
  settings.apply_file(file);
  CHECK(settings.preprocess == "resize=64,center_crop");
  CHECK(settings.augment_on == "gpu");
  CHECK_THROWS_AS(settings.set("picture", "resize"), ValueError);
  CHECK_THROWS_AS(settings.set("augment_on", "card"), ValueError);

  train::ModelDescription model;
  model.settings = Settings::for_model("resnet20");
  model.settings.set("preprocess", "resize=64,center_crop");
  model.settings.classes = 10;
  model.settings.data.clear();
  const auto renamed = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  const std::string older = renamed(train::to_json(model), "preprocess", "picture");
  CHECK(train::model_from_json(older, "own").settings.preprocess == "resize=64,center_crop");

  train::Progress progress;
  progress.steps_per_epoch = 3;
  progress.examples = 24;
  const std::string state = renamed(train::to_json(progress), "samples", "examples");
  CHECK(train::progress_from_json(state, "own").examples == 24);
}

TEST_CASE("settings: errors in files name the line; given settings override a file") {
  const TestFolder folder;
  const std::string file = folder / "c.toml";
  io::write_file(file, "model = \"mlp:4-3-2\"\nepochs = 7\nlr = 1\n");
  const Settings s = Settings::resolve("", file, {{"epochs", "9"}});
  CHECK(s.model == "mlp:4-3-2");
  CHECK(s.epochs == 9);
  CHECK(s.lr == 1);
  CHECK(Settings::resolve("lenet5", file, {}).model == "lenet5");
  io::write_file(file, "epochs = 7\nepoch = 3\n");
  CHECK_THROWS_WITH_AS(Settings().apply_file(file), doctest::Contains("line 2"), ValueError);
  io::write_file(file, "epochs = \n");
  CHECK_THROWS_WITH_AS(Settings().apply_file(file), doctest::Contains("line 1"), FormatError);
  io::write_file(file, "[train]\nepochs = 3\n");
  CHECK_THROWS_AS(Settings().apply_file(file), FormatError);
  io::write_file(file, "data = \"idx:/j\xc3\xbcrgen\" # \xe2\x82\xac\n");
  CHECK(Settings::resolve("lenet5", file, {}).data == "idx:/j\xc3\xbcrgen");
  for (const char* bad :
       {"[\nepochs = 3\n", "epochs = 3\xc3\xbc\n", "data = 'j\xc3\xbc'\n", "a\xff = 1\n"}) {
    io::write_file(file, bad);
    CHECK_THROWS_AS(Settings().apply_file(file), FormatError);
  }
  CHECK_THROWS_AS(Settings().apply_file(folder / "absent.toml"), IoError);
}
