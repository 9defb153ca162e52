// The opaque engine: pooling, movement, sorting, recurrences and Fourier transforms, one op per
// region.
//
// Kernels take float32 and float64. 16-bit floating-point arrays are cast to float32 in the
// workspace before a kernel and rounded once after it.
#include <array>
#include <vector>

#include "base/axes.h"
#include "base/index.h"
#include "base/per_thread.h"
#include "base/thread_pool.h"
#include "cpu/cpu.h"
#include "cpu/engines/run/movement.h"
#include "cpu/engines/run/workspace.h"
#include "cpu/kernels/fourier/fourier.h"
#include "cpu/kernels/pool/pool2d.h"
#include "cpu/kernels/rows/recurrence.h"
#include "cpu/kernels/rows/sort.h"
#include "cpu/kernels/tile/tile_table.h"
#include "graph/node.h"

namespace tenon::cpu {

namespace {

bool is_pool(Op op) { return kind_of(op) == OpKind::Pooling; }
bool is_movement(Op op) { return kind_of(op) == OpKind::Movement; }

PoolShape pool_shape(const PoolAttrs& v, const Shape& large, const Shape& small) {
  const auto whole = [](std::int64_t i) { return static_cast<int>(i); };
  PoolShape s;
  s.n = large[0], s.c = large[1], s.h = large[2], s.w = large[3];
  s.p = small[2], s.q = small[3];
  s.kernel_h = whole(v.kernel_h), s.kernel_w = whole(v.kernel_w);
  s.stride_h = whole(v.stride_h), s.stride_w = whole(v.stride_w);
  s.pad_h = whole(v.pad_h), s.pad_w = whole(v.pad_w);
  s.dil_h = whole(v.dil_h), s.dil_w = whole(v.dil_w);
  s.count_include_pad = v.count_include_pad != 0;
  return s;
}

template <class T>
void pool(Op op, const PoolShape& shape, std::span<const MovedArray> in, std::byte* out) {
  const auto* x = reinterpret_cast<const T*>(in[0].data);
  const auto* g = in.size() > 1 ? reinterpret_cast<const T*>(in[1].data) : nullptr;
  T* y = reinterpret_cast<T*>(out);
  switch (op) {
    case Op::MaxPool2d:
      return max_pool2d(shape, x, y);
    case Op::MaxPool2dGrad:
      return max_pool2d_backward(shape, x, g, y);
    case Op::MaxPool2dGather:
      return max_pool2d_gather(shape, x, g, y);
    case Op::AvgPool2d:
      return avg_pool2d(shape, x, y);
    default:
      return avg_pool2d_backward(shape, x, y);
  }
}

class OpaqueKernel final : public Kernel {
 public:
  OpaqueKernel(const Region& region, std::span<const Value> values)
      : o_(region.opaque),
        label_(region.label),
        out_shape_(values[at(o_.out())].shape),
        dtype_(values[at(o_.out())].dtype) {
    for (std::size_t k = 0; k < o_.inputs.size(); ++k)
      arrays_.push_back({nullptr, o_.shapes[k], values[at(o_.inputs[k])].dtype});
    for (std::size_t k = 0; k < o_.views.size(); ++k)
      arrays_[k].pitch = pitch_of(o_.views[k], o_.shapes[k]) *
                         static_cast<std::int64_t>(item_size(arrays_[k].dtype));
    casts_up_ = is_short_float(dtype_) && (is_pool(o_.op) || has_trait(o_.op, kAddsUp));
    if (is_pool(o_.op)) {
      const bool grows = o_.op == Op::MaxPool2dGrad || o_.op == Op::AvgPool2dGrad;
      const Shape& small = o_.op == Op::MaxPool2dGrad   ? arrays_[1].shape
                           : o_.op == Op::AvgPool2dGrad ? arrays_[0].shape
                                                        : out_shape_;
      pool_ = pool_shape(o_.attrs.as<PoolAttrs>(), grows ? out_shape_ : arrays_[0].shape, small);
    }
    if (!casts_up_) return;
    for (const MovedArray& array : arrays_)
      if (is_short_float(array.dtype)) workspace_bytes += floats(array.shape);
    workspace_bytes += floats(out_shape_);
  }

