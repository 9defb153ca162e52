// Arguments of the kernels around a vendor library's call; host and device share them.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

constexpr int kCastWidth = 8;  // elements that a thread converts

/// out[batch, outer, inner] = in[batch, outer, inner], converted; inner is contiguous in both. If
/// rows are split into bfloat16 parts, each part is a batch of the result.
struct CastArgs {
  const void* in = nullptr;
  void* out = nullptr;
  long long count = 0;     // number of threads
  Divisor groups, outers;  // groups of kCastWidth along inner, the last one filled with zeros
  long long inner = 0;
  long long in_outer = 0, in_batch = 0;    // strides in elements
  long long out_outer = 0, out_batch = 0;  // multiples of kCastWidth
};

constexpr int kTransposeSide = 64;  // side of the tile that a block transposes

/// out[column, row] = in[row, column]; columns are contiguous in `in`, rows in `out`.
struct TransposeArgs {
  const float* in = nullptr;
  float* out = nullptr;
  long long rows = 0, columns = 0;
  long long in_pitch = 0, out_pitch = 0;  // out_pitch: a multiple of 4; out is zero up to it
  Divisor tiles;                          // number of tiles along the columns
};

constexpr int kPlaneSide = 32;  // side of the tile that a block transposes

/// out[plane, column, row] = in[plane, row, column], converted; both contiguous.
struct PlanesArgs {
  const void* in = nullptr;
  void* out = nullptr;
  int rows = 0, columns = 0;
  Divisor across, down;  // number of tiles along the columns, along the rows
};

/// The product [batch, rows, columns], contiguous, that an epilogue reads.
struct ProductArgs {
  const void* product = nullptr;
  long long count = 0;   // number of threads
  Divisor groups, rows;  // groups of neighbours along the columns
};

}  // namespace tenon::cuda
