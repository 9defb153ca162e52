// JPEG through libjpeg. Its errors leave by longjmp, as the library demands: no object with a
// destructor lives in the functions that are jumped out of, and the typed error is thrown after the
// library has cleaned up.
#include <cstdio>  // jpeglib.h needs it

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "io/image.h"
#include "io/image_exif.h"

namespace tenon::io {
namespace {

constexpr int kMaxScans =
    200;  // A few bytes of a progressive file can ask for very many passes over the picture.

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

// Warnings that mean lost picture data are errors here; others (odd markers, extra bytes) are
// common and harmless.
void on_message(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
    leave(info);
}

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  std::snprintf(decoder_of(info).message, JMSG_LENGTH_MAX, "more than %d scans", kMaxScans);
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
  jpeg_save_markers(&d.info, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&d.info, TRUE);
  return true;
}

bool read_pixels(Decoder& d, std::uint8_t* pixels) {
  if (setjmp(d.escape) != 0) return false;
  d.info.out_color_space = d.info.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  d.info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&d.info);
  const std::size_t row = static_cast<std::size_t>(d.info.output_width) *
                          static_cast<std::size_t>(d.info.output_components);
  while (d.info.output_scanline < d.info.output_height) {
    JSAMPROW line = pixels + row * d.info.output_scanline;
    jpeg_read_scanlines(&d.info, &line, 1);
  }
  jpeg_finish_decompress(&d.info);
  return true;
}

// Phones write pictures as the sensor lies and note how they were held.
int orientation_of(const jpeg_decompress_struct& info) {
  for (jpeg_saved_marker_ptr marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view segment(reinterpret_cast<const char*>(marker->data),
                                   marker->data_length);
    if (const int orientation = exif_orientation(segment); orientation != 1) return orientation;
  }
  return 1;
}

struct Cleanup {
  Decoder& d;
  ~Cleanup() { jpeg_destroy_decompress(&d.info); }
};

}  // namespace

Image parse_jpeg(std::string_view bytes, const std::string& name) {
  Decoder d;
  start(d);
  const Cleanup cleanup{d};
  const auto refuse = [&] {
    return FormatError(cat(name, ": damaged or truncated JPEG (", d.message, "): save it again"));
  };
  if (!read_header(d, reinterpret_cast<const unsigned char*>(bytes.data()),
                   static_cast<unsigned long>(bytes.size())))
    throw refuse();
  if (d.info.num_components != 1 && d.info.num_components != 3)
    throw NotSupported(cat(name, ": JPEG with ", d.info.num_components,
                           " colour components (CMYK?): convert it to RGB"));
  Image image = make_image(d.info.image_width, d.info.image_height, d.info.num_components, name);
  const int orientation = orientation_of(d.info);
  if (!read_pixels(d, image.pixels.data())) throw refuse();
  return turned_upright(std::move(image), orientation);
}

}  // namespace tenon::io
