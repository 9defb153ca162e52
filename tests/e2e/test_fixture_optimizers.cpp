// More optimizers, L-BFGS and schedules compared with PyTorch in float64, step by step. Also what
// all optimizers must keep: exact resuming, guards, frozen parameters, every floating data type.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/lbfgs.h>
#include <tenon/optimizers.h>

#include "e2e/fixtures.h"

using namespace tenon;
using fixtures::distance;

namespace {

using Owned = std::unique_ptr<optim::Optimizer>;
using Make = std::function<Owned(const optim::Parameters&)>;

template <class O, class Options>
Make make(const Options& options) {
  return [options](const optim::Parameters& parameters) {
    return std::make_unique<O>(parameters, options);
  };
}

/// OPTIMIZERS and MUON of make_optim_fixtures.py.
std::map<std::string, Make> optimizers() {
  using namespace optim;  // NOLINT: a long list of its names
  return {
      {"adagrad", make<Adagrad>(AdagradOptions{.lr = 0.1})},
      {"adagrad_options", make<Adagrad>(AdagradOptions{.lr = 0.1,
                                                       .lr_decay = 0.03,
                                                       .weight_decay = 0.05,
                                                       .initial_accumulator_value = 0.2,
                                                       .eps = 1e-3})},
      {"adagrad_maximize", make<Adagrad>(AdagradOptions{.lr = 0.1, .maximize = true})},
      {"adadelta", make<Adadelta>(AdadeltaOptions{})},
      {"adadelta_options",
       make<Adadelta>(AdadeltaOptions{
           .lr = 0.5, .rho = 0.8, .eps = 1e-3, .weight_decay = 0.05, .maximize = true})},
      {"adamax", make<Adamax>(AdamaxOptions{})},
      {"adamax_options", make<Adamax>(AdamaxOptions{.lr = 0.05,
                                                    .beta1 = 0.7,
                                                    .beta2 = 0.9,
                                                    .eps = 1e-3,
                                                    .weight_decay = 0.05,
                                                    .maximize = true})},
      {"nadam", make<NAdam>(NAdamOptions{})},
      {"nadam_options", make<NAdam>(NAdamOptions{.lr = 0.05,
                                                 .beta1 = 0.8,
                                                 .beta2 = 0.95,
                                                 .eps = 1e-4,
                                                 .weight_decay = 0.05,
                                                 .momentum_decay = 0.02,
                                                 .maximize = true})},
      {"nadam_decoupled",
       make<NAdam>(NAdamOptions{.lr = 0.05, .weight_decay = 0.05, .decoupled = true})},
      {"radam", make<RAdam>(RAdamOptions{})},
      {"radam_options", make<RAdam>(RAdamOptions{.lr = 0.05,
                                                 .beta1 = 0.8,
                                                 .beta2 = 0.95,
                                                 .eps = 1e-4,
                                                 .weight_decay = 0.05,
                                                 .maximize = true})},
      {"radam_decoupled",
       make<RAdam>(RAdamOptions{
           .lr = 0.05, .beta1 = 0.8, .beta2 = 0.7, .weight_decay = 0.05, .decoupled = true})},
      {"rprop", make<Rprop>(RpropOptions{})},
      {"rprop_options", make<Rprop>(RpropOptions{.lr = 0.05,
                                                 .eta_minus = 0.6,
                                                 .eta_plus = 1.4,
                                                 .step_min = 0.01,
                                                 .step_max = 0.2,
                                                 .maximize = true})},
      {"asgd", make<Asgd>(AsgdOptions{})},
      {"asgd_options", make<Asgd>(AsgdOptions{.lr = 0.05,
                                              .lambd = 0.02,
                                              .alpha = 0.6,
                                              .t0 = 8,
                                              .weight_decay = 0.05,
                                              .maximize = true})},
      {"adafactor", make<Adafactor>(AdafactorOptions{})},
      {"adafactor_options", make<Adafactor>(AdafactorOptions{.lr = 0.2,
                                                             .beta2_decay = -0.6,
                                                             .eps1 = 1e-4,
                                                             .eps2 = 0.5,
                                                             .d = 1.1,
                                                             .weight_decay = 0.05,
                                                             .maximize = true})},
      {"lion", make<Lion>(LionOptions{.lr = 0.01})},
      {"lion_options",
       make<Lion>(LionOptions{.lr = 0.03, .beta1 = 0.7, .beta2 = 0.8, .weight_decay = 0.05})},
      {"lamb", make<Lamb>(LambOptions{.lr = 0.02})},
      {"lamb_options",
       make<Lamb>(
           LambOptions{.lr = 0.05, .beta1 = 0.7, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.05})},
      {"muon", make<Muon>(MuonOptions{.lr = 0.02})},
      {"muon_options", make<Muon>(MuonOptions{.lr = 0.05,
                                              .weight_decay = 0.05,
                                              .momentum = 0.8,
                                              .nesterov = false,
                                              .ns_steps = 3,
                                              .rate = MuonRate::MatchRmsAdamW})},
      {"muon_spectral", make<Muon>(MuonOptions{.lr = 0.05, .rate = MuonRate::SpectralUnclamped})},
  };
}

/// The parameters of one optimizer of the file, each a group, and their gradients.
struct Course {
  Course(const std::map<std::string, fixtures::Tensors>& stored, const std::string& name,
         DType dtype = DType::Float64)
      : is_muon(name.starts_with("muon")) {
    for (const char* key : is_muon ? std::array{"tall", "wide"} : std::array{"matrix", "vector"}) {
      parameters.emplace_back(variable(cast(stored.at("start").at(key), dtype), key));
      grads.push_back(cast(stored.at("grads").at(key), dtype));
      names.emplace_back(key);
    }
  }
  Owned optimizer(const Make& make, bool has_decay) const {
    optim::ParameterGroup first{{{names[0], parameters[0]}}}, second{{{names[1], parameters[1]}}};
    if (is_muon) return make(optim::Parameters({first, second}));
    second.lr = make({parameters[0]})->base_lr() / 2;
    if (has_decay) second.weight_decay = 0.1;
    return make(optim::Parameters({first, second}));
  }
  void step(optim::Optimizer& optimizer, std::int64_t k) const {
    optimizer.set_lr(optimizer.base_lr() * std::pow(0.98, static_cast<double>(k)));
    compute(optimizer.updates({select(grads[0], 0, k), select(grads[1], 0, k)}));
  }
  bool is_muon;
  std::vector<Tensor> parameters, grads;
  std::vector<std::string> names;
};

bool has_decay(const std::string& name) { return !name.starts_with("rprop"); }

StateDict copied(const StateDict& state) {
  StateDict out;
  for (const auto& [key, t] : state) out[key] = Tensor::from_data(t.data(), t.shape(), t.dtype());
  return out;
}

}  // namespace

