// WebP with libwebp, if the build found it: still images, and the first frame of animations.
#include <algorithm>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/byte_order.h"
#include "io/images/image.h"
#include "io/images/image_exif.h"

#ifdef TENON_WITH_WEBP
#include <webp/decode.h>
#endif

namespace tenon::io {

#ifdef TENON_WITH_WEBP

std::string webp_version() {
  const int version = WebPGetDecoderVersion();
  return cat("libwebp ", version >> 16, ".", version >> 8 & 255, ".", version & 255);
}

namespace {

std::uint32_t low_24(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < 3; ++k)
    value |= std::uint32_t{static_cast<unsigned char>(bytes[at + k])} << 8 * k;
  return value;
}

// The chunks other than the pixels.
struct WebpChunks {
  std::string_view canvas, frame, exif;  // contents of VP8X, of the first ANMF, and of EXIF
  int frames = 0;
};

WebpChunks webp_chunks(std::string_view bytes) {
  WebpChunks out;
  for (std::size_t at = 12; at < bytes.size() && bytes.size() - at >= 8;) {
    const std::string_view type = bytes.substr(at, 4);
    const std::size_t said = read_little<std::uint32_t>(bytes.data() + at + 4);
    const std::string_view content =
        bytes.substr(at + 8, said);  // shorter if the file is truncated
    if (type == "VP8X" && content.size() >= 10) out.canvas = content;
    if (type == "EXIF") out.exif = content;
    if (type == "ANMF" && content.size() > 16 && out.frames++ == 0) out.frame = content;
    at += 8 + content.size() + said % 2;
  }
  return out;
}

// Memory that libwebp needs besides the result: measured, with 1 MiB for Huffman tables.
std::uint64_t memory_for(const WebPBitstreamFeatures& features) {
  constexpr int kLossy = 1;
  const auto width = static_cast<std::uint64_t>(features.width),
             height = static_cast<std::uint64_t>(features.height);
  const std::uint64_t bytes_per_pixel = features.format != kLossy ? 5 : features.has_alpha ? 7 : 0;
  return width * height * bytes_per_pixel + width * 256 + (std::uint64_t{1} << 20);
}

// libwebp reports most of its failed allocations as damage, and 1.2.4 crashes for one of them. So
// the memory is required before the image is decoded, and before a failure is taken for damage.
Image decoded_webp(std::string_view bytes, bool alpha, const WebPBitstreamFeatures& features,
                   const std::string& name) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const int channels = alpha ? 4 : 3;
  Image image = make_image(static_cast<std::uint64_t>(features.width),
                           static_cast<std::uint64_t>(features.height), channels, name);
  WebPDecoderConfig config;
  WebPInitDecoderConfig(&config);
  config.output.colorspace = alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {image.pixels.data(), features.width * channels, image.pixels.size()};
  require_memory_to_decode(memory_for(features), name);
  const VP8StatusCode status = WebPDecode(data, bytes.size(), &config);
  if (status == VP8_STATUS_OK) return image;
  if (status == VP8_STATUS_OUT_OF_MEMORY) throw no_memory_to_decode(name);
  require_memory_to_decode(memory_for(features), name);
  throw make_error<FormatError>(FileName{name}, ": damaged or truncated WebP: save it again");
}

WebPBitstreamFeatures features_of(std::string_view bytes, const std::string& name) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(),
                      &features) != VP8_STATUS_OK)
    throw make_error<FormatError>(FileName{name}, ": damaged or truncated WebP: save it again");
  return features;
}

// The canvas of an animation with its first frame; transparent outside the frame.
Image first_frame(const WebpChunks& chunks, const std::string& name) {
  constexpr std::size_t kFrameHeader = 16;
  if (chunks.canvas.empty() || chunks.frame.empty())
    throw make_error<FormatError>(FileName{name},
                                  ": damaged WebP (an animation without frames): save it again");
  const std::size_t width = low_24(chunks.canvas, 4) + std::size_t{1},
                    height = low_24(chunks.canvas, 7) + std::size_t{1},
                    left = std::size_t{2} * low_24(chunks.frame, 0),
                    top = std::size_t{2} * low_24(chunks.frame, 3);
  Image canvas = make_image(width, height, 4, name);
  const std::string_view packed = chunks.frame.substr(kFrameHeader);
  const WebPBitstreamFeatures features = features_of(packed, name);
  const auto wide = static_cast<std::size_t>(features.width),
             high = static_cast<std::size_t>(features.height);
  if (features.has_animation != 0 || left + wide > width || top + high > height)
    throw make_error<FormatError>(FileName{name},
                                  ": damaged WebP (a frame beyond its canvas): save it again");
  const Image frame = decoded_webp(packed, true, features, name);
  for (std::size_t y = 0; y < high; ++y)
    std::copy_n(&frame.pixels[y * wide * 4], wide * 4,
                &canvas.pixels[((top + y) * width + left) * 4]);
  return canvas;
}

}  // namespace

StoredImage parse_webp(std::string_view bytes, const std::string& name) {
  const WebPBitstreamFeatures features = features_of(bytes, name);
  const WebpChunks chunks = webp_chunks(bytes);
  StoredImage out;
  out.orientation = exif_block_orientation(chunks.exif);
  if (features.has_animation != 0) {
    out.image = first_frame(chunks, name);
    if (chunks.frames > 1) out.losses = kFirstImageOnly;
  } else {
    out.image = decoded_webp(bytes, features.has_alpha != 0, features, name);
  }
  return out;
}

#else

std::string webp_version() { return ""; }

StoredImage parse_webp(std::string_view /*bytes*/, const std::string& name) {
  throw make_error<NotSupported>(
      FileName{name},
      ": this build cannot read WebP: install libwebp-dev and build again, or "
      "convert the image to PNG");
}

#endif

}  // namespace tenon::io
