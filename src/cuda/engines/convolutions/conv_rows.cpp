// Decides which convolutions conv_rows.cuh computes, models how blocks share them, and prepares the
// launches.
#include "cuda/engines/convolutions/conv_rows.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/convolutions/combined_channels.h"
#include "cuda/engines/launch/words.h"
#include "cuda/engines/maps/print_code.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kEighth = 8;  // pixels of a row whose results a lane holds at the end

// m, n, 0, threads, 0, thread_m, thread_n; threads / n groups of warps share k.
constexpr Tile kConvTiles[] = {
    {16, 256, 0, 256, 0, 16, 32}, {16, 128, 0, 128, 0, 16, 32}, {32, 128, 0, 128, 0, 32, 32},
    {32, 256, 0, 256, 0, 32, 32}, {32, 128, 0, 256, 0, 32, 32}, {32, 256, 0, 512, 0, 32, 32},
    {16, 512, 0, 256, 0, 16, 64},
};

/// True if all sizes, those of the result included, are whole groups of 8 pixels.
bool in_eighths(std::initializer_list<std::int64_t> parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [](std::int64_t part) { return part % kEighth == 0; });
}

/// True if the feature map can be loaded by pieces: stored in the 16-bit type of the products, rows
/// of whole groups of 8 pixels, stride 1.
bool loads_pieces(const ConvShape& s) {
  const bool half = s.math == GemmMath::Bf16 || s.math == GemmMath::F16;
  const DType multiplied = s.math == GemmMath::Bf16 ? DType::BFloat16 : DType::Float16;
  if (!half || s.image_dtype != multiplied || !s.whole) return false;
  if (s.rows.step != 1 || s.columns.step != 1 || s.image.column_stride != 1) return false;
  if (s.columns.first > 0) return false;
  return in_eighths({s.image_offset, s.image_step, s.image.image_stride, s.image.row_stride,
                     s.image.element_stride, s.columns.image, s.columns.result});
}

bool is_by_rows(const ConvShape& s) {
  return loads_pieces(s) && !s.filter_gradient && s.groups == 1 &&
         s.channels % (2 * s.vector) == 0 && s.rows.taps <= 8 && s.columns.taps <= 8;
}

/// True if the filters are stored in units, in the type of the products.
bool copies_filters(const ConvShape& s) {
  const ConvFilters& w = s.weights;
  return s.other_dtype == s.image_dtype && w.element_stride == 1 &&
         in_eighths({s.other_offset, w.filter_stride, w.row_stride, w.column_stride});
}

// ---- How its work is shared --------------------------------------------------------------------

std::int64_t reach_of(const ConvShape& s, const ConvConfig& c) { return s.reach(s.rows, c.rows); }

/// Units from one row of the patch to the next, chosen so that results below one another are in
/// different banks, as results next to one another are.
std::int64_t row_pitch(const ConvShape& s) {
  const std::int64_t width = s.reach(s.columns, s.columns.result), pitch = s.unit_groups() | 1;
  const std::int64_t units = width * pitch + (width - 1) / kEighth * 2;
  const std::int64_t rest = s.columns.result / kEighth * 2 % 8;
  return round_up(units - rest, 8) + rest;
}

std::int64_t filter_pitch(const ConvShape& s) {
  return s.unit_groups() * s.rows.taps * s.columns.taps | 1;
}

std::int64_t padded_row_units(const ConvShape& s, const ConvConfig& c) {
  return c.images * reach_of(s, c) * row_pitch(s);
}

constexpr int kLinePixels = 32;  // pixels

/// Threads of a kernel with this tile for which a multiprocessor has registers.
int most_threads(const Tile& t) {
  return t.m == 16 ? (t.thread_n == kLinePixels ? 1024 : 640) : 512;
}

