// Example: the gradient of AlexNet's 3 x 3 filters over 2 groups of 192 channels and 128 images
// takes .82 ms with our own kernel on an H200, and .06 ms for as many channels in one group.
#include "plan/rewrites/split_groups.h"

#include <utility>
#include <vector>

#include <tenon/ops.h>

#include "graph/attrs.h"
#include "graph/node.h"
#include "plan/layout/layout.h"

namespace tenon {
namespace {

bool has_few_groups(const Node& node) {
  constexpr std::int64_t kMost = 4;
  if (node.op != Op::Conv2dWeightGrad) return false;
  const std::int64_t groups = node.attrs.as<ContractionAttrs>().conv.groups;
  return groups > 1 && groups <= kMost;
}

Tensor by_groups(const Node& node, std::span<const Tensor> inputs) {
  if (!is_image_convolution(node)) return {};
  ContractionAttrs one = node.attrs.as<ContractionAttrs>();
  const std::int64_t groups = std::exchange(one.conv.groups, 1);
  const std::int64_t filters = node.shape[0] / groups, channels = node.shape[1];
  std::vector<Tensor> parts;
  for (std::int64_t g = 0; g < groups; ++g) {
    const Tensor of_group[2] = {slice(inputs[0], 1, g * channels, (g + 1) * channels),
                                slice(inputs[1], 1, g * filters, (g + 1) * filters)};
    parts.push_back(make_node(node.op, node.dtype,
                              {filters, channels, node.shape[2], node.shape[3]}, one, of_group));
  }
  return concat(parts, 0);
}

}  // namespace

Roots split_groups(Roots roots, const PlanOptions&) {
  return rewrite_where(roots, has_few_groups, by_groups);
}

}  // namespace tenon
