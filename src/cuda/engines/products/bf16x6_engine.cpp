// Prepares launches of cuda/kernels/gemm/gemm_wgmma.cuh for float32 in bfloat16 parts: the right
// operand is split into the workspace, tensor maps are made, and the kernel runs with the epilogue.
// The kernel itself splits the left operand.
#include "cuda/engines/products/bf16x6_engine.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "cuda/device/opening/driver.h"
#include "cuda/engines/launch/per_target.h"
#include "cuda/engines/launch/tensor_map.h"
#include "cuda/engines/launch/tile.h"
#include "cuda/engines/launch/words.h"
#include "cuda/engines/maps/print_map.h"
#include "cuda/engines/products/bf16x6_config.h"
#include "cuda/engines/products/conversions.h"
#include "cuda/engines/products/matrix_shape.h"
#include "cuda/engines/products/native_config.h"
#include "cuda/kernels/gemm/gemm_wgmma_args.cuh"
#include "plan/regions/channel_sums.h"

namespace tenon::cuda {
namespace {

constexpr DType kFloat = DType::Float32;

/// True if lines and start are at multiples of 16 bytes, as TMA requires.
bool is_readable(const MatrixRows& rows) {
  return rows.offset % 4 == 0 && rows.outer_stride % 4 == 0;
}

/// Limit of the workspace: 6 bytes per element of the right operand. The columns are processed in
/// as many pieces as the limit requires.
constexpr std::int64_t kMostBytes = 80'000'000;

/// Columns of a piece, in whole tiles: all pieces except the last have the same number.
std::int64_t piece_columns(const MatrixShape& shape) {
  const std::int64_t k = shape.a.plain ? shape.k : power_above(shape.k);  // as bf16x6_sizes
  const std::int64_t most = std::max<std::int64_t>(kMostBytes / 6 / k / kWgmmaColumns, 1);
  const std::int64_t tiles = divide_up(shape.n, kWgmmaColumns);
  return divide_up(tiles, divide_up(tiles, most)) * kWgmmaColumns;
}
std::int64_t pieces_of(const MatrixShape& shape) {
  return divide_up(shape.n, piece_columns(shape));
}

/// The columns of the right operand from `first` on.
MatrixRows piece_of(const MatrixOperand& b, std::int64_t first, std::int64_t columns) {
  MatrixRows rows = b.rows;
  std::int64_t& along = b.plain ? rows.inner : rows.outer;
  along = std::min(along - first, columns);
  rows.offset += first * (b.plain ? 1 : rows.outer_stride);
  return rows;
}

const char* bf16x6_refusal(const Target& target, const Region& region,
                           std::span<const Value> values, MatrixShape& shape, std::string* why) {
  if (target.arch != 90) return "needs a Hopper GPU (compute capability 9.0)";
  if (region.kind != RegionKind::Contraction || region.contraction.op != Op::Matmul)
    return "runs matrix products only";
  const Contraction& c = region.contraction;
  for (const DType dtype :
       {c.dtype, c.compute(), values[at(c.a.value)].dtype, values[at(c.b.value)].dtype})
    if (dtype != kFloat) return "computes in float32 of float32 operands only";
  if (c.tf32()) return "computes in float32 only, not in tf32";
  if (!matrix_shape(c, shape, why)) return "";
  if (shape.batch != 1) return "takes one right matrix only, not a batch of them";
  if (!is_readable(shape.a.rows)) return "takes rows that are aligned to 16 bytes only";
  if (shape.k * kWgmmaColumns * 6 > kMostBytes) return "would need too large a workspace";
  if (!region.map.reduces.empty() && pieces_of(shape) > 1)
    return "does not reduce a result that it computes in pieces";
  if (target.ordinal >= 0 && !has_tensor_maps())
    return "needs tensor maps, which this driver does not have";
  return nullptr;
}

/// Sizes of a piece as the model uses them. An activation is contiguous along m when it is
/// multiplied by weights, and along k when their gradient is computed.
WgmmaSizes bf16x6_sizes(const MatrixShape& shape) {
  const std::int64_t n = std::min(shape.n, piece_columns(shape));
  return {shape.a.plain ? power_above(shape.m) : shape.m, n,
          shape.a.plain ? shape.k : power_above(shape.k), 4};
}

/// True if results and sums, by the class of their sizes, occupy a GPU. The times of other engines
/// decide the rest.
bool is_worth_parts(const MatrixShape& shape) {
  const WgmmaSizes s = bf16x6_sizes(shape);
  return std::min({s.m, shape.n, s.k}) >= 128 && s.m * shape.n * s.k >= std::int64_t{1} << 28;
}

/// The map of rows from `memory` on; their offset is already added.
TensorMap bf16x6_map(std::byte* memory, const MatrixRows& rows, bool parts, int box_inner,
                     int box_outer) {
  const std::size_t item = parts ? 2 : 4;
  const std::uint64_t inner = at(rows.inner), outer = at(rows.outer),
                      pitch = at(rows.outer_stride) * item;
  const auto columns = static_cast<unsigned>(box_inner), lines = static_cast<unsigned>(box_outer);
  if (!parts) return tensor_map(memory, item, {inner, outer}, {pitch}, {columns, lines});
  return tensor_map(memory, item, {inner, outer, 3}, {pitch, at(rows.batch_stride) * item},
                    {columns, lines, 1});
}

class Bf16x6Kernel final : public Kernel {
 public:
  Bf16x6Kernel(const Target& target, const Region& region, std::span<const Value> values,
               const MatrixShape& shape, const WgmmaConfig& config)
      : config_(config),
        a_(region.contraction.a.value),
        b_(region.contraction.b.value),
        across_a_(!shape.a.plain),
        across_b_(shape.b.plain),
        rows_a_(shape.a.rows) {
    const std::int64_t batch_rows =
        region.contraction.a_shape[region.contraction.a_shape.rank() - 2];
    PrintedEpilogue printed = print_epilogue(region, values, target);
    arguments_ = std::move(printed.arguments);
    kernel_ = compile(target, text(shape.n % 4 == 0, batch_rows != shape.m, printed.code));
    const std::int64_t columns = piece_columns(shape);
    for (std::int64_t first = 0; first < shape.n; first += columns) {
      pieces_.push_back({RowParts(target, piece_of(shape.b, first, columns))});
      Piece& piece = pieces_.back();
      piece.problem.batch_rows = make_divisor(batch_rows);
      piece.problem.first_column = static_cast<int>(first);
      describe(piece, target, {shape.m, std::min(columns, shape.n - first), shape.k, 4});
    }
    workspace_bytes = pieces_.front().parts.bytes() + kConversionAlignment;
    // A warp's rows of a tile, or a warp of a block that shares its tile's sums, store one partial
    // result each.
    const WgmmaProblem& p = pieces_.front().problem;
    arguments_.reserve(config.splits > 1
                           ? std::int64_t{8} * pieces_.front().grid.x
                           : std::int64_t{p.rows} * p.columns * config.cluster * config.rows / 16,
                       workspace_bytes);
  }

