// LeNet-5 as published in 1998: trainable subsampling, third-layer maps that are connected to some
// of the second layer's maps only, and outputs that are distances to bitmaps of the digits.
//
// LeCun et al., "Gradient-based learning applied to document recognition", 1998. Scores are
// negative squared distances. The paper computes the curvature for its learning rates with a second
// backward pass; train/curvature.h describes the replacement. The bitmaps of the ten digits, 7 by
// 12, are our own.
#include <cmath>
#include <vector>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "models/entry.h"
#include "models/lenet5_1998.h"

namespace tenon::models {
namespace {

constexpr double kBackground = -0.1, kInk = 1.175;
constexpr std::int64_t kDigits = 10, kWidth = 84;

// Ink is +1, background -1: where the scaled tanh bends most.
constexpr const char* kBitmaps[] = {
    "..###.."
    ".#...#."
    "#.....#"
    "#.....#"
    "#.....#"
    "#.....#"
    "#.....#"
    "#.....#"
    "#.....#"
    "#.....#"
    ".#...#."
    "..###..",
    "...#..."
    "..##..."
    ".#.#..."
    "...#..."
    "...#..."
    "...#..."
    "...#..."
    "...#..."
    "...#..."
    "...#..."
    "...#..."
    ".#####.",
    ".#####."
    "#.....#"
    "......#"
    "......#"
    ".....#."
    "....#.."
    "...#..."
    "..#...."
    ".#....."
    "#......"
    "#......"
    "#######",
    "#######"
    "......#"
    ".....#."
    "....#.."
    "...#..."
    "..####."
    "......#"
    "......#"
    "......#"
    "......#"
    "#.....#"
    ".#####.",
    "....##."
    "...#.#."
    "..#..#."
    ".#...#."
    "#....#."
    "#....#."
    "#######"
    ".....#."
    ".....#."
    ".....#."
    ".....#."
    ".....#.",
    "#######"
    "#......"
    "#......"
    "#......"
    "######."
    "......#"
    "......#"
    "......#"
    "......#"
    "......#"
    "#.....#"
    ".#####.",
    "..####."
    ".#....."
    "#......"
    "#......"
    "#.###.."
    "##...#."
    "#.....#"
    "#.....#"
    "#.....#"
    "#.....#"
    ".#...#."
    "..###..",
    "#######"
    "......#"
    "......#"
    ".....#."
    ".....#."
    "....#.."
    "....#.."
    "...#..."
    "...#..."
    "..#...."
    "..#...."
    "..#....",
    ".#####."
    "#.....#"
    "#.....#"
    "#.....#"
    ".#...#."
    "..###.."
    ".#...#."
    "#.....#"
    "#.....#"
    "#.....#"
    "#.....#"
    ".#####.",
    "..###.."
    ".#...#."
    "#.....#"
    "#.....#"
    "#.....#"
    "#.....#"
    ".#...##"
    "..###.#"
    "......#"
    "......#"
    ".....#."
    ".####.."};

// Which maps of the second layer each map of the third sees.
constexpr const char* kConnections[] = {"012",  "123",  "234",  "345",   "045",  "015",
                                        "0123", "1234", "2345", "0345",  "0145", "0125",
                                        "0134", "1245", "0235", "012345"};

Tensor squash(const Tensor& x) { return tanh(x * (2.0 / 3)) * 1.7159; }

Tensor drawn(const Shape& shape, std::int64_t fan_in, const OptionalGenerator& g) {
  const double most = 2.4 / static_cast<double>(fan_in);
  return nn::init::uniform(shape, -most, most, g);
}

class Convolution : public nn::Module {
 public:
  Convolution(std::int64_t in, std::int64_t out, const OptionalGenerator& g)
      : weight_(parameter("weight", drawn({out, in, 5, 5}, 25 * in, g))),
        bias_(parameter("bias", drawn({out}, 25 * in, g))) {}
  Tensor forward(const Tensor& x) const override { return squash(conv2d(x, weight_, bias_)); }

