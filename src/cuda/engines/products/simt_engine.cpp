// Prepares launches of cuda/kernels/gemm/gemm_simt.cuh. A small model of the time in cycles chooses
// the tile and the number of blocks that share the sum of a tile. Sizes that grow with the batch
// enter the model rounded up, so that an incomplete batch uses a kernel that is already compiled.
#include "cuda/engines/products/simt_engine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <tenon/error.h>

#include "base/index.h"
#include "base/sort.h"
#include "base/str.h"
#include "cuda/engines/launch/per_target.h"
#include "cuda/engines/launch/tickets.h"
#include "cuda/engines/launch/words.h"
#include "cuda/engines/maps/print_map.h"
#include "cuda/engines/products/conversions.h"
#include "cuda/engines/products/matrix_shape.h"
#include "cuda/engines/products/native_config.h"
#include "cuda/kernels/gemm/gemm_simt_args.cuh"
#include "plan/regions/channel_sums.h"

namespace tenon::cuda {
namespace {

constexpr Tile kTiles[] = {{128, 128, 16, 256, 4, 8, 8}, {128, 64, 16, 128, 4, 8, 8}};

int shared_bytes(const Tile& t) {  // as in SimtBlock
  return 16 + std::max(4 * t.stages * t.k * (t.m + t.n), t.sums_bytes(1));
}
/// Blocks per multiprocessor for which there are registers.
int residents(const Tile& t) { return 512 / t.threads; }

constexpr int kMostSplits = 16;
constexpr int kSimtTickets = 16384;

struct Config {
  const Tile* tile = &kTiles[0];
  int splits = 1;
};

std::string name_of(const Config& config) {
  return cat(config.tile->m, "x", config.tile->n, "/", config.splits);
}

std::int64_t tiles_of(const SimtSizes& s, const Tile& t) {
  return divide_up(s.m, t.m) * divide_up(s.n, t.n);
}

bool is_possible(const SimtSizes& s, const Config& config) {
  return config.splits == 1 || (s.k >= config.splits * std::int64_t{4} * config.tile->k &&
                                tiles_of(s, *config.tile) <= kSimtTickets / 4);
}

/// Cycles of a multiprocessor. Fitted to an H200: the shares of its multiply-add rate, and of the
/// L2 bandwidth, for which partial results wait.
double cycles(const GpuModel& gpu, const SimtSizes& s, const Config& config) {
  const double multiply_adds = gpu.fp32 * 100 / 128, bytes_a_cycle = gpu.cache * 7 / 30;
  const Tile& t = *config.tile;
  const std::int64_t blocks = divide_up(tiles_of(s, t) * config.splits, gpu.multiprocessors);
  const std::int64_t warps = std::min<std::int64_t>(blocks, residents(t)) * t.threads / 32;
  double work = static_cast<double>(blocks * divide_up(s.k, config.splits) * t.m * t.n);
  if (warps < 16) work *= 1.06;  // too few to hide waiting
  if (blocks == 1) work *= 1.05;
  if (t.n == 64) work *= 1.01;
  const double partials =
      config.splits == 1 ? 0 : static_cast<double>(s.m * s.n * 8 * config.splits);
  return work / multiply_adds + partials / bytes_a_cycle / gpu.multiprocessors;
}

std::vector<Config> configs(const GpuModel& gpu, const SimtSizes& s) {
  constexpr std::size_t kMost = 8;
  std::vector<std::pair<double, Config>> all;
  for (const Tile& tile : kTiles)
    for (int splits = 1; splits <= kMostSplits; ++splits)
      if (const Config config{&tile, splits}; is_possible(s, config))
        all.emplace_back(cycles(gpu, s, config), config);
  sort_stably(all, [](const auto& x, const auto& y) { return x.first < y.first; });
  if (all.size() > kMost) all.resize(kMost);
  std::vector<Config> best;
  best.reserve(all.size());
  for (const auto& [time, config] : all) best.push_back(config);
  return best;
}

Config config_named(const std::string& name) {
  for (const Tile& tile : kTiles)
    for (int splits = 1; splits <= kMostSplits; ++splits)
      if (const Config config{&tile, splits}; name_of(config) == name) return config;
  refuse_config("simt", name);
}

/// Sizes for the model: those that grow with the batch are rounded up to a power of two, so that an
/// incomplete batch uses the compiled kernel.
SimtSizes sizes_of(const MatrixShape& shape) {
  return {shape.a.plain ? power_above(shape.m) : shape.m, shape.n, power_above(shape.k)};
}

/// True if 16 bytes at a time can be read.
bool is_aligned(const MatrixOperand& operand) {
  const MatrixRows& rows = operand.rows;
  return rows.offset % 4 == 0 && rows.inner % 4 == 0 && rows.outer_stride % 4 == 0;
}
bool is_countable(const MatrixOperand& operand) {
  const MatrixRows& rows = operand.rows;
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  return rows.outer_stride > 0 && rows.outer * rows.outer_stride < kMost &&
         (rows.outer + 8) * rows.inner < kMost;
}

const char* refusal(const Region& region, std::span<const Value> values, MatrixShape& shape,
                    std::string* why) {
  if (region.kind != RegionKind::Contraction || region.contraction.op != Op::Matmul)
    return "runs matrix products only";
  const Contraction& c = region.contraction;
  for (const DType dtype :
       {c.dtype, c.compute(), values[at(c.a.value)].dtype, values[at(c.b.value)].dtype})
    if (dtype != DType::Float32) return "computes in float32 of float32 operands only";
  if (c.tf32()) return "computes in float32 only, not in tf32";
  if (!matrix_shape(c, shape, why)) return "";
  if (shape.batch != 1) return "takes one right matrix only, not a batch of them";
  if (shape.m != c.a_shape[c.a_shape.rank() - 2])
    return "takes one left matrix only, not a batch of them";
  if (!shape.b.plain) return "takes a right matrix with contiguous rows only";
  if (!is_countable(shape.a) || !is_countable(shape.b))
    return "takes matrices of less than 2^30 elements only";
  if (!is_aligned(shape.b) || (!shape.a.plain && !is_aligned(shape.a)))
    return "takes rows that are aligned to 16 bytes only";
  return nullptr;
}

/// The results fill a GPU, the sums are long enough to be compute-bound, and there are so many
/// columns that transposing the rows costs little in comparison.
bool is_worth(const MatrixShape& shape) {
  constexpr std::int64_t kResults = 1 << 20;
  const SimtSizes s = sizes_of(shape);
  return std::min({s.m, s.n, s.k}) >= 256 && s.m * s.n >= kResults &&
         (!shape.a.plain || s.n >= 1024);
}

class SimtKernel final : public Kernel {
 public:
  SimtKernel(const Target& target, const Region& region, std::span<const Value> values,
             const MatrixShape& shape, const Config& config)
      : tile_(*config.tile),
        a_{region.contraction.a.value, shape.a.rows.offset},
        b_{region.contraction.b.value, shape.b.rows.offset},
        title_(region.title) {
    SimtProblem& p = problem_;
    if (shape.a.plain) transpose_.emplace(target, shape.a.rows, false);
    const MatrixRows &a = transpose_ ? transpose_->result() : shape.a.rows, &b = shape.b.rows;
    p.a.line = static_cast<int>(transpose_ ? a.outer_stride : a.inner);
    p.b.line = static_cast<int>(b.inner);
    p.m = static_cast<int>(shape.m), p.n = static_cast<int>(shape.n);
    p.k = static_cast<int>(shape.k);
    p.a.pitch = static_cast<int>(a.outer_stride);
    p.b.pitch = static_cast<int>(b.outer_stride);
    p.tiles_m = static_cast<int>(divide_up(shape.m, tile_.m));
    p.tiles_n = static_cast<int>(divide_up(shape.n, tile_.n));
    p.k_per_split = static_cast<int>(round_up(divide_up(shape.k, config.splits), tile_.k));
    p.splits = static_cast<int>(divide_up(shape.k, p.k_per_split));
    const std::int64_t tiles = std::int64_t{p.tiles_m} * p.tiles_n;
    grid_ = {static_cast<std::uint32_t>(tiles), static_cast<std::uint32_t>(p.splits), 1};
    if (config.splits > 1) {
      static Tickets tickets(kSimtTickets);
      p.ticket = tickets.take(tiles);
      workspace_bytes = at(tiles * p.splits * tile_.m * tile_.n) * 4;
    }
    if (transpose_) workspace_bytes += transpose_->bytes() + kConversionAlignment;
    PrintedEpilogue printed = print_epilogue(region, values, target);
    arguments_ = std::move(printed.arguments);
    arguments_.reserve(tiles, workspace_bytes);
    kernel_ = compile(target, text(config.splits > 1, printed.code));
  }

