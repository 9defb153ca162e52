// Gradients through scan and cond.
//
// One backward step is the gradient of the body with respect to its carry and to the values it
// reads. Forward values that the backward step needs are stored if recomputing them is expensive
// (products, random draws, poolings), and recomputed if they follow element by element from stored
// values. So memory grows by the products' results, not by every intermediate (Griewank and
// Walther, "Algorithm 799", 2000, with the cheapest of its choices).
//
// Gradients of values that all steps share are sums over steps. If a step's contribution is itself
// a sum over a product's inner axis or a reduction's axis, the sum is deferred: operands of all
// steps are stacked, and one product sums over steps and axis at once. Otherwise a carry
// accumulates the sum from the last step to the first.
#include "grad/scan.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <tenon/error.h>
#include <tenon/loops.h>
#include <tenon/ops.h>

#include "base/index.h"
#include "base/str.h"
#include "graph/order.h"
#include "graph/tracing/body.h"
#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/table.h"

namespace tenon {
namespace {

using NodeSet = std::unordered_set<const Node*>;

// All nodes that depend on one of the seeds.
NodeSet dependent_on(std::span<const Tensor> seeds, std::span<const Tensor> roots) {
  NodeSet set;
  for (const Tensor& seed : seeds) set.insert(seed.node());
  for (Node* node : topological_order(roots)) {
    if (node->realised()) continue;
    for (const Node* in : node->in())
      if (set.contains(in)) {
        set.insert(node);
        break;
      }
  }
  return set;
}

bool is_cheap(const Node& node) {
  const OpKind kind = op_info(node.op).kind;
  return kind == OpKind::Elementwise || kind == OpKind::View || node.op == Op::Constant ||
         node.op == Op::Iota;
}

bool is_view(const Node& node) {
  return !node.realised() && (node.op == Op::Reshape || node.op == Op::Permute);
}

Tensor stacked_zeros(const Tensor& like) { return zeros(like.shape(), like.dtype()); }

class ScanGradient {
 public:
  ScanGradient(const Tensor& out, std::span<const Tensor> cotangents)
      : node_(*out.node()), attrs_(node_.attrs.as<ScanAttrs>()), body_(*attrs_.body) {
    for (int k = 0; k < node_.input_count; ++k) inputs_.emplace_back(node_.input(k));
    differentiate(cotangents);
  }

  std::vector<Tensor> run() {
    std::vector<Tensor> out(inputs_.size());
    if (wanted_.empty()) return out;
    keep_values();
    plan_sums();
    const ScanResult back = scan_back();
    collect(back, out);
    return out;
  }

 private:
  std::int64_t carries() const { return attrs_.carries; }
  bool is_carry(std::size_t p) const { return p < at(carries()); }
  bool is_row(std::size_t p) const { return !is_carry(p) && p < at(carries() + attrs_.rows); }
  const Tensor& parameter(std::size_t p) const { return body_.parameters[p]; }

  // The body's gradient, with placeholders for the gradients from the following step.
  void differentiate(std::span<const Tensor> cotangents) {
    std::vector<Tensor> outputs;
    for (std::size_t k = 0; k < body_.results.size(); ++k) {
      const Tensor& result = body_.results[k];
      if (!is_floating(result.dtype())) continue;
      const bool carry = k < at(carries());
      if (!carry && !cotangents[k].defined()) continue;
      outputs.push_back(result);
      seeds_.push_back(placeholder_for(result, device_of_body({&result, 1})));
      if (carry) {
        seeded_carries_.push_back(k);
        carry_seeds_.push_back(cotangents[k].defined() ? cotangents[k] : stacked_zeros(result));
      } else {
        y_seeds_.push_back(cotangents[k]);
      }
    }
    for (std::size_t p = 0; p < body_.parameters.size(); ++p)
      if (is_floating(parameter(p).dtype())) wanted_.push_back(p);
    std::vector<Tensor> with_regard_to;
    for (std::size_t p : wanted_) with_regard_to.push_back(parameter(p));
    gradients_ = grad_of_several(outputs, with_regard_to, seeds_);
    const std::vector<Tensor> defined = gradients_defined();
    behind_ = dependent_on(seeds_, defined);
    forward_ = dependent_on(body_.parameters, defined);
    std::vector<Tensor> outside;
    for (Node* node : topological_order(defined))
      if (node->realised() && !is_parameter(*node)) outside.emplace_back(node);
    outside_ = dependent_on(outside, defined);
  }

