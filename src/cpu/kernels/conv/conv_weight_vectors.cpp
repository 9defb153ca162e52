// The weight gradient on vectors, an implicit matrix product: rows are (input channel, filter tap),
// lanes are output channels, and the reduction runs over pixels. x is copied into planes as in the
// other passes and read in place; dy is transposed to [pixel][output channel]. Both are copied once
// for all taps of a filter.
//
// If there are too few output channels to fill the lanes, lanes are pixels. dy is then copied with
// the planes' pitch, with zeros where a row of outputs ends; both operands are read as vectors, and
// the lanes are added at the very end. (The zeros are multiplied by elements of x: an infinity or
// NaN in x may reach more of such a gradient than it should.)
//
// With pairs, a word holds the same pixel of two neighbouring images. Compute-bound.
#include <algorithm>

#include "base/index.h"
#include "cpu/kernels/conv/conv_bodies.h"
#include "cpu/kernels/conv/conv_weight_schedule.h"
#include "device/cpu_model.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kMostVectorParts = kCpu.many_chunks;
constexpr std::int64_t kVectorPlaneFloats = kCpu.second_floats() / 2;
constexpr std::int64_t kPixels = 256;  // least pixels of a stretch if images are small
// Rows added and transposed at a time: an update reads and writes weights in pieces of this length.
constexpr std::int64_t kSummedRows = 256;

// How a tile accesses its rows of x in the planes.
enum class XRows { Taps, Channels, Packed };

// Taps of a row are neighbours in the planes if stride and dilation are 1. A 1 x 1 filter has no
// neighbours, and in the other cases there are usually enough channels.
XRows reach_of(const ConvShape& s, bool pixel_lanes) {
  const bool neighbours = s.stride_h == 1 && s.stride_w == 1 && s.dil_w == 1;
  if (neighbours && (pixel_lanes || s.r * s.s > 1)) return XRows::Taps;
  return neighbours || s.c / s.groups >= kMaxWindowRows ? XRows::Channels : XRows::Packed;
}

// A single tap, at the pixel itself.
bool is_pointwise(const ConvShape& s) {
  return s.r == 1 && s.s == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_h == 0 && s.pad_w == 0;
}

class VectorWeights final : public WeightBody {
 public:
  /// `words`: x has the tiles' word format already.
  VectorWeights(const ConvShape& shape, const KernelSet& kernels, Math math, bool words)
      : WeightBody(shape, kernels),
        math_(math),
        pairs_(kernels.pairs && math == Math::Bf16),
        pixel_lanes_(2 * cut_.outputs <= kernels.lanes),
        words_(words && math == Math::F32 && shape.groups == 1 && !pixel_lanes_),
        in_place_(words_ && is_pointwise(shape)),
        reach_(reach_of(shape, pixel_lanes_)),
        nv_(cut_.outputs > kernels.lanes ? 2 : 1),
        width_(pixel_lanes_
                   ? static_cast<int>(std::min<std::int64_t>(cut_.outputs, kernels.max_dot_rows))
                   : nv_ * kernels.lanes),
        taps_(shape.r * shape.s),
        rows_(cut_.channels * taps_) {
    cut_.panels = divide_up(cut_.outputs, width_);
    cut_.panel_floats = rows_ * row_floats();
    cut_.images_per_word = pairs_ ? 2 : 1;
    cut_bands(shape, kVectorPlaneFloats, cut_);
    cut_parts(shape, kVectorPlaneFloats, kMostVectorParts, divide_up(kPixels, shape.p * shape.q),
              cut_);
    if (!in_place_) return;
    cut_.planes.rows = shape.h;
    cut_.planes.width = shape.w;
  }

  std::int64_t table_floats() const override { return round_up(stretch_steps(), 16); }

  void fill_table(std::int32_t* table) const override {
    if (pixel_lanes_) return;
    for (std::int64_t word = 0; word < cut_.stretch_words; ++word) {
      for (std::int64_t i = 0; i < cut_.band; ++i) {
        for (std::int64_t j = 0; j < s_.q; ++j) {
          *table++ =
              static_cast<std::int32_t>(word * cut_.image_floats() + i * cut_.planes.width + j);
        }
      }
    }
  }

  std::int64_t worker_floats() const override {
    return packed_at() + (reach_ == XRows::Packed ? round_up(stretch_steps() * kMaxMr, 16) : 0);
  }

