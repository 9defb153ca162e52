// Pictures that a card decodes, scales and changes: those of the CPU. The emulated card decodes by
// libjpeg and gives the same bytes; the decoder of a real one may round a level otherwise.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/pictures.h>
#include <tenon/train.h>

#include "../io/jpeg.h"
#include "card.h"
#include "compiler.h"
#include "cuda/device/nvjpeg.h"
#include "data/order.h"
#include "io/image.h"
#include "train/pictures.h"
#include "train/session.h"

using namespace tenon;

namespace {

bool has_decoder() {
  if (!test::has_card()) return false;
  if (cuda::loaded_nvjpeg().problem.empty()) return true;
  MESSAGE("skipped: " << cuda::loaded_nvjpeg().problem);
  return false;
}

io::Image drawn(int width, int height, int channels, int number) {
  io::Image image{width, height, channels, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        image.pixels.push_back(static_cast<std::uint8_t>(
            128 + 100 * std::sin(0.13 * (c + 1) * x + 0.1 * number) * std::cos(0.09 * y + c)));
  return image;
}

// JPEG of all kinds and other pictures, of sizes that no decoder reduces for 24 x 20 pixels.
class Files : public data::Pictures {
 public:
  explicit Files(int count, bool plain = false) {
    const std::filesystem::path png = std::filesystem::temp_directory_path() / "tenon-test.png";
    for (int k = 0; k < count; ++k) {
      const io::Image image = drawn(24 + k % 21, 20 + k * 3 % 17, 3, k);
      if (!plain && k % 7 == 3) {
        io::save_png(png.string(), image);
        bytes_.push_back(io::read_file(png.string()));
      } else if (!plain && k % 7 == 5) {
        bytes_.push_back(test::jpeg_of(drawn(30, 30, 1, k), {}));
      } else {
        bytes_.push_back(test::jpeg_of(image, {.progressive = !plain && k % 7 == 6,
                                               .quality = 90,
                                               .across = 1 + k % 2,
                                               .down = 1 + k / 2 % 2,
                                               .orientation = !plain && k % 7 == 2 ? 6 : 1}));
      }
    }
    std::filesystem::remove(png);
  }
  std::int64_t size() const override { return std::ssize(bytes_); }
  std::string bytes(std::int64_t number) const override {
    return bytes_[static_cast<std::size_t>(number)];
  }
  std::int64_t label(std::int64_t number) const override { return number % 3; }
  std::string name(std::int64_t number) const override { return std::to_string(number); }
  std::vector<std::string> class_names() const override { return {"a", "b", "c"}; }
  std::string describe() const override { return "files"; }
  std::vector<std::string> bytes_;
};

data::PictureOptions with(const std::string& augment) {
  data::PictureOptions options;
  options.input = {3, 20, 24};
  options.augment = data::Transforms::parse(augment);
  options.mean = {0.1, 0.5, 0.9};
  options.on_card = true;
  return options;
}

struct Batch {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> labels;
  bool operator==(const Batch&) const = default;
};

// The batches of an epoch from one on, as the card makes them.
std::vector<Batch> made_on_card(const std::shared_ptr<data::Dataset>& set, int workers,
                                std::int64_t epoch, std::int64_t first = 0) {
  set_device("cuda");
  data::LoaderOptions options;
  options.batch = 8, options.workers = workers, options.seed = 11;
  data::Loader loader(set, options);
  loader.set_state({11, epoch, 8 * first});
  std::vector<Batch> out;
  for (data::Batch batch; loader.next_stored(batch);)
    out.push_back({batch.input.to_vector<std::uint8_t>(), batch.target.to_vector<std::int64_t>()});
  set_device("cpu");
  return out;
}

std::vector<Batch> made_on_cpu(const data::Dataset& set, std::int64_t epoch) {
  const std::vector<std::int64_t> order = data::epoch_order(11, epoch, set.size());
  std::vector<Batch> out;
  for (std::size_t at = 0; at < order.size(); at += 8) {
    const std::size_t count = std::min<std::size_t>(8, order.size() - at);
    Batch& batch = out.emplace_back();
    batch.bytes.resize(count * 3 * 20 * 24), batch.labels.resize(count);
    set.get_drawn(std::span(order).subspan(at, count), 11, epoch, batch.bytes.data(),
                  batch.labels.data());
  }
  return out;
}

}  // namespace

TEST_CASE("card pictures: decoded, scaled and changed as on the CPU") {
  if (!has_decoder()) return;
  const auto files = std::make_shared<Files>(27);
  for (const std::string augment :
       {"none", "resized_crop", "resized_crop=0:0.3:1,flip,vflip",
        "resized_crop,flip,jitter=0.4:0.4:0.4,erase=0.8", "resized_crop,jitter=0.3:0.3:0.3:0.2",
        "flip,pca=0.4,grey=0.5,cutout=9"}) {
    INFO(augment);
    const auto set = data::picture_dataset(files, with(augment));
    const std::vector<Batch> card = made_on_card(set, 2, 1), cpu = made_on_cpu(*set, 1);
    REQUIRE(card.size() == cpu.size());
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t b = 0; b < card.size(); ++b) {
      CHECK(card[b].labels == cpu[b].labels);
      REQUIRE(card[b].bytes.size() == cpu[b].bytes.size());
      count += card[b].bytes.size();
      for (std::size_t k = 0; k < card[b].bytes.size(); ++k)
        sum += std::abs(int{card[b].bytes[k]} - int{cpu[b].bytes[k]});
    }
    // Of a middle the CPU decodes a part alone, whose place has other last digits.
    const bool crops = augment.starts_with("resized_crop");
    const double bound = !test::compiler_is_emulated() ? 0.5 : crops ? 0 : 1e-3;
    CHECK(sum / static_cast<double>(count) <= bound);
  }
}

