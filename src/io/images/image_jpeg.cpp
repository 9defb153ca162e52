// JPEG with libjpeg. The library reports errors with longjmp, so functions that it may jump out of
// contain no object with a destructor; the typed error is thrown after the library has been cleaned
// up.
#include <cstdio>  // jpeglib.h needs it

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <utility>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/images/image.h"
#include "io/images/image_exif.h"

namespace tenon::io {
namespace {

// A few bytes of a progressive file can request very many passes over the image. The number of
// scans is limited, and so is scans times pixels. Encoders write 10 to 15 scans.
constexpr int kMaxScans = 200;
constexpr std::int64_t kMaxScannedPixels = std::int64_t{1} << 31;

struct Decoder {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX] = "";
};

Decoder& decoder_of(j_common_ptr info) { return *static_cast<Decoder*>(info->client_data); }

[[noreturn]] void leave(j_common_ptr info) {
  info->err->format_message(info, decoder_of(info).message);
  std::longjmp(decoder_of(info).escape, 1);
}

// Warnings that mean lost image data are errors here; others (odd markers, extra bytes) are
// common and harmless.
void on_message(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
    leave(info);
}

void on_progress(j_common_ptr info) {
  const jpeg_decompress_struct& d = *reinterpret_cast<j_decompress_ptr>(info);
  const std::int64_t pixels = std::int64_t{d.image_width} * d.image_height;
  if (d.input_scan_number <= kMaxScans && d.input_scan_number * pixels <= kMaxScannedPixels) return;
  std::snprintf(decoder_of(info).message, JMSG_LENGTH_MAX, "more than %d scans",
                d.input_scan_number - 1);
  std::longjmp(decoder_of(info).escape, 1);
}

void start(Decoder& d) {
  d.info.err = jpeg_std_error(&d.errors);
  d.errors.error_exit = leave;
  d.errors.emit_message = on_message;
  d.errors.output_message = [](j_common_ptr) {};
  d.info.client_data = &d;
  d.progress.progress_monitor = on_progress;
}

bool read_header(Decoder& d, const unsigned char* bytes, unsigned long size) {
  if (setjmp(d.escape) != 0) return false;
  jpeg_create_decompress(&d.info);
  d.info.progress = &d.progress;
  jpeg_mem_src(&d.info, bytes, size);
  jpeg_read_header(&d.info, TRUE);
  return true;
}

// The decoded part of the image; left and width are rounded to whole blocks of the file.
struct Window {
  JDIMENSION left = 0, top = 0, width = 0, height = 0;
};

bool start_pixels(Decoder& d, Window& window) {
  if (setjmp(d.escape) != 0) return false;
  d.info.out_color_space = d.info.num_components == 1   ? JCS_GRAYSCALE
                           : d.info.num_components == 4 ? JCS_CMYK
                                                        : JCS_RGB;
  d.info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&d.info);
#ifdef LIBJPEG_TURBO_VERSION
  if (window.width < d.info.output_width) jpeg_crop_scanline(&d.info, &window.left, &window.width);
  if (window.top > 0) jpeg_skip_scanlines(&d.info, window.top);
#endif
  return true;
}

bool read_pixels(Decoder& d, const Window& window, std::uint8_t* pixels) {
  if (setjmp(d.escape) != 0) return false;
  const std::size_t row = static_cast<std::size_t>(d.info.output_width) *
                          static_cast<std::size_t>(d.info.output_components);
  while (d.info.output_scanline < window.top + window.height) {
    JSAMPROW line = pixels + row * (d.info.output_scanline - window.top);
    jpeg_read_scanlines(&d.info, &line, 1);
  }
  if (d.info.output_scanline == d.info.output_height)
    jpeg_finish_decompress(&d.info);
  else
    jpeg_abort_decompress(&d.info);
  return true;
}

// Adobe's programs store inverted CMYK (255: no ink). It is assumed for every CMYK file.
Image rgb_of_inverted(Image cmyk) {
  for (std::uint8_t& ink : cmyk.pixels) ink = static_cast<std::uint8_t>(255 - ink);
  return rgb_of_cmyk(cmyk);
}

struct Cleanup {
  Decoder& d;
  ~Cleanup() { jpeg_destroy_decompress(&d.info); }
};

