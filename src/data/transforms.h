// Applies a list of transforms to one image: random parameters, and decoding of only the part that
// is needed.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/images.h>

#include "base/philox.h"
#include "data/image_ops.h"

namespace tenon::data {

/// The random numbers of one sample in one epoch. Each step of a list has a row of its own, so
/// that one step more changes nothing of the others' draws.
class ImageDraws {
 public:
  ImageDraws(std::uint64_t seed, std::int64_t epoch, std::int64_t number);
  void begin_step(std::uint64_t step);
  std::uint32_t word();
  /// In [0, 1), [low, high), [0, count), and whether something of this probability happens.
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  int below(int count);
  bool chance(double probability) { return uniform() < probability; }
  double normal();

 private:
  std::uint64_t seed_, epoch_, number_, step_ = 0, block_ = 0;
  Philox4 words_{};
  int used_ = 4;
};

struct ImageTarget {
  int height, width, channels;
  std::array<std::uint8_t, 3> mean;
  std::optional<io::Colour> background{};  // what transparent parts are composed over
};

/// What the first steps of a list make of an image: a box of it, scaled.
struct FirstSteps {
  io::ImagePart part{};  // what must be decoded: the box and what its edges are means of
  ImageBox box{};
  int width = 0, height = 0;  // of the result
  std::size_t done = 0;       // steps that this is
};
FirstSteps first_steps(const std::vector<Transform>& steps, int width, int height,
                       const ImageTarget& target, ImageDraws& draws);

/// An image after the first steps.
struct FirstDecoded {
  Image image;
  std::size_t done = 0;  // steps that were done
  unsigned losses = 0;   // of io::ImageLoss
};
/// Decodes an image, no more of it than the first steps want, and does these.
FirstDecoded decoded_first(std::string_view bytes, const std::string& name,
                           const std::vector<Transform>& steps, const ImageTarget& target,
                           ImageDraws& draws);
/// The steps from number `first` on.
Image changed(Image image, const std::vector<Transform>& steps, std::size_t first,
              const ImageTarget& target, ImageDraws& draws);

/// Whether a step is about batches, and so for whoever trains.
bool mixes_batches(const Transform& step);
/// Whether a step makes several images of one.
bool makes_many(const Transform& step);
/// Throws ValueError for such steps.
void check_single(const std::vector<Transform>& steps);
/// The images that such a step makes of one, in torchvision's order. Throws ShapeError for a
/// image that is smaller than they are.
std::vector<Image> crops_of(const Image& image, const Transform& step, const ImageTarget& target,
                            const std::string& name);
/// Whether a step decides the size of what comes out.
bool sets_size(const Transform& step);
/// The step's k-th number: as given, or as usual.
double number_of(const Transform& step, std::size_t k);
/// Throws ValueError for steps after which images are not of the target's size.
void check_size(const Transforms& steps, std::int64_t height, std::int64_t width);

}  // namespace tenon::data