  void run(const Binding& binding) const override {
    std::vector<std::uint64_t>& words = words_of_thread();
    arguments_.fill(words, binding);
    SimtProblem problem = problem_;
    problem.b.data = b_.in(binding, title_);
    std::byte* place = binding.workspace;
    if (transpose_) {
      place = aligned_workspace(place);
      transpose_->run(binding.stream, binding.values[at(a_.value)], place);
      problem.a.data = reinterpret_cast<const float*>(place);
      place += transpose_->bytes();
    } else {
      problem.a.data = a_.in(binding, title_);
    }
    problem.partials = reinterpret_cast<float*>(place);
    void* params[] = {&problem, words.data()};
    kernel_->launch(binding.stream, grid_, {static_cast<std::uint32_t>(tile_.threads), 1, 1},
                    static_cast<std::uint32_t>(shared_bytes(tile_)), params);
  }

  std::string source() const override {
    return cat(transpose_ ? transpose_->source() : std::string(), kernel_->source().text);
  }

 private:
  struct Operand {
    ValueId value;
    std::int64_t offset;

    const float* in(const Binding& binding, const std::string& title) const {
      const std::byte* memory = binding.values[at(value)];
      if (reinterpret_cast<std::uintptr_t>(memory) % 16 != 0)
        throw InternalError(cat(title, ": an operand's address is not a multiple of 16"));
      return reinterpret_cast<const float*>(memory) + offset;
    }
  };

