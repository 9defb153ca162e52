// Image operations with given parameters; random parameters are drawn in image_transforms.cpp.
//
// Results equal those of Pillow's and torchvision's functions of the same names, to one level or
// less. Images are bytes, grey or RGB. Apart from sines and exponentials, the implementation uses
// only operations that every machine rounds in the same way.
#pragma once

#include <array>
#include <cstdint>

#include <tenon/io.h>

#include "io/images/image.h"

namespace tenon::data {

using io::Image;
using io::ImageBox;

struct ImageSize {
  int width, height;
};
/// The integer pixel box within a box, for an image of this size.
struct SeenPixels {
  int left, top, right, bottom;
};
SeenPixels seen_pixels(const ImageBox& within, int width, int height);

/// Resizes the box to width x height with a triangle filter whose support is that of the larger
/// scale (Pillow's BILINEAR, torchvision's antialias).
Image resized(const Image& image, const ImageBox& box, int width, int height);
/// The same, with access to pixels outside the box within `other`.
Image resized(const Image& image, const ImageBox& box, const ImageBox& within, int width,
              int height);
/// Crop at (left, top); black outside the image.
Image cropped(const Image& image, int left, int top, int width, int height);
Image mirrored(const Image& image);  ///< horizontal flip
Image upside_down(const Image& image);

/// Affine map, nearest neighbour: pixel (x, y) is taken from (a x + b y + c, d x + e y + f); pixel
/// centres are at one half; black outside.
Image affine(const Image& image, const std::array<double, 6>& matrix);
/// The matrix that rotates by `angle` degrees (clockwise, like torchvision's affine), shifts by (x,
/// y) pixels, scales, and shears by degrees, around the centre.
std::array<double, 6> affine_matrix(ImageSize size, double angle, double x, double y, double scale,
                                    double shear_x, double shear_y);
/// Rotation around the centre, counter-clockwise like torchvision's rotate.
std::array<double, 6> rotation_matrix(ImageSize size, double degrees);
struct Corner {
  double x, y;
};
/// Coefficients for perspective() that map the corners (top left, top right, bottom right, bottom
/// left) from `from` to `to`.
std::array<double, 8> perspective_map(const std::array<Corner, 4>& from,
                                      const std::array<Corner, 4>& to);
/// Pixel (x, y) is taken from (a x + b y + c, d x + e y + f) / (g x + h y + 1), centres at one
/// half; bilinear, black outside.
Image perspective(const Image& image, const std::array<double, 8>& map);

// Factor 1 leaves the image unchanged; 0 gives black, flat grey, no colour, or the blurred image.
Image with_brightness(const Image& image, double factor);
Image with_contrast(const Image& image, double factor);
Image with_saturation(const Image& image, double factor);
Image with_sharpness(const Image& image, double factor);
/// Rotates the hue circle by `shift` of 256 steps; the second function converts a share, -0.5 to
/// 0.5, to such steps.
Image with_hue(const Image& image, std::uint8_t turn);
std::uint8_t hue_steps(double share);
/// Adds values to the three channels of all pixels; and such values for a random colour along
/// ImageNet's principal components (Krizhevsky et al., 2012).
Image with_shift(const Image& image, const std::array<double, 3>& shift);
std::array<double, 3> pca_shift(const std::array<double, 3>& alphas);
Image gaussian_blurred(const Image& image, int kernel, double sigma);
/// Fills a rectangle with one colour.
Image erased(const Image& image, int left, int top, int width, int height,
             const std::array<std::uint8_t, 3>& colour);
Image posterized(const Image& image, int bits);
Image solarized(const Image& image, double threshold);
Image auto_contrasted(const Image& image);
Image equalized(const Image& image);
Image grey_of(const Image& image);  ///< grey values, with the same number of channels

}  // namespace tenon::data
