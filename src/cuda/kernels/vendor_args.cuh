// What the kernels around a vendor library's call are given; host and device share it.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

constexpr int kCastWidth = 8;  // elements that a thread converts

/// out[batch, outer, inner] = in there, converted; inner contiguous in both.
struct CastArgs {
  const void* in = nullptr;
  void* out = nullptr;
  long long count = 0;     // threads
  Divisor groups, outers;  // groups of kCastWidth along inner, the last one filled with zeros
  long long inner = 0;
  long long in_outer = 0, in_batch = 0;    // strides in elements
  long long out_outer = 0, out_batch = 0;  // multiples of kCastWidth
};

/// The product [batch, rows, columns], contiguous, that an epilogue reads.
struct ProductArgs {
  const void* product = nullptr;
  long long count = 0;   // threads
  Divisor groups, rows;  // groups of neighbours along the columns
};

}  // namespace tenon::cuda
