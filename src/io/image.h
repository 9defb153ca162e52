// Pictures in memory: PNG and JPEG by their libraries, PGM and PPM by hand. Sizes are checked
// before pixels are allocated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/io.h>

namespace tenon::io {

inline constexpr std::uint64_t kMaxPixels = 1ull << 26;

/// Decodes by content; channels as in load_image(). `name` is for messages.
Image parse_image(std::string_view bytes, const std::string& name, int channels);

// One decoder each; they give 1 or 3 channels, as the file has them.
Image parse_png(std::string_view bytes, const std::string& name);
Image parse_jpeg(std::string_view bytes, const std::string& name);
Image parse_pnm(std::string_view bytes, const std::string& name);

/// Sizes of the image and room for its pixels. Throws FormatError for none, or more than
/// kMaxPixels.
Image make_image(std::uint64_t width, std::uint64_t height, int channels, const std::string& name);

std::string encode_png(const Image& image);

}  // namespace tenon::io
