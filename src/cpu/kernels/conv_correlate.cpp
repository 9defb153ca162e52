// Implicit matrix product of filters and copied planes, in one of two forms.
//
// Channels in lanes: a tile is a window of outputs (broadcast from the planes) by vectors of output
// channels (packed filters); it is transposed on its way to NCHW. Pixels in lanes: a tile is a few
// output channels (broadcast from packed filters) by vectors of neighbouring plane positions, of
// which those past the end of a row are dropped on the way out. The first wastes lanes when there
// are few channels, the second when rows are short; a cost estimate picks. The input gradient of an
// unpadded convolution, most of whose taps near the edges would meet zeros, has spread tiles in the
// first form: a short row of inputs is spread over the outputs it reaches. Bound by arithmetic;
// planes, filters and results of a chunk stay in the second-level cache.
#include "cpu/kernels/conv_correlate.h"

#include <algorithm>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/kernels/conv_blocks.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kManyChunks = 32;
constexpr double kChunkWork = 3e5;  // multiply-adds
constexpr std::int64_t kPlaneFloats = std::int64_t{1}
                                      << 18;  // copied planes of one unit, where rows can be cut

constexpr std::int64_t kStretch = 64;  // elements of a filter transposed at a time

// How a pass is cut. A unit is a band of output rows of one image and group; a chunk is a run of
// units.
struct Plan {
  bool pairs = false;
  bool channel_lanes = false;
  bool spread = false;               // channels in lanes, by spread tiles: planes are whole
  int nv = 1, lanes = 4, width = 1;  // width: of a packed filter panel, in channels
  Planes planes;
  std::int64_t in_words = 0;         // channels or channel pairs
  std::int64_t band = 0, bands = 0;  // rows of the longest phase
  std::int64_t units = 0, units_per_chunk = 1;
  std::int64_t panels = 0;
  std::int64_t steps = 0;  // of all phases together
  std::int64_t table_floats() const { return round_up(steps, 16); }
  std::int64_t filter_floats() const {
    return round_up(steps * panels * width, 16);
  }  // of one group
  std::int64_t plane_floats() const { return round_up(in_words * planes.size() + kMaxNr, 16); }
  std::int64_t worker_floats() const { return plane_floats() + kMaxMr * kMaxNr; }
};

// Cycles of one image, in multiply-adds of one vector plus the way out; see the head of this file
// for the two forms.
double channel_lanes_cost(const Correlation& pass, std::int64_t steps, int lanes) {
  const double pixels = static_cast<double>(pass.out_h * pass.out_w);
  return pixels * static_cast<double>(divide_up(pass.out_channels, lanes)) *
         (static_cast<double>(steps) + 14);
}

double pixel_lanes_cost(const Correlation& pass, std::int64_t steps, const Planes& planes,
                        int lanes) {
  const double scale = static_cast<double>(planes.width) / static_cast<double>(pass.cols.longest());
  const double vectors = static_cast<double>(pass.out_h * pass.out_w) * scale / lanes + 1;
  return vectors * static_cast<double>(pass.out_channels) * (1.1 * static_cast<double>(steps) + 6);
}

// Vectors of output channels of a spread tile, 0 where there is none for the pass: the input
// gradient of a convolution without padding, of rows that fit a tile.
int spread_vectors(const Correlation& pass, const Plan& plan, const KernelSet& kernels) {
  const PassAxis &rows = pass.rows, &cols = pass.cols;
  const bool fits = rows.backward && rows.stride == 1 && cols.stride == 1 && cols.dil == 1 &&
                    cols.pad == 0 && cols.filter == kSpreadTaps && cols.in <= kMaxMr &&
                    cols.out == cols.in + kSpreadTaps - 1 && pass.out_channels > kernels.lanes;
  if (!fits) return 0;
  const auto& tiles = kernels.spread[plan.pairs];
  if (pass.out_channels > 2 * kernels.lanes && tiles[4][cols.in] != nullptr) return 4;
  return tiles[2][cols.in] != nullptr ? 2 : 0;
}

// The input itself, as planes.
Planes whole_planes(const PassAxis& rows, const PassAxis& cols) {
  Planes planes;
  planes.in_h = planes.rows = rows.in;
  planes.in_w = planes.width = cols.in;
  return planes;
}

