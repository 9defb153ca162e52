// Evaluations on a GPU of several crops of each image, and of images that cannot be decoded:
// the figures of the CPU.
#include <cmath>
#include <memory>

#include <doctest/doctest.h>
#include <tenon/images.h>
#include <tenon/train.h>

#include "../io/jpeg.h"
#include "gpu.h"

using namespace tenon;

namespace {

class Drawn : public data::ImageFiles {
 public:
  std::int64_t size() const override { return 11; }
  std::string bytes(std::int64_t number) const override {
    if (number == 4 || number == 10) return "no image";
    const int width = 24 + static_cast<int>(number), height = 31 - static_cast<int>(number);
    io::Image image{width, height, 3, {}};
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        for (int c = 0; c < 3; ++c)
          image.pixels.push_back(static_cast<std::uint8_t>(
              128 + 100 * std::sin(0.13 * (c + 1) * x + static_cast<double>(number)) *
                        std::cos(0.09 * y + c)));
    return test::jpeg_of(image, {.quality = 90});
  }
  std::int64_t label(std::int64_t number) const override { return number % 3; }
  std::string name(std::int64_t number) const override { return std::to_string(number); }
  std::vector<std::string> class_names() const override { return {"a", "b", "c"}; }
  std::string describe() const override { return "drawn"; }
};

train::Evaluation evaluated(const char* device, const char* fit) {
  set_device(device);
  manual_seed(5);
  const nn::Sequential net(nn::Flatten(), nn::Linear(3 * 20 * 16, 3));
  optim::Sgd optimizer(net, {.lr = 0.1});
  data::ImageOptions how;
  how.input = {3, 20, 16};
  how.resize = data::Transforms::parse(fit);
  how.broken_left_out = true;
  data::Loader loader(data::image_dataset(std::make_shared<Drawn>(), how),
                      {.batch = 3,
                       .shuffle = false,
                       .workers = 2,
                       .channel_mean = {0.5, 0.4, 0.3},
                       .channel_std = {0.2, 0.3, 0.4}});
  train::Evaluation out =
      train::Trainer(net, nn::CrossEntropyLoss(), optimizer, {}).evaluate(loader);
  set_device("cpu");
  return out;
}

}  // namespace

TEST_CASE("GPU views: crops and skipped images give the CPU's figures") {
  if (!test::has_gpu()) return;
  for (const char* fit : {"resize,center_crop", "resize,ten_crop"}) {
    CAPTURE(fit);
    const train::Evaluation gpu = evaluated("cuda", fit), cpu = evaluated("cpu", fit);
    CHECK(gpu.items == 9);
    CHECK(cpu.items == 9);
    CHECK(gpu.loss == doctest::Approx(cpu.loss).epsilon(1e-4));
    CHECK(gpu.confusion.str() == cpu.confusion.str());
  }
}
