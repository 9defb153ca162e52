// TIFF with libtiff, if the build found it: the first image of a file. Grey, RGB, palette and CMYK
// images of 1 to 16 bits, and grey and RGB images of 32-bit floats, are read sample by sample, so
// that alpha and rounding are as in other formats; libtiff itself converts YCbCr, Lab and rarer
// kinds.
#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/images/image.h"

#ifdef TENON_WITH_TIFF
#include <tiffio.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>
#endif

namespace tenon::io {

#ifdef TENON_WITH_TIFF
namespace {

constexpr tmsize_t kMostAtOnce = tmsize_t{1} << 30;
constexpr std::uint64_t kMostBeyondImage = std::uint64_t{64} << 20;

// libtiff's small structures: tables of tags, and states of codecs.
constexpr std::uint64_t kSmallStructures = std::uint64_t{1} << 20;

struct TiffSource {
  std::string_view bytes;
  std::uint64_t at = 0;
  char message[200] = "";
  bool no_memory = false, beyond_limit = false;
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
  const std::string_view message = s.message;
  const auto says = [&](const char* words) {
    return message.find(words) != std::string_view::npos;
  };
  // A damaged file asks for more than kMostAtOnce.
  s.beyond_limit = s.beyond_limit || says("beyond the");
  // The words of libtiff and libjpeg for a failed allocation; of zlib's start there are none. Later
  // messages tell of the consequences only.
  s.no_memory = s.no_memory || says("memory") || says("alloc") || says("No space") ||
                says("Insertion in") || message.empty();
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
  const std::string all = TIFFGetVersion();  // "LIBTIFF, Version 4.5.0" and a copyright line
  const std::string line = all.substr(0, all.find('\n'));
  return cat("libtiff ", line.substr(line.rfind(' ') + 1));
}

namespace {

// The tags of an image's directory.
struct TiffLayout {
  std::uint32_t width = 0, height = 0, tile_width = 0, tile_height = 0;
  std::uint16_t bits = 1, samples = 1, format = SAMPLEFORMAT_UINT, planes = PLANARCONFIG_CONTIG,
                photometric = PHOTOMETRIC_MINISBLACK, orientation = ORIENTATION_TOPLEFT,
                ink_set = INKSET_CMYK;
  std::uint16_t extra = EXTRASAMPLE_UNSPECIFIED;  // meaning of the first sample after the colours
  bool has_extra = false, tiled = false;

  bool is_float() const { return format == SAMPLEFORMAT_IEEEFP; }
  int colours() const {
    if (photometric == PHOTOMETRIC_RGB) return 3;
    return photometric == PHOTOMETRIC_SEPARATED ? 4 : 1;
  }
  // As in Pillow: an unspecified fourth sample of RGB is alpha, too.
  bool has_alpha() const {
    if (samples <= colours() || colours() == 4) return false;
    if (has_extra) return extra != EXTRASAMPLE_UNSPECIFIED;
    return photometric == PHOTOMETRIC_RGB && samples == 4;
  }
  // Whether the samples are grey, RGB, palette or CMYK values that this file reads. libtiff
  // converts the others.
  bool is_plain() const {
    const bool inks = photometric == PHOTOMETRIC_SEPARATED && ink_set == INKSET_CMYK;
    const bool known = photometric == PHOTOMETRIC_MINISWHITE || inks ||
                       photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_RGB ||
                       photometric == PHOTOMETRIC_PALETTE;
    const bool whole = bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
    const bool indices = photometric != PHOTOMETRIC_PALETTE || bits <= 8;
    const bool levels = is_float() ? bits == 32 && !inks && photometric != PHOTOMETRIC_PALETTE
                                   : whole && indices && format != SAMPLEFORMAT_INT;
    return known && levels && samples >= colours() && samples <= 16;
  }
};

// libtiff counts the bytes of a tag even if it has no memory for them, and libjpeg then reads them.
void require_jpeg_tables(TIFF* tiff, const std::string& name) {
  std::uint16_t packing = COMPRESSION_NONE;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &packing);
  std::uint32_t size = 0;
  const void* tables = nullptr;
  if (packing == COMPRESSION_JPEG && TIFFGetField(tiff, TIFFTAG_JPEGTABLES, &size, &tables) != 0 &&
      size > 0 && tables == nullptr)
    throw no_memory_to_decode(name);
}

TiffLayout layout_of(TIFF* tiff, const std::string& name) {
  TiffLayout l;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &l.width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &l.height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &l.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &l.samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &l.format);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &l.planes);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_INKSET, &l.ink_set);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &l.orientation);
  if (TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &l.photometric) == 0 && l.samples >= 3)
    l.photometric = PHOTOMETRIC_RGB;
  std::uint16_t extras = 0;
  const std::uint16_t* kinds = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &extras, &kinds) != 0 && extras > 0) {
    if (kinds == nullptr) throw no_memory_to_decode(name);  // libtiff counts them all the same
    l.has_extra = true, l.extra = kinds[0];
  }
  l.tiled = TIFFIsTiled(tiff) != 0;
  if (!l.tiled) return l;
  TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &l.tile_width);
  TIFFGetField(tiff, TIFFTAG_TILELENGTH, &l.tile_height);
  return l;
}

