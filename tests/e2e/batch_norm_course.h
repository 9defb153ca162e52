// Fifty steps of batch norm compared with PyTorch's (batch_norm.safetensors), for tests of both
// devices and of each way to run a step.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tenon/eval.h>
#include <tenon/nn.h>
#include <tenon/optim.h>

#include "e2e/fixtures.h"

namespace batch_norm_course {

using namespace tenon;

/// A layer after a scale, as in make_fixtures.py.
struct Course {
  Course(nn::AnyModule norm, const fixtures::Tensors& tensors)
      : layer(std::move(norm)),
        stored(tensors),
        scale(variable(ones(row(row(stored.at("x"), 0), 0).shape()), "scale")),
        parameters(with(layer.trainable_parameters())),
        sgd(parameters, {.lr = 0.1}) {}

  static Tensor row(const Tensor& t, std::int64_t k) { return select(t, 0, k); }
  std::vector<Tensor> with(std::vector<Tensor> list) const {
    list.insert(list.begin(), scale);
    return list;
  }
  Tensor loss(const Tensor& x, const Tensor& target) const {
    return mse_loss(layer(x * scale), target);
  }

  void check(const std::vector<double>& losses) const {
    const std::vector<double> wanted = stored.at("losses").to_vector<double>();
    for (std::size_t k = 0; k < wanted.size(); ++k)
      CHECK(losses[k] == doctest::Approx(wanted[k]).epsilon(1e-4));
    CHECK(fixtures::distance(scale, stored.at("scale")) < 1e-5);
    const fixtures::Tensors held = fixtures::part(stored, "layer/");
    const StateDict state = layer.state_dict();
    CHECK(state.size() == held.size());
    for (const auto& [key, value] : held) {
      CAPTURE(key);
      CHECK(fixtures::distance(state.at(key), value) < 2e-5);
    }
    layer.eval();
    const Tensor first = layer(to(row(stored.at("x"), 0), scale.device()));
    CHECK(fixtures::distance(first, stored.at("evaluated")) < 2e-5);
  }

  nn::AnyModule layer;
  const fixtures::Tensors& stored;
  Tensor scale;
  std::vector<Tensor> parameters;
  optim::Sgd sgd;
};

inline nn::AnyModule layer(const std::string& name) {
  if (name == "1d") return nn::BatchNorm1d(4);
  if (name == "1d_cumulative") return nn::BatchNorm1d(3, {.momentum = {}});
  if (name == "2d") return nn::BatchNorm2d(3);
  if (name == "2d_plain")
    return nn::BatchNorm2d(3, {.eps = 1e-3, .momentum = 0.3, .affine = false});
  if (name == "2d_untracked") return nn::BatchNorm2d(2, {.track_running_stats = false});
  return nn::BatchNorm3d(2);
}

/// Runs the steps of each case with `step(course, x, target)`, which returns the loss.
inline void run(const std::function<double(Course&, const Tensor&, const Tensor&)>& step) {
  const auto cases = fixtures::load("batch_norm");
  CHECK(cases.size() == 6);
  for (const auto& entry : cases) {
    CAPTURE(entry.first);
    Course course(layer(entry.first), entry.second);
    std::vector<double> losses;
    const std::int64_t steps = entry.second.at("x").size(0);
    for (std::int64_t k = 0; k < steps; ++k) {
      const Device device = course.scale.device();
      const Tensor x = to(Course::row(entry.second.at("x"), k), device).eval();
      losses.push_back(
          step(course, x, to(Course::row(entry.second.at("target"), k), device).eval()));
    }
    course.check(losses);
  }
}

}  // namespace batch_norm_course
