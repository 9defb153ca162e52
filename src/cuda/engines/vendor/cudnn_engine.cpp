// Convolutions by cuDNN. Operands are converted before the call if 16-bit operands are wanted.
// cuDNN fuses bias and ReLU where it can; any other epilogue runs after the call. Configurations:
// - N: the rank of a plan.
// - "fused-N": cuDNN also computes the epilogue.
// - "large-N": a plan that needs much memory (in float32, Fourier transforms take a third of the
//   time of direct sums over 5 x 5 filters).
// - "last-N": all feature maps are transposed to NHWC before and back after the call, because the
//   library's fast 16-bit kernels take no other layout.
// - "fused-last-N": both.
//
// If the plan keeps feature maps in NHWC, only filters are transposed. With 16-bit operands, 16-bit
// results are then requested, which the fastest of these kernels compute.
#include "cuda/engines/vendor/cudnn_engine.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/launch/per_target.h"
#include "cuda/engines/products/conversions.h"
#include "cuda/engines/vendor/cudnn_graph.h"
#include "cuda/engines/vendor/vendor_parts.h"
#include "cuda/jit/workers.h"
#include "plan/program/tune.h"

namespace tenon::cuda {
namespace {

constexpr int kPlans = 6;  // how many of the heuristics' proposals are worth timing
constexpr int kLastPlans = 3, kLargePlans = 2;
constexpr int kFusedPlans = 2;  // plans that the library compiles for an epilogue over NHWC
constexpr const char *kFused = "fused-", *kLarge = kMuchMemory, *kLast = "last-",
                     *kFusedLast = "fused-last-";

/// The plan to use, and whether the library computes the epilogue. If `fused` has no value, the
/// library computes the epilogue if it can.
struct PlanChoice {
  std::optional<bool> fused;
  int rank = 0;
  bool channels_last = false, large = false;
};

PlanChoice parse_choice(const std::string& configuration) {
  if (configuration.empty()) return {};
  for (int rank = 0; rank < kPlans; ++rank) {
    if (configuration == std::to_string(rank)) return {false, rank};
    if (configuration == kFused + std::to_string(rank)) return {true, rank};
    if (configuration == kLarge + std::to_string(rank)) return {{}, rank, false, true};
    if (configuration == kLast + std::to_string(rank)) return {false, rank, true};
    if (configuration == kFusedLast + std::to_string(rank)) return {true, rank, true};
  }
  throw NotSupported(cat("cudnn has no configuration '", configuration, "'"));
}

/// The epilogue if the library may fuse it; for gradients only a rounding.
std::optional<SimpleEpilogue> fusible(const Region& region, std::span<const Value> values) {
  std::optional<SimpleEpilogue> simple = simple_epilogue(region, values);
  const bool computes = simple && (simple->relu || simple->bias != kNoValue);
  if (computes && region.contraction.op != Op::Conv2d) return std::nullopt;
  const int channels = region.contraction.channels_last ? 2 : 1;
  if (simple && simple->bias != kNoValue &&
      (simple->bias_axis != channels || simple->bias_offset % 4 != 0))
    return std::nullopt;
  return simple;
}

/// Memory order of the elements of [N, C, H, W], innermost axis first.
constexpr int kAsWritten[] = {3, 2, 1, 0}, kChannelsLast[] = {1, 3, 2, 0},
              kFirstAxisLast[] = {0, 3, 2, 1};  // [C, H, W, N]: filters as products read them

bool has_order(const View& view, const Shape& shape, const int (&order)[4]) {
  std::int64_t step = 1;
  for (const int a : order) {
    if (shape[a] != 1 && view.stride[a] != step) return false;
    step *= shape[a];
  }
  return true;
}

bool has_order(const View& view, const Shape& shape, bool channels_last) {
  return channels_last ? has_order(view, shape, kChannelsLast) : has_order(view, shape, kAsWritten);
}

/// Feature maps or filters as planes of channels by positions.
Shape planes_of(const Shape& shape) { return {shape[0], shape[1], shape[2] * shape[3]}; }

/// The planes to transpose, one after the other, so that the operand gets the library's layout;
/// empty if it already has it. nullopt for a view in an unknown order, such as a slice.
std::optional<std::vector<Shape>> transposes(const View& view, const Shape& shape,
                                             bool channels_last) {
  const Shape planes = planes_of(shape);
  if (has_order(view, shape, channels_last)) return std::vector<Shape>{};
  if (has_order(view, shape, !channels_last))
    return std::vector<Shape>{channels_last ? planes : Shape{planes[0], planes[2], planes[1]}};
  if (!has_order(view, shape, kFirstAxisLast)) return std::nullopt;
  std::vector<Shape> all{Shape{1, planes[1] * planes[2], planes[0]}};
  if (channels_last) all.push_back(planes);
  return all;
}

/// True if the plan keeps the convolution's feature maps in NHWC.
bool keeps_last(const Contraction& c) {
  if (c.channels_last) return true;
  return c.op == Op::Conv2dWeightGrad &&
         (!has_order(c.a, c.a_shape, false) || !has_order(c.b, c.b_shape, false));
}

/// True if everything computed from a result that the plan keeps in NHWC is rounded to 16 bits
/// anyway.
bool rounds_result(const Region& region, std::span<const Value> values) {
  const Contraction& c = region.contraction;
  const auto is_rounded = [&](const MapStore& store) {
    return values[at(store.view.value)].dtype == c.compute();
  };
  return c.channels_last && vendor_is_short(c.compute()) && c.has_epilogue && c.out == kNoValue &&
         region.map.reduces.empty() &&
         std::all_of(region.map.stores.begin(), region.map.stores.end(), is_rounded);
}

/// True if the result is rounded to 16 bits before anything is computed from it.
bool is_rounded_first(const Region& region) {
  const Contraction& c = region.contraction;
  const std::vector<MapInstr>& instrs = region.map.instrs;
  if (!c.has_epilogue || c.out != kNoValue || !vendor_is_short(c.compute())) return false;
  const auto is_result = [&](int k) {
    return k >= 0 && instrs[at(k)].code == MapCode::Accumulator;
  };
  const auto uses_result = [&](const MapInstr& instr) {
    const bool rounds =
        instr.code == MapCode::Compute && instr.op == Op::Cast && instr.dtype == c.compute();
    return !rounds && std::any_of(std::begin(instr.args), std::end(instr.args), is_result);
  };
  const auto stores_result = [&](const auto& out) { return is_result(out.source); };
  return std::none_of(instrs.begin(), instrs.end(), uses_result) &&
         std::none_of(region.map.stores.begin(), region.map.stores.end(), stores_result) &&
         std::none_of(region.map.reduces.begin(), region.map.reduces.end(), stores_result);
}

CudnnConvolution convolution_of(const Contraction& c) {
  CudnnConvolution v;
  v.op = c.op;
  v.attrs = c.attrs.conv;
  v.operands = c.compute();
  v.result = c.dtype;
  v.tf32 = c.tf32();
  if (c.op == Op::Conv2d) {
    v.x = c.a_shape, v.w = c.b_shape, v.y = c.result_shape();
  } else if (c.op == Op::Conv2dInputGrad) {
    v.y = c.a_shape, v.w = c.b_shape, v.x = c.result_shape();
  } else {
    v.x = c.a_shape, v.y = c.b_shape, v.w = c.out_shape;
  }
  return v;
}

/// The epilogue that the library computes; nothing if it runs after the call.
std::optional<SimpleEpilogue> epilogue_to_fuse(const Region& region, std::span<const Value> values,
                                               const PlanChoice& choice) {
  const std::optional<SimpleEpilogue> simple = fusible(region, values);
  const bool rounds = simple && simple->bias == kNoValue && !simple->relu;
  if (!choice.fused.value_or(true) && !rounds) return std::nullopt;
  if (!simple && choice.fused.value_or(false))
    throw NotSupported("cuDNN cannot compute this epilogue");
  return simple;
}

CudnnConvolution with_epilogue(const Contraction& c, std::span<const Value> values,
                               const SimpleEpilogue& epilogue, const PlanChoice& choice) {
  CudnnConvolution v = convolution_of(c);
  v.result = values[at(epilogue.out)].dtype;
  v.channels_last = choice.channels_last;
  v.large = choice.large;
  v.bias = epilogue.bias != kNoValue;
  v.relu = epilogue.relu;
  return v;
}

CudnnConvolution without_epilogue(const Region& region, std::span<const Value> values,
                                  const PlanChoice& choice) {
  CudnnConvolution v = convolution_of(region.contraction);
  v.channels_last = choice.channels_last;
  v.large = choice.large;
  if (region.contraction.has_epilogue) {
    if (vendor_is_short(v.result)) v.result = DType::Float32;
    if (rounds_result(region, values) || is_rounded_first(region))
      v.result = region.contraction.compute();
  }
  return v;
}

/// True if the library's kernels for NHWC are fast and transposing is simple.
bool may_transpose(const Contraction& c, std::span<const Value> values) {
  for (const View* view : {&c.a, &c.b})
    if (values[at(view->value)].dtype == DType::Float64) return false;
  // Feature maps have the channels of all groups, filters those of one group.
  const std::int64_t groups = c.attrs.conv.groups;
  const auto fits = [](const Shape& s, std::int64_t parts) {
    return s[1] % (8 * parts) == 0 && s.numel() < (1 << 30);
  };
  const bool by_filter = c.op == Op::Conv2dWeightGrad;
  return (vendor_is_short(c.compute()) || (c.tf32() && keeps_last(c))) && fits(c.a_shape, groups) &&
         fits(c.b_shape, by_filter ? groups : 1) && fits(c.result_shape(), by_filter ? 1 : groups);
}

/// One of the two operands: its address and its conversion.
class Operand {
 public:
  Operand(const Target& target, const View& view, const Shape& shape, DType wanted,
          std::span<const Value> values, bool channels_last)
      : value_(view.value) {
    DType dtype = values[at(view.value)].dtype;
    offset_ = at(view.offset) * item_size(dtype);
    const auto planes = transposes(view, shape, channels_last);
    if (!planes) throw NotSupported("cuDNN does not support an operand in this memory order");
    for (const Shape& each : *planes) {
      transposes_.emplace_back(target, each, dtype, wanted);
      dtype = wanted;
    }
    if (dtype == wanted) return;
    MatrixRows rows;
    rows.offset = view.offset;
    rows.inner = rows.outer_stride = shape.numel();
    cast_.emplace(target, rows, dtype, wanted);
  }
  std::size_t bytes() const {
    std::size_t sum = cast_ ? cast_->bytes() : 0;
    for (const PlaneTranspose& transpose : transposes_) sum += transpose.bytes();
    return sum;
  }
  /// `place` advances past the conversion's workspace.
  const std::byte* run(const Binding& binding, std::byte*& place) const {
    const std::byte* memory = binding.values[at(value_)];
    if (cast_) {
      cast_->run(binding.stream, memory, place);
      return std::exchange(place, place + cast_->bytes());
    }
    memory += offset_;
    for (const PlaneTranspose& transpose : transposes_) {
      transpose.run(binding.stream, memory, place);
      memory = std::exchange(place, place + transpose.bytes());
    }
    return memory;
  }
  std::string source() const {
    std::string all = cast_ ? cast_->source() : std::string();
    for (const PlaneTranspose& transpose : transposes_) all += transpose.source();
    return all;
  }

