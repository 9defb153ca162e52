// Attention in tiles (Dao et al., "FlashAttention", 2022). A block of queries loops over blocks of
// keys. When a larger score appears, the sums so far are rescaled (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018). The backward pass recomputes the weights from the
// log-sum-exps.
//
// Products run on the register tiles of gemm_tile.h over packed panels, all other work on the loops
// of tile_table.h. Forward, a unit of work is a few blocks of queries of one head. Backward, a unit
// is one head of the keys with all query heads that share it, so no two threads add to one
// gradient. Results are overwritten and do not depend on the number of threads.
//
// Compute-bound: per score, 4 * size operations forward, 10 * size backward, and one exponential.
#include "cpu/kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/kernels/gemm/gemm_pack.h"
#include "cpu/kernels/tile/tile_table.h"
#include "device/cpu_model.h"

namespace tenon::cpu {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kQueryRows = 60;  // most queries of a block; whole register tiles
constexpr std::int64_t kKeyRows = 128;   // most keys of a block
constexpr std::int64_t kUnitBlocks = 4;  // blocks of queries in a unit of the forward pass
constexpr std::int64_t kLineFloats = kCpu.line_floats();  // parts of the workspace begin on lines

// Sizes of the register tiles for one attention.
struct Tiles {
  const KernelSet& kernels = kernel_set();
  Math math = Math::F32;
  bool pairs = false;
  int nv = 2, mr = 1, nr = 1;
  std::int64_t block_q = 0, block_k = 0;

  explicit Tiles(const AttentionShape& s)
      : math(s.math), pairs(s.math == Math::Bf16 && kernels.pairs) {
    mr = kernels.max_mr[nv];
    nr = nv * kernels.lanes;
    block_q = std::min(round_up(s.queries, mr), kQueryRows / mr * mr);
    block_k = std::min(round_up(s.keys, nr), kKeyRows);
  }
  std::int64_t words(std::int64_t k) const { return words_of(k, pairs); }
  std::int64_t a_floats(std::int64_t lines, std::int64_t k) const {
    return round_up(lines, mr) * words(k);
  }
  std::int64_t b_floats(std::int64_t lines, std::int64_t k) const {
    return round_up(lines, nr) * words(k);
  }

  void pack(const PanelSource& source, std::int64_t lines, std::int64_t k, int width,
            float* to) const {
    for (std::int64_t line = 0; line < lines; line += width) {
      PanelSource panel = source;
      panel.data = element(source.data, source.dtype, line * source.line_stride);
      pack_panel(kernels, panel, static_cast<int>(std::min<std::int64_t>(width, lines - line)), k,
                 math, to, width);
      to += width * words(k);
    }
  }
  void pack_a(const PanelSource& source, std::int64_t lines, std::int64_t k, float* to) const {
    pack(source, lines, k, mr, to);
  }
  void pack_b(const PanelSource& source, std::int64_t lines, std::int64_t k, float* to) const {
    pack(source, lines, k, nr, to);
  }

