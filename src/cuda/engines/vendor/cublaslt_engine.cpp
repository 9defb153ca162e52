// Matrix products by cuBLASLt, and convolutions that are one product per image. A row-major result
// is a transposed column-major one: the library computes outᵀ = bᵀ aᵀ.
//
// Algorithms are proposed by the library's heuristics; only deterministic ones are used: no split
// of k, or a split whose parts a separate step adds in order. Configurations are the ranks of the
// proposals.
#include "cuda/engines/vendor/cublaslt_engine.h"

#include <algorithm>
#include <mutex>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/launch/per_target.h"
#include "cuda/engines/products/conversions.h"
#include "cuda/engines/products/matrix_shape.h"
#include "cuda/engines/products/native_config.h"
#include "cuda/engines/vendor/cublaslt_api.h"
#include "cuda/engines/vendor/gelu_epilogue.h"
#include "cuda/engines/vendor/vendor_parts.h"
#include "cuda/jit/workers.h"

namespace tenon::cuda {
namespace {

constexpr std::uint64_t kMostWorkspace = std::uint64_t{32} << 20;
constexpr int kAlgorithms = 8;  // how many of the heuristics' proposals are worth timing

int data_type(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return CUDA_R_16F;
    case DType::BFloat16:
      return CUDA_R_16BF;
    case DType::Float64:
      return CUDA_R_64F;
    default:
      return CUDA_R_32F;
  }
}

/// The largest power of two up to 16 that divides the addresses of all rows, in bytes.
std::uint32_t alignment_of(const MatrixRows& rows, DType dtype) {
  const auto item = static_cast<std::int64_t>(item_size(dtype));
  std::int64_t bits = 16 | rows.offset * item;
  return static_cast<std::uint32_t>(bits & -bits);
}

/// True if the length and stride of all rows are multiples of 16 bytes, as Hopper's kernels
/// require.
bool has_aligned_rows(const MatrixShape& shape, DType compute) {
  const std::int64_t line = 16 / static_cast<std::int64_t>(item_size(compute));
  const auto is_whole = [&](const MatrixRows& rows) {
    return rows.inner % line == 0 && (rows.outer == 1 || rows.outer_stride % line == 0);
  };
  return is_whole(shape.a.rows) && is_whole(shape.b.rows) && shape.n % line == 0;
}

/// Time of a product with the tiles and splits that the heuristics choose. The share of the GPU's
/// rate was fitted to measurements on an H200 (cuda/tuned).
double product_microseconds(const GpuModel& gpu, MatrixShape shape, const Contraction& c) {
  constexpr std::int64_t kTile = 64, kShortestSplit = 256;
  constexpr double kShare = 0.7;
  constexpr double kShareOfOthers = 0.12;  // for 16 bits, with kernels for older GPUs
  constexpr double kRounds = 4;            // rounds of loads while a multiprocessor starts and ends
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  const bool whole = !vendor_is_short(c.compute()) || has_aligned_rows(shape, c.compute());
  // By size class: an incomplete batch is planned like a whole one.
  shape.m = power_above(shape.m), shape.k = power_above(shape.k);
  const double rate = (whole ? kShare : kShareOfOthers) * gpu.rate(c.compute(), c.tf32());
  const double tiles = real(divide_up(shape.m, kTile) * divide_up(shape.n, kTile) * shape.batch);
  double best = 0;
  for (std::int64_t splits = 1; splits == 1 || shape.k / splits >= kShortestSplit; splits *= 2) {
    const double waves = std::max(1.0, tiles * real(splits) / gpu.multiprocessors);
    double cycles = waves * kTile * kTile * real(divide_up(shape.k, splits)) / rate;
    if (splits > 1)  // partial results, added by a launch of their own
      cycles += gpu.launch_cycles() + 8 * real(shape.m * shape.n * shape.batch * splits) /
                                          (gpu.cache * gpu.multiprocessors);
    if (splits == 1 || cycles < best) best = cycles;
  }
  const double bytes = real(shape.batch * (shape.m * shape.n + (shape.m + shape.n) * shape.k)) *
                       static_cast<double>(item_size(c.compute()));
  return std::max(gpu.cycles_to_microseconds(best + gpu.launch_cycles()),
                  microseconds(gpu, {.bytes = bytes})) +
         gpu.cycles_to_microseconds(kRounds * gpu.latency);
}

/// The library's own epilogue, for a result of the type of `out`.
struct LtEpilogue {
  std::uint32_t kind = CUBLASLT_EPILOGUE_DEFAULT;
  ValueId bias = kNoValue;  // float32, along the columns
  std::int64_t bias_offset = 0;
  ValueId input = kNoValue;  // GELU's: stored, or read for the gradient
  ValueId out = kNoValue;
};

/// Nothing if the library fuses no such epilogue.
std::optional<LtEpilogue> fused(const Region& region, std::span<const Value> values) {
  constexpr std::int64_t kLeadingDimension = 8;  // that of GELU's input is a multiple of it
  LtEpilogue e;
  if (const std::optional<SimpleEpilogue> simple = simple_epilogue(region, values)) {
    if (simple->bias != kNoValue && simple->bias_axis != 2) return {};
    e.bias = simple->bias, e.bias_offset = simple->bias_offset, e.out = simple->out;
    if (simple->relu) e.kind = CUBLASLT_EPILOGUE_RELU;
    if (e.bias != kNoValue)
      e.kind = simple->relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  } else if (const std::optional<GeluEpilogue> gelu = gelu_epilogue(region, values)) {
    if (region.map.space[0] != 1 || region.map.space[2] % kLeadingDimension != 0) return {};
    e.bias = gelu->bias.value, e.bias_offset = gelu->bias.offset;
    e.input = gelu->input, e.out = gelu->out;
    e.kind = gelu->gradient        ? CUBLASLT_EPILOGUE_DGELU
             : e.input != kNoValue ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                                   : CUBLASLT_EPILOGUE_GELU_BIAS;
  } else {
    return {};
  }
  // A bias that float16 cannot represent may cancel in the sum.
  if (e.bias != kNoValue && values[at(e.out)].dtype == DType::Float16) return {};
  constexpr std::int64_t kAlignedFloats = 4;
  return e.bias_offset % kAlignedFloats == 0 ? std::optional(e) : std::nullopt;
}

/// The library has no algorithm of any rank for the call.
struct NoAlgorithm : NotSupported {
  using NotSupported::NotSupported;
};

/// One call of the library, described and chosen once.
class LtCall {
 public:
  LtCall(const Target& target, const Contraction& c, const MatrixShape& shape, DType operands,
         DType result, const LtEpilogue* epilogue, int rank)
      : ordinal_(target.ordinal), is_double_(operands == DType::Float64) {
    const CublasLt& lt = cublaslt();
    const cublasLtHandle_t handle = cublaslt_handle(ordinal_);
    const int compute = is_double_                               ? CUBLAS_COMPUTE_64F
                        : c.tf32() && operands == DType::Float32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                 : CUBLAS_COMPUTE_32F;
    check_cublaslt(lt.cublasLtMatmulDescInit_internal(&operation_, sizeof operation_, compute,
                                                      is_double_ ? CUDA_R_64F : CUDA_R_32F),
                   "describing a product");
    layout(a_, shape.b, operands, CUBLASLT_MATMUL_DESC_TRANSA);
    layout(b_, shape.a, operands, CUBLASLT_MATMUL_DESC_TRANSB);
    MatrixRows out;
    out.batch = shape.batch, out.outer = shape.m, out.inner = shape.n;
    out.outer_stride = shape.n, out.batch_stride = shape.m * shape.n;
    layout(out_, {out, true}, result, -1);
    if (epilogue != nullptr) set_epilogue(*epilogue, shape.n);
    decide(handle, alignment_of(shape.b.rows, operands), alignment_of(shape.a.rows, operands),
           rank);
  }

