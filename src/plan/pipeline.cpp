// Runs the passes in order: the planner's table of contents. One wrapper runs every pass: it times
// the pass, can skip it, and in verified builds checks the graph or the regions afterwards.
// Verified builds are those without NDEBUG, such as CMake's Debug. PlanOptions::checks_passes asks
// for the checks in any build. passes.h names the passes; the passes themselves are in other files.
#include <algorithm>
#include <bitset>
#include <chrono>
#include <initializer_list>

#include "graph/node.h"
#include "graph/tracing/body.h"
#include "ops/table.h"
#include "plan/cleanup/graph_passes.h"
#include "plan/cleanup/simplify.h"
#include "plan/layout/layout.h"
#include "plan/merge/merge.h"
#include "plan/precision/loop_rounding.h"
#include "plan/precision/lower_activation_precision.h"
#include "plan/precision/lower_argument_precision.h"
#include "plan/precision/lower_product_precision.h"
#include "plan/precision/lower_residual_precision.h"
#include "plan/precision/rounding.h"
#include "plan/program/pass_tally.h"
#include "plan/regions/fuse.h"
#include "plan/regions/lower.h"
#include "plan/regions/map_rules.h"
#include "plan/regions/recompute.h"
#include "plan/rewrites/few_channels.h"
#include "plan/rewrites/legalize.h"
#include "plan/rewrites/loop_rules.h"
#include "plan/rewrites/pad_logit_rows.h"
#include "plan/rewrites/pool_rules.h"
#include "plan/rewrites/split_groups.h"
#include "plan/rewrites/strided.h"
#include "plan/rewrites/sum_rules.h"
#include "plan/steps/emit.h"
#include "plan/steps/schedule.h"
#include "plan/steps/verify.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

#ifdef NDEBUG
constexpr bool kVerifiedBuild = false;
#else
constexpr bool kVerifiedBuild = true;
#endif

/// When a graph pass has work: if `here` holds and the graph has one of these ops. No ops: any
/// graph.
struct Concern {
  bool here = true;
  std::initializer_list<Op> ops = {};
};

// Passes that share the walk of another pass, in pipeline order.
using PassList = std::initializer_list<PassId>;
constexpr PassList kSimplifying = {kConvolutionsToProducts, kDropNoops, kMergeViews,
                                   kMoveTransposes};
constexpr PassList kLowering = {kSumDeviations,     kPermuteFilters,     kSkipCasts,
                                kPoolingNhwc,       kMultiplyPixels,     kElementwiseNhwc,
                                kShortenIndices,    kShrinkScatterBases, kLowerFilterPrecision,
                                kRecomputeCentered, kUpdateRows};
constexpr PassList kGrouping = {kEpilogue, kColumnSums, kSink};
constexpr PassList kOrdering = {kChecksFirst, kDelayLeafSteps};

class Pipeline {
 public:
  Pipeline(const PlanOptions& options, Program& program)
      : options_(options), program_(program), verifies_(options.checks_passes || kVerifiedBuild) {}

  template <class Pass>
  Roots graph_pass(PassId id, Roots roots, Pass&& pass, const Concern& concern) {
    if (!options_.enabled(id)) return roots;
    if (nodes_ < 0) survey(roots);
    const int before = nodes_;
    if (!has_work(concern)) {
      record(id, 0, before, before, "nodes");
      return roots;
    }
    const auto start = Clock::now();
    const Roots given = roots;
    roots = pass(std::move(roots), options_);
    const bool changed = !roots.is_same(given);
    if (changed) survey(roots);
    record(id, ms_since(start), before, nodes_, "nodes");
    if (verifies_ && changed) verify_after({id}, given, roots, options_);
    return roots;
  }

  /// Runs passes that share one walk over the graph. The time of the walk itself is counted for the
  /// first pass that is switched on.
  template <class Walk>
  Roots graph_walk(const PassList& passes, Roots roots, Walk&& walk) {
    const auto first = std::find_if(passes.begin(), passes.end(),
                                    [this](PassId id) { return options_.enabled(id); });
    if (first == passes.end()) return roots;
    if (nodes_ < 0) survey(roots);
    PassTally tally;
    const auto start = Clock::now();
    const Roots given = roots;
    roots = walk(std::move(roots), options_, RuleLog{tally, verifies_});
    const bool changed = !roots.is_same(given);
    if (changed) survey(roots);
    tally.add_ms(*first, ms_since(start) - tally.ms());
    record(passes, tally);
    if (verifies_ && changed) verify_after(tally.worked(), given, roots, options_);
    return roots;
  }

