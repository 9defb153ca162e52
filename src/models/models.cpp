// The networks that Tenon knows by name: one plain table, a builder each.
//
// Names of parameters are those of the same nn.Sequential in PyTorch, so that its .safetensors
// files load without a mapping.
#include <tenon/models.h>

#include <charconv>
#include <cmath>
#include <functional>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::models {
namespace {

using nn::AnyModule;
using nn::Sequential;

constexpr char kMlpDefault[] = "784-512-256-10";
constexpr std::int64_t kLargestLayer = 1 << 24;

// A perceptron takes inputs of any shape: all axes but the first are laid in a row. It is no layer
// of its own, lest the numbers in the parameters' names move.
class Mlp : public Sequential {
 public:
  using Sequential::Sequential;
  Tensor forward(const Tensor& x) const override {
    return Sequential::forward(x.rank() > 2 ? flatten(x, 1) : x);
  }
  std::string describe() const override { return "Mlp"; }
};

AnyModule lenet5(const std::string&, const Options& o) {
  Generator* g = o.generator;
  const nn::Conv2dOptions same{.padding = 2, .generator = g}, valid{.generator = g};
  return Sequential(nn::Conv2d(1, 6, 5, same), nn::Tanh(), nn::AvgPool2d(2),    //
                    nn::Conv2d(6, 16, 5, valid), nn::Tanh(), nn::AvgPool2d(2),  //
                    nn::Conv2d(16, 120, 5, valid), nn::Tanh(), nn::Flatten(),   //
                    nn::Linear(120, 84, {.generator = g}), nn::Tanh(),
                    nn::Linear(84, o.classes, {.generator = g}));
}

AnyModule keras_cnn(const std::string&, const Options& o) {
  Generator* g = o.generator;
  const nn::Conv2dOptions valid{.generator = g};
  return Sequential(nn::Conv2d(1, 32, 3, valid), nn::ReLU(), nn::MaxPool2d(2),   //
                    nn::Conv2d(32, 64, 3, valid), nn::ReLU(), nn::MaxPool2d(2),  //
                    nn::Conv2d(64, 64, 3, valid), nn::ReLU(), nn::Flatten(),     //
                    nn::Linear(576, 64, {.generator = g}), nn::ReLU(),
                    nn::Linear(64, o.classes, {.generator = g}));
}

std::vector<std::int64_t> sizes_of(const std::string& text) {
  std::vector<std::int64_t> sizes;
  const char *at = text.data(), *end = at + text.size();
  for (;;) {
    std::int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 1 || size > kLargestLayer || (next != end && *next != '-'))
      throw ValueError(cat("model 'mlp:", text, "': the sizes are numbers from 1 to ",
                           kLargestLayer, " joined with '-', as in mlp:784-300-10"));
    sizes.push_back(size);
    if (next == end) break;
    at = next + 1;
  }
  if (sizes.size() < 2)
    throw ValueError(
        cat("model 'mlp:", text, "': at least an input and an output size are needed"));
  return sizes;
}

using Draw = std::function<Tensor(const Shape&, Generator*)>;

std::vector<AnyModule> perceptron(const std::vector<std::int64_t>& sizes,
                                  const std::string& activation, Generator* g,
                                  const Draw& weights = {}) {
  std::vector<AnyModule> layers;
  for (std::size_t k = 0; k + 1 < sizes.size(); ++k) {
    if (k > 0) layers.push_back(nn::activation(activation));
    layers.emplace_back(
        nn::Linear(sizes[k], sizes[k + 1], {.generator = g, .weight_init = weights}));
  }
  return layers;
}

AnyModule mlp(const std::string& sizes, const Options& o) {
  std::vector<std::int64_t> layers = sizes_of(sizes.empty() ? kMlpDefault : sizes);
  if (sizes.empty()) layers.back() = o.classes;
  return Mlp(perceptron(layers, o.activation.empty() ? "relu" : o.activation, o.generator));
}

// Four layers of sigmoids do not learn from PyTorch's default values: a sigmoid's slope is at most
// 1/4, so signals and gradients fade. Xavier's values scaled by 4 make up for the slope (Glorot and
// Bengio, 2010).
AnyModule fcn_r(const std::string&, const Options& o) {
  const auto draw = [classes = o.classes](const Shape& weight, Generator* g) {
    return nn::init::xavier_normal(weight, weight[0] == classes ? 1.0 : 4.0, g);
  };
  Mlp net(perceptron({784, 2048, 4096, 1024, o.classes}, "sigmoid", o.generator, draw));
  for (const nn::NamedTensor& p : net.named_parameters())
    if (p.tensor.rank() == 1) set_value(p.tensor, zeros_like(p.tensor));
  return net;
}

