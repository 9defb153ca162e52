// Common behaviour of optimizers: groups, guarded updates, saved state, errors; schedules by name.
// The update rules are compared with PyTorch in tests/e2e.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/recurrent.h>
#include "graph/node.h"

using namespace tenon;

namespace {

Tensor parameter(std::vector<float> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return variable(Tensor::from(values, {n}), "p");
}

float first(const Tensor& t) { return t.to_vector<float>()[0]; }

}  // namespace

TEST_CASE("optim: a plain loop reduces the loss") {
  for (const std::string& name : optim::names()) {
    CAPTURE(name);
    const Tensor p = parameter({3, -2});
    const double rate = name == "levenberg"  ? 5e-4
                        : name == "adagrad"  ? 0.5
                        : name == "adadelta" ? 50
                                             : 0.05;
    const auto optimizer = optim::create(name, std::vector<Tensor>{p}, {.lr = rate});
    const double start = sum(square(p)).item();
    double last = start;
    for (int k = 0; k < 60; ++k) last = optimizer->step(sum(square(p))).item();
    CHECK(last < start / 2);
    CHECK(optimizer->steps() == 60);
  }
}

TEST_CASE("optim: parameters are a module, groups, or a list of variables") {
  const Tensor a = parameter({3}), b = parameter({-2, 1});
  const nn::Linear net(2, 3);
  optim::Sgd listed({a, b}, {.lr = 0.25}), one({a}, {.lr = 0.25});
  const std::vector<optim::ParameterGroup> groups{{.parameters = {{"a", a}}, .lr = 0.5},
                                                  {.parameters = {{"b", b}}}};
  optim::Sgd grouped(groups, {.lr = 0.25});
  optim::Sgd whole(net, {.lr = 0.25});
  CHECK(listed.parameters().size() == 2);
  CHECK(one.parameters().size() == 1);
  CHECK(grouped.parameters().size() == 2);
  CHECK(whole.parameters().size() == 2);
  listed.step(sum(a) + sum(b));
  CHECK(first(a) == 2.75f);
  CHECK(first(b) == -2.25f);
}

TEST_CASE("optim: groups have their own learning rate and decay, and keep their ratio") {
  const Tensor a = parameter({1}), b = parameter({1}), g = ones({1});
  optim::Sgd sgd(std::vector<optim::ParameterGroup>{{{{"a", a}}, {}, {}}, {{{"b", b}}, 0.5, 0.1}},
                 {.lr = 0.1});
  compute(sgd.updates({g, g}));
  CHECK(first(a) == doctest::Approx(0.9));
  CHECK(first(b) == doctest::Approx(1 - 0.5 * 1.1));
  sgd.set_lr(0.2);
  CHECK(sgd.lr() == 0.2);
  CHECK(sgd.base_lr() == 0.1);
  compute(sgd.updates({g, zeros({1})}));
  CHECK(first(a) == doctest::Approx(0.7));
}

TEST_CASE("optim: a group with its own steps starts like a new optimizer") {
  for (const std::string& name : optim::names()) {
    CAPTURE(name);
    const auto gradient = [](int k) { return (ones({1}) * (0.5 / (k + 1))).compute(); };
    const auto rates = [&](double lr) { return optim::OptimizerOptions{.lr = lr}; };
    const Tensor early = parameter({1}), late = parameter({2}), early_alone = parameter({1}),
                 late_alone = parameter({2});
    const auto first_one = optim::create(name, std::vector<Tensor>{early}, rates(0.1)),
               alone = optim::create(name, std::vector<Tensor>{early_alone}, rates(0.1)),
               other = optim::create(name, std::vector<Tensor>{late_alone}, rates(0.1));
    const auto both =
        optim::create(name,
                      std::vector<optim::ParameterGroup>{
                          {.parameters = {{"param.0", early}}},
                          {.parameters = {{"late", late}}, .lr = 0.05, .own_steps = true}},
                      rates(0.1));
    other->set_lr(0.05);
    for (int k = 0; k < 3; ++k) {
      compute(first_one->updates({gradient(k)}));
      compute(alone->updates({gradient(k)}));
    }
    both->load_state_dict(first_one->state_dict());  // that state has no entries of "late"
    CHECK(both->steps() == 3);
    for (int k = 3; k < 7; ++k) {
      compute(both->updates({gradient(k), gradient(k)}));
      compute(alone->updates({gradient(k)}));
      compute(other->updates({gradient(k)}));
      CHECK(first(early) == first(early_alone));
      CHECK(first(late) == first(late_alone));
    }
    CHECK(both->state_dict().at("late.step").item() == 4);
    // A guard blocks both counts. A state with a part of a group must have the whole group.
    compute(both->updates({gradient(0), gradient(0)}, scalar(false, DType::Bool)));
    CHECK(both->state_dict().at("late.step").item() == 4);
    StateDict state = both->state_dict();
    both->load_state_dict(state);
    state.erase("late.step");
    if (name == "adam")
      CHECK_THROWS_WITH_AS(both->load_state_dict(state), doctest::Contains("late.step"),
                           ValueError);
  }
}

