// Every numeric option of training, optimizers, schedules, loaders and sets is refused outside its
// range, by name, where it is given. tests/guards/options.py finds options without a row here.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/layers.h>
#include <tenon/lbfgs.h>
#include <tenon/models.h>
#include <tenon/optimizers.h>
#include <tenon/text.h>

#include "base/str.h"
#include "base/system/option_ranges.h"
#include "io/folder.h"
#include "train/toy.h"

namespace {

using namespace tenon;

const double kNan = std::numeric_limits<double>::quiet_NaN(),
             kInfinite = std::numeric_limits<double>::infinity();

// The error for each value must name the option, its struct and the range.
template <class Options, class Member>
void refuses(const char* name, Member Options::*member, const std::vector<double>& bad,
             const std::function<void(const Options&)>& use, const Options& good = {}) {
  CAPTURE(name);
  use(good);
  for (const double value : bad) {
    CAPTURE(value);
    Options options = good;
    options.*member = static_cast<Member>(value);
    std::string said;
    try {
      use(options);
    } catch (const ValueError& error) {
      said = error.what();
    }
    CHECK(said.find(name) != std::string::npos);
    CHECK(said.find("must be ") != std::string::npos);
  }
}

using train::TrainOptions;

void make_trainer(const TrainOptions& options) {
  const nn::Linear net(2, 4);
  optim::Sgd sgd(net, {.lr = 0.1});
  const train::Trainer trainer(net, nn::CrossEntropyLoss(), sgd, options);
}

const nn::Linear& some_net() {
  static const nn::Linear net(2, 4);
  return net;
}

const std::vector<double> kNoCount{-1, -1000000}, kNoPositive{0, -1},
    kNoShare{-0.1, 1.5, kNan, kInfinite, -kInfinite};

}  // namespace

TEST_CASE("option ranges: message texts") {
  CHECK(at_least(1).text() == "at least 1");
  CHECK(from_to(0, 1).text() == "from 0 to 1");
  CHECK(from_below(0, 1).text() == "at least 0 and below 1");
  CHECK(above_to(0, 16777216).text() == "above 0 and at most 16777216");
  CHECK(finite_above(0).text() == "finite and above 0");
  CHECK(any_finite().text() == "finite");
  for (const Range& range : {at_least(0), from_to(0, 1), any_finite()}) CHECK(!range.has(kNan));
}

TEST_CASE("option ranges: TrainOptions") {
  const auto check = [](const char* name, auto member, const std::vector<double>& bad) {
    refuses<TrainOptions>(name, member, bad, make_trainer);
  };
  check("epochs", &TrainOptions::epochs, {0, -3});
  check("max_steps", &TrainOptions::max_steps, kNoCount);
  check("accumulate", &TrainOptions::accumulate, kNoPositive);
  check("clip_norm", &TrainOptions::clip_norm, {-1, kNan, -kInfinite});
  check("clip_value", &TrainOptions::clip_value, {-1, kNan, -kInfinite});
  check("temperature", &TrainOptions::temperature, {0, -1, kNan, kInfinite});
  check("distill_weight", &TrainOptions::distill_weight, kNoShare);
  check("early_stopping", &TrainOptions::early_stopping, kNoCount);
  check("evaluate_every", &TrainOptions::evaluate_every, kNoPositive);
  check("stage_epochs", &TrainOptions::stage_epochs, kNoCount);
  check("steps_per_launch", &TrainOptions::steps_per_launch, kNoCount);
  check("keep_checkpoints", &TrainOptions::keep_checkpoints, kNoPositive);
  check("checkpoint_steps", &TrainOptions::checkpoint_steps, kNoCount);
  check("checkpoint_seconds", &TrainOptions::checkpoint_seconds, {-1, kNan});
  check("stop_after", &TrainOptions::stop_after, kNoCount);
  const auto of_length = [](const TrainOptions::Length& length) {
    TrainOptions options;
    options.earlier_lengths = {length};
    make_trainer(options);
  };
  refuses<TrainOptions::Length>("until", &TrainOptions::Length::until, kNoPositive, of_length,
                                {5, 5});
  refuses<TrainOptions::Length>("total", &TrainOptions::Length::total, kNoPositive, of_length,
                                {5, 5});
  TrainOptions descending;
  descending.earlier_lengths = {{5, 5}, {4, 9}};
  CHECK_THROWS_WITH_AS(make_trainer(descending), doctest::Contains("ascending"), ValueError);
}

