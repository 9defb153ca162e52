// Convolutions of stride 1 with few filters over small 16-bit NCHW feature maps, and their input
// gradients: results [image, filter, pixel].
//
// Rows are whole groups of 8 pixels. A thread loads neighbouring pixels of 8 channels at once,
// transposes pixels and channels in registers, and stores units (conv_args.cuh). The patch is
// staged once for all channels. A warp computes kM filters at 32 pixels. Each lane ends with 8
// neighbouring pixels of a filter, 16 bytes, so the epilogue works on registers. To get this order,
// column c of the tensor cores' n-th result is pixel c / 2 * 8 + 2 * n + c % 2. The units are
// shifted by two more every 8 positions, so that these eight pixels are in different banks. Warps
// split k into kGroups parts. The bits depend on sizes alone. Latency-bound: one round of loads.
#pragma once

#include "cuda/kernels/conv/conv_pieces.cuh"
#include "cuda/kernels/maps/epilogue_channels.cuh"

namespace tenon::cuda {

/// Partial reductions of a channel by the 4 lanes that share a filter, in shared memory:
/// [number][row][warp].
template <int kRows, int kWarps>
struct WarpChannel {
  float* parts;
  int row, warp;
  bool leads;
  static constexpr int kPixels = 32;  // pixels of a warp

  TENON_DEVICE void put(int number, float x) const {
    if (leads) parts[(number * kRows + row) * kWarps + warp] = x;
  }
  template <class Op, int N>
  TENON_DEVICE void reduce(int number, const float (&x)[N], float) const {
    float y = x[0];
#pragma unroll
    for (int v = 1; v < N; ++v) y = Op::combine(y, x[v]);
    put(number, reduce_lanes<Op, 4>(y));
  }
  template <int N>
  TENON_DEVICE void deviations(int number, const float (&x)[N]) const {
    float sum = 0, squares = 0;
#pragma unroll
    for (int v = 0; v < N; ++v) sum += x[v];
    const float mean = reduce_lanes<SumOf, 4>(sum) * (1.f / kPixels);
#pragma unroll
    for (int v = 0; v < N; ++v) squares += (x[v] - mean) * (x[v] - mean);
    put(number, mean);
    put(number + 1, reduce_lanes<SumOf, 4>(squares));
  }
};

/// Combines the partial reductions of the first `count` warps into one part of the channel in
/// global memory.
template <int kRows, int kWarps>
struct BlockChannel {
  const float* parts;
  ChannelParts all;
  int row, channel, part, count;

  TENON_DEVICE const float* of_warps(int number) const {
    return parts + (number * kRows + row) * kWarps;
  }
  template <class Op, int N>
  TENON_DEVICE void reduce(int number, const float (&)[N], float) const {
    const float* from = of_warps(number);
    float y = from[0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w)
      if (w < count) y = Op::combine(y, from[w]);
    all.row(number, channel)[part] = y;
  }
  template <int N>
  TENON_DEVICE void deviations(int number, const float (&)[N]) const {
    const float *means = of_warps(number), *inner = of_warps(number + 1);
    float mean = 0, squares = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w)
      if (w < count) mean += means[w];
    mean /= static_cast<float>(count);
#pragma unroll
    for (int w = 0; w < kWarps; ++w)
      if (w < count)
        squares +=
            inner[w] + WarpChannel<kRows, kWarps>::kPixels * (means[w] - mean) * (means[w] - mean);
    all.row(number, channel)[part] = mean;
    all.row(number + 1, channel)[part] = squares;
  }
};

/// C has kMath, kFilters (Kind), kFiltersWhole (units that can be copied), kTapRows, kTapColumns,
/// kRowsFirst, kM, kN, kThreads, kPixels (pixels loaded at once: 2, 4 or 8). E: the epilogue.
template <class C, class E>
class ConvRowsBlock {
  static_assert(!E::kSums, "its results are not reduced as a whole");

  using M = ConvMath<C::kMath>;
  // A warp has kLines rows of the tile, each of 32 pixels. Rows below one another share loads of
  // the image.
  static constexpr int kLines = C::kThreadN / 32, kWarpsN = C::kN / C::kThreadN;
  static constexpr int kGroups = C::kThreads / (32 * kWarpsN), kParts = C::kN / 32;
  static constexpr int kTilesM = C::kM / 16, kTilesN = 4;
  static constexpr int kOwn = kTilesM / kGroups;  // tiles that a warp finishes
  static constexpr int kTaps = C::kTapRows * C::kTapColumns;
  static_assert(kGroups * kOwn == kTilesM, "groups of warps finish equal parts");

