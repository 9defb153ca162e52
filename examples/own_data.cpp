// Data of your own: a dataset in ten lines, a transform between Tenon's, datasets that are
// combined, and a rare class that is drawn as often as the others.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

// Rings and crosses of 12 x 12 pixels at random places; every ninth is a cross.
class Shapes : public data::DatasetWith<data::Provenance> {
 public:
  Shapes(std::uint64_t seed, std::int64_t size)
      : DatasetWith({.input_shape = {1, kSide, kSide},
                     .input_dtype = DType::UInt8,
                     .classes = 2,
                     .class_names = {"ring", "cross"}}),
        seed_(seed),
        size_(size) {}
  std::int64_t size() const override { return size_; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto* pixels = static_cast<std::uint8_t*>(inputs);
    auto* target = static_cast<std::int64_t*>(targets);
    for (const std::int64_t index : indices) {
      const bool cross = index % 9 == 0;
      draw(index, cross, pixels);
      pixels += kSide * kSide;
      *target++ = cross ? 1 : 0;
    }
  }
  std::string sample_name(std::int64_t index) const override {
    return "shape " + std::to_string(index) + " of seed " + std::to_string(seed_);
  }

 private:
  static constexpr std::int64_t kSide = 12;

  void draw(std::int64_t index, bool cross, std::uint8_t* pixels) const {
    data::SampleRandom random(seed_, 0, index);
    const double row = random.uniform(3, 8), column = random.uniform(3, 8);
    for (std::int64_t y = 0; y < kSide; ++y)
      for (std::int64_t x = 0; x < kSide; ++x) {
        const double dy = std::fabs(static_cast<double>(y) - row),
                     dx = std::fabs(static_cast<double>(x) - column);
        const bool on = cross ? std::fabs(dx - dy) < 0.8 && dx < 3.5
                              : std::fabs(std::hypot(dx, dy) - 2.8) < 0.8;
        *pixels++ = static_cast<std::uint8_t>((on ? 160 : 20) + random.below(40));
      }
  }

  std::uint64_t seed_;
  std::int64_t size_;
};

// Shares of crosses among the samples of an epoch.
double share_of_crosses(data::Loader& loader) {
  double crosses = 0, all = 0;
  for (data::Batch batch; loader.next(batch);) {
    crosses += sum(cast(batch.target, DType::Float32)).item();
    all += static_cast<double>(batch.size);
  }
  return crosses / all;
}

int main() {
  // A transform of your own stands in lists by its name, between others.
  data::register_transform({.name = "fade",
                            .about = "reduce the contrast by a random factor down to LOW",
                            .parameters = {{.name = "LOW", .usual = 0.5, .low = 0, .high = 1}},
                            .make = [](const std::vector<double>& values) -> data::ImageFunction {
                              return
                                  [low = values[0]](io::Image image, data::SampleRandom& random) {
                                    const double factor = random.uniform(low, 1);
                                    for (std::uint8_t& pixel : image.pixels)
                                      pixel = static_cast<std::uint8_t>(pixel * factor);
                                    return image;
                                  };
                            }});
  const auto transforms = data::Transforms::parse("crop=1,fade=0.6,flip");

  // Two datasets as one, and some of its samples kept for validation.
  const auto shapes =
      data::concat({std::make_shared<Shapes>(1, 300), std::make_shared<Shapes>(2, 200)});
  std::vector<std::int64_t> learned, kept;
  for (std::int64_t k = 0; k < shapes->size(); ++k) (k % 5 == 0 ? kept : learned).push_back(k);
  const auto training = data::augmented(data::subset(shapes, learned), transforms);
  std::printf("%s: the last is %s\n", training->describe().c_str(),
              training->sample_name(training->size() - 1).c_str());
  check(training->sample_name(training->size() - 1) == "shape 199 of seed 2",
        "a sample keeps its name in a composition");

  // Crosses are rare: drawn by weight, both classes come equally often.
  data::Loader plain(training, {.batch = 50}),
      balanced(training,
               {.batch = 50, .sampling = {.weights = data::class_balanced_weights(*training)}});
  const double before = share_of_crosses(plain), after = share_of_crosses(balanced);
  std::printf("crosses in an epoch: %.0f %%, balanced %.0f %%\n", 100 * before, 100 * after);
  check(before < 0.15 && after > 0.4 && after < 0.6, "classes are drawn equally often");

  manual_seed(0);
  nn::Sequential net(nn::Conv2d(1, 8, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                     nn::Flatten(), nn::Linear(8 * 6 * 6, 2));
  optim::Adam adam(net, {.lr = 0.01});
  train::Trainer trainer(net, nn::CrossEntropyLoss(), adam, {.epochs = 8});
  data::Loader validation(data::subset(shapes, kept));
  const train::TrainResult result = trainer.fit(balanced, validation);
  std::printf("validation accuracy %.1f %%\n",
              100 * *result.epochs.back().validation_metrics["accuracy"]);
  check(*result.epochs.back().validation_metrics["accuracy"] > 0.9,
        "the network tells both shapes apart");
}
