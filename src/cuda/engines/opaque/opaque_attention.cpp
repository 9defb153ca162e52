// Attention and its gradients. Forward is one launch. Backward is three: one computes delta (and,
// with warpgroups, the log-sum-exps beside it), one the gradient of the queries, one the gradients
// of keys and values. The last one uses the divisors of float32 weights that the launch for queries
// stores. On Hopper long sequences use warpgroup products (attention_wgmma.cuh), where the launch
// for queries also does the first launch's work; otherwise warp products (attention.cuh). Sequences
// of up to 64 positions use one launch in each direction (attention_short.cuh).
#include <algorithm>
#include <string_view>
#include <utility>

#include "base/index.h"
#include "cuda/device/opening/driver.h"
#include "cuda/engines/launch/tensor_map.h"
#include "cuda/engines/opaque/opaque_kernels.h"
#include "cuda/kernels/attention/attention_args.cuh"

namespace tenon::cuda {
namespace {

constexpr std::size_t kGradients = 3;                          // of queries, keys and values
constexpr std::size_t kOutput = 3, kLog = 4, kOutputGrad = 5;  // inputs of the gradients

std::int64_t filled(std::int64_t size) { return (size + 15) / 16 * 16; }

const char* mask_name(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "Bool";
    case DType::Float32:
      return "Float32";
    case DType::Float16:
      return "Float16";
    default:
      return "BFloat16";
  }
}

/// The kernel's type for the operands and their products.
const char* type_name(DType dtype, Precision precision) {
  if (dtype == DType::BFloat16) return "AttentionBf16";
  if (dtype == DType::Float16) return "AttentionF16";
  return precision == Precision::Tf32 ? "AttentionTf32" : "AttentionF32";
}

/// Warpgroup blocks that a multiprocessor should hold, limited by registers.
int blocks_of(std::string_view part, std::int64_t size) {
  if (size != 64) return 2;
  return part == "keys" ? 3 : 4;
}

/// Shorter sequences leave parts of the larger tiles idle.
constexpr std::int64_t kShortest = 256;

/// Limit for the strides of a mask that a block reads by 32-bit offsets.
constexpr std::int64_t kSmallStride = 1 << 24;

bool has_drops(const OpaqueCall& call) {
  return call.dtype(call.op.inputs.size() - 1) == DType::Int64;
}
/// Number of inputs before the mask.
std::size_t before_mask(const OpaqueCall& call) {
  return call.op.op == Op::AttentionGrad ? kOutputGrad + 1 : 3;
}
bool has_mask(const OpaqueCall& call) {
  return call.op.inputs.size() > before_mask(call) + (has_drops(call) ? 1 : 0);
}

/// True if TMA can read an operand [batch, length, heads, size].
bool is_mapped(const View& view, const Shape& shape) {
  for (const int d : {0, 1, 2})
    if (shape[d] < 1 || (shape[d] > 1 && view.stride[d] <= 0)) return false;
  return true;
}

bool uses_warpgroups(const OpaqueCall& call) {
  const std::size_t operands = call.op.op == Op::AttentionGrad ? kOutputGrad + 1 : kOutput;
  for (std::size_t i = 0; i < operands; ++i)
    if ((i < kOutput || i == kOutputGrad) && !is_mapped(call.op.views[i], call.op.shapes[i]))
      return false;
  const Shape &q = call.op.shapes[0], &k = call.op.shapes[1], &v = call.op.shapes[2];
  return call.target.arch == 90 && item_size(call.dtype(0)) == 2 && q[3] == v[3] &&
         (q[3] == 64 || q[3] == 128) && !has_mask(call) && !has_drops(call) &&
         call.op.attrs.as<AttentionAttrs>().scale > 0 && std::min(q[1], k[1]) >= kShortest &&
         (call.target.ordinal < 0 || has_tensor_maps());
}

class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(const OpaqueCall& call)
      : views_(call.op.views),
        shapes_(call.op.shapes),
        outs_(call.op.outs),
        out_views_(call.op.out_views),
        backward_(call.op.op == Op::AttentionGrad),
        mask_(before_mask(call)) {
    const auto& attrs = call.op.attrs.as<AttentionAttrs>();
    const Shape &q = call.op.shapes[0], &k = call.op.shapes[1], &v = call.op.shapes[2];
    args_.batch = q[0], args_.queries = q[1], args_.heads = q[2];
    args_.keys = k[1], args_.kv_heads = k[2];
    args_.scale = static_cast<float>(attrs.scale);
    size_ = q[3], value_size_ = v[3];
    if (out_views_.empty()) list_results(call.op.shapes);
    for (std::size_t i = 0; i < views_.size(); ++i) items_.push_back(item_size(call.dtype(i)));
    drops_ = has_drops(call);
    has_mask_ = has_mask(call);
    item_ = static_cast<std::int64_t>(item_size(call.dtype(0)));
    by_warpgroups_ = uses_warpgroups(call);
    is_short_ = fits_one_tile();
    type_ = type_name(call.dtype(0), attrs.precision);
    causal_ = attrs.causal;
    config_ =
        cat("AttentionConfig<", type_, ", ", size_, ", ", value_size_, ", ", truth(attrs.causal),
            ", AttentionMask::", has_mask_ ? mask_name(call.dtype(mask_)) : "None",
            !drops_               ? ""
            : args_.keys % 4 == 0 ? ", AttentionDrops::Fours"
                                  : ", AttentionDrops::Any",
            ">");
    if (!backward_) {
      forward_ = compiled(call.target, "forward");
      return;
    }
    if (is_short_) {
      queries_ = compiled(call.target, "backward");
      return;
    }
    // For tensors that are 16-bit in the graph. Operands of 16-bit precision that are float32 in
    // the graph do not need it.
    weighs_delta_ = item_ == 2 && attrs.precision == Precision::Fp32;
    weighs_first_ = item_ == 2 && !weighs_delta_ && causal_;
    if (!by_warpgroups_)
      delta_ = compiled(call.target, weighs_delta_   ? "weighted_delta"
                                     : weighs_first_ ? "causal_delta"
                                                     : "delta");
    if (outs_[0] != kNoValue || by_warpgroups_ || item_ == 4)
      queries_ = compiled(call.target, "queries");
    if (outs_[1] != kNoValue || outs_[2] != kNoValue) keys_ = compiled(call.target, "keys");
    const std::int64_t numbers =
        by_warpgroups_ ? (args_.queries + kAttentionRows - 1) / kAttentionRows * kAttentionTaken
                       : args_.queries * (item_ == 4 ? 2 : 1);
    workspace_bytes = static_cast<std::size_t>(args_.batch * args_.heads * numbers) * sizeof(float);
  }

