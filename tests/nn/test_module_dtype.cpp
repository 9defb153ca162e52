// Conversion of modules to other floating-point dtypes.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

struct Case {
  std::string name;
  nn::AnyModule net;
  Tensor input;
};

std::vector<Case> cases() {
  manual_seed(3);
  std::vector<Case> out;
  out.push_back({"linear", nn::Linear(5, 4), randn({3, 5})});
  out.push_back({"conv2d", nn::Conv2d(3, 4, 3), randn({2, 3, 6, 5})});
  out.push_back({"batch norm", nn::BatchNorm2d(3), randn({2, 3, 4, 4})});
  out.push_back({"layer norm", nn::LayerNorm({6}), randn({2, 6})});
  out.push_back({"group norm", nn::GroupNorm(2, 4), randn({2, 4, 3})});
  out.push_back({"stack",
                 nn::Sequential{nn::Linear(4, 8), nn::GELU(), nn::Dropout(0), nn::Linear(8, 1)},
                 randn({3, 4})});
  out.push_back({"encoder",
                 nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16, .dropout = 0}),
                 randn({2, 3, 8})});
  for (Case& c : out) c.input.compute();
  return out;
}

double distance(const Tensor& a, const Tensor& b) {
  const Tensor x = cast(a, DType::Float64), y = cast(b, DType::Float64);
  return sqrt(sum(square(x - y)) / sum(square(y))).item();
}

}  // namespace

TEST_CASE("module dtype: results, gradients and statistics follow") {
  for (Case& c : cases()) {
    CAPTURE(c.name);
    const Tensor before = c.net(c.input).compute();
    // A weighted sum: that of a normalized layer's squares has no gradient.
    const Tensor weights = randn(before.shape()).compute();
    const Tensor slope = grad(sum(c.net(c.input) * weights), c.net.parameters()[0]).compute();
    const std::vector<Tensor> parameters = c.net.parameters();
    c.net.to(DType::Float64);
    CHECK(c.net.parameters().size() == parameters.size());
    CHECK(parameters[0].dtype() == DType::Float64);  // the variables stay the same ones
    const Tensor wide = cast(c.input, DType::Float64);
    const Tensor after = c.net(wide).compute();
    CHECK(after.dtype() == DType::Float64);
    CHECK(distance(before, after) < 1e-6);
    const Tensor g = grad(sum(c.net(wide) * weights), parameters[0]);
    CHECK(g.dtype() == DType::Float64);
    CHECK(distance(slope, g) < 1e-5);
    for (const auto& [name, tensor] : c.net.state_dict()) {
      CAPTURE(name);
      CHECK((tensor.dtype() == DType::Float64 || !is_floating(tensor.dtype())));
    }
    c.net.to(DType::Float32);
    CHECK(distance(before, c.net(c.input)) < 1e-6);
  }
}

TEST_CASE("module dtype: recurrent layers") {
  manual_seed(4);
  nn::LSTM net(3, 4, {.num_layers = 2, .bidirectional = true});
  const Tensor x = randn({5, 2, 3}).compute();
  const Tensor before = net(x).output.compute();
  net.to(DType::Float64);
  const Tensor after = net(cast(x, DType::Float64)).output;
  CHECK(after.dtype() == DType::Float64);
  CHECK(distance(before, after) < 1e-6);
}

TEST_CASE("module dtype: 16-bit networks") {
  nn::Sequential net{nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2)};
  const Tensor x = randn({3, 4}).compute();
  const Tensor before = net(x).compute();
  net.to(DType::BFloat16);
  const Tensor after = net(cast(x, DType::BFloat16));
  CHECK(after.dtype() == DType::BFloat16);
  CHECK(distance(before, after) < 0.05);
}

TEST_CASE("module dtype: an optimizer that is made afterwards trains") {
  nn::Linear net(3, 1);
  net.to(DType::Float64);
  optim::Adam adam(net, {.lr = 0.1});
  const Tensor x = randn({16, 3}, DType::Float64).compute(), y = sum(x, 1, true).compute();
  double first = 0, last = 0;
  for (int k = 0; k < 50; ++k) {
    const Tensor loss = mse_loss(net(x), y);
    adam.step(loss);
    last = loss.item();
    if (k == 0) first = last;
  }
  CHECK(last < 0.1 * first);
}

TEST_CASE("module dtype: an optimizer that was made before refuses") {
  nn::Linear net(3, 1);
  optim::Sgd sgd(net, {.lr = 0.1, .momentum = 0.9});
  const Tensor x = randn({4, 3}).compute();
  sgd.step(mean(net(x)));
  net.to(DType::Float64);
  CHECK_THROWS_AS(sgd.step(mean(net(cast(x, DType::Float64)))), Error);
}

TEST_CASE("module dtype: what was built before is refused, and functions are traced again") {
  nn::Linear net(3, 2);
  const Tensor x = ones({1, 3});
  const CompiledFunction f =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; });
  const Tensor pending = net(x), loss = sum(net(x)).compute();
  CHECK(f({x})[0].dtype() == DType::Float32);
  net.to(DType::Float64);
  CHECK_THROWS_AS(pending.compute(), ValueError);
  CHECK_THROWS_AS(grad(loss, net.weight()), ValueError);
  const Tensor wide = ones({1, 3}, DType::Float64);
  CHECK(f({wide})[0].equal(net(wide)));
}

TEST_CASE("module dtype: a function is traced again when the dtype comes back") {
  nn::Linear net(3, 2);
  const Tensor x = randn({4, 3}).compute(), wide = cast(x, DType::Float64).compute();
  const CompiledFunction f =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; });
  for (int round = 0; round < 4; ++round) {
    CHECK(distance(f({x})[0], net(x)) < 1e-6);
    net.to(DType::Float64);
    CHECK(distance(f({wide})[0], net(wide)) < 1e-12);
    net.to(DType::Float32);
  }
}

TEST_CASE("module dtype: other dtypes and places are refused") {
  nn::Linear net(3, 2);
  CHECK_THROWS_AS(net.to(DType::Int64), ValueError);
  const CompiledFunction f = compile([&](const std::vector<Tensor>& in) {
    net.to(DType::Float64);
    return in;
  });
  CHECK_THROWS_AS(f({ones({2})}), ValueError);
  CHECK(net.weight().dtype() == DType::Float32);
}