  std::size_t workspace_bytes() const { return chosen_.workspaceSize; }

  void run(void* stream, const void* a, const void* b, void* out, const void* bias, void* input,
           void* workspace) const {
    const CublasLt& lt = cublaslt();
    const double one = 1, zero = 0;
    const float one_f = 1, zero_f = 0;
    cublasLtMatmulDescOpaque_t operation = operation_;
    if (bias != nullptr) set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (input != nullptr) set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, input);
    const void* alpha = is_double_ ? static_cast<const void*>(&one) : &one_f;
    const void* beta = is_double_ ? static_cast<const void*>(&zero) : &zero_f;
    check_cublaslt(lt.cublasLtMatmul(cublaslt_handle(ordinal_), &operation, alpha, b, &a_, a, &b_,
                                     beta, out, &out_, out, &out_, &chosen_.algo, workspace,
                                     chosen_.workspaceSize, stream),
                   "multiplying matrices");
  }

 private:
  template <class T>
  static void set(cublasLtMatmulDescOpaque_t& operation, int attribute, const T& value) {
    check_cublaslt(
        cublaslt().cublasLtMatmulDescSetAttribute(&operation, attribute, &value, sizeof value),
        "describing a product");
  }

  /// Column-major, so the contiguous axis comes first. `transpose` is the attribute for reading the
  /// operand transposed.
  void layout(cublasLtMatrixLayoutOpaque_t& matrix, const MatrixOperand& operand, DType dtype,
              int transpose) {
    const CublasLt& lt = cublaslt();
    const MatrixRows& rows = operand.rows;
    check_cublaslt(
        lt.cublasLtMatrixLayoutInit_internal(&matrix, sizeof matrix, data_type(dtype),
                                             at(rows.inner), at(rows.outer), rows.outer_stride),
        "describing a matrix");
    if (rows.batch > 1) {
      const auto count = static_cast<std::int32_t>(rows.batch);
      check_cublaslt(lt.cublasLtMatrixLayoutSetAttribute(
                         &matrix, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                     "describing a batch");
      check_cublaslt(
          lt.cublasLtMatrixLayoutSetAttribute(&matrix, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                              &rows.batch_stride, sizeof rows.batch_stride),
          "describing a batch");
    }
    if (transpose < 0) return;
    const std::int32_t operation = operand.plain ? CUBLAS_OP_N : CUBLAS_OP_T;
    set(operation_, transpose, operation);
  }

  void set_epilogue(const LtEpilogue& e, std::int64_t columns) {
    set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, e.kind);
    // The heuristics only use the address's alignment.
    // NOLINTNEXTLINE(performance-no-int-to-ptr): never read
    const void* aligned = reinterpret_cast<const void*>(kConversionAlignment);
    if (e.bias != kNoValue) set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
    if (e.input == kNoValue) return;
    const auto try_to_set = [this](int attribute, auto value) {
      if (cublaslt().cublasLtMatmulDescSetAttribute(&operation_, attribute, &value, sizeof value) !=
          CUBLAS_STATUS_SUCCESS)
        throw NoAlgorithm("this version of cuBLASLt cannot store the input of GELU");
    };
    try_to_set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned);
    try_to_set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, columns);
  }

  void decide(cublasLtHandle_t handle, std::uint32_t alignment_a, std::uint32_t alignment_b,
              int rank) {
    const CublasLt& lt = cublaslt();
    cublasLtMatmulPreferenceOpaque_t preference;
    check_cublaslt(lt.cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference),
                   "asking for an algorithm");
    const auto prefer = [&](int attribute, auto value) {
      check_cublaslt(
          lt.cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value),
          "asking for an algorithm");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_a);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_b);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t{16});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t{16});
    int found = 0;
    cublasLtMatmulHeuristicResult_t proposals[kAlgorithms] = {};
    const cublasStatus_t status = lt.cublasLtMatmulAlgoGetHeuristic(
        handle, &operation_, &a_, &b_, &out_, &out_, &preference, rank + 1, proposals, &found);
    if (status != CUBLAS_STATUS_SUCCESS || found <= rank) {
      const std::string what =
          cat("cuBLASLt has ", found, " deterministic algorithms for this product (status ", status,
              ")");
      if (found == 0) throw NoAlgorithm(what);
      throw NotSupported(what);
    }
    chosen_ = proposals[rank];
  }

  int ordinal_;
  bool is_double_;
  cublasLtMatmulDescOpaque_t operation_ = {};
  cublasLtMatrixLayoutOpaque_t a_ = {}, b_ = {}, out_ = {};
  cublasLtMatmulHeuristicResult_t chosen_ = {};
};

