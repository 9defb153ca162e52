// Weight gradient as an implicit matrix product: rows are (input channel, filter tap), lanes are
// output channels, and the reduction runs over pixels. x is copied into planes as in the other
// passes and read in place, dy is transposed to [pixel][output channel]; both once for all of a
// filter's taps.
//
// With too few output channels to fill lanes, lanes are pixels instead: dy is copied in the planes'
// own pitch, with zeros where a row of outputs ends, and both operands are read as vectors; the
// lanes are added up at the very end. (A zero of dy meets whatever x is there: an infinity or NaN
// in x may reach more of such a gradient than it should.)
//
// Images are cut into a fixed number of parts; each has sums of its own, added in order at the end,
// so the number of threads changes no bit. With pairs, a word holds the same pixel of two
// neighbouring images. Bound by arithmetic.
#include "cpu/kernels/conv_weight_grad.h"

#include <algorithm>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/kernels/conv_blocks.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kManyChunks = 16;
constexpr std::int64_t kMostPartFloats = std::int64_t{1} << 22;  // of all parts' sums together
constexpr std::int64_t kPlaneFloats = std::int64_t{1}
                                      << 17;  // of copied planes, where rows can be cut
constexpr std::int64_t kPixels = 256;         // of one stretch, at least, where images are small
constexpr std::int64_t kSumRows = 48;         // rows added and transposed at a time

// A stretch is what is copied at once: some image words, or a band of rows of one.
struct Plan {
  bool pairs = false;
  bool pixel_lanes = false;
  bool windows = false;  // filter taps of a row are neighbours in the planes
  int nv = 1, width = 4, lanes = 4;
  std::int64_t groups = 1, channels = 0, outputs = 0;  // of one group: input and output channels
  std::int64_t taps = 0, rows = 0;                     // rows of the product: channels * taps
  std::int64_t panels = 0;
  Planes planes;
  std::int64_t band = 0;           // output rows of a stretch
  std::int64_t stretch_words = 1;  // image words of a stretch
  std::int64_t image_words = 0, parts = 0, words_per_part = 0;
  std::int64_t panels_per_chunk = 0, chunks_per_part = 0;

  std::int64_t image_floats() const { return channels * planes.size(); }
  // Positions of dy in one image word: pixels, or plane positions rounded up to whole vectors.
  std::int64_t positions(std::int64_t lines, std::int64_t q) const {
    return pixel_lanes ? round_up((lines - 1) * planes.width + q, 16) : lines * q;
  }
  std::int64_t pixels(std::int64_t q) const { return stretch_words * positions(band, q); }
  std::int64_t sum_lanes() const { return pixel_lanes ? lanes : 1; }
  std::int64_t part_floats() const {
    return round_up(groups * panels * rows * width * sum_lanes(), 16);
  }
};

int images_per_word(const Plan& plan) { return plan.pairs ? 2 : 1; }

void cut_images(const ConvShape& s, const PassAxis& rows, const PassAxis& cols, Plan& plan) {
  plan.band = s.p;
  const auto size = [&] { return plan.channels * planes_for(rows, cols, plan.band).size(); };
  while (plan.band > 4 && size() > kPlaneFloats) plan.band = divide_up(plan.band, 2);
  plan.planes = planes_for(rows, cols, plan.band);
  plan.image_words = divide_up(s.n, images_per_word(plan));
  const std::int64_t room =
      std::max<std::int64_t>(1, kPlaneFloats / std::max<std::int64_t>(1, plan.image_floats()));
  const std::int64_t all = plan.part_floats();
  const std::int64_t most =
      std::clamp<std::int64_t>(kMostPartFloats / std::max<std::int64_t>(1, all), 1, kManyChunks);
  plan.words_per_part = divide_up(plan.image_words, std::min(most, plan.image_words));
  plan.parts = divide_up(plan.image_words, plan.words_per_part);
  if (plan.band == s.p) {
    plan.stretch_words = std::min({plan.words_per_part, room, divide_up(kPixels, s.p * s.q)});
  }
}

