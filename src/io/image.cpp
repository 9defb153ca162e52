// Which decoder a picture needs, and the change between grey and RGB.
#include "io/image.h"

#include <tenon/error.h>

#include "base/str.h"
#include "io/file.h"

namespace tenon::io {
namespace {

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
    throw FormatError(
        cat(name, ": the picture's size is ", width, " x ", height, ": it has no pixels"));
  if (width > kMaxPixels || height > kMaxPixels / width)
    throw FormatError(cat(name, ": the picture's size is ", width, " x ", height,
                          ", more than the ", kMaxPixels,
                          " pixels that are read: make it smaller"));
}

Image make_image(std::uint64_t width, std::uint64_t height, int channels, const std::string& name) {
  check_image_size(width, height, name);
  Image image{static_cast<int>(width), static_cast<int>(height), channels, {}};
  try {
    image.pixels.resize(static_cast<std::size_t>(width * height) *
                        static_cast<std::size_t>(channels));
  } catch (const std::bad_alloc&) {
    throw MemoryError(cat(name, ": no memory for a picture of ", width, " x ", height, " pixels"));
  }
  return image;
}

DecodedPart parse_image_part(std::string_view bytes, const std::string& name, int channels,
                             const ChoosePart& choose) {
  if (channels != 0 && channels != 1 && channels != 3)
    throw ValueError(
        cat("load_image: channels is ", channels, "; it takes 0 (as in the file), 1 or 3"));
  DecodedPart out;
  const bool jpeg = bytes.starts_with("\xff\xd8");
  if (jpeg) {
    out = parse_jpeg(bytes, name, choose);
  } else if (bytes.starts_with("\x89PNG")) {
    out.image = parse_png(bytes, name);
  } else if (bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7') {
    out.image = parse_pnm(bytes, name);
  } else if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) {
    out.image = parse_webp(bytes, name);
  } else if (bytes.starts_with(std::string_view("II*\0", 4)) ||
             bytes.starts_with(std::string_view("MM\0*", 4))) {
    out.image = parse_tiff(bytes, name);
  } else if (bytes.starts_with("BM")) {
    out.image = parse_bmp(bytes, name);
  } else {
    throw FormatError(cat(
        name, bytes.empty() ? ": is empty" : ": is neither PNG, JPEG, WebP, TIFF, BMP, PGM nor PPM",
        ": convert it to PNG"));
  }
  if (!jpeg) out.box = choose(out.image.width, out.image.height).box;
  if (channels == 1 && out.image.channels == 3) out.image = to_grey(out.image);
  if (channels == 3 && out.image.channels == 1) out.image = to_rgb(out.image);
  return out;
}

Image parse_image(std::string_view bytes, const std::string& name, int channels) {
  return parse_image_part(bytes, name, channels, whole_image).image;
}

void lay_on_white(const std::uint8_t* rgba, Image& rgb) {
  for (std::size_t i = 0; i < rgb.pixels.size(); i += 3, rgba += 4)
    for (std::size_t c = 0; c < 3; ++c)
      rgb.pixels[i + c] =
          static_cast<std::uint8_t>((rgba[c] * rgba[3] + 255 * (255 - rgba[3]) + 127) / 255);
}

std::vector<ImageFormat> image_formats() {
  return {{"JPEG", jpeg_version()}, {"PNG", png_version()}, {"WebP", webp_version()},
          {"TIFF", tiff_version()}, {"BMP", "Tenon"},       {"PGM, PPM", "Tenon"}};
}

Image load_image(const std::string& path, int channels) {
  return parse_image(read_file(path, 1ull << 30), path, channels);
}

std::string encode_ppm(const Image& image) {
  std::string out =
      cat(image.channels == 1 ? "P5 " : "P6 ", image.width, " ", image.height, " 255\n");
  out.append(reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size());
  return out;
}

void save_png(const std::string& path, const Image& image) { write_file(path, encode_png(image)); }

}  // namespace tenon::io
