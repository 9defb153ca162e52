// Residual networks: for ImageNet (18 to 152 layers) and for CIFAR (20 to 110).
//
// He, Zhang, Ren and Sun, "Deep residual learning for image recognition", 2016. The stride of a
// bottleneck is in its 3 x 3 convolution, as is usual today (v1.5). Parameter names are
// torchvision's, and for CIFAR those of akamaster/pytorch_resnet_cifar10.
#include <optional>

#include "base/str.h"
#include "models/entry.h"

namespace tenon::models {
namespace {

using nn::AnyModule;
using nn::BatchNorm2d;
using nn::Conv2d;
using nn::Sequential;

Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                   const OptionalGenerator& g) {
  return {in,
          out,
          kernel,
          {.stride = stride, .padding = kernel / 2},
          he_fan_out({.bias = false, .generator = g})};
}

// What a block adds its branch to: its input, brought to the branch's shape where they differ.
enum class Shortcut {
  Projection,  ///< a 1 x 1 convolution and its normalisation (option B)
  Padding,     ///< every second row and column, and channels of zeros on both sides (option A)
};

Tensor pad_channels(const Tensor& x, std::int64_t channels) {
  const Tensor half = slice(slice(x, 2, 0, x.size(2), 2), 3, 0, x.size(3), 2);
  const std::int64_t each = (channels - x.size(1)) / 2;
  return pad(half, {0, 0, 0, 0, each, each});
}

// Two convolutions of 3 x 3, or a bottleneck of 1 x 1, 3 x 3 and 1 x 1 to four times as many
// channels.
class ResidualBlock : public nn::Module {
 public:
  ResidualBlock(std::int64_t in, std::int64_t channels, std::int64_t stride, bool bottleneck,
                Shortcut shortcut, const OptionalGenerator& g)
      : out_(bottleneck ? 4 * channels : channels),
        conv1_(child("conv1",
                     convolution(in, channels, bottleneck ? 1 : 3, bottleneck ? 1 : stride, g))),
        bn1_(child("bn1", BatchNorm2d(channels))),
        conv2_(child("conv2", convolution(channels, channels, 3, bottleneck ? stride : 1, g))),
        bn2_(child("bn2", BatchNorm2d(channels))) {
    if (bottleneck) {
      conv3_ = child("conv3", convolution(channels, out_, 1, 1, g));
      bn3_ = child("bn3", BatchNorm2d(out_));
    }
    same_ = stride == 1 && in == out_;
    if (!same_ && shortcut == Shortcut::Projection)
      downsample_ =
          child("downsample", Sequential(convolution(in, out_, 1, stride, g), BatchNorm2d(out_)));
  }

  Tensor forward(const Tensor& x) const override {
    Tensor y = bn2_(conv2_(relu(bn1_(conv1_(x)))));
    if (conv3_) y = (*bn3_)((*conv3_)(relu(y)));
    return relu(y + (same_ ? x : downsample_ ? (*downsample_)(x) : pad_channels(x, out_)));
  }
  std::string describe() const override { return conv3_ ? "Bottleneck" : "BasicBlock"; }

 private:
  std::int64_t out_;
  bool same_;
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  std::optional<Conv2d> conv3_;
  std::optional<BatchNorm2d> bn3_;
  std::optional<Sequential> downsample_;
};

// `blocks` blocks that leave `channels` channels each; the first has the stride.
Sequential stage(std::int64_t& in, std::int64_t channels, int blocks, std::int64_t stride,
                 bool bottleneck, Shortcut shortcut, const OptionalGenerator& g) {
  Sequential out;
  for (int k = 0; k < blocks; ++k) {
    out.append(ResidualBlock(in, channels, k == 0 ? stride : 1, bottleneck, shortcut, g));
    in = bottleneck ? 4 * channels : channels;
  }
  return out;
}

struct Depths {
  int layers;
  bool bottleneck;
  int blocks[4];
  std::int64_t parameters;  // with 1000 classes
};
constexpr Depths kImageNet[] = {{18, false, {2, 2, 2, 2}, 11'689'512},
                                {34, false, {3, 4, 6, 3}, 21'797'672},
                                {50, true, {3, 4, 6, 3}, 25'557'032},
                                {101, true, {3, 4, 23, 3}, 44'549'160},
                                {152, true, {3, 8, 36, 3}, 60'192'808}};

// What gives the classes: one linear layer unless a head is asked for.
AnyModule classifier(std::int64_t in, const Options& o, const nn::Initializer& draw = {}) {
  if (!o.head.empty()) return head_of(in, o);
  return nn::Linear(in, o.classes, {.generator = o.generator, .weight_init = draw});
}

class ResNet : public nn::Module {
 public:
  ResNet(const Depths& depths, std::int64_t width, const Options& o, const OptionalGenerator& g)
      : conv1_(child("conv1", convolution(3, width, 7, 2, g))),
        bn1_(child("bn1", BatchNorm2d(width))),
        maxpool_(child("maxpool", nn::MaxPool2d(3, {.stride = 2, .padding = 1}))),
        stages_(stages(depths, width, g)),
        fc_(child("fc", classifier((depths.bottleneck ? 32 : 8) * width, o))) {}

