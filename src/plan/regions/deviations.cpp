// Finds sums of squared deviations, and the nodes that are not needed without the deviations.
#include "plan/regions/deviations.h"

#include "plan/rewrites/sum_rules.h"

namespace tenon {

void DeviationSums::find(std::span<const Tensor> roots) {
  constexpr std::int64_t kSamples = 1, kChannels = 2;
  for (const Node* node : order_.nodes) {
    const Node* x = summed_deviations(*node);
    if (x == nullptr || x->shape.rank() < 2) continue;
    const std::int64_t axes = node->attrs.as<ReduceAttrs>().axes;
    if ((axes & kSamples) != 0 && (axes & kChannels) == 0) summed_.emplace(node, x);
  }
  if (!summed_.empty()) mark_needed(roots);
}

void DeviationSums::mark_needed(std::span<const Tensor> roots) {
  const std::vector<Node*>& nodes = order_.nodes;
  needed_.assign(nodes.size(), 0);
  for (const Tensor& root : roots) needed_[order_.index[root.node()]] = 1;
  for (std::size_t k = nodes.size(); k-- > 0;) {
    if (needed_[k] == 0 || nodes[k]->realised()) continue;
    if (const Node* x = deviations_of(*nodes[k]); x != nullptr)
      needed_[order_.index[x]] = 1;
    else
      for (const Node* in : nodes[k]->in()) needed_[order_.index[in]] = 1;
  }
}

const Node* DeviationSums::deviations_of(const Node& node) const {
  const auto found = summed_.find(&node);
  return found == summed_.end() ? nullptr : found->second;
}

}  // namespace tenon
