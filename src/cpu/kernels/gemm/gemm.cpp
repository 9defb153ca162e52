// Matrix multiplication in blocks of packed panels (Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication", 2008). The epilogue of a chunk runs while the chunk is
// in cache.
//
// a [m, k] and b [k, n] with any strides, c [m, n] row-major; c is overwritten and must not alias a
// or b. Compute-bound: float32 reaches 80 to 90 % of the multiply-add peak from 512 x 512 x 512 on
// (AVX-512, one and two threads). bfloat16 with AMX reaches 26 to 33 % of its own peak, which is
// six times float32's: its tiles wait for the L2 cache, from which every step reads four KiB.
// lab/cpu_kernels.cpp measures both.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/kernels/contract.h"
#include "cpu/kernels/gemm/gemm_plan.h"
#include "cpu/kernels/gemm/gemm_skinny.h"
#include "device/cpu_model.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kPackWords = kCpu.second_floats() / 8;  // fewest words that one chunk packs
constexpr std::int64_t kTilesWork = 1 << 16;  // multiply-adds of one chunk of small products
constexpr std::int64_t kPackPanels = 8;       // panels that one chunk packs, if there are enough
constexpr std::int64_t kPackStretch = 64;     // steps of the reduction that are packed at a time

std::int64_t batch_offset(const Operand& x, std::int64_t batch) {
  return x.batch_offsets != nullptr ? x.batch_offsets[batch] : batch * x.batch_stride;
}

struct Block {
  std::int64_t row0, rows, col0, cols, k0, k;
};

// One product: the addresses of its operands, its packed panels and its result.
class Product {
 public:
  Product(const GemmPlan& plan, const KernelSet& kernels, Math math)
      : plan_(plan), kernels_(kernels), math_(math) {}

  void set_operands(const Operand& a, const Operand& b, std::int64_t batch) {
    a_ = {element(a.data, a.dtype, batch_offset(a, batch)), a.dtype, a.row_stride, a.col_stride};
    b_ = {element(b.data, b.dtype, batch_offset(b, batch)), b.dtype, b.col_stride, b.row_stride};
    batch_ = batch;
  }

  // Limits the product to the stretch [k0, k0 + k) of the reduction.
  void set_stretch(std::int64_t k0, std::int64_t k) {
    a_.data = element(a_.data, a_.dtype, k0 * a_.k_stride);
    b_.data = element(b_.data, b_.dtype, k0 * b_.k_stride);
    k_ = k;
  }

  void set_packed(float* memory) {
    packed_a_ = memory;
    packed_b_ = memory + plan_.packed_a();
  }

  // A null result is replaced by `scratch`: one chunk per worker, or the whole result if the
  // reduction is cut.
  void set_result(float* c, std::int64_t ldc, float* scratch) {
    c_ = c != nullptr || plan_.chunk_scratch() ? c : scratch;
    ldc_ = c != nullptr ? ldc : plan_.n;
    scratch_ = scratch;
  }

  /// partial_sums() floats for every worker.
  void set_partial_sums(float* memory) { partial_ = memory; }

  void run(const Epilogue& epilogue) {
    for (std::int64_t col0 = 0; col0 < plan_.n; col0 += plan_.nb) {
      for (std::int64_t k0 = 0; k0 < k_; k0 += plan_.kb) {
        for (std::int64_t row0 = 0; row0 < plan_.m; row0 += plan_.mb) {
          const Block block = {row0, std::min(plan_.mb, plan_.m - row0),
                               col0, std::min(plan_.nb, plan_.n - col0),
                               k0,   std::min(plan_.kb, k_ - k0)};
          packed_block_ = packed_a_ + plan_.packed_a_at(row0, k0);
          pack(block, col0 == 0 || !plan_.a_kept, row0 == 0 && !plan_.b_streamed);
          compute(block, epilogue);
        }
      }
    }
  }

 private:
  bool in_place(std::int64_t cols_left) const { return plan_.b_in_place && cols_left >= plan_.nr; }

  // True if A's pairs already have the layout that a block tile reads: whole blocks of rows with an
  // even pitch, and whole blocks of the reduction.
  bool a_in_place(std::int64_t rows_left) const {
    return plan_.blocks && rows_left >= kBlockEdge && a_.dtype == DType::BFloat16 &&
           a_.k_stride == 1 && a_.line_stride % 2 == 0 && k_ % (2 * kBlockWords) == 0 &&
           plan_.kb % (2 * kBlockWords) == 0 && reinterpret_cast<std::uintptr_t>(a_.data) % 4 == 0;
  }

