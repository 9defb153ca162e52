// Prepares launches of cuda/kernels/gemm/gemm_wgmma.cuh: converts operands to rows that TMA can
// read, makes their tensor maps, and launches the kernel with the epilogue.
//
// Tensor maps contain addresses, so they are made at each run (a microsecond); a captured program
// keeps them.
#include "cuda/engines/products/wgmma_engine.h"

#include <algorithm>
#include <optional>
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
#include "cuda/engines/products/conversions.h"
#include "cuda/engines/products/matrix_shape.h"
#include "cuda/engines/products/wgmma_config.h"
#include "cuda/kernels/gemm/gemm_wgmma_args.cuh"
#include "plan/regions/channel_sums.h"

namespace tenon::cuda {
namespace {

bool is_short(DType dtype) { return dtype == DType::BFloat16 || dtype == DType::Float16; }

/// The type in which both operands are multiplied; Float32 means tf32.
DType operand_dtype(const Contraction& c, std::span<const Value> values) {
  if (is_short(c.compute())) return c.compute();
  const DType a = values[at(c.a.value)].dtype, b = values[at(c.b.value)].dtype;
  // Products of two 16-bit numbers are exact in the float32 sums.
  return a == b && is_short(a) && c.compute() == DType::Float32 ? a : DType::Float32;
}

const char* type_name(DType operands) {
  if (operands == DType::Float32) return "WgmmaType::Tf32";
  return operands == DType::Float16 ? "WgmmaType::F16" : "WgmmaType::Bf16";
}

/// tf32 operands are read in place if k is contiguous and lines and start are at multiples of 16
/// bytes.
bool is_in_place(const MatrixOperand& operand, bool inner_is_k) {
  return inner_is_k && operand.rows.offset % 4 == 0 && operand.rows.outer_stride % 4 == 0;
}

const char* refusal(const Target& target, const Region& region, std::span<const Value> values,
                    MatrixShape& shape, std::string* why) {
  if (target.arch != 90) return "needs a Hopper GPU (compute capability 9.0)";
  if (region.kind != RegionKind::Contraction || region.contraction.op != Op::Matmul)
    return "runs matrix products only";
  const Contraction& c = region.contraction;
  const DType a = values[at(c.a.value)].dtype, b = values[at(c.b.value)].dtype;
  for (const DType dtype : {c.dtype, a, b})
    if (dtype != DType::Float32 && !is_short(dtype)) return "takes float32 and 16-bit types only";
  const bool tf32 = !is_short(operand_dtype(c, values));
  if (tf32 && !c.tf32()) return "computes in 16-bit types and tf32 only, not in float32";
  if (tf32 && (is_short(a) || is_short(b))) return "computes in tf32 of float32 operands only";
  if (!matrix_shape(c, shape, why)) return "";
  if (shape.batch != 1) return "takes one right matrix only, not a batch of them";
  if (tf32 && is_in_place(shape.a, shape.a.plain) != is_in_place(shape.b, !shape.b.plain))
    return "needs both tf32 operands or none to be contiguous along the reduction";
  if (target.ordinal >= 0 && !has_tensor_maps())
    return "needs tensor maps, which this driver does not have";
  return nullptr;
}

WgmmaSizes sizes_of(const Region& region, std::span<const Value> values, const MatrixShape& shape) {
  const Contraction& c = region.contraction;
  const DType wanted = operand_dtype(c, values);
  std::int64_t casts = 0;
  const bool tf32 = wanted == DType::Float32;
  if (tf32 ? !is_in_place(shape.a, shape.a.plain) : values[at(c.a.value)].dtype != wanted)
    casts += shape.m * shape.k;
  if (tf32 ? !is_in_place(shape.b, !shape.b.plain) : values[at(c.b.value)].dtype != wanted)
    casts += shape.n * shape.k;
  const auto by_rows = [](const MapReduce& reduce) { return reduce.rows > 0; };
  return {shape.m,
          shape.n,
          shape.k,
          static_cast<int>(item_size(wanted)),
          casts * 8 > (shape.m + shape.n) * shape.k,
          std::any_of(region.map.reduces.begin(), region.map.reduces.end(), by_rows)};
}

/// An operand for TMA: rows of the contiguous axis, boxes of 128 bytes of each.
class WgmmaSide {
 public:
  WgmmaSide(const Target& target, const View& view, MatrixOperand operand, DType stored,
            DType wanted, bool inner_is_k, int box_rows)
      : value_(view.value), across_(!inner_is_k), item_(item_size(wanted)) {
    MatrixRows& rows = operand.rows;
    const auto step = static_cast<std::int64_t>(16 / item_);
    const bool aligned = rows.offset % step == 0 && rows.outer_stride % step == 0;
    if (across_ && wanted == DType::Float32) {
      transpose_.emplace(target, rows, true);
      rows = transpose_->result();
      across_ = false;
    } else if (stored != wanted || !aligned) {
      cast_.emplace(target, rows, stored, wanted);
      rows = cast_->result();
    }
    box_rows_ = across_ ? 64 : box_rows;
    offset_bytes_ = at(rows.offset) * item_;
    extents_[0] = at(rows.inner), extents_[1] = at(rows.outer);
    pitch_ = at(rows.outer_stride) * item_;
  }

