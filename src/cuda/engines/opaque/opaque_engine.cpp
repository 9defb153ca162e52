// Which ops the opaque engine claims, and which kernel family computes each.
#include "cuda/engines/opaque/opaque_engine.h"

#include <array>
#include <vector>

#include "cuda/engines/launch/per_target.h"
#include "cuda/engines/opaque/opaque_kernels.h"
#include "cuda/kernels/attention/attention_args.cuh"
#include "graph/node.h"

namespace tenon::cuda {
namespace {

bool is_pool(Op op) { return kind_of(op) == OpKind::Pooling; }
bool is_movement(Op op) { return kind_of(op) == OpKind::Movement; }
bool is_attention(Op op) { return kind_of(op) == OpKind::Attention; }
bool is_response(Op op) { return has_trait(op, kAcrossChannels); }
bool is_softmax(Op op) { return op == Op::Softmax || op == Op::LogSoftmax; }

class OpaqueEngine final : public Engine {
 public:
  explicit OpaqueEngine(const Target& target) : target_(target) {}

  const char* name() const override { return "opaque"; }
  const Target& target() const { return target_; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    const char* reason = refusal(region, values);
    if (reason != nullptr && why != nullptr) *why = reason;
    return reason == nullptr;
  }

  Capabilities capabilities(const Region& region, std::span<const Value> values) const override {
    Capabilities can;
    if (region.kind == RegionKind::Opaque && is_attention(region.opaque.op) &&
        attention_sums_rows({target_, region.opaque, values}))
      can.reduced_rows = kAttentionRows;
    return can;
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    const LabelGuard label(region.label);  // errors name the layer that the op was built in
    const OpaqueCall call{target_, region.opaque, values};
    if (region.opaque.op == Op::Sort) return prepare_sort(call);
    if (region.opaque.op == Op::OwnKernel) return prepare_own(call);
    if (is_attention(region.opaque.op)) return prepare_attention(call);
    if (is_pool(region.opaque.op)) return prepare_pool(call);
    if (is_response(region.opaque.op)) return prepare_response(call);
    return is_movement(region.opaque.op) ? prepare_movement(call) : prepare_softmax(call);
  }

 private:
  static const char* refusal(const Region& region, std::span<const Value> values) {
    if (region.kind != RegionKind::Opaque)
      return "runs opaque regions only (single operations that are not fused)";
    const Opaque& o = region.opaque;
    if (o.op == Op::Sort || o.op == Op::OwnKernel) return nullptr;
    if (is_attention(o.op))
      return values[static_cast<std::size_t>(o.inputs[0])].dtype == DType::Float64
                 ? "has no attention in float64"
                 : nullptr;
    // A pooling's maxima may have no reader, so that only their tap numbers are stored.
    const ValueId typed = o.out() == kNoValue ? o.inputs[0] : o.out();
    const DType dtype = values[static_cast<std::size_t>(typed)].dtype;
    if (is_movement(o.op))
      return has_trait(o.op, kAddsUp) && is_bool(dtype) ? "does not add bools" : nullptr;
    if (!is_pool(o.op) && !is_softmax(o.op) && !is_response(o.op))
      return "runs attention, pooling, response normalisation, softmax, sorting and movement only";
    if (!is_floating(dtype)) return "pools and normalises floating-point numbers only";
    if (is_pool(o.op))
      for (const Shape& shape : o.shapes)
        if (shape.rank() == 4 && needs_wide(shape[2] * shape[3]))
          return "pools images of less than 2^30 pixels only";
    return nullptr;
  }

  Target target_;
};

}  // namespace

const Engine& opaque_engine(const Target& target) { return per_target<OpaqueEngine>(target); }

}  // namespace tenon::cuda
