// Arguments of the response normalisation kernels; host and device share them.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

/// Number of 16-bit channels per thread with NHWC.
inline constexpr int kResponseLanes = 8;

struct ResponseArgs {
  const void* in[2] = {};  // x; for the gradient, also the output gradient
  void* out = nullptr;
  long long count = 0;       // number of threads
  Divisor places, channels;  // NHWC: places is unused, and channels counts groups of kResponseLanes
  Divisor runs;              // runs of kResponseLanes channels; the last one may be incomplete
  double mean = 0;           // alpha / size
  double beta = 0, k = 0;
};

}  // namespace tenon::cuda