TEST_CASE("fixtures: more optimizers follow PyTorch in float64, with groups and a schedule") {
  const auto stored = fixtures::load("optimizers");
  const std::int64_t kept[] = {1, 2, 5, 6, 10, 30, 60};
  for (const auto& [name, build] : optimizers()) {
    CAPTURE(name);
    const Course course(stored, name);
    const Owned optimizer = course.optimizer(build, has_decay(name));
    std::int64_t done = 0;
    for (std::int64_t place = 0; place < std::ssize(kept); ++place) {
      for (; done < kept[place]; ++done) course.step(*optimizer, done);
      CAPTURE(done);
      const StateDict state = optimizer->state_dict();
      for (const auto& [key, trail] : stored.at(name)) {
        CAPTURE(key);
        const auto at = std::find(course.names.begin(), course.names.end(), key);
        const Tensor& mine =
            at == course.names.end()
                ? state.at(key)
                : course.parameters[static_cast<std::size_t>(at - course.names.begin())];
        CHECK(mine.dtype() == DType::Float64);
        CHECK(distance(mine, select(trail, 0, place)) < 1e-11);
      }
    }
    CHECK(optimizer->steps() == 60);
  }
}

TEST_CASE("optim: every optimizer resumes bit for bit, also in 16 bits") {
  const auto stored = fixtures::load("optimizers");
  for (const DType dtype : {DType::Float64, DType::Float32, DType::BFloat16, DType::Float16})
    for (const auto& [name, build] : optimizers()) {
      CAPTURE(name);
      CAPTURE(dtype);
      const Course course(stored, name, dtype), again(stored, name, dtype);
      const Owned one = course.optimizer(build, has_decay(name)),
                  two = again.optimizer(build, has_decay(name));
      for (std::int64_t k = 0; k < 9; ++k) course.step(*one, k);
      two->load_state_dict(copied(one->state_dict()));
      for (std::size_t k = 0; k < 2; ++k) set_value(again.parameters[k], course.parameters[k]);
      for (std::int64_t k = 9; k < 14; ++k) {
        course.step(*one, k);
        again.step(*two, k);
      }
      for (std::size_t k = 0; k < 2; ++k) {
        CHECK(equal(course.parameters[k], again.parameters[k]));
        CHECK(course.parameters[k].dtype() == dtype);
        CHECK(all(isfinite(course.parameters[k])).item() == 1);
      }
    }
}

