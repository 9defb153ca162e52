// Layers of shapes, activations, parametrizations, losses as layers and rotary frequencies compared
// with PyTorch and Hugging Face: results, and gradients of parameters and inputs.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/layers.h>
#include <tenon/loss_layers.h>
#include <tenon/more_layers.h>
#include <tenon/optim.h>
#include <tenon/parametrizations.h>
#include <tenon/random_layers.h>
#include <tenon/shape_layers.h>
#include <tenon/transformer.h>

#include "e2e/fixtures.h"
#include "grad/numeric.h"

using namespace tenon;
using fixtures::distance;
using fixtures::part;
using fixtures::Tensors;

namespace {

struct Symmetric : nn::Module {
  Tensor forward(const Tensor& x) const override { return triu(x) + transpose(triu(x, 1), -1, -2); }
};

const std::map<std::string, nn::AnyModule>& layers() {
  using namespace nn;  // NOLINT: a long list of its names
  static const std::map<std::string, AnyModule> all{
      {"reflection_pad1d", ReflectionPad1d({2, 1})},
      {"reflection_pad2d", ReflectionPad2d({2, 1, 0, 3})},
      {"reflection_pad3d", ReflectionPad3d(1)},
      {"replication_pad1d", ReplicationPad1d(3)},
      {"replication_pad2d", ReplicationPad2d({2, 1, 0, 3})},
      {"replication_pad3d", ReplicationPad3d({1, 0, 2, 1, 0, 2})},
      {"circular_pad1d", CircularPad1d({2, 1})},
      {"circular_pad2d", CircularPad2d(2)},
      {"circular_pad3d", CircularPad3d({1, 0, 2, 1, 0, 2})},
      {"zero_pad1d", ZeroPad1d({1, -1})},
      {"zero_pad2d", ZeroPad2d(2)},
      {"zero_pad3d", ZeroPad3d({1, 0, 2, 1, 0, 2})},
      {"constant_pad1d", ConstantPad1d({2, 1}, 1.5)},
      {"constant_pad2d", ConstantPad2d({2, 1, 0, 1}, -2)},
      {"constant_pad3d", ConstantPad3d(1, 0.5)},
      {"upsample", Upsample(2)},
      {"upsample_size", Upsample({5, 7}, {Interpolation::Linear, true})},
      {"upsample_linear", Upsample(1.5, {Interpolation::Linear})},
      {"upsample_cubic", Upsample(1.7, {Interpolation::Cubic})},
      {"rrelu", RReLU(0.2, 0.4)},
      {"alpha_dropout", AlphaDropout(0.3)},
      {"feature_alpha_dropout", FeatureAlphaDropout(0.3)},
      {"upsampling_nearest2d", UpsamplingNearest2d({4, 9})},
      {"upsampling_bilinear2d", UpsamplingBilinear2d(3)},
      {"pixel_shuffle", PixelShuffle(2)},
      {"pixel_unshuffle", PixelUnshuffle(3)},
      {"channel_shuffle", ChannelShuffle(3)},
      {"unflatten", Unflatten(1, {2, -1})},
      {"unfold", Unfold({.kernel = {2, 3}, .dilation = 2, .padding = 1, .stride = {1, 2}})},
      {"fold", Fold({5, 6}, {.kernel = {2, 3}, .padding = 1, .stride = 2})},
      {"tanhshrink", Tanhshrink()},
      {"softmax2d", Softmax2d()},
      {"softmin", Softmin(0)},
      {"softshrink", Softshrink(0.3)},
      {"hardshrink", Hardshrink(0.4)},
      {"softplus", Softplus(2, 1.5)},
      {"hardtanh", Hardtanh(-0.3, 0.8)},
      {"threshold", Threshold(0.1, -3)},
      {"weight_norm_linear", WeightNorm(Linear(4, 3))},
      {"weight_norm_all", WeightNorm(Linear(4, 3), {.axis = std::nullopt})},
      {"weight_norm_conv", WeightNorm(Conv2d(2, 3, 3, {.padding = 1}), {.axis = 1})},
      {"weight_norm_bias", WeightNorm(Linear(4, 3), {.name = "bias"})},
      {"spectral_norm_linear", SpectralNorm(Linear(4, 3))},
      {"spectral_norm_conv", SpectralNorm(Conv2d(2, 3, 3), {.n_power_iterations = 2})},
      {"spectral_norm_transposed", SpectralNorm(ConvTranspose2d(2, 3, 3), {.axis = 1})},
      {"parametrized", Parametrized(Linear(3, 3), "weight", Symmetric())},
  };
  return all;
}

using Loss = std::function<Tensor(const Tensors& in)>;
const std::map<std::string, Loss>& losses() {
  using In = const Tensors&;
  static const std::map<std::string, Loss> all{
      {"loss_hinge_embedding",
       [](In in) { return nn::HingeEmbeddingLoss{.margin = 0.5}(in.at("x0"), in.at("y0")); }},
      {"loss_soft_margin",
       [](In in) {
         return nn::SoftMarginLoss{.reduction = Reduction::Sum}(in.at("x0"), in.at("y0"));
       }},
      {"loss_multi_margin",
       [](In in) { return nn::MultiMarginLoss{.p = 2, .margin = 0.7}(in.at("x0"), in.at("y0")); }},
      {"loss_multi_label_margin",
       [](In in) { return nn::MultiLabelMarginLoss{}(in.at("x0"), in.at("y0")); }},
      {"loss_multi_label_soft_margin",
       [](In in) { return nn::MultiLabelSoftMarginLoss{}(in.at("x0"), in.at("y0")); }},
      {"loss_poisson_nll",
       [](In in) { return nn::PoissonNLLLoss{.full = true}(in.at("x0"), in.at("y0")); }},
      {"loss_margin_ranking",
       [](In in) {
         return nn::MarginRankingLoss{.margin = 0.3}(in.at("x0"), in.at("x1"), in.at("y0"));
       }},
      {"loss_cosine_embedding",
       [](In in) {
         return nn::CosineEmbeddingLoss{.margin = 0.2}(in.at("x0"), in.at("x1"), in.at("y0"));
       }},
      {"loss_triplet_margin",
       [](In in) {
         return nn::TripletMarginLoss{{.margin = 1.5, .p = 3, .swap = true}}(
             in.at("x0"), in.at("x1"), in.at("x2"));
       }},
      {"loss_triplet_margin_with_distance",
       [](In in) {
         return nn::TripletMarginWithDistanceLoss{
             {.distance = [](const Tensor& a, const Tensor& b) { return sum(abs(a - b), {-1}); },
              .margin = 2.5}}(in.at("x0"), in.at("x1"), in.at("x2"));
       }},
      {"loss_gaussian_nll",
       [](In in) {
         return nn::GaussianNLLLoss{.full = true}(in.at("x0"), in.at("x1"),
                                                  square(in.at("x2")) + 0.1);
       }},
      {"loss_ctc",
       [](In in) {
         return nn::CTCLoss{{.blank = 1, .zero_infinity = true}}(
             log_softmax(in.at("x0"), -1), in.at("y0"), in.at("y1"), in.at("y2"));
       }},
  };
  return all;
}

struct Called {
  std::optional<nn::AnyModule> net;
  std::function<Tensors(const Tensors& in)> call;
};

Called called(const std::string& name) {
  if (losses().contains(name))
    return {{}, [name](const Tensors& in) -> Tensors {
              return {{"output", losses().at(name)(in)}};
            }};
  if (name.starts_with("adaptive")) {
    nn::AdaptiveSoftmaxOptions options;
    if (name == "adaptive_bias") options = {.div_value = 2, .head_bias = true};
    const nn::AdaptiveLogSoftmaxWithLoss net(20, 12, {3, 7}, options);
    return {net, [net](const Tensors& in) -> Tensors {
              const auto [output, loss] = net(in.at("x"), in.at("target"));
              return {{"output", output}, {"loss", loss}, {"log_prob", net.log_prob(in.at("x"))}};
            }};
  }
  if (name.starts_with("bilinear")) {
    const nn::Bilinear net(3, 4, 5, {.bias = name == "bilinear"});
    return {net, [net](const Tensors& in) -> Tensors {
              return {{"output", net(in.at("a"), in.at("b"))}};
            }};
  }
  if (name == "linear_cross_entropy") {
    const nn::LinearCrossEntropyLoss net(4, 6, {.label_smoothing = 0.1}, {});
    return {net, [net](const Tensors& in) -> Tensors {
              return {{"output", net(in.at("x"), in.at("target"))}};
            }};
  }
  if (name == "distances")
    return {{}, [](const Tensors& in) -> Tensors {
              return {{"cosine", nn::CosineSimilarity(-1, 1e-3)(in.at("a"), in.at("b"))},
                      {"distance", nn::PairwiseDistance(3, 1e-2, true)(in.at("a"), in.at("b"))}};
            }};
  nn::AnyModule net = layers().at(name);
  net.eval();
  return {net, [net](const Tensors& in) -> Tensors { return {{"output", net(in.at("x"))}}; }};
}

// The weighted sum of the results, with the fixture's weights.
Tensor total_of(const Tensors& results, const Tensors& stored) {
  Tensor total = scalar(0);
  for (const auto& [key, result] : results)
    if (stored.contains("g/" + key)) total = total + sum(result * stored.at("g/" + key));
  return total;
}

}  // namespace

