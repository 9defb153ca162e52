// Creates, refreshes and updates rounded copies of weights.
#include "run/rounded.h"

#include <mutex>

#include "base/str.h"
#include "graph/order.h"
#include "plan/precision/rounding.h"

namespace tenon {
namespace {

// Protects copies of weights that functions on different threads share.
std::mutex& refreshing() {
  static std::mutex mutex;
  return mutex;
}

Tensor cast_to(const Tensor& x, DType dtype) {
  return make_node(Op::Cast, dtype, x.shape(), {}, std::span(&x, 1));
}

Tensor assign_to(const Tensor& copy, const Tensor& value) {
  const Tensor inputs[2] = {copy, cast_to(value, copy.dtype())};
  return make_node(Op::Assign, copy.dtype(), copy.shape(), {}, inputs);
}

// Whether the copy is up to date: it records the weight's assignment that it was made from. Call
// under the lock.
bool fresh(const Node& copy, const Node& weight) {
  return copy.leaf->rounded_at == weight.assigned_at();
}

// Makes the copy by `make`. If the weight is assigned meanwhile, the copy is recorded as made from
// the older value and is refreshed before the next use.
template <class Make>
void make_fresh(const Node& weight, Make&& make) {
  const std::uint64_t at = weight.assigned_at();
  const Tensor& copy = make();
  copy.node()->leaf->rounded_at = at;
}

// The weight's node holds one copy; programs with another precision or layout hold theirs.
Tensor copy_of(Node& weight, DType dtype, bool channels_last) {
  const std::lock_guard lock(refreshing());
  Tensor& rounded = weight.leaf->rounded;
  const bool known = rounded.defined() && rounded.dtype() == dtype &&
                     is_stored_channels_last(rounded, weight) == channels_last;
  if (!known) {
    make_fresh(weight, [&]() -> const Tensor& {
      rounded = variable(rounded_copy(Tensor(&weight), dtype, channels_last),
                         cat(label_text(weight.label), " in ", name(dtype)));
      return rounded;
    });
  }
  return rounded;
}

}  // namespace

KeptWeights keep_rounded(std::vector<Tensor>& roots, const PlanOptions& options) {
  KeptWeights kept;
  for (const auto& [weight, dtype, channels_last] : weights_to_keep_rounded(roots, options)) {
    const Tensor copy = copy_of(*weight, dtype, channels_last);
    kept.weights.push_back({Tensor(weight), copy});
    kept.copies.push_back({weight, copy});
  }
  if (kept.weights.empty()) return kept;
  for (Node* node : topological_order(roots)) {
    if (node->op != Op::Assign || node->realised()) continue;
    for (std::size_t k = 0; k < kept.weights.size(); ++k) {
      if (node->input(0) != kept.weights[k].weight.node()) continue;
      LabelGuard label(node->label);
      roots.push_back(assign_to(kept.copies[k].copy, Tensor(node->input(1))));
      kept.weights[k].assigned = true;
    }
  }
  return kept;
}

void refresh(const std::vector<KeptWeight>& weights) {
  if (weights.empty()) return;
  const std::lock_guard lock(refreshing());
  for (const KeptWeight& kept : weights) {
    if (fresh(*kept.copy.node(), *kept.weight.node())) continue;
    make_fresh(*kept.weight.node(), [&]() -> const Tensor& {
      const bool channels_last = is_stored_channels_last(kept.copy, *kept.weight.node());
      set_value(kept.copy, rounded_copy(kept.weight, kept.copy.dtype(), channels_last));
      return kept.copy;
    });
  }
}

void mark_fresh(const std::vector<KeptWeight>& weights, std::uint64_t at) {
  if (weights.empty()) return;
  const std::lock_guard lock(refreshing());
  for (const KeptWeight& kept : weights)
    if (kept.assigned) kept.copy.node()->leaf->rounded_at = at;
}

}  // namespace tenon
