// How people write the ten digits: strokes through knots, several forms for each digit.
//
// A form is a set of variants that have the same strokes and number of knots, so that any blend of
// two of them is again a plausible way to write the digit. Coordinates are hundredths of the
// digit's box, y downwards.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::data {

struct Knot {
  float x = 0, y = 0;
  bool corner = false;        ///< The pen changes direction here: tangents on both sides differ.
  bool stroke_start = false;  ///< The pen was lifted before this knot.
};

using Variant = std::vector<Knot>;

struct DigitForm {
  float weight = 1;  ///< How common the form is among those of its digit.
  std::vector<Variant> variants;
};

/// The forms of a digit in [0, 10), with weights that sum to 1.
const std::vector<DigitForm>& digit_forms(int digit);

}  // namespace tenon::data
