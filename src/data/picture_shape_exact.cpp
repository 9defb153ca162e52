// Where pixels go: crops, mirrors, affine maps and perspective.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/index.h"
#include "data/picture_ops.h"

namespace tenon::data {
namespace {

const std::uint8_t* pixel(const Image& image, int x, int y) {
  return &image.pixels[(at(y) * at(image.width) + at(x)) * at(image.channels)];
}

Image black(int width, int height, int channels) {
  return {width, height, channels,
          std::vector<std::uint8_t>(at(width) * at(height) * at(channels))};
}

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

// Solves 8 equations by elimination with the largest pivot.
std::array<double, 8> solve(std::array<std::array<double, 9>, 8> rows) {
  for (std::size_t k = 0; k < 8; ++k) {
    const auto largest = std::max_element(
        rows.begin() + static_cast<std::ptrdiff_t>(k), rows.end(),
        [k](const auto& a, const auto& b) { return std::abs(a[k]) < std::abs(b[k]); });
    std::swap(rows[k], *largest);
    for (std::size_t i = 0; i < 8; ++i) {
      if (i == k || rows[k][k] == 0) continue;
      const double factor = rows[i][k] / rows[k][k];
      for (std::size_t j = k; j < 9; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  std::array<double, 8> out{};
  for (std::size_t k = 0; k < 8; ++k) out[k] = rows[k][k] == 0 ? 0 : rows[k][8] / rows[k][k];
  return out;
}

// The mean of the four pixels around (x, y), coordinates of centres at one half; false outside.
bool between(const Image& image, double x, double y, std::uint8_t* out) {
  if (!(x >= 0 && x < image.width && y >= 0 && y < image.height)) return false;
  x -= 0.5, y -= 0.5;
  const double floor_x = std::floor(x), floor_y = std::floor(y), dx = x - floor_x, dy = y - floor_y;
  const int left = std::max(static_cast<int>(floor_x), 0),
            right = std::min(static_cast<int>(floor_x) + 1, image.width - 1),
            top = std::max(static_cast<int>(floor_y), 0),
            bottom = std::min(static_cast<int>(floor_y) + 1, image.height - 1);
  for (int c = 0; c < image.channels; ++c) {
    const double upper = pixel(image, left, top)[c] * (1 - dx) + pixel(image, right, top)[c] * dx;
    const double lower =
        pixel(image, left, bottom)[c] * (1 - dx) + pixel(image, right, bottom)[c] * dx;
    out[c] = static_cast<std::uint8_t>(upper * (1 - dy) + lower * dy);
  }
  return true;
}

}  // namespace

Image cropped(const Image& image, int left, int top, int width, int height) {
  Image out = black(width, height, image.channels);
  const int first = std::max(left, 0), last = std::min(left + width, image.width);
  if (first >= last) return out;
  for (int y = std::max(top, 0); y < std::min(top + height, image.height); ++y)
    std::memcpy(&out.pixels[(at(y - top) * at(width) + at(first - left)) * at(image.channels)],
                pixel(image, first, y), at(last - first) * at(image.channels));
  return out;
}

Image mirrored(const Image& image) {
  Image out = black(image.width, image.height, image.channels);
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < image.height; ++y)
    for (int x = image.width - 1; x >= 0; --x)
      for (int c = 0; c < image.channels; ++c) *to++ = pixel(image, x, y)[c];
  return out;
}

Image upside_down(const Image& image) {
  Image out = black(image.width, image.height, image.channels);
  const std::size_t row = at(image.width) * at(image.channels);
  for (int y = 0; y < image.height; ++y)
    std::memcpy(&out.pixels[row * at(y)], pixel(image, 0, image.height - 1 - y), row);
  return out;
}

// In 16.16 fixed point, as Pillow does it.
Image affine(const Image& image, const std::array<double, 6>& m) {
  const auto fixed = [](double value) {
    return static_cast<std::int64_t>(std::floor(value * 65536 + 0.5));
  };
  Image out = black(image.width, image.height, image.channels);
  const std::int64_t dx = fixed(m[0]), dy = fixed(m[3]);
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < image.height; ++y) {
    std::int64_t from_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5) + y * fixed(m[1]),
                 from_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5) + y * fixed(m[4]);
    for (int x = 0; x < image.width; ++x, from_x += dx, from_y += dy, to += image.channels) {
      const std::int64_t px = from_x >> 16, py = from_y >> 16;
      if (px >= 0 && px < image.width && py >= 0 && py < image.height)
        std::memcpy(to, pixel(image, static_cast<int>(px), static_cast<int>(py)),
                    at(image.channels));
    }
  }
  return out;
}

std::array<double, 6> affine_matrix(const Image& image, double angle, double x, double y,
                                    double scale, double shear_x, double shear_y) {
  const double turn = radians(angle), sx = radians(shear_x), sy = radians(shear_y);
  const double centre_x = image.width * 0.5, centre_y = image.height * 0.5;
  const double a = std::cos(turn - sy) / std::cos(sy),
               b = -std::cos(turn - sy) * std::tan(sx) / std::cos(sy) - std::sin(turn),
               c = std::sin(turn - sy) / std::cos(sy),
               d = -std::sin(turn - sy) * std::tan(sx) / std::cos(sy) + std::cos(turn);
  std::array<double, 6> m{d / scale, -b / scale, 0, -c / scale, a / scale, 0};
  m[2] = m[0] * (-centre_x - x) + m[1] * (-centre_y - y) + centre_x;
  m[5] = m[3] * (-centre_x - x) + m[4] * (-centre_y - y) + centre_y;
  return m;
}

Image rotated(const Image& image, double degrees) {
  return affine(image, affine_matrix(image, -degrees, 0, 0, 1, 0, 0));
}

Image perspective(const Image& image, const std::array<Corner, 4>& from,
                  const std::array<Corner, 4>& to) {
  std::array<std::array<double, 9>, 8> rows{};
  for (std::size_t k = 0; k < 4; ++k) {
    const Corner p = to[k], q = from[k];
    rows[2 * k] = {p.x, p.y, 1, 0, 0, 0, -q.x * p.x, -q.x * p.y, q.x};
    rows[2 * k + 1] = {0, 0, 0, p.x, p.y, 1, -q.y * p.x, -q.y * p.y, q.y};
  }
  const std::array<double, 8> m = solve(rows);
  Image out = black(image.width, image.height, image.channels);
  std::uint8_t* pixels = out.pixels.data();
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x, pixels += image.channels) {
      const double px = x + 0.5, py = y + 0.5, depth = m[6] * px + m[7] * py + 1;
      between(image, (m[0] * px + m[1] * py + m[2]) / depth, (m[3] * px + m[4] * py + m[5]) / depth,
              pixels);
    }
  return out;
}

}  // namespace tenon::data
