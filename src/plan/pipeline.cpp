// The list of passes, in order: the planner's table of contents. One wrapper runs every pass: it
// times the pass, can skip it, and checks the graph afterwards in verified builds. The passes
// themselves are in other files.
#include <algorithm>
#include <bitset>
#include <chrono>
#include <initializer_list>

#include <tenon/error.h>

#include "base/str.h"
#include "graph/body.h"
#include "graph/node.h"
#include "ops/table.h"
#include "plan/emit.h"
#include "plan/graph_passes.h"
#include "plan/layout.h"
#include "plan/loop_rules.h"
#include "plan/merge/merge.h"
#include "plan/schedule.h"
#include "plan/verify.h"

namespace tenon {
namespace {

constexpr PassInfo kPasses[kPassCount] = {
    {"verify_graph", true, "first: an invalid node is reported before passes rewrite it"},
    {"loops", false,
     "before all rewrites: the requested results of a loop decide what its body is; on a GPU, "
     "branches become selections"},
    {"legalize", false,
     "before the clean-up: ops that no engine of the device supports are written in other ops, "
     "which are then cleaned and shared like the rest"},
    {"fold_constants", true, "before share: folded numbers become equal nodes"},
    {"drop_noops", true,
     "before share, and again after decompose: views of views hide equal nodes"},
    {"factors", true,
     "before share: sums that differ only in constant factors become equal nodes; after "
     "drop_noops, which merges views of the factors"},
    {"share", true, "after the clean-up, so that equal nodes look equal; again after decompose"},
    {"before_pooling", true,
     "after share, so that a mask and the pooling's gradient read one node; the pooling that it "
     "adds is shared with the forward pass later"},
    {"autocast", true,
     "on contractions as the user wrote them; their operands are rounded where they are packed"},
    {"decompose", false, "after engines could claim whole composites, before fusion"},
    {"layout", true, "folds views into strides, so that fusion sees how values are really read"},
    {"fuse", true,
     "before engines are chosen: they claim regions, not ops; before memory: fused values need "
     "none"},
    {"prologue", true,
     "on regions, because engines say which prologues they support; before join, which would put "
     "the same maps into shared launches"},
    {"reductions", true,
     "on regions, because engines say which reductions they support; before join, which would put "
     "the same maps into shared launches"},
    {"join", true,
     "on regions, before kernels are compiled: a region in a shared launch has no kernel of its "
     "own"},
    {"phases", true,
     "after join, which puts independent regions side by side; before kernels are compiled"},
    {"chain", true,
     "on regions, because engines say which slices they support; before memory: values that stay "
     "in cache need none"},
    {"choose_engine", false,
     "after fusion; prepares each step's kernel, which determines its workspace"},
    {"order", true, "after fusion, because it orders steps; least live memory first"},
    {"plan_memory", true,
     "after the order gives lifetimes; the arena's size is the peak, known before anything runs"},
    {"verify_program", true,
     "last: regions are complete, every value is written before it is read and has a reader, live "
     "values do not overlap"},
};

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class Pipeline {
 public:
  Pipeline(const PlanOptions& options, Program& program) : options_(options), program_(program) {}

  /// `about`: the pass changes nothing unless the graph has one of these ops; empty: the pass
  /// always runs.
  Roots graph_pass(PassId id, Roots roots, Roots (*pass)(Roots, const PlanOptions&),
                   std::initializer_list<Op> about = {}) {
    if (!options_.enabled(id)) return roots;
    if (nodes_ < 0) survey(roots);
    const int before = nodes_;
    const auto is_present = [this](Op op) { return present_[static_cast<std::size_t>(op)]; };
    if (about.size() > 0 && std::none_of(about.begin(), about.end(), is_present)) {
      record(id, 0, before, before, "nodes");
      return roots;
    }
    const auto start = Clock::now();
    const Roots given = roots;
    roots = pass(std::move(roots), options_);
    if (!roots.is_same(given)) survey(roots);
    record(id, ms_since(start), before, nodes_, "nodes");
    return roots;
  }

  template <class F>
  void plan_pass(PassId id, const char* unit, F&& f) {
    const auto start = Clock::now();
    const auto [before, after] = f();
    record(id, ms_since(start), before, after, unit);
  }

 private:
  // Counts the nodes and records which ops occur.
  void survey(const Roots& roots) {
    const std::vector<Node*>& nodes = roots.order().nodes;
    nodes_ = static_cast<int>(nodes.size());
    present_.reset();
    for (const Node* node : nodes) present_.set(static_cast<std::size_t>(node->op));
  }
  void record(PassId id, double ms, int before, int after, const char* unit) {
    program_.passes.push_back({kPasses[id].name, ms, before, after, unit});
  }
  const PlanOptions& options_;
  Program& program_;
  // Counted after the last graph pass.
  int nodes_ = -1;
  std::bitset<std::size_t{1} << 8 * sizeof(Op)> present_;
};

Roots run_graph_passes(Roots roots, const PlanOptions& options, Pipeline& pipeline) {
  roots = pipeline.graph_pass(kVerifyGraph, std::move(roots), verify_graph);
  roots = pipeline.graph_pass(kLoops, std::move(roots), simplify_loops, {Op::Scan, Op::Cond});
  roots = pipeline.graph_pass(kLegalize, std::move(roots), legalize,
                              {Op::Result, Op::Conv2d, Op::Conv2dInputGrad, Op::Conv2dWeightGrad});
  roots = pipeline.graph_pass(kFoldConstants, std::move(roots), fold_constants);
  roots = pipeline.graph_pass(kDropNoops, std::move(roots), drop_noops);
  roots = pipeline.graph_pass(kFactors, std::move(roots), factors, {Op::Sum});
  roots = pipeline.graph_pass(kShare, std::move(roots), share);
  roots =
      pipeline.graph_pass(kBeforePooling, std::move(roots), before_pooling, {Op::MaxPool2dGrad});
  roots = pipeline.graph_pass(kAutocast, std::move(roots), autocast);
  roots = pipeline.graph_pass(kDecompose, std::move(roots), decompose);
  roots = pipeline.graph_pass(kFoldConstants, std::move(roots), fold_constants);
  roots = pipeline.graph_pass(kDropNoops, std::move(roots), drop_noops);
  roots = pipeline.graph_pass(kShare, std::move(roots), share);
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
    {kFuse, merge_concats},       {kPrologue, merge_prologues},   {kReductions, merge_reductions},
    {kReductions, merge_vectors}, {kJoin, merge_side_by_side},    {kPhases, merge_in_a_row},
    {kChain, merge_slices},       {kPlanMemory, merge_overwrites}};

void merge_neighbours(Program& program, Lists& before, const PlanOptions& options,
                      Pipeline& pipeline) {
  Merger merger(program, before, options);
  for (const MergeRule& rule : kMergeRules)
    pipeline.plan_pass(rule.pass, "regions", [&] {
      const int regions = merger.size();
      rule.apply(merger);
      return std::pair(regions, merger.size());
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

}  // namespace

const PassInfo& pass_info(int pass) { return kPasses[pass]; }

std::shared_ptr<const Program> plan_program(std::span<const Tensor> wanted,
                                            std::span<Node* const> leaves,
                                            const PlanOptions& given) {
  const auto start = Clock::now();
  PlanOptions options = given;
  Roots roots(std::vector<Tensor>(wanted.begin(), wanted.end()));
  options.channels_last =
      given.traits.convolves_channels_last && keeps_channels_last(roots.order().nodes, given);
  auto program = std::make_shared<Program>();
  Program& p = *program;
  p.device = options.device;
  p.devices = {options.device};
  p.traits = options.traits;
  p.threads = options.threads;
  // The library for NHWC convolutions takes a fifth of a second to load.
  if (options.channels_last)
    for (const Engine* engine : options.engines) engine->start();
  Pipeline pipeline(options, p);
  roots = run_graph_passes(std::move(roots), options, pipeline);
  p.graph = GraphRecord(roots.order());
  p.node_count = p.graph.node_count();

  Lowered lowered;
  pipeline.plan_pass(kLayout, "items", [&] {
    lowered = lower(roots, roots.order(), leaves, options);
    return std::pair(p.node_count, static_cast<int>(lowered.items.size()));
  });
  Fused fused;
  pipeline.plan_pass(kFuse, "regions", [&] {
    fused = fuse(lowered, options);
    int items = 0;
    for (const Group& g : fused.groups) items += static_cast<int>(g.items.size());
    return std::pair(items, static_cast<int>(fused.groups.size()));
  });
  p.limits = fused.limits;
  emit(lowered, fused, static_cast<int>(leaves.size()), p);
  plan_bodies(p, options);
  std::vector<std::vector<int>> before = group_dependencies(lowered, fused);
  merge_neighbours(p, before, options, pipeline);
  pipeline.plan_pass(kChooseEngine, "steps", [&] {
    choose_engines(p, options);
    return std::pair(static_cast<int>(p.steps.size()), static_cast<int>(p.steps.size()));
  });
  pipeline.plan_pass(kOrder, "steps", [&] {
    order_steps(p, std::move(before), options.enabled(kOrder));
    return std::pair(static_cast<int>(p.steps.size()), static_cast<int>(p.steps.size()));
  });
  pipeline.plan_pass(kPlanMemory, "KiB", [&] {
    std::int64_t apart = 0;
    for (const Value& v : p.values)
      if (v.kind == Value::Kind::Arena) apart += v.bytes;
    plan_memory(p, options);
    return std::pair(static_cast<int>(apart / 1024), static_cast<int>(p.arena_bytes / 1024));
  });
  if (options.enabled(kVerifyProgram))
    pipeline.plan_pass(kVerifyProgram, "values", [&] {
      verify_program(p);
      return std::pair(static_cast<int>(p.values.size()), static_cast<int>(p.values.size()));
    });
  p.planning_ms = ms_since(start);
  return program;
}

}  // namespace tenon