TEST_CASE("optim: a guarded update changes nothing where the guard is false") {
  for (const std::string& name : optim::names()) {
    CAPTURE(name);
    const Tensor p = parameter({1, 2});
    const auto optimizer = optim::create(name, std::vector<Tensor>{p});
    optimizer->step(sum(square(p)));
    StateDict before;
    for (const auto& [key, t] : optimizer->state_dict())
      before[key] = Tensor::from_data(t.data(), t.shape(), t.dtype());
    const std::vector<float> weights = p.to_vector<float>();
    const Tensor loss = sum(p) * std::numeric_limits<double>::quiet_NaN();
    compute(optimizer->updates(grad(loss, optimizer->parameters()), isfinite(loss)));
    CHECK(p.to_vector<float>() == weights);
    for (const auto& [key, t] : optimizer->state_dict())
      CHECK(all(eq(t, before.at(key))).item() == 1);
    CHECK(optimizer->steps() == 1);
  }
}

TEST_CASE("optim: a class out of range changes neither weights nor optimizer state") {
  for (const std::string& name : optim::names()) {
    CAPTURE(name);
    const nn::Linear first(3, 5), second(5, 4);
    std::vector<Tensor> all = first.parameters();
    for (const Tensor& p : second.parameters()) all.push_back(p);
    const auto optimizer = optim::create(name, all);
    const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
    const auto loss = [&](std::int64_t label) {
      return cross_entropy(second(relu(first(x))),
                           Tensor::from(std::vector<std::int64_t>{0, label}, {2}));
    };
    const auto values = [&] {
      std::vector<std::vector<double>> out;
      out.reserve(all.size());
      for (const Tensor& p : all) out.push_back(cast(p, DType::Float64).to_vector<double>());
      for (const auto& [key, t] : optimizer->state_dict())
        out.push_back(cast(t, DType::Float64).to_vector<double>());
      return out;
    };
    optimizer->step(loss(3));
    for (int round = 0; round < 3; ++round) {
      const auto before = values();
      CHECK_THROWS_AS(optimizer->step(loss(4)), ValueError);
      CHECK(values() == before);
      CHECK(optimizer->steps() == 1);
    }
    optimizer->step(loss(3));
    CHECK(optimizer->steps() == 2);
  }
}

