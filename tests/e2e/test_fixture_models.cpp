// The example networks against PyTorch: activations, gradients, ten steps of training, bfloat16.
#include <memory>

#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/models.h>
#include <tenon/optim.h>

#include "e2e/fixtures.h"

using namespace tenon;
using fixtures::distance;
using fixtures::part;
using fixtures::Tensors;

namespace {

const std::map<std::string, std::string> kModels = {
    {"lenet5", "lenet5"}, {"keras_cnn", "keras_cnn"}, {"mlp", "mlp:784-23-17-10"}};

/// The model of a fixture with the stored weights, which may have another dtype.
nn::AnyModule load_model(const std::string& name, const Tensors& stored) {
  models::Options options;
  if (name == "mlp") options.activation = "sigmoid";
  nn::AnyModule net = models::create(kModels.at(name), options);
  const auto weights = part(stored, "weights/");
  CHECK(net.load_state_dict(weights) == static_cast<int>(weights.size()));
  return net;
}

/// All of a small tensor, every seventh element of a large one, as make_fixtures.py stores
/// gradients.
Tensor thinned(const Tensor& t) {
  const Tensor flat = flatten(t);
  return t.numel() > 10000 ? slice(flat, 0, 0, t.numel(), 7) : flat;
}

std::unique_ptr<optim::Optimizer> recipe(const std::string& name, const nn::Module& net) {
  optim::RmsPropOptions rmsprop;
  rmsprop.lr = 3e-4;
  if (name == "sgd")
    return std::make_unique<optim::Sgd>(net, optim::SgdOptions{.lr = 0.05, .momentum = 0.9});
  if (name == "adam") return std::make_unique<optim::Adam>(net, optim::AdamOptions{.lr = 1e-3});
  if (name == "adamw")
    return std::make_unique<optim::AdamW>(net,
                                          optim::AdamWOptions{.lr = 1e-3, .weight_decay = 0.05});
  return std::make_unique<optim::RmsProp>(net, rmsprop);
}

}  // namespace

TEST_CASE("fixtures: networks give PyTorch's activations, loss and gradients") {
  const auto stored = fixtures::load("models");
  for (const auto& entry : stored) {
    const auto& name = entry.first;
    const auto& tensors = entry.second;
    CAPTURE(name);
    const nn::AnyModule net = load_model(name, tensors);
    std::map<std::string, Tensor> seen;
    Tensor logits;
    {
      const nn::CallObserver observer(
          [&](const std::string& path, const nn::ModuleBase&, std::span<const Tensor>,
              std::span<const Tensor> output) { seen.insert_or_assign(path, output[0]); });
      logits = net(tensors.at("x"));
    }
    const auto activations = part(tensors, "activation/");
    for (const auto& layer_entry : activations) {
      const auto& layer = layer_entry.first;
      const auto& value = layer_entry.second;
      CAPTURE(layer);
      REQUIRE(seen.count(layer) == 1);
      CHECK(distance(seen.at(layer), value) < 3e-6);
    }
    const Tensor loss = cross_entropy(logits, tensors.at("y"));
    CHECK(loss.item() == doctest::Approx(tensors.at("loss").item()).epsilon(2e-6));
    const auto parameters = net.named_parameters();
    const std::vector<Tensor> grads =
        grad(cross_entropy(net(tensors.at("x")), tensors.at("y")), net.parameters());
    for (std::size_t k = 0; k < grads.size(); ++k) {
      CAPTURE(parameters[k].name);
      CHECK(distance(thinned(grads[k]), tensors.at("grad/" + parameters[k].name)) < 1e-5);
    }
  }
}

TEST_CASE("fixtures: ten steps of training follow PyTorch's losses") {
  for (const auto& entry : fixtures::load("models")) {
    const auto& name = entry.first;
    const auto& tensors = entry.second;
    CAPTURE(name);
    for (const auto& optimizer_name_entry : part(tensors, "losses/")) {
      const auto& optimizer_name = optimizer_name_entry.first;
      const auto& curve = optimizer_name_entry.second;
      CAPTURE(optimizer_name);
      const nn::AnyModule net = load_model(name, tensors);
      const auto optimizer = recipe(optimizer_name, net);
      for (const double expected : fixtures::numbers(curve)) {
        const double loss = optimizer->step(cross_entropy(net(tensors.at("x")), tensors.at("y")));
        CHECK(loss == doctest::Approx(expected).epsilon(2e-4));
      }
      const Tensor last = net.named_parameters()[net.named_parameters().size() - 2].tensor;
      CHECK(distance(last, tensors.at("trained/" + optimizer_name)) < 1e-4);
    }
  }
}

TEST_CASE("fixtures: bfloat16 products are as close to float64 as PyTorch's autocast") {
  for (const auto& entry : fixtures::load("models")) {
    const auto& name = entry.first;
    const auto& tensors = entry.second;
    CAPTURE(name);
    const nn::AnyModule net = load_model(name, tensors);
    const auto allowed = part(tensors, "autocast_error/");
    set_precision(Precision::Bf16);
    const Tensor logits = net(tensors.at("x"));
    const std::vector<Tensor> grads =
        grad(cross_entropy(logits, tensors.at("y")), net.parameters());
    std::vector<Tensor> all = grads;
    all.push_back(logits);
    eval(all);
    set_precision(Precision::Fp32);
    const auto parameters = net.named_parameters();
    double worst = 0;
    for (std::size_t k = 0; k < grads.size(); ++k) {
      CAPTURE(parameters[k].name);
      const double error = distance(thinned(grads[k]), tensors.at("grad/" + parameters[k].name));
      CHECK(error <= 1.5 * allowed.at(parameters[k].name).item());
      worst = std::max(worst, error);
    }
    CHECK_MESSAGE(worst > 1e-4, "bfloat16 was asked for but float32 was used");
    CHECK(worst < 0.1);
  }
}
