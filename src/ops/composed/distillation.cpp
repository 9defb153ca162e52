// The distillation loss of a student and its teacher, built from other ops.
#include <tenon/distillation.h>
#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/losses.h"

namespace tenon {

Tensor distillation_loss(const Tensor& student, const Tensor& teacher, double temperature,
                         Reduction reduction) {
  const Called called("distillation_loss");
  require_equal_shapes("distillation_loss", student, teacher);
  if (student.rank() != 2)
    throw make_error<ShapeError>(where("distillation_loss"), ": the logits are ", student.shape(),
                                 ", must be [N, C]: scores of N samples for C classes");
  if (!(temperature > 0))
    throw make_error<ValueError>(where("distillation_loss"), ": the temperature is ", temperature,
                                 ", must be above 0");
  const Tensor soft = log_softmax(detach(teacher) / temperature, 1);
  const Tensor lost = sum(exp(soft) * (soft - log_softmax(student / temperature, 1)), {1});
  return reduced_loss(lost * (temperature * temperature), reduction);
}

}  // namespace tenon
