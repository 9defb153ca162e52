// Correlation on block tiles: rows of A are neighbouring positions of pixel-major planes, read in
// place, columns of B are output channels, and a step is up to 32 channels of one filter tap or of
// several taps of a filter's row.
//
// Positions run on over the ends of rows; what stands between rows is dropped on the way out, where
// tiles are transposed to NCHW. The whole reduction stays in the tile's registers. Bound by the
// copies in and out up to some hundred channels, by arithmetic beyond.
#include "cpu/kernels/conv_blocks.h"

#include <algorithm>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/kernels/conv_pixels.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kManyChunks = 32;
constexpr double kChunkWork = 1e6;                              // multiply-adds
constexpr std::int64_t kPlaneFloats = std::int64_t{1} << 17;    // of a unit, where rows can be cut
constexpr std::int64_t kStepFloats = kBlockWords * kBlockEdge;  // of packed filters
constexpr std::int64_t kTileFloats = kBlockEdge * kBlockEdge;
constexpr std::int64_t kStretch = 32;  // filter taps transposed at a time

// One phase of a pass: the steps of a row tap are the pieces of its runs of column taps.
struct Phase {
  Axis rows, cols;
  std::int64_t runs = 0, taps_of_run = 0;
  RunPieces pieces{0};
  std::int64_t steps = 0;
  std::int32_t* table = nullptr;
  float* filters = nullptr;  // [panel][step][word][output channel]

  Phase(const Axis& r, const Axis& c, bool neighbours, std::int64_t words)
      : rows(r),
        cols(c),
        runs(neighbours ? std::min<std::int64_t>(c.count, 1) : c.count),
        taps_of_run(runs == 0 ? 0 : c.count / runs),
        pieces(taps_of_run * words),
        steps(r.count * runs * pieces.count) {}
};

struct Plan {
  std::int64_t words = 0;  // pairs of input channels
  std::int64_t panels = 0;
  Planes planes;
  std::int64_t band = 0, bands = 0, units = 0, units_per_chunk = 1;
  std::int64_t steps = 0;  // of all phases

  std::int64_t table_floats() const { return round_up(steps, 16); }
  std::int64_t filter_floats() const { return steps * panels * kStepFloats; }  // of one group
  // A tile may read a whole tile's positions beyond the last.
  std::int64_t plane_floats() const {
    return round_up((planes.size() + kBlockEdge) * words + kBlockWords, 16);
  }
  std::int64_t worker_floats() const {
    return plane_floats() + round_up(pixel_scratch(planes, words), 16) + kTileFloats;
  }
};

bool has_neighbours(const PassAxis& cols, const Axis& axis) {
  const bool dense = axis.offset_step == 1 || axis.offset_step == -1 || axis.count <= 1;
  return dense && (cols.backward || cols.stride == 1);
}

template <class F>
void each_phase(const Correlation& pass, std::int64_t words, F f) {
  for (int a = 0; a < pass.rows.phases(); ++a) {
    for (int b = 0; b < pass.cols.phases(); ++b) {
      const Axis cols = pass.cols.axis(b);
      Phase phase(pass.rows.axis(a), cols, has_neighbours(pass.cols, cols), words);
      f(phase);
    }
  }
}

void cut_units(const Correlation& pass, Plan& plan) {
  const std::int64_t rows = pass.rows.longest();
  std::int64_t bands = std::min(rows, divide_up(kManyChunks, pass.images * pass.groups));
  const auto too_large = [&](std::int64_t count) {
    const std::int64_t band = divide_up(rows, count);
    return plan.words * planes_for(pass.rows, pass.cols, band).size() > kPlaneFloats && band > 4;
  };
  while (too_large(bands)) bands = std::min(rows, bands + 1);
  plan.band = divide_up(rows, bands);
  plan.bands = divide_up(rows, plan.band);
  plan.planes = planes_for(pass.rows, pass.cols, plan.band);
  plan.units = pass.images * pass.groups * plan.bands;
  const double work = static_cast<double>(plan.band * pass.out_w * pass.out_channels) *
                      static_cast<double>(plan.steps * kBlockWords);
  plan.units_per_chunk =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(kChunkWork / work), 1,
                               std::max<std::int64_t>(1, plan.units / kManyChunks));
}

