// Body: a piece of graph that a loop or a branch runs, closed over what it reads from outside.
//
// A body's leaves are its parameters: stand-ins without memory that whoever runs it binds. What the
// function that made it read besides (weights, values computed before) has become parameters too,
// behind those that it was given; so a body means the same wherever it stands. Immutable.
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
  BodyKey key;  // over its structure: equal for bodies that compute the same in the same way
};

/// Where a body runs that reads these: on the device of the first that has one.
Device home_of(std::span<const Tensor> tensors);
/// Parameters for tensors like these: leaves of their dtype and shape.
std::vector<Tensor> stand_ins_for(std::span<const Tensor> like, Device home);
Tensor stand_in_for(const Tensor& like, Device home);

/// A body of these results, and what it takes in beside `parameters`: one more parameter each, in
/// this order. Nodes that depend on no parameter stay outside and are computed once; numbers, index
/// ramps and views of them are made in the body. Tensors that were made before the body's function
/// ran (`trace`) are taken in as they are, for gradients with regard to each may be asked for.
/// Throws NotSupported for an effect inside.
struct ClosedBody {
  std::shared_ptr<const Body> body;
  std::vector<Tensor> captured;
};
ClosedBody close_over(const char* op, const std::vector<Tensor>& results,
                      const std::vector<Tensor>& parameters, Device home, std::uint32_t trace);

/// A body as it stands: its results depend on no leaf but the parameters.
std::shared_ptr<const Body> make_body(const std::vector<Tensor>& parameters,
                                      const std::vector<Tensor>& results);
/// A body with other results of the same graph: nodes that depend on its parameters alone.
std::shared_ptr<const Body> with_results(const Body& body, const std::vector<Tensor>& results);

using Substitution = std::unordered_map<const Node*, Tensor>;
/// What stands in the place of a node whose inputs have become these; undefined: the same node.
using Remake = std::function<Tensor(const Node& node, const std::vector<Tensor>& inputs)>;
/// The same tensors computed from others in the place of some nodes.
std::vector<Tensor> substitute(std::span<const Tensor> roots, const Substitution& instead,
                               const Remake& remake = {});

}  // namespace tenon