 private:
  Tensor weight_, bias_;
};

// The sum of 2 x 2 places, times a coefficient, and a bias: one of each a map.
class Subsampling : public nn::Module {
 public:
  Subsampling(std::int64_t maps, const OptionalGenerator& g)
      : weight_(parameter("weight", drawn({maps, 1, 1}, 4, g))),
        bias_(parameter("bias", drawn({maps, 1, 1}, 4, g))) {}
  Tensor forward(const Tensor& x) const override {
    return squash(avg_pool2d(x) * 4 * weight_ + bias_);
  }

 private:
  Tensor weight_, bias_;
};

// Only kernels of connections are weights; where there is none, a kernel of zeros stands.
class PartialConvolution : public nn::Module {
 public:
  explicit PartialConvolution(const OptionalGenerator& g) {
    std::vector<Tensor> kernels;
    std::vector<std::int64_t> places;
    for (const std::string connected : kConnections) {
      kernels.push_back(drawn({std::ssize(connected), 5, 5}, 25 * std::ssize(connected), g));
      for (char map = '0'; map < '6'; ++map)
        places.push_back(connected.find(map) == std::string::npos ? -1 : kernels_++);
    }
    for (std::int64_t& place : places)
      if (place < 0) place = kernels_;
    weight_ = parameter("weight", concat(kernels, 0));
    bias_ = parameter("bias", drawn({std::ssize(kernels)}, 100, g));
    places_ = buffer("places", Tensor::from(places, {std::ssize(places)}));
  }
  Tensor forward(const Tensor& x) const override {
    const Tensor all = index_select(concat({weight_, zeros({1, 5, 5})}, 0), 0, places_);
    return squash(conv2d(x, reshape(all, {bias_.size(0), 6, 5, 5}), bias_));
  }

 private:
  std::int64_t kernels_ = 0;
  Tensor weight_, bias_, places_;
};

class Hidden : public nn::Module {
 public:
  Hidden(std::int64_t in, std::int64_t out, const OptionalGenerator& g)
      : weight_(parameter("weight", drawn({out, in}, in, g))),
        bias_(parameter("bias", drawn({out}, in, g))) {}
  Tensor forward(const Tensor& x) const override { return squash(linear(x, weight_, bias_)); }

 private:
  Tensor weight_, bias_;
};

// Distances, squared, to the drawings.
class RadialBasis : public nn::Module {
 public:
  RadialBasis() {
    std::vector<float> values;
    for (const char* bitmap : kBitmaps)
      for (std::int64_t k = 0; k < kWidth; ++k) values.push_back(bitmap[k] == '#' ? 1.F : -1.F);
    weight_ = buffer("weight", Tensor::from(values, {kDigits, kWidth}));
  }
  Tensor forward(const Tensor& x) const override {
    return neg(sum(square(unsqueeze(x, 1) - weight_), {2}));
  }

 private:
  Tensor weight_;
};

class LeNet5 : public nn::Module {
 public:
  explicit LeNet5(const OptionalGenerator& g)
      : c1_(child("c1", Convolution(1, 6, g))),
        s2_(child("s2", Subsampling(6, g))),
        c3_(child("c3", PartialConvolution(g))),
        s4_(child("s4", Subsampling(16, g))),
        c5_(child("c5", Convolution(16, 120, g))),
        f6_(child("f6", Hidden(120, kWidth, g))),
        rbf_(child("rbf", RadialBasis())) {}
  Tensor forward(const Tensor& x) const override {
    const Tensor framed = pad(x, {2, 2, 2, 2}, kBackground);
    return rbf_(f6_(flatten(c5_(s4_(c3_(s2_(c1_(framed))))), 1)));
  }
  std::string describe() const override { return "LeNet-5"; }

