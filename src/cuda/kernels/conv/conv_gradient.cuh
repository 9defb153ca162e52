// Weight gradient of a convolution over small feature maps: [filter, column], summed over images
// and pixels, from patches in shared memory.
//
// Operands as in conv_patch.cuh; the output gradient has contiguous pixels. A block sums kM filters
// x kN columns over its cells (conv_args.cuh), a few cells at a time. It stages the output gradient
// as [filter][pixel] and the patches, and loads fragments from both. It overwrites its own partial
// result; conv_sum.cuh adds the partial results in order, so the bits depend on sizes alone.
// Latency-bound: a few rounds of loads.
#pragma once

#include "cuda/kernels/conv/conv_pieces.cuh"

namespace tenon::cuda {

/// C has kMath, kImage and kGradient (Kind), kShifts, kWhole, kM, kN, kThreads, kThreadM, kThreadN,
/// kAligned (pixels of the gradient loaded at once: 1, 2 or 4) and kPixels. kPixels is the number
/// of image pixels that a thread loads at once (conv_pieces.cuh) if both operands are stored in the
/// 16-bit type they are multiplied in, the stride is 1 and rows are whole groups of 8 pixels;
/// otherwise 0.
template <class C>
class ConvGradientBlock {
  using M = ConvMath<C::kMath>;
  static constexpr int kWarpsN = C::kN / C::kThreadN;
  static constexpr int kGroupThreads = 32 * (C::kM / C::kThreadM) * kWarpsN;
  static constexpr int kGroups = C::kThreads / kGroupThreads;
  static constexpr int kTilesM = C::kThreadM / 16, kTilesN = C::kThreadN / 8;
  static constexpr int kUnits = C::kN / M::kVector;
  static constexpr int kPitch = C::kN + 8;       // row pitch of the sums in shared memory
  static constexpr int kSlice = 2 * M::kVector;  // pixels in a reduction step
  static constexpr int kPlaces = M::kTf32 ? kTilesN : kTilesN / 2;

 public:
  TENON_DEVICE ConvGradientBlock(const ConvGradient& p, unsigned char* shared)
      : p_(p), shared_(reinterpret_cast<Unit*>(shared)) {
    int block = static_cast<int>(blockIdx.x);
    row0_ = coordinate(block, p.blocks_m) * C::kM;
    group0_ = block * static_cast<int>(p.patch.groups.value);
    units_ = static_cast<int>(p.patch.groups.value * p.taps.count.value);
    pixels_ = (p.patch.images * static_cast<int>(p.slots.value) + kSlice - 1) / kSlice * kSlice;
    pixel_table_ = reinterpret_cast<int*>(shared_ + kUnits / 2);
    patch_ = shared_ + kUnits / 2 + pixels_ / 4;
    rows_ = patch_ + static_cast<int>(p.patch.width.value * p.patch.height.value) * p.patch.images *
                         p.patch.pitch;
  }

  /// Fills its tables, then waits for earlier kernels (intrinsics.cuh) and computes.
  TENON_DEVICE void await_and_run() {
    fill_tables();
    await_kernels();
    const int first = static_cast<int>(blockIdx.y) * p_.cells;
    const int end = first + p_.cells < p_.cells_in_all ? first + p_.cells : p_.cells_in_all;
#pragma unroll 1
    for (int cell = first; cell < end; cell += p_.patch.images) {
      if (cell > first) __syncthreads();
      stage(cell, end, cell == first);
      __syncthreads();
      if (cell == first) take_places();
      multiply();
    }
    int columns[kTilesN];
    find_columns(columns);
    __syncthreads();
    float* sums = reinterpret_cast<float*>(shared_);
    write(sums, columns);
    __syncthreads();
    leave(sums);
  }

 private:
  TENON_DEVICE int* unit_table() const { return reinterpret_cast<int*>(shared_); }

