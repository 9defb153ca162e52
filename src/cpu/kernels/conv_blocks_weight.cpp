// The weight gradient on block tiles: rows of A are output channels of dy, rows of B are plane
// positions of x, read in place, and columns are the words of a filter row's taps. A word holds the
// same pixel of two neighbouring images, so that a tap is a shift by whole words.
//
// dy is copied in the planes' own pitch, with zeros where a row of outputs ends. (A zero of dy
// meets whatever x is there: an infinity or NaN in x may reach more of the gradient than it
// should.) Images are cut into a fixed number of parts, whose sums are added in order. Bound by the
// second-level cache.
#include <algorithm>
#include <cstring>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/kernels/conv_blocks.h"
#include "cpu/kernels/conv_pixels.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kManyChunks = 16;
constexpr std::int64_t kMostPartFloats = std::int64_t{1} << 22;  // of all parts' sums together
constexpr std::int64_t kPlaneFloats = std::int64_t{1} << 16;     // of copied x, where it can be cut
constexpr std::int64_t kPositions = 512;  // of one stretch, at least, where images are small
constexpr std::int64_t kPartSteps = 32;   // of one part's block tiles, at least
constexpr std::int64_t kSumRows = 4;      // output channels finished at a time
constexpr std::int64_t kFilled = 6;       // one part in so many of a tile is enough

PassAxis row_axis(const ConvShape& s) {
  return {false, s.h, s.p, s.r, s.stride_h, s.pad_h, s.dil_h};
}
PassAxis col_axis(const ConvShape& s) {
  return {false, s.w, s.q, s.s, s.stride_w, s.pad_w, s.dil_w};
}

// Taps of a filter's row that are neighbours in the planes.
std::int64_t taps_of_run(const ConvShape& s) { return s.stride_w == 1 && s.dil_w == 1 ? s.s : 1; }

// A stretch is what is copied at once: some image words, or a band of rows of one.
struct Plan {
  std::int64_t channels = 0, outputs = 0, panels = 0;  // of one group
  std::int64_t run = 0;                                // columns of one run of taps
  std::int64_t cols = 0;                               // of all: taps * channels
  Planes planes;
  std::int64_t band = 0, stretch_words = 1;
  std::int64_t image_words = 0, parts = 0, words_per_part = 0;
  std::int64_t panels_per_chunk = 0, chunks_per_part = 0;

  std::int64_t image_floats() const { return channels * planes.size(); }
  std::int64_t positions(std::int64_t rows, std::int64_t q) const {
    return round_up((rows - 1) * planes.width + q, kBlockWords);
  }
  std::int64_t part_floats(std::int64_t groups) const {
    return round_up(groups * panels * kBlockEdge * cols, 16);
  }
};

struct Scratch {
  std::int64_t dy = 0, copy = 0, total = 0;
  Scratch(const Plan& plan, std::int64_t q) {
    // A step may read a whole step's positions and a tile's columns beyond the last plane.
    dy = round_up(
        plan.stretch_words * plan.image_floats() + kBlockWords * plan.channels + 2 * kBlockEdge,
        16);
    // Rows of dy are copied in whole vectors: over their end, and from beyond the end of the copy.
    copy = dy + round_up(plan.stretch_words * plan.positions(plan.band, q) * kBlockEdge +
                             plan.planes.width + kBlockWords,
                         16);
    const std::int64_t rows = round_up(plan.band * q, 16) + kBlockWords;
    total = copy + std::max(round_up(pixel_scratch(plan.planes, plan.channels), 16), rows);
  }
};

