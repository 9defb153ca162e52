// Runs that draw classes equally often (setting 'sampling'), and runs with a user's transforms:
// a stopped and resumed run ends with the same bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/sample_random.h>
#include <tenon/train.h>

#include "io/folder.h"
#include "train/sessions/session.h"

namespace {

using namespace tenon;

// 40 rows of class a, 10 of b; x tells them apart.
std::string uneven_table(const TestFolder& dir) {
  std::string rows = "x,y,label\n";
  for (int k = 0; k < 50; ++k)
    rows += std::to_string(k % 7) + "," + std::to_string(k < 40 ? k % 3 : 4 + k % 3) + "," +
            (k < 40 ? "a" : "b") + "\n";
  io::write_file(dir / "rows.csv", rows);
  return "csv:" + dir / "rows.csv";
}

train::Settings settings_for(const std::string& data, const std::string& model) {
  train::Settings settings = train::Settings::for_model(model);
  settings.data = data, settings.epochs = 3, settings.batch = 8, settings.checkpoint_steps = 1;
  return settings;
}

std::string weights_of(const std::string& run) { return io::read_file(run + "/model.safetensors"); }

// The weights of a run that is stopped after some steps and resumed.
std::string stopped_and_resumed(const train::Settings& settings, const std::string& run,
                                int steps) {
  int left = steps;
  train::RunOptions watched;
  watched.stop = [&left] { return left-- <= 0; };
  train::start_run(settings, run, watched);
  train::resume_run(run);
  return weights_of(run);
}

}  // namespace

TEST_CASE("sampling runs: balanced sampling draws classes equally often and resumes exactly") {
  const TestFolder dir;
  train::Settings settings = settings_for(uneven_table(dir), "mlp:2-8-2");
  settings.set("sampling", "balanced");
  const train::ResolvedRun resolved{train::Settings(settings)};
  const train::Session session(resolved, train::open_data(resolved));
  const std::vector<double>& weights = session.train->options().sampling.weights;
  REQUIRE(std::ssize(weights) == session.train->dataset().size());
  double total = 0;
  for (const double weight : weights) total += weight;
  CHECK(total == doctest::Approx(2));
  CHECK_FALSE(session.validation->options().sampling.any());
  // The report says which samples the metrics of an epoch were measured on.
  const std::string drawn = "each epoch draws " + std::to_string(session.train->dataset().size()) +
                            " training samples with replacement";
  CHECK(std::any_of(session.notes.begin(), session.notes.end(),
                    [&](const std::string& note) { return note.starts_with(drawn); }));
  train::start_run(settings, dir / "whole");
  CHECK(stopped_and_resumed(settings, dir / "stopped", 7) == weights_of(dir / "whole"));
  settings.set("sampling", "uniform");
  train::start_run(settings, dir / "uniform");
  CHECK(weights_of(dir / "uniform") != weights_of(dir / "whole"));
}

TEST_CASE("sampling runs: what cannot be balanced is refused") {
  const TestFolder dir;
  train::Settings settings = settings_for(uneven_table(dir), "mlp:2-8-2");
  CHECK_THROWS_WITH_AS(settings.set("sampling", "balance"),
                       doctest::Contains("did you mean 'balanced'?"), ValueError);
  settings.set("sampling", "balanced");
  settings.set("shuffle", "false");
  CHECK_THROWS_WITH_AS(train::start_run(settings, ""), doctest::Contains("'shuffle' is false"),
                       ValueError);
  train::Settings text = settings_for("csv:" + dir / "rows.csv,label=y", "mlp:3-8-1");
  text.set("task", "regression");
  text.set("sampling", "balanced");
  CHECK_THROWS_WITH_AS(train::start_run(text, ""), doctest::Contains("has no single class"),
                       ValueError);
}

TEST_CASE("sampling runs: a run with a user's transform resumes exactly") {
  static const bool registered = [] {
    data::register_transform(
        {.name = "test_speckle",
         .about = "random pixels",
         .parameters = {{.name = "COUNT", .usual = 20, .low = 0, .high = 784}},
         .make = [](const std::vector<double>& values) -> data::ImageFunction {
           return [count = values[0]](io::Image image, data::SampleRandom& random) {
             for (int k = 0; k < static_cast<int>(count); ++k)
               image.pixels[static_cast<std::size_t>(random.below(std::ssize(image.pixels)))] = 255;
             return image;
           };
         }});
    return true;
  }();
  REQUIRE(registered);
  const TestFolder dir;
  train::Settings settings = settings_for("digits:60,20", "mlp:784-10");
  settings.set("augment", "crop=2,test_speckle=40,flip");
  settings.workers = 2;
  train::start_run(settings, dir / "whole");
  CHECK(stopped_and_resumed(settings, dir / "stopped", 10) == weights_of(dir / "whole"));
  settings.set("augment", "crop=2,flip");
  train::start_run(settings, dir / "plain");
  CHECK(weights_of(dir / "plain") != weights_of(dir / "whole"));
}
