// Tracing as compile() does it, but the graph is kept and not planned.
#include "programs/traced_function.h"

#include <tenon/error.h>
#include <tenon/shapes_only.h>

#include "base/str.h"
#include "graph/effects.h"
#include "graph/node.h"
#include "graph/order.h"
#include "graph/tracing/traced_state.h"

namespace tenon {

TracedFunction trace_function(const CompiledFunction::Body& function,
                              const std::vector<TensorType>& types, Device device) {
  TracedFunction out;
  for (const TensorType& type : types)
    out.inputs.push_back(without_memory(type.shape, type.dtype, device));
  out.random.leaf = without_memory(Shape{2}, DType::Int64, device);
  std::vector<Tensor> results;
  {
    const RandomTraceGuard random(&out.random);
    const StateTrace state;
    results = function(out.inputs);
  }
  for (std::size_t k = 0; k < results.size(); ++k)
    if (!results[k].defined())
      throw ValueError(cat("save_program: result ", k, " of the function has no value"));
  for (Node* node : topological_order(results)) node->unheeded = false;
  Taken taken = take_effects(results);
  out.results = std::move(taken.values);
  out.assignments = std::move(taken.assignments);
  return out;
}

}  // namespace tenon