Plan plan_weights(const ConvShape& s) {
  Plan plan;
  plan.channels = s.c / s.groups;
  plan.outputs = s.k / s.groups;
  plan.panels = divide_up(plan.outputs, kBlockEdge);
  plan.run = taps_of_run(s) * plan.channels;
  plan.cols = s.r * s.s * plan.channels;
  const auto planes = [&] { return planes_for(row_axis(s), col_axis(s), plan.band); };
  plan.band = s.p;
  while (plan.band > 4 && plan.channels * planes().size() > kPlaneFloats)
    plan.band = divide_up(plan.band, 2);
  plan.planes = planes();
  plan.image_words = divide_up(s.n, 2);
  const std::int64_t sums = plan.part_floats(s.groups);
  // A part's sums are written once, which few steps do not pay for.
  const std::int64_t steps = plan.image_words * plan.positions(s.p, s.q) / kBlockWords;
  const std::int64_t parts = std::clamp(steps / kPartSteps, kManyChunks / 2, kManyChunks);
  const std::int64_t most = std::clamp<std::int64_t>(kMostPartFloats / sums, 1, parts);
  plan.words_per_part = divide_up(plan.image_words, std::min(most, plan.image_words));
  plan.parts = divide_up(plan.image_words, plan.words_per_part);
  if (plan.band == s.p) {
    const std::int64_t room = std::max<std::int64_t>(1, kPlaneFloats / plan.image_floats());
    plan.stretch_words =
        std::min({plan.words_per_part, room, divide_up(kPositions, plan.positions(s.p, s.q))});
  }
  // Where there are too few parts, panels of output channels are shared out too, and planes are
  // copied for each.
  const std::int64_t share = divide_up(parts, plan.parts * s.groups);
  plan.panels_per_chunk = divide_up(plan.panels, std::min(plan.panels, share));
  plan.chunks_per_part = s.groups * divide_up(plan.panels, plan.panels_per_chunk);
  return plan;
}

class BlockWeights {
 public:
  BlockWeights(const ConvShape& shape, const Plan& plan, const KernelSet& kernels, void* workspace)
      : s_(shape), plan_(plan), kernels_(kernels), layout_(plan, shape.q) {
    table_ = static_cast<std::int32_t*>(workspace);
    sums_ = static_cast<float*>(workspace) + round_up(steps_of(plan.stretch_words, plan.band), 16);
    scratch_ = sums_ + plan.parts * plan.part_floats(shape.groups);
    fill_table();
  }

  void run(ConvOperand x, ConvOperand dy) {
    parallel_for(plan_.parts * plan_.chunks_per_part, [&](std::int64_t chunk, int worker) {
      const std::int64_t part = chunk / plan_.chunks_per_part, rest = chunk % plan_.chunks_per_part;
      const std::int64_t per_group = plan_.chunks_per_part / s_.groups;
      const std::int64_t panel = rest % per_group * plan_.panels_per_chunk;
      run_part(x, dy, part, rest / per_group, panel, scratch_ + worker * layout_.total);
    });
  }

  // Adds the parts in order and turns [tap][channel] of each output channel into [channel][tap].
  void combine(float* dw, const Epilogue& epilogue) {
    const std::int64_t blocks = divide_up(plan_.outputs, kSumRows);
    const int taps = static_cast<int>(s_.r * s_.s);
    parallel_for(s_.groups * blocks, [&](std::int64_t chunk, int worker) {
      const std::int64_t group = chunk / blocks, row = chunk % blocks * kSumRows;
      const std::int64_t rows = std::min(kSumRows, plan_.outputs - row);
      float* sum = sums_ + (group * plan_.panels * kBlockEdge + row) * plan_.cols;
      for (std::int64_t part = 1; part < plan_.parts; ++part)
        kernels_.add(sum, sum + part * plan_.part_floats(s_.groups), rows * plan_.cols);
      const std::int64_t k = group * plan_.outputs + row;
      float* block = dw + k * plan_.cols;
      for (std::int64_t i = 0; i < rows; ++i)
        transpose(sum + i * plan_.cols, taps, block + i * plan_.cols);
      if (epilogue.fn != nullptr)
        epilogue.fn(epilogue.ctx, worker, 0, k, k + rows, 0, plan_.cols, block, plan_.cols);
    });
  }

 private:
  std::int64_t steps_of(std::int64_t words, std::int64_t rows) const {
    return words * plan_.positions(rows, s_.q) / kBlockWords;
  }

