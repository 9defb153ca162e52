// Functions that the update rules share.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <tenon/ops.h>
#include <tenon/optim.h>

#include "base/system/option_ranges.h"

namespace tenon::optim {

constexpr double kMostEps = 1e30;  ///< upper limit of eps and mu, which stay finite in float32
constexpr Range kEps = from_to(0, kMostEps);
/// With a decay of 1 a mean would never change, and its bias correction would divide by 0.
constexpr Range kDecay = from_below(0, 1);

inline Tensor uphill(const Tensor& grad, bool maximize) { return maximize ? -grad : grad; }

/// The gradient with weight decay as an L2 penalty.
inline Tensor decayed(const Tensor& grad, const Tensor& p, double weight_decay) {
  return weight_decay == 0 ? grad : grad + p * weight_decay;
}

/// The parameter after decoupled weight decay.
inline Tensor shrunk(const Tensor& p, const Tensor& lr, double weight_decay) {
  return weight_decay == 0 ? p : p * (1 - lr * weight_decay);
}

/// A float64 scalar of the step count in the parameter's data type.
inline Tensor like(const Tensor& number, const Tensor& p) { return cast(number, p.dtype()); }

/// lr / divisor with the digits of the float64 divisor.
inline Tensor divided(const Tensor& lr, const Tensor& divisor) {
  return like(cast(lr, DType::Float64) / divisor, lr);
}

/// The running mean after a new value with weight 1 - beta.
inline Tensor averaged(const Tensor& mean, const Tensor& value, double beta) {
  return mean + (value - mean) * (1 - beta);
}
inline Tensor averaged_square(const Tensor& mean, const Tensor& value, double beta) {
  return mean * beta + square(value) * (1 - beta);
}

/// Throws ValueError if a group has a weight decay, which the optimizer does not have.
void require_no_decay(const char* optimizer, const std::vector<ParameterGroup>& groups,
                      const char* reason);

/// An option for described(), left out if it has its default. A flag has no value.
struct OptionText {
  OptionText(const char* label, double now, double usual)
      : name(label), value(now), standard(usual) {}
  OptionText(const char* label, bool is_on) : name(label), value(is_on ? 1 : 0), is_flag(true) {}
  const char* name;
  double value, standard = 0;
  bool is_flag = false;
};
/// "sgd(lr=0.1, momentum=0.9, nesterov)"
std::string described(const char* name, double lr, std::initializer_list<OptionText> options);

}  // namespace tenon::optim
