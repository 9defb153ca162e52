// Chooses the decoder of an image, and applies the common steps of all formats: orientation, alpha,
// conversion to grey or RGB.
#include "io/images/image.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/file.h"
#include "io/images/image_exif.h"
#include "io/lfs.h"

namespace tenon::io {
namespace {

constexpr std::uint64_t kMostImageBytes = 1ull << 30;

// Luma of ITU-R BT.601, in 16-bit fixed point.
Image to_grey(const Image& rgb) {
  Image grey{rgb.width, rgb.height, 1, std::vector<std::uint8_t>(rgb.pixels.size() / 3)};
  for (std::size_t i = 0; i < grey.pixels.size(); ++i) {
    const std::uint8_t* p = &rgb.pixels[3 * i];
    grey.pixels[i] =
        static_cast<std::uint8_t>((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16);
  }
  return grey;
}

Image to_rgb(const Image& grey) {
  Image rgb{grey.width, grey.height, 3, std::vector<std::uint8_t>(grey.pixels.size() * 3)};
  for (std::size_t i = 0; i < rgb.pixels.size(); ++i) rgb.pixels[i] = grey.pixels[i / 3];
  return rgb;
}

ImagePart whole_image(int width, int height) {
  return {{0, 0, static_cast<double>(width), static_cast<double>(height)}, width, height};
}

}  // namespace

void check_image_size(std::uint64_t width, std::uint64_t height, const std::string& name) {
  if (width == 0 || height == 0)
    throw make_error<FormatError>(FileName{name}, ": the image's size is ", width, " x ", height,
                                  ": it has no pixels");
  if (width > kMaxPixels || height > kMaxPixels / width)
    throw make_error<FormatError>(FileName{name}, ": the image's size is ", width, " x ", height,
                                  ", more than the ", kMaxPixels,
                                  " pixels that are supported: make it smaller");
}

Image make_image(std::uint64_t width, std::uint64_t height, int channels, const std::string& name) {
  check_image_size(width, height, name);
  Image image{static_cast<int>(width), static_cast<int>(height), channels, {}};
  try {
    image.pixels.resize(static_cast<std::size_t>(width * height) *
                        static_cast<std::size_t>(channels));
  } catch (const std::bad_alloc&) {
    throw MemoryError(cat(name, ": no memory for an image of ", width, " x ", height, " pixels"));
  }
  return image;
}

MemoryError no_memory_to_decode(const std::string& name) {
  return MemoryError(cat(name, ": no memory to decode the image"));
}

void require_memory_to_decode(std::uint64_t bytes, const std::string& name) {
  // volatile: a compiler may leave out an allocation that nobody reads.
  void* volatile block = std::malloc(static_cast<std::size_t>(bytes));
  if (block == nullptr) throw no_memory_to_decode(name);
  std::free(block);
}

namespace {

// Drops alpha, or composes the image over a background. Sets `transparent` if any pixel is not
// opaque.
Image without_alpha(Image image, const std::optional<Colour>& background, bool& transparent) {
  if (image.channels != 2 && image.channels != 4) return image;
  const auto from = static_cast<std::size_t>(image.channels), colours = from - 1;
  const std::size_t pixels = image.pixels.size() / from;
  // A grey image needs colours if the background is not grey.
  const bool tinted =
      background && colours == 1 &&
      ((*background)[0] != (*background)[1] || (*background)[1] != (*background)[2]);
  const std::size_t to = tinted ? 3 : colours;
  Image out{image.width, image.height, static_cast<int>(to),
            std::vector<std::uint8_t>(pixels * to)};
  transparent = false;
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t* p = &image.pixels[i * from];
    const unsigned alpha = p[colours];
    transparent = transparent || alpha != 255;
    for (std::size_t c = 0; c < to; ++c) {
      const unsigned level = p[std::min(c, colours - 1)];
      out.pixels[i * to + c] = static_cast<std::uint8_t>(
          background ? (level * alpha + (*background)[c] * (255 - alpha) + 127) / 255 : level);
    }
  }
  return out;
}

StoredImage stored_image(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("\x89PNG")) return parse_png(bytes, name);
  if (bytes.starts_with("GIF8")) return parse_gif(bytes, name);
  if (bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7')
    return parse_pnm(bytes, name);
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP"))
    return parse_webp(bytes, name);
  for (const char* start : {"II*\0", "MM\0*", "II+\0", "MM\0+"})
    if (bytes.starts_with(std::string_view(start, 4))) return parse_tiff(bytes, name);
  if (bytes.starts_with("BM")) return parse_bmp(bytes, name);
  refuse_lfs_pointer(bytes, name);
  throw make_error<FormatError>(FileName{name},
                                bytes.empty()
                                    ? ": the file is empty"
                                    : ": is not a PNG, JPEG, GIF, WebP, TIFF, BMP, PBM, PGM "
                                      "or PPM image",
                                ": convert it to PNG");
}

}  // namespace

std::string loss_text(unsigned loss, std::int64_t count) {
  const std::string images = count == 1 ? "1 image" : cat(count, " images");
  switch (loss) {
    case kAlphaDropped:
      return cat("transparency was dropped from ", images,
                 " and the colours under it were kept (background=white composes over white)");
    case kFirstImageOnly:
      return cat("only the first frame or page was read from ", images, " with several");
    case kLowBitsDropped:
      return cat(images, " of 16 bits a channel ", count == 1 ? "was" : "were", " reduced to 8");
    default:
      return cat(images, " of floating-point levels ", count == 1 ? "was" : "were",
                 " rounded to 8 bits");
  }
}

DecodedPart parse_image_part(std::string_view bytes, const std::string& name,
                             const ImageReading& how, const ChoosePart& choose) {
  if (how.channels != 0 && how.channels != 1 && how.channels != 3)
    throw ValueError(
        cat("load_image: channels is ", how.channels, "; it takes 0 (as in the file), 1 or 3"));
  DecodedPart out;
  if (bytes.starts_with("\xff\xd8")) {
    out = parse_jpeg(bytes, name, choose);
  } else {
    StoredImage stored = stored_image(bytes, name);
    bool transparent = false;
    out.losses = stored.losses;
    out.image = oriented(without_alpha(std::move(stored.image), how.background, transparent),
                         stored.orientation);
    if (transparent && !how.background) out.losses |= kAlphaDropped;
    out.box = choose(out.image.width, out.image.height).box;
  }
  if (how.channels == 1 && out.image.channels == 3) out.image = to_grey(out.image);
  if (how.channels == 3 && out.image.channels == 1) out.image = to_rgb(out.image);
  return out;
}

Image parse_image(std::string_view bytes, const std::string& name, const ImageReading& how) {
  return parse_image_part(bytes, name, how, whole_image).image;
}

Image parse_image(std::string_view bytes, const std::string& name, int channels) {
  return parse_image(bytes, name, ImageReading{channels, {}});
}

// As in Pillow: each ink is multiplied by the black channel and divided by 255, rounded.
Image rgb_of_cmyk(const Image& cmyk) {
  Image rgb{cmyk.width, cmyk.height, 3, std::vector<std::uint8_t>(cmyk.pixels.size() / 4 * 3)};
  for (std::size_t i = 0, to = 0; i < cmyk.pixels.size(); i += 4)
    for (std::size_t c = 0; c < 3; ++c) {
      const int left = 255 - cmyk.pixels[i + 3], product = cmyk.pixels[i + c] * left + 128;
      rgb.pixels[to++] = static_cast<std::uint8_t>(left - (((product >> 8) + product) >> 8));
    }
  return rgb;
}

Colour parse_colour(const std::string& text) {
  if (text == "white") return {255, 255, 255};
  if (text == "black") return {0, 0, 0};
  if (text == "grey" || text == "gray") return {128, 128, 128};
  unsigned value = 0;
  const char* const last = text.data() + text.size();
  if (text.size() == 7 && text.front() == '#')
    if (const auto [end, error] = std::from_chars(text.data() + 1, last, value, 16);
        error == std::errc() && end == last)
      return {static_cast<std::uint8_t>(value >> 16), static_cast<std::uint8_t>(value >> 8 & 255),
              static_cast<std::uint8_t>(value & 255)};
  throw ValueError(
      cat("'", text, "' is not a colour: use white, black, grey or a code such as #ff8000"));
}

std::vector<ImageFormat> image_formats() {
  return {{"JPEG", jpeg_version()},  {"PNG", png_version()}, {"WebP", webp_version()},
          {"TIFF", tiff_version()},  {"GIF", "Tenon"},       {"BMP", "Tenon"},
          {"PBM, PGM, PPM", "Tenon"}};
}

Image load_image(const std::string& path, const ImageReading& how, Notes* notes) {
  DecodedPart out = parse_image_part(read_file(path, kMostImageBytes), path, how, whole_image);
  for (const unsigned loss : kImageLosses)
    if (notes != nullptr && (out.losses & loss) != 0)
      notes->push_back({loss_text(loss, 1), 1, path});
  return std::move(out.image);
}

Image load_image(const std::string& path, int channels) {
  return load_image(path, ImageReading{channels, {}});
}

std::string encode_ppm(const Image& image) {
  std::string out =
      cat(image.channels == 1 ? "P5 " : "P6 ", image.width, " ", image.height, " 255\n");
  out.append(reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size());
  return out;
}

void save_png(const std::string& path, const Image& image) { write_file(path, encode_png(image)); }

}  // namespace tenon::io