 private:
  ValueId value_;
  std::size_t offset_ = 0;
  std::optional<RowCast> cast_;
  std::vector<PlaneTranspose> transposes_;
};

class CudnnKernel final : public Kernel {
 public:
  CudnnKernel(const Target& target, const Region& region, std::span<const Value> values,
              const PlanChoice& choice)
      : c_(region.contraction),
        a_(target, c_.a, c_.a_shape, c_.compute(), values, choice.channels_last),
        b_(target, c_.b, c_.b_shape, c_.compute(), values, choice.channels_last) {
    if (!plan_fused(target, region, values, choice)) plan_plain(target, region, values, choice);
    if (choice.channels_last && !c_.channels_last) transpose_back(target);
    workspace_bytes = a_.bytes() + b_.bytes() + product_bytes_ + transposed_bytes_ +
                      conversion_room(plan_->workspace_bytes());
    if (workspace_bytes > 0) workspace_bytes += kConversionAlignment;
  }

  void run(const Binding& binding) const override {
    std::byte* place = aligned_workspace(binding.workspace);
    const std::byte* a = a_.run(binding, place);
    const std::byte* b = b_.run(binding, place);
    std::byte* out = place;
    if (out_ != kNoValue) {
      out = binding.values[at(out_)];
    } else {
      place += product_bytes_;
    }
    std::byte* result = out;
    if (transpose_) {
      result = place;
      place += transposed_bytes_;
    }
    const std::byte* bias = bias_ == kNoValue ? nullptr : binding.values[at(bias_)] + bias_offset_;
    const std::byte* x = c_.op == Op::Conv2dInputGrad ? result : a;
    const std::byte* w = c_.op == Op::Conv2dWeightGrad ? result : b;
    const std::byte* y = c_.op == Op::Conv2d ? result : c_.op == Op::Conv2dInputGrad ? a : b;
    plan_->run(binding.stream, x, w, y, bias, place);
    if (transpose_) transpose_->run(binding.stream, result, out);
    if (epilogue_) epilogue_->run(binding, out);
  }

