// Windows' bitmaps: 1, 4 and 8 bits with a palette, 24 and 32 bits of colour; not compressed.
#include <array>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "io/image.h"

namespace tenon::io {
namespace {

constexpr std::size_t kFileHeader = 14, kInfoHeader = 40;
constexpr std::uint32_t kPlain = 0, kMasks = 3;

class BmpParser {
 public:
  BmpParser(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Image parse() {
    const std::uint32_t pixels = number(10, 4), header = number(kFileHeader, 4);
    if (header < kInfoHeader || header > 256) fail("a header of another kind");
    const auto width = static_cast<std::int32_t>(number(18, 4)),
               height = static_cast<std::int32_t>(number(22, 4));
    if (width <= 0 || height == 0 || height == INT32_MIN) fail("no size");
    bits_ = number(28, 2);
    const std::uint32_t packing = number(30, 4);
    if (packing != kPlain && !(packing == kMasks && bits_ == 32))
      throw NotSupported(cat(name_, ": BMP that is compressed: convert it to PNG"));
    if (bits_ != 1 && bits_ != 4 && bits_ != 8 && bits_ != 24 && bits_ != 32)
      throw NotSupported(cat(name_, ": BMP with ", bits_, " bits a pixel: convert it to PNG"));
    if (bits_ <= 8) read_palette(kFileHeader + header, number(46, 4));
    const auto rows = static_cast<std::uint64_t>(height < 0 ? -height : height);
    check_image_size(static_cast<std::uint64_t>(width), rows, name_);
    const std::uint64_t stride = (static_cast<std::uint64_t>(width) * bits_ + 31) / 32 * 4;
    if (pixels > bytes_.size() || (bytes_.size() - pixels) / stride < rows)
      fail("the pixels are truncated");
    Image image = make_image(static_cast<std::uint64_t>(width), rows, 3, name_);
    for (std::uint64_t y = 0; y < rows; ++y) {
      const std::uint64_t line =
          height < 0 ? y : rows - 1 - y;  // from below, unless told otherwise
      read_row(bytes_.substr(pixels + line * stride, stride), width,
               &image.pixels[y * static_cast<std::uint64_t>(width) * 3]);
    }
    return image;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw FormatError(cat(name_, ": damaged BMP (", what, "): save it again"));
  }
  std::uint32_t byte(std::size_t at) const {
    if (at >= bytes_.size()) fail("truncated");
    return static_cast<unsigned char>(bytes_[at]);
  }
  std::uint32_t number(std::size_t at, std::size_t size) const {
    std::uint32_t value = 0;
    for (std::size_t k = 0; k < size; ++k) value |= byte(at + k) << (8 * k);
    return value;
  }
  void read_palette(std::size_t at, std::uint32_t colours) {
    if (colours == 0 || colours > 256) colours = 1u << bits_;
    for (std::uint32_t k = 0; k < colours; ++k)
      for (std::size_t c = 0; c < 3; ++c)
        palette_[k][c] = static_cast<std::uint8_t>(byte(at + 4 * k + 2 - c));
  }
  void read_row(std::string_view row, std::int32_t width, std::uint8_t* out) const {
    const auto value = [row](std::size_t i) { return static_cast<std::uint8_t>(row[i]); };
    for (std::size_t x = 0; x < at(width); ++x, out += 3) {
      if (bits_ >= 24) {
        const std::size_t first = x * (bits_ / 8);
        out[0] = value(first + 2), out[1] = value(first + 1), out[2] = value(first);
        continue;
      }
      const std::size_t place = x * bits_;
      const unsigned shift = 8 - bits_ - static_cast<unsigned>(place % 8);
      const unsigned index = (value(place / 8) >> shift) & ((1u << bits_) - 1);
      for (std::size_t c = 0; c < 3; ++c) out[c] = palette_[index][c];
    }
  }

  std::string_view bytes_;
  const std::string& name_;
  std::uint32_t bits_ = 0;
  std::array<std::array<std::uint8_t, 3>, 256> palette_{};
};

}  // namespace

Image parse_bmp(std::string_view bytes, const std::string& name) {
  return BmpParser(bytes, name).parse();
}

}  // namespace tenon::io