  bool is_parameter(const Node& node) const {
    return std::any_of(body_.parameters.begin(), body_.parameters.end(),
                       [&node](const Tensor& p) { return p.node() == &node; });
  }

  // Selects the forward values that the backward step reads: rows of xs and carries are available;
  // expensive values, or values computed from them, become additional ys of the forward scan.
  void keep_values() {
    std::unordered_map<const Node*, NodeSet> readers;
    NodeSet stops;
    for (const Node* node : read_behind({}, &readers))
      if (is_dear(*node)) stops.insert(made_of(node, readers));
    const NodeSet seen = read_behind(stops, nullptr);
    for (const Node* node : topological_order(gradients_defined()))
      if (stops.contains(node) && seen.contains(node)) kept_.emplace_back(const_cast<Node*>(node));
    for (std::size_t p = 0; p < at(carries()); ++p)
      if (seen.contains(parameter(p).node())) read_carries_.push_back(p);
    for (std::size_t p = at(carries()); p < at(carries() + attrs_.rows); ++p)
      if (seen.contains(parameter(p).node())) read_rows_.push_back(p);
  }

  bool is_dear(const Node& node) const {
    return !node.realised() && is_forward(node) && !is_cheap(node);
  }

  // Whether the forward scan can compute the node: from the body's parameters alone.
  bool is_forward(const Node& node) const {
    return forward_.contains(&node) && !behind_.contains(&node) && !outside_.contains(&node);
  }

  // The nodes that gradients depend on, down to expensive nodes or `stops`, and the readers of
  // each.
  NodeSet read_behind(const NodeSet& stops,
                      std::unordered_map<const Node*, NodeSet>* readers) const {
    NodeSet seen;
    std::vector<const Node*> stack;
    for (const Tensor& g : gradients_defined()) stack.push_back(g.node());
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      if (!seen.insert(node).second || node->realised()) continue;
      if (is_dear(*node) || stops.contains(node)) continue;
      for (const Node* in : node->in()) {
        if (readers != nullptr) (*readers)[in].insert(node);
        stack.push_back(in);
      }
    }
    return seen;
  }

  // If one element-wise op is the only reader of an expensive value, its result is stored instead:
  // it takes the same memory and need not be recomputed (the sum of both products of a recurrent
  // step).
  const Node* made_of(const Node* node,
                      const std::unordered_map<const Node*, NodeSet>& readers) const {
    for (;;) {
      const auto found = readers.find(node);
      if (found == readers.end() || found->second.size() != 1) return node;
      const Node* reader = *found->second.begin();
      const bool replaces = is_forward(*reader) &&
                            op_info(reader->op).kind == OpKind::Elementwise &&
                            reader->shape == node->shape && reader->dtype == node->dtype;
      if (!replaces) return node;
      node = reader;
    }
  }

  std::vector<Tensor> gradients_defined() const {
    std::vector<Tensor> defined;
    for (const Tensor& g : gradients_)
      if (g.defined()) defined.push_back(g);
    return defined;
  }

  // ---- sums over steps ----------------------------------------------------------------------

  // Whether the sum of `g` over all steps can be written as sums over stacked operands.
  bool can_delay(const Tensor& g) const {
    const Node& node = *g.node();
    if (node.realised()) return false;
    if (is_view(node)) return can_delay(Tensor(node.input(0)));
    if (node.op == Op::Add)
      return can_delay(Tensor(node.input(0))) && can_delay(Tensor(node.input(1)));
    if (node.op == Op::Matmul) return node.shape.rank() == 2;
    return node.op == Op::Sum;
  }

  void delay(const Tensor& g) {
    const Node& node = *g.node();
    if (is_view(node)) return delay(Tensor(node.input(0)));
    if (node.op == Op::Add) {
      delay(Tensor(node.input(0)));
      return delay(Tensor(node.input(1)));
    }
    for (Node* in : node.in()) stack_operand(base_of(in));
  }

  // A transposed operand is stacked untransposed.
  static const Node* base_of(const Node* node) {
    return !node->realised() && node->op == Op::Permute && node->shape.rank() == 2 ? node->input(0)
                                                                                   : node;
  }

