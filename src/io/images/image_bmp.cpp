// BMP: 1, 2, 4 and 8 bits with a palette, also run-length encoded; 16, 24 and 32 bits with colour
// masks. The fourth byte of 32-bit pixels is alpha only if a mask defines it.
#include <algorithm>
#include <array>
#include <bit>

#include <tenon/error.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"
#include "io/images/image.h"

namespace tenon::io {
namespace {

constexpr std::size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40;
constexpr std::uint32_t kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3, kAlphaMasks = 6;

class BmpParser {
 public:
  BmpParser(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  StoredImage parse() {
    const std::uint32_t pixels = number(10, 4), header = number(kFileHeader, 4);
    const bool core = header == kCoreHeader;
    if ((header < kInfoHeader && !core) || header > 256) fail("unknown kind of header");
    read_size(core);
    bits_ = core ? number(24, 2) : number(28, 2);
    packing_ = core ? kPlain : number(30, 4);
    const bool runs = packing_ == kRuns8 || packing_ == kRuns4;
    const bool masks = packing_ == kMasks || packing_ == kAlphaMasks;
    const bool known = packing_ == kPlain || (runs && bits_ == (packing_ == kRuns8 ? 8 : 4)) ||
                       (masks && (bits_ == 16 || bits_ == 32));
    if (!known)
      throw make_error<NotSupported>(FileName{name_}, ": BMP compression ", packing_,
                                     " is not supported: convert it to PNG");
    if (bits_ != 1 && bits_ != 2 && bits_ != 4 && bits_ != 8 && bits_ != 16 && bits_ != 24 &&
        bits_ != 32)
      throw make_error<NotSupported>(FileName{name_}, ": BMP with ", bits_,
                                     " bits a pixel: convert it to PNG");
    if (bits_ <= 8) {
      const std::uint32_t colours = core ? 0 : number(46, 4);
      read_palette(kFileHeader + header, colours, core ? 3 : 4);
    } else {
      read_masks(masks, header);
    }
    check_image_size(width_, height_, name_);
    if (pixels > bytes_.size()) fail("the pixels are truncated");
    return {runs ? runs_of(bytes_.substr(pixels)) : rows_of(bytes_.substr(pixels))};
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw make_error<FormatError>(FileName{name_}, ": damaged BMP (", what, "): save it again");
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
  void read_size(bool core) {
    if (core) {
      width_ = number(18, 2), height_ = number(20, 2);
      return;
    }
    const auto width = static_cast<std::int32_t>(number(18, 4)),
               height = static_cast<std::int32_t>(number(22, 4));
    if (width <= 0 || height == 0 || height == INT32_MIN) fail("the size is not positive");
    from_above_ = height < 0;
    width_ = at(width), height_ = at(from_above_ ? -height : height);
  }
  void read_palette(std::size_t at, std::uint32_t colours, std::size_t entry) {
    if (colours == 0 || colours > 256) colours = 1u << bits_;
    for (std::uint32_t k = 0; k < colours; ++k)
      for (std::size_t c = 0; c < 3; ++c)
        palette_[k][c] = static_cast<std::uint8_t>(byte(at + entry * k + 2 - c));
  }
  // The bits of a channel in a pixel.
  struct Mask {
    std::uint32_t bits = 0;
    std::uint8_t level(std::uint32_t pixel) const {
      if (bits == 0) return 0;
      const int shift = std::countr_zero(bits);
      return static_cast<std::uint8_t>(std::uint64_t{(pixel & bits) >> shift} * 255 /
                                       (bits >> shift));
    }
  };
  void read_masks(bool given, std::uint32_t header) {
    if (bits_ == 16) masks_ = {{{0x7c00}, {0x3e0}, {0x1f}, {}}};
    if (bits_ != 16) masks_ = {{{0xff0000}, {0xff00}, {0xff}, {}}};
    if (!given) return;
    // Larger headers contain the masks; they follow the smallest header.
    const bool alpha = header >= 56 || packing_ == kAlphaMasks;
    for (std::size_t k = 0; k < (alpha ? 4u : 3u); ++k)
      masks_[k].bits = number(kFileHeader + kInfoHeader + 4 * k, 4);
    if ((masks_[0].bits | masks_[1].bits | masks_[2].bits) == 0) fail("the colour masks are empty");
  }
  std::uint8_t* row(Image& image, std::size_t y) const {
    // Rows are stored bottom-up unless the height is negative.
    const std::size_t line = from_above_ ? y : height_ - 1 - y;
    return &image.pixels[line * width_ * static_cast<std::size_t>(image.channels)];
  }
  Image rows_of(std::string_view data) {
    const std::uint64_t stride = (width_ * bits_ + 31) / 32 * 4;
    if (data.size() / stride < height_) fail("the pixels are truncated");
    Image image = make_image(width_, height_, bits_ > 8 && masks_[3].bits != 0 ? 4 : 3, name_);
    for (std::size_t y = 0; y < height_; ++y)
      read_row(data.substr(y * stride, stride), row(image, y));
    return image;
  }
  void read_row(std::string_view data, std::uint8_t* out) const {
    const auto value = [data](std::size_t i) {
      return std::uint32_t{static_cast<unsigned char>(data[i])};
    };
    for (std::size_t x = 0; x < width_; ++x) {
      if (bits_ <= 8) {
        const std::size_t place = x * bits_;
        const unsigned shift = 8 - bits_ - static_cast<unsigned>(place % 8);
        out = put(value(place / 8) >> shift & ((1u << bits_) - 1), out);
        continue;
      }
      std::uint32_t pixel = 0;
      for (std::size_t k = 0; k < bits_ / 8; ++k) pixel |= value(x * (bits_ / 8) + k) << 8 * k;
      for (std::size_t c = 0; c < (masks_[3].bits != 0 ? 4u : 3u); ++c)
        *out++ = masks_[c].level(pixel);
    }
  }
  std::uint8_t* put(std::uint32_t index, std::uint8_t* out) const {
    return std::copy(palette_[index].begin(), palette_[index].end(), out);
  }
  // Run-length encoding: pairs of a count and an index. A count of 0 starts a special code: end of
  // row, end of image, a jump, or literal indices. Pixels that are not written have index 0.
  Image runs_of(std::string_view data) {
    // A pair gives at most 255 pixels, so a small file cannot request much memory.
    if (width_ * height_ / 128 > data.size()) fail("the pixels are truncated");
    Image image = make_image(width_, height_, 3, name_);
    for (std::size_t i = 0; i < image.pixels.size(); i += 3) put(0, &image.pixels[i]);
    std::size_t x = 0, y = 0, from = 0;
    const auto next = [&] {
      if (from >= data.size()) fail("the pixels are truncated");
      return static_cast<unsigned>(static_cast<unsigned char>(data[from++]));
    };
    // Pixels beyond the end of a row are dropped, as in Pillow.
    const auto paint = [&](unsigned index) {
      if (x < width_ && y < height_) put(index, row(image, y) + 3 * x);
      ++x;
    };
    const bool halves = packing_ == kRuns4;
    while (y < height_) {
      const unsigned count = next(), what = next();
      if (count > 0) {
        for (unsigned k = 0; k < count; ++k)
          paint(!halves ? what : k % 2 == 0 ? what >> 4 : what & 15);
      } else if (what == 0) {
        x = 0, ++y;
      } else if (what == 1) {
        break;
      } else if (what == 2) {
        x += next();
        y += next();
      } else {
        unsigned pair = 0;
        const std::size_t start = from;
        for (unsigned k = 0; k < what; ++k) {
          if (!halves || k % 2 == 0) pair = next();
          paint(!halves ? pair : k % 2 == 0 ? pair >> 4 : pair & 15);
        }
        if ((from - start) % 2 != 0) next();
      }
    }
    return image;
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t width_ = 0, height_ = 0;
  bool from_above_ = false;
  std::uint32_t bits_ = 0, packing_ = 0;
  std::array<std::array<std::uint8_t, 3>, 256> palette_{};
  std::array<Mask, 4> masks_{};
};

}  // namespace

StoredImage parse_bmp(std::string_view bytes, const std::string& name) {
  return BmpParser(bytes, name).parse();
}

}  // namespace tenon::io
