// A small model of a kernel's time, in cycles of one multiprocessor of 132, chooses among a few
// tiles and numbers of splits.
#include "cuda/engines/contraction_config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tenon::cuda {

namespace {

// m, n, k, threads, stages, thread_m, thread_n. Groups of threads that share a tile's k: threads /
// (m / thread_m * n / thread_n), or warps likewise.
constexpr GemmTile kFmaTiles[] = {
    {16, 16, 64, 256, 3, 4, 4}, {32, 32, 32, 256, 4, 4, 4},  {8, 64, 32, 256, 4, 4, 4},
    {16, 64, 32, 256, 4, 4, 4}, {64, 16, 32, 256, 4, 4, 4},  {8, 128, 32, 256, 3, 4, 4},
    {64, 64, 16, 128, 4, 8, 4}, {64, 128, 16, 256, 3, 8, 4}, {128, 128, 16, 256, 3, 8, 8},
};
constexpr GemmTile kTf32Tiles[] = {
    {16, 16, 64, 256, 3, 16, 16},  {32, 32, 32, 128, 4, 32, 32},   {16, 64, 32, 128, 4, 16, 64},
    {64, 16, 32, 128, 4, 64, 16},  {16, 128, 32, 128, 3, 16, 32},  {64, 64, 32, 128, 3, 32, 32},
    {128, 64, 32, 128, 3, 64, 32}, {128, 128, 32, 256, 3, 64, 32},
};
constexpr GemmTile kShortTiles[] = {
    {16, 16, 64, 128, 4, 16, 16},  {32, 32, 64, 128, 4, 32, 32},   {16, 64, 64, 128, 4, 16, 64},
    {64, 16, 64, 128, 4, 64, 16},  {16, 128, 32, 128, 4, 16, 32},  {64, 64, 32, 128, 4, 32, 32},
    {128, 64, 32, 128, 4, 64, 32}, {128, 128, 32, 256, 4, 64, 32},
};

constexpr std::int64_t kMultiprocessors = 132;  // a number of the model, not of the card
constexpr int kMaxSplits = 128;
constexpr std::int64_t kMaxSplitTiles = 1024;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t power_above(std::int64_t x) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(x)));
}

GemmMath math_of(const Contraction& c, const ContractionForm& form) {
  if (c.compute == DType::BFloat16) return GemmMath::Bf16;
  if (c.compute == DType::Float16) return GemmMath::F16;
  // Products of two 16-bit numbers are exact in float32 on tensor cores too.
  if (form.a.dtype == form.b.dtype && form.a.dtype == DType::BFloat16) return GemmMath::Bf16;
  if (form.a.dtype == form.b.dtype && form.a.dtype == DType::Float16) return GemmMath::F16;
  return c.tf32 ? GemmMath::Tf32 : GemmMath::Fp32;
}

/// 16-bit operands stay what they are where the tensor cores take them so; float32 ones always, and
/// are converted on their way to the registers.
DType stored_dtype(GemmMath math, DType memory) {
  if (memory == DType::Float32) return memory;
  if (math == GemmMath::Bf16) return DType::BFloat16;
  if (math == GemmMath::F16) return DType::Float16;
  return DType::Float32;
}

/// As in Pad of gemm.cuh.
int padding(GemmMath math, DType stored, bool along_k) {
  if (stored != DType::Float32) return 8;
  if (math == GemmMath::Fp32) return 4;
  return (math != GemmMath::Tf32) == along_k ? 8 : 4;
}

int side_bytes(const GemmConfig& config, const OperandForm& o, DType stored, int outer) {
  const int line = o.along_k ? config.tile.k : outer, lines = o.along_k ? outer : config.tile.k;
  return lines * (line + padding(config.math, stored, o.along_k)) *
         static_cast<int>(item_size(stored));
}

int shared_bytes(const GemmConfig& config, const ContractionForm& form) {
  const GemmTile& t = config.tile;
  const auto table = [&t](const OperandForm& o, int outer) {
    if (o.along_k) return o.outer_digits > 1 ? outer * 16 : 0;
    return o.inner_digits > 1 ? 2 * t.k * 16 : 0;
  };
  const int lanes = config.math == GemmMath::Fp32 ? 1 : 32;
  const int groups = t.threads / (lanes * (t.m / t.thread_m) * (t.n / t.thread_n));
  const int stage = side_bytes(config, form.a, config.stored_a, t.m) +
                    side_bytes(config, form.b, config.stored_b, t.n);
  return table(form.a, t.m) + table(form.b, t.n) +
         std::max(stage * t.stages, groups * t.m * (t.n + 8) * 4);
}

