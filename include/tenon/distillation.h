// Distillation: the loss of a network that learns from the scores of another.
#pragma once

#include <tenon/ops.h>
#include <tenon/tensor.h>

namespace tenon {

/// Knowledge distillation loss (Hinton, Vinyals and Dean, "Distilling the knowledge in a neural
/// network", 2015): temperature² · KL(softmax(teacher / temperature) ‖ softmax(student /
/// temperature)). The factor temperature² keeps the size of the gradients when the temperature
/// changes. No gradient flows into the teacher.
///
/// @param student      the student's logits, [N, C]
/// @param teacher      the teacher's logits, [N, C]
/// @param temperature  above 0
/// @param reduction    Mean: over the N samples; Reduction::None: one loss for each sample
/// @return a scalar, or [N] with Reduction::None. Throws ShapeError if the shapes differ,
///         ValueError for a temperature that is not above 0.
TENON_API Tensor distillation_loss(const Tensor& student, const Tensor& teacher,
                                   double temperature = 1, Reduction reduction = Reduction::Mean);

}  // namespace tenon