  // c = a b or c += a b over k; c is m (rounded up to whole tiles) x n, its rows n apart.
  void multiply(const float* a, const float* b, std::int64_t m, std::int64_t n, std::int64_t k,
                float* c, bool adds) const {
    TileArgs t;
    t.steps = words(k);
    t.a = a;
    t.a_step = mr;
    t.b_step = nr;
    t.ldc = t.ld_sums = n;
    t.tiles = divide_up(m, mr);
    t.a_next = mr * t.steps;
    t.c_next = t.sums_next = mr * n;
    const TileFn tile = kernels.strided[pairs][nv][mr];
    for (std::int64_t j = 0; j < n; j += nr) {
      t.b = b + j * t.steps;
      t.c = c + j;
      t.sums = adds ? t.c : nullptr;
      t.cols = std::min<std::int64_t>(nr, n - j);
      tile(t);
    }
  }
};

// Loops over whole tiles.
class Loops {
 public:
  void apply(Op op, std::int64_t n, float* x, const float* y) const {
    table_.op[static_cast<int>(op)][kFloat](n, x, x, y, nullptr);
  }
  void apply(Op op, std::int64_t n, float* x, float y) const {
    table_.op_vs[static_cast<int>(op)][kFloat](n, x, x, &y, nullptr);
  }
  void exponentials(std::int64_t n, float* x) const {
    table_.op[static_cast<int>(Op::Exp)][kFloat](n, x, x, nullptr, nullptr);
  }
  // The rounding error of each number when it is rounded to bfloat16.
  void residues(std::int64_t n, float* left, const float* x) const {
    constexpr std::int64_t kPart = 1024;
    bfloat16 rounded[kPart];
    auto* const bytes = reinterpret_cast<std::byte*>(rounded);
    for (std::int64_t at = 0; at < n; at += kPart) {
      const std::int64_t count = std::min(kPart, n - at);
      store(DType::BFloat16, 1, count, bytes, x + at, count);
      load(DType::BFloat16, 1, count, left + at, bytes, count, 1);
      table_.op[static_cast<int>(Op::Sub)][kFloat](count, left + at, x + at, left + at, nullptr);
    }
  }
  void reduce_rows(Op op, std::int64_t rows, std::int64_t cols, double* out, const float* x) const {
    double neutral = 0;
    if (op == Op::Max) neutral = -std::numeric_limits<double>::infinity();
    std::fill_n(out, rows, neutral);
    table_.row[static_cast<int>(op)][kFloat](rows, cols, out, 1, x);
  }
  void load(DType dtype, std::int64_t rows, std::int64_t cols, void* to, const std::byte* from,
            std::int64_t row_stride, std::int64_t stride) const {
    table_.load[static_cast<int>(dtype)](rows, cols, to, from, row_stride, stride);
  }
  void store(DType dtype, std::int64_t rows, std::int64_t cols, std::byte* to, const float* from,
             std::int64_t row_stride) const {
    table_.store[static_cast<int>(dtype)](rows, cols, to, from, row_stride, 1);
  }

 private:
  static constexpr int kFloat = static_cast<int>(TileType::F32);
  const TileTable& table_ = tile_table();
};

// Rows of one head.
struct HeadRows {
  const std::byte* data = nullptr;
  DType dtype = DType::Float32;
  std::int64_t row = 0, step = 0;

  HeadRows(const AttentionOperand& x, std::int64_t b, std::int64_t h)
      : data(x.data +
             (b * x.stride[0] + h * x.stride[2]) * static_cast<std::int64_t>(item_size(x.dtype))),
        dtype(x.dtype),
        row(x.stride[1]),
        step(x.stride[3]) {}
  const std::byte* at(std::int64_t i) const {
    return data + i * row * static_cast<std::int64_t>(item_size(dtype));
  }
  /// Lines are rows and the reduction runs along them; or the reverse.
  PanelSource lines(std::int64_t i) const { return {at(i), dtype, row, step}; }
  PanelSource steps(std::int64_t i) const { return {at(i), dtype, step, row}; }
};

struct TileSpan {
  std::int64_t q0 = 0, rows = 0, k0 = 0, cols = 0;
};

// Consecutive parts of one worker's memory.
class Cuts {
 public:
  explicit Cuts(float* memory) : memory_(memory) {}  // null: only the size is measured
  float* floats(std::int64_t count) {
    const std::int64_t at = std::exchange(taken_, taken_ + round_up(count, kLineFloats));
    return memory_ == nullptr ? nullptr : memory_ + at;
  }
  double* doubles(std::int64_t count) { return reinterpret_cast<double*>(floats(2 * count)); }
  std::int64_t taken() const { return taken_; }

 private:
  float* const memory_;
  std::int64_t taken_ = 0;
};

// Used forward and backward: computes the scores of a tile, scaled and masked.
class Attention {
 protected:
  Attention(const AttentionShape& shape, const AttentionInputs& in)
      : s_(shape), in_(in), t_(shape) {}