TEST_CASE("optim: float32 and 16-bit parameters follow float64 as far as their digits go") {
  const auto stored = fixtures::load("optimizers");
  for (const auto& [name, build] : optimizers()) {
    CAPTURE(name);
    const Course exact(stored, name);
    const Owned reference = exact.optimizer(build, has_decay(name));
    for (std::int64_t k = 0; k < 10; ++k) exact.step(*reference, k);
    for (const auto& [dtype, tolerance] :
         {std::pair{DType::Float32, 1e-5}, std::pair{DType::BFloat16, 0.06}}) {
      const Course rounded(stored, name, dtype);
      const Owned optimizer = rounded.optimizer(build, has_decay(name));
      for (std::int64_t k = 0; k < 10; ++k) rounded.step(*optimizer, k);
      for (std::size_t k = 0; k < 2; ++k) {
        const Tensor mine = cast(rounded.parameters[k], DType::Float64);
        const double error = sqrt(sum(square(mine - exact.parameters[k]))).item() /
                             sqrt(sum(square(exact.parameters[k]))).item();
        CAPTURE(dtype);
        CHECK(error < tolerance);
      }
    }
  }
}

TEST_CASE("optim: a frozen parameter and a guarded step leave every optimizer's state alone") {
  const auto stored = fixtures::load("optimizers");
  for (const auto& [name, build] : optimizers()) {
    CAPTURE(name);
    const Course course(stored, name);
    const Owned optimizer = course.optimizer(build, has_decay(name));
    course.step(*optimizer, 0);
    const StateDict before = copied(optimizer->state_dict());
    const Tensor first = (course.parameters[0] * 1.0).compute();
    compute(optimizer->updates({select(course.grads[0], 0, 1), select(course.grads[1], 0, 1)},
                               scalar(false, DType::Bool)));
    for (const auto& [key, t] : optimizer->state_dict()) {
      CAPTURE(key);
      CHECK(equal(t, before.at(key)));
    }
    CHECK(equal(course.parameters[0], first));
  }
}

