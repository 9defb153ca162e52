// Prepares launches of cuda/kernels/conv/conv_image.cuh for a convolution's region.
#include "cuda/engines/convolutions/image_engine.h"

#include <algorithm>
#include <optional>

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/convolutions/conv_shape.h"
#include "cuda/engines/convolutions/partial_sums.h"
#include "cuda/engines/launch/per_target.h"
#include "cuda/engines/launch/tile.h"
#include "cuda/engines/launch/words.h"
#include "cuda/engines/maps/print_code.h"
#include "cuda/engines/maps/print_map.h"
#include "cuda/engines/products/form.h"
#include "cuda/engines/products/print_prologue.h"
#include "cuda/kernels/conv/conv_image_args.cuh"
#include "plan/program/tune.h"
#include "plan/regions/channel_sums.h"

namespace tenon::cuda {

namespace {

constexpr int kBlockThreads = 128, kResident = 4;  // threads of a block; blocks of a multiprocessor
constexpr std::int64_t kMostChannels = 4, kFilterStep = 32, kMostFilters = 64;
/// Limits for filters (or gradient sums) in registers: taps per filter and numbers in total.
/// Beyond, filters are in shared memory (cuda/kernels/conv/conv_image_taps.cuh).
constexpr std::int64_t kMostTaps = 80, kMostNumbers = 2560, kMostTapsOnChip = 160;
constexpr std::int64_t kMostShared = 48 * 1024;  // bytes

/// The sizes of image, filters and result.
struct ImageSizes {
  Shape x, w, y;
  bool by_filter;