  bool is_hidden(const TileSpan& tile) const {
    return s_.causal && tile.k0 > tile.q0 + tile.rows - 1;
  }

  void mask(const TileSpan& tile, std::int64_t b, std::int64_t h, float* scores,
            float* spare) const {
    if (in_.mask.data != nullptr) {
      const AttentionOperand& m = in_.mask;
      const std::int64_t first =
          b * m.stride[0] + h * m.stride[1] + tile.q0 * m.stride[2] + tile.k0 * m.stride[3];
      loops_.load(m.dtype, tile.rows, tile.cols, spare,
                  m.data + first * static_cast<std::int64_t>(item_size(m.dtype)), m.stride[2],
                  m.stride[3]);
      if (m.dtype == DType::Bool) {
        const auto* seen = reinterpret_cast<const std::int32_t*>(spare);
        for (std::int64_t i = 0; i < tile.rows * tile.cols; ++i)
          if (seen[i] == 0) scores[i] = kHidden;
      } else {
        loops_.apply(Op::Add, tile.rows * tile.cols, scores, spare);
      }
    }
    if (!s_.causal || tile.k0 + tile.cols - 1 <= tile.q0) return;
    for (std::int64_t i = 0; i < tile.rows; ++i)
      for (std::int64_t j = std::max<std::int64_t>(tile.q0 + i + 1 - tile.k0, 0); j < tile.cols;
           ++j)
        scores[i * tile.cols + j] = kHidden;
  }

  void scores(const TileSpan& tile, std::int64_t b, std::int64_t h, const float* q, const float* k,
              float* out, float* spare) const {
    t_.multiply(q, k, tile.rows, tile.cols, s_.size, out, false);
    loops_.apply(Op::Mul, tile.rows * tile.cols, out, s_.scale);
    mask(tile, b, h, out, spare);
  }

  void subtract_rows(const TileSpan& tile, float* x, const float* shift) const {
    for (std::int64_t i = 0; i < tile.rows; ++i)
      loops_.apply(Op::Sub, tile.cols, x + i * tile.cols, shift[i]);
  }

  // c = a b or c += a b (lines x n) over k, where a holds weights or score gradients. For 16-bit
  // operands their rounding error is multiplied too.
  struct TileProduct {
    PanelSource a;
    std::int64_t lines = 0, n = 0, k = 0;
    const float* b = nullptr;
    float* c = nullptr;
    bool adds = true;
  };
  void multiply(const TileProduct& p, float* panel, float* spare) const {
    t_.pack_a(p.a, p.lines, p.k, panel);
    t_.multiply(panel, p.b, p.lines, p.n, p.k, p.c, p.adds);
    if (!s_.is_16_bit || s_.math != Math::Bf16) return;
    loops_.residues(p.lines * p.k, spare, static_cast<const float*>(p.a.data));
    PanelSource rest = p.a;
    rest.data = spare;
    t_.pack_a(rest, p.lines, p.k, panel);
    t_.multiply(panel, p.b, p.lines, p.n, p.k, p.c, true);
  }

  std::int64_t group() const { return s_.heads / s_.kv_heads; }

  const AttentionShape s_;
  const AttentionInputs in_;
  const Tiles t_;
  const Loops loops_;
};

class Forward : Attention {
 public:
  Forward(const AttentionShape& shape, const AttentionInputs& in, AttentionResult y, float* log)
      : Attention(shape, in), y_(y), log_(log), unit_(t_.block_q * kUnitBlocks) {}

  struct Memory {
    float *q, *k, *v, *p, *scores, *spare, *out, *largest, *factor, *total;
    double* reduced;
  };
  Memory cut(Cuts& cuts) const {
    Memory m{};
    m.q = cuts.floats(kUnitBlocks * t_.a_floats(t_.block_q, s_.size));
    m.k = cuts.floats(t_.b_floats(t_.block_k, s_.size));
    m.v = cuts.floats(t_.b_floats(s_.value_size, t_.block_k));
    m.p = cuts.floats(t_.a_floats(t_.block_q, t_.block_k));
    m.scores = cuts.floats(t_.block_q * t_.block_k);
    m.spare = cuts.floats(t_.block_q * t_.block_k);
    m.out = cuts.floats(unit_ * s_.value_size);
    m.largest = cuts.floats(unit_);
    m.total = cuts.floats(unit_);
    m.factor = cuts.floats(t_.block_q);
    m.reduced = cuts.doubles(t_.block_q);
    return m;
  }

