// Assignments: those that a value carries are carried out once, by any evaluation of a tensor that
// depends on the value; what an assignment returns keeps its value.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/log.h>
#include <tenon/nn.h>
#include <tenon/optim.h>

using namespace tenon;

namespace {

using Floats = std::vector<float>;

/// Multiplies by a weight, counts its calls and keeps the mean of its last input.
class Counting : public nn::Module {
 public:
  Counting()
      : weight(parameter("weight", full({2}, 3))),
        count(buffer("count", scalar(0))),
        last(buffer("last", zeros({2}))) {}
  Tensor forward(const Tensor& x) const override {
    update(count, count + 1);
    update(last, mean(x, {0}));
    return x * weight;
  }
  Tensor weight, count, last;
};

Tensor rows(float a, float b) { return Tensor::from<float>({a, b, a, b}, {2, 2}); }

std::vector<std::string> messages;
struct Listening {
  Listening() {
    messages.clear();
    set_log_sink([](LogLevel, std::string_view text, void*) { messages.emplace_back(text); });
  }
  ~Listening() { set_log_sink(nullptr); }
};

}  // namespace

TEST_CASE("updates: evaluating a dependent tensor carries out a value's assignments once") {
  const Counting net;
  const Tensor loss = sum(square(net(rows(1, 2))));
  CHECK(net.count.item() == 0);
  CHECK(loss.item() == doctest::Approx(2 * (9 + 36)));
  CHECK(net.count.item() == 1);
  CHECK(net.last.to_vector<float>() == Floats{1, 2});
  // Gradients run the forward pass again, which assigns nothing a second time.
  CHECK(grad(loss, net.weight).to_vector<float>() == Floats{12, 48});
  CHECK(net.count.item() == 1);
  compute({loss, sum(loss)});
  CHECK(net.count.item() == 1);
}

TEST_CASE("updates: run by an optimizer's step, and by gradients only") {
  const Counting net;
  optim::Sgd sgd(net, {.lr = 0.01});
  sgd.step(sum(net(net(rows(1, 2)))));
  CHECK(net.count.item() == 2);
  CHECK(net.last.to_vector<float>() == Floats{3, 6});  // input of the second call
  sgd.step(sum(net(rows(5, 6))));
  CHECK(net.count.item() == 3);
}

TEST_CASE("updates: run by an optimizer's updates without the loss, in call order") {
  const Counting net;
  optim::Sgd sgd(net, {.lr = 0.01});
  const Tensor first = net(rows(1, 2)), second = net(rows(3, 4));
  const Tensor loss = sum(first + second);
  compute(sgd.updates(grad(loss, sgd.parameters())));
  CHECK(net.count.item() == 2);
  CHECK(net.last.to_vector<float>() == Floats{3, 4});
}

TEST_CASE("updates: none in evaluation mode, and none without an evaluation") {
  const Listening listening;
  Counting net;
  { const Tensor unread = net(rows(1, 2)); }
  net.eval();
  net(rows(1, 2)).compute();
  CHECK(net.count.item() == 0);
  net.train();
  CHECK(net.summary({4, 2}).parameters == 2);
  CHECK(net.count.item() == 0);
  CHECK(messages.empty());
}

TEST_CASE("updates: several calls in one graph see the previous call's values") {
  const Counting net;
  const Tensor a = net(rows(1, 2)), b = net(rows(3, 4)), c = net(rows(5, 6));
  compute({sum(a + b + c)});
  CHECK(net.count.item() == 3);
  CHECK(net.last.to_vector<float>() == Floats{5, 6});
  // Also if they are evaluated one after another.
  const Tensor d = net(rows(7, 8)), e = net(rows(9, 10));
  d.compute();
  CHECK(net.count.item() == 4);
  CHECK(e.to_vector<float>() == Floats{27, 30, 27, 30});
  CHECK(net.count.item() == 5);
  CHECK(net.last.to_vector<float>() == Floats{9, 10});
}