  explicit ImageSizes(const Contraction& c)
      : x(c.a_shape),
        w(c.op == Op::Conv2dWeightGrad ? c.out_shape : c.b_shape),
        y(c.op == Op::Conv2dWeightGrad ? c.b_shape : c.result_shape()),
        by_filter(c.op == Op::Conv2dWeightGrad) {}
  std::int64_t taps() const { return w[1] * w[2] * w[3]; }
  bool has_many_taps() const { return taps() > kMostTaps || w[0] * taps() > kMostNumbers; }
  // Rows of pixels per block.
  int rows() const { return has_many_taps() ? 16 : 8; }
  int columns() const { return has_many_taps() ? 16 : 32; }
  /// 16-bit numbers in shared memory.
  std::int64_t shared(const ConvAttrs& v) const {
    std::int64_t width = (columns() - 1) * v.stride_w + w[3];
    if (v.stride_w % 2 == 0) width += w[3] % 2;
    const std::int64_t patch = (w[1] + 1) * ((rows() - 1) * v.stride_h + w[2]) * width;
    const std::int64_t gradient = patch + rows() * columns() * (w[0] + 8);
    if (has_many_taps())
      return by_filter ? gradient
                       : round_up(patch, 8) + w[0] * round_up(w[1] * w[2] * round_up(w[3], 2), 16);
    return by_filter ? std::max(gradient, 2 * w[0] * divide_up(taps(), 8) * 8) : patch;
  }
};

/// True if a view [N, C, H, W] is contiguous in NCHW order, or with `channels_last` in NHWC order.
bool has_layout(const View& view, const Shape& shape, bool channels_last) {
  constexpr int kPlanes[] = {3, 2, 1, 0}, kLast[] = {1, 3, 2, 0};  // from the inside out
  std::int64_t step = 1;
  for (const int d : channels_last ? kLast : kPlanes) {
    if (shape[d] != 1 && view.stride[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

/// Null, or the reason for a refusal.
const char* image_refusal(const Region& region, std::span<const Value> values) {
  const Contraction& c = region.contraction;
  const bool forward = c.op == Op::Conv2d && c.channels_last;
  if (region.kind != RegionKind::Contraction || (!forward && c.op != Op::Conv2dWeightGrad))
    return "runs only weight gradients, and convolutions with a channels-last result";
  const DType compute = c.compute();
  const bool half = compute == DType::BFloat16 || compute == DType::Float16;
  for (const View* view : {&c.a, &c.b})
    if (!half || values[at(view->value)].dtype != compute)
      return "takes two operands of the same 16-bit type only";
  const ConvAttrs& v = c.attrs.conv;
  const ImageSizes s(c);
  if (v.groups != 1 || v.dil_h != 1 || v.dil_w != 1) return "does not support groups or dilation";
  if (s.x[1] > kMostChannels || s.taps() > kMostTapsOnChip)
    return "takes inputs with few channels and small filters only";
  if (s.w[0] % kFilterStep != 0 || s.w[0] > kMostFilters)
    return "does not support this number of filters";
  if (s.has_many_taps() && v.stride_w % 2 != 0)
    return "needs an even horizontal stride for filters of this size";
  if (!has_layout(c.a, s.x, false)) return "takes NCHW inputs only";
  if (s.by_filter && (!has_layout(c.b, s.y, true) || c.b.offset % 8 != 0))
    return "takes a channels-last gradient only, aligned to 16 bytes";
  if (2 * s.shared(v) > kMostShared)
    return "has too little shared memory for the patches of this convolution";
  if (s.x.numel() == 0 || s.y.numel() == 0) return "does not run empty convolutions";
  if (std::max(s.x.numel(), s.y.numel()) >= std::int64_t{1} << 31)
    return "takes tensors of less than 2^31 elements only";
  return nullptr;
}

/// Null, or the reason for a refusal. The further operands of a gradient's prologue must be in the
/// gradient's order or have one element per filter.
const char* prologue_refusal(const Region& region, std::span<const Value> values) {
  const Contraction& c = region.contraction;
  if (c.op != Op::Conv2dWeightGrad || !region.prologue_a.instrs.empty())
    return "applies a prologue only to the gradient that a weight gradient reads";
  constexpr const char* kElsewhere =
      "applies only prologues whose operands have the gradient's layout or one element per filter";
  if (operand_dtype(region.prologue_b, values[at(c.b.value)].dtype) != c.compute())
    return "applies only prologues with a 16-bit result";
  for (const MapInstr& instr : region.prologue_b.instrs) {
    if (instr.code == MapCode::Random) return "generates no random numbers in a prologue";
    if (instr.code != MapCode::Load) continue;
    View by_filter;
    by_filter.stride[1] = 1;
    const auto is_stored_as = [&](const View& view) {
      for (int d = 0; d < 4; ++d)
        if (c.b_shape[d] != 1 && instr.view.stride[d] != view.stride[d]) return false;
      return instr.view.offset == view.offset;
    };
    if (!is_stored_as(c.b) && !is_stored_as(by_filter) && !is_stored_as(View())) return kElsewhere;
  }
  return nullptr;
}

ImageProblem problem_of(const Contraction& c) {
  const ConvAttrs& v = c.attrs.conv;
  const ImageSizes s(c);
  ImageProblem p;
  if (!s.by_filter) {
    p.filter_stride = c.b.stride[0], p.channel_stride = c.b.stride[1];
    p.row_stride = c.b.stride[2], p.column_stride = c.b.stride[3];
  }
  p.height = to_int(s.x[2]), p.width = to_int(s.x[3]);
  p.pad_h = to_int(v.pad_h), p.pad_w = to_int(v.pad_w);
  p.rows = to_int(s.y[2]), p.columns = to_int(s.y[3]);
  const std::int64_t strips = divide_up(s.y[3], s.columns()), bands = divide_up(s.y[2], s.rows());
  p.strips = make_divisor(strips);
  p.bands = make_divisor(bands);
  p.tiles = to_int(strips * bands * s.x[0]);
  return p;
}
/// At most `resident` blocks per multiprocessor share the tiles, and no more than finish together.
Grid grid_of(const Target& target, const ImageProblem& p, int resident) {
  const std::int64_t most = std::int64_t{resident} * target.multiprocessors,
                     each = std::max<std::int64_t>(divide_up(p.tiles, most), 1);
  return {static_cast<std::uint32_t>(divide_up(p.tiles, each)), 1, 1};
}

/// The source of a kernel up to its name.
std::string text_of(const Contraction& c, const std::string& more, const char* block,
                    const char* arguments, int resident) {
  const ConvAttrs& v = c.attrs.conv;
  const ImageSizes s(c);
  const char* taps = s.has_many_taps() ? "Taps" : "";
  return cat(
      "#include \"cuda/kernels/conv/conv_image", s.has_many_taps() ? "_taps" : "", ".cuh\"\n", more,
      "\nusing namespace tenon::cuda;\n\n",
      ConfigText()
          .value("Math", "kMath", c.compute() == DType::BFloat16 ? "Math::Bf16" : "Math::F16")
          .ints({{"kChannels", to_int(s.w[1])}, {"kFilters", to_int(s.w[0])}})
          .ints({{"kTapsH", to_int(s.w[2])}, {"kTapsW", to_int(s.w[3])}})
          .ints({{"kStrideH", to_int(v.stride_h)}, {"kStrideW", to_int(v.stride_w)}})
          .ints({{"kRows", s.rows()}, {"kColumns", s.columns()}, {"kThreads", kBlockThreads}})
          .text(),
      "using Block = Image", taps, block, arguments,
      ";\n\nextern \"C\" __global__ void __launch_bounds__(", kBlockThreads,
      s.has_many_taps() ? cat(", ", resident) : "", ")\n");
}
constexpr const char* kPatch =
    "  __shared__ __align__(16) unsigned short shared[Block::kShared];\n";
constexpr int kImageEffort = 3;  // of the compiler

const void* first_element(const Binding& binding, const View& view) {
  return binding.values[at(view.value)] + view.offset * 2;
}

class ImageKernel final : public Kernel {
 public:
  ImageKernel(const Target& target, const Region& region, std::span<const Value> values)
      : image_(region.contraction.a),
        filters_(region.contraction.b),
        problem_(problem_of(region.contraction)) {
    const Contraction& c = region.contraction;
    grid_ = grid_of(target, problem_, kResident);
    const PrintedEpilogue printed = print_epilogue(region, values, target);
    epilogue_ = printed.arguments;
    kernel_ =
        compile(target, {"conv_image",
                         cat(text_of(c, printed.code, "Block", "<Config, Epilogue>", kResident),
                             "conv_image(const ImageProblem p, const Epilogue epilogue) {\n",
                             kAwaitKernels, kPatch, "  Block(p, epilogue, shared).run();\n}\n"),
                         kImageEffort});
  }

  void run(const Binding& binding) const override {
    ImageProblem p = problem_;
    p.image = first_element(binding, image_);
    p.filters = first_element(binding, filters_);
    std::vector<std::uint64_t> words;
    epilogue_.fill(words, binding);
    void* params[] = {&p, words.data()};
    kernel_->launch(binding.stream, grid_, {kBlockThreads, 1, 1}, 0, params);
  }

  std::string source() const override { return kernel_->source().text; }

 private:
  const View image_, filters_;
  const ImageProblem problem_;
  EpilogueArguments epilogue_;
  Grid grid_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

class ImageGradientKernel final : public Kernel {
 public:
  ImageGradientKernel(const Target& target, const Region& region, std::span<const Value> values)
      : image_(region.contraction.a), gradient_(region.contraction.b) {
    const Contraction& c = region.contraction;
    problem_.at = problem_of(c);
    const ImageSizes s(c);
    // A prologue keeps its operands in registers, so fewer blocks fit.
    const int resident = !s.has_many_taps() ? 2 : region.has_prologue() ? 3 : kResident;
    grid_ = grid_of(target, problem_.at, resident);
    sums_.emplace(target, print_epilogue(region, values, target), s.w[0], s.taps(), grid_.x);
    workspace_bytes = sums_->bytes();
    PrintedPrologue prologue;
    if (region.has_prologue()) {
      // The first of the form's two operands is the output gradient.
      const ContractionForm form = contraction_form(region, values);
      prologue = print_prologue("Prologue", form.a, c.b, c.b_shape, values);
      prologue_ = prologue.arguments;
    } else {
      prologue.code = "namespace tenon::cuda {\nusing Prologue = NoPrologue;\n}\n";
    }
    kernel_ = compile(
        target, {"conv_image_gradient",
                 cat(text_of(c, prologue.code, "GradientBlock", "<Config, Prologue>", resident),
                     "conv_image_gradient(const ImageGradient p, const Prologue prologue) {\n",
                     kAwaitKernels, kPatch, "  Block(p, prologue, shared).run();\n}\n"),
                 kImageEffort});
  }

  void run(const Binding& binding) const override {
    ImageGradient p = problem_;
    p.at.image = first_element(binding, image_);
    p.gradient = first_element(binding, gradient_);
    p.partials = PartialSums::partials(binding);
    std::vector<std::uint64_t> words;
    prologue_.fill(words, binding);
    void* params[] = {&p, words.data()};
    kernel_->launch(binding.stream, grid_, {kBlockThreads, 1, 1}, 0, params);
    sums_->run(binding);
  }

  std::string source() const override {
    return cat(kernel_->source().text, kNextLaunch, sums_->source());
  }

 private:
  const View image_, gradient_;
  ImageGradient problem_;
  ArgumentBlock prologue_;
  Grid grid_;
  std::optional<PartialSums> sums_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

class ImageEngine final : public Engine {
 public:
  explicit ImageEngine(const Target& target) : target_(target) {}

  const char* name() const override { return "image"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    const char* reason = image_refusal(region, values);
    if (reason == nullptr && region.has_prologue()) reason = prologue_refusal(region, values);
    if (reason != nullptr && why != nullptr) *why = reason;
    return reason == nullptr;
  }

  Capabilities capabilities(const Region& region, std::span<const Value> values) const override {
    Capabilities can;
    if (region.has_prologue()) can.no_prologues = prologue_refusal(region, values);
    can.no_reductions = region.contraction.op == Op::Conv2dWeightGrad
                            ? no_channel_sums(region)
                            : "reduces weight gradients only";
    return can;
  }

  double estimate(const Region& region, std::span<const Value> values) const override {
    constexpr double kShare = 0.1;  // of the tensor cores' rate: operands are gathered
    double bytes = 0;
    for (const std::vector<ValueId>* list : {&region.reads, &region.writes})
      for (const ValueId id : *list) bytes += static_cast<double>(values[at(id)].bytes);
    const Contraction& c = region.contraction;
    return microseconds(target_.model, {.bytes = bytes,
                                        .multiply_adds = multiply_adds(c),
                                        .rate = kShare * target_.model.rate(c.compute(), false),
                                        .launches = c.op == Op::Conv2dWeightGrad ? 2 : 1});
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int) const override {
    if (region.contraction.op == Op::Conv2dWeightGrad)
      return std::make_unique<ImageGradientKernel>(target_, region, values);
    return std::make_unique<ImageKernel>(target_, region, values);
  }

 private:
  const Target target_;
};

}  // namespace

const Engine& image_engine(const Target& target) { return per_target<ImageEngine>(target); }

}  // namespace tenon::cuda