double cycles_of(const GpuModel& gpu, const ConvShape& s, const ConvConfig& c) {
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  const std::int64_t units = s.unit_groups() * s.rows.taps * s.columns.taps;
  const Tile& t = c.tile;
  // Numbers that a block loads, shared memory reads of its warps, and waiting cycles.
  const double filters = real(t.m * units * s.vector) * (s.other_dtype == DType::Float32 ? 4 : 2),
               image = real(c.images * reach_of(s, c) * s.columns.image * s.channels) * 2,
               results = real(t.m * t.n) * 6;
  const double slices = real(units) / 2, lines = real(t.thread_n) / kLinePixels,
               warps = real(t.n) / t.thread_n, taps = real(s.rows.taps);
  const double fragments = slices * warps * (t.m / 16.0 + 2 * (taps + lines - 1) / taps) * 4,
               products = slices * warps * lines * 4 * (t.m / 16.0) * 2;
  // Per unit of the filters: instructions, and rounds of loads.
  const double gathered = copies_filters(s) ? 15 : 60, rounds = copies_filters(s) ? 32 : 4;
  const double busy = (filters + image + results) / gpu.cache * 0.75 +
                      real(t.m * units) / 32 * gathered / 4 + std::max(fragments, products);
  const double waits =
      gpu.latency * (2 + real(t.m * units) / t.threads / rounds) + slices / t.groups(32) * 40;
  const double blocks =
      real(s.filters / t.m * (s.rows.result / c.rows) * divide_up(power_above(s.images), c.images));
  const double resident = real(
      std::max<std::int64_t>(1, resident_blocks(gpu, t, c.shared_bytes + 1024, most_threads(t))));
  const double share = std::max(1.0, blocks / gpu.multiprocessors);
  return gpu.launch_cycles() +
         std::max(share * busy + waits, std::ceil(share / resident) * (waits + busy));
}

/// True if a block of this tile has whole rows, and whole images where it has several images.
bool share_rows(const ConvShape& s, ConvConfig& c) {
  const Tile& t = c.tile;
  const std::int64_t width = s.columns.result, pairs = s.unit_groups() / 2;
  if (t.n % width != 0 || s.filters % t.m != 0 || pairs % t.groups(32) != 0) return false;
  c.columns = width;
  c.rows = std::min(s.rows.result, t.n / width);
  c.images = t.n / (width * c.rows);
  c.chunk = s.unit_groups();
  const bool filled = c.images * c.rows * width == t.n && s.rows.result % c.rows == 0 &&
                      (c.images == 1 || c.rows == s.rows.result) &&
                      c.rows * width % kLinePixels == 0;
  if (t.thread_n > kLinePixels && (width != kLinePixels || c.rows * width % t.thread_n != 0))
    return false;
  if (!filled) return false;
  const std::int64_t exchanged = t.groups(32) == 1 ? 0 : 4 * t.m * t.n;
  c.shared_bytes = std::max(16 * (padded_row_units(s, c) + t.m * filter_pitch(s)), exchanged);
  return c.shared_bytes <= kMostPatchBytes;
}

// ---- Launches ----------------------------------------------------------------------------------

Source rows_source(const ConvShape& s, const ConvConfig& c, const std::string& epilogue) {
  const int blocks = most_threads(c.tile) / c.tile.threads;
  return {"conv_rows",
          cat("#include \"cuda/kernels/conv/conv_rows.cuh\"\n", epilogue,
              "\nusing namespace tenon::cuda;\n\n",
              ConfigText()
                  .value("Math", "kMath", math_name(s.math))
                  .value("Kind", "kFilters", stored_kind(s.other_dtype))
                  .flags({{"kFiltersWhole", copies_filters(s)}, {"kRowsFirst", s.rows_first}})
                  .ints({{"kTapRows", to_int(s.rows.taps)},
                         {"kTapColumns", to_int(s.columns.taps)},
                         {"kPixels", c.store_vector}})
                  .tile(c.tile)
                  .text(),
              "\nextern \"C\" __global__ void __launch_bounds__(", c.tile.threads, ", ", blocks,
              ")\nconv_rows(const ConvRows p, const Epilogue epilogue) {\n  "
              "TENON_DYNAMIC_SHARED(shared);\n  ConvRowsBlock<Config, Epilogue>(p, epilogue, "
              "shared).await_and_run();\n}\n"),
          3};
}

class RowsKernel final : public Kernel {
 public:
  RowsKernel(const Region& region, const ConvShape& s, const ConvConfig& c, const Target& target,
             PrintedEpilogue printed)
      : shape_(s), config_(c), title_(region.title), epilogue_(std::move(printed.arguments)) {
    describe();
    kernel_ = compile(target, rows_source(s, c, printed.code));
    if (printed.channel_numbers > 0)
      channels_.emplace(target, printed, epilogue_, s.filters, problem_.places, workspace_bytes);
  }

  std::string source() const override {
    return channels_ ? cat(kernel_->source().text, kNextLaunch, channels_->source())
                     : kernel_->source().text;
  }