  // Planes that would be copied word for word are read in place; for 1 x 1 filters also a band of
  // rows. Pixel vectors need the copy, because they may reach beyond the last pixel.
  const float* copy_x(ConvOperand x, const Stretch& stretch, float* copied) const override {
    const bool whole = reach_ != XRows::Packed && cut_.planes.whole() && stretch.row == 0;
    if (in_place_ || (words_ && whole))
      return static_cast<const float*>(x.data) + stretch.word * cut_.image_floats() +
             stretch.row * cut_.planes.width;
    for (std::int64_t i = 0; i < stretch.words; ++i)
      copy_image(x, stretch.word + i, stretch, copied + i * cut_.image_floats());
    // Whole vectors may read past the last plane; the floats there must be finite.
    std::fill_n(copied + stretch.words * cut_.image_floats(), kMaxNr, 0.0f);
    return copied;
  }

  void compute(ConvOperand dy, const Stretch& stretch, std::int64_t panel, const float* planes,
               const std::int32_t* table, float* scratch, float* sums,
               bool accumulate) const override {
    if (pixel_lanes_ && !accumulate) std::fill_n(sums, cut_.panel_floats, 0.0f);
    for (std::int64_t i = 0; i < stretch.words; ++i) {
      float* to = scratch + dy_at() + i * positions(stretch.rows) * width_;
      if (!pixel_lanes_) {
        transpose_dy(dy, stretch.word + i, stretch, panel, to);
        continue;
      }
      spread_dy(dy, stretch.word + i, stretch, panel, to);
      multiply_dots(i, stretch.rows, panel, planes, to, sums);
    }
    if (!pixel_lanes_) multiply_tiles(stretch, panel, planes, table, scratch, sums, accumulate);
  }

  std::int64_t pieces() const override {
    return s_.groups * cut_.panels * divide_up(rows_, kSummedRows);
  }

  SumPiece piece(std::int64_t index) const override {
    const std::int64_t blocks = divide_up(rows_, kSummedRows);
    const std::int64_t line = index / blocks, row = index % blocks * kSummedRows;
    const std::int64_t rows = std::min(kSummedRows, rows_ - row), panel = line % cut_.panels;
    const std::int64_t k = line / cut_.panels * cut_.outputs + panel * width_;
    return {(line * rows_ + row) * row_floats(),
            rows * row_floats(),
            k,
            k + outputs_in(panel),
            row,
            row + rows};
  }

  // Transposes [row][output channel] to [output channel][row].
  void finish(const SumPiece& piece, float* sums, float* block, std::int64_t ld) const override {
    const std::int64_t rows = piece.col1 - piece.col0;
    if (pixel_lanes_) add_lanes(sums, rows * width_);
    kernels_.store_transposed(sums, width_, static_cast<int>(rows),
                              static_cast<int>(piece.k1 - piece.k0), block, ld);
  }

 private:
  // Floats of one row of sums.
  std::int64_t row_floats() const { return width_ * (pixel_lanes_ ? kernels_.lanes : 1); }
  // Positions of dy in one image word: pixels, or plane positions rounded up to whole vectors.
  std::int64_t positions(std::int64_t lines) const {
    return pixel_lanes_ ? round_up((lines - 1) * cut_.planes.width + s_.q, 16) : lines * s_.q;
  }
  std::int64_t stretch_steps() const { return cut_.stretch_words * positions(cut_.band); }
  // The starts of the pieces of a worker's scratch, behind the planes.
  std::int64_t dy_at() const {
    if (in_place_) return 0;
    return round_up(cut_.stretch_words * cut_.image_floats() + kMaxNr, 16);
  }
  std::int64_t packed_at() const { return dy_at() + round_up(stretch_steps() * width_, 16); }

