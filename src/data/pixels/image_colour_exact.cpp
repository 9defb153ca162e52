// Pixel operations without motion: brightness, colours, blur, levels.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/index.h"
#include "data/pixels/image_ops.h"
#include "scalar/image.h"

namespace tenon::data {
namespace {

using Levels = std::array<std::uint8_t, 256>;
using scalar::blended, scalar::byte_of, scalar::luma, scalar::reflected;

Image through(Image image, const std::array<Levels, 3>& levels) {
  const auto channels = at(image.channels);
  for (std::size_t i = 0; i < image.pixels.size(); i += channels)
    for (std::size_t c = 0; c < channels; ++c) image.pixels[i + c] = levels[c][image.pixels[i + c]];
  return image;
}

template <class F>
Image each_level(Image image, const F& change) {
  Levels levels;
  for (std::size_t i = 0; i < levels.size(); ++i) levels[i] = change(static_cast<int>(i));
  return through(std::move(image), {levels, levels, levels});
}

std::array<std::int64_t, 256> histogram(const Image& image, int channel) {
  std::array<std::int64_t, 256> counts{};
  for (std::size_t i = at(channel); i < image.pixels.size(); i += at(image.channels))
    ++counts[image.pixels[i]];
  return counts;
}

// Each channel by levels made from its own histogram.
template <class F>
Image each_channel(const Image& image, const F& levels_of) {
  std::array<Levels, 3> levels{};
  for (int c = 0; c < image.channels; ++c) levels[at(c)] = levels_of(histogram(image, c));
  return through(image, levels);
}

// 1 1 1 / 1 5 1 / 1 1 1, over 13; the edges stay.
Image smoothed(const Image& image) {
  Image out = image;
  const auto row = at(image.width) * at(image.channels), step = at(image.channels);
  for (int y = 1; y + 1 < image.height; ++y)
    for (std::size_t i = at(y) * row + step; i < (at(y) + 1) * row - step; ++i) {
      int sum = 4 * image.pixels[i];
      for (const std::size_t line : {i - row, i, i + row})
        sum += image.pixels[line - step] + image.pixels[line] + image.pixels[line + step];
      out.pixels[i] = scalar::smoothed_level(sum);
    }
  return out;
}

}  // namespace

Image grey_of(const Image& image) {
  Image out = image;
  for (std::size_t i = 0; image.channels == 3 && i < out.pixels.size(); i += 3)
    out.pixels[i] = out.pixels[i + 1] = out.pixels[i + 2] = luma(&image.pixels[i]);
  return out;
}

Image with_brightness(const Image& image, double factor) {
  const auto f = static_cast<float>(factor);
  return each_level(image,
                    [f](int level) { return blended(0, static_cast<std::uint8_t>(level), f); });
}

Image with_contrast(const Image& image, double factor) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < image.pixels.size(); i += at(image.channels))
    sum += image.channels == 3 ? luma(&image.pixels[i]) : image.pixels[i];
  const double mean =
      static_cast<double>(sum) / static_cast<double>(std::int64_t{image.width} * image.height);
  const auto grey = static_cast<std::uint8_t>(std::lround(mean));
  const auto f = static_cast<float>(factor);
  return each_level(
      image, [grey, f](int level) { return blended(grey, static_cast<std::uint8_t>(level), f); });
}

Image with_saturation(const Image& image, double factor) {
  Image out = grey_of(image);
  for (std::size_t i = 0; i < out.pixels.size(); ++i)
    out.pixels[i] = blended(out.pixels[i], image.pixels[i], static_cast<float>(factor));
  return out;
}

Image with_sharpness(const Image& image, double factor) {
  Image out = smoothed(image);
  for (std::size_t i = 0; i < out.pixels.size(); ++i)
    out.pixels[i] = blended(out.pixels[i], image.pixels[i], static_cast<float>(factor));
  return out;
}

std::uint8_t hue_steps(double share) {
  return static_cast<std::uint8_t>(static_cast<int>(share * 255) & 255);
}