  std::string source() const override {
    return a_.source() + b_.source() + (transpose_ ? transpose_->source() : std::string()) +
           (epilogue_ ? epilogue_->source() : std::string());
  }

 private:
  bool plan_fused(const Target& target, const Region& region, std::span<const Value> values,
                  const PlanChoice& choice) {
    const std::optional<SimpleEpilogue> simple = epilogue_to_fuse(region, values, choice);
    if (!simple) return false;
    const CudnnConvolution v = with_epilogue(c_, values, *simple, choice);
    try {
      plan_ = shared_plan(target, v, choice.rank);
    } catch (const NotSupported&) {
      if (choice.fused.value_or(false)) throw;
      return false;  // the library fuses only some shapes and types
    }
    out_ = simple->out;
    result_ = v.result;
    bias_ = simple->bias;
    bias_offset_ = at(simple->bias_offset) * sizeof(float);
    return true;
  }

  void plan_plain(const Target& target, const Region& region, std::span<const Value> values,
                  const PlanChoice& choice) {
    const CudnnConvolution v = without_epilogue(region, values, choice);
    if (c_.has_epilogue) {
      epilogue_.emplace(target, region, values, region.map.space, v.result);
      product_bytes_ = conversion_room(at(c_.out_shape.numel()) * item_size(v.result));
    } else {
      out_ = c_.out;
    }
    result_ = v.result;
    plan_ = shared_plan(target, v, choice.rank);
  }

