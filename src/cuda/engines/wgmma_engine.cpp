// From a region to launches of cuda/kernels/gemm_wgmma.cuh: operands brought into 16-bit rows that
// the copy engine can read, tensor maps of them, and the kernel with the epilogue.
//
// Tensor maps hold addresses, so they are made at each run (a microsecond); a captured program
// keeps them.
#include "cuda/engines/wgmma_engine.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"
#include "cuda/device/driver.h"
#include "cuda/engines/cublaslt_shape.h"
#include "cuda/engines/opaque_kernels.h"
#include "cuda/engines/per_target.h"
#include "cuda/engines/vendor_parts.h"
#include "cuda/kernels/gemm_wgmma_args.cuh"

namespace tenon::cuda {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
bool is_short(DType dtype) { return dtype == DType::BFloat16 || dtype == DType::Float16; }

/// What both operands are multiplied as; Float32 when that is no 16-bit type.
DType operand_dtype(const Contraction& c, std::span<const Value> values) {
  if (is_short(c.compute)) return c.compute;
  const DType a = values[at(c.a.value)].dtype, b = values[at(c.b.value)].dtype;
  // Products of two 16-bit numbers are exact in the sums' float32.
  return a == b && is_short(a) && c.compute == DType::Float32 ? a : DType::Float32;
}

const char* refusal(const Target& target, const Region& region, std::span<const Value> values,
                    LtShape& shape, std::string* why) {
  if (target.arch != 90) return "no Hopper card";
  if (region.kind != RegionKind::Contraction || region.contraction.op != Op::Matmul)
    return "it is no matrix product";
  const Contraction& c = region.contraction;
  for (const DType dtype : {c.dtype, values[at(c.a.value)].dtype, values[at(c.b.value)].dtype})
    if (dtype != DType::Float32 && !is_short(dtype)) return "neither float32 nor a 16-bit type";
  if (!is_short(operand_dtype(c, values))) return "it does not compute in a 16-bit type";
  if (!lt_shape(c, shape, why)) return "";
  if (shape.batch != 1) return "several matrices on the right";
  if (target.ordinal >= 0 && !has_tensor_maps()) return "the driver makes no tensor maps";
  return nullptr;
}

/// Below this the conversions and the tiles' size cost more than wgmma wins.
bool is_large(const LtShape& s) {
  const std::int64_t tiles = ceil_div(s.m, kWgmmaTile) * ceil_div(s.n, kWgmmaTile);
  return std::min({s.m, s.n, s.k}) >= 256 && tiles >= 48 &&
         s.m * s.n >= (std::int64_t{1} << 30) / s.k;
}

/// A 16-bit operand as the copy engine reads it: rows of the contiguous axis, boxes of 64 elements.
class Side {
 public:
  Side(const Target& target, const View& view, LtOperand operand, DType stored, DType wanted,
       bool inner_is_k, int box_rows)
      : value_(view.value), across_(!inner_is_k), box_rows_(across_ ? 64 : box_rows) {
    VendorRows& rows = operand.rows;
    const bool aligned = rows.offset % 8 == 0 && rows.outer_stride % 8 == 0;
    if (stored != wanted || !aligned) {
      cast_.emplace(target, rows, stored, wanted);
      rows = cast_->result();
    }
    offset_bytes_ = at(rows.offset) * 2;
    extents_[0] = at(rows.inner), extents_[1] = at(rows.outer);
    pitch_ = at(rows.outer_stride) * 2;
  }

  bool across() const { return across_; }
  std::size_t workspace_bytes() const { return cast_ ? cast_->bytes() : 0; }
  std::string source() const { return cast_ ? cast_->source() : std::string(); }

  /// Queues the conversion when there is one, into the workspace at `place`, which moves on.
  TensorMap bind(const Binding& binding, std::byte*& place) const {
    std::byte* memory = binding.values[at(value_)];
    if (cast_) {
      cast_->run(binding.stream, memory, place);
      memory = place;
      place += cast_->bytes();
    }
    return map(memory + offset_bytes_);
  }

 private:
  TensorMap map(std::byte* memory) const {
    // CU_TENSOR_MAP_DATA_TYPE_UINT16: only bits are moved. No interleaving; 128-byte swizzle;
    // promotion to 256 bytes in the second-level cache; zeros outside.
    constexpr int kUint16 = 1, kNone = 0, kSwizzle128 = 3, kPromote256 = 3;
    const unsigned box[] = {64, static_cast<unsigned>(box_rows_)}, steps[] = {1, 1};
    TensorMap out;
    check(driver().cuTensorMapEncodeTiled(&out, kUint16, 2, memory, extents_, &pitch_, box, steps,
                                          kNone, kSwizzle128, kPromote256, kNone),
          "describing a matrix of ", extents_[1], " rows of ", extents_[0], " elements");
    return out;
  }

