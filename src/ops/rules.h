// Declarations of the functions that rules.inc names: inference, gradients, decompositions. Each is
// defined in the file of its family. Only table.cpp and the families include this header.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tenon/tensor.h>

#include "graph/node.h"
#include "ops/inferred.h"

namespace tenon {

using Gradients = std::vector<Tensor>;

// Function types used for the declarations.
using Infer = Inferred(const Node& node);
using InferResult = Inferred(const Node& node, std::int64_t k);
using CountResults = std::int64_t(const Node& node);
using Vjp = Gradients(const Tensor& out, const Tensor& g);
using VjpResults = Gradients(const Tensor& out, std::span<const Tensor> cotangents);
using Decompose = Tensor(const Tensor& out);
using DecomposeResult = Tensor(const Tensor& out, std::int64_t k);

#define TENON_DECLARE_vjp(name) Vjp vjp_##name;
#define TENON_DECLARE_none(reason)
#define TENON_DECLARE_composite(name) \
  Vjp vjp_##name;                     \
  Decompose decompose_##name;
#define TENON_DECLARE_loop(name)     \
  InferResult infer_##name##_result; \
  CountResults count_##name##_results;
#define TENON_DECLARE_results(name) TENON_DECLARE_loop(name) VjpResults vjp_##name;
#define TENON_DECLARE_composites(name) TENON_DECLARE_results(name) DecomposeResult decompose_##name;
#define TENON_RULE(op, inference, gradient) \
  Infer infer_##inference;                  \
  TENON_DECLARE_##gradient
#include "ops/rules.inc"
#undef TENON_DECLARE_vjp
#undef TENON_DECLARE_none
#undef TENON_DECLARE_composite
#undef TENON_DECLARE_loop
#undef TENON_DECLARE_results
#undef TENON_DECLARE_composites

}  // namespace tenon
