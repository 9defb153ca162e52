// Frames of videos at given times, in any order; damaged files are refused by name. make_videos.py
// writes the files.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include <tenon/error.h>

#include "io/video/video.h"

using namespace tenon;

namespace {

const std::string kFolder = "tests/io/videos/";
constexpr int kFrames = 24;
constexpr double kRate = 8;

bool no_videos() {
  if (!io::ffmpeg_version().empty()) return false;
  MESSAGE("skipped: this build or machine has no FFmpeg");
  return true;
}

// Mean level of the 8 x 8 pixels at a position.
double level(const io::Image& image, int left, int top) {
  double sum = 0;
  for (int y = top; y < top + 8; ++y)
    for (int x = left; x < left + 8; ++x)
      for (int c = 0; c < 3; ++c)
        sum += image.pixels[static_cast<std::size_t>((y * image.width + x) * 3 + c)];
  return sum / (64 * 3);
}

bool is_frame(const io::Image& image, int k) {
  return image.width == 64 && image.height == 48 &&
         std::abs(level(image, 10, 24) - (20 + 9 * k)) < 4 &&
         std::abs(level(image, 48, 30) - 128) < 6 && level(image, 48, 0) < 40;
}

double middle_of(int k) { return (k + 0.5) / kRate; }

}  // namespace

TEST_CASE("video: the frame at a time does not depend on earlier requests") {
  if (no_videos()) return;
  for (const char* file : {"h264.mp4", "mjpeg.avi", "vp8.webm", "mpeg2.ts"}) {
    CAPTURE(file);
    io::Video video(kFolder + file);
    CHECK(video.seconds() == doctest::Approx(kFrames / kRate).epsilon(0.06));
    for (int n = 0; n < kFrames; ++n) {
      const int k = n * 7 % kFrames;
      CAPTURE(k);
      const io::Image image = video.frame_at(middle_of(k));
      CHECK(is_frame(image, k));
      CHECK(image.pixels == io::Video(kFolder + file).frame_at(middle_of(k)).pixels);
    }
    CHECK(is_frame(video.frame_at(0), 0));
    CHECK_THROWS_AS(video.frame_at(60), FormatError);
  }
  const std::string bytes = io::read_file(kFolder + "h264.mp4");
  CHECK(is_frame(io::Video(bytes, "bytes").frame_at(middle_of(13)), 13));
  io::Video raw(kFolder + "raw.y4m");
  CHECK(raw.seconds() == doctest::Approx(0.75));
  for (const int k : {5, 0, 3}) CHECK(is_frame(raw.frame_at(middle_of(k)), 4 * k));
}

TEST_CASE("video: frames are rotated upright") {
  if (no_videos()) return;
  const io::Image image = io::Video(kFolder + "rotated.mov").frame_at(middle_of(6));
  CHECK(image.width == 48);
  CHECK(image.height == 64);
  CHECK(level(image, 20, 10) == doctest::Approx(20 + 9 * 6).epsilon(0.08));
  CHECK(level(image, 10, 48) == doctest::Approx(128).epsilon(0.06));
  CHECK(level(image, 40, 48) < 40);  // the bar on top is at the right now
}

TEST_CASE("video: a truncated file gives its remaining frames, or is refused") {
  if (no_videos()) return;
  for (const char* file : {"h264.mp4", "mjpeg.avi", "vp8.webm", "mpeg2.ts", "raw.y4m"}) {
    CAPTURE(file);
    const std::string whole = io::read_file(kFolder + file);
    int refused = 0, right = 0;
    for (int k = 0; k < 24; k += 2) {
      const std::string cut = whole.substr(0, whole.size() * 6 / 10);
      const bool raw = std::string(file) == "raw.y4m";
      try {
        const io::Image image = io::Video(cut, "cut").frame_at(middle_of(raw ? k / 4 : k));
        CHECK(is_frame(image, raw ? k / 4 * 4 : k));
        ++right;
      } catch (const FormatError& error) {
        CHECK(std::string(error.what()).starts_with("cut: "));
        ++refused;
      }
    }
    CHECK(refused > 0);
    // An MP4 file has its index at the end.
    CHECK((right > 0) == (std::string(file) != "h264.mp4"));
  }
}

TEST_CASE("video: files that are not videos, and playlists, are refused") {
  if (no_videos()) return;
  for (const std::string& bytes :
       {std::string(), std::string("no video"), std::string(5000, '\0'),
        std::string("ffconcat version 1.0\nfile 'tests/io/videos/h264.mp4'\n"),
        std::string("#EXTM3U\n#EXTINF:3,\ntests/io/videos/mpeg2.ts\n#EXT-X-ENDLIST\n")})
    CHECK_THROWS_AS(io::Video(bytes, "bytes"), FormatError);
  CHECK_THROWS_AS(io::Video(kFolder + "nowhere.mp4"), IoError);
  CHECK(io::looks_like_video("a/b.MP4"));
  CHECK_FALSE(io::looks_like_video("a.mp4/b"));
  CHECK_FALSE(io::looks_like_video("mp4"));
}

TEST_CASE("video: a build without FFmpeg says so") {
  if (!io::ffmpeg_version().empty()) return;
  CHECK_THROWS_AS(io::Video("", "bytes"), NotSupported);
}
