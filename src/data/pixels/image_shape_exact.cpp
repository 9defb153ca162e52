// Geometric operations: crops, flips, affine maps and perspective.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/index.h"
#include "data/pixels/image_ops.h"
#include "scalar/image.h"

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

Image affine(const Image& image, const std::array<double, 6>& matrix) {
  const scalar::AffineAxis across = scalar::affine_axis(matrix.data()),
                           down = scalar::affine_axis(&matrix[3]);
  Image out = black(image.width, image.height, image.channels);
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x, to += image.channels) {
      const std::int64_t px = scalar::affine_place(across, x, y),
                         py = scalar::affine_place(down, x, y);
      if (px >= 0 && px < image.width && py >= 0 && py < image.height)
        std::memcpy(to, pixel(image, static_cast<int>(px), static_cast<int>(py)),
                    at(image.channels));
    }
  return out;
}

std::array<double, 6> affine_matrix(ImageSize size, double angle, double x, double y, double scale,
                                    double shear_x, double shear_y) {
  const double turn = radians(angle), sx = radians(shear_x), sy = radians(shear_y);
  const double centre_x = size.width * 0.5, centre_y = size.height * 0.5;
  const double a = std::cos(turn - sy) / std::cos(sy),
               b = -std::cos(turn - sy) * std::tan(sx) / std::cos(sy) - std::sin(turn),
               c = std::sin(turn - sy) / std::cos(sy),
               d = -std::sin(turn - sy) * std::tan(sx) / std::cos(sy) + std::cos(turn);
  std::array<double, 6> m{d / scale, -b / scale, 0, -c / scale, a / scale, 0};
  m[2] = m[0] * (-centre_x - x) + m[1] * (-centre_y - y) + centre_x;
  m[5] = m[3] * (-centre_x - x) + m[4] * (-centre_y - y) + centre_y;
  return m;
}

std::array<double, 6> rotation_matrix(ImageSize size, double degrees) {
  return affine_matrix(size, -degrees, 0, 0, 1, 0, 0);
}

std::array<double, 8> perspective_map(const std::array<Corner, 4>& from,
                                      const std::array<Corner, 4>& to) {
  std::array<std::array<double, 9>, 8> rows{};
  for (std::size_t k = 0; k < 4; ++k) {
    const Corner p = to[k], q = from[k];
    rows[2 * k] = {p.x, p.y, 1, 0, 0, 0, -q.x * p.x, -q.x * p.y, q.x};
    rows[2 * k + 1] = {0, 0, 0, p.x, p.y, 1, -q.y * p.x, -q.y * p.y, q.y};
  }
  return solve(rows);
}

Image perspective(const Image& image, const std::array<double, 8>& map) {
  Image out = black(image.width, image.height, image.channels);
  std::uint8_t* to = out.pixels.data();
  scalar::FourPixels four{};
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x, to += image.channels) {
      if (!scalar::perspective_place(map.data(), x, y, image.width, image.height, four)) continue;
      for (int c = 0; c < image.channels; ++c)
        to[c] = scalar::level_between(
            four, pixel(image, four.left, four.top)[c], pixel(image, four.right, four.top)[c],
            pixel(image, four.left, four.bottom)[c], pixel(image, four.right, four.bottom)[c]);
    }
  return out;
}

}  // namespace tenon::data
