// Correlation on vectors: an implicit matrix product of filters and copied planes, in one of two
// forms.
//
// Channels in lanes: a tile is a window of outputs (broadcast from the planes) by vectors of output
// channels (packed filters). The tile is transposed on its way to NCHW. Few channels waste lanes.
//
// Pixels in lanes: a tile is a few output channels (broadcast from packed filters) by vectors of
// neighbouring plane positions. Positions past the end of a row are dropped on the way out. Short
// rows waste lanes.
//
// A cost estimate chooses the form. For the input gradient of an unpadded convolution most taps
// near the edges would be multiplied by zeros. It uses spread tiles in the first form: a short row
// of inputs is spread over the outputs that it reaches. Compute-bound; planes, filters and results
// of a chunk stay in the L2 cache.
#include <algorithm>

#include "base/index.h"
#include "cpu/kernels/conv/conv_bodies.h"
#include "cpu/kernels/conv/conv_schedule.h"
#include "device/cpu_model.h"

namespace tenon::cpu {
namespace {

// A chunk may have fewer multiply-adds than a chunk of a matrix product, because it also copies
// planes.
constexpr double kChunkWork = 0.6 * kCpu.chunk_multiply_adds;
constexpr UnitLimits kVectorLimits{kChunkWork, kChunkWork, kCpu.second_floats()};
constexpr std::int64_t kVectorStretch = 64;  // elements of a filter transposed at a time
constexpr std::int64_t kRunPixels = 32;      // pixels transposed at a time
// Most steps that are summed one after another. Networks have fewer steps, so the limit does not
// change the order of their sums, which would change the bits.
constexpr std::int64_t kMostSteps = 16384;

// Scratch of tiles: one tile of any kind, or a run of channel-lane tiles.
constexpr std::int64_t kTileScratch = std::max<std::int64_t>(kMaxMr * kMaxNr, kRunPixels* kMaxNr);

// Cost of one image, in vector multiply-adds: the arithmetic, and the work of storing the tiles.
// The head of this file describes the two forms.
double channel_lanes_cost(const Correlation& pass, std::int64_t steps, int lanes) {
  const double pixels = static_cast<double>(pass.out_h * pass.out_w);
  return pixels * static_cast<double>(divide_up(pass.out_channels, lanes)) *
         (static_cast<double>(steps) + 14);
}

// Rows of whole vectors whose outputs are neighbours need neither dropping nor sorting.
bool in_whole_vectors(const Correlation& pass, int lanes) {
  return pass.out_w % lanes == 0 && (!pass.cols.backward || pass.cols.stride == 1);
}

double pixel_lanes_cost(const Correlation& pass, std::int64_t steps, const Planes& planes,
                        int lanes) {
  const double pixels = static_cast<double>(pass.out_h * pass.out_w);
  const double channels = static_cast<double>(pass.out_channels);
  if (in_whole_vectors(pass, lanes)) return pixels / lanes * channels * static_cast<double>(steps);
  const double scale = static_cast<double>(planes.width) / static_cast<double>(pass.cols.longest());
  return (pixels * scale / lanes + 1) * channels * (1.1 * static_cast<double>(steps) + 6);
}

// Vectors of output channels of a spread tile; 0 if the pass has no spread tile. Spread tiles are
// for the input gradient of a convolution without padding whose rows fit a tile.
int spread_vectors(const Correlation& pass, bool pairs, const KernelSet& kernels) {
  const PassAxis &rows = pass.rows, &cols = pass.cols;
  const bool fits = rows.backward && rows.stride == 1 && cols.stride == 1 && cols.dil == 1 &&
                    cols.pad == 0 && cols.filter == kSpreadTaps && cols.in <= kMaxMr &&
                    cols.out == cols.in + kSpreadTaps - 1 && pass.out_channels > kernels.lanes;
  if (!fits) return 0;
  const auto& tiles = kernels.spread[pairs];
  if (pass.out_channels > 2 * kernels.lanes && tiles[4][cols.in] != nullptr) return 4;
  return tiles[2][cols.in] != nullptr ? 2 : 0;
}

// A single tap, at the pixel itself.
bool is_pointwise(const Correlation& pass) {
  const auto one = [](const PassAxis& axis) {
    return axis.filter == 1 && axis.stride == 1 && axis.pad == 0;
  };
  return one(pass.rows) && one(pass.cols);
}

// The input itself as planes.
Planes whole_planes(const PassAxis& rows, const PassAxis& cols) {
  Planes planes;
  planes.in_h = planes.rows = rows.in;
  planes.in_w = planes.width = cols.in;
  return planes;
}

class VectorBody final : public TileBody {
 public:
  /// `words`: the input has the tiles' word format already.
  VectorBody(const Correlation& pass, const KernelSet& kernels, Math math, bool words)
      : TileBody(pass, kernels),
        math_(math),
        pairs_(kernels.pairs && math == Math::Bf16),
        words_(words && math == Math::F32) {
    cut_.words = words_of(pass.in_channels, pairs_);
    each_phase(pass, [&](const Axis& rows, const Axis& cols) { cut_.steps += steps(rows, cols); });
    const double row_work =
        static_cast<double>(pass.out_w * pass.out_channels * cut_.steps * (pairs_ ? 2 : 1));
    cut_units(pass, row_work, kVectorLimits, cut_);
    choose_tiles();
    cut_.step_floats = width_;
    cut_.panels = divide_up(pass.out_channels, width_);
  }

