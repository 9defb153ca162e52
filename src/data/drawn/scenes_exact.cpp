// Paints a scene from back to front: background, clutter, the object's shadow, the
// object, a few pieces over it, then light, contrast and grain. Lengths are in half images, from
// -1 to 1, so that a scene looks alike at any size.
#include "data/drawn/scenes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/drawn/exact_random.h"
#include "data/drawn/scene_outline.h"

namespace tenon::data {
namespace {

constexpr std::uint64_t kLabelStream = 1ull << 63;

struct Colour {
  float r, g, b;
};

Colour mix(const Colour& a, const Colour& b, float t) {
  return {a.r + t * (b.r - a.r), a.g + t * (b.g - a.g), a.b + t * (b.b - a.b)};
}

Colour draw_colour(Draws& draws) {
  Colour c;
  c.r = draws.uniform();
  c.g = draws.uniform();
  c.b = draws.uniform();
  return c;
}

float difference(const Colour& a, const Colour& b) {
  return std::fabs(a.r - b.r) + std::fabs(a.g - b.g) + std::fabs(a.b - b.b);
}

// Smooth noise in [0, 1]: random values on a lattice, blended.
class Noise {
 public:
  explicit Noise(Draws& draws) {
    for (float& value : values_) value = draws.uniform();
  }
  // `cells` lattice cells across the image, at most kSide - 1.
  float at(Place p, float cells) const {
    const float u = std::clamp((p.x + 1.5f) * (1.0f / 3.0f), 0.0f, 0.999f) * cells;
    const float v = std::clamp((p.y + 1.5f) * (1.0f / 3.0f), 0.0f, 0.999f) * cells;
    const int i = static_cast<int>(u), j = static_cast<int>(v);
    const float a = ease(u - static_cast<float>(i)), b = ease(v - static_cast<float>(j));
    const float* row = values_ + j * kSide + i;
    const float upper = row[0] + a * (row[1] - row[0]);
    const float lower = row[kSide] + a * (row[kSide + 1] - row[kSide]);
    return upper + b * (lower - upper);
  }
  static constexpr int kSide = 13;

 private:
  static float ease(float t) { return t * t * (3.0f - 2.0f * t); }
  float values_[kSide * kSide];
};

float triangle_wave(float x) {  // period 1, from 0 to 1 and back
  const float part = x - static_cast<float>(static_cast<int>(x + 1024.0f) - 1024);
  return part < 0.5f ? 2.0f * part : 2.0f - 2.0f * part;
}

float sharpen(float t, float contrast) {
  return std::clamp(0.5f + (t - 0.5f) * contrast, 0.0f, 1.0f);
}

// What a surface looks like: two colours and a pattern that blends them.
class Texture {
 public:
  explicit Texture(Draws& draws) : noise_(draws) {
    first_ = draw_colour(draws);
    second_ = mix(first_, draw_colour(draws), draws.uniform(0.15f, 0.75f));
    pattern_ = draws.below(5);
    const float angle = draws.uniform(-1.55f, 1.55f);
    cos_ = exact_cos(angle);
    sin_ = exact_sin(angle);
    frequency_ = draws.uniform(1.2f, 3.2f);
    phase_ = draws.uniform();
    cells_ = draws.uniform(3.0f, 11.9f);
  }
  const Colour& colour() const { return first_; }
  void recolour(const Colour& c) {
    second_ = mix(c, second_, 0.35f);
    first_ = c;
  }
  Colour at(Place p) const {
    const float u = (p.x * cos_ + p.y * sin_) * frequency_ + phase_;
    const float v = (p.y * cos_ - p.x * sin_) * frequency_ + phase_;
    float t = 0;
    if (pattern_ == 1) t = sharpen(triangle_wave(u), 5.0f);
    if (pattern_ == 2) t = sharpen(0.5f * (triangle_wave(u) + triangle_wave(v)), 6.0f);
    if (pattern_ == 3) t = noise_.at(p, cells_);
    if (pattern_ == 4) t = sharpen(triangle_wave(u) * triangle_wave(v), 3.0f);
    return mix(first_, second_, t);
  }

