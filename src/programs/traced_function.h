// A function traced for saving: its graph, without plans and without running it.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/compute.h>
#include <tenon/host_call.h>
#include <tenon/tensor.h>

#include "graph/random_trace.h"

namespace tenon {

struct TracedFunction {
  std::vector<Tensor> inputs;       // placeholders
  std::vector<Tensor> results;      // without carried assignments
  std::vector<Tensor> assignments;  // one for each variable
  RandomTrace random;
};

/// Runs the function once with placeholders of these types on `device`.
TracedFunction trace_function(const CompiledFunction::Body& function,
                              const std::vector<TensorType>& types, Device device);

}  // namespace tenon
