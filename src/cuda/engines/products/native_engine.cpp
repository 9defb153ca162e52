// Prepares the launch of a contraction region: form, configuration, source, grid, arguments.
#include "cuda/engines/products/native_engine.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "cuda/engines/launch/per_target.h"
#include "cuda/engines/launch/tickets.h"
#include "cuda/engines/launch/words.h"
#include "cuda/engines/maps/print_map.h"
#include "cuda/engines/products/native_source.h"
#include "cuda/engines/products/print_prologue.h"
#include "plan/regions/channel_sums.h"
#include "plan/regions/groups.h"

namespace tenon::cuda {

namespace {

/// The source around the kernels' templates, and the structs of arguments behind the operands: the
/// epilogue's, and last the prologues'.
struct Parts {
  std::string code;
  EpilogueArguments epilogue;
  std::vector<ArgumentBlock> prologues;
};

Parts print_parts(const Region& region, const ContractionForm& form, std::span<const Value> values,
                  const Target& target) {
  PrintedEpilogue epilogue = print_epilogue(region, values, target);
  Parts parts{std::move(epilogue.code), std::move(epilogue.arguments), {}};
  const Contraction& c = region.contraction;
  for (const bool is_a : {true, false}) {
    const OperandForm& o = is_a ? form.a : form.b;
    if (o.prologue == nullptr) continue;
    const bool first = o.prologue == &region.prologue_a;
    PrintedPrologue printed = print_prologue(is_a ? kPrologueA : kPrologueB, o, first ? c.a : c.b,
                                             first ? c.a_shape : c.b_shape, values);
    parts.code += "\n" + printed.code;
    parts.prologues.push_back(std::move(printed.arguments));
  }
  return parts;
}

class ContractionKernel : public Kernel {
 public:
  ContractionKernel(const Region& region, const ContractionForm& form, const Parts& parts)
      : form_(form), epilogue_(parts.epilogue), prologues_(parts.prologues), title_(region.title) {
    form_.a.prologue = form_.b.prologue = nullptr;  // they belong to the region
  }

  std::string source() const override {
    return kernel_ == nullptr ? std::string() : kernel_->source().text;
  }

 protected:
  struct Arguments {
    GemmProblem problem;
    GemmOperand a, b;
    std::vector<std::vector<std::uint64_t>> parts;  // the epilogue first
  };

  Arguments bind(const Binding& binding) const {
    Arguments bound{form_.problem, form_.a.operand, form_.b.operand, {}};
    bound.a.data = address(binding, form_.a);
    bound.b.data = address(binding, form_.b);
    bound.problem.partials = reinterpret_cast<float*>(binding.workspace);
    epilogue_.fill(bound.parts.emplace_back(), binding);
    for (const ArgumentBlock& part : prologues_) part.fill(bound.parts.emplace_back(), binding);
    return bound;
  }

  /// For a copy that computes the same on other values.
  void rename(std::span<const ValueId> renamed) {
    form_.a.value = renamed[at(form_.a.value)];
    form_.b.value = renamed[at(form_.b.value)];
    epilogue_.rename(renamed);
    for (ArgumentBlock& part : prologues_) part.rename(renamed);
  }

  static constexpr std::size_t kMostParameters = 7;

  ContractionForm form_;
  EpilogueArguments epilogue_;
  std::shared_ptr<const CompiledKernel> kernel_;

 private:
  /// The address of the element with all coordinates 0, which padding may place before the
  /// operand's memory.
  const void* address(const Binding& binding, const OperandForm& o) const {
    const std::byte* base = binding.values[at(o.value)];
    if (o.vector > 1 && reinterpret_cast<std::uintptr_t>(base) % 16 != 0)
      throw InternalError(cat(title_, ": an operand's address is not a multiple of 16"));
    const auto bytes = o.offset * static_cast<std::int64_t>(item_size(o.dtype));
    return base + bytes;
  }