  std::int64_t units() const { return s_.batch * s_.heads * divide_up(s_.queries, unit_); }

  void run(std::int64_t unit, const Memory& m) const {
    const std::int64_t parts = divide_up(s_.queries, unit_), first = unit % parts * unit_,
                       h = unit / parts % s_.heads, b = unit / parts / s_.heads;
    const std::int64_t end = std::min(s_.queries, first + unit_);
    const HeadRows q(in_.query, b, h), k(in_.key, b, h / group()), v(in_.value, b, h / group());
    for (std::int64_t q0 = first; q0 < end; q0 += t_.block_q)
      t_.pack_a(q.lines(q0), std::min(t_.block_q, end - q0), s_.size, packed(m, q0 - first));
    const std::int64_t seen = s_.causal ? std::min(s_.keys, end) : s_.keys;
    for (std::int64_t k0 = 0; k0 < seen; k0 += t_.block_k) {
      const std::int64_t cols = std::min(t_.block_k, s_.keys - k0);
      t_.pack_b(k.lines(k0), cols, s_.size, m.k);
      t_.pack_b(v.steps(k0), s_.value_size, cols, m.v);
      for (std::int64_t q0 = first; q0 < end; q0 += t_.block_q) {
        const TileSpan tile{q0, std::min(t_.block_q, end - q0), k0, cols};
        if (!is_hidden(tile)) add_tile(tile, b, h, q0 - first, m);
      }
    }
    finish(b, h, first, end - first, m);
  }

 private:
  float* packed(const Memory& m, std::int64_t at) const {
    return m.q + at / t_.block_q * round_up(t_.a_floats(t_.block_q, s_.size), kLineFloats);
  }

  void add_tile(const TileSpan& tile, std::int64_t b, std::int64_t h, std::int64_t at,
                const Memory& m) const {
    const std::int64_t count = tile.rows * tile.cols;
    scores(tile, b, h, packed(m, at), m.k, m.scores, m.spare);
    loops_.reduce_rows(Op::Max, tile.rows, tile.cols, m.reduced, m.scores);
    float *largest = m.largest + at, *total = m.total + at;
    const bool fresh = tile.k0 == 0;
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      float before = kHidden;
      if (!fresh) before = largest[i];
      const auto now = static_cast<float>(m.reduced[i]);
      largest[i] = now > before || now != now ? now : before;
      m.factor[i] = before == kHidden ? 0.0f : before - largest[i];
    }
    // A query that has seen no key yet has no maximum to subtract.
    float* const shift = m.spare;
    for (std::int64_t i = 0; i < tile.rows; ++i)
      shift[i] = largest[i] == kHidden ? 0.0f : largest[i];
    subtract_rows(tile, m.scores, shift);
    loops_.exponentials(count, m.scores);
    loops_.reduce_rows(Op::Sum, tile.rows, tile.cols, m.reduced, m.scores);
    float* const out = m.out + at * s_.value_size;
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      const auto sum = static_cast<float>(m.reduced[i]);
      if (fresh) {
        total[i] = sum;
      } else if (m.factor[i] == 0.0f) {
        total[i] += sum;
      } else {
        const float factor = std::exp(m.factor[i]);
        total[i] = total[i] * factor + sum;
        loops_.apply(Op::Mul, s_.value_size, out + i * s_.value_size, factor);
      }
    }
    const PanelSource weights{m.scores, DType::Float32, tile.cols, 1};
    multiply({weights, tile.rows, s_.value_size, tile.cols, m.v, out, !fresh}, m.p, m.spare);
  }

  void finish(std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows,
              const Memory& m) const {
    for (std::int64_t i = 0; i < rows; ++i) {
      const float divisor = m.largest[i] == kHidden ? 1.0f : m.total[i];
      loops_.apply(Op::Div, s_.value_size, m.out + i * s_.value_size, divisor);
    }
    if (y_.data != nullptr) {
      const std::int64_t row = s_.heads * s_.value_size;
      std::byte* to = y_.data + ((b * s_.queries + first) * row + h * s_.value_size) *
                                    static_cast<std::int64_t>(item_size(y_.dtype));
      loops_.store(y_.dtype, rows, s_.value_size, to, m.out, row);
    }
    if (log_ == nullptr) return;
    float* log = log_ + (b * s_.heads + h) * s_.queries + first;
    for (std::int64_t i = 0; i < rows; ++i) log[i] = m.largest[i] + std::log(m.total[i]);
  }

  const AttentionResult y_;
  float* const log_;
  const std::int64_t unit_;  // queries of a unit
};

