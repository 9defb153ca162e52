// DetectAnomaly: the first NaN or infinity is named, in values and gradients, in parameters, behind
// several inputs, before it takes effect.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const NumericError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("anomaly: finite values pass, and without the scope nothing is checked") {
  const Tensor x = Tensor::from({-1.0F, 4.0F}, {2});
  CHECK(std::isnan(sqrt(x).sum().item()));
  const DetectAnomaly detect;
  CHECK(DetectAnomaly::is_on());
  CHECK((x * 2).sum().item() == 6);
  CHECK(arange(0, 4).sum().item() == 6);
}

TEST_CASE("anomaly: names the operation and the layer of the first NaN") {
  const DetectAnomaly detect;
  const Tensor x = Tensor::from({-1.0F, 4.0F}, {2}), other = ones({2});
  const auto made = [&] {
    const Tensor y = exp(other) + x;
    const Scope scope("block.1");
    return log(y - 10) * 2 + other;
  };
  const Tensor bad = made();
  CHECK(message_of([&] { bad.compute(); }) ==
        "the first NaN is in the result of log [2] (block.1)");
  try {
    made().compute();
    FAIL("no exception");
  } catch (const NumericError& e) {
    CHECK(e.operation() == "log");
    CHECK(e.layer() == "block.1");
    CHECK(e.shapes() == std::vector<Shape>{{2}});
  }
}

TEST_CASE("anomaly: an infinity, and a NaN that follows from one") {
  const DetectAnomaly detect;
  const Tensor x = Tensor::from({1.0F, 200.0F}, {2});
  CHECK(message_of([&] { (exp(x) * 2).compute(); }) ==
        "the first infinity is in the result of exp [2]");
  CHECK(message_of([&] { (exp(x) / exp(x)).sum().compute(); })
            .find("the first NaN is in the result "
                  "of div [2]; it follows from an "
                  "infinity in the result of exp") == 0);
}

TEST_CASE("anomaly: infinities on purpose that reach no result are no error") {
  const DetectAnomaly detect;
  const Tensor scores = randn({3, 3}, DType::Float32, Generator(1));
  const Tensor mask = Tensor::from({1.0F, 0.0F, 0.0F, 1.0F, 1.0F, 0.0F, 1.0F, 1.0F, 1.0F}, {3, 3});
  const Tensor masked =
      where(gt(mask, 0), scores, full({3, 3}, -std::numeric_limits<double>::infinity()));
  CHECK(softmax(masked, 1).sum().item() == doctest::Approx(3));
  CHECK(message_of([&] { softmax(masked - masked, 1).compute(); }).find("NaN") !=
        std::string::npos);
}

TEST_CASE("anomaly: gradients") {
  const DetectAnomaly detect;
  const Tensor w = variable(Tensor::from({0.0F, 4.0F}, {2}), "w");
  Tensor y;
  {
    const Scope scope("head");
    y = sqrt(w);
  }
  CHECK(y.sum().item() == 2);
  const std::string message = message_of([&] { grad((y * 0).sum(), w).compute(); });
  CHECK(message.find("the first NaN is in the result of ") == 0);
  CHECK(message.find("(head, gradient of sqrt)") != std::string::npos);
}

TEST_CASE("anomaly: a parameter, and an input") {
  const DetectAnomaly detect;
  nn::Sequential net(nn::Linear(2, 2), nn::ReLU());
  const Tensor weight = net.named_parameters()[0].tensor;
  set_value(weight, std::vector<float>{1, NAN, 1, 1}.data(), 16);
  CHECK(message_of([&] {
          net(ones({1, 2})).compute();
        }) == "the first NaN is in the variable 0.weight [2, 2]");
  const Tensor x = Tensor::from({1.0F, INFINITY}, {2});
  CHECK(message_of([&] { (x + 1).compute(); }) == "the first infinity is in an input [2]");
}

TEST_CASE("anomaly: variables are unchanged, and effects happen once") {
  const DetectAnomaly detect;
  const Tensor w = variable(ones({2}), "w"), count = variable(scalar(0.0), "count");
  CHECK_THROWS_AS(compute({assign(w, log(w - 2)), assign(count, count + 1)}), NumericError);
  CHECK(w.sum().item() == 2);
  CHECK(count.item() == 0);
  const Tensor next = assign(count, count + 1);
  compute({assign(w, w * next)});
  CHECK(count.item() == 1);
  CHECK(w.sum().item() == 2);
  nn::BatchNorm1d norm(3);
  optim::Sgd sgd(norm, {.lr = 0.1});
  const Tensor x = randn({8, 3}, DType::Float32, Generator(2)).compute();
  for (int k = 0; k < 3; ++k) sgd.step(square(norm(x) - 1).mean());
  CHECK(sgd.steps() == 3);
  CHECK(norm.named_buffers().back().tensor.item() == 3);  // batches counted
}

TEST_CASE("anomaly: compiled functions, and several inputs") {
  const Tensor w = variable(ones({2}), "w");
  int calls = 0;
  const CompiledFunction step = compile([&](const Tensors& in) {
    ++calls;
    const Tensor loss = (log(in[0] * w) + in[1]).sum();
    return Tensors{loss, assign(w, w - 0.1 * grad(loss, w))};
  });
  const Tensor good = ones({2}), bad = Tensor::from({1.0F, -1.0F}, {2});
  CHECK(step({good, good})[0].item() == 2);
  const double before = w.sum().item();
  {
    const DetectAnomaly detect;
    CHECK(step({good, good})[0].item() == doctest::Approx(2 + 2 * std::log(0.9)));
    CHECK(message_of([&] { step({bad, good}); }) == "the first NaN is in the result of log [2]");
    CHECK(w.sum().item() < before);
    const Tensor rows = Tensor::from({1.0F, 1.0F, 2.0F, 2.0F}, {2, 2});
    const CompiledFunction sums = compile([](const Tensors& in) {
      return Tensors{(in[0] + in[1]).sum(), in[0] * 2};
    });
    const Outputs out = sums.run_many(2, {rows, ones({1, 2})});
    CHECK(out[0].to_vector<float>() == std::vector<float>{4, 6});
    CHECK(out[1].shape() == Shape{2, 2});
  }
  CHECK(calls == 3);
  CHECK(std::isnan(step({bad, good})[0].item()));
  const auto typed = compile([](const Tensor& a, std::vector<Tensor> b) {
    return std::pair(a + b[0], std::vector<Tensor>{log(b[1])});
  });
  const DetectAnomaly detect;
  CHECK(typed(good, {good, good}).second[0].sum().item() == 0);
  CHECK_THROWS_AS(typed(good, {good, bad}), NumericError);
}

TEST_CASE("anomaly: loops, functions and host code are named") {
  const DetectAnomaly detect;
  const Tensor x = Tensor::from({1.0F, -1.0F}, {2});
  const auto [last, all] = scan(
      [](const Tensor& c, const Tensor& row) {
        const Tensor next = c + log(row);
        return std::pair(next, next);
      },
      scalar(0.0), x);
  CHECK(message_of([&, all = all] {
          all.compute();
        }).find("the first NaN is in the result of scan") == 0);
  const Tensor host = host_call("risky", {x}, {DType::Float32, {2}},
                                [](std::span<const HostInput>, std::span<const HostOutput> out) {
                                  for (float& v : out[0].values<float>()) v = NAN;
                                });
  CHECK(message_of([&] { (host + 1).compute(); }) == "the first NaN is in the result of risky [2]");
}
