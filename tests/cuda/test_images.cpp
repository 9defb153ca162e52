// Images that a GPU decodes, scales and transforms equal the CPU's. The emulated GPU decodes by
// libjpeg and gives the same bytes; a real GPU's decoder may round a level differently.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include <doctest/doctest.h>
#include <tenon/compose.h>
#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/train.h>

#include "../io/jpeg.h"
#include "compiler.h"
#include "cuda/device/nvjpeg.h"
#include "data/samples/image_jobs.h"
#include "data/samples/order.h"
#include "device/backend.h"
#include "gpu.h"
#include "io/images/image.h"
#include "train/sessions/session.h"
#include "train/settings/images.h"

using namespace tenon;

namespace {

bool has_decoder() {
  if (!test::has_gpu()) return false;
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

class Encoded : public data::ImageFiles {
 public:
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

// Noise of odd sizes, some smaller than 24 x 20, so that no decoder scales them.
class Noise : public Encoded {
 public:
  explicit Noise(int count) {
    std::uint32_t state = 5;
    for (int k = 0; k < count; ++k) {
      // The eighth image is scaled down by more than a GPU supports.
      io::Image image{k == 7   ? 801
                      : k == 4 ? 1
                               : 9 + k * 7 % 40,
                      k == 5 ? 3 : 11 + k * 5 % 31,
                      3,
                      {}};
      for (int i = 0; i < 3 * image.width * image.height; ++i) {
        state = state * 1664525u + 1013904223u;
        // Some images use only a part of the levels, so that equalising them has an effect.
        image.pixels.push_back(
            static_cast<std::uint8_t>((state >> 24) / (1 + k % 3) + 20 * (k % 3)));
      }
      bytes_.push_back(io::encode_png(image));
    }
  }
};

// JPEG of all kinds and other images, in sizes that no decoder scales for 24 x 20 pixels.
class Files : public Encoded {
 public:
  explicit Files(int count, bool plain = false) {
    for (int k = 0; k < count; ++k) {
      const io::Image image = drawn(24 + k % 21, 20 + k * 3 % 17, 3, k);
      if (!plain && k % 7 == 3) {
        bytes_.push_back(io::encode_png(image));
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
  }
};

data::ImageOptions with(const std::string& augment) {
  data::ImageOptions options;
  options.input = {3, 20, 24};
  options.augment = data::Transforms::parse(augment);
  options.mean = {0.1, 0.5, 0.9};
  options.on_gpu = true;
  return options;
}

struct Batch {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> labels;
  bool operator==(const Batch&) const = default;
};

// The batches of an epoch from one batch on, as the GPU makes them.
std::vector<Batch> made_on_gpu(const std::shared_ptr<data::Dataset>& set, int workers,
                               std::int64_t epoch, std::int64_t first = 0) {
  set_device("cuda");
  const ImageDecoder decoder = backend_of(current_device()).image_decoder(0);
  INFO(decoder.about);  // or the CPU would make them
  REQUIRE(decoder.changes);
  if (cuda::loaded_nvjpeg().problem.empty()) REQUIRE(decoder.found);
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
    set.get_augmented(std::span(order).subspan(at, count), 11, epoch, batch.bytes.data(),
                      batch.labels.data());
  }
  return out;
}

struct Difference {
  double mean = 0;
  int most = 0;
};

Difference difference(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  REQUIRE(a.size() == b.size());
  Difference out;
  std::size_t count = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    CHECK(a[k].labels == b[k].labels);
    REQUIRE(a[k].bytes.size() == b[k].bytes.size());
    count += a[k].bytes.size();
    for (std::size_t i = 0; i < a[k].bytes.size(); ++i) {
      const int away = std::abs(int{a[k].bytes[i]} - int{b[k].bytes[i]});
      out.mean += away, out.most = std::max(out.most, away);
    }
  }
  out.mean /= static_cast<double>(count);
  return out;
}

// Transforms of colours and of positions, in all kinds of orders.
const char* const kLists[] = {
    "crop",
    "crop=5",
    "resize=21,crop=4",
    "center_crop,vflip",
    "resized_crop,rotate=40",
    "resized_crop,affine=30:0.3:0.6:1.5:20",
    "resized_crop,perspective=0.7:0.8",
    "resized_crop,randaugment=1:30",
    "resized_crop,randaugment=14:17",
    "flip,vflip,rotate,resized_crop",
    "jitter=0.4:0.4:0.4:0.2,crop=3,flip",
    "resize=30,rotate,erase=1,flip,center_crop,cutout=5,vflip,erase=1,flip",
    "grey=0.5,resize=50,pca,resized_crop,perspective,resize=26,crop=1",
    "randaugment,resized_crop,affine,erase,randaugment=3:30,flip,jitter"};

}  // namespace

TEST_CASE("GPU images: decoded, scaled and changed as on the CPU") {
  if (!has_decoder()) return;
  const auto files = std::make_shared<Files>(27);
  for (const std::string augment :
       {"none", "resized_crop", "resized_crop=0:0.3:1,flip,vflip",
        "resized_crop,flip,jitter=0.4:0.4:0.4,erase=0.8", "resized_crop,jitter=0.3:0.3:0.3:0.2",
        "resized_crop,rotate,flip,blur", "flip,pca=0.4,grey=0.5,cutout=9"}) {
    INFO(augment);
    const auto set = data::image_dataset(files, with(augment));
    const Difference found = difference(made_on_gpu(set, 2, 1), made_on_cpu(*set, 1));
    // For a centre crop the CPU decodes only a part, whose offset differs in the last digits.
    const bool crops = augment.starts_with("resized_crop");
    const double bound = !test::compiler_is_emulated() ? 0.5 : crops ? 0 : 1e-3;
    CHECK(found.mean <= bound);
  }
}

TEST_CASE("GPU images: every transform gives the CPU's bytes, in any order") {
  if (!has_decoder()) return;
  const auto noise = std::make_shared<Noise>(24);
  for (const char* augment : kLists) {
    INFO(augment);
    const auto set = data::image_dataset(noise, with(augment));
    for (const std::int64_t epoch : {0, 3})
      CHECK(difference(made_on_gpu(set, 2, epoch), made_on_cpu(*set, epoch)).most == 0);
  }
  for (const char* augment : {"resized_crop,blur=5:0.1:2", "blur=41:0.5:9,crop=2,blur=1"}) {
    INFO(augment);
    const auto set = data::image_dataset(noise, with(augment));
    const Difference found = difference(made_on_gpu(set, 2, 0), made_on_cpu(*set, 0));
    CHECK(found.most <= 1);
    CHECK(found.mean <= 1e-3);
  }
}

TEST_CASE("GPU images: decoded by the CPU and changed by the GPU, the CPU's bytes") {
  if (!test::has_gpu()) return;
  const auto files = std::make_shared<Files>(20);
  for (const char* augment : {"none", "resized_crop,flip,jitter=0.4:0.4:0.4:0.1,erase",
                              "resize=40,crop,randaugment", "rotate,resized_crop=0:0.1:0.4"}) {
    INFO(augment);
    data::ImageOptions options = with(augment);
    options.decode_on_gpu = false;
    const auto set = data::image_dataset(files, options);
    CHECK(difference(made_on_gpu(set, 3, 1), made_on_cpu(*set, 1)).most == 0);
  }
}

TEST_CASE("GPU images: the same for any number of workers and after a resume") {
  if (!has_decoder()) return;
  const auto set =
      data::image_dataset(std::make_shared<Files>(27), with("resized_crop,flip,jitter,erase"));
  const std::vector<Batch> one = made_on_gpu(set, 1, 2);
  CHECK(made_on_gpu(set, 3, 2) == one);
  const std::vector<Batch> rest = made_on_gpu(set, 3, 2, 2);
  CHECK(rest == std::vector<Batch>(one.begin() + 2, one.end()));
  CHECK(made_on_gpu(set, 3, 3) != one);
}

TEST_CASE("GPU images: compositions are made on the GPU too") {
  if (!has_decoder()) return;
  const auto noise = data::image_dataset(std::make_shared<Noise>(24), with("crop=5,rotate,flip"));
  const auto some = data::subset(noise, {20, 3, 3, 8, 15, 0, 1});
  const auto set = data::concat({some, noise});
  REQUIRE(set->as<data::ImageJobs>() != nullptr);
  CHECK(set->as<data::ImageJobs>()->for_device());
  CHECK(set->as<data::ImageJobs>()->device_decodes());
  CHECK(difference(made_on_gpu(set, 2, 3), made_on_cpu(*set, 3)).most == 0);
  // Sets of which a device prepares some only are prepared by the CPU.
  data::ImageOptions on_cpu = with("crop=5,rotate,flip");
  on_cpu.on_gpu = false;
  const auto mixed =
      data::concat({noise, data::image_dataset(std::make_shared<Noise>(24), on_cpu)});
  CHECK_FALSE(mixed->as<data::ImageJobs>()->for_device());
}

TEST_CASE("GPU images: a damaged file is replaced, or an error") {
  if (!has_decoder()) return;
  const auto files = std::make_shared<Files>(16, true);
  std::string& damaged = files->bytes_[4];
  damaged.resize(damaged.size() / 2);  // its end and half of the pixels are missing
  damaged += "\xff\xd9";
  data::ImageOptions options = with("resized_crop");
  auto set = data::image_dataset(files, options);
  const std::vector<Batch> gpu = made_on_gpu(set, 2, 0), cpu = made_on_cpu(*set, 0);
  CHECK(set->broken() == std::vector<std::string>{"4"});
  for (std::size_t b = 0; b < cpu.size(); ++b) CHECK(gpu[b].labels == cpu[b].labels);
  options.broken_is_error = true;
  set = data::image_dataset(files, options);
  CHECK_THROWS_AS(made_on_gpu(set, 2, 0), FormatError);
  set_device("cpu");
}

TEST_CASE("GPU images: what a GPU does not support is refused, or done by the CPU") {
  const auto files = std::make_shared<Files>(9);
  CHECK(data::why_not_on_gpu(with("resize=30,rotate=10,crop=2,randaugment")).empty());
  data::ImageOptions grey = with("flip");
  grey.input = {1, 20, 24};
  CHECK_THROWS_AS(data::image_dataset(files, grey), ValueError);
  data::ImageOptions own = with("crop=5");
  own.augment =
      data::Transforms({data::transforms::random_crop(5),
                        data::transforms::function(
                            "mine", [](io::Image image, data::SampleRandom&) { return image; })});
  CHECK_THROWS_WITH_AS(
      data::image_dataset(files, own),
      doctest::Contains(
          "transform 'mine' is a function of the program's own, which runs on the CPU"),
      ValueError);
  // Without a GPU the CPU makes them, whatever is requested.
  const auto set = data::image_dataset(files, with("resized_crop,flip"));
  data::Loader loader(set, {.batch = 9, .shuffle = false, .workers = 2});
  data::Batch batch;
  REQUIRE(loader.next_stored(batch));
  CHECK(batch.input.dtype() == DType::UInt8);
}

TEST_CASE("GPU images: a run reports where images are decoded, and why") {
  if (!has_decoder()) return;
  train::Settings settings = train::Settings::for_model("resnet20");
  settings.data = "folder:x", settings.device = "cuda", settings.augment_on = "gpu";
  const auto place = [&](const char* augment) {
    return train::place_of_images(settings, with(augment));
  };
  CHECK(place("resized_crop,rotate=5").where == "gpu");
  CHECK(place("resized_crop,flip").about.find("nvJPEG") != std::string::npos);
  data::ImageOptions grey = with("flip");
  grey.input = {1, 20, 24};
  CHECK_THROWS_WITH_AS(train::place_of_images(settings, grey), doctest::Contains("not RGB"),
                       ValueError);
  settings.augment_on = "both";
  CHECK(place("flip").where == "both");
  settings.augment_on = "auto";
  CHECK(train::place_of_images(settings, grey).where == "cpu");
  CHECK(train::place_of_images(settings, grey).about.find("not RGB") != std::string::npos);
  // As the threads suffice; the emulated GPU has engines.
  settings.workers = 11;
  if (test::compiler_is_emulated()) CHECK(place("flip").where == "gpu");
  settings.workers = 12;
  CHECK(place("flip").where == "cpu");
  CHECK(place("flip").about.find("12 threads") != std::string::npos);
  CHECK(place("resized_crop,jitter,flip").where == "both");
  CHECK(place("resized_crop,randaugment").about.find("12 threads") != std::string::npos);
  settings.freeze = "conv1";
  CHECK(place("flip").where == "cpu");
  settings.freeze = "", settings.augment_on = "cpu";
  CHECK(place("randaugment").where == "cpu");
  settings.augment_on = "auto", settings.device = "cpu";
  CHECK(place("flip").about.empty());
  settings.augment_on = "both";
  CHECK_THROWS_AS(place("flip"), ValueError);
}

TEST_CASE("GPU images: a run's settings record where images are decoded") {
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
    const train::ResolvedRun run{train::Settings(settings)};
    return train::Session(run, train::open_data(run)).run.settings.augment_on;
  };
  if (test::compiler_is_emulated()) CHECK(kept("auto", 2) == "gpu");
  CHECK(kept("auto", 16) == "cpu");
  CHECK(kept("gpu", 16) == "gpu");
  CHECK(kept("both", 2) == "both");
  set_device("cpu");
  std::filesystem::remove_all(folder);
}