TEST_CASE("fixtures: more layers and losses give PyTorch's results and gradients") {
  std::size_t count = 0;
  for (const auto& [name, stored] : fixtures::load("more_layers")) {
    if (name.starts_with("rotary") || name == "spectral_norm_training") continue;
    CAPTURE(name);
    ++count;
    Called layer = called(name);
    const Tensors weights = part(stored, "weights/"), in = part(stored, "in/");
    StateDict parameters;
    if (layer.net) {
      CHECK(layer.net->load_state_dict(weights) == static_cast<int>(weights.size()));
      parameters = layer.net->state_dict();
      CHECK(parameters.size() == weights.size());
    }
    const Tensors results = layer.call(in);
    for (const auto& [key, result] : results) {
      CAPTURE(key);
      CHECK(result.shape() == stored.at("out/" + key).shape());
      CHECK(distance(result, stored.at("out/" + key)) < 3e-6);
    }
    const Tensors gradients = part(stored, "d/");
    std::vector<Tensor> wanted;
    for (const auto& [key, gradient] : gradients)
      wanted.push_back(parameters.contains(key) ? parameters.at(key) : in.at(key));
    const std::vector<Tensor> found = grad(total_of(results, stored), wanted);
    std::size_t k = 0;
    for (const auto& [key, gradient] : gradients) {
      CAPTURE(key);
      const Tensor& mine = found[k++];
      CHECK((norm(mine - gradient).item() < 3e-6 || distance(mine, gradient) < 1e-5));
    }
  }
  CHECK(count == layers().size() + losses().size() + 6);
}

