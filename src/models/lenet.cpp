// LeNet-5 in its common modern form: full connections between feature maps, average pooling, a
// linear layer at the end.
#include "models/entry.h"

namespace tenon::models {
namespace {

using nn::Sequential;

nn::AnyModule lenet5(const std::string&, const Options& o) {
  const OptionalGenerator& g = o.generator;
  const nn::ParameterOptions drawn{.generator = g};
  return Sequential{nn::Conv2d(1, 6, 5, {.padding = 2}, drawn),
                    nn::Tanh(),
                    nn::AvgPool2d(2),  //
                    nn::Conv2d(6, 16, 5, {}, drawn),
                    nn::Tanh(),
                    nn::AvgPool2d(2),  //
                    nn::Conv2d(16, 120, 5, {}, drawn),
                    nn::Tanh(),
                    nn::Flatten(),  //
                    nn::Linear(120, 84, {.generator = g}),
                    nn::Tanh(),
                    nn::Linear(84, o.classes, {.generator = g})};
}

nn::AnyModule keras_cnn(const std::string&, const Options& o) {
  const OptionalGenerator& g = o.generator;
  const nn::ParameterOptions drawn{.generator = g};
  return Sequential{nn::Conv2d(1, 32, 3, {}, drawn),
                    nn::ReLU(),
                    nn::MaxPool2d(2),  //
                    nn::Conv2d(32, 64, 3, {}, drawn),
                    nn::ReLU(),
                    nn::MaxPool2d(2),  //
                    nn::Conv2d(64, 64, 3, {}, drawn),
                    nn::ReLU(),
                    nn::Flatten(),  //
                    nn::Linear(576, 64, {.generator = g}),
                    nn::ReLU(),
                    nn::Linear(64, o.classes, {.generator = g})};
}

std::string lenet5_toml(const std::string&, const Options&) {
  return R"(layers = [
  { conv2d = 6, kernel = 5, padding = 2 }, "tanh", { avg_pool2d = 2 },
  { conv2d = 16, kernel = 5 }, "tanh", { avg_pool2d = 2 },
  { conv2d = 120, kernel = 5 }, "tanh", "flatten",
  { linear = 84 }, "tanh",
  { linear = "classes" },
]
)";
}

std::string keras_cnn_toml(const std::string&, const Options&) {
  return R"(layers = [
  { conv2d = 32, kernel = 3 }, "relu", { max_pool2d = 2 },
  { conv2d = 64, kernel = 3 }, "relu", { max_pool2d = 2 },
  { conv2d = 64, kernel = 3 }, "relu", "flatten",
  { linear = 64 }, "relu",
  { linear = "classes" },
]
)";
}

// Found by search on MNIST, several seeds; docs/models.md has the figures.
Recipe recipe(int epochs, double lr) {
  return {.epochs = epochs, .lr = lr, .weight_decay = 5e-4, .warmup = 0.5};
}

}  // namespace

std::vector<Entry> lenet_entries() {
  return {{{"lenet5",
            "LeNet-5 with full connections: 3 convolutions, tanh, average pooling",
            {1, 28, 28},
            10,
            61'706,
            recipe(8, 0.1)},
           lenet5,
           nullptr,
           false,
           false,
           lenet5_toml},
          {{"keras_cnn",
            "the Keras tutorial's network: 3 convolutions, ReLU, max pooling",
            {1, 28, 28},
            10,
            93'322,
            recipe(3, 0.05)},
           keras_cnn,
           nullptr,
           false,
           false,
           keras_cnn_toml}};
}

}  // namespace tenon::models
