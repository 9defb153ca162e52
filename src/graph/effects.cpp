// Collects carried assignments. In the common case each variable is assigned once and the graph
// stays unchanged. Otherwise the graph is rebuilt without its carriers.
#include "graph/effects.h"

#include <unordered_map>
#include <utility>

#include "base/sort.h"
#include "graph/node.h"
#include "graph/node_index.h"
#include "graph/order.h"

namespace tenon {
namespace {

bool pending_assignment(const Node& node) { return node.op == Op::Assign && !node.realised(); }

// The same node with other inputs. It keeps the requested values that the old node represented.
Tensor rebuilt(const Node& node, std::span<const Tensor> inputs) {
  const LabelGuard label(node.label);
  Tensor out = make_node_like(node, inputs);
  out.node()->built_at = node.built_at;
  out.node()->tracked = node.tracked;
  out.node()->reads_assigned = node.reads_assigned;
  out.node()->is_constant = node.is_constant;
  return out;
}

// One carried assignment. Assignments carried by the same node take place together.
struct Update {
  Node* assignment;
  Node* variable;
  Tensor value;  // depends on no carrier
  std::uint64_t made_at;
};

// Rebuilds a graph without its carriers and lists the assignments that they carried.
class Stripping {
 public:
  explicit Stripping(std::span<const Tensor> roots) : order_(topological_order(roots)) {
    for (Node* node : order_)
      if (node->op == Op::WithUpdates && !node->realised())
        for (Node* in : node->in().subspan(1))
          if (pending_assignment(*in)) carried_.insert(in);
    for (Node* node : order_) add(*node);
    sort_stably(updates_, [](const Update& a, const Update& b) { return a.made_at < b.made_at; });
  }

  Tensor stripped(const Tensor& t) const { return done_.at(t.node()); }
  std::vector<Update>& updates() { return updates_; }

 private:
  void add(Node& node) {
    if (node.realised() || node.input_count == 0) {
      done_.emplace(&node, Tensor(&node));
      return;
    }
    if (node.op == Op::WithUpdates) {
      for (Node* in : node.in().subspan(1))
        if (carried_.erase(in) != 0)  // another carrier may carry the same assignment
          updates_.push_back({in, in->input(0), done_.at(in->input(1)), in->built_at});
      done_.emplace(&node, done_.at(node.input(0)));
      return;
    }
    if (carried_.contains(&node)) {  // an assignment's result is its value
      done_.emplace(&node, done_.at(node.input(1)));
      return;
    }
    std::vector<Tensor> inputs;
    bool changed = false;
    for (Node* in : node.in()) {
      inputs.push_back(done_.at(in));
      changed |= inputs.back().node() != in;
    }
    done_.emplace(&node, changed ? rebuilt(node, inputs) : Tensor(&node));
  }

  std::vector<Node*> order_;
  std::unordered_set<const Node*> carried_;
  std::unordered_map<const Node*, Tensor> done_;
  std::vector<Update> updates_;
};

// Replaces variables by their values after earlier updates. Only nodes that depend on such a
// variable are visited.
class UpdatedValues {
 public:
  explicit UpdatedValues(const std::vector<Update>& updates) {
    std::vector<Tensor> roots;
    std::unordered_set<const Node*> once;
    for (const Update& u : updates) {
      roots.push_back(u.value);
      if (!once.insert(u.variable).second) affected_.insert(u.variable);
    }
    for (const Node* node : topological_order(roots)) {
      if (node->realised()) continue;
      for (const Node* in : node->in())
        if (affected_.contains(in)) affected_.insert(node);
    }
  }

  /// Ends a group of updates: from now on `variable` reads as `value`.
  void set(const Node* variable, const Tensor& value) {
    latest_[variable] = value;
    done_.clear();
  }

  Tensor operator()(const Tensor& value) {
    if (!affected_.contains(value.node())) return value;
    std::vector<Node*> stack{value.node()};
    while (!stack.empty()) {
      Node* node = stack.back();
      const std::size_t before = stack.size();
      if (!known(node) && !node->realised())
        for (Node* in : node->in())
          if (affected_.contains(in) && !known(in)) stack.push_back(in);
      if (stack.size() != before) continue;
      stack.pop_back();
      if (!known(node)) done_.emplace(node, with_known_inputs(*node));
    }
    return *known(value.node());
  }