 private:
  Noise noise_;
  Colour first_, second_;
  int pattern_;
  float cos_, sin_, frequency_, phase_, cells_;
};

// The pose of an object: rotated, stretched, scaled, moved.
struct Pose {
  float x, y, size, cos, sin, wide, high;
  Place inside(Place p) const {
    const float dx = (p.x - x) / size, dy = (p.y - y) / size;
    return {(dx * cos + dy * sin) * wide, (dy * cos - dx * sin) * high};
  }
};

Pose draw_pose(Draws& draws) {
  Pose pose;
  pose.size = draws.uniform(0.40f, 0.72f);
  const float room = 0.95f - pose.size * 0.9f;
  pose.x = draws.uniform(-room, room);
  pose.y = draws.uniform(-room, room);
  const float angle = 0.32f * draws.normal();
  pose.cos = exact_cos(std::clamp(angle, -0.8f, 0.8f));
  pose.sin = exact_sin(std::clamp(angle, -0.8f, 0.8f));
  pose.wide = draws.uniform(0.88f, 1.14f);
  pose.high = 1.0f / pose.wide;
  if (draws.chance(0.5f)) pose.wide = -pose.wide;  // seen in a mirror
  return pose;
}

// A piece of clutter: a bar, a chip of three corners, or a dab. Smaller than any object.
struct Piece {
  int kind;
  Place corners[3];
  float radius;
  Colour colour;
  float distance(Place p) const {
    if (kind == 0) return polygon_distance(corners, p);
    const float ex = corners[1].x - corners[0].x, ey = corners[1].y - corners[0].y;
    const float px = p.x - corners[0].x, py = p.y - corners[0].y;
    const float t = std::clamp((px * ex + py * ey) / (ex * ex + ey * ey + 1e-6f), 0.0f, 1.0f);
    const float dx = px - t * ex, dy = py - t * ey;
    return std::sqrt(dx * dx + dy * dy) - radius;
  }
};

Piece draw_piece(Draws& draws, float size) {
  Piece piece;
  piece.kind = draws.below(2);
  Place centre;
  centre.x = draws.uniform(-1.0f, 1.0f);
  centre.y = draws.uniform(-1.0f, 1.0f);
  for (Place& corner : piece.corners) {
    corner.x = centre.x + draws.uniform(-size, size);
    corner.y = centre.y + draws.uniform(-size, size);
  }
  piece.radius = size * draws.uniform(0.12f, 0.35f);
  piece.colour = draw_colour(draws);
  return piece;
}

// Everything that an image shows, drawn before the first pixel is painted.
struct Scene {
  int label;
  Texture background, surface;
  std::vector<Piece> behind, before;
  Pose pose;
  Place shadow;
  float shadow_depth, outline, shade, light_x, light_y, brightness, contrast, grain;
  Colour tint;

  Scene(int which, Draws& draws) : label(which), background(draws), surface(draws) {
    // An object whose colour is close to the background gets another colour.
    for (int tries = 0; tries < 8 && difference(surface.colour(), background.colour()) < 0.75f;
         ++tries)
      surface.recolour(draw_colour(draws));
    const int lying = 2 + draws.below(5), over = draws.below(3);
    for (int i = 0; i < lying; ++i) behind.push_back(draw_piece(draws, 0.38f));
    for (int i = 0; i < over; ++i) before.push_back(draw_piece(draws, 0.14f));
    pose = draw_pose(draws);
    shadow.x = draws.uniform(-0.16f, 0.16f);
    shadow.y = draws.uniform(0.02f, 0.2f);
    shadow_depth = draws.uniform(0.0f, 0.6f);
    outline = draws.chance(0.3f) ? draws.uniform(0.04f, 0.12f) : 0.0f;
    shade = draws.uniform(0.0f, 0.45f);
    const float angle = draws.uniform(-1.55f, 1.55f);
    light_x = exact_sin(angle);
    light_y = exact_cos(angle);
    if (draws.chance(0.5f)) light_x = -light_x;
    brightness = draws.uniform(-0.12f, 0.12f);
    contrast = draws.uniform(0.65f, 1.15f);
    grain = draws.uniform(0.01f, 0.06f);
    tint.r = draws.uniform(0.85f, 1.1f);
    tint.g = draws.uniform(0.85f, 1.1f);
    tint.b = draws.uniform(0.85f, 1.1f);
  }