  template <class F>
  void plan_pass(PassId id, const char* unit, F&& f) {
    const auto start = Clock::now();
    const auto [before, after] = f();
    record(id, ms_since(start), before, after, unit);
  }

  /// Runs a pass whose walk is shared by the passes in `others`.
  template <class F>
  void plan_walk(PassId id, const char* unit, const PassList& others, F&& f) {
    PassTally tally;
    const auto start = Clock::now();
    const auto [before, after] = f(tally);
    record(id, ms_since(start) - tally.ms(), before, after, unit);
    record(others, tally);
  }

  /// A pass over the regions of the program.
  template <class F>
  void region_pass(PassId id, const char* unit, F&& f) {
    plan_pass(id, unit, std::forward<F>(f));
    verify_regions(id);
  }
  void verify_regions(PassId id) const {
    if (verifies_) verify_after(id, program_);
  }

 private:
  bool has_work(const Concern& concern) const {
    const auto is_present = [this](Op op) { return present_[static_cast<std::size_t>(op)]; };
    return concern.here && (concern.ops.size() == 0 ||
                            std::any_of(concern.ops.begin(), concern.ops.end(), is_present));
  }
  // Counts the nodes and records which ops occur.
  void survey(const Roots& roots) {
    const std::vector<Node*>& nodes = roots.order().nodes;
    nodes_ = static_cast<int>(nodes.size());
    present_.reset();
    for (const Node* node : nodes) present_.set(static_cast<std::size_t>(node->op));
  }
  void record(PassId id, double ms, int before, int after, const char* unit) {
    program_.passes.push_back({pass_info(id).name, ms, before, after, unit});
  }
  void record(const PassList& passes, const PassTally& tally) {
    for (const PassId id : passes)
      if (options_.enabled(id)) record(id, tally.of(id).ms, 0, tally.of(id).rewrites, "rewrites");
  }
  const PlanOptions& options_;
  Program& program_;
  const bool verifies_;
  // Counted after the last graph pass.
  int nodes_ = -1;
  std::bitset<std::size_t{1} << 8 * sizeof(Op)> present_;
};

Roots run_graph_passes(Roots roots, const PlanOptions& options, Pipeline& pipeline) {
  const DeviceTraits& traits = options.traits;
  const bool rewrites_convolutions = traits.rewrites_convolutions,
             is_last = rewrites_convolutions && options.channels_last;
  const auto run = [&](PassId id, auto&& pass, const Concern& concern = {}) {
    roots = pipeline.graph_pass(id, std::move(roots), pass, concern);
  };
  run(kVerifyGraph, verify_graph);

  run(kInlineBranches, inline_branches, {!traits.host_sees_values, {Op::Cond}});
  run(kMergeLoops, merge_loops, {true, {Op::Scan, Op::Cond}});
  run(kDropLoopResults, drop_loop_results, {true, {Op::Scan, Op::Cond}});
  run(kPadLoopRows, pad_loop_rows, {traits.aligns_loop_rows, {Op::Scan}});
  run(kLegalize, legalize, {true, {Op::Result}});
  run(kFillChannels, fill_channels, {is_last, {Op::Conv2d, Op::Conv2dWeightGrad}});
  run(kRemoveStrides, remove_strides,
      {rewrites_convolutions, {Op::Conv2d, Op::Conv2dInputGrad, Op::Conv2dWeightGrad}});
  run(kSplitGroups, split_groups, {is_last, {Op::Conv2dWeightGrad}});

  run(kFoldConstants, fold_constants);
  roots = pipeline.graph_walk(kSimplifying, std::move(roots), simplify);
  run(kFactors, factors, {true, {Op::Sum}});
  run(kShare, share);
  run(kBeforePooling, before_pooling, {true, {Op::MaxPool2dGrad}});

  // Loops round their operands in the way autocast rounds the operands of their products.
  const bool rounds_loops = traits.rounds_operands && options.enabled(kAutocast);
  RoundedValues rounded;
  run(kRoundLoopOperands, round_loop_operands, {rounds_loops, {Op::Scan}});
  run(kAutocast, [&rounded](Roots given, const PlanOptions& of) {
    return autocast(std::move(given), of, rounded);
  });
  run(kSumRounded,
      [&rounded](Roots given, const PlanOptions& of) {
        return sum_rounded(std::move(given), of, rounded);
      },
      {traits.rounds_operands && !rounded.empty(), {Op::Sum}});
  run(kRoundLoopResults, round_loop_results, {rounds_loops, {Op::Scan}});

  run(kDecompose, decompose);
  run(kPadLogitRows, pad_logit_rows, {traits.stores_16_bits, {Op::Max}});
  // Recorded here, because the next passes write the 16-bit operands of products explicitly.
  const LowPrecision low = low_precision_in(roots.order().nodes);
  const bool stores = traits.stores_16_bits;
  run(kLowerArgumentPrecision, lower_argument_precision, {stores && low.any, {Op::Matmul}});
  run(kLowerProductPrecision, lower_product_precision, {stores && low.any, {Op::Matmul}});
  run(kLowerResidualPrecision, lower_residual_precision,
      {stores && low.bf16_products, {Op::Matmul}});
  run(kLowerActivationPrecision, lower_activation_precision, {low.any});

  run(kFoldConstants, fold_constants);
  roots = pipeline.graph_walk(kSimplifying, std::move(roots), simplify);
  run(kShare, share);
  if (options.enabled(kVerifyGraph)) roots = verify_graph(std::move(roots), options);
  return roots;
}