/// Loads the parts of the library that every product needs, so that the first real request is fast.
/// An error here recurs at that request.
void start_cublaslt(const Target& target) noexcept {
  constexpr std::int64_t kSide = 64;
  Contraction any;
  any.attrs.precision = Precision::Bf16;
  MatrixShape shape;
  shape.m = shape.n = shape.k = kSide;
  for (MatrixOperand* operand : {&shape.a, &shape.b}) {
    operand->plain = true;
    operand->rows.outer = operand->rows.inner = operand->rows.outer_stride = kSide;
  }
  // Kernels for different result types are loaded separately.
  for (const DType result : {DType::BFloat16, DType::Float32}) {
    try {
      const LtCall call(target, any, shape, DType::BFloat16, result, nullptr, 0);
    } catch (...) {
      continue;
    }
  }
}

class LtKernel final : public Kernel {
 public:
  LtKernel(const Target& target, const Region& region, std::span<const Value> values,
           MatrixShape shape, int rank)
      : c_(as_product(region.contraction)),
        offset_a_(bytes_of(c_.a, values)),
        offset_b_(bytes_of(c_.b, values)) {
    convert(target, values, c_.a, shape.a.rows, cast_a_);
    convert(target, values, c_.b, shape.b.rows, cast_b_);
    const std::optional<LtEpilogue> epilogue = fused(region, values);
    if (!epilogue || !call_fused(target, values, shape, *epilogue, rank))
      call_with_separate_epilogue(target, region, values, shape, rank);
    workspace_bytes = cast_bytes(cast_a_) + cast_bytes(cast_b_) + cast_bytes(cast_bias_) +
                      product_bytes_ + conversion_room(call_->workspace_bytes());
    if (workspace_bytes > 0) workspace_bytes += kConversionAlignment;
  }

