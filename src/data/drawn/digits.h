// Synthetic digits: 28 x 28 images that resemble many people's handwriting, white on black, in
// MNIST's layout.
//
// An image depends on (seed, index) only and is the same, byte for byte, on every machine. Nothing
// is stored: any number of images can be generated, in any order, from any thread. Every ten
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
