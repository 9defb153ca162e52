// GPT-2's linear layer.
#include "models/conv1d.h"

#include <cmath>

#include <tenon/functional.h>

#include "base/str.h"

namespace tenon::models {

Conv1D::Conv1D(std::int64_t in, std::int64_t out, bool bias,
               const std::function<Tensor(const Shape&, Generator*)>& init, Generator* generator) {
  const double limit = 1 / std::sqrt(static_cast<double>(in));
  weight_ = parameter("weight", init ? init({in, out}, generator)
                                     : nn::init::uniform({in, out}, -limit, limit, generator));
  if (bias) bias_ = parameter("bias", zeros({out}));
}

Tensor Conv1D::forward(const Tensor& x) const {
  const Tensor y = matmul(x, weight_);
  return bias_.defined() ? y + bias_ : y;
}

std::string Conv1D::describe() const {
  return cat("Conv1D(", weight_.size(0), ", ", weight_.size(1),
             bias_.defined() ? ")" : ", bias=false)");
}

}  // namespace tenon::models
