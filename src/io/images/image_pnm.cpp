// PBM, PGM and PPM, as text (P1, P2, P3) or bytes (P4, P5, P6), up to 16 bits a sample. Samples are
// scaled to 8 bits and rounded as in Pillow.
#include <tenon/error.h>
#include <cmath>

#include "base/make_error.h"
#include "base/str.h"
#include "io/images/image.h"

namespace tenon::io {
namespace {

class PnmParser {
 public:
  PnmParser(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  StoredImage parse() {
    const char kind = bytes_[1];
    if (kind == '7')
      throw make_error<NotSupported>(
          FileName{name_},
          ": P7 (PAM) images are not supported: convert it to PGM (P5), PPM (P6) or PNG");
    at_ = 2;
    const std::uint64_t width = number("width", 1u << 30), height = number("height", 1u << 30);
    if (kind == '1' || kind == '4') return {bits(width, height, kind == '1')};
    max_ = number("largest value", 65535);
    if (max_ == 0) fail("the largest value is 0");
    const int channels = kind == '3' || kind == '6' ? 3 : 1;
    const bool text = kind == '2' || kind == '3';
    check_length(width, height, channels, text);
    Image image = make_image(width, height, channels, name_);
    text ? read_text(image) : read_bytes(image);
    return {std::move(image), 1, max_ > 255 ? unsigned{kLowBitsDropped} : 0u};
  }

 private:
  // Checks that the samples are present before memory is allocated. A text sample takes at least
  // two bytes, except the last.
  void check_length(std::uint64_t width, std::uint64_t height, int channels, bool text) {
    const std::uint64_t item = text || max_ > 255 ? 2 : 1;
    const std::uint64_t available = bytes_.size() - at_ + (text ? 1 : 0);
    const std::uint64_t row = width * static_cast<std::uint64_t>(channels) * item;
    if (row > 0 && height > available / row)
      fail(cat("the header says ", width, " x ", height, " pixels, but only ", bytes_.size() - at_,
               " bytes follow: truncated?"));
  }
  // One bit a pixel; 1 is black. In binary files each row is padded to whole bytes.
  Image bits(std::uint64_t width, std::uint64_t height, bool text) {
    const std::uint64_t row = text ? width : (width + 7) / 8;
    if (row > 0 && height > (bytes_.size() - at_) / row) fail("the pixels are truncated");
    Image image = make_image(width, height, 1, name_);
    if (!text) ++at_;  // exactly one white-space character ends the header
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
      if (text) {
        skip_space();
        if (at_ >= bytes_.size()) fail("the pixels are truncated");
        if (bytes_[at_] != '0' && bytes_[at_] != '1') fail("a pixel is neither 0 nor 1");
        image.pixels[i] = bytes_[at_++] == '1' ? 0 : 255;
      } else {
        const std::uint64_t x = i % width, at = at_ + i / width * row + x / 8;
        if (at >= bytes_.size()) fail("the pixels are truncated");
        const auto byte = static_cast<unsigned char>(bytes_[at]);
        image.pixels[i] = (byte >> (7 - x % 8) & 1) != 0 ? 0 : 255;
      }
    }
    return image;
  }
  std::uint64_t number(const char* what, std::uint64_t most) {
    skip_space();
    const std::size_t start = at_;
    std::uint64_t value = 0;
    while (at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9') {
      value = value * 10 + static_cast<std::uint64_t>(bytes_[at_++] - '0');
      if (value > most) fail(cat("the ", what, " is larger than ", most));
    }
    if (at_ == start) fail(cat("the ", what, " is missing"));
    return value;
  }
  void skip_space() {
    while (at_ < bytes_.size()) {
      const char c = bytes_[at_];
      if (c == '#') {
        while (at_ < bytes_.size() && bytes_[at_] != '\n') ++at_;
      } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
        ++at_;
      } else {
        return;
      }
    }
  }
  std::uint8_t scale(std::uint64_t sample) {
    if (sample > max_) fail(cat("a sample is ", sample, ", more than the largest value ", max_));
    // Rounds halves to even, as in Pillow.
    return static_cast<std::uint8_t>(
        std::nearbyint(static_cast<double>(sample) / static_cast<double>(max_) * 255));
  }
  void read_text(Image& image) {
    for (std::uint8_t& pixel : image.pixels) pixel = scale(number("sample", 65535));
  }
  void read_bytes(Image& image) {
    const std::size_t item = max_ > 255 ? 2 : 1;
    ++at_;  // exactly one white-space character ends the header
    if (at_ > bytes_.size() || bytes_.size() - at_ < image.pixels.size() * item)
      fail("the pixels are truncated");
    for (std::uint8_t& pixel : image.pixels) {
      std::uint64_t sample = static_cast<unsigned char>(bytes_[at_++]);
      if (item == 2) sample = sample << 8 | static_cast<unsigned char>(bytes_[at_++]);
      pixel = scale(sample);
    }
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw make_error<FormatError>(FileName{name_}, ": damaged PBM, PGM or PPM near byte ", at_,
                                  ": ", what);
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::uint64_t max_ = 255;
};

}  // namespace

StoredImage parse_pnm(std::string_view bytes, const std::string& name) {
  return PnmParser(bytes, name).parse();
}

}  // namespace tenon::io
