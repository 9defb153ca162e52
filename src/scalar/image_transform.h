// What is made of a decoded image, said so that the CPU, a GPU's kernel and whoever draws it
// share one description.
#pragma once

namespace tenon {

/// One change of an image with all its parameters.
struct ImageTransform {
  enum Kind : int {
    // An image beside the one that is read, of another size perhaps:
    kScale,        // a box, `numbers` its left, top, right, bottom; of the pixels within the box of
                   // whole ones
    kCrop,         // what stands from (left, top) on, black outside
    kAffine,       // pixel (x, y) is taken from (a x + b y + c, d x + e y + f), `numbers`
    kPerspective,  // and these divided by g x + h y + 1, between four pixels
    kBlur,         // over `amount` pixels, a Gauss curve of deviation numbers[0]
    kSharpness,    // by `factor`
    // In place:
    kMirror,
    kUpsideDown,
    kBrightness,  // by `factor`, as the next two
    kContrast,
    kSaturation,
    kHue,    // by `amount` of 256
    kShift,  // of channels, by these levels, `numbers`
    kGrey,
    kErase,         // a box of whole pixels becomes a colour
    kPosterize,     // `amount` bits are left
    kSolarize,      // levels from numbers[0] on
    kAutoContrast,  // by the image's own levels, as the next
    kEqualize
  };
  Kind kind = kMirror;
  int to_width = 0, to_height = 0;               // of an image beside the one that is read
  int mirrored = 0, upside_down = 0;             // kScale and kCrop, when the rest of it is done
  int left = 0, top = 0, width = 0, height = 0;  // whole pixels
  int amount = 0;
  float factor = 1;
  unsigned char colour[3] = {};
  double numbers[8] = {};
};

/// Whether a change cannot be made in place: what it reads stands next to what it writes.
constexpr bool moves_pixels(ImageTransform::Kind kind) {
  return kind <= ImageTransform::kSharpness;
}

/// Of pixels that a scaled one is a mean of, on a GPU; and of those that blur is over.
inline constexpr int kMostTaps = 64, kMostBlur = 99;

}  // namespace tenon