TEST_CASE("optim: state is saved and loaded; the state of another optimizer is refused by name") {
  const Tensor p = parameter({1, 2}), q = parameter({1, 2});
  optim::Adam one(std::vector<Tensor>{p}), two(std::vector<Tensor>{q});
  for (int k = 0; k < 3; ++k) one.step(sum(square(p)));
  one.set_lr(0.5);
  StateDict state;
  for (const auto& [key, t] : one.state_dict())
    state[key] = Tensor::from_data(t.data(), t.shape(), t.dtype());
  set_value(q, p);
  two.load_state_dict(state);
  CHECK(two.lr() == 0.5);
  one.step(sum(square(p)));
  two.step(sum(square(q)));
  CHECK(p.to_vector<float>() == q.to_vector<float>());
  CHECK(two.steps() == 4);
  StateDict lacking = state;
  lacking.erase("param.0.exp_avg");
  CHECK_THROWS_WITH_AS(two.load_state_dict(lacking), doctest::Contains("lacks 'param.0.exp_avg'"),
                       ValueError);
  StateDict more = state;
  more["other"] = zeros({1});
  CHECK_THROWS_WITH_AS(two.load_state_dict(more), doctest::Contains("'other'"), ValueError);
  StateDict misshapen = state;
  misshapen["param.0.exp_avg"] = zeros({7});
  CHECK_THROWS_AS(two.load_state_dict(misshapen), ShapeError);
}

TEST_CASE("optim: an impossible state is refused, and nothing of it is loaded") {
  const Tensor p = parameter({1, 2});
  optim::Adam adam(std::vector<Tensor>{p}, {.amsgrad = true});
  adam.step(sum(square(p)));
  StateDict state;
  for (const auto& [key, t] : adam.state_dict())
    state[key] = Tensor::from_data(t.data(), t.shape(), t.dtype());
  const std::vector<float> kept = adam.state_dict().at("param.0.exp_avg").to_vector<float>();
  const auto refusal = [&](const std::string& key, const Tensor& value) {
    StateDict wrong = state;
    wrong["param.0.exp_avg"] = zeros({2});
    wrong[key] = value;
    try {
      adam.load_state_dict(wrong);
    } catch (const ValueError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto pair = [](float a, float b) { return Tensor::from(std::vector<float>{a, b}, {2}); };
  const auto number = [](double value) { return scalar(value, DType::Float64); };
  const std::string of = "' of the saved state ";
  CHECK(refusal("param.0.exp_avg", pair(1, NAN)) ==
        "optimizer: 'param.0.exp_avg" + of + "has values that are not finite");
  for (const char* key : {"param.0.exp_avg_sq", "param.0.max_exp_avg_sq"})
    for (const float wrong : {-1e-30f, NAN, -INFINITY})
      CHECK(refusal(key, pair(0, wrong)) ==
            "optimizer: '" + std::string(key) + of + "has values that are negative or NaN");
  CHECK(refusal("step", number(-3)) ==
        "optimizer: 'step" + of + "is -3, must be a number of steps");
  for (const double wrong : {double{NAN}, double{INFINITY}, 1.5})
    CHECK(refusal("step", number(wrong)).find("must be a number of steps") != std::string::npos);
  CHECK(refusal("lr", number(NAN)).find("'lr" + of + "is nan") != std::string::npos);
  CHECK(adam.state_dict().at("param.0.exp_avg").to_vector<float>() == kept);
  CHECK(refusal("param.0.exp_avg", pair(-1, -0.0f)).empty());  // the first moment may be negative
  CHECK(refusal("param.0.exp_avg_sq", pair(0, INFINITY)).empty());  // squares of gradients of 1e20

  // A group's own step count is checked under its own name.
  optim::ParameterGroup late{{{"late", parameter({1})}}};
  late.own_steps = true;
  optim::Sgd sgd(std::vector<optim::ParameterGroup>{{{{"p", p}}}, late});
  StateDict counts = sgd.state_dict();
  counts["late.step"] = number(-1);
  CHECK_THROWS_WITH_AS(sgd.load_state_dict(counts),
                       "optimizer: 'late.step' of the saved state is -1, must be a number of steps",
                       ValueError);
}

TEST_CASE("optim: a learning rate out of range is refused with the range") {
  CHECK_THROWS_WITH_AS(optim::Sgd(std::vector<Tensor>{parameter({1})}, {.lr = 1e37}),
                       "optimizer: lr is 1e+37, must be from 0 to 1e+30", ValueError);
}

TEST_CASE("optim: tensors that cannot be trained are refused") {
  const Tensor p = parameter({1});
  CHECK_THROWS_AS(optim::Sgd(std::vector<Tensor>{}), ValueError);
  CHECK_THROWS_AS(optim::Sgd(std::vector<Tensor>{zeros({2})}), ValueError);
  CHECK_THROWS_AS(optim::Sgd(std::vector<Tensor>{p, p}), ValueError);
  CHECK_THROWS_AS(optim::Sgd(std::vector<Tensor>{p}, {.lr = -1}), ValueError);
  CHECK_THROWS_AS(optim::Sgd(std::vector<Tensor>{p}, {.lr = NAN}), ValueError);
  CHECK_THROWS_AS(optim::Sgd(std::vector<Tensor>{p}, {.nesterov = true}), ValueError);
  optim::Sgd sgd(std::vector<Tensor>{p});
  CHECK_THROWS_AS(static_cast<void>(sgd.updates({})), ValueError);
  CHECK_THROWS_AS(static_cast<void>(sgd.updates({zeros({2})})), ShapeError);
  CHECK_THROWS_WITH_AS(optim::create("adm", std::vector<Tensor>{p}),
                       doctest::Contains("did you mean 'adam'"), ValueError);
  CHECK_THROWS_WITH_AS(optim::create("adam", std::vector<Tensor>{p}, {.momentum = 0.9}),
                       doctest::Contains("'momentum'"), ValueError);
  CHECK_THROWS_AS(optim::clip_grad_norm({p}, 0), ValueError);
  CHECK_THROWS_AS(optim::clip_grad_value({p}, -1), ValueError);
}

TEST_CASE("optim: a step refuses a loss that depends on none of its parameters") {
  const nn::AnyModule net = nn::Sequential(nn::Linear(3, 2));
  optim::Sgd sgd(net, {.lr = 0.5});
  const Tensor x = randn({4, 3}).compute(), before = (net(x) * 1.0).compute();
  const auto refuses = [&](const Tensor& loss) {
    CHECK_THROWS_WITH_AS(
        sgd.step(loss),
        doctest::Contains("step: the loss does not depend on any of the 2 trainable parameters"),
        ValueError);
  };
  // The result of a compiled function has no graph.
  const CompiledFunction f =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; });
  refuses(sum(square(f({x})[0])));
  refuses(sum(square(net(x).detach())));
  refuses(scalar(1.0));
  const nn::AnyModule other = nn::Sequential(nn::Linear(3, 2));
  refuses(sum(other(x)));
  CHECK_THROWS_WITH_AS(sgd.step(Tensor()), doctest::Contains("step: the loss"), ValueError);
  CHECK(equal(net(x), before));
  CHECK(sgd.steps() == 0);
  // One parameter is enough, even with a zero gradient. A loss that is already evaluated is fine,
  // too.
  sgd.step(sum(floor(net(x))));
  const Tensor loss = sum(square(net(x)));
  (void)loss.item();
  sgd.step(loss);
  CHECK(sgd.steps() == 2);
  CHECK_FALSE(equal(net(x), before));
}

