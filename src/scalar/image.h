// Per-pixel arithmetic of image transforms: weights of a triangle filter, and colour transforms.
// One definition for the CPU and for GPUs, which give the same bytes: no multiply-add here is
// fused.
#pragma once

#include "scalar/config.h"

TENON_SCALAR_BEGIN

/// a * b with a rounding of its own.
TENON_SCALAR double product(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
TENON_SCALAR float product(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

TENON_SCALAR int clamped(int x, int low, int high) { return x < low ? low : x > high ? high : x; }
TENON_SCALAR int nearest_whole(double x) { return static_cast<int>(::floor(x + 0.5)); }

// ---- Resampling --------------------------------------------------------------------------------

// Fraction bits of a weight: 8 bits of a pixel and a sign also fit into 32 bits.
inline constexpr int kWeightBits = 22;
inline constexpr int kHalfWeight = 1 << (kWeightBits - 1);

/// One axis of a resize: result pixels are `scale` source pixels apart, starting at `from`; source
/// pixels `low` to `high` - 1 are visible.
struct ResampleAxis {
  double from, scale, support;
  int low, high;
};
TENON_SCALAR ResampleAxis resample_axis(double from, double to, int low, int high, int pixels) {
  const double scale = (to - from) / pixels;
  return {from, scale, scale > 1.0 ? scale : 1.0, low, high};
}
TENON_SCALAR double tap_centre(const ResampleAxis& axis, int i) {
  return axis.from + product(i + 0.5, axis.scale);
}
TENON_SCALAR int first_tap(const ResampleAxis& axis, double centre) {
  return clamped(nearest_whole(centre - axis.support), axis.low, axis.high - 1);
}
TENON_SCALAR int end_of_taps(const ResampleAxis& axis, double centre, int first) {
  return clamped(nearest_whole(centre + axis.support), first + 1, axis.high);
}
/// The weight of a source pixel, before a result pixel's weights are divided by their sum.
TENON_SCALAR double raw_weight(const ResampleAxis& axis, double centre, int pixel) {
  const double left = 1 - magnitude((pixel - centre + 0.5) / axis.support);
  return left > 0.0 ? left : 0.0;
}
TENON_SCALAR int32_t tap_weight(double raw, double sum, int count) {
  return nearest_whole(product(sum > 0 ? raw / sum : 1.0 / count, double{1 << kWeightBits}));
}
TENON_SCALAR unsigned char resampled(int32_t sum) {
  return static_cast<unsigned char>(clamped(sum >> kWeightBits, 0, 255));
}
/// The first source pixel of a range of result pixels, and one past the last.
struct TapRange {
  int first, end;
};
TENON_SCALAR TapRange all_taps(const ResampleAxis& axis, int pixels) {
  const double low = tap_centre(axis, 0), high = tap_centre(axis, pixels - 1);
  return {first_tap(axis, low), end_of_taps(axis, high, first_tap(axis, high))};
}

// ---- Colours of a JPEG -------------------------------------------------------------------------

/// Samples of one colour component; each covers across x down pixels, 1 or 2.
struct ColourPlane {
  const unsigned char* samples;
  int64_t pitch;
  int width, height, across, down;
};
/// libjpeg's value for pixel (x, y): three quarters of the nearest sample in each direction, one
/// quarter of the next.
TENON_SCALAR int colour_at(const ColourPlane& plane, int x, int y) {
  const int cx = x / plane.across, cy = y / plane.down;
  const bool right = x % 2 != 0, lower = y % 2 != 0;
  const unsigned char* row = plane.samples + cy * plane.pitch;
  // libjpeg does not interpolate one or two samples.
  if (plane.across == 2 ? plane.width <= 2 : plane.down == 1) return row[cx];
  const int near_x = clamped(cx + (right ? 1 : -1), 0, plane.width - 1);
  if (plane.down == 1) return (3 * row[cx] + row[near_x] + (right ? 2 : 1)) >> 2;
  const unsigned char* near =
      plane.samples + clamped(cy + (lower ? 1 : -1), 0, plane.height - 1) * plane.pitch;
  const int here = 3 * row[cx] + near[cx];
  if (plane.across == 1) return (here + (lower ? 2 : 1)) >> 2;
  return (3 * here + 3 * row[near_x] + near[near_x] + (right ? 7 : 8)) >> 4;
}
/// In libjpeg's integer arithmetic.
TENON_SCALAR void rgb_of(int light, int blue, int red, unsigned char* p) {
  blue -= 128, red -= 128;
  p[0] = static_cast<unsigned char>(clamped(light + ((91881 * red + 32768) >> 16), 0, 255));
  p[1] = static_cast<unsigned char>(
      clamped(light + ((-22554 * blue - 46802 * red + 32768) >> 16), 0, 255));
  p[2] = static_cast<unsigned char>(clamped(light + ((116130 * blue + 32768) >> 16), 0, 255));
}

// ---- Positions ---------------------------------------------------------------------------------

/// One coordinate of an affine map in 16.16 fixed point, as in Pillow.
struct AffineAxis {
  int64_t start, across, down;
};
TENON_SCALAR int64_t fixed_point(double x) {
  return static_cast<int64_t>(::floor(product(x, 65536.0) + 0.5));
}
/// From the factors of x and y, and the constant.
TENON_SCALAR AffineAxis affine_axis(const double* m) {
  return {fixed_point(m[2] + product(m[0], 0.5) + product(m[1], 0.5)), fixed_point(m[0]),
          fixed_point(m[1])};
}
TENON_SCALAR int64_t affine_place(const AffineAxis& axis, int x, int y) {
  return (axis.start + x * axis.across + y * axis.down) >> 16;
}

/// The four pixels around a position, and the position's distance from the first one.
struct FourPixels {
  int left, right, top, bottom;
  double across, down;
};
/// The source position of pixel (x, y) under a perspective map (8 numbers); false outside the
/// image.
TENON_SCALAR bool perspective_place(const double* m, int x, int y, int width, int height,
                                    FourPixels& out) {
  const double px = x + 0.5, py = y + 0.5, depth = product(m[6], px) + product(m[7], py) + 1;
  double from_x = (product(m[0], px) + product(m[1], py) + m[2]) / depth,
         from_y = (product(m[3], px) + product(m[4], py) + m[5]) / depth;
  if (!(from_x >= 0 && from_x < width && from_y >= 0 && from_y < height)) return false;
  from_x -= 0.5, from_y -= 0.5;
  const double floor_x = ::floor(from_x), floor_y = ::floor(from_y);
  const int left = static_cast<int>(floor_x), top = static_cast<int>(floor_y);
  out.left = left < 0 ? 0 : left, out.right = left + 1 < width ? left + 1 : width - 1;
  out.top = top < 0 ? 0 : top, out.bottom = top + 1 < height ? top + 1 : height - 1;
  out.across = from_x - floor_x, out.down = from_y - floor_y;
  return true;
}
/// Bilinear interpolation between the levels of the four pixels.
TENON_SCALAR unsigned char level_between(const FourPixels& at, unsigned char top_left,
                                         unsigned char top_right, unsigned char bottom_left,
                                         unsigned char bottom_right) {
  const double upper = product(top_left, 1 - at.across) + product(top_right, at.across),
               lower = product(bottom_left, 1 - at.across) + product(bottom_right, at.across);
  return static_cast<unsigned char>(product(upper, 1 - at.down) + product(lower, at.down));
}

/// Mirrored at the edges; edge pixels are not repeated.
TENON_SCALAR int reflected(int i, int size) {
  if (size == 1) return 0;
  while (i < 0 || i >= size) i = i < 0 ? -i : 2 * (size - 1) - i;
  return i;
}
/// The weight of a blur, before weights are divided by their sum.
TENON_SCALAR double blur_weight(int away, double sigma) {
  return ::exp(-0.5 * away * away / product(sigma, sigma));
}

// ---- Colours -----------------------------------------------------------------------------------

TENON_SCALAR unsigned char byte_of(double x) {
  return static_cast<unsigned char>(x < 0.0 ? 0.0 : x > 255.0 ? 255.0 : x);
}

/// The nearest level, 0 to 255; without a function call, unlike ::round().
TENON_SCALAR unsigned char rounded_byte(double x) {
  const double above = x + 0.5;
  return static_cast<unsigned char>(above);
}

TENON_SCALAR unsigned char posterized_level(unsigned char level, int bits) {
  return static_cast<unsigned char>(level & ~((1 << (8 - bits)) - 1));
}
TENON_SCALAR unsigned char solarized_level(unsigned char level, double threshold) {
  return static_cast<unsigned char>(static_cast<double>(level) < threshold ? level : 255 - level);
}

/// Auto-contrast: the new level for each of a channel's 256 levels, given their counts; the used
/// levels are spread over the whole range.
template <class Count>
TENON_SCALAR void auto_contrast_levels(const Count* counts, unsigned char* levels) {
  int low = 0, high = 255;
  while (low < 255 && counts[low] == 0) ++low;
  while (high > 0 && counts[high] == 0) --high;
  const double scale = high <= low ? 1 : 255.0 / (high - low),
               offset = high <= low ? 0 : product(low, scale);
  for (int i = 0; i < 256; ++i) levels[i] = byte_of(product(i, scale) - offset);
}
/// Equalize: the same, but so that each level is about equally frequent.
template <class Count>
TENON_SCALAR void equalized_levels(const Count* counts, unsigned char* levels) {
  int64_t all = 0, last = 0, kinds = 0;
  for (int i = 0; i < 256; ++i) {
    if (counts[i] == 0) continue;
    last = static_cast<int64_t>(counts[i]);
    all += last, ++kinds;
  }
  const int64_t step = (all - last) / 255;
  int64_t sum = step / 2;
  for (int i = 0; i < 256; ++i) {
    const int64_t level = kinds <= 1 || step == 0 ? i : sum / step;
    levels[i] = static_cast<unsigned char>(level < 255 ? level : 255);
    sum += static_cast<int64_t>(counts[i]);
  }
}

/// From `base` to `value` and beyond, clipped and not rounded, as Pillow blends.
TENON_SCALAR unsigned char blended(unsigned char base, unsigned char value, float factor) {
  const float sum =
      static_cast<float>(base) + product(factor, static_cast<float>(int{value} - int{base}));
  return static_cast<unsigned char>(sum < 0.0f ? 0.0f : sum > 255.0f ? 255.0f : sum);
}

TENON_SCALAR unsigned char luma(const unsigned char* p) {
  return static_cast<unsigned char>((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16);
}

/// A level plus a colour's share.
TENON_SCALAR unsigned char shifted_level(unsigned char level, double by) {
  return byte_of(::floor(static_cast<double>(level) + by + 0.5));
}

/// The mean of 3 x 3 pixels, with the centre counted five times, from their weighted sum.
TENON_SCALAR unsigned char smoothed_level(int sum) { return byte_of(sum / 13.0 + 0.5); }

/// Converts to hue, saturation and value as bytes, and back.
TENON_SCALAR void rotate_hue(unsigned char* p, unsigned char shift) {
  const unsigned char rg_most = p[0] > p[1] ? p[0] : p[1], rg_least = p[0] < p[1] ? p[0] : p[1];
  const unsigned char most = rg_most > p[2] ? rg_most : p[2],
                      least = rg_least < p[2] ? rg_least : p[2];
  if (most == least) return;
  const auto range = static_cast<float>(most - least);
  const float r = static_cast<float>(most - p[0]) / range,
              g = static_cast<float>(most - p[1]) / range,
              b = static_cast<float>(most - p[2]) / range;
  const auto raw =
      static_cast<float>(p[0] == most   ? static_cast<double>(b) - static_cast<double>(g)
                         : p[1] == most ? 2 + static_cast<double>(r) - static_cast<double>(b)
                                        : 4 + static_cast<double>(g) - static_cast<double>(r));
  const double round = static_cast<double>(raw) / 6 + 1;  // 5/6 to 11/6
  const auto permuted = static_cast<float>(round >= 1 ? round - 1 : round);
  const auto hue = static_cast<unsigned char>(
      static_cast<int>(product(static_cast<double>(permuted), 255.0)) + shift);
  const auto saturation = static_cast<unsigned char>(
      product(static_cast<double>(range / static_cast<float>(most)), 255.0));
  const double place = product(hue, 6.0) / 255, v = most;
  const int sector = static_cast<int>(place);
  const double part = static_cast<double>(static_cast<float>(place - sector)),
               s = static_cast<double>(static_cast<float>(saturation / 255.0));
  const unsigned char low = rounded_byte(product(v, 1 - s)),
                      fall = rounded_byte(product(v, 1 - product(s, part))),
                      rise = rounded_byte(product(v, 1 - product(s, 1 - part)));
  const int which = sector % 6;
  p[0] = which == 0 || which == 5 ? most : which == 1 ? fall : which == 4 ? rise : low;
  p[1] = which == 1 || which == 2 ? most : which == 3 ? fall : which == 0 ? rise : low;
  p[2] = which == 3 || which == 4 ? most : which == 5 ? fall : which == 2 ? rise : low;
}

TENON_SCALAR_END
