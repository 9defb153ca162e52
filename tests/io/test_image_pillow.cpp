// Images of every kind and mode equal Pillow's convert("RGB") and convert("L"). make_images.py
// writes the files and the expected values.
#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/weights.h>

#include "io/archives/tar.h"
#include "io/folder.h"
#include "io/images/image.h"
#include "io/lfs.h"
#include "io/tensors/idx.h"
#include "io/video/video.h"

using namespace tenon;

namespace {

const std::string kImages = "tests/io/images/";

// One line of expected.txt.
struct Expected {
  std::string file, source, rgb, grey;
  int bound = 0, width = 0, height = 0;
};

std::vector<Expected> expected_images() {
  std::istringstream in(io::read_file(kImages + "expected.txt"));
  std::vector<Expected> out;
  for (Expected e; in >> e.file >> e.source >> e.bound >> e.width >> e.height >> e.rgb >> e.grey;)
    out.push_back(e);
  return out;
}

int worst_difference(const io::Image& image, const std::string& hexadecimal) {
  if (hexadecimal.size() != 2 * image.pixels.size()) return 256;
  int worst = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    worst = std::max(worst, std::abs(int{image.pixels[i]} -
                                     std::stoi(hexadecimal.substr(2 * i, 2), nullptr, 16)));
  return worst;
}

bool is_readable(const std::string& file) {
  const bool webp = file.ends_with(".webp"), tiff = file.ends_with(".tif");
  for (const io::ImageFormat& format : io::image_formats())
    if ((webp && format.name == "WebP") || (tiff && format.name == "TIFF"))
      return !format.library.empty();
  return true;
}

io::Image over(const std::string& file, const io::Colour& background) {
  return io::load_image(kImages + file, {3, background});
}

}  // namespace

TEST_CASE("images: every format and mode is decoded as by Pillow") {
  const std::vector<Expected> all = expected_images();
  CHECK(all.size() > 120);
  for (const Expected& e : all) {
    CAPTURE(e.file);
    if (!is_readable(e.file)) {
      CHECK_THROWS_AS(io::load_image(kImages + e.file), NotSupported);
      continue;
    }
    const io::Image rgb = io::load_image(kImages + e.file, 3),
                    grey = io::load_image(kImages + e.file, 1);
    CHECK(std::pair(rgb.width, rgb.height) == std::pair(e.width, e.height));
    CHECK(worst_difference(rgb, e.rgb) <= e.bound);
    CHECK(worst_difference(grey, e.grey) <= e.bound);
  }
}

TEST_CASE("images: a background is composed with straight alpha, in all formats alike") {
  const io::Image plain = io::load_image(kImages + "rgb.png", 3);
  for (const char* file : {"rgba.png", "rgba.webp", "rgba.tif"}) {
    if (!is_readable(file)) continue;
    CAPTURE(file);
    // Transparent colours are kept without a background.
    CHECK(io::load_image(kImages + file, 3).pixels == plain.pixels);
    const io::Image white = over(file, {255, 255, 255}), tinted = over(file, {255, 128, 0});
    for (std::size_t i = 0; i < plain.pixels.size(); ++i) {
      const int alpha = static_cast<int>(i / 3 % 13) * 19, level = plain.pixels[i];
      const int ground[] = {255, 128, 0};
      CHECK(std::abs(white.pixels[i] * 255 - (level * alpha + 255 * (255 - alpha))) <= 127);
      CHECK(std::abs(tinted.pixels[i] * 255 - (level * alpha + ground[i % 3] * (255 - alpha))) <=
            127);
    }
  }
  // Also grey images, transparent colours and palettes.
  CHECK(over("la.png", {255, 0, 0}).pixels[0] == 255);
  CHECK(over("la.png", {255, 0, 0}).pixels[1] == 0);
  CHECK(over("la.png", {9, 9, 9}).pixels[0] == 9);
  const std::size_t key = (2 * 13 + 3) * 3;
  CHECK(over("rgb_key.png", {1, 2, 3}).pixels[key + 2] == 3);
  CHECK(io::load_image(kImages + "rgb_key.png", 3).pixels[key + 2] == 215);
  CHECK(over("palette_alpha.png", {255, 255, 255}).pixels !=
        io::load_image(kImages + "palette_alpha.png", 3).pixels);
  CHECK(over("key.gif", {1, 2, 3}).pixels != io::load_image(kImages + "key.gif", 3).pixels);
  CHECK(over("rgb.png", {1, 2, 3}).pixels == plain.pixels);
}