// The k-th sample of a row, as a level or an index. 16-bit samples lose their lower 8 bits.
std::uint8_t sample_at(const std::uint8_t* row, std::size_t k, unsigned bits, bool scale) {
  if (bits == 8) return row[k];
  if (bits == 16) {
    std::uint16_t value = 0;
    std::memcpy(&value, row + 2 * k, sizeof value);
    return static_cast<std::uint8_t>(value >> 8);
  }
  const std::size_t place = k * bits;
  const unsigned most = (1u << bits) - 1,
                 value = row[place / 8] >> (8 - bits - static_cast<unsigned>(place % 8)) & most;
  return static_cast<std::uint8_t>(scale ? value * (255 / most) : value);
}

// Calls use(row, x, y, pixels, plane) for each row of each strip or tile: samples from (x, y) on.
// False when libtiff fails.
template <class Use>
bool each_tiff_row(TIFF* tiff, const TiffLayout& l, const std::string& name, const Use& use) {
  const bool apart = l.planes == PLANARCONFIG_SEPARATE;
  const std::uint16_t planes = apart ? l.samples : std::uint16_t{1};
  const std::uint64_t row_bytes =
      (std::uint64_t{l.width} * (apart ? 1 : l.samples) * l.bits + 7) / 8;
  const auto buffer_bytes = static_cast<std::uint64_t>(
      std::max<tmsize_t>(l.tiled ? TIFFTileSize(tiff) : TIFFScanlineSize(tiff), 0));
  // A tile may be larger than the image, but a small file must not request much memory.
  if (buffer_bytes > row_bytes * l.height + kMostBeyondImage ||
      (!l.tiled && buffer_bytes < row_bytes))
    throw make_error<FormatError>(FileName{name}, ": damaged TIFF (tiles of ", buffer_bytes,
                                  " bytes for an image of ", l.width, " x ", l.height,
                                  "): save it again");
  std::vector<std::uint8_t> buffer(static_cast<std::size_t>(buffer_bytes));
  for (std::uint16_t plane = 0; plane < planes; ++plane) {
    if (!l.tiled) {
      for (std::uint32_t y = 0; y < l.height; ++y) {
        if (TIFFReadScanline(tiff, buffer.data(), y, plane) < 0) return false;
        use(buffer.data(), 0u, y, l.width, plane);
      }
      continue;
    }
    const std::size_t tile_row = static_cast<std::size_t>(TIFFTileRowSize(tiff));
    for (std::uint32_t y = 0; y < l.height; y += l.tile_height)
      for (std::uint32_t x = 0; x < l.width; x += l.tile_width) {
        if (TIFFReadTile(tiff, buffer.data(), x, y, 0, plane) < 0) return false;
        const std::uint32_t wide = std::min(l.tile_width, l.width - x),
                            high = std::min(l.tile_height, l.height - y);
        for (std::uint32_t k = 0; k < high; ++k)
          use(buffer.data() + k * tile_row, x, y + k, wide, plane);
      }
  }
  return true;
}

// Integer samples as bytes: colours or the palette index, and alpha.
bool read_tiff_levels(TIFF* tiff, const TiffLayout& l, const std::string& name, Image& image) {
  const bool index = l.photometric == PHOTOMETRIC_PALETTE,
             apart = l.planes == PLANARCONFIG_SEPARATE;
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t each = apart ? 1 : l.samples;
  const unsigned flip = l.photometric == PHOTOMETRIC_MINISWHITE ? 255 : 0;
  return each_tiff_row(tiff, l, name,
                       [&](const std::uint8_t* row, std::uint32_t x, std::uint32_t y,
                           std::uint32_t pixels, std::uint16_t plane) {
                         std::uint8_t* to =
                             &image.pixels[(std::size_t{y} * l.width + x) * channels];
                         const std::size_t first = apart ? plane : 0, count = apart ? 1 : channels;
                         if (first >= channels) return;
                         for (std::uint32_t k = 0; k < pixels; ++k)
                           for (std::size_t c = 0; c < count; ++c) {
                             const std::uint8_t value =
                                 sample_at(row, k * each + c, l.bits, !index || first + c > 0);
                             to[k * channels + first + c] =
                                 static_cast<std::uint8_t>(first + c == 0 ? value ^ flip : value);
                           }
                       });
}

