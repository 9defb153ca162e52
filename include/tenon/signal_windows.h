// Windows of signals, by the names in torch.signal.windows. Each returns a vector [count] with a
// largest value of 1. A symmetric window (`symmetric`) is for filters; the other form is the first
// part of a period, for spectra. Throws ValueError for a negative count.
#pragma once

#include <cstdint>
#include <span>

#include <tenon/ops.h>

namespace tenon::windows {

/// Windows without parameters.
/// @{
TENON_API Tensor bartlett(std::int64_t count, bool symmetric = true, DType dtype = DType::Float32);
TENON_API Tensor blackman(std::int64_t count, bool symmetric = true, DType dtype = DType::Float32);
TENON_API Tensor cosine(std::int64_t count, bool symmetric = true, DType dtype = DType::Float32);
TENON_API Tensor hamming(std::int64_t count, bool symmetric = true, DType dtype = DType::Float32);
TENON_API Tensor hann(std::int64_t count, bool symmetric = true, DType dtype = DType::Float32);
TENON_API Tensor nuttall(std::int64_t count, bool symmetric = true, DType dtype = DType::Float32);
/// @}
/// e^(-|k - center| / tau). The center of a window that is not symmetric is count / 2.
TENON_API Tensor exponential(std::int64_t count, double tau = 1, bool symmetric = true,
                             DType dtype = DType::Float32);
/// e^(-(k - center)² / (2 std²)).
TENON_API Tensor gaussian(std::int64_t count, double std = 1, bool symmetric = true,
                          DType dtype = DType::Float32);
/// The sum of (-1)^j · factors[j] · cos(2 π j k / period).
TENON_API Tensor general_cosine(std::int64_t count, std::span<const double> factors,
                                bool symmetric = true, DType dtype = DType::Float32);
/// alpha - (1 - alpha) · cos(2 π k / period).
TENON_API Tensor general_hamming(std::int64_t count, double alpha = 0.54, bool symmetric = true,
                                 DType dtype = DType::Float32);
/// Kaiser's window, a ratio of two modified Bessel functions i0().
TENON_API Tensor kaiser(std::int64_t count, double beta = 12, bool symmetric = true,
                        DType dtype = DType::Float32);

}  // namespace tenon::windows
