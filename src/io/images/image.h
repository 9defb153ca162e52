// Images in memory: PNG, JPEG, WebP and TIFF by their libraries; GIF, BMP, PBM, PGM and PPM by
// hand. Sizes are checked before pixels are allocated.
//
// A decoder returns the stored pixels, including alpha. image.cpp then treats all formats alike: it
// rotates the image upright, drops or composes alpha, and converts to grey or RGB.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tenon/error.h>
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
/// The requested part of an image. The decoder may reduce the part, but each side keeps at least
/// the given number of pixels, if the part has that many.
struct ImagePart {
  ImageBox box;
  int least_width = 0, least_height = 0;
};
/// Chooses the part to decode, given the size of the image rotated upright.
using ChoosePart = std::function<ImagePart(int width, int height)>;
/// The decoded image, and the position of the requested part in it.
struct DecodedPart {
  Image image;
  ImageBox box;
  unsigned losses = 0;  ///< bits of ImageLoss
};
/// Like parse_image(). Of a JPEG, only the part is decoded, at 1/2, 1/4 or 1/8 of its size if that
/// is enough. Other formats are decoded completely.
DecodedPart parse_image_part(std::string_view bytes, const std::string& name,
                             const ImageReading& how, const ChoosePart& choose);

/// An image as stored in its file.
struct StoredImage {
  Image image;          ///< 1 to 4 channels: grey, grey and alpha, RGB, RGBA; alpha is straight
  int orientation = 1;  ///< EXIF's
  unsigned losses = 0;  ///< bits of ImageLoss, except alpha
};
// One decoder for each format.
StoredImage parse_png(std::string_view bytes, const std::string& name);
DecodedPart parse_jpeg(std::string_view bytes, const std::string& name, const ChoosePart& choose);
/// A JPEG with one colour sample per `across` x `down` pixels.
struct PlainJpeg {
  int width, height, across, down;
  bool operator==(const PlainJpeg&) const = default;
};
/// The header of a JPEG that every baseline decoder decodes alike: 8 bits, Y, Cb and Cr in one
/// scan, colours at full, half or quarter resolution, upright, complete. nullopt for other bytes.
std::optional<PlainJpeg> plain_jpeg(std::string_view bytes);
/// The EXIF orientation from the markers before a JPEG's first scan; 1 if there is none. libjpeg's
/// own marker list is not used: libjpeg walks it for each marker, which takes quadratic time.
int jpeg_orientation(std::string_view bytes) noexcept;
StoredImage parse_gif(std::string_view bytes, const std::string& name);
StoredImage parse_pnm(std::string_view bytes, const std::string& name);
StoredImage parse_bmp(std::string_view bytes, const std::string& name);
/// Throws NotSupported in a build without the library; the version is then "".
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
/// Checks the sizes and allocates the pixels. Throws MemoryError if there is no memory for them.
Image make_image(std::uint64_t width, std::uint64_t height, int channels, const std::string& name);
/// The error for a decoder's own allocation that failed.
MemoryError no_memory_to_decode(const std::string& name);
/// Throws no_memory_to_decode() unless `bytes` can be allocated at this moment. For libraries that
/// crash, or report a damaged image, if an allocation of theirs fails.
void require_memory_to_decode(std::uint64_t bytes, const std::string& name);

std::string encode_png(const Image& image);
/// Encodes a grey image as PGM.
std::string encode_ppm(const Image& image);

}  // namespace tenon::io