TEST_CASE("optim: a step returns the loss before the update, without a graph behind it") {
  const Tensor p = variable(scalar(3.0), "p");
  optim::Sgd sgd(std::vector<Tensor>{p}, {.lr = 0.5});
  const Tensor first = sgd.step(p),
               second = sgd.step(p * 1);  // the variable itself, and a value of it
  CHECK(p.item() == 2);
  CHECK(first.item() == 3);
  CHECK(second.item() == 2.5);
  CHECK_FALSE(is_variable(first));
  CHECK(grad(second, p).item() == 0);
  CHECK(second.node()->input_count == 0);
}

TEST_CASE("optim: a parameter frozen later keeps its value, and learns again after unfreezing") {
  nn::Sequential net(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2));
  optim::Adam adam(net, {.lr = 0.1});
  const Tensor x = randn({4, 3}).compute();
  const auto moves = [&](const std::string& name, const auto& step) {
    const Tensor weight = net.state_dict().at(name), before = (weight * 1.0).compute();
    step();
    return !equal(weight, before);
  };
  const auto plain = [&] { adam.step(sum(square(net(x))), {.norm = 0.5}); };
  const auto by_hand = [&] { compute(adam.updates(grad(sum(square(net(x))), adam.parameters()))); };
  net.freeze("0");
  CHECK_FALSE(moves("0.weight", plain));
  CHECK_FALSE(moves("0.weight", by_hand));
  CHECK(moves("2.weight", plain));
  net.unfreeze("0.weight");
  CHECK(moves("0.weight", plain));
  CHECK_FALSE(moves("0.bias", by_hand));
  net.freeze();
  CHECK_THROWS_WITH_AS(plain(), doctest::Contains("all 4 parameters are frozen"), ValueError);
}