// Work of all phases: the taps of each, summed.
std::int64_t taps_of(const Correlation& pass) {
  std::int64_t taps = 0;
  for (int a = 0; a < pass.rows.phases(); ++a) {
    for (int b = 0; b < pass.cols.phases(); ++b)
      taps += pass.rows.axis(a).count * pass.cols.axis(b).count;
  }
  return taps;
}

void cut_units(const Correlation& pass, Plan& plan) {
  const std::int64_t rows = pass.rows.longest();
  const double row_work =
      static_cast<double>(pass.out_w * pass.out_channels * plan.steps * (plan.pairs ? 2 : 1));
  std::int64_t bands = std::min(rows, divide_up(kManyChunks, pass.images * pass.groups));
  while (bands > 1 &&
         static_cast<double>(rows) / static_cast<double>(bands) * row_work < kChunkWork)
    --bands;
  const auto too_large = [&](std::int64_t count) {
    const Planes planes = planes_for(pass.rows, pass.cols, divide_up(rows, count));
    return plan.in_words * planes.size() > kPlaneFloats && divide_up(rows, count) > 4;
  };
  while (too_large(bands)) bands = std::min(rows, bands + 1);
  plan.band = divide_up(rows, bands);
  plan.bands = divide_up(rows, plan.band);
  plan.planes = planes_for(pass.rows, pass.cols, plan.band);
  plan.units = pass.images * pass.groups * plan.bands;
  const double unit_work = static_cast<double>(plan.band) * row_work;
  plan.units_per_chunk =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(kChunkWork / unit_work), 1,
                               std::max<std::int64_t>(1, plan.units / kManyChunks));
}

Plan plan_correlation(const Correlation& pass, Math math, const KernelSet& kernels) {
  Plan plan;
  plan.pairs = kernels.pairs && math == Math::Bf16;
  plan.lanes = kernels.lanes;
  plan.in_words = words_of(pass.in_channels, plan.pairs);
  plan.steps = plan.in_words * taps_of(pass);
  cut_units(pass, plan);
  plan.nv = spread_vectors(pass, plan, kernels);
  if (plan.nv > 0) {
    plan.spread = plan.channel_lanes = true;
    plan.planes = whole_planes(pass.rows, pass.cols);
    plan.width = plan.nv * kernels.lanes;
    plan.panels = divide_up(pass.out_channels, plan.width);
    return plan;
  }
  const std::int64_t phases = pass.rows.phases() * pass.cols.phases(),
                     steps = divide_up(plan.steps, phases);
  plan.channel_lanes = channel_lanes_cost(pass, steps, kernels.lanes) <
                       pixel_lanes_cost(pass, steps, plan.planes, kernels.lanes);
  if (plan.channel_lanes) {
    plan.nv = pass.out_channels > kernels.lanes ? 2 : 1;
    plan.width = plan.nv * kernels.lanes;
  } else {
    plan.nv = pass.out_channels <= kernels.max_mr[4] ? 4 : 2;
    plan.width = static_cast<int>(
        divide_up(pass.out_channels, divide_up(pass.out_channels, kernels.max_mr[plan.nv])));
  }
  plan.panels = divide_up(pass.out_channels, plan.width);
  return plan;
}

// One phase of a pass: its axes, its part of the table and of the packed filters.
struct Phase {
  Axis rows, cols;
  std::int64_t steps = 0;
  std::int32_t* table = nullptr;
  float* filters = nullptr;  // [panel][step][width]
};

class Correlator {
 public:
  Correlator(const Correlation& pass, const Plan& plan, const KernelSet& kernels, Math math,
             void* workspace)
      : pass_(pass), plan_(plan), kernels_(kernels), math_(math) {
    table_ = static_cast<std::int32_t*>(workspace);
    filters_ = static_cast<float*>(workspace) + plan.table_floats();
    scratch_ = filters_ + pass.groups * plan.filter_floats();
  }

