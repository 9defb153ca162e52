// Composites against PyTorch: each row is a call, its number of elements, and their sum weighted by
// cos(i), as computed by PyTorch 2 in float64. (Gradients are compared with finite differences in
// the case table; those of poolings, where many elements here are equal, with PyTorch's too.)
#include <doctest/doctest.h>

#include <cmath>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/pooling.h>

using namespace tenon;

namespace {

/// Element i is (i step mod 11 - 5) / 4.
Tensor v(const Shape& shape, std::int64_t step = 7) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i)
    values.push_back(static_cast<double>(i * step % 11 - 5) / 4);
  return Tensor::from(values, shape);
}

Tensor indices(const std::vector<std::int64_t>& values, const Shape& shape) {
  return Tensor::from(values, shape);
}

// Gradient with respect to x of f's elements weighted by cos(i).
template <class F>
Tensor slope(const F& f, const Tensor& x) {
  const Tensor y = f(x);
  std::vector<double> weights;
  for (std::int64_t i = 0; i < y.numel(); ++i) weights.push_back(std::cos(static_cast<double>(i)));
  return grad(sum(y * Tensor::from(weights, y.shape())), x);
}

struct Row {
  const char* name;
  Tensor got;
  std::int64_t count;
  double sum;
};

}  // namespace