  std::vector<ArgumentBlock> prologues_;
  const std::string title_;
};

class TiledKernel final : public ContractionKernel {
 public:
  TiledKernel(const Region& region, const ContractionForm& form, const Parts& parts,
              const Target& target, const GemmConfig& config, std::span<const Value> values)
      : ContractionKernel(region, form, parts), config_(config) {
    GemmProblem& p = form_.problem;
    const Tile& t = config.tile;
    p.tiles_m = static_cast<int>(divide_up(p.m, t.m));
    p.tiles_n = static_cast<int>(divide_up(p.n, t.n));
    p.tiles = make_divisor(static_cast<std::int64_t>(p.tiles_m) * p.tiles_n);
    const std::int64_t blocks = static_cast<std::int64_t>(p.tiles_m) * p.tiles_n * form_.batch;
    p.k_per_split = static_cast<int>(divide_up(divide_up(p.k, config.splits), t.k) * t.k);
    p.splits = config.splits == 1
                   ? 1
                   : static_cast<int>(std::max<std::int64_t>(divide_up(p.k, p.k_per_split), 1));
    grid_ = {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(p.splits), 1};
    if (config.splits > 1) {
      take_tickets();
      if (config.serial)
        sum_in_turn(region, values);
      else
        workspace_bytes = at(blocks * p.splits * t.m * t.n) * 4;
    }
    epilogue_.reserve(blocks, workspace_bytes);
    kernel_ = compile(target, gemm_source(form, config, parts.code));
  }

  std::unique_ptr<Kernel> on_values(std::span<const ValueId> renamed) const override {
    auto other = std::make_unique<TiledKernel>(*this);
    other->rename(renamed);
    if (sums_ != kNoValue) other->sums_ = renamed[at(sums_)];
    if (config_.splits > 1) other->take_tickets();
    return other;
  }

  void run(const Binding& binding) const override {
    Arguments bound = bind(binding);
    if (sums_ != kNoValue)
      bound.problem.partials = reinterpret_cast<float*>(binding.values[at(sums_)]);
    void* params[kMostParameters] = {&bound.problem, &bound.a, &bound.b};
    std::size_t count = 3;
    for (auto& part : bound.parts) params[count++] = part.data();
    kernel_->launch(binding.stream, grid_, {static_cast<std::uint32_t>(config_.tile.threads), 1, 1},
                    static_cast<std::uint32_t>(config_.shared_bytes), params);
  }

 private:
  void take_tickets() {
    static Tickets tickets(kGemmTickets);
    form_.problem.ticket = tickets.take(grid_.x);
  }

  /// One float32 copy of the result: the result itself if it is exactly these sums.
  void sum_in_turn(const Region& region, std::span<const Value> values) {
    const Contraction& c = region.contraction;
    const Shape space = epilogue_space(c.op, c.out_shape, c.channels_last);
    form_.problem.result_rows = space[1];
    form_.problem.result_columns = space[2];
    if (!c.has_epilogue && values[at(c.out)].dtype == DType::Float32)
      sums_ = c.out;
    else
      workspace_bytes = at(space.numel()) * sizeof(float);
  }

  const GemmConfig config_;
  ValueId sums_ = kNoValue;
  Grid grid_;
};

class PlainKernel final : public ContractionKernel {
 public:
  PlainKernel(const Region& region, const ContractionForm& form, const Parts& parts,
              const Target& target)
      : ContractionKernel(region, form, parts),
        count_(static_cast<std::uint64_t>(region.contraction.out_shape.numel())),
        grid_(grid_over(region.contraction.out_shape.numel())) {
    epilogue_.reserve(grid_.x, workspace_bytes);
    kernel_ = compile(target, plain_source(region.contraction, form, parts.code));
  }

  void run(const Binding& binding) const override {
    Arguments bound = bind(binding);
    std::uint64_t count = count_;
    void* params[kMostParameters] = {&bound.problem, &bound.a, &bound.b, bound.parts[0].data(),
                                     &count};
    for (std::size_t k = 1; k < bound.parts.size(); ++k) params[4 + k] = bound.parts[k].data();
    kernel_->launch(binding.stream, grid_, {kFlatThreads, 1, 1}, 0, params);
  }