class Backward : Attention {
 public:
  Backward(const AttentionShape& shape, const AttentionInputs& in, const AttentionForward& forward,
           const AttentionGradients& out)
      : Attention(shape, in),
        y_(forward.y),
        dy_(forward.dy),
        log_(forward.log),
        out_(out),
        blocks_(divide_up(shape.queries, t_.block_q)) {}

  struct Memory {
    float *qa, *qb, *ga, *gb, *kb, *kc, *vb, *p, *dp, *pa, *spare, *dq, *dk, *dv, *delta;
    double* reduced;
  };
  Memory cut(Cuts& cuts) const {
    Memory m{};
    m.qa = cuts.floats(blocks_ * a_block(s_.size));
    m.ga = cuts.floats(blocks_ * a_block(s_.value_size));
    m.qb = cuts.floats(blocks_ * b_block(s_.size));
    m.gb = cuts.floats(blocks_ * b_block(s_.value_size));
    m.kb = cuts.floats(t_.b_floats(t_.block_k, s_.size));
    m.kc = cuts.floats(t_.b_floats(s_.size, t_.block_k));
    m.vb = cuts.floats(t_.b_floats(t_.block_k, s_.value_size));
    const std::int64_t tile = t_.block_q * t_.block_k;
    m.p = cuts.floats(tile);
    m.dp = cuts.floats(tile);
    m.spare = cuts.floats(std::max(tile, 2 * s_.value_size));
    m.pa = cuts.floats(
        std::max(t_.a_floats(t_.block_q, t_.block_k), t_.a_floats(t_.block_k, t_.block_q)));
    m.dq = cuts.floats(blocks_ * t_.block_q * s_.size);
    const std::int64_t keys = s_.keys + t_.mr;  // whole register tiles are written
    m.dk = cuts.floats(keys * s_.size);
    m.dv = cuts.floats(keys * s_.value_size);
    m.delta = cuts.floats(s_.queries);
    m.reduced = cuts.doubles(t_.block_q);
    return m;
  }

  std::int64_t units() const { return s_.batch * s_.kv_heads; }

  void run(std::int64_t unit, const Memory& m) const {
    const std::int64_t b = unit / s_.kv_heads, of = unit % s_.kv_heads;
    std::fill_n(m.dk, s_.keys * s_.size, 0.0f);
    std::fill_n(m.dv, s_.keys * s_.value_size, 0.0f);
    for (std::int64_t h = of * group(); h < (of + 1) * group(); ++h) {
      prepare(b, h, m);
      if (s_.is_16_bit && !is_one_block())
        for (std::int64_t k0 = 0; k0 < s_.keys; k0 += t_.block_k) column(b, h, of, k0, m, true);
      for (std::int64_t k0 = 0; k0 < s_.keys; k0 += t_.block_k) column(b, h, of, k0, m, false);
      store(out_.query, b, h, s_.heads, s_.queries, s_.size, m.dq);
    }
    store(out_.key, b, of, s_.kv_heads, s_.keys, s_.size, m.dk);
    store(out_.value, b, of, s_.kv_heads, s_.keys, s_.value_size, m.dv);
  }