Plan plan_weights(const ConvShape& s, const PassAxis& rows, const PassAxis& cols, Math math,
                  const KernelSet& kernels) {
  Plan plan;
  plan.pairs = kernels.pairs && math == Math::Bf16;
  plan.groups = s.groups;
  plan.channels = s.c / s.groups;
  plan.outputs = s.k / s.groups;
  plan.taps = s.r * s.s;
  plan.rows = plan.channels * plan.taps;
  plan.windows = s.stride_h == 1 && s.stride_w == 1 && s.dil_w == 1;
  plan.nv = plan.outputs > kernels.lanes ? 2 : 1;
  plan.width = plan.nv * kernels.lanes;
  plan.lanes = kernels.lanes;
  plan.pixel_lanes = 2 * plan.outputs <= kernels.lanes;
  if (plan.pixel_lanes)
    plan.width = static_cast<int>(std::min<std::int64_t>(plan.outputs, kernels.max_dot_rows));
  plan.panels = divide_up(plan.outputs, plan.width);
  cut_images(s, rows, cols, plan);
  // Where there are too few parts, panels of output channels are shared out too, and planes are
  // copied for each.
  const std::int64_t share = divide_up(kManyChunks, plan.parts * plan.groups);
  plan.panels_per_chunk = divide_up(plan.panels, std::min(plan.panels, share));
  plan.chunks_per_part = plan.groups * divide_up(plan.panels, plan.panels_per_chunk);
  return plan;
}

// Floats of one worker's scratch, and where its pieces start.
struct Scratch {
  std::int64_t planes = 0, pixels = 0, packed = 0, total = 0;
  Scratch(const Plan& plan, std::int64_t q) {
    const std::int64_t steps = plan.pixels(q);
    pixels = round_up(plan.stretch_words * plan.image_floats() + kMaxNr, 16);
    packed = pixels + round_up(steps * plan.width, 16);
    total = packed + (plan.windows ? 0 : round_up(steps * kMaxMr, 16));
  }
};

class WeightGrad {
 public:
  WeightGrad(const ConvShape& shape, const Plan& plan, const KernelSet& kernels, Math math,
             void* workspace)
      : s_(shape), plan_(plan), kernels_(kernels), math_(math), layout_(plan, shape.q) {
    table_ = static_cast<std::int32_t*>(workspace);
    sums_ = static_cast<float*>(workspace) + round_up(plan.pixels(shape.q), 16);
    scratch_ = sums_ + plan.parts * plan.part_floats();
    if (!plan.pixel_lanes) fill_table();
  }

  void run(ConvOperand x, ConvOperand dy) {
    parallel_for(plan_.parts * plan_.chunks_per_part, [&](std::int64_t chunk, int worker) {
      const std::int64_t part = chunk / plan_.chunks_per_part, rest = chunk % plan_.chunks_per_part;
      const std::int64_t per_group = plan_.chunks_per_part / plan_.groups;
      const std::int64_t group = rest / per_group,
                         panel0 = rest % per_group * plan_.panels_per_chunk;
      const std::int64_t panel1 = std::min(plan_.panels, panel0 + plan_.panels_per_chunk);
      run_part(x, dy, part, group, panel0, panel1, scratch_ + worker * layout_.total);
    });
  }

  // Adds the parts in order and turns [row][output channel] into [output channel][row].
  void combine(float* dw, const Epilogue& epilogue) {
    const std::int64_t blocks = divide_up(plan_.rows, kSumRows),
                       lines = plan_.groups * plan_.panels;
    const auto combine_block = [&](std::int64_t chunk, int worker) {
      const std::int64_t line = chunk / blocks, row = chunk % blocks * kSumRows;
      const std::int64_t rows = std::min(kSumRows, plan_.rows - row);
      const std::int64_t size = plan_.width * plan_.sum_lanes();
      float* sum = sums_ + (line * plan_.rows + row) * size;
      for (std::int64_t part = 1; part < plan_.parts; ++part) {
        kernels_.add(sum, sum + part * plan_.part_floats(), rows * size);
      }
      if (plan_.pixel_lanes) add_lanes(sum, rows * plan_.width);
      const std::int64_t first = line % plan_.panels * plan_.width, group = line / plan_.panels;
      const std::int64_t count = std::min<std::int64_t>(plan_.width, plan_.outputs - first);
      const std::int64_t k = group * plan_.outputs + first;
      float* block = dw + k * plan_.rows + row;
      kernels_.store_transposed(sum, plan_.width, static_cast<int>(rows), static_cast<int>(count),
                                block, plan_.rows);
      if (epilogue.fn != nullptr) {
        epilogue.fn(epilogue.ctx, worker, 0, k, k + count, row, row + rows, block, plan_.rows);
      }
    };
    parallel_for(lines * blocks, combine_block);
  }