TEST_CASE("optim: a step also evaluates given tensors, with values from before the update") {
  const nn::LSTM lstm(3, 4);
  optim::Sgd sgd(lstm.parameters(), {.lr = 0.1});
  nn::LstmState state{zeros({1, 2, 4}), zeros({1, 2, 4})};
  for (int k = 0; k < 3; ++k) {
    const Tensor x = randn({5, 2, 3}).compute();
    const Tensor expected = lstm(x, state).state.cell.compute();
    const nn::LstmResult made = lstm(x, state);
    state = {made.state.hidden.detach(), made.state.cell.detach()};
    sgd.step(sum(square(made.output)), {}, {state.hidden, state.cell});
    CHECK(equal(state.cell, expected));
  }
}

TEST_CASE("optim: an unassigned tensor is refused by name") {
  const Tensor p = parameter({1}), none;
  const auto names = [](const char* what, const auto& f) {
    CHECK_THROWS_WITH_AS(f(), doctest::Contains(what), ValueError);
  };
  names("'param.1' has no value", [&] { optim::Sgd(std::vector<Tensor>{p, none}); });
  optim::Sgd sgd(std::vector<Tensor>{p});
  names("the gradient of 'param.0' has no value", [&] { compute(sgd.updates({none})); });
  CHECK_THROWS_AS(compute(sgd.updates({zeros({1}, DType::Int64)})), DTypeError);
  names("clip_grad_norm: gradient 1 has no value", [&] { optim::clip_grad_norm({p, none}, 1); });
  names("clip_grad_value: gradient 0 has no value", [&] { optim::clip_grad_value({none}, 1); });
  StateDict state = sgd.state_dict();
  state.at("step") = none;
  names("'step' of the saved state has no value", [&] { sgd.load_state_dict(state); });
  nn::AnyModule net = nn::Sequential(nn::Linear(3, 2));
  names("load_state_dict: '0.bias' has no value", [&] {
    StateDict weights = net.state_dict();
    weights.at("0.bias") = none;
    net.load_state_dict(weights);
  });
}

TEST_CASE("optim: the norm of float64 gradients is computed in float64") {
  const Tensor g = Tensor::from(std::vector<double>{1.0, 1e-5}, {2});
  const optim::ClippedGrads clipped = optim::clip_grad_norm({g}, 1e9);
  CHECK(clipped.norm.dtype() == DType::Float64);
  CHECK(clipped.norm.item() == std::sqrt(1.0 + 1e-10));
}

TEST_CASE("optim: a changed learning rate needs no new plan") {
  const Tensor p = parameter({1, 2});
  optim::Adam adam(std::vector<Tensor>{p});
  adam.step(sum(square(p)));
  const auto planned = runner_stats().programs_planned;
  for (int k = 1; k < 5; ++k) {
    adam.set_lr(0.01 * k);
    adam.step(sum(square(p)));
  }
  CHECK(runner_stats().programs_planned == planned);
}