TEST_CASE("option ranges: Mixing, in training and alone") {
  using data::Mixing;
  for (const bool trains : {true, false}) {
    const auto use = [trains](const Mixing& mixing) {
      TrainOptions options;
      options.mixing = mixing;
      if (trains)
        make_trainer(options);
      else
        (void)data::draw_mix(mixing, 8, 8, 1, 0, 0);
    };
    refuses<Mixing>("mixup", &Mixing::mixup, {-1, kNan, kInfinite}, use, {1, 1});
    refuses<Mixing>("cutmix", &Mixing::cutmix, {-1, kNan, kInfinite}, use, {1, 1});
  }
  CHECK_THROWS_WITH_AS(data::cut_mix(kNan, 1, 1, 8, 8), doctest::Contains("share is nan"),
                       ValueError);
}

TEST_CASE("option ranges: ScheduleOptions, by name and in a trainer") {
  using optim::ScheduleOptions;
  for (const std::string& schedule : optim::schedule_names()) {
    CAPTURE(schedule);
    const auto use = [&](const ScheduleOptions& o) { (void)optim::create_schedule(schedule, o); };
    const auto check = [&](const char* name, auto member, const std::vector<double>& bad) {
      refuses<ScheduleOptions>(name, member, bad, use);
    };
    check("total_steps", &ScheduleOptions::total_steps, kNoCount);
    check("steps_per_epoch", &ScheduleOptions::steps_per_epoch, kNoPositive);
    check("warmup", &ScheduleOptions::warmup, {-1, kNan, kInfinite});
    check("every", &ScheduleOptions::every, {0, -1, kNan, kInfinite});
    check("gamma", &ScheduleOptions::gamma, {0, -1, kNan, kInfinite});
    check("minimum", &ScheduleOptions::minimum, kNoShare);
    check("power", &ScheduleOptions::power, {0, -1, kNan, kInfinite});
    check("multiply", &ScheduleOptions::multiply, kNoPositive);
    check("patience", &ScheduleOptions::patience, kNoCount);
    for (const double bad : {-1.0, kNan, kInfinite}) {
      ScheduleOptions o;
      o.milestones = {bad};
      CHECK_THROWS_WITH_AS(use(o), doctest::Contains("milestones is"), ValueError);
      o.milestones = {1};
      o.factors = {bad};
      CHECK_THROWS_WITH_AS(use(o), doctest::Contains("factors is"), ValueError);
    }
  }
  TrainOptions options;
  options.schedule = "plateau";
  options.schedule_options.patience = -1;
  CHECK_THROWS_WITH_AS(make_trainer(options), doctest::Contains("patience is -1"), ValueError);
  options.schedule = "never";
  CHECK_THROWS_AS(make_trainer(options), ValueError);
}

