// Chooses tile and share by a small model of a kernel's time, in cycles of one multiprocessor.
#include "cuda/engines/convolutions/conv_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/index.h"
#include "base/sort.h"
#include "cuda/engines/convolutions/conv_rows.h"

namespace tenon::cuda {

namespace {

// m, n, 0, threads, 0, thread_m, thread_n.
constexpr Tile kPatchTiles[] = {
    {16, 48, 0, 256, 0, 16, 48},  {16, 64, 0, 256, 0, 16, 32},  {16, 128, 0, 256, 0, 16, 32},
    {32, 64, 0, 256, 0, 32, 32},  {32, 128, 0, 256, 0, 32, 32}, {32, 192, 0, 256, 0, 32, 48},
    {32, 256, 0, 256, 0, 32, 32}, {64, 64, 0, 256, 0, 32, 32},  {64, 128, 0, 256, 0, 32, 32},
    {16, 256, 0, 256, 0, 16, 32}, {32, 128, 0, 512, 0, 32, 32}, {64, 128, 0, 512, 0, 32, 32},
    {32, 256, 0, 512, 0, 32, 32}, {32, 192, 0, 512, 0, 16, 48}, {16, 128, 0, 512, 0, 16, 32},
    {16, 64, 0, 512, 0, 16, 32},  {64, 256, 0, 256, 0, 64, 32}, {64, 192, 0, 256, 0, 32, 48},
    {16, 256, 0, 256, 0, 16, 64}, {64, 128, 0, 256, 0, 64, 32},
};
constexpr Tile kGradientTiles[] = {
    {16, 64, 0, 256, 0, 16, 64},  {32, 32, 0, 256, 0, 32, 32},  {32, 96, 0, 384, 0, 32, 48},
    {32, 144, 0, 384, 0, 32, 48}, {32, 288, 0, 384, 0, 32, 48}, {16, 224, 0, 256, 0, 16, 112},
    {64, 144, 0, 384, 0, 32, 48}, {64, 64, 0, 256, 0, 32, 32},  {32, 224, 0, 256, 0, 32, 112},
    {16, 144, 0, 384, 0, 16, 48}, {16, 144, 0, 192, 0, 16, 48}, {32, 144, 0, 192, 0, 32, 48},
};

// Neighbouring patches overlap: one of four loads from the L2 cache is served by L1.
constexpr double kNearer = 4.0 / 3;

double real(std::int64_t x) { return static_cast<double>(x); }

/// Cycles of one block: busy cycles and waiting cycles of a multiprocessor.
struct BlockWork {
  const GpuModel& gpu;
  double busy = 0, waits = 0;