  // Offsets of B's steps for full bands; a last, shorter one only ever has a single image word, of
  // which it is a prefix.
  void fill_table() {
    const std::int64_t steps = steps_of(1, plan_.band);
    for (std::int64_t word = 0; word < plan_.stretch_words; ++word) {
      for (std::int64_t step = 0; step < steps; ++step) {
        table_[word * steps + step] = static_cast<std::int32_t>(
            word * plan_.image_floats() + step * kBlockWords * plan_.channels);
      }
    }
  }

  // The kernel reads whole vectors of a row, so the last channels go through a copy.
  void transpose(const float* sums, int taps, float* dst) const {
    const std::int64_t channels = plan_.channels, lanes = kernels_.lanes;
    const std::int64_t whole = channels / lanes * lanes;
    kernels_.store_transposed(sums, channels, taps, static_cast<int>(whole), dst, taps);
    for (std::int64_t c = whole; c < channels; ++c) {
      for (int tap = 0; tap < taps; ++tap) dst[c * taps + tap] = sums[tap * channels + c];
    }
  }

  void run_part(ConvOperand x, ConvOperand dy, std::int64_t part, std::int64_t group,
                std::int64_t panel0, float* scratch) {
    const std::int64_t panel1 = std::min(plan_.panels, panel0 + plan_.panels_per_chunk);
    const std::int64_t word0 = part * plan_.words_per_part;
    const std::int64_t word1 = std::min(plan_.image_words, word0 + plan_.words_per_part);
    float* sums = sums_ + part * plan_.part_floats(s_.groups) +
                  group * plan_.panels * kBlockEdge * plan_.cols;
    bool first = true;
    for (std::int64_t word = word0; word < word1; word += plan_.stretch_words) {
      const std::int64_t words = std::min(plan_.stretch_words, word1 - word);
      for (std::int64_t row = 0; row < s_.p; row += plan_.band) {
        const std::int64_t rows = std::min(plan_.band, s_.p - row);
        for (std::int64_t i = 0; i < words; ++i)
          copy_image(x, word + i, group, row, scratch + i * plan_.image_floats(),
                     scratch + layout_.copy);
        const std::int64_t end = words * plan_.image_floats();
        std::fill(scratch + end, scratch + layout_.dy, 0.0f);
        for (std::int64_t panel = panel0; panel < panel1; ++panel) {
          copy_dy(dy, word, words, group, panel, row, rows, scratch + layout_.dy,
                  scratch + layout_.copy);
          multiply(words, rows, panel, scratch, sums, !first);
        }
        first = false;
      }
    }
  }

  void copy_image(ConvOperand x, std::int64_t word, std::int64_t group, std::int64_t row,
                  float* planes, float* copy) {
    const std::int64_t size = s_.h * s_.w;
    PixelSource source;
    source.first = element(x.data, x.dtype, (2 * word * s_.c + group * plan_.channels) * size);
    source.dtype = x.dtype;
    source.words = plan_.channels;
    source.pairs = 2 * word + 1 < s_.n ? plan_.channels : 0;
    source.step = size;
    source.other = s_.c * size;
    copy_pixels(kernels_, plan_.planes, source, row, planes, copy);
  }

  // [output channel][image word][plane position]; output channels beyond the last are not written.
  void copy_dy(ConvOperand dy, std::int64_t word0, std::int64_t words, std::int64_t group,
               std::int64_t panel, std::int64_t row, std::int64_t rows, float* to, float* copy) {
    const std::int64_t size = s_.p * s_.q, positions = plan_.positions(rows, s_.q);
    for (int k = 0; k < outputs_in(panel); ++k) {
      for (std::int64_t word = word0; word < word0 + words; ++word, to += positions) {
        const std::int64_t plane = 2 * word * s_.k + group * plan_.outputs + panel * kBlockEdge + k;
        const void* lo = element(dy.data, dy.dtype, plane * size + row * s_.q);
        const bool both = 2 * word + 1 < s_.n;
        const void* hi = both ? element(lo, dy.dtype, s_.k * size) : nullptr;
        kernels_.convert(lo, hi, dy.dtype, rows * s_.q, Math::Bf16, copy);
        spread(copy, rows, positions, to);
      }
    }
  }

