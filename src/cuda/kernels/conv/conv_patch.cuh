// Convolutions with few filters over small feature maps, and their input gradients where the stride
// is 1: results [image, filter, pixel] from a patch in shared memory.
//
// Operands: any strides, float32, bfloat16 or float16; padding, dilation, groups. Products in tf32,
// bfloat16 or float16, float32 sums; the result goes to the epilogue only. A block computes kM
// filters x kN pixels (conv_args.cuh). Where there are more tiles than blocks that run at once, a
// block loops over tiles and keeps its filters in shared memory. It stages its patch and its
// filters once for every `chunk` groups of channels. Warps split a tile's k into kGroups parts,
// which are added in order, so the bits depend on sizes alone. Bound by the latency of one round of
// loads and by the bandwidth of the result.
#pragma once

#include "cuda/kernels/conv/conv_stage.cuh"
#include "cuda/kernels/maps/epilogue_channels.cuh"

namespace tenon::cuda {

/// C has kMath, kImage and kFilters (Kind), kShifts, kWhole, kRowsFirst, kM, kN, kThreads,
/// kThreadM, kThreadN, kStoreVector. E: the epilogue.
template <class C, class E>
class ConvBlock {
  static_assert(!E::kSums, "its results are not reduced as a whole");

  using M = ConvMath<C::kMath>;
  static constexpr int kWarpsN = C::kN / C::kThreadN;
  static constexpr int kGroupThreads = 32 * (C::kM / C::kThreadM) * kWarpsN;
  static constexpr int kGroups = C::kThreads / kGroupThreads;
  static constexpr int kTilesM = C::kThreadM / 16, kTilesN = C::kThreadN / 8;
  static constexpr int kPitch = C::kN + 8;  // row pitch of the sums in shared memory
  static constexpr int kVector = C::kStoreVector, kRow = C::kN / kVector;
  // Number of filters whose epilogues overlap; fewer if each epilogue has much to do.
  static constexpr int kAtOnce = E::kChannels ? 2 : 4;
  // Lanes whose pixels of a filter form one part of a reduced channel.
  static constexpr int kLanes = kRow < 32 ? kRow : 32, kParts = kRow / kLanes;
  static_assert(!E::kChannels || (kLanes & (kLanes - 1)) == 0, "lanes exchange by twos");
  static_assert(!E::kChannels || C::kThreads % kRow == 0, "all threads have pixels");

 public:
  TENON_DEVICE ConvBlock(const ConvProblem& p, const E& epilogue, unsigned char* shared)
      : p_(p), epilogue_(epilogue), shared_(reinterpret_cast<Unit*>(shared)) {
    place_ = static_cast<int>(blockIdx.x);
    row0_ = coordinate(place_, p.region.blocks_m) * C::kM;
    const int taps = static_cast<int>(p.taps.count.value);
    units_ = static_cast<int>(p.patch.groups.value) * taps;
    const int table_units = (units_ + 4) / 4;
    patch_ = shared_ + table_units;
    filters_ = patch_ + static_cast<int>(p.patch.width.value * p.patch.height.value) *
                            p.patch.images * p.patch.pitch;
  }

  /// Fills its tables, then waits for earlier kernels (intrinsics.cuh) and computes.
  TENON_DEVICE void await_and_run() {
    fill_table();
    locate_pixels();
    await_kernels();
    // The barriers inside one tile's work also separate it from the next tile's.
    float* sums = reinterpret_cast<float*>(shared_ + p_.sums);
    const int first = place_;
#pragma unroll 1
    for (; place_ < p_.region.places; place_ += p_.region.workers) {
      find_place();
      multiply_all(place_ == first);
      write(sums);
      __syncthreads();
      finish(sums);
    }
  }

 private:
  TENON_DEVICE void find_place() {
    const ConvRegion& r = p_.region;
    int place = place_;
    column_ = coordinate(place, r.strips) * static_cast<int>(r.columns.value);
    pixel_row_ = coordinate(place, r.bands) * r.rows;
    image0_ = place * r.images;
  }

  /// `fresh`: the filters are not staged yet. Filters that do not fit as a whole are staged each
  /// time.
  TENON_DEVICE void multiply_all(bool fresh) {
#pragma unroll
    for (int m = 0; m < kTilesM; ++m)
#pragma unroll
      for (int n = 0; n < kTilesN; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) sums_[m][n][i] = 0;
    const int groups = static_cast<int>(p_.patch.groups.value);
#pragma unroll 1
    for (int group = 0; group < p_.image.groups; group += groups) {
      if (group > 0) __syncthreads();
      stage(group, fresh);
      __syncthreads();
      multiply();
    }
    if (p_.sums == 0) __syncthreads();
  }