// The smallest scale, in eighths, that keeps the requested number of pixels.
unsigned eighths_for(const ImagePart& part) {
  for (const unsigned eighths : {1u, 2u, 4u})
    if ((part.box.right - part.box.left) * eighths >= 8.0 * part.least_width &&
        (part.box.bottom - part.box.top) * eighths >= 8.0 * part.least_height)
      return eighths;
  return 8;
}

// The window of the whole image that contains the part. Colours are smoothed across pixels, so the
// window includes neighbouring pixels.
Window window_around(const ImageBox& box, JDIMENSION width, JDIMENSION height) {
  constexpr double kNeighbours = 2;
  const auto low = [](double edge) {
    return static_cast<JDIMENSION>(std::max(0.0, std::floor(edge) - kNeighbours));
  };
  const auto high = [](double edge, JDIMENSION most) {
    return static_cast<JDIMENSION>(
        std::clamp(std::ceil(edge) + kNeighbours, 1.0, static_cast<double>(most)));
  };
  Window out{low(box.left), low(box.top), 0, 0};
  out.left = std::min(out.left, width - 1), out.top = std::min(out.top, height - 1);
  out.width = std::max(high(box.right, width), out.left + 1) - out.left;
  out.height = std::max(high(box.bottom, height), out.top + 1) - out.top;
  return out;
}

}  // namespace

std::string jpeg_version() {
#ifdef LIBJPEG_TURBO_VERSION
  constexpr int number = LIBJPEG_TURBO_VERSION_NUMBER;
  return cat("libjpeg-turbo ", number / 1000000, ".", number / 1000 % 1000, ".", number % 1000);
#else
  return cat("libjpeg ", JPEG_LIB_VERSION / 10);
#endif
}

DecodedPart parse_jpeg(std::string_view bytes, const std::string& name, const ChoosePart& choose) {
  Decoder d;
  start(d);
  const Cleanup cleanup{d};
  const auto require = [&](bool is_read) {
    if (is_read) return;
    if (d.errors.msg_code == JERR_OUT_OF_MEMORY) throw no_memory_to_decode(name);
    throw make_error<FormatError>(FileName{name}, ": damaged or truncated JPEG (", d.message,
                                  "): save it again");
  };
  require(read_header(d, reinterpret_cast<const unsigned char*>(bytes.data()),
                      static_cast<unsigned long>(bytes.size())));
  const int components = d.info.num_components;
  if (components != 1 && components != 3 && components != 4)
    throw make_error<NotSupported>(
        FileName{name}, ": JPEG with ", components,
        " colour components (1, 3 or 4 are supported): convert it to RGB");
  // Phones store the sensor's rows and note the rotation in EXIF.
  const int orientation = jpeg_orientation(bytes);
  const bool exchanged = orientation >= 5;
  const auto width = static_cast<int>(exchanged ? d.info.image_height : d.info.image_width),
             height = static_cast<int>(exchanged ? d.info.image_width : d.info.image_height);
  check_image_size(d.info.image_width, d.info.image_height, name);
  const ImagePart part = choose(width, height);
  d.info.scale_num = eighths_for(part), d.info.scale_denom = 8;
  jpeg_calc_output_dimensions(&d.info);
  const JDIMENSION all_wide = d.info.output_width, all_high = d.info.output_height;
  const double by_x = static_cast<double>(exchanged ? all_high : all_wide) / width,
               by_y = static_cast<double>(exchanged ? all_wide : all_high) / height;
  DecodedPart out{
      {},
      {part.box.left * by_x, part.box.top * by_y, part.box.right * by_x, part.box.bottom * by_y}};
  Window window{0, 0, all_wide, all_high};
#ifdef LIBJPEG_TURBO_VERSION
  if (orientation == 1 && d.info.scale_num == 8)
    window = window_around(out.box, all_wide, all_high);
#endif
  require(start_pixels(d, window));
  out.image = make_image(d.info.output_width, window.height, components, name);
  require(read_pixels(d, window, out.image.pixels.data()));
  if (components == 4) out.image = rgb_of_inverted(std::move(out.image));
  out.image = oriented(std::move(out.image), orientation);
  out.box.left -= window.left, out.box.right -= window.left;
  out.box.top -= window.top, out.box.bottom -= window.top;
  return out;
}

}  // namespace tenon::io
