// AlexNet: as published in 2012, as torchvision has it, and the two of the 2017 benchmark of
// deep-learning tools (Shi et al., arXiv 1608.07249).
//
// Krizhevsky, Sutskever and Hinton, "ImageNet classification with deep convolutional neural
// networks", 2012. Parameters are named as torchvision's: features.N and classifier.N.
#include <algorithm>

#include "base/str.h"
#include "models/entry.h"

namespace tenon::models {
namespace {

using nn::AdaptiveAvgPool2d;
using nn::AnyModule;
using nn::Conv2d;
using nn::Dropout;
using nn::Flatten;
using nn::Linear;
using nn::MaxPool2d;
using nn::Module;
using nn::ReLU;
using nn::Sequential;

const nn::PoolOptions kOverlapping{.stride = 2};  // windows of 3

class AlexNet : public Module {
 public:
  AlexNet(const char* kind, const Sequential& features, const Sequential& classifier)
      : kind_(kind),
        features_(child("features", features)),
        avgpool_(child("avgpool", AdaptiveAvgPool2d(6))),
        classifier_(child("classifier", classifier)) {}
  Tensor forward(const Tensor& x) const override {
    return classifier_(flatten(avgpool_(features_(x)), 1));
  }
  std::string describe() const override { return kind_; }

 private:
  const char* kind_;
  Sequential features_;
  AdaptiveAvgPool2d avgpool_;
  Sequential classifier_;
};

AnyModule alexnet(const std::string& sizes, const Options& o) {
  const OptionalGenerator& g = o.generator;
  const std::int64_t w = width_of("alexnet", sizes, 64), hidden = 64 * w;
  const Conv2dOptions three{.padding = 1};
  const nn::ParameterOptions drawn{.generator = g};
  const auto features = [&] {
    return Sequential{Conv2d(3, w, 11, {.stride = 4, .padding = 2}, drawn),
                      ReLU(),
                      MaxPool2d(3, kOverlapping),  //
                      Conv2d(w, 3 * w, 5, {.padding = 2}, drawn),
                      ReLU(),
                      MaxPool2d(3, kOverlapping),  //
                      Conv2d(3 * w, 6 * w, 3, three, drawn),
                      ReLU(),  //
                      Conv2d(6 * w, 4 * w, 3, three, drawn),
                      ReLU(),  //
                      Conv2d(4 * w, 4 * w, 3, three, drawn),
                      ReLU(),
                      MaxPool2d(3, kOverlapping)};
  };
  if (!o.head.empty()) return AlexNet{"AlexNet", features(), head_of(4 * w * 6 * 6, o)};
  return AlexNet{
      "AlexNet", features(),
      Sequential{Dropout(0.5, g), Linear(4 * w * 6 * 6, hidden, {.generator = g}), ReLU(),  //
                 Dropout(0.5, g), Linear(hidden, hidden, {.generator = g}), ReLU(),         //
                 Linear(hidden, o.classes, {.generator = g})}};
}

// Of a network whose first layer has `width` maps instead of 96: the others in proportion, even,
// for groups of two.
class Maps {
 public:
  explicit Maps(std::int64_t width) : width_(width) {}
  std::int64_t operator()(std::int64_t published) const {
    return 2 * std::max<std::int64_t>(1, published * width_ / 192);
  }