  TENON_DEVICE void fill_tables() const {
    const int t = static_cast<int>(threadIdx.x);
    // Positions of units, then the result columns of their first elements.
#pragma unroll 1
    for (int unit = t; unit < kUnits; unit += C::kThreads) {
      int group = unit;
      const int tap = coordinate(group, p_.taps.count);
      int row = tap;
      const int column = coordinate(row, p_.taps.columns);
      const bool exists = unit < units_;
      unit_table()[unit] =
          exists ? (row * p_.taps.row_step + column * p_.taps.column_step) * p_.patch.pitch + group
                 : 0;
      unit_table()[kUnits + unit] = exists ? group * p_.group_columns + tap * p_.tap_columns : -1;
    }
    // Slots without a pixel are multiplied by a gradient of 0, so they may have any valid position.
#pragma unroll 1
    for (int k = t; k < pixels_; k += C::kThreads) {
      int cell = k;
      int row = coordinate(cell, p_.slots);
      const int column = coordinate(row, p_.columns);
      pixel_table_[k] =
          cell < p_.patch.images && row < p_.rows_of_band
              ? ((cell * static_cast<int>(p_.patch.height.value) + row * p_.step_rows) *
                     static_cast<int>(p_.patch.width.value) +
                 column * p_.step_columns) *
                    p_.patch.pitch
              : 0;
    }
  }

  /// The table entries of the units whose columns this lane passes to ldmatrix or loads.
  TENON_DEVICE void take_places() {
    const int lane = static_cast<int>(threadIdx.x) % 32, first = warp_n() / M::kVector;
#pragma unroll
    for (int j = 0; j < kPlaces; ++j) places_[j] = unit_table()[first + 2 * j + lane / 16];
  }

  TENON_DEVICE void stage(int cell, int end, bool fresh) const {
    const int z = static_cast<int>(blockIdx.z);
    if constexpr (C::kPixels != 0) {
      copy_rows(cell, end, z);
      stage_pieces(cell, end, z);
      if (fresh) clear_edges();
      copy_async_wait<0>();
    } else {
      stage_rows(cell, end, z);
      gather_units<C::kMath, C::kImage, C::kWhole, C::kThreads>(
          patch_, patch_items(p_.patch), [&](int item) {
            return patch_unit<C::kImage, C::kShifts, M::kVector>(
                p_.image, p_.patch, z * p_.image_step, group0_, item, [&](int i) {
                  int image = cell + i < end ? cell + i : p_.cells_in_all;
                  const int band = coordinate(image, p_.bands);
                  return ConvCorner{image, band * p_.rows_of_band * p_.step_rows + p_.first_row,
                                    p_.first_column};
                });
          });
    }
  }

  /// Stages the output gradient as [filter][slot], copying 8 pixels at a time without conversion.
  TENON_DEVICE void copy_rows(int cell0, int end, int z) const {
    const int pixels = static_cast<int>(p_.slots.value), items = C::kM * pixels_ / 8;
#pragma unroll 1
    for (int item = static_cast<int>(threadIdx.x); item < items; item += C::kThreads) {
      int filter = item;
      const int eighth = coordinate(filter, p_.eighths);
      int i = eighth * 8;
      const int pixel = coordinate(i, p_.slots);
      int image = cell0 + i;
      const bool exists = i < p_.patch.images && image < end && row0_ + filter < p_.filters;
      const int in_image = coordinate(image, p_.bands) * pixels + pixel;
      const bool inside = exists && in_image < p_.height * static_cast<int>(p_.columns.value);
      const unsigned short* from = static_cast<const unsigned short*>(p_.data) +
                                   (inside ? z * p_.filter_step + image * p_.image_stride +
                                                 (row0_ + filter) * p_.filter_stride + in_image
                                           : 0);
      copy_async_16(rows_ + filter * p_.pitch + eighth, from, inside);
    }
    copy_async_commit();
  }

  /// Neighbouring threads take different groups and rows, whose units are in different banks.
  TENON_DEVICE void stage_pieces(int cell, int end, int z) const {
    const ConvImage& x = p_.image;
    const int height = static_cast<int>(p_.patch.height.value),
              width = static_cast<int>(p_.patch.width.value);
    const int items =
        p_.patch.images * height * static_cast<int>(p_.patch.groups.value * p_.row_pieces.value);
#pragma unroll 1
    for (int item = static_cast<int>(threadIdx.x); item < items; item += C::kThreads) {
      int rest = item;
      const int group = coordinate(rest, p_.patch.groups), row = coordinate(rest, p_.patch.height);
      const int column = coordinate(rest, p_.row_pieces) * C::kPixels;
      int image = cell + rest < end ? cell + rest : p_.cells_in_all;
      const int u = coordinate(image, p_.bands) * p_.rows_of_band + p_.first_row + row;
      const bool inside = image < x.images && group0_ + group < x.groups &&
                          static_cast<unsigned>(u) < static_cast<unsigned>(x.height);
      const unsigned short* from = static_cast<const unsigned short*>(x.data) +
                                   (z * p_.image_step + image * x.image_stride +
                                    (group0_ + group) * x.group_stride + u * x.row_stride + column);
      ConvPiece<C::kPixels> piece;
      piece.load(from, x.element_stride, inside);
      Unit* to = patch_ +
                 ((rest * height + row) * width + column - p_.first_column) * p_.patch.pitch +
                 group;
      piece.store([&](int j) { return to + j * p_.patch.pitch; });
    }
  }