TEST_CASE("fixtures: in training mode spectral norm improves its vectors, as in PyTorch") {
  const Tensors stored = fixtures::load("more_layers").at("spectral_norm_training");
  nn::SpectralNorm net(nn::Linear(4, 3), {.eps = 1e-4});
  net.load_state_dict(part(stored, "weights/"));
  const Tensor x = stored.at("in/x"), y = net(x);
  const StateDict state = net.state_dict();
  const Tensor original = state.at("parametrizations.weight.original");
  const std::vector<Tensor> wanted{original, x};
  const std::vector<Tensor> slopes = grad(sum(y * stored.at("g/output")), wanted);
  compute({y, slopes[0], slopes[1]});
  CHECK(distance(y, stored.at("out/output")) < 3e-6);
  CHECK(distance(slopes[0], stored.at("d/parametrizations.weight.original")) < 1e-5);
  CHECK(distance(slopes[1], stored.at("d/x")) < 1e-5);
  CHECK(distance(net(x), stored.at("out/second")) < 3e-6);
  for (const char* key : {"_u", "_v"})
    CHECK(distance(state.at(std::string("parametrizations.weight.0.") + key),
                   stored.at(std::string("out/") + key)) < 3e-6);
}

TEST_CASE("fixtures: rotary frequencies for long sequences are Hugging Face's") {
  const std::map<std::string, nn::RotaryOptions> all{
      {"rotary_linear", nn::rotary_linear(32, 4)},
      {"rotary_dynamic", nn::rotary_dynamic(32, 2, 64, 100)},
      {"rotary_dynamic_short", nn::rotary_dynamic(32, 2, 64, 10)},
      {"rotary_yarn", nn::rotary_yarn(32, {.factor = 8, .trained_length = 64})},
      {"rotary_yarn_options", nn::rotary_yarn(32,
                                              {.factor = 4,
                                               .trained_length = 64,
                                               .beta_fast = 8,
                                               .beta_slow = 2,
                                               .attention_factor = 1.5,
                                               .truncate = false},
                                              5000)},
      {"rotary_llama3", nn::rotary_llama3(32, {.trained_length = 64})},
  };
  const auto stored = fixtures::load("more_layers");
  for (const auto& [name, options] : all) {
    CAPTURE(name);
    const std::vector<double> expected = fixtures::numbers(stored.at(name).at("frequencies"));
    REQUIRE(options.frequencies.size() == expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k)
      CHECK(options.frequencies[k] == doctest::Approx(expected[k]).epsilon(2e-6));
    CHECK(options.scale == doctest::Approx(stored.at(name).at("scale").item()));
  }
  // The rotation uses them: linear scaling by 4 is the rotation of positions divided by 4.
  const Tensor x = randn({3, 5, 32}), at = Tensor::from<std::int64_t>({0, 4, 8, 12, 16}, {5});
  CHECK(distance(nn::rotary(x, at, nn::rotary_linear(32, 4)), nn::rotary(x)) < 1e-5);
  nn::RotaryOptions scaled = nn::rotary_linear(32, 1);
  scaled.scale = 2;
  CHECK(distance(nn::rotary(x, {}, scaled), nn::rotary(x) * 2) < 1e-5);
  CHECK_THROWS_WITH_AS(nn::rotary(zeros({2, 4}), {}, scaled),
                       doctest::Contains("16 frequencies for 2 pairs"), ValueError);
  CHECK_THROWS_AS(nn::rotary_linear(7, 2), ValueError);
  CHECK_THROWS_AS(nn::rotary_linear(8, 0.5), ValueError);
  CHECK_THROWS_AS(nn::rotary_dynamic(8, 2, 0, 5), ValueError);
  CHECK_THROWS_AS(nn::rotary_yarn(8, {.factor = 2}), ValueError);
  CHECK_THROWS_AS(nn::rotary_llama3(8, {.low_freq_factor = 4}), ValueError);
}