  void stack_operand(const Node* operand) {
    if (stacks_.contains(operand)) return;
    stacks_.emplace(operand, Tensor());
    if (!forward_.contains(operand) || behind_.contains(operand) || !is_at_hand(operand))
      stacked_.push_back(Tensor(const_cast<Node*>(operand)));
  }

  // Rows, carries and stored values are already stacked.
  bool is_at_hand(const Node* operand) const {
    for (std::size_t p : read_carries_)
      if (parameter(p).node() == operand) return true;
    for (std::size_t p = at(carries()); p < at(carries() + attrs_.rows); ++p)
      if (parameter(p).node() == operand) return true;
    for (const Tensor& kept : kept_)
      if (kept.node() == operand) return true;
    return false;
  }

  void plan_sums() {
    for (std::size_t w = 0; w < wanted_.size(); ++w) {
      const std::size_t p = wanted_[w];
      if (is_carry(p) || is_row(p) || !gradients_[w].defined()) continue;
      if (can_delay(gradients_[w])) {
        delay(gradients_[w]);
      } else {
        added_.push_back(w);
      }
    }
  }

  // The sum over all steps.
  Tensor summed(const Tensor& g) const {
    const Node& node = *g.node();
    if (is_view(node)) {
      const Substitution instead{{node.input(0), summed(Tensor(node.input(0)))}};
      return substitute({&g, 1}, instead)[0];
    }
    if (node.op == Op::Add)
      return add(summed(Tensor(node.input(0))), summed(Tensor(node.input(1))));
    if (node.op == Op::Sum) {
      Ints axes{0};
      const std::int64_t mask = node.attrs.as<ReduceAttrs>().axes;
      for (int d = 0; d < node.input(0)->shape.rank(); ++d)
        if (mask >> d & 1) axes.push_back(d + 1);
      return reshape(sum(stacks_.at(node.input(0)), axes, true), to_ints(node.shape));
    }
    const Tensor operands[2] = {side_by_side(node.input(0), 1), side_by_side(node.input(1), 0)};
    return build(Op::Matmul, operands, node.attrs);
  }

  // The matrices of all steps, concatenated along an axis.
  Tensor side_by_side(const Node* operand, int axis) const {
    const Node* base = base_of(operand);
    const bool flipped = base != operand;
    const Tensor& stack = stacks_.at(base);
    const int along = flipped ? 1 - axis : axis;
    const std::int64_t rows = base->shape[0], columns = base->shape[1], steps = attrs_.length;
    const Tensor flat = along == 0 ? reshape(stack, {steps * rows, columns})
                                   : reshape(permute(stack, {1, 0, 2}), {rows, steps * columns});
    return flipped ? transpose(flat) : flat;
  }

  // ---- The backward scan ---------------------------------------------------------------------

  // Stored forward values: additional ys of the same scan, which the planner merges with the
  // original.
  void stack_forward() {
    std::vector<Tensor> results = body_.results;
    std::vector<Tensor> next;  // carries at the end of a step
    for (std::size_t p : read_carries_) results.push_back(body_.results[p]);
    results.insert(results.end(), kept_.begin(), kept_.end());
    ScanAttrs attrs = attrs_;
    attrs.body = with_results(body_, results);
    const ScanResult all = build_scan(inputs_, std::move(attrs));
    std::size_t y = body_.results.size() - at(carries());
    for (std::size_t p : read_carries_) forward_stacks_.push_back(before_each(p, all.ys[y++]));
    for (std::size_t k = 0; k < kept_.size(); ++k) kept_stacks_.push_back(all.ys[y++]);
  }

  // A carry at the start of each step, given the carry at the end of each step.
  Tensor before_each(std::size_t p, const Tensor& after) const {
    const Tensor first = unsqueeze(inputs_[p], 0);
    const std::int64_t steps = attrs_.length;
    if (attrs_.reverse != 0) return concat({slice(after, 0, 1, steps), first}, 0);
    return concat({first, slice(after, 0, 0, steps - 1)}, 0);
  }

