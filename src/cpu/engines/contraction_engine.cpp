// The contraction engine: blocked matrix products and implicit-GEMM convolutions. Epilogues run on
// blocks that are still in cache.
//
// Results are float32 sums (float64 for float64 matrices). They are written as float32, or through
// the epilogue in any dtype. Float64 convolutions are left to the reference engine, because they
// occur only in gradient checks with tiny sizes.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/contains.h"
#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/cpu.h"
#include "cpu/engines/run/tile_epilogue.h"
#include "cpu/engines/run/workspace.h"
#include "cpu/kernels/conv/conv2d.h"

namespace tenon::cpu {

namespace {

bool is_operand_dtype(DType t) { return t == DType::Float32 || is_short_float(t); }

bool is_row_major(const View& view, const Shape& shape) {
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (shape[d] != 1 && view.stride[d] != stride) return false;
    stride *= shape[d];
  }
  return true;
}

GemmShape matrix_shape(const Contraction& c) {
  const int ra = c.a_shape.rank(), rb = c.b_shape.rank();
  GemmShape s;
  s.m = c.a_shape[ra - 2];
  s.k = c.a_shape[ra - 1];
  s.n = c.b_shape[rb - 1];
  s.batch = 1;
  for (int d = 0; d + 2 < c.out_shape.rank(); ++d) s.batch *= c.out_shape[d];
  return s;
}

ConvPass pass_of(Op op) {
  return op == Op::Conv2d            ? ConvPass::Forward
         : op == Op::Conv2dInputGrad ? ConvPass::InputGrad
                                     : ConvPass::WeightGrad;
}

ConvShape conv_shape(const Contraction& c) {
  const Shape& x = c.op == Op::Conv2dInputGrad ? c.out_shape : c.a_shape;
  const Shape& w = c.op == Op::Conv2dWeightGrad ? c.out_shape : c.b_shape;
  const Shape& y = c.op == Op::Conv2d            ? c.out_shape
                   : c.op == Op::Conv2dInputGrad ? c.a_shape
                                                 : c.b_shape;
  const ConvAttrs v = c.attrs.conv;
  ConvShape s;
  s.n = x[0], s.c = x[1], s.h = x[2], s.w = x[3];
  s.k = w[0], s.r = w[2], s.s = w[3];
  s.p = y[2], s.q = y[3];
  const auto whole = [](std::int64_t i) { return static_cast<int>(i); };
  s.stride_h = whole(v.stride_h), s.stride_w = whole(v.stride_w);
  s.pad_h = whole(v.pad_h), s.pad_w = whole(v.pad_w);
  s.dil_h = whole(v.dil_h), s.dil_w = whole(v.dil_w);
  s.groups = whole(v.groups);
  return s;
}

/// True if the epilogue of a convolution may reduce channels. This requires that each call of the
/// epilogue gets all channels of a group for one piece of an image.
bool sums_channels(const Contraction& c) {
  const bool images = c.op == Op::Conv2d || c.op == Op::Conv2dInputGrad;
  return images && c.dtype == DType::Float32 &&
         conv2d_piece(conv_shape(c), pass_of(c.op), Math::F32, false) > 0;
}

/// The iteration space of the epilogue: [batch, rows, columns].
Shape result_space(const Contraction& c) {
  const Shape& o = c.out_shape;
  switch (c.op) {
    case Op::Matmul: {
      const GemmShape s = matrix_shape(c);
      return {s.batch, s.m, s.n};
    }
    case Op::Conv2dWeightGrad:
      return {1, o[0], o[1] * o[2] * o[3]};
    default:
      return {o[0], o[1], o[2] * o[3]};
  }
}

View contiguous_view(const Shape& space, ValueId value) {
  View view;
  view.value = value;
  view.stride[2] = 1;
  view.stride[1] = space[2];
  view.stride[0] = space[1] * space[2];
  return view;
}

/// The region's epilogue, with a store of the result itself if the result is not float32.
std::optional<MapProgram> epilogue_program(const Region& region, bool store_result) {
  std::optional<MapProgram> map;
  if (region.contraction.has_epilogue) map = region.map;
  if (!store_result) return map;
  if (!map) {
    map.emplace();
    map->space = result_space(region.contraction);
  }
  MapInstr result;
  result.code = MapCode::Accumulator;
  result.dtype = region.contraction.dtype;
  map->instrs.push_back(result);
  map->stores.push_back({static_cast<int>(map->instrs.size()) - 1,
                         contiguous_view(map->space, region.contraction.out)});
  return map;
}

/// An operand of a matrix product, with the axes before the last two as one batch axis.
struct MatrixOperand {
  View view;
  DType dtype = DType::Float32;
  Operand operand;
  std::vector<std::int64_t> offsets;  // of the batches, if they have no common stride