 private:
  const Tensor* known(const Node* node) const {
    const auto latest = latest_.find(node);
    if (latest != latest_.end()) return &latest->second;
    const auto done = done_.find(node);
    return done == done_.end() ? nullptr : &done->second;
  }

  Tensor with_known_inputs(Node& node) const {
    if (node.realised()) return Tensor(&node);  // a variable without updates so far
    std::vector<Tensor> inputs;
    for (Node* in : node.in()) inputs.push_back(affected_.contains(in) ? *known(in) : Tensor(in));
    return rebuilt(node, inputs);
  }

  std::unordered_set<const Node*> affected_;
  std::unordered_map<const Node*, Tensor> latest_, done_;
};

Tensor assign_to(const Update& update, const Tensor& value) {
  const Tensor inputs[2] = {Tensor(update.variable), value};
  return rebuilt(*update.assignment, inputs);
}

// One assignment for each variable, and for each update the index of the assignment that replaces
// it.
std::pair<std::vector<Tensor>, std::vector<std::size_t>> chained(
    const std::vector<Update>& updates) {
  UpdatedValues now(updates);
  std::unordered_map<const Node*, std::size_t> place;
  std::vector<Tensor> values;
  std::vector<const Update*> last;
  std::vector<std::size_t> place_of;
  for (std::size_t k = 0, end = 0; k < updates.size(); k = end) {
    for (end = k; end < updates.size() && updates[end].made_at == updates[k].made_at; ++end) {
      const Update& u = updates[end];
      const std::size_t at = place.try_emplace(u.variable, values.size()).first->second;
      if (at == values.size()) values.emplace_back(), last.push_back(nullptr);
      values[at] = now(u.value);
      last[at] = &u;
      place_of.push_back(at);
    }
    for (std::size_t e = k; e < end; ++e) now.set(updates[e].variable, values[place_of[e]]);
  }
  std::vector<Tensor> assignments;
  for (std::size_t at = 0; at < values.size(); ++at)
    assignments.push_back(assign_to(*last[at], values[at]));
  return {std::move(assignments), std::move(place_of)};
}

}  // namespace

std::span<Node* const> value_inputs(const Node& node) {
  return node.op == Op::WithUpdates && node.input_count > 0 ? node.in().first(1) : node.in();
}

std::unordered_set<const Node*> made_from(std::span<Node* const> order,
                                          std::span<const Tensor> roots) {
  std::unordered_set<const Node*> found;
  for (const Tensor& root : roots) found.insert(root.node());
  for (auto node = order.rbegin(); node != order.rend(); ++node)
    if (found.contains(*node))
      for (const Node* in : value_inputs(**node)) found.insert(in);
  return found;
}

Effects with_effects(std::vector<Tensor> wanted, std::span<Node* const> order) {
  NodeIndex roots, targets;
  for (const Tensor& root : wanted) roots.insert(root.node(), 0);
  std::vector<Tensor> found;
  bool once = true;
  for (Node* node : order) {
    if (!pending_assignment(*node)) continue;
    node->unheeded = false;
    once &= targets.insert(node->input(0), 0);
    if (!roots.contains(node)) found.emplace_back(node);
  }
  Effects out{wanted, std::move(wanted)};
  if (once) {
    out.roots.insert(out.roots.end(), found.begin(), found.end());
    out.results = out.roots;
    return out;
  }
  Stripping graph(out.results);
  for (Tensor& root : out.roots) root = graph.stripped(root);
  const auto [assignments, place_of] = chained(graph.updates());
  for (std::size_t k = 0; k < place_of.size(); ++k) {
    out.roots.push_back(assignments[place_of[k]]);
    out.results.emplace_back(graph.updates()[k].assignment);
  }
  return out;
}

Taken take_effects(std::span<const Tensor> values) {
  Stripping graph(values);
  Taken out;
  for (const Tensor& value : values) out.values.push_back(graph.stripped(value));
  out.assignments = chained(graph.updates()).first;
  return out;
}

}  // namespace tenon