 private:
  void fill_table() {
    std::int32_t* entry = table_;
    for (std::int64_t word = 0; word < plan_.stretch_words; ++word) {
      for (std::int64_t i = 0; i < plan_.band; ++i) {
        for (std::int64_t j = 0; j < s_.q; ++j) {
          *entry++ =
              static_cast<std::int32_t>(word * plan_.image_floats() + i * plan_.planes.width + j);
        }
      }
    }
  }

  // sums[i] = sum of the lanes of sums[i * lanes], in place, in order.
  void add_lanes(float* sums, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      float sum = 0;
      for (int lane = 0; lane < plan_.lanes; ++lane) sum += sums[i * plan_.lanes + lane];
      sums[i] = sum;
    }
  }

  void run_part(ConvOperand x, ConvOperand dy, std::int64_t part, std::int64_t group,
                std::int64_t panel0, std::int64_t panel1, float* scratch) {
    const std::int64_t word0 = part * plan_.words_per_part;
    const std::int64_t word1 = std::min(plan_.image_words, word0 + plan_.words_per_part);
    const std::int64_t line = plan_.rows * plan_.width * plan_.sum_lanes();
    float* part_sums = sums_ + part * plan_.part_floats() + group * plan_.panels * line;
    if (plan_.pixel_lanes) std::fill(part_sums + panel0 * line, part_sums + panel1 * line, 0.0f);
    bool first = true;
    for (std::int64_t word = word0; word < word1; word += plan_.stretch_words) {
      const std::int64_t words = std::min(plan_.stretch_words, word1 - word);
      for (std::int64_t row = 0; row < s_.p; row += plan_.band) {
        const std::int64_t rows = std::min(plan_.band, s_.p - row);
        const float* const planes = planes_of(x, word, words, group, row, scratch);
        for (std::int64_t panel = panel0; panel < panel1; ++panel) {
          float* sums = part_sums + panel * line;
          for (std::int64_t i = 0; i < words; ++i) {
            float* to = scratch + layout_.pixels + i * plan_.positions(rows, s_.q) * plan_.width;
            copy_dy(dy, word + i, group, panel, row, rows, to);
            if (plan_.pixel_lanes) multiply_dots(i, rows, panel, planes, to, sums);
          }
          if (!plan_.pixel_lanes) multiply(words, rows, panel, planes, scratch, sums, !first);
        }
        first = false;
      }
    }
  }

  // Planes that would be copied word for word are read where they are; not by vectors of pixels,
  // which may reach beyond the last one.
  const float* planes_of(ConvOperand x, std::int64_t word, std::int64_t words, std::int64_t group,
                         std::int64_t row, float* copied) {
    if (plan_.windows && !plan_.pixel_lanes && plan_.planes.whole() && row == 0 && s_.groups == 1 &&
        math_ == Math::F32 && x.dtype == DType::Float32)
      return static_cast<const float*>(x.data) + word * plan_.image_floats();
    for (std::int64_t i = 0; i < words; ++i)
      copy_image(x, word + i, group, row, copied + i * plan_.image_floats());
    // Whole vectors may read past the last plane: what is there must be finite.
    std::fill_n(copied + words * plan_.image_floats(), kMaxNr, 0.0f);
    return copied;
  }

  void copy_image(ConvOperand x, std::int64_t word, std::int64_t group, std::int64_t row,
                  float* planes) {
    const std::int64_t size = s_.h * s_.w, image = word * images_per_word(plan_);
    for (std::int64_t c = 0; c < plan_.channels; ++c) {
      PlaneSource source;
      source.dtype = x.dtype;
      source.lo = element(x.data, x.dtype, (image * s_.c + group * plan_.channels + c) * size);
      if (plan_.pairs && image + 1 < s_.n) source.hi = element(source.lo, x.dtype, s_.c * size);
      copy_plane(kernels_, plan_.planes, source, row, math_, planes + c * plan_.planes.size());
    }
  }

  int outputs_in(std::int64_t panel) const {
    return static_cast<int>(
        std::min<std::int64_t>(plan_.width, plan_.outputs - panel * plan_.width));
  }

  void copy_dy(ConvOperand dy, std::int64_t word, std::int64_t group, std::int64_t panel,
               std::int64_t row, std::int64_t rows, float* to) {
    if (plan_.pixel_lanes) {
      spread_dy(dy, word, group, panel, row, rows, to);
    } else {
      transpose_dy(dy, word, group, panel, row, rows, to);
    }
  }

  // [output channel][plane position]: rows of dy at the planes' pitch, zeros between them.
  void spread_dy(ConvOperand dy, std::int64_t word, std::int64_t group, std::int64_t panel,
                 std::int64_t row, std::int64_t rows, float* to) {
    const std::int64_t size = s_.p * s_.q, image = word * images_per_word(plan_),
                       pitch = plan_.planes.width;
    const std::int64_t positions = plan_.positions(rows, s_.q);
    for (int k = 0; k < outputs_in(panel); ++k, to += positions) {
      const std::int64_t plane = image * s_.k + group * plan_.outputs + panel * plan_.width + k;
      std::fill_n(to, positions, 0.0f);
      for (std::int64_t i = 0; i < rows; ++i) {
        const void* lo = element(dy.data, dy.dtype, plane * size + (row + i) * s_.q);
        const bool both = plan_.pairs && image + 1 < s_.n;
        const void* hi = both ? element(lo, dy.dtype, s_.k * size) : nullptr;
        kernels_.convert(lo, hi, dy.dtype, s_.q, math_, to + i * pitch);
      }
    }
  }

  void multiply_dots(std::int64_t word, std::int64_t rows, std::int64_t panel, const float* planes,
                     const float* dy, float* sums) {
    const DotFn* dots = kernels_.dot[plan_.pairs][outputs_in(panel)];
    std::int64_t taps[kMaxDotTaps];
    DotArgs args;
    args.a = dy;
    args.a_row = plan_.positions(rows, s_.q);
    args.steps = args.a_row / plan_.lanes;
    args.b = planes + word * plan_.image_floats();
    args.taps = taps;
    args.c_tap = plan_.width * plan_.lanes;
    for (std::int64_t row = 0; row < plan_.rows;) {
      const int count = static_cast<int>(std::min<std::int64_t>(kMaxDotTaps, plan_.rows - row));
      for (int i = 0; i < count; ++i) taps[i] = tap_offset(row + i);
      args.c = sums + row * args.c_tap;
      dots[count](args);
      row += count;
    }
  }

  void transpose_dy(ConvOperand dy, std::int64_t word, std::int64_t group, std::int64_t panel,
                    std::int64_t row, std::int64_t rows, float* to) {
    const std::int64_t size = s_.p * s_.q, image = word * images_per_word(plan_),
                       pixels = rows * s_.q;
    const std::int64_t first = panel * plan_.width;
    const int count = static_cast<int>(std::min<std::int64_t>(plan_.width, plan_.outputs - first));
    const bool both = plan_.pairs && image + 1 < s_.n;
    const void *lines[kMaxNr], *others[kMaxNr];
    for (int k = 0; k < count; ++k) {
      const std::int64_t plane = image * s_.k + group * plan_.outputs + first + k;
      lines[k] = element(dy.data, dy.dtype, plane * size + row * s_.q);
      if (both) others[k] = element(lines[k], dy.dtype, s_.k * size);
    }
    const RowSource source{lines, count, dy.dtype};
    if (!plan_.pairs) return kernels_.pack_transposed(source, pixels, math_, to, plan_.width);
    kernels_.zip_transposed(source, both ? others : nullptr, pixels, to, plan_.width);
  }

  // All rows of the product for one panel of output channels over one stretch. The table is made
  // for full bands: a last, shorter one only ever has a single image word, of which it is a prefix.
  void multiply(std::int64_t words, std::int64_t rows, std::int64_t panel, const float* planes,
                float* scratch, float* sums, bool accumulate) {
    const std::int64_t left = plan_.outputs - panel * plan_.width;
    const int nv = left > kernels_.lanes ? plan_.nv : 1;
    TileArgs args;
    args.steps = words * rows * s_.q;
    args.table = table_;
    args.b = scratch + layout_.pixels;
    args.b_step = plan_.width;
    args.ldc = plan_.width;
    args.cols = nv * kernels_.lanes;
    args.ld_sums = plan_.width;
    if (plan_.windows) {
      multiply_windows(args, nv, planes, sums, accumulate);
    } else {
      multiply_packed(args, nv, words, rows, scratch, sums, accumulate);
    }
  }

  void multiply_windows(TileArgs args, int nv, const float* planes, float* sums, bool accumulate) {
    const auto& tiles = kernels_.window[plan_.pairs][nv];
    // A 1 x 1 filter has no neighbouring taps: there, the window's rows are channels.
    const bool pointwise = plan_.taps == 1;
    const std::int64_t height = pointwise ? plan_.channels : s_.r;
    const Window window = choose_window(kernels_, nv, height, s_.s);
    args.a_row = pointwise ? plan_.planes.size() : s_.dil_h * plan_.planes.width;
    for (std::int64_t c = 0; c < (pointwise ? 1 : plan_.channels); ++c) {
      for (std::int64_t r = 0; r < height;) {
        const int rp = height - r >= window.rp ? window.rp : 1;
        for (std::int64_t t = 0; t < s_.s; t += window.rq) {
          const int rq = static_cast<int>(std::min<std::int64_t>(window.rq, s_.s - t));
          args.a = planes + c * plan_.planes.size() + r * args.a_row + t;
          args.c = sums + (c * plan_.taps + r * s_.s + t) * plan_.width;
          args.sums = accumulate ? args.c : nullptr;
          tiles[rp][rq](args);
        }
        r += rp;
      }
    }
  }

  // Strides and dilations: the taps of a tile are gathered into a packed panel first.
  void multiply_packed(TileArgs args, int nv, std::int64_t words, std::int64_t rows, float* scratch,
                       float* sums, bool accumulate) {
    const int most = kernels_.max_mr[nv];
    float* packed = scratch + layout_.packed;
    args.a = packed;
    for (std::int64_t row = 0; row < plan_.rows; row += most) {
      const int count = static_cast<int>(std::min<std::int64_t>(most, plan_.rows - row));
      float* to = packed;
      for (std::int64_t line = 0; line < words * rows; ++line) {
        const void* lines[kMaxMr];
        for (int i = 0; i < count; ++i)
          lines[i] = scratch + tap_offset(row + i) + table_[line * s_.q];
        kernels_.pack_transposed({lines, count, DType::Float32}, s_.q, Math::F32, to, count);
        to += s_.q * count;
      }
      args.a_step = count;
      args.c = sums + row * plan_.width;
      args.sums = accumulate ? args.c : nullptr;
      kernels_.strided[plan_.pairs][nv][count](args);
    }
  }

  std::int64_t tap_offset(std::int64_t row) const {
    const std::int64_t c = row / plan_.taps, tap = row % plan_.taps;
    return c * plan_.planes.size() +
           plan_.planes.offset(tap / s_.s * s_.dil_h - s_.pad_h, tap % s_.s * s_.dil_w - s_.pad_w);
  }

  const ConvShape& s_;
  const Plan& plan_;
  const KernelSet& kernels_;
  Math math_;
  Scratch layout_;
  std::int32_t* table_;
  float* sums_;
  float* scratch_;
};