class Model {
 public:
  Model(const ContractionForm& form, const GemmConfig& base)
      : form_(form),
        base_(base),
        m_(power_above(form.problem.m)),
        n_(power_above(form.problem.n)),
        k_(power_above(std::max<long long>(form.problem.k, 1))),
        batch_(power_above(form.batch)) {}

  std::int64_t tiles(const GemmTile& t) const {
    return ceil_div(m_, t.m) * ceil_div(n_, t.n) * batch_;
  }

  double cycles(const GemmTile& t, int splits) const {
    const std::int64_t steps = ceil_div(ceil_div(k_, splits), t.k), blocks = tiles(t) * splits;
    const double step = arithmetic(t) + staging(form_.a, base_.stored_a, t.m, t) +
                        staging(form_.b, base_.stored_b, t.n, t) + 60;
    // Each of a multiprocessor's blocks fills the others' waiting; a lone one waits for memory.
    const double resident = std::min<double>(
        static_cast<double>(ceil_div(blocks, kMultiprocessors)), 2048.0 / t.threads);
    const double waiting = resident > 1 ? 0 : 150;
    const double waves = static_cast<double>(ceil_div(blocks, kMultiprocessors));
    double total = waves * (static_cast<double>(steps) * (step + waiting) +
                            static_cast<double>(t.m * t.n) / 32) +
                   2500;
    if (splits > 1) total += 2500 + 20.0 * splits;
    return total;
  }

 private:
  double arithmetic(const GemmTile& t) const {
    const double work = static_cast<double>(t.m) * t.n * t.k;
    if (base_.math == GemmMath::Fp32)
      return work / (128 * (t.thread_m * t.thread_n > 16 ? 0.75 : 0.5));
    const bool converted = base_.stored_a == DType::Float32 || base_.stored_b == DType::Float32;
    const double rate = base_.math == GemmMath::Tf32 ? 450 : converted ? 600 : 1200;
    return work / (rate * (t.thread_m * t.thread_n >= 1024 ? 1 : 0.6));
  }
  static double staging(const OperandForm& o, DType stored, int outer, const GemmTile& t) {
    const double copies = static_cast<double>(outer) * t.k / o.vector / 32;
    const bool through_registers = o.dtype != stored || (o.vector == 1 && stored != DType::Float32);
    return copies * (through_registers ? 8 : 4) * (o.window == 2 ? 2 : 1);
  }

  const ContractionForm& form_;
  const GemmConfig& base_;
  const std::int64_t m_, n_, k_, batch_;
};

}  // namespace

std::span<const GemmTile> gemm_tiles(GemmMath math) {
  if (math == GemmMath::Fp32) return kFmaTiles;
  if (math == GemmMath::Tf32) return kTf32Tiles;
  return kShortTiles;
}

GemmConfig config_with(const Contraction& c, const ContractionForm& form, const GemmTile& tile,
                       int splits) {
  GemmConfig config;
  config.math = math_of(c, form);
  config.stored_a = stored_dtype(config.math, form.a.dtype);
  config.stored_b = stored_dtype(config.math, form.b.dtype);
  config.tile = tile;
  config.splits = splits;
  config.swizzle = tile.m * tile.n >= 64 * 64;
  config.shared_bytes = shared_bytes(config, form);
  return config;
}

GemmConfig choose_config(const Contraction& c, const ContractionForm& form) {
  const GemmConfig base = config_with(c, form, kFmaTiles[0], 1);
  const Model model(form, base);
  double best = std::numeric_limits<double>::infinity();
  const GemmTile* tile = nullptr;
  int splits = 1;
  for (const GemmTile& t : gemm_tiles(base.math))
    for (int s = 1; s <= kMaxSplits; s *= 2) {
      if (s > 1 && (form.problem.k < 2ll * s * t.k || model.tiles(t) > kMaxSplitTiles)) break;
      const double cycles = model.cycles(t, s);
      if (cycles >= best) continue;
      best = cycles;
      tile = &t;
      splits = s;
    }
  return config_with(c, form, *tile, splits);
}

}  // namespace tenon::cuda