  Tensor forward(const Tensor& x) const override {
    Tensor y = maxpool_(relu(bn1_(conv1_(x))));
    for (const Sequential& stage : stages_) y = stage(y);
    return fc_(mean(y, {2, 3}));
  }
  std::string describe() const override { return "ResNet"; }

 private:
  std::vector<Sequential> stages(const Depths& depths, std::int64_t width,
                                 const OptionalGenerator& g) {
    std::vector<Sequential> out;
    out.reserve(4);
    std::int64_t channels = width;
    for (int k = 0; k < 4; ++k)
      out.push_back(
          child(cat("layer", k + 1), stage(channels, width << k, depths.blocks[k], k == 0 ? 1 : 2,
                                           depths.bottleneck, Shortcut::Projection, g)));
    return out;
  }

  Conv2d conv1_;
  BatchNorm2d bn1_;
  nn::MaxPool2d maxpool_;
  std::vector<Sequential> stages_;
  AnyModule fc_;
};

// Three stages of 16, 32 and 64 channels, option A.
class CifarResNet : public nn::Module {
 public:
  CifarResNet(int blocks, std::int64_t width, const Options& o, const OptionalGenerator& g)
      : conv1_(child("conv1", convolution(3, width, 3, 1, g))),
        bn1_(child("bn1", BatchNorm2d(width))),
        stages_(stages(blocks, width, g)),
        linear_(child("linear", classifier(4 * width, o, he))) {}

  Tensor forward(const Tensor& x) const override {
    Tensor y = relu(bn1_(conv1_(x)));
    for (const Sequential& stage : stages_) y = stage(y);
    return linear_(mean(y, {2, 3}));
  }
  std::string describe() const override { return "ResNet (CIFAR)"; }

 private:
  static Tensor he(const Shape& weight, const OptionalGenerator& g) {
    return nn::init::kaiming_normal(weight, 0, nn::init::FanMode::In, g);
  }
  std::vector<Sequential> stages(int blocks, std::int64_t width, const OptionalGenerator& g) {
    std::vector<Sequential> out;
    out.reserve(3);
    std::int64_t channels = width;
    for (int k = 0; k < 3; ++k)
      out.push_back(child(cat("layer", k + 1), stage(channels, width << k, blocks, k == 0 ? 1 : 2,
                                                     false, Shortcut::Padding, g)));
    return out;
  }