TEST_CASE("optim: Muon leaves vectors and what is not chosen to AdamW") {
  const Tensor start = Tensor::from<double>({1, -2, 3, 0.5, 2, -1}, {2, 3});
  const Tensor grad = Tensor::from<double>({0.5, 1, -1, 2, 0.1, -0.3}, {2, 3});
  const Tensor chosen = variable(start), left = variable(start), vector = variable(flatten(start)),
               kernel = variable(reshape(start, {2, 3, 1, 1}));
  const Tensor by_adamw = variable(start);
  const optim::ParameterGroup group{
      {{"chosen", chosen}, {"left", left}, {"vector", vector}, {"kernel", kernel}}};
  optim::Muon muon(
      optim::Parameters({group}),
      {.lr = 0.1, .chosen = [](const std::string& name, const Tensor&) { return name != "left"; }});
  optim::AdamW adamw({by_adamw}, {.lr = 0.1, .beta2 = 0.95, .weight_decay = 0.1});
  for (int k = 0; k < 3; ++k) {
    compute(muon.updates({grad, grad, flatten(grad), reshape(grad, {2, 3, 1, 1})}));
    compute(adamw.updates({grad}));
  }
  CHECK(distance(left, by_adamw) < 1e-13);
  CHECK(distance(vector, flatten(by_adamw)) < 1e-13);
  CHECK(distance(flatten(kernel, 1), chosen) < 1e-13);
  CHECK(distance(chosen, by_adamw) > 1e-3);
  const StateDict state = muon.state_dict();
  CHECK(state.contains("chosen.momentum_buffer"));
  CHECK_FALSE(state.contains("chosen.exp_avg"));
  CHECK(state.contains("left.exp_avg_sq"));
}

TEST_CASE("optim: Rprop refuses a weight decay, and step sizes that exclude each other") {
  const Tensor p = variable(ones({2}));
  optim::ParameterGroup group{{{"p", p}}};
  group.weight_decay = 0.1;
  CHECK_THROWS_WITH_AS(optim::Rprop(optim::Parameters({group})),
                       doctest::Contains("uses only the signs"), ValueError);
  CHECK_THROWS_WITH_AS(optim::Rprop({p}, {.step_min = 2, .step_max = 1}),
                       doctest::Contains("step_min is 2"), ValueError);
  CHECK_THROWS_WITH_AS(optim::create("rprop", {p}, {.weight_decay = 0.1}),
                       "rprop has no option 'weight_decay'", ValueError);
}

TEST_CASE("optim: descriptions name the options that are not defaults") {
  const Tensor p = variable(ones({2, 2}));
  CHECK(optim::Adagrad({p}).describe() == "adagrad(lr=0.01)");
  CHECK(optim::NAdam({p}, {.lr = 0.1, .beta2 = 0.9, .decoupled = true}).describe() ==
        "nadam(lr=0.1, beta2=0.9, decoupled)");
  CHECK(optim::Muon({p}, {.ns_steps = 3, .rate = optim::MuonRate::MatchRmsAdamW}).describe() ==
        "muon(lr=0.001, weight_decay=0.1, nesterov, ns_steps=3, match_rms_adamw)");
  CHECK(optim::Adafactor({p}, {.eps1 = 0.5, .maximize = true}).describe() ==
        "adafactor(lr=0.01, eps1=0.5, maximize)");
  CHECK(optim::Lbfgs({p}, {.max_iter = 3, .strong_wolfe = true}).describe() ==
        "lbfgs(lr=1, max_iter=3, strong_wolfe)");
  CHECK(optim::AdamW({p}).describe() == "adamw(lr=0.001, weight_decay=0.01)");
}

TEST_CASE("optim: the defaults of optimizers by name are those of their options") {
  for (const std::string& name : optim::names()) CHECK(optim::defaults(name).lr.has_value());
  const optim::OptimizerOptions lion = optim::defaults("lion"), muon = optim::defaults("muon");
  CHECK(lion.beta2 == 0.99);
  CHECK_FALSE(lion.eps);
  CHECK(muon.nesterov == true);
  CHECK(optim::defaults("levenberg").eps == 0.02);
  CHECK_THROWS_AS(optim::defaults("adm"), ValueError);
}

// ---- L-BFGS

