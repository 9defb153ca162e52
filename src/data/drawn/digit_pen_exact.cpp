// From a form's knots to inked segments. Every step is cheap arithmetic on a few dozen points; see
// exact_random.h for why.
#include "data/drawn/digit_pen.h"

#include <algorithm>
#include <cmath>

#include "data/drawn/digit_shapes.h"

namespace tenon::data {
namespace {

constexpr int kMaxKnots = 24;
constexpr int kSteps = 7;  // Points drawn between two knots.
constexpr float kBox = 20.0f, kCentre = 14.0f;

struct Point {
  float x, y;
  float pressure;  // Multiplies the ink's width.
  bool start;      // First point of a stroke.
};

struct Path {
  std::array<Point, Ink::kMaxSegments + 1> points;
  int count = 0;
  void add(Point p) {
    if (count < static_cast<int>(points.size())) points[static_cast<std::size_t>(count++)] = p;
  }
};

// Habits of one writer at one moment; all the randomness that is not per point.
struct Hand {
  bool stick;  // No loops or arms that thick ink could close.
  float slip;  // Spread of knots around their places.
  float warp;  // Strength of the smooth distortion.
  float slant, turn, aspect;
  float radius;  // Half of the ink's width, pixels.
  float nib;     // How much the width depends on direction, along (nib_x, nib_y).
  float nib_x, nib_y;
  float swell;      // How much the width varies along the stroke.
  float roundness;  // 0 keeps corners, 1 makes them curves.
};

Hand draw_hand(int digit, Draws& draws) {
  Hand hand;
  hand.stick = digit == 1;
  float sloppy = draws.uniform(0.65f, 1.4f);
  if (draws.chance(0.14f)) sloppy *= 1.6f;
  // A dent shows more in a ring than in an arm.
  const bool ring = digit == 0 || digit == 6 || digit == 8;
  hand.slip = (digit == 0 ? 0.012f : ring ? 0.017f : 0.031f) * sloppy;
  hand.warp = (digit == 0 ? 0.045f : 0.062f) * sloppy;
  hand.slant = 0.14f + 0.21f * draws.normal();
  if (digit == 1) hand.slant += 0.12f + 0.14f * draws.normal();
  hand.turn = 0.10f * draws.normal();
  const float stretch = draws.normal();
  hand.aspect = std::max(1.0f + 0.22f * stretch + 0.05f * stretch * stretch, 0.5f);
  const float bold = draws.normal();
  hand.radius = std::clamp(1.22f + 0.36f * bold + 0.08f * bold * bold, 0.62f, 2.5f);
  hand.nib = draws.chance(0.35f) ? draws.uniform(0.0f, 0.32f) : 0.0f;
  const float angle = draws.uniform(-1.5f, 1.5f);
  hand.nib_x = exact_cos(angle);
  hand.nib_y = exact_sin(angle);
  hand.swell = draws.uniform(0.04f, 0.22f);
  hand.roundness = draws.uniform(0.0f, 0.7f);
  return hand;
}

// One variant, or a blend of two, of a form picked by weight; every knot slips a little.
int place_knots(int digit, const Hand& hand, Draws& draws, Knot* knots) {
  const auto& forms = digit_forms(digit);
  float pick = draws.uniform();
  std::size_t f = 0;
  while (f + 1 < forms.size() && pick >= forms[f].weight) pick -= forms[f++].weight;
  const auto& variants = forms[f].variants;
  const int n = static_cast<int>(variants.size());
  const int first = draws.below(n);
  const int second = draws.below(n);
  const float blend = draws.uniform(-0.1f, 1.1f);
  const Variant& a = variants[static_cast<std::size_t>(first)];
  const Variant& b = variants[static_cast<std::size_t>(second)];
  const int count = std::min(static_cast<int>(a.size()), kMaxKnots);
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    knots[i] = a[at];
    knots[i].x += blend * (b[at].x - a[at].x) + hand.slip * draws.normal();
    knots[i].y += blend * (b[at].y - a[at].y) + hand.slip * draws.normal();
  }
  return count;
}

// Tangent of the curve at knot i, as seen from the segment towards `neighbour` (i - 1 or i + 1).
Point tangent(const Knot* knots, int count, int i, int neighbour, float roundness) {
  const bool has_previous = i > 0 && !knots[i].stroke_start;
  const bool has_next = i + 1 < count && !knots[i + 1].stroke_start;
  const float sign = neighbour > i ? 1.0f : -1.0f;
  Point own{sign * (knots[neighbour].x - knots[i].x), sign * (knots[neighbour].y - knots[i].y), 0,
            false};
  if (!has_previous || !has_next) return own;
  const float smooth_x = 0.5f * (knots[i + 1].x - knots[i - 1].x);
  const float smooth_y = 0.5f * (knots[i + 1].y - knots[i - 1].y);
  const float mix = knots[i].corner ? roundness : 1.0f;
  own.x += mix * (smooth_x - own.x);
  own.y += mix * (smooth_y - own.y);
  return own;
}

// Cubic Hermite curves through the knots, with a pressure that wanders slowly and falls off where
// the pen lifts.
void trace(const Knot* knots, int count, const Hand& hand, Draws& draws, Path& path) {
  float pressure = 1.0f + hand.swell * draws.normal();
  for (int i = 0; i < count; ++i) {
    if (knots[i].stroke_start) path.add({knots[i].x, knots[i].y, pressure, true});
    if (i + 1 >= count || knots[i + 1].stroke_start) continue;
    const Point t0 = tangent(knots, count, i, i + 1, hand.roundness);
    const Point t1 = tangent(knots, count, i + 1, i, hand.roundness);
    const bool lifts = i + 2 >= count || knots[i + 2].stroke_start;
    float next_pressure = 1.0f + hand.swell * draws.normal();
    if (lifts) next_pressure -= hand.swell;
    for (int s = 1; s <= kSteps; ++s) {
      const float t = static_cast<float>(s) / static_cast<float>(kSteps);
      const float t2 = t * t, t3 = t2 * t;
      const float h01 = 3.0f * t2 - 2.0f * t3, h10 = t3 - 2.0f * t2 + t, h11 = t3 - t2;
      Point p;
      p.x = knots[i].x + h01 * (knots[i + 1].x - knots[i].x) + h10 * t0.x + h11 * t1.x;
      p.y = knots[i].y + h01 * (knots[i + 1].y - knots[i].y) + h10 * t0.y + h11 * t1.y;
      p.pressure = pressure + t * (next_pressure - pressure);
      p.start = false;
      path.add(p);
    }
    pressure = next_pressure;
  }
}

// A smooth random displacement of the plane: uniform quadratic B-splines over a 5 x 5 lattice.
struct Warp {
  static constexpr int kSide = 5;
  float dx[kSide][kSide], dy[kSide][kSide];