  void run(const Binding& binding) const override {
    std::vector<std::uint64_t>& words = words_of_thread();
    arguments_.fill(words, binding);
    std::byte* place = aligned_workspace(binding.workspace);
    std::byte* a = binding.values[at(a_)];
    constexpr int kLine = kWgmmaPartsDepth;
    const TensorMap map_a = bf16x6_map(a + at(rows_a_.offset) * sizeof(float), rows_a_, false,
                                       kLine, across_a_ ? kLine : config_.rows);
    for (const Piece& piece : pieces_) {
      piece.parts.run(binding.stream, binding.values[at(b_)], place);
      WgmmaProblem problem = piece.problem;
      problem.a = map_a;
      problem.b = bf16x6_map(place, piece.parts.result(), true, across_b_ ? 64 : kLine,
                             across_b_ ? kLine : kWgmmaColumns / config_.cluster);
      void* params[] = {&problem, words.data()};
      const int shared_bytes = wgmma_shared_bytes(config_.rows, kBf16x6Stages, false, true);
      kernel_->launch(binding.stream, piece.grid, {kWgmmaThreads, 1, 1},
                      static_cast<std::uint32_t>(shared_bytes), params);
    }
  }

  std::string source() const override {
    return cat(pieces_.front().parts.source(), kNextLaunch, kernel_->source().text);
  }

 private:
  /// Columns of the result that are computed at once.
  struct Piece {
    RowParts parts;
    WgmmaProblem problem = {};
    Grid grid = {};
  };

  void describe(Piece& piece, const Target& target, const WgmmaSizes& sizes) const {
    WgmmaProblem& p = piece.problem;
    p.m = sizes.m, p.n = p.first_column + sizes.n;
    p.steps = static_cast<int>(wgmma_steps(sizes));
    p.rows = static_cast<int>(divide_up(sizes.m, config_.rows * config_.cluster));
    p.columns = static_cast<int>(divide_up(sizes.n, kWgmmaColumns));
    p.band = 8;
    piece.grid.x = static_cast<std::uint32_t>(bf16x6_blocks(target.model, sizes, config_));
  }

