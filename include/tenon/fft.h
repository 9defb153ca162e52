// Fourier transforms: what torch.fft holds, and spectrograms.
//
// Names, shapes and results are those of torch.fft, with Complex (complex.h) for complex numbers.
// Lengths are factorized (J. Cooley and J. Tukey, "An algorithm for the machine calculation of
// complex Fourier series", 1965). CPUs have kernels for prime factors up to 61; on GPUs a transform
// is composed from products with small Fourier matrices, for prime factors up to 512. Other lengths
// use convolutions (L. Bluestein, "A linear filtering approach to the computation of discrete
// Fourier transform", 1970). Transforms have gradients of every order. Results are float32, or
// float64 for float64; they are computed in this dtype whatever the precision is set to.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/complex.h>
#include <tenon/export.h>
#include <tenon/tensor.h>

namespace tenon {

/// Fourier transforms.
namespace fft {

/// What a transform is divided by.
enum class Norm {
  Backward,  ///< the inverse transform by n, the other by 1
  Ortho,     ///< both by √n
  Forward    ///< the inverse transform by 1, the other by n
};
/// The length of a transform; unset: the size of the axis. The input is cut off or padded with
/// zeros at its end.
using Length = std::optional<std::int64_t>;

/// The discrete Fourier transform along an axis: X[k] = Σ x[j] exp(-2πi jk / n). All transforms of
/// one axis throw ShapeError for a length below 1.
TENON_API Complex fft(const Complex& x, Length n = {}, int axis = -1, Norm norm = Norm::Backward);
/// The inverse transform: x[j] = Σ X[k] exp(2πi jk / n) / n.
TENON_API Complex ifft(const Complex& x, Length n = {}, int axis = -1, Norm norm = Norm::Backward);
/// The first n / 2 + 1 results for a real input; the others are their conjugates.
TENON_API Complex rfft(const Tensor& x, Length n = {}, int axis = -1, Norm norm = Norm::Backward);
/// The inverse of rfft(): `n` real numbers, by default 2 · (size - 1).
TENON_API Tensor irfft(const Complex& x, Length n = {}, int axis = -1, Norm norm = Norm::Backward);
/// The transform of a signal that is given by its first half, because the result is real: `n` real
/// numbers, by default 2 · (size - 1).
TENON_API Tensor hfft(const Complex& x, Length n = {}, int axis = -1, Norm norm = Norm::Backward);
/// The inverse of hfft().
TENON_API Complex ihfft(const Tensor& x, Length n = {}, int axis = -1, Norm norm = Norm::Backward);

/// The lengths and the axes of a transform of several axes. PyTorch: `s` and `dim`.
struct Extent {
  Ints sizes{};  ///< lengths of the axes; empty: the sizes of the axes
  Ints axes{};   ///< empty: the last axes if `sizes` is given, otherwise all
};
/// Transforms of several axes, one after another. For two axes (`fft2`) give the axes {-2, -1}. The
/// real transforms halve the last of the axes.
/// @{
TENON_API Complex fftn(const Complex& x, const Extent& extent = {}, Norm norm = Norm::Backward);
TENON_API Complex ifftn(const Complex& x, const Extent& extent = {}, Norm norm = Norm::Backward);
TENON_API Complex rfftn(const Tensor& x, const Extent& extent = {}, Norm norm = Norm::Backward);
TENON_API Tensor irfftn(const Complex& x, const Extent& extent = {}, Norm norm = Norm::Backward);
TENON_API Tensor hfftn(const Complex& x, const Extent& extent = {}, Norm norm = Norm::Backward);
TENON_API Complex ihfftn(const Tensor& x, const Extent& extent = {}, Norm norm = Norm::Backward);
/// @}
/// Transforms of the last two axes.
/// @{
TENON_API Complex fft2(const Complex& x, Norm norm = Norm::Backward);
TENON_API Complex ifft2(const Complex& x, Norm norm = Norm::Backward);
TENON_API Complex rfft2(const Tensor& x, Norm norm = Norm::Backward);
TENON_API Tensor irfft2(const Complex& x, Norm norm = Norm::Backward);
/// @}

/// Moves frequency 0 to the middle of the axes, by default all.
TENON_API Tensor fftshift(const Tensor& x, const Ints& axes = {});
/// The inverse of fftshift().
TENON_API Tensor ifftshift(const Tensor& x, const Ints& axes = {});
/// The frequencies of fft() for samples at distance `distance`: [n].
TENON_API Tensor fftfreq(std::int64_t n, double distance = 1);
/// The frequencies of rfft(): [n / 2 + 1].
TENON_API Tensor rfftfreq(std::int64_t n, double distance = 1);

}  // namespace fft

/// Options of stft() and istft(). Defaults are those of PyTorch.
struct StftOptions {
  std::int64_t size = 0;    ///< samples in a window, `n_fft`
  std::int64_t hop = 0;     ///< samples between windows; 0: size / 4
  Tensor window{};          ///< [length], length <= size, centred; undefined: ones [size]
  bool center = true;       ///< pads so that window t is centred at sample t · hop
  bool reflect = true;      ///< pads with mirrored samples; otherwise zeros
  bool normalized = false;  ///< divides by √size
  bool onesided = true;     ///< only the frequencies up to size / 2
  std::optional<std::int64_t> length{};  ///< of istft(): samples of the result
};
/// The short-time Fourier transform of signals [.., samples]: [.., frequencies, windows]. Throws
/// ShapeError and ValueError for signals or options that do not fit.
TENON_API Complex stft(const Tensor& x, const StftOptions& options);
/// The signals [.., samples] of a transform [.., frequencies, windows], by overlapping windows.
/// Where no window is above 1e-11, evaluation gives infinities or NaN.
TENON_API Tensor istft(const Complex& x, const StftOptions& options);

/// Options of mel_filters().
struct MelOptions {
  std::int64_t filters = 80;     ///< number of filters
  std::int64_t frequencies = 0;  ///< number of frequencies of the spectrogram, size / 2 + 1
  double rate = 16000;           ///< samples in a second
  double low = 0;                ///< lowest frequency in hertz
  std::optional<double> high{};  ///< highest frequency in hertz; unset: rate / 2
  bool slaney = false;  ///< Slaney's scale and filters of equal area; otherwise HTK's scale
};
/// Triangular filters on the mel scale [frequencies, filters], float32: the product of a power
/// spectrogram [.., windows, frequencies] and the filters is a mel spectrogram. As torchaudio's
/// `melscale_fbanks`.
TENON_API Tensor mel_filters(const MelOptions& options);

}  // namespace tenon
