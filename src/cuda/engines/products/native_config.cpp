// Chooses among a few tiles and numbers of splits by a small model of a kernel's time, in cycles of
// one multiprocessor.
#include "cuda/engines/products/native_config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/index.h"
#include "base/sort.h"
#include "base/str.h"
#include "cuda/engines/maps/print_code.h"

namespace tenon::cuda {

namespace {

// m, n, k, threads, stages, thread_m, thread_n. Thread groups that split a tile's k: threads / (m /
// thread_m * n / thread_n); for tensor cores the same in warps.
// clang-format off
constexpr Tile kFmaTiles[] = {
    {16, 16, 64, 256, 3, 4, 4},   {16, 64, 32, 256, 4, 4, 4},  {64, 16, 32, 256, 4, 4, 4},
    {32, 32, 32, 256, 4, 4, 4},   {8, 128, 32, 256, 3, 4, 4},  {32, 64, 32, 256, 3, 4, 4},
    {32, 16, 64, 256, 3, 4, 4},   {32, 128, 16, 256, 3, 4, 4},
    {64, 64, 16, 128, 4, 8, 4},   {64, 128, 16, 256, 3, 8, 4},
};
constexpr Tile kTf32Tiles[] = {
    {16, 16, 64, 256, 3, 16, 16}, {16, 32, 64, 256, 3, 16, 32},  {32, 32, 32, 128, 4, 32, 32},
    {16, 64, 32, 256, 4, 16, 32}, {64, 16, 32, 256, 4, 32, 16},  {32, 64, 32, 256, 4, 32, 32},
    {16, 128, 32, 256, 3, 16, 32}, {64, 64, 32, 256, 3, 32, 32}, {64, 128, 32, 256, 3, 32, 32},
    {32, 16, 64, 256, 3, 32, 16}, {32, 256, 16, 256, 3, 32, 32}, {128, 128, 32, 256, 3, 64, 32},
    {96, 128, 32, 256, 3, 48, 32},
};
constexpr Tile kShortTiles[] = {
    {16, 16, 128, 256, 3, 16, 16}, {16, 32, 128, 256, 3, 16, 32}, {32, 32, 64, 128, 4, 32, 32},
    {16, 64, 64, 256, 3, 16, 32},  {64, 16, 64, 256, 3, 32, 16},  {32, 64, 64, 256, 3, 32, 32},
    {16, 128, 32, 256, 3, 16, 32}, {64, 64, 32, 256, 4, 32, 32},  {64, 128, 32, 256, 3, 32, 32},
    {32, 16, 128, 256, 3, 32, 16}, {32, 256, 16, 256, 3, 32, 32},
    {128, 64, 32, 128, 3, 64, 32}, {64, 128, 32, 128, 3, 64, 32},
    {64, 256, 32, 256, 3, 32, 64}, {128, 128, 32, 256, 4, 64, 32},
    {96, 128, 32, 256, 4, 48, 32},
};
// clang-format on

constexpr int kMaxSplits = 128;
constexpr std::int64_t kMaxSplitTiles = 1024;
/// Most bytes of partial sums that splits may store. Above this limit blocks add their sums in
/// turn, unless they would wait for more than kMostWaiting of the time.
constexpr double kMostPartials = 8 << 20, kMostWaiting = 0.15;

/// The next of 2, 3, 4, 6, 8, 12, …
std::int64_t more_splits(std::int64_t s) {
  const std::int64_t power = power_above(s + 1);
  return power >= 4 && s < power / 4 * 3 ? power / 4 * 3 : power;
}

GemmMath math_of(const Contraction& c, const ContractionForm& form) {
  if (c.compute() == DType::BFloat16) return GemmMath::Bf16;
  if (c.compute() == DType::Float16) return GemmMath::F16;
  // Products of two 16-bit numbers are exact in float32 on tensor cores too.
  const bool alike = form.a.element == form.b.element;
  if (alike && form.a.element == DType::BFloat16) return GemmMath::Bf16;
  if (alike && form.a.element == DType::Float16) return GemmMath::F16;
  return c.tf32() ? GemmMath::Tf32 : GemmMath::Fp32;
}

/// 16-bit operands are staged unchanged if the tensor cores take their type; float32 operands
/// always, and are converted on their way to the registers. A prologue's results are rounded at
/// once.
DType stored_dtype(GemmMath math, const OperandForm& o) {
  if (o.prologue == nullptr && o.dtype == DType::Float32) return o.dtype;
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
  const Tile& t = config.tile;
  // A Place of gemm_stage.cuh: offset, two words, offsets in the prologue's layouts.
  const auto table = [&](const OperandForm& o, int outer) {
    const int item = form.wide ? 8 : 4, layouts = static_cast<int>(o.layouts.size());
    const int place = static_cast<int>(round_up(item * (1 + layouts) + 8, 16));
    if (o.along_k) return o.outer_digits > 1 ? outer * place : 0;
    return o.inner_digits > 1 ? 2 * t.k * place : 0;
  };
  const int groups = t.groups(config.math == GemmMath::Fp32 ? 1 : 32);
  const int stage = side_bytes(config, form.a, config.stored_a, t.m) +
                    side_bytes(config, form.b, config.stored_b, t.n);
  return table(form.a, t.m) + table(form.b, t.n) + std::max(stage * t.stages, t.sums_bytes(groups));
}

/// Instructions of a prologue per element, without the loads of the operand itself.
double prologue_work(const OperandForm& o) {
  double work = 0;
  for (const MapInstr& instr : o.prologue->instrs) {
    if (instr.code == MapCode::Load) work += 3;
    if (instr.code == MapCode::Random) work += o.vector == 1 ? 90 : 30;
    if (instr.code == MapCode::Compute) work += element_work(instr.op);
  }
  return work + 2 * static_cast<double>(o.layouts.size());
}

/// The pixels of all samples of a convolution, rounded up. The number of samples is rounded first,
/// so that batches between the same powers of two are one class, whatever the size of an image.
std::int64_t pixels_above(const Contraction& c, std::int64_t pixels) {
  const std::int64_t samples = c.op == Op::Conv2dWeightGrad ? c.a_shape[0] : c.out_shape[0];
  if (samples < 1 || pixels % samples != 0) return power_above(pixels);
  return power_above(power_above(samples) * (pixels / samples));
}

/// The sizes of filters are exact; sizes that grow with the batch are rounded up.
struct ContractionSizes {
  std::int64_t m, n, k, batch;