  void prepare(ConvOperand w) {
    each_phase(0, [&](const Phase& phase) { fill_table(phase); });
    const std::int64_t lines = pass_.groups * plan_.panels;
    const auto pack = [&](std::int64_t line, int) {
      const std::int64_t group = line / plan_.panels, panel = line % plan_.panels;
      each_phase(group, [&](const Phase& phase) { pack_filters(phase, w, group, panel); });
    };
    if (plan_.steps * plan_.panels * plan_.width * pass_.groups < (16 << 10)) {
      for (std::int64_t line = 0; line < lines; ++line) pack(line, 0);
    } else {
      parallel_for(lines, pack);
    }
  }

  void run(ConvOperand in, float* out, const Epilogue& epilogue) {
    parallel_for(
        divide_up(plan_.units, plan_.units_per_chunk), [&](std::int64_t chunk, int worker) {
          const std::int64_t end = std::min(plan_.units, (chunk + 1) * plan_.units_per_chunk);
          for (std::int64_t unit = chunk * plan_.units_per_chunk; unit < end; ++unit) {
            run_unit(in, out, epilogue, unit, worker);
          }
        });
  }

 private:
  // The order of phases here is the layout of the table and of a group's packed filters.
  template <class F>
  void each_phase(std::int64_t group, F f) {
    std::int32_t* table = table_;
    float* filters = filters_ + group * plan_.filter_floats();
    for (int a = 0; a < pass_.rows.phases(); ++a) {
      for (int b = 0; b < pass_.cols.phases(); ++b) {
        Phase phase{pass_.rows.axis(a), pass_.cols.axis(b), 0, table, filters};
        phase.steps = plan_.in_words * phase.rows.count * phase.cols.count;
        f(phase);
        table += phase.steps;
        filters += phase.steps * plan_.panels * plan_.width;
      }
    }
  }

  // Steps go over (row tap, channel word, column tap): the rows of a filter that only meet padding
  // can then be left out.
  void fill_table(const Phase& phase) {
    std::int32_t* entry = phase.table;
    for (std::int64_t r = 0; r < phase.rows.count; ++r) {
      for (std::int64_t c = 0; c < plan_.in_words; ++c) {
        for (std::int64_t s = 0; s < phase.cols.count; ++s) {
          const std::int64_t at =
              plan_.planes.offset(phase.rows.offset + r * phase.rows.offset_step,
                                  phase.cols.offset + s * phase.cols.offset_step);
          *entry++ = static_cast<std::int32_t>(c * plan_.planes.size() + at);
        }
      }
    }
  }

