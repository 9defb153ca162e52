// Whole runs by settings and folder: train, evaluate, predict, verify; killed at random moments and
// resumed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/train.h>

#include "io/folder.h"
#include "train/runs/run_folder.h"
#include "train/runs/sample_record.h"
#include "train/toy.h"

using namespace tenon;
using train::Settings;

namespace {

Settings small_run() {
  return Settings::resolve("mlp:784-24-10", "",
                           {{"data", "digits:600,100"},
                            {"epochs", "4"},
                            {"batch", "32"},
                            {"lr", "0.05"},
                            {"checkpoint_steps", "3"}});
}

// Starts this test program again, to train in `dir` until it is killed.
pid_t spawn(const std::string& dir) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
  ::setenv("TENON_TEST_RUN", dir.c_str(), 1);
  ::execl("/proc/self/exe", "tests", "--no-skip", "--test-case=runs: (the process that is killed)",
          nullptr);
  ::_exit(127);
}

// Checkpoints, oldest first.
std::vector<std::string> checkpoints_of(const std::string& run) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/checkpoints"))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("runs: (the process that is killed)" * doctest::skip()) {
  const char* dir = std::getenv("TENON_TEST_RUN");
  if (dir == nullptr) return;
  if (std::filesystem::exists(std::string(dir) + "/settings.toml"))
    train::resume_run(dir);
  else
    train::start_run(small_run(), dir);
}

TEST_CASE("runs: a run that is killed many times ends with the weights of an uninterrupted run") {
  const TestFolder folder;
  train::start_run(small_run(), folder / "whole");
  const std::string dir = folder / "killed";
  int kills = 0;
  for (int attempt = 0; attempt < 40; ++attempt) {
    const pid_t child = spawn(dir);
    REQUIRE(child > 0);
    // Later and later moments: at the start, between and inside checkpoints, near the end.
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 23 * attempt));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) {
      CHECK(WEXITSTATUS(status) == 0);
      break;
    }
    ++kills;
  }
  CHECK(kills > 0);
  const train::TrainResult result = std::filesystem::exists(dir + "/settings.toml")
                                        ? train::resume_run(dir)
                                        : train::start_run(small_run(), dir);
  CHECK(result.reason == train::StopReason::Finished);
  const auto expected = io::load_safetensors(folder / "whole/model.safetensors").tensors;
  CHECK(toy::difference(io::load_safetensors(dir + "/model.safetensors").tensors, expected) == "");
}

TEST_CASE("runs: a run that was interrupted in its first epoch knows its classes and columns") {
  const TestFolder folder;
  const auto table = [&](const char* name, std::vector<const char*> colours) {
    std::string text = "colour,size,label\n";
    for (int k = 0; k < 60; ++k) {
      const std::string colour = colours[static_cast<std::size_t>(k) % colours.size()];
      text += colour + "," + std::to_string(k) + ",is " + colour + "\n";
    }
    io::write_file(folder / name, text);
    return "csv:" + (folder / name);
  };
  const std::string dir = folder / "run", data = table("all.csv", {"red", "green", "blue"});
  struct Counter : train::Callback {
    std::int64_t steps = 0;
    void on_step(const train::StepReport& report) override { steps = report.step; }
  };
  const auto counter = std::make_shared<Counter>();
  train::RunOptions options;
  options.callbacks = {counter};
  options.stop = [counter] { return counter->steps >= 2; };
  const train::Settings settings =
      Settings::resolve("mlp:4-8-3", "", {{"data", data}, {"batch", "4"}, {"epochs", "2"}});
  CHECK(train::start_run(settings, dir, options).reason == train::StopReason::Interrupted);
  REQUIRE(!std::filesystem::exists(dir + "/best.safetensors"));
  const train::TrainedModel model = train::TrainedModel::open(dir);
  CHECK(model.class_names() == std::vector<std::string>{"is blue", "is green", "is red"});
  const train::Evaluation other = model.evaluate(table("some.csv", {"red", "green"}));
  CHECK(other.items == 60);
}