TEST_CASE("option ranges: schedules by their own functions") {
  const auto refused = [](const char* name, const std::function<void()>& use) {
    CAPTURE(name);
    CHECK_THROWS_WITH_AS(use(), doctest::Contains(name), ValueError);
  };
  for (const double bad : {-1.0, kNan, kInfinite}) {
    refused("gamma is", [&] { (void)optim::step(1, bad); });
    refused("gamma is", [&] { (void)optim::exponential(bad); });
    refused("gamma is", [&] { (void)optim::multistep({1}, bad); });
    refused("gamma is", [&] { (void)optim::plateau(bad); });
    refused("factor is", [&] { (void)optim::multistep({1}, std::vector<double>{bad}); });
    refused("minimum is", [&] { (void)optim::cosine(10, bad); });
    refused("minimum is", [&] { (void)optim::linear(10, bad); });
    refused("minimum is", [&] { (void)optim::polynomial(10, 1, bad); });
    refused("minimum is", [&] { (void)optim::cosine_restarts(10, 1, bad); });
    refused("minimum is", [&] { (void)optim::plateau(0.1, 1, 0, bad); });
    refused("threshold is", [&] { (void)optim::plateau(0.1, 1, bad); });
    refused("power is", [&] { (void)optim::polynomial(10, bad); });
    refused("rise is", [&] { (void)optim::one_cycle(10, bad); });
    refused("div is", [&] { (void)optim::one_cycle(10, 0.3, bad); });
    refused("final_div is", [&] { (void)optim::one_cycle(10, 0.3, 25, bad); });
  }
  refused("every is", [] { (void)optim::step(0); });
  refused("every is", [] { (void)optim::exponential(0.5, 0); });
  refused("a milestone is", [] { (void)optim::multistep({-1}); });
  refused("total is", [] { (void)optim::cosine(-1); });
  refused("total is", [] { (void)optim::linear(-1); });
  refused("total is", [] { (void)optim::polynomial(-1); });
  refused("total is", [] { (void)optim::one_cycle(-1); });
  refused("period is", [] { (void)optim::cosine_restarts(0); });
  refused("multiply is", [] { (void)optim::cosine_restarts(1, 0); });
  refused("from is", [] { (void)optim::inverse_sqrt(0); });
  refused("steps is", [] { (void)optim::warmup(-1, optim::constant()); });
  refused("patience is", [] { (void)optim::plateau(0.1, -1); });
}