  Source text(bool by_four, bool batches, const std::string& epilogue) const {
    return {"gemm_bf16x6",
            cat("#include \"cuda/kernels/gemm/gemm_wgmma.cuh\"\n", epilogue,
                "\nusing namespace tenon::cuda;\n\n",
                ConfigText()
                    .ints({{"kRows", config_.rows},
                           {"kStages", kBf16x6Stages},
                           {"kCluster", config_.cluster},
                           {"kSplits", config_.splits},
                           {"kStoreVector", by_four ? 4 : 1}})
                    .flags({{"kTurns", false},
                            {"kAcrossA", across_a_},
                            {"kAcrossB", across_b_},
                            {"kBatches", batches}})
                    .value("WgmmaType", "kType", "WgmmaType::Bf16x6")
                    .text(),
                "\nextern \"C\" __global__ void __launch_bounds__(", kWgmmaThreads,
                ", 1) __cluster_dims__(", config_.cluster * config_.splits,
                ", 1, 1)\ngemm_bf16x6(const __grid_constant__ WgmmaProblem p, const "
                "__grid_constant__ Epilogue epilogue) {\n  TENON_DYNAMIC_SHARED(shared);\n  "
                "WgmmaBlock<Config, Epilogue> block(p, epilogue, shared);\n  block.set_up();\n",
                kAwaitKernels, "  block.run();\n}\n"),
            3 + static_cast<int>(epilogue.size() / 1000)};
  }

  const WgmmaConfig config_;
  const ValueId a_, b_;
  const bool across_a_, across_b_;
  const MatrixRows rows_a_;
  std::vector<Piece> pieces_;
  EpilogueArguments arguments_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

class Bf16x6Engine final : public Engine {
 public:
  explicit Bf16x6Engine(const Target& target) : target_(target) {}

  const char* name() const override { return "bf16x6"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    MatrixShape shape;
    const char* reason = bf16x6_refusal(target_, region, values, shape, why);
    if (reason == nullptr && !is_worth_parts(shape))
      reason = "leaves small products to other engines";
    return is_claimed(reason, why);
  }

  bool is_able(const Region& region, std::span<const Value> values) const override {
    MatrixShape shape;
    return bf16x6_refusal(target_, region, values, shape, nullptr) == nullptr;
  }

  Capabilities capabilities(const Region& region, std::span<const Value>) const override {
    Capabilities can;
    can.no_reductions = no_channel_sums(region);
    return can;
  }

  double estimate(const Region& region, std::span<const Value> values) const override {
    MatrixShape shape;
    if (bf16x6_refusal(target_, region, values, shape, nullptr) != nullptr) return 0;
    const GpuModel& gpu = target_.model;
    const WgmmaSizes sizes = bf16x6_sizes(shape);
    const double piece =
        bf16x6_microseconds(gpu, sizes, bf16x6_configs(gpu, sizes).front()) +
        conversion_microseconds(gpu, piece_of(shape.b, 0, piece_columns(shape)), 4, 6);
    return piece * static_cast<double>(pieces_of(shape));
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    return prepare_bf16x6(region, values, target_);
  }

  std::vector<std::string> configurations(const Region& region,
                                          std::span<const Value> values) const override {
    MatrixShape shape;
    std::vector<std::string> names;
    if (bf16x6_refusal(target_, region, values, shape, nullptr) == nullptr)
      for (const WgmmaConfig& config : bf16x6_configs(target_.model, bf16x6_sizes(shape)))
        names.push_back(wgmma_config_name(config));
    return names;
  }

  std::unique_ptr<Kernel> prepare_as(const std::string& configuration, const Region& region,
                                     std::span<const Value> values, int) const override {
    return prepare_bf16x6(region, values, target_, configuration);
  }

 private:
  const Target target_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_bf16x6(const Region& region, std::span<const Value> values,
                                       const Target& target, const std::string& configuration) {
  MatrixShape shape;
  std::string why;
  if (const char* reason = bf16x6_refusal(target, region, values, shape, &why))
    throw InternalError(cat("bf16x6: ", reason[0] != '\0' ? reason : why.c_str()));
  const WgmmaSizes sizes = bf16x6_sizes(shape);
  return std::make_unique<Bf16x6Kernel>(target, region, values, shape,
                                        configuration.empty()
                                            ? bf16x6_configs(target.model, sizes).front()
                                            : bf16x6_config_named(sizes, configuration));
}

const Engine& bf16x6_engine(const Target& target) { return per_target<Bf16x6Engine>(target); }

}  // namespace tenon::cuda