Plan plan_blocks(const Correlation& pass) {
  Plan plan;
  plan.words = divide_up(pass.in_channels, 2);
  plan.panels = divide_up(pass.out_channels, kBlockEdge);
  each_phase(pass, plan.words, [&](const Phase& phase) { plan.steps += phase.steps; });
  cut_units(pass, plan);
  return plan;
}

class BlockCorrelator {
 public:
  BlockCorrelator(const Correlation& pass, const Plan& plan, const KernelSet& kernels,
                  void* workspace)
      : pass_(pass), plan_(plan), kernels_(kernels) {
    table_ = static_cast<std::int32_t*>(workspace);
    filters_ = static_cast<float*>(workspace) + plan.table_floats();
    scratch_ = filters_ + pass.groups * plan.filter_floats();
  }

  void prepare(ConvOperand w) {
    placed_phases(0, [&](const Phase& phase) { fill_table(phase); });
    parallel_for(pass_.groups * plan_.panels, [&](std::int64_t line, int) {
      const std::int64_t group = line / plan_.panels, panel = line % plan_.panels;
      placed_phases(group, [&](const Phase& phase) { pack_filters(phase, w, group, panel); });
    });
  }

  void run(ConvOperand in, float* out, const Epilogue& epilogue) {
    parallel_for(
        divide_up(plan_.units, plan_.units_per_chunk), [&](std::int64_t chunk, int worker) {
          const std::int64_t end = std::min(plan_.units, (chunk + 1) * plan_.units_per_chunk);
          for (std::int64_t unit = chunk * plan_.units_per_chunk; unit < end; ++unit)
            run_unit(in, out, epilogue, unit, worker);
        });
  }

 private:
  // The order of phases here is the layout of the table and of a group's packed filters.
  template <class F>
  void placed_phases(std::int64_t group, F f) {
    std::int32_t* table = table_;
    float* filters = filters_ + group * plan_.filter_floats();
    each_phase(pass_, plan_.words, [&](Phase& phase) {
      phase.table = table;
      phase.filters = filters;
      f(phase);
      table += phase.steps;
      filters += phase.steps * plan_.panels * kStepFloats;
    });
  }

  void fill_table(const Phase& phase) {
    std::int32_t* entry = phase.table;
    for (std::int64_t r = 0; r < phase.rows.count; ++r) {
      for (std::int64_t run = 0; run < phase.runs; ++run) {
        const std::int64_t first = phase.taps_of_run > 1
                                       ? phase.cols.lowest()
                                       : phase.cols.offset + run * phase.cols.offset_step;
        const std::int64_t at =
            plan_.planes.offset(phase.rows.offset + r * phase.rows.offset_step, first);
        for (std::int64_t piece = 0; piece < phase.pieces.count; ++piece)
          *entry++ = static_cast<std::int32_t>(at * plan_.words + phase.pieces.start(piece));
      }
    }
  }