TEST_CASE("optim: schedules by name, with warm-up") {
  for (const std::string& name : optim::schedule_names()) {
    CAPTURE(name);
    const auto schedule = optim::create_schedule(
        name, {.total_steps = 100, .steps_per_epoch = 10, .warmup = 2, .milestones = {3, 5}});
    double previous = 0;
    for (std::int64_t step = 0; step < 20; ++step) {
      CHECK(schedule->factor(step) > previous);
      previous = schedule->factor(step);
    }
    for (std::int64_t step = 20; step < 120; ++step) {
      CHECK(schedule->factor(step) >= 0);
      CHECK(schedule->factor(step) <= 1.0 + 1e-12);
    }
  }
  CHECK_THROWS_WITH_AS(optim::create_schedule("cosin", {}),
                       doctest::Contains("did you mean 'cosine'"), ValueError);
  CHECK_THROWS_AS(optim::create_schedule("cosine", {.warmup = -1}), ValueError);
  // A run shorter than its warm-up must still learn.
  const auto brief =
      optim::create_schedule("cosine", {.total_steps = 4, .steps_per_epoch = 100, .warmup = 1});
  CHECK(brief->factor(2) == 1.0);
}

TEST_CASE("optim: inverse_sqrt after a warm-up is the Transformer's schedule") {
  const auto schedule = optim::create_schedule(
      "inverse_sqrt", {.total_steps = 1000, .steps_per_epoch = 100, .warmup = 0.39});
  for (std::int64_t step = 0; step < 1000; step += 7) {
    const double t = static_cast<double>(step) + 1, rise = 40;
    CHECK(schedule->factor(step) ==
          doctest::Approx(std::sqrt(rise) * std::min(1 / std::sqrt(t), t * std::pow(rise, -1.5))));
  }
  CHECK_THROWS_AS(optim::inverse_sqrt(0), ValueError);
}

TEST_CASE("optim: levenberg's learning rates follow the measured curvature") {
  const Tensor p = variable(Tensor::from(std::vector<double>{1, -2, 3}, {3}));
  optim::Levenberg optimizer(std::vector<Tensor>{p}, {.lr = 0.1, .mu = 0.5});
  const std::vector<double> examples[] = {{1, 10, 0}, {3, -2, 0}};
  for (const double keep : {0.0, 1.0, 0.0, 1.0}) {  // measured again the second time
    const Tensor g = Tensor::from(examples[static_cast<int>(keep)], {3});
    compute(optimizer.curvature_updates({g}, scalar(keep), 0.5));
  }
  std::vector<double> weights{1, -2, 3};
  const double curvature[] = {5, 52, 0};
  for (int step = 0; step < 3; ++step) {
    optimizer.step(sum(square(p)));
    for (std::size_t k = 0; k < 3; ++k) {
      weights[k] -= 0.1 * 2 * weights[k] / (curvature[k] + 0.5);
      CHECK(p.to_vector<double>()[k] == doctest::Approx(weights[k]).epsilon(1e-12));
    }
  }
  std::vector<Tensor> none;
  CHECK_THROWS_AS(none = optimizer.curvature_updates({}, scalar(0.0), 1), ValueError);
  CHECK_THROWS_AS(optim::Levenberg(std::vector<Tensor>{p}, {.mu = 0}), ValueError);
  CHECK_THROWS_AS(optim::create("levenberg", std::vector<Tensor>{p}, {.momentum = 0.9}),
                  ValueError);
  CHECK_THROWS_AS(optim::create("levenberg", std::vector<Tensor>{p}, {.beta2 = 0.9}), ValueError);
  CHECK_THROWS_WITH_AS(optim::create("sgd", std::vector<Tensor>{p}, {.beta1 = 0.5}),
                       "sgd has no option 'beta1'", ValueError);
  CHECK_THROWS_AS(optim::create("adam", std::vector<Tensor>{p}, {.beta1 = 1}), ValueError);
  CHECK_THROWS_AS(optim::create("adamw", std::vector<Tensor>{p}, {.beta2 = 1}), ValueError);
}

TEST_CASE("optim: a multistep schedule with given factors") {
  const auto schedule = optim::create_schedule(
      "multistep", {.steps_per_epoch = 10, .milestones = {2, 5}, .factors = {0.4, 0.02}});
  CHECK(schedule->factor(0) == 1);
  CHECK(schedule->factor(19) == 1);
  CHECK(schedule->factor(20) == 0.4);
  CHECK(schedule->factor(49) == 0.4);
  CHECK(schedule->factor(5000) == 0.02);
  CHECK_THROWS_AS(optim::multistep({1, 2}, std::vector<double>{0.5}), ValueError);
  CHECK_THROWS_AS(optim::multistep({1}, std::vector<double>{-1}), ValueError);
}