  /// Transposes the result back to NCHW.
  void transpose_back(const Target& target) {
    const Shape planes = planes_of(c_.out_shape);
    if (planes[2] == 1) return;
    transpose_.emplace(target, Shape{planes[0], planes[2], planes[1]}, result_, result_);
    transposed_bytes_ = transpose_->bytes();
  }

  const Contraction c_;
  const Operand a_, b_;
  std::shared_ptr<const CudnnPlan> plan_;
  std::optional<VendorEpilogue> epilogue_;
  ValueId out_ = kNoValue, bias_ = kNoValue;
  DType result_ = DType::Float32;
  std::optional<PlaneTranspose> transpose_;  // of an NHWC result
  std::size_t bias_offset_ = 0, product_bytes_ = 0, transposed_bytes_ = 0;
};

class CudnnEngine final : public Engine {
 public:
  explicit CudnnEngine(const Target& target) : target_(target) {}

  const char* name() const override { return "cudnn"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    const char* reason = refusal(region, values);
    if (reason != nullptr && why != nullptr) *why = reason;
    return reason == nullptr;
  }

  /// The time of convolutions over NHWC feature maps; other convolutions use cuDNN only if
  /// measured.
  double estimate(const Region& region, std::span<const Value> values) const override {
    const Contraction& c = region.contraction;
    if (!keeps_last(c)) return 0;
    constexpr double kShare = 0.5;  // of the tensor cores' rate, which its kernels reach
    double bytes = 0;
    for (const std::vector<ValueId>* list : {&region.reads, &region.writes})
      for (const ValueId id : *list) bytes += static_cast<double>(values[at(id)].bytes);
    const bool computes = c.has_epilogue && !fusible(region, values).has_value();
    return microseconds(target_.model, {.bytes = bytes,
                                        .multiply_adds = multiply_adds(c),
                                        .rate = kShare * target_.model.rate(c.compute(), c.tf32()),
                                        .launches = computes ? 2 : 1});
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    return prepare_as({}, region, values, threads);
  }

