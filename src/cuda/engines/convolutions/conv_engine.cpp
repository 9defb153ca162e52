// Prepares launches of cuda/kernels/conv/ for a convolution's region: sources, grids,
// arguments.
#include "cuda/engines/convolutions/conv_engine.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/convolutions/combined_channels.h"
#include "cuda/engines/convolutions/conv_choice.h"
#include "cuda/engines/convolutions/conv_rows.h"
#include "cuda/engines/convolutions/partial_sums.h"
#include "cuda/engines/launch/per_target.h"
#include "cuda/engines/launch/words.h"
#include "cuda/engines/maps/print_code.h"
#include "cuda/engines/maps/print_map.h"
#include "plan/regions/channel_sums.h"

namespace tenon::cuda {

namespace {

std::uint32_t blocks_of(std::int64_t i) { return static_cast<std::uint32_t>(i); }

/// With more arithmetic than this the latency of the patches no longer dominates: libraries are
/// faster, and weight gradients leave many partial results.
constexpr double kMostFlops = 4e9;
/// Compile effort: these kernels take the compiler longest.
constexpr int kEffort = 3;

/// The part of the source that both kernels share.
ConfigText common_text(const ConvShape& s, const ConvConfig& c) {
  return ConfigText()
      .value("Math", "kMath", math_name(s.math))
      .value("Kind", "kImage", stored_kind(s.image_dtype))
      .flags({{"kShifts", s.shifts}, {"kWhole", s.whole}})
      .tile(c.tile);
}
constexpr const char* kNamespace = "\nusing namespace tenon::cuda;\n\n";

std::string bounds(const Tile& t) { return cat(t.threads, ", ", t.threads <= 256 ? 2 : 1); }

Source patch_source(const ConvShape& s, const ConvConfig& c, const std::string& epilogue) {
  return {"conv_patch",
          cat("#include \"cuda/kernels/conv/conv_patch.cuh\"\n", epilogue, kNamespace,
              common_text(s, c)
                  .value("Kind", "kFilters", stored_kind(s.other_dtype))
                  .flags({{"kRowsFirst", s.rows_first}})
                  .ints({{"kStoreVector", c.store_vector}})
                  .text(),
              "\nextern \"C\" __global__ void __launch_bounds__(", bounds(c.tile),
              ")\nconv_patch(const ConvProblem p, const Epilogue epilogue) {\n  "
              "TENON_DYNAMIC_SHARED(shared);\n  ConvBlock<Config, Epilogue>(p, epilogue, "
              "shared).await_and_run();\n}\n"),
          kEffort};
}

Source gradient_source(const ConvShape& s, const ConvConfig& c) {
  return {"conv_gradient",
          cat("#include \"cuda/kernels/conv/conv_gradient.cuh\"\n", kNamespace,
              common_text(s, c)
                  .value("Kind", "kGradient", stored_kind(s.other_dtype))
                  .ints({{"kAligned", c.by_rows ? 1 : c.aligned},
                         {"kPixels", c.by_rows ? c.store_vector : 0}})
                  .text(),
              "\nextern \"C\" __global__ void __launch_bounds__(", bounds(c.tile),
              ")\nconv_gradient(const ConvGradient p) {\n  TENON_DYNAMIC_SHARED(shared);\n  "
              "ConvGradientBlock<Config>(p, shared).await_and_run();\n}\n"),
          kEffort + 1};
}

/// The bindings that all kinds of convolution steps share.
class ConvKernel : public Kernel {
 public:
  ConvKernel(const ConvShape& shape, const ConvConfig& config, std::string title)
      : shape_(shape), config_(config), title_(std::move(title)) {}

 protected:
  const void* image(const Binding& binding) const {
    return address(binding, shape_.image_value, shape_.image_offset, shape_.image_dtype);
  }
  const void* other(const Binding& binding) const {
    return address(binding, shape_.other_value, shape_.other_offset, shape_.other_dtype);
  }
  ConvPatch patch() const {
    ConvPatch patch;
    patch.height = make_divisor(shape_.reach(shape_.rows, config_.rows));
    patch.width = make_divisor(shape_.reach(shape_.columns, config_.columns));
    patch.groups = make_divisor(config_.chunk);
    patch.images = to_int(config_.images);
    patch.pitch = to_int(conv_patch_pitch(config_));
    return patch;
  }
  ConvTaps taps() const {
    ConvTaps taps;
    taps.count = make_divisor(shape_.taps());
    taps.columns = make_divisor(shape_.shifts ? 1 : shape_.columns.taps);
    taps.row_step = to_int(shape_.rows.dilation * shape_.reach(shape_.columns, config_.columns));
    taps.column_step = to_int(shape_.columns.dilation);
    return taps;
  }

