// How builders make nodes: through the op's row, so that every node in a graph is checked. Also the
// promotion and broadcasting that all families share.
//
// The rules of single ops are not here. Invariant: a node made by build() has the dtype and shape
// that its row infers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include <tenon/ops.h>

#include "graph/called.h"
#include "ops/table.h"

namespace tenon {

/// A node whose dtype and shape follow from its inputs.
Tensor build(Op op, std::initializer_list<Tensor> inputs, const Attrs& attrs = {});
Tensor build(Op op, std::span<const Tensor> inputs, const Attrs& attrs = {});
/// A node whose dtype and shape are arguments; the row checks them.
Tensor build_as(Op op, DType dtype, const Shape& shape, std::span<const Tensor> inputs,
                const Attrs& attrs = {});
Tensor build_as(Op op, DType dtype, const Shape& shape, std::initializer_list<Tensor> inputs,
                const Attrs& attrs = {});

/// Result k of a node with several results, and all of its results.
Tensor result_of(const Tensor& node, std::int64_t k);
std::vector<Tensor> results_of(const Tensor& node);
/// The index of the result that a Result node represents.
inline std::int64_t result_index(const Node& node) { return node.attrs.as<ResultAttrs>().index; }

/// Input k of a tensor's node.
inline Tensor input_of(const Tensor& out, int k) { return Tensor(out.node()->input(k)); }
/// "conv2d (block.1)" for a node's op: how its errors begin.
OpPlace where(const Node& node);

/// Larger strides, paddings and windows are refused, so that no size overflows.
inline constexpr std::int64_t kLargestSize = std::int64_t{1} << 60;

Tensor constant(const Shape& shape, Scalar value, DType dtype);
/// All pairs i < j of `count` indices, int64 [2, pairs] on a device.
Tensor index_pairs(std::int64_t count, Device home);
inline bool is_constant(const Tensor& x) { return x.node()->op == Op::Constant; }
/// A constant with respect to which no gradient is requested.
inline bool is_number(const Tensor& x) {
  return x.node()->op == Op::Constant && !x.node()->differentiable;
}

inline Scalar constant_value(const Tensor& x) { return x.node()->attrs.as<ConstantAttrs>().value; }

/// `x` as a value computed on `device`. Numbers and index ramps have no device and are computed on
/// `device`; a tensor that has a device keeps it.
Tensor placed_on(const Tensor& x, Device device);

/// The value of `x` as a node of its own, which plans drop. A gradient with respect to it leads
/// through its own readers only, not through other readers of `x`.
Tensor new_node_of(const Tensor& x);

/// The number as an element of this dtype stores it.
double stored_value(double value, DType dtype);
/// Whether an element of this dtype can represent the number, apart from rounding.
bool can_represent(DType dtype, Scalar value);

/// Both tensors with the promoted dtype and the broadcast shape.
std::pair<Tensor, Tensor> aligned(const char* op, const Tensor& a, const Tensor& b);
/// Integers and bool become float32; floating tensors stay as they are.
Tensor to_floating(const Tensor& x);
/// The dtype of an operation between a tensor and a plain number (see ops.h).
DType scalar_dtype(DType tensor, Scalar scalar);
/// The dtype of a product of two tensors: promote(), except that float64 with another floating
/// dtype throws DTypeError naming `op`. One float64 tensor, such as a list of doubles, would
/// otherwise make all layers of a network that follow compute in float64.
DType operand_dtype(const char* op, const Tensor& a, const Tensor& b);
/// The number as a constant of that shape and dtype. Throws ValueError naming `op` if the dtype
/// cannot represent it.
Tensor scalar_operand(const char* op, Scalar value, const Shape& shape, DType dtype);

/// The shape with the axes in a reduction's mask set to 1.
Shape keepdim_shape(const Shape& shape, std::int64_t mask);
/// An axis of a tensor of that rank, counted from 0. A tensor without axes is treated as having a
/// single axis, as in PyTorch: 0 and -1 name it.
int axis_of(const char* op, std::int64_t axis, int rank);
/// The axis of a node with AxisAttrs. Throws ShapeError if a shape of that rank does not have it.
int node_axis(const Node& node, int rank);
/// Bit mask of axes; all axes if the list is empty. Refuses axes out of range or given twice. For a
/// tensor without axes the mask is 0.
std::int64_t axis_mask(const char* op, const Ints& axes, int rank);
/// a times b, sizes that `op` was given. Throws ShapeError naming `op` if the product exceeds
/// int64.
std::int64_t size_product(const char* op, std::int64_t a, std::int64_t b);
Shape to_shape(const Ints& sizes);
Ints to_ints(const Shape& shape);

/// Throws: input `k` of `count`, counted from 0, has no value.
[[noreturn]] void refuse_undefined(const char* op, std::size_t k, std::size_t count);
/// Throws ValueError naming the op and the first tensor without a value. For builders that use
/// their inputs before build() checks them.
template <class... T>
void require_defined(const char* op, const T&... tensors) {
  std::size_t k = 0;
  if (!((tensors.defined() && ++k != 0) && ...)) refuse_undefined(op, k, sizeof...(tensors));
}

/// Computes a value that several evaluations are about to read, so that they do not compute it
/// again. A floating value that depends on no variable is left: its graph, which a gradient may
/// need, would be freed.
void compute_once(const Tensor& x);

/// Whether x has `rank` axes, which means a single sample without batch axis for an op that takes
/// [N, …], as PyTorch's unbatched images.
inline bool has_no_batch(const Tensor& x, int rank) { return x.defined() && x.rank() == rank - 1; }

// Checks that several families make; the message begins with where(node).
void require_floating(const Node& node, const char* advice);
void require_same_dtype(const Node& node);
void require_same_shape(const Node& node);

}  // namespace tenon