  // The object's face, lit from one side; `within`: how much of the place is inside its outline.
  Colour surface_at(Place own, float within) const {
    const float round = shade * (own.x * light_x + own.y * light_y);
    Colour face = surface.at(own);
    face = {face.r - round, face.g - round, face.b - round};
    return outline > 0 ? mix({0.05f, 0.05f, 0.05f}, face, within) : face;
  }

  // How far from the object, in half images; places well outside are not measured.
  float distance(Place own) const {
    if (std::max(std::fabs(own.x), std::fabs(own.y)) > 1.3f) return 1.0f;
    return pose.size * outline_distance(label, own);
  }

  // `edge`: half the width of a pixel, over which edges blend.
  Colour at(Place p, float edge) const {
    const auto covered = [&](float distance) {
      return std::clamp(0.5f - distance / (2.0f * edge), 0.0f, 1.0f);
    };
    Colour c = background.at(p);
    for (const Piece& piece : behind) c = mix(c, piece.colour, covered(piece.distance(p)));
    const float light = shade * (p.x * light_x + p.y * light_y);
    const float cast = covered(distance(pose.inside({p.x - shadow.x, p.y - shadow.y})));
    c = mix(c, {0, 0, 0}, shadow_depth * cast);
    const Place own = pose.inside(p);
    const float from = distance(own), cover = covered(from);
    if (cover > 0) c = mix(c, surface_at(own, covered(from + pose.size * outline)), cover);
    for (const Piece& piece : before) c = mix(c, piece.colour, covered(piece.distance(p)));
    return {c.r * tint.r - 0.5f * light, c.g * tint.g - 0.5f * light, c.b * tint.b - 0.5f * light};
  }
};

std::uint8_t to_byte(float value) {
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): positive, and lround is a call a pixel
  return static_cast<std::uint8_t>(std::clamp(value, 0.0f, 1.0f) * 255.0f + 0.5f);
}

}  // namespace

int scene_label(std::uint64_t seed, std::uint64_t index) {
  Draws draws(seed, kLabelStream | (index / kSceneClasses));
  int order[kSceneClasses];
  for (int i = 0; i < kSceneClasses; ++i) order[i] = i;
  for (int i = kSceneClasses - 1; i > 0; --i) std::swap(order[i], order[draws.below(i + 1)]);
  return order[index % kSceneClasses];
}

void draw_scene(std::uint64_t seed, std::uint64_t index, int side, std::uint8_t* pixels) {
  Draws draws(seed, index);
  const Scene scene(scene_label(seed, index), draws);
  const float step = 2.0f / static_cast<float>(side);
  const int plane = side * side;
  for (int row = 0; row < side; ++row)
    for (int column = 0; column < side; ++column) {
      const Place p{(static_cast<float>(column) + 0.5f) * step - 1.0f,
                    (static_cast<float>(row) + 0.5f) * step - 1.0f};
      const Colour c = scene.at(p, 0.5f * step);
      const int at = row * side + column;
      const float channels[] = {c.r, c.g, c.b};
      for (int k = 0; k < kSceneChannels; ++k)
        pixels[k * plane + at] = to_byte(0.5f + (channels[k] - 0.5f) * scene.contrast +
                                         scene.brightness + scene.grain * draws.normal());
    }
}

}  // namespace tenon::data