  Source text(bool split, const std::string& epilogue) const {
    const Tile& t = tile_;
    std::string text = cat("#include \"cuda/kernels/gemm/gemm_simt.cuh\"\n", epilogue,
                           "\nusing namespace tenon::cuda;\n\n",
                           ConfigText()
                               .ints({{"kM", t.m},
                                      {"kN", t.n},
                                      {"kK", t.k},
                                      {"kThreads", t.threads},
                                      {"kStages", t.stages}})
                               .flags({{"kSplit", split}})
                               .text());
    if (split) text += cat("__device__ unsigned simt_tickets[", kSimtTickets, "];\n");
    text +=
        cat("using Block = SimtBlock<Config, Epilogue>;\nstatic_assert(Block::kSharedBytes == ",
            shared_bytes(t), ");\n\nextern \"C\" __global__ void __launch_bounds__(", t.threads,
            ", ", residents(t), ")\ngemm_simt(const SimtProblem p, const Epilogue epilogue) {\n",
            kAwaitKernels, "  TENON_DYNAMIC_SHARED(shared);\n  Block(p, epilogue, shared).run(",
            split ? "simt_tickets" : "nullptr", ");\n}\n");
    return {"gemm_simt", std::move(text)};
  }

  const Tile tile_;
  const Operand a_, b_;
  const std::string title_;
  std::optional<RowTranspose> transpose_;  // rows that are contiguous along k
  SimtProblem problem_;
  Grid grid_;
  EpilogueArguments arguments_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

class SimtEngine final : public Engine {
 public:
  explicit SimtEngine(const Target& target) : target_(target) {}

  const char* name() const override { return "simt"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    MatrixShape shape;
    const char* reason = refusal(region, values, shape, why);
    if (reason == nullptr && !is_worth(shape)) reason = "leaves small products to other engines";
    return is_claimed(reason, why);
  }

  bool is_able(const Region& region, std::span<const Value> values) const override {
    MatrixShape shape;
    return refusal(region, values, shape, nullptr) == nullptr;
  }

  Capabilities capabilities(const Region& region, std::span<const Value>) const override {
    Capabilities can;
    can.no_reductions = no_channel_sums(region);
    return can;
  }

  double estimate(const Region& region, std::span<const Value> values) const override {
    MatrixShape shape;
    if (refusal(region, values, shape, nullptr) != nullptr) return 0;
    const SimtSizes sizes = sizes_of(shape);
    const GpuModel& gpu = target_.model;
    const double product = cycles(gpu, sizes, configs(gpu, sizes).front());
    return gpu.cycles_to_microseconds(gpu.launch_cycles() + product) +
           (shape.a.plain ? conversion_microseconds(gpu, shape.a.rows, 4, 4) : 0);
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    return prepare_simt(region, values, target_);
  }

  std::vector<std::string> configurations(const Region& region,
                                          std::span<const Value> values) const override {
    MatrixShape shape;
    if (refusal(region, values, shape, nullptr) != nullptr) return {};
    return simt_configurations(target_.model, sizes_of(shape));
  }

  std::unique_ptr<Kernel> prepare_as(const std::string& configuration, const Region& region,
                                     std::span<const Value> values, int) const override {
    return prepare_simt(region, values, target_, configuration);
  }

 private:
  const Target target_;
};

}  // namespace

std::vector<std::string> simt_configurations(const GpuModel& gpu, const SimtSizes& sizes) {
  std::vector<std::string> names;
  for (const Config& config : configs(gpu, sizes)) names.push_back(name_of(config));
  return names;
}

std::unique_ptr<Kernel> prepare_simt(const Region& region, std::span<const Value> values,
                                     const Target& target, const std::string& configuration) {
  MatrixShape shape;
  std::string why;
  if (const char* reason = refusal(region, values, shape, &why))
    throw InternalError(cat("simt: ", reason[0] != '\0' ? reason : why.c_str()));
  return std::make_unique<SimtKernel>(target, region, values, shape,
                                      configuration.empty()
                                          ? configs(target.model, sizes_of(shape)).front()
                                          : config_named(configuration));
}

const Engine& simt_engine(const Target& target) { return per_target<SimtEngine>(target); }

}  // namespace tenon::cuda
