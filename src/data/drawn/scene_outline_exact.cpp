// Distances to outlines. Only correctly rounded operations: see exact_random.h.
#include "data/drawn/scene_outline.h"

#include <algorithm>
#include <cmath>

namespace tenon::data {
namespace {

enum Outline { kBall, kRing, kBox, kTriangle, kStar, kCross, kMoon, kHeart, kFish, kHouse };

constexpr Place kBoxCorners[] = {{-.78f, -.78f}, {.78f, -.78f}, {.78f, .78f}, {-.78f, .78f}};
constexpr Place kTriangleCorners[] = {{0, -.95f}, {.95f, .75f}, {-.95f, .75f}};
constexpr Place kStarCorners[] = {
    {0, -1},    {.235f, -.324f}, {.951f, -.309f}, {.380f, .124f},   {.588f, .809f},
    {0, .400f}, {-.588f, .809f}, {-.380f, .124f}, {-.951f, -.309f}, {-.235f, -.324f}};
constexpr Place kCrossCorners[] = {{-.3f, -.95f}, {.3f, -.95f}, {.3f, -.3f},   {.95f, -.3f},
                                   {.95f, .3f},   {.3f, .3f},   {.3f, .95f},   {-.3f, .95f},
                                   {-.3f, .3f},   {-.95f, .3f}, {-.95f, -.3f}, {-.3f, -.3f}};
constexpr Place kHeartTip[] = {{-.86f, -.04f}, {.86f, -.04f}, {0, .95f}};
constexpr Place kTail[] = {{.30f, 0}, {.98f, -.55f}, {.98f, .55f}};
constexpr Place kHouseCorners[] = {{0, -1},       {.98f, -.2f},  {.68f, -.2f}, {.68f, .85f},
                                   {-.68f, .85f}, {-.68f, -.2f}, {-.98f, -.2f}};

float disc(Place at, float x, float y, float radius) {
  const float dx = at.x - x, dy = at.y - y;
  return std::sqrt(dx * dx + dy * dy) - radius;
}

// An ellipse, scaled to a circle and back by its smaller radius: exact where the edge is flat.
float ellipse(Place at, float x, float y, float rx, float ry) {
  const float dx = (at.x - x) / rx, dy = (at.y - y) / ry;
  return (std::sqrt(dx * dx + dy * dy) - 1.0f) * std::min(rx, ry);
}

}  // namespace

float polygon_distance(std::span<const Place> corners, Place at) {
  float nearest = 1e9f;
  bool inside = false;
  Place a = corners.back();
  for (const Place b : corners) {
    const float ex = b.x - a.x, ey = b.y - a.y, px = at.x - a.x, py = at.y - a.y;
    const float t = std::clamp((px * ex + py * ey) / (ex * ex + ey * ey), 0.0f, 1.0f);
    const float dx = px - t * ex, dy = py - t * ey;
    nearest = std::min(nearest, dx * dx + dy * dy);
    if ((a.y > at.y) != (b.y > at.y)) inside ^= at.x < a.x + ex * (at.y - a.y) / ey;
    a = b;
  }
  const float distance = std::sqrt(nearest);
  return inside ? -distance : distance;
}

float outline_distance(int label, Place at) {
  switch (label) {
    case kBall:
      return disc(at, 0, 0, .92f);
    case kRing:
      return std::fabs(disc(at, 0, 0, .70f)) - .24f;
    case kBox:
      return polygon_distance(kBoxCorners, at);
    case kTriangle:
      return polygon_distance(kTriangleCorners, at);
    case kStar:
      return polygon_distance(kStarCorners, at);
    case kCross:
      return polygon_distance(kCrossCorners, at);
    case kMoon:
      return std::max(disc(at, 0, 0, .95f), -disc(at, .48f, -.1f, .78f));
    case kHeart:
      return std::min(std::min(disc(at, -.45f, -.32f, .50f), disc(at, .45f, -.32f, .50f)),
                      polygon_distance(kHeartTip, at));
    case kFish:
      return std::min(ellipse(at, -.2f, 0, .78f, .50f), polygon_distance(kTail, at));
    default:
      return polygon_distance(kHouseCorners, at);
  }
}

}  // namespace tenon::data