TEST_CASE("runs: a start that was killed before its settings leaves no record of its data") {
  const TestFolder folder;
  const std::string dir = folder / "run", record = dir + "/" + train::kSampleRecordFile;
  train::start_run(small_run(), dir);
  for (const char* name : {"settings.toml", "best.safetensors", "model.safetensors", "log.csv"})
    std::filesystem::remove(dir + "/" + name);
  std::filesystem::remove_all(dir + "/checkpoints");
  REQUIRE(std::filesystem::exists(record));
  { const train::RunFolder resumed(dir, true); }
  CHECK(std::filesystem::exists(record));
  { const train::RunFolder started(dir, false); }
  CHECK(!std::filesystem::exists(record));
}

TEST_CASE("runs: train, evaluate, predict, verify") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  const train::TrainResult result = train::start_run(small_run(), dir);
  CHECK(*result.best > 0.5);
  const train::TrainedModel model = train::TrainedModel::open(dir);
  CHECK(model.settings().classes == 10);
  const train::Evaluation e = model.evaluate();
  CHECK(e.items == 100);
  CHECK(e.accuracy == *result.test->metrics["accuracy"]);
  CHECK(e.items == result.test->samples);
  CHECK(e.confusion.total() == 100);
  CHECK(e.top3_accuracy >= e.accuracy);
  const Tensor images = randint(0, 256, {3, 1, 28, 28}, DType::UInt8);
  const Tensor p = model.predict(images);
  CHECK(p.shape() == Shape{3, 10});
  CHECK(sum(p).item() == doctest::Approx(3));
  CHECK(model.predict(zeros({0, 1, 28, 28}, DType::UInt8)).shape() == Shape{0, 10});
  CHECK_THROWS_WITH_AS(model.predict(zeros({3, 1, 27, 28}, DType::UInt8)),
                       "predict: the input is [3, 1, 27, 28], and model 'mlp:784-24-10' takes "
                       "samples of [784]: resize or reshape the input",
                       ShapeError);
  const train::TrainedModel from_file = train::TrainedModel::open(dir + "/model.safetensors");
  CHECK(toy::difference(from_file.net().state_dict(), model.net().state_dict()) == "");
  train::TrainedModel rounded = train::TrainedModel::open(dir);
  rounded.set_precision(Precision::Bf16);
  CHECK(rounded.evaluate().loss != e.loss);
  CHECK(rounded.evaluate().loss == doctest::Approx(e.loss).epsilon(0.02));
  const train::VerifyReport report = train::verify_run(dir, 12);
  CHECK(report.checks.size() == 4);
  for (const train::VerifyCheck& check : report.checks) {
    CAPTURE(check.name);
    CAPTURE(check.detail);
    CHECK(check.passed);
  }
}

TEST_CASE("runs: resuming accepts settings that do not change the results, and more epochs") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  Settings s = small_run();
  s.set("epochs", "1");
  train::start_run(s, dir);
  CHECK_THROWS_WITH_AS(train::resume_run(dir, {}, {{"lr", "0.5"}}),
                       doctest::Contains("cannot become '0.5'"), ValueError);
  CHECK_THROWS_AS(train::resume_run(dir, {}, {{"leering", "0.5"}}), ValueError);
  const train::TrainResult result = train::resume_run(dir, {}, {{"epochs", "2"}, {"threads", "1"}});
  CHECK(result.epochs.size() == 2);
  CHECK(train::resume_run(dir).epochs.size() == 2);
  CHECK(train::TrainedModel::open(dir).file() == dir + "/model.safetensors");
  CHECK(train::resume_run(dir, {.stop = [] { return true; }}, {{"epochs", "3"}}).reason ==
        train::StopReason::Interrupted);
  CHECK(train::TrainedModel::open(dir).file() == dir + "/best.safetensors");
  CHECK_THROWS_AS(train::resume_run(folder / "absent"), IoError);
  CHECK_THROWS_AS(train::TrainedModel::open(folder / "absent"), IoError);
}

TEST_CASE("runs: data that does not fit the model is refused with an alternative") {
  Settings s = small_run();
  s.model = "mlp:100-10";
  CHECK_THROWS_WITH_AS(train::start_run(s, ""), doctest::Contains("mlp:784-64-10"), ShapeError);
  s.model = "lenet5";
  s.data = "idx:/nowhere";
  CHECK_THROWS_AS(train::start_run(s, ""), IoError);
}

