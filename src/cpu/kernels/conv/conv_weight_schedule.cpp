// Parts, stretches and the sum of parts of a weight gradient, for every kind of tile.
#include "cpu/kernels/conv/conv_weight_schedule.h"

#include <algorithm>

#include "base/index.h"
#include "base/thread_pool.h"
#include "device/cpu_model.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kChunksPerThread = 2;
constexpr std::int64_t kMostPartFloats = 4 * kCpu.last_floats();  // of all parts' sums together

// Scratch of a worker. When all parts are done it holds a rectangle of dw if dw is not stored.
std::int64_t scratch_floats(const WeightBody& body) {
  const SumPiece first = body.piece(0);
  return std::max(body.worker_floats(),
                  round_up((first.k1 - first.k0) * (first.col1 - first.col0), 16));
}

class Scheduler {
 public:
  Scheduler(const WeightBody& body, void* workspace)
      : body_(body), s_(body.shape()), cut_(body.cut()) {
    table_ = static_cast<std::int32_t*>(workspace);
    sums_ = static_cast<float*>(workspace) + body.table_floats();
    scratch_ = sums_ + cut_.parts * cut_.part_floats(s_.groups);
    body.fill_table(table_);
  }

  // A chunk is a run of panels of one part; a thread takes one chunk at a time. Every chunk copies
  // its planes, so there are only as many chunks as keep the threads busy. The bits do not depend
  // on their number.
  void run(ConvOperand x, ConvOperand dy) const {
    const std::int64_t whole = cut_.parts * s_.groups;
    const std::int64_t share = divide_up(kChunksPerThread * num_threads(), whole);
    const std::int64_t panels = divide_up(cut_.panels, std::min(cut_.panels, share));
    const std::int64_t per_group = divide_up(cut_.panels, panels);
    parallel_for(whole * per_group, [&](std::int64_t chunk, int worker) {
      const std::int64_t part_group = chunk / per_group, panel = chunk % per_group * panels;
      run_part(x, dy, part_group / s_.groups, part_group % s_.groups, panel,
               std::min(cut_.panels, panel + panels), scratch_ + worker * scratch_floats(body_));
    });
  }

  void combine(float* dw, const Epilogue& epilogue) const {
    const std::int64_t row = cut_.channels * s_.r * s_.s;
    const std::int64_t part_floats = cut_.part_floats(s_.groups);
    parallel_for(body_.pieces(), [&](std::int64_t index, int worker) {
      const SumPiece piece = body_.piece(index);
      float* const sums = sums_ + piece.first;
      for (std::int64_t part = 1; part < cut_.parts; ++part)
        body_.kernels().add(sums, sums + part * part_floats, piece.count);
      const bool apart = dw == nullptr;
      float* const block =
          apart ? scratch_ + worker * scratch_floats(body_) : dw + piece.k0 * row + piece.col0;
      const std::int64_t ld = apart ? piece.col1 - piece.col0 : row;
      body_.finish(piece, sums, block, ld);
      if (epilogue.fn != nullptr)
        epilogue.fn(epilogue.ctx,
                    {worker, {0, piece.k0, piece.k1, piece.col0, piece.col1}, block, ld});
    });
  }

 private:
  void run_part(ConvOperand x, ConvOperand dy, std::int64_t part, std::int64_t group,
                std::int64_t panel0, std::int64_t panel1, float* scratch) const {
    const std::int64_t word0 = part * cut_.words_per_part;
    const std::int64_t word1 = std::min(cut_.image_words, word0 + cut_.words_per_part);
    float* const sums =
        sums_ + part * cut_.part_floats(s_.groups) + group * cut_.panels * cut_.panel_floats;
    bool first = true;
    for (std::int64_t word = word0; word < word1; word += cut_.stretch_words) {
      for (std::int64_t row = 0; row < s_.p; row += cut_.band) {
        const Stretch stretch{word, std::min(cut_.stretch_words, word1 - word), group, row,
                              std::min(cut_.band, s_.p - row)};
        const float* const planes = body_.copy_x(x, stretch, scratch);
        for (std::int64_t panel = panel0; panel < panel1; ++panel)
          body_.compute(dy, stretch, panel, planes, table_, scratch,
                        sums + panel * cut_.panel_floats, !first);
        first = false;
      }
    }
  }

  const WeightBody& body_;
  const ConvShape& s_;
  const ImageCut& cut_;
  std::int32_t* table_;
  float* sums_;
  float* scratch_;
};

}  // namespace

PassAxis weight_rows(const ConvShape& s) {
  return {false, s.h, s.p, s.r, s.stride_h, s.pad_h, s.dil_h};
}

PassAxis weight_cols(const ConvShape& s) {
  return {false, s.w, s.q, s.s, s.stride_w, s.pad_w, s.dil_w};
}

std::int64_t ImageCut::part_floats(std::int64_t groups) const {
  return round_up(groups * panels * panel_floats, 16);
}

void cut_bands(const ConvShape& s, std::int64_t plane_floats, ImageCut& cut) {
  const auto planes = [&] { return planes_for(weight_rows(s), weight_cols(s), cut.band); };
  cut.band = s.p;
  while (cut.band > 4 && cut.channels * planes().size() > plane_floats)
    cut.band = divide_up(cut.band, 2);
  cut.planes = planes();
  cut.image_words = divide_up(s.n, cut.images_per_word);
}

void cut_parts(const ConvShape& s, std::int64_t plane_floats, std::int64_t most_parts,
               std::int64_t stretch_words, ImageCut& cut) {
  const std::int64_t sums = std::max<std::int64_t>(1, cut.part_floats(s.groups));
  const std::int64_t most = std::clamp<std::int64_t>(kMostPartFloats / sums, 1, most_parts);
  cut.words_per_part = divide_up(cut.image_words, std::min(most, cut.image_words));
  cut.parts = divide_up(cut.image_words, cut.words_per_part);
  if (cut.band == s.p) {
    const std::int64_t image = std::max<std::int64_t>(1, cut.image_floats());
    const std::int64_t room = std::max<std::int64_t>(1, plane_floats / image);
    cut.stretch_words = std::min({cut.words_per_part, room, stretch_words});
  }
}

void weights_with(const WeightBody& body, ConvOperand x, ConvOperand dy, float* dw,
                  const Epilogue& epilogue, void* workspace) {
  const Scheduler scheduler(body, workspace);
  scheduler.run(x, dy);
  scheduler.combine(dw, epilogue);
}

std::size_t weights_with_workspace(const WeightBody& body, int threads) {
  const ImageCut& cut = body.cut();
  const std::int64_t floats = body.table_floats() +
                              cut.parts * cut.part_floats(body.shape().groups) +
                              threads * scratch_floats(body);
  return static_cast<std::size_t>(floats) * sizeof(float);
}

}  // namespace tenon::cpu