  std::int64_t steps(const Axis& rows, const Axis& cols) const override {
    return cut_.words * rows.count * cols.count;
  }

  std::int64_t worker_floats() const override { return plane_floats() + kTileScratch; }

  // Steps run over (row tap, channel word, column tap), so that filter rows that only meet padding
  // can be left out.
  void fill_table(const Phase& phase) const override {
    std::int32_t* entry = phase.table;
    for (std::int64_t r = 0; r < phase.rows.count; ++r) {
      for (std::int64_t c = 0; c < cut_.words; ++c) {
        for (std::int64_t s = 0; s < phase.cols.count; ++s) {
          const std::int64_t at =
              cut_.planes.offset(phase.rows.offset + r * phase.rows.offset_step,
                                 phase.cols.offset + s * phase.cols.offset_step);
          *entry++ = static_cast<std::int32_t>(c * cut_.planes.size() + at);
        }
      }
    }
  }

  // Filters are transposed a stretch at a time, over the elements that are contiguous in each
  // output channel's filter (one or several input channels). The rows of the result are then copied
  // to their steps; with pairs two rows are zipped into one. A 1 x 1 filter is a matrix.
  void pack_filters(const Phase& phase, ConvOperand w, std::int64_t group,
                    std::int64_t panel) const override {
    if (phase.steps == 0) return;
    const std::int64_t taps = pass_.rows.filter * pass_.cols.filter, first = panel * width_;
    const int lines = static_cast<int>(std::min<std::int64_t>(width_, pass_.out_channels - first));
    const std::int64_t base = group * pass_.filter_group_stride + first * pass_.filter_out_stride;
    float* dst = phase.filters + panel * phase.steps * width_;
    if (taps == 1) {
      const PanelSource matrix{element(w.data, w.dtype, base), w.dtype, pass_.filter_out_stride,
                               pass_.filter_in_stride};
      return pack_panel(kernels_, matrix, lines, pass_.in_channels, math_, dst, width_);
    }
    const std::int64_t channels = pairs_ ? 2 : 1;  // of a word
    const bool runs_on = pass_.filter_in_stride == taps;
    const std::int64_t block =
        runs_on ? std::max<std::int64_t>(1, kVectorStretch / (channels * taps)) : 1;
    for (std::int64_t c = 0; c < cut_.words; c += block) {
      const std::int64_t words = std::min(block, cut_.words - c);
      const std::int64_t at = base + channels * c * pass_.filter_in_stride;
      if (pairs_ && runs_on && channels * taps <= kVectorStretch) {
        pack_run(phase, w, at, lines, c, words, dst);
      } else {
        pack_words(phase, w, at, lines, c, words, dst);
      }
    }
  }

