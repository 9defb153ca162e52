// A convolution or one of its gradients for the patch kernels (conv_args.cuh): geometry as numbers,
// compile-time choices as flags. No tiles, no source text.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/engines/products/native_config.h"
#include "cuda/kernels/conv/conv_args.cuh"
#include "plan/program/region.h"

namespace tenon::cuda {

/// Kernels take int arguments; ConvShape has checked the sizes.
inline int to_int(std::int64_t i) { return static_cast<int>(i); }

/// A window along one axis of the feature map.
struct ConvAxis {
  std::int64_t image = 0, result = 0, taps = 0;
  std::int64_t step = 1, dilation = 1, first = 0;  // first: coordinate of result 0's tap 0
};

struct ConvShape {
  GemmMath math = GemmMath::Bf16;
  bool filter_gradient = false;
  bool shifts = false;      // units hold the taps of a row
  bool whole = false;       // every unit is full
  bool rows_first = false;  // filters: in memory, the next filter is nearer than the next group
  bool reduces_channels = false;        // in the epilogue
  int vector = 8;                       // elements of a unit
  std::int64_t images = 0, groups = 1;  // of the convolution
  std::int64_t filters = 0;             // rows of the result, of one group
  std::int64_t channels = 0;            // of the image, of one group
  ConvAxis rows, columns;
  // image: the operand that has patches. other: the filters, or the output gradient.
  ValueId image_value = kNoValue, other_value = kNoValue;
  DType image_dtype = DType::Float32, other_dtype = DType::Float32;
  std::int64_t image_offset = 0, other_offset = 0;  // elements
  ConvImage image;
  ConvFilters weights;                               // unused for weight gradients
  std::int64_t image_stride = 0, filter_stride = 0;  // of the result's gradient
  std::int64_t image_step = 0, other_step = 0;       // from a group to the next

  std::int64_t taps() const { return (shifts ? 1 : columns.taps) * rows.taps; }
  std::int64_t unit_groups() const { return image.groups; }
  /// Number of input positions that `pixels` results need along an axis.
  std::int64_t reach(const ConvAxis& axis, std::int64_t pixels) const {
    const bool inside = shifts && &axis == &columns;
    return (pixels - 1) * axis.step + (inside ? 0 : (axis.taps - 1) * axis.dilation) + 1;
  }
  double flops() const {
    return 2.0 * static_cast<double>(images * groups * filters * channels) *
           static_cast<double>(rows.result * columns.result * rows.taps * columns.taps);
  }
};

/// Null, or the reason why these kernels cannot compute the contraction.
const char* conv_shape(const Region& region, std::span<const Value> values, ConvShape& shape);

}  // namespace tenon::cuda
