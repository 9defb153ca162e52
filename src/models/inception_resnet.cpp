// Inception-ResNet-v2: residual blocks whose branches have several kernel sizes.
//
// Szegedy, Ioffe, Vanhoucke and Alemi, "Inception-v4, Inception-ResNet and the impact of residual
// connections on learning", 2017, as published by its authors: a stem of plain convolutions, ten
// blocks of 35 x 35, twenty of 17 x 17, ten of 8 x 8. Parameter names are timm's.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/str.h"
#include "models/entry.h"

namespace tenon::models {
namespace {

using nn::AnyModule;
using nn::Module;
using nn::Sequential;

// A convolution, its normalisation and a rectifier. The paper's V, for valid, is no padding.
struct ConvShape {
  std::int64_t channels;
  Pair kernel;
  std::int64_t stride = 1;
  bool valid = false;
};

class ConvUnit : public Module {
 public:
  ConvUnit(std::int64_t in, const ConvShape& s, const OptionalGenerator& g)
      : conv_(child("conv", nn::Conv2d(in, s.channels, s.kernel,
                                       {.stride = s.stride,
                                        .padding = s.valid ? Pair(0)
                                                           : Pair(s.kernel.h / 2, s.kernel.w / 2)},
                                       {.bias = false, .generator = g, .weight_init = he}))),
        bn_(child("bn", nn::BatchNorm2d(s.channels, {.eps = 1e-3}))) {}
  Tensor forward(const Tensor& x) const override { return relu(bn_(conv_(x))); }
  std::string describe() const override { return "ConvNormAct"; }

 private:
  static Tensor he(const Shape& weight, const OptionalGenerator& g) {
    return nn::init::kaiming_normal(weight, 0, nn::init::FanMode::In, g);
  }
  nn::Conv2d conv_;
  nn::BatchNorm2d bn_;
};

// Parts that read the same channels, and the channels that they give together.
class Branches {
 public:
  Branches(std::int64_t in, std::int64_t width, const OptionalGenerator& g)
      : in_(in), width_(width), g_(g) {}

  std::int64_t channels() const { return channels_; }
  const std::vector<AnyModule>& modules() const { return modules_; }

  /// Convolutions one after another, behind `first` where one is given. Channels are the
  /// published network's.
  Branches&& add(std::vector<ConvShape> convolutions, const AnyModule* first = nullptr) && {
    Sequential chain;
    if (first != nullptr) chain.append(*first);
    std::int64_t in = in_;
    for (ConvShape& s : convolutions) {
      s.channels = std::max<std::int64_t>(1, s.channels * width_ / kStem);
      chain.append(ConvUnit(in, s, g_));
      in = s.channels;
    }
    modules_.push_back(chain.size() == 1 ? chain[0] : AnyModule(chain));
    channels_ += in;
    return std::move(*this);
  }
  /// What keeps the channels.
  Branches&& add(const AnyModule& pool) && {
    modules_.push_back(pool);
    channels_ += in_;
    return std::move(*this);
  }

  static constexpr std::int64_t kStem = 32;  // channels of the first layer, as published

 private:
  std::int64_t in_, width_, channels_ = 0;
  OptionalGenerator g_;
  std::vector<AnyModule> modules_;
};

// Branches whose channels stand one after another.
class Mixed : public Module {
 public:
  explicit Mixed(const Branches& branches) {
    for (const AnyModule& branch : branches.modules())
      branches_.push_back(child(cat("branch", branches_.size()), branch));
  }
  Tensor forward(const Tensor& x) const override {
    std::vector<Tensor> parts;
    parts.reserve(branches_.size());
    for (const AnyModule& branch : branches_) parts.push_back(branch(x));
    return concat(parts, 1);
  }
  std::string describe() const override { return "Mixed"; }

