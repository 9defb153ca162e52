// Predictions for batches of inputs, such as the requests of a server.
//
// The constructor prepares everything that does not depend on the request: the scaling of pixels,
// the shape of a sample, and a compiled function with a program for each shape. A request checks
// its shape, scales its pixels and runs the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/context.h>
#include <tenon/nn.h>

#include "train/settings/resolved.h"

namespace tenon::train {

class Predictor {
 public:
  /// Predicts in the current context.
  Predictor(const nn::AnyModule& net, const ResolvedModel& model);
  /// As TrainedModel::predict(). Any number of threads may call it.
  Tensor operator()(const Tensor& inputs) const;

 private:
  std::int64_t views_of(const Tensor& inputs) const;
  bool takes(const Tensor& inputs) const;
  Tensor scaled(const Tensor& bytes) const;

  Context context_;
  std::string model_;  // for messages
  Shape sample_;
  bool takes_tokens_;
  std::int64_t classes_;
  std::vector<double> mean_, deviation_;  // for all pixels, or one for each channel
  CompiledFunction function_;
};

}  // namespace tenon::train
