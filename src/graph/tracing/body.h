// Body: the piece of graph that a loop or a branch runs, closed over everything that it reads from
// outside.
//
// The leaves of a body are its parameters: placeholders without memory, which are bound when the
// body runs. Other values that the function used (weights, values computed before) become
// additional parameters after the given ones. So a body has the same meaning wherever it is used.
// Immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <tenon/tensor.h>

#include "graph/attrs.h"

namespace tenon {

struct Body {
  std::vector<Tensor> parameters;
  std::vector<Tensor> results;
  GraphKey key;  // of its structure: equal for bodies that compute the same in the same way
};

/// The device on which a body that reads these tensors runs: the first tensor's device that is set.
Device device_of_body(std::span<const Tensor> tensors);
/// Parameters with the dtypes and shapes of these tensors.
std::vector<Tensor> placeholders_for(std::span<const Tensor> like, Device home);
Tensor placeholder_for(const Tensor& like, Device home);

/// A body with these results, and the values that it captures besides `parameters`: one more
/// parameter for each, in this order. Nodes that depend on no parameter stay outside and are
/// computed once; numbers, index ramps and views of them are computed inside. Tensors that existed
/// before the body's function ran (`trace`) are captured directly, because gradients with respect
/// to each may be requested. Throws NotSupported for an effect inside the body.
struct ClosedBody {
  std::shared_ptr<const Body> body;
  std::vector<Tensor> captured;
};
ClosedBody close_over(const char* op, const std::vector<Tensor>& results,
                      const std::vector<Tensor>& parameters, Device home, std::uint32_t trace);

/// A body whose results depend on no leaf other than the parameters.
std::shared_ptr<const Body> make_body(const std::vector<Tensor>& parameters,
                                      const std::vector<Tensor>& results);
/// A body with other results of the same graph: nodes that depend on its parameters alone.
std::shared_ptr<const Body> with_results(const Body& body, const std::vector<Tensor>& results);

using Substitution = std::unordered_map<const Node*, Tensor>;
/// Returns the replacement of a node whose inputs have become `inputs`; undefined: rebuild the same
/// node.
using RewriteNode = std::function<Tensor(const Node& node, const std::vector<Tensor>& inputs)>;
/// The same tensors, computed with some nodes replaced.
std::vector<Tensor> substitute(std::span<const Tensor> roots, const Substitution& instead,
                               const RewriteNode& rewrite = {});

}  // namespace tenon