 private:
  std::vector<AnyModule> branches_;
};

// x + scale · (branches, brought to the channels of x without a rectifier). Residuals are made
// smaller because training of so many otherwise dies early, as the paper found.
class ScaledResidual : public Mixed {
 public:
  ScaledResidual(std::int64_t in, const Branches& branches, double scale, bool rectified,
                 const OptionalGenerator& g)
      : Mixed(branches),
        scale_(scale),
        rectified_(rectified),
        conv2d_(child("conv2d", nn::Conv2d(branches.channels(), in, 1, {}, {.generator = g}))) {}
  Tensor forward(const Tensor& x) const override {
    const Tensor y = conv2d_(Mixed::forward(x)) * scale_ + x;
    return rectified_ ? relu(y) : y;
  }
  std::string describe() const override { return cat("ScaledResidual(", scale_, ")"); }

 private:
  double scale_;
  bool rectified_;
  nn::Conv2d conv2d_;
};

constexpr bool kValid = true;
constexpr double kScaleA = 0.17, kScaleB = 0.1, kScaleC = 0.2;

class InceptionResNet : public Module {
 public:
  InceptionResNet(std::int64_t width, const Options& o) : width_(width), g_(o.generator) {
    stem("conv2d_1a", {32, 3, 2, kValid});
    stem("conv2d_2a", {32, 3, 1, kValid});
    stem("conv2d_2b", {64, 3});
    append("maxpool_3a", halved());
    stem("conv2d_3b", {80, 1});
    stem("conv2d_4a", {192, 3, 1, kValid});
    append("maxpool_5a", halved());

    const AnyModule smoothed =
        nn::AvgPool2d(3, {.stride = 1, .padding = 1, .count_include_pad = false});
    mixed("mixed_5b", branches()
                          .add({{96, 1}})
                          .add({{48, 1}, {64, 5}})
                          .add({{64, 1}, {96, 3}, {96, 3}})
                          .add({{64, 1}}, &smoothed));
    repeat("repeat", 10, kScaleA, [this] {
      return branches().add({{32, 1}}).add({{32, 1}, {32, 3}}).add({{32, 1}, {48, 3}, {64, 3}});
    });
    mixed("mixed_6a", branches()
                          .add({{384, 3, 2, kValid}})
                          .add({{256, 1}, {256, 3}, {384, 3, 2, kValid}})
                          .add(halved()));
    repeat("repeat_1", 20, kScaleB, [this] {
      return branches().add({{192, 1}}).add({{128, 1}, {160, {1, 7}}, {192, {7, 1}}});
    });
    mixed("mixed_7a", branches()
                          .add({{256, 1}, {384, 3, 2, kValid}})
                          .add({{256, 1}, {288, 3, 2, kValid}})
                          .add({{256, 1}, {288, 3}, {320, 3, 2, kValid}})
                          .add(halved()));
    const auto of_eight = [this] {
      return branches().add({{192, 1}}).add({{192, 1}, {224, {1, 3}}, {256, {3, 1}}});
    };
    repeat("repeat_2", 9, kScaleC, of_eight);
    append("block8", ScaledResidual(in_, of_eight(), 1, false, g_));
    stem("conv2d_7b", {1536, 1});

    head_drop_ = child("head_drop", nn::Dropout(0.2, g_));
    classif_ =
        child("classif", o.head.empty() ? AnyModule(nn::Linear(in_, o.classes, {.generator = g_}))
                                        : AnyModule(head_of(in_, o)));
  }

  Tensor forward(const Tensor& x) const override {
    Tensor y = x;
    for (const AnyModule& part : parts_) y = part(y);
    return (*classif_)((*head_drop_)(mean(y, {2, 3})));
  }
  std::string describe() const override { return "InceptionResNetV2"; }

 private:
  static AnyModule halved() { return nn::MaxPool2d(3, {.stride = 2}); }
  Branches branches() const { return {in_, width_, g_}; }

