// WebP through libwebp, where the build found it.
#include <tenon/error.h>

#include "base/str.h"
#include "io/image.h"

#ifdef TENON_WITH_WEBP
#include <webp/decode.h>
#endif

namespace tenon::io {

#ifdef TENON_WITH_WEBP

std::string webp_version() {
  const int version = WebPGetDecoderVersion();
  return cat("libwebp ", version >> 16, ".", version >> 8 & 255, ".", version & 255);
}

Image parse_webp(std::string_view bytes, const std::string& name) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto refuse = [&] {
    return FormatError(cat(name, ": damaged or truncated WebP: save it again"));
  };
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) throw refuse();
  if (features.has_animation != 0)
    throw NotSupported(cat(name, ": WebP with more than one picture: convert it to PNG"));
  const auto width = static_cast<std::uint64_t>(features.width),
             height = static_cast<std::uint64_t>(features.height);
  Image image = make_image(width, height, 3, name);
  if (features.has_alpha == 0) {
    if (WebPDecodeRGBInto(data, bytes.size(), image.pixels.data(), image.pixels.size(),
                          features.width * 3) == nullptr)
      throw refuse();
    return image;
  }
  Image with_alpha = make_image(width, height, 4, name);
  if (WebPDecodeRGBAInto(data, bytes.size(), with_alpha.pixels.data(), with_alpha.pixels.size(),
                         features.width * 4) == nullptr)
    throw refuse();
  lay_on_white(with_alpha.pixels.data(), image);
  return image;
}

#else

std::string webp_version() { return ""; }

Image parse_webp(std::string_view /*bytes*/, const std::string& name) {
  throw NotSupported(
      cat(name, ": this build reads no WebP: build it where libwebp-dev is, or convert it to PNG"));
}

#endif

}  // namespace tenon::io