  void pack(const Block& block, bool with_a, bool with_b) {
    const std::int64_t words = plan_.words(block.k);
    const std::int64_t a_panels = with_a ? divide_up(block.rows, plan_.mr) : 0;
    const std::int64_t b_panels = with_b ? divide_up(block.cols, plan_.nr) : 0;
    const std::int64_t a_group = pack_group(a_panels, words * plan_.mr),
                       b_group = pack_group(b_panels, words * plan_.nr);
    const std::int64_t a_chunks = divide_up(a_panels, a_group);
    const bool small =
        words * (block.rows + (with_b && !plan_.b_in_place ? block.cols : 0)) <= kPackWords;
    const auto pack_chunk = [&](std::int64_t chunk, int) {
      if (chunk < a_chunks) {
        const std::int64_t end = std::min(a_panels, (chunk + 1) * a_group);
        for_stretches(block.k, a_, [&](std::int64_t k0, std::int64_t k) {
          for (std::int64_t panel = chunk * a_group; panel < end; ++panel)
            pack_a(block, panel, k0, k);
        });
      } else {
        const std::int64_t first = (chunk - a_chunks) * b_group;
        const std::int64_t end = std::min(b_panels, first + b_group);
        for_stretches(block.k, b_, [&](std::int64_t k0, std::int64_t k) {
          for (std::int64_t panel = first; panel < end; ++panel) pack_b(block, panel, k0, k);
        });
      }
    };
    const std::int64_t chunks = a_chunks + divide_up(b_panels, b_group);
    if (small) {
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) pack_chunk(chunk, 0);
    } else {
      parallel_for(chunks, pack_chunk);
    }
  }

  // If the source is not contiguous along the reduction, neighbouring panels are in the same pages;
  // then a stretch of all panels is packed at a time. Otherwise panels are packed one after
  // another.
  template <class F>
  static void for_stretches(std::int64_t k, const PanelSource& source, F f) {
    const std::int64_t stretch = source.k_stride == 1 ? k : kPackStretch;
    for (std::int64_t k0 = 0; k0 < k; k0 += stretch) f(k0, std::min(stretch, k - k0));
  }

  // Panels of one chunk of the packing loop.
  static std::int64_t pack_group(std::int64_t panels, std::int64_t panel_words) {
    const std::int64_t several = std::min(kPackPanels, divide_up(panels, kPackPanels));
    return std::max(several, std::max<std::int64_t>(1, kPackWords / panel_words));
  }

  // Packs the stretch [k0, k0 + k) of one panel.
  void pack_a(const Block& block, std::int64_t panel, std::int64_t k0, std::int64_t k) {
    const std::int64_t row = block.row0 + panel * plan_.mr;
    if (a_in_place(block.row0 + block.rows - row)) return;
    PanelSource source = a_;
    source.data = element(a_.data, a_.dtype, row * a_.line_stride + (block.k0 + k0) * a_.k_stride);
    const int lines =
        static_cast<int>(std::min<std::int64_t>(plan_.mr, block.row0 + block.rows - row));
    float* to = packed_block_ + panel * a_panel_size(block) + words_of(k0, plan_.pairs) * plan_.mr;
    if (plan_.blocks) return pack_block_panel(kernels_, source, lines, k, math_, to);
    pack_panel(kernels_, source, lines, k, math_, to, plan_.mr);
  }

  void pack_b(const Block& block, std::int64_t panel, std::int64_t k0, std::int64_t k) {
    const std::int64_t col = block.col0 + panel * plan_.nr, left = block.col0 + block.cols - col;
    if (in_place(left)) return;
    PanelSource source = b_;
    source.data = element(b_.data, b_.dtype, col * b_.line_stride + (block.k0 + k0) * b_.k_stride);
    const int lines = static_cast<int>(std::min<std::int64_t>(plan_.nr, left));
    float* to = packed_b_ + (plan_.b_in_place ? 0 : panel * b_panel_size(block));
    pack_panel(kernels_, source, lines, k, math_, to + words_of(k0, plan_.pairs) * plan_.nr,
               plan_.nr);
    if (k0 + k < block.k) return;
    const std::int64_t filled = words_of(block.k, plan_.pairs) * plan_.nr;
    std::fill(to + filled, to + b_panel_size(block), 0.0f);
  }

  std::int64_t a_panel_size(const Block& block) const { return plan_.words(block.k) * plan_.mr; }
  std::int64_t b_panel_size(const Block& block) const { return plan_.words(block.k) * plan_.nr; }

  void compute(const Block& block, const Epilogue& epilogue) {
    const std::int64_t a_panels = divide_up(block.rows, plan_.mr),
                       b_panels = divide_up(block.cols, plan_.nr);
    const std::int64_t chunks_m = divide_up(a_panels, plan_.chunk_m),
                       chunks_n = divide_up(b_panels, plan_.chunk_n);
    const bool final = epilogue.fn != nullptr && block.k0 + block.k == k_;
    parallel_for(chunks_m * chunks_n, [&](std::int64_t chunk, int worker) {
      const std::int64_t pa = chunk / chunks_n * plan_.chunk_m,
                         pb = chunk % chunks_n * plan_.chunk_n;
      Block part = block;
      part.row0 = block.row0 + pa * plan_.mr;
      part.rows =
          std::min(block.row0 + block.rows, part.row0 + plan_.chunk_m * plan_.mr) - part.row0;
      part.col0 = block.col0 + pb * plan_.nr;
      part.cols =
          std::min(block.col0 + block.cols, part.col0 + plan_.chunk_n * plan_.nr) - part.col0;
      float* c =
          c_ != nullptr ? c_ + part.row0 * ldc_ + part.col0 : scratch_ + worker * plan_.scratch();
      const std::int64_t ldc = c_ != nullptr ? ldc_ : part.cols;
      if (plan_.blocks) {
        compute_blocks(part, pa, pb, c, ldc);
      } else if (plan_.b_streamed) {
        compute_streamed(part, c, ldc, partial_ + worker * plan_.partial_sums());
      } else {
        compute_chunk(part, pa, pb, c, ldc, partial_ + worker * plan_.partial_sums(),
                      final ? &epilogue : nullptr);
      }
      if (final) {
        const Rectangle place = {batch_, part.row0, part.row0 + part.rows, part.col0,
                                 part.col0 + part.cols};
        epilogue.fn(epilogue.ctx, {worker, place, c, ldc});
      }
    });
  }

  // Multiplies the panels of A from pa on by the panels of B from pb on into the rectangle `part`.
  // A panel of B stays resident while A's panels pass. Between stretches of the reduction the sums
  // are kept in `partial`, tile after tile: in the result their rows may be a large power of two
  // apart and evict one another from the caches.
  void compute_chunk(const Block& part, std::int64_t pa, std::int64_t pb, float* c,
                     std::int64_t ldc, float* partial, const Epilogue* epilogue) {
    const std::int64_t words = plan_.words(part.k), tile = plan_.mr * plan_.nr;
    const std::int64_t whole = part.rows / plan_.mr, rest = part.rows % plan_.mr;
    TileArgs args;
    args.a_step = plan_.mr;
    args.a_next = a_panel_size(part);
    RowStream read[kMaxRowStreams];
    args.read = read;
    for (std::int64_t k0 = 0; k0 < words; k0 += plan_.kc) {
      args.steps = std::min(plan_.kc, words - k0);
      const bool last = k0 + args.steps == words, continued = k0 == 0 && part.k0 > 0;
      float* waiting = partial;
      for (std::int64_t j = 0; j < part.cols; j += plan_.nr) {
        const std::int64_t cols = std::min<std::int64_t>(part.cols - j, plan_.nr);
        const int needed = static_cast<int>(divide_up(cols, plan_.lanes)),
                  vectors = needed > 2 ? 4 : needed;
        const TileFn* tiles = kernels_.strided[plan_.pairs][vectors];
        args.a = packed_block_ + pa * args.a_next + k0 * plan_.mr;
        reach_b(part, pb, j, k0, args);
        fetch_ahead(part, pb, j, k0, args);
        args.c = last ? c + j : waiting;
        args.ldc = last ? ldc : plan_.nr;
        args.c_next = last ? plan_.mr * ldc : tile;
        args.cols = last || continued ? cols : vectors * plan_.lanes;
        args.sums = k0 > 0 ? waiting : continued ? c + j : nullptr;
        args.ld_sums = k0 > 0 ? plan_.nr : ldc;
        args.sums_next = k0 > 0 ? tile : plan_.mr * ldc;
        args.tiles = whole;
        if (last && epilogue != nullptr)
          args.reads = fetch_reads(*epilogue, part.row0, part.col0 + j, read);
        if (whole > 0) tiles[plan_.mr](args);
        if (rest > 0) {
          args.a += whole * args.a_next;
          args.c += whole * args.c_next;
          if (args.sums != nullptr) args.sums += whole * args.sums_next;
          args.ahead_a.pass(whole, args.steps);
          args.ahead_b.pass(whole, args.steps);
          for (int r = 0; r < args.reads; ++r) read[r].at += whole * read[r].next;
          args.tiles = 1;
          tiles[rest](args);
        }
        waiting += divide_up(part.rows, plan_.mr) * tile;
      }
    }
  }

  // Computes the rectangle `part` of all rows, with B packed stretch by stretch. While a stretch is
  // multiplied, the source of the next one is prefetched, a share with each tile.
  void compute_streamed(const Block& part, float* c, std::int64_t ldc, float* partial) {
    const std::int64_t words = plan_.words(part.k), tile = plan_.mr * plan_.nr;
    float* const panel = partial + round_up(plan_.chunk_m * tile, 16);
    const bool continued = part.k0 > 0;
    TileArgs args;
    args.a_step = plan_.mr;
    args.b = panel;
    args.b_step = plan_.nr;
    for (std::int64_t j = 0; j < part.cols; j += plan_.nr) {
      const std::int64_t cols = std::min<std::int64_t>(part.cols - j, plan_.nr);
      const int needed = static_cast<int>(divide_up(cols, plan_.lanes)),
                vectors = needed > 2 ? 4 : needed;
      for (std::int64_t k0 = 0; k0 < words; k0 += plan_.kc) {
        args.steps = std::min(plan_.kc, words - k0);
        const bool last = k0 + args.steps == words;
        pack_stretch(part, j, k0, args.steps, panel);
        Ahead ahead(*this, part, last ? j + plan_.nr : j, last ? 0 : k0 + args.steps);
        args.read = ahead.streams;
        args.cols = last || continued ? cols : vectors * plan_.lanes;
        args.ldc = last ? ldc : plan_.nr;
        args.ld_sums = k0 > 0 ? plan_.nr : ldc;
        for (std::int64_t i = 0; i < part.rows; i += plan_.mr) {
          const std::int64_t waiting = i * plan_.nr;
          args.a = packed_block_ + i / plan_.mr * a_panel_size(part) + k0 * plan_.mr;
          args.ahead_a = args.ahead_b = {reinterpret_cast<const char*>(args.a), 0, 0};
          args.c = last ? c + i * ldc + j : partial + waiting;
          args.sums = k0 > 0 ? partial + waiting : continued ? c + i * ldc + j : nullptr;
          args.reads = ahead.next_tile();
          kernels_.strided[plan_.pairs][vectors][std::min<std::int64_t>(plan_.mr, part.rows - i)](
              args);
        }
      }
    }
  }

  // Packs words [k0, k0 + words) of the panel of B at column j of `part`.
  void pack_stretch(const Block& part, std::int64_t j, std::int64_t k0, std::int64_t words,
                    float* to) const {
    const std::int64_t per_word = plan_.pairs ? 2 : 1, first = k0 * per_word;
    const std::int64_t count = std::min(words * per_word, part.k - first);
    PanelSource source = b_;
    source.data = b_at(part, j, first);
    const auto lines = std::min<std::int64_t>(plan_.nr, part.cols - j);
    pack_panel(kernels_, source, static_cast<int>(lines), count, math_, to, plan_.nr);
  }

  const void* b_at(const Block& part, std::int64_t j, std::int64_t k) const {
    return element(b_.data, b_.dtype,
                   (part.col0 + j) * b_.line_stride + (part.k0 + k) * b_.k_stride);
  }

  // The lines of B from which the next stretch, from (column, word) on, is packed. Their prefetch
  // is distributed over the tiles of the current stretch. A stream runs along a line of B and
  // fetches 128 bytes at a time.
  struct Ahead {
    Ahead(const Product& product, const Block& part, std::int64_t j, std::int64_t k0) {
      if (j >= part.cols) return;
      const GemmPlan& plan = product.plan_;
      const PanelSource& b = product.b_;
      share =
          divide_up(std::min<std::int64_t>(plan.nr, part.cols - j), divide_up(part.rows, plan.mr));
      at = static_cast<const char*>(product.b_at(part, j, k0 * (plan.pairs ? 2 : 1)));
      pitch = b.line_stride * (b.dtype == DType::Float32 ? 4 : 2);
    }

    int next_tile() {
      const int count = static_cast<int>(std::min<std::int64_t>(share, kMaxRowStreams));
      for (int i = 0; i < count; ++i) streams[i] = {at + i * pitch, 65, 128, 0};
      at += share * pitch;
      return count;
    }

    RowStream streams[kMaxRowStreams];
    const char* at = nullptr;
    std::int64_t share = 0, pitch = 0;
  };

  // The matrices that the epilogue reads under a column of tiles; returns their number.
  int fetch_reads(const Epilogue& epilogue, std::int64_t row, std::int64_t col,
                  RowStream* streams) const {
    if (batch_ > 0) return 0;
    for (int i = 0; i < epilogue.reads; ++i) {
      const EpilogueRead& read = epilogue.read[i];
      const std::byte* at = read.data + row * read.row_bytes + col * read.item_bytes;
      streams[i] = {reinterpret_cast<const char*>(at), plan_.nr * read.item_bytes, read.row_bytes,
                    plan_.mr * read.row_bytes};
    }
    return epilogue.reads;
  }

  void reach_b(const Block& part, std::int64_t pb, std::int64_t col, std::int64_t k0,
               TileArgs& args) const {
    if (in_place(part.cols - col)) {
      args.b = static_cast<const float*>(b_.data) + (part.k0 + k0) * b_.k_stride + part.col0 + col;
      args.b_step = b_.k_stride;
    } else {
      const std::int64_t panel = plan_.b_in_place ? 0 : pb + col / plan_.nr;
      args.b = packed_b_ + panel * b_panel_size(part) + k0 * plan_.nr;
      args.b_step = plan_.nr;
    }
  }

  // While A's panels pass a panel of B, the next panel of B is prefetched, a share of its bytes
  // with each panel of A. A's next stretch is prefetched too, a share with each panel of B.
  void fetch_ahead(const Block& part, std::int64_t pb, std::int64_t col, std::int64_t k0,
                   TileArgs& args) const {
    const std::int64_t a_panels = divide_up(part.rows, plan_.mr),
                       b_panels = divide_up(part.cols, plan_.nr), twos = args.steps / 2;
    const bool last = k0 + args.steps == plan_.words(part.k),
               last_col = part.cols - col <= plan_.nr;
    args.ahead_a = args.ahead_b = {reinterpret_cast<const char*>(args.b), 0, 0};
    if (!plan_.b_in_place && !(last && last_col)) {
      const float* next = last_col
                              ? packed_b_ + pb * b_panel_size(part) + (k0 + args.steps) * plan_.nr
                              : args.b + b_panel_size(part);
      args.ahead_b = {reinterpret_cast<const char*>(next), plan_.nr * 8 / a_panels, 0};
    }
    if (!last && twos > 0) {
      const std::int64_t step = plan_.mr * 8 / b_panels, share = twos * step;
      const char* next = reinterpret_cast<const char*>(args.a + args.steps * plan_.mr);
      args.ahead_a = {next + col / plan_.nr * share, step, args.a_next * 4 - share};
    }
  }

  // The same with block tiles.
  void compute_blocks(const Block& part, std::int64_t pa, std::int64_t pb, float* c,
                      std::int64_t ldc) {
    const std::int64_t words = plan_.words(part.k);
    BlockArgs args;
    args.ldc = ldc;
    args.b_row = kBlockEdge;
    args.b_step = kBlockWords * kBlockEdge;
    kernels_.block_begin(kBlockWords);
    for (std::int64_t k0 = 0; k0 < words; k0 += plan_.kc) {
      args.steps = std::min(plan_.kc, words - k0) / kBlockWords;
      args.accumulate = part.k0 + k0 > 0;
      for (std::int64_t j = 0; j < part.cols; j += kBlockEdge) {
        args.cols = static_cast<int>(std::min<std::int64_t>(kBlockEdge, part.cols - j));
        args.b = packed_b_ + (pb + j / kBlockEdge) * b_panel_size(part) + k0 * kBlockEdge;
        for (std::int64_t i = 0; i < part.rows; i += kBlockEdge) {
          args.rows = static_cast<int>(std::min<std::int64_t>(kBlockEdge, part.rows - i));
          reach_a(part, pa, i, k0, args);
          args.c = c + i * ldc + j;
          kernels_.block_tile(args);
        }
      }
    }
    kernels_.block_end();
  }

  void reach_a(const Block& part, std::int64_t pa, std::int64_t row, std::int64_t k0,
               BlockArgs& args) const {
    if (a_in_place(part.rows - row)) {
      const std::int64_t at = (part.row0 + row) * a_.line_stride + part.k0 + 2 * k0;
      args.a = static_cast<const float*>(element(a_.data, a_.dtype, at));
      args.a_row = a_.line_stride / 2;
      args.a_step = kBlockWords;
    } else {
      args.a = packed_block_ + (pa + row / kBlockEdge) * a_panel_size(part) + k0 * kBlockEdge;
      args.a_row = kBlockWords;
      args.a_step = kBlockWords * kBlockEdge;
    }
  }

  const GemmPlan& plan_;
  const KernelSet& kernels_;
  Math math_;
  PanelSource a_, b_;
  std::int64_t batch_ = 0, k_ = 0;
  float *packed_a_ = nullptr, *packed_block_ = nullptr, *packed_b_ = nullptr, *c_ = nullptr,
        *scratch_ = nullptr, *partial_ = nullptr;
  std::int64_t ldc_ = 0;
};

