// Image operations with given parameters; random parameters are drawn in image_transforms.cpp.
//
// Results equal those of Pillow's and torchvision's functions of the same names, to one level or
// less. Images are bytes, grey or RGB. Apart from sines and exponentials, the implementation uses
// only operations that every machine rounds in the same way.
#pragma once

#include <array>
#include <cstdint>

#include <tenon/io.h>

#include "io/image.h"

namespace tenon::data {

using io::Image;
using io::ImageBox;

struct ImageSize {
  int width, height;
};
/// Whole pixels within a box, of an image of this size.
struct SeenPixels {
  int left, top, right, bottom;
};
SeenPixels seen_pixels(const ImageBox& within, int width, int height);

/// The box scaled to width x height: triangle filter, as wide as the pixels of the larger side
/// (Pillow's BILINEAR, torchvision's antialias).
Image resized(const Image& image, const ImageBox& box, int width, int height);
/// The same, looking at pixels beyond the box as far as they are within the other.
Image resized(const Image& image, const ImageBox& box, const ImageBox& within, int width,
              int height);
/// What stands at (left, top); black outside the image.
Image cropped(const Image& image, int left, int top, int width, int height);
Image mirrored(const Image& image);  ///< left for right
Image upside_down(const Image& image);

/// Pixel (x, y) is taken from (a x + b y + c, d x + e y + f), coordinates of pixels' centres at
/// one half; black outside. The nearest pixel.
Image affine(const Image& image, const std::array<double, 6>& matrix);
/// The matrix that turns by `angle` degrees (as torchvision's affine: clockwise), shifts by (x, y)
/// pixels, scales, and shears by degrees, around the middle.
std::array<double, 6> affine_matrix(ImageSize size, double angle, double x, double y, double scale,
                                    double shear_x, double shear_y);
/// Counter-clockwise around the middle, as torchvision's rotate.
std::array<double, 6> rotation_matrix(ImageSize size, double degrees);
struct Corner {
  double x, y;
};
/// What perspective() takes to move corners (top left, top right, bottom right, bottom left) from
/// `from` to `to`.
std::array<double, 8> perspective_map(const std::array<Corner, 4>& from,
                                      const std::array<Corner, 4>& to);
/// Pixel (x, y) is taken from (a x + b y + c, d x + e y + f) / (g x + h y + 1), centres at one
/// half; bilinear, black outside.
Image perspective(const Image& image, const std::array<double, 8>& map);

// 1 leaves the image as it is, 0 is black, flat grey, without colour, or blurred.
Image with_brightness(const Image& image, double factor);
Image with_contrast(const Image& image, double factor);
Image with_saturation(const Image& image, double factor);
Image with_sharpness(const Image& image, double factor);
/// Turns the circle of colours by so many of 256 parts; a share of it, -0.5 to 0.5, in such parts.
Image with_hue(const Image& image, std::uint8_t turn);
std::uint8_t hue_turn(double share);
/// Adds levels to the three channels of all pixels; a colour along the principal axes of ImageNet's
/// (Krizhevsky et al., 2012) as such.
Image with_shift(const Image& image, const std::array<double, 3>& shift);
std::array<double, 3> pca_shift(const std::array<double, 3>& alphas);
Image gaussian_blurred(const Image& image, int kernel, double sigma);
/// A rectangle in one colour.
Image erased(const Image& image, int left, int top, int width, int height,
             const std::array<std::uint8_t, 3>& colour);
Image posterized(const Image& image, int bits);
Image solarized(const Image& image, double threshold);
Image auto_contrasted(const Image& image);
Image equalized(const Image& image);
Image grey_of(const Image& image);  ///< as many channels as before

}  // namespace tenon::data