TEST_CASE("option ranges: more optimizers and schedules") {
  using namespace optim;  // NOLINT: a long list of its names
  const std::vector<double> kNoRate{-1, kNan, kInfinite, 1e31}, kNoDecay{-0.1, 1, kNan, kInfinite},
      kNegative{-1, kNan, kInfinite};
  const auto adagrad = [](const AdagradOptions& o) { const Adagrad made(some_net(), o); };
  refuses<AdagradOptions>("lr", &AdagradOptions::lr, kNoRate, adagrad);
  refuses<AdagradOptions>("lr_decay", &AdagradOptions::lr_decay, kNegative, adagrad);
  refuses<AdagradOptions>("weight_decay", &AdagradOptions::weight_decay, kNoRate, adagrad);
  refuses<AdagradOptions>("initial_accumulator_value", &AdagradOptions::initial_accumulator_value,
                          kNoRate, adagrad);
  refuses<AdagradOptions>("eps", &AdagradOptions::eps, kNoRate, adagrad);
  const auto sparse_adam = [](const SparseAdamOptions& o) { const SparseAdam made(some_net(), o); };
  refuses<SparseAdamOptions>("lr", &SparseAdamOptions::lr, kNoRate, sparse_adam);
  refuses<SparseAdamOptions>("beta1", &SparseAdamOptions::beta1, kNoDecay, sparse_adam);
  refuses<SparseAdamOptions>("beta2", &SparseAdamOptions::beta2, kNoDecay, sparse_adam);
  refuses<SparseAdamOptions>("eps", &SparseAdamOptions::eps, kNoRate, sparse_adam);
  const auto adadelta = [](const AdadeltaOptions& o) { const Adadelta made(some_net(), o); };
  refuses<AdadeltaOptions>("lr", &AdadeltaOptions::lr, kNoRate, adadelta);
  refuses<AdadeltaOptions>("rho", &AdadeltaOptions::rho, kNoShare, adadelta);
  refuses<AdadeltaOptions>("eps", &AdadeltaOptions::eps, kNoRate, adadelta);
  refuses<AdadeltaOptions>("weight_decay", &AdadeltaOptions::weight_decay, kNoRate, adadelta);
  const auto adamax = [](const AdamaxOptions& o) { const Adamax made(some_net(), o); };
  refuses<AdamaxOptions>("lr", &AdamaxOptions::lr, kNoRate, adamax);
  refuses<AdamaxOptions>("beta1", &AdamaxOptions::beta1, kNoDecay, adamax);
  refuses<AdamaxOptions>("beta2", &AdamaxOptions::beta2, kNoDecay, adamax);
  refuses<AdamaxOptions>("eps", &AdamaxOptions::eps, kNoRate, adamax);
  refuses<AdamaxOptions>("weight_decay", &AdamaxOptions::weight_decay, kNoRate, adamax);
  const auto nadam = [](const NAdamOptions& o) { const NAdam made(some_net(), o); };
  refuses<NAdamOptions>("lr", &NAdamOptions::lr, kNoRate, nadam);
  refuses<NAdamOptions>("beta1", &NAdamOptions::beta1, kNoDecay, nadam);
  refuses<NAdamOptions>("beta2", &NAdamOptions::beta2, kNoDecay, nadam);
  refuses<NAdamOptions>("eps", &NAdamOptions::eps, kNoRate, nadam);
  refuses<NAdamOptions>("weight_decay", &NAdamOptions::weight_decay, kNoRate, nadam);
  refuses<NAdamOptions>("momentum_decay", &NAdamOptions::momentum_decay, kNegative, nadam);
  const auto radam = [](const RAdamOptions& o) { const RAdam made(some_net(), o); };
  refuses<RAdamOptions>("lr", &RAdamOptions::lr, kNoRate, radam);
  refuses<RAdamOptions>("beta1", &RAdamOptions::beta1, kNoDecay, radam);
  refuses<RAdamOptions>("beta2", &RAdamOptions::beta2, kNoDecay, radam);
  refuses<RAdamOptions>("eps", &RAdamOptions::eps, kNoRate, radam);
  refuses<RAdamOptions>("weight_decay", &RAdamOptions::weight_decay, kNoRate, radam);
  const auto rprop = [](const RpropOptions& o) { const Rprop made(some_net(), o); };
  refuses<RpropOptions>("lr", &RpropOptions::lr, kNoRate, rprop);
  refuses<RpropOptions>("eta_minus", &RpropOptions::eta_minus, {0, 1, kNan}, rprop);
  refuses<RpropOptions>("eta_plus", &RpropOptions::eta_plus, {1, 0.5, kNan, kInfinite}, rprop);
  refuses<RpropOptions>("step_min", &RpropOptions::step_min, {0, -1, kNan, kInfinite}, rprop);
  refuses<RpropOptions>("step_max", &RpropOptions::step_max, {0, -1, kNan, kInfinite}, rprop);
  const auto asgd = [](const AsgdOptions& o) { const Asgd made(some_net(), o); };
  refuses<AsgdOptions>("lr", &AsgdOptions::lr, kNoRate, asgd);
  refuses<AsgdOptions>("lambd", &AsgdOptions::lambd, kNegative, asgd);
  refuses<AsgdOptions>("alpha", &AsgdOptions::alpha, kNegative, asgd);
  refuses<AsgdOptions>("t0", &AsgdOptions::t0, kNegative, asgd);
  refuses<AsgdOptions>("weight_decay", &AsgdOptions::weight_decay, kNoRate, asgd);
  const auto lion = [](const LionOptions& o) { const Lion made(some_net(), o); };
  refuses<LionOptions>("lr", &LionOptions::lr, kNoRate, lion);
  refuses<LionOptions>("beta1", &LionOptions::beta1, kNoShare, lion);
  refuses<LionOptions>("beta2", &LionOptions::beta2, kNoShare, lion);
  refuses<LionOptions>("weight_decay", &LionOptions::weight_decay, kNoRate, lion);
  const auto muon = [](const MuonOptions& o) { const Muon made(some_net(), o); };
  refuses<MuonOptions>("lr", &MuonOptions::lr, kNoRate, muon);
  refuses<MuonOptions>("weight_decay", &MuonOptions::weight_decay, kNoRate, muon);
  refuses<MuonOptions>("momentum", &MuonOptions::momentum, kNoShare, muon);
  refuses<MuonOptions>("eps", &MuonOptions::eps, {0, -1, kNan, kInfinite}, muon);
  refuses<MuonOptions>("ns_steps", &MuonOptions::ns_steps, {0, -1, 100}, muon);
  refuses<MuonOptions>("adamw_beta1", &MuonOptions::adamw_beta1, kNoDecay, muon);
  refuses<MuonOptions>("adamw_beta2", &MuonOptions::adamw_beta2, kNoDecay, muon);
  refuses<MuonOptions>("adamw_eps", &MuonOptions::adamw_eps, kNoRate, muon);
  const auto lamb = [](const LambOptions& o) { const Lamb made(some_net(), o); };
  refuses<LambOptions>("lr", &LambOptions::lr, kNoRate, lamb);
  refuses<LambOptions>("beta1", &LambOptions::beta1, kNoDecay, lamb);
  refuses<LambOptions>("beta2", &LambOptions::beta2, kNoDecay, lamb);
  refuses<LambOptions>("eps", &LambOptions::eps, kNoRate, lamb);
  refuses<LambOptions>("weight_decay", &LambOptions::weight_decay, kNoRate, lamb);
  const auto adafactor = [](const AdafactorOptions& o) { const Adafactor made(some_net(), o); };
  refuses<AdafactorOptions>("lr", &AdafactorOptions::lr, kNoRate, adafactor);
  refuses<AdafactorOptions>("beta2_decay", &AdafactorOptions::beta2_decay, {0.1, kNan, -kInfinite},
                            adafactor);
  refuses<AdafactorOptions>("eps1", &AdafactorOptions::eps1, kNoRate, adafactor);
  refuses<AdafactorOptions>("eps2", &AdafactorOptions::eps2, kNoRate, adafactor);
  refuses<AdafactorOptions>("d", &AdafactorOptions::d, {0, -1, kNan, kInfinite}, adafactor);
  refuses<AdafactorOptions>("weight_decay", &AdafactorOptions::weight_decay, kNoRate, adafactor);
  const auto lbfgs = [](const LbfgsOptions& o) { const Lbfgs made(some_net(), o); };
  refuses<LbfgsOptions>("lr", &LbfgsOptions::lr, kNoRate, lbfgs);
  refuses<LbfgsOptions>("max_iter", &LbfgsOptions::max_iter, {0, -1}, lbfgs);
  refuses<LbfgsOptions>("max_eval", &LbfgsOptions::max_eval, kNoCount, lbfgs);
  refuses<LbfgsOptions>("tolerance_grad", &LbfgsOptions::tolerance_grad, {-1, kNan}, lbfgs);
  refuses<LbfgsOptions>("tolerance_change", &LbfgsOptions::tolerance_change, {-1, kNan}, lbfgs);
  refuses<LbfgsOptions>("history_size", &LbfgsOptions::history_size, kNoPositive, lbfgs);
  const auto cyclic_ = [](const CyclicOptions& o) { (void)cyclic(o); };
  refuses<CyclicOptions>("low", &CyclicOptions::low, kNegative, cyclic_);
  refuses<CyclicOptions>("high", &CyclicOptions::high, kNegative, cyclic_);
  refuses<CyclicOptions>("up", &CyclicOptions::up, {0, -1}, cyclic_);
  refuses<CyclicOptions>("down", &CyclicOptions::down, {-1}, cyclic_);
  refuses<CyclicOptions>("gamma", &CyclicOptions::gamma, {0, -1, 1.5, kNan}, cyclic_);
  const auto plateau_ = [](const PlateauOptions& o) { (void)plateau(o); };
  refuses<PlateauOptions>("gamma", &PlateauOptions::gamma, {0, 1, kNan}, plateau_);
  refuses<PlateauOptions>("patience", &PlateauOptions::patience, kNoCount, plateau_);
  refuses<PlateauOptions>("threshold", &PlateauOptions::threshold, {-1, 1, kNan}, plateau_);
  refuses<PlateauOptions>("minimum", &PlateauOptions::minimum, kNoShare, plateau_);
  refuses<PlateauOptions>("cooldown", &PlateauOptions::cooldown, kNoCount, plateau_);
  refuses<PlateauOptions>("eps", &PlateauOptions::eps, kNegative, plateau_);
  const auto onecycle_ = [](const OneCycleOptions& o) { (void)one_cycle(10, o); };
  refuses<OneCycleOptions>("rise", &OneCycleOptions::rise, {0, 1, kNan}, onecycle_);
  refuses<OneCycleOptions>("div", &OneCycleOptions::div, {0.5, kNan, kInfinite}, onecycle_);
  refuses<OneCycleOptions>("final_div", &OneCycleOptions::final_div, {0.5, kNan, kInfinite},
                           onecycle_);
  CHECK_THROWS_WITH_AS((void)ramp(-1, 1, 5), doctest::Contains("from is"), ValueError);
  CHECK_THROWS_WITH_AS((void)ramp(1, kNan, 5), doctest::Contains("to is"), ValueError);
  CHECK_THROWS_WITH_AS((void)ramp(1, 1, -1), doctest::Contains("steps is"), ValueError);
  CHECK_THROWS_WITH_AS((void)constant(kInfinite, 5), doctest::Contains("value is"), ValueError);
  CHECK_THROWS_WITH_AS((void)constant(1, -1), doctest::Contains("steps is"), ValueError);
}