// k = 0: an empty sum is zero, and the epilogue must still be called.
void write_zeros(const Gemm& g) {
  parallel_for(g.shape.batch, [&](std::int64_t batch, int worker) {
    float* block = g.c != nullptr ? g.c + batch * g.c_batch_stride
                                  : static_cast<float*>(g.workspace) + worker * g.shape.n;
    const std::int64_t ld = g.c != nullptr ? g.ldc : 0;
    for (std::int64_t i = 0; i < g.shape.m; ++i) {
      std::fill(block + i * ld, block + i * ld + g.shape.n, 0.0f);
      if (g.epilogue.fn != nullptr) {
        const Rectangle place = {batch, i, i + 1, 0, g.shape.n};
        g.epilogue.fn(g.epilogue.ctx, {worker, place, block + i * ld, g.shape.n});
      }
    }
  });
}

void run_batch(const Gemm& g, const GemmPlan& plan, const Product& product, float* memory) {
  const std::int64_t packed = plan.packed_a() + plan.packed_b();
  parallel_for(g.shape.batch, [&](std::int64_t batch, int worker) {
    Product own = product;
    float* mine = memory + worker * (packed + (g.c == nullptr ? plan.scratch() : 0));
    own.set_operands(g.a, g.b, batch);
    own.set_stretch(0, g.shape.k);
    own.set_packed(mine);
    // The product's own loops run inline with this worker's index; the scratch must not be offset
    // by the index again.
    own.set_result(g.c == nullptr ? nullptr : g.c + batch * g.c_batch_stride, g.ldc,
                   mine + packed - (plan.chunk_scratch() ? worker * plan.scratch() : 0));
    own.run(g.epilogue);
  });
}