  std::vector<std::string> configurations(const Region& region,
                                          std::span<const Value> values) const override {
    const std::optional<SimpleEpilogue> simple = fusible(region, values);
    const bool fuses = simple && (simple->relu || simple->bias != kNoValue);
    std::vector<std::string> names;
    if (keeps_last(region.contraction)) {
      for (int rank = 0; rank < kLastPlans; ++rank) names.push_back(kLast + std::to_string(rank));
      for (int rank = 0; fuses && rank < kFusedPlans; ++rank)
        names.push_back(kFusedLast + std::to_string(rank));
      return names;
    }
    const Contraction& c = region.contraction;
    const bool full = c.compute() == DType::Float32 && !c.tf32();
    for (int rank = 0; rank < kPlans; ++rank) {
      if (fuses) names.push_back(kFused + std::to_string(rank));
      names.push_back(std::to_string(rank));
      // These come after the first of the other configurations. If the time for measuring ends
      // early, each group has then been measured in part.
      for (int large = 0; full && rank == 0 && large < kLargePlans; ++large)
        names.push_back(kLarge + std::to_string(large));
    }
    if (may_transpose(region.contraction, values))
      for (int rank = 0; rank < kLastPlans; ++rank) names.push_back(kLast + std::to_string(rank));
    return names;
  }

  std::unique_ptr<Kernel> prepare_as(const std::string& configuration, const Region& region,
                                     std::span<const Value> values, int) const override {
    // An unusable version is detected here first; other engines then run the region.
    if (const std::string& problem = loaded_cudnn().problem; !problem.empty())
      throw NotSupported(cat("cuDNN cannot be used: ", problem));
    return std::make_unique<CudnnKernel>(target_, region, values,
                                         choice_of(configuration, region.contraction, values));
  }

  void announce(const std::string& configuration, const Region& region,
                std::span<const Value> values) const override {
    if (target_.ordinal < 0 || refusal(region, values) != nullptr) return;
    try {
      const PlanChoice choice = choice_of(configuration, region.contraction, values);
      const std::optional<SimpleEpilogue> epilogue = epilogue_to_fuse(region, values, choice);
      prefetch_plan(target_,
                    epilogue ? with_epilogue(region.contraction, values, *epilogue, choice)
                             : without_epilogue(region, values, choice),
                    choice.rank);
    } catch (const NotSupported&) {  // NOLINT(bugprone-empty-catch): prepare_as() will say so
    }
  }

  void start() const override {
    if (!target_.cudnn || target_.ordinal < 0) return;
    std::call_once(started_, [this] { run_on_worker([t = target_] { start_cudnn(t); }); });
  }

  /// Empty if the library cannot be used; a caller may ask in that case too.
  std::string version() const override {
    const Cudnn& table = loaded_cudnn();
    return table.problem.empty() ? std::to_string(table.cudnnGetVersion()) : std::string();
  }

 private:
  static PlanChoice choice_of(const std::string& configuration, const Contraction& c,
                              std::span<const Value> values) {
    PlanChoice choice = parse_choice(configuration);
    // For 16-bit operands the library compiles its kernels with epilogues.
    if (configuration.empty() && keeps_last(c)) {
      choice.channels_last = true;
      if (!c.tf32()) choice.fused = false;
    }
    if (choice.channels_last && !may_transpose(c, values))
      throw NotSupported(
          "takes channels-last images only with a multiple of 8 channels, in tf32 or a 16-bit "
          "type");
    return choice;
  }

  const char* refusal(const Region& region, std::span<const Value> values) const {
    if (!target_.cudnn) return "needs cuDNN, which was not found";
    const Contraction& c = region.contraction;
    if (region.kind != RegionKind::Contraction || c.op == Op::Matmul)
      return "runs convolutions only";
    if (const char* reason = vendor_refusal(c, values); reason != nullptr) return reason;
    for (const View* view : {&c.a, &c.b})
      if (at(view->offset) * item_size(values[at(view->value)].dtype) % 16 != 0)
        return "takes operands that are aligned to 16 bytes only";
    if (c.a_shape.numel() == 0 || c.b_shape.numel() == 0 || c.out_shape.numel() == 0)
      return "does not run empty convolutions";
    for (const auto& [view, shape] : {std::pair(&c.a, &c.a_shape), std::pair(&c.b, &c.b_shape)}) {
      const auto planes = transposes(*view, *shape, false);
      if (!planes) return "does not support the memory order of an operand";
      if (!planes->empty() && c.compute() == DType::Float64)
        return "takes float64 operands in NCHW order only";
    }
    if (keeps_last(c) && !may_transpose(c, values))
      return "takes channels-last images only with a multiple of 8 channels, in tf32 or a 16-bit "
             "type";
    return nullptr;
  }

  const Target target_;
  mutable std::once_flag started_;
};

}  // namespace

const Engine& cudnn_engine(const Target& target) { return per_target<CudnnEngine>(target); }

}  // namespace tenon::cuda
