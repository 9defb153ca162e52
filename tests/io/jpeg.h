// JPEG files for tests, encoded with libjpeg.
#pragma once

#include <cstdio>  // jpeglib.h needs it

#include <jpeglib.h>

#include <cstdlib>
#include <string>

#include <tenon/io.h>

namespace tenon::test {

struct JpegKind {
  bool progressive = false;
  int quality = 100;
  int across = 2, down = 2;  // pixels per colour sample
  int orientation = 1;
};

/// An EXIF segment whose only entry is the orientation.
inline std::string exif_segment(int orientation, bool big_endian) {
  const auto number = [big_endian](unsigned value, int bytes) {
    std::string out;
    for (int k = 0; k < bytes; ++k)
      out += static_cast<char>(value >> 8 * (big_endian ? bytes - 1 - k : k) & 255);
    return out;
  };
  const std::string tiff = (big_endian ? "MM" : "II") + number(42, 2) + number(8, 4) +
                           number(1, 2) + number(0x112, 2) + number(3, 2) + number(1, 4) +
                           number(static_cast<unsigned>(orientation), 2) + number(0, 2) +
                           number(0, 4);
  return std::string("Exif\0\0", 6) + tiff;
}

inline std::string jpeg_of(const io::Image& image, const JpegKind& kind) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &out, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = image.channels;
  info.in_color_space = image.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kind.quality, TRUE);
  info.comp_info[0].h_samp_factor = image.channels == 3 ? kind.across : 1;
  info.comp_info[0].v_samp_factor = image.channels == 3 ? kind.down : 1;
  if (kind.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  if (kind.orientation != 1) {
    const std::string exif = exif_segment(kind.orientation, false);
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  }
  while (info.next_scanline < info.image_height) {
    auto* row =
        const_cast<JSAMPROW>(&image.pixels[static_cast<std::size_t>(info.next_scanline) *
                                           static_cast<std::size_t>(image.width * image.channels)]);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<char*>(out), size);
  std::free(out);
  return bytes;
}

}  // namespace tenon::test