// True if each product is one column of register tiles.
bool is_few_tiles(const GemmPlan& plan) {
  return plan.cut == GemmCut::Batch && !plan.pairs && !plan.blocks &&
         plan.m <= plan.chunk_m * plan.mr && plan.n <= plan.nr &&
         plan.k <= std::min(plan.kb, plan.kc);
}

// Products of few tiles each. The loops over blocks and chunks would take longer than such a
// product.
class SmallProducts {
 public:
  SmallProducts(const Gemm& g, const GemmPlan& plan, const KernelSet& kernels)
      : g_(g), plan_(plan), kernels_(kernels), tiles_(kernels.strided[0][vectors(plan)]) {
    if (g.math != Math::F32) return;  // packing would round the operands
    by_rows_ = g.b.dtype == DType::Float32 && g.b.col_stride == 1 && g.b.row_stride >= 0;
    last_row_ = (g.shape.k - 1) * g.b.row_stride;
    end_ = batch_offset(g.b, g.shape.batch - 1) + last_row_ + g.shape.n;
    in_place_columns_ = vectors(plan) * plan.lanes;
    const bool small = g.a.dtype == DType::Float32 && g.shape.k <= std::ssize(steps_) &&
                       std::abs(g.a.col_stride) <= kLongestStep;
    if (!small || vectors(plan) > kMaxWindowVectors) return;
    window_ = kernels.window[0][vectors(plan)][kProductRows][1];
    for (std::int64_t k = 0; k < g.shape.k; ++k)
      steps_[at(k)] = static_cast<std::int32_t>(k * g.a.col_stride);
  }

