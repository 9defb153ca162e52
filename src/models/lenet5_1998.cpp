// Layers of LeNet-5 as published in 1998: trainable subsampling, third-layer maps that are
// connected to some of the second layer's maps only, and outputs that are distances to bitmaps of
// the digits.
//
// LeCun et al., "Gradient-based learning applied to document recognition", 1998. Scores are
// negative squared distances. The paper computes the curvature for its learning rates with a second
// backward pass; train/batches/curvature.h describes the replacement. The bitmaps of the ten
// digits, 7 by 12, are our own.
#include <cmath>
#include <vector>

#include "base/index.h"
#include "base/str.h"
#include "models/lenet5_1998.h"

namespace tenon::models {
namespace {

constexpr std::int64_t kDigits = 10, kPrototypeWidth = 84;

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

// The maps of the second layer that each map of the third layer is connected to.
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

// Sums of 2 x 2 pixels, times a coefficient, plus a bias, with one coefficient and bias for each
// map.
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

// Only kernels of connections are weights; maps without a connection have a kernel of zeros.
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

// Negative squared distances of the features to the bitmaps.
class RadialBasis : public nn::Module {
 public:
  RadialBasis() {
    std::vector<float> values;
    for (const char* bitmap : kBitmaps)
      for (std::int64_t k = 0; k < kPrototypeWidth; ++k)
        values.push_back(bitmap[k] == '#' ? 1.F : -1.F);
    weight_ = buffer("weight", Tensor::from(values, {kDigits, kPrototypeWidth}));
  }
  Tensor forward(const Tensor& x) const override {
    return neg(sum(square(unsqueeze(x, 1) - weight_), {2}));
  }

 private:
  Tensor weight_;
};

void require_maps(const LayerKeys& keys, const LayerContext& at, std::int64_t maps = 0) {
  if (at.x.rank() != 4 || (maps > 0 && at.x.size(1) != maps))
    keys.refuse(cat(keys.kind(), " takes images [N, ", maps > 0 ? cat(maps) : "maps",
                    ", height, width], not ", shape_text(at.x)));
}

}  // namespace

FileLayer lenet_convolution_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t maps = keys.own_whole("maps", "{ lenet_convolution = 6 }");
  require_maps(keys, at);
  return layer_of(Convolution(at.x.size(1), maps, at.generator));
}

FileLayer lenet_subsampling_layer(LayerKeys& keys, const LayerContext& at) {
  (void)keys.own();
  require_maps(keys, at);
  return layer_of(Subsampling(at.x.size(1), at.generator));
}

FileLayer lenet_partial_convolution_layer(LayerKeys& keys, const LayerContext& at) {
  (void)keys.own();
  require_maps(keys, at, 6);
  return layer_of(PartialConvolution(at.generator));
}

FileLayer lenet_hidden_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t units = keys.own_whole("units", "{ lenet_hidden = 84 }");
  return layer_of(Hidden(at.x.size(-1), units, at.generator));
}

FileLayer lenet_drawings_layer(LayerKeys& keys, const LayerContext& at) {
  (void)keys.own();
  if (at.x.rank() != 2 || at.x.size(1) != kPrototypeWidth)
    keys.refuse(cat("lenet_drawings takes [N, ", kPrototypeWidth, "], not ", shape_text(at.x)));
  return layer_of(RadialBasis());
}

}  // namespace tenon::models