 private:
  std::int64_t width_;
};

// The benchmark's: one column, without local response normalisation and without dropout.
AnyModule alexnet_s(const std::string& sizes, const Options& o) {
  const OptionalGenerator& g = o.generator;
  const Maps maps(width_of("alexnet_s", sizes, 96));
  const Conv2dOptions three{.padding = 1};
  const nn::ParameterOptions drawn{.generator = g};
  return AlexNet{
      "AlexNet-S",
      Sequential{Conv2d(3, maps(96), 11, {.stride = 4, .padding = 2}, drawn), ReLU(),
                 MaxPool2d(3, kOverlapping),  //
                 Conv2d(maps(96), maps(256), 5, {.padding = 2}, drawn), ReLU(),
                 MaxPool2d(3, kOverlapping),                             //
                 Conv2d(maps(256), maps(384), 3, three, drawn), ReLU(),  //
                 Conv2d(maps(384), maps(384), 3, three, drawn), ReLU(),  //
                 Conv2d(maps(384), maps(256), 3, three, drawn), ReLU(), MaxPool2d(3, kOverlapping)},
      Sequential{Linear(maps(256) * 6 * 6, maps(4096), {.generator = g}), ReLU(),
                 Linear(maps(4096), maps(4096), {.generator = g}), ReLU(),
                 Linear(maps(4096), o.classes, {.generator = g})}};
}

// The paper's network. Groups of 2 stand where each of its two GPUs read only its own maps; its
// alpha multiplies the plain sum of 5 squares, PyTorch's their mean. Weights begin as N(0, 0.01),
// biases at 1 in the second, fourth and fifth convolution and the hidden linear layers (so that
// rectifiers start with positive inputs), elsewhere at 0.
AnyModule alexnet_2012(const std::string& sizes, const Options& o) {
  const OptionalGenerator& g = o.generator;
  const Maps maps(width_of("alexnet_2012", sizes, 96));
  const auto draw = [](const Shape& weight, const OptionalGenerator& generator) {
    return nn::init::normal(weight, 0, 0.01, generator);
  };
  const auto conv = [&](std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t groups,
                        std::int64_t stride, std::int64_t padding) {
    return Conv2d(in, out, kernel, {.stride = stride, .padding = padding, .groups = groups},
                  {.generator = g, .weight_init = draw});
  };
  const auto linear = [&](std::int64_t in, std::int64_t out) {
    return Linear(in, out, {.generator = g, .weight_init = draw});
  };
  const nn::LocalResponseNorm norm(5, {.alpha = 5e-4, .beta = 0.75, .k = 2});
  AlexNet net{
      "AlexNet (2012)",
      Sequential{conv(3, maps(96), 11, 1, 4, 0), ReLU(), norm, MaxPool2d(3, kOverlapping),  //
                 conv(maps(96), maps(256), 5, 2, 1, 2), ReLU(), norm,
                 MaxPool2d(3, kOverlapping),                      //
                 conv(maps(256), maps(384), 3, 1, 1, 1), ReLU(),  //
                 conv(maps(384), maps(384), 3, 2, 1, 1), ReLU(),  //
                 conv(maps(384), maps(256), 3, 2, 1, 1), ReLU(), MaxPool2d(3, kOverlapping)},
      Sequential{linear(maps(256) * 6 * 6, maps(4096)), ReLU(), Dropout(0.5, g),  //
                 linear(maps(4096), maps(4096)), ReLU(), Dropout(0.5, g),         //
                 linear(maps(4096), o.classes)}};
  for (const auto& [name, value] : net.named_parameters()) {
    if (value.rank() != 1) continue;
    const bool one = name == "features.4.bias" || name == "features.10.bias" ||
                     name == "features.12.bias" || name == "classifier.0.bias" ||
                     name == "classifier.3.bias";
    set_value(value, full(value.shape(), one ? 1.0 : 0.0));
  }
  return net;
}

// cuda-convnet's "layers-18pct" without normalisation.
AnyModule alexnet_r(const std::string&, const Options& o) {
  const OptionalGenerator& g = o.generator;
  const Conv2dOptions same{.padding = 2};
  const nn::ParameterOptions drawn;
  return Sequential{Conv2d(3, 32, 5, same, drawn),
                    MaxPool2d(3, kOverlapping),
                    ReLU(),  //
                    Conv2d(32, 32, 5, same, drawn),
                    ReLU(),
                    MaxPool2d(3, kOverlapping),  //
                    Conv2d(32, 64, 5, same, drawn),
                    ReLU(),
                    nn::AvgPool2d(3, kOverlapping),  //
                    Flatten(),
                    Linear(576, o.classes, {.generator = g})};
}

// Layers between those of `features` and of `classifier`, one a line.
std::string alexnet_layers_toml(const std::string& features, const std::string& classifier) {
  return cat("layers = [\n  { sequence = [\n", features,
             "  ], name = \"features\" },\n"
             "  { adaptive_avg_pool2d = 6, name = \"avgpool\" }, \"flatten\",\n"
             "  { sequence = [\n",
             classifier, "  ], name = \"classifier\" },\n]\n");
}

std::string alexnet_toml(const std::string& sizes, const Options& o) {
  return cat("variables = { width = ", width_of("alexnet", sizes, 64), " }\n") +
         alexnet_layers_toml(
             R"(    { conv2d = "width", kernel = 11, stride = 4, padding = 2 }, "relu",
    { max_pool2d = 3, stride = 2 },
    { conv2d = "3 * width", kernel = 5, padding = 2 }, "relu",
    { max_pool2d = 3, stride = 2 },
    { conv2d = "6 * width", kernel = 3, padding = 1 }, "relu",
    { conv2d = "4 * width", kernel = 3, padding = 1 }, "relu",
    { conv2d = "4 * width", kernel = 3, padding = 1 }, "relu",
    { max_pool2d = 3, stride = 2 },
)",
             !o.head.empty() ? head_toml(o, "    ") :
                             R"(    { dropout = 0.5 }, { linear = "64 * width" }, "relu",
    { dropout = 0.5 }, { linear = "64 * width" }, "relu",
    { linear = "classes" },
)");
}

std::string alexnet_s_toml(const std::string& sizes, const Options&) {
  const Maps maps(width_of("alexnet_s", sizes, 96));
  const auto conv = [&](std::int64_t out, const char* rest) {
    return cat("    { conv2d = ", maps(out), ", ", rest, " }, \"relu\",\n");
  };
  const std::string pool = "    { max_pool2d = 3, stride = 2 },\n",
                    three = "kernel = 3, padding = 1",
                    hidden = cat("    { linear = ", maps(4096), " }, \"relu\",\n");
  return alexnet_layers_toml(conv(96, "kernel = 11, stride = 4, padding = 2") + pool +
                                 conv(256, "kernel = 5, padding = 2") + pool +
                                 conv(384, three.c_str()) + conv(384, three.c_str()) +
                                 conv(256, three.c_str()) + pool,
                             hidden + hidden + "    { linear = \"classes\" },\n");
}

std::string alexnet_2012_toml(const std::string& sizes, const Options&) {
  const Maps maps(width_of("alexnet_2012", sizes, 96));
  const auto drawn = [](int bias) {
    return cat(", init = { normal = 0.01 }, bias_init = ", bias, " }");
  };
  const auto conv = [&](std::int64_t out, const char* rest, int bias) {
    return cat("    { conv2d = ", maps(out), ", ", rest, drawn(bias), ", \"relu\",\n");
  };
  const std::string norm = "    { local_response_norm = 5, alpha = 5e-4, beta = 0.75, k = 2 },\n",
                    pool = "    { max_pool2d = 3, stride = 2 },\n",
                    hidden = cat("    { linear = ", maps(4096), drawn(1),
                                 ", \"relu\", { dropout = 0.5 },\n");
  return alexnet_layers_toml(conv(96, "kernel = 11, stride = 4", 0) + norm + pool +
                                 conv(256, "kernel = 5, padding = 2, groups = 2", 1) + norm + pool +
                                 conv(384, "kernel = 3, padding = 1", 0) +
                                 conv(384, "kernel = 3, padding = 1, groups = 2", 1) +
                                 conv(256, "kernel = 3, padding = 1, groups = 2", 1) + pool,
                             hidden + hidden + "    { linear = \"classes\"" + drawn(0) + ",\n");
}

std::string alexnet_r_toml(const std::string&, const Options&) {
  return R"(layers = [
  { conv2d = 32, kernel = 5, padding = 2 }, { max_pool2d = 3, stride = 2 }, "relu",
  { conv2d = 32, kernel = 5, padding = 2 }, "relu", { max_pool2d = 3, stride = 2 },
  { conv2d = 64, kernel = 5, padding = 2 }, "relu", { avg_pool2d = 3, stride = 2 },
  "flatten",
  { linear = "classes" },
]
)";
}

