// Averages of weights and accumulated gradients in plain loops, against formulas on the host.
#include <doctest/doctest.h>

#include <cmath>

#include <tenon/averaging.h>
#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/ops.h>

using namespace tenon;

namespace {

std::vector<double> doubles(const Tensor& x) { return cast(x, DType::Float64).to_vector<double>(); }

double distance(const Tensor& a, const std::vector<double>& b) {
  const std::vector<double> values = doubles(a);
  REQUIRE(values.size() == b.size());
  double difference = 0, norm = 0;
  for (std::size_t k = 0; k < b.size(); ++k) {
    difference += (values[k] - b[k]) * (values[k] - b[k]);
    norm += b[k] * b[k];
  }
  return std::sqrt(difference / (norm + 1e-30));
}

struct Toy {
  explicit Toy(DType dtype = DType::Float32) {
    manual_seed(7);
    net = nn::Sequential(nn::Linear(3, 5), nn::BatchNorm1d(5), nn::Tanh(), nn::Linear(5, 2));
    net.to(dtype);
    x = randn({12, 3}).to(dtype).compute();
    y = randn({12, 2}).to(dtype).compute();
  }
  Tensor loss(std::int64_t first, std::int64_t end) const {
    return mse_loss(net(x.slice(0, first, end)), y.slice(0, first, end));
  }
  nn::Sequential net;
  Tensor x, y;
};

}  // namespace

TEST_CASE("averaging: ema and swa follow their formulas over many steps") {
  for (const DType dtype : {DType::Float32, DType::Float64})
    for (const bool is_ema : {true, false}) {
      CAPTURE(is_ema);
      CAPTURE(name(dtype));
      const Toy toy(dtype);
      optim::Adam adam(toy.net, {.lr = 0.05});
      optim::AveragedModel average(toy.net, is_ema ? optim::ema(0.9) : optim::swa());
      std::vector<std::vector<double>> expected;
      for (int step = 0; step < 12; ++step) {
        adam.step(toy.loss(0, 12));
        average.update();
        const std::vector<Tensor> now = toy.net.parameters();
        for (std::size_t k = 0; k < now.size(); ++k) {
          const std::vector<double> w = doubles(now[k]);
          if (step == 0) {
            expected.push_back(w);
            continue;
          }
          const double share = is_ema ? 0.1 : 1.0 / (step + 1);
          for (std::size_t i = 0; i < w.size(); ++i)
            expected[k][i] += (w[i] - expected[k][i]) * share;
        }
      }
      CHECK(average.count() == 12);
      const std::vector<Tensor> averaged = average.net().parameters();
      for (std::size_t k = 0; k < averaged.size(); ++k)
        CHECK(distance(averaged[k], expected[k]) < (dtype == DType::Float64 ? 1e-12 : 1e-5));
      // Buffers are those of the network, and the average is in evaluation mode.
      CHECK(!average.net().is_training());
      for (std::size_t k = 0; k < toy.net.named_buffers().size(); ++k)
        CHECK(equal(average.net().named_buffers()[k].tensor, toy.net.named_buffers()[k].tensor));
      CHECK(!equal(averaged[0], toy.net.parameters()[0]));
    }
}

TEST_CASE(
    "averaging: one program with the step gives the same bits, and a guard keeps everything") {
  const Toy apart, together;
  optim::Sgd first(apart.net, {.lr = 0.1, .momentum = 0.9}),
      second(together.net, {.lr = 0.1, .momentum = 0.9});
  optim::AveragedModel a(apart.net, optim::ema(0.8)), b(together.net, optim::ema(0.8));
  for (int step = 0; step < 5; ++step) {
    first.step(apart.loss(0, 12));
    a.update();
    std::vector<Tensor> values{together.loss(0, 12)};
    std::vector<Tensor> work = take_updates(values);
    const std::vector<Tensor> grads = grad(values[0], second.parameters());
    for (Tensor& update : second.updates(grads)) work.push_back(std::move(update));
    for (Tensor& update : b.updates(work)) work.push_back(std::move(update));
    compute(work);
  }
  const StateDict one = a.state_dict(), other = b.state_dict();
  REQUIRE(one.size() == other.size());
  for (const auto& entry : one) {
    const auto& name = entry.first;
    const Tensor& tensor = entry.second;
    CAPTURE(name);
    CHECK(equal(tensor, other.at(name)));
  }
  const Tensor kept = clone(b.net().parameters()[0]);
  for (const Tensor& p : together.net.parameters()) set_value(p, zeros(p.shape()));
  compute(b.updates({}, scalar(false, DType::Bool)));
  CHECK(b.count() == 5);
  CHECK(equal(b.net().parameters()[0], kept));
}

TEST_CASE("averaging: state, restart, 16-bit weights, and what is refused") {
  const Toy toy;
  optim::AveragedModel average(toy.net, optim::swa());
  average.update();
  set_value(toy.net.parameters()[0], full({5, 3}, 2));
  average.update();
  CHECK(average.state_dict().contains("module.0.weight"));
  optim::AveragedModel loaded(toy.net, optim::swa());
  loaded.load_state_dict(average.state_dict());
  CHECK(loaded.count() == 2);
  CHECK(equal(loaded.net().parameters()[0], average.net().parameters()[0]));
  // The two continue with the same bits.
  set_value(toy.net.parameters()[0], full({5, 3}, -1));
  average.update();
  loaded.update();
  CHECK(equal(loaded.net().parameters()[0], average.net().parameters()[0]));
  average.restart();
  CHECK(average.count() == 0);
  CHECK(equal(average.net().parameters()[0], full({5, 3}, -1)));
  CHECK_THROWS_AS(loaded.load_state_dict({}), ValueError);
  CHECK_THROWS_AS(loaded.load_state_dict({{"n_averaged", zeros({}, DType::Int64)}}), ValueError);
  CHECK_THROWS_AS(optim::AveragedModel(toy.net, optim::Averaging{}), ValueError);
  CHECK_THROWS_AS(optim::ema(1), ValueError);
  CHECK_THROWS_AS(optim::ema(-0.1), ValueError);
  CHECK_THROWS_AS(optim::swa(-1), ValueError);

  nn::Sequential half(nn::Linear(2, 2));
  half.to(DType::BFloat16);
  optim::AveragedModel of_half(half, optim::ema(0.5));
  set_value(half.parameters()[0], full({2, 2}, 1, DType::BFloat16));
  of_half.update();
  set_value(half.parameters()[0], full({2, 2}, 3, DType::BFloat16));
  of_half.update();
  CHECK(equal(of_half.net().parameters()[0], full({2, 2}, 2, DType::BFloat16)));
}

