// The attention engine: attention and its gradients, one op per region.
#include <vector>

#include "base/index.h"
#include "cpu/cpu.h"
#include "cpu/engines/run/workspace.h"
#include "cpu/kernels/attention/attention.h"
#include "graph/node.h"

namespace tenon::cpu {

namespace {

bool is_grad(Op op) { return op == Op::AttentionGrad; }

class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const Opaque& o, std::span<const Value> values, int threads) : op_(o.op) {
    const auto& attrs = o.attrs.as<AttentionAttrs>();
    const Shape &q = o.shapes[0], &k = o.shapes[1], &v = o.shapes[2];
    shape_.batch = q[0], shape_.queries = q[1], shape_.heads = q[2], shape_.size = q[3];
    shape_.keys = k[1], shape_.kv_heads = k[2], shape_.value_size = v[3];
    shape_.scale = static_cast<float>(attrs.scale);
    shape_.causal = attrs.causal;
    const bool pairs =
        values[at(o.inputs[0])].dtype == DType::BFloat16 || attrs.precision == Precision::Bf16;
    shape_.is_16_bit = item_size(values[at(o.inputs[0])].dtype) == 2;
    shape_.math = pairs ? Math::Bf16 : Math::F32;
    for (const View& view : o.views) inputs_.push_back({view, values[at(view.value)].dtype});
    for (const ValueId id : o.outs)
      outs_.push_back({id, id == kNoValue ? DType::Float32 : values[at(id)].dtype});
    workspace_bytes = attention_workspace(shape_, is_grad(op_), threads);
  }

  void run(const Binding& binding) const override {
    AttentionInputs in{bound(binding, 0), bound(binding, 1), bound(binding, 2), {}};
    const std::size_t mask = is_grad(op_) ? 6 : 3;
    if (inputs_.size() > mask) in.mask = bound(binding, mask);
    if (!is_grad(op_))
      return attention_forward(shape_, in, result(binding, 0),
                               reinterpret_cast<float*>(result(binding, 1).data),
                               binding.workspace);
    const AttentionForward forward = {
        .y = bound(binding, 3),
        .dy = bound(binding, 5),
        .log = reinterpret_cast<const float*>(bound(binding, 4).data)};
    attention_backward(shape_, in, forward,
                       {result(binding, 0), result(binding, 1), result(binding, 2)},
                       binding.workspace);
  }

 private:
  struct Input {
    View view;
    DType dtype;
  };
  struct Out {
    ValueId id;
    DType dtype;
  };

  AttentionOperand bound(const Binding& binding, std::size_t k) const {
    const Input& in = inputs_[k];
    AttentionOperand x;
    x.data = binding.values[in.view.value] +
             in.view.offset * static_cast<std::int64_t>(item_size(in.dtype));
    x.dtype = in.dtype;
    for (int d = 0; d < 4; ++d) x.stride[d] = in.view.stride[d];
    return x;
  }
  AttentionResult result(const Binding& binding, std::size_t k) const {
    return {outs_[k].id == kNoValue ? nullptr : binding.values[outs_[k].id], outs_[k].dtype};
  }

  const Op op_;
  AttentionShape shape_;
  std::vector<Input> inputs_;
  std::vector<Out> outs_;
};

class AttentionEngine final : public Engine {
 public:
  const char* name() const override { return "attention"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    const char* reason = refusal(region, values);
    if (reason != nullptr && why != nullptr) *why = reason;
    return reason == nullptr;
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    return std::make_unique<AttentionKernel>(region.opaque, values, threads);
  }

 private:
  static const char* refusal(const Region& region, std::span<const Value> values) {
    if (region.kind != RegionKind::Opaque || kind_of(region.opaque.op) != OpKind::Attention)
      return "runs attention only";
    const Opaque& o = region.opaque;
    if (values[at(o.inputs[0])].dtype == DType::Float64) return "has no attention in float64";
    return nullptr;
  }
};

}  // namespace

const Engine& attention_engine() {
  static const AttentionEngine engine;
  return engine;
}

}  // namespace tenon::cpu