  void run(const Binding& binding) const override {
    const LabelGuard label(label_);  // errors name the layer that the op was built in
    // The vectors keep their memory, so that later calls do not allocate.
    static const PerThread<std::vector<MovedArray>> in_of_thread;
    std::vector<MovedArray>& in = in_of_thread.get();
    in.assign(arrays_.begin(), arrays_.end());
    for (std::size_t k = 0; k < in.size(); ++k) {
      in[k].data = binding.values[o_.inputs[k]];
      if (!o_.views.empty())
        in[k].data += o_.views[k].offset * static_cast<std::int64_t>(item_size(in[k].dtype));
    }
    std::byte* out = binding.values[o_.out()];
    if (!casts_up_) return apply(in, dtype_, out);
    std::byte* place = binding.workspace;
    for (MovedArray& array : in) {
      if (!is_short_float(array.dtype)) continue;
      upcast(array, place);
      array = {place, array.shape, DType::Float32};
      place += floats(array.shape);
    }
    apply(in, DType::Float32, place);
    round(place, out);
  }

 private:
  /// Elements from one run to the next of an input of a concatenation: the stride of the last axis
  /// in front of its axis; 0 if there is one run.
  std::int64_t pitch_of(const View& view, const Shape& shape) const {
    for (int d = static_cast<int>(o_.attrs.as<AxisAttrs>().axis) - 1; d >= 0; --d)
      if (shape[d] != 1) return view.stride[d];
    return 0;
  }

  static std::size_t floats(const Shape& shape) {
    return whole_lines(at(shape.numel()) * sizeof(float));
  }

  void apply(std::span<const MovedArray> in, DType dtype, std::byte* out) const {
    const auto* along = o_.attrs.get_if<AxisAttrs>();
    const int axis = along == nullptr ? 0 : static_cast<int>(along->axis);
    switch (o_.op) {
      case Op::Concat:
        return concat(in, axis, out, out_shape_);
      case Op::Pad:
        return pad(in[0], o_.attrs.as<PadAttrs>(), out, out_shape_);
      case Op::Gather:
        return gather(in[0], in[1], axis, out);
      case Op::ScatterAdd:
        return scatter_add(in[0], in[1], in[2], axis, out, out_shape_);
      case Op::Scatter:
        return scatter(in[0], in[1], in[2], axis, out, out_shape_);
      case Op::ScatterMax:
      case Op::ScatterMin:
        return scatter_extreme(in[0], in[1], in[2], axis, o_.op == Op::ScatterMax, out, out_shape_);
      default:
        return dtype == DType::Float64 ? pool<double>(o_.op, pool_, in, out)
                                       : pool<float>(o_.op, pool_, in, out);
    }
  }

  template <class F>
  static void in_blocks(std::int64_t count, F&& f) {
    constexpr std::int64_t kBlock = 65536;
    parallel_for((count + kBlock - 1) / kBlock,
                 [&](std::int64_t b, int) { f(b * kBlock, std::min(kBlock, count - b * kBlock)); });
  }

  static void upcast(const MovedArray& from, std::byte* to) {
    const TileLoad load = tile_table().load[static_cast<int>(from.dtype)];
    in_blocks(from.shape.numel(), [&](std::int64_t i, std::int64_t n) {
      load(1, n, to + 4 * i, from.data + 2 * i, n, 1);
    });
  }
  void round(const std::byte* from, std::byte* to) const {
    const TileStore store = tile_table().store[static_cast<int>(dtype_)];
    in_blocks(out_shape_.numel(),
              [&](std::int64_t i, std::int64_t n) { store(1, n, to + 2 * i, from + 4 * i, n, 1); });
  }

  const Opaque o_;
  const std::uint32_t label_;
  const Shape out_shape_;
  const DType dtype_;
  std::vector<MovedArray> arrays_;
  PoolShape pool_;
  bool casts_up_ = false;
};

class SortKernel final : public Kernel {
 public:
  SortKernel(const Opaque& o, std::span<const Value> values)
      : in_(o.inputs[0]),
        values_(o.outs[0]),
        indices_(o.outs[1]),
        dtype_(values[at(o.inputs[0])].dtype) {
    const Shape& x = o.shapes[0];
    const auto& attrs = o.attrs.as<SortAttrs>();
    shape_.length = x[x.rank() - 1];
    shape_.rows = shape_.length == 0 ? 0 : x.numel() / shape_.length;
    shape_.first = attrs.first;
    shape_.count = attrs.count;
    shape_.descending = attrs.descending != 0;
  }

  void run(const Binding& binding) const override {
    const auto place = [&](ValueId id) { return id == kNoValue ? nullptr : binding.values[id]; };
    sort_rows(shape_, dtype_, binding.values[in_], place(values_),
              reinterpret_cast<std::int64_t*>(place(indices_)));
  }

 private:
  const ValueId in_, values_, indices_;
  const DType dtype_;
  SortShape shape_;
};

class RecurrenceKernel final : public Kernel {
 public:
  RecurrenceKernel(const Opaque& o, std::span<const Value> values)
      : inputs_(o.inputs), out_(o.out()), dtype_(values[at(o.inputs[0])].dtype) {
    const Shape& x = o.shapes[0];
    const auto& attrs = o.attrs.as<RecurrenceAttrs>();
    shape_ = {outer_count(x, attrs.axis), x[attrs.axis], inner_count(x, attrs.axis), attrs.kind,
              attrs.reverse != 0};
  }