  Warp(float strength, Draws& draws) {
    for (int j = 0; j < kSide; ++j)
      for (int i = 0; i < kSide; ++i) {
        dx[j][i] = strength * draws.normal();
        dy[j][i] = strength * draws.normal();
      }
  }
  static int weights(float at, float* w) {
    const float u = std::clamp(at, 0.0f, 0.9999f) * static_cast<float>(kSide - 2);
    const int cell = static_cast<int>(u);
    const float t = u - static_cast<float>(cell);
    w[0] = 0.5f * (1.0f - t) * (1.0f - t);
    w[2] = 0.5f * t * t;
    w[1] = 1.0f - w[0] - w[2];
    return cell;
  }
  void move(Point& p) const {
    float wx[3], wy[3];
    const int cx = weights(p.x, wx), cy = weights(p.y, wy);
    float mx = 0, my = 0;
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) {
        const float w = wy[j] * wx[i];
        mx += w * dx[cy + j][cx + i];
        my += w * dy[cy + j][cx + i];
      }
    p.x += mx;
    p.y += my;
  }
};

void distort(Path& path, const Hand& hand, Draws& draws) {
  const Warp warp(hand.warp, draws);
  const float c = exact_cos(hand.turn), s = exact_sin(hand.turn);
  for (int i = 0; i < path.count; ++i) {
    Point& p = path.points[static_cast<std::size_t>(i)];
    warp.move(p);
    const float y = p.y - 0.5f;
    const float x = (p.x - 0.5f) * 0.9f * hand.aspect - hand.slant * y;
    p.x = c * x - s * y;
    p.y = s * x + c * y;
  }
}