  ScanResult scan_back() {
    if (!read_carries_.empty() || !kept_.empty()) stack_forward();
    std::vector<Tensor> carry = carry_seeds_, xs = y_seeds_;
    for (std::size_t w : added_) carry.push_back(stacked_zeros(parameter(wanted_[w])));
    xs.insert(xs.end(), forward_stacks_.begin(), forward_stacks_.end());
    xs.insert(xs.end(), kept_stacks_.begin(), kept_stacks_.end());
    for (std::size_t p : read_rows_) xs.push_back(inputs_[p]);
    const ScanStep step = [this](const std::vector<Tensor>& c, const std::vector<Tensor>& x) {
      return step_back(c, x);
    };
    const LabelGuard label(node_.label);
    return scan(step, carry, xs, {.length = attrs_.length, .reverse = attrs_.reverse == 0});
  }

  ScanResult step_back(const std::vector<Tensor>& c, const std::vector<Tensor>& x) const {
    Substitution instead;
    for (std::size_t k = 0; k < carry_seeds_.size(); ++k) instead.emplace(seeds_[k].node(), c[k]);
    std::size_t row = 0;
    for (std::size_t k = carry_seeds_.size(); k < seeds_.size(); ++k)
      instead.emplace(seeds_[k].node(), x[row++]);
    for (std::size_t p : read_carries_) instead.emplace(parameter(p).node(), x[row++]);
    for (const Tensor& kept : kept_) instead.emplace(kept.node(), x[row++]);
    for (std::size_t p : read_rows_) instead.emplace(parameter(p).node(), x[row++]);
    for (std::size_t p = at(carries() + attrs_.rows); p < inputs_.size(); ++p)
      instead.emplace(parameter(p).node(), inputs_[p]);
    std::vector<Tensor> roots = gradients_defined();
    roots.insert(roots.end(), stacked_.begin(), stacked_.end());
    const std::vector<Tensor> here = substitute(roots, instead);
    return results_of(here, c);
  }

  // The next carry: gradients of carries, then sums. The ys: gradients of rows, then operands of
  // deferred sums.
  ScanResult results_of(const std::vector<Tensor>& here, const std::vector<Tensor>& c) const {
    std::vector<Tensor> of_wanted(wanted_.size());
    std::size_t next = 0;
    for (std::size_t w = 0; w < wanted_.size(); ++w)
      if (gradients_[w].defined()) of_wanted[w] = here[next++];
    ScanResult out;
    for (std::size_t k = 0; k < seeded_carries_.size(); ++k) {
      const Tensor& g = of_wanted[place_of(seeded_carries_[k])];
      out.carry.push_back(g.defined() ? g : zeros(c[k].shape(), c[k].dtype()));
    }
    for (std::size_t k = 0; k < added_.size(); ++k)
      out.carry.push_back(add(c[seeded_carries_.size() + k], of_wanted[added_[k]]));
    for (std::size_t w = 0; w < wanted_.size(); ++w)
      if (is_row(wanted_[w]) && of_wanted[w].defined()) out.ys.push_back(of_wanted[w]);
    out.ys.insert(out.ys.end(), here.begin() + static_cast<std::ptrdiff_t>(next), here.end());
    return out;
  }

  std::size_t place_of(std::size_t p) const {
    for (std::size_t w = 0; w < wanted_.size(); ++w)
      if (wanted_[w] == p) return w;
    throw InternalError("scan: a carry with a gradient is not among what has gradients");
  }

  void collect(const ScanResult& back, std::vector<Tensor>& out) {
    for (std::size_t k = 0; k < seeded_carries_.size(); ++k)
      out[seeded_carries_[k]] = back.carry[k];
    for (std::size_t k = 0; k < added_.size(); ++k)
      out[wanted_[added_[k]]] = back.carry[seeded_carries_.size() + k];
    std::size_t y = 0;
    for (std::size_t w = 0; w < wanted_.size(); ++w)
      if (is_row(wanted_[w]) && gradients_[w].defined()) out[wanted_[w]] = back.ys[y++];
    find_stacks(back, y);
    for (std::size_t w = 0; w < wanted_.size(); ++w) {
      const std::size_t p = wanted_[w];
      if (!is_carry(p) && !is_row(p) && gradients_[w].defined() && !out[p].defined())
        out[p] = summed(gradients_[w]);
    }
  }