  // Filters are transposed a stretch at a time, over the elements that are contiguous in each
  // output channel's filter (one or several input channels), and the rows of the result go to their
  // steps. With pairs, the two channels of a word are transposed separately and zipped.
  void pack_filters(const Phase& phase, ConvOperand w, std::int64_t group, std::int64_t panel) {
    const std::int64_t taps = pass_.rows.filter * pass_.cols.filter, first = panel * plan_.width;
    const int lines =
        static_cast<int>(std::min<std::int64_t>(plan_.width, pass_.out_channels - first));
    const std::int64_t base = group * pass_.filter_group_stride + first * pass_.filter_out_stride;
    const bool runs_on = !plan_.pairs && pass_.filter_in_stride == taps;
    const std::int64_t block = runs_on ? std::max<std::int64_t>(1, kStretch / taps) : 1;
    float* dst = phase.filters + panel * phase.steps * plan_.width;
    for (std::int64_t c = 0; c < plan_.in_words; c += block) {
      const std::int64_t elements = std::min(block, plan_.in_words - c) * taps;
      for (std::int64_t e = 0; e < elements; e += kStretch) {
        const std::int64_t count = std::min(kStretch, elements - e);
        float lo[kStretch * kMaxNr], hi[kStretch * kMaxNr];
        const std::int64_t channel = plan_.pairs ? 2 * c : c;
        transpose_filters(w, base + channel * pass_.filter_in_stride + e, lines, count, lo);
        const bool both = plan_.pairs && channel + 1 < pass_.in_channels;
        if (both)
          transpose_filters(w, base + (channel + 1) * pass_.filter_in_stride + e, lines, count, hi);
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t step = step_of(phase, c + (e + i) / taps, (e + i) % taps);
          if (step < 0) continue;
          const float* high = both ? hi + i * plan_.width : nullptr;
          kernels_.convert(lo + i * plan_.width, high, DType::Float32, plan_.width, math_,
                           dst + step * plan_.width);
        }
      }
    }
  }

  // dst[element * width + line], float32; `at` is the first element of the first line.
  void transpose_filters(ConvOperand w, std::int64_t at, int lines, std::int64_t count,
                         float* dst) {
    const void* rows[kMaxNr];
    for (int line = 0; line < lines; ++line)
      rows[line] = element(w.data, w.dtype, at + line * pass_.filter_out_stride);
    kernels_.pack_transposed({rows, lines, w.dtype}, count, Math::F32, dst, plan_.width);
  }

  // The step that multiplies with a tap of a filter, -1 if this phase does not.
  std::int64_t step_of(const Phase& phase, std::int64_t word, std::int64_t tap) const {
    const std::int64_t r = tap / pass_.cols.filter - phase.rows.first,
                       s = tap % pass_.cols.filter - phase.cols.first;
    if (r < 0 || s < 0 || r % phase.rows.step != 0 || s % phase.cols.step != 0) return -1;
    if (r / phase.rows.step >= phase.rows.count || s / phase.cols.step >= phase.cols.count)
      return -1;
    return (r / phase.rows.step * plan_.in_words + word) * phase.cols.count + s / phase.cols.step;
  }

  void run_unit(ConvOperand in, float* out, const Epilogue& epilogue, std::int64_t unit,
                int worker) {
    const std::int64_t band = unit % plan_.bands, group = unit / plan_.bands % pass_.groups;
    const std::int64_t image = unit / plan_.bands / pass_.groups;
    const std::int64_t row0 = band * plan_.band,
                       row1 = std::min(pass_.rows.longest(), row0 + plan_.band);
    float* const memory = scratch_ + worker * plan_.worker_floats();
    const float* const planes = planes_of(in, image * pass_.groups + group, row0, memory);
    float* const tile = memory + plan_.plane_floats();
    const std::int64_t pixels = pass_.out_h * pass_.out_w;
    float* result = out + (image * pass_.groups + group) * pass_.out_channels * pixels;
    each_phase(group, [&](const Phase& phase) {
      const std::int64_t rows = std::min(row1, phase.rows.out_count) - row0;
      if (rows <= 0 || phase.cols.out_count <= 0) return;
      if (plan_.spread) {
        spread_tiles(phase, planes, tile, row0, rows, result);
      } else if (plan_.channel_lanes) {
        channel_tiles(phase, planes, tile, row0, rows, result);
      } else {
        pixel_tiles(phase, planes, tile, row0, rows, result);
      }
    });
    if (epilogue.fn == nullptr) return;
    const std::int64_t step = pass_.rows.axis(0).out_step;
    const std::int64_t first = row0 * step * pass_.out_w;
    const std::int64_t last = std::min(pass_.out_h, row1 * step) * pass_.out_w;
    epilogue.fn(epilogue.ctx, worker, image, group * pass_.out_channels,
                (group + 1) * pass_.out_channels, first, last, result + first, pixels);
  }

  // Planes that would be copied word for word are read where they are; not by vectors of pixels,
  // which may reach beyond the last one.
  const float* planes_of(ConvOperand in, std::int64_t image, std::int64_t row0, float* copied) {
    const std::int64_t size = plan_.planes.in_h * plan_.planes.in_w;
    if (plan_.channel_lanes && plan_.planes.whole() && (row0 == 0 || plan_.spread) &&
        math_ == Math::F32 && in.dtype == DType::Float32)
      return static_cast<const float*>(in.data) + image * pass_.in_channels * size;
    const int channels = plan_.pairs ? 2 : 1;
    for (std::int64_t c = 0; c < plan_.in_words; ++c) {
      const std::int64_t channel = c * channels;
      PlaneSource source;
      source.dtype = in.dtype;
      source.lo = element(in.data, in.dtype, (image * pass_.in_channels + channel) * size);
      if (channels == 2 && channel + 1 < pass_.in_channels)
        source.hi = element(source.lo, in.dtype, size);
      copy_plane(kernels_, plan_.planes, source, plan_.spread ? 0 : row0, math_,
                 copied + c * plan_.planes.size());
    }
    return copied;
  }

  // The steps of those filter rows that meet input for some of the output rows [out0, out1);
  // returns how many steps of the phase come before them.
  std::int64_t set_steps(const Phase& phase, std::int64_t out0, std::int64_t out1, TileArgs& args) {
    const Axis::Taps taps = phase.rows.taps_inside(out0, out1);
    const std::int64_t per_tap = plan_.in_words * phase.cols.count;
    args.steps = (taps.last - taps.first) * per_tap;
    args.table = phase.table + taps.first * per_tap;
    return taps.first * per_tap;
  }

  void channel_tiles(const Phase& phase, const float* planes, float* tile, std::int64_t row0,
                     std::int64_t rows, float* out) {
    const std::int64_t cols = phase.cols.out_count, pixels = pass_.out_h * pass_.out_w;
    const Window window = choose_window(kernels_, plan_.nv, rows, cols);
    TileArgs args;
    args.b_step = plan_.width;
    args.a_row = plan_.planes.width;
    args.c = tile;
    args.ldc = plan_.width;
    for (std::int64_t panel = 0; panel < plan_.panels; ++panel) {
      const std::int64_t channel = panel * plan_.width;
      const int channels =
          static_cast<int>(std::min<std::int64_t>(plan_.width, pass_.out_channels - channel));
      const int nv = channels > plan_.lanes ? 2 : 1;
      const float* filters = phase.filters + panel * phase.steps * plan_.width;
      args.cols = nv * plan_.lanes;
      const auto& tiles = kernels_.window[plan_.pairs][nv];
      for (std::int64_t i = 0; i < rows;) {
        const int rp = rows - i >= window.rp ? window.rp : 1;
        args.b = filters + set_steps(phase, row0 + i, row0 + i + rp, args) * plan_.width;
        for (std::int64_t j = 0; j < cols; j += window.rq) {
          const int rq = static_cast<int>(std::min<std::int64_t>(window.rq, cols - j));
          args.a = planes + i * plan_.planes.width + j;
          tiles[rp][rq](args);
          for (int row = 0; row < rp; ++row) {
            store_channels(phase, tile + row * rq * plan_.width, rq, channels,
                           out + channel * pixels, row0 + i + row, j);
          }
        }
        i += rp;
      }
    }
  }

  // Channels in lanes, a row of outputs at a time, with those filter rows that meet input.
  void spread_tiles(const Phase& phase, const float* planes, float* tile, std::int64_t row0,
                    std::int64_t rows, float* out) {
    const std::int64_t pixels = pass_.out_h * pass_.out_w;
    const TileFn multiply = kernels_.spread[plan_.pairs][plan_.nv][pass_.cols.in];
    TileArgs args;
    args.b_step = args.ldc = plan_.width;
    args.c = tile;
    for (std::int64_t panel = 0; panel < plan_.panels; ++panel) {
      const std::int64_t channel = panel * plan_.width;
      const int channels =
          static_cast<int>(std::min<std::int64_t>(plan_.width, pass_.out_channels - channel));
      const float* filters = phase.filters + panel * phase.steps * plan_.width;
      for (std::int64_t row = row0; row < row0 + rows; ++row) {
        args.b = filters + set_steps(phase, row, row + 1, args) * plan_.width;
        args.a = planes + row * plan_.planes.width;
        args.steps /= kSpreadTaps;
        multiply(args);
        store_channels(phase, tile, static_cast<int>(pass_.out_w), channels, out + channel * pixels,
                       row, 0);
      }
    }
  }

  // One row of a window: rq outputs by some channels.
  void store_channels(const Phase& phase, const float* tile, int rq, int channels, float* out,
                      std::int64_t row, std::int64_t col) {
    const std::int64_t pixels = pass_.out_h * pass_.out_w;
    const std::int64_t y = phase.rows.out_first + row * phase.rows.out_step;
    const std::int64_t x = phase.cols.out_first + col * phase.cols.out_step;
    float* dst = out + y * pass_.out_w + x;
    if (phase.cols.out_step == 1) {
      kernels_.store_transposed(tile, plan_.width, rq, channels, dst, pixels);
      return;
    }
    for (int k = 0; k < channels; ++k) {
      for (int j = 0; j < rq; ++j)
        dst[k * pixels + j * phase.cols.out_step] = tile[j * plan_.width + k];
    }
  }

  // Where rows nearly fill vectors, the vectors of a tile are pieces of neighbouring rows, which
  // the tile writes where they belong; else they run on over the ends of rows and are sorted out
  // afterwards, which costs as much as some steps.
  void pixel_tiles(const Phase& phase, const float* planes, float* tile, std::int64_t row0,
                   std::int64_t rows, float* out) {
    const std::int64_t cols = phase.cols.out_count, pitch = plan_.planes.width;
    const std::int64_t pieces = divide_up(cols, plan_.lanes);
    TileArgs args;
    args.c = tile;
    args.a_step = plan_.width;
    constexpr std::int64_t kWrite = 2, kSort = 8;
    if ((phase.steps + kWrite) * pieces * plan_.lanes > (phase.steps + kSort) * pitch)
      return flat_tiles(phase, args, planes, row0, rows, out);
    const std::int64_t piece = divide_up(cols, pieces);
    // Fewer rows in a tile leave out more filter rows that only meet padding.
    const int most = pass_.rows.backward ? 2 : plan_.nv;
    args.b_vector = pitch;
    for (std::int64_t i = 0; i < rows;) {
      int nv = most;
      while (nv > rows - i) nv /= 2;
      for (std::int64_t j = 0; j < cols; j += piece) {
        const int count = static_cast<int>(std::min(piece, cols - j));
        args.b = planes + i * pitch + j;
        if (phase.cols.out_step == 1) {
          direct_tile(phase, args, nv, row0 + i, j, count, out);
          continue;
        }
        Segment segments[kMaxNr];
        int used = 0;
        for (int v = 0; v < nv; ++v) {
          used += segments_of(phase, v * plan_.lanes, row0 + i + v, j, count, segments + used);
        }
        sorted_tile(phase, args, nv, row0 + i, row0 + i + nv, segments, used, out);
      }
      i += nv;
    }
  }

  void flat_tiles(const Phase& phase, TileArgs args, const float* planes, std::int64_t row0,
                  std::int64_t rows, float* out) {
    const std::int64_t cols = phase.cols.out_count, pitch = plan_.planes.width;
    const std::int64_t positions = (rows - 1) * pitch + cols, nr = plan_.nv * plan_.lanes;
    args.b_vector = plan_.lanes;
    for (std::int64_t start = 0; start < positions; start += nr) {
      const std::int64_t end = std::min(positions, start + nr);
      const int vectors = static_cast<int>(divide_up(end - start, plan_.lanes));
      Segment segments[kMaxNr];
      int used = 0;
      for (std::int64_t row = start / pitch; row * pitch < end; ++row) {
        const std::int64_t first = std::max(start, row * pitch),
                           last = std::min(end, row * pitch + cols);
        if (first >= last) continue;
        used += segments_of(phase, static_cast<int>(first - start), row0 + row, first - row * pitch,
                            static_cast<int>(last - first), segments + used);
      }
      args.b = planes + start;
      sorted_tile(phase, args, vectors > 2 ? 4 : vectors, row0 + start / pitch,
                  row0 + (end - 1) / pitch + 1, segments, used, out);
    }
  }

  // Calls f(tile, its first output channel, how many) for all output channels of one tile of plane
  // positions, which belongs to the output rows [out0, out1); f says where the tile is written.
  template <class F>
  void each_panel(const Phase& phase, TileArgs args, int nv, std::int64_t out0, std::int64_t out1,
                  F f) {
    const std::int64_t skipped = set_steps(phase, out0, out1, args);
    for (std::int64_t panel = 0; panel < plan_.panels; ++panel) {
      const std::int64_t channel = panel * plan_.width;
      const int channels =
          static_cast<int>(std::min<std::int64_t>(plan_.width, pass_.out_channels - channel));
      args.a = phase.filters + (panel * phase.steps + skipped) * plan_.width;
      f(kernels_.table_b[plan_.pairs][nv][channels], args, channel, channels);
    }
  }

  // Pieces of neighbouring rows, from (row, col) on, go straight to the result.
  void direct_tile(const Phase& phase, TileArgs args, int nv, std::int64_t row, std::int64_t col,
                   int count, float* out) {
    const std::int64_t pixels = pass_.out_h * pass_.out_w;
    float* const first = out + (phase.rows.out_first + row * phase.rows.out_step) * pass_.out_w +
                         phase.cols.out_first + col;
    args.cols = count;
    args.ldc = pixels;
    args.c_vector = phase.rows.out_step * pass_.out_w;
    each_panel(phase, args, nv, row, row + nv,
               [&](TileFn multiply, TileArgs& panel, std::int64_t channel, int) {
                 panel.c = first + channel * pixels;
                 multiply(panel);
               });
  }

  // Positions that are no neighbours in the result go there segment by segment.
  void sorted_tile(const Phase& phase, TileArgs args, int nv, std::int64_t out0, std::int64_t out1,
                   const Segment* segments, int count, float* out) {
    const std::int64_t pixels = pass_.out_h * pass_.out_w;
    args.cols = args.c_vector = plan_.lanes;
    args.ldc = nv * plan_.lanes;
    each_panel(phase, args, nv, out0, out1,
               [&](TileFn multiply, TileArgs& panel, std::int64_t channel, int channels) {
                 multiply(panel);
                 kernels_.store_segments(panel.c, panel.ldc, channels, segments, count,
                                         out + channel * pixels, pixels);
               });
  }

  // Outputs [col, col + count) of a row, which stand in the tile from column `from` on: one
  // segment, or one each where the outputs of a phase are not neighbours.
  int segments_of(const Phase& phase, int from, std::int64_t row, std::int64_t col, int count,
                  Segment* segments) {
    const std::int64_t y = phase.rows.out_first + row * phase.rows.out_step;
    const std::int64_t x = phase.cols.out_first + col * phase.cols.out_step;
    const bool neighbours = phase.cols.out_step == 1;
    const int used = neighbours ? 1 : count, run = neighbours ? count : 1;
    for (int i = 0; i < used; ++i)
      segments[i] = {from + i, run, y * pass_.out_w + x + i * phase.cols.out_step};
    return used;
  }

  const Correlation& pass_;
  const Plan& plan_;
  const KernelSet& kernels_;
  Math math_;
  std::int32_t* table_;
  float* filters_;
  float* scratch_;
};

}  // namespace