  ValueId value_;
  bool across_;
  int box_rows_;
  std::optional<VendorCast> cast_;
  std::size_t offset_bytes_ = 0;
  std::uint64_t extents_[2] = {}, pitch_ = 0;
};

class WgmmaKernel final : public Kernel {
 public:
  WgmmaKernel(const Target& target, const Region& region, std::span<const Value> values,
              const LtShape& shape)
      : cluster_(shape.m > kWgmmaTile ? 2 : 1),
        a_(side(target, region, values, shape.a, region.contraction.a, shape.a.plain, kWgmmaTile)),
        b_(side(target, region, values, shape.b, region.contraction.b, !shape.b.plain,
                kWgmmaTile / cluster_)) {
    const Contraction& c = region.contraction;
    problem_.m = shape.m, problem_.n = shape.n;
    const std::int64_t batch_rows = c.a_shape[c.a_shape.rank() - 2];
    problem_.batch_rows = make_divisor(batch_rows);
    batches_ = batch_rows != shape.m;
    problem_.steps = static_cast<int>(ceil_div(shape.k, kWgmmaDepth));
    problem_.rows = static_cast<int>(ceil_div(shape.m, kWgmmaTile * cluster_));
    problem_.columns = static_cast<int>(ceil_div(shape.n, kWgmmaTile));
    problem_.band = 8;
    const int clusters =
        std::min(problem_.rows * problem_.columns, target.multiprocessors / cluster_);
    grid_.x = static_cast<std::uint32_t>(clusters * cluster_);
    turns_ = problem_.rows * problem_.columns > clusters;
    PrintedEpilogue printed = print_epilogue(region, values, target);
    arguments_ = std::move(printed.arguments);
    kernel_ = compile(target, text(shape, operand_dtype(c, values), printed.code));
    workspace_bytes = a_.workspace_bytes() + b_.workspace_bytes();
    if (workspace_bytes > 0) workspace_bytes += kVendorAlignment;
  }

  void run(const Binding& binding) const override {
    thread_local std::vector<std::uint64_t>
        words;  // keeps its memory: a settled step allocates none
    words.assign(arguments_.words.begin(), arguments_.words.end());
    for (const auto& [word, value] : arguments_.pointers)
      words[at(word)] = reinterpret_cast<std::uintptr_t>(binding.values[at(value)]);
    std::byte* place = vendor_align(binding.workspace);
    WgmmaProblem problem = problem_;
    problem.a = a_.bind(binding, place);
    problem.b = b_.bind(binding, place);
    void* params[] = {&problem, words.data()};
    kernel_->launch(binding.stream, grid_, {kWgmmaThreads, 1, 1}, kWgmmaSharedBytes, params);
  }

  std::string source() const override {
    return cat(a_.source(), b_.source(), kernel_->source().text);
  }

 private:
  static Side side(const Target& target, const Region& region, std::span<const Value> values,
                   const LtOperand& operand, const View& view, bool inner_is_k, int box_rows) {
    return {target,
            view,
            operand,
            values[at(view.value)].dtype,
            operand_dtype(region.contraction, values),
            inner_is_k,
            box_rows};
  }

  Source text(const LtShape& shape, DType operands, const std::string& epilogue) const {
    return {
        "gemm_wgmma",
        cat("#include \"cuda/kernels/gemm_wgmma.cuh\"\n", epilogue,
            "\nusing namespace tenon::cuda;\n\nstruct Config {\n  static constexpr int kCluster "
            "= ",
            cluster_, ", kStoreVector = ", shape.n % 4 == 0 ? 4 : 1,
            ";\n  static constexpr bool kTurns = ", truth(turns_),
            ", kHalf = ", truth(operands == DType::Float16), ", kAcrossA = ", truth(a_.across()),
            ", kAcrossB = ", truth(b_.across()), ", kBatches = ", truth(batches_),
            ";\n};\n\nextern \"C\" __global__ void __launch_bounds__(", kWgmmaThreads,
            ", 1) __cluster_dims__(", cluster_,
            ", 1, 1)\ngemm_wgmma(const __grid_constant__ WgmmaProblem p, const "
            "__grid_constant__ Epilogue epilogue) {\n  TENON_DYNAMIC_SHARED(shared);\n  "
            "WgmmaBlock<Config, Epilogue>(p, epilogue, shared).run();\n}\n")};
  }

  const int cluster_;
  bool turns_ = false, batches_ = false;
  const Side a_, b_;
  WgmmaProblem problem_;
  Grid grid_;
  ArgumentBlock arguments_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

class WgmmaEngine final : public Engine {
 public:
  explicit WgmmaEngine(const Target& target) : target_(target) {}

  const char* name() const override { return "wgmma"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    LtShape shape;
    const char* reason = refusal(target_, region, values, shape, why);
    if (reason == nullptr && !is_large(shape)) reason = "too small a product";
    if (reason != nullptr && reason[0] != '\0' && why != nullptr) *why = reason;
    return reason == nullptr;
  }

  // Measured on an H200: cuBLASLt's own loop is up to a fifth faster, less than what a pass of its
  // own over the product costs; so this one is for epilogues that cuBLASLt does not fuse.
  int preference(const Region& region) const override {
    return region.kind == RegionKind::Contraction && region.contraction.has_epilogue ? 2 : 0;
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    return prepare_wgmma(region, values, target_);
  }

 private:
  const Target target_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_wgmma(const Region& region, std::span<const Value> values,
                                      const Target& target) {
  LtShape shape;
  std::string why;
  if (const char* reason = refusal(target, region, values, shape, &why))
    throw InternalError(cat("wgmma: ", reason[0] != '\0' ? reason : why.c_str()));
  return std::make_unique<WgmmaKernel>(target, region, values, shape);
}

bool has_tensor_maps() { return loaded_driver().table.cuTensorMapEncodeTiled != nullptr; }

const Engine& wgmma_engine(const Target& target) { return per_target<WgmmaEngine>(target); }

}  // namespace tenon::cuda
