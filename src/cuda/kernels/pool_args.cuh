// What the pooling kernels are given; host and device share it.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

struct PoolArgs {
  const void* in[2] = {};
  void* out = nullptr;
  long long count = 0;                     // threads
  Divisor columns, rows;                   // of the array that threads stand for
  long long height = 0, width = 0;         // of the unpooled array
  long long windows_h = 0, windows_w = 0;  // of the pooled array
};

}  // namespace tenon::cuda