  const ConvShape shape_;
  const ConvConfig config_;
  const std::string title_;

 private:
  const void* address(const Binding& binding, ValueId value, std::int64_t offset,
                      DType dtype) const {
    const std::byte* base = binding.values[at(value)];
    if (config_.aligned > 1 && reinterpret_cast<std::uintptr_t>(base) % 16 != 0)
      throw InternalError(cat(title_, ": an operand's address is not a multiple of 16"));
    return base + offset * static_cast<std::int64_t>(item_size(dtype));
  }
};

class PatchKernel final : public ConvKernel {
 public:
  PatchKernel(const Region& region, const ConvShape& s, const ConvConfig& c, const Target& target,
              PrintedEpilogue printed)
      : ConvKernel(s, c, region.title), epilogue_(std::move(printed.arguments)) {
    ConvProblem& p = problem_;
    p.image = s.image;
    p.filters = s.weights;
    p.patch = patch();
    p.taps = taps();
    p.rows = to_int(s.filters);
    p.pitch = to_int(conv_row_pitch(s, c));
    p.image_step = to_int(s.image_step);
    p.filter_step = to_int(s.other_step);
    ConvRegion& r = p.region;
    const std::int64_t blocks_m = divide_up(s.filters, c.tile.m),
                       bands = divide_up(s.rows.result, c.rows),
                       strips = divide_up(s.columns.result, c.columns);
    r.blocks_m = make_divisor(blocks_m);
    r.bands = make_divisor(bands);
    r.strips = make_divisor(strips);
    r.pixels = make_divisor(c.rows * c.columns);
    r.columns = make_divisor(c.columns);
    r.images = to_int(c.images), r.rows = to_int(c.rows);
    r.height = to_int(s.rows.result), r.width = to_int(s.columns.result);
    r.step_rows = to_int(s.rows.step), r.step_columns = to_int(s.columns.step);
    r.first_row = to_int(s.rows.first), r.first_column = to_int(s.columns.first);
    const std::int64_t places = bands * strips * divide_up(s.images, c.images);
    r.places = r.workers = to_int(places);
    share_places(s, blocks_m, target.model);
    grid_ = {blocks_of(blocks_m * r.workers), blocks_of(s.groups), 1};
    kernel_ = compile(target, patch_source(s, c, printed.code));
    if (printed.channel_numbers > 0)
      channels_.emplace(target, printed, epilogue_, s.filters * s.groups, places * conv_parts(c),
                        workspace_bytes);
  }

  std::string source() const override {
    return channels_ ? cat(kernel_->source().text, kNextLaunch, channels_->source())
                     : kernel_->source().text;
  }

  void run(const Binding& binding) const override {
    ConvProblem p = problem_;
    p.image.data = image(binding);
    p.filters.data = other(binding);
    std::vector<std::uint64_t> words;
    epilogue_.fill(words, binding);
    void* params[] = {&p, words.data()};
    kernel_->launch(binding.stream, grid_, {blocks_of(config_.tile.threads), 1, 1},
                    blocks_of(shared_bytes_), params);
    if (channels_) channels_->run(binding, words);
  }

 private:
  /// If the sums fit behind the operands, launches only as many blocks as run at once; each loops
  /// over tiles.
  void share_places(const ConvShape& s, std::int64_t blocks_m, const GpuModel& gpu) {
    const std::int64_t at_once = gpu.multiprocessors * (config_.tile.threads <= 256 ? 2 : 1),
                       places = problem_.region.places, blocks = places * blocks_m * s.groups;
    const std::int64_t sums = conv_sums_bytes(config_),
                       staged = round_up(conv_staged_bytes(s, config_), 16);
    if (blocks <= at_once || config_.chunk != s.unit_groups() || staged + sums > kMostPatchBytes)
      return;
    const std::int64_t turns = divide_up(blocks, at_once);
    problem_.region.workers = to_int(divide_up(places, turns));
    problem_.sums = to_int(staged / 16);
    shared_bytes_ = staged + sums;
  }