  // `memory` holds packed_a(), packed_b() and scratch() floats for every worker.
  void run(float* memory) const {
    const GemmShape& shape = g_.shape;
    const std::int64_t floats = plan_.packed_a() + plan_.packed_b() + plan_.scratch();
    const std::int64_t each = std::max<std::int64_t>(1, kTilesWork / (shape.m * shape.n * shape.k));
    parallel_for(divide_up(shape.batch, each), [&](std::int64_t chunk, int worker) {
      const std::int64_t last = std::min(shape.batch, (chunk + 1) * each);
      float* const a = memory + worker * floats;
      TileArgs args;
      args.steps = shape.k;
      args.a_step = plan_.mr, args.a_row = g_.a.row_stride;
      args.table = steps_.data();
      args.cols = shape.n;
      args.ldc = g_.c != nullptr ? g_.ldc : shape.n;
      args.ahead_a = args.ahead_b = {reinterpret_cast<const char*>(a), 0, 0};
      for (std::int64_t i = chunk * each; i < last; ++i) multiply(i, worker, a, args);
    });
  }

 private:
  static std::int64_t vectors(const GemmPlan& plan) {
    const std::int64_t needed = divide_up(plan.n, plan.lanes);
    return needed > 2 ? 4 : needed;
  }

  void multiply(std::int64_t batch, int worker, float* a, TileArgs& args) const {
    const GemmShape& shape = g_.shape;
    float *const b = a + plan_.packed_a(), *const scratch = b + plan_.packed_b();
    float* const c = g_.c != nullptr ? g_.c + batch * g_.c_batch_stride : scratch;
    reach_b(batch, b, args);
    const std::int64_t from = batch_offset(g_.a, batch);
    std::int64_t row = 0;
    for (; window_ != nullptr && row + kProductRows <= shape.m; row += kProductRows) {
      args.a = static_cast<const float*>(g_.a.data) + from + row * g_.a.row_stride;
      args.c = c + row * args.ldc;
      window_(args);
    }
    args.a = a;
    for (; row < shape.m; row += plan_.mr) {
      const auto rows = static_cast<int>(std::min<std::int64_t>(plan_.mr, shape.m - row));
      pack_panel(kernels_,
                 {element(g_.a.data, g_.a.dtype, from + row * g_.a.row_stride), g_.a.dtype,
                  g_.a.row_stride, g_.a.col_stride},
                 rows, shape.k, g_.math, a, plan_.mr);
      args.c = c + row * args.ldc;
      tiles_[rows](args);
    }
    if (g_.epilogue.fn != nullptr)
      g_.epilogue.fn(g_.epilogue.ctx, {worker, {batch, 0, shape.m, 0, shape.n}, c, args.ldc});
  }

