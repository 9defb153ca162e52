// Initializers. Formulas and names are those of PyTorch's torch.nn.init.
#include <array>
#include <cmath>

#include <tenon/error.h>
#include <tenon/nn.h>

#include "base/str.h"

namespace tenon::nn::init {
namespace {

double fan(const Shape& shape, FanMode mode) {
  const auto [in, out] = fans(shape);
  return static_cast<double>(mode == FanMode::In ? in : out);
}

// The bound of a uniform distribution with this standard deviation.
double bound(double stddev) { return std::sqrt(3.0) * stddev; }

// An empty weight has no elements to scale, so any finite number is right.
double safe_sqrt_ratio(double numerator, double denominator) {
  return denominator > 0 ? std::sqrt(numerator / denominator) : 0.0;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> fans(const Shape& weight) {
  if (weight.rank() < 2)
    throw ShapeError(
        cat("init: a weight of shape ", weight, " has no fan-in: it needs at least 2 axes"));
  std::int64_t field = 1;
  for (int axis = 2; axis < weight.rank(); ++axis) field *= weight[axis];
  return {weight[1] * field, weight[0] * field};
}

double gain(const std::string& nonlinearity, double a) {
  if (nonlinearity == "linear" || nonlinearity == "conv2d" || nonlinearity == "sigmoid") return 1.0;
  if (nonlinearity == "tanh") return 5.0 / 3.0;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1.0 + a * a));
  throw ValueError(cat("init::gain: '", nonlinearity,
                       "' is unknown: use linear, conv2d, sigmoid, tanh, relu or leaky_relu"));
}

Tensor constant(const Shape& shape, double value) { return full(shape, value); }

Tensor uniform(const Shape& shape, double low, double high, Generator* generator) {
  return rand(shape, DType::Float32, generator) * (high - low) + low;
}

Tensor normal(const Shape& shape, double mean, double stddev, Generator* generator) {
  return randn(shape, DType::Float32, generator) * stddev + mean;
}

Tensor xavier_uniform(const Shape& shape, double g, Generator* generator) {
  const auto [in, out] = fans(shape);
  const double limit = bound(g * safe_sqrt_ratio(2.0, static_cast<double>(in + out)));
  return uniform(shape, -limit, limit, generator);
}

Tensor xavier_normal(const Shape& shape, double g, Generator* generator) {
  const auto [in, out] = fans(shape);
  return normal(shape, 0, g * safe_sqrt_ratio(2.0, static_cast<double>(in + out)), generator);
}

Tensor kaiming_uniform(const Shape& shape, double a, FanMode mode, Generator* generator) {
  const double limit = bound(gain("leaky_relu", a) * safe_sqrt_ratio(1.0, fan(shape, mode)));
  return uniform(shape, -limit, limit, generator);
}

Tensor kaiming_normal(const Shape& shape, double a, FanMode mode, Generator* generator) {
  return normal(shape, 0, gain("leaky_relu", a) * safe_sqrt_ratio(1.0, fan(shape, mode)),
                generator);
}

Tensor lecun_normal(const Shape& shape, Generator* generator) {
  return normal(shape, 0, safe_sqrt_ratio(1.0, fan(shape, FanMode::In)), generator);
}

Tensor lecun_uniform(const Shape& shape, Generator* generator) {
  const double limit = bound(safe_sqrt_ratio(1.0, fan(shape, FanMode::In)));
  return uniform(shape, -limit, limit, generator);
}

Tensor by_name(const std::string& name, const Shape& shape, Generator* generator) {
  using Make = Tensor (*)(const Shape&, Generator*);
  static constexpr std::array<std::pair<const char*, Make>, 10> kTable{{
      {"zeros", [](const Shape& s, Generator*) { return constant(s, 0); }},
      {"ones", [](const Shape& s, Generator*) { return constant(s, 1); }},
      {"uniform", [](const Shape& s, Generator* g) { return uniform(s, 0, 1, g); }},
      {"normal", [](const Shape& s, Generator* g) { return normal(s, 0, 1, g); }},
      {"xavier_uniform", [](const Shape& s, Generator* g) { return xavier_uniform(s, 1, g); }},
      {"xavier_normal", [](const Shape& s, Generator* g) { return xavier_normal(s, 1, g); }},
      {"kaiming_uniform",
       [](const Shape& s, Generator* g) { return kaiming_uniform(s, 0, FanMode::In, g); }},
      {"kaiming_normal",
       [](const Shape& s, Generator* g) { return kaiming_normal(s, 0, FanMode::In, g); }},
      {"lecun_uniform", [](const Shape& s, Generator* g) { return lecun_uniform(s, g); }},
      {"lecun_normal", [](const Shape& s, Generator* g) { return lecun_normal(s, g); }},
  }};
  std::vector<std::string> names;
  for (const auto& [known, make] : kTable) {
    if (name == known) return make(shape, generator);
    names.emplace_back(known);
  }
  const std::string near = nearest(name, names.data(), static_cast<int>(names.size()));
  throw ValueError(cat("init: '", name, "' is not an initializer",
                       near.empty() ? "" : cat("; did you mean '", near, "'?")));
}

}  // namespace tenon::nn::init