  const float* copy_planes(ConvOperand in, std::int64_t image, std::int64_t row0,
                           float* copied) const override {
    const std::int64_t size = cut_.planes.in_h * cut_.planes.in_w;
    const bool whole = channel_lanes_ && cut_.planes.whole() && (row0 == 0 || spread_);
    if (in_place_ || (words_ && whole))
      return static_cast<const float*>(in.data) + image * pass_.in_channels * size +
             (in_place_ ? row0 * cut_.planes.width : 0);
    const int channels = pairs_ ? 2 : 1;
    for (std::int64_t c = 0; c < cut_.words; ++c) {
      const std::int64_t channel = c * channels;
      PlaneSource source;
      source.dtype = in.dtype;
      source.lo = element(in.data, in.dtype, (image * pass_.in_channels + channel) * size);
      if (channels == 2 && channel + 1 < pass_.in_channels)
        source.hi = element(source.lo, in.dtype, size);
      copy_plane(kernels_, cut_.planes, source, spread_ ? 0 : row0, math_,
                 copied + c * cut_.planes.size());
    }
    return copied;
  }

  void compute(const Phase& phase, const float* planes, float* scratch, std::int64_t row0,
               std::int64_t rows, float* out) const override {
    float* const tile = scratch + plane_floats();
    if (spread_) {
      spread_tiles(phase, planes, tile, row0, rows, out);
    } else if (channel_lanes_) {
      channel_tiles(phase, planes, tile, row0, rows, out);
    } else {
      pixel_tiles(phase, planes, tile, row0, rows, out);
    }
  }

 private:
  void choose_tiles() {
    nv_ = spread_vectors(pass_, pairs_, kernels_);
    if (nv_ > 0) {
      spread_ = channel_lanes_ = true;
      cut_.planes = whole_planes(pass_.rows, pass_.cols);
      width_ = nv_ * kernels_.lanes;
      return;
    }
    const std::int64_t phases = pass_.rows.phases() * pass_.cols.phases(),
                       steps = divide_up(cut_.steps, phases);
    channel_lanes_ = channel_lanes_cost(pass_, steps, kernels_.lanes) <
                     pixel_lanes_cost(pass_, steps, cut_.planes, kernels_.lanes);
    // Planes that would be copied word for word are read in place; for 1 x 1 filters also a band of
    // rows. Pixel vectors that reach beyond the last pixel need the copy.
    in_place_ = words_ && is_pointwise(pass_) &&
                (channel_lanes_ || in_whole_vectors(pass_, kernels_.lanes));
    if (in_place_) cut_.planes = whole_planes(pass_.rows, pass_.cols);
    if (channel_lanes_) {
      nv_ = pass_.out_channels > kernels_.lanes ? 2 : 1;
      width_ = nv_ * kernels_.lanes;
    } else {
      nv_ = pass_.out_channels <= kernels_.max_mr[4] ? 4 : 2;
      width_ = static_cast<int>(
          divide_up(pass_.out_channels, divide_up(pass_.out_channels, kernels_.max_mr[nv_])));
    }
  }

  std::int64_t plane_floats() const {
    if (in_place_) return 0;
    return round_up(cut_.words * cut_.planes.size() + kMaxNr, 16);
  }