 private:
  Convolution c1_;
  Subsampling s2_;
  PartialConvolution c3_;
  Subsampling s4_;
  Convolution c5_;
  Hidden f6_;
  RadialBasis rbf_;
};

nn::AnyModule lenet5_1998(const std::string&, const Options& o) {
  if (o.classes != kDigits)
    throw ValueError(
        cat("model 'lenet5_1998': its outputs are drawings of the ten digits; there are ",
            o.classes, " classes: choose lenet5"));
  return LeNet5(o.generator);
}

std::string lenet5_1998_toml(const std::string&, const Options&) {
  return R"(rubbish_score = -10
layers = [
  { pad2d = 2, value = -0.1 },
  { lenet_convolution = 6, name = "c1" },
  { lenet_subsampling = true, name = "s2" },
  { lenet_partial_convolution = true, name = "c3" },
  { lenet_subsampling = true, name = "s4" },
  { lenet_convolution = 120, name = "c5" },
  "flatten",
  { lenet_hidden = 84, name = "f6" },
  { lenet_drawings = true, name = "rbf" },
]
)";
}

void require_maps(const LayerKeys& keys, const FileArrival& at, std::int64_t maps = 0) {
  if (at.x.rank() != 4 || (maps > 0 && at.x.size(1) != maps))
    keys.refuse(cat(keys.kind(), " takes images [N, ", maps > 0 ? cat(maps) : "maps",
                    ", height, width], not ", shape_text(at.x)));
}

}  // namespace

FileLayer lenet_convolution_layer(LayerKeys& keys, const FileArrival& at) {
  const std::int64_t maps = keys.own_whole("maps", "{ lenet_convolution = 6 }");
  require_maps(keys, at);
  return layer_of(Convolution(at.x.size(1), maps, at.generator));
}

FileLayer lenet_subsampling_layer(LayerKeys& keys, const FileArrival& at) {
  (void)keys.own();
  require_maps(keys, at);
  return layer_of(Subsampling(at.x.size(1), at.generator));
}

FileLayer lenet_partial_convolution_layer(LayerKeys& keys, const FileArrival& at) {
  (void)keys.own();
  require_maps(keys, at, 6);
  return layer_of(PartialConvolution(at.generator));
}

FileLayer lenet_hidden_layer(LayerKeys& keys, const FileArrival& at) {
  const std::int64_t units = keys.own_whole("units", "{ lenet_hidden = 84 }");
  return layer_of(Hidden(at.x.size(-1), units, at.generator));
}

FileLayer lenet_drawings_layer(LayerKeys& keys, const FileArrival& at) {
  (void)keys.own();
  if (at.x.rank() != 2 || at.x.size(1) != kWidth)
    keys.refuse(cat("lenet_drawings takes [N, ", kWidth, "], not ", shape_text(at.x)));
  return layer_of(RadialBasis());
}

std::vector<Entry> lenet5_1998_entries() {
  // Pixels so that the background is -0.1 and ink 1.175. The paper's learning rates by epoch:
  // 0.0005 twice, 0.0002 and 0.0001 three times, 0.00005 four times, then 0.00001, for each of the
  // batch's ten samples. They rise in the first epoch, because the initial values shrink signals so
  // much that the lower layers' curvature says nothing yet.
  constexpr double kRange = kInk - kBackground;
  Info info{"lenet5_1998",
            "LeNet-5 of 1998: trained subsampling, partial connections, RBF outputs",
            {1, 28, 28},
            kDigits,
            60'000,
            {.epochs = 20,
             .batch = 10,
             .optimizer = "levenberg",
             .lr = 5e-3,
             .momentum = 0,
             .weight_decay = 2e-3,
             .schedule = "multistep",
             .milestones = "1=0.4,4=0.2,7=0.1,11=0.02",
             .warmup = 1,
             .input_mean = -kBackground / kRange,
             .input_std = 1 / kRange,
             .eps = 0.02}};
  info.rubbish_score = -10;
  return {{info, lenet5_1998, nullptr, false, false, lenet5_1998_toml}};
}

}  // namespace tenon::models