TEST_CASE("updates: the updates of one call take place together") {
  // The cumulative mean divides by the new count, which the same call updates.
  const nn::BatchNorm1d norm(1, {.momentum = {}});
  const auto batch = [](float a, float b) { return Tensor::from<float>({a, b}, {2, 1}); };
  compute({sum(norm(batch(0, 2)) + norm(batch(2, 4)) + norm(batch(10, 12)))});
  CHECK(norm.running_mean().item() == doctest::Approx((1.0 + 3 + 11) / 3));
  CHECK(norm.state_dict().at("num_batches_tracked").item() == 3);
}

TEST_CASE("updates: an empty batch is counted and does not change running statistics") {
  const nn::BatchNorm2d norm(3, {.momentum = {}});
  CHECK(norm(zeros({0, 3, 2, 2})).shape() == Shape{0, 3, 2, 2});
  CHECK(norm.state_dict().at("num_batches_tracked").item() == 0);
  norm(zeros({0, 3, 2, 2})).compute();
  CHECK(norm.running_mean().to_vector<float>() == Floats{0, 0, 0});
  CHECK(norm.running_var().to_vector<float>() == Floats{1, 1, 1});
  CHECK(norm.state_dict().at("num_batches_tracked").item() == 1);
  norm(ones({2, 3, 2, 2})).compute();
  CHECK(norm.running_mean().to_vector<float>() == Floats{0.5f, 0.5f, 0.5f});
  CHECK(norm.running_var().to_vector<float>() == Floats{0.5f, 0.5f, 0.5f});
  CHECK(norm.state_dict().at("num_batches_tracked").item() == 2);
  const std::vector<Tensor> weights = norm.parameters();
  for (const Tensor& gradient : grad(sum(norm(zeros({0, 3, 2, 2}))), weights))
    CHECK(gradient.to_vector<float>() == Floats{0, 0, 0});
}

TEST_CASE("updates: a compiled function runs them at each call, and in each run of run_many") {
  const Counting net;
  CompiledFunction f =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{sum(net(in[0]))}; });
  CHECK(f({rows(1, 2)})[0].item() == 18);
  CHECK(f({rows(3, 4)})[0].item() == 42);
  CHECK(f({rows(3, 4)}).size() == 1);
  CHECK(net.count.item() == 3);
  CHECK(net.last.to_vector<float>() == Floats{3, 4});
  const Tensor three = stack({rows(1, 1), rows(2, 2), rows(7, 8)});
  CHECK(f.run_many(3, {three})[0].to_vector<float>() == Floats{12, 24, 90});
  CHECK(net.count.item() == 6);
  CHECK(net.last.to_vector<float>() == Floats{7, 8});
  CompiledFunction twice = compile([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{net(in[0]), net(in[0] * 2)};
  });
  twice({rows(1, 2)});
  twice({rows(1, 2)});
  CHECK(net.count.item() == 10);
  CHECK(net.last.to_vector<float>() == Floats{2, 4});
}

TEST_CASE("updates: detached from a loss, they can be guarded or dropped") {
  const Counting net;
  for (const bool open : {true, false}) {
    std::vector<Tensor> values{sum(net(net(rows(1, 2))))};
    std::vector<Tensor> work = take_updates(values);
    CHECK(work.size() == 2);
    for (Tensor& update : work) update = guarded(update, scalar(open, DType::Bool));
    work.push_back(values[0]);
    compute(work);
    CHECK(values[0].item() == 54);
    CHECK(net.count.item() == 2);
  }
  std::vector<Tensor> values{sum(net(rows(1, 2)))};
  take_updates(values);
  CHECK(values[0].item() == 18);
  CHECK(net.count.item() == 2);
}

TEST_CASE(
    "updates: a value may carry anything, in any mode; gradients pass and differentiate again") {
  const Tensor w = variable(scalar(2), "w"), seen = variable(scalar(0), "seen");
  const Tensor y = with_updates(w * w * w, {assign(seen, w * 10)});
  CHECK(grad(grad(y, w), w).item() == 12);  // evaluating the gradient runs the update, too
  CHECK(seen.item() == 20);
  set_value(seen, scalar(0));
  CHECK(y.item() == 8);
  CHECK(seen.item() == 0);  // once
  CHECK_THROWS_AS(with_updates(y, {w}), ValueError);
  CHECK_THROWS_AS(guarded(w, scalar(true, DType::Bool)), ValueError);
}