  TENON_DEVICE int* table() const { return reinterpret_cast<int*>(shared_); }

  /// The offsets of a chunk's units from a pixel's first unit. If their number is odd, the unit
  /// behind the last is multiplied by zeros.
  TENON_DEVICE void fill_table() const {
#pragma unroll 1
    for (int unit = static_cast<int>(threadIdx.x); unit <= units_; unit += C::kThreads) {
      int group = unit;
      int row = coordinate(group, p_.taps.count);
      const int column = coordinate(row, p_.taps.columns);
      table()[unit] =
          unit == units_
              ? 0
              : (row * p_.taps.row_step + column * p_.taps.column_step) * p_.patch.pitch + group;
    }
  }

  /// The positions of the pixels whose rows this lane passes to ldmatrix.
  TENON_DEVICE void locate_pixels() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int j = 0; j < kTilesN / 2; ++j) {
      int image = warp_n() + j * 16 + lane / 16 * 8 + lane % 8;
      int row = coordinate(image, p_.region.pixels);
      const int column = coordinate(row, p_.region.columns);
      const int height = static_cast<int>(p_.patch.height.value),
                width = static_cast<int>(p_.patch.width.value);
      pixels_[j] = image < p_.region.images
                       ? ((image * height + row * p_.region.step_rows) * width +
                          column * p_.region.step_columns) *
                             p_.patch.pitch
                       : 0;
    }
  }

  /// Loads the filters and the image at the same time.
  TENON_DEVICE void stage(int group, bool fresh) const {
    const int filters = C::kM * units_, image = patch_items(p_.patch);
    if constexpr (C::kFilters == C::kImage) {
      const int behind = static_cast<int>(filters_ - patch_), skipped = fresh ? 0 : filters;
      gather_units<C::kMath, C::kImage, C::kWhole, C::kThreads>(
          patch_, filters + image - skipped, [&](int i) {
            const int item = i + skipped;
            auto unit = item < filters ? filter(group, item) : pixel(group, item - filters);
            if (item < filters) unit.place += behind;
            return unit;
          });
    } else {
      gather_units<C::kMath, C::kFilters, C::kWhole, C::kThreads>(
          filters_, fresh ? filters : 0, [&](int item) { return filter(group, item); });
      gather_units<C::kMath, C::kImage, C::kWhole, C::kThreads>(
          patch_, image, [&](int item) { return pixel(group, item); });
    }
    static_assert(C::kM <= C::kThreads, "a thread has no more than one row");
    if (units_ % 2 != 0 && static_cast<int>(threadIdx.x) < C::kM)
      filters_[static_cast<int>(threadIdx.x) * p_.pitch + units_] = Unit{};
  }
  TENON_DEVICE auto filter(int group, int item) const {
    return filter_unit<C::kFilters, C::kShifts, C::kRowsFirst, C::kM, M::kVector>(
        p_, static_cast<int>(blockIdx.y) * p_.filter_step, row0_, group, item);
  }
  TENON_DEVICE auto pixel(int group, int item) const {
    const ConvRegion& r = p_.region;
    return patch_unit<C::kImage, C::kShifts, M::kVector>(
        p_.image, p_.patch, static_cast<int>(blockIdx.y) * p_.image_step, group, item, [&](int i) {
          return ConvCorner{image0_ + i, pixel_row_ * r.step_rows + r.first_row,
                            column_ * r.step_columns + r.first_column};
        });
  }

  TENON_DEVICE void multiply() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int group = static_cast<int>(threadIdx.x) / kGroupThreads;
    const Unit* rows = filters_ + (warp_m() + lane % 16) * p_.pitch + lane / 16;
    const int* table_of_half = table() + lane / 8 % 2;
    const int slices = (units_ + 1) / 2;
#pragma unroll 1
    for (int s = group; s < slices; s += kGroups) {
      const Unit* from = patch_ + table_of_half[2 * s];
      unsigned b[kTilesN][2];
#pragma unroll
      for (int j = 0; j < kTilesN / 2; ++j) {
        unsigned f[4];
        ldmatrix_x4(f, from + pixels_[j]);
        b[2 * j][0] = f[0], b[2 * j][1] = f[1], b[2 * j + 1][0] = f[2], b[2 * j + 1][1] = f[3];
      }
#pragma unroll
      for (int m = 0; m < kTilesM; ++m) {
        unsigned a[4];
        ldmatrix_x4(a, rows + m * 16 * p_.pitch + 2 * s);
#pragma unroll
        for (int n = 0; n < kTilesN; ++n) M::multiply(sums_[m][n], a, b[n]);
      }
    }
  }

  TENON_DEVICE void write(float* sums) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int group = static_cast<int>(threadIdx.x) / kGroupThreads;
    float* to = sums + (group * C::kM + warp_m() + lane / 4) * kPitch + warp_n() + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < kTilesM; ++m)