Image with_hue(const Image& image, std::uint8_t turn) {
  Image out = image;
  for (std::size_t i = 0; image.channels == 3 && i < out.pixels.size(); i += 3)
    scalar::rotate_hue(&out.pixels[i], turn);
  return out;
}

std::array<double, 3> pca_shift(const std::array<double, 3>& alphas) {
  // Eigenvalues and eigenvectors of RGB values in [0, 1] over ImageNet's training images.
  constexpr double kValues[] = {0.2175, 0.0188, 0.0045};
  constexpr double kVectors[3][3] = {
      {-0.5675, 0.7192, 0.4009}, {-0.5808, -0.0045, -0.8140}, {-0.5836, -0.6948, 0.4203}};
  std::array<double, 3> shift{};
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t k = 0; k < 3; ++k) shift[c] += kVectors[c][k] * alphas[k] * kValues[k];
    shift[c] *= 255;
  }
  return shift;
}

Image with_shift(const Image& image, const std::array<double, 3>& shift) {
  std::array<Levels, 3> levels{};
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t i = 0; i < 256; ++i)
      levels[c][i] = scalar::shifted_level(static_cast<std::uint8_t>(i), shift[c]);
  return image.channels == 3 ? through(image, levels) : image;
}

Image gaussian_blurred(const Image& image, int kernel, double sigma) {
  const int reach = kernel / 2;
  std::vector<double> weights(at(kernel));
  double sum = 0;
  for (int k = 0; k < kernel; ++k) sum += weights[at(k)] = scalar::blur_weight(k - reach, sigma);
  for (double& weight : weights) weight /= sum;
  const int channels = image.channels, row = image.width * channels;
  std::vector<float> across(image.pixels.size());
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x)
      for (int c = 0; c < channels; ++c) {
        double value = 0;
        for (int k = 0; k < kernel; ++k)
          value += weights[at(k)] *
                   image.pixels[at(y) * at(row) +
                                at(reflected(x + k - reach, image.width) * channels + c)];
        across[at(y) * at(row) + at(x * channels + c)] = static_cast<float>(value);
      }
  Image out = image;
  std::vector<double> line(at(row));
  for (int y = 0; y < image.height; ++y) {
    std::fill(line.begin(), line.end(), 0);
    for (int k = 0; k < kernel; ++k) {
      const float* from = &across[at(reflected(y + k - reach, image.height)) * at(row)];
      for (int i = 0; i < row; ++i) line[at(i)] += weights[at(k)] * static_cast<double>(from[i]);
    }
    for (int i = 0; i < row; ++i) out.pixels[at(y) * at(row) + at(i)] = byte_of(line[at(i)] + 0.5);
  }
  return out;
}

Image erased(const Image& image, int left, int top, int width, int height,
             const std::array<std::uint8_t, 3>& colour) {
  Image out = image;
  for (int y = std::max(top, 0); y < std::min(top + height, image.height); ++y)
    for (int x = std::max(left, 0); x < std::min(left + width, image.width); ++x)
      for (int c = 0; c < image.channels; ++c)
        out.pixels[(at(y) * at(image.width) + at(x)) * at(image.channels) + at(c)] = colour[at(c)];
  return out;
}

Image posterized(const Image& image, int bits) {
  return each_level(image, [bits](int level) {
    return scalar::posterized_level(static_cast<std::uint8_t>(level), bits);
  });
}

Image solarized(const Image& image, double threshold) {
  return each_level(image, [threshold](int level) {
    return scalar::solarized_level(static_cast<std::uint8_t>(level), threshold);
  });
}

Image auto_contrasted(const Image& image) {
  return each_channel(image, [](const std::array<std::int64_t, 256>& counts) {
    Levels levels;
    scalar::auto_contrast_levels(counts.data(), levels.data());
    return levels;
  });
}

Image equalized(const Image& image) {
  return each_channel(image, [](const std::array<std::int64_t, 256>& counts) {
    Levels levels;
    scalar::equalized_levels(counts.data(), levels.data());
    return levels;
  });
}

}  // namespace tenon::data