  MatrixOperand(const View& v, const Shape& shape, DType type) : view(v), dtype(type) {
    const int rank = shape.rank();
    operand.dtype = type;
    operand.row_stride = v.stride[rank - 2];
    operand.col_stride = v.stride[rank - 1];
    bool even = true;
    std::int64_t count = 1, step = 0;
    for (int d = rank - 3; d >= 0; --d) {
      if (shape[d] == 1) continue;
      if (count == 1) step = v.stride[d];
      even = even && v.stride[d] == step * count;
      count *= shape[d];
    }
    operand.batch_stride = step;
    if (!even) list_offsets(shape, count);
  }

  void list_offsets(const Shape& shape, std::int64_t count) {
    for (std::int64_t batch = 0; batch < count; ++batch) {
      std::int64_t rest = batch, offset = 0;
      for (int d = shape.rank() - 3; d >= 0; --d) {
        offset += rest % shape[d] * view.stride[d];
        rest /= shape[d];
      }
      offsets.push_back(offset);
    }
  }

  Operand bound(const Binding& binding) const {
    Operand o = operand;
    o.data = binding.values[view.value] + view.offset * static_cast<std::int64_t>(item_size(dtype));
    if (!offsets.empty()) o.batch_offsets = offsets.data();
    return o;
  }
};

class ContractionKernel : public Kernel {
 public:
  ContractionKernel(const Region& region, std::span<const Value> values, int threads,
                    bool needs_result)
      : c_(region.contraction) {
    const bool wide = c_.dtype == DType::Float64;
    const bool direct = c_.dtype == DType::Float32 || wide;
    const auto map = epilogue_program(region, c_.out != kNoValue && !direct);
    if (map) epilogue_.emplace(*map, values);
    reduces_ = map && !map->reduces.empty();
    if (map && map->space[0] == 1) list_reads(*map, values);
    result_ = direct ? c_.out : kNoValue;
    if (result_ == kNoValue && map) result_ = result_in_store(*map, values);
    // A result that is not stored gets a place in the workspace if the kernel needs one.
    const std::size_t item = wide ? 8 : 4;
    result_bytes_ =
        result_ == kNoValue && needs_result ? whole_lines(at(c_.out_shape.numel()) * item) : 0;
    set_epilogue_bytes(threads);
  }

 protected:
  bool reduces() const { return reduces_; }
  /// The rectangles of a reducing epilogue: TileEpilogue::set_piece.
  void set_piece(std::int64_t columns, int threads) {
    epilogue_->set_piece(columns);
    set_epilogue_bytes(threads);
  }
  void set_kernel_bytes(std::size_t bytes) {
    workspace_bytes = epilogue_bytes_ + result_bytes_ + bytes;
  }

  bool has_result() const { return result_ != kNoValue || result_bytes_ > 0; }
  template <class T>
  T* result(const Binding& binding) const {
    if (result_ != kNoValue) return reinterpret_cast<T*>(binding.values[result_]);
    return result_bytes_ == 0 ? nullptr : reinterpret_cast<T*>(binding.workspace + epilogue_bytes_);
  }
  std::byte* kernel_workspace(const Binding& binding) const {
    return binding.workspace + epilogue_bytes_ + result_bytes_;
  }
  TileEpilogue::Run epilogue_run(const Binding& binding, std::int64_t folded_rows) const {
    return {*epilogue_, binding, binding.workspace, folded_rows};
  }
  Epilogue epilogue(TileEpilogue::Run& run) const {
    Epilogue e{TileEpilogue::call, &run};
    for (const MapInstr& load : reads_) {
      const auto item = static_cast<std::int64_t>(item_size(load.dtype));
      e.read[e.reads++] = {run.binding.values[load.view.value] + load.view.offset * item,
                           load.view.stride[1] * item, item};
    }
    return e;
  }

  const Contraction c_;
  std::optional<TileEpilogue> epilogue_;

 private:
  void set_epilogue_bytes(int threads) {
    epilogue_bytes_ = epilogue_ ? whole_lines(epilogue_->workspace_bytes(threads)) : 0;
  }

  /// Whole matrices that the epilogue reads row by row, each once.
  void list_reads(const MapProgram& map, std::span<const Value> values) {
    std::vector<ValueId> listed;
    for (const MapInstr& instr : map.instrs) {
      const View& view = instr.view;
      const bool matrix = instr.code == MapCode::Load && view.stride[2] == 1 && view.stride[1] > 0;
      const bool known = contains(listed, view.value);
      if (!matrix || known || reads_.size() == at(kMaxEpilogueReads)) continue;
      listed.push_back(view.value);
      reads_.push_back(instr);
      reads_.back().dtype = values[at(view.value)].dtype;
    }
  }