PassAxis row_axis(const ConvShape& s) {
  return {false, s.h, s.p, s.r, s.stride_h, s.pad_h, s.dil_h};
}
PassAxis col_axis(const ConvShape& s) {
  return {false, s.w, s.q, s.s, s.stride_w, s.pad_w, s.dil_w};
}

}  // namespace

void correlate_weights(const ConvShape& shape, ConvOperand x, ConvOperand dy, float* dw, Math math,
                       const Epilogue& epilogue, void* workspace) {
  if (const KernelSet* blocks = block_weights(shape, math))
    return weights_in_blocks(shape, *blocks, x, dy, dw, epilogue, workspace);
  const KernelSet& kernels = kernel_set();
  const Plan plan = plan_weights(shape, row_axis(shape), col_axis(shape), math, kernels);
  WeightGrad pass(shape, plan, kernels, math, workspace);
  pass.run(x, dy);
  pass.combine(dw, epilogue);
}

std::size_t correlate_weights_workspace(const ConvShape& shape, Math math, int threads) {
  if (block_weights(shape, math) != nullptr) return weights_in_blocks_workspace(shape, threads);
  const Plan plan = plan_weights(shape, row_axis(shape), col_axis(shape), math, kernel_set());
  const std::int64_t floats = round_up(plan.pixels(shape.q), 16) + plan.parts * plan.part_floats() +
                              threads * Scratch(plan, shape.q).total;
  return static_cast<std::size_t>(floats) * sizeof(float);
}

}  // namespace tenon::cpu