TEST_CASE("layers: paddings, Upsample and the adaptive softmax refuse what does not fit") {
  CHECK_THROWS_WITH_AS(
      nn::ReflectionPad2d({1, 2}),
      doctest::Contains("ReflectionPad2d(padding=(1, 2)): 2 sizes, must be 1 or 4"), ValueError);
  CHECK_THROWS_WITH_AS(nn::CircularPad1d(1)(zeros({2, 3, 4, 5})),
                       doctest::Contains("must have 3 axes, or 2 without a batch"), ShapeError);
  CHECK_THROWS_AS(nn::ZeroPad2d(1)(zeros({3})), ShapeError);
  CHECK(nn::ZeroPad2d(1)(zeros({0, 3})).shape() == Shape{2, 5});
  CHECK_THROWS_AS(nn::Upsample(0), ValueError);
  CHECK_THROWS_AS(nn::Upsample(Ints{}), ValueError);
  CHECK_THROWS_AS(nn::Upsample({2, 0}), ValueError);
  CHECK_THROWS_WITH_AS(nn::Upsample({2, 3})(zeros({1, 1, 4})), doctest::Contains("interpolate"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(nn::AdaptiveLogSoftmaxWithLoss(20, 12, {7, 3}),
                       doctest::Contains("a cutoff is 3, must be above 7"), ValueError);
  CHECK_THROWS_AS(nn::AdaptiveLogSoftmaxWithLoss(20, 12, {}), ValueError);
  CHECK_THROWS_AS(nn::AdaptiveLogSoftmaxWithLoss(20, 12, {12}), ValueError);
  CHECK_THROWS_WITH_AS(nn::AdaptiveLogSoftmaxWithLoss(20, 12, {3, 7}, {.div_value = 100}),
                       doctest::Contains("div_value is 100"), ValueError);
  const nn::AdaptiveLogSoftmaxWithLoss net(20, 12, {3, 7});
  CHECK_THROWS_AS(net(zeros({2, 20}), zeros({3}, DType::Int64)), ShapeError);
  CHECK_THROWS_AS(net(zeros({1, 20}), full({1}, 12, DType::Int64)).loss.item(), ValueError);
  const Tensor x = randn({20}), target = scalar(5, DType::Int64);
  CHECK(net(x, target).output.shape() == Shape{});
  CHECK(sum(exp(net.log_prob(x))).item() == doctest::Approx(1));
  CHECK(net.predict(x).item() == argmax(net.log_prob(x)).item());
}

TEST_CASE("layers: Hardtanh has limits of its own, passes NaN, and has no gradient at the limits") {
  const Tensor x = variable(Tensor::from<float>({-2, -1, 0, 2, 3}, {5}));
  CHECK(nn::Hardtanh(-1, 2)(x).to_vector<float>() == std::vector<float>{-1, -1, 0, 2, 2});
  CHECK(grad(sum(nn::Hardtanh(-1, 2)(x)), x).to_vector<float>() ==
        std::vector<float>{0, 0, 1, 0, 0});
  CHECK(std::isnan(nn::Hardtanh(-1, 2)(scalar(NAN)).item()));
  CHECK_THROWS_AS(nn::Hardtanh(1, 1), ValueError);
}

TEST_CASE("layers: random slopes, dropout and windows in training mode") {
  const Tensor x = randn({200, 50}).compute();
  nn::RReLU slopes(0.2, 0.4);
  const Tensor ratio = where(lt(x, 0), slopes(x) / x, full({}, 0.3)).compute();
  CHECK(amin(ratio).item() >= 0.199);
  CHECK(amax(ratio).item() <= 0.401);
  CHECK(amax(ratio).item() - amin(ratio).item() > 0.15);
  slopes.eval();
  CHECK(distance(slopes(x), where(lt(x, 0), x * 0.3, x)) < 1e-6);
  const Tensor dropped = nn::AlphaDropout(0.3)(x).compute();
  CHECK(mean(dropped).item() == doctest::Approx(0).epsilon(0.06));
  CHECK(var(dropped).item() == doctest::Approx(1).epsilon(0.06));
  const Tensor image = randn({2, 3, 12, 10}).compute();
  CHECK(nn::FractionalMaxPool2d(2)(image).shape() == Shape{2, 3, 6, 5});
  CHECK(nn::FractionalMaxPool2d(2, {.output = Pair{7, 4}})(image).shape() == Shape{2, 3, 7, 4});
  CHECK(nn::FractionalMaxPool3d(2, {.ratio = 0.6})(randn({1, 2, 5, 10, 10})).shape() ==
        Shape{1, 2, 3, 6, 6});
  CHECK(amax(nn::FractionalMaxPool2d(3)(image)).item() <= amax(image).item());
  CHECK_THROWS_AS(nn::RReLU(0.4, 0.2), ValueError);
  CHECK_THROWS_AS(nn::AlphaDropout(1.5), ValueError);
  CHECK_THROWS_AS(nn::FractionalMaxPool2d(2, {.ratio = 1}), ValueError);
  CHECK_THROWS_AS(nn::FractionalMaxPool2d(2)(zeros({4, 4})), ShapeError);
  CHECK_THROWS_AS(nn::Bilinear(0, 1, 1), ValueError);
}

TEST_CASE("layers: losses of an output and a target are losses of the Trainer, sample by sample") {
  const Tensor x = randn({4, 3}).compute(),
               ones_or_not = cast(gt(randn({4, 3}), 0), DType::Float32);
  compute({ones_or_not});
  const std::vector<nn::Loss> all{nn::SoftMarginLoss{}, nn::HingeEmbeddingLoss{},
                                  nn::FocalLoss{},      nn::MultiLabelSoftMarginLoss{},
                                  nn::PoissonNLLLoss{}, nn::MultiMarginLoss{},
                                  nn::DiceLoss{}};
  for (std::size_t k = 0; k < all.size(); ++k) {
    CAPTURE(k);
    const Tensor target = k == 5 ? Tensor::from<std::int64_t>({0, 2, 1, 1}, {4}) : ones_or_not;
    const nn::LossTerms terms = all[k].terms(x, target);
    CHECK(terms.total.item() / terms.counted.item() ==
          doctest::Approx(all[k](x, target).item()).epsilon(1e-5));
  }
  const Tensor b = randn({4, 3});
  CHECK(nn::InfoNCELoss{.temperature = 0.5}(x, b).item() ==
        doctest::Approx(info_nce_loss(x, b, 0.5).item()));
}

TEST_CASE("parametrizations: training, saving, other dtypes and compiled steps") {
  nn::Sequential net(nn::WeightNorm(nn::Conv2d(1, 4, 3)), nn::ReLU(), nn::Flatten(),
                     nn::SpectralNorm(nn::Linear(16, 3)));
  const Tensor x = randn({6, 1, 4, 4}).compute(), y = randn({6, 3}).compute();
  const StateDict state = net.state_dict();
  for (const char* key :
       {"0.parametrizations.weight.original0", "0.parametrizations.weight.original1", "0.bias",
        "3.parametrizations.weight.original", "3.parametrizations.weight.0._u",
        "3.parametrizations.weight.0._v", "3.bias"})
    CHECK(state.contains(key));
  CHECK(state.size() == 7);
  CHECK(net.named_trainable_parameters().size() == 5);
  optim::Adam adam(net, {.lr = 0.02});
  const double before = mse_loss(net(x), y).item();
  for (int k = 0; k < 40; ++k) adam.step(mse_loss(net(x), y));
  net.eval();
  CHECK(mse_loss(net(x), y).item() < before * 0.9);

  nn::Sequential other(nn::WeightNorm(nn::Conv2d(1, 4, 3)), nn::ReLU(), nn::Flatten(),
                       nn::SpectralNorm(nn::Linear(16, 3)));
  other.load_state_dict(net.state_dict());
  other.eval();
  CHECK(equal(other(x), net(x)));
  const CompiledFunction f =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; });
  CHECK(distance(f({x})[0], net(x)) < 1e-6);

  const Tensor single = net(x).compute();
  net.to(DType::Float64);
  const Tensor wide = net(cast(x, DType::Float64));
  CHECK(wide.dtype() == DType::Float64);
  CHECK(distance(wide, cast(single, DType::Float64)) < 1e-5);
  CHECK(wide.defined());
}