Correlation correlation_of(const ConvShape& s, bool input_grad) {
  Correlation pass;
  const std::int64_t c = s.c / s.groups, k = s.k / s.groups, taps = s.r * s.s;
  pass.images = s.n;
  pass.groups = s.groups;
  pass.in_channels = input_grad ? k : c;
  pass.out_channels = input_grad ? c : k;
  pass.out_h = input_grad ? s.h : s.p;
  pass.out_w = input_grad ? s.w : s.q;
  pass.rows = {input_grad, input_grad ? s.p : s.h, pass.out_h, s.r, s.stride_h, s.pad_h, s.dil_h};
  pass.cols = {input_grad, input_grad ? s.q : s.w, pass.out_w, s.s, s.stride_w, s.pad_w, s.dil_w};
  pass.filter_in_stride = input_grad ? c * taps : taps;
  pass.filter_out_stride = input_grad ? taps : c * taps;
  pass.filter_group_stride = k * c * taps;
  return pass;
}

void correlate(const Correlation& pass, ConvOperand in, ConvOperand w, float* out, Math math,
               const Epilogue& epilogue, void* workspace) {
  if (const KernelSet* blocks = block_correlation(pass, math))
    return correlate_blocks(pass, *blocks, in, w, out, epilogue, workspace);
  const KernelSet& kernels = kernel_set();
  const Plan plan = plan_correlation(pass, math, kernels);
  Correlator correlator(pass, plan, kernels, math, workspace);
  correlator.prepare(w);
  correlator.run(in, out, epilogue);
}

std::size_t correlate_workspace(const Correlation& pass, Math math, int threads) {
  if (block_correlation(pass, math) != nullptr) return correlate_blocks_workspace(pass, threads);
  const Plan plan = plan_correlation(pass, math, kernel_set());
  const std::int64_t floats =
      plan.table_floats() + pass.groups * plan.filter_floats() + threads * plan.worker_floats();
  return static_cast<std::size_t>(floats) * sizeof(float);
}

}  // namespace tenon::cpu
