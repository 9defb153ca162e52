// verify: runs whose length changed when they were resumed.
#include <unistd.h>

#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/train.h>

#include "base/variable.h"
#include "io/folder.h"

using namespace tenon;
using train::Settings;

namespace {

// Eight steps per epoch; the learning rate depends on the number of epochs.
Settings cosine_run(const std::string& epochs) {
  return Settings::resolve(
      "mlp:784-8-10", "",
      {{"data", "digits:64,16"}, {"epochs", epochs}, {"batch", "8"}, {"schedule", "cosine"}});
}

void check_passes(const std::string& dir, int steps) {
  for (const train::VerifyCheck& check : train::verify_run(dir, steps).checks) {
    CAPTURE(check.name);
    CAPTURE(check.detail);
    CHECK(check.passed);
  }
}

// Rewrites the log as earlier versions did: sessions without their number of steps.
void forget_lengths(const std::string& dir) {
  std::string log = io::read_file(dir + "/log.jsonl");
  for (std::size_t at; (at = log.find(",\"total\":")) != std::string::npos;)
    log.erase(at, log.find_first_of(",}", at + 1) - at);
  io::write_file(dir + "/log.jsonl", log);
}

}  // namespace

TEST_CASE("verify: steps are repeated with the number of epochs of their session") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  train::start_run(cosine_run("1"), dir);
  train::resume_run(dir, {}, {{"epochs", "2"}});
  train::resume_run(dir, {}, {{"epochs", "4"}});
  for (const int steps : {6, 12, 20, 40}) check_passes(dir, steps);
  const train::VerifyReport report = train::verify_run(dir, 20);
  CHECK(report.checks.front().detail == "20 losses agree");

  // A session stopped in the middle of an epoch.
  const std::string cut = folder / "cut";
  Settings s = cosine_run("3");
  s.set("max_steps", "11");
  train::start_run(s, cut);
  train::resume_run(cut, {}, {{"max_steps", "0"}});
  check_passes(cut, 24);
}

TEST_CASE("verify: the plateau schedule is repeated with its validation results") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  train::start_run(Settings::resolve("mlp:784-8-10", "",
                                     {{"data", "digits:64,32"},
                                      {"epochs", "30"},
                                      {"batch", "64"},
                                      {"lr", "3"},
                                      {"schedule", "plateau"}}),
                   dir);
  const std::string log = io::read_file(dir + "/log.jsonl");
  REQUIRE(log.find("\"lr\":0.3") != std::string::npos);
  check_passes(dir, 30);
}

TEST_CASE("verify: reports what cannot be repeated if the log has no lengths") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  train::start_run(cosine_run("2"), dir);
  forget_lengths(dir);
  check_passes(dir, 12);
  train::resume_run(dir, {}, {{"epochs", "3"}});
  const train::VerifyReport report = train::verify_run(dir, 20);
  CHECK(report.passed());
  CHECK(report.checks.front().detail.find("does not say how many epochs") != std::string::npos);
  // The session after that one has a known length.
  train::resume_run(dir, {}, {{"epochs", "5"}});
  CHECK(train::verify_run(dir, 20).passed());
}

TEST_CASE("verify: settings that were edited are detected") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  train::start_run(cosine_run("2"), dir);
  Settings s;
  s.apply_file(dir + "/settings.toml");
  s.set("min_lr_factor", "0.5");
  io::write_file(dir + "/settings.toml", s.toml());
  const train::VerifyReport report = train::verify_run(dir, 12);
  CHECK_FALSE(report.passed());
  CHECK(report.checks.front().detail.find("learning rate") != std::string::npos);
}

TEST_CASE("verify: a run is repeated up to a change of drop_last") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  Settings s = cosine_run("1");
  s.set("data", "digits:60,16");  // seven batches of 8, and one of 4
  train::start_run(s, dir);
  train::resume_run(dir, {}, {{"epochs", "3"}, {"drop_last", "true"}});
  for (const int steps : {6, 8, 20}) check_passes(dir, steps);
  CHECK(train::verify_run(dir, 20).steps == 8);
  CHECK(train::verify_run(dir, 20).run_steps == 22);
}

TEST_CASE("verify: its temporary folder has a unique name, and is removed afterwards") {
  const TestFolder folder, temporary;
  const std::string dir = folder / "run",
                    planted = temporary / ("tenon-verify-" + std::to_string(::getpid()));
  train::start_run(cosine_run("1"), dir);
  std::filesystem::create_directory(planted);
  io::write_file(planted + "/mine", "precious");
  const Variable used("TMPDIR", temporary.path().c_str());
  check_passes(dir, 4);
  CHECK(temporary.count() == 1);
  CHECK(std::filesystem::exists(planted + "/mine"));
  const Variable missing("TMPDIR", (temporary / "nowhere").c_str());
  CHECK_THROWS_WITH_AS(train::verify_run(dir, 4), doctest::Contains("set TMPDIR to a folder"),
                       IoError);
}
