// OpInfo: an op's row (graph/op_table.inc) and what only the language knows of it (rules.inc). An
// op without a rule fails to compile.
#pragma once

#include <span>
#include <vector>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

struct Inferred {
  DType dtype;
  Shape shape;
};

struct OpInfo : OpRow {
  // dtype and shape from the inputs. Ops whose shape is an argument (Reshape, Expand, Slice,
  // gradients, leaves) check `node`'s own shape against the inputs instead: verify_graph calls this
  // for every node.
  Inferred (*infer)(const Node& node) = nullptr;
  // Gradients with regard to each input, given the node's output and the gradient of it; an
  // undefined tensor where there is none.
  std::vector<Tensor> (*vjp)(const Tensor& out, const Tensor& g) = nullptr;
  // The same value in other ops, for composites; else null.
  Tensor (*decompose)(const Tensor& out) = nullptr;
  const char* no_grad_reason = nullptr;  // non-null exactly when there is no rule
  // Of an op with several results: type of result k, and gradients given those of the results,
  // undefined where there is none. Those of loops need grad() themselves: they stand in
  // grad/scan.h.
  Inferred (*infer_result)(const Node& node, std::int64_t k) = nullptr;
  std::vector<Tensor> (*vjp_results)(const Tensor& out,
                                     std::span<const Tensor> cotangents) = nullptr;
  std::int64_t (*result_count)(const Node& node) = nullptr;
  // Result k in other ops, where an engine need not know the op; else null.
  Tensor (*decompose_result)(const Tensor& out, std::int64_t k) = nullptr;
};

const OpInfo& op_info(Op op);

}  // namespace tenon
