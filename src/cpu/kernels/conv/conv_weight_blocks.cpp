// The weight gradient on block tiles. Rows of A are output channels of dy, rows of B are plane
// positions of x, read in place, and columns are the words of a filter row's taps. A word holds the
// same pixel of two neighbouring images, so a tap is a shift by whole words.
//
// dy is copied with the planes' pitch, with zeros where a row of outputs ends. (These zeros are
// multiplied by elements of x: an infinity or NaN in x may reach more of the gradient than it
// should.) Bound by the L2 cache.
#include <algorithm>
#include <cstring>

#include "base/index.h"
#include "cpu/kernels/conv/conv_bodies.h"
#include "cpu/kernels/conv/conv_pixels.h"
#include "cpu/kernels/conv/conv_weight_schedule.h"
#include "device/cpu_model.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kMostParts = kCpu.many_chunks;
constexpr std::int64_t kPlaneFloats = kCpu.second_floats() / 4;
constexpr std::int64_t kPositions = 512;  // least positions of a stretch if images are small
constexpr std::int64_t kPartSteps = 32;   // least steps of a part's block tiles
constexpr std::int64_t kSumRows = 4;      // output channels finished at a time
constexpr std::int64_t kFilled = 6;       // a tile is used if 1 / kFilled of it is filled

// Taps of a filter's row that are neighbours in the planes.
std::int64_t taps_of_run(const ConvShape& s) { return s.stride_w == 1 && s.dil_w == 1 ? s.s : 1; }

class BlockWeights final : public WeightBody {
 public:
  BlockWeights(const ConvShape& shape, const KernelSet& kernels)
      : WeightBody(shape, kernels), run_(taps_of_run(shape) * cut_.channels) {
    cut_.panels = divide_up(cut_.outputs, kBlockEdge);
    cut_.panel_floats = kBlockEdge * row_length();
    cut_.images_per_word = 2;
    cut_bands(shape, kPlaneFloats, cut_);
    // Each part writes its sums once. With few steps, writing costs more than the part gains.
    const std::int64_t positions = positions_of(shape.p);
    const std::int64_t parts = std::clamp(cut_.image_words * positions / kBlockWords / kPartSteps,
                                          kMostParts / 2, kMostParts);
    cut_parts(shape, kPlaneFloats, parts, divide_up(kPositions, positions), cut_);
  }

  std::int64_t table_floats() const override {
    return round_up(steps_of(cut_.stretch_words, cut_.band), 16);
  }

  // Offsets of B's steps for full bands. A last, shorter band has a single image word and uses a
  // prefix.
  void fill_table(std::int32_t* table) const override {
    const std::int64_t steps = steps_of(1, cut_.band);
    for (std::int64_t word = 0; word < cut_.stretch_words; ++word) {
      for (std::int64_t step = 0; step < steps; ++step) {
        table[word * steps + step] = static_cast<std::int32_t>(word * cut_.image_floats() +
                                                               step * kBlockWords * cut_.channels);
      }
    }
  }

  std::int64_t worker_floats() const override {
    const std::int64_t rows = round_up(cut_.band * s_.q, 16) + kBlockWords;
    return copy_at() + std::max(round_up(pixel_scratch(cut_.planes, cut_.channels), 16), rows);
  }

  const float* copy_x(ConvOperand x, const Stretch& stretch, float* scratch) const override {
    for (std::int64_t i = 0; i < stretch.words; ++i)
      copy_image(x, stretch.word + i, stretch, scratch + i * cut_.image_floats(),
                 scratch + copy_at());
    std::fill(scratch + stretch.words * cut_.image_floats(), scratch + dy_at(), 0.0f);
    return scratch;
  }

  // One panel of output channels by all columns.
  void compute(ConvOperand dy, const Stretch& stretch, std::int64_t panel, const float* planes,
               const std::int32_t* table, float* scratch, float* sums,
               bool accumulate) const override {
    copy_dy(dy, stretch, panel, scratch + dy_at(), scratch + copy_at());
    const std::int64_t runs = s_.r * (s_.s / taps_of_run(s_));
    BlockArgs args;
    args.steps = steps_of(stretch.words, stretch.rows);
    args.a = scratch + dy_at();
    args.a_row = args.steps * kBlockWords;
    args.a_step = kBlockWords;
    args.b_table = table;
    args.b_row = cut_.channels;
    args.rows = outputs_in(panel);
    args.ldc = row_length();
    args.accumulate = accumulate;
    kernels_.block_begin(kBlockWords);
    for (std::int64_t run = 0; run < runs; ++run) {
      const float* b = planes + run_offset(run) * cut_.channels;
      for (std::int64_t col = 0; col < run_; col += kBlockEdge) {
        args.cols = static_cast<int>(std::min<std::int64_t>(kBlockEdge, run_ - col));
        args.b = b + col;
        args.c = sums + run * run_ + col;
        kernels_.block_tile(args);
      }
    }
    kernels_.block_end();
  }

  std::int64_t pieces() const override { return s_.groups * divide_up(cut_.outputs, kSumRows); }