TEST_CASE("updates: mistakes are named") {
  class Twice : public nn::Module {
   public:
    Twice() : count_(buffer("count", scalar(0))) {}
    Tensor forward(const Tensor& x) const override {
      update(count_, count_ + 1);
      update(count_, count_ + 2);
      return x;
    }

   private:
    Tensor count_;
  };
  CHECK_THROWS_WITH_AS(Twice()(scalar(1)), doctest::Contains("count is updated twice"), ValueError);
  CHECK_THROWS_WITH_AS(Counting().forward(rows(1, 2)), doctest::Contains("call the module itself"),
                       ValueError);
}

TEST_CASE("updates: an assignment that is never evaluated gives a warning") {
  const Listening listening;
  const Tensor w = variable(zeros({3}), "weight");
  { const Tensor forgotten = assign(w, w + 1); }
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("dropped without being evaluated") != std::string::npos);
  assign(w, w + 1).compute();
  compile([&](const std::vector<Tensor>&) { return std::vector<Tensor>{assign(w, w + 1)}; })({});
  CHECK(messages.size() == 1);
}

TEST_CASE("updates: a thousand layers with state cost as much as without state") {
  std::vector<nn::AnyModule> layers;
  for (int k = 0; k < 1000; ++k) layers.emplace_back(Counting());
  const nn::Sequential net(layers);
  compute({sum(net(rows(0, 0)) + net(rows(0, 0)))});  // two calls: chained
  CHECK(layers.back().state_dict().at("count").item() == 2);
}

TEST_CASE("updates: the result of an assignment keeps its value") {
  const Tensor w = variable(ones({2}), "w");
  const Tensor first = assign(w, w * 2).compute();
  const Tensor second = assign(w, w * 2).compute();
  set_value(w, full({2}, 9));
  assign(w, w + 1).compute();
  CHECK(first.to_vector<float>() == Floats{2, 2});
  CHECK(second.to_vector<float>() == Floats{4, 4});
  CHECK((first + second).to_vector<float>() == Floats{6, 6});
  CHECK(w.to_vector<float>() == Floats{10, 10});
  const Tensor last = assign(w, w * 2).compute();
  const float* before = last.data_as<float>();
  assign(w, w * 2).compute();
  CHECK(before == last.data_as<float>());
  CHECK(last.to_vector<float>() == Floats{20, 20});
  CHECK(w.to_vector<float>() == Floats{40, 40});
}

TEST_CASE("updates: outputs that are assignments keep their values") {
  const Tensor w = variable(ones({2}), "w");
  const CompiledFunction f = compile([&](const std::vector<Tensor>&) {
    return std::vector<Tensor>{assign(w, w * 2), w.sum()};
  });
  const Outputs first = f({});
  const Tensor second = f({})[0];
  CHECK(f({})[0].to_vector<float>() == Floats{8, 8});
  CHECK(first[0].to_vector<float>() == Floats{2, 2});
  CHECK(second.to_vector<float>() == Floats{4, 4});
  CHECK(w.to_vector<float>() == Floats{8, 8});
  CHECK((first[0] + second).to_vector<float>() == Floats{6, 6});
  const Outputs many = f.run_many(3, {});
  CHECK(many[0].to_vector<float>() == Floats{64, 64});
  f({});
  CHECK(many[0].to_vector<float>() == Floats{64, 64});
}

TEST_CASE("updates: an assignment whose result nobody holds is in place") {
  const Tensor w = variable(ones({1 << 16}), "w");
  const CompiledFunction f =
      compile([&](const std::vector<Tensor>&) { return std::vector<Tensor>{assign(w, w * 2)}; });
  f({});
  assign(w, w * 0.5).compute();
  const void* const place = w.data();
  for (int k = 0; k < 3; ++k) {
    f({});
    CHECK(w.data() == place);
    assign(w, w * 0.5).compute();
    CHECK(w.data() == place);
  }
}