namespace {

Tensor rosenbrock(const Tensor& p, const Tensor& q) {
  const Tensor x = concat({flatten(p), q});
  const Tensor a = narrow(x, 0, 1, x.size(0) - 1), b = narrow(x, 0, 0, x.size(0) - 1);
  return sum(100 * square(a - square(b)) + square(1 - b));
}

std::map<std::string, optim::LbfgsOptions> lbfgs_options() {
  return {{"lbfgs_wolfe", {.max_iter = 4, .history_size = 5, .strong_wolfe = true}},
          {"lbfgs_fixed", {.lr = 0.02, .max_iter = 6, .history_size = 3}},
          {"lbfgs_long", {.lr = 0.8, .strong_wolfe = true}}};
}

}  // namespace

TEST_CASE("fixtures: L-BFGS follows PyTorch, with and without the line search") {
  const auto stored = fixtures::load("optimizers");
  for (const auto& [name, options] : lbfgs_options()) {
    CAPTURE(name);
    const Tensor p = variable(stored.at("lbfgs").at("p")), q = variable(stored.at("lbfgs").at("q"));
    optim::Lbfgs lbfgs({p, q}, options);
    const std::vector<double> losses = fixtures::numbers(stored.at(name).at("losses"));
    for (std::size_t step = 0; step < losses.size(); ++step) {
      CAPTURE(step);
      const double loss = lbfgs.step([&] { return rosenbrock(p, q); }).item();
      CHECK(loss == doctest::Approx(losses[step]).epsilon(1e-6));
      const Tensor trail = select(stored.at(name).at("trail"), 0, static_cast<std::int64_t>(step));
      CHECK(distance(concat({flatten(p), q}), trail) < 1e-6);
    }
    CHECK(lbfgs.evaluations() == stored.at(name).at("evaluations").item());
  }
}

TEST_CASE("lbfgs: resumes bit for bit, and needs no new plans as its history grows") {
  const auto stored = fixtures::load("optimizers");
  for (const auto& [name, options] : lbfgs_options()) {
    CAPTURE(name);
    const Tensor p = variable(stored.at("lbfgs").at("p")), q = variable(stored.at("lbfgs").at("q"));
    const Tensor p2 = variable(p), q2 = variable(q);
    optim::Lbfgs one({p, q}, options), two({p2, q2}, options);
    const auto first = [&] { return rosenbrock(p, q); };
    for (int k = 0; k < 3; ++k) one.step(first);
    const auto planned = runner_stats().programs_planned;
    one.step(first);
    CHECK(runner_stats().programs_planned == planned);
    two.load_state_dict(copied(one.state_dict()));
    set_value(p2, p);
    set_value(q2, q);
    for (int k = 0; k < 3; ++k) {
      one.step(first);
      two.step([&] { return rosenbrock(p2, q2); });
    }
    CHECK(equal(p, p2));
    CHECK(equal(q, q2));
    CHECK(one.evaluations() == two.evaluations());
    CHECK(one.iterations() == two.iterations());
  }
}

TEST_CASE("lbfgs: solves least squares, maximizes, and skips frozen parameters") {
  manual_seed(1);
  nn::Linear net(3, 2);
  net.to(DType::Float64);
  const Tensor x = randn({20, 3}, DType::Float64).compute(),
               y = randn({20, 2}, DType::Float64).compute();
  optim::Lbfgs lbfgs(net, {.strong_wolfe = true});
  const auto loss = [&] { return mse_loss(net(x), y); };
  for (int k = 0; k < 3; ++k) lbfgs.step(loss);
  for (const Tensor& slope : grad(loss(), net.parameters())) CHECK(amax(abs(slope)).item() < 1e-4);
  net.freeze("bias");
  const Tensor bias = (net.bias() * 1.0).compute(), weight = (net.weight() * 1.0).compute();
  lbfgs.step([&] { return mse_loss(net(x + 1), y); });
  CHECK(equal(net.bias(), bias));
  CHECK_FALSE(equal(net.weight(), weight));

  const Tensor p = variable(Tensor::from<float>({2, -1}, {2}));
  optim::Lbfgs climbing({p}, {.strong_wolfe = true, .maximize = true});
  CHECK(climbing.step([&] { return -sum(square(p - 3)); }).item() == -17);
  CHECK(distance(p, full({2}, 3.0)) < 1e-4);
}

