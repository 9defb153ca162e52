// Resizing in two passes, along rows and then along columns, in integers: the same bytes on every
// machine, and the same as Pillow's.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/index.h"
#include "data/pixels/image_ops.h"
#include "scalar/image.h"

namespace tenon::data {
namespace {

// The input pixels that each output pixel is a mean of, and their weights.
struct Taps {
  int most = 0;  // of one pixel
  std::vector<int> first, count;
  std::vector<std::int32_t> weights;  // [pixels, most]
};

Taps taps_of(double from, double to, int low, int high, int pixels) {
  const scalar::ResampleAxis axis = scalar::resample_axis(from, to, low, high, pixels);
  Taps taps;
  taps.most = static_cast<int>(std::ceil(axis.support)) * 2 + 1;
  taps.first.resize(at(pixels)), taps.count.resize(at(pixels));
  taps.weights.assign(at(pixels) * at(taps.most), 0);
  std::vector<double> raw(at(taps.most));
  for (int i = 0; i < pixels; ++i) {
    const double centre = scalar::tap_centre(axis, i);
    const int first = scalar::first_tap(axis, centre),
              count = scalar::end_of_taps(axis, centre, first) - first;
    double sum = 0;
    for (int k = 0; k < count; ++k) sum += raw[at(k)] = scalar::raw_weight(axis, centre, first + k);
    taps.first[at(i)] = first, taps.count[at(i)] = count;
    for (int k = 0; k < count; ++k)
      taps.weights[at(i) * at(taps.most) + at(k)] = scalar::tap_weight(raw[at(k)], sum, count);
  }
  return taps;
}

constexpr double kWhole = 1e-6;  // an edge this close to a pixel boundary counts as on it

template <int kChannels>
void resize_row(const std::uint8_t* in, const Taps& taps, int width, std::uint8_t* out) {
  for (int x = 0; x < width; ++x) {
    const std::int32_t* weights = &taps.weights[at(x) * at(taps.most)];
    const std::uint8_t* from = in + std::int64_t{taps.first[at(x)]} * kChannels;
    std::int32_t sums[kChannels];
    for (std::int32_t& sum : sums) sum = scalar::kHalfWeight;
    for (int k = 0; k < taps.count[at(x)]; ++k, from += kChannels)
      for (int c = 0; c < kChannels; ++c) sums[c] += weights[k] * from[c];
    for (int c = 0; c < kChannels; ++c) *out++ = scalar::resampled(sums[c]);
  }
}

void add_row(const std::uint8_t* __restrict in, std::int32_t weight, std::size_t count,
             std::int32_t* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += weight * in[i];
}

}  // namespace

SeenPixels seen_pixels(const ImageBox& within, int width, int height) {
  const auto low = [](double edge, int size) {
    return std::clamp(static_cast<int>(std::floor(edge + kWhole)), 0, size - 1);
  };
  const auto high = [](double edge, int size) {
    return std::clamp(static_cast<int>(std::ceil(edge - kWhole)), 1, size);
  };
  const int left = low(within.left, width), top = low(within.top, height);
  return {left, top, std::max(high(within.right, width), left + 1),
          std::max(high(within.bottom, height), top + 1)};
}

Image resized(const Image& image, const ImageBox& box, int width, int height) {
  return resized(image, box, box, width, height);
}

Image resized(const Image& image, const ImageBox& box, const ImageBox& within, int width,
              int height) {
  const SeenPixels seen = seen_pixels(within, image.width, image.height);
  const Taps across = taps_of(box.left, box.right, seen.left, seen.right, width),
             down = taps_of(box.top, box.bottom, seen.top, seen.bottom, height);
  const int first = down.first.front(), end = down.first.back() + down.count.back();
  const std::size_t row = at(width) * at(image.channels);
  std::vector<std::uint8_t> rows(row * at(end - first));
  for (int y = first; y < end; ++y) {
    const std::uint8_t* in = &image.pixels[at(y) * at(image.width) * at(image.channels)];
    std::uint8_t* out = &rows[row * at(y - first)];
    image.channels == 3 ? resize_row<3>(in, across, width, out)
                        : resize_row<1>(in, across, width, out);
  }
  Image out{width, height, image.channels, std::vector<std::uint8_t>(row * at(height))};
  std::vector<std::int32_t> sums(row);
  for (int y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), scalar::kHalfWeight);
    for (int k = 0; k < down.count[at(y)]; ++k)
      add_row(&rows[row * at(down.first[at(y)] - first + k)],
              down.weights[at(y) * at(down.most) + at(k)], row, sums.data());
    for (std::size_t i = 0; i < row; ++i) out.pixels[row * at(y) + i] = scalar::resampled(sums[i]);
  }
  return out;
}

}  // namespace tenon::data
