// Pictures in memory: PNG and JPEG by their libraries, PGM and PPM by hand. Sizes are checked
// before pixels are allocated.
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

/// Decodes by content; channels as in load_image(). `name` is for messages.
Image parse_image(std::string_view bytes, const std::string& name, int channels);

/// A rectangle of a picture, edges in pixels.
struct ImageBox {
  double left = 0, top = 0, right = 0, bottom = 0;
};
/// The part of a picture that is asked for. It may come smaller than it is, but with no fewer than
/// these pixels a side where it has so many.
struct ImagePart {
  ImageBox box;
  int least_width = 0, least_height = 0;
};
/// Says of a picture of this size, turned upright, which part is wanted.
using ChoosePart = std::function<ImagePart(int width, int height)>;
/// What was decoded, and where the part lies in it.
struct DecodedPart {
  Image image;
  ImageBox box;
};
/// As parse_image(). Of a JPEG only what the part needs is decoded, at a half, a quarter or an
/// eighth of its size where that is enough; of the other kinds everything.
DecodedPart parse_image_part(std::string_view bytes, const std::string& name, int channels,
                             const ChoosePart& choose);

// One decoder each; they give 1 or 3 channels, as the file has them.
Image parse_png(std::string_view bytes, const std::string& name);
DecodedPart parse_jpeg(std::string_view bytes, const std::string& name, const ChoosePart& choose);
/// A JPEG whose colours are sampled once for across x down pixels.
struct PlainJpeg {
  int width, height, across, down;
  bool operator==(const PlainJpeg&) const = default;
};
/// Of a JPEG that any decoder of baseline pictures makes the same of: 8 bits, Y,
/// Cb and Cr in one scan, colours of whole, half or quarter resolution, upright, with its end
/// there. None for all other bytes.
std::optional<PlainJpeg> plain_jpeg(std::string_view bytes);
Image parse_pnm(std::string_view bytes, const std::string& name);
Image parse_bmp(std::string_view bytes, const std::string& name);
/// NotSupported in a build without the library, whose version is then "".
Image parse_webp(std::string_view bytes, const std::string& name);
Image parse_tiff(std::string_view bytes, const std::string& name);
std::string jpeg_version();
std::string png_version();
std::string webp_version();
std::string tiff_version();

/// RGBA pixels, as many as `rgb` has, upon white.
void lay_on_white(const std::uint8_t* rgba, Image& rgb);

/// Throws FormatError for no pixels, or more than kMaxPixels.
void check_image_size(std::uint64_t width, std::uint64_t height, const std::string& name);
/// Sizes of the image, checked, and room for its pixels.
Image make_image(std::uint64_t width, std::uint64_t height, int channels, const std::string& name);

std::string encode_png(const Image& image);
/// PGM of a grey picture.
std::string encode_ppm(const Image& image);

}  // namespace tenon::io