  void append(const char* name, const AnyModule& part) { parts_.push_back(child(name, part)); }
  void stem(const char* name, const ConvShape& shape) {
    const Branches one = branches().add({shape});
    append(name, one.modules()[0]);
    in_ = one.channels();
  }
  void mixed(const char* name, const Branches& all) {
    append(name, Mixed(all));
    in_ = all.channels();
  }
  template <class MakeBranches>
  void repeat(const char* name, int count, double scale, const MakeBranches& make) {
    Sequential out;
    for (int k = 0; k < count; ++k) out.append(ScaledResidual(in_, make(), scale, true, g_));
    append(name, out);
  }

  std::int64_t in_ = 3, width_;
  OptionalGenerator g_;
  std::vector<AnyModule> parts_;
  std::optional<AnyModule> head_drop_, classif_;
};

// Channels are as published; the block gives as many of them as the width has.
constexpr char kInceptionLayers[] = R"toml(layers = [
  { block = "conv", channels = 32, rows = 3, columns = 3, stride = 2, valid = 1, name = "conv2d_1a" },
  { block = "conv", channels = 32, rows = 3, columns = 3, valid = 1, name = "conv2d_2a" },
  { block = "conv", channels = 64, rows = 3, columns = 3, name = "conv2d_2b" },
  { max_pool2d = 3, stride = 2, name = "maxpool_3a" },
  { block = "conv", channels = 80, name = "conv2d_3b" },
  { block = "conv", channels = 192, rows = 3, columns = 3, valid = 1, name = "conv2d_4a" },
  { max_pool2d = 3, stride = 2, name = "maxpool_5a" },
  { sequence = [ { branches = [
    { block = "conv", channels = 96, name = "branch0" },
    { sequence = [
      { block = "conv", channels = 48 },
      { block = "conv", channels = 64, rows = 5, columns = 5 } ], name = "branch1" },
    { sequence = [
      { block = "conv", channels = 64 },
      { repeat = 2, layers = [ { block = "conv", channels = 96, rows = 3, columns = 3 } ] } ], name = "branch2" },
    { sequence = [
      { avg_pool2d = 3, stride = 1, padding = 1, count_include_pad = false },
      { block = "conv", channels = 64 } ], name = "branch3" },
  ] } ], name = "mixed_5b" },
  { sequence = [ { repeat = 10, layers = [ { block = "residual35" } ] } ], name = "repeat" },
  { sequence = [ { branches = [
    { block = "conv", channels = 384, rows = 3, columns = 3, stride = 2, valid = 1, name = "branch0" },
    { sequence = [
      { block = "conv", channels = 256 },
      { block = "conv", channels = 256, rows = 3, columns = 3 },
      { block = "conv", channels = 384, rows = 3, columns = 3, stride = 2, valid = 1 } ], name = "branch1" },
    { max_pool2d = 3, stride = 2, name = "branch2" },
  ] } ], name = "mixed_6a" },
  { sequence = [ { repeat = 20, layers = [ { block = "residual17" } ] } ], name = "repeat_1" },
  { sequence = [ { branches = [
    { sequence = [
      { block = "conv", channels = 256 },
      { block = "conv", channels = 384, rows = 3, columns = 3, stride = 2, valid = 1 } ], name = "branch0" },
    { sequence = [
      { block = "conv", channels = 256 },
      { block = "conv", channels = 288, rows = 3, columns = 3, stride = 2, valid = 1 } ], name = "branch1" },
    { sequence = [
      { block = "conv", channels = 256 },
      { block = "conv", channels = 288, rows = 3, columns = 3 },
      { block = "conv", channels = 320, rows = 3, columns = 3, stride = 2, valid = 1 } ], name = "branch2" },
    { max_pool2d = 3, stride = 2, name = "branch3" },
  ] } ], name = "mixed_7a" },
  { sequence = [ { repeat = 9, layers = [ { block = "residual8" } ] } ], name = "repeat_2" },
  { block = "residual8", scale = 1, rectified = 0, name = "block8" },
  { block = "conv", channels = 1536, name = "conv2d_7b" },
  "global_avg_pool", { dropout = 0.2, name = "head_drop" },
)toml";
constexpr char kInceptionBlocks[] = R"toml(
[variables]
unit = "width / 32"
in35 = "2 * max(1, floor(96 * unit)) + 2 * max(1, floor(64 * unit))"
in17 = "in35 + 2 * max(1, floor(384 * unit))"
in8 = "in17 + max(1, floor(384 * unit)) + max(1, floor(288 * unit)) + max(1, floor(320 * unit))"

[blocks.conv]
rows = 1
columns = 1
stride = 1
valid = 0                            # without padding
layers = [
  { conv2d = "max(1, floor(channels * unit))", kernel = ["rows", "columns"], stride = "stride",
    padding = ["(1 - valid) * floor(rows / 2)", "(1 - valid) * floor(columns / 2)"], bias = false,
    init = "kaiming_normal", name = "conv" },
  { batch_norm2d = true, eps = 1e-3, name = "bn" }, "relu",
]

[blocks.residual35]
layers = [
  { residual = [
    { branches = [
      { block = "conv", channels = 32, name = "branch0" },
      { sequence = [
        { block = "conv", channels = 32 },
        { block = "conv", channels = 32, rows = 3, columns = 3 } ], name = "branch1" },
      { sequence = [
        { block = "conv", channels = 32 },
        { block = "conv", channels = 48, rows = 3, columns = 3 },
        { block = "conv", channels = 64, rows = 3, columns = 3 } ], name = "branch2" } ] },
    { conv2d = "in35", kernel = 1, name = "conv2d" } ],
    scale = 0.17, then = "relu" },
]

[blocks.residual17]
layers = [
  { residual = [
    { branches = [
      { block = "conv", channels = 192, name = "branch0" },
      { sequence = [
        { block = "conv", channels = 128 },
        { block = "conv", channels = 160, columns = 7 },
        { block = "conv", channels = 192, rows = 7 } ], name = "branch1" } ] },
    { conv2d = "in17", kernel = 1, name = "conv2d" } ],
    scale = 0.1, then = "relu" },
]

[blocks.residual8]
scale = 0.2
rectified = 1
layers = [
  { residual = [
    { branches = [
      { block = "conv", channels = 192, name = "branch0" },
      { sequence = [
        { block = "conv", channels = 192 },
        { block = "conv", channels = 224, columns = 3 },
        { block = "conv", channels = 256, rows = 3 } ], name = "branch1" } ] },
    { conv2d = "in8", kernel = 1, name = "conv2d" } ],
    scale = "scale" },
  { repeat = "rectified", layers = [ "relu" ] },
]
)toml";