  EpilogueArguments epilogue_;
  ConvProblem problem_;
  Grid grid_;
  std::int64_t shared_bytes_ = config_.shared_bytes;
  std::shared_ptr<const CompiledKernel> kernel_;
  std::optional<CombinedChannels> channels_;
};

class GradientKernel final : public ConvKernel {
 public:
  GradientKernel(const Region& region, const ConvShape& s, const ConvConfig& c,
                 const Target& target, const PrintedEpilogue& printed)
      : ConvKernel(s, c, region.title) {
    describe(s, c);
    sums_.emplace(target, printed, s.filters * s.groups, problem_.result_columns, grid_.y);
    workspace_bytes = sums_->bytes();
    kernel_ = compile(target, gradient_source(s, c));
  }

  std::string source() const override {
    return cat(kernel_->source().text, kNextLaunch, sums_->source());
  }

  void run(const Binding& binding) const override {
    ConvGradient p = problem_;
    p.image.data = image(binding);
    p.data = other(binding);
    p.partials = PartialSums::partials(binding);
    void* params[] = {&p};
    kernel_->launch(binding.stream, grid_, {blocks_of(config_.tile.threads), 1, 1},
                    blocks_of(config_.shared_bytes), params);
    sums_->run(binding);
  }

 private:
  void describe(const ConvShape& s, const ConvConfig& c) {
    ConvGradient& p = problem_;
    p.image = s.image;
    p.patch = patch();
    p.taps = taps();
    p.image_stride = to_int(s.image_stride), p.filter_stride = to_int(s.filter_stride);
    const std::int64_t blocks_m = divide_up(s.filters, c.tile.m),
                       bands = divide_up(s.rows.result, c.rows);
    p.blocks_m = make_divisor(blocks_m);
    p.bands = make_divisor(bands);
    p.slots = make_divisor(conv_slots(c));
    p.columns = make_divisor(s.columns.result);
    p.rows_of_band = to_int(c.rows), p.height = to_int(s.rows.result);
    p.cells = to_int(c.cells), p.cells_in_all = to_int(s.images * bands);
    p.pitch = to_int(conv_row_pitch(s, c));
    p.step_rows = to_int(s.rows.step), p.step_columns = to_int(s.columns.step);
    p.first_row = to_int(s.rows.first), p.first_column = to_int(s.columns.first);
    p.filters = to_int(s.filters);
    const std::int64_t taps = s.rows.taps * s.columns.taps;
    p.group_columns = to_int(s.shifts ? taps : taps * s.vector);
    p.tap_columns = to_int(s.shifts ? s.columns.taps : 1);
    p.element_columns = to_int(s.shifts ? 1 : taps);
    p.result_columns = to_int(s.channels * taps);
    p.result_rows = to_int(s.filters * s.groups);
    p.image_step = to_int(s.image_step), p.filter_step = to_int(s.other_step);
    if (c.by_rows) describe_pieces(s, c);
    grid_ = {blocks_of(blocks_m * divide_up(s.unit_groups(), c.chunk)),
             blocks_of(divide_up(p.cells_in_all, c.cells)), blocks_of(s.groups)};
  }

  void describe_pieces(const ConvShape& s, const ConvConfig& c) {
    constexpr std::int64_t kEighth = 8;
    const std::int64_t edge = s.reach(s.columns, s.columns.result) - s.columns.image;
    ConvGradient& p = problem_;
    p.eighths = make_divisor(conv_staged_pixels(s, c) / kEighth);
    p.row_pieces = make_divisor(s.columns.image / c.store_vector);
    p.edge = make_divisor(std::max<std::int64_t>(edge, 1));
    p.edges = to_int(c.images * s.reach(s.rows, c.rows) * c.chunk * edge);
  }