  void run(const Binding& binding) const override {
    AttentionArgs args = args_;
    args.q = bound(binding, 0), args.k = bound(binding, 1), args.v = bound(binding, 2);
    if (has_mask_) args.mask = bound(binding, mask_);
    if (drops_) args.drops = static_cast<const long long*>(bound(binding, views_.size() - 1).data);
    args.out = result(binding, 0);
    const std::int64_t tile = rows(kAttentionRows, size_),
                       value_tile = rows(kAttentionRows, value_size_);
    const Grid of_queries = grid(args.queries, args.batch * args.heads);
    if (!backward_) {
      if (outs_[1] != kNoValue)
        args.log = reinterpret_cast<float*>(binding.values[static_cast<std::size_t>(outs_[1])]);
      if (by_warpgroups_) return launch_wide(*forward_, binding, of_queries, 5, args);
      if (is_short_) return launch(*forward_, binding, of_queries, 2 * tile + value_tile, args);
      const std::int64_t other = item_ == 2 ? 64 : 32;
      return launch(*forward_, binding, of_queries,
                    tile + 2 * rows(other, size_) + 2 * rows(other, value_size_), args);
    }
    args.y = bound(binding, kOutput), args.dy = bound(binding, kOutputGrad);
    args.log = static_cast<float*>(const_cast<void*>(bound(binding, kLog).data));
    args.delta = reinterpret_cast<float*>(binding.workspace);
    args.out_k = result(binding, 1), args.out_v = result(binding, 2);
    args.sums = sums(binding, 0), args.sums_k = sums(binding, 1), args.sums_v = sums(binding, 2);
    if (is_short_)
      return launch(*queries_, binding, of_queries,
                    2 * tile + value_tile + (item_ == 2 ? value_tile : 0) +
                        2 * rows(kAttentionRows, kAttentionRows),
                    args);
    const Grid of_keys = grid(args.keys, args.batch * args.kv_heads);
    if (by_warpgroups_) {
      launch_wide(*queries_, binding, of_queries, 6, args);
      if (keys_ != nullptr) launch_wide(*keys_, binding, of_keys, 6, args);
      return;
    }
    std::int64_t other = item_ == 2 ? 64 : is_tf32() ? 32 : 16;
    if (is_wide() && other > 16) other /= 2;
    const std::int64_t shared =
        tile + value_tile + 2 * rows(other, size_) + 2 * rows(other, value_size_);
    launch(*delta_, binding, of_queries, weighs_delta_ || weighs_first_ ? shared : 2 * value_tile,
           args);
    if (queries_ != nullptr) launch(*queries_, binding, of_queries, shared, args);
    if (keys_ != nullptr) launch(*keys_, binding, of_keys, shared, args);
  }