  // The filters of words [c, c + words), from element `at` of each output channel on. With pairs
  // the two channels of one word are transposed separately.
  void pack_words(const Phase& phase, ConvOperand w, std::int64_t at, int lines, std::int64_t c,
                  std::int64_t words, float* dst) const {
    const std::int64_t taps = pass_.rows.filter * pass_.cols.filter;
    const bool both = pairs_ && 2 * c + 1 < pass_.in_channels;
    float lo[kVectorStretch * kMaxNr], hi[kVectorStretch * kMaxNr];
    for (std::int64_t e = 0; e < words * taps; e += kVectorStretch) {
      const std::int64_t count = std::min(kVectorStretch, words * taps - e);
      transpose_filters(w, at + e, lines, count, width_, lo);
      if (both) transpose_filters(w, at + pass_.filter_in_stride + e, lines, count, width_, hi);
      for (std::int64_t i = 0; i < count; ++i)
        put_step(step_of(phase, c + (e + i) / taps, (e + i) % taps), lo + i * width_,
                 both ? hi + i * width_ : nullptr, dst);
    }
  }

  // The same for several pairs at once, if all their channels are contiguous and fit a stretch.
  void pack_run(const Phase& phase, ConvOperand w, std::int64_t at, int lines, std::int64_t c,
                std::int64_t words, float* dst) const {
    const std::int64_t taps = pass_.rows.filter * pass_.cols.filter;
    const std::int64_t channels = std::min(2 * words, pass_.in_channels - 2 * c);
    float rows[kVectorStretch * kMaxNr];
    transpose_filters(w, at, lines, channels * taps, width_, rows);
    for (std::int64_t i = 0; i < channels; i += 2) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const float* lo = rows + (i * taps + tap) * width_;
        put_step(step_of(phase, c + i / 2, tap), lo,
                 i + 1 < channels ? lo + taps * width_ : nullptr, dst);
      }
    }
  }

  void put_step(std::int64_t step, const float* lo, const float* hi, float* dst) const {
    if (step >= 0) kernels_.convert(lo, hi, DType::Float32, width_, math_, dst + step * width_);
  }

  // The step that multiplies a tap of a filter; -1 if this phase does not use the tap.
  std::int64_t step_of(const Phase& phase, std::int64_t word, std::int64_t tap) const {
    const Phase::Tap at = phase.tap(tap, pass_.cols.filter);
    return at.row < 0 ? -1 : (at.row * cut_.words + word) * phase.cols.count + at.col;
  }

  // The steps of the filter rows that meet input for at least one of the output rows [out0, out1).
  // Returns the number of steps of the phase before them.
  std::int64_t set_steps(const Phase& phase, std::int64_t out0, std::int64_t out1,
                         TileArgs& args) const {
    const Axis::Taps taps = phase.rows.taps_inside(out0, out1);
    const std::int64_t per_tap = cut_.words * phase.cols.count;
    args.steps = (taps.last - taps.first) * per_tap;
    args.table = phase.table + taps.first * per_tap;
    return taps.first * per_tap;
  }

  // Computes a tile whose result is `floats` contiguous floats at args.c. A long reduction is
  // summed in stretches, so that 10^5 steps have the error of 10^4.
  void multiply(TileFn tile, const TileArgs& args, std::int64_t floats) const {
    const std::int64_t taps = spread_ ? kSpreadTaps : 1, most = kMostSteps / taps;
    if (args.steps <= most) return tile(args);
    float sums[kMaxMr * kMaxNr];
    TileArgs part = args;
    for (std::int64_t done = 0; done < args.steps; done += most) {
      part.steps = std::min(most, args.steps - done);
      part.c = done == 0 ? args.c : sums;
      tile(part);
      if (done > 0) kernels_.add(args.c, sums, floats);
      part.a += most * part.a_step;
      part.b += most * taps * part.b_step;
      part.table += most * taps;
    }
  }