  /// A value that the epilogue writes element by element and does not read. The bare result may use
  /// its memory until then.
  ValueId result_in_store(const MapProgram& map, std::span<const Value> values) const {
    const View wanted = contiguous_view(map.space, kNoValue);
    for (const MapStore& store : map.stores) {
      const ValueId id = store.view.value;
      bool fits = values[at(id)].dtype == c_.dtype &&
                  (c_.dtype == DType::Float32 || c_.dtype == DType::Float64) &&
                  store.view.offset == 0 && id != c_.a.value && id != c_.b.value;
      for (int d = 0; d < 3; ++d)
        fits = fits && (map.space[d] == 1 || store.view.stride[d] == wanted.stride[d]);
      for (const MapInstr& instr : map.instrs) fits = fits && instr.view.value != id;
      if (fits) return id;
    }
    return kNoValue;
  }

  std::vector<MapInstr> reads_;
  bool reduces_ = false;
  ValueId result_ = kNoValue;
  std::size_t result_bytes_ = 0, epilogue_bytes_ = 0;
};

class MatmulKernel final : public ContractionKernel {
 public:
  MatmulKernel(const Region& region, std::span<const Value> values, int threads)
      : ContractionKernel(region, values, threads, false),
        shape_(matrix_shape(c_)),
        a_(c_.a, c_.a_shape, values[at(c_.a.value)].dtype),
        b_(c_.b, c_.b_shape, values[at(c_.b.value)].dtype),
        math_(c_.compute() == DType::BFloat16 ? Math::Bf16 : Math::F32) {
    // One right matrix for all batches, and consecutive left matrices: one product with more rows.
    const bool same_b = b_.offsets.empty() && b_.operand.batch_stride == 0;
    const bool rows_follow =
        a_.offsets.empty() && a_.operand.batch_stride == shape_.m * a_.operand.row_stride;
    if (shape_.batch > 1 && same_b && rows_follow) {
      folded_rows_ = shape_.m;
      shape_.m *= shape_.batch;
      shape_.batch = 1;
    }
    set_kernel_bytes(std::max(gemm_workspace(shape_, math_, threads, true),
                              gemm_workspace(shape_, math_, threads, false)));
    prepared_ = prepared_gemm(shape_, math_, b_.operand);
  }

  void run(const Binding& binding) const override {
    if (!epilogue_) return product(binding, {});
    epilogue_->prefetch();
    TileEpilogue::Run run = epilogue_run(binding, folded_rows_);
    product(binding, epilogue(run));
  }

 private:
  void product(const Binding& binding, const Epilogue& epilogue) const {
    gemm({.shape = shape_,
          .a = a_.bound(binding),
          .b = b_.bound(binding),
          .c = result<float>(binding),
          .ldc = shape_.n,
          .c_batch_stride = shape_.m * shape_.n,
          .math = math_,
          .epilogue = epilogue,
          .workspace = kernel_workspace(binding),
          .prepared = prepared_.get()});
  }

  GemmShape shape_;
  const MatrixOperand a_, b_;
  const Math math_;
  std::int64_t folded_rows_ = 0;
  std::shared_ptr<const GemmPlan> prepared_;
};

/// Float64: first the whole product, then the epilogue by blocks of rows.
class WideMatmulKernel final : public ContractionKernel {
 public:
  WideMatmulKernel(const Region& region, std::span<const Value> values, int threads)
      : ContractionKernel(region, values, threads, true),
        shape_(matrix_shape(c_)),
        a_(c_.a, c_.a_shape, DType::Float64),
        b_(c_.b, c_.b_shape, DType::Float64) {
    set_kernel_bytes(0);
  }

  void run(const Binding& binding) const override {
    double* c = result<double>(binding);
    gemm_f64(shape_, a_.bound(binding), b_.bound(binding), c, shape_.n, shape_.m * shape_.n);
    if (!epilogue_ || shape_.n == 0) return;
    const TileEpilogue::Run run = epilogue_run(binding, 0);
    const std::int64_t rows = std::max<std::int64_t>(1, 16384 / shape_.n),
                       blocks = (shape_.m + rows - 1) / rows;
    parallel_for(shape_.batch * blocks, [&](std::int64_t chunk, int worker) {
      const std::int64_t batch = chunk / blocks, row0 = chunk % blocks * rows;
      const Rectangle place = {batch, row0, std::min(shape_.m, row0 + rows), 0, shape_.n};
      TileEpilogue::rectangle(run, worker, place, c + (batch * shape_.m + row0) * shape_.n,
                              shape_.n);
    });
  }

