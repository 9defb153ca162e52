// Fourier transforms along axes, with their lengths and scales, and shifts. ops/fourier.cpp has the
// transform itself.
#include <cmath>
#include <string>
#include <vector>

#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/fft.h>
#include <tenon/functional.h>
#include <tenon/ops.h>

#include "base/index.h"
#include "ops/fourier.h"
#include "ops/infer.h"

namespace tenon::fft {
namespace {

Complex floating(const Complex& x) {
  if (x.dtype() == DType::Float64 || x.dtype() == DType::Float32) return x;
  return {cast(x.real, DType::Float32), cast(x.imaginary, DType::Float32)};
}

// Float32 or float64 numbers. The parts of a Complex can be assigned one by one, so they are
// checked here.
Complex checked(const char* name, const Complex& x) {
  require_defined(name, x.real, x.imaginary);
  if (x.real.shape() != x.imaginary.shape())
    throw make_error<ShapeError>(where(name), ": real and imaginary parts have shapes ",
                                 x.real.shape(), " and ", x.imaginary.shape(),
                                 "; they must be equal");
  return floating(x);
}

// The axis cut off if it has more than n numbers.
Complex cut(const Complex& x, int axis, std::int64_t n) {
  if (x.shape()[axis] <= n) return x;
  return {slice(x.real, axis, 0, n), is_number(x.imaginary) ? zeros_like(slice(x.real, axis, 0, n))
                                                            : slice(x.imaginary, axis, 0, n)};
}

int axis_of(const Complex& x, int axis, const OpPlace& place) {
  if (x.shape().rank() == 0)
    throw make_error<ShapeError>(place, ": a transform needs an axis, and this is a scalar");
  return normalize_axis(axis, x.shape().rank(), place);
}

void require_length(std::int64_t n, const OpPlace& place) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // whose square is a 64-bit number
  if (n < 1 || n > kMost)
    throw make_error<ShapeError>(place, ": a transform of ", n, " numbers, must be 1 to ", kMost);
}

double scale_of(std::int64_t n, bool inverse, Norm norm) {
  const auto count = static_cast<double>(n);
  if (norm == Norm::Ortho) return 1 / std::sqrt(count);
  return (norm == Norm::Backward) == inverse ? 1 / count : 1;
}

Complex whole(const char* name, const Complex& given, Length n, int axis, bool inverse, Norm norm) {
  const Called called(name);
  const OpPlace place = where(name);
  const Complex x = checked(name, given);
  const int a = axis_of(x, axis, place);
  const std::int64_t length = n.value_or(x.shape()[a]);
  require_length(length, place);
  return fourier(cut(x, a, length),
                 {a, inverse, false, length, length, scale_of(length, inverse, norm)});
}

// The first half of the results for real numbers.
Complex half(const char* name, const Tensor& x, Length n, int axis, bool inverse, Norm norm) {
  const Called called(name);
  const OpPlace place = where(name);
  const int a = axis_of(x, axis, place);
  const std::int64_t length = n.value_or(x.size(a));
  require_length(length, place);
  return fourier(cut(floating(x), a, length),
                 {a, inverse, false, length, length / 2 + 1, scale_of(length, inverse, norm)});
}

// The real results for the first half of numbers, whose other half is the conjugate.
Tensor from_half(const char* name, const Complex& given, Length n, int axis, bool inverse,
                 Norm norm) {
  const Called called(name);
  const OpPlace place = where(name);
  const Complex x = checked(name, given);
  const int a = axis_of(x, axis, place);
  const std::int64_t length = n.value_or(2 * (x.shape()[a] - 1));
  require_length(length, place);
  return mirrored_fourier(cut(x, a, length / 2 + 1),
                          {a, inverse, true, length, length, scale_of(length, inverse, norm)});
}

// The axes of a transform with their lengths, in order.
struct Axis {
  int axis;
  Length length;
};

std::vector<Axis> axes_of(const char* name, const Complex& x, const Extent& extent) {
  const OpPlace place = where(name);
  const int rank = x.shape().rank();
  const std::size_t sizes = extent.sizes.size(), count = extent.axes.empty()
                                                             ? (sizes > 0 ? sizes : at(rank))
                                                             : extent.axes.size();
  if (sizes > 0 && sizes != count)
    throw make_error<ValueError>(place, ": ", sizes, " sizes for ", count, " axes");
  if (count > at(rank))
    throw make_error<ShapeError>(place, ": ", count, " axes of a tensor ", x.shape());
  std::vector<Axis> out;
  std::vector<bool> taken(at(rank));
  for (std::size_t k = 0; k < count; ++k) {
    const int axis = extent.axes.empty()
                         ? rank - static_cast<int>(count - k)
                         : normalize_axis(static_cast<int>(extent.axes[k]), rank, place);
    if (taken[at(axis)]) throw make_error<ValueError>(place, ": axis ", axis, " is given twice");
    taken[at(axis)] = true;
    // -1 keeps the size, as no size does.
    const bool given = sizes > 0 && extent.sizes[k] != -1;
    out.push_back({axis, given ? Length(extent.sizes[k]) : Length()});
  }
  return out;
}

Complex all_but_last(const char* name, Complex x, const std::vector<Axis>& axes, bool inverse,
                     Norm norm) {
  for (std::size_t k = 0; k + 1 < axes.size(); ++k)
    x = whole(name, x, axes[k].length, axes[k].axis, inverse, norm);
  return x;
}

Complex several(const char* name, const Complex& x, const Extent& extent, bool inverse, Norm norm) {
  const Called called(name);
  const std::vector<Axis> axes = axes_of(name, x, extent);
  if (axes.empty()) return x;
  return whole(name, all_but_last(name, x, axes, inverse, norm), axes.back().length,
               axes.back().axis, inverse, norm);
}

Complex several_half(const char* name, const Tensor& x, const Extent& extent, bool inverse,
                     Norm norm) {
  const Called called(name);
  const std::vector<Axis> axes = axes_of(name, x, extent);
  if (axes.empty()) throw make_error<ShapeError>(where(name), ": a real transform needs an axis");
  const Complex first = half(name, x, axes.back().length, axes.back().axis, inverse, norm);
  return all_but_last(name, first, axes, inverse, norm);
}

Tensor several_from_half(const char* name, const Complex& x, const Extent& extent, bool inverse,
                         Norm norm) {
  const Called called(name);
  const std::vector<Axis> axes = axes_of(name, x, extent);
  if (axes.empty()) throw make_error<ShapeError>(where(name), ": a real transform needs an axis");
  return from_half(name, all_but_last(name, x, axes, inverse, norm), axes.back().length,
                   axes.back().axis, inverse, norm);
}

const Extent kLastTwo{{}, {-2, -1}};

Tensor shifted(const char* name, const Tensor& x, const Ints& axes, bool back) {
  const Called called(name);
  Ints all = axes, shifts;
  if (all.empty())
    for (int axis = 0; axis < x.rank(); ++axis) all.push_back(axis);
  for (const std::int64_t axis : all) {
    const std::int64_t size = x.size(normalize_axis(static_cast<int>(axis), x.rank(), where(name)));
    shifts.push_back(back ? -(size / 2) : size / 2);
  }
  return all.empty() ? x : roll(x, shifts, all);
}

}  // namespace