  /// Zeros the columns of the patches that are outside the image.
  TENON_DEVICE void clear_edges() const {
#pragma unroll 1
    for (int item = static_cast<int>(threadIdx.x); item < p_.edges; item += C::kThreads) {
      int row = item;
      const int group = coordinate(row, p_.patch.groups);
      int column = coordinate(row, p_.edge);
      if (column >= -p_.first_column) column += p_.image.width;
      patch_[(row * static_cast<int>(p_.patch.width.value) + column) * p_.patch.pitch + group] =
          Unit{};
    }
  }

  /// Stages the output gradient as [filter][slot]. Each warp takes some rows of 32 items.
  TENON_DEVICE void stage_rows(int cell0, int end, int z) const {
    constexpr int kItem = C::kAligned == 1 ? 2 : C::kAligned, kRows = 8;
    using Memory = typename Bits<C::kGradient>::type;
    struct alignas(sizeof(Memory) * C::kAligned) Several {
      Memory v[C::kAligned];
    };
    const int lane = static_cast<int>(threadIdx.x) % 32, width = static_cast<int>(p_.columns.value);
    const int items = pixels_ / kItem, jobs = (items + 31) / 32 * (C::kM / kRows);
#pragma unroll 1
    for (int job = static_cast<int>(threadIdx.x) / 32; job < jobs; job += C::kThreads / 32) {
      const int part = job % (C::kM / kRows), first = row0_ + part * kRows;
      const int item = job / (C::kM / kRows) * 32 + lane;
      int i = item * kItem;
      const int pixel = coordinate(i, p_.slots);
      int image = cell0 + i;
      const bool exists = i < p_.patch.images && image < end;
      const int pixels = p_.rows_of_band * width;
      const int in_image = coordinate(image, p_.bands) * pixels + pixel;
      const auto* from = static_cast<const Memory*>(p_.data) + z * p_.filter_step +
                         (image * p_.image_stride + first * p_.filter_stride + in_image);
      Memory held[kRows][kItem];
#pragma unroll
      for (int v = 0; v < kItem; v += C::kAligned) {
        const bool inside = exists && pixel + v < pixels && in_image + v < p_.height * width;
#pragma unroll
        for (int m = 0; m < kRows; ++m) {
          Several several{};
          if (inside && first + m < p_.filters)
            several = *reinterpret_cast<const Several*>(from + m * p_.filter_stride + v);
#pragma unroll
          for (int e = 0; e < C::kAligned; ++e) held[m][v + e] = several.v[e];
        }
      }
      if (item >= items) continue;
#pragma unroll
      for (int m = 0; m < kRows; ++m)
        put(held[m], (part * kRows + m) * p_.pitch * M::kVector + item * kItem);
    }
  }

  template <int kItem, class Memory>
  TENON_DEVICE void put(const Memory (&x)[kItem], int place) const {
    float wide[kItem];
#pragma unroll
    for (int v = 0; v < kItem; ++v) wide[v] = convert<C::kGradient, Kind::Float32>(x[v]);
    constexpr int kWords = M::kTf32 ? kItem : kItem / 2;
    struct alignas(4 * kWords) Words {
      unsigned v[kWords];
    } words;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      if constexpr (M::kTf32)
        words.v[w] = to_tf32(wide[w]);
      else
        words.v[w] = M::pair(wide[2 * w], wide[2 * w + 1]);
    }
    using Stored = typename Bits<M::kTf32 ? Kind::Float32 : Kind::BFloat16>::type;
    *reinterpret_cast<Words*>(reinterpret_cast<Stored*>(rows_) + place) = words;
  }