  SumPiece piece(std::int64_t index) const override {
    const std::int64_t blocks = divide_up(cut_.outputs, kSumRows), row = index % blocks * kSumRows;
    const std::int64_t group = index / blocks, rows = std::min(kSumRows, cut_.outputs - row);
    const std::int64_t k = group * cut_.outputs + row;
    return {(group * cut_.panels * kBlockEdge + row) * row_length(),
            rows * row_length(),
            k,
            k + rows,
            0,
            row_length()};
  }

  // Permutes [tap][channel] of each output channel to [channel][tap].
  void finish(const SumPiece& piece, float* sums, float* block, std::int64_t ld) const override {
    const int taps = static_cast<int>(s_.r * s_.s);
    for (std::int64_t i = 0; i < piece.k1 - piece.k0; ++i)
      transpose(sums + i * row_length(), taps, block + i * ld);
  }

 private:
  std::int64_t positions_of(std::int64_t rows) const {
    return round_up((rows - 1) * cut_.planes.width + s_.q, kBlockWords);
  }
  std::int64_t steps_of(std::int64_t words, std::int64_t rows) const {
    return words * positions_of(rows) / kBlockWords;
  }
  // The starts of the pieces of a worker's scratch, behind the planes. A step may read a whole step
  // of positions, and a tile a whole tile of columns, beyond the last.
  std::int64_t dy_at() const {
    return round_up(
        cut_.stretch_words * cut_.image_floats() + kBlockWords * cut_.channels + 2 * kBlockEdge,
        16);
  }
  // Rows of dy are copied in whole vectors, so a copy writes beyond the end of its row and reads
  // beyond the end of its source.
  std::int64_t copy_at() const {
    return dy_at() + round_up(cut_.stretch_words * positions_of(cut_.band) * kBlockEdge +
                                  cut_.planes.width + kBlockWords,
                              16);
  }

  // The kernel reads whole vectors of a row, so the last channels are copied first.
  void transpose(const float* sums, int taps, float* dst) const {
    const std::int64_t channels = cut_.channels, lanes = kernels_.lanes;
    const std::int64_t whole = channels / lanes * lanes;
    kernels_.store_transposed(sums, channels, taps, static_cast<int>(whole), dst, taps);
    for (std::int64_t c = whole; c < channels; ++c) {
      for (int tap = 0; tap < taps; ++tap) dst[c * taps + tap] = sums[tap * channels + c];
    }
  }

  void copy_image(ConvOperand x, std::int64_t word, const Stretch& stretch, float* planes,
                  float* copy) const {
    const std::int64_t size = s_.h * s_.w;
    PixelSource source;
    source.first =
        element(x.data, x.dtype, (2 * word * s_.c + stretch.group * cut_.channels) * size);
    source.dtype = x.dtype;
    source.words = cut_.channels;
    source.pairs = 2 * word + 1 < s_.n ? cut_.channels : 0;
    source.step = size;
    source.other = s_.c * size;
    copy_pixels(kernels_, cut_.planes, source, stretch.row, planes, copy);
  }

  // [output channel][image word][plane position]; output channels beyond the last are not written.
  void copy_dy(ConvOperand dy, const Stretch& stretch, std::int64_t panel, float* to,
               float* copy) const {
    const std::int64_t size = s_.p * s_.q, positions = positions_of(stretch.rows);
    for (int k = 0; k < outputs_in(panel); ++k) {
      for (std::int64_t word = stretch.word; word < stretch.word + stretch.words;
           ++word, to += positions) {
        const std::int64_t plane =
            2 * word * s_.k + stretch.group * cut_.outputs + panel * kBlockEdge + k;
        const void* lo = element(dy.data, dy.dtype, plane * size + stretch.row * s_.q);
        const bool both = 2 * word + 1 < s_.n;
        const void* hi = both ? element(lo, dy.dtype, s_.k * size) : nullptr;
        kernels_.convert(lo, hi, dy.dtype, stretch.rows * s_.q, Math::Bf16, copy);
        spread(copy, stretch.rows, positions, to);
      }
    }
  }

  // Spreads rows of q words to the planes' pitch. Copies whole vectors, each row over the end of
  // the one before.
  void spread(const float* from, std::int64_t rows, std::int64_t positions, float* to) const {
    const std::int64_t q = s_.q, pitch = cut_.planes.width;
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
    return static_cast<int>(std::min<std::int64_t>(kBlockEdge, cut_.outputs - panel * kBlockEdge));
  }

  // The offset of the first tap of a run, in pixels.
  std::int64_t run_offset(std::int64_t run) const {
    const std::int64_t taps = taps_of_run(s_), per_row = s_.s / taps;
    return cut_.planes.offset(run / per_row * s_.dil_h - s_.pad_h,
                              run % per_row * taps * s_.dil_w - s_.pad_w);
  }

  const std::int64_t run_;  // columns of one run of taps
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
  weights_with(BlockWeights(shape, kernels), x, dy, dw, epilogue, workspace);
}

std::size_t weights_in_blocks_workspace(const ConvShape& shape, const KernelSet& kernels,
                                        int threads) {
  return weights_with_workspace(BlockWeights(shape, kernels), threads);
}

}  // namespace tenon::cpu