TEST_CASE("accumulation: three small batches take the step of the large batch") {
  for (const optim::Clip& clip :
       {optim::Clip{}, optim::Clip{.norm = 0.1}, optim::Clip{.value = 0.02}}) {
    const Toy large(DType::Float64), small(DType::Float64);
    const auto in_evaluation = [](const Toy& toy) { nn::Sequential(toy.net).eval(); };
    in_evaluation(large);  // batch statistics differ between the batches
    in_evaluation(small);
    optim::Adam whole(large.net, {.lr = 0.05}), parts(small.net, {.lr = 0.05});
    optim::GradientAccumulator accumulated(parts, 3);
    for (int step = 0; step < 4; ++step) {
      const double loss = whole.step(large.loss(0, 12), clip).item();
      double mean = 0;
      for (int part = 0; part < 3; ++part) {
        CHECK(accumulated.pending() == part);
        CHECK(parts.steps() == step);
        mean += accumulated.step(small.loss(4 * part, 4 * part + 4), clip).item() / 3;
      }
      CHECK(mean == doctest::Approx(loss));
    }
    CHECK(parts.steps() == 4);
    CHECK(accumulated.pending() == 0);
    for (std::size_t k = 0; k < large.net.parameters().size(); ++k)
      CHECK(distance(small.net.parameters()[k], doubles(large.net.parameters()[k])) < 1e-12);
  }
}

TEST_CASE("accumulation: one batch for each step is the plain loop, and frozen parameters stay") {
  const Toy plain, one;
  optim::Sgd first(plain.net, {.lr = 0.1, .momentum = 0.9}),
      second(one.net, {.lr = 0.1, .momentum = 0.9});
  optim::GradientAccumulator accumulated(second, 1);
  nn::Sequential(plain.net).freeze("0");
  nn::Sequential(one.net).freeze("0");
  const Tensor kept = clone(one.net.parameters()[0]);
  for (int step = 0; step < 3; ++step)
    CHECK(first.step(plain.loss(0, 12)).item() == accumulated.step(one.loss(0, 12)).item());
  for (std::size_t k = 0; k < plain.net.parameters().size(); ++k)
    CHECK(equal(plain.net.parameters()[k], one.net.parameters()[k]));
  CHECK(equal(one.net.parameters()[0], kept));
}

TEST_CASE("accumulation: state continues with the same bits, and what is refused") {
  const Toy first, second;
  optim::Adam a(first.net, {.lr = 0.05}), b(second.net, {.lr = 0.05});
  optim::GradientAccumulator one(a, 4), other(b, 4);
  for (int k = 0; k < 6; ++k) one.step(first.loss(2 * k, 2 * k + 2));
  second.net.state_dict();
  nn::Sequential(second.net).load_state_dict(first.net.state_dict());
  b.load_state_dict(a.state_dict());
  other.load_state_dict(one.state_dict());
  CHECK(other.pending() == 2);
  for (int k = 0; k < 2; ++k) {
    one.step(first.loss(2 * k, 2 * k + 2));
    other.step(second.loss(2 * k, 2 * k + 2));
  }
  CHECK(b.steps() == 2);
  for (std::size_t k = 0; k < first.net.parameters().size(); ++k)
    CHECK(equal(first.net.parameters()[k], second.net.parameters()[k]));
  CHECK_THROWS_AS(optim::GradientAccumulator(a, 0), ValueError);
  CHECK_THROWS_AS((void)one.add({}), ValueError);
  CHECK_THROWS_AS(one.step(Tensor()), ValueError);
  CHECK_THROWS_AS(one.step(ones({2})), ShapeError);
  StateDict state = one.state_dict();
  state.erase("batches");
  CHECK_THROWS_WITH_AS(one.load_state_dict(state), doctest::Contains("batches"), ValueError);
  state = one.state_dict();
  state["other"] = zeros({1});
  CHECK_THROWS_WITH_AS(one.load_state_dict(state), doctest::Contains("other"), ValueError);
  state = one.state_dict();
  state["0.weight.gradient_sum"] = zeros({1});
  CHECK_THROWS_AS(one.load_state_dict(state), ShapeError);
  // Sums of 16-bit gradients are float32.
  nn::Sequential half(nn::Linear(1, 1, {.bias = false}));
  half.to(DType::BFloat16);
  set_value(half.parameters()[0], zeros({1, 1}, DType::BFloat16));
  optim::Sgd sgd(half, {.lr = 1});
  optim::GradientAccumulator sums(sgd, 257);
  for (int k = 0; k < 257; ++k) sums.step(sum(half(full({1, 1}, 1, DType::BFloat16))));
  CHECK(half.parameters()[0].to(DType::Float32).item() == -1);
}