TEST_CASE("option ranges: optimizers, clipping and groups") {
  const std::vector<double> no_rate{-1, kNan, kInfinite, 1e31}, no_decay{-0.1, 1, kNan, kInfinite};
  const auto sgd = [](const optim::SgdOptions& o) { const optim::Sgd made(some_net(), o); };
  refuses<optim::SgdOptions>("lr", &optim::SgdOptions::lr, no_rate, sgd);
  refuses<optim::SgdOptions>("momentum", &optim::SgdOptions::momentum, kNoShare, sgd);
  refuses<optim::SgdOptions>("dampening", &optim::SgdOptions::dampening, kNoShare, sgd);
  refuses<optim::SgdOptions>("weight_decay", &optim::SgdOptions::weight_decay, no_rate, sgd);
  const auto adam = [](const optim::AdamOptions& o) { const optim::Adam made(some_net(), o); };
  refuses<optim::AdamOptions>("lr", &optim::AdamOptions::lr, no_rate, adam);
  refuses<optim::AdamOptions>("beta1", &optim::AdamOptions::beta1, no_decay, adam);
  refuses<optim::AdamOptions>("beta2", &optim::AdamOptions::beta2, no_decay, adam);
  refuses<optim::AdamOptions>("eps", &optim::AdamOptions::eps, no_rate, adam);
  refuses<optim::AdamOptions>("weight_decay", &optim::AdamOptions::weight_decay, no_rate, adam);
  const auto adamw = [](const optim::AdamWOptions& o) { const optim::AdamW made(some_net(), o); };
  refuses<optim::AdamWOptions>("lr", &optim::AdamWOptions::lr, no_rate, adamw);
  refuses<optim::AdamWOptions>("beta1", &optim::AdamWOptions::beta1, no_decay, adamw);
  refuses<optim::AdamWOptions>("beta2", &optim::AdamWOptions::beta2, no_decay, adamw);
  refuses<optim::AdamWOptions>("eps", &optim::AdamWOptions::eps, no_rate, adamw);
  refuses<optim::AdamWOptions>("weight_decay", &optim::AdamWOptions::weight_decay, no_rate, adamw);
  using optim::RmsPropOptions;
  const auto rmsprop = [](const RmsPropOptions& o) { const optim::RmsProp made(some_net(), o); };
  refuses<RmsPropOptions>("lr", &RmsPropOptions::lr, no_rate, rmsprop);
  refuses<RmsPropOptions>("alpha", &RmsPropOptions::alpha, kNoShare, rmsprop);
  refuses<RmsPropOptions>("eps", &RmsPropOptions::eps, no_rate, rmsprop);
  refuses<RmsPropOptions>("weight_decay", &RmsPropOptions::weight_decay, no_rate, rmsprop);
  refuses<RmsPropOptions>("momentum", &RmsPropOptions::momentum, kNoShare, rmsprop);
  using optim::LevenbergOptions;
  const auto levenberg = [](const LevenbergOptions& o) {
    const optim::Levenberg made(some_net(), o);
  };
  refuses<LevenbergOptions>("lr", &LevenbergOptions::lr, no_rate, levenberg);
  refuses<LevenbergOptions>("mu", &LevenbergOptions::mu, {0, -1, kNan, kInfinite}, levenberg);
  refuses<LevenbergOptions>("weight_decay", &LevenbergOptions::weight_decay, no_rate, levenberg);

  using optim::OptimizerOptions;
  const auto named = [](const char* optimizer) {
    return [optimizer](const OptimizerOptions& o) {
      (void)optim::create(optimizer, optim::Parameters(some_net()), o);
    };
  };
  for (const char* each : {"sgd", "adam", "adamw", "rmsprop", "levenberg"}) {
    refuses<OptimizerOptions>("lr", &OptimizerOptions::lr, no_rate, named(each));
    refuses<OptimizerOptions>("weight_decay", &OptimizerOptions::weight_decay, no_rate,
                              named(each));
  }
  refuses<OptimizerOptions>("momentum", &OptimizerOptions::momentum, kNoShare, named("sgd"));
  refuses<OptimizerOptions>("dampening", &OptimizerOptions::dampening, kNoShare, named("sgd"));
  refuses<OptimizerOptions>("alpha", &OptimizerOptions::alpha, kNoShare, named("rmsprop"));
  refuses<OptimizerOptions>("eps", &OptimizerOptions::eps, no_rate, named("adam"));
  refuses<OptimizerOptions>("beta1", &OptimizerOptions::beta1, no_decay, named("adam"));
  refuses<OptimizerOptions>("beta2", &OptimizerOptions::beta2, no_decay, named("adamw"));

  using optim::ParameterGroup;
  const auto group = [](ParameterGroup g) {
    g.parameters = some_net().named_parameters();
    const optim::Sgd made(optim::Parameters(std::vector<ParameterGroup>{g}), {.lr = 0.1});
  };
  refuses<ParameterGroup>("lr", &ParameterGroup::lr, no_rate, group);
  refuses<ParameterGroup>("weight_decay", &ParameterGroup::weight_decay, no_rate, group);
  optim::Sgd made(some_net(), {.lr = 0.1});
  for (const double bad : no_rate)
    CHECK_THROWS_WITH_AS(made.set_lr(bad), doctest::Contains("lr is"), ValueError);
  const auto clip = [](const optim::Clip& c) { (void)optim::clipped({ones({2})}, c); };
  refuses<optim::Clip>("norm", &optim::Clip::norm, {-1, kNan, -kInfinite}, clip);
  refuses<optim::Clip>("value", &optim::Clip::value, {-1, kNan, -kInfinite}, clip);
}

