// VGG16: thirteen convolutions of 3 x 3 and three linear layers.
//
// Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition",
// 2015, network D. Names of parameters are torchvision's: features.N and classifier.N.
#include "base/str.h"
#include "models/entry.h"

namespace tenon::models {
namespace {

class Vgg : public nn::Module {
 public:
  Vgg(const nn::Sequential& features, const nn::Sequential& classifier)
      : features_(child("features", features)),
        avgpool_(child("avgpool", nn::AdaptiveAvgPool2d(7))),
        classifier_(child("classifier", classifier)) {}
  Tensor forward(const Tensor& x) const override {
    return classifier_(flatten(avgpool_(features_(x)), 1));
  }
  std::string describe() const override { return "VGG"; }

 private:
  nn::Sequential features_;
  nn::AdaptiveAvgPool2d avgpool_;
  nn::Sequential classifier_;
};

constexpr std::int64_t kPool = 0;
// Channels, as multiples of the first layer's.
constexpr std::int64_t kLayers16[] = {1,     1, kPool, 2, 2,     kPool, 4, 4, 4,
                                      kPool, 8, 8,     8, kPool, 8,     8, 8, kPool};

nn::Sequential features(std::int64_t width, bool batch_norm, const OptionalGenerator& g) {
  nn::Sequential out;
  std::int64_t in = 3;
  for (const std::int64_t multiple : kLayers16) {
    if (multiple == kPool) {
      out.append(nn::MaxPool2d(2));
      continue;
    }
    const std::int64_t channels = multiple * width;
    out.append(nn::Conv2d(in, channels, 3, {.padding = 1}, he_fan_out({.generator = g})));
    if (batch_norm) out.append(nn::BatchNorm2d(channels));
    out.append(nn::ReLU());
    in = channels;
  }
  return out;
}

nn::AnyModule build(std::int64_t width, bool batch_norm, const Options& o) {
  const OptionalGenerator& g = o.generator;
  const auto draw = [](const Shape& weight, const OptionalGenerator& generator) {
    return nn::init::normal(weight, 0, 0.01, generator);
  };
  const nn::LinearOptions wide{.generator = g, .weight_init = draw};
  const std::int64_t hidden = 64 * width, features_out = 8 * width * 7 * 7;
  if (!o.head.empty()) return Vgg{features(width, batch_norm, g), head_of(features_out, o)};
  Vgg net{
      features(width, batch_norm, g),
      nn::Sequential{nn::Linear(features_out, hidden, wide), nn::ReLU(), nn::Dropout(0.5, g),  //
                     nn::Linear(hidden, hidden, wide), nn::ReLU(), nn::Dropout(0.5, g),        //
                     nn::Linear(hidden, o.classes, wide)}};
  for (const auto& [name, value] : net.named_parameters())
    if (value.rank() == 1 && name.ends_with(".bias")) set_value(value, zeros(value.shape()));
  return net;
}

// A small head on the convolutions, which are frozen: the Keras tutorial's transfer learning.
nn::AnyModule vgg16_head(const std::string& sizes, const Options& o) {
  const std::int64_t width = width_of("vgg16_head", sizes, 64);
  constexpr std::int64_t kHidden = 256;
  const OptionalGenerator& g = o.generator;
  nn::AnyModule net =
      Vgg{features(width, false, g),
          nn::Sequential{nn::Linear(8 * width * 7 * 7, kHidden, {.generator = g}), nn::ReLU(),
                         nn::Linear(kHidden, o.classes, {.generator = g})}};
  net.freeze("features");
  return net;
}
nn::AnyModule vgg16(const std::string& sizes, const Options& o) {
  return build(width_of("vgg16", sizes, 64), false, o);
}
nn::AnyModule vgg16_bn(const std::string& sizes, const Options& o) {
  return build(width_of("vgg16_bn", sizes, 64), true, o);
}

std::string vgg_layers_toml(std::int64_t width, bool batch_norm, bool zero_biases,
                            const std::string& classifier) {
  const std::string norm = batch_norm ? "\"batch_norm2d\", " : "",
                    bias = zero_biases ? ", bias_init = 0" : "";
  std::string out = cat("variables = { width = ", width, " }\nlayers = [\n  { sequence = [\n");
  for (const auto& [times, multiple] :
       {std::pair(2, 1), std::pair(2, 2), std::pair(3, 4), std::pair(3, 8), std::pair(3, 8)})
    out += cat("    { repeat = ", times, ", layers = [\n      { conv2d = \"", multiple,
               " * width\", kernel = 3, padding = 1, init = { kaiming_normal = 0, fan = \"out\" }",
               bias, " }, ", norm, "\"relu\" ] },\n    { max_pool2d = 2 },\n");
  return out +
         "  ], name = \"features\" },\n"
         "  { adaptive_avg_pool2d = 7, name = \"avgpool\" }, \"flatten\",\n"
         "  { sequence = [\n" +
         classifier + "  ], name = \"classifier\" },\n]\n";
}

std::string vgg_toml(std::int64_t width, bool batch_norm, const Options& o) {
  if (!o.head.empty()) return vgg_layers_toml(width, batch_norm, false, head_toml(o, "    "));
  return vgg_layers_toml(width, batch_norm, true,
                         R"(    { repeat = 2, layers = [
      { linear = "64 * width", init = { normal = 0.01 }, bias_init = 0 }, "relu",
      { dropout = 0.5 } ] },
    { linear = "classes", init = { normal = 0.01 }, bias_init = 0 },
)");
}

std::string vgg16_toml(const std::string& sizes, const Options& o) {
  return vgg_toml(width_of("vgg16", sizes, 64), false, o);
}
std::string vgg16_bn_toml(const std::string& sizes, const Options& o) {
  return vgg_toml(width_of("vgg16_bn", sizes, 64), true, o);
}
std::string vgg16_head_toml(const std::string& sizes, const Options&) {
  return "freeze = [\"features\"]\n" +
         vgg_layers_toml(width_of("vgg16_head", sizes, 64), false, false,
                         "    { linear = 256 }, \"relu\",\n    { linear = \"classes\" },\n");
}

}  // namespace

std::vector<Entry> vgg_entries() {
  const Recipe published{.epochs = 74,
                         .batch = 32,
                         .lr = 0.01,
                         .momentum = 0.9,
                         .weight_decay = 5e-4,
                         .schedule = "cosine",
                         .warmup = 0,
                         .data = "scenes:2000,500,size=224",
                         .input_mean = 0.45,
                         .input_std = 0.25};
  return {{{"vgg16",
            "VGG16: 13 convolutions of 3 x 3, 3 linear layers",
            {3, 224, 224},
            1000,
            138'357'544,
            published},
           vgg16,
           of_width<vgg16>,
           false,
           true,
           vgg16_toml},
          {{"vgg16_bn",
            "VGG16 with batch normalization after every convolution",
            {3, 224, 224},
            1000,
            138'365'992,
            published},
           vgg16_bn,
           of_width<vgg16_bn>,
           false,
           true,
           vgg16_bn_toml},
          {{"vgg16_head",
            "VGG16's convolutions, frozen, and a head of 256 units that learns",
            {3, 224, 224},
            10,
            21'140'042,
            {.epochs = 10,
             .batch = 32,
             .lr = 0.01,
             .momentum = 0.9,
             .data = "scenes:2000,500,size=224",
             .input_mean = 0.45,
             .input_std = 0.25}},
           vgg16_head,
           of_width<vgg16_head>,
           false,
           false,
           vgg16_head_toml}};
}

}  // namespace tenon::models
