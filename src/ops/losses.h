// Shared by all losses: checks of inputs, and the final reduction.
#pragma once

#include <tenon/ops.h>

namespace tenon {

Tensor reduced_loss(const Tensor& losses, Reduction reduction);
/// Broadcasting here is nearly always a mistake: [N] against [N, 1] would compare all pairs.
void require_equal_shapes(const char* op, const Tensor& input, const Tensor& target);
/// [N, C, d…] with the classes moved to the last axis; [C] unchanged.
Tensor classes_last(const Tensor& x);
void require_class_axis(const char* op, const Tensor& x);
/// For x [N, C, d…]: requires int64 or int32 [N, d…]; for x [C]: a single number.
void require_class_indices(const char* op, const Tensor& x, const Tensor& target);
/// For floating targets: requires probabilities of x's shape.
void require_probabilities(const char* op, const Tensor& x, const Tensor& target);
/// The indices unchanged, refused if one is outside [0, classes). The error names `op`, the index
/// and its position; on the CPU it is thrown by the run, on a GPU at the next read.
Tensor require_classes(const char* op, const Tensor& index, std::int64_t classes);

}  // namespace tenon