TEST_CASE("lbfgs: refuses what it cannot minimize, and states of other networks") {
  const Tensor p = variable(ones({2}));
  optim::Lbfgs lbfgs({p});
  CHECK_THROWS_WITH_AS(lbfgs.step([] { return scalar(1.0); }),
                       doctest::Contains("does not depend on any parameter"), ValueError);
  CHECK_THROWS_AS(lbfgs.step([&] { return p * 2; }), ShapeError);
  CHECK_THROWS_AS(lbfgs.step({}), ValueError);
  CHECK_THROWS_AS(optim::Lbfgs({p}, {.max_iter = 0}), ValueError);
  CHECK_THROWS_AS(optim::Lbfgs({ones({2})}), ValueError);
  optim::ParameterGroup group{{{"p", p}}};
  group.lr = 0.5;
  CHECK_THROWS_WITH_AS(optim::Lbfgs(optim::Parameters({group})), doctest::Contains("one group"),
                       ValueError);
  lbfgs.step([&] { return sum(square(p) * square(p)); });
  StateDict state = lbfgs.state_dict();
  const Tensor q = variable(ones({3}));
  optim::Lbfgs other({q});
  CHECK_THROWS_WITH_AS(other.load_state_dict(state), doctest::Contains("another network"),
                       ShapeError);
  state.erase("t");
  CHECK_THROWS_WITH_AS(lbfgs.load_state_dict(state), doctest::Contains("lacks 't'"), ValueError);
}

TEST_CASE("lbfgs: a closure that throws leaves the parameters of the last iteration") {
  const Tensor p = variable(Tensor::from<double>({2, -1}, {2}));
  optim::Lbfgs lbfgs({p}, {.strong_wolfe = true});
  int calls = 0;
  CHECK_THROWS_AS(lbfgs.step([&]() -> Tensor {
    if (++calls == 2) throw std::runtime_error("no data");
    return sum(square(p));
  }),
                  std::runtime_error);
  CHECK(p.to_vector<double>() == std::vector<double>{2, -1});
}

// ---- Schedules

