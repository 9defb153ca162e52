// The walk from placeholders to results, and the ops that hold graphs of their own: loops,
// branches, functions with a gradient of their own.
//
// Nodes that depend on no placeholder stay as they are. An op without a batched form becomes a scan
// over the samples.
#include "grad/batching.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <tenon/error.h>
#include <tenon/loops.h>
#include <tenon/ops.h>
#include <tenon/shapes_only.h>

#include "base/index.h"
#include "base/make_error.h"
#include "grad/batching_rules.h"
#include "graph/constants_guard.h"
#include "graph/order.h"
#include "graph/tracing/body.h"
#include "ops/attention.h"
#include "ops/function_rule.h"
#include "ops/infer.h"
#include "ops/loops.h"

namespace tenon {
namespace {

using Tensors = std::vector<Tensor>;

Tensors results_by_node(const Node& node, std::span<const Tensor> inputs) {
  const Tensor out = build_as(node.op, node.dtype, node.shape, inputs, node.attrs);
  return has_trait(node.op, kSeveralResults) ? results_of(out) : Tensors{out};
}

// The op for one sample after another.
Tensors sample_by_sample(const BatchedNode& of) {
  Tensors rows;
  for (int k = 0; k < of.node.input_count; ++k)
    if (of.is_batched(k)) rows.push_back(of.operands[at(k)]);
  const ScanStep step = [&of](const Tensors&, const Tensors& row) {
    Tensors inputs = of.operands;
    std::size_t next = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (of.batched[k] != 0) inputs[k] = row[next++];
    return ScanResult{{}, results_by_node(of.node, inputs)};
  };
  return scan(step, Tensors{}, rows, {.length = of.size}).ys;
}

// ---- Graphs inside nodes ------------------------------------------------------------------------

// A body over stacks of those parameters that are batched.
std::shared_ptr<const Body> batched_body(const Body& body, const std::vector<char>& batched,
                                         Batch batch) {
  Tensors parameters = body.parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (batched[p] == 0) continue;
    batch.samples.push_back(parameters[p]);
    parameters[p] = without_memory(stacked_shape(batch.size, parameters[p].shape()),
                                   parameters[p].dtype(), parameters[p].device());
    batch.stacks.push_back(parameters[p]);
  }
  return make_body(parameters, mapped(body.results, batch));
}

// Every carry is a stack, whatever it starts as. The rows of a scan are along the first axis, so a
// stack of rows has the batch behind it.
Tensors batched_scan(const BatchedNode& of, const Batch& batch) {
  ScanAttrs attrs = of.node.attrs.as<ScanAttrs>();
  std::vector<char> batched = of.batched;
  Tensors inputs = of.operands;
  for (std::int64_t k = 0; k < attrs.carries + attrs.rows; ++k) {
    if (k < attrs.carries)
      inputs[at(k)] = of.stack(static_cast<int>(k)), batched[at(k)] = 1;
    else if (batched[at(k)] != 0)
      inputs[at(k)] = transpose(inputs[at(k)], 0, 1);
  }
  attrs.body = batched_body(*attrs.body, batched, batch);
  ScanResult out = build_scan(inputs, std::move(attrs));
  Tensors results = std::move(out.carry);
  for (const Tensor& y : out.ys) results.push_back(transpose(y, 0, 1));
  return results;
}

// The results of one branch for all samples, computed in any case.
Tensors branch_results(const BatchedNode& of, bool branch, Batch batch) {
  const CondAttrs& attrs = of.node.attrs.as<CondAttrs>();
  const Body& body = branch ? *attrs.on_true : *attrs.on_false;
  Substitution instead;
  for (std::int64_t p = 0; p < std::ssize(body.parameters); ++p) {
    const std::size_t input = at(attrs.input_of(branch, p)) + 1;
    const Tensor& parameter = body.parameters[at(p)];
    if (of.batched[input] == 0) {
      instead.emplace(parameter.node(), of.operands[input]);
      continue;
    }
    batch.samples.push_back(parameter);
    batch.stacks.push_back(of.operands[input]);
  }
  return mapped(substitute(body.results, instead), batch);
}

// Samples that differ in the predicate need both branches.
Tensors selected(const BatchedNode& of, const Batch& batch) {
  const Tensors a = branch_results(of, true, batch), b = branch_results(of, false, batch);
  Tensors results;
  for (std::size_t k = 0; k < a.size(); ++k) {
    Ints sizes(at(a[k].rank()), 1);
    sizes[0] = of.size;
    results.push_back(where(reshape(of.operands[0], sizes), a[k], b[k]));
  }
  return results;
}

Tensors batched_cond(const BatchedNode& of, const Batch& batch) {
  if (of.is_batched(0)) return selected(of, batch);
  CondAttrs attrs = of.node.attrs.as<CondAttrs>();
  for (const bool branch : {true, false}) {
    std::shared_ptr<const Body>& body = branch ? attrs.on_true : attrs.on_false;
    std::vector<char> batched;
    for (std::int64_t p = 0; p < std::ssize(body->parameters); ++p)
      batched.push_back(of.batched[at(attrs.input_of(branch, p)) + 1]);
    body = batched_body(*body, batched, batch);
  }
  return build_cond(of.operands, std::move(attrs));
}

// A function with a gradient of its own, for all samples. Its gradient is that of one sample,
// mapped.
struct BatchedFunction {
  FunctionAttrs sample;
  std::vector<char> batched;  // by input
  Batch batch;                // without tensors

