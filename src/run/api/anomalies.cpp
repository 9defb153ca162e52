// Computes the results once without effects. If one of them is not finite, computes for every value
// that it depends on whether the value contains a NaN or an infinity.
#include "run/api/anomalies.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tenon/compute.h>
#include <tenon/error.h>

#include "base/index.h"
#include "base/make_error.h"
#include "graph/gradient_label.h"
#include "graph/host_code.h"
#include "graph/node.h"
#include "graph/order.h"
#include "graph/tracing/body.h"

namespace tenon {
namespace {

bool has_elements(const Node& node) {
  return is_floating(node.dtype) && node.shape.numel() > 0 && !has_trait(node.op, kSeveralResults);
}
// Whether the node can be the first whose value is not finite.
bool is_suspect(const Node& node) {
  return has_elements(node) && kind_of(node.op) != OpKind::View && node.op != Op::Constant;
}

Tensor unary(Op op, DType dtype, const Tensor& x) {
  return make_node(op, dtype, x.shape(), {}, {&x, 1});
}

// Whether the test holds for any element: a uint8 tensor of one element, not 0 if it does.
Tensor any_of(Op test, const Tensor& x) {
  Tensor held = unary(Op::Cast, DType::UInt8, unary(test, DType::Bool, x));
  if (held.rank() == 0) return held;
  Shape one = held.shape();
  for (int d = 0; d < one.rank(); ++d) one[d] = 1;
  const ReduceAttrs all{(std::int64_t{1} << held.rank()) - 1};
  return make_node(Op::Max, DType::UInt8, one, all, {&held, 1});
}

struct Flags {
  bool nan = false, infinite = false;
  bool any() const { return nan || infinite; }
};

std::vector<Flags> flags_of(const std::vector<Tensor>& values) {
  std::vector<Tensor> tests;
  for (const Tensor& value : values)
    for (const Op test : {Op::IsNan, Op::IsInf}) tests.push_back(any_of(test, value));
  compute(tests);
  std::vector<Flags> flags;
  const auto holds = [&tests](std::size_t k) {
    return *static_cast<const std::uint8_t*>(tests[k].data()) != 0;
  };
  for (std::size_t k = 0; k < values.size(); ++k) flags.push_back({holds(2 * k), holds(2 * k + 1)});
  return flags;
}

// The same values, computed without side effects: an assignment is replaced by the assigned value.
std::vector<Tensor> without_assignments(const std::vector<Tensor>& values) {
  return substitute(values, {}, [](const Node& node, const std::vector<Tensor>& inputs) -> Tensor {
    if (node.realised()) return {};
    if (node.op == Op::Assign) return inputs[1];
    return node.op == Op::WithUpdates ? inputs[0] : Tensor();
  });
}

OpPlace place_of(const Node& node) {
  const Node& op = node.op == Op::Result && node.input_count > 0 ? *node.input(0) : node;
  return {shown_name(op.op, op.attrs), label_text(node.label), {node.shape}};
}

std::string described(const Node& node) {
  const OpPlace place = place_of(node);
  if (!node.realised() && kind_of(node.op) != OpKind::Leaf)
    return cat("the result of ", place.operation, " ", node.shape,
               place.layer.empty() ? "" : cat(" (", place.layer, ")"));
  return cat(node.op == Op::Variable ? "the variable " : "an input ", place.layer,
             place.layer.empty() ? "" : " ", node.shape);
}

// The inputs that decide the value of the node.
std::span<Node* const> inputs_behind(const Node& node) {
  if (node.op != Op::Function) return node.in();
  return node.in().first(at(node.attrs.as<FunctionAttrs>().results));
}

class Search {
 public:
  explicit Search(std::vector<Node*> order) : order_(std::move(order)) {
    std::vector<Tensor> values;
    for (Node* node : order_)
      if (is_suspect(*node)) values.emplace_back(node);
    const std::vector<Flags> flags = flags_of(without_assignments(values));
    for (std::size_t k = 0; k < values.size(); ++k) flags_.emplace(values[k].node(), flags[k]);
  }

  [[noreturn]] void refuse(const std::vector<Tensor>& bad) const {
    std::vector<const Node*> roots;
    roots.reserve(bad.size());
    for (const Tensor& root : bad) roots.push_back(root.node());
    const std::unordered_set<const Node*> behind = spoiled(roots);
    const Node* first = first_of(behind, &Flags::nan);
    if (first == nullptr) {
      first = first_of(behind, &Flags::infinite);
      refuse("infinity", *first, "");
    }
    std::unordered_set<const Node*> before = spoiled({first});
    before.erase(first);
    const Node* cause = first_of(before, &Flags::infinite);
    refuse("NaN", *first,
           cause == nullptr ? "" : cat("; it follows from an infinity in ", described(*cause)));
  }

 private:
  [[noreturn]] static void refuse(const char* what, const Node& node, const std::string& more) {
    const OpPlace place = place_of(node);
    ErrorFields fields;
    fields.operation = place.operation;
    fields.layer = place.layer;
    fields.shapes = place.operands;
    throw NumericError(cat("the first ", what, " is in ", described(node), more),
                       std::move(fields));
  }

  // The given nodes, and all nodes through which a value that is not finite reaches them.
  std::unordered_set<const Node*> spoiled(std::vector<const Node*> open) const {
    std::unordered_set<const Node*> seen(open.begin(), open.end());
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      if (node->realised()) continue;
      for (const Node* in : inputs_behind(*node)) {
        const auto found = flags_.find(in);
        if ((found == flags_.end() || found->second.any()) && seen.insert(in).second)
          open.push_back(in);
      }
    }
    return seen;
  }

  const Node* first_of(const std::unordered_set<const Node*>& among, bool Flags::*flag) const {
    for (const Node* node : order_) {
      const auto found = flags_.find(node);
      if (found != flags_.end() && found->second.*flag && among.contains(node)) return node;
    }
    return nullptr;
  }

  const std::vector<Node*> order_;
  std::unordered_map<const Node*, Flags> flags_;
};

}  // namespace

void refuse_anomalies(std::span<const Tensor> roots) {
  const NoAnomalyDetection aside;
  std::vector<Tensor> results;
  std::vector<Node*> order = topological_order(roots);
  for (const Tensor& root : roots)
    if (has_elements(*root.node())) results.push_back(root);
  for (Node* node : order)
    if (node->op == Op::Assign && has_elements(*node)) results.emplace_back(node);
  const std::vector<Flags> flags = flags_of(without_assignments(results));
  std::vector<Tensor> bad;
  for (std::size_t k = 0; k < results.size(); ++k)
    if (flags[k].any()) bad.push_back(results[k]);
  if (!bad.empty()) Search(std::move(order)).refuse(bad);
}

}  // namespace tenon
