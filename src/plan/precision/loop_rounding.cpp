// Rounding of loop operands once, before the loop. A step of a recurrent layer is short: a kernel
// that rounds the operands of a product takes as long as the product, and repeats at every step.
//
// Results do not change: the products would round to the same values. A parameter is replaced by
// its rounded value cast to float32, which autocast then uses without rounding again.
#include "plan/precision/loop_rounding.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tenon/ops.h>

#include <tenon/shapes_only.h>
#include "base/index.h"
#include "graph/node.h"
#include "graph/order.h"
#include "graph/tracing/body.h"
#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/table.h"
#include "plan/graph/views.h"
#include "plan/precision/rounding.h"

namespace tenon {
namespace {

using Users = std::unordered_map<const Node*, std::vector<const Node*>>;

Users users_of(std::span<const Tensor> roots) {
  Users users;
  for (const Node* node : topological_order(roots))
    if (!node->realised())
      for (const Node* in : node->in()) users[in].push_back(node);
  return users;
}

bool is_scan(const Node& node) { return node.op == Op::Scan && !node.realised(); }

// For one scan: which of its parameters become 16-bit, and with which dtype.
class RoundedReads {
 public:
  RoundedReads(const ScanAttrs& attrs, const std::unordered_set<std::int64_t>& read,
               const PlanOptions& options)
      : body_(*attrs.body), options_(options), users_(users_of(body_.results)) {
    for (const Tensor& result : body_.results) results_.insert(result.node());
    const auto count = std::ssize(body_.parameters);
    for (std::int64_t p = attrs.carries + attrs.rows; p < count; ++p) consider(p);
    if (types_.empty()) return;
    for (std::int64_t p = 0; p < attrs.carries; ++p)
      if (read.count(p) == 0) consider(p);
  }

  /// The 16-bit dtypes by number of the parameter.
  const std::unordered_map<std::int64_t, DType>& types() const { return types_; }

 private:
  void consider(std::int64_t p) {
    const Tensor& parameter = body_.parameters[at(p)];
    if (parameter.dtype() != DType::Float32) return;
    DType type = DType::Float32;
    if (!agree(parameter.node(), parameter.node(), type) || type == DType::Float32) return;
    types_.emplace(p, type);
    lowered_.insert(parameter.node());
  }

  // Whether all readers of the node are products that round it to one dtype.
  bool agree(const Node* node, const Node* parameter, DType& type) const {
    if (results_.count(node) != 0) return false;
    const auto found = users_.find(node);
    if (found == users_.end()) return true;
    for (const Node* user : found->second) {
      if (is_view(*user)) {
        if (!agree(user, parameter, type)) return false;
        continue;
      }
      if (op_info(user->op).kind != OpKind::Contraction) return false;
      const auto kept = [&](int k) {
        const Node* base = base_of(user->input(k));
        return base == parameter || lowered_.count(base) != 0;
      };
      const DType wanted = rounded_ahead(*user, {kept(0), kept(1)}, options_);
      if (wanted == DType::Float32 || (type != DType::Float32 && type != wanted)) return false;
      type = wanted;
    }
    return true;
  }