  ContractionSizes(const Contraction& c, const ContractionForm& form)
      : m(c.op == Op::Matmul ? power_above(form.problem.m)
          : c.channels_last  ? pixels_above(c, form.problem.m)
                             : form.problem.m),
        n(c.op == Op::Conv2dWeightGrad || c.op == Op::Matmul || c.channels_last
              ? form.problem.n
              : pixels_above(c, form.problem.n)),
        k(inner_above(c, std::max<std::int64_t>(form.problem.k, 1))),
        batch(power_above(form.batch)) {}

  /// Bytes of a float32 copy of the result, which the blocks of a split write and read.
  double sums_bytes() const { return 4 * static_cast<double>(m) * static_cast<double>(n * batch); }

 private:
  static std::int64_t inner_above(const Contraction& c, std::int64_t k) {
    if (c.op == Op::Matmul) return power_above(k);
    return c.op == Op::Conv2dWeightGrad ? pixels_above(c, k) : k;
  }
};

class Model {
 public:
  Model(const GpuModel& gpu, const Contraction& c, const ContractionForm& form,
        const GemmConfig& base)
      : gpu_(gpu), form_(form), base_(base), sizes_(c, form), exact_(c.op == Op::Matmul) {}

  std::int64_t tiles(const Tile& t) const {
    return divide_up(sizes_.m, t.m) * divide_up(sizes_.n, t.n) * sizes_.batch;
  }