TEST_CASE("composites equal PyTorch") {
  for (const char* engine : {"reference", "fast"}) {
    set_engine(engine);
    const Row rows[] = {
        // clang-format off
        {"celu", celu(v({2, 6}), 1.5), 12, -1.39683961910921},
        {"selu", selu(v({2, 6})), 12, -1.64442557709708},
        {"hardswish", hardswish(v({2, 6}) * 4), 12, -2.95952457097577},
        {"logsigmoid", logsigmoid(v({2, 6})), 12, -0.642740317523765},
        {"glu", glu(v({2, 6})), 6, -1.48855123600072},
        {"prelu", prelu(v({2, 6}), v({6}, 3)), 12, 0.641767388351522},
        {"logaddexp", logaddexp(v({2, 6}), v({2, 6}, 5)), 12, -2.67585573752455},
        {"lerp", lerp(v({2, 6}), v({2, 6}, 5), 0.75), 12, -1.59500045551109},
        {"lerp of weights", lerp(v({2, 6}), v({2, 6}, 5), v({6}, 3)), 12, 2.69385646952303},
        {"stddev", stddev(v({2, 6}), {1}), 2, 1.40631541942427},
        {"population stddev", stddev(v({2, 6}), {0}, true, 0), 6, 0.816045384330041},
        {"vector_norm 3", vector_norm(v({2, 6}) + 0.1, 3, {1}), 2, 2.53223458147929},
        {"vector_norm 0.5", vector_norm(v({2, 6}) + 0.1, 0.5, {1}), 2, 37.3048378533507},
        {"vector_norm 0", vector_norm(v({2, 6}) + 0.1, 0, {1}), 2, 9.24181383520884},
        {"vector_norm 1", vector_norm(v({2, 6}) + 0.1, 1, {1}), 2, 6.79628479993959},
        {"vector_norm HUGE_VAL", vector_norm(v({2, 6}) + 0.1, HUGE_VAL, {1}), 2, 1.97134765174836},
        {"vector_norm -HUGE_VAL", vector_norm(v({2, 6}) + 0.1, -HUGE_VAL, {1}), 2, 0.404030230586814},
        {"cumsum", cumsum(v({2, 100}), 1), 200, -0.970439913969647},
        {"cumprod", cumprod(v({3, 40}) * 0.5 + 1, 0), 120, 0.488178112718921},
        {"cumprod long", cumprod(v({40}) * 0.1 + 1, 0), 40, 1.37308591407517},
        {"cosine_similarity", cosine_similarity(v({2, 6}), v({2, 6}, 5), 1), 2, 0.419853696236384},
        {"roll", roll(v({2, 6}), {1, -8}, {0, 1}), 12, 2.25342806132973},
        {"roll flat", roll(v({2, 6}), {5}), 12, 0.184768238339082},
        {"repeat", repeat(v({2, 6}), {2, 3, 2}), 144, -1.67933988090992},
        {"repeat_interleave", repeat_interleave(v({2, 6}), 3, 1), 36, -2.86147479945052},
        {"meshgrid", meshgrid({v({3}), v({4})})[0] * 2 + meshgrid({v({3}), v({4})})[1], 12, 2.46324984278748},
        {"meshgrid xy", meshgrid({v({3}), v({4})}, true)[0] * 2 + meshgrid({v({3}), v({4})}, true)[1], 12, -5.12425809569779},
        {"tril", tril(v({2, 3, 5}), 1), 30, 2.81851326099777},
        {"triu", triu(v({2, 3, 5}), -1), 30, -1.93238635371214},
        {"masked_fill", masked_fill(v({2, 6}), gt(v({2, 6}, 5), 0), -2), 12, -0.930582458521569},
        {"scatter", scatter(v({2, 6}), 1, indices({2, 0, 5, 1, 3, 4}, {2, 3}), v({2, 6}, 5)), 12, 1.67338772508725},
        {"scatter value", scatter(v({2, 6}), 1, indices({2, 0, 5, 1, 3, 4}, {2, 3}), 7), 12, -0.93210148897066},
        {"index_add", index_add(v({2, 6}), 1, indices({4, 0, 4}, {3}), v({2, 3}), 2), 12, 1.16990107724466},
        {"embedding", embedding(indices({2, 0, 2, 1}, {2, 2}), v({3, 4}), 2), 16, 1.50143607168599},
        {"conv1d", conv1d(v({2, 4, 9}), v({6, 2, 3}), v({6}), {2, 1, 2, 2}), 48, 14.8574849303373},
        {"conv3d", conv3d(v({2, 2, 5, 4, 5}), v({4, 1, 2, 3, 2}), v({4}), {{2, 1, 2}, {1, 2, 0}, {2, 1, 1}, 2}), 288, -23.6684246653607},
        {"conv_transpose1d", conv_transpose1d(v({2, 4, 5}), v({4, 3, 3}), v({6}), {3, 1, 2, 2, 2}), 204, -4.32984226496417},
        {"conv_transpose2d", conv_transpose2d(v({2, 4, 3, 4}), v({4, 1, 3, 2}), v({2}), {{2, 3}, {1, 0}, {1, 2}, {1, 2}, 2}), 336, -6.12102579882895},
        {"conv_transpose2d whole", conv_transpose2d(v({1, 2, 3, 4}), v({2, 3, 3, 2}), {}, {{1, 1}, {1, 1}, {2, 1}, {3, 2}, 1}), 135, 1.39979764454843},
        {"conv_transpose3d", conv_transpose3d(v({2, 4, 3, 2, 3}), v({4, 1, 2, 3, 2}), v({2}), {{2, 1, 2}, {1, 1, 0}, {1, 0, 1}, {1, 1, 2}, 2}), 320, 21.1753086676567},
        {"max_pool1d overlap", max_pool1d(v({2, 3, 11}), {.kernel = 3, .stride = 2, .padding = 1}), 36, 1.13332313981896},
        {"max_pool1d overlap gradient", slope([](const Tensor& x) { return max_pool1d(x, {.kernel = 3, .stride = 2, .padding = 1}); }, v({2, 3, 11})), 66, 0.0674580660226544},
        {"max_pool1d dilated", max_pool1d(v({2, 3, 11}), {.kernel = 3, .stride = 2, .padding = 1, .dilation = 3, .ceil_mode = true}), 24, -0.469705315653587},
        {"max_pool1d dilated gradient", slope([](const Tensor& x) { return max_pool1d(x, {.kernel = 3, .stride = 2, .padding = 1, .dilation = 3, .ceil_mode = true}); }, v({2, 3, 11})), 66, -3.42296306281946},
        {"max_pool1d of one", max_pool1d(v({1, 2, 1}), {.kernel = 1}), 2, -0.97984884706593},
        {"max_pool1d of one gradient", slope([](const Tensor& x) { return max_pool1d(x, {.kernel = 1}); }, v({1, 2, 1})), 2, 1.29192658172643},
        {"avg_pool1d overlap", avg_pool1d(v({2, 3, 11}), {.kernel = 4, .stride = 3, .padding = 2, .ceil_mode = true}), 30, 0.187415820946199},
        {"avg_pool1d overlap gradient", slope([](const Tensor& x) { return avg_pool1d(x, {.kernel = 4, .stride = 3, .padding = 2, .ceil_mode = true}); }, v({2, 3, 11})), 66, 1.64467916490023},
        {"avg_pool1d inside", avg_pool1d(v({2, 3, 11}), {.kernel = 4, .stride = 3, .padding = 2, .count_include_pad = false}), 24, -0.181963442303634},
        {"avg_pool1d inside gradient", slope([](const Tensor& x) { return avg_pool1d(x, {.kernel = 4, .stride = 3, .padding = 2, .count_include_pad = false}); }, v({2, 3, 11})), 66, -0.293673782475648},
        {"avg_pool2d divisor", avg_pool2d(v({2, 2, 7, 5}), {.kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 1}}, 5), 32, -2.2914878778058},
        {"avg_pool2d divisor gradient", slope([](const Tensor& x) { return avg_pool2d(x, {.kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 1}}, 5); }, v({2, 2, 7, 5})), 140, 0.15334022712076},
        {"avg_pool2d divisor hanging", avg_pool2d(v({2, 2, 7, 5}), {.kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 0}, .ceil_mode = true, .count_include_pad = false}, 5), 32, 2.42682747665486},
        {"avg_pool2d divisor hanging gradient", slope([](const Tensor& x) { return avg_pool2d(x, {.kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 0}, .ceil_mode = true, .count_include_pad = false}, 5); }, v({2, 2, 7, 5})), 140, -1.60487288598279},
        {"max_pool3d plain", max_pool3d(v({2, 2, 5, 6, 7}), {.kernel = {2, 2, 2}}), 72, 0.721855268875425},
        {"max_pool3d plain gradient", slope([](const Tensor& x) { return max_pool3d(x, {.kernel = {2, 2, 2}}); }, v({2, 2, 5, 6, 7})), 840, 0.0536572097583377},
        {"max_pool3d overlap", max_pool3d(v({2, 2, 5, 6, 7}), {.kernel = {3, 2, 3}, .stride = {2, 1, 2}, .padding = {1, 1, 1}}), 336, 0.902349874583575},
        {"max_pool3d overlap gradient", slope([](const Tensor& x) { return max_pool3d(x, {.kernel = {3, 2, 3}, .stride = {2, 1, 2}, .padding = {1, 1, 1}}); }, v({2, 2, 5, 6, 7})), 840, 8.10178894869304},
        {"max_pool3d dilated", max_pool3d(v({1, 3, 7, 6, 5}), {.kernel = {2, 3, 2}, .stride = {1, 2, 1}, .padding = {1, 0, 1}, .dilation = {3, 2, 1}, .ceil_mode = true}), 216, 5.79887578735314},
        {"max_pool3d dilated gradient", slope([](const Tensor& x) { return max_pool3d(x, {.kernel = {2, 3, 2}, .stride = {1, 2, 1}, .padding = {1, 0, 1}, .dilation = {3, 2, 1}, .ceil_mode = true}); }, v({1, 3, 7, 6, 5})), 630, 2.24957223043744},
        {"max_pool3d of one place", max_pool3d(v({2, 1, 1, 5, 1}), {.kernel = {1, 3, 1}, .stride = {1, 2, 1}}), 4, 0.0167366733376982},
        {"max_pool3d of one place gradient", slope([](const Tensor& x) { return max_pool3d(x, {.kernel = {1, 3, 1}, .stride = {1, 2, 1}}); }, v({2, 1, 1, 5, 1})), 10, 0.507847372518079},
        {"avg_pool3d overlap", avg_pool3d(v({2, 2, 5, 6, 7}), {.kernel = {3, 2, 3}, .stride = {2, 1, 2}, .padding = {1, 1, 1}}), 336, 0.689246165556899},
        {"avg_pool3d overlap gradient", slope([](const Tensor& x) { return avg_pool3d(x, {.kernel = {3, 2, 3}, .stride = {2, 1, 2}, .padding = {1, 1, 1}}); }, v({2, 2, 5, 6, 7})), 840, -0.4497802983636},
        {"avg_pool3d hanging", avg_pool3d(v({1, 2, 6, 5, 7}), {.kernel = {3, 2, 2}, .stride = {2, 3, 3}, .padding = {1, 0, 1}, .ceil_mode = true}), 48, 0.690055250740497},
        {"avg_pool3d hanging gradient", slope([](const Tensor& x) { return avg_pool3d(x, {.kernel = {3, 2, 2}, .stride = {2, 3, 3}, .padding = {1, 0, 1}, .ceil_mode = true}); }, v({1, 2, 6, 5, 7})), 420, 0.929702519122912},
        {"avg_pool3d inside", avg_pool3d(v({1, 2, 6, 5, 7}), {.kernel = {3, 2, 2}, .stride = {2, 3, 3}, .padding = {1, 0, 1}, .ceil_mode = true, .count_include_pad = false}), 48, 1.48133222732085},
        {"avg_pool3d inside gradient", slope([](const Tensor& x) { return avg_pool3d(x, {.kernel = {3, 2, 2}, .stride = {2, 3, 3}, .padding = {1, 0, 1}, .ceil_mode = true, .count_include_pad = false}); }, v({1, 2, 6, 5, 7})), 420, 1.52441977960531},
        {"avg_pool3d divisor", avg_pool3d(v({1, 2, 6, 5, 7}), {.kernel = {3, 2, 2}, .stride = {2, 3, 3}, .padding = {1, 0, 1}, .ceil_mode = true, .divisor = 7}), 48, 0.849081882867169},
        {"avg_pool3d divisor gradient", slope([](const Tensor& x) { return avg_pool3d(x, {.kernel = {3, 2, 2}, .stride = {2, 3, 3}, .padding = {1, 0, 1}, .ceil_mode = true, .divisor = 7}); }, v({1, 2, 6, 5, 7})), 420, 1.35777723292971},
        {"adaptive_avg_pool1d", adaptive_avg_pool1d(v({2, 3, 11}), 4), 24, -0.0238552247646194},
        {"adaptive_avg_pool1d gradient", slope([](const Tensor& x) { return adaptive_avg_pool1d(x, 4); }, v({2, 3, 11})), 66, -0.12436419492874},
        {"adaptive_max_pool1d", adaptive_max_pool1d(v({2, 3, 11}), 4), 24, -0.65526366482052},
        {"adaptive_max_pool1d gradient", slope([](const Tensor& x) { return adaptive_max_pool1d(x, 4); }, v({2, 3, 11})), 66, -0.635754644553969},
        {"adaptive_avg_pool3d", adaptive_avg_pool3d(v({2, 2, 7, 1, 5}), {3, 2, 4}), 96, -0.164440269938604},
        {"adaptive_avg_pool3d gradient", slope([](const Tensor& x) { return adaptive_avg_pool3d(x, {3, 2, 4}); }, v({2, 2, 7, 1, 5})), 140, -0.29928261501927},
        {"adaptive_max_pool3d", adaptive_max_pool3d(v({2, 2, 7, 1, 5}), {3, 2, 4}), 96, 1.42885962104962},
        {"adaptive_max_pool3d gradient", slope([](const Tensor& x) { return adaptive_max_pool3d(x, {3, 2, 4}); }, v({2, 2, 7, 1, 5})), 140, -2.06229644983914},
        {"nearest up", interpolate(v({2, 2, 3, 5}), {6, 15}), 360, -3.31217701776232},
        {"linear up", interpolate(v({2, 2, 3, 5}), {6, 15}, Interpolation::Linear), 360, -2.22064088460195},
        {"linear corners up", interpolate(v({2, 2, 3, 5}), {6, 15}, Interpolation::Linear, true), 360, -0.722616527018835},
        {"nearest odd", interpolate(v({2, 2, 3, 5}), {4, 7}), 112, 1.96560192334039},
        {"linear odd", interpolate(v({2, 2, 3, 5}), {4, 7}, Interpolation::Linear), 112, -2.08058136012061},
        {"linear corners odd", interpolate(v({2, 2, 3, 5}), {4, 7}, Interpolation::Linear, true), 112, -2.63554122841695},
        {"nearest down", interpolate(v({2, 2, 3, 5}), {2, 3}), 24, -4.44617066170464},
        {"linear down", interpolate(v({2, 2, 3, 5}), {2, 3}, Interpolation::Linear), 24, 0.6005237238758},
        {"linear corners down", interpolate(v({2, 2, 3, 5}), {2, 3}, Interpolation::Linear, true), 24, 0.215675693962956},
        {"rms_norm", rms_norm(v({2, 6}), {6}, v({6}, 3), 0.25), 12, -1.64287487274096},
        {"rms_norm eps", rms_norm(v({2, 6}), {6}), 12, -2.08430816751466},
        {"cross_entropy Mean", cross_entropy(v({4, 3, 2}), indices({0, 2, 1, 1, 2, 0, 2, 2}, {4, 2}), {Reduction::Mean, 0.2, v({3}, 3) + 2, 1}), 1, 1.82027442748062},
        {"nll_loss Mean", nll_loss(v({4, 3, 2}), indices({0, 2, 1, 1, 2, 0, 2, 2}, {4, 2}), {Reduction::Mean, 0, v({3}, 3) + 2, 1}), 1, 0.607142857142857},
        {"cross_entropy Sum", cross_entropy(v({4, 3, 2}), indices({0, 2, 1, 1, 2, 0, 2, 2}, {4, 2}), {Reduction::Sum, 0.2, v({3}, 3) + 2, 1}), 1, 19.1128814885465},
        {"nll_loss Sum", nll_loss(v({4, 3, 2}), indices({0, 2, 1, 1, 2, 0, 2, 2}, {4, 2}), {Reduction::Sum, 0, v({3}, 3) + 2, 1}), 1, 6.375},
        {"cross_entropy None", cross_entropy(v({4, 3, 2}), indices({0, 2, 1, 1, 2, 0, 2, 2}, {4, 2}), {Reduction::None, 0.2, v({3}, 3) + 2, 1}), 8, 7.08554279140787},
        {"nll_loss None", nll_loss(v({4, 3, 2}), indices({0, 2, 1, 1, 2, 0, 2, 2}, {4, 2}), {Reduction::None, 0, v({3}, 3) + 2, 1}), 8, 2.70494874556179},
        {"cross_entropy ignoring", cross_entropy(v({4, 3, 2}), indices({0, 2, 1, 1, 2, 0, 2, 2}, {4, 2}), {.ignore_index = 2}), 1, 1.72067726992243},
        {"cross_entropy of probabilities", cross_entropy(v({4, 3, 2}), softmax(v({4, 3, 2}, 3), 1), {Reduction::Mean, 0.1, v({3}, 3) + 2}), 1, 1.64553133751903},
        {"kl_div", kl_div(v({2, 6}), relu(v({2, 6}, 5)), Reduction::Sum), 1, -0.442479295756019},
        {"kl_div log", kl_div(v({2, 6}), v({2, 6}, 5), Reduction::Mean, true), 1, 0.684835309238222},
        {"bce", binary_cross_entropy(sigmoid(v({2, 6})), sigmoid(v({2, 6}, 5)), {Reduction::Sum, v({2, 6}, 5)}), 1, -0.510334587846902},
        {"bce certain", binary_cross_entropy(ones({2}, DType::Float64), v({2}, 0) * 0), 1, 100},
        {"bce_with_logits", binary_cross_entropy_with_logits(v({2, 6}), sigmoid(v({2, 6}, 5)), {Reduction::Mean, v({2, 6}, 5), v({6}, 3) + 2}), 1, 0.0355907357273529},
        // clang-format on
    };
    for (const Row& row : rows) {
      CAPTURE(row.name);
      CHECK(row.got.numel() == row.count);
      double sum = 0;
      const std::vector<double> values = row.got.to_vector<double>();
      for (std::size_t i = 0; i < values.size(); ++i)
        sum += values[i] * std::cos(static_cast<double>(i));
      CHECK(sum == doctest::Approx(row.sum).epsilon(1e-9));
    }
  }
  set_engine("fast");
}