TEST_CASE("runs: LeNet-5 of 1998 learns digits by its own recipe") {
  const TestFolder folder;
  train::Settings s = train::Settings::for_model("lenet5_1998");
  CHECK(s.optimizer == "levenberg");
  CHECK(s.epochs == 20);
  s.data = "digits:4000,500";
  s.epochs = 2;
  const train::TrainResult result = train::start_run(s, folder / "run");
  REQUIRE(result.best);
  MESSAGE("test accuracy " << *result.test->metrics["accuracy"]);
  CHECK(*result.test->metrics["accuracy"] > 0.85);
}

TEST_CASE("runs: a truncated settings file is refused, not read as defaults") {
  const TestFolder folder;
  const std::string dir = folder / "run", file = dir + "/settings.toml";
  Settings s = small_run();
  s.set("epochs", "1");
  train::start_run(s, dir);
  for (const char* text : {"", "model = \"mlp:784-24-10\"\n"}) {
    io::write_file(file, text);
    CHECK_THROWS_WITH_AS(train::TrainedModel::open(dir), doctest::Contains("settings.toml lacks"),
                         FormatError);
    CHECK_THROWS_AS(train::resume_run(dir), FormatError);
    CHECK_THROWS_AS(train::verify_run(dir, 3), FormatError);
  }
}

TEST_CASE("runs: a damaged tensor name is detected, and an older checkpoint used") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  Settings s = small_run();
  s.set("epochs", "1");
  train::start_run(s, dir);
  const auto damage = [](const std::string& file, const std::string& name) {
    std::string bytes = io::read_file(file);
    const std::size_t at = bytes.find("\"" + name + "\"");
    REQUIRE(at != std::string::npos);
    bytes[at + 1] ^= 1;
    io::write_file(file, bytes);
  };
  const std::vector<std::string> checkpoints = checkpoints_of(dir);
  REQUIRE(checkpoints.size() == 2);
  const StateDict whole = io::load_safetensors(dir + "/model.safetensors").tensors;
  damage(checkpoints[1], "model.0.bias");
  train::resume_run(dir);
  CHECK(toy::difference(io::load_safetensors(dir + "/model.safetensors").tensors, whole) == "");

  damage(dir + "/model.safetensors", "0.bias");
  CHECK_THROWS_WITH_AS(
      train::TrainedModel::open(dir),
      doctest::Contains("model.safetensors is damaged: the checksum of its header"), FormatError);
  io::save_safetensors(dir + "/model.safetensors", whole, {});  // as written by another program
  damage(dir + "/model.safetensors", "0.bias");
  CHECK_THROWS_WITH_AS(train::TrainedModel::open(dir),
                       doctest::Contains("model.safetensors lacks '0.bias', has a '1.bias'"),
                       FormatError);
}

TEST_CASE("runs: the test loss has no label smoothing, in training and later") {
  const TestFolder folder;
  Settings s = small_run();
  s.set("epochs", "1");
  s.set("label_smoothing", "0.5");
  const train::TrainResult result = train::start_run(s, folder / "run");
  const train::TrainedModel model = train::TrainedModel::open(folder / "run");
  CHECK(result.test->loss == doctest::Approx(model.evaluate().loss).epsilon(1e-9));
}

TEST_CASE("runs: one flipped bit of a weight is detected, and an older checkpoint used") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  Settings s = small_run();
  s.set("epochs", "1");
  train::start_run(s, dir);
  const auto flip_last_byte = [](const std::string& file) {
    std::string bytes = io::read_file(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    io::write_file(file, bytes);
  };
  const std::vector<std::string> checkpoints = checkpoints_of(dir);
  REQUIRE(checkpoints.size() == 2);
  const StateDict whole = io::load_safetensors(dir + "/model.safetensors").tensors;
  flip_last_byte(checkpoints[1]);
  train::resume_run(dir);
  CHECK(toy::difference(io::load_safetensors(dir + "/model.safetensors").tensors, whole) == "");

  for (const std::string& checkpoint : checkpoints_of(dir)) flip_last_byte(checkpoint);
  CHECK_THROWS_WITH_AS(train::resume_run(dir),
                       doctest::Contains("is damaged: the checksum of tensor '"), FormatError);
  flip_last_byte(dir + "/model.safetensors");
  CHECK_THROWS_WITH_AS(train::TrainedModel::open(dir),
                       doctest::Contains("model.safetensors is damaged: the checksum of tensor '"),
                       FormatError);
}