std::string inception_resnet_toml(const std::string& sizes, const Options& o) {
  std::string blocks = kInceptionBlocks;
  const std::string table = "[variables]\n";
  blocks.insert(blocks.find(table) + table.size(),
                cat("width = ", width_of("inception_resnet_v2", sizes, Branches::kStem), "\n"));
  return kInceptionLayers +
         (o.head.empty() ? std::string("  { linear = \"classes\", name = \"classif\" },\n]\n")
                         : cat("  { sequence = [\n", head_toml(o, "    "),
                               "  ], name = \"classif\" },\n]\n")) +
         blocks;
}

AnyModule build_inception_resnet(const std::string& sizes, const Options& o) {
  return InceptionResNet(width_of("inception_resnet_v2", sizes, Branches::kStem), o);
}

}  // namespace

std::vector<Entry> inception_resnet_entries() {
  return {{{"inception_resnet_v2",
            "Inception-ResNet-v2: scaled residual blocks of several kernels",
            {3, 299, 299},
            1000,
            55'843'464,
            {.epochs = 90,
             .batch = 16,
             .lr = 0.0125,
             .momentum = 0.9,
             .weight_decay = 4e-5,
             .warmup = 5,
             .data = "scenes:2000,500,size=299",
             .input_mean = 0.5,
             .input_std = 0.5}},
           build_inception_resnet,
           of_width<build_inception_resnet>,
           false,
           true,
           inception_resnet_toml}};
}

}  // namespace tenon::models