  Tensors gradients(const Tensor& out, std::span<const Tensor> cotangents) const;
};

// Placeholders for one sample of stacks; one for each stack, however often it is read.
class SampleOf {
 public:
  explicit SampleOf(const Batch& empty) : batch_(empty) {}
  Tensor operator()(const Tensor& stack) {
    const auto [known, is_new] = placeholders_.try_emplace(stack.node());
    if (!is_new) return known->second;
    const Shape& shape = stack.shape();
    known->second =
        without_memory(Shape(shape.begin() + 1, shape.rank() - 1), stack.dtype(), stack.device());
    batch_.samples.push_back(known->second);
    batch_.stacks.push_back(stack);
    return known->second;
  }
  const Batch& batch() const { return batch_; }

 private:
  Batch batch_;
  Substitution placeholders_;
};

Tensors BatchedFunction::gradients(const Tensor& out, std::span<const Tensor> cotangents) const {
  SampleOf sample_of(batch);
  Tensors inputs, seeds;
  for (int k = 0; k < out.node()->input_count; ++k) {
    const Tensor input = input_of(out, k);
    inputs.push_back(batched[at(k)] != 0 ? sample_of(input) : input);
  }
  for (const Tensor& g : cotangents) seeds.push_back(g.defined() ? sample_of(g) : g);
  Tensors all = op_info(Op::Function).vjp_results(build(Op::Function, inputs, sample), seeds), some;
  for (const Tensor& g : all)
    if (g.defined()) some.push_back(g);
  const Tensors stacks = mapped(some, sample_of.batch());
  std::size_t next = 0;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].defined()) all[k] = batched[k] != 0 ? stacks[next++] : sum(stacks[next++], {0});
  return all;
}

// The hidden inputs of the node, its values and what it has saved, become stacks over the samples.
Tensors batched_function(const BatchedNode& of, Batch batch) {
  const FunctionAttrs& sample = of.node.attrs.as<FunctionAttrs>();
  FunctionRule rule;
  rule.name = sample.rule->name;
  rule.carries_updates = sample.rule->carries_updates;
  Tensors inputs = of.operands;
  std::vector<char> batched = of.batched;
  Substitution hidden;
  for (int k = 0; k < of.node.input_count; ++k) {
    if (!is_hidden_input(of.node, k)) continue;
    inputs[at(k)] = hidden.try_emplace(of.node.input(k), of.stack(k)).first->second;
    batched[at(k)] = 1;
  }
  if (sample.rule->recomputed != nullptr) {
    const auto first = batched.begin() + sample.results;
    rule.recomputed = batched_body(*sample.rule->recomputed, {first, batched.end()}, batch);
  } else {
    batch.samples.clear(), batch.stacks.clear();
    rule.of_node = [all = BatchedFunction{sample, batched, batch}](const Tensor& out,
                                                                   std::span<const Tensor> g) {
      return all.gradients(out, g);
    };
  }
  FunctionAttrs attrs = sample;
  attrs.rule = std::make_shared<const FunctionRule>(std::move(rule));
  return results_of(build(Op::Function, inputs, Attrs(attrs)));
}

