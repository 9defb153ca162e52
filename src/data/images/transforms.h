// Applies a list of transforms to one image: random parameters, and decoding of only the part that
// is needed.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/images.h>
#include <tenon/sample_random.h>

#include "base/philox.h"
#include "data/pixels/image_ops.h"

namespace tenon::data {

/// The random numbers of one sample in one epoch. Each step of a list has its own stream, so adding
/// a step does not change the random numbers of the others.
class ImageDraws {
 public:
  ImageDraws(std::uint64_t seed, std::int64_t epoch, std::int64_t number);
  void begin_step(std::uint64_t step);
  /// The random numbers of a step that is a user's function.
  SampleRandom for_function(std::uint64_t step) const;
  std::uint32_t word();
  /// Values in [0, 1), [low, high), [0, count), and whether an event of this probability occurs.
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  int below(int count);
  bool chance(double probability) { return uniform() < probability; }
  double normal();

 private:
  std::uint64_t own_seed_, seed_, epoch_, number_, step_ = 0, block_ = 0;
  Philox4 words_{};
  int used_ = 4;
};

struct ImageTarget {
  int height, width, channels;
  std::array<std::uint8_t, 3> mean;
  std::optional<io::Colour> background{};  // background of transparent images
};

/// The combined result of the first steps: a box of the image, scaled.
struct FirstSteps {
  io::ImagePart
      part{};  // part that must be decoded: the box and the margin of its resampling filter
  ImageBox box{};
  int width = 0, height = 0;  // size of the result
  std::size_t done = 0;       // number of steps combined
};
FirstSteps first_steps(const std::vector<Transform>& steps, int width, int height,
                       const ImageTarget& target, ImageDraws& draws);

/// An image after the first steps.
struct FirstDecoded {
  Image image;
  std::size_t done = 0;  // number of steps applied
  unsigned losses = 0;   // bits of io::ImageLoss
};
/// Decodes only the part of an image that the first steps need, and applies these steps.
FirstDecoded decoded_first(std::string_view bytes, const std::string& name,
                           const std::vector<Transform>& steps, const ImageTarget& target,
                           ImageDraws& draws);
/// Applies the steps from number `first` on.
Image changed(Image image, const std::vector<Transform>& steps, std::size_t first,
              const ImageTarget& target, ImageDraws& draws);

/// The registered transform of this name; null if there is none. Kept until the program ends.
const RegisteredTransform* find_registered(const std::string& name);
/// All registered transforms by name.
std::vector<const RegisteredTransform*> registered_transforms();

/// Whether a step mixes batches (mixup, cutmix), which the trainer does.
bool mixes_batches(const Transform& step);
/// Whether a step makes several images from one.
bool makes_many(const Transform& step);
/// Throws ValueError for such steps.
void check_single(const std::vector<Transform>& steps);
/// The crops of such a step, in torchvision's order. Throws ShapeError if the image is smaller than
/// a crop.
std::vector<Image> crops_of(const Image& image, const Transform& step, const ImageTarget& target,
                            const std::string& name);
/// Whether a step determines the output size.
bool sets_size(const Transform& step);
/// The k-th parameter of a step, or its default.
double number_of(const Transform& step, std::size_t k);
/// Throws ValueError if the steps do not end with the target's size.
void check_size(const Transforms& steps, std::int64_t height, std::int64_t width);

}  // namespace tenon::data