TEST_CASE("runs: damaged or lost best weights do not stop a run from finishing") {
  for (const bool is_lost : {false, true}) {
    CAPTURE(is_lost);
    const TestFolder folder;
    const std::string dir = folder / "run", best = dir + "/best.safetensors";
    Settings s = small_run();
    s.set("epochs", "2");
    s.set("lr", "0");  // the first epoch stays the best
    s.set("early_stopping", "2");
    const train::TrainResult before = train::start_run(s, dir);
    REQUIRE(before.best_epoch == 1);
    std::string bytes = io::read_file(best);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    std::filesystem::remove(best);
    if (!is_lost) io::write_file(best, bytes);
    const train::TrainResult after = train::resume_run(dir, {}, {{"epochs", "4"}});
    CHECK(after.epochs.size() == 4);
    CHECK(after.best_epoch == 3);
    CHECK(io::load_safetensors(best).metadata.at("epoch") == "3");
    CHECK(train::TrainedModel::open(dir).evaluate().loss ==
          doctest::Approx(after.test->loss).epsilon(1e-9));
    CHECK(after.test->epoch == 3);
  }
}

TEST_CASE("runs: a fold with samples other than those of the first fold is refused") {
  const TestFolder folder;
  const std::string dir = folder / "folds", table = folder / "table.csv";
  std::string rows = "a,b,label\n";
  for (int k = 0; k < 60; ++k)
    rows += std::to_string(k % 7) + "," + std::to_string(k % 5) + "," + (k % 2 ? "x" : "y") + "\n";
  io::write_file(table, rows);
  const Settings settings =
      Settings::resolve("mlp:2-4-2", "", {{"data", "csv:" + table}, {"epochs", "1"}});
  const auto changed = [&](int fold, const Settings&, const std::string&) {
    if (fold == 2) io::write_file(table, rows + "1,1,x\n");
    return train::RunOptions();
  };
  const auto refused = doctest::Contains(
      "was changed since the folds began, and all folds must divide the same samples");
  CHECK_THROWS_WITH_AS(train::start_folds(settings, 2, dir, changed), refused, ValueError);
  io::write_file(table, rows);
  CHECK(train::resume_folds(dir).size() == 2);
}

TEST_CASE("runs: folds exclude others from their folder until they have ended") {
  const TestFolder folder;
  const std::string dir = folder / "folds", table = folder / "table.csv";
  std::string rows = "a,b,label\n";
  for (int k = 0; k < 60; ++k)
    rows += std::to_string(k % 7) + "," + std::to_string(k % 5) + "," + (k % 2 ? "x" : "y") + "\n";
  io::write_file(table, rows);
  const auto settings = [&](const char* lr) {
    return Settings::resolve("mlp:2-4-2", "",
                             {{"data", "csv:" + table}, {"epochs", "1"}, {"lr", lr}});
  };
  const auto in_use = doctest::Contains(" is in use by another run (process ");
  int asked = 0;
  train::start_folds(settings("0.1"), 2, dir, [&](int, const Settings&, const std::string&) {
    const std::string kept = io::read_file(dir + "/folds.toml");
    CHECK_THROWS_WITH_AS(train::resume_folds(dir, {}, {{"epochs", "2"}}), in_use, IoError);
    // As if both had begun at the same moment.
    std::filesystem::rename(dir + "/folds.toml", folder / "kept");
    if (asked++ == 0)
      CHECK_THROWS_WITH_AS(train::start_folds(settings("0.2"), 3, dir), in_use, IoError);
    std::filesystem::rename(folder / "kept", dir + "/folds.toml");
    CHECK(io::read_file(dir + "/folds.toml") == kept);
    return train::RunOptions();
  });
  CHECK(asked == 2);
  CHECK(train::resume_folds(dir).size() == 2);
}
