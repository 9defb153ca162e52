// TIFF through libtiff, where the build found it: the first picture of a file, by the library's own
// conversion to colours of 8 bits.
#include <tenon/error.h>

#include "base/str.h"
#include "io/image.h"

#ifdef TENON_WITH_TIFF
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#endif

namespace tenon::io {

#ifdef TENON_WITH_TIFF
namespace {

constexpr tmsize_t kMostAtOnce = tmsize_t{1} << 30;

struct TiffSource {
  std::string_view bytes;
  std::uint64_t at = 0;
  char message[200] = "";
};

TiffSource& tiff_source(thandle_t handle) { return *static_cast<TiffSource*>(handle); }

tmsize_t read_tiff(thandle_t handle, void* out, tmsize_t size) {
  TiffSource& s = tiff_source(handle);
  const std::uint64_t left = s.at < s.bytes.size() ? s.bytes.size() - s.at : 0,
                      count =
                          std::min(left, static_cast<std::uint64_t>(std::max<tmsize_t>(size, 0)));
  if (count > 0) std::memcpy(out, s.bytes.data() + s.at, static_cast<std::size_t>(count));
  s.at += count;
  return static_cast<tmsize_t>(count);
}

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  TiffSource& s = tiff_source(handle);
  s.at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? s.at + offset : s.bytes.size() + offset;
  return s.at;
}

int map_tiff(thandle_t handle, void** base, toff_t* size) {
  TiffSource& s = tiff_source(handle);
  *base = const_cast<char*>(s.bytes.data());
  *size = s.bytes.size();
  return 1;
}

int keep_tiff_error(TIFF* /*tiff*/, void* source, const char* /*module*/, const char* format,
                    va_list values) {
  auto& s = *static_cast<TiffSource*>(source);
  std::vsnprintf(s.message, sizeof s.message, format, values);
  return 1;
}

int drop_tiff_warning(TIFF* /*tiff*/, void* /*source*/, const char* /*module*/,
                      const char* /*format*/, va_list /*values*/) {
  return 1;
}

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
struct FreeTiffOptions {
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};

}  // namespace

std::string tiff_version() {
  const std::string all = TIFFGetVersion();  // "LIBTIFF, Version 4.5.0" and a line of rights
  const std::string line = all.substr(0, all.find('\n'));
  return cat("libtiff ", line.substr(line.rfind(' ') + 1));
}

Image parse_tiff(std::string_view bytes, const std::string& name) {
  TiffSource source{bytes};
  const auto refuse = [&] {
    return FormatError(cat(name, ": damaged TIFF (", source.message, "): save it again"));
  };
  const std::unique_ptr<TIFFOpenOptions, FreeTiffOptions> options(TIFFOpenOptionsAlloc());
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostAtOnce);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_tiff_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), drop_tiff_warning, nullptr);
  const std::unique_ptr<TIFF, CloseTiff> tiff(TIFFClientOpenExt(
      "picture", "r", &source, read_tiff, [](thandle_t, void*, tmsize_t) -> tmsize_t { return 0; },
      seek_tiff, [](thandle_t) { return 0; },
      [](thandle_t h) -> toff_t { return tiff_source(h).bytes.size(); }, map_tiff,
      [](thandle_t, void*, toff_t) {}, options.get()));
  if (tiff == nullptr) throw refuse();
  std::uint32_t width = 0, height = 0;
  if (TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) == 0 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) == 0)
    throw refuse();
  Image image = make_image(width, height, 3, name);
  Image with_alpha = make_image(width, height, 4, name);
  auto* raster = reinterpret_cast<std::uint32_t*>(with_alpha.pixels.data());
  if (TIFFReadRGBAImageOriented(tiff.get(), width, height, raster, ORIENTATION_TOPLEFT, 1) == 0)
    throw refuse();
  for (std::size_t i = 0; i < image.pixels.size() / 3; ++i) {
    const std::uint32_t pixel = raster[i];
    const std::uint8_t parts[] = {
        static_cast<std::uint8_t>(TIFFGetR(pixel)), static_cast<std::uint8_t>(TIFFGetG(pixel)),
        static_cast<std::uint8_t>(TIFFGetB(pixel)), static_cast<std::uint8_t>(TIFFGetA(pixel))};
    // Colours come multiplied by their opacity.
    for (std::size_t c = 0; c < 3; ++c)
      image.pixels[3 * i + c] =
          static_cast<std::uint8_t>(std::min(255, int{parts[c]} + 255 - int{parts[3]}));
  }
  return image;
}

#else

std::string tiff_version() { return ""; }

Image parse_tiff(std::string_view /*bytes*/, const std::string& name) {
  throw NotSupported(
      cat(name, ": this build reads no TIFF: build it where libtiff-dev is, or convert it to PNG"));
}

#endif

}  // namespace tenon::io