std::shared_ptr<const Program> plan_body(const Body& body, const PlanOptions& options) {
  std::vector<Node*> parameters;
  for (const Tensor& parameter : body.parameters) parameters.push_back(parameter.node());
  return plan_program(body.results, parameters, options);
}

struct MergeRule {
  PassId pass;
  void (*apply)(Merger&);
};
constexpr MergeRule kMergeRules[] = {
    {kConcats, merge_concats}, {kPrologue, merge_prologues},   {kReductions, merge_reductions},
    {kVectors, merge_vectors}, {kJoin, merge_side_by_side},    {kPhases, merge_in_a_row},
    {kChain, merge_slices},    {kOverwrites, merge_overwrites}};

void merge_neighbours(Program& program, Lists& before, const PlanOptions& options,
                      Pipeline& pipeline) {
  Merger merger(program, before, options);
  for (const MergeRule& rule : kMergeRules)
    pipeline.region_pass(rule.pass, "regions", [&] {
      const int regions = merger.size();
      rule.apply(merger);
      return std::pair(regions, merger.size());
    });
}

// Applies a rule to each region with a map. The rule returns the number of its rewrites.
template <class Rule>
void rewrite_maps(Program& program, PassId id, const PlanOptions& options, Pipeline& pipeline,
                  Rule&& rule) {
  if (!options.enabled(id)) return;
  pipeline.region_pass(id, "rewrites", [&] {
    int rewrites = 0;
    for (Step& step : program.steps)
      if (step.region.kind != RegionKind::Opaque) rewrites += rule(step.region);
    return std::pair(0, rewrites);
  });
}

// Plans the bodies of loops and branches, each once, whatever the number of iterations.
void plan_bodies(Program& program, const PlanOptions& options) {
  PlanOptions inside = options;
  inside.results_apart = true;
  inside.copies = {};
  for (Step& step : program.steps) {
    Opaque& opaque = step.region.opaque;
    if (step.region.kind != RegionKind::Opaque || kind_of(opaque.op) != OpKind::Loop) continue;
    if (const ScanAttrs* scan = opaque.attrs.get_if<ScanAttrs>()) {
      opaque.bodies = {plan_body(*scan->body, inside)};
    } else {
      const CondAttrs& cond = opaque.attrs.as<CondAttrs>();
      opaque.bodies = {plan_body(*cond.on_true, inside), plan_body(*cond.on_false, inside)};
    }
  }
}

// Nodes as items, and the groups of items that become regions.
struct Grouped {
  Lowered lowered;
  Fused fused;
};