TEST_CASE("optim: polynomial and cosine_restarts by name, times in epochs") {
  const auto falling = optim::create_schedule(
      "polynomial", {.total_steps = 40, .steps_per_epoch = 10, .minimum = 0.1, .power = 2.5});
  const auto again = optim::create_schedule(
      "cosine_restarts", {.steps_per_epoch = 10, .every = 0.5, .minimum = 0.2, .multiply = 3});
  const auto line = optim::polynomial(40, 2.5, 0.1), waves = optim::cosine_restarts(5, 3, 0.2);
  for (std::int64_t step = 0; step < 60; ++step) {
    CHECK(falling->factor(step) == line->factor(step));
    CHECK(again->factor(step) == waves->factor(step));
  }
  CHECK(again->factor(5) == 1);  // a second period, of 15 steps
  CHECK(again->factor(19) < 0.3);
  CHECK_THROWS_AS(optim::create_schedule("polynomial", {.total_steps = 4, .power = 0}), ValueError);
  CHECK_THROWS_AS(optim::create_schedule("cosine_restarts", {.multiply = 0}), ValueError);
  for (const double every : {0.0, -3.0, 1e300, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_AS(optim::create_schedule("cosine_restarts", {.every = every}), ValueError);
  CHECK_THROWS_AS(optim::create_schedule("step", {.steps_per_epoch = 0}), ValueError);
  CHECK_THROWS_AS(optim::polynomial(4, std::numeric_limits<double>::infinity()), ValueError);
  // The period stops growing at the largest integer.
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  CHECK(optim::cosine_restarts(1, 2)->factor(kLast) <= 1);
  CHECK(optim::cosine_restarts(100, kLast / 50)->factor(150) == doctest::Approx(1));
}

TEST_CASE("optim: a plateau schedule never counts NaN as the best") {
  const auto schedule = optim::plateau(0.5, 0);
  schedule->observe(std::numeric_limits<double>::quiet_NaN());
  CHECK(schedule->factor(0) == 0.5);
  for (const double figure : {1.0, 0.5}) schedule->observe(figure);
  CHECK(schedule->factor(0) == 0.5);
  schedule->observe(std::numeric_limits<double>::quiet_NaN());
  CHECK(schedule->factor(0) == 0.25);
}

TEST_CASE("optim: a plateau schedule's state is saved and loaded") {
  const auto one = optim::plateau(0.5, 0), two = optim::plateau(0.5, 0);
  one->observe(1.0);
  one->observe(2.0);
  CHECK(one->factor(0) == 0.5);
  two->load_state(one->state());
  CHECK(two->factor(0) == 0.5);
  CHECK_THROWS_AS(two->load_state({}), ValueError);
}

TEST_CASE("optim: a step clips gradients as requested") {
  const Tensor p = variable(ones({2}), "p");
  optim::Sgd sgd(std::vector<Tensor>{p}, {.lr = 1});
  const Tensor slopes = Tensor::from<float>({3, 4}, {2});
  sgd.step(sum(p * slopes), {.norm = 1});  // gradients of norm 5
  CHECK(p.to_vector<float>()[0] == doctest::Approx(0.4));
  CHECK(p.to_vector<float>()[1] == doctest::Approx(0.2));
  set_value(p, ones({2}));
  sgd.step(sum(p * slopes), {.value = 3.5});
  CHECK(p.to_vector<float>() == std::vector<float>{-2, -2.5});
  CHECK_THROWS_AS(sgd.step(sum(p), {.norm = -1}), ValueError);
  CHECK_THROWS_AS(sgd.step(sum(p), {.value = std::nan("")}), ValueError);
  CHECK_THROWS_WITH_AS(sgd.step(p * 2), doctest::Contains("step: the loss is"), ShapeError);
}
