// The pen: converts the form of a digit to inked segments of one person's handwriting, in pixels of
// the 28 x 28 image.
#pragma once

#include <array>

#include "data/drawn/exact_random.h"

namespace tenon::data {

/// A capsule: ink within radius r0 of one end, r1 of the other, and in between.
struct Segment {
  float x0, y0, x1, y1, r0, r1;
};

struct Ink {
  static constexpr int kMaxSegments = 256;
  std::array<Segment, kMaxSegments> segments;
  int count = 0;
};

/// Draws the strokes of `digit` with random form, irregularities, slant, proportions and ink width.
/// Fits them into 20 x 20 pixels and centres their mass.
void write_digit(int digit, Draws& draws, Ink& ink);

}  // namespace tenon::data