  // sums[i] = sum of the lanes of sums[i * lanes], in place, in order.
  void add_lanes(float* sums, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) {
      float sum = 0;
      for (int lane = 0; lane < kernels_.lanes; ++lane) sum += sums[i * kernels_.lanes + lane];
      sums[i] = sum;
    }
  }

  void copy_image(ConvOperand x, std::int64_t word, const Stretch& stretch, float* planes) const {
    const std::int64_t size = s_.h * s_.w, image = word * cut_.images_per_word;
    for (std::int64_t c = 0; c < cut_.channels; ++c) {
      PlaneSource source;
      source.dtype = x.dtype;
      source.lo =
          element(x.data, x.dtype, (image * s_.c + stretch.group * cut_.channels + c) * size);
      if (pairs_ && image + 1 < s_.n) source.hi = element(source.lo, x.dtype, s_.c * size);
      copy_plane(kernels_, cut_.planes, source, stretch.row, math_,
                 planes + c * cut_.planes.size());
    }
  }

  int outputs_in(std::int64_t panel) const {
    return static_cast<int>(std::min<std::int64_t>(width_, cut_.outputs - panel * width_));
  }

  // [output channel][plane position]: rows of dy with the planes' pitch, zeros between them.
  void spread_dy(ConvOperand dy, std::int64_t word, const Stretch& stretch, std::int64_t panel,
                 float* to) const {
    const std::int64_t size = s_.p * s_.q, image = word * cut_.images_per_word,
                       pitch = cut_.planes.width;
    const std::int64_t length = positions(stretch.rows);
    for (int k = 0; k < outputs_in(panel); ++k, to += length) {
      const std::int64_t plane = image * s_.k + stretch.group * cut_.outputs + panel * width_ + k;
      std::fill_n(to, length, 0.0f);
      for (std::int64_t i = 0; i < stretch.rows; ++i) {
        const void* lo = element(dy.data, dy.dtype, plane * size + (stretch.row + i) * s_.q);
        const bool both = pairs_ && image + 1 < s_.n;
        const void* hi = both ? element(lo, dy.dtype, s_.k * size) : nullptr;
        kernels_.convert(lo, hi, dy.dtype, s_.q, math_, to + i * pitch);
      }
    }
  }

  void multiply_dots(std::int64_t word, std::int64_t rows, std::int64_t panel, const float* planes,
                     const float* dy, float* sums) const {
    const DotFn* dots = kernels_.dot[pairs_][outputs_in(panel)];
    std::int64_t taps[kMaxDotTaps];
    DotArgs args;
    args.a = dy;
    args.a_row = positions(rows);
    args.steps = args.a_row / kernels_.lanes;
    args.b = planes + word * cut_.image_floats();
    args.taps = taps;
    args.c_tap = width_ * kernels_.lanes;
    for (std::int64_t row = 0; row < rows_;) {
      const int count = static_cast<int>(std::min<std::int64_t>(kMaxDotTaps, rows_ - row));
      for (int i = 0; i < count; ++i) taps[i] = tap_offset(row + i);
      args.c = sums + row * args.c_tap;
      dots[count](args);
      row += count;
    }
  }

  void transpose_dy(ConvOperand dy, std::int64_t word, const Stretch& stretch, std::int64_t panel,
                    float* to) const {
    const std::int64_t size = s_.p * s_.q, image = word * cut_.images_per_word,
                       pixels = stretch.rows * s_.q;
    const std::int64_t first = panel * width_;
    const int count = outputs_in(panel);
    const bool both = pairs_ && image + 1 < s_.n;
    const void *lines[kMaxNr], *others[kMaxNr];
    for (int k = 0; k < count; ++k) {
      const std::int64_t plane = image * s_.k + stretch.group * cut_.outputs + first + k;
      lines[k] = element(dy.data, dy.dtype, plane * size + stretch.row * s_.q);
      if (both) others[k] = element(lines[k], dy.dtype, s_.k * size);
    }
    const RowSource source{lines, count, dy.dtype};
    if (!pairs_) return kernels_.pack_transposed(source, pixels, math_, to, width_);
    kernels_.zip_transposed(source, both ? others : nullptr, pixels, to, width_);
  }

  // All rows of the product for one panel of output channels over one stretch. The table is made
  // for full bands; a last, shorter band has a single image word and uses a prefix.
  void multiply_tiles(const Stretch& stretch, std::int64_t panel, const float* planes,
                      const std::int32_t* table, float* scratch, float* sums,
                      bool accumulate) const {
    const std::int64_t left = cut_.outputs - panel * width_;
    const int nv = left > kernels_.lanes ? nv_ : 1;
    TileArgs args;
    args.steps = stretch.words * stretch.rows * s_.q;
    args.table = table;
    args.b = scratch + dy_at();
    args.b_step = width_;
    args.ldc = width_;
    args.cols = nv * kernels_.lanes;
    args.ld_sums = width_;
    switch (reach_) {
      case XRows::Taps:
        return multiply_taps(args, nv, planes, sums, accumulate);
      case XRows::Channels:
        return multiply_channels(args, nv, planes, sums, accumulate);
      case XRows::Packed:
        return multiply_packed(args, nv, stretch.words * stretch.rows, scratch, sums, accumulate);
    }
  }

  // A window's rows are neighbouring taps of one channel.
  void multiply_taps(TileArgs args, int nv, const float* planes, float* sums,
                     bool accumulate) const {
    const auto& tiles = kernels_.window[pairs_][nv];
    const Window window = choose_window(kernels_, nv, s_.r, s_.s);
    args.a_row = s_.dil_h * cut_.planes.width;
    for (std::int64_t c = 0; c < cut_.channels; ++c) {
      for (std::int64_t r = 0; r < s_.r;) {
        const int rp = s_.r - r >= window.rp ? window.rp : 1;
        for (std::int64_t t = 0; t < s_.s; t += window.rq) {
          const int rq = static_cast<int>(std::min<std::int64_t>(window.rq, s_.s - t));
          args.a = planes + c * cut_.planes.size() + r * args.a_row + t;
          args.c = sums + (c * taps_ + r * s_.s + t) * width_;
          args.sums = accumulate ? args.c : nullptr;
          tiles[rp][rq](args);
        }
        r += rp;
      }
    }
  }

  // A window's rows are channels, at one tap: for every stride, each tap reads neighbouring words
  // of one phase of the planes.
  void multiply_channels(TileArgs args, int nv, const float* planes, float* sums,
                         bool accumulate) const {
    const auto& tiles = kernels_.window[pairs_][nv];
    args.a_row = cut_.planes.size();
    args.ldc = args.ld_sums = taps_ * width_;
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      const float* const first = planes + tap_offset(tap);
      for (std::int64_t c = 0; c < cut_.channels;) {
        const int rows = choose_window(kernels_, nv, cut_.channels - c, 1).rp;
        args.a = first + c * args.a_row;
        args.c = sums + (c * taps_ + tap) * width_;
        args.sums = accumulate ? args.c : nullptr;
        tiles[rows][1](args);
        c += rows;
      }
    }
  }

  // Few channels with a stride or dilation: the taps of a tile are first gathered into a packed
  // panel.
  void multiply_packed(TileArgs args, int nv, std::int64_t lines_of_dy, float* scratch, float* sums,
                       bool accumulate) const {
    const int most = kernels_.max_mr[nv];
    float* packed = scratch + packed_at();
    args.a = packed;
    for (std::int64_t row = 0; row < rows_; row += most) {
      const int count = static_cast<int>(std::min<std::int64_t>(most, rows_ - row));
      float* to = packed;
      for (std::int64_t line = 0; line < lines_of_dy; ++line) {
        const void* lines[kMaxMr];
        for (int i = 0; i < count; ++i)
          lines[i] = scratch + tap_offset(row + i) + args.table[line * s_.q];
        kernels_.pack_transposed({lines, count, DType::Float32}, s_.q, Math::F32, to, count);
        to += s_.q * count;
      }
      args.a_step = count;
      args.c = sums + row * width_;
      args.sums = accumulate ? args.c : nullptr;
      kernels_.strided[pairs_][nv][count](args);
    }
  }

  std::int64_t tap_offset(std::int64_t row) const {
    const std::int64_t c = row / taps_, tap = row % taps_;
    return c * cut_.planes.size() +
           cut_.planes.offset(tap / s_.s * s_.dil_h - s_.pad_h, tap % s_.s * s_.dil_w - s_.pad_w);
  }

  const Math math_;
  const bool pairs_;
  const bool pixel_lanes_;
  const bool words_, in_place_;  // in place: a band is read without a copy
  const XRows reach_;
  const int nv_, width_;
  const std::int64_t taps_, rows_;  // rows of the product: channels * taps
};

}  // namespace

void weights_in_vectors(const ConvShape& shape, ConvOperand x, ConvOperand dy, float* dw, Math math,
                        const Epilogue& epilogue, void* workspace) {
  const VectorWeights body(shape, kernel_set(), math, x.dtype == DType::Float32);
  weights_with(body, x, dy, dw, epilogue, workspace);
}

std::size_t weights_in_vectors_workspace(const ConvShape& shape, Math math, int threads) {
  return weights_with_workspace(VectorWeights(shape, kernel_set(), math, false), threads);
}

}  // namespace tenon::cpu
