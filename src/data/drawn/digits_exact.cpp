// Rasterises the pen's segments: signed distance to the ink under a slight elastic deformation,
// then edge, noise and blur.
#include "data/drawn/digits.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "data/drawn/digit_pen.h"

namespace tenon::data {
namespace {

constexpr float kElastic = 0.38f;  // Spread of the sheet's displacement, pixels.
constexpr std::uint64_t kLabelStream = 1ull << 63;

// The sheet: where each pixel's centre is after a bilinear random displacement on a 7 x 7
// lattice.
struct Sheet {
  static constexpr int kSide = 7;
  float x[kDigitPixels], y[kDigitPixels];

  explicit Sheet(Draws& draws) {
    float dx[kSide][kSide], dy[kSide][kSide];
    const float strength = kElastic * draws.uniform(0.3f, 1.3f);
    for (int j = 0; j < kSide; ++j)
      for (int i = 0; i < kSide; ++i) {
        dx[j][i] = strength * draws.normal();
        dy[j][i] = strength * draws.normal();
      }
    constexpr float step = static_cast<float>(kSide - 1) / static_cast<float>(kDigitSide);
    for (int row = 0; row < kDigitSide; ++row) {
      const float v = (static_cast<float>(row) + 0.5f) * step;
      const int j = static_cast<int>(v);
      const float b = v - static_cast<float>(j);
      for (int column = 0; column < kDigitSide; ++column) {
        const float u = (static_cast<float>(column) + 0.5f) * step;
        const int i = static_cast<int>(u);
        const float a = u - static_cast<float>(i);
        const int at = row * kDigitSide + column;
        x[at] = static_cast<float>(column) + 0.5f + bilinear(dx, j, i, b, a);
        y[at] = static_cast<float>(row) + 0.5f + bilinear(dy, j, i, b, a);
      }
    }
  }
  static float bilinear(const float (&d)[kSide][kSide], int j, int i, float b, float a) {
    const float upper = d[j][i] + a * (d[j][i + 1] - d[j][i]);
    const float lower = d[j + 1][i] + a * (d[j + 1][i + 1] - d[j + 1][i]);
    return upper + b * (lower - upper);
  }
};

int clamp_pixel(float at) {
  return static_cast<int>(std::clamp(at, 0.0f, static_cast<float>(kDigitSide)));
}

// depth = how far inside the ink a pixel is, negative outside; the union of all segments is the
// maximum.
void cover(const Ink& ink, const Sheet& sheet, float* depth) {
  constexpr float margin = 2.2f;  // Soft edge plus the sheet's largest displacement.
  for (int i = 0; i < ink.count; ++i) {
    const Segment& s = ink.segments[static_cast<std::size_t>(i)];
    const float reach = std::max(s.r0, s.r1) + margin;
    const int left = clamp_pixel(std::min(s.x0, s.x1) - reach),
              right = clamp_pixel(std::max(s.x0, s.x1) + reach);
    const int top = clamp_pixel(std::min(s.y0, s.y1) - reach),
              bottom = clamp_pixel(std::max(s.y0, s.y1) + reach);
    const float dx = s.x1 - s.x0, dy = s.y1 - s.y0, dr = s.r1 - s.r0;
    const float inverse = 1.0f / std::max(dx * dx + dy * dy, 1e-9f);
    for (int row = top; row < bottom; ++row)
      for (int at = row * kDigitSide + left; at < row * kDigitSide + right; ++at) {
        const float px = sheet.x[at] - s.x0, py = sheet.y[at] - s.y0;
        const float t = std::min(std::max((px * dx + py * dy) * inverse, 0.0f), 1.0f);
        const float ex = px - t * dx, ey = py - t * dy;
        depth[at] = std::max(depth[at], s.r0 + t * dr - std::sqrt(ex * ex + ey * ey));
      }
  }
}

// Depth to brightness: a soft edge, a pen that does not ink evenly, then a light blur.
void develop(const float* depth, Draws& draws, std::uint8_t* pixels) {
  const float soft = 1.0f / draws.uniform(0.8f, 1.3f);
  const float grain = draws.uniform(0.0f, 0.12f);
  const float blur = draws.uniform(0.0f, 0.16f);
  const float brightness = 255.0f * draws.uniform(0.96f, 1.0f);
  float ink[kDigitPixels];
  for (int at = 0; at < kDigitPixels; ++at) {
    const float edge = std::clamp(0.5f + depth[at] * soft, 0.0f, 1.0f);
    ink[at] =
        edge > 0.0f ? edge * edge * (3.0f - 2.0f * edge) * (1.0f - grain * draws.uniform()) : 0.0f;
  }
  for (int row = 0; row < kDigitSide; ++row)
    for (int column = 0; column < kDigitSide; ++column) {
      const int at = row * kDigitSide + column;
      const float up = row > 0 ? ink[at - kDigitSide] : 0.0f;
      const float down = row + 1 < kDigitSide ? ink[at + kDigitSide] : 0.0f;
      const float before = column > 0 ? ink[at - 1] : 0.0f;
      const float after = column + 1 < kDigitSide ? ink[at + 1] : 0.0f;
      const float mean = 0.25f * ((up + down) + (before + after));
      const float value = ink[at] + blur * (mean - ink[at]);
      // NOLINTNEXTLINE(bugprone-incorrect-roundings): positive, and lround is a call a pixel
      pixels[at] = static_cast<std::uint8_t>(std::min(value * 1.06f, 1.0f) * brightness + 0.5f);
    }
}

}  // namespace

int digit_label(std::uint64_t seed, std::uint64_t index) {
  Draws draws(seed, kLabelStream | (index / 10));
  int order[10];
  for (int i = 0; i < 10; ++i) order[i] = i;
  for (int i = 9; i > 0; --i) std::swap(order[i], order[draws.below(i + 1)]);
  return order[index % 10];
}

void draw_digit(std::uint64_t seed, std::uint64_t index, std::uint8_t* pixels) {
  Draws draws(seed, index);
  Ink ink;
  write_digit(digit_label(seed, index), draws, ink);
  const Sheet sheet(draws);
  float depth[kDigitPixels];
  std::fill(depth, depth + kDigitPixels, -1e3f);
  cover(ink, sheet, depth);
  develop(depth, draws, pixels);
}

void draw_digits(std::uint64_t seed, std::uint64_t first, std::int64_t count, std::uint8_t* pixels,
                 std::uint8_t* labels) {
  constexpr std::int64_t block = 64;
  parallel_for((count + block - 1) / block, [&](std::int64_t chunk, int) {
    const std::int64_t end = std::min(count, (chunk + 1) * block);
    for (std::int64_t i = chunk * block; i < end; ++i) {
      const std::uint64_t index = first + static_cast<std::uint64_t>(i);
      draw_digit(seed, index, pixels + i * kDigitPixels);
      labels[i] = static_cast<std::uint8_t>(digit_label(seed, index));
    }
  });
}

}  // namespace tenon::data
