// GIF, first frame only: blocks, a palette, and LZW-compressed indices.
//
// As in Pillow, the canvas grows to contain the frame; pixels outside the frame have the
// transparent index, or 0.
#include <algorithm>
#include <array>
#include <optional>

#include <tenon/error.h>

#include "base/str.h"
#include "io/images/image.h"

namespace tenon::io {
namespace {

class GifParser {
 public:
  GifParser(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  StoredImage parse() {
    at_ = 6;  // GIF87a or GIF89a
    const std::size_t screen_width = word(), screen_height = word();
    const unsigned flags = byte();
    at_ += 2;  // background index and aspect ratio
    std::string_view palette = palette_of(flags);
    if (!find_image()) fail("it contains no image");
    const std::size_t left = word(), top = word();
    width_ = word(), height_ = word();
    if (width_ == 0 || height_ == 0) fail("the image has no pixels");
    const unsigned image_flags = byte();
    if (const std::string_view own = palette_of(image_flags); !own.empty()) palette = own;
    canvas_width_ = std::max(screen_width, left + width_);
    const std::size_t canvas_height = std::max(screen_height, top + height_);
    // A 12-bit code gives at most 4096 pixels, so a small file cannot request much memory.
    check_image_size(canvas_width_, canvas_height, name_);
    if (canvas_width_ * canvas_height / kMostCodes > bytes_.size()) fail("it ends too early");
    StoredImage out;
    // The indices first, one byte a pixel; the palette is applied afterwards.
    out.image = make_image(canvas_width_, canvas_height, 1, name_);
    std::fill(out.image.pixels.begin(), out.image.pixels.end(),
              static_cast<std::uint8_t>(transparent_.value_or(0)));
    read_indices(out.image.pixels.data() + top * canvas_width_ + left,
                 (image_flags & kInterlaced) != 0);
    out.image = coloured(out.image, palette);
    if (find_image()) out.losses = kFirstImageOnly;
    return out;
  }

 private:
  static constexpr unsigned kHasPalette = 0x80, kInterlaced = 0x40;
  static constexpr std::size_t kMostCodes = 4096;

  [[noreturn]] void fail(const char* what) const {
    throw FormatError(cat(name_, ": damaged GIF (", what, ", near byte ", at_, "): save it again"));
  }
  unsigned byte() {
    if (at_ >= bytes_.size()) fail("it ends too early");
    return static_cast<unsigned char>(bytes_[at_++]);
  }
  unsigned word() {
    const unsigned low = byte();
    return low | byte() << 8;
  }
  std::string_view palette_of(unsigned flags) {
    if ((flags & kHasPalette) == 0) return {};
    const std::size_t size = std::size_t{6} << (flags & 7);
    if (bytes_.size() - std::min(at_, bytes_.size()) < size) fail("it ends in its palette");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  // Moves to the next image descriptor; false at the end of the file or of a truncated one.
  bool find_image() {
    while (at_ < bytes_.size()) {
      const char kind = bytes_[at_++];
      if (kind == ',') return true;
      if (kind == ';') return false;
      if (kind == '!') read_extension();
    }
    return false;
  }
  void read_extension() {
    if (bytes_.size() - at_ < 2) return;
    const bool control = bytes_[at_] == '\xf9';
    at_ += 1;
    // A graphic control: flags, two bytes of delay, the transparent index.
    if (control && bytes_.size() - at_ > 4 && bytes_[at_] == 4 && (bytes_[at_ + 1] & 1) != 0)
      transparent_ = static_cast<unsigned char>(bytes_[at_ + 4]);
    while (at_ < bytes_.size()) {
      const auto size = static_cast<unsigned char>(bytes_[at_++]);
      if (size == 0) return;
      at_ += size;
    }
  }

  // ---- Bits of the sub-blocks, lowest first
  bool next_code(unsigned size, unsigned& code) {
    while (bits_ < size) {
      if (block_left_ == 0) {
        block_left_ = byte();
        if (block_left_ == 0) return false;
      }
      pool_ |= std::uint32_t{byte()} << bits_;
      bits_ += 8, --block_left_;
    }
    code = pool_ & ((1u << size) - 1);
    pool_ >>= size, bits_ -= size;
    return true;
  }
  // The rows of the frame in the order of the file (interlaced or not).
  struct Rows {
    std::uint8_t* first;
    std::size_t stride, width, height;
    bool interlaced;
    std::size_t x = 0, y = 0, step = 8, pass = 0;
    bool full = false;

    void put(std::uint8_t index) {
      first[y * stride + x] = index;
      if (++x < width) return;
      x = 0;
      y += interlaced ? step : 1;
      while (interlaced && y >= height && pass < 3) {
        ++pass;
        y = std::size_t{8} >> pass, step = std::size_t{16} >> pass;
      }
      full = y >= height;
    }
  };
  void read_indices(std::uint8_t* first, bool interlaced) {
    const unsigned least = byte();
    if (least < 1 || least > 8) fail("the code size is not 1 to 8");
    Rows rows{first, canvas_width_, width_, height_, interlaced};
    const unsigned clear = 1u << least, end = clear + 1;
    std::array<std::uint16_t, kMostCodes> prefix;
    std::array<std::uint8_t, kMostCodes> last, stack;
    for (unsigned k = 0; k < clear; ++k) last[k] = static_cast<std::uint8_t>(k);
    unsigned size = least + 1, known = end + 1, code = 0, before = kMostCodes;
    std::uint8_t head = 0;  // first index of the string of `before`
    while (!rows.full) {
      if (!next_code(size, code) || code == end) fail("pixels are missing");
      if (code == clear) {
        size = least + 1, known = end + 1, before = kMostCodes;
        continue;
      }
      if (code > known || (code == known && before == kMostCodes)) fail("an unknown code");
      if (code >= clear && before == kMostCodes) fail("an unknown code");
      // A string is unwound from its end. The string that this code just defines ends with its own
      // first index.
      std::size_t depth = 0;
      unsigned at = code;
      if (code == known) stack[depth++] = head, at = before;
      for (; at >= clear; at = prefix[at]) stack[depth++] = last[at];
      stack[depth++] = head = static_cast<std::uint8_t>(at);
      while (depth > 0 && !rows.full) rows.put(stack[--depth]);
      if (before != kMostCodes && known < kMostCodes) {
        prefix[known] = static_cast<std::uint16_t>(before);
        last[known] = head;
        if (++known == 1u << size && size < 12) ++size;
      }
      before = code;
    }
    skip_rest();
  }
  // After the last pixel: skips the rest of this sub-block and the following sub-blocks.
  void skip_rest() {
    at_ += block_left_;
    while (at_ < bytes_.size()) {
      const auto size = static_cast<unsigned char>(bytes_[at_++]);
      if (size == 0) return;
      at_ += size;
    }
  }
  Image coloured(const Image& indices, std::string_view palette) const {
    const bool alpha = transparent_.has_value();
    if (palette.empty() && !alpha) return indices;
    const int colours = palette.empty() ? 1 : 3, channels = colours + (alpha ? 1 : 0);
    Image out = make_image(static_cast<std::uint64_t>(indices.width),
                           static_cast<std::uint64_t>(indices.height), channels, name_);
    std::uint8_t* to = out.pixels.data();
    for (const std::uint8_t index : indices.pixels) {
      const std::size_t entry = std::size_t{3} * index;
      for (std::size_t c = 0; c < static_cast<std::size_t>(colours); ++c)
        *to++ = palette.empty()          ? index
                : entry < palette.size() ? static_cast<std::uint8_t>(palette[entry + c])
                                         : std::uint8_t{0};
      if (alpha) *to++ = index == *transparent_ ? 0 : 255;
    }
    return out;
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::optional<std::uint8_t> transparent_;
  std::size_t width_ = 0, height_ = 0, canvas_width_ = 0;
  std::uint32_t pool_ = 0;
  unsigned bits_ = 0, block_left_ = 0;
};

}  // namespace

StoredImage parse_gif(std::string_view bytes, const std::string& name) {
  return GifParser(bytes, name).parse();
}

}  // namespace tenon::io
