// Ops with several results: each result is a node of its own that reads the op's node.
#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/collective.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {

Tensor result_of(const Tensor& node, std::int64_t k) {
  Tensor out = build(Op::Result, {node}, ResultAttrs{k});
  if (node.node()->op == Op::Collective) out.node()->device = member_of(*node.node(), k);
  if (node.node()->op == Op::Function) {
    const Node& value = *node.node()->input(static_cast<int>(k));
    out.node()->device = value.device;
    out.node()->placed = value.placed;
  }
  return out;
}

std::vector<Tensor> results_of(const Tensor& node) {
  std::vector<Tensor> results;
  const std::int64_t count = op_info(node.node()->op).result_count(*node.node());
  for (std::int64_t k = 0; k < count; ++k) results.push_back(result_of(node, k));
  return results;
}

Inferred infer_result(const Node& node) {
  const Node& source = *node.input(0);
  const OpInfo& info = op_info(source.op);
  const std::int64_t k = result_index(node);
  if (info.infer_result == nullptr || k < 0 || k >= info.result_count(source))
    throw make_error<InternalError>(info.name, " has no result ", k);
  return info.infer_result(source, k);
}

}  // namespace tenon
