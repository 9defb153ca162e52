// OpInfo: an op's row (graph/op_table.inc) with its inference, gradient and decomposition
// (rules.inc). An op without a rule does not compile.
#pragma once

#include <span>
#include <vector>

#include <tenon/tensor.h>

#include "graph/node.h"
#include "ops/inferred.h"

namespace tenon {

struct OpInfo : OpRow {
  // The dtype and shape from the inputs. Ops whose shape is an argument (Reshape, Expand, Slice,
  // gradients, leaves) instead check `node`'s own shape against the inputs: verify_graph calls this
  // for every node.
  Inferred (*infer)(const Node& node) = nullptr;
  // Gradients with respect to each input, given the node's output and its gradient; an undefined
  // tensor for an input without gradient.
  std::vector<Tensor> (*vjp)(const Tensor& out, const Tensor& g) = nullptr;
  // The same value in other ops, for composites with one result; otherwise null.
  Tensor (*decompose)(const Tensor& out) = nullptr;
  const char* no_grad_reason = nullptr;  // non-null exactly if there is no rule
  // For ops with several results: the dtype and shape of result k, and the gradients given those of
  // the results, undefined where there is none. The rules of loops need grad() themselves and are
  // in grad/scan.h.
  Inferred (*infer_result)(const Node& node, std::int64_t k) = nullptr;
  std::vector<Tensor> (*vjp_results)(const Tensor& out,
                                     std::span<const Tensor> cotangents) = nullptr;
  std::int64_t (*result_count)(const Node& node) = nullptr;
  // Result k in other ops, for ops that engines need not support; otherwise null.
  Tensor (*decompose_result)(const Tensor& out, std::int64_t k) = nullptr;
};

const OpInfo& op_info(Op op);

}  // namespace tenon