  /// Reads another value instead (Kernel::on_values).
  void rename(std::span<const ValueId> renamed) { value_ = renamed[at(value_)]; }

  bool across() const { return across_; }
  std::size_t workspace_bytes() const {
    return transpose_ ? transpose_->bytes() : cast_ ? cast_->bytes() : 0;
  }
  std::string source() const {
    return transpose_ ? transpose_->source() : cast_ ? cast_->source() : std::string();
  }

  /// Queues the conversion, if there is one, into the workspace at `place`, which advances.
  TensorMap bind(const Binding& binding, std::byte*& place) const {
    std::byte* memory = binding.values[at(value_)];
    const std::byte* from = memory;
    if (workspace_bytes() > 0) memory = place;
    if (transpose_) transpose_->run(binding.stream, from, memory);
    if (cast_) cast_->run(binding.stream, from, memory);
    place += workspace_bytes();
    return map(memory + offset_bytes_);
  }

 private:
  TensorMap map(std::byte* memory) const {
    return tensor_map(
        memory, item_, {extents_[0], extents_[1]}, {pitch_},
        {static_cast<unsigned>(kWgmmaLine / item_), static_cast<unsigned>(box_rows_)});
  }

  ValueId value_;
  bool across_;
  std::size_t item_;
  int box_rows_ = 0;
  std::optional<RowCast> cast_;
  std::optional<RowTranspose> transpose_;  // tf32 is multiplied along lines only
  std::size_t offset_bytes_ = 0;
  std::uint64_t extents_[2] = {}, pitch_ = 0;
};

class WgmmaKernel final : public Kernel {
 public:
  WgmmaKernel(const Target& target, const Region& region, std::span<const Value> values,
              const MatrixShape& shape, const WgmmaConfig& config)
      : config_(config),
        a_(side(target, region, values, shape.a, region.contraction.a, shape.a.plain, config.rows)),
        b_(side(target, region, values, shape.b, region.contraction.b, !shape.b.plain,
                kWgmmaColumns / config.cluster)) {
    const Contraction& c = region.contraction;
    problem_.m = shape.m, problem_.n = shape.n;
    const std::int64_t batch_rows = c.a_shape[c.a_shape.rank() - 2];
    problem_.batch_rows = make_divisor(batch_rows);
    batches_ = batch_rows != shape.m;
    const WgmmaSizes sizes = sizes_of(region, values, shape);
    problem_.steps = static_cast<int>(wgmma_steps(sizes));
    problem_.rows = static_cast<int>(divide_up(shape.m, config.rows * config.cluster));
    problem_.columns = static_cast<int>(divide_up(shape.n, kWgmmaColumns));
    problem_.band = 8;
    const int tiles = problem_.rows * problem_.columns, blocks = config.cluster * config.splits;
    const int room = config.splits > 1 ? tiles : target.multiprocessors / blocks;
    grid_.x = static_cast<std::uint32_t>(std::min(tiles, room) * blocks);
    turns_ = config.splits == 1 && wgmma_tiles(wgmma_class(sizes), config) > room;
    stages_ = wgmma_stages(config, turns_);
    PrintedEpilogue printed = print_epilogue(region, values, target);
    arguments_ = std::move(printed.arguments);
    kernel_ = compile(target, text(shape, operand_dtype(c, values), printed.code));
    workspace_bytes = a_.workspace_bytes() + b_.workspace_bytes();
    if (workspace_bytes > 0) workspace_bytes += kConversionAlignment;
    // A warp's rows of a tile, or a warp of a block that shares its tile's sums, store one partial
    // result each.
    arguments_.reserve(config.splits > 1 ? std::int64_t{8} * grid_.x
                                         : std::int64_t{tiles} * config.cluster * config.rows / 16,
                       workspace_bytes);
  }

