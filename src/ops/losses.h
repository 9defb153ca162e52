// What the families of losses share: checks of their inputs, and the reduction.
#pragma once

#include <tenon/ops.h>

namespace tenon {

Tensor reduced_loss(const Tensor& losses, Reduction reduction);
/// Broadcasting here is nearly always a mistake: [N] against [N, 1] would compare all pairs.
void require_equal_shapes(const char* op, const Tensor& input, const Tensor& target);
/// [N, C, d…] with the classes last; [C] as it is.
Tensor classes_last(const Tensor& x);
void require_class_axis(const char* op, const Tensor& x);
/// For x [N, C, d…]: int64 or int32 [N, d…]; for [C] a number.
void require_class_indices(const char* op, const Tensor& x, const Tensor& target);
/// For floating targets, which are probabilities of x's shape.
void require_probabilities(const char* op, const Tensor& x, const Tensor& target);
/// The indices as they are, refused where one is outside [0, classes): the error names `op`, the
/// index and its place, on the CPU at once, on a GPU at the next read.
Tensor require_classes(const char* op, const Tensor& index, std::int64_t classes);

}  // namespace tenon