Grouped group_items(const Roots& roots, std::span<Node* const> leaves, const PlanOptions& options,
                    Pipeline& pipeline) {
  Grouped out;
  pipeline.plan_walk(kLayout, "items", kLowering, [&](PassTally& tally) {
    out.lowered = lower(roots, roots.order(), leaves, options, tally);
    return std::pair(static_cast<int>(roots.order().nodes.size()),
                     static_cast<int>(out.lowered.items.size()));
  });
  pipeline.plan_walk(kFuse, "regions", kGrouping, [&](PassTally& tally) {
    out.fused = fuse(out.lowered, options, tally);
    int items = 0;
    for (const Group& g : out.fused.groups) items += static_cast<int>(g.items.size());
    return std::pair(items, static_cast<int>(out.fused.groups.size()));
  });
  pipeline.plan_pass(kRecompute, "values", [&] {
    if (options.enabled(kFuse) && options.enabled(kRecompute) &&
        options.traits.recompute.most_cost > 0)
      recompute_values(out.lowered, out.fused, options.traits);
    int recomputed = 0;
    for (const Group& g : out.fused.groups) recomputed += static_cast<int>(g.recomputed.size());
    return std::pair(0, recomputed);
  });
  return out;
}

// Writes the regions. Returns, for each, the regions that must run before it.
Lists write_regions(const Grouped& grouped, int slot_count, const PlanOptions& options, Program& p,
                    Pipeline& pipeline) {
  p.limits = grouped.fused.limits;
  pipeline.region_pass(kEmit, "regions", [&] {
    emit(grouped.lowered, grouped.fused, slot_count, p);
    return std::pair(static_cast<int>(grouped.fused.groups.size()),
                     static_cast<int>(p.steps.size()));
  });
  rewrite_maps(p, kMergeLoads, options, pipeline,
               [](Region& region) { return merge_loads(region.map); });
  rewrite_maps(p, kCollapseAxes, options, pipeline, [](Region& region) {
    // An epilogue runs over [batch, rows, columns].
    return region.kind == RegionKind::Map ? collapse_axes(region.map) : 0;
  });
  plan_bodies(p, options);
  return group_dependencies(grouped.lowered, grouped.fused);
}

// Engines, order and memory of the steps.
void finish_steps(Lists before, const PlanOptions& options, Program& p, Pipeline& pipeline) {
  const auto steps = [&p] {
    return std::pair(static_cast<int>(p.steps.size()), static_cast<int>(p.steps.size()));
  };
  pipeline.region_pass(kChooseEngine, "steps", [&] {
    choose_engines(p, options);
    return steps();
  });
  pipeline.plan_walk(kOrder, "steps", kOrdering, [&](PassTally& tally) {
    order_steps(p, std::move(before), options, tally);
    return steps();
  });
  pipeline.plan_pass(kPlanMemory, "KiB", [&] {
    std::int64_t apart = 0;
    for (const Value& v : p.values)
      if (v.kind == Value::Kind::Arena) apart += v.bytes;
    plan_memory(p, options);
    return std::pair(static_cast<int>(apart / 1024), static_cast<int>(p.arena_bytes / 1024));
  });
  if (!options.enabled(kVerifyProgram)) return;
  pipeline.plan_pass(kVerifyProgram, "values", [&] {
    verify_program(p);
    return std::pair(static_cast<int>(p.values.size()), static_cast<int>(p.values.size()));
  });
}

}  // namespace

std::shared_ptr<const Program> plan_program(std::span<const Tensor> wanted,
                                            std::span<Node* const> leaves,
                                            const PlanOptions& given) {
  const auto start = Clock::now();
  PlanOptions options = given;
  Roots roots(std::vector<Tensor>(wanted.begin(), wanted.end()));
  auto program = std::make_shared<Program>();
  Program& p = *program;
  p.device = options.device;
  p.devices = {options.device};
  p.traits = options.traits;
  p.threads = options.threads;
  Pipeline pipeline(options, p);
  pipeline.plan_pass(kChannelsLast, "graphs in NHWC", [&] {
    options.channels_last =
        given.traits.convolves_channels_last && keeps_channels_last(roots.order().nodes, given);
    return std::pair(0, options.channels_last ? 1 : 0);
  });
  // The library for NHWC convolutions takes a fifth of a second to load.
  if (options.channels_last)
    for (const Engine* engine : options.engines) engine->start();
  roots = run_graph_passes(std::move(roots), options, pipeline);
  p.graph = GraphRecord(roots.order());
  p.node_count = p.graph.node_count();

  const Grouped grouped = group_items(roots, leaves, options, pipeline);
  Lists before = write_regions(grouped, static_cast<int>(leaves.size()), options, p, pipeline);
  merge_neighbours(p, before, options, pipeline);
  finish_steps(std::move(before), options, p, pipeline);
  p.planning_ms = ms_since(start);
  return program;
}

}  // namespace tenon