  // Rows of q words to the planes' pitch. Whole vectors are copied, each row over the end of the
  // one before.
  void spread(const float* from, std::int64_t rows, std::int64_t positions, float* to) const {
    const std::int64_t q = s_.q, pitch = plan_.planes.width;
    for (std::int64_t i = 0; i < rows; ++i) {
      float* row = to + i * pitch;
      for (std::int64_t j = 0; j < q; j += kBlockWords)
        std::memcpy(row + j, from + i * q + j, kBlockWords * sizeof(float));
      for (std::int64_t j = q; j < pitch; ++j) row[j] = 0.0f;
    }
    const std::int64_t end = (rows - 1) * pitch + q;
    std::fill(to + end, to + positions, 0.0f);
  }

  int outputs_in(std::int64_t panel) const {
    return static_cast<int>(std::min<std::int64_t>(kBlockEdge, plan_.outputs - panel * kBlockEdge));
  }

  // One panel of output channels by all columns over one stretch.
  void multiply(std::int64_t words, std::int64_t rows, std::int64_t panel, const float* scratch,
                float* sums, bool accumulate) {
    const std::int64_t runs = s_.r * (s_.s / taps_of_run(s_));
    BlockArgs args;
    args.steps = steps_of(words, rows);
    args.a = scratch + layout_.dy;
    args.a_row = args.steps * kBlockWords;
    args.a_step = kBlockWords;
    args.b_table = table_;
    args.b_row = plan_.channels;
    args.rows = outputs_in(panel);
    args.ldc = plan_.cols;
    args.accumulate = accumulate;
    kernels_.block_begin(kBlockWords);
    for (std::int64_t run = 0; run < runs; ++run) {
      const float* b = scratch + run_offset(run) * plan_.channels;
      for (std::int64_t col = 0; col < plan_.run; col += kBlockEdge) {
        args.cols = static_cast<int>(std::min<std::int64_t>(kBlockEdge, plan_.run - col));
        args.b = b + col;
        args.c = sums + panel * kBlockEdge * plan_.cols + run * plan_.run + col;
        kernels_.block_tile(args);
      }
    }
    kernels_.block_end();
  }

  // Of the first tap of a run, in pixels.
  std::int64_t run_offset(std::int64_t run) const {
    const std::int64_t taps = taps_of_run(s_), per_row = s_.s / taps;
    return plan_.planes.offset(run / per_row * s_.dil_h - s_.pad_h,
                               run % per_row * taps * s_.dil_w - s_.pad_w);
  }

  const ConvShape& s_;
  const Plan& plan_;
  const KernelSet& kernels_;
  Scratch layout_;
  std::int32_t* table_;
  float* sums_;
  float* scratch_;
};

}  // namespace

const KernelSet* block_weights(const ConvShape& s, Math math) {
  const KernelSet* kernels = math == Math::Bf16 ? block_kernel_set() : nullptr;
  const std::int64_t channels = s.c / s.groups, outputs = s.k / s.groups;
  if (kernels == nullptr || channels > kMaxPixelWords) return nullptr;
  const std::int64_t run = taps_of_run(s) * channels;
  const std::int64_t places = round_up(run, kBlockHalf) * round_up(outputs, kBlockHalf);
  return kFilled * run * outputs >= places ? kernels : nullptr;
}

void weights_in_blocks(const ConvShape& shape, const KernelSet& kernels, ConvOperand x,
                       ConvOperand dy, float* dw, const Epilogue& epilogue, void* workspace) {
  const Plan plan = plan_weights(shape);
  BlockWeights pass(shape, plan, kernels, workspace);
  pass.run(x, dy);
  pass.combine(dw, epilogue);
}

std::size_t weights_in_blocks_workspace(const ConvShape& shape, int threads) {
  const Plan plan = plan_weights(shape);
  const std::int64_t steps = plan.stretch_words * plan.positions(plan.band, shape.q) / kBlockWords;
  const std::int64_t floats = round_up(steps, 16) + plan.parts * plan.part_floats(shape.groups) +
                              threads * Scratch(plan, shape.q).total;
  return static_cast<std::size_t>(floats) * sizeof(float);
}

}  // namespace tenon::cpu