 public:
  TENON_DEVICE ConvRowsBlock(const ConvRows& p, const E& epilogue, unsigned char* shared)
      : p_(p), epilogue_(epilogue), patch_(reinterpret_cast<Unit*>(shared)) {
    filters_ = patch_ + p.filters_at;
    place_ = static_cast<int>(blockIdx.x);
    row0_ = coordinate(place_, p.blocks_m) * C::kM;
    int image = place_;
    first_row_ = coordinate(image, p.bands) * p.rows_of_band;
    image0_ = image * p.images;
  }

  TENON_DEVICE void await_and_run() {
    await_kernels();
    stage();
    __syncthreads();
    multiply();
    if constexpr (kGroups > 1) exchange_sums();
    finish();
  }

 private:
  static TENON_DEVICE int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static TENON_DEVICE int warp_n() { return static_cast<int>(threadIdx.x) / 32 % kWarpsN; }
  static TENON_DEVICE int group() { return static_cast<int>(threadIdx.x) / (32 * kWarpsN); }
  /// The offset of a column of the patch, in units.
  TENON_DEVICE int column_unit(int column) const { return column * p_.pitch + (column >> 3) * 2; }

  // ---- Staging -------------------------------------------------------------------------------

  struct Piece {
    ConvPiece<C::kPixels> pixels;
    int place, column;
  };

  TENON_DEVICE void load_piece(Piece& piece, int item) const {
    const ConvImage& x = p_.image;
    int group = item >> 1;
    int row = coordinate(group, p_.pieces);
    const int column = coordinate(row, p_.row_pieces) * C::kPixels;
    int image = row;
    row = coordinate(image, p_.rows);
    group = 2 * group + (item & 1);
    const int u = first_row_ + p_.first_row + row;
    const bool inside =
        image0_ + image < x.images && static_cast<unsigned>(u) < static_cast<unsigned>(x.height);
    const unsigned short* from =
        static_cast<const unsigned short*>(x.data) +
        ((image0_ + image) * x.image_stride + group * x.group_stride + u * x.row_stride + column);
    piece.pixels.load(from, x.element_stride, inside);
    piece.place = image * p_.image_pitch + row * p_.row_pitch + group;
    piece.column = column - p_.first_column;
  }

  TENON_DEVICE void store_piece(const Piece& piece) const {
    piece.pixels.store([&](int j) { return patch_ + piece.place + column_unit(piece.column + j); });
  }

  TENON_DEVICE void stage() const {
    const int t = static_cast<int>(threadIdx.x);
    const int pieces = static_cast<int>(p_.pieces.value * p_.groups.value);
    Piece piece;
    if constexpr (C::kFiltersWhole) copy_filters();
    bool fresh = !C::kFiltersWhole;
#pragma unroll 1
    for (int item = t; fresh || item < pieces; item += C::kThreads) {
      if (item < pieces) load_piece(piece, item);
      if constexpr (!C::kFiltersWhole) {
        if (fresh) stage_filters();
        fresh = false;
      }
      if (item < pieces) store_piece(piece);
    }
    clear_edges();
    if constexpr (C::kFiltersWhole) copy_async_wait<0>();
  }

  /// Zeros the columns of the patch that are outside the image.
  TENON_DEVICE void clear_edges() const {
#pragma unroll 1
    for (int item = static_cast<int>(threadIdx.x); item < p_.edges; item += C::kThreads) {
      int image = item;
      const int group = coordinate(image, p_.groups);
      int column = coordinate(image, p_.edge);
      const int row = coordinate(image, p_.rows);
      if (column >= -p_.first_column) column += p_.image.width;
      patch_[image * p_.image_pitch + row * p_.row_pitch + group + column_unit(column)] = Unit{};
    }
  }

  /// Copies the filters as stored, in units of neighbouring 16-bit numbers. All blocks read the
  /// same lines, so they start at different lines; blocks of one multiprocessor share its cache.
  TENON_DEVICE void copy_filters() const {
    const int units = C::kM * static_cast<int>(p_.groups.value) * kTaps;
    const int turns = (units + C::kThreads - 1) / C::kThreads, first = place_ % turns;
#pragma unroll 1
    for (int i = first; i < first + turns; ++i) {
      const int item = (i < turns ? i : i - turns) * C::kThreads + static_cast<int>(threadIdx.x);
      if (item >= units) continue;
      int row = item;
      const int group = coordinate(row, p_.groups), tap = row % kTaps;
      int place;
      const auto* from = filter_unit(row / kTaps, group, tap, place);
      copy_async_16_near(filters_ + place, from);
    }
    copy_async_commit();
  }