 private:
  std::int64_t a_block(std::int64_t k) const {
    return round_up(t_.a_floats(t_.block_q, k), kLineFloats);
  }
  std::int64_t b_block(std::int64_t lines) const {
    return round_up(t_.b_floats(lines, t_.block_q), kLineFloats);
  }

  bool is_one_block() const { return s_.keys <= t_.block_k; }

  // Packs a head's queries and output gradients in both layouts, and computes delta = rowsum(dy *
  // y). If y is 16-bit, delta starts at 0 instead: the weighted sum of weight gradients cancels
  // against delta, and the rounding errors of y would remain.
  void prepare(std::int64_t b, std::int64_t h, const Memory& m) const {
    const HeadRows q(in_.query, b, h), y(y_, b, h), g(dy_, b, h);
    std::fill_n(m.dq, s_.queries * s_.size, 0.0f);
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const std::int64_t q0 = block * t_.block_q, rows = std::min(t_.block_q, s_.queries - q0);
      t_.pack_a(q.lines(q0), rows, s_.size, m.qa + block * a_block(s_.size));
      t_.pack_a(g.lines(q0), rows, s_.value_size, m.ga + block * a_block(s_.value_size));
      t_.pack_b(q.steps(q0), s_.size, rows, m.qb + block * b_block(s_.size));
      t_.pack_b(g.steps(q0), s_.value_size, rows, m.gb + block * b_block(s_.value_size));
    }
    if (s_.is_16_bit) return std::fill_n(m.delta, s_.queries, 0.0f), void();
    float* const other = m.spare + s_.value_size;
    for (std::int64_t i = 0; i < s_.queries; ++i) {
      loops_.load(y.dtype, 1, s_.value_size, m.spare, y.at(i), 0, y.step);
      loops_.load(g.dtype, 1, s_.value_size, other, g.at(i), 0, g.step);
      loops_.apply(Op::Mul, s_.value_size, m.spare, other);
      loops_.reduce_rows(Op::Sum, 1, s_.value_size, m.reduced, m.spare);
      m.delta[i] = static_cast<float>(m.reduced[0]);
    }
  }

  // A block of keys and all queries that see it: adds to the gradients of both, or to the deltas.
  void column(std::int64_t b, std::int64_t h, std::int64_t of, std::int64_t k0, const Memory& m,
              bool to_deltas) const {
    const std::int64_t cols = std::min(t_.block_k, s_.keys - k0);
    const HeadRows k(in_.key, b, of), v(in_.value, b, of);
    t_.pack_b(k.lines(k0), cols, s_.size, m.kb);
    if (!to_deltas) t_.pack_b(k.steps(k0), s_.size, cols, m.kc);
    t_.pack_b(v.lines(k0), cols, s_.value_size, m.vb);
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const std::int64_t q0 = block * t_.block_q;
      const TileSpan tile{q0, std::min(t_.block_q, s_.queries - q0), k0, cols};
      if (is_hidden(tile)) continue;
      weigh(tile, b, h, block, m);
      if (to_deltas || (s_.is_16_bit && is_one_block())) add_to_deltas(tile, m);
      if (!to_deltas) add_tile(tile, block, m);
    }
  }

  // The weights of a tile and their gradients.
  void weigh(const TileSpan& tile, std::int64_t b, std::int64_t h, std::int64_t block,
             const Memory& m) const {
    scores(tile, b, h, m.qa + block * a_block(s_.size), m.kb, m.p, m.spare);
    const float* const log = log_ + (b * s_.heads + h) * s_.queries + tile.q0;
    float* const shift = m.spare;  // 0 for a query without a visible key
    for (std::int64_t i = 0; i < tile.rows; ++i) shift[i] = log[i] == kHidden ? 0.0f : log[i];
    subtract_rows(tile, m.p, shift);
    loops_.exponentials(tile.rows * tile.cols, m.p);
    t_.multiply(m.ga + block * a_block(s_.value_size), m.vb, tile.rows, tile.cols, s_.value_size,
                m.dp, false);
  }

  void add_to_deltas(const TileSpan& tile, const Memory& m) const {
    const std::int64_t count = tile.rows * tile.cols;
    std::copy_n(m.p, count, m.spare);
    loops_.apply(Op::Mul, count, m.spare, m.dp);
    loops_.reduce_rows(Op::Sum, tile.rows, tile.cols, m.reduced, m.spare);
    for (std::int64_t i = 0; i < tile.rows; ++i)
      m.delta[tile.q0 + i] += static_cast<float>(m.reduced[i]);
  }

  void add_tile(const TileSpan& tile, std::int64_t block, const Memory& m) const {
    const std::int64_t count = tile.rows * tile.cols;
    const PanelSource p_columns{m.p, DType::Float32, 1, tile.cols},
        ds_rows{m.dp, DType::Float32, tile.cols, 1}, ds_columns{m.dp, DType::Float32, 1, tile.cols};
    multiply({p_columns, tile.cols, s_.value_size, tile.rows, m.gb + block * b_block(s_.value_size),
              m.dv + tile.k0 * s_.value_size},
             m.pa, m.spare);
    subtract_rows(tile, m.dp, m.delta + tile.q0);
    loops_.apply(Op::Mul, count, m.dp, m.p);
    loops_.apply(Op::Mul, count, m.dp, s_.scale);
    multiply({ds_columns, tile.cols, s_.size, tile.rows, m.qb + block * b_block(s_.size),
              m.dk + tile.k0 * s_.size},
             m.pa, m.spare);
    multiply({ds_rows, tile.rows, s_.size, tile.cols, m.kc, m.dq + tile.q0 * s_.size}, m.pa,
             m.spare);
  }

  void store(AttentionResult to, std::int64_t b, std::int64_t h, std::int64_t heads,
             std::int64_t length, std::int64_t size, const float* from) const {
    if (to.data == nullptr) return;
    const std::int64_t row = heads * size;
    loops_.store(
        to.dtype, length, size,
        to.data + (b * length * row + h * size) * static_cast<std::int64_t>(item_size(to.dtype)),
        from, row);
  }

  const AttentionOperand y_, dy_;
  const float* const log_;
  const AttentionGradients out_;
  const std::int64_t blocks_;  // number of blocks of queries
};