  double cycles(const GemmConfig& config) const {
    const Tile& t = config.tile;
    const std::int64_t steps = divide_up(divide_up(sizes_.k, config.splits), t.k);
    // For a convolution half a block more than the even share: its pixels were rounded up, so the
    // fill of the last wave is unknown.
    const double even = static_cast<double>(tiles(t) * config.splits) / gpu_.multiprocessors;
    const double share = exact_ ? std::ceil(even) : std::max(1.0, even + 0.5);
    // Blocks that run at once on a multiprocessor hide one another's waiting.
    const double at_once = std::min(resident(config), share);
    const double waves = exact_ ? std::ceil(share / at_once) : share / at_once;
    const double slots = instructions(t), warps = t.threads / 32.0;
    const double step =
        std::max({at_once * warps / 4 * slots * kIssue + at_once * tensor(t),
                  at_once * bytes(t) / gpu_.cache, slots * kAlone, gpu_.latency / (t.stages - 1)});
    const double results = static_cast<double>(t.m) * t.n / t.threads / form_.store_vector;
    double out = std::ceil(results / 4) * gpu_.latency + at_once * warps / 4 * results * 30;
    double total =
        gpu_.launch_cycles() + waves * (static_cast<double>(steps) * step + gpu_.latency + out);
    if (config.splits > 1) {
      const double partials = 2 * sizes_.sums_bytes() * config.splits;
      total += partials / gpu_.cache / gpu_.multiprocessors;
      if (config.serial)
        total += queue(config);
      else
        total += 4 * gpu_.latency + std::ceil(results / 4) * config.splits / 10.0 * gpu_.latency;
    }
    return total;
  }

  /// True if blocks of splits add their sums in turn.
  bool is_serial(GemmConfig config) const {
    config.serial = false;
    return config.splits > 1 && partials_bytes(config) > kMostPartials &&
           queue(config) <= kMostWaiting * cycles(config);
  }

 private:
  /// Whole tiles, as the native engine reserves them.
  double partials_bytes(const GemmConfig& config) const {
    return 4.0 * config.tile.m * config.tile.n * static_cast<double>(tiles(config.tile)) *
           config.splits;
  }

  /// Blocks that a multiprocessor runs at once.
  double resident(const GemmConfig& config) const {
    const Tile& t = config.tile;
    return std::max(1.0, static_cast<double>(resident_blocks(gpu_, t, config.shared_bytes,
                                                             t.m * t.n >= 8192 ? 512 : 1024)));
  }

  /// Cycles that blocks of a tile that run and finish at the same time wait for their turns. Later
  /// blocks start when these finish and do not wait.
  double queue(const GemmConfig& config) const {
    const Tile& t = config.tile;
    const double slots = resident(config) * gpu_.multiprocessors,
                 at_once = std::min<double>(config.splits, slots / static_cast<double>(tiles(t)));
    const double turn = 3 * gpu_.latency + 8.0 * t.m * t.n / gpu_.cache;
    return std::max(0.0, at_once - 1) * turn;
  }

  static constexpr double kIssue = 1.4, kAlone = 4;  // cycles an instruction: among many, alone

