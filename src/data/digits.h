// Drawn digits: 28 x 28 images that look like many people's handwriting, white ink on black, laid
// out as MNIST's are.
//
// An image depends on (seed, index) alone and is the same, byte for byte, on every machine.
// Nothing is stored: any number of them can be had, in any order, from any thread. Every ten
// consecutive indices hold each class once.
#pragma once

#include <cstdint>

namespace tenon::data {

inline constexpr int kDigitSide = 28;
inline constexpr int kDigitPixels = kDigitSide * kDigitSide;

/// The class of a digit, in [0, 10).
int digit_label(std::uint64_t seed, std::uint64_t index);

/// Draws one digit into kDigitPixels bytes, row by row.
void draw_digit(std::uint64_t seed, std::uint64_t index, std::uint8_t* pixels);

/// Draws digits [first, first + count) on the thread pool: `pixels` takes count * kDigitPixels
/// bytes, `labels` count of them.
void draw_digits(std::uint64_t seed, std::uint64_t first, std::int64_t count, std::uint8_t* pixels,
                 std::uint8_t* labels);

}  // namespace tenon::data