TEST_CASE("fixtures: more schedules follow torch.optim.lr_scheduler") {
  using namespace optim;  // NOLINT: a long list of its names
  const auto stored = fixtures::load("optimizers").at("schedule");
  std::map<std::string, std::unique_ptr<Schedule>> schedules;
  schedules["constant"] = constant(0.3, 4);
  schedules["ramp"] = ramp(0.25, 0.75, 7);
  schedules["cyclic"] = cyclic({.up = 4});
  schedules["cyclic_uneven"] =
      cyclic({.high = 0.9, .up = 3, .down = 5, .mode = CyclicMode::Triangular2});
  schedules["cyclic_range"] =
      cyclic({.low = 0.2, .up = 5, .mode = CyclicMode::ExpRange, .gamma = 0.95});
  schedules["lambda"] = from_function([](std::int64_t k) { return 1 / (1 + 0.3 * k); });
  schedules["multiplicative"] =
      multiplicative([](std::int64_t k) { return k % 2 == 1 ? 0.9 : 1.05; });
  schedules["sequential"] =
      sequential(schedule_list(constant(0.1, 3), exponential(0.9), step(2, 0.5)), {3, 9});
  schedules["chained"] = product(schedule_list(constant(0.1, 4), exponential(0.9)));
  schedules["one_cycle_linear"] =
      one_cycle(20, {.rise = 0.4, .div = 10, .final_div = 100, .linear = true});
  schedules["one_cycle_three"] = one_cycle(21, {.three_phase = true});
  schedules["plateau_max"] =
      plateau({.gamma = 0.5, .patience = 1, .threshold = 0.01, .maximize = true});
  schedules["plateau_abs"] =
      plateau({.gamma = 0.5, .patience = 1, .threshold = 0.06, .absolute = true, .cooldown = 2});
  schedules["plateau_max_abs"] = plateau({.gamma = 0.7,
                                          .patience = 2,
                                          .threshold = 0.5,
                                          .minimum = 0.2,
                                          .maximize = true,
                                          .absolute = true,
                                          .eps = 0.05});
  const std::vector<double> figures = fixtures::numbers(stored.at("figures"));
  for (const auto& [name, schedule] : schedules) {
    CAPTURE(name);
    const std::vector<double> curve = fixtures::numbers(stored.at(name));
    for (std::size_t step = 0; step < curve.size(); ++step) {
      CAPTURE(step);
      CHECK(schedule->factor(static_cast<std::int64_t>(step)) ==
            doctest::Approx(curve[step]).epsilon(1e-9));
      if (name.starts_with("plateau")) schedule->observe(figures[step]);
    }
  }
  CHECK(ramp(0.5, 2, 0)->factor(0) == 2);
  CHECK(schedules.at("multiplicative")->factor(2) == doctest::Approx(0.9 * 1.05));  // back again
}

TEST_CASE("schedules: parts keep their states, and wrong parts are refused") {
  using namespace optim;  // NOLINT: a long list of its names
  const auto make = [] {
    return product(schedule_list(plateau(0.5, 0),
                                 sequential(schedule_list(plateau(0.1, 1), constant()), {5})));
  };
  const auto one = make(), two = make();
  for (const double figure : {1.0, 2.0, 3.0, 3.0}) one->observe(figure);
  CHECK(one->factor(0) == doctest::Approx(0.5 * 0.5 * 0.5 * 0.1));
  two->load_state(one->state());
  one->observe(4);
  two->observe(4);
  for (const std::int64_t step : {0, 4, 5}) CHECK(one->factor(step) == two->factor(step));
  CHECK_THROWS_AS(sequential({}, {}), ValueError);
  CHECK_THROWS_WITH_AS(sequential(schedule_list(constant(), constant()), {}),
                       doctest::Contains("0 milestones for 2"), ValueError);
  CHECK_THROWS_AS(sequential(schedule_list(constant(), constant(), constant()), {4, 2}),
                  ValueError);
  CHECK_THROWS_AS(product(schedule_list(std::unique_ptr<Schedule>())), ValueError);
  CHECK_THROWS_AS(from_function({}), ValueError);
  CHECK_THROWS_AS(cyclic({.low = 2}), ValueError);
  CHECK_THROWS_AS(one_cycle(10, {.rise = 0.7, .three_phase = true}), ValueError);
}

TEST_CASE("schedules: a registered schedule has a name, after the warm-up") {
  optim::register_schedule("test_halves", [](const optim::ScheduleOptions& o) {
    return optim::ramp(1, 0.5, o.total_steps);
  });
  const auto schedule = optim::create_schedule(
      "test_halves", {.total_steps = 20, .steps_per_epoch = 10, .warmup = 1});
  CHECK(schedule->factor(0) == doctest::Approx(1.0 / 11));
  CHECK(schedule->factor(10) == 1);
  CHECK(schedule->factor(20) == 0.5);
  const auto ignored = [](const optim::ScheduleOptions&) { return optim::constant(); };
  CHECK_THROWS_WITH_AS(optim::register_schedule("test_halves", ignored),
                       doctest::Contains("already"), ValueError);
  CHECK_THROWS_AS(optim::register_schedule("cosine", ignored), ValueError);
  CHECK_THROWS_AS(optim::register_schedule("test_empty", {}), ValueError);
}