  void run(const Binding& binding) const override {
    const std::byte* const inputs[] = {binding.values[inputs_.front()],
                                       binding.values[inputs_.back()]};
    run_recurrence(shape_, dtype_, inputs, binding.values[out_]);
  }

 private:
  const std::vector<ValueId> inputs_;
  const ValueId out_;
  const DType dtype_;
  RecurrenceShape shape_;
};

class FourierKernel final : public Kernel {
 public:
  FourierKernel(const Opaque& o, std::span<const Value> values, int threads)
      : inputs_(o.inputs), real_(o.outs[0]), imaginary_(o.outs[1]) {
    const auto& attrs = o.attrs.as<FourierAttrs>();
    const Shape& x = o.shapes[0];
    FourierShape shape;
    shape.outer = outer_count(x, attrs.axis), shape.inner = inner_count(x, attrs.axis);
    shape.length = attrs.length, shape.given = x[attrs.axis], shape.kept = attrs.kept;
    shape.inverse = attrs.inverse != 0, shape.mirrored = attrs.mirrored != 0;
    shape.has_imaginary = inputs_.size() > 1;
    shape.wants_real = real_ != kNoValue, shape.wants_imaginary = imaginary_ != kNoValue;
    shape.scale = attrs.scale;
    fourier_ = fourier(shape, values[at(inputs_[0])].dtype, threads);
    workspace_bytes = fourier_->workspace_bytes;
  }

  void run(const Binding& binding) const override {
    const auto result = [&](ValueId id) { return id == kNoValue ? nullptr : binding.values[id]; };
    const std::byte* const imaginary = inputs_.size() > 1 ? binding.values[inputs_[1]] : nullptr;
    fourier_->run({binding.values[inputs_[0]], imaginary, result(real_), result(imaginary_)},
                  binding.workspace);
  }

 private:
  const std::vector<ValueId> inputs_;
  const ValueId real_, imaginary_;
  std::unique_ptr<const Fourier> fourier_;
};

class OpaqueEngine final : public Engine {
 public:
  const char* name() const override { return "opaque"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    const char* reason = refusal(region, values);
    if (reason != nullptr && why != nullptr) *why = reason;
    return reason == nullptr;
  }

  Capabilities capabilities(const Region& region, std::span<const Value>) const override {
    Capabilities can;
    if (region.kind != RegionKind::Opaque || !is_pool(region.opaque.op)) return can;
    can.no_slices = nullptr;
    can.sliced_inputs = ~0u;  // a slice is one sample
    can.no_bands = rows_refusal(region.opaque);
    return can;
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    if (region.opaque.op == Op::Fourier)
      return std::make_unique<FourierKernel>(region.opaque, values, threads);
    if (region.opaque.op == Op::Sort) return std::make_unique<SortKernel>(region.opaque, values);
    if (region.opaque.op == Op::Recurrence)
      return std::make_unique<RecurrenceKernel>(region.opaque, values);
    return std::make_unique<OpaqueKernel>(region, values);
  }

 private:
  // Windows are clipped to the rows of the band.
  static const char* rows_refusal(const Opaque& o) {
    if (o.op == Op::MaxPool2d) return nullptr;
    if (o.op != Op::AvgPool2d)
      return "is not forward pooling, which alone runs on some rows of an image";
    const auto& pool = o.attrs.as<PoolAttrs>();
    const bool counts = pool.pad_h > 0 && pool.count_include_pad != 0;
    return counts ? "counts padding in its averages, and each band of rows has another padding"
                  : nullptr;
  }
  static const char* refusal(const Region& region, std::span<const Value> values) {
    if (region.kind != RegionKind::Opaque)
      return "runs opaque regions only (single operations that are not fused)";
    const Opaque& o = region.opaque;
    if (o.op == Op::Sort || o.op == Op::Recurrence || o.op == Op::Fourier) return nullptr;
    if (!is_pool(o.op) && !is_movement(o.op) && !has_trait(o.op, kInOrder))
      return "runs pooling, sorting, recurrences, Fourier transforms and operations that move or "
             "scatter elements only";
    const DType dtype = values[at(o.out())].dtype;
    if (is_pool(o.op) && !is_floating(dtype)) return "pools floating-point numbers only";
    if (has_trait(o.op, kAddsUp) && is_bool(dtype)) return "does not add bools";
    return nullptr;
  }
};

}  // namespace

const Engine& opaque_engine() {
  static const OpaqueEngine engine;
  return engine;
}

}  // namespace tenon::cpu
