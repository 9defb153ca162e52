// Fully connected networks: mlp of any sizes, and FCN-S and FCN-R of the 2017 benchmark of
// deep-learning tools (Shi et al., arXiv 1608.07249).
#include <charconv>
#include <cmath>
#include <functional>

#include <tenon/error.h>

#include "base/str.h"
#include "models/entry.h"

namespace tenon::models {
namespace {

using nn::AnyModule;

constexpr char kMlpDefault[] = "784-512-256-10";
constexpr std::int64_t kLargestLayer = 1 << 24;

// A perceptron takes inputs of any shape: all axes but the first are laid in a row. It is no layer
// of its own, lest the numbers in the parameters' names move.
class Mlp : public nn::Sequential {
 public:
  using Sequential::Sequential;
  Tensor forward(const Tensor& x) const override {
    return Sequential::forward(x.rank() > 2 ? flatten(x, 1) : x);
  }
  std::string describe() const override { return "Mlp"; }
};

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

using Draw = nn::Initializer;

std::vector<AnyModule> layers_of(const std::vector<std::int64_t>& sizes,
                                 const std::string& activation, const OptionalGenerator& g,
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
  return Mlp(layers_of(layers, o.activation.empty() ? "relu" : o.activation, o.generator));
}

Info sized_mlp(const Info& standard, const std::string& text) {
  const std::vector<std::int64_t> sizes = sizes_of(text);
  Info out = standard;
  out.name = cat("mlp:", text);
  out.input = {sizes.front()};
  out.classes = sizes.back();
  out.parameters = 0;
  for (std::size_t k = 0; k + 1 < sizes.size(); ++k)
    out.parameters += (sizes[k] + 1) * sizes[k + 1];
  return out;
}

// Several layers of sigmoids do not learn from PyTorch's default values: a sigmoid's slope is at
// most 1/4, so signals and gradients fade. Xavier's values scaled by 4 make up for the slope
// (Glorot and Bengio, 2010).
AnyModule sigmoid_network(const std::vector<std::int64_t>& sizes, const OptionalGenerator& g) {
  const auto draw = [outputs = sizes.back()](const Shape& weight,
                                             const OptionalGenerator& generator) {
    return nn::init::xavier_normal(weight, weight[0] == outputs ? 1.0 : 4.0, generator);
  };
  Mlp net(layers_of(sizes, "sigmoid", g, draw));
  for (const nn::NamedTensor& p : net.named_parameters())
    if (p.tensor.rank() == 1) set_value(p.tensor, zeros_like(p.tensor));
  return net;
}

AnyModule fcn_r(const std::string&, const Options& o) {
  return sigmoid_network({784, 2048, 4096, 1024, o.classes}, o.generator);
}

AnyModule fcn_s(const std::string&, const Options& o) {
  return sigmoid_network({26752, 2048, 2048, 2048, o.classes}, o.generator);
}

std::string mlp_toml(const std::string& sizes, const Options& o) {
  const std::vector<std::int64_t> all = sizes_of(sizes.empty() ? kMlpDefault : sizes);
  const std::string activation = o.activation.empty() ? "relu" : o.activation;
  std::string out = "layers = [\n";
  for (std::size_t k = 1; k < all.size(); ++k)
    out += k + 1 < all.size() ? cat("  { linear = ", all[k], " }, \"", activation, "\",\n")
           : sizes.empty()    ? std::string("  { linear = \"classes\" },\n")
                              : cat("  { linear = ", all[k], " },\n");
  return out + "]\n";
}

std::string sigmoids_toml(const std::vector<std::int64_t>& hidden, const Options& o) {
  std::string out = "layers = [\n";
  for (const std::int64_t size : hidden)
    out += cat("  { linear = ", size, ", init = { xavier_normal = ", size == o.classes ? 1 : 4,
               " }, bias_init = 0 }, \"sigmoid\",\n");
  return out + "  { linear = \"classes\", init = { xavier_normal = 1 }, bias_init = 0 },\n]\n";
}

std::string fcn_r_toml(const std::string&, const Options& o) {
  return sigmoids_toml({2048, 4096, 1024}, o);
}

std::string fcn_s_toml(const std::string&, const Options& o) {
  return sigmoids_toml({2048, 2048, 2048}, o);
}

}  // namespace

std::vector<Entry> perceptron_entries() {
  // Found by search on MNIST, several seeds; docs/models.md has the figures. FCN-S is a benchmark
  // on random numbers: its recipe is the benchmark's.
  const Recipe sgd{.epochs = 8, .lr = 0.05, .weight_decay = 5e-4, .warmup = 0.5};
  const Recipe adam{
      .epochs = 5, .batch = 256, .optimizer = "adam", .lr = 0.0015, .momentum = 0, .warmup = 0.5};
  const Recipe benchmark{.epochs = 1,
                         .lr = 0.01,
                         .momentum = 0,
                         .schedule = "constant",
                         .warmup = 0,
                         .data = "random"};
  return {
      {{"mlp", "fully connected layers; mlp:784-300-10 gives the sizes", {784}, 10, 535'818, sgd},
       mlp,
       sized_mlp,
       true,
       false,
       mlp_toml},
      {{"fcn_r",
        "784-2048-4096-1024-10 with sigmoids, the FCN-R of the 2017 benchmark",
        {784},
        10,
        14'205'962,
        adam},
       fcn_r,
       nullptr,
       false,
       false,
       fcn_r_toml},
      {{"fcn_s",
        "26752-2048-2048-2048-26752 with sigmoids, the FCN-S of the 2017 benchmark",
        {26752},
        26752,
        117'997'696,
        benchmark},
       fcn_s,
       nullptr,
       false,
       false,
       fcn_s_toml}};
}

}  // namespace tenon::models