// ---- The walk -----------------------------------------------------------------------------------

class Mapping {
 public:
  explicit Mapping(const Batch& batch) : empty_{{}, {}, batch.size, batch.randomness, batch.since} {
    for (std::size_t k = 0; k < batch.samples.size(); ++k)
      stacks_.emplace(batch.samples[k].node(), batch.stacks[k]);
  }

  Tensors run(std::span<const Tensor> results) {
    for (Node* node : topological_order(results)) {
      if (stacks_.contains(node) || node->realised()) continue;
      const bool draws = draws_here(*node);
      if (draws || reads_stacks(*node)) map(*node, draws);
    }
    Tensors out;
    for (const Tensor& result : results) {
      const auto found = stacks_.find(result.node());
      out.push_back(found != stacks_.end() ? found->second
                                           : repeated_for_each(result, empty_.size));
    }
    return out;
  }

 private:
  bool reads_stacks(const Node& node) const {
    if (node.op == Op::Result) return lists_.contains(node.input(0));
    return std::any_of(node.in().begin(), node.in().end(),
                       [&](const Node* in) { return stacks_.contains(in); });
  }

  // Whether the node is a draw of the mapped function.
  bool draws_here(const Node& node) const {
    const bool draws =
        (node.op == Op::Random || drops_weights(node)) && node.built_at > empty_.since;
    if (draws && empty_.randomness == Randomness::Error)
      throw make_error<NotSupported>(
          where("vmap"),
          ": the function draws random numbers: say in the options whether the randomness is "
          "Different or the Same for the samples");
    return draws;
  }

  void map(Node& node, bool draws) {
    if (node.shape.rank() == kMaxRank)
      throw make_error<ShapeError>(where("vmap"), ": ", op_info(node.op).name, " computes ",
                                   node.shape, " for one sample; there is no room for the batch, ",
                                   "a tensor has at most ", kMaxRank, " axes");
    const LabelGuard label(node.label);
    const ConstantsGuard constants(node.is_constant || builds_constants());
    if (node.op == Op::Result) {
      stacks_.emplace(&node, lists_.at(node.input(0))[at(result_index(node))]);
      return;
    }
    BatchedNode of{node, empty_.size, {}, {}};
    for (Node* in : node.in()) {
      const auto found = stacks_.find(in);
      of.batched.push_back(found != stacks_.end() ? 1 : 0);
      of.operands.push_back(found != stacks_.end() ? found->second : Tensor(in));
    }
    Tensors results = draws && empty_.randomness == Randomness::Same ? same_draws(of) : rule(of);
    if (results.empty()) results = sample_by_sample(of);
    if (has_trait(node.op, kSeveralResults))
      lists_.emplace(&node, std::move(results));
    else
      stacks_.emplace(&node, std::move(results[0]));
  }

  // A batched attention would draw for the batch, so it is computed sample by sample.
  static Tensors same_draws(const BatchedNode& of) {
    if (of.node.op != Op::Random) return {};
    return {repeated_for_each(drawn(of, of.node.shape), of.size)};
  }

  Tensors rule(const BatchedNode& of) const {
    switch (of.node.op) {
      case Op::Random:
        return {drawn(of, stacked_shape(of.size, of.node.shape))};
      case Op::Scan:
        return batched_scan(of, empty_);
      case Op::Cond:
        return batched_cond(of, empty_);
      case Op::Function:
        return batched_function(of, empty_);
      default:
        return batched_op(of);
    }
  }

  static Tensor drawn(const BatchedNode& of, const Shape& shape) {
    return build_as(Op::Random, of.node.dtype, shape, {of.state(0)}, of.node.attrs);
  }

  const Batch empty_;
  std::unordered_map<const Node*, Tensor> stacks_;  // of one value
  std::unordered_map<const Node*, Tensors> lists_;  // of ops with several results
};

}  // namespace

Tensors mapped(std::span<const Tensor> results, const Batch& batch) {
  if (batch.size > 0) return Mapping(batch).run(results);
  Tensors none;
  for (const Tensor& result : results)
    none.push_back(zeros(stacked_shape(0, result.shape()), result.dtype()));
  return none;
}

}  // namespace tenon