  // The filters of two input channels at a time are transposed to [tap][output channel] and zipped
  // into their steps.
  void pack_filters(const Phase& phase, ConvOperand w, std::int64_t group, std::int64_t panel) {
    const std::int64_t taps = pass_.rows.filter * pass_.cols.filter, first = panel * kBlockEdge;
    const int lines =
        static_cast<int>(std::min<std::int64_t>(kBlockEdge, pass_.out_channels - first));
    const std::int64_t base = group * pass_.filter_group_stride + first * pass_.filter_out_stride;
    float* dst = phase.filters + panel * phase.steps * kStepFloats;
    std::fill_n(dst, phase.steps * kStepFloats, 0.0f);
    float lo[kStretch * kBlockEdge], hi[kStretch * kBlockEdge];
    for (std::int64_t word = 0; word < plan_.words; ++word) {
      const bool both = 2 * word + 1 < pass_.in_channels;
      for (std::int64_t tap = 0; tap < taps; tap += kStretch) {
        const std::int64_t count = std::min(kStretch, taps - tap);
        const std::int64_t at = base + 2 * word * pass_.filter_in_stride + tap;
        transpose_filters(w, at, lines, count, lo);
        if (both) transpose_filters(w, at + pass_.filter_in_stride, lines, count, hi);
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t to = place_of(phase, word, tap + i);
          if (to < 0) continue;
          kernels_.convert(lo + i * kBlockEdge, both ? hi + i * kBlockEdge : nullptr,
                           DType::Float32, kBlockEdge, Math::Bf16, dst + to * kBlockEdge);
        }
      }
    }
  }

  void transpose_filters(ConvOperand w, std::int64_t at, int lines, std::int64_t count,
                         float* dst) {
    const void* rows[kBlockEdge];
    for (int line = 0; line < lines; ++line)
      rows[line] = element(w.data, w.dtype, at + line * pass_.filter_out_stride);
    kernels_.pack_transposed({rows, lines, w.dtype}, count, Math::F32, dst, kBlockEdge);
  }

  // The row of packed filters (step * kBlockWords + word of the step) that multiplies with one
  // channel pair of one tap, -1 where this phase does not.
  std::int64_t place_of(const Phase& phase, std::int64_t word, std::int64_t tap) const {
    const std::int64_t r = tap / pass_.cols.filter - phase.rows.first;
    const std::int64_t s = tap % pass_.cols.filter - phase.cols.first;
    if (r < 0 || s < 0 || r % phase.rows.step != 0 || s % phase.cols.step != 0) return -1;
    const std::int64_t row = r / phase.rows.step, col = s / phase.cols.step;
    if (row >= phase.rows.count || col >= phase.cols.count) return -1;
    const bool one_run = phase.taps_of_run > 1;
    const std::int64_t run = one_run ? 0 : col;
    const std::int64_t ascending = phase.cols.offset_step < 0 ? phase.cols.count - 1 - col : col;
    const std::int64_t at = (one_run ? ascending : 0) * plan_.words + word;
    const std::int64_t piece = at / phase.pieces.words;
    const std::int64_t step = (row * phase.runs + run) * phase.pieces.count + piece;
    return step * kBlockWords + at - phase.pieces.start(piece);
  }

  void run_unit(ConvOperand in, float* out, const Epilogue& epilogue, std::int64_t unit,
                int worker) {
    const std::int64_t band = unit % plan_.bands, group = unit / plan_.bands % pass_.groups;
    const std::int64_t image = unit / plan_.bands / pass_.groups;
    const std::int64_t row0 = band * plan_.band,
                       row1 = std::min(pass_.rows.longest(), row0 + plan_.band);
    float* planes = scratch_ + worker * plan_.worker_floats();
    float* tile = planes + plan_.plane_floats();
    copy_planes(in, image * pass_.groups + group, row0, planes, tile + kTileFloats);
    const std::int64_t pixels = pass_.out_h * pass_.out_w;
    float* result = out + (image * pass_.groups + group) * pass_.out_channels * pixels;
    placed_phases(group, [&](const Phase& phase) {
      const std::int64_t rows = std::min(row1, phase.rows.out_count) - row0;
      if (rows > 0 && phase.cols.out_count > 0) run_phase(phase, planes, tile, row0, rows, result);
    });
    if (epilogue.fn == nullptr) return;
    const std::int64_t step = pass_.rows.axis(0).out_step;
    const std::int64_t first = row0 * step * pass_.out_w;
    const std::int64_t last = std::min(pass_.out_h, row1 * step) * pass_.out_w;
    epilogue.fn(epilogue.ctx, worker, image, group * pass_.out_channels,
                (group + 1) * pass_.out_channels, first, last, result + first, pixels);
  }

  void copy_planes(ConvOperand in, std::int64_t image, std::int64_t row0, float* planes,
                   float* scratch) {
    const std::int64_t size = plan_.planes.in_h * plan_.planes.in_w;
    PixelSource source;
    source.first = element(in.data, in.dtype, image * pass_.in_channels * size);
    source.dtype = in.dtype;
    source.words = plan_.words;
    source.pairs = pass_.in_channels / 2;
    source.step = 2 * size;
    source.other = size;
    copy_pixels(kernels_, plan_.planes, source, row0, planes, scratch);
  }

  void run_phase(const Phase& phase, const float* planes, float* tile, std::int64_t row0,
                 std::int64_t rows, float* out) {
    const std::int64_t cols = phase.cols.out_count, pitch = plan_.planes.width;
    const std::int64_t positions = (rows - 1) * pitch + cols;
    BlockArgs args;
    args.steps = phase.steps;
    args.a_table = phase.table;
    args.a_row = plan_.words;
    args.b_step = kStepFloats;
    args.b_row = kBlockEdge;
    args.c = tile;
    args.ldc = kBlockEdge;
    kernels_.block_begin(phase.steps == 0 ? 1 : static_cast<int>(phase.pieces.words));
    for (std::int64_t panel = 0; panel < plan_.panels; ++panel) {
      const std::int64_t channel = panel * kBlockEdge;
      args.cols =
          static_cast<int>(std::min<std::int64_t>(kBlockEdge, pass_.out_channels - channel));
      args.b = phase.filters + panel * phase.steps * kStepFloats;
      float* to = out + channel * pass_.out_h * pass_.out_w;
      for (std::int64_t start = 0; start < positions; start += kBlockEdge) {
        const std::int64_t end = std::min(positions, start + kBlockEdge);
        args.rows = static_cast<int>(end - start);
        args.a = planes + start * plan_.words;
        kernels_.block_tile(args);
        store_tile(phase, tile, start, end, args.cols, row0, to);
      }
    }
    kernels_.block_end();
  }

  // Plane positions [start, end) of a band that begins with output row row0. Where the outputs of a
  // row are neighbours, so are the last of a row and the first of the next: rows of the tile that
  // are no outputs are closed up, and the rest goes out as one run.
  void store_tile(const Phase& phase, float* tile, std::int64_t start, std::int64_t end,
                  int channels, std::int64_t row0, float* out) {
    const std::int64_t cols = phase.cols.out_count, pitch = plan_.planes.width;
    const std::int64_t pixels = pass_.out_h * pass_.out_w;
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
        store_apart(from, count, channels, out + y * pass_.out_w + x, phase.cols.out_step);
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

  // Outputs of a row that are `step` pixels apart.
  void store_apart(const float* tile, std::int64_t count, int channels, float* out,
                   std::int64_t step) {
    const std::int64_t pixels = pass_.out_h * pass_.out_w;
    for (int k = 0; k < channels; ++k) {
      for (std::int64_t j = 0; j < count; ++j)
        out[k * pixels + j * step] = tile[j * kBlockEdge + k];
    }
  }

  const Correlation& pass_;
  const Plan& plan_;
  const KernelSet& kernels_;
  std::int32_t* table_;
  float* filters_;
  float* scratch_;
};

}  // namespace