  // A row of B may be read past its end, up to the end of the last matrix: the tile stores none of
  // the columns beyond n.
  void reach_b(std::int64_t batch, float* packed, TileArgs& args) const {
    const std::int64_t offset = batch_offset(g_.b, batch);
    const void* from = element(g_.b.data, g_.b.dtype, offset);
    if (by_rows_ && offset + last_row_ + in_place_columns_ <= end_) {
      args.b = static_cast<const float*>(from), args.b_step = g_.b.row_stride;
      return;
    }
    pack_panel(kernels_, {from, g_.b.dtype, g_.b.col_stride, g_.b.row_stride},
               static_cast<int>(g_.shape.n), g_.shape.k, g_.math, packed, plan_.nr);
    args.b = packed, args.b_step = plan_.nr;
  }

  static constexpr std::int64_t kLongestStep = 1'000'000;  // 256 of them fit in 32 bits

  const Gemm& g_;
  const GemmPlan& plan_;
  const KernelSet& kernels_;
  const TileFn* const tiles_;
  TileFn window_ = nullptr;
  std::array<std::int32_t, 256> steps_{};  // from the first element of a row of A
  bool by_rows_ = false;
  std::int64_t last_row_ = 0, end_ = 0, in_place_columns_ = 0;
};

void run_split(const Gemm& g, const GemmPlan& plan, const Product& product,
               const KernelSet& kernels, float* memory) {
  const GemmShape& shape = g.shape;
  const std::int64_t packed = plan.packed_a() + plan.packed_b(), size = shape.m * shape.n;
  float* partials = memory + num_threads() * packed;
  parallel_for(plan.parts, [&](std::int64_t part, int worker) {
    Product own = product;
    own.set_operands(g.a, g.b, 0);
    own.set_stretch(part * plan.k, std::min(plan.k, shape.k - part * plan.k));
    own.set_packed(memory + worker * packed);
    own.set_result(partials + part * size, shape.n, nullptr);
    own.run({});
  });
  for (std::int64_t part = 1; part < plan.parts; ++part)
    kernels.add(partials, partials + part * size, size);
  float* block = partials;
  if (g.c != nullptr) {
    for (std::int64_t i = 0; i < shape.m; ++i)
      std::copy_n(partials + i * shape.n, shape.n, g.c + i * g.ldc);
    block = g.c;
  }
  if (g.epilogue.fn != nullptr) {
    const Rectangle place = {0, 0, shape.m, 0, shape.n};
    g.epilogue.fn(g.epilogue.ctx, {0, place, block, g.c != nullptr ? g.ldc : shape.n});
  }
}