  std::string source() const override {
    std::string text;
    for (const auto& kernel : {forward_, delta_, queries_, keys_}) {
      if (kernel == nullptr) continue;
      if (!text.empty()) text += kNextLaunch;
      text += kernel->source().text;
    }
    return text;
  }

 private:
  // Bytes of rows in shared memory, in AttentionTile's layout.
  std::int64_t rows(std::int64_t count, std::int64_t size) const {
    return count * (filled(size) * item_ + 16);
  }
  static Grid grid(std::int64_t length, std::int64_t heads) {
    return {static_cast<std::uint32_t>((length + kAttentionRows - 1) / kAttentionRows),
            static_cast<std::uint32_t>(heads), 1};
  }

  std::shared_ptr<const CompiledKernel> compiled(const Target& target, const char* part) const {
    const std::string entry = cat("tenon_attention_", part);
    if (by_warpgroups_) {
      return compile(
          target,
          {entry, cat("#include \"cuda/kernels/attention/attention_wgmma.cuh\"\n\nusing namespace "
                      "tenon::cuda;\n\nextern \"C\" __global__ void __launch_bounds__(",
                      kAttentionThreads, ", ", blocks_of(part, size_), ")\n", entry,
                      "(const AttentionArgs a, const __grid_constant__ AttentionMaps "
                      "maps) {\n",
                      kAwaitKernels, "  attention_wgmma_", part, "<AttentionWgmmaConfig<", type_,
                      ", ", size_, ", ", truth(causal_),
                      weighs_delta_ && part == std::string_view("queries") ? ", true" : "",
                      ">>(a, maps);\n}\n")});
    }
    if (is_short_)
      return compile(
          target,
          {entry, cat("#include \"cuda/kernels/attention/attention_short.cuh\"\n\nusing namespace "
                      "tenon::cuda;\n\nextern \"C\" __global__ void __launch_bounds__(",
                      kAttentionThreads, ", ", item_ == 2 ? 4 : 2, ")\n", entry,
                      "(const AttentionArgs a) {\n", kAwaitKernels, "  attention_short_", part, "<",
                      config_, ">(a);\n}\n")});
    return compile(
        target, {entry, cat("#include \"cuda/kernels/attention/attention.cuh\"\n\nusing namespace "
                            "tenon::cuda;\n\nextern \"C\" __global__ void "
                            "__launch_bounds__(",
                            kAttentionThreads, ", ", float_blocks(part), ")\n", entry,
                            "(const AttentionArgs a) {\n", kAwaitKernels, "  attention_", part, "<",
                            config_, ">(a);\n}\n")});
  }

  static void launch(const CompiledKernel& kernel, const Binding& binding, Grid grid,
                     std::int64_t shared_bytes, AttentionArgs& args) {
    void* params[] = {&args};
    kernel.launch(binding.stream, grid, {kAttentionThreads, 1, 1},
                  static_cast<std::uint32_t>(shared_bytes), params);
  }

  bool is_tf32() const { return type_ == std::string_view("AttentionTf32"); }
  bool is_wide() const { return filled(size_) > 64 || filled(value_size_) > 64; }
  /// Blocks that a multiprocessor should hold, limited by its shared memory.
  int float_blocks(std::string_view part) const {
    if (item_ == 2 || is_wide()) return 1;
    return is_tf32() && part == "forward" ? 4 : 3;
  }

  /// True if a block has all queries and all keys of a head. A mask is then read by 32-bit offsets.
  bool fits_one_tile() const {
    const bool small_mask =
        !has_mask_ || std::all_of(views_[mask_].stride + 2, views_[mask_].stride + 4,
                                  [](auto stride) { return stride >= 0 && stride < kSmallStride; });
    return std::max(args_.queries, args_.keys) <= kAttentionRows && !is_wide() && small_mask &&
           (!backward_ || args_.heads == args_.kv_heads);
  }