  void find_stacks(const ScanResult& back, std::size_t y) {
    for (const Tensor& operand : stacked_) stacks_[operand.node()] = back.ys[y++];
    for (auto& [operand, stack] : stacks_) {
      if (stack.defined()) continue;
      for (std::size_t k = 0; k < read_carries_.size(); ++k)
        if (parameter(read_carries_[k]).node() == operand) stack = forward_stacks_[k];
      for (std::size_t p = at(carries()); p < at(carries() + attrs_.rows); ++p)
        if (parameter(p).node() == operand) stack = inputs_[p];
      for (std::size_t k = 0; k < kept_.size(); ++k)
        if (kept_[k].node() == operand) stack = kept_stacks_[k];
    }
  }

  const Node& node_;
  const ScanAttrs& attrs_;
  const Body& body_;
  std::vector<Tensor> inputs_;
  // Of the body's gradient: placeholders for the gradients of results (carries first); their values
  // in the last step (carries) or in each step (ys); floating-point parameters and their gradients.
  std::vector<Tensor> seeds_, carry_seeds_, y_seeds_;
  std::vector<std::size_t> seeded_carries_, wanted_;
  std::vector<Tensor> gradients_;
  // Nodes of the gradient that depend on its seeds, on the body's parameters, and on values that
  // the rules of the gradient have created, such as host code.
  NodeSet behind_, forward_, outside_;
  // Forward values that the backward scan reads.
  std::vector<Tensor> kept_, forward_stacks_, kept_stacks_;
  std::vector<std::size_t> read_carries_, read_rows_;
  // Gradients of values that all steps share: accumulated by a carry (indices into wanted_), or
  // deferred.
  std::vector<std::size_t> added_;
  std::unordered_map<const Node*, Tensor> stacks_;
  std::vector<Tensor> stacked_;
};

}  // namespace

std::vector<Tensor> vjp_scan(const Tensor& out, std::span<const Tensor> cotangents) {
  return ScanGradient(out, cotangents).run();
}

namespace {

// One branch of the gradient: from the operands of both branches and the gradients of the results
// to the gradients of the operands.
Branch branch_back(const CondAttrs& attrs, bool branch, const std::vector<std::size_t>& results,
                   const std::vector<std::size_t>& wanted) {
  return [&attrs, branch, &results, &wanted](const std::vector<Tensor>& operands) {
    const Body& body = branch ? *attrs.on_true : *attrs.on_false;
    Substitution instead;
    for (std::size_t p = 0; p < body.parameters.size(); ++p)
      instead.emplace(body.parameters[p].node(),
                      operands[at(attrs.input_of(branch, static_cast<std::int64_t>(p)))]);
    std::vector<Tensor> outputs, with_regard_to;
    for (std::size_t k : results) outputs.push_back(body.results[k]);
    outputs = substitute(outputs, instead);
    for (std::size_t k : wanted) with_regard_to.push_back(operands[k]);
    const std::span<const Tensor> seeds(
        operands.end() - static_cast<std::ptrdiff_t>(results.size()), operands.end());
    std::vector<Tensor> gradients = grad_of_several(outputs, with_regard_to, seeds);
    for (std::size_t k = 0; k < wanted.size(); ++k)
      if (!gradients[k].defined()) gradients[k] = zeros_like(with_regard_to[k]);
    return gradients;
  };
}

}  // namespace

std::vector<Tensor> vjp_cond(const Tensor& out, std::span<const Tensor> cotangents) {
  const Node& node = *out.node();
  const CondAttrs& attrs = node.attrs.as<CondAttrs>();
  std::vector<Tensor> operands;
  for (int k = 1; k < node.input_count; ++k) operands.emplace_back(node.input(k));
  std::vector<std::size_t> results, wanted;
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (is_floating(operands[k].dtype())) wanted.push_back(k);
  for (std::size_t k = 0; k < cotangents.size(); ++k) {
    if (!cotangents[k].defined()) continue;
    results.push_back(k);
    operands.push_back(cotangents[k]);
  }
  std::vector<Tensor> gradients(at(node.input_count));
  if (results.empty() || wanted.empty()) return gradients;
  const LabelGuard label(node.label);
  const std::vector<Tensor> found =
      cond(Tensor(node.input(0)), branch_back(attrs, true, results, wanted),
           branch_back(attrs, false, results, wanted), operands);
  for (std::size_t k = 0; k < wanted.size(); ++k) gradients[wanted[k] + 1] = found[k];
  return gradients;
}

}  // namespace tenon