// Ink's half width at a point of a stroke that runs along (dx, dy).
float width(const Hand& hand, float pressure, float dx, float dy) {
  const float square = dx * dx + dy * dy;
  float factor = std::max(pressure, 0.5f);
  if (square > 1e-12f) {
    const float along = dx * hand.nib_x + dy * hand.nib_y;
    factor *= 1.0f + hand.nib * (2.0f * along * along / square - 1.0f);
  }
  return std::max(hand.radius * factor, 0.45f);
}

struct Bounds {
  float left = 1e9f, right = -1e9f, top = 1e9f, bottom = -1e9f;
};

Bounds bounds_of(const Path& path) {
  Bounds b;
  for (int i = 0; i < path.count; ++i) {
    const Point& p = path.points[static_cast<std::size_t>(i)];
    b.left = std::min(b.left, p.x);
    b.right = std::max(b.right, p.x);
    b.top = std::min(b.top, p.y);
    b.bottom = std::max(b.bottom, p.y);
  }
  return b;
}

// Moves the segments so that the mass of their ink is near the image's centre.
void centre(Ink& ink, Draws& draws) {
  float mass = 1e-6f, mass_x = 0, mass_y = 0;
  for (int i = 0; i < ink.count; ++i) {
    const Segment& s = ink.segments[static_cast<std::size_t>(i)];
    const float dx = s.x1 - s.x0, dy = s.y1 - s.y0;
    const float weight = std::sqrt(dx * dx + dy * dy) * (s.r0 + s.r1);
    mass += weight;
    mass_x += weight * 0.5f * (s.x0 + s.x1);
    mass_y += weight * 0.5f * (s.y0 + s.y1);
  }
  float shift_x = kCentre - mass_x / mass, shift_y = kCentre - mass_y / mass;
  shift_x += draws.uniform(-0.5f, 0.5f);
  shift_y += draws.uniform(-0.5f, 0.5f);
  for (int i = 0; i < ink.count; ++i) {
    Segment& s = ink.segments[static_cast<std::size_t>(i)];
    s.x0 += shift_x;
    s.x1 += shift_x;
    s.y0 += shift_y;
    s.y1 += shift_y;
  }
}

// Scales the path so that its ink fills the box, and makes segments of it.
void ink_path(const Path& path, Hand hand, Draws& draws, Ink& ink) {
  const Bounds b = bounds_of(path);
  const float extent = std::max(std::max(b.right - b.left, b.bottom - b.top), 0.05f);
  const float narrow = std::min(b.right - b.left, b.bottom - b.top) / extent;
  if (!hand.stick) hand.radius = std::min(hand.radius, 0.8f + 0.1f * kBox * narrow);
  const float room = kBox * draws.uniform(0.97f, 1.01f) - 2.0f * hand.radius;
  const float scale = room / extent;
  ink.count = 0;
  for (int i = 1; i < path.count; ++i) {
    const Point& p = path.points[static_cast<std::size_t>(i - 1)];
    const Point& q = path.points[static_cast<std::size_t>(i)];
    if (q.start) continue;
    Segment s;
    s.x0 = (p.x - b.left) * scale;
    s.y0 = (p.y - b.top) * scale;
    s.x1 = (q.x - b.left) * scale;
    s.y1 = (q.y - b.top) * scale;
    s.r0 = width(hand, p.pressure, q.x - p.x, q.y - p.y);
    s.r1 = width(hand, q.pressure, q.x - p.x, q.y - p.y);
    ink.segments[static_cast<std::size_t>(ink.count++)] = s;
  }
  centre(ink, draws);
}

}  // namespace

void write_digit(int digit, Draws& draws, Ink& ink) {
  const Hand hand = draw_hand(digit, draws);
  Knot knots[kMaxKnots];
  const int count = place_knots(digit, hand, draws, knots);
  Path path;
  trace(knots, count, hand, draws, path);
  distort(path, hand, draws);
  ink_path(path, hand, draws, ink);
}

}  // namespace tenon::data