struct Entry {
  const char* name;
  const char* about;
  AnyModule (*build)(const std::string& sizes, const Options& options);
  Shape input;
  std::int64_t parameters;
  Recipe recipe;
  bool takes_sizes = false, takes_activation = false;
};

Recipe sgd(int epochs, double lr) {
  return {.epochs = epochs, .lr = lr, .weight_decay = 5e-4, .warmup = 0.5};
}

Recipe adam(int epochs, std::int64_t batch, double lr) {
  return {.epochs = epochs,
          .batch = batch,
          .optimizer = "adam",
          .lr = lr,
          .momentum = 0,
          .warmup = 0.5};
}

// The recipes were found by search on MNIST, several seeds each; docs/models.md has the figures.
const std::vector<Entry>& table() {
  static const std::vector<Entry> entries = {
      {"lenet5",
       "LeNet-5 with full connections: 3 convolutions, tanh, average pooling",
       lenet5,
       {1, 28, 28},
       61706,
       sgd(8, 0.1)},
      {"keras_cnn",
       "the Keras tutorial's network: 3 convolutions, ReLU, max pooling",
       keras_cnn,
       {1, 28, 28},
       93322,
       sgd(3, 0.05)},
      {"mlp",
       "fully connected layers; mlp:784-300-10 gives the sizes",
       mlp,
       {784},
       535818,
       sgd(8, 0.05),
       true,
       true},
      {"fcn_r",
       "784-2048-4096-1024-10 with sigmoids, the FCN-R of the 2017 benchmark",
       fcn_r,
       {784},
       14205962,
       adam(5, 256, 0.0015)},
  };
  return entries;
}

struct Choice {
  const Entry* entry;
  std::string sizes;
};

Choice choose(const std::string& name) {
  const std::size_t colon = name.find(':');
  const std::string stem = name.substr(0, colon);
  std::vector<std::string> names;
  for (const Entry& entry : table()) {
    names.emplace_back(entry.name);
    if (stem != entry.name) continue;
    if (colon != std::string::npos && !entry.takes_sizes)
      throw ValueError(cat("model '", name, "': ", stem, " has fixed sizes; write '", stem,
                           "', or mlp:784-300-10"));
    if (colon != std::string::npos && colon + 1 == name.size())
      throw ValueError(
          cat("model '", name, "': sizes are missing after the colon, as in mlp:784-300-10"));
    return {&entry, colon == std::string::npos ? "" : name.substr(colon + 1)};
  }
  const std::string near = nearest(stem, names.data(), static_cast<int>(names.size()));
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
  throw ValueError(cat("there is no model '", name, "'",
                       near.empty() ? "" : cat("; did you mean '", near, "'?"), " (", all, ")"));
}

Info describe(const Choice& choice) {
  const Entry& e = *choice.entry;
  Info out{e.name, e.about, e.input, e.parameters, e.recipe};
  if (choice.sizes.empty()) return out;
  const std::vector<std::int64_t> sizes = sizes_of(choice.sizes);
  out.name = cat(e.name, ":", choice.sizes);
  out.input = {sizes.front()};
  out.parameters = 0;
  for (std::size_t k = 0; k + 1 < sizes.size(); ++k)
    out.parameters += (sizes[k] + 1) * sizes[k + 1];
  return out;
}

}  // namespace

AnyModule create(const std::string& name, const Options& options) {
  const Choice choice = choose(name);
  if (options.classes < 1)
    throw ValueError(
        cat("model '", name, "': ", options.classes, " classes; at least 1 is needed"));
  if (!options.activation.empty() && !choice.entry->takes_activation)
    throw ValueError(cat("model '", name, "' has its own activations: leave 'activation' out"));
  return choice.entry->build(choice.sizes, options);
}

Info info(const std::string& name) { return describe(choose(name)); }

std::vector<Info> list() {
  std::vector<Info> out;
  for (const Entry& entry : table()) out.push_back(describe({&entry, ""}));
  return out;
}

}  // namespace tenon::models