  /// Fills `units` units of shared memory, each from `elements` single-element loads.
  void stage(double units, double elements, double threads) {
    busy += units / 32 * (elements * 3 + 25) / 4 * 1.2 + units * elements * 4 / bytes_a_cycle() / 2;
    waits += gpu.latency * std::ceil(units / threads / 4);
  }
  /// Multiplies `slices` slices of k, counted over all warps.
  void multiply(double slices, const Tile& t) {
    const double warps = real(t.m) / t.thread_m * (real(t.n) / t.thread_n);
    const double fragments = t.thread_m / 16.0 + t.thread_n / 16.0;
    const double products = t.m / 16.0 * (t.n / 8.0);
    busy += slices * std::max(products * 0.8, warps * fragments * 4);
    waits += slices / t.groups(32) * 60;
  }
  void finish(double items, double bytes, double threads) {
    busy += items / 32 * 40 / 4 + bytes / bytes_a_cycle();
    waits += gpu.latency * std::ceil(items / threads / 4) + gpu.latency / 2;
  }
  double bytes_a_cycle() const { return gpu.cache * kNearer; }
  double of_all(double blocks, double resident) const {
    const double share = std::max(1.0, blocks / gpu.multiprocessors);
    return gpu.launch_cycles() +
           std::max(share * busy + waits, std::ceil(share / resident) * (waits + busy));
  }
};

double resident(const GpuModel& gpu, const ConvConfig& c) {
  constexpr std::int64_t kReservedBytes = 1024;  // of a block's shared memory
  return real(std::max<std::int64_t>(
      1, resident_blocks(gpu, c.tile, c.shared_bytes + kReservedBytes, 512)));
}

// ---- Convolutions ------------------------------------------------------------------------------

bool fits(const ConvShape& s, ConvConfig& c) {
  c.shared_bytes = std::max(conv_staged_bytes(s, c), conv_sums_bytes(c));
  return c.shared_bytes <= kMostPatchBytes;
}

double cycles(const GpuModel& gpu, const ConvShape& s, const ConvConfig& c) {
  const double chunks = real(divide_up(s.unit_groups(), c.chunk)), units = real(c.chunk * s.taps());
  const double elements = s.shifts ? real(s.columns.taps) : real(s.vector);
  BlockWork work{gpu};
  work.stage(c.tile.m * units, elements, c.tile.threads);
  work.stage(real(conv_patch_units(s, c) * c.chunk), elements, c.tile.threads);
  work.multiply(std::ceil(units / 2), c.tile);
  work.busy *= chunks;
  work.waits *= chunks;
  const double results = real(c.tile.m) * c.tile.n;
  work.finish(results / c.store_vector, results * 4, c.tile.threads);
  if (s.reduces_channels) work.waits += 4 * gpu.latency;  // for combining the partial results
  const double blocks = real(divide_up(s.filters, c.tile.m) * divide_up(s.rows.result, c.rows) *
                             divide_up(s.columns.result, c.columns) *
                             divide_up(power_above(s.images), c.images) * s.groups);
  return work.of_all(blocks, resident(gpu, c));
}

void consider(const GpuModel& gpu, const ConvShape& s, ConvConfig c, std::vector<ConvConfig>& all) {
  for (c.chunk = s.unit_groups(); !fits(s, c); c.chunk = divide_up(c.chunk, 2))
    if (c.chunk == 1) return;
  const std::int64_t pixels = s.rows.result * s.columns.result;
  const bool whole_rows = c.columns == s.columns.result;
  c.store_vector = whole_rows && pixels % 4 == 0 && c.rows * c.columns % 4 == 0 ? 4 : 1;
  c.cycles = cycles(gpu, s, c);
  all.push_back(c);
}

std::vector<ConvConfig> patch_configs(const GpuModel& gpu, const ConvShape& s, const Tile& tile) {
  std::vector<ConvConfig> all;
  if (s.reduces_channels && !std::has_single_bit(static_cast<unsigned>(tile.n))) return all;
  ConvConfig c;
  c.tile = tile;
  c.columns = std::min<std::int64_t>(s.columns.result, tile.n);
  for (c.rows = std::min(s.rows.result, tile.n / c.columns); c.rows >= 1; --c.rows) {
    const bool whole = c.rows == s.rows.result && c.columns == s.columns.result;
    const std::int64_t most =
        whole ? std::min(power_above(s.images), tile.n / (c.rows * c.columns)) : 1;
    for (c.images = 1; c.images <= most; ++c.images) consider(gpu, s, c, all);
  }
  return all;
}

// ---- Weight gradients --------------------------------------------------------------------------

bool gradient_fits(const ConvShape& s, ConvConfig& c) {
  const std::int64_t tables = c.tile.n / s.vector / 2 + conv_staged_pixels(s, c) / 4;
  const std::int64_t staged =
      tables + conv_patch_units(s, c) * conv_patch_pitch(c) + c.tile.m * conv_row_pitch(s, c);
  c.shared_bytes = std::max(staged * 16, conv_sums_bytes(c));
  return c.shared_bytes <= kMostPatchBytes;
}

double gradient_cycles(const GpuModel& gpu, const ConvShape& s, const ConvConfig& c) {
  const double elements = s.shifts ? real(s.columns.taps) : real(s.vector);
  const double pixels = real(conv_staged_pixels(s, c)),
               turns = std::ceil(real(c.cells) / real(c.images));
  BlockWork work{gpu};
  // Loads per unit; a piece loads 8 pixels of 8 channels.
  work.stage(real(conv_patch_units(s, c) * c.chunk), c.by_rows ? 1 : elements, c.tile.threads);
  work.stage(c.tile.m * pixels / (c.by_rows ? 8 : 4), c.aligned == 1 ? 6 : 1.5, c.tile.threads);
  work.multiply(pixels / (2 * s.vector), c.tile);
  if (c.by_rows) work.waits += gpu.latency;  // a piece waits for all pieces before it
  work.busy *= turns;
  work.waits *= turns;
  const double results = real(c.tile.m) * c.tile.n;
  work.finish(results, results * 4, c.tile.threads);
  const double splits =
      std::ceil(real(power_above(s.images) * divide_up(s.rows.result, c.rows)) / real(c.cells));
  const double tiles =
      real(divide_up(s.filters, c.tile.m) * divide_up(s.unit_groups(), c.chunk) * s.groups);
  const double sums = real(s.filters * s.groups * s.channels * s.rows.taps * s.columns.taps);
  const double adding = gpu.launch_cycles() + 2 * gpu.latency +
                        splits * sums * 4 / work.bytes_a_cycle() / gpu.multiprocessors;
  return work.of_all(tiles * splits, resident(gpu, c)) + adding;
}

int pixels_at_once(const ConvShape& s, const ConvConfig& c) {
  for (const int n : {4, 2}) {
    const std::int64_t parts[] = {c.rows * c.columns, s.rows.result * s.columns.result,
                                  s.image_stride,     s.filter_stride,
                                  s.other_offset,     s.other_step};
    if (std::all_of(std::begin(parts), std::end(parts),
                    [n](std::int64_t part) { return part % n == 0; }))
      return n;
  }
  return 1;
}

/// 4 pixels per piece if one piece per thread is then enough, otherwise 8.
int pixels_of_pieces(const ConvShape& s, const ConvConfig& c) {
  constexpr int kHalf = 4;
  const std::int64_t pieces =
      c.images * s.reach(s.rows, c.rows) * s.columns.image / kHalf * c.chunk;
  return pieces <= c.tile.threads ? kHalf : 2 * kHalf;
}

std::vector<ConvConfig> gradient_configs(const GpuModel& gpu, const ConvShape& s,
                                         const Tile& tile) {
  std::vector<ConvConfig> all;
  ConvConfig c;
  c.tile = tile;
  c.columns = s.columns.result;
  c.chunk = std::min(s.unit_groups(), tile.n / (s.taps() * s.vector));
  if (c.chunk == 0) return all;
  c.chunk = divide_up(s.unit_groups(), divide_up(s.unit_groups(), c.chunk));  // even shares
  for (std::int64_t bands = 1; bands <= s.rows.result; bands *= 2) {
    c.rows = divide_up(s.rows.result, bands);
    c.aligned = pixels_at_once(s, c);
    c.by_rows = gradient_by_pieces(s);
    if (c.by_rows) c.aligned = 8;
    for (c.cells = 1; c.cells <= power_above(s.images) * bands; c.cells *= 2)
      for (c.images = 1; c.images <= std::min<std::int64_t>(c.cells, 32); c.images *= 2) {
        if (!gradient_fits(s, c)) break;
        if (c.by_rows) c.store_vector = pixels_of_pieces(s, c);
        c.cycles = gradient_cycles(gpu, s, c);
        all.push_back(c);
      }
  }
  return all;
}

}  // namespace

std::vector<ConvConfig> conv_configs(const GpuModel& gpu, const ConvShape& shape,
                                     std::size_t per_tile) {
  const auto sooner = [](const ConvConfig& a, const ConvConfig& b) { return a.cycles < b.cycles; };
  std::vector<ConvConfig> all = conv_rows_configs(gpu, shape);
  const std::span<const Tile> tiles =
      shape.filter_gradient ? std::span<const Tile>(kGradientTiles) : kPatchTiles;
  for (const Tile& tile : tiles) {
    auto some = shape.filter_gradient ? gradient_configs(gpu, shape, tile)
                                      : patch_configs(gpu, shape, tile);
    sort_stably(some, sooner);
    some.resize(std::min(some.size(), per_tile));
    all.insert(all.end(), some.begin(), some.end());
  }
  sort_stably(all, sooner);
  return all;
}

}  // namespace tenon::cuda
