// The number of threads that prepare a run's batches.
#include <filesystem>

#include <doctest/doctest.h>
#include <tenon/context.h>
#include <tenon/io.h>
#include <tenon/train.h>

#include "train/sessions/session.h"

using namespace tenon;

namespace fs = std::filesystem;

TEST_CASE("workers: one, or for image files as many as compute threads, unless set") {
  const fs::path folder = fs::temp_directory_path() / "tenon-test-workers";
  for (const char* kind : {"a", "b"}) {
    fs::create_directories(folder / kind);
    for (int k = 0; k < 10; ++k)
      io::save_png((folder / kind / (std::to_string(k) + ".png")).string(),
                   {8, 8, 3, std::vector<std::uint8_t>(192, 50)});
  }
  train::Settings settings = train::Settings::for_model("resnet20");
  settings.batch = 4;
  const int before = threads();
  set_threads(3);
  const auto workers = [&](const std::string& data, int given) {
    settings.data = data;
    settings.workers = given;
    const train::ResolvedRun run{train::Settings(settings)};
    return train::Session(run, train::open_data(run)).train->options().workers;
  };
  const std::string images = "folder:" + folder.string();
  CHECK(workers(images, 0) == 3);
  CHECK(workers(images, 2) == 2);
  CHECK(workers("scenes:20,10", 0) == 1);
  CHECK(workers("scenes:20,10", 2) == 2);
  set_threads(before);
  fs::remove_all(folder);
}