  const Body& body_;
  const PlanOptions& options_;
  const Users users_;
  std::unordered_set<const Node*> results_, lowered_;
  std::unordered_map<std::int64_t, DType> types_;
};

Tensor rounded_scan(const Node& scan, std::span<const Tensor> inputs, const RoundedReads& rounded) {
  ScanAttrs attrs = scan.attrs.as<ScanAttrs>();
  std::vector<Tensor> parameters = attrs.body->parameters, given(inputs.begin(), inputs.end());
  Substitution instead;
  for (const auto& [p, type] : rounded.types()) {
    const Tensor wide = parameters[at(p)];
    parameters[at(p)] = without_memory(wide.shape(), type, wide.device());
    instead.emplace(wide.node(), cast(parameters[at(p)], wide.dtype()));
    given[at(p)] = cast(given[at(p)], type);
  }
  std::vector<Tensor> results = substitute(attrs.body->results, instead);
  for (const auto& [p, type] : rounded.types())
    if (p < attrs.carries) results[at(p)] = cast(results[at(p)], type);
  attrs.body = make_body(parameters, results);
  return scan_node(given, std::move(attrs));
}

// The results that are read, by scan.
std::unordered_map<const Node*, std::unordered_set<std::int64_t>> results_read(const Roots& roots) {
  std::unordered_map<const Node*, std::unordered_set<std::int64_t>> read;
  for (const Node* node : roots.order().nodes)
    if (node->op == Op::Result && !node->realised() && is_scan(*node->input(0)))
      read[node->input(0)].insert(result_index(*node));
  return read;
}

// The 16-bit dtype that every reader of a stacked result casts it to; Float32 if one reader does
// not.
DType type_of_readers(const Node& stack, const Users& users) {
  // Rows must begin at the alignment that kernels expect of values.
  constexpr std::int64_t kBytes = 64;
  const auto found = users.find(&stack);
  if (stack.dtype != DType::Float32 || found == users.end()) return DType::Float32;
  const DType type = found->second.front()->dtype;
  const bool is_16_bit = type == DType::BFloat16 || type == DType::Float16;
  const bool all = std::all_of(found->second.begin(), found->second.end(), [&](const Node* user) {
    return user->op == Op::Cast && user->dtype == type;
  });
  const std::int64_t row = stack.shape.numel() / std::max<std::int64_t>(stack.shape[0], 1) * 2;
  return is_16_bit && all && row % kBytes == 0 ? type : DType::Float32;
}

}  // namespace

Roots round_loop_operands(Roots roots, const PlanOptions& options) {
  const auto read = results_read(roots);
  return rewrite(roots, [&](Node& node, std::span<const Tensor> inputs) -> Tensor {
    if (!is_scan(node)) return {};
    const auto found = read.find(&node);
    const RoundedReads rounded(
        node.attrs.as<ScanAttrs>(),
        found == read.end() ? std::unordered_set<std::int64_t>() : found->second, options);
    return rounded.types().empty() ? Tensor() : rounded_scan(node, inputs, rounded);
  });
}

Roots round_loop_results(Roots roots, const PlanOptions&) {
  const Users users = users_of(roots);
  std::unordered_set<const Node*> wanted;
  for (const Tensor& root : roots) wanted.insert(root.node());
  std::unordered_map<const Node*, std::vector<std::pair<std::int64_t, DType>>> rounded;
  for (const auto& [node, readers] : users) {
    if (node->op != Op::Result || node->realised() || wanted.count(node) != 0) continue;
    const Node& scan = *node->input(0);
    if (!is_scan(scan) || result_index(*node) < scan.attrs.as<ScanAttrs>().carries) continue;
    if (const DType type = type_of_readers(*node, users); type != DType::Float32)
      rounded[&scan].emplace_back(result_index(*node), type);
  }
  if (rounded.empty()) return roots;
  return rewrite(roots, [&](Node& node, std::span<const Tensor> inputs) -> Tensor {
    if (node.op == Op::Cast && !node.realised() && inputs[0].dtype() == node.dtype)
      return inputs[0];
    if (node.op == Op::Result && !node.realised() && is_scan(*inputs[0].node()))
      return result_of(inputs[0], result_index(node));
    const auto found = rounded.find(&node);
    if (found == rounded.end()) return {};
    ScanAttrs attrs = node.attrs.as<ScanAttrs>();
    std::vector<Tensor> results = attrs.body->results;
    for (const auto& [k, type] : found->second) results[at(k)] = cast(results[at(k)], type);
    attrs.body = with_results(*attrs.body, results);
    return scan_node(inputs, std::move(attrs));
  });
}

}  // namespace tenon
