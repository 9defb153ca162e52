// Frames of videos as images: their number, their part, and equal frames for any number of threads.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/images.h>

#include "io/folder.h"

using namespace tenon;
using data::Split;

namespace {

bool no_videos() {
  if (!io::video_format().library.empty()) return false;
  MESSAGE("skipped: this build or machine has no FFmpeg");
  return true;
}

void put(const std::string& video, const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::filesystem::copy_file("tests/io/videos/" + video, path);
}

void make_folder(const TestFolder& dir) {
  put("h264.mp4", dir / "in/a/1.mp4");
  put("mjpeg.avi", dir / "in/b/2.avi");
  put("vp8.webm", dir / "in/b/deep/3.webm");
  io::save_png(dir / "in/a/4.png", {40, 30, 3, std::vector<std::uint8_t>(3600, 200)});
}

std::vector<float> all(const std::shared_ptr<data::Dataset>& set, int workers) {
  data::Loader loader(set, {.batch = 3, .shuffle = false, .workers = workers});
  std::vector<float> out;
  for (data::Batch batch; loader.next(batch);) {
    const std::vector<float> numbers = batch.input.to_vector<float>();
    out.insert(out.end(), numbers.begin(), numbers.end());
  }
  return out;
}

}  // namespace

TEST_CASE("videos: frames evenly spaced, each with its video's class") {
  if (no_videos()) return;
  const TestFolder dir;
  make_folder(dir);
  const auto set = data::open_image_folder(dir / "in", Split::Train, {.whole = true}, {.count = 4});
  REQUIRE(set->size() == 13);
  CHECK(set->name(2) == (dir / "in/a/1.mp4") + ", frame 3 of 4");
  CHECK(set->name(4) == dir / "in/a/4.png");
  CHECK(set->label(3) == 0);
  CHECK(set->label(5) == 1);
  CHECK(set->label(12) == 1);
  data::ImageOptions how;
  how.input = {1, 48, 48};
  how.resize = data::Transforms::parse("resize=48,center_crop");
  const auto images = data::image_dataset(set, how);
  // Frames 3, 9, 15 and 21 of 24; the left half of a frame identifies it.
  std::vector<std::uint8_t> input(48 * 48);
  std::int64_t label = 0;
  for (std::int64_t k = 0; k < 4; ++k)
    for (const std::int64_t first : {0, 5, 9}) {
      const std::int64_t number = first + k;
      images->get({&number, 1}, input.data(), &label);
      CHECK(input[30 * 48 + 10] == doctest::Approx(20 + 9 * (3 + 6 * k)).epsilon(0.08));
    }
  CHECK(all(images, 0) == all(images, 3));
  CHECK(images->broken().empty());
  // Decoded frames are kept in memory.
  const std::vector<float> before = all(images, 0);
  for (const char* file : {"a/1.mp4", "b/2.avi", "b/deep/3.webm"})
    std::filesystem::remove(dir / (std::string("in/") + file));
  CHECK(all(images, 2) == before);
}

TEST_CASE("videos: every N seconds, skipped, in lists; one video is in one part") {
  if (no_videos()) return;
  const TestFolder dir;
  make_folder(dir);
  const std::string folder = "folder:" + (dir / "in") + ",size=16";
  const auto size = [](const std::string& spec, Split part = Split::Train) {
    return data::open_dataset(spec, part)->size();
  };
  const std::string whole = folder + ",validation=0,split=0";
  CHECK(size(whole) == 3 * 8 + 1);
  CHECK(size(whole + ",every=0.5") == 3 * 6 + 1);
  CHECK(size(whole + ",every=60") == 3 + 1);
  CHECK(size("folder:" + (dir / "in") + ",validation=0,frames=0,split=0") == 1);
  for (const char* split : {",split=0.25,seed=1", ",split=0.5,seed=2", ",split=0.5,seed=3"}) {
    const auto train = data::open_dataset(folder + split, Split::Train)->images(),
               test = data::open_dataset(folder + split, Split::Test)->images();
    const auto held = data::open_dataset(folder + split, Split::Validation);
    CHECK(train->size() + test->size() + (held ? held->size() : 0) == 25);
    for (std::int64_t i = 0; i < train->size(); ++i)
      for (std::int64_t j = 0; j < test->size(); ++j)
        CHECK(train->name(i).substr(0, train->name(i).find(',')) !=
              test->name(j).substr(0, test->name(j).find(',')));
  }
  io::write_file(dir / "list.txt", "in/a/1.mp4 x\nin/a/4.png y\n");
  CHECK(size("list:" + (dir / "list.txt") + ",frames=3,split=0,validation=0") == 4);
  for (const char* more : {",frames=-1", ",frames=x", ",frames=1e6", ",every=-1"})
    CHECK_THROWS_AS(size(whole + more), ValueError);
  CHECK(data::open_video(dir / "in/a/1.mp4", {.every = 1})->size() == 3);
  CHECK_THROWS_AS(data::open_video(dir / "in/a/4.png"), FormatError);
  CHECK_THROWS_AS(data::open_video(dir / "in/a/none.mp4"), IoError);
}

TEST_CASE("videos: damaged videos count as broken images, with names") {
  if (no_videos()) return;
  const TestFolder dir;
  make_folder(dir);
  io::write_file(dir / "in/a/0.mp4", "no video");
  const std::string avi = io::read_file(dir / "in/b/2.avi");
  io::write_file(dir / "in/b/2.avi", avi.substr(0, avi.size() * 7 / 10));
  data::ImageOptions how;
  how.input = {3, 16, 16};
  how.broken_left_out = true;
  const auto images =
      data::open_image_folder(dir / "in", Split::Train, {.whole = true}, {.count = 4});
  const auto set = data::image_dataset(images, how);
  all(set, 2);
  const std::vector<std::string> broken = set->broken();
  REQUIRE(broken.size() >= 5);
  CHECK(broken[0] == (dir / "in/a/0.mp4") + ", frame 1 of 4");
  CHECK(broken.back() == (dir / "in/b/2.avi") + ", frame 4 of 4");
  CHECK(broken.size() < 8);
  how.broken_is_error = true;
  CHECK_THROWS_AS(all(data::image_dataset(images, how), 0), FormatError);
  // A video of unknown length counts as one sample.
  const auto by_second =
      data::open_image_folder(dir / "in", Split::Train, {.whole = true}, {.every = 1});
  CHECK(by_second->name(0) == (dir / "in/a/0.mp4") + ", frame 1 of 1");
  CHECK(by_second->name(1) == (dir / "in/a/1.mp4") + ", frame 1 of 3");
}