TEST_CASE("parametrizations: the largest singular value becomes 1, and gradients are right") {
  nn::SpectralNorm layer(nn::Linear(6, 4), {.n_power_iterations = 60});
  layer(randn({1, 6})).compute();
  layer.eval();
  const Tensor w = layer.value();
  Tensor v = ones({6, 1});
  for (int k = 0; k < 80; ++k) {
    v = matmul(transpose(w, 0, 1), matmul(w, v));
    v = v / sqrt(sum(square(v)));
  }
  CHECK(sqrt(sum(square(matmul(w, v)))).item() == doctest::Approx(1).epsilon(1e-4));

  nn::WeightNorm norm(nn::Linear(3, 2));
  norm.to(DType::Float64);
  const Tensor x = cast(randn({4, 3}), DType::Float64).compute();
  const StateDict state = norm.state_dict();
  const Tensor direction = state.at("parametrizations.weight.original1");
  const auto loss = [&] { return sum(square(tanh(norm(x)))); };
  const Tensor slope = grad(loss(), direction).compute();
  const Tensor curve = grad(sum(slope * 0 + square(grad(loss(), direction))), direction).compute();
  const std::vector<double> start = direction.to_vector<double>();
  for (std::size_t k = 0; k < start.size(); ++k) {
    const auto at = [&](double step, const auto& f) {
      std::vector<double> moved = start;
      moved[k] += step;
      set_value(direction, Tensor::from(moved, direction.shape()));
      const double value = f().item();
      set_value(direction, Tensor::from(start, direction.shape()));
      return value;
    };
    const auto squared = [&] { return sum(square(grad(loss(), direction))); };
    CHECK((at(1e-5, loss) - at(-1e-5, loss)) / 2e-5 ==
          doctest::Approx(slope.to_vector<double>()[k]).epsilon(1e-6));
    CHECK((at(1e-5, squared) - at(-1e-5, squared)) / 2e-5 ==
          doctest::Approx(curve.to_vector<double>()[k]).epsilon(1e-5));
  }
}

