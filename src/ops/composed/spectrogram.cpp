// Short-time Fourier transforms and mel filters.
#include <algorithm>
#include <cmath>
#include <vector>

#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/fft.h>
#include <tenon/functional.h>
#include <tenon/ops.h>
#include <tenon/rearrange.h>

#include "base/index.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// The options with their defaults in place, for signals of one dtype.
struct FrameLayout {
  std::int64_t size, hop;
  Tensor window;  // [size]
};

FrameLayout frame_layout(const StftOptions& o, DType dtype, const OpPlace& place) {
  if (o.size < 1)
    throw make_error<ValueError>(place, ": size = ", o.size, ": a window has at least 1 sample");
  const std::int64_t hop = o.hop == 0 ? std::max<std::int64_t>(o.size / 4, 1) : o.hop;
  if (hop < 1) throw make_error<ValueError>(place, ": hop = ", hop, ", must be at least 1");
  if (!o.window.defined()) return {o.size, hop, ones({o.size}, dtype)};
  const Tensor& window = o.window;
  if (window.rank() != 1 || window.size(0) > o.size || window.size(0) < 1)
    throw make_error<ShapeError>(place, ": a window of ", window.shape(),
                                 ", must be [length] with 1 to ", o.size, " samples");
  const std::int64_t before = (o.size - window.size(0)) / 2;
  return {o.size, hop, cast(pad(window, {before, o.size - window.size(0) - before}), dtype)};
}

// The positions of the samples of all windows, int64 [windows · size].
Tensor positions(std::int64_t count, const FrameLayout& w) {
  const Tensor starts = reshape(arange(0, count, 1) * w.hop, {count, 1});
  return reshape(starts + arange(0, w.size, 1), {count * w.size});
}

Tensor as_floating(const Tensor& x) {
  return x.dtype() == DType::Float64 ? x : cast(x, DType::Float32);
}

Ints sizes_with(const Tensor& x, int axes, std::initializer_list<std::int64_t> sizes) {
  Ints all(x.shape().begin(), x.shape().end() - axes);
  all.insert(all.end(), sizes);
  return all;
}

double mel_of(double hertz, bool slaney) {
  if (!slaney) return 2595 * std::log10(1 + hertz / 700);
  return hertz < 1000 ? hertz * 3 / 200 : 15 + std::log(hertz / 1000) * 27 / std::log(6.4);
}

double hertz_of(double mel, bool slaney) {
  if (!slaney) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < 15 ? mel * 200 / 3 : 1000 * std::exp((mel - 15) * std::log(6.4) / 27);
}

}  // namespace

Complex stft(const Tensor& given, const StftOptions& o) {
  const Called called("stft");
  const OpPlace place = where("stft");
  if (given.rank() == 0)
    throw make_error<ShapeError>(place, ": the signal is a scalar, must be [.., samples]");
  const FrameLayout w = frame_layout(o, as_floating(given).dtype(), place);
  Tensor x = as_floating(given);
  const std::int64_t samples = x.size(-1), border = o.center ? w.size / 2 : 0;
  if (samples + 2 * border < w.size)
    throw make_error<ShapeError>(place, ": signals ", given.shape(),
                                 " are shorter than a window of ", w.size, " samples");
  if (border > 0)
    x = o.reflect ? pad(x, {border, border}, PadMode::Reflect) : pad(x, {border, border});
  const std::int64_t count = (x.size(-1) - w.size) / w.hop + 1;
  const Tensor frames =
      reshape(index_select(x, -1, positions(count, w)), sizes_with(x, 1, {count, w.size}));
  const fft::Norm norm = o.normalized ? fft::Norm::Ortho : fft::Norm::Backward;
  const Complex out = o.onesided ? fft::rfft(frames * w.window, {}, -1, norm)
                                 : fft::fft(frames * w.window, {}, -1, norm);
  return {transpose(out.real), transpose(out.imaginary)};
}

Tensor istft(const Complex& x, const StftOptions& o) {
  const Called called("istft");
  const OpPlace place = where("istft");
  const int rank = x.shape().rank();
  const FrameLayout w =
      frame_layout(o, x.dtype() == DType::Float64 ? DType::Float64 : DType::Float32, place);
  const std::int64_t frequencies = o.onesided ? w.size / 2 + 1 : w.size;
  if (rank < 2 || x.shape()[rank - 2] != frequencies || x.shape()[rank - 1] < 1)
    throw make_error<ShapeError>(place, ": the transform is ", x.shape(), ", must be [.., ",
                                 frequencies, ", windows]");
  const Complex rows(transpose(x.real), transpose(x.imaginary));
  const fft::Norm norm = o.normalized ? fft::Norm::Ortho : fft::Norm::Backward;
  const Tensor frames =
      (o.onesided ? fft::irfft(rows, w.size, -1, norm) : fft::ifft(rows, {}, -1, norm).real) *
      w.window;
  const std::int64_t count = x.shape()[rank - 1], total = (count - 1) * w.hop + w.size;
  const Tensor places = positions(count, w);
  const Tensor sums =
      index_add(zeros(Shape(sizes_with(frames, 2, {total}).data(), rank - 1), frames.dtype()),
                rank - 2, places, reshape(frames, sizes_with(frames, 2, {count * w.size})));
  const Tensor squares = reshape(broadcast_to(square(w.window), {count, w.size}), {count * w.size});
  const Tensor weights = index_add(zeros({total}, frames.dtype()), 0, places, squares);
  const std::int64_t border = o.center ? w.size / 2 : 0;
  const std::int64_t end = o.length ? std::min(border + *o.length, total) : total - border;
  const Tensor out = slice(sums, -1, border, end) / slice(weights, -1, border, end);
  const std::int64_t missing = o.length ? *o.length - out.size(-1) : 0;
  return missing > 0 ? pad(out, {0, missing}) : out;
}

Tensor mel_filters(const MelOptions& o) {
  const OpPlace place = where("mel_filters");
  const double high = o.high.value_or(o.rate / 2);
  if (o.filters < 1 || o.frequencies < 2)
    throw make_error<ValueError>(place, ": ", o.filters, " filters over ", o.frequencies,
                                 " frequencies: give at least 1 and 2");
  if (!(o.low >= 0 && o.low < high && o.rate > 0))
    throw make_error<ValueError>(place, ": frequencies from ", o.low, " to ", high,
                                 " at a rate of ", o.rate,
                                 ": low must be at least 0 and below high");
  std::vector<double> corners;
  const double from = mel_of(o.low, o.slaney), to = mel_of(high, o.slaney);
  for (std::int64_t k = 0; k < o.filters + 2; ++k)
    corners.push_back(
        hertz_of(from + (to - from) * static_cast<double>(k) / static_cast<double>(o.filters + 1),
                 o.slaney));
  std::vector<float> out;
  for (std::int64_t f = 0; f < o.frequencies; ++f) {
    const double hertz =
        o.rate / 2 * static_cast<double>(f) / static_cast<double>(o.frequencies - 1);
    for (std::size_t k = 0; k < at(o.filters); ++k) {
      const double up = (hertz - corners[k]) / (corners[k + 1] - corners[k]),
                   down = (corners[k + 2] - hertz) / (corners[k + 2] - corners[k + 1]);
      const double area = o.slaney ? 2 / (corners[k + 2] - corners[k]) : 1;
      out.push_back(static_cast<float>(std::max(0.0, std::min(up, down)) * area));
    }
  }
  return Tensor::from(out, {o.frequencies, o.filters});
}

}  // namespace tenon
