// PNG through libpng's simplified interface, which reports errors by return values.
#include <png.h>

#include <tenon/error.h>

#include "base/str.h"
#include "io/image.h"

namespace tenon::io {
namespace {

// Frees what libpng holds for an image, also when an exception passes.
struct PngImage {
  png_image value{};
  PngImage() { value.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&value); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

}  // namespace

std::string png_version() { return cat("libpng ", png_get_libpng_ver(nullptr)); }

Image parse_png(std::string_view bytes, const std::string& name) {
  PngImage png;
  const auto refuse = [&] {
    return FormatError(cat(name, ": damaged PNG (", png.value.message, "): save it again"));
  };
  if (png_image_begin_read_from_memory(&png.value, bytes.data(), bytes.size()) == 0) throw refuse();
  // Those that do not say otherwise hold colours as those of 8 bits do, only finer.
  png.value.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  const bool color = (png.value.format & PNG_FORMAT_FLAG_COLOR) != 0;
  Image image = make_image(png.value.width, png.value.height, color ? 3 : 1, name);
  png.value.format = color ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  const png_color white{255, 255, 255};  // what transparent parts lie on, as in viewers
  if (png_image_finish_read(&png.value, &white, image.pixels.data(), 0, nullptr) == 0)
    throw refuse();
  return image;
}

std::string encode_png(const Image& image) {
  const bool sizes_fit = image.width > 0 && image.height > 0 &&
                         (image.channels == 1 || image.channels == 3) &&
                         image.pixels.size() == static_cast<std::size_t>(image.width) *
                                                    static_cast<std::size_t>(image.height) *
                                                    static_cast<std::size_t>(image.channels);
  if (!sizes_fit)
    throw ValueError(cat("save_png: ", image.pixels.size(), " bytes are no picture of ",
                         image.width, " x ", image.height, " with ", image.channels,
                         " channels (1 or 3)"));
  PngImage png;
  png.value.width = static_cast<png_uint_32>(image.width);
  png.value.height = static_cast<png_uint_32>(image.height);
  png.value.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png.value);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&png.value, bytes.data(), &size, 0, image.pixels.data(), 0,
                                nullptr) == 0)
    throw IoError(cat("save_png: libpng refused: ", png.value.message));
  bytes.resize(size);
  return bytes;
}

}  // namespace tenon::io