  /// Time of one product, with its conversions and a separate pass for an unfused epilogue.
  static double microseconds(const GpuModel& gpu, const Region& region,
                             std::span<const Value> values, const MatrixShape& shape) {
    const Contraction& c = region.contraction;
    double us = product_microseconds(gpu, shape, c);
    double others = 0;  // bytes that are neither operands nor the product
    for (const std::vector<ValueId>* list : {&region.reads, &region.writes})
      for (const ValueId id : *list)
        if (id != c.a.value && id != c.b.value) others += static_cast<double>(values[at(id)].bytes);
    if (c.has_epilogue && !fused(region, values))
      us += tenon::microseconds(
          gpu,
          {.bytes = others + static_cast<double>(c.out_shape.numel() *
                                                 static_cast<std::int64_t>(item_size(c.dtype)))});
    for (const auto& [view, operand] : {std::pair(&c.a, &shape.a), std::pair(&c.b, &shape.b)})
      if (const DType from = values[at(view->value)].dtype; from != c.compute())
        us += conversion_microseconds(gpu, operand->rows, item_size(from), item_size(c.compute()));
    return us;
  }

  void run(const Binding& binding) const override {
    std::byte* place = aligned_workspace(binding.workspace);
    const std::byte* a = operand(binding, c_.a, offset_a_, cast_a_, place);
    const std::byte* b = operand(binding, c_.b, offset_b_, cast_b_, place);
    std::byte* out = out_ == kNoValue ? place : binding.values[at(out_)];
    place += product_bytes_;
    const std::byte* bias = bias_ == kNoValue ? nullptr : binding.values[at(bias_)] + bias_offset_;
    if (cast_bias_) {
      cast_bias_->run(binding.stream, bias, place);
      bias = place;
      place += cast_bias_->bytes();
    }
    std::byte* input = input_ == kNoValue ? nullptr : binding.values[at(input_)];
    call_->run(binding.stream, a, b, out, bias, input, place);
    if (epilogue_) epilogue_->run(binding, out);
  }

  std::string source() const override {
    std::string text;
    for (const auto* cast : {&cast_a_, &cast_b_, &cast_bias_})
      if (*cast) text += (*cast)->source();
    return epilogue_ ? text + epilogue_->source() : text;
  }

 private:
  /// False if the library has no such epilogue for this product: older versions lack GELU's.
  bool call_fused(const Target& target, std::span<const Value> values, const MatrixShape& shape,
                  const LtEpilogue& epilogue, int rank) {
    const DType result = values[at(epilogue.out)].dtype;
    try {
      call_.emplace(target, c_, shape, c_.compute(), result, &epilogue, rank);
    } catch (const NoAlgorithm&) {
      return false;
    }
    out_ = epilogue.out;
    bias_ = epilogue.bias;
    bias_offset_ = at(epilogue.bias_offset) * sizeof(float);
    input_ = epilogue.input;
    if (bias_ != kNoValue && vendor_is_short(result)) {
      MatrixRows row;
      row.inner = row.outer_stride = shape.n;
      cast_bias_.emplace(target, row, DType::Float32, result);
    }
    return true;
  }

  /// The epilogue is a separate launch after the product.
  void call_with_separate_epilogue(const Target& target, const Region& region,
                                   std::span<const Value> values, const MatrixShape& shape,
                                   int rank) {
    DType result = c_.dtype;
    if (c_.has_epilogue) {
      if (vendor_is_short(result)) result = DType::Float32;
      epilogue_.emplace(target, region, values, region.map.space, result);
      out_ = product_place(region, values, result);
      if (out_ == kNoValue)
        product_bytes_ = conversion_room(at(c_.out_shape.numel()) * item_size(result));
    } else {
      out_ = c_.out;
    }
    call_.emplace(target, c_, shape, c_.compute(), result, nullptr, rank);
  }