  /// Stages the filters in the order of multiplication: [filter][tap column][pair of groups][tap
  /// row] [group]. The loads of several units of a thread are in flight together.
  TENON_DEVICE void stage_filters() const {
    using Memory = typename Bits<C::kFilters>::type;
    constexpr int kAtOnce = 2 * kTilesM;
    const int units = C::kM * static_cast<int>(p_.groups.value) * kTaps;
    const int step = p_.filters.element_stride;
    Memory held[kAtOnce][8];
    int place[kAtOnce];
#pragma unroll 1
    for (int item = static_cast<int>(threadIdx.x); item < units; item += C::kThreads * kAtOnce) {
#pragma unroll
      for (int b = 0; b < kAtOnce; ++b) {
        if (item + b * C::kThreads >= units) continue;
        const Memory* from = filter_of(item + b * C::kThreads, place[b]);
#pragma unroll
        for (int j = 0; j < 8; ++j) held[b][j] = from[j * step];
      }
#pragma unroll
      for (int b = 0; b < kAtOnce; ++b) {
        if (item + b * C::kThreads >= units) continue;
        float wide[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) wide[j] = convert<C::kFilters, Kind::Float32>(held[b][j]);
        filters_[place[b]] = M::unit(wide);
      }
    }
  }

  TENON_DEVICE const typename Bits<C::kFilters>::type* filter_of(int item, int& place) const {
    int row = item / kTaps, group;
    if constexpr (C::kRowsFirst) {
      group = row / C::kM;
      row %= C::kM;
    } else {
      group = coordinate(row, p_.groups);
    }
    return filter_unit(row, group, item % kTaps, place);
  }

  TENON_DEVICE const typename Bits<C::kFilters>::type* filter_unit(int row, int group, int tap,
                                                                   int& place) const {
    const ConvFilters& w = p_.filters;
    const int tap_row = tap / C::kTapColumns, tap_column = tap % C::kTapColumns;
    const int pair = tap_column * (static_cast<int>(p_.groups.value) / 2) + group / 2;
    place = row * p_.filter_pitch + (pair * C::kTapRows + tap_row) * 2 + group % 2;
    return static_cast<const typename Bits<C::kFilters>::type*>(w.data) +
           ((row0_ + row) * w.filter_stride + group * w.group_stride + tap_row * w.row_stride +
            tap_column * w.column_stride);
  }

  // ---- Products ------------------------------------------------------------------------------

  TENON_DEVICE void multiply() {
    const int column = lane() % 8, half = lane() / 8 % 2, odd = lane() / 16;
    int image = warp_n() * (4 * kLines) + column / 2;
    int row = coordinate(image, p_.eighths);
    const int x = coordinate(row, p_.columns) * 8 + odd * 2 + column % 2;
    const Unit* pixels = patch_ + (image * p_.image_pitch + row * p_.row_pitch + half);
    const Unit* rows =
        filters_ + lane() % 16 * p_.filter_pitch + lane() / 16 + group() * C::kTapRows * 2;
    const int pairs = static_cast<int>(p_.groups.value) / 2;
#pragma unroll 1
    for (int tap = 0; tap < C::kTapColumns; ++tap) {
      const int at = x + tap * p_.column_dilation;
      const Unit *first = pixels + column_unit(at), *second = pixels + column_unit(at + 4);
#pragma unroll 1
      for (int pair = group(); pair < pairs; pair += kGroups) {
        multiply_pair(first + 2 * pair, second + 2 * pair, rows);
        rows += kGroups * C::kTapRows * 2;
      }
    }
  }

