// EXIF is a TIFF directory inside a JPEG segment or a chunk of another format. Only the orientation
// entry matters here. Damaged or missing EXIF data means no rotation, never an error, because the
// image itself is intact.
#include "io/images/image_exif.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::io {
namespace {

constexpr std::string_view kMark("Exif\0\0", 6);
constexpr std::uint32_t kOrientationTag = 0x0112, kLongType = 4;
constexpr std::size_t kEntryBytes = 12;

// Reads unsigned numbers of a TIFF block in the block's byte order; 0 outside the block.
struct Tiff {
  std::string_view bytes;
  bool big_endian;

  std::uint32_t number(std::size_t at, std::size_t size) const {
    if (at > bytes.size() || bytes.size() - at < size) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[at + (big_endian ? i : size - 1 - i)]);
      value = value << 8 | byte;
    }
    return value;
  }
};

}  // namespace

int exif_orientation(std::string_view segment) noexcept {
  return segment.starts_with(kMark) ? exif_block_orientation(segment.substr(kMark.size())) : 1;
}

int exif_block_orientation(std::string_view block) noexcept {
  if (block.starts_with(kMark)) block.remove_prefix(kMark.size());
  if (block.size() < 8) return 1;
  const Tiff tiff{block, block.front() == 'M'};
  const std::size_t directory = tiff.number(4, 4);
  const std::size_t entries = tiff.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (entry >= tiff.bytes.size()) break;
    if (tiff.number(entry, 2) != kOrientationTag) continue;
    const bool is_long = tiff.number(entry + 2, 2) == kLongType;
    const std::uint32_t value = tiff.number(entry + 8, is_long ? 4 : 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image oriented(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  // Orientations 5 to 8 exchange rows and columns. All are mirrored in x, y, both or neither.
  const bool exchanged = orientation >= 5;
  const bool mirror_x =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_y =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image out;
  out.width = exchanged ? image.height : image.width;
  out.height = exchanged ? image.width : image.height;
  out.channels = image.channels;
  out.pixels.resize(image.pixels.size());
  std::size_t to = 0;
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x) {
      int from_x = exchanged ? y : x, from_y = exchanged ? x : y;
      if (mirror_x) from_x = image.width - 1 - from_x;
      if (mirror_y) from_y = image.height - 1 - from_y;
      const std::size_t from =
          (static_cast<std::size_t>(from_y) * static_cast<std::size_t>(image.width) +
           static_cast<std::size_t>(from_x)) *
          static_cast<std::size_t>(image.channels);
      for (int c = 0; c < image.channels; ++c)
        out.pixels[to++] = image.pixels[from + static_cast<std::size_t>(c)];
    }
  return out;
}

}  // namespace tenon::io