TEST_CASE("option ranges: loaders and sets") {
  using data::Augmentation;
  using data::LoaderOptions;
  const auto images = data::from_tensors(zeros({4, 1, 8, 8}, DType::UInt8).compute(),
                                         zeros({4}, DType::Int64).compute(), 2);
  const auto loader = [&](const LoaderOptions& o) { const data::Loader made(images, o); };
  refuses<LoaderOptions>("batch", &LoaderOptions::batch, {0, -1, 1e9}, loader);
  refuses<LoaderOptions>("workers", &LoaderOptions::workers, {-1, 100000}, loader);
  refuses<LoaderOptions>("prefetch", &LoaderOptions::prefetch, {0, -1, 100000}, loader);
  refuses<LoaderOptions>("mean", &LoaderOptions::mean, {kNan, kInfinite, -kInfinite}, loader);
  refuses<LoaderOptions>("std", &LoaderOptions::std, {0, -1, kNan, kInfinite}, loader);
  const auto augmented = [&](const Augmentation& a) { loader({.augment = a}); };
  refuses<Augmentation>("crop", &Augmentation::crop, {-1, 100000}, augmented);
  refuses<Augmentation>("cutout", &Augmentation::cutout, {-1, 100000}, augmented);
  for (const double bad : {kNan, kInfinite})
    CHECK_THROWS_WITH_AS(loader({.channel_mean = {bad}, .channel_std = {1}}),
                         doctest::Contains("channel_mean is"), ValueError);
  for (const double bad : {0.0, -1.0, kNan, kInfinite})
    CHECK_THROWS_WITH_AS(loader({.channel_mean = {0}, .channel_std = {bad}}),
                         doctest::Contains("channel_std is"), ValueError);

  const Tensor x = zeros({8, 2}).compute(), y = zeros({8}, DType::Int64).compute();
  for (const std::int64_t bad : {-3, -1, 2000000}) {
    CHECK_THROWS_WITH_AS(data::from_tensors(x, y, bad), doctest::Contains("classes is"),
                         ValueError);
    CHECK_THROWS_WITH_AS(data::from_tensors(x, y, data::Split::Train, {}, bad),
                         doctest::Contains("classes is"), ValueError);
  }
  using data::SplitOptions;
  const auto refused = [&](const SplitOptions& split) {
    CHECK_THROWS_AS(data::from_tensors(x, y, data::Split::Train, split), ValueError);
  };
  for (const double bad : {-0.1, 1.0, kNan, kInfinite}) {
    refused({.test = bad});
    refused({.validation = bad});
  }
  for (const int bad : {-1, 1}) refused({.folds = bad});
  for (const int bad : {-1, 0, 4}) refused({.fold = bad, .folds = 3});
  refused({.fold = 1});
  for (const std::int64_t bad : {-1, 0}) {
    CHECK_THROWS_AS(data::drawn_digits(0, bad), ValueError);
    CHECK_THROWS_AS(data::drawn_scenes(0, bad), ValueError);
    CHECK_THROWS_AS(data::random_vectors(0, bad, 4, 2), ValueError);
    CHECK_THROWS_AS(data::random_vectors(0, 4, bad, 2), ValueError);
    CHECK_THROWS_AS(data::random_vectors(0, 4, 4, bad), ValueError);
  }
  CHECK_THROWS_AS(data::drawn_scenes(0, 4, 8), ValueError);
  data::Loader made(images, {});
  CHECK_THROWS_AS(made.set_epoch(-1), ValueError);
}

