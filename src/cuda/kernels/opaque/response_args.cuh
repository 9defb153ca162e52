// Arguments of the response normalisation kernels; host and device share them.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

/// Number of 16-bit channels per thread with NHWC.
inline constexpr int kResponseLanes = 8;

struct ResponseArgs {
  const void* in[2] = {};  // x, and of the gradient that of the result
  void* out = nullptr;
  long long count = 0;       // threads
  Divisor places, channels;  // NHWC: places is unused, channels counts words of lanes
  Divisor runs;              // of kResponseLanes channels; the last may be incomplete
  double mean = 0;           // alpha / size
  double beta = 0, k = 0;
};

}  // namespace tenon::cuda
