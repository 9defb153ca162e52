// EXIF orientation, and rotation of images to upright.
#pragma once

#include <string_view>

#include <tenon/io.h>

namespace tenon::io {

/// The orientation, 1 to 8, of an APP1 segment's bytes; 1 (upright) when they say nothing valid.
int exif_orientation(std::string_view segment) noexcept;

/// The same of a TIFF block that stands by itself, as in PNG's eXIf and WebP's EXIF chunks; there
/// "Exif" may stand before it.
int exif_block_orientation(std::string_view block) noexcept;

/// The image as it was seen: mirrored and rotated as EXIF's orientation says.
Image oriented(Image image, int orientation);

}  // namespace tenon::io