  void run(const Binding& binding) const override {
    ConvRows p = problem_;
    const std::byte* image = binding.values[at(shape_.image_value)];
    if (reinterpret_cast<std::uintptr_t>(image) % 16 != 0)
      throw InternalError(cat(title_, ": an operand's address is not a multiple of 16"));
    constexpr std::int64_t kBytes = 2;
    p.image.data = image + shape_.image_offset * kBytes;
    p.filters.data = binding.values[at(shape_.other_value)] +
                     shape_.other_offset * static_cast<std::int64_t>(item_size(shape_.other_dtype));
    std::vector<std::uint64_t> words;
    epilogue_.fill(words, binding);
    void* params[] = {&p, words.data()};
    kernel_->launch(binding.stream, grid_, {static_cast<std::uint32_t>(config_.tile.threads), 1, 1},
                    static_cast<std::uint32_t>(config_.shared_bytes), params);
    if (channels_) channels_->run(binding, words);
  }

 private:
  void describe() {
    const ConvShape& s = shape_;
    const ConvConfig& c = config_;
    ConvRows& p = problem_;
    p.image = s.image;
    p.filters = s.weights;
    const std::int64_t blocks_m = s.filters / c.tile.m, bands = s.rows.result / c.rows,
                       reach = reach_of(s, c), row_pieces = s.columns.image / c.store_vector;
    p.blocks_m = make_divisor(blocks_m);
    p.bands = make_divisor(bands);
    p.row_pieces = make_divisor(row_pieces);
    p.rows = make_divisor(reach);
    p.pieces = make_divisor(c.images * reach * row_pieces);
    const std::int64_t edge = s.reach(s.columns, s.columns.result) - s.columns.image;
    p.edge = make_divisor(std::max<std::int64_t>(edge, 1));
    p.edges = to_int(c.images * reach * s.unit_groups() * edge);
    p.eighths = make_divisor(c.rows * s.columns.result / kEighth);
    p.columns = make_divisor(s.columns.result / kEighth);
    p.groups = make_divisor(s.unit_groups());
    p.images = to_int(c.images), p.rows_of_band = to_int(c.rows);
    p.filters_in_all = to_int(s.filters), p.result_width = to_int(s.columns.result);
    p.first_row = to_int(s.rows.first), p.first_column = to_int(s.columns.first);
    p.row_dilation = to_int(s.rows.dilation), p.column_dilation = to_int(s.columns.dilation);
    p.pitch = to_int(s.unit_groups() | 1);
    p.row_pitch = to_int(row_pitch(s));
    p.image_pitch = to_int(reach * row_pitch(s));
    p.filter_pitch = to_int(filter_pitch(s));
    p.filters_at = to_int(padded_row_units(s, c));
    p.places = to_int(bands * divide_up(s.images, c.images));
    grid_ = {static_cast<std::uint32_t>(blocks_m * p.places), 1, 1};
  }

  const ConvShape shape_;
  const ConvConfig config_;
  const std::string title_;
  EpilogueArguments epilogue_;
  ConvRows problem_;
  Grid grid_;
  std::shared_ptr<const CompiledKernel> kernel_;
  std::optional<CombinedChannels> channels_;
};

}  // namespace

bool gradient_by_pieces(const ConvShape& s) {
  return s.filter_gradient && loads_pieces(s) && s.other_dtype == s.image_dtype &&
         in_eighths({s.other_offset, s.other_step, s.image_stride, s.filter_stride});
}

std::vector<ConvConfig> conv_rows_configs(const GpuModel& gpu, const ConvShape& s) {
  std::vector<ConvConfig> all;
  if (!is_by_rows(s)) return all;
  for (const Tile& tile : kConvTiles) {
    ConvConfig c;
    c.by_rows = true;
    c.tile = tile;
    if (!share_rows(s, c)) continue;
    const std::int64_t eighths =
        c.images * reach_of(s, c) * s.columns.image / kEighth * s.unit_groups();
    c.store_vector = eighths * 2 <= tile.threads ? 4 : 8;
    c.cycles = cycles_of(gpu, s, c);
    all.push_back(c);
  }
  return all;
}

std::unique_ptr<Kernel> prepare_conv_rows(const Region& region, const ConvShape& shape,
                                          const ConvConfig& config, const Target& target,
                                          PrintedEpilogue printed) {
  return std::make_unique<RowsKernel>(region, shape, config, target, std::move(printed));
}

}  // namespace tenon::cuda