TEST_CASE("option ranges: texts, and options of trained models") {
  const TestFolder folder;
  io::write_file(folder / "text.txt", cat(std::string(400, 'a'), " b c d e f g h"));
  using data::TextOptions;
  const auto text = [&](const TextOptions& o) {
    (void)data::open_text(folder / "text.txt", data::Split::Train, o);
  };
  for (const std::int64_t bad : {0, -5}) {
    CHECK_THROWS_AS(text({.length = bad}), ValueError);
    CHECK_THROWS_AS(text({.unit = data::TextUnit::Words, .length = 2, .words = bad}), ValueError);
  }
  for (const double bad : {kNan, -1.0}) CHECK_THROWS_AS(train::steps_in_launch(bad), ValueError);
  const std::string run = folder / "run";
  train::Settings settings =
      train::Settings::resolve("mlp:784-8-10", "", {{"data", "digits:40,20"}, {"epochs", "1"}});
  for (const auto& [key, spoil] : std::vector<std::pair<std::string, void (*)(train::Settings&)>>{
           {"epochs", [](train::Settings& s) { s.epochs = 0; }},
           {"batch", [](train::Settings& s) { s.batch = -1; }},
           {"lr", [](train::Settings& s) { s.lr = std::nan(""); }},
           {"label_smoothing", [](train::Settings& s) { s.label_smoothing = 2; }},
           {"early_stopping", [](train::Settings& s) { s.early_stopping = -1; }},
           {"clip_norm", [](train::Settings& s) { s.clip_norm = std::nan(""); }},
           {"accumulate", [](train::Settings& s) { s.accumulate = 0; }},
           {"average_decay", [](train::Settings& s) { s.average_decay = 1; }},
           {"average_start", [](train::Settings& s) { s.average_start = -1; }},
           {"seed", [](train::Settings& s) { s.seed = -1; }}}) {
    train::Settings spoilt = settings;
    spoil(spoilt);
    const std::string subject = "setting '" + key + "' is";
    CHECK_THROWS_WITH_AS(train::start_run(spoilt, run), doctest::Contains(subject.c_str()),
                         ValueError);
    CHECK_THROWS_WITH_AS(train::start_folds(spoilt, 2, run), doctest::Contains(subject.c_str()),
                         ValueError);
  }
  for (const int bad : {-1, 0, 1, 100000})
    CHECK_THROWS_AS(train::start_folds(settings, bad, run), ValueError);
  train::start_run(settings, run);
  const train::TrainedModel model = train::TrainedModel::open(run);
  using train::EvaluateOptions;
  refuses<EvaluateOptions>("batch", &EvaluateOptions::batch, kNoCount,
                           [&](const EvaluateOptions& o) { (void)model.evaluate("", o); });
}
