// Distillation: what a network learns from the scores of another.
#pragma once

#include <tenon/ops.h>
#include <tenon/tensor.h>

namespace tenon {

/// What a student loses by other class probabilities than its teacher's, both softened by a
/// temperature: temperature² · KL(softmax(teacher / temperature) ‖ softmax(student / temperature)),
/// where the factor keeps the gradients' size (Hinton, Vinyals and Dean, "Distilling the knowledge
/// in a neural network", 2015). Logits are [N, C]; Reduction::None gives [N]. No gradient flows
/// into the teacher. Throws ShapeError for logits of other shapes than each other's, ValueError for
/// a temperature that is not above 0.
TENON_API Tensor distillation_loss(const Tensor& student, const Tensor& teacher,
                                   double temperature = 1, Reduction reduction = Reduction::Mean);

}  // namespace tenon
