// Orthogonal: PyTorch's weights, the first value, training, and refusals; and the padding modes of
// convolutions.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

struct Values {
  std::int64_t rows, columns;
  nn::OrthogonalMap map;
  std::vector<double> original, base, weight;
};
const std::vector<Values>& torch_values() {
  static const std::vector<Values> values{
#include "nn/orthogonal_values.inc"
  };
  return values;
}

nn::Linear linear_of(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  nn::Linear out(columns, rows, {.bias = false, .generator = Generator(seed)});
  out.to(DType::Float64);
  return out;
}

// Columns, or rows if there are fewer, whose products are the identity.
void check_orthonormal(const Tensor& matrix) {
  const Tensor tall = matrix.size(-2) < matrix.size(-1) ? transpose(matrix) : matrix;
  const Tensor products = matmul(transpose(tall), tall);
  CHECK(allclose(products, broadcast_to(eye(tall.size(-1), {}, DType::Float64), products.shape()),
                 1e-10, 1e-10));
}

}  // namespace

TEST_CASE("nn.Orthogonal has PyTorch's weights") {
  for (const Values& each : torch_values()) {
    CAPTURE(each.rows);
    CAPTURE(static_cast<int>(each.map));
    nn::Orthogonal layer(linear_of(each.rows, each.columns, 1), {.map = each.map});
    const std::int64_t most = std::max(each.rows, each.columns);
    std::map<std::string, Tensor> state = layer.state_dict();
    REQUIRE(state.size() == 2);
    state.at("parametrizations.weight.original") =
        Tensor::from(each.original, {each.rows, each.columns});
    state.at("parametrizations.weight.0.base") = Tensor::from(each.base, {most, most});
    layer.load_state_dict(state);
    CHECK(allclose(layer.value(), Tensor::from(each.weight, {each.rows, each.columns}), 1e-10,
                   1e-10));
  }
}

TEST_CASE("nn.Orthogonal begins with the orthogonal factor and stays orthogonal") {
  for (const auto map :
       {nn::OrthogonalMap::MatrixExp, nn::OrthogonalMap::Cayley, nn::OrthogonalMap::Householder})
    for (const bool use_trivialization : {true, false})
      for (const auto& size :
           {std::pair{4, 4}, std::pair{5, 3}, std::pair{3, 5}, std::pair{1, 1}}) {
        const int rows = size.first, columns = size.second;
        CAPTURE(static_cast<int>(map));
        CAPTURE(use_trivialization);
        CAPTURE(rows);
        const nn::Linear inner = linear_of(rows, columns, 2);
        nn::Orthogonal layer(inner, {.map = map, .use_trivialization = use_trivialization});
        check_orthonormal(layer.value());
        if (use_trivialization || map == nn::OrthogonalMap::Householder) {
          const bool is_wide = rows < columns;
          const Tensor given = is_wide ? transpose(inner.weight()) : inner.weight();
          const auto [q, r] = linalg::qr(given);
          const Tensor factor = q * unsqueeze(sign(diagonal(r)), 0);
          CHECK(allclose(layer.value(), is_wide ? transpose(factor) : factor, 1e-9, 1e-9));
        }
        optim::Adam adam(layer, {.lr = 0.05, .weight_decay = 0.1});
        const Tensor x = randn({8, columns}, DType::Float64, Generator(3)).compute();
        const Tensor y = randn({8, rows}, DType::Float64, Generator(4)).compute();
        const double first = mse_loss(layer(x), y).item();
        for (int step = 0; step < 20; ++step) adam.step(mse_loss(layer(x), y)).compute();
        check_orthonormal(layer.value());
        if (rows > 1) CHECK(mse_loss(layer(x), y).item() < first);
      }
}

TEST_CASE("nn.Orthogonal in other layers") {
  // Matrices are in the last two axes.
  nn::Conv2d conv(2, 3, 3);
  conv.to(DType::Float64);
  const nn::Orthogonal layer(conv);
  CHECK(layer.value().shape() == Shape{3, 2, 3, 3});
  check_orthonormal(layer.value());
  CHECK(layer(zeros({1, 2, 5, 5}, DType::Float64)).shape() == Shape{1, 3, 3, 3});
  CHECK_THROWS_AS(nn::Orthogonal(nn::Linear(3, 3), {.name = "bias"}), ValueError);
  CHECK_THROWS_AS(nn::Orthogonal(nn::Linear(3, 3), {.name = "weights"}), ValueError);
}

TEST_CASE("convolutions with padding modes") {
  const auto draw = [](const Shape& shape, std::uint64_t seed) {
    return randn(shape, DType::Float64, Generator(seed)).compute();
  };
  const Tensor bias = draw({4}, 9);
  for (const PadMode mode : {PadMode::Reflect, PadMode::Replicate, PadMode::Circular}) {
    CAPTURE(static_cast<int>(mode));
    const Tensor x1 = draw({2, 4, 7}, 1), w1 = draw({4, 2, 3}, 2);
    CHECK(allclose(
        conv1d(x1, w1, bias, {.stride = 2, .padding = 2, .groups = 2, .padding_mode = mode}),
        conv1d(pad(x1, {2, 2}, mode), w1, bias, {.stride = 2, .groups = 2})));
    const Tensor x2 = draw({2, 2, 5, 6}, 3), w2 = draw({4, 2, 3, 2}, 4);
    CHECK(allclose(
        conv2d(x2, w2, bias, {.padding = {2, 1}, .dilation = {2, 1}, .padding_mode = mode}),
        conv2d(pad(x2, {1, 1, 2, 2}, mode), w2, bias, {.dilation = {2, 1}})));
    CHECK(conv2d(x2[0], w2, {}, {.padding = 1, .padding_mode = mode}).rank() == 3);
    const Tensor x3 = draw({1, 2, 4, 5, 4}, 5), w3 = draw({4, 2, 2, 3, 2}, 6);
    CHECK(allclose(conv3d(x3, w3, bias, {.padding = {1, 2, 0}, .padding_mode = mode}),
                   conv3d(pad(x3, {0, 0, 2, 2, 1, 1}, mode), w3, bias)));
    const nn::Conv2d layer(2, 3, 3, {.padding = 1, .padding_mode = mode});
    CHECK(layer(zeros({1, 2, 4, 4})).shape() == Shape{1, 3, 4, 4});
    CHECK(layer.describe().find("padding_mode=") != std::string::npos);
  }
  CHECK(nn::Conv1d(2, 3, 3, {.padding = 1, .padding_mode = PadMode::Circular})
            .describe()
            .find("padding_mode=circular") != std::string::npos);
  CHECK_THROWS_AS(conv2d(zeros({1, 1, 3, 3}), zeros({1, 1, 3, 3}), {},
                         {.padding = 3, .padding_mode = PadMode::Reflect}),
                  ShapeError);
  CHECK_THROWS_AS(conv2d(zeros({1, 1, 3, 3}), zeros({1, 1, 3, 3}), {},
                         {.padding = -1, .padding_mode = PadMode::Reflect}),
                  ValueError);
}
