// Curvature estimate for the learning rates of the levenberg optimizer. It is measured before each
// epoch, and more often while the initial weights change fast.
//
// The estimate is the mean square of the gradients of single samples whose targets are drawn from
// the network's own scores. For a log-likelihood this is the diagonal of the Gauss-Newton matrix
// (LeCun et al., 1998, appendix C, who compute it by a second backward pass over 500 samples). The
// network runs in evaluation mode, in float32.
#pragma once

#include <cstdint>
#include <memory>

#include <tenon/data.h>
#include <tenon/eval.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/task.h>

namespace tenon::train {

class Curvature {
 public:
  static constexpr std::int64_t kExamples = 500;

  Curvature(const nn::AnyModule& net, const nn::Loss& loss, const optim::Levenberg& optimizer,
            std::shared_ptr<const Task> task);
  Curvature(const Curvature&) = delete;
  Curvature& operator=(const Curvature&) = delete;

  /// Number of steps until the next measurement, at least 0. Measured at the first step of each
  /// epoch; in the first epoch, while the weights leave their initial values, also whenever the
  /// number of samples seen has grown by a quarter (from kExamples / 10 on).
  static std::int64_t steps_until_due(std::int64_t step, std::int64_t batch,
                                      std::int64_t steps_per_epoch);
  /// Measures on kExamples random training samples; the choice depends on the step only.
  void measure(const data::Loader& train, std::int64_t step);

 private:
  std::vector<Tensor> trace(const Tensor& input, const Tensor& target, const Tensor& keep,
                            std::int64_t examples) const;

  nn::AnyModule net_;
  nn::Loss loss_;
  const optim::Levenberg& optimizer_;
  std::shared_ptr<const Task> task_;
  std::int64_t examples_ = 0;  // batch that function_ was compiled for
  CompiledFunction function_;
};

}  // namespace tenon::train