// 32-bit float levels: in [0, 1], or in [0, 255] if any level is above 1.
bool read_tiff_floats(TIFF* tiff, const TiffLayout& l, const std::string& name, Image& image) {
  const bool apart = l.planes == PLANARCONFIG_SEPARATE;
  const auto channels = static_cast<std::size_t>(image.channels);
  std::vector<float> levels(image.pixels.size());
  if (!each_tiff_row(tiff, l, name,
                     [&](const std::uint8_t* row, std::uint32_t x, std::uint32_t y,
                         std::uint32_t pixels, std::uint16_t plane) {
                       float* to = &levels[(std::size_t{y} * l.width + x) * channels];
                       const std::size_t first = apart ? plane : 0, count = apart ? 1 : channels,
                                         each = apart ? 1 : l.samples;
                       if (first >= channels) return;
                       for (std::uint32_t k = 0; k < pixels; ++k)
                         for (std::size_t c = 0; c < count; ++c)
                           std::memcpy(&to[k * channels + first + c],
                                       row + (k * each + c) * sizeof(float), sizeof(float));
                     }))
    return false;
  const auto [low, high] = std::minmax_element(levels.begin(), levels.end());
  const bool numbers =
      std::all_of(levels.begin(), levels.end(), [](float v) { return v >= 0 && v <= 255; });
  if (!numbers)
    throw make_error<FormatError>(FileName{name}, ": TIFF of floating-point levels from ", *low,
                                  " to ", *high,
                                  ": scale them to 0 to 1, or save them as 8 or 16 bits");
  const float scale = *high > 1 ? 1.0f : 255.0f;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const auto level = static_cast<std::uint8_t>(std::lround(levels[i] * scale));
    image.pixels[i] =
        l.photometric == PHOTOMETRIC_MINISWHITE ? static_cast<std::uint8_t>(255 - level) : level;
  }
  return true;
}

// Palette indices to colours; alpha is kept.
Image tiff_colours(TIFF* tiff, const Image& indices, unsigned bits, const std::string& name) {
  const std::uint16_t* maps[3] = {};
  if (TIFFGetField(tiff, TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2]) == 0)
    throw make_error<FormatError>(FileName{name},
                                  ": damaged TIFF (the palette is missing): save it again");
  for (const auto* map : maps)
    if (map == nullptr) throw no_memory_to_decode(name);
  const std::size_t entries = std::size_t{1} << bits;
  // Some programs write palettes of 8 bits instead of 16.
  bool wide = false;
  for (const auto* map : maps)
    wide = wide || std::any_of(map, map + entries, [](std::uint16_t v) { return v > 255; });
  const auto from = static_cast<std::size_t>(indices.channels);
  Image out = make_image(static_cast<std::uint64_t>(indices.width),
                         static_cast<std::uint64_t>(indices.height), indices.channels + 2, name);
  std::uint8_t* to = out.pixels.data();
  for (std::size_t i = 0; i < indices.pixels.size(); i += from) {
    for (const auto* map : maps) {
      const unsigned level = map[indices.pixels[i]];
      *to++ = static_cast<std::uint8_t>(wide ? level >> 8 : level);
    }
    if (from == 2) *to++ = indices.pixels[i + 1];
  }
  return out;
}

// Converts premultiplied alpha to straight alpha, as in Pillow.
void divide_by_alpha(Image& image) {
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t i = 0; i < image.pixels.size(); i += channels) {
    std::uint8_t* p = &image.pixels[i];
    const unsigned alpha = p[channels - 1];
    for (std::size_t c = 0; c + 1 < channels; ++c)
      p[c] = static_cast<std::uint8_t>(alpha == 0 ? 0 : std::min(255u, 255u * p[c] / alpha));
  }
}

// Reads YCbCr, Lab and rarer kinds with libtiff's own conversion.
bool read_tiff_converted(TIFF* tiff, const TiffLayout& l, const std::string& name, Image& out) {
  out = make_image(l.width, l.height, 4, name);
  std::vector<std::uint32_t> raster(std::size_t{l.width} * l.height);
  if (TIFFReadRGBAImageOriented(tiff, l.width, l.height, raster.data(), l.orientation, 1) == 0)
    return false;
  std::uint8_t* to = out.pixels.data();
  for (const std::uint32_t pixel : raster) {
    *to++ = static_cast<std::uint8_t>(TIFFGetR(pixel));
    *to++ = static_cast<std::uint8_t>(TIFFGetG(pixel));
    *to++ = static_cast<std::uint8_t>(TIFFGetB(pixel));
    *to++ = static_cast<std::uint8_t>(TIFFGetA(pixel));
  }
  divide_by_alpha(out);
  return true;
}

