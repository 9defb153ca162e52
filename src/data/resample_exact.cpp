// Resizing in two passes, along rows and then along columns, in integers: the same bytes on every
// machine, and Pillow's.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/index.h"
#include "data/picture_ops.h"

namespace tenon::data {
namespace {

constexpr int kBits = 22;  // of a weight's fraction: 8 bits of a pixel and a sign beside it fit 32

// The input pixels that each output pixel is a mean of, and their weights.
struct Taps {
  int most = 0;  // of one pixel
  std::vector<int> first, count;
  std::vector<std::int32_t> weights;  // [pixels, most]
};

int nearest_whole(double value) { return static_cast<int>(std::floor(value + 0.5)); }

Taps taps_of(double from, double to, int low, int high, int pixels) {
  const double scale = (to - from) / pixels, support = std::max(scale, 1.0);
  Taps taps;
  taps.most = static_cast<int>(std::ceil(support)) * 2 + 1;
  taps.first.resize(at(pixels)), taps.count.resize(at(pixels));
  taps.weights.assign(at(pixels) * at(taps.most), 0);
  std::vector<double> raw(at(taps.most));
  for (int i = 0; i < pixels; ++i) {
    const double centre = from + (i + 0.5) * scale;
    const int first = std::clamp(nearest_whole(centre - support), low, high - 1);
    const int end = std::clamp(nearest_whole(centre + support), first + 1, high);
    double sum = 0;
    for (int k = 0; k < end - first; ++k) {
      const double away = std::abs((k + first - centre + 0.5) / support);
      sum += raw[at(k)] = std::max(0.0, 1 - away);
    }
    taps.first[at(i)] = first, taps.count[at(i)] = end - first;
    for (int k = 0; k < end - first; ++k)
      taps.weights[at(i) * at(taps.most) + at(k)] =
          nearest_whole((sum > 0 ? raw[at(k)] / sum : 1.0 / (end - first)) * (1 << kBits));
  }
  return taps;
}

constexpr double kWhole = 1e-6;  // an edge so near to a whole pixel's is there
constexpr std::int32_t kHalf = 1 << (kBits - 1);

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255));
}

template <int kChannels>
void resize_row(const std::uint8_t* in, const Taps& taps, int width, std::uint8_t* out) {
  for (int x = 0; x < width; ++x) {
    const std::int32_t* weights = &taps.weights[at(x) * at(taps.most)];
    const std::uint8_t* from = in + std::int64_t{taps.first[at(x)]} * kChannels;
    std::int32_t sums[kChannels];
    for (std::int32_t& sum : sums) sum = kHalf;
    for (int k = 0; k < taps.count[at(x)]; ++k, from += kChannels)
      for (int c = 0; c < kChannels; ++c) sums[c] += weights[k] * from[c];
    for (int c = 0; c < kChannels; ++c) *out++ = to_byte(sums[c]);
  }
}

void add_row(const std::uint8_t* __restrict in, std::int32_t weight, std::size_t count,
             std::int32_t* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += weight * in[i];
}

}  // namespace

Image resized(const Image& image, const ImageBox& box, int width, int height) {
  return resized(image, box, box, width, height);
}

Image resized(const Image& image, const ImageBox& box, const ImageBox& within, int width,
              int height) {
  const auto low = [](double edge, int size) {
    return std::clamp(static_cast<int>(std::floor(edge + kWhole)), 0, size - 1);
  };
  const auto high = [](double edge, int size) {
    return std::clamp(static_cast<int>(std::ceil(edge - kWhole)), 1, size);
  };
  const int left = low(within.left, image.width), top = low(within.top, image.height);
  const Taps across = taps_of(box.left, box.right, left,
                              std::max(high(within.right, image.width), left + 1), width),
             down = taps_of(box.top, box.bottom, top,
                            std::max(high(within.bottom, image.height), top + 1), height);
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
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int k = 0; k < down.count[at(y)]; ++k)
      add_row(&rows[row * at(down.first[at(y)] - first + k)],
              down.weights[at(y) * at(down.most) + at(k)], row, sums.data());
    for (std::size_t i = 0; i < row; ++i) out.pixels[row * at(y) + i] = to_byte(sums[i]);
  }
  return out;
}

}  // namespace tenon::data
