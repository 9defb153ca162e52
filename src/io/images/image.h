// Images in memory: PNG, JPEG, WebP and TIFF by their libraries; GIF, BMP, PBM, PGM and PPM by
// hand. Sizes are checked before pixels are allocated.
//
// A decoder gives what the file holds, alpha included; image.cpp then does the same to all formats:
// turns the image upright, drops alpha or composes it, and makes it grey or RGB.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tenon/io.h>

namespace tenon::io {

inline constexpr std::uint64_t kMaxPixels = 1ull << 26;

/// Decodes an image; the format is detected from the content, like load_image(). `name` is for
/// messages.
Image parse_image(std::string_view bytes, const std::string& name, const ImageReading& how);
Image parse_image(std::string_view bytes, const std::string& name, int channels);

/// Information lost in decoding: bits of DecodedPart::losses.
enum ImageLoss : unsigned {
  kAlphaDropped = 1,    ///< transparency was dropped
  kFirstImageOnly = 2,  ///< other frames or pages were ignored
  kLowBitsDropped = 4,  ///< 16-bit values were reduced to 8 bits
  kFloatAsBytes = 8,    ///< floating-point values were converted to bytes
};
inline constexpr unsigned kImageLosses[] = {kAlphaDropped, kFirstImageOnly, kLowBitsDropped,
                                            kFloatAsBytes};
/// Note text for a number of images with this loss.
std::string loss_text(unsigned loss, std::int64_t count);

/// A rectangle of an image, edges in pixels.
struct ImageBox {
  double left = 0, top = 0, right = 0, bottom = 0;
};
/// The part of an image that is asked for. It may come smaller than it is, but with no fewer than
/// these pixels a side where it has so many.
struct ImagePart {
  ImageBox box;
  int least_width = 0, least_height = 0;
};
/// Says of an image of this size, rotated upright, which part is wanted.
using ChoosePart = std::function<ImagePart(int width, int height)>;
/// The decoded image, and the position of the requested part in it.
struct DecodedPart {
  Image image;
  ImageBox box;
  unsigned losses = 0;  ///< bits of ImageLoss
};
/// As parse_image(). Of a JPEG only what the part needs is decoded, at a half, a quarter or an
/// eighth of its size where that is enough; of the other kinds everything.
DecodedPart parse_image_part(std::string_view bytes, const std::string& name,
                             const ImageReading& how, const ChoosePart& choose);

/// An image as its file holds it.
struct StoredImage {
  Image image;          ///< 1 to 4 channels: grey, grey and alpha, RGB, RGBA; alpha is straight
  int orientation = 1;  ///< EXIF's
  unsigned losses = 0;  ///< of ImageLoss, but for alpha
};
// One decoder for each format.
StoredImage parse_png(std::string_view bytes, const std::string& name);
DecodedPart parse_jpeg(std::string_view bytes, const std::string& name, const ChoosePart& choose);
/// A JPEG whose colours are sampled once for across x down pixels.
struct PlainJpeg {
  int width, height, across, down;
  bool operator==(const PlainJpeg&) const = default;
};
/// Of a JPEG that any decoder of baseline images makes the same of: 8 bits, Y,
/// Cb and Cr in one scan, colours of whole, half or quarter resolution, upright, with its end
/// there. None for all other bytes.
std::optional<PlainJpeg> plain_jpeg(std::string_view bytes);
/// EXIF's orientation in the markers before a JPEG's first scan; 1 where there is none. libjpeg
/// would keep all markers in a list that it walks for each: quadratic in a file of many.
int jpeg_orientation(std::string_view bytes) noexcept;
StoredImage parse_gif(std::string_view bytes, const std::string& name);
StoredImage parse_pnm(std::string_view bytes, const std::string& name);
StoredImage parse_bmp(std::string_view bytes, const std::string& name);
/// Throws NotSupported in a build without the library, whose version is then "".
StoredImage parse_webp(std::string_view bytes, const std::string& name);
StoredImage parse_tiff(std::string_view bytes, const std::string& name);
std::string jpeg_version();
std::string png_version();
std::string webp_version();
std::string tiff_version();

/// Converts CMYK to RGB like Pillow: 255 is full ink.
Image rgb_of_cmyk(const Image& cmyk);

/// Throws FormatError if the image has no pixels, or more than kMaxPixels.
void check_image_size(std::uint64_t width, std::uint64_t height, const std::string& name);
/// Checks the sizes and allocates the pixels.
Image make_image(std::uint64_t width, std::uint64_t height, int channels, const std::string& name);

std::string encode_png(const Image& image);
/// Encodes a grey image as PGM.
std::string encode_ppm(const Image& image);

}  // namespace tenon::io