  std::unique_ptr<Kernel> on_values(std::span<const ValueId> renamed) const override {
    auto other = std::make_unique<WgmmaKernel>(*this);
    other->a_.rename(renamed);
    other->b_.rename(renamed);
    other->arguments_.rename(renamed);
    return other;
  }

  void run(const Binding& binding) const override {
    std::vector<std::uint64_t>& words = words_of_thread();
    arguments_.fill(words, binding);
    std::byte* place = aligned_workspace(binding.workspace);
    WgmmaProblem problem = problem_;
    problem.a = a_.bind(binding, place);
    problem.b = b_.bind(binding, place);
    void* params[] = {&problem, words.data()};
    const int shared_bytes = wgmma_shared_bytes(config_.rows, stages_, turns_);
    kernel_->launch(binding.stream, grid_, {kWgmmaThreads, 1, 1},
                    static_cast<std::uint32_t>(shared_bytes), params);
  }

  std::string source() const override {
    return cat(a_.source(), b_.source(), kernel_->source().text);
  }

 private:
  static WgmmaSide side(const Target& target, const Region& region, std::span<const Value> values,
                        const MatrixOperand& operand, const View& view, bool inner_is_k,
                        int box_rows) {
    return {target,
            view,
            operand,
            values[at(view.value)].dtype,
            operand_dtype(region.contraction, values),
            inner_is_k,
            box_rows};
  }

  Source text(const MatrixShape& shape, DType operands, const std::string& epilogue) const {
    return {"gemm_wgmma",
            cat("#include \"cuda/kernels/gemm/gemm_wgmma.cuh\"\n", epilogue,
                "\nusing namespace tenon::cuda;\n\n",
                ConfigText()
                    .ints({{"kRows", config_.rows},
                           {"kStages", stages_},
                           {"kCluster", config_.cluster},
                           {"kSplits", config_.splits},
                           {"kStoreVector", shape.n % 4 == 0 ? 4 : 1}})
                    .flags({{"kTurns", turns_},
                            {"kAcrossA", a_.across()},
                            {"kAcrossB", b_.across()},
                            {"kBatches", batches_}})
                    .value("WgmmaType", "kType", type_name(operands))
                    .text(),
                "\nextern \"C\" __global__ void __launch_bounds__(", kWgmmaThreads,
                ", 1) __cluster_dims__(", config_.cluster * config_.splits,
                ", 1, 1)\ngemm_wgmma(const __grid_constant__ WgmmaProblem p, const "
                "__grid_constant__ Epilogue epilogue) {\n  TENON_DYNAMIC_SHARED(shared);\n  "
                "WgmmaBlock<Config, Epilogue> block(p, epilogue, shared);\n  block.set_up();\n",
                kAwaitKernels, "  block.run();\n}\n"),
            3 + static_cast<int>(epilogue.size() / 1000)};
  }

  const WgmmaConfig config_;
  bool turns_ = false, batches_ = false;
  int stages_ = 0;
  WgmmaSide a_, b_;
  WgmmaProblem problem_;
  Grid grid_;
  EpilogueArguments arguments_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

class WgmmaEngine final : public Engine {
 public:
  explicit WgmmaEngine(const Target& target) : target_(target) {}

  const char* name() const override { return "wgmma"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    MatrixShape shape;
    const char* reason = refusal(target_, region, values, shape, why);
    if (reason == nullptr &&
        !wgmma_is_worth(target_.model, wgmma_class(sizes_of(region, values, shape))))
      reason = "leaves small products to other engines";
    return is_claimed(reason, why);
  }