// Whether another page follows. Reduced versions of the image and masks are not pages.
bool has_more_pages(TIFF* tiff) {
  constexpr int kMostLookedAt = 16;
  for (int k = 0; k < kMostLookedAt && TIFFReadDirectory(tiff) == 1; ++k) {
    std::uint32_t kind = 0;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SUBFILETYPE, &kind);
    if ((kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) == 0) return true;
  }
  return false;
}

// `size`: bytes of the file.
bool read_tiff_pixels(TIFF* tiff, const TiffLayout& l, std::uint64_t size, const std::string& name,
                      StoredImage& out) {
  Image& image = out.image;
  if (!l.is_plain()) {
    if (l.bits > 16)
      throw make_error<NotSupported>(FileName{name}, ": TIFF with ", l.bits,
                                     " bits a sample: save it with 8 or 16 bits");
    return read_tiff_converted(tiff, l, name, image);
  }
  const bool alpha = l.has_alpha();
  std::uint16_t packing = COMPRESSION_NONE;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &packing);
  const std::uint64_t stored = std::uint64_t{l.width} * l.height * l.samples * l.bits / 8;
  if (packing == COMPRESSION_NONE && stored > size)
    throw make_error<FormatError>(FileName{name},
                                  ": damaged TIFF (the pixels are truncated): save it again");
  if (l.is_float() && alpha)
    throw make_error<NotSupported>(FileName{name},
                                   ": TIFF of floating-point levels with alpha: save it as 8 bits");
  image = make_image(l.width, l.height, l.colours() + (alpha ? 1 : 0), name);
  if (!(l.is_float() ? read_tiff_floats(tiff, l, name, image)
                     : read_tiff_levels(tiff, l, name, image)))
    return false;
  if (l.photometric == PHOTOMETRIC_PALETTE) image = tiff_colours(tiff, image, l.bits, name);
  if (l.photometric == PHOTOMETRIC_SEPARATED) image = rgb_of_cmyk(image);
  if (alpha && l.extra == EXTRASAMPLE_ASSOCALPHA) divide_by_alpha(image);
  if (l.is_float()) out.losses |= kFloatAsBytes;
  if (l.bits == 16) out.losses |= kLowBitsDropped;
  return true;
}

}  // namespace

StoredImage parse_tiff(std::string_view bytes, const std::string& name) {
  TiffSource source{bytes};
  // libtiff goes on without a tag for which it has no memory, for instance without the palette.
  const auto require_memory = [&] {
    if (source.no_memory && !source.beyond_limit) throw no_memory_to_decode(name);
  };
  const auto refuse = [&] {
    require_memory();
    require_memory_to_decode(kSmallStructures, name);  // zlib's failures may have no words
    return make_error<FormatError>(FileName{name}, ": damaged TIFF (", source.message,
                                   "): save it again");
  };
  const std::unique_ptr<TIFFOpenOptions, FreeTiffOptions> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) throw no_memory_to_decode(name);
  // libtiff 4.5.0 crashes if it cannot extend its table of tags, and for some failed allocations of
  // its JPEG decoder. So the memory is required before it opens the file and before it decodes.
  require_memory_to_decode(kSmallStructures, name);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostAtOnce);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_tiff_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), drop_tiff_warning, nullptr);
  const std::unique_ptr<TIFF, CloseTiff> tiff(TIFFClientOpenExt(
      "image", "r", &source, read_tiff, [](thandle_t, void*, tmsize_t) -> tmsize_t { return 0; },
      seek_tiff, [](thandle_t) { return 0; },
      [](thandle_t h) -> toff_t { return tiff_source(h).bytes.size(); }, map_tiff,
      [](thandle_t, void*, toff_t) {}, options.get()));
  if (tiff == nullptr) throw refuse();
  require_memory();
  require_jpeg_tables(tiff.get(), name);
  const TiffLayout layout = layout_of(tiff.get(), name);
  check_image_size(layout.width, layout.height, name);
  if (layout.tiled && (layout.tile_width == 0 || layout.tile_height == 0)) throw refuse();
  StoredImage out;
  require_memory_to_decode(kSmallStructures, name);
  if (!read_tiff_pixels(tiff.get(), layout, bytes.size(), name, out)) throw refuse();
  out.orientation = layout.orientation;
  if (has_more_pages(tiff.get())) out.losses |= kFirstImageOnly;
  require_memory();
  return out;
}

#else

std::string tiff_version() { return ""; }

StoredImage parse_tiff(std::string_view /*bytes*/, const std::string& name) {
  throw make_error<NotSupported>(
      FileName{name},
      ": this build cannot read TIFF: install libtiff-dev and build again, or "
      "convert the image to PNG");
}

#endif

}  // namespace tenon::io
