// Correlation on block tiles. Rows of A are neighbouring positions of pixel-major planes, read in
// place; columns of B are output channels. A step is up to 32 channels of one filter tap, or of
// several taps of a filter's row.
//
// Positions continue over the ends of rows. The results between rows are dropped when tiles are
// transposed to NCHW on the way out. The whole reduction stays in the tile's registers. Up to a few
// hundred channels the copies in and out bound the time; with more channels, arithmetic does.
#include <algorithm>

#include "base/index.h"
#include "cpu/kernels/conv/conv_bodies.h"
#include "cpu/kernels/conv/conv_pixels.h"
#include "cpu/kernels/conv/conv_schedule.h"
#include "device/cpu_model.h"

namespace tenon::cpu {
namespace {

// Images are cut until all threads have work, even if the parts are small: tiles process each part
// quickly anyway.
constexpr UnitLimits kLimits{2 * kCpu.chunk_multiply_adds, 0, kCpu.second_floats() / 2};
constexpr std::int64_t kStepFloats = kBlockWords * kBlockEdge;  // of packed filters
constexpr std::int64_t kTileFloats = kBlockEdge * kBlockEdge;
constexpr std::int64_t kStretch = 32;  // filter taps transposed at a time

// The steps of a row tap are the pieces of its runs of column taps: one run of all column taps if
// they are neighbours in the planes, otherwise one run per tap.
struct Runs {
  std::int64_t count = 0, taps = 0;  // taps of one run
  RunPieces pieces{0};

  Runs(const Correlation& pass, const Axis& cols, std::int64_t words)
      : count(has_neighbours(pass.cols, cols) ? std::min<std::int64_t>(cols.count, 1) : cols.count),
        taps(count == 0 ? 0 : cols.count / count),
        pieces(taps * words) {}

  std::int64_t steps(const Axis& rows) const { return rows.count * count * pieces.count; }

 private:
  static bool has_neighbours(const PassAxis& cols, const Axis& axis) {
    const bool dense = axis.offset_step == 1 || axis.offset_step == -1 || axis.count <= 1;
    return dense && (cols.backward || cols.stride == 1);
  }
};

class BlockBody final : public TileBody {
 public:
  BlockBody(const Correlation& pass, const KernelSet& kernels) : TileBody(pass, kernels) {
    cut_.words = divide_up(pass.in_channels, 2);
    cut_.panels = divide_up(pass.out_channels, kBlockEdge);
    cut_.step_floats = kStepFloats;
    each_phase(pass, [&](const Axis& rows, const Axis& cols) { cut_.steps += steps(rows, cols); });
    const double row_work = static_cast<double>(pass.out_w * pass.out_channels) *
                            static_cast<double>(cut_.steps * kBlockWords);
    cut_units(pass, row_work, kLimits, cut_);
  }

  std::int64_t steps(const Axis& rows, const Axis& cols) const override {
    return Runs(pass_, cols, cut_.words).steps(rows);
  }

  std::int64_t worker_floats() const override {
    return plane_floats() + kTileFloats + round_up(pixel_scratch(cut_.planes, cut_.words), 16);
  }

  void fill_table(const Phase& phase) const override {
    const Runs runs(pass_, phase.cols, cut_.words);
    std::int32_t* entry = phase.table;
    for (std::int64_t r = 0; r < phase.rows.count; ++r) {
      for (std::int64_t run = 0; run < runs.count; ++run) {
        const std::int64_t first =
            runs.taps > 1 ? phase.cols.lowest() : phase.cols.offset + run * phase.cols.offset_step;
        const std::int64_t at =
            cut_.planes.offset(phase.rows.offset + r * phase.rows.offset_step, first);
        for (std::int64_t piece = 0; piece < runs.pieces.count; ++piece)
          *entry++ = static_cast<std::int32_t>(at * cut_.words + runs.pieces.start(piece));
      }
    }
  }