// Every worker has its own memory; a free worker takes the next unit.
template <class Pass>
void run_all(const Pass& pass, void* workspace) {
  Cuts measured(nullptr);
  pass.cut(measured);
  const std::int64_t floats = measured.taken();
  parallel_for(pass.units(), [&](std::int64_t unit, int worker) {
    Cuts cuts(static_cast<float*>(workspace) + worker * floats);
    pass.run(unit, pass.cut(cuts));
  });
}

template <class Pass>
std::size_t bytes_of(const Pass& pass, int threads) {
  Cuts cuts(nullptr);
  pass.cut(cuts);
  return static_cast<std::size_t>(cuts.taken()) * sizeof(float) * static_cast<std::size_t>(threads);
}

}  // namespace

void attention_forward(const AttentionShape& shape, const AttentionInputs& in, AttentionResult y,
                       float* log, void* workspace) {
  run_all(Forward(shape, in, y, log), workspace);
}

void attention_backward(const AttentionShape& shape, const AttentionInputs& in,
                        const AttentionForward& forward, const AttentionGradients& gradients,
                        void* workspace) {
  run_all(Backward(shape, in, forward, gradients), workspace);
}

std::size_t attention_workspace(const AttentionShape& shape, bool backward, int threads) {
  if (backward) return bytes_of(Backward(shape, {}, {}, {}), threads);
  return bytes_of(Forward(shape, {}, {}, nullptr), threads);
}

}  // namespace tenon::cpu
