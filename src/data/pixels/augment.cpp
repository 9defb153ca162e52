// Crop with padding, horizontal flip, cutout. Integer arithmetic only, so results are equal on all
// machines.
#include "data/pixels/augment.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/index.h"
#include "base/per_thread.h"
#include "base/philox.h"

namespace tenon::data {
namespace {

constexpr std::uint64_t kAugmentKey =
    0x6175676d656e7431;  // a stream separate from that of sample orders
constexpr std::uint64_t kCutout = std::uint64_t{1} << 63;

// Maps 32 random bits to [0, count).
std::int64_t below(std::uint32_t word, std::int64_t count) {
  return static_cast<std::int64_t>(std::uint64_t{word} * static_cast<std::uint64_t>(count) >> 32);
}

struct Plane {
  std::int64_t height, width;
};

// Row y, column x of the result is row y + dy, column x + dx of the image (mirrored: from the
// other end), black outside.
void shift(Plane size, std::int64_t dy, std::int64_t dx, bool mirrored,
           std::vector<std::uint8_t>& room, std::uint8_t* plane) {
  const auto bytes = at(size.height * size.width);
  room.assign(plane, plane + bytes);
  for (std::int64_t y = 0; y < size.height; ++y) {
    std::uint8_t* out = plane + y * size.width;
    if (y + dy < 0 || y + dy >= size.height) {
      std::memset(out, 0, at(size.width));
      continue;
    }
    const std::uint8_t* in = room.data() + (y + dy) * size.width;
    for (std::int64_t x = 0; x < size.width; ++x) {
      const std::int64_t from = (mirrored ? size.width - 1 - x : x) + dx;
      out[x] = from < 0 || from >= size.width ? std::uint8_t{0} : in[from];
    }
  }
}

// A square around (y, x), clipped at the edges of the image.
void cut_out(Plane size, std::int64_t side, std::int64_t y, std::int64_t x, std::uint8_t blank,
             std::uint8_t* plane) {
  const std::int64_t top = std::max<std::int64_t>(0, y - side / 2),
                     bottom = std::min(size.height, y - side / 2 + side),
                     left = std::max<std::int64_t>(0, x - side / 2),
                     right = std::min(size.width, x - side / 2 + side);
  for (std::int64_t row = top; row < bottom && right > left; ++row)
    std::memset(plane + row * size.width + left, blank, at(right - left));
}

}  // namespace

void augment(const Augmentation& how, std::uint64_t seed, std::int64_t epoch,
             std::span<const std::int64_t> numbers, const Shape& image, std::uint8_t blank,
             std::uint8_t* images) {
  const Plane size{image[1], image[2]};
  const std::int64_t plane = size.height * size.width;
  static const PerThread<std::vector<std::uint8_t>> room_of_thread;
  std::vector<std::uint8_t>& room = room_of_thread.get();
  for (const std::int64_t number : numbers) {
    const Philox4 draw = philox(seed ^ kAugmentKey, static_cast<std::uint64_t>(number),
                                static_cast<std::uint64_t>(epoch)),
                  square = philox(seed ^ kAugmentKey, static_cast<std::uint64_t>(number),
                                  static_cast<std::uint64_t>(epoch) | kCutout);
    const std::int64_t dy = below(draw.v[0], 2 * how.crop + 1) - how.crop,
                       dx = below(draw.v[1], 2 * how.crop + 1) - how.crop;
    const bool mirrored = how.flip && (draw.v[2] & 1u) != 0;
    for (std::int64_t channel = 0; channel < image[0]; ++channel, images += plane) {
      if (dy != 0 || dx != 0 || mirrored) shift(size, dy, dx, mirrored, room, images);
      if (how.cutout > 0)
        cut_out(size, how.cutout, below(square.v[0], size.height), below(square.v[1], size.width),
                blank, images);
    }
  }
}

}  // namespace tenon::data