Complex fft(const Complex& x, Length n, int axis, Norm norm) {
  return whole("fft::fft", x, n, axis, false, norm);
}
Complex ifft(const Complex& x, Length n, int axis, Norm norm) {
  return whole("fft::ifft", x, n, axis, true, norm);
}
Complex rfft(const Tensor& x, Length n, int axis, Norm norm) {
  return half("fft::rfft", x, n, axis, false, norm);
}
Tensor irfft(const Complex& x, Length n, int axis, Norm norm) {
  return from_half("fft::irfft", x, n, axis, true, norm);
}
Tensor hfft(const Complex& x, Length n, int axis, Norm norm) {
  return from_half("fft::hfft", x, n, axis, false, norm);
}
Complex ihfft(const Tensor& x, Length n, int axis, Norm norm) {
  return half("fft::ihfft", x, n, axis, true, norm);
}
Complex fftn(const Complex& x, const Extent& extent, Norm norm) {
  return several("fft::fftn", x, extent, false, norm);
}
Complex ifftn(const Complex& x, const Extent& extent, Norm norm) {
  return several("fft::ifftn", x, extent, true, norm);
}
Complex rfftn(const Tensor& x, const Extent& extent, Norm norm) {
  return several_half("fft::rfftn", x, extent, false, norm);
}
Tensor irfftn(const Complex& x, const Extent& extent, Norm norm) {
  return several_from_half("fft::irfftn", x, extent, true, norm);
}
Tensor hfftn(const Complex& x, const Extent& extent, Norm norm) {
  return several_from_half("fft::hfftn", x, extent, false, norm);
}
Complex ihfftn(const Tensor& x, const Extent& extent, Norm norm) {
  return several_half("fft::ihfftn", x, extent, true, norm);
}
Complex fft2(const Complex& x, Norm norm) { return several("fft::fft2", x, kLastTwo, false, norm); }
Complex ifft2(const Complex& x, Norm norm) {
  return several("fft::ifft2", x, kLastTwo, true, norm);
}
Complex rfft2(const Tensor& x, Norm norm) {
  return several_half("fft::rfft2", x, kLastTwo, false, norm);
}
Tensor irfft2(const Complex& x, Norm norm) {
  return several_from_half("fft::irfft2", x, kLastTwo, true, norm);
}

Tensor fftshift(const Tensor& x, const Ints& axes) {
  return shifted("fft::fftshift", x, axes, false);
}
Tensor ifftshift(const Tensor& x, const Ints& axes) {
  return shifted("fft::ifftshift", x, axes, true);
}

Tensor fftfreq(std::int64_t n, double distance) {
  const Called called("fft::fftfreq");
  require_length(n, where("fft::fftfreq"));
  const Tensor steps =
      concat({arange(0, (n + 1) / 2, 1, DType::Float32), arange(-(n / 2), 0, 1, DType::Float32)});
  return steps * (1 / (static_cast<double>(n) * distance));
}

Tensor rfftfreq(std::int64_t n, double distance) {
  const Called called("fft::rfftfreq");
  require_length(n, where("fft::rfftfreq"));
  return arange(0, n / 2 + 1, 1, DType::Float32) * (1 / (static_cast<double>(n) * distance));
}

}  // namespace tenon::fft
