// Fuzzes the decoders of all image formats, with and without a background, and the JPEG marker
// parser.
#include "io/images/image.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    const auto plain = tenon::io::plain_jpeg(bytes);
    tenon::io::ImageReading how{bytes.size() % 2 == 0 ? 0 : 1, {}};
    if (bytes.size() % 3 == 0) how.background = tenon::io::Colour{255, 128, 0};
    const auto image = tenon::io::parse_image(bytes, "input", how);
    if (plain && (plain->width != image.width || plain->height != image.height)) __builtin_trap();
  });
}