TEST_CASE("the padding entry of an embedding has no gradient") {
  const Tensor weight = v({3, 2}), rows = embedding(indices({2, 0, 2, 0}, {2, 2}), weight, -1);
  CHECK(rows.shape() == Shape{2, 2, 2});
  CHECK(grad(sum(rows), weight).to_vector<double>() == std::vector<double>{2, 2, 0, 0, 0, 0});
}

TEST_CASE("scatter: of equal indices the last one wins, and errors name the called op") {
  const Tensor x = v({1, 3}) * 0;
  CHECK(scatter(x, 1, indices({1, 0, 1, 1}, {1, 4}), v({1, 4}, 1)).to_vector<double>() ==
        std::vector<double>{-1, -0.5, 0});
  CHECK_THROWS_WITH_AS(conv1d(v({2, 4, 9}), v({6, 3, 3})),
                       doctest::Contains("conv1d: input has 4 channels"), ShapeError);
  CHECK_THROWS_AS(glu(v({3})), ShapeError);
  CHECK_THROWS_AS(embedding(indices({0}, {1}), v({3, 2}), 3), ValueError);
  CHECK_THROWS_AS(
      conv_transpose2d(v({1, 2, 3, 3}), v({2, 1, 2, 2}), {}, {.output_padding = {1, 0}}),
      ValueError);
}