  /// Instructions of a thread for one stage, without those of the tensor cores.
  double instructions(const Tile& t) const {
    return 40 + staging(form_.a, base_.stored_a, t.m, t) +
           staging(form_.b, base_.stored_b, t.n, t) + arithmetic(t);
  }
  double arithmetic(const Tile& t) const {
    if (base_.math == GemmMath::Fp32) {
      const double slices =
          static_cast<double>(t.m) * t.n * t.k / t.thread_m / t.thread_n / 4 / t.threads;
      return slices * (4 * t.thread_m * t.thread_n + 2 * (t.thread_m + t.thread_n));
    }
    const bool tf32 = base_.math == GemmMath::Tf32;
    const double slices = static_cast<double>(t.m) * t.n * t.k / t.thread_m / t.thread_n /
                          (tf32 ? 8 : 16) / (t.threads / 32.0);
    const auto fragments = [tf32](DType stored, int outer) {
      return stored == DType::Float32 ? outer / (tf32 ? 2.0 : 1.3) : outer / 16.0;
    };
    return slices * (fragments(base_.stored_a, t.thread_m) + fragments(base_.stored_b, t.thread_n) +
                     t.thread_m * t.thread_n / 128.0);
  }
  /// Bytes of the operands for one stage.
  double bytes(const Tile& t) const {
    return t.k * (t.m * static_cast<double>(item_size(form_.a.dtype)) +
                  t.n * static_cast<double>(item_size(form_.b.dtype)));
  }
  /// Cycles of the tensor cores of a multiprocessor.
  double tensor(const Tile& t) const {
    if (base_.math == GemmMath::Fp32) return 0;
    const double rate = base_.math == GemmMath::Tf32 ? gpu_.tf32 : gpu_.half;
    return static_cast<double>(t.m) * t.n * t.k / (rate * gpu_.mma_share);
  }
  static double staging(const OperandForm& o, DType stored, int outer, const Tile& t) {
    const int at_once = o.pairs && o.dtype == stored ? 2 : o.vector;
    const double copies = static_cast<double>(outer) * t.k / at_once / t.threads;
    const bool through_registers = o.dtype != stored || (o.vector == 1 && stored != DType::Float32);
    // A thread that reads along k splits its k into digits once a stage; short lines were slow on
    // the H200.
    const double apart = o.along_k && o.inner_digits > 1 ? 128.0 * 32 / t.k : 0;
    double instructions = (through_registers ? 10 : 6) + (o.window != 0 ? 2 : 0);
    if (o.prologue != nullptr)  // single elements wait for their addresses anyway
      instructions = o.vector == 1 ? 9 + prologue_work(o) : 10 + o.vector * (2 + prologue_work(o));
    return copies * instructions + apart;
  }

  const GpuModel& gpu_;
  const ContractionForm& form_;
  const GemmConfig& base_;
  const ContractionSizes sizes_;
  const bool exact_;
};

/// True if a configuration may be chosen. Tensor-core blocks of few warps are slow at adding in
/// turn (lab/conv on an H100: the weight gradient of L2 takes 6.4 ms, with larger blocks 4.6 ms).
bool may_split(const GemmConfig& config, const Model& model, std::int64_t k) {
  const Tile& t = config.tile;
  if (config.splits == 1) return true;
  if (config.serial && config.math != GemmMath::Fp32 && t.threads < 256) return false;
  return k >= std::int64_t{2} * config.splits * t.k && model.tiles(t) <= kMaxSplitTiles;
}

/// A configuration whose splits are added in the way that the model prefers.
GemmConfig expected_config(const GpuModel& gpu, const Contraction& c, const ContractionForm& form,
                           const Tile& tile, std::int64_t splits) {
  GemmConfig config = config_with(c, form, tile, static_cast<int>(splits));
  config.serial = Model(gpu, c, form, config).is_serial(config);
  return config;
}

/// True if there is a counter for each of the split tiles.
bool has_tickets(const GemmConfig& config, const ContractionForm& form) {
  const GemmProblem& p = form.problem;
  return config.splits == 1 ||
         divide_up(p.m, config.tile.m) * divide_up(p.n, config.tile.n) * form.batch <= kGemmTickets;
}

}  // namespace

std::span<const Tile> gemm_tiles(GemmMath math) {
  if (math == GemmMath::Fp32) return kFmaTiles;
  if (math == GemmMath::Tf32) return kTf32Tiles;
  return kShortTiles;
}

GemmConfig config_with(const Contraction& c, const ContractionForm& form, const Tile& tile,
                       int splits, bool serial) {
  GemmConfig config;
  config.math = math_of(c, form);
  config.stored_a = stored_dtype(config.math, form.a);
  config.stored_b = stored_dtype(config.math, form.b);
  config.tile = tile;
  // A prologue's results wait in registers for one stage only; more stages would stay empty.
  if (form.a.prologue != nullptr || form.b.prologue != nullptr) config.tile.stages = 2;
  config.splits = splits;
  config.serial = serial && splits > 1;
  config.swizzle = tile.m * tile.n >= 64 * 64;
  config.shared_bytes = shared_bytes(config, form);
  return config;
}

std::int64_t power_above(std::int64_t x) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(x)));
}