  ConvGradient problem_;
  Grid grid_;
  std::optional<PartialSums> sums_;
  std::shared_ptr<const CompiledKernel> kernel_;
};

/// Null, or the reason for a refusal. `any_size`: also where other engines are faster.
const char* conv_refusal(const Target& target, const Region& region, std::span<const Value> values,
                         bool any_size) {
  ConvShape shape;
  if (const char* why = conv_shape(region, values, shape)) return why;
  if (!any_size && shape.flops() > kMostFlops && (target.cudnn || shape.filter_gradient))
    return "leaves large convolutions to faster engines";
  if (conv_configs(target.model, shape, 1).empty())
    return "has too little shared memory for the patches of this convolution";
  if (shape.images * shape.rows.result > 65535 || shape.groups > 65535)
    return "needs a larger grid than a launch can have";
  return nullptr;
}

/// Null, or the reason why a result cannot be reduced in the epilogue: weight gradients reduce as a
/// whole, feature maps by channel.
const char* no_reductions(const Region& region, std::span<const Value> values) {
  constexpr std::uint32_t kAllButRows = 5;  // of [batch, rows, columns]
  if (region.contraction.op == Op::Conv2dWeightGrad) return no_channel_sums(region);
  if (!reduces_channels(region))
    return "reduces only weight gradients, and feature maps by channel";
  for (const MapReduce& reduce : region.map.reduces) {
    if (reduce.axes != kAllButRows)
      return "reduces by channel only where a channel is a row of the result";
    for (const DType dtype :
         {region.map.instrs[at(reduce.source)].dtype, values[at(reduce.value)].dtype})
      if (!is_floating(dtype) || dtype == DType::Float64)
        return "reduces by channel in float32 only";
  }
  return nullptr;
}

class ConvEngine final : public Engine {
 public:
  explicit ConvEngine(const Target& target) : target_(target) {}

  const char* name() const override { return "conv"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    const char* reason = conv_refusal(target_, region, values, false);
    if (reason != nullptr && why != nullptr) *why = reason;
    return reason == nullptr;
  }

  bool is_able(const Region& region, std::span<const Value> values) const override {
    return conv_refusal(target_, region, values, true) == nullptr;
  }

  Capabilities capabilities(const Region& region, std::span<const Value> values) const override {
    Capabilities can;
    can.no_reductions = no_reductions(region, values);
    return can;
  }

  double estimate(const Region& region, std::span<const Value> values) const override {
    const std::vector<ConvConfig> configs = configs_of(region, values, 1);
    return configs.empty() ? 0 : target_.model.cycles_to_microseconds(configs.front().cycles);
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    return prepare_as({}, region, values, threads);
  }

  std::vector<std::string> configurations(const Region& region,
                                          std::span<const Value> values) const override {
    std::vector<std::string> names;
    for (const ConvConfig& config : configs_of(region, values, 2)) {
      if (names.size() < kWorthTiming) names.push_back(config_name(config));
    }
    return names;
  }

  std::unique_ptr<Kernel> prepare_as(const std::string& configuration, const Region& region,
                                     std::span<const Value> values, int) const override {
    // Other engines do not reduce channels. The tuner therefore compares this engine's
    // configurations with its own choice.
    const bool own = configuration.empty() ||
                     (configuration == kReferenceConfiguration && reduces_channels(region));
    for (const ConvConfig& config : configs_of(region, values, own ? 1 : kAll))
      if (own || config_name(config) == configuration)
        return prepare_conv(region, values, target_, config);
    refuse_config("conv", configuration);
  }

 private:
  static constexpr std::size_t kWorthTiming = 12, kAll = 1 << 20;

  std::vector<ConvConfig> configs_of(const Region& region, std::span<const Value> values,
                                     std::size_t per_tile) const {
    ConvShape shape;
    if (const char* why = conv_shape(region, values, shape))
      throw InternalError(cat("conv: ", why));
    return conv_configs(target_.model, shape, per_tile);
  }

  const Target target_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_conv(const Region& region, std::span<const Value> values,
                                     const Target& target, const ConvConfig& config) {
  ConvShape shape;
  if (const char* reason = conv_shape(region, values, shape))
    throw InternalError(cat("conv: ", reason));
  PrintedEpilogue printed = print_epilogue(region, values, target);

  if (config.by_rows && !shape.filter_gradient)
    return prepare_conv_rows(region, shape, config, target, std::move(printed));
  if (shape.filter_gradient)
    return std::make_unique<GradientKernel>(region, shape, config, target, printed);
  return std::make_unique<PatchKernel>(region, shape, config, target, std::move(printed));
}

const Engine& conv_engine(const Target& target) { return per_target<ConvEngine>(target); }

}  // namespace tenon::cuda