  /// A warpgroup block has tiles that begin at a multiple of 1024, two slots of log-sum-exps and
  /// deltas, and two barriers.
  void launch_wide(const CompiledKernel& kernel, const Binding& binding, Grid grid, int tiles,
                   AttentionArgs& args) const {
    constexpr std::int64_t kBehind = 2 * kAttentionTaken * sizeof(float) + 16;
    AttentionMaps maps = {map(args.q, 0), map(args.k, 1), map(args.v, 2), {}};
    if (backward_) maps.dy = map(args.dy, kOutputGrad);
    void* params[] = {&args, &maps};
    kernel.launch(
        binding.stream, grid, {kAttentionThreads, 1, 1},
        static_cast<std::uint32_t>(1024 + tiles * (size_ / 64) * kAttentionBoxBytes + kBehind),
        params);
  }

  TensorMap map(const AttentionOperand& operand, std::size_t k) const {
    const Shape& shape = shapes_[k];
    // A dimension of one element may have any stride.
    const auto pitch = [&](int d) {
      return shape[d] > 1 ? at(operand.stride[d]) * sizeof(std::uint16_t) : 16;
    };
    return tensor_map(const_cast<void*>(operand.data), sizeof(std::uint16_t),
                      {at(size_), at(shape[1]), at(shape[2]), at(shape[0])},
                      {pitch(1), pitch(2), pitch(0)}, {64, kAttentionRows, 1, 1});
  }

  AttentionOperand bound(const Binding& binding, std::size_t k) const {
    AttentionOperand x;
    x.data = binding.values[static_cast<std::size_t>(views_[k].value)] +
             views_[k].offset * static_cast<std::int64_t>(items_[k]);
    std::copy(views_[k].stride, views_[k].stride + 4, x.stride);
    return x;
  }

  /// Results without a given place: [batch, length, heads, size], contiguous.
  void list_results(const std::vector<Shape>& operands) {
    const Shape& q = operands[0];
    const auto add = [this](std::int64_t length, std::int64_t heads, std::int64_t size) {
      View& view = out_views_.emplace_back();
      view.stride[2] = size;
      view.stride[1] = heads * size;
      view.stride[0] = length * heads * size;
    };
    if (!backward_) return add(q[1], q[2], value_size_);
    for (std::size_t k = 0; k < 3; ++k) add(operands[k][1], operands[k][2], operands[k][3]);
  }

  AttentionResult result(const Binding& binding, std::size_t k) const {
    AttentionResult out;
    if (outs_[k] == kNoValue) return out;
    out.data = binding.values[static_cast<std::size_t>(outs_[k])] + out_views_[k].offset * item_;
    std::copy(out_views_[k].stride, out_views_[k].stride + 3, out.stride);
    return out;
  }

  /// The address of a gradient's sums (Opaque::outs), beside those of the other gradients.
  AttentionSums sums(const Binding& binding, std::size_t k) const {
    AttentionSums out;
    if (outs_.size() <= kGradients) return out;
    out.data = reinterpret_cast<float*>(binding.values[static_cast<std::size_t>(outs_.back())]) +
               out_views_[k].offset;
    out.pitch = out_views_[k].stride[1];
    return out;
  }

  const std::vector<View> views_;
  const std::vector<Shape> shapes_;  // of the inputs
  const std::vector<ValueId> outs_;
  std::vector<View> out_views_;
  const bool backward_;
  const std::size_t mask_;          // its number among the inputs, where there is one
  std::vector<std::size_t> items_;  // bytes of an element of each input
  bool has_mask_ = false, drops_ = false, is_short_ = false, by_warpgroups_ = false,
       causal_ = false, weighs_delta_ = false, weighs_first_ = false;
  const char* type_ = "";
  std::int64_t size_ = 0, value_size_ = 0;
  std::int64_t item_ = 2;  // bytes of an element of operands and results
  AttentionArgs args_;
  std::string config_;
  std::shared_ptr<const CompiledKernel> forward_, delta_, queries_, keys_;
};

}  // namespace

bool attention_sums_rows(const OpaqueCall& call) {
  const std::int64_t queries = call.op.shapes[0][1], keys = call.op.shapes[1][1];
  return call.op.op == Op::AttentionGrad && !call.op.out_views.empty() && queries == keys &&
         queries % kAttentionRows == 0 && uses_warpgroups(call);
}

std::unique_ptr<Kernel> prepare_attention(const OpaqueCall& call) {
  return std::make_unique<AttentionKernel>(call);
}

}  // namespace tenon::cuda
