// What is made of a decoded picture, said so that the CPU, a card's kernel and whoever draws it
// share one description.
#pragma once

namespace tenon {

/// One change of a picture with all its parameters; of those that do not ask what stands next to a
/// pixel.
struct PictureChange {
  enum Kind : int {
    kMirror,
    kUpsideDown,
    kBrightness,  // by `factor`, as the next two
    kContrast,
    kSaturation,
    kHue,    // by `turn` of 256
    kShift,  // of channels, by these levels
    kGrey,
    kErase  // a box becomes a colour
  };
  Kind kind = kMirror;
  float factor = 1;
  unsigned char turn = 0;
  unsigned char colour[3] = {};
  int left = 0, top = 0, width = 0, height = 0;
  double shift[3] = {};
};

inline constexpr int kMostPictureChanges = 16;
inline constexpr int kMostTaps = 64;

/// How a network's picture comes from a decoded one: a box of it scaled, mirrored, and changed.
struct PictureRecord {
  int width = 0, height = 0;                         // decoded
  double left = 0, top = 0, right = 0, bottom = 0;   // the box
  int low_x = 0, high_x = 0, low_y = 0, high_y = 0;  // pixels that are seen
  int first_row = 0, rows = 0;                       // that the result is made of
  int mirrored = 0, upside_down = 0;                 // after scaling, before the changes
  int changes = 0;
  PictureChange change[kMostPictureChanges];
};

}  // namespace tenon