  void channel_tiles(const Phase& phase, const float* planes, float* tile, std::int64_t row0,
                     std::int64_t rows, float* out) const {
    const std::int64_t cols = phase.cols.out_count, pixels = phase.pitch;
    const Window window = choose_window(kernels_, nv_, rows, cols);
    TileArgs args;
    args.b_step = width_;
    args.a_row = cut_.planes.width;
    args.ldc = width_;
    for (std::int64_t panel = 0; panel < cut_.panels; ++panel) {
      const std::int64_t channel = panel * width_;
      const int channels =
          static_cast<int>(std::min<std::int64_t>(width_, pass_.out_channels - channel));
      const int nv = channels > kernels_.lanes ? 2 : 1;
      const float* filters = phase.filters + panel * phase.steps * width_;
      args.cols = nv * kernels_.lanes;
      const auto& tiles = kernels_.window[pairs_][nv];
      PixelRun run{tile, out + channel * pixels};
      for (std::int64_t i = 0; i < rows;) {
        const int rp = rows - i >= window.rp ? window.rp : 1;
        args.b = filters + set_steps(phase, row0 + i, row0 + i + rp, args) * width_;
        for (std::int64_t j = 0; j < cols; j += window.rq) {
          const int rq = static_cast<int>(std::min<std::int64_t>(window.rq, cols - j));
          args.a = planes + i * cut_.planes.width + j;
          args.c = room_for(phase, run, row0 + i, j, rp * rq, channels);
          multiply(tiles[rp][rq], args, rp * rq * width_);
          keep_window(phase, run, row0 + i, j, rp, rq, channels);
        }
        i += rp;
      }
      flush(phase, run, channels);
    }
  }

  // Outputs of channel-lane tiles that are neighbours in the result are collected until a whole run
  // can be transposed.
  struct PixelRun {
    float* tile;
    float* out;  // of the first channel
    std::int64_t first = 0, count = 0;
  };

  bool in_runs(const Phase& phase) const { return phase.cols.out_step == 1; }
  bool rows_follow(const Phase& phase) const {
    return phase.rows.out_step == 1 && phase.cols.out_count == pass_.out_w;
  }
  std::int64_t pixel_of(const Phase& phase, std::int64_t row, std::int64_t col) const {
    return (phase.rows.out_first + row * phase.rows.out_step) * pass_.out_w + phase.cols.out_first +
           col * phase.cols.out_step;
  }

  // Room for the next window of `count` outputs. If the window does not continue the run, the run
  // is written first.
  float* room_for(const Phase& phase, PixelRun& run, std::int64_t row, std::int64_t col,
                  std::int64_t count, int channels) const {
    const bool continues = pixel_of(phase, row, col) == run.first + run.count;
    if (!continues || run.count + count > kRunPixels) flush(phase, run, channels);
    return run.tile + run.count * width_;
  }

  // Keeps a window of rp x rq outputs at the position from room_for().
  void keep_window(const Phase& phase, PixelRun& run, std::int64_t row, std::int64_t col, int rp,
                   int rq, int channels) const {
    if (in_runs(phase) && (rp == 1 || rows_follow(phase))) {
      if (run.count == 0) run.first = pixel_of(phase, row, col);
      run.count += rp * rq;
      return;
    }
    for (int i = 0; i < rp; ++i)
      store_channels(phase, run.tile + i * rq * width_, rq, channels, run.out, row + i, col);
  }

  void flush(const Phase& phase, PixelRun& run, int channels) const {
    if (run.count > 0)
      kernels_.store_transposed(run.tile, width_, static_cast<int>(run.count), channels,
                                run.out + run.first, phase.pitch);
    run.count = 0;
  }

  // Channels in lanes, one row of outputs at a time, with the filter rows that meet input.
  void spread_tiles(const Phase& phase, const float* planes, float* tile, std::int64_t row0,
                    std::int64_t rows, float* out) const {
    const std::int64_t pixels = phase.pitch;
    const TileFn spread = kernels_.spread[pairs_][nv_][pass_.cols.in];
    TileArgs args;
    args.b_step = args.ldc = width_;
    args.c = tile;
    for (std::int64_t panel = 0; panel < cut_.panels; ++panel) {
      const std::int64_t channel = panel * width_;
      const int channels =
          static_cast<int>(std::min<std::int64_t>(width_, pass_.out_channels - channel));
      const float* filters = phase.filters + panel * phase.steps * width_;
      for (std::int64_t row = row0; row < row0 + rows; ++row) {
        args.b = filters + set_steps(phase, row, row + 1, args) * width_;
        args.a = planes + row * cut_.planes.width;
        args.steps /= kSpreadTaps;
        multiply(spread, args, pass_.out_w * width_);
        store_channels(phase, tile, static_cast<int>(pass_.out_w), channels, out + channel * pixels,
                       row, 0);
      }
    }
  }

