// EXIF orientation, and rotation of images to upright.
#pragma once

#include <string_view>

#include <tenon/io.h>

namespace tenon::io {

/// The orientation, 1 to 8, from the bytes of an APP1 segment; 1 (upright) if they are invalid.
int exif_orientation(std::string_view segment) noexcept;

/// The same for a bare TIFF block, as in PNG's eXIf and WebP's EXIF chunks, optionally preceded by
/// "Exif".
int exif_block_orientation(std::string_view block) noexcept;

/// Flips and rotates the image according to its EXIF orientation.
Image oriented(Image image, int orientation);

}  // namespace tenon::io
