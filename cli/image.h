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
  std::string how;  ///< description of the preprocessing; "" if there was none
};

/// Fits a grey image to a network of this input size. An image of that size with a dark background
/// is used unchanged. Any other image is laid out like MNIST's digits: background removed, ink made
/// light, cropped, scaled to 5/7 of the side, centred by its mass. Throws FormatError (naming
/// `what`) if the image has no ink.
Glyph prepare(const io::Image& grey, int width, int height, const std::string& what);

/// A colour image of another size.
struct Fitted {
  std::vector<std::uint8_t> planes;  ///< [3, height, width]
  Glyph grey;                        ///< to be drawn, with the description of the preprocessing
};

/// The middle of a colour image in the network's proportions, scaled to its size.
Fitted fit(const io::Image& colour, int width, int height);

/// The image as lines of text for stdout: half blocks in grey, or ASCII of half the height if the
/// terminal cannot show half blocks.
std::vector<std::string> draw(const Glyph& glyph);

}  // namespace tenon::cli
