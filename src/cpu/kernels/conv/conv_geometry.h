// A convolution pass as a plain correlation over copied planes; forward and input gradient share
// it.
//
// Every pass first copies the input rows that a chunk needs into planes: padded with zeros, cast to
// float32, and split by stride phase, so that neighbouring outputs read neighbouring words for
// every stride. A table then holds the offset of each reduction step (channel and filter tap) from
// an output's position. There is no lowered matrix.
#pragma once

#include "cpu/kernels/gemm/gemm_pack.h"

namespace tenon::cpu {

/// One spatial axis: output i reads input i * stride + offset + t * offset_step with filter tap
/// first + t * step, for t < count. Output i is written at out_first + i * out_step.
struct Axis {
  std::int64_t in_size = 0;
  std::int64_t out_count = 0, out_first = 0, out_step = 1;
  std::int64_t stride = 1;
  std::int64_t first = 0, step = 1, count = 0;
  std::int64_t offset = 0, offset_step = 1;

  /// Taps [first, last) that read inside the input for at least one of the outputs [out0, out1).
  struct Taps {
    std::int64_t first, last;
  };
  Taps taps_inside(std::int64_t out0, std::int64_t out1) const;
  std::int64_t lowest() const;  ///< offset of the tap that reads lowest (0 without taps)
  std::int64_t highest() const;
};

/// The axes of a pass: one axis for the forward pass, one per stride phase for the input gradient.
struct PassAxis {
  bool backward = false;
  std::int64_t in = 0, out = 0, filter = 0;
  int stride = 1, pad = 0, dil = 1;

  int phases() const { return backward ? stride : 1; }
  Axis axis(int phase) const;
  /// Number of outputs of the longest phase.
  std::int64_t longest() const { return axis(0).out_count; }
};

/// A pass in neutral terms: `in` is the input (x, or dy for the input gradient), `out` the output.
struct Correlation {
  std::int64_t images = 0, groups = 1;
  std::int64_t in_channels = 0, out_channels = 0;  // of one group
  std::int64_t out_h = 0, out_w = 0;
  PassAxis rows, cols;
  std::int64_t filter_in_stride = 0, filter_out_stride = 0,
               filter_group_stride = 0;  // elements of w
  bool in_scratch = false;  // the result exists for the epilogue only, a unit of it at a time
};

Correlation correlation_of(const ConvShape& shape, bool input_grad, bool in_scratch);

/// Layout of copied planes: [image][channel or channel pair][row phase][column phase][rows][width].
struct Planes {
  std::int64_t in_h = 0, in_w = 0;
  std::int64_t row_origin = 0, col_origin = 0;  // input coordinate of plane row and column 0
  std::int64_t row_phases = 1, col_phases = 1;
  std::int64_t kept_rows = 1,
               kept_cols = 1;        // phases that are copied; a single tap reads only the first
  std::int64_t rows = 0, width = 0;  // of one phase

  std::int64_t phase_size() const { return rows * width; }
  std::int64_t size() const { return kept_rows * kept_cols * rows * width; }
  /// Offset of an input position relative to the word of the output at the same phase position.
  std::int64_t offset(std::int64_t row, std::int64_t col) const;
  /// True if the planes are the input itself: no padding, no split, every row.
  bool whole() const;
};

/// The planes that `out_rows` rows of outputs of every phase need.
Planes planes_for(const PassAxis& rows, const PassAxis& cols, std::int64_t out_rows);

/// One source plane of an input channel or, where words are pairs, two of a channel pair. `hi` may
/// be null.
struct PlaneSource {
  const void* lo = nullptr;
  const void* hi = nullptr;
  DType dtype = DType::Float32;

  /// The address of element `index` of a plane; null if the plane is null.
  const void* at(const void* plane, std::int64_t index) const {
    return plane == nullptr ? nullptr : element(plane, dtype, index);
  }
};

/// Fills one channel's planes; plane row 0 is the first input row of output row `out_row0`.
void copy_plane(const KernelSet& kernels, const Planes& planes, const PlaneSource& source,
                std::int64_t out_row0, Math math, float* dst);

/// An output or filter extent cut into register tiles of rp x rq.
struct Window {
  int rp = 1, rq = 1;
};
/// The best tile for an extent of rows x cols, among tiles of nv vectors.
Window choose_window(const KernelSet& kernels, int nv, std::int64_t rows, std::int64_t cols);

}  // namespace tenon::cpu
