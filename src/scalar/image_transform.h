// The description of one transform of a decoded image, shared by the CPU, GPU kernels and the code
// that draws random transforms.
#pragma once

namespace tenon {

/// One transform of an image with all its parameters.
struct ImageTransform {
  enum Kind : int {
    // Into another image, whose size may differ:
    // kScale resizes the box `numbers` (left, top, right, bottom); it reads only
    // pixels inside the enclosing box of whole pixels.
    kScale,
    kCrop,         // the part from (left, top) on, black outside
    kAffine,       // pixel (x, y) is taken from (a x + b y + c, d x + e y + f), `numbers`
    kPerspective,  // the same, divided by g x + h y + 1; bilinear
    kBlur,         // Gaussian blur over `amount` pixels, standard deviation numbers[0]
    kSharpness,    // by `factor`
    // In place:
    kMirror,
    kUpsideDown,
    kBrightness,  // by `factor`, like the next two
    kContrast,
    kSaturation,
    kHue,    // rotates the hue by `amount` of 256
    kShift,  // adds `numbers` to the channels' levels
    kGrey,
    kErase,         // fills a box of whole pixels with a colour
    kPosterize,     // keeps `amount` bits
    kSolarize,      // inverts levels from numbers[0] on
    kAutoContrast,  // by the image's own levels, like the next one
    kEqualize
  };
  Kind kind = kMirror;
  int to_width = 0, to_height = 0;               // of a result with another size
  int mirrored = 0, upside_down = 0;             // kScale and kCrop: flip the result
  int left = 0, top = 0, width = 0, height = 0;  // in whole pixels
  int amount = 0;
  float factor = 1;
  unsigned char colour[3] = {};
  double numbers[8] = {};
};

/// Whether a transform cannot run in place, because it reads neighbours of the pixels that it
/// writes.
constexpr bool moves_pixels(ImageTransform::Kind kind) {
  return kind <= ImageTransform::kSharpness;
}

/// The most source pixels of one resized pixel on a GPU, and the most pixels of a blur.
inline constexpr int kMostTaps = 64, kMostBlur = 99;

}  // namespace tenon