// The paper's: v = 0.9 v - 0.0005 e w - e g, batches of 128, rates divided by 10 three times.
Recipe published(const char* data) {
  return {.epochs = 90,
          .batch = 128,
          .lr = 0.01,
          .momentum = 0.9,
          .weight_decay = 5e-4,
          .schedule = "multistep",
          .milestones = "30,60,80",
          .warmup = 0,
          .data = data,
          .input_mean = 0.45,
          .input_std = 0.25};
}

// Pixels from 0 to 255 less their mean, for which its initial values, a deviation of 0.01
// everywhere, are made: of pixels divided by their deviation it learns nothing.
Recipe of_raw_pixels(Recipe recipe) {
  recipe.input_std = 1.0 / 255;
  recipe.normalize = "none";
  return recipe;
}

}  // namespace

std::vector<Entry> alexnet_entries() {
  const Recipe benchmark{.epochs = 1,
                         .batch = 16,
                         .lr = 0.01,
                         .momentum = 0,
                         .schedule = "constant",
                         .warmup = 0,
                         .data = "scenes:2000,500,size=224",
                         .input_mean = 0.45,
                         .input_std = 0.25};
  const Recipe cifar{.epochs = 40,
                     .batch = 128,
                     .lr = 0.01,
                     .data = "scenes",
                     .input_mean = 0.45,
                     .input_std = 0.25};
  return {{{"alexnet",
            "AlexNet as torchvision has it: one column, no normalization",
            {3, 224, 224},
            1000,
            61'100'840,
            published("scenes:2000,500,size=224")},
           alexnet,
           of_width<alexnet>,
           false,
           true,
           alexnet_toml},
          {{"alexnet_2012",
            "AlexNet as published: groups, response normalization, overlapping pooling, dropout",
            {3, 227, 227},
            1000,
            60'965'224,
            of_raw_pixels(published("scenes:2000,500,size=227"))},
           alexnet_2012,
           of_width<alexnet_2012>,
           false,
           false,
           alexnet_2012_toml},
          {{"alexnet_s",
            "AlexNet-S of the 2017 benchmark: ungrouped, no normalization",
            {3, 224, 224},
            1000,
            62'378'344,
            benchmark},
           alexnet_s,
           of_width<alexnet_s>,
           false,
           false,
           alexnet_s_toml},
          {{"alexnet_r",
            "AlexNet-R of the 2017 benchmark: cuda-convnet's for CIFAR-10",
            {3, 32, 32},
            10,
            85'098,
            cifar},
           alexnet_r,
           nullptr,
           false,
           false,
           alexnet_r_toml}};
}

}  // namespace tenon::models