  // Stores one row of a window: rq outputs of some channels.
  void store_channels(const Phase& phase, const float* tile, int rq, int channels, float* out,
                      std::int64_t row, std::int64_t col) const {
    const std::int64_t pixels = phase.pitch;
    float* dst = out + pixel_of(phase, row, col);
    if (phase.cols.out_step == 1) {
      kernels_.store_transposed(tile, width_, rq, channels, dst, pixels);
      return;
    }
    for (int k = 0; k < channels; ++k) {
      for (int j = 0; j < rq; ++j) dst[k * pixels + j * phase.cols.out_step] = tile[j * width_ + k];
    }
  }

  // If rows nearly fill vectors, the vectors of a tile are pieces of neighbouring rows, which the
  // tile writes directly to their places. Otherwise vectors continue over the ends of rows and are
  // sorted afterwards, which costs as much as some steps.
  void pixel_tiles(const Phase& phase, const float* planes, float* tile, std::int64_t row0,
                   std::int64_t rows, float* out) const {
    const std::int64_t cols = phase.cols.out_count, pitch = cut_.planes.width;
    const std::int64_t pieces = divide_up(cols, kernels_.lanes);
    TileArgs args;
    args.c = tile;
    args.a_step = width_;
    constexpr std::int64_t kWrite = 2, kSort = 8;
    if ((phase.steps + kWrite) * pieces * kernels_.lanes > (phase.steps + kSort) * pitch)
      return flat_tiles(phase, args, planes, row0, rows, out);
    const std::int64_t piece = divide_up(cols, pieces);
    // With fewer rows in a tile, more filter rows that only meet padding are left out.
    const int most = pass_.rows.backward ? 2 : nv_;
    args.b_vector = pitch;
    for (std::int64_t i = 0; i < rows;) {
      int nv = most;
      while (nv > rows - i) nv /= 2;
      for (std::int64_t j = 0; j < cols; j += piece) {
        const int count = static_cast<int>(std::min(piece, cols - j));
        args.b = planes + i * pitch + j;
        if (phase.cols.out_step == 1 && phase.steps <= kMostSteps) {
          direct_tile(phase, args, nv, row0 + i, j, count, out);
          continue;
        }
        Segment segments[kMaxNr];
        int used = 0;
        for (int v = 0; v < nv; ++v) {
          used += segments_of(phase, v * kernels_.lanes, row0 + i + v, j, count, segments + used);
        }
        sorted_tile(phase, args, nv, row0 + i, row0 + i + nv, segments, used, out);
      }
      i += nv;
    }
  }