BAlong along(const Operand& b) {
  if (b.col_stride == 1 && b.dtype == DType::Float32) return BAlong::Rows;
  return b.row_stride == 1 ? BAlong::Reduction : BAlong::Neither;
}

}  // namespace

namespace {

// A matrix times a column is computed as a row times the transposed matrix: tiles have one row or
// more and at least a vector of columns.
bool is_column(const GemmShape& shape) { return shape.n == 1 && shape.m > 1 && shape.batch == 1; }

GemmShape transposed(const GemmShape& shape) {
  GemmShape out = shape;
  std::swap(out.m, out.n);
  return out;
}
Operand transposed(const Operand& x) {
  Operand out = x;
  std::swap(out.row_stride, out.col_stride);
  return out;
}

// Passes the blocks of that row to the epilogue as blocks of the column.
void transposed_epilogue(void* context, const ResultBlock& block) {
  const Epilogue& own = *static_cast<const Epilogue*>(context);
  const Rectangle& row = block.place;
  own.fn(own.ctx, {block.worker, {row.batch, row.col0, row.col1, 0, 1}, block.data, 1});
}

void gemm_column(const Gemm& g) {
  Gemm row = g;
  row.shape = transposed(g.shape);
  row.a = transposed(g.b), row.b = transposed(g.a);
  row.ldc = row.shape.n;
  Epilogue own = g.epilogue;
  row.epilogue = {};
  if (own.fn != nullptr) row.epilogue.fn = transposed_epilogue, row.epilogue.ctx = &own;
  gemm(row);
}

}  // namespace

