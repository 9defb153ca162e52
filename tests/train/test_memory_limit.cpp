// Runs with a memory limit: refused before they have a folder; evaluation uses batches that fit.
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <tenon/context.h>
#include <tenon/error.h>
#include <tenon/train.h>

#include "io/folder.h"

using namespace tenon;
using train::Settings;

namespace {

Context limited_to(std::int64_t bytes) {
  Context context = current_context();
  context.memory_limit = bytes;
  return context;
}

}  // namespace

TEST_CASE("memory limit: evaluation uses smaller batches with the same result") {
  const TestFolder folder;
  const Settings settings =
      Settings::resolve("lenet5", "", {{"data", "digits:64,300"}, {"batch", "4"}, {"epochs", "1"}});
  const train::TrainResult free = train::start_run(settings, folder / "free");
  const ContextScope scope(limited_to(3 << 20));
  const train::TrainResult run = train::start_run(settings, folder / "run");
  REQUIRE(run.epochs.size() == 1);
  CHECK(run.epochs[0].train_loss == free.epochs[0].train_loss);
  CHECK(*run.epochs[0].validation_metrics["accuracy"] ==
        *free.epochs[0].validation_metrics["accuracy"]);
  CHECK(*run.epochs[0].validation_loss ==
        doctest::Approx(*free.epochs[0].validation_loss).epsilon(1e-6));
  // An explicit batch size that does not fit is refused.
  CHECK_THROWS_AS(train::TrainedModel::open(folder / "run").evaluate("", {.batch = 250}),
                  MemoryError);
}

TEST_CASE("memory limit: a run that does not fit leaves no folder, whatever is too large") {
  const TestFolder folder;
  const auto refused = [&](const Settings& settings, std::int64_t limit) {
    const ContextScope scope(limited_to(limit));
    CHECK_THROWS_AS(train::start_run(settings, folder / "none"), MemoryError);
    CHECK(!std::filesystem::exists(folder / "none"));
  };
  const std::vector<std::pair<std::string, std::string>> few = {
      {"data", "digits:64,32"}, {"batch", "8"}, {"epochs", "2"}};
  // Adam's state exceeds the limit; SGD without momentum has no state.
  Settings settings = Settings::resolve("mlp:784-512-10", "", few);
  settings.set("optimizer", "adam");
  refused(settings, 6 << 20);
  settings.set("optimizer", "sgd");
  settings.set("momentum", "0");
  {
    const ContextScope scope(limited_to(6 << 20));
    CHECK_NOTHROW(train::start_run(settings, folder / "fits"));
  }
  // In a later stage all parameters learn.
  settings = Settings::resolve("mlp:784-512-10", "", few);
  settings.set("freeze", "0");
  const ContextScope scope(limited_to(4 << 20));
  CHECK_NOTHROW(train::start_run(settings, folder / "frozen"));
  settings.set("unfreeze_after", "1");
  refused(settings, 4 << 20);
}

TEST_CASE("memory limit: the number of outputs is that of the data") {
  const TestFolder folder;
  std::ofstream text(folder / "text.txt");
  for (int k = 0; k < 200; ++k) text << "a line of few letters " << k << '\n';
  text.close();
  const Settings settings = Settings::resolve(
      "gpt2:layers=1,heads=2,width=32,context=32", "",
      {{"data", "text:" + (folder / "text.txt")}, {"batch", "4"}, {"max_steps", "2"}});
  const ContextScope scope(limited_to(10 << 20));  // 50,257 outputs would take 68 MiB
  CHECK_NOTHROW(train::start_run(settings, folder / "run"));
}
