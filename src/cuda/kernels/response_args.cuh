// What the kernels of response normalisation are given; host and device share it.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

/// Channels that a thread has where they are last, of 16 bits.
inline constexpr int kResponseLanes = 8;

struct ResponseArgs {
  const void* in[2] = {};  // x, and of the gradient that of the result
  void* out = nullptr;
  long long count = 0;       // threads
  Divisor places, channels;  // channels last: places is unused, channels counts words of lanes
  Divisor runs;              // of kResponseLanes channels; the last may be incomplete
  double mean = 0;           // alpha / size
  double beta = 0, k = 0;
};

}  // namespace tenon::cuda