 private:
  const std::uint64_t count_;
  const Grid grid_;
};

/// A region without results.
class EmptyKernel final : public Kernel {
 public:
  void run(const Binding&) const override {}
};

const char* refusal(const Region& region, std::span<const Value> values) {
  if (region.kind != RegionKind::Contraction) return "runs matrix products and convolutions only";
  const Contraction& c = region.contraction;
  const DType a = operand_dtype(region.prologue_a, values[at(c.a.value)].dtype),
              b = operand_dtype(region.prologue_b, values[at(c.b.value)].dtype);
  if (is_bool(a) || is_bool(b) || is_bool(c.dtype)) return "does not multiply bools";
  const bool whole = !is_floating(c.dtype);
  if (whole == is_floating(a) || whole == is_floating(b))
    return "does not mix integers and floating-point numbers";
  return nullptr;
}

/// True if the plan keeps a convolution's feature maps in NHWC.
bool is_channels_last(const Contraction& c) {
  const auto inside = [](const View& view, const Shape& shape) {
    return shape.rank() == 4 && shape[1] > 1 && shape[2] * shape[3] > 1 && view.stride[1] == 1;
  };
  return c.op != Op::Matmul &&
         (c.channels_last || inside(c.a, c.a_shape) || inside(c.b, c.b_shape));
}

class ContractionEngine final : public Engine {
 public:
  explicit ContractionEngine(const Target& target) : target_(target) {}

  const char* name() const override { return "native"; }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    const char* reason = refusal(region, values);
    if (reason != nullptr && why != nullptr) *why = reason;
    return reason == nullptr;
  }

  Capabilities capabilities(const Region& region, std::span<const Value> values) const override {
    Capabilities can;
    can.no_reductions = no_channel_sums(region);
    // If the engine claims nothing, claims() reports the reason.
    const bool takes = refusal(region, values) != nullptr ||
                       region.contraction.out_shape.numel() == 0 ||
                       is_tiled(region.contraction, contraction_form(region, values));
    can.no_prologues = takes ? nullptr : "applies prologues in float32 and 16-bit types only";
    if (is_channels_last(region.contraction))
      can.no_prologues = "applies no prologue to channels-last images";
    return can;
  }

  double estimate(const Region& region, std::span<const Value> values) const override {
    if (region.contraction.out_shape.numel() == 0) return 0;
    const ContractionForm form = contraction_form(region, values);
    return is_tiled(region.contraction, form)
               ? expected_microseconds(target_.model, region.contraction, form)
               : 0;
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    return prepare_as({}, region, values, threads);
  }

  std::vector<std::string> configurations(const Region& region,
                                          std::span<const Value> values) const override {
    const Contraction& c = region.contraction;
    std::vector<std::string> names;
    if (c.out_shape.numel() == 0) return names;
    const ContractionForm form = contraction_form(region, values);
    if (!is_tiled(c, form)) return names;
    // Libraries handle NHWC feature maps; this engine reads them element by element.
    const bool last = c.channels_last && target_.cudnn;
    for (const GemmConfig& config : promising_configs(target_.model, c, form))
      if (!last || names.empty()) names.push_back(config_name(config));
    return names;
  }

  std::unique_ptr<Kernel> prepare_as(const std::string& configuration, const Region& region,
                                     std::span<const Value> values, int) const override {
    const Contraction& c = region.contraction;
    if (c.out_shape.numel() == 0) return std::make_unique<EmptyKernel>();
    const ContractionForm form = contraction_form(region, values);
    const Parts parts = print_parts(region, form, values, target_);
    if (configuration == kReferenceConfiguration || !is_tiled(c, form))
      return std::make_unique<PlainKernel>(region, form, parts, target_);
    const GemmConfig config = configuration.empty() ? choose_config(target_.model, c, form)
                                                    : config_named(c, form, configuration);
    return std::make_unique<TiledKernel>(region, form, parts, target_, config, values);
  }

 private:
  static bool is_tiled(const Contraction& c, const ContractionForm& form) {
    const auto tiled = [](DType t) {
      return t == DType::Float32 || t == DType::BFloat16 || t == DType::Float16;
    };
    return !form.plain && tiled(c.dtype) && tiled(form.a.element) && tiled(form.b.element);
  }

  const Target target_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_contraction(const Region& region, std::span<const Value> values,
                                            const Target& target, const Tile& tile, int splits,
                                            bool serial) {
  const ContractionForm form = contraction_form(region, values);
  const GemmConfig config = config_with(region.contraction, form, tile, splits, serial);
  return std::make_unique<TiledKernel>(region, form, print_parts(region, form, values, target),
                                       target, config, values);
}

const Engine& native_contraction_engine(const Target& target) {
  return per_target<ContractionEngine>(target);
}

}  // namespace tenon::cuda
