// Images for a classifier: preprocesses a photograph or scan to resemble the training data, and
// draws images in the terminal.
#pragma once

#include <tenon/io.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::cli {

/// A grey image, light ink on black.
struct Glyph {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
  std::string how;  ///< what was done to get there, for people; "" when nothing was
};

/// Makes a grey image fit a network of this input size. An image of that size with a dark
/// background is taken as it is. Anything else is laid out as MNIST's digits are: background taken
/// away, ink made light, cut out, scaled to 5/7 of the side, centred by its mass. Throws
/// FormatError (naming `what`) when there is nothing on the image.
Glyph prepare(const io::Image& grey, int width, int height, const std::string& what);

/// A colour image of another size.
struct Fitted {
  std::vector<std::uint8_t> planes;  ///< [3, height, width]
  Glyph grey;                        ///< to be drawn, with what was done
};

/// The middle of a colour image in the network's proportions, scaled to its size.
Fitted fit(const io::Image& colour, int width, int height);

/// The image as lines of text for stdout: half blocks in grey, or ASCII of half the height where
/// those cannot be shown.
std::vector<std::string> draw(const Glyph& glyph);

}  // namespace tenon::cli
