// Outlines of the ten objects of synthetic scenes, as signed distances: negative inside, positive
// outside, in units of the object's half width. The distance is close enough to Euclidean for an
// edge that is one pixel soft.
#pragma once

#include <span>

namespace tenon::data {

struct Place {
  float x, y;  // y points down
};

/// Signed distance of a point to a polygon, over all its sides.
float polygon_distance(std::span<const Place> corners, Place at);

/// Signed distance of a point to the outline of a class in [0, 10).
float outline_distance(int label, Place at);

}  // namespace tenon::data