// A step of a half tile takes 16 cycles and has a place for 16 x 16 x 32 products, of which vectors
// make 32 a cycle: tiles are used where a quarter of that remains, for copies and edges cost as
// much again.
const KernelSet* block_correlation(const Correlation& pass, Math math) {
  const KernelSet* kernels = math == Math::Bf16 ? block_kernel_set() : nullptr;
  const std::int64_t words = divide_up(pass.in_channels, 2);
  if (kernels == nullptr || words > kMaxPixelWords) return nullptr;
  std::int64_t steps = 0, taps = 0;
  each_phase(pass, words, [&](const Phase& phase) {
    steps += phase.steps;
    taps += phase.rows.count * phase.cols.count;
  });
  const std::int64_t places = steps * 2 * kBlockWords * round_up(pass.out_channels, kBlockHalf);
  return 8 * taps * pass.in_channels * pass.out_channels >= places ? kernels : nullptr;
}

void correlate_blocks(const Correlation& pass, const KernelSet& kernels, ConvOperand in,
                      ConvOperand w, float* out, const Epilogue& epilogue, void* workspace) {
  const Plan plan = plan_blocks(pass);
  BlockCorrelator correlator(pass, plan, kernels, workspace);
  correlator.prepare(w);
  correlator.run(in, out, epilogue);
}

std::size_t correlate_blocks_workspace(const Correlation& pass, int threads) {
  const Plan plan = plan_blocks(pass);
  const std::int64_t floats =
      plan.table_floats() + pass.groups * plan.filter_floats() + threads * plan.worker_floats();
  return static_cast<std::size_t>(floats) * sizeof(float);
}

}  // namespace tenon::cpu