  TENON_DEVICE void multiply() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int group = static_cast<int>(threadIdx.x) / kGroupThreads;
    const Unit* rows = rows_ + (warp_m() + lane % 16) * p_.pitch + lane / 16;
#pragma unroll 1
    for (int s = group; s < pixels_ / kSlice; s += kGroups) {
      unsigned b[kTilesN][2];
      load_columns(b, s);
#pragma unroll
      for (int m = 0; m < kTilesM; ++m) {
        unsigned a[4];
        ldmatrix_x4(a, rows + m * 16 * p_.pitch + 2 * s);
#pragma unroll
        for (int n = 0; n < kTilesN; ++n) M::multiply(sums_[m][n], a, b[n]);
      }
    }
  }

  TENON_DEVICE void load_columns(unsigned (&b)[kTilesN][2], int slice) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (M::kTf32) {
      // Column lane / 4 at pixels lane % 4 and lane % 4 + 4.
      const int* at = pixel_table_ + slice * kSlice + lane % 4;
      const Unit *first = patch_ + at[0], *second = patch_ + at[4];
#pragma unroll
      for (int n = 0; n < kTilesN; ++n) {
        b[n][0] = first[places_[n]].words[lane / 4 % 4];
        b[n][1] = second[places_[n]].words[lane / 4 % 4];
      }
    } else {
      const Unit* from = patch_ + pixel_table_[slice * kSlice + lane % 16];
#pragma unroll
      for (int j = 0; j < kTilesN / 2; ++j) {
        unsigned f[4];
        ldmatrix_x4_trans(f, from + places_[j]);
        b[2 * j][0] = f[0], b[2 * j][1] = f[1], b[2 * j + 1][0] = f[2], b[2 * j + 1][1] = f[3];
      }
    }
  }

  /// For this lane's columns of the tile: the result column of the unit's first element; -1: none.
  TENON_DEVICE void find_columns(int (&columns)[kTilesN]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int n = 0; n < kTilesN; ++n)
      columns[n] = unit_table()[kUnits + (warp_n() + n * 8 + lane % 4 * 2) / M::kVector];
  }

  TENON_DEVICE void write(float* sums, const int (&columns)[kTilesN]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int group = static_cast<int>(threadIdx.x) / kGroupThreads;
    // This lane's element of each unit; it also has the next one.
    const int element = lane % 4 * 2 % M::kVector;
    float* to =
        sums + (group * C::kM + warp_m() + lane / 4) * kPitch + element * p_.element_columns;
    const bool first = !C::kShifts || element < p_.image.elements,
               second = !C::kShifts || element + 1 < p_.image.elements;
#pragma unroll
    for (int n = 0; n < kTilesN; ++n) {
      if (columns[n] < 0) continue;
      float* at = to + columns[n];
#pragma unroll
      for (int m = 0; m < kTilesM; ++m)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float* row = at + (m * 16 + i * 8) * kPitch;
          if (first) row[0] = sums_[m][n][2 * i];
          if (second) row[p_.element_columns] = sums_[m][n][2 * i + 1];
        }
    }
  }

  TENON_DEVICE void leave(const float* sums) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int group_columns = static_cast<int>(p_.patch.groups.value) * p_.group_columns;
    const int column0 = group0_ * p_.group_columns, left = p_.result_columns - column0;
    const int columns = group_columns < left ? group_columns : left;
    const long long rows = static_cast<long long>(blockIdx.y) * p_.result_rows +
                           static_cast<int>(blockIdx.z) * p_.filters + row0_;
#pragma unroll 1
    for (int m = static_cast<int>(threadIdx.x) / 32; m < C::kM; m += C::kThreads / 32) {
      if (row0_ + m >= p_.filters) break;
      float* to = p_.partials + (rows + m) * p_.result_columns + column0;
#pragma unroll 1
      for (int c = lane; c < columns; c += 32) {
        float x = sums[m * kPitch + c];
#pragma unroll
        for (int g = 1; g < kGroups; ++g) x += sums[(g * C::kM + m) * kPitch + c];
        to[c] = x;
      }
    }
  }

  static TENON_DEVICE int warp_m() {
    return static_cast<int>(threadIdx.x) % kGroupThreads / 32 / kWarpsN * C::kThreadM;
  }
  static TENON_DEVICE int warp_n() {
    return static_cast<int>(threadIdx.x) % kGroupThreads / 32 % kWarpsN * C::kThreadN;
  }

  const ConvGradient& p_;
  Unit* const shared_;
  Unit *patch_, *rows_;
  int* pixel_table_;
  int units_, pixels_, row0_, group0_;
  int places_[kPlaces];
  float sums_[kTilesM][kTilesN][4] = {};
};

}  // namespace tenon::cuda