double expected_microseconds(const GpuModel& gpu, const Contraction& c,
                             const ContractionForm& form) {
  const GemmConfig config = choose_config(gpu, c, form);
  return gpu.cycles_to_microseconds(Model(gpu, c, form, config).cycles(config));
}

GemmConfig choose_config(const GpuModel& gpu, const Contraction& c, const ContractionForm& form) {
  const GemmConfig base = config_with(c, form, kFmaTiles[0], 1);
  const Model model(gpu, c, form, base);
  double best = std::numeric_limits<double>::infinity();
  GemmConfig chosen;
  for (const Tile& t : gemm_tiles(base.math))
    for (std::int64_t s = 1; s <= kMaxSplits; s = more_splits(s)) {
      const GemmConfig config = expected_config(gpu, c, form, t, s);
      if (!may_split(config, model, form.problem.k)) break;
      const double cycles = model.cycles(config);
      if (cycles >= best) continue;
      best = cycles;
      chosen = config;
    }
  return chosen;
}

std::vector<GemmConfig> promising_configs(const GpuModel& gpu, const Contraction& c,
                                          const ContractionForm& form) {
  constexpr std::size_t kTiles = 6;
  const GemmConfig base = config_with(c, form, kFmaTiles[0], 1);
  const Model model(gpu, c, form, base);
  using Estimate = std::pair<double, GemmConfig>;
  const auto sooner = [](const Estimate& a, const Estimate& b) { return a.first < b.first; };
  // By tile: the best number of splits and its neighbours.
  std::vector<std::vector<Estimate>> tiles;
  for (const Tile& t : gemm_tiles(base.math)) {
    std::vector<Estimate> all;
    for (std::int64_t s = 1; s <= kMaxSplits; s = more_splits(s)) {
      const GemmConfig config = expected_config(gpu, c, form, t, s);
      if (!may_split(config, model, form.problem.k)) break;
      all.emplace_back(model.cycles(config), config);
    }
    const auto best = std::min_element(all.begin(), all.end(), sooner);
    std::vector<Estimate> near{*best};
    if (best != all.begin()) near.push_back(*(best - 1));
    if (best + 1 != all.end()) near.push_back(*(best + 1));
    tiles.push_back(std::move(near));
  }
  sort_stably(tiles, [&](const auto& a, const auto& b) { return sooner(a[0], b[0]); });
  if (tiles.size() > kTiles) tiles.resize(kTiles);
  std::vector<GemmConfig> configs;
  for (std::size_t rank = 0; rank < 3; ++rank)  // every tile once before its other splits
    for (const auto& near : tiles)
      if (rank < near.size()) configs.push_back(near[rank].second);
  return configs;
}

std::string config_name(const GemmConfig& config) {
  const Tile& t = config.tile;
  return cat(t.m, "x", t.n, "x", t.k, "-", t.threads, "/", config.splits,
             config.serial ? " in turn" : "");
}

GemmConfig config_named(const Contraction& c, const ContractionForm& form,
                        const std::string& name) {
  for (const Tile& t : gemm_tiles(config_with(c, form, kFmaTiles[0], 1).math))
    for (std::int64_t s = 1; s <= kMaxSplits; s = more_splits(s))
      for (const bool serial : {false, true}) {
        const GemmConfig config = config_with(c, form, t, static_cast<int>(s), serial);
        if (config_name(config) == name && has_tickets(config, form)) return config;
      }
  refuse_config("native", name);
}

}  // namespace tenon::cuda