  // The filters of two input channels at a time are transposed to [tap][output channel] and zipped
  // into their steps.
  void pack_filters(const Phase& phase, ConvOperand w, std::int64_t group,
                    std::int64_t panel) const override {
    const Runs runs(pass_, phase.cols, cut_.words);
    const std::int64_t taps = pass_.rows.filter * pass_.cols.filter, first = panel * kBlockEdge;
    const int lines =
        static_cast<int>(std::min<std::int64_t>(kBlockEdge, pass_.out_channels - first));
    const std::int64_t base = group * pass_.filter_group_stride + first * pass_.filter_out_stride;
    float* dst = phase.filters + panel * phase.steps * kStepFloats;
    std::fill_n(dst, phase.steps * kStepFloats, 0.0f);
    float lo[kStretch * kBlockEdge], hi[kStretch * kBlockEdge];
    for (std::int64_t word = 0; word < cut_.words; ++word) {
      const bool both = 2 * word + 1 < pass_.in_channels;
      for (std::int64_t tap = 0; tap < taps; tap += kStretch) {
        const std::int64_t count = std::min(kStretch, taps - tap);
        const std::int64_t at = base + 2 * word * pass_.filter_in_stride + tap;
        transpose_filters(w, at, lines, count, kBlockEdge, lo);
        if (both) transpose_filters(w, at + pass_.filter_in_stride, lines, count, kBlockEdge, hi);
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t to = place_of(phase, runs, word, tap + i);
          if (to < 0) continue;
          kernels_.convert(lo + i * kBlockEdge, both ? hi + i * kBlockEdge : nullptr,
                           DType::Float32, kBlockEdge, Math::Bf16, dst + to * kBlockEdge);
        }
      }
    }
  }

  const float* copy_planes(ConvOperand in, std::int64_t image, std::int64_t row0,
                           float* scratch) const override {
    const std::int64_t size = cut_.planes.in_h * cut_.planes.in_w;
    PixelSource source;
    source.first = element(in.data, in.dtype, image * pass_.in_channels * size);
    source.dtype = in.dtype;
    source.words = cut_.words;
    source.pairs = pass_.in_channels / 2;
    source.step = 2 * size;
    source.other = size;
    copy_pixels(kernels_, cut_.planes, source, row0, scratch,
                scratch + plane_floats() + kTileFloats);
    return scratch;
  }

  void compute(const Phase& phase, const float* planes, float* scratch, std::int64_t row0,
               std::int64_t rows, float* out) const override {
    const Runs runs(pass_, phase.cols, cut_.words);
    float* const tile = scratch + plane_floats();
    const std::int64_t cols = phase.cols.out_count, pitch = cut_.planes.width;
    const std::int64_t positions = (rows - 1) * pitch + cols;
    BlockArgs args;
    args.steps = phase.steps;
    args.a_table = phase.table;
    args.a_row = cut_.words;
    args.b_step = kStepFloats;
    args.b_row = kBlockEdge;
    args.c = tile;
    args.ldc = kBlockEdge;
    kernels_.block_begin(phase.steps == 0 ? 1 : static_cast<int>(runs.pieces.words));
    for (std::int64_t panel = 0; panel < cut_.panels; ++panel) {
      const std::int64_t channel = panel * kBlockEdge;
      args.cols =
          static_cast<int>(std::min<std::int64_t>(kBlockEdge, pass_.out_channels - channel));
      args.b = phase.filters + panel * phase.steps * kStepFloats;
      float* to = out + channel * phase.pitch;
      for (std::int64_t start = 0; start < positions; start += kBlockEdge) {
        const std::int64_t end = std::min(positions, start + kBlockEdge);
        args.rows = static_cast<int>(end - start);
        args.a = planes + start * cut_.words;
        kernels_.block_tile(args);
        store_tile(phase, tile, start, end, args.cols, row0, to);
      }
    }
    kernels_.block_end();
  }

 private:
  // A tile may read a whole tile of positions beyond the last.
  std::int64_t plane_floats() const {
    return round_up((cut_.planes.size() + kBlockEdge) * cut_.words + kBlockWords, 16);
  }

  // The row of packed filters (step * kBlockWords + word of the step) that multiplies one channel
  // pair of one tap; -1 if this phase does not use the tap.
  std::int64_t place_of(const Phase& phase, const Runs& runs, std::int64_t word,
                        std::int64_t tap) const {
    const Phase::Tap at = phase.tap(tap, pass_.cols.filter);
    if (at.row < 0) return -1;
    const bool one_run = runs.taps > 1;
    const std::int64_t ascending =
        phase.cols.offset_step < 0 ? phase.cols.count - 1 - at.col : at.col;
    const std::int64_t of_run = (one_run ? ascending : 0) * cut_.words + word;
    const std::int64_t piece = of_run / runs.pieces.words;
    const std::int64_t step =
        (at.row * runs.count + (one_run ? 0 : at.col)) * runs.pieces.count + piece;
    return step * kBlockWords + of_run - runs.pieces.start(piece);
  }

