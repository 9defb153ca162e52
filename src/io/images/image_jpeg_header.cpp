// Parses the markers of a JPEG file up to its first scan, without libjpeg: recognises the files
// that a GPU decoder decodes like libjpeg, and finds the EXIF orientation in linear time.
#include <cstddef>

#include "io/images/image.h"
#include "io/images/image_exif.h"

namespace tenon::io {
namespace {

constexpr unsigned kRestart = 0xd0, kStart = 0xd8, kEnd = 0xd9, kScan = 0xda, kBaseline = 0xc0,
                   kHuffman = 0xc4, kTables = 0xdb, kEvery = 0xdd, kExif = 0xe1, kAdobe = 0xee;

unsigned byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}
unsigned word_at(std::string_view bytes, std::size_t at) {
  return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1);
}

// True if Y is sampled once or twice per colour sample in each direction, and the colours once. If
// the first channel is named 'R', the image is RGB, not YCbCr.
bool plain_sampling(std::string_view frame) {
  const unsigned y = byte_at(frame, 7), across = y >> 4, down = y & 15;
  return byte_at(frame, 6) != 'R' && across >= 1 && across <= 2 && down >= 1 && down <= 2 &&
         byte_at(frame, 10) == 0x11 && byte_at(frame, 13) == 0x11;
}

}  // namespace

std::optional<PlainJpeg> plain_jpeg(std::string_view bytes) {
  const std::size_t size = bytes.size();
  if (size < 4 || word_at(bytes, 0) != (0xff00 | kStart) ||
      word_at(bytes, size - 2) != (0xff00 | kEnd))
    return {};
  std::optional<PlainJpeg> found;
  for (std::size_t at = 2; at + 4 <= size;) {
    if (byte_at(bytes, at) != 0xff) return {};
    const unsigned marker = byte_at(bytes, at + 1);
    // Fill bytes and markers without a length: decoders may treat them differently.
    if (marker < kBaseline || marker == 0xff || (marker >= kRestart && marker <= kEnd)) return {};
    const std::size_t length = word_at(bytes, at + 2);
    if (length < 2 || length > size - at - 2) return {};
    const std::string_view segment = bytes.substr(at + 4, length - 2);
    if (marker == kScan)
      return found && !segment.empty() && byte_at(segment, 0) == 3 ? found : std::nullopt;
    if (marker == kExif && exif_orientation(segment) != 1) return {};
    // The segment's last byte names the colour space: 1 is YCbCr.
    if (marker == kAdobe && segment.starts_with("Adobe") &&
        (segment.size() < 12 || byte_at(segment, 11) != 1))
      return {};
    if (marker == kBaseline) {
      if (found || segment.size() < 15 || byte_at(segment, 0) != 8 || byte_at(segment, 5) != 3 ||
          !plain_sampling(segment))
        return {};
      const unsigned height = word_at(segment, 1), width = word_at(segment, 3);
      if (height == 0 || width == 0 || std::uint64_t{height} * width > kMaxPixels) return {};
      found = {static_cast<int>(width), static_cast<int>(height),
               static_cast<int>(byte_at(segment, 7) >> 4),
               static_cast<int>(byte_at(segment, 7) & 15)};
    } else if ((marker < kRestart && marker != kHuffman) ||
               (marker > kScan && marker < 0xe0 && marker != kTables && marker != kEvery)) {
      return {};  // progressive, lossless, arithmetic, several images or unknown height
    }
    at += 2 + length;
  }
  return {};
}

int jpeg_orientation(std::string_view bytes) noexcept {
  for (std::size_t at = 2;;) {
    // Like libjpeg: skips bytes that are not a marker, and fill bytes before a marker.
    at = bytes.find('\xff', at);
    while (at < bytes.size() && byte_at(bytes, at) == 0xff) ++at;
    if (at >= bytes.size()) return 1;
    const unsigned marker = byte_at(bytes, at++);
    if (marker == kScan || marker == kEnd) return 1;
    if (marker <= 1 || (marker >= kRestart && marker <= kStart)) continue;  // without a length
    if (bytes.size() - at < 2) return 1;
    const std::size_t length = word_at(bytes, at);
    if (length < 2 || length > bytes.size() - at) return 1;
    if (marker == kExif)
      if (const int found = exif_orientation(bytes.substr(at + 2, length - 2)); found != 1)
        return found;
    at += length;
  }
}

}  // namespace tenon::io