  /// Multiplies two groups of channels at all taps of a column.
  TENON_DEVICE void multiply_pair(const Unit* first, const Unit* second, const Unit* rows) {
    const int step = p_.row_dilation * p_.row_pitch;
    unsigned a[kTilesM][C::kTapRows][4];
#pragma unroll
    for (int line = 0; line < C::kTapRows + kLines - 1; ++line) {
      unsigned b[2][4];
      ldmatrix_x4(b[0], first + line * step);
      ldmatrix_x4(b[1], second + line * step);
#pragma unroll
      for (int m = 0; m < kTilesM; ++m) {
        if (line < C::kTapRows) ldmatrix_x4(a[m][line], rows + m * 16 * p_.filter_pitch + 2 * line);
#pragma unroll
        for (int l = 0; l < kLines; ++l) {
          const int r = line - l;
          if (r < 0 || r >= C::kTapRows) continue;
#pragma unroll
          for (int n = 0; n < kTilesN; ++n) {
            const unsigned of[2] = {b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]};
            M::multiply(sums_[m][l * kTilesN + n], a[m][r], of);
          }
        }
      }
    }
  }

  /// Each group of warps finishes some of the tiles. The other groups' sums of these tiles come
  /// through shared memory and are added in order.
  TENON_DEVICE void exchange_sums() {
    static_assert(kGroups <= 2 && kLines == 1, "what is exchanged is one line");
    __syncthreads();
    float* mine = reinterpret_cast<float*>(patch_) + static_cast<int>(threadIdx.x);
    const int other = 1 - group();
#pragma unroll
    for (int m = 0; m < kTilesM; ++m)
      if (m / kOwn == other)
#pragma unroll
        for (int i = 0; i < kTilesN * 4; ++i)
          mine[(m % kOwn * kTilesN * 4 + i) * C::kThreads] = sums_[m][i / 4][i % 4];
    __syncthreads();
    const float* theirs = mine + (other - group()) * 32 * kWarpsN;
#pragma unroll
    for (int m = 0; m < kTilesM; ++m)
      if (m / kOwn == group())
#pragma unroll
        for (int i = 0; i < kTilesN * 4; ++i)
          sums_[m % kOwn][i / 4][i % 4] =
              sums_[m][i / 4][i % 4] + theirs[(m % kOwn * kTilesN * 4 + i) * C::kThreads];
  }

  // ---- Results -------------------------------------------------------------------------------

  TENON_DEVICE void finish() const {
    constexpr int kNumbers = parts_size();
    __shared__ float parts[kNumbers];
#pragma unroll
    for (int l = 0; l < kLines; ++l) finish_line(l, parts);
    if constexpr (E::kChannels) leave_block(parts);
  }

  TENON_DEVICE void finish_line(int l, float* parts) const {
    const int line = warp_n() * kLines + l;
    int image = line * 4 + lane() % 4;
    int row = coordinate(image, p_.eighths);
    const int column = coordinate(row, p_.columns) * 8;
    const bool exists = image0_ + image < p_.image.images;  // the same for all lanes of a warp
    if (!E::kChannels && !exists) return;
    const long long batch = image0_ + image, pixel = (first_row_ + row) * p_.result_width + column;
#pragma unroll
    for (int m = 0; m < kOwn; ++m) {
      const int first = (group() * kOwn + m) * 16 + lane() / 4;
      typename E::template Held<8> held[2];
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if (exists) held[h] = epilogue_.template hold<8>(batch, row0_ + first + h * 8, pixel);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float x[8];
#pragma unroll
        for (int v = 0; v < 8; ++v) x[v] = sums_[m][l * kTilesN + v / 2][2 * h + v % 2];
        typename E::template Taken<8> taken{};
        if (exists)
          epilogue_.template finish<8>(batch, row0_ + first + h * 8, pixel, x, held[h], taken);
        if constexpr (E::kChannels)
          epilogue_.leave(taken, WarpChannel<C::kM, kParts>{parts, first + h * 8, line,
                                                            lane() % 4 == 0 && exists});
      }
    }
  }

  static TENON_DEVICE constexpr int parts_size() {
    if constexpr (E::kChannels)
      return E::kNumbers * C::kM * kParts;
    else
      return 1;
  }

  TENON_DEVICE void leave_block(const float* parts) const {
    __syncthreads();
    const int t = static_cast<int>(threadIdx.x);
    if (t >= C::kM) return;
    const int left = (p_.image.images - image0_) * static_cast<int>(p_.eighths.value) / 4;
    const int lines = left < kParts ? left : kParts;
    const ChannelParts all{epilogue_.partials, p_.filters_in_all, p_.places,
                           (p_.places + 3) / 4 * 4};
    epilogue_.leave(typename E::template Taken<8>{},
                    BlockChannel<C::kM, kParts>{parts, all, t, row0_ + t, place_, lines});
    if (row0_ == 0 && t == 0)
      all.row(E::kNumbers, 0)[place_] =
          static_cast<float>(lines * WarpChannel<C::kM, kParts>::kPixels);
  }

  const ConvRows& p_;
  const E& epilogue_;
  Unit *const patch_, *filters_;
  int place_, row0_, first_row_, image0_;
  float sums_[kTilesM][kLines * kTilesN][4] = {};
};

}  // namespace tenon::cuda