#pragma unroll
      for (int n = 0; n < kTilesN; ++n)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          *reinterpret_cast<Floats<2>*>(to + (m * 16 + h * 8) * kPitch + n * 8) =
              Floats<2>{{sums_[m][n][2 * h], sums_[m][n][2 * h + 1]}};
  }

  /// A thread has the same pixels of several filters; kAtOnce filters overlap. Lanes that exchange
  /// numbers run the same iterations.
  TENON_DEVICE void finish(const float* sums) const {
    constexpr int kRows = C::kThreads / kRow;
    static_assert(kRows > 0, "a row is no longer than a block");
    const ConvRegion& r = p_.region;
    const int t = static_cast<int>(threadIdx.x), place = t % kRow * kVector;
    int image = place;
    int row = coordinate(image, r.pixels);
    const int column = column_ + coordinate(row, r.columns);
    row += pixel_row_;
    const bool inside = t < kRows * kRow && image < r.images && image0_ + image < p_.image.images &&
                        row < r.height && column < r.width;
    if (!E::kChannels && !inside) return;
    const long long batch = image0_ + image, pixel = row * r.width + column;
    const int first = row0_ + static_cast<int>(blockIdx.y) * p_.rows;
    const int rows = p_.rows - row0_ < C::kM ? p_.rows - row0_ : C::kM;
    ChannelPart<kLanes> part = part_of(inside);
#pragma unroll 1
    for (int m = t / kRow; m - t / kRow < rows; m += kRows * kAtOnce) {
      typename E::template Held<kVector> held[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
        if (inside && m + u * kRows < rows)
          held[u] = epilogue_.template hold<kVector>(batch, first + m + u * kRows, pixel);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const bool exists = m + u * kRows < rows;
        if (E::kChannels ? m - t / kRow + u * kRows >= rows : !exists) continue;
        typename E::template Taken<kVector> taken;
        if (inside && exists) {
          const Floats<kVector> x = group_sum(sums + (m + u * kRows) * kPitch + place);
          epilogue_.template finish<kVector>(batch, first + m + u * kRows, pixel, x.v, held[u],
                                             taken);
        }
        if constexpr (E::kChannels) {
          part.channel = first + m + u * kRows;
          part.exists = inside && exists;
          part.leads = exists && t % kLanes == 0;
          epilogue_.leave(taken, part);
        }
      }
    }
  }

  /// The part of each channel that this thread's group of lanes has. The number of its elements is
  /// stored behind the partial results.
  TENON_DEVICE ChannelPart<kLanes> part_of(bool inside) const {
    ChannelPart<kLanes> part{};
    if constexpr (E::kChannels) {
      const int t = static_cast<int>(threadIdx.x);
      const int parts = p_.region.places * kParts;
      part.all = {epilogue_.partials, p_.rows * static_cast<int>(gridDim.y), parts,
                  (parts + 3) / 4 * 4};
      part.part = place_ * kParts + t % kRow / kLanes;
      part.count = reduce_lanes<SumOf, kLanes>(inside ? static_cast<float>(kVector) : 0.f);
      part.share = part.count > 0 ? 1 / part.count : 0.f;
      if (row0_ == 0 && blockIdx.y == 0 && t < kRow && t % kLanes == 0)
        part.all.row(E::kNumbers, 0)[part.part] = part.count;
    }
    return part;
  }

  static TENON_DEVICE Floats<kVector> group_sum(const float* from) {
    Floats<kVector> x = *reinterpret_cast<const Floats<kVector>*>(from);
#pragma unroll
    for (int g = 1; g < kGroups; ++g) {
      const auto more = *reinterpret_cast<const Floats<kVector>*>(from + g * C::kM * kPitch);
#pragma unroll
      for (int v = 0; v < kVector; ++v) x.v[v] += more.v[v];
    }
    return x;
  }

  static TENON_DEVICE int warp_m() {
    return static_cast<int>(threadIdx.x) % kGroupThreads / 32 / kWarpsN * C::kThreadM;
  }
  static TENON_DEVICE int warp_n() {
    return static_cast<int>(threadIdx.x) % kGroupThreads / 32 % kWarpsN * C::kThreadN;
  }

  const ConvProblem& p_;
  const E& epilogue_;
  Unit* const shared_;
  Unit *patch_, *filters_;
  int units_, row0_, place_, image0_, pixel_row_, column_;
  int pixels_[kTilesN / 2];
  float sums_[kTilesM][kTilesN][4];
};

}  // namespace tenon::cuda
