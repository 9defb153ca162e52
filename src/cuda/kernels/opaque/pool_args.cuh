// Arguments of the pooling kernels; host and device share them.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

/// Number of plane elements that a block holds in shared memory where it stages planes.
inline constexpr int kPoolStaged = 2048;

/// Number of 16-bit channels per thread with NHWC.
inline constexpr int kPoolLanes = 8;

struct PoolArgs {
  const void* in[2] = {};
  void* out = nullptr;                     // null: only `taps` are wanted, not the maxima
  unsigned char* taps = nullptr;           // NHWC: the second result
  long long count = 0;                     // number of threads
  Divisor columns, rows;                   // size of the array that threads (or tiles) iterate over
  long long height = 0, width = 0;         // size of the unpooled array
  long long windows_h = 0, windows_w = 0;  // size of the pooled array
  long long planes = 0;                    // staged: number of planes
  int planes_of_block = 0;  // staged: planes per block; their bytes are a multiple of 16
  Divisor groups;           // NHWC: groups of kPoolLanes channels
  long long channels = 0;
};

}  // namespace tenon::cuda
