// Arguments of the movement kernels; host and device share them. A word is the widest unit (1 to 16
// bytes) that divides every contiguous run of the copy.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

constexpr int kConcatInputs = 128;  // limit of inputs of a node
constexpr int kPadAxes = 8;

/// out[outer, before + 0 … run) = in[k][outer, 0 … run), in words; blockIdx.y is k. The struct is
/// smaller than 4 KiB, the limit of kernel parameters on every GPU.
struct ConcatArgs {
  const void* in[kConcatInputs] = {};
  void* out = nullptr;
  long long run[kConcatInputs] = {};     // words
  long long before[kConcatInputs] = {};  // start of the run within a row of out
  long long outer = 0, pitch = 0;        // pitch: words in a row of out
};

/// Axes without padding are merged; sizes along the last axis are in words.
struct PadArgs {
  const void* in[1] = {};
  void* out = nullptr;
  long long count = 0;     // words of out
  long long fill = 0;      // bits of the padding value, repeated over 8 bytes
  Divisor size[kPadAxes];  // sizes of out
  long long before[kPadAxes] = {}, in_size[kPadAxes] = {}, in_stride[kPadAxes] = {};
};

/// A kernel's record of an index outside its axis, in host memory: the index, and in `mark` the
/// site (device/outside.h) above kSiteShift and, below it, the position in the index tensor plus
/// one.
struct alignas(16) Outside {
  long long index = 0, mark = 0;
};
constexpr int kSiteShift = 40;

/// Arrays are [outer, size or indices, inner].
struct GatherArgs {
  const void* in[2] = {};  // data, index
  void* out = nullptr;
  long long count = 0;         // words of out
  Divisor inner, indices;      // inner in words
  long long size = 0;          // size of data along the axis
  long long fill = 0;          // the value for an index outside, repeated over 8 bytes
  Outside* outside = nullptr;  // null: no record
  long long site = 0;
};

/// out = base with updates added or written; a block owns a `rows` x `columns` part of out.
struct ScatterArgs {
  const void* in[3] = {};  // base, index, updates
  void* out = nullptr;
  long long size = 0, indices = 0, inner = 0;
  Divisor row_tiles, column_tiles;
  long long rows = 0, columns = 0, rows_per_thread = 0;
  long long base_step = 1;  // 0: base is one number for all elements
  // Distance of the indices of two outer elements; 0: they share indices.
  long long index_pitch = 0;
  Outside* outside = nullptr;  // null: no record
  long long site = 0;
};

/// Rows of `length` elements, one block each.
struct SoftmaxArgs {
  const void* in[1] = {};
  void* out = nullptr;
  long long length = 0;
};

}  // namespace tenon::cuda