  void flat_tiles(const Phase& phase, TileArgs& args, const float* planes, std::int64_t row0,
                  std::int64_t rows, float* out) const {
    const std::int64_t cols = phase.cols.out_count, pitch = cut_.planes.width;
    const std::int64_t positions = (rows - 1) * pitch + cols, nr = nv_ * kernels_.lanes;
    args.b_vector = kernels_.lanes;
    for (std::int64_t start = 0; start < positions; start += nr) {
      const std::int64_t end = std::min(positions, start + nr);
      const int vectors = static_cast<int>(divide_up(end - start, kernels_.lanes));
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

  // Calls f(tile, its first output channel, number of channels) for all output channels of one tile
  // of plane positions, which belongs to the output rows [out0, out1). f sets where the tile is
  // written.
  template <class F>
  void each_panel(const Phase& phase, TileArgs& args, int nv, std::int64_t out0, std::int64_t out1,
                  F f) const {
    const std::int64_t skipped = set_steps(phase, out0, out1, args);
    for (std::int64_t panel = 0; panel < cut_.panels; ++panel) {
      const std::int64_t channel = panel * width_;
      const int channels =
          static_cast<int>(std::min<std::int64_t>(width_, pass_.out_channels - channel));
      args.a = phase.filters + (panel * phase.steps + skipped) * width_;
      f(kernels_.table_b[pairs_][nv][channels], args, channel, channels);
    }
  }

  // Pieces of neighbouring rows, from (row, col) on, are written directly to the result.
  void direct_tile(const Phase& phase, TileArgs& args, int nv, std::int64_t row, std::int64_t col,
                   int count, float* out) const {
    const std::int64_t pixels = phase.pitch;
    float* const first = out + (phase.rows.out_first + row * phase.rows.out_step) * pass_.out_w +
                         phase.cols.out_first + col;
    args.cols = count;
    args.ldc = pixels;
    args.c_vector = phase.rows.out_step * pass_.out_w;
    each_panel(phase, args, nv, row, row + nv,
               [&](TileFn tile, TileArgs& panel, std::int64_t channel, int) {
                 panel.c = first + channel * pixels;
                 tile(panel);
               });
  }

  // Positions that are not neighbours in the result are copied there segment by segment.
  void sorted_tile(const Phase& phase, TileArgs& args, int nv, std::int64_t out0, std::int64_t out1,
                   const Segment* segments, int count, float* out) const {
    const std::int64_t pixels = phase.pitch;
    args.cols = args.c_vector = kernels_.lanes;
    args.ldc = nv * kernels_.lanes;
    each_panel(phase, args, nv, out0, out1,
               [&](TileFn tile, TileArgs& panel, std::int64_t channel, int channels) {
                 multiply(tile, panel, channels * panel.ldc);
                 kernels_.store_segments(panel.c, panel.ldc, channels, segments, count,
                                         out + channel * pixels, pixels);
               });
  }

  // Outputs [col, col + count) of a row, which are in the tile from column `from` on: one segment,
  // or one segment each if the outputs of a phase are not neighbours.
  int segments_of(const Phase& phase, int from, std::int64_t row, std::int64_t col, int count,
                  Segment* segments) const {
    const std::int64_t y = phase.rows.out_first + row * phase.rows.out_step;
    const std::int64_t x = phase.cols.out_first + col * phase.cols.out_step;
    const bool neighbours = phase.cols.out_step == 1;
    const int used = neighbours ? 1 : count, run = neighbours ? count : 1;
    for (int i = 0; i < used; ++i)
      segments[i] = {from + i, run, y * pass_.out_w + x + i * phase.cols.out_step};
    return used;
  }

  const Math math_;
  const bool pairs_, words_;
  bool channel_lanes_ = false;
  bool in_place_ = false;   // a band is read without a copy
  bool spread_ = false;     // channels in lanes, by spread tiles: planes are whole
  int nv_ = 1, width_ = 1;  // width: of a packed filter panel, in channels
};

}  // namespace

void correlate_vectors(const Correlation& pass, ConvOperand in, ConvOperand w, float* out,
                       Math math, const Epilogue& epilogue, void* workspace) {
  const VectorBody body(pass, kernel_set(), math, in.dtype == DType::Float32);
  correlate_with(body, in, w, out, epilogue, workspace);
}

std::int64_t correlate_vectors_piece(const Correlation& pass, Math math) {
  return VectorBody(pass, kernel_set(), math, false).cut().unit_pixels;
}

std::size_t correlate_vectors_workspace(const Correlation& pass, Math math, int threads) {
  return correlate_with_workspace(VectorBody(pass, kernel_set(), math, false), threads);
}

}  // namespace tenon::cpu