  // Stores plane positions [start, end) of a band whose first output row is row0. Where the outputs
  // of a row are neighbours, the last output of a row and the first of the next are neighbours too:
  // rows of the tile that are no outputs are removed, and the rest is stored as one run.
  void store_tile(const Phase& phase, float* tile, std::int64_t start, std::int64_t end,
                  int channels, std::int64_t row0, float* out) const {
    const std::int64_t cols = phase.cols.out_count, pitch = cut_.planes.width;
    const std::int64_t pixels = phase.pitch;
    const bool one_run = phase.cols.out_step == 1 && phase.rows.out_step == 1;
    std::int64_t used = 0, first_pixel = 0;
    for (std::int64_t row = start / pitch; row * pitch < end; ++row) {
      const std::int64_t first = std::max(start, row * pitch);
      const std::int64_t count = std::min(end, row * pitch + cols) - first;
      if (count <= 0) continue;
      const float* from = tile + (first - start) * kBlockEdge;
      const std::int64_t y = phase.rows.out_first + (row0 + row) * phase.rows.out_step;
      const std::int64_t x = phase.cols.out_first + (first - row * pitch) * phase.cols.out_step;
      if (!one_run) {
        store_apart(phase, from, count, channels, out + y * pass_.out_w + x);
        continue;
      }
      if (used == 0) first_pixel = y * pass_.out_w + x;
      float* to = tile + used * kBlockEdge;
      if (to != from) std::copy(from, from + count * kBlockEdge, to);
      used += count;
    }
    if (used > 0)
      kernels_.store_transposed(tile, kBlockEdge, static_cast<int>(used), channels,
                                out + first_pixel, pixels);
  }

  // Outputs of a row that are not neighbours.
  static void store_apart(const Phase& phase, const float* tile, std::int64_t count, int channels,
                          float* out) {
    const std::int64_t pixels = phase.pitch, step = phase.cols.out_step;
    for (int k = 0; k < channels; ++k) {
      for (std::int64_t j = 0; j < count; ++j)
        out[k * pixels + j * step] = tile[j * kBlockEdge + k];
    }
  }
};

}  // namespace

// A step of a half tile takes 16 cycles and has room for 16 x 16 x 32 products; vectors compute 32
// products a cycle. Tiles are used if at least a quarter of that gain remains, because copies and
// edges cost as much again.
const KernelSet* block_correlation(const Correlation& pass, Math math) {
  const KernelSet* kernels = math == Math::Bf16 ? block_kernel_set() : nullptr;
  const std::int64_t words = divide_up(pass.in_channels, 2);
  if (kernels == nullptr || words > kMaxPixelWords) return nullptr;
  std::int64_t steps = 0, taps = 0;
  each_phase(pass, [&](const Axis& rows, const Axis& cols) {
    steps += Runs(pass, cols, words).steps(rows);
    taps += rows.count * cols.count;
  });
  const std::int64_t places = steps * 2 * kBlockWords * round_up(pass.out_channels, kBlockHalf);
  return 8 * taps * pass.in_channels * pass.out_channels >= places ? kernels : nullptr;
}

void correlate_blocks(const Correlation& pass, const KernelSet& kernels, ConvOperand in,
                      ConvOperand w, float* out, const Epilogue& epilogue, void* workspace) {
  correlate_with(BlockBody(pass, kernels), in, w, out, epilogue, workspace);
}

std::int64_t correlate_blocks_piece(const Correlation& pass, const KernelSet& kernels) {
  return BlockBody(pass, kernels).cut().unit_pixels;
}

std::size_t correlate_blocks_workspace(const Correlation& pass, const KernelSet& kernels,
                                       int threads) {
  return correlate_with_workspace(BlockBody(pass, kernels), threads);
}

}  // namespace tenon::cpu
