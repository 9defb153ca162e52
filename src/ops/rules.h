// The functions that the rows of table.cpp point at, each defined in the file of its family:
// inference, gradient rules, decompositions.
//
// Only table.cpp and the families include this. A declaration without a row, or the other way
// round, does not link or compile.
#pragma once

#include <vector>

#include "ops/table.h"

namespace tenon {

using Gradients = std::vector<Tensor>;

#define TENON_INFER(name) Inferred infer_##name(const Node& node)
#define TENON_VJP(name) Gradients vjp_##name(const Tensor& out, const Tensor& g)

// create.cpp, random.cpp
TENON_INFER(stored);
TENON_INFER(constant);
TENON_INFER(iota);
TENON_INFER(random);

// unary.cpp
TENON_INFER(unary_number);
TENON_INFER(unary_floating);
TENON_INFER(unary_test);
TENON_INFER(logical_not);
TENON_INFER(cast);
TENON_INFER(same);
TENON_VJP(neg);
TENON_VJP(abs);
TENON_VJP(zero);
TENON_VJP(exp);
TENON_VJP(expm1);
TENON_VJP(log);
TENON_VJP(log1p);
TENON_VJP(sqrt);
TENON_VJP(rsqrt);
TENON_VJP(reciprocal);
TENON_VJP(square);
TENON_VJP(sin);
TENON_VJP(cos);
TENON_VJP(tan);
TENON_VJP(asin);
TENON_VJP(acos);
TENON_VJP(atan);
TENON_VJP(sinh);
TENON_VJP(cosh);
TENON_VJP(tanh);
TENON_VJP(sigmoid);
TENON_VJP(relu);
TENON_VJP(erf);
TENON_VJP(cast);

// binary.cpp
TENON_INFER(arithmetic);
TENON_INFER(arithmetic_floating);
TENON_INFER(compare);
TENON_INFER(logical);
TENON_INFER(where);
TENON_VJP(add);
TENON_VJP(sub);
TENON_VJP(mul);
TENON_VJP(div);
TENON_VJP(pow);
TENON_VJP(atan2);
TENON_VJP(maximum);
TENON_VJP(minimum);
TENON_VJP(remainder);
TENON_VJP(where);

// reduce.cpp
TENON_INFER(sum);
TENON_INFER(extremum);
TENON_INFER(arg_extremum);
TENON_VJP(sum);
TENON_VJP(prod);
TENON_VJP(extremum);

// view.cpp
TENON_INFER(reshape);
TENON_INFER(permute);
TENON_INFER(expand);
TENON_INFER(slice);
TENON_VJP(reshape);
TENON_VJP(permute);
TENON_VJP(expand);
TENON_VJP(slice);

// movement.cpp
TENON_INFER(concat);
TENON_INFER(pad);
TENON_INFER(gather);
TENON_INFER(scatter_add);
TENON_VJP(concat);
TENON_VJP(pad);
TENON_VJP(gather);
TENON_VJP(scatter_add);

// sort.cpp
TENON_INFER(sort);
Inferred infer_sort_result(const Node& node, std::int64_t k);
std::int64_t count_sort_results(const Node& node);
Gradients vjp_sort(const Tensor& out, std::span<const Tensor> cotangents);

// results.cpp
TENON_INFER(result);

// loops.cpp
TENON_INFER(scan);
TENON_INFER(cond);
Inferred infer_scan_result(const Node& node, std::int64_t k);
Inferred infer_cond_result(const Node& node, std::int64_t k);
std::int64_t count_scan_results(const Node& node);
std::int64_t count_cond_results(const Node& node);

// device.cpp
TENON_VJP(to);

// contraction.cpp
TENON_INFER(matmul);
TENON_INFER(conv2d);
TENON_INFER(conv2d_input_grad);
TENON_INFER(conv2d_weight_grad);
TENON_VJP(matmul);
TENON_VJP(conv2d);
TENON_VJP(conv2d_input_grad);
TENON_VJP(conv2d_weight_grad);

// pool.cpp
TENON_INFER(max_pool2d);
TENON_INFER(max_pool2d_grad);
TENON_INFER(max_pool2d_gather);
TENON_INFER(avg_pool2d);
TENON_INFER(avg_pool2d_grad);
TENON_VJP(max_pool2d);
TENON_VJP(max_pool2d_grad);
TENON_VJP(max_pool2d_gather);
TENON_VJP(avg_pool2d);
TENON_VJP(avg_pool2d_grad);

// softmax.cpp
TENON_INFER(softmax);
TENON_VJP(softmax);
TENON_VJP(log_softmax);
Tensor decompose_softmax(const Tensor& out);
Tensor decompose_log_softmax(const Tensor& out);

// effect.cpp
TENON_INFER(assign);
TENON_VJP(assign);
TENON_INFER(with_updates);
TENON_VJP(with_updates);

#undef TENON_INFER
#undef TENON_VJP

}  // namespace tenon