  bool is_able(const Region& region, std::span<const Value> values) const override {
    MatrixShape shape;
    return refusal(target_, region, values, shape, nullptr) == nullptr;
  }

  Capabilities capabilities(const Region& region, std::span<const Value> values) const override {
    Capabilities can;
    can.no_reductions = no_channel_sums(region);
    MatrixShape shape;
    if (refusal(target_, region, values, shape, nullptr) != nullptr) return can;
    if (reduces_rows(region, values, shape)) can.reduced_rows = kReducedRows;
    return can;
  }

  double estimate(const Region& region, std::span<const Value> values) const override {
    MatrixShape shape;
    if (refusal(target_, region, values, shape, nullptr) != nullptr) return 0;
    // By size class: an incomplete batch is planned like a whole one.
    return wgmma_microseconds(target_.model, wgmma_class(sizes_of(region, values, shape)));
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    return prepare_wgmma(region, values, target_, {});
  }

  std::vector<std::string> configurations(const Region& region,
                                          std::span<const Value> values) const override {
    MatrixShape shape;
    std::vector<std::string> names;
    if (refusal(target_, region, values, shape, nullptr) == nullptr)
      for (const WgmmaConfig& config :
           wgmma_configs(target_.model, sizes_of(region, values, shape)))
        names.push_back(wgmma_config_name(config));
    return names;
  }

  std::unique_ptr<Kernel> prepare_as(const std::string& configuration, const Region& region,
                                     std::span<const Value> values, int) const override {
    return prepare_wgmma(region, values, target_, configuration);
  }

 private:
  // Rows of a tile with one warpgroup, whose block must have all of its sums.
  static constexpr int kReducedRows = 64;
  /// True if rows are reduced in the epilogue. Results of few columns would leave threads idle. An
  /// epilogue's registers hold three values with the result's layout: with a fourth, products of
  /// layer1 of resnet50 take 2.4 times as long.
  bool reduces_rows(const Region& region, std::span<const Value> values,
                    const MatrixShape& shape) const {
    constexpr std::ptrdiff_t kMostRead = 3;
    const std::vector<MapReduce>& reduces = region.map.reduces;
    const bool does = std::any_of(reduces.begin(), reduces.end(),
                                  [](const MapReduce& reduce) { return reduce.rows > 0; });
    // The plan records every question about a size, so divisibility is asked only for products that
    // reduce rows already.
    if (does && shape.m % kReducedRows != 0) return false;
    if (shape.n % 4 != 0 || shape.n < kWgmmaColumns) return false;
    const auto is_read = [](const MapInstr& instr) {
      return instr.code == MapCode::Load && instr.view.stride[1] != 0;
    };
    const std::vector<MapInstr>& instrs = region.map.instrs;
    if (std::count_if(instrs.begin(), instrs.end(), is_read) > kMostRead) return false;
    constexpr int kMostPerLane = 8;  // a lane holds four columns of each; kernels have room for 16
    int numbers = 0;  // most numbers of a column; some sums are computed from moments
    for (const MapReduce& reduce : region.map.reduces) numbers += reduce.deviations ? 2 : 1;
    if (numbers > kMostPerLane) return false;
    WgmmaSizes sizes = sizes_of(region, values, shape);
    sizes.whole = false;
    return choose_wgmma(target_.model, sizes).splits == 1;
  }

  const Target target_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_wgmma(const Region& region, std::span<const Value> values,
                                      const Target& target, const std::string& configuration) {
  MatrixShape shape;
  std::string why;
  if (const char* reason = refusal(target, region, values, shape, &why))
    throw InternalError(cat("wgmma: ", reason[0] != '\0' ? reason : why.c_str()));
  const WgmmaSizes sizes = sizes_of(region, values, shape);
  return std::make_unique<WgmmaKernel>(target, region, values, shape,
                                       configuration.empty()
                                           ? choose_wgmma(target.model, sizes)
                                           : wgmma_config_named(sizes, configuration));
}

const Engine& wgmma_engine(const Target& target) { return per_target<WgmmaEngine>(target); }

}  // namespace tenon::cuda
