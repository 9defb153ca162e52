// Staging for the convolution kernels: copies a patch of a feature map, and filters, from global
// into shared memory, each element once. im2col happens when fragments are loaded from shared
// memory.
//
// A thread gathers the elements of a unit (conv_args.cuh). Each load of a warp runs along a row of
// the feature map or along the taps. The thread converts the elements once and stores 16 bytes. The
// layout of a patch is [image][row][column][group], with an odd number of units from one position
// to the next, so that eight neighbouring pixels are eight rows for ldmatrix without bank
// conflicts.
#pragma once

#include "cuda/kernels/conv/conv_args.cuh"
#include "cuda/kernels/gemm/gemm_math.cuh"

namespace tenon::cuda {

struct alignas(16) Unit {
  unsigned words[4];
};

/// Elements in the type of the products.
template <Math math>
struct ConvMath {
  static constexpr bool kTf32 = math == Math::Tf32;
  static constexpr int kVector = kTf32 ? 4 : 8;  // elements of a unit

  static TENON_DEVICE Unit unit(const float (&x)[kVector]) {
    Unit unit;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kTf32)
        unit.words[i] = to_tf32(x[i]);
      else
        unit.words[i] = pair(x[2 * i], x[2 * i + 1]);
    }
    return unit;
  }
  static TENON_DEVICE unsigned pair(float lo, float hi) {
    return math == Math::Bf16 ? pack_bf16(lo, hi) : pack_f16(lo, hi);
  }
  static TENON_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    if constexpr (kTf32)
      mma_tf32_m16n8k8(d, a, b);
    else if constexpr (math == Math::Bf16)
      mma_bf16_m16n8k16(d, a, b);
    else
      mma_f16_m16n8k16(d, a, b);
  }
};

/// Divides an item number by `size`: the remainder is the fastest-running coordinate.
TENON_DEVICE int coordinate(int& item, const Divisor& size) {
  unsigned rest = static_cast<unsigned>(item);
  item = static_cast<int>(split<false>(rest, size));
  return static_cast<int>(rest);
}

/// The elements of a unit in global memory, and the unit's place in shared memory. Bit j of the
/// mask: element j exists.
template <class Memory>
struct UnitSource {
  const Memory* from;
  int stride, place;
  unsigned mask;
};

/// Fills `items` units; find(i) describes the i-th. The loads of several units of a thread are in
/// flight before the first is awaited. kWhole: a unit exists as a whole or not at all.
template <Math math, Kind memory, bool kWhole, int kThreads, class F>
TENON_DEVICE void gather_units(Unit* to, int items, F&& find) {
  using M = ConvMath<math>;
  constexpr int kAtOnce = 16 / M::kVector;
  typename Bits<memory>::type held[kAtOnce][M::kVector];
  int place[kAtOnce];
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < items; i += kThreads * kAtOnce) {
#pragma unroll
    for (int b = 0; b < kAtOnce; ++b) {
      if (i + b * kThreads >= items) continue;
      const UnitSource<typename Bits<memory>::type> unit = find(i + b * kThreads);
      place[b] = unit.place;
#pragma unroll
      for (int j = 0; j < M::kVector; ++j) {
        held[b][j] = 0;
        if (kWhole ? unit.mask != 0 : (unit.mask >> j & 1u) != 0)
          held[b][j] = unit.from[j * unit.stride];
      }
    }
#pragma unroll
    for (int b = 0; b < kAtOnce; ++b) {
      if (i + b * kThreads >= items) continue;
      float wide[M::kVector];
#pragma unroll
      for (int j = 0; j < M::kVector; ++j) wide[j] = convert<memory, Kind::Float32>(held[b][j]);
      to[place[b]] = M::unit(wide);
    }
  }
}

/// The first `count` elements of a unit.
template <int kVector>
TENON_DEVICE unsigned first_elements(int count) {
  return count <= 0 ? 0u : count >= kVector ? (1u << kVector) - 1 : (1u << count) - 1;
}

/// The source of a part of a patch: image number and corner within the image.
struct ConvCorner {
  int image, row, column;
};

TENON_DEVICE int patch_items(const ConvPatch& patch) {
  return static_cast<int>(patch.width.value * patch.height.value * patch.groups.value) *
         patch.images;
}

/// Unit `item` of a patch of the groups from group0 on; corner(i) is the source of its i-th part
/// (an image past the end is outside).
template <Kind memory, bool kShifts, int kVector, class Corner>
TENON_DEVICE UnitSource<typename Bits<memory>::type> patch_unit(const ConvImage& x,
                                                                const ConvPatch& patch, int step,
                                                                int group0, int item,
                                                                Corner&& corner) {
  const int column = coordinate(item, patch.width), row = coordinate(item, patch.height);
  const int group = coordinate(item, patch.groups);
  const ConvCorner at = corner(item);
  const int u = at.row + row, v = at.column + column, g = group0 + group;
  const int height = static_cast<int>(patch.height.value),
            width = static_cast<int>(patch.width.value);
  UnitSource<typename Bits<memory>::type> unit;
  unit.place = ((item * height + row) * width + column) * patch.pitch + group;
  unit.stride = x.element_stride;
  unit.from =
      static_cast<const typename Bits<memory>::type*>(x.data) + step +
      (at.image * x.image_stride + g * x.group_stride + u * x.row_stride + v * x.column_stride);
  const auto in_row = [&](int j) {
    return static_cast<unsigned>(v + j * x.shift) < static_cast<unsigned>(x.width);
  };
  unsigned mask = 0;
  if constexpr (kShifts) {
#pragma unroll
    for (int j = 0; j < kVector; ++j) mask |= static_cast<unsigned>(in_row(j)) << j;
    mask &= first_elements<kVector>(x.elements);
  } else if (in_row(0)) {
    mask = first_elements<kVector>(x.elements - g * kVector);
  }
  const bool inside = at.image < x.images && g < x.groups &&
                      static_cast<unsigned>(u) < static_cast<unsigned>(x.height);
  unit.mask = inside ? mask : 0u;
  return unit;
}

/// Unit `item` of the filters [row0, row0 + kRows) as [row][group][tap]; `pitch` units a row.
template <Kind memory, bool kShifts, bool kRowsFirst, int kRows, int kVector>
TENON_DEVICE UnitSource<typename Bits<memory>::type> filter_unit(const ConvProblem& p, int step,
                                                                 int row0, int group0, int item) {
  const ConvFilters& w = p.filters;
  const int tap = coordinate(item, p.taps.count);
  int group, row;
  if constexpr (kRowsFirst) {
    row = item % kRows;
    group = item / kRows;
  } else {
    group = coordinate(item, p.patch.groups);
    row = item;
  }
  int tap_row = tap;
  const int tap_column = coordinate(tap_row, p.taps.columns);
  const int m = row0 + row, g = group0 + group;
  UnitSource<typename Bits<memory>::type> unit;
  unit.place = row * p.pitch + group * static_cast<int>(p.taps.count.value) + tap;
  unit.stride = w.element_stride;
  unit.from = static_cast<const typename Bits<memory>::type*>(w.data) + step +
              (m * w.filter_stride + g * w.group_stride + tap_row * w.row_stride +
               tap_column * w.column_stride);
  const int left = kShifts ? p.image.elements : p.image.elements - g * kVector;
  unit.mask = m < p.rows && g < p.image.groups ? first_elements<kVector>(left) : 0u;
  return unit;
}

}  // namespace tenon::cuda