std::shared_ptr<const GemmPlan> prepared_gemm(const GemmShape& shape, Math math, const Operand& b) {
  if (is_column(shape)) return nullptr;  // its plan depends on the other operand
  if (shape.batch <= 0 || shape.m <= 0 || shape.n <= 0 || shape.k <= 0) return nullptr;
  return std::make_shared<GemmPlan>(plan_gemm(shape, math, gemm_kernels(shape, math), along(b)));
}

void gemm(const Gemm& g) {
  const GemmShape& shape = g.shape;
  if (shape.batch <= 0 || shape.m <= 0 || shape.n <= 0) return;
  if (shape.k <= 0) return write_zeros(g);
  if (is_column(shape) && (g.c == nullptr || g.ldc == 1)) return gemm_column(g);
  if (is_skinny(shape, g.a, g.b, g.math)) return gemm_skinny(g);
  const KernelSet& kernels = gemm_kernels(shape, g.math);
  // Another instruction set may have been chosen since the plan was made.
  std::optional<GemmPlan> own;
  if (g.prepared == nullptr || g.prepared->kernels != &kernels)
    own = plan_gemm(shape, g.math, kernels, along(g.b));
  const GemmPlan& plan = own ? *own : *g.prepared;
  Product product(plan, kernels, g.math);
  float* memory = static_cast<float*>(g.workspace);
  product.set_partial_sums(memory);
  memory += num_threads() * plan.partial_sums();
  if (is_few_tiles(plan)) return SmallProducts(g, plan, kernels).run(memory);
  if (plan.cut == GemmCut::Batch) return run_batch(g, plan, product, memory);
  if (plan.cut == GemmCut::SplitK) return run_split(g, plan, product, kernels, memory);
  product.set_packed(memory);
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    product.set_operands(g.a, g.b, batch);
    product.set_stretch(0, shape.k);
    product.set_result(g.c == nullptr ? nullptr : g.c + batch * g.c_batch_stride, g.ldc,
                       memory + plan.packed_a() + plan.packed_b());
    product.run(g.epilogue);
  }
}

namespace {

std::int64_t workspace_floats(const GemmShape& shape, const GemmPlan& plan, int threads,
                              bool c_is_null) {
  const std::int64_t packed = plan.packed_a() + plan.packed_b(),
                     scratch = c_is_null ? plan.scratch() : 0;
  const std::int64_t sums = threads * plan.partial_sums();
  switch (plan.cut) {
    case GemmCut::Batch:
      return sums + threads * (packed + (is_few_tiles(plan) ? plan.scratch() : scratch));
    case GemmCut::SplitK:
      return sums + threads * packed + plan.parts * shape.m * shape.n;
    case GemmCut::Blocks:
      break;
  }
  return sums + packed + scratch * (plan.chunk_scratch() ? threads : 1);
}

std::int64_t most_floats(const GemmShape& shape, Math math, int threads, bool c_is_null) {
  std::int64_t floats = skinny_floats(shape, math);
  // The strides of B are not known here.
  for (const BAlong b : {BAlong::Neither, BAlong::Rows, BAlong::Reduction}) {
    const GemmPlan plan = plan_gemm(shape, math, gemm_kernels(shape, math), b);
    floats = std::max(floats, workspace_floats(shape, plan, threads, c_is_null));
  }
  return floats;
}

}  // namespace

std::size_t gemm_workspace(const GemmShape& shape, Math math, int threads, bool c_is_null) {
  if (shape.batch <= 0 || shape.m <= 0 || shape.n <= 0) return 0;
  if (shape.k <= 0)
    return static_cast<std::size_t>(shape.n) * static_cast<std::size_t>(threads) * sizeof(float);
  std::int64_t floats = most_floats(shape, math, threads, c_is_null);
  if (is_column(shape))  // computed as a row, and its result may have a pitch
    floats = std::max(floats, most_floats(transposed(shape), math, threads, c_is_null));
  return static_cast<std::size_t>(floats) * sizeof(float);
}

}  // namespace tenon::cpu