TEST_CASE("images: losses of decoding are reported") {
  const auto losses = [](const std::string& file, const io::ImageReading& how = {}) {
    const std::string bytes = io::read_file(kImages + file);
    return io::parse_image_part(bytes, file, how,
                                [](int width, int height) {
                                  return io::ImagePart{{0, 0, static_cast<double>(width),
                                                        static_cast<double>(height)},
                                                       width,
                                                       height};
                                })
        .losses;
  };
  CHECK(losses("rgb.png") == 0u);
  CHECK(losses("rgba.png") == io::kAlphaDropped);
  CHECK(losses("rgba.png", {0, io::Colour{255, 255, 255}}) == 0u);
  CHECK(losses("rgba16.png") == (io::kAlphaDropped | io::kLowBitsDropped));
  CHECK(losses("grey16.png") == io::kLowBitsDropped);
  CHECK(losses("animated.png") == io::kFirstImageOnly);
  CHECK(losses("animated.gif") == io::kFirstImageOnly);
  CHECK(losses("p.gif") == 0u);
  CHECK(losses("deep.pgm") == io::kLowBitsDropped);
  if (is_readable("x.webp")) {
    CHECK(losses("animated.webp") == (io::kAlphaDropped | io::kFirstImageOnly));
    CHECK(losses("rgb.webp") == 0u);
  }
  if (is_readable("x.tif")) {
    CHECK(losses("pages.tif") == io::kFirstImageOnly);
    CHECK(losses("rgb16.tif") == io::kLowBitsDropped);
    CHECK(losses("float.tif") == io::kFloatAsBytes);
    CHECK(losses("unspecified.tif") == 0u);
  }
}

TEST_CASE("images: truncated or changed files are refused or read, and never crash") {
  for (const Expected& e : expected_images()) {
    if (!is_readable(e.file)) continue;
    CAPTURE(e.file);
    const std::string bytes = io::read_file(kImages + e.file);
    for (std::size_t n = 0; n < bytes.size(); n += 1 + bytes.size() / 400) {
      std::string changed = bytes;
      changed[n] = static_cast<char>(changed[n] ^ 0x55);
      for (const std::string& bad : {bytes.substr(0, n), changed}) {
        try {
          const io::Image image = io::parse_image(bad, "x", 3);
          CHECK(image.pixels.size() ==
                static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3);
        } catch (const FormatError&) {
        } catch (const NotSupported&) {
        }
      }
    }
  }
}

TEST_CASE("images: floating-point levels outside 0 to 255 are refused with their range") {
  if (!is_readable("x.tif")) return;
  std::string bytes = io::read_file(kImages + "float_255.tif");
  bytes[8] = '\x44', bytes[9] = '\x7a';  // 1000, big-endian
  CHECK_THROWS_WITH_AS(io::parse_image(bytes, "x", 1), doctest::Contains("to 1000"), FormatError);
}

TEST_CASE("images: names of colours") {
  CHECK(io::parse_colour("white") == io::Colour{255, 255, 255});
  CHECK(io::parse_colour("#ff8001") == io::Colour{255, 128, 1});
  for (const char* bad : {"", "whit", "#ff80", "#ff80zz", "ff8000", "#+f8000"})
    CHECK_THROWS_AS(io::parse_colour(bad), ValueError);
}

TEST_CASE("Git LFS: pointers in place of images, arrays, archives and videos are named") {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  CHECK_THROWS_WITH_AS(io::parse_image(pointer, "photo.png", 3),
                       doctest::Contains("photo.png: is a Git LFS pointer"), FormatError);
  CHECK_THROWS_WITH_AS(io::parse_idx(pointer, "train-images-idx3-ubyte"),
                       doctest::Contains("is a Git LFS pointer"), FormatError);
  const std::string name = "photos.tar";
  io::TarReader reader(pointer, name);
  CHECK_THROWS_WITH_AS(reader.next(), doctest::Contains("is a Git LFS pointer"), FormatError);
  if (!io::video_format().library.empty())
    CHECK_THROWS_WITH_AS(io::Video(pointer, "clip.mp4"), doctest::Contains("is a Git LFS pointer"),
                         FormatError);
  const TestFolder dir;
  for (const char* file : {"model.safetensors", "model.npy", "pytorch_model.bin"}) {
    io::write_file(dir / file, pointer);
    CHECK_THROWS_WITH_AS(io::WeightFile(dir / file), doctest::Contains("is a Git LFS pointer"),
                         FormatError);
  }
  CHECK_THROWS_WITH_AS(io::load_safetensors(dir / "model.safetensors"),
                       doctest::Contains("is a Git LFS pointer"), FormatError);
  CHECK_THROWS_WITH_AS(io::inspect_safetensors(dir / "model.safetensors"),
                       doctest::Contains("is a Git LFS pointer"), FormatError);
  CHECK_THROWS_WITH_AS(io::load_npy(dir / "model.npy"), doctest::Contains("is a Git LFS pointer"),
                       FormatError);
  CHECK(io::is_lfs_pointer(pointer.substr(0, 60)));
  CHECK_FALSE(io::is_lfs_pointer("version 1"));
}

TEST_CASE("JPEG: 40,000 segments take time linear in their number") {
  const std::string jpeg = io::read_file(kImages + "rgb420.jpg");
  std::string many = jpeg.substr(0, 2);
  // In quadratic time this took over two seconds, and four times as long for twice as many.
  for (int k = 0; k < 400'000; ++k) many += std::string("\xff\xe1\x00\x02", 4);
  many += jpeg.substr(2);
  CHECK(io::parse_image(many, "x", 3).pixels == io::parse_image(jpeg, "x", 3).pixels);
  CHECK(io::jpeg_orientation(many) == 1);
}
