// Networks of torchvision and Hugging Face with their weights and names: logits, gradients, and
// losses of ten steps compared with PyTorch (make_published_fixtures.py).
//
// Networks with few channels by default; with TENON_PUBLISHED=FOLDER the networks that the script's
// --full wrote to a folder, each with its weight file.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/models.h>
#include <tenon/optim.h>

#include "e2e/fixtures.h"

using namespace tenon;
using fixtures::distance;
using fixtures::part;
using fixtures::shape_of;
using fixtures::Tensors;
using fixtures::values;

namespace {

// The folder with the output of --full; nullptr: the small networks are compared.
const char* full_networks() { return std::getenv("TENON_PUBLISHED"); }

std::string folder() { return full_networks() != nullptr ? full_networks() : "tests/e2e/fixtures"; }

Tensors weights_of(const std::string& name, const Tensors& stored) {
  if (full_networks() != nullptr)
    return io::load_safetensors(folder() + "/" + name + ".weights.safetensors").tensors;
  Tensors out;
  for (const auto& [key, sizes] : part(stored, "shape/")) {
    const Shape shape = shape_of(sizes);
    out.emplace(key, key.ends_with("num_batches_tracked") ? zeros(shape, DType::Int64)
                                                          : values(key, shape));
  }
  return out;
}

Tensor input_of(const Tensors& stored) {
  const Tensor& given = stored.at("input");
  if (given.rank() > 1) return given;
  const Shape shape = shape_of(given);
  return reshape(values("input", {shape.numel()}) * 8, {shape.begin(), shape.end()}).eval();
}

/// Training mode except in dropout, whose random numbers differ from PyTorch's.
void train(const nn::AnyModule& net) {
  if (net.as<nn::Dropout>() != nullptr)
    net.eval();
  else if (net.children().empty())
    net.train();
  for (const auto& child : net.children()) train(child.second);
}

/// A gradient as the script stores it: its norm and some elements.
Tensor thinned(const Tensor& t) {
  const Tensor flat = flatten(t);
  const std::int64_t step = std::max<std::int64_t>(1, t.numel() / 16);
  return concat({reshape(sqrt(sum(square(flat))), {1}), slice(flat, 0, 0, t.numel(), step)}, 0);
}

/// |a - b| / |b|; for a gradient that is zero except for rounding (a bias before a batch norm),
/// relative to all gradients.
double difference(const Tensor& a, const Tensor& b, const Tensors& all) {
  if (a.shape() != b.shape()) return INFINITY;
  double squares = 0;
  for (const auto& entry : all) squares += std::pow(fixtures::numbers(entry.second)[0], 2);
  const double total = std::sqrt(squares);
  if (fixtures::numbers(b)[0] > 1e-9 * total) return distance(a, b);
  return sqrt(sum(square(a - b))).item() / total;
}

std::unique_ptr<optim::Optimizer> recipe(const nn::AnyModule& net, bool tokens) {
  if (tokens)
    return std::make_unique<optim::AdamW>(net,
                                          optim::AdamWOptions{.lr = 1e-3, .weight_decay = 0.1});
  return std::make_unique<optim::Sgd>(
      net, optim::SgdOptions{.lr = 3e-4, .momentum = 0.9, .weight_decay = 1e-4});
}

/// The largest relative differences from PyTorch.
struct Differences {
  double logits = 0, grad = 0, losses = 0, trained = 0;
};

Differences compare(const std::string& name, const Tensors& stored) {
  const bool tokens = stored.at("input").rank() > 1;
  const Tensor& logits = stored.at("logits");
  const nn::AnyModule net = models::create(name, {.classes = logits.size(logits.rank() - 1)});
  const Tensors weights = weights_of(name, stored);
  CHECK(net.load_state_dict(weights) == static_cast<int>(weights.size()));
  const Tensor x = input_of(stored), y = flatten(stored.at("y"));
  const auto loss = [&] {
    const Tensor scores = net(x);
    return cross_entropy(reshape(scores, {y.numel(), scores.size(scores.rank() - 1)}), y,
                         ClassLossOptions{.ignore_index = -100});  // ignored positions
  };
  Differences out;
  net.eval();
  out.logits = distance(net(x), logits);

  // Running statistics are restored after the forward pass, so the steps start from the file's.
  train(net);
  const auto parameters = net.named_parameters();
  const std::vector<Tensor> grads = grad(loss(), net.parameters());
  std::vector<Tensor> found;
  for (const Tensor& g : grads) found.push_back(thinned(g));
  eval(found);
  const Tensors expected = part(stored, "grad/");
  CHECK(found.size() == expected.size());
  for (std::size_t k = 0; k < found.size(); ++k)
    out.grad = std::max(out.grad, difference(found[k], expected.at(parameters[k].name), expected));
  net.load_state_dict(weights);

  const auto optimizer = recipe(net, tokens);
  for (const double value : fixtures::numbers(stored.at("losses")))
    out.losses =
        std::max(out.losses, std::fabs(optimizer->step(loss()) - value) / std::fabs(value));
  net.eval();
  out.trained = distance(net(x), stored.at("trained"));
  return out;
}

}  // namespace

TEST_CASE("fixtures: published networks with their weights equal PyTorch") {
  for (const auto& entry : fixtures::load("published", folder())) {
    const std::string& name = entry.first;
    const Tensors& stored = entry.second;
    CAPTURE(name);
    const Differences d = compare(name, stored);
    if (full_networks() != nullptr)
      MESSAGE(name << ": logits " << d.logits << ", gradients " << d.grad << ", ten losses "
                   << d.losses << ", logits after them " << d.trained);
    // Four times the difference of PyTorch's float32 from its float64, with a lower limit.
    const auto allowed = [&](const char* kind, double least) {
      return std::max(least, 4 * stored.at(std::string("rounding/") + kind).item());
    };
    CHECK(d.logits < allowed("logits", 2e-6));
    CHECK(d.grad < allowed("grad", 2e-5));
    CHECK(d.losses < allowed("losses", 1e-4));
    CHECK(d.trained < allowed("trained", 1e-3));
  }
}