  static std::size_t bytes_of(const View& view, std::span<const Value> values) {
    return at(view.offset) * item_size(values[at(view.value)].dtype);
  }
  static std::size_t cast_bytes(const std::optional<RowCast>& cast) {
    return cast ? cast->bytes() : 0;
  }

  void convert(const Target& target, std::span<const Value> values, const View& view,
               MatrixRows& rows, std::optional<RowCast>& cast) const {
    const DType from = values[at(view.value)].dtype;
    if (from == c_.compute()) return;
    cast.emplace(target, rows, from, c_.compute());
    rows = cast->result();
  }

  static const std::byte* operand(const Binding& binding, const View& view, std::size_t offset,
                                  const std::optional<RowCast>& cast, std::byte*& place) {
    const std::byte* memory = binding.values[at(view.value)];
    if (!cast) return memory + offset;
    std::byte* converted = place;
    cast->run(binding.stream, memory, converted);
    place += cast->bytes();
    return converted;
  }

  const Contraction c_;
  const std::size_t offset_a_, offset_b_;
  std::optional<RowCast> cast_a_, cast_b_, cast_bias_;
  std::optional<VendorEpilogue> epilogue_;
  std::optional<LtCall> call_;
  ValueId out_ = kNoValue;  // the product's memory; kNoValue: the workspace
  ValueId bias_ = kNoValue, input_ = kNoValue;
  std::size_t bias_offset_ = 0, product_bytes_ = 0;
};

class LtEngine final : public Engine {
 public:
  explicit LtEngine(const Target& target) : target_(target) {}

  const char* name() const override { return "cublaslt"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    const char* reason = refusal(region, values);
    if (reason != nullptr) {
      if (why != nullptr) *why = reason;
      return false;
    }
    MatrixShape shape;
    return matrix_shape(as_product(region.contraction), shape, why);
  }

  double estimate(const Region& region, std::span<const Value> values) const override {
    // Convolutions use cuBLASLt only if measured: the model was fitted to single products.
    MatrixShape shape;
    if (region.contraction.op != Op::Matmul || !matrix_shape(region.contraction, shape, nullptr))
      return 0;
    return LtKernel::microseconds(target_.model, region, values, shape);
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    return prepare_as({}, region, values, threads);
  }

  std::vector<std::string> configurations(const Region&, std::span<const Value>) const override {
    std::vector<std::string> names;
    names.reserve(kAlgorithms);
    for (int rank = 0; rank < kAlgorithms; ++rank) names.push_back(std::to_string(rank));
    return names;
  }

  std::unique_ptr<Kernel> prepare_as(const std::string& configuration, const Region& region,
                                     std::span<const Value> values, int) const override {
    int rank = 0;
    while (rank < kAlgorithms && !configuration.empty() && configuration != std::to_string(rank))
      ++rank;
    if (rank == kAlgorithms)
      throw NotSupported(cat("cublaslt has no configuration '", configuration, "'"));
    MatrixShape shape;
    std::string why;
    if (!matrix_shape(as_product(region.contraction), shape, &why))
      throw InternalError(cat("cublaslt: ", why));
    return std::make_unique<LtKernel>(target_, region, values, shape, rank);
  }

  void start() const override {
    if (!target_.cublaslt || target_.ordinal < 0) return;
    std::call_once(started_, [this] { run_on_worker([t = target_] { start_cublaslt(t); }); });
  }

  std::string version() const override { return std::to_string(cublaslt().cublasLtGetVersion()); }

 private:
  const char* refusal(const Region& region, std::span<const Value> values) const {
    if (!target_.cublaslt) return "needs cuBLASLt, which was not found";
    if (region.kind != RegionKind::Contraction)
      return "runs only matrix products, and convolutions that are matrix products";
    const Contraction product = as_product(region.contraction);
    if (product.op != Op::Matmul)
      return "runs only matrix products, and convolutions that are matrix products";
    if (region.contraction.op != Op::Matmul && !is_aligned(product))
      return "takes convolutions only if each channel of an image is a multiple of 8 bytes";
    return vendor_refusal(region.contraction, values);
  }

  /// The library's kernels for products are slow on unaligned operands; those for convolutions are
  /// not.
  static bool is_aligned(const Contraction& product) {
    const std::int64_t pixels = product.b_shape[product.b_shape.rank() - 1];
    return pixels * static_cast<std::int64_t>(item_size(product.compute())) % 8 == 0;
  }

  const Target target_;
  mutable std::once_flag started_;
};

}  // namespace

const Engine& cublaslt_engine(const Target& target) { return per_target<LtEngine>(target); }

}  // namespace tenon::cuda