 private:
  const GemmShape shape_;
  const MatrixOperand a_, b_;
};

class ConvKernel final : public ContractionKernel {
 public:
  ConvKernel(const Region& region, std::span<const Value> values, int threads)
      : ContractionKernel(region, values, threads, false),
        shape_(conv_shape(c_)),
        a_dtype_(values[at(c_.a.value)].dtype),
        b_dtype_(values[at(c_.b.value)].dtype),
        math_(c_.compute() == DType::BFloat16 ? Math::Bf16 : Math::F32) {
    const bool apart = !has_result();
    if (reduces()) set_piece(conv2d_piece(shape_, pass_of(c_.op), math_, apart), threads);
    set_kernel_bytes(conv2d_workspace(shape_, pass_of(c_.op), math_, threads, apart));
  }

  void run(const Binding& binding) const override {
    if (!epilogue_) return convolve(binding, {});
    TileEpilogue::Run run = epilogue_run(binding, 0);
    convolve(binding, epilogue(run));
    TileEpilogue::finish(run);
  }

 private:
  ConvOperand operand(const Binding& binding, const View& view, DType dtype) const {
    return {binding.values[view.value] + view.offset * static_cast<std::int64_t>(item_size(dtype)),
            dtype};
  }

  void convolve(const Binding& binding, const Epilogue& epilogue) const {
    const ConvOperand a = operand(binding, c_.a, a_dtype_), b = operand(binding, c_.b, b_dtype_);
    auto* out = result<float>(binding);
    std::byte* workspace = kernel_workspace(binding);
    switch (pass_of(c_.op)) {
      case ConvPass::Forward:
        return conv2d_forward(shape_, a, b, out, math_, epilogue, workspace);
      case ConvPass::InputGrad:
        return conv2d_input_grad(shape_, a, b, out, math_, epilogue, workspace);
      case ConvPass::WeightGrad:
        return conv2d_weight_grad(shape_, a, b, out, math_, epilogue, workspace);
    }
  }

  const ConvShape shape_;
  const DType a_dtype_, b_dtype_;
  const Math math_;
};

class ContractionEngine final : public Engine {
 public:
  const char* name() const override { return "contraction"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    const char* reason = refusal(region, values);
    if (reason != nullptr) {
      if (why != nullptr) *why = reason;
      return false;
    }
    if (!region.map.reduces.empty() && !sums_channels(region.contraction)) {
      if (why != nullptr) *why = "does not reduce the result of this contraction while writing it";
      return false;
    }
    return !region.contraction.has_epilogue || tile_program_claims(region.map, true, why);
  }

  Capabilities capabilities(const Region& region, std::span<const Value>) const override {
    Capabilities can;
    if (region.kind != RegionKind::Contraction || region.contraction.op == Op::Matmul) return can;
    if (sums_channels(region.contraction)) can.no_reductions = nullptr;
    if (!region.map.reduces.empty()) {
      can.no_slices = can.no_bands = "reduces its result over all images";
      return can;
    }
    can.no_slices = nullptr;  // a slice is one sample, and filters are packed again for each slice
    can.sums_slices = region.contraction.op == Op::Conv2dWeightGrad;
    if (region.contraction.op == Op::Conv2d) can.no_bands = nullptr;
    can.sliced_inputs = can.sums_slices ? 0b11 : 0b01;
    return can;
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    if (region.contraction.op != Op::Matmul)
      return std::make_unique<ConvKernel>(region, values, threads);
    if (region.contraction.dtype == DType::Float64)
      return std::make_unique<WideMatmulKernel>(region, values, threads);
    return std::make_unique<MatmulKernel>(region, values, threads);
  }

 private:
  static const char* refusal(const Region& region, std::span<const Value> values) {
    if (region.kind != RegionKind::Contraction) return "runs matrix products and convolutions only";
    const Contraction& c = region.contraction;
    const DType a = values[at(c.a.value)].dtype, b = values[at(c.b.value)].dtype;
    const bool wide = c.dtype == DType::Float64;
    if (wide && (a != DType::Float64 || b != DType::Float64))
      return "computes a float64 result of float64 operands only";
    if (!wide && (!is_operand_dtype(a) || !is_operand_dtype(b) || !is_operand_dtype(c.dtype)))
      return "takes float32, bfloat16 and float16 only, or float64 throughout";
    if (c.op == Op::Matmul) return nullptr;
    if (wide) return "has no convolutions in float64";
    if (!is_row_major(c.a, c.a_shape) || !is_row_major(c.b, c.b_shape))
      return "takes contiguous operands of convolutions only";
    if (c.a_shape.numel() == 0 || c.b_shape.numel() == 0 || c.out_shape.numel() == 0)
      return "does not run empty convolutions";
    return nullptr;
  }
};

}  // namespace

const Engine& contraction_engine() {
  static const ContractionEngine engine;
  return engine;
}

}  // namespace tenon::cpu
