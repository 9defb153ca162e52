// Curvature estimate for the learning rates of the levenberg optimizer. It is measured before each
// epoch, and more often while the initial weights change fast.
//
// The estimate is the mean square of the gradients of single samples whose targets are drawn from
// the network's own scores. For a log-likelihood this is the diagonal of the Gauss-Newton matrix
// (LeCun et al., 1998, appendix C, who compute it by a second backward pass over 500 samples). The
// network runs in evaluation mode, in float32.
#pragma once

#include <cstdint>

#include <tenon/data.h>
#include <tenon/eval.h>
#include <tenon/nn.h>
#include <tenon/optim.h>

namespace tenon::train {

class Curvature {
 public:
  static constexpr std::int64_t kExamples = 500;

  Curvature(const nn::AnyModule& net, const nn::Loss& loss, const optim::Levenberg& optimizer,
            bool classes, bool tokens);
  Curvature(const Curvature&) = delete;
  Curvature& operator=(const Curvature&) = delete;

  /// Steps from this one to the first from here on before which it is measured: that of each
  /// epoch, and in the first, while the weights leave their initial values, those by which the
  /// samples seen are a quarter more than before (from kExamples / 10 on).
  static std::int64_t steps_until_due(std::int64_t step, std::int64_t batch,
                                      std::int64_t steps_per_epoch);
  /// On kExamples of the training set, by chance but the same ones for a step.
  void measure(const data::Loader& train, std::int64_t step);

 private:
  std::vector<Tensor> trace(const Tensor& input, const Tensor& target, const Tensor& keep,
                            std::int64_t examples) const;

  nn::AnyModule net_;
  nn::Loss loss_;
  const optim::Levenberg& optimizer_;
  bool classes_, tokens_;
  std::int64_t examples_ = 0;  // those that function_ is for
  CompiledFunction function_;
};

}  // namespace tenon::train