  Conv2d conv1_;
  BatchNorm2d bn1_;
  std::vector<Sequential> stages_;
  AnyModule linear_;
};

template <int index>
AnyModule image_net(const std::string& sizes, const Options& o) {
  const Depths& d = kImageNet[index];
  return ResNet(d, width_of(cat("resnet", d.layers), sizes, 64), o, o.generator);
}

template <int layers>
AnyModule cifar(const std::string& sizes, const Options& o) {
  return CifarResNet((layers - 2) / 6, width_of(cat("resnet", layers), sizes, 16), o, o.generator);
}

// ---- The same as a file

constexpr char kBasicBlock[] = R"(
[blocks.basic]
stride = 1
layers = [
  { residual = [
      { conv2d = "channels", kernel = 3, stride = "stride", padding = 1, bias = false,
        init = { kaiming_normal = 0, fan = "out" }, name = "conv1" },
      { batch_norm2d = "channels", name = "bn1" }, "relu",
      { conv2d = "channels", kernel = 3, padding = 1, bias = false,
        init = { kaiming_normal = 0, fan = "out" }, name = "conv2" },
      { batch_norm2d = "channels", name = "bn2" } ],
)";
constexpr char kBottleneckBlock[] = R"(
[blocks.bottleneck]
stride = 1
layers = [
  { residual = [
      { conv2d = "channels", kernel = 1, bias = false,
        init = { kaiming_normal = 0, fan = "out" }, name = "conv1" },
      { batch_norm2d = "channels", name = "bn1" }, "relu",
      { conv2d = "channels", kernel = 3, stride = "stride", padding = 1, bias = false,
        init = { kaiming_normal = 0, fan = "out" }, name = "conv2" },
      { batch_norm2d = "channels", name = "bn2" }, "relu",
      { conv2d = "4 * channels", kernel = 1, bias = false,
        init = { kaiming_normal = 0, fan = "out" }, name = "conv3" },
      { batch_norm2d = "4 * channels", name = "bn3" } ],
)";
constexpr char kPaddingShortcut[] =
    "    shortcut = [ { subsample2d = \"stride\" }, { pad_channels = \"channels\" } ],\n"
    "    then = \"relu\" },\n]\n";

std::string projection_shortcut(bool bottleneck) {
  return cat("    shortcut = { sequence = [\n      { conv2d = \"",
             bottleneck ? "4 * channels" : "channels",
             "\", kernel = 1, stride = \"stride\", bias = false,\n"
             "        init = { kaiming_normal = 0, fan = \"out\" } },\n"
             "      \"batch_norm2d\" ], name = \"downsample\" },\n    then = \"relu\" },\n]\n");
}

std::string stage_toml(int stage, const char* block, int blocks) {
  const std::string channels = stage == 0 ? std::string("width") : cat(1 << stage, " * width");
  std::string out = cat("  { sequence = [\n    { block = \"", block, "\", channels = \"", channels,
                        "\"", stage == 0 ? "" : ", stride = 2", " },\n");
  if (blocks > 1)
    out += cat("    { repeat = ", blocks - 1, ", layers = [ { block = \"", block,
               "\", channels = \"", channels, "\" } ] },\n");
  return out + cat("  ], name = \"layer", stage + 1, "\" },\n");
}

std::string classifier_toml(const char* name, const char* init, const Options& o) {
  return "  \"global_avg_pool\",\n" +
         (o.head.empty() ? cat("  { linear = \"classes\"", init, ", name = \"", name, "\" },\n]\n")
                         : cat("  { sequence = [\n", head_toml(o, "    "), "  ], name = \"", name,
                               "\" },\n]\n"));
}

template <int index>
std::string image_net_toml(const std::string& sizes, const Options& o) {
  const Depths& d = kImageNet[index];
  std::string out =
      cat("variables = { width = ", width_of(cat("resnet", d.layers), sizes, 64),
          " }\nlayers = [\n"
          "  { conv2d = \"width\", kernel = 7, stride = 2, padding = 3, bias = false,\n"
          "    init = { kaiming_normal = 0, fan = \"out\" }, name = \"conv1\" },\n"
          "  { batch_norm2d = \"width\", name = \"bn1\" }, \"relu\",\n"
          "  { max_pool2d = 3, stride = 2, padding = 1, name = \"maxpool\" },\n");
  for (int k = 0; k < 4; ++k)
    out += stage_toml(k, d.bottleneck ? "bottleneck" : "basic", d.blocks[k]);
  return out + classifier_toml("fc", "", o) + (d.bottleneck ? kBottleneckBlock : kBasicBlock) +
         projection_shortcut(d.bottleneck);
}

template <int layers>
std::string cifar_toml(const std::string& sizes, const Options& o) {
  std::string out = cat("variables = { width = ", width_of(cat("resnet", layers), sizes, 16),
                        " }\nlayers = [\n"
                        "  { conv2d = \"width\", kernel = 3, padding = 1, bias = false,\n"
                        "    init = { kaiming_normal = 0, fan = \"out\" }, name = \"conv1\" },\n"
                        "  { batch_norm2d = \"width\", name = \"bn1\" }, \"relu\",\n");
  for (int k = 0; k < 3; ++k) out += stage_toml(k, "basic", (layers - 2) / 6);
  return out + classifier_toml("linear", ", init = { kaiming_normal = 0 }", o) + kBasicBlock +
         kPaddingShortcut;
}

template <int index>
Entry image_net_entry() {
  const Depths& d = kImageNet[index];
  return {{cat("resnet", d.layers),
           cat("residual network of ", d.layers, " layers for images of 224 x 224"),
           {3, 224, 224},
           1000,
           d.parameters,
           {.epochs = 90,
            .batch = 16,
            .lr = 0.0125,  // the paper's 0.1 for batches of 256 and more would be twice that
            .momentum = 0.9,
            .weight_decay = 1e-4,
            .warmup = 5,
            .data = "scenes:2000,500,size=224",
            .input_mean = 0.45,
            .input_std = 0.25}},
          image_net<index>,
          of_width<image_net<index>>,
          false,
          true,
          image_net_toml<index>};
}

template <int layers>
Entry cifar_entry(std::int64_t parameters) {
  return {{cat("resnet", layers),
           cat("residual network of ", layers, " layers for images of 32 x 32"),
           {3, 32, 32},
           10,
           parameters,
           {.epochs = 15,
            .batch = 128,
            .lr = 0.1,
            .momentum = 0.9,
            .weight_decay = 1e-4,
            .warmup = 1,
            .data = "scenes",
            .input_mean = 0.45,
            .input_std = 0.25,
            .augment = "crop=4,flip"}},
          cifar<layers>,
          of_width<cifar<layers>>,
          false,
          true,
          cifar_toml<layers>};
}

}  // namespace

std::vector<Entry> resnet_entries() {
  return {image_net_entry<0>(),       image_net_entry<1>(),     image_net_entry<2>(),
          image_net_entry<3>(),       image_net_entry<4>(),     cifar_entry<20>(269'722),
          cifar_entry<32>(464'154),   cifar_entry<44>(658'586), cifar_entry<56>(853'018),
          cifar_entry<110>(1'727'962)};
}

}  // namespace tenon::models