TEST_CASE("card pictures: the same for any number of workers and after a resume") {
  if (!has_decoder()) return;
  const auto set =
      data::picture_dataset(std::make_shared<Files>(27), with("resized_crop,flip,jitter,erase"));
  const std::vector<Batch> one = made_on_card(set, 1, 2);
  CHECK(made_on_card(set, 3, 2) == one);
  const std::vector<Batch> rest = made_on_card(set, 3, 2, 2);
  CHECK(rest == std::vector<Batch>(one.begin() + 2, one.end()));
  CHECK(made_on_card(set, 3, 3) != one);
}

TEST_CASE("card pictures: a damaged file is stood in for, or an error") {
  if (!has_decoder()) return;
  const auto files = std::make_shared<Files>(16, true);
  std::string& damaged = files->bytes_[4];
  damaged.resize(damaged.size() / 2);  // its end is not there, and half of the pixels
  damaged += "\xff\xd9";
  data::PictureOptions options = with("resized_crop");
  auto set = data::picture_dataset(files, options);
  const std::vector<Batch> card = made_on_card(set, 2, 0), cpu = made_on_cpu(*set, 0);
  CHECK(set->broken() == std::vector<std::string>{"4"});
  for (std::size_t b = 0; b < cpu.size(); ++b) CHECK(card[b].labels == cpu[b].labels);
  options.broken_is_error = true;
  set = data::picture_dataset(files, options);
  CHECK_THROWS_AS(made_on_card(set, 2, 0), FormatError);
  set_device("cpu");
}

TEST_CASE("card pictures: what a card does not do is refused, or done by the CPU") {
  const auto files = std::make_shared<Files>(9);
  CHECK(data::why_not_on_card(with("resized_crop,flip,jitter,pca,grey,erase,cutout")).empty());
  CHECK_THROWS_AS(data::picture_dataset(files, with("resized_crop,rotate=10")), ValueError);
  data::PictureOptions grey = with("flip");
  grey.input = {1, 20, 24};
  CHECK_THROWS_AS(data::picture_dataset(files, grey), ValueError);
  // Without a card the CPU makes them, for any way of asking.
  const auto set = data::picture_dataset(files, with("resized_crop,flip"));
  data::Loader loader(set, {.batch = 9, .shuffle = false, .workers = 2});
  data::Batch batch;
  REQUIRE(loader.next_stored(batch));
  CHECK(batch.input.dtype() == DType::UInt8);
}

TEST_CASE("card pictures: a run says where they are made, and why") {
  if (!has_decoder()) return;
  train::Settings settings = train::Settings::for_model("resnet20");
  settings.data = "folder:x", settings.device = "cuda", settings.augment_on = "card";
  const auto place = [&](const char* augment) {
    return train::place_of_pictures(settings, with(augment));
  };
  CHECK(place("resized_crop,flip").on_card);
  CHECK(place("resized_crop,flip").about.find("nvJPEG") != std::string::npos);
  CHECK_THROWS_WITH_AS(place("resized_crop,rotate=5"), doctest::Contains("'rotate'"), ValueError);
  settings.augment_on = "auto";
  CHECK_FALSE(place("resized_crop,rotate=5").on_card);
  CHECK(place("resized_crop,rotate=5").about.find("'rotate'") != std::string::npos);
  // As the threads suffice; the emulated card has engines.
  settings.workers = 7;
  if (test::compiler_is_emulated()) CHECK(place("flip").on_card);
  settings.workers = 8;
  CHECK_FALSE(place("flip").on_card);
  CHECK(place("flip").about.find("8 threads") != std::string::npos);
  settings.workers = 19;
  if (test::compiler_is_emulated()) CHECK(place("resized_crop,jitter").on_card);
  settings.workers = 20;
  CHECK_FALSE(place("resized_crop,jitter").on_card);
  settings.freeze = "conv1";
  CHECK_FALSE(place("flip").on_card);
  settings.freeze = "", settings.augment_on = "cpu";
  CHECK_FALSE(place("flip").on_card);
  settings.augment_on = "auto", settings.device = "cpu";
  CHECK(place("flip").about.empty());
}

TEST_CASE("card pictures: a run keeps where they are made") {
  if (!has_decoder()) return;
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tenon-test-place";
  for (const char* kind : {"a", "b"}) {
    std::filesystem::create_directories(folder / kind);
    for (int k = 0; k < 10; ++k)
      io::save_png((folder / kind / (std::to_string(k) + ".png")).string(), drawn(40, 40, 3, k));
  }
  train::Settings settings = train::Settings::for_model("resnet20");
  settings.data = "folder:" + folder.string(), settings.device = "cuda", settings.batch = 4;
  set_device("cuda");
  const auto kept = [&](const char* asked, int workers) {
    settings.augment_on = asked, settings.workers = workers;
    return train::Session(settings, train::open_data(settings)).settings.augment_on;
  };
  if (test::compiler_is_emulated()) CHECK(kept("auto", 2) == "card");
  CHECK(kept("auto", 16) == "cpu");
  CHECK(kept("card", 16) == "card");
  set_device("cpu");
  std::filesystem::remove_all(folder);
}
