// Initializers. Formulas and names are those of PyTorch's torch.nn.init.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include <tenon/error.h>
#include <tenon/initializers.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/registrations.h"

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
    throw make_error<ShapeError>("init: a weight of shape ", weight,
                                 " has no fan-in: it needs at least 2 axes");
  std::int64_t field = 1;
  for (int axis = 2; axis < weight.rank(); ++axis) field *= weight[axis];
  return {weight[1] * field, weight[0] * field};
}

double gain(const std::string& nonlinearity, double a) {
  if (nonlinearity == "linear" || nonlinearity == "conv2d" || nonlinearity == "sigmoid") return 1.0;
  if (nonlinearity == "tanh") return 5.0 / 3.0;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1.0 + a * a));
  throw make_error<ValueError>(
      "init::gain: '", nonlinearity,
      "' is unknown: use linear, conv2d, sigmoid, tanh, relu or leaky_relu");
}

Tensor constant(const Shape& shape, double value) { return full(shape, value); }

Tensor uniform(const Shape& shape, double low, double high, const OptionalGenerator& generator) {
  return rand(shape, DType::Float32, generator) * (high - low) + low;
}

Tensor normal(const Shape& shape, double mean, double stddev, const OptionalGenerator& generator) {
  return randn(shape, DType::Float32, generator) * stddev + mean;
}

Tensor xavier_uniform(const Shape& shape, double g, const OptionalGenerator& generator) {
  const auto [in, out] = fans(shape);
  const double limit = bound(g * safe_sqrt_ratio(2.0, static_cast<double>(in + out)));
  return uniform(shape, -limit, limit, generator);
}

Tensor xavier_normal(const Shape& shape, double g, const OptionalGenerator& generator) {
  const auto [in, out] = fans(shape);
  return normal(shape, 0, g * safe_sqrt_ratio(2.0, static_cast<double>(in + out)), generator);
}

Tensor kaiming_uniform(const Shape& shape, double a, FanMode mode,
                       const OptionalGenerator& generator) {
  const double limit = bound(gain("leaky_relu", a) * safe_sqrt_ratio(1.0, fan(shape, mode)));
  return uniform(shape, -limit, limit, generator);
}

Tensor kaiming_normal(const Shape& shape, double a, FanMode mode,
                      const OptionalGenerator& generator) {
  return normal(shape, 0, gain("leaky_relu", a) * safe_sqrt_ratio(1.0, fan(shape, mode)),
                generator);
}

Tensor lecun_normal(const Shape& shape, const OptionalGenerator& generator) {
  return normal(shape, 0, safe_sqrt_ratio(1.0, fan(shape, FanMode::In)), generator);
}

Tensor lecun_uniform(const Shape& shape, const OptionalGenerator& generator) {
  const double limit = bound(safe_sqrt_ratio(1.0, fan(shape, FanMode::In)));
  return uniform(shape, -limit, limit, generator);
}

namespace {

struct Named {
  std::string name;
  Initializer make;
};

// Only grows, as a program adds initializers.
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  Initializer find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = position(name);
    return found == known_.end() ? Initializer() : found->make;
  }
  /// False if the name is taken.
  bool add(const std::string& name, Initializer make) {
    const std::lock_guard lock(mutex_);
    if (position(name) != known_.end()) return false;
    known_.push_back({name, std::move(make)});
    return true;
  }
  void remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [&](const Named& each) { return each.name == name; });
  }
  std::vector<std::string> names() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (const Named& each : known_) out.push_back(each.name);
    return out;
  }

 private:
  std::vector<Named>::const_iterator position(const std::string& name) const {
    return std::find_if(known_.begin(), known_.end(),
                        [&](const Named& each) { return each.name == name; });
  }
  mutable std::mutex mutex_;
  std::vector<Named> known_{
      {"zeros", [](const Shape& s, const OptionalGenerator&) { return constant(s, 0); }},
      {"ones", [](const Shape& s, const OptionalGenerator&) { return constant(s, 1); }},
      {"uniform", [](const Shape& s, const OptionalGenerator& g) { return uniform(s, 0, 1, g); }},
      {"normal", [](const Shape& s, const OptionalGenerator& g) { return normal(s, 0, 1, g); }},
      {"xavier_uniform",
       [](const Shape& s, const OptionalGenerator& g) { return xavier_uniform(s, 1, g); }},
      {"xavier_normal",
       [](const Shape& s, const OptionalGenerator& g) { return xavier_normal(s, 1, g); }},
      {"kaiming_uniform",
       [](const Shape& s, const OptionalGenerator& g) {
         return kaiming_uniform(s, 0, FanMode::In, g);
       }},
      {"kaiming_normal",
       [](const Shape& s, const OptionalGenerator& g) {
         return kaiming_normal(s, 0, FanMode::In, g);
       }},
      {"lecun_uniform", lecun_uniform},
      {"lecun_normal", lecun_normal},
  };
};

}  // namespace

Tensor by_name(const std::string& name, const Shape& shape, const OptionalGenerator& generator) {
  if (const Initializer make = Registry::instance().find(name)) return make(shape, generator);
  const std::vector<std::string> known = names();
  const std::string near = nearest(name, known.data(), static_cast<int>(known.size()));
  throw make_error<ValueError>("init: '", name, "' is not an initializer",
                               near.empty() ? "" : cat("; did you mean '", near, "'?"),
                               ". A program adds its own with register_initializer()");
}

void register_initializer(const std::string& name, Initializer initializer) {
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos ||
      name.empty())
    throw make_error<ValueError>("register_initializer: the name '", name,
                                 "' must be lower-case letters, digits and underscores");
  if (!initializer)
    throw make_error<ValueError>("register_initializer: the function of '", name, "' is empty");
  const std::string what = cat("initializer '", name, "'");
  if (!Registry::instance().add(name, std::move(initializer)))
    throw make_error<ValueError>("register_initializer: there is an ", what, owner_of(what),
                                 " already: choose another name");
  note_registration(what, [name] { Registry::instance().remove(name); });
}

std::vector<std::string> names() { return Registry::instance().names(); }

}  // namespace tenon::nn::init