TEST_CASE("parametrizations: layers that cannot be parametrized are refused") {
  CHECK_THROWS_WITH_AS(nn::WeightNorm(nn::BatchNorm2d(3)), doctest::Contains("without children"),
                       ValueError);
  CHECK_THROWS_WITH_AS(nn::WeightNorm(nn::Sequential(nn::Linear(2, 2))),
                       doctest::Contains("cannot be parametrized"), ValueError);
  CHECK_THROWS_WITH_AS(nn::WeightNorm(nn::Linear(2, 2), {.name = "wight"}),
                       doctest::Contains("no parameter 'wight'"), ValueError);
  CHECK_THROWS_AS(nn::WeightNorm(nn::Linear(2, 2), {.axis = 2}), ValueError);
  CHECK_THROWS_AS(nn::SpectralNorm(nn::Linear(2, 2), {.name = "bias"}), ValueError);
  CHECK_THROWS_AS(nn::SpectralNorm(nn::Linear(2, 2), {.n_power_iterations = 0}), ValueError);
  CHECK_THROWS_AS(nn::Parametrized(nn::Linear(2, 3), "weight", nn::Flatten(0)), ShapeError);
}

TEST_CASE("layers: descriptions name the options") {
  CHECK(nn::ConstantPad2d({1, 2, 3, 4}, 0.5).describe() ==
        "ConstantPad2d(padding=(1, 2, 3, 4), value=0.5)");
  CHECK(nn::ZeroPad3d(1).describe() == "ZeroPad3d(padding=(1, 1, 1, 1, 1, 1))");
  CHECK(nn::Upsample(2, {Interpolation::Linear, true}).describe() ==
        "Upsample(scale_factor=2, mode=linear, align_corners=true)");
  CHECK(nn::Unfold({.kernel = 3, .stride = {1, 2}}).describe() ==
        "Unfold(kernel_size=(3, 3), stride=(1, 2))");
  CHECK(nn::WeightNorm(nn::Linear(3, 4)).describe() == "WeightNorm(Linear(3, 4), axis=0)");
  CHECK(nn::SpectralNorm(nn::Linear(3, 4)).describe() ==
        "Parametrized(Linear(3, 4), SpectralNorm)");
  CHECK(nn::PairwiseDistance(1, 0.1, true).describe() ==
        "PairwiseDistance(1, eps=0.1, keepdim=true)");
  CHECK(nn::Softplus(2).describe() == "Softplus(2, 20)");
  CHECK(nn::Hardtanh().describe() == "Hardtanh()");
  CHECK(nn::Threshold(0.1, 20).describe() == "Threshold(0.1, 20)");
}
