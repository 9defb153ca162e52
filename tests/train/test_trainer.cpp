// The Trainer on a toy problem: it learns, stops, resumes bit for bit, keeps the best, refuses NaN.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>

#include <tenon/anomaly.h>
#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/function.h>
#include <tenon/grad.h>
#include <tenon/host_call.h>
#include <tenon/io.h>
#include <tenon/parallel.h>
#include <tenon/train.h>

#include "base/str.h"
#include "io/folder.h"
#include "train/runs/records.h"
#include "train/toy.h"

using namespace tenon;
using train::StopReason;
using train::TrainOptions;

namespace {

class StopAt : public train::Callback {
 public:
  explicit StopAt(std::int64_t step) : step_(step) {}
  void on_step(const train::StepReport& report) override {
    if (report.step == step_) stop = true;
  }
  bool stop = false;

 private:
  std::int64_t step_;
};

TrainOptions options(const std::string& dir = "") {
  return {.epochs = 4, .schedule = "cosine", .run_dir = dir, .checkpoint_seconds = 0};
}

std::vector<std::string> lines(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

}  // namespace

TEST_CASE("trainer: learns, reports and leaves a run folder") {
  const TestFolder folder;
  toy::Session s;
  TrainOptions o = options(folder / "run");
  o.epochs = 12;
  const train::TrainResult result = s.fit(o);
  CHECK(result.reason == StopReason::Finished);
  CHECK(result.steps == 12 * 16);
  REQUIRE(result.epochs.size() == 12);
  CHECK(result.epochs.back().train_loss < 0.5 * result.epochs.front().train_loss);
  CHECK(*result.best > 0.9);
  CHECK(lines(folder / "run/log.csv").size() == 13);
  CHECK(train::read_log(io::read_file(folder / "run/log.jsonl")).steps.size() == 100 + 1);
  const io::SafeTensors model = io::load_safetensors(folder / "run/model.safetensors");
  CHECK(toy::difference(model.tensors, s.net.state_dict()) == "");
  int checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run/checkpoints"))
    checkpoints += entry.path().extension() == ".safetensors" ? 1 : 0;
  CHECK(checkpoints == o.keep_checkpoints);
}

TEST_CASE("trainer: a run stopped inside an epoch and resumed ends with the same bits") {
  toy::Session whole(3);
  const train::TrainResult expected = whole.fit(options());
  for (const std::int64_t stop_at : {1, 7, 16, 23, 63}) {
    CAPTURE(stop_at);
    const TestFolder folder;
    {
      toy::Session first(3);
      const auto stopper = std::make_shared<StopAt>(stop_at);
      TrainOptions o = options(folder / "run");
      o.callbacks = {stopper};
      o.stop = [stopper] { return stopper->stop; };
      const train::TrainResult result = first.fit(o);
      CHECK(result.reason == StopReason::Interrupted);
      CHECK(result.steps == stop_at);
    }
    toy::Session second(99);  // other weights and order: everything must come from the checkpoint
    TrainOptions o = options(folder / "run");
    o.resume = true;
    const train::TrainResult result = second.fit(o);
    CHECK(result.reason == StopReason::Finished);
    CHECK(toy::difference(second.net.state_dict(), whole.net.state_dict()) == "");
    CHECK(toy::difference(second.optimizer.state_dict(), whole.optimizer.state_dict()) == "");
    REQUIRE(result.epochs.size() == expected.epochs.size());
    for (std::size_t k = 0; k < result.epochs.size(); ++k) {
      CHECK(result.epochs[k].train_loss == expected.epochs[k].train_loss);
      CHECK(result.epochs[k].train_accuracy == expected.epochs[k].train_accuracy);
      CHECK(*result.epochs[k].validation_loss == *expected.epochs[k].validation_loss);
    }
    CHECK(lines(folder / "run/log.csv").size() == 5);
  }
}

TEST_CASE("trainer: curvature is measured before each epoch, and a resumed run keeps it") {
  const auto train = [](const train::TrainOptions& options, StateDict* curvature = nullptr) {
    const toy::Session s(3);
    optim::Levenberg optimizer(s.net, {.lr = 0.01, .mu = 0.1});
    data::Loader examples(toy::points(250, 1), {.batch = 16, .seed = 3});
    train::Trainer(s.net, nn::CrossEntropyLoss(), optimizer, options).fit(examples);
    if (curvature != nullptr) *curvature = toy::snapshot(optimizer.state_dict());
    return toy::snapshot(s.net.state_dict());
  };
  StateDict one, two, none;
  train({.epochs = 1, .keep_best = false}, &one);
  train({.epochs = 2, .keep_best = false}, &two);
  CHECK(one.at("0.weight.curvature").to_vector<float>()[0] > 0);
  CHECK(toy::difference({{"h", one.at("0.weight.curvature")}},
                        {{"h", two.at("0.weight.curvature")}}) == "h");
  const TestFolder folder;
  const StateDict whole = train({.epochs = 3, .keep_best = false});
  train::TrainOptions o{.epochs = 3, .keep_best = false, .run_dir = folder / "run"};
  for (const std::int64_t step : {7, 16, 20, 0}) {  // inside an epoch and at its end
    o.stop_after = step;
    const StateDict state = train(o, &none);
    o.resume = true;
    if (step == 0) CHECK(toy::difference(whole, state) == "");
  }
}

TEST_CASE("trainer: a finished run that is resumed does nothing") {
  const TestFolder folder;
  toy::Session first;
  first.fit(options(folder / "run"));
  toy::Session second(5);
  TrainOptions o = options(folder / "run");
  o.resume = true;
  const train::TrainResult result = second.fit(o);
  CHECK(result.steps == 64);
  CHECK(result.epochs.size() == 4);
  CHECK(toy::difference(second.net.state_dict(), first.net.state_dict()) == "");
}

TEST_CASE("trainer: one thread and two give the same bits") {
  const int before = threads();
  set_threads(1);
  toy::Session one(4);
  one.fit(options());
  set_threads(2);
  toy::Session two(4);
  two.fit(options());
  set_threads(before);
  CHECK(toy::difference(one.net.state_dict(), two.net.state_dict()) == "");
}

TEST_CASE("trainer: a folder that contains a run, is in use or cannot be created is refused") {
  const TestFolder folder;
  toy::Session s;
  s.fit(options(folder / "run"));
  CHECK_THROWS_WITH_AS(toy::Session().fit(options(folder / "run")),
                       doctest::Contains("already holds a run"), ValueError);
  CHECK_THROWS_AS(toy::Session().fit({.run_dir = folder / "absent", .resume = true}), IoError);
  io::write_file(folder / "file", "x");
  CHECK_THROWS_AS(toy::Session().fit(options(folder / "file/run")), IoError);

  class SecondRun : public train::Callback {
   public:
    explicit SecondRun(std::string dir) : dir_(std::move(dir)) {}
    void on_step(const train::StepReport&) override {
      if (tried_) return;
      tried_ = true;
      toy::Session other;
      CHECK_THROWS_WITH_AS(other.fit({.run_dir = dir_, .resume = true}),
                           doctest::Contains("in use by another run"), IoError);
    }

   private:
    std::string dir_;
    bool tried_ = false;
  };
  TrainOptions o = options(folder / "other");
  o.epochs = 1;
  o.callbacks = {std::make_shared<SecondRun>(folder / "other")};
  toy::Session().fit(o);
}

TEST_CASE("trainer: resuming with other data or batches is refused") {
  const TestFolder folder;
  toy::Session().fit(options(folder / "run"));
  toy::Session other(0, 20);
  CHECK_THROWS_WITH_AS(other.fit({.run_dir = folder / "run", .resume = true}),
                       doctest::Contains("batches of 16"), ValueError);
}

TEST_CASE("trainer: a damaged newest checkpoint is skipped, incomplete log lines are removed") {
  const TestFolder folder;
  toy::Session whole(3);
  whole.fit(options());
  {
    toy::Session first(3);
    TrainOptions o = options(folder / "run");
    const auto stopper = std::make_shared<StopAt>(40);
    o.callbacks = {stopper};
    o.stop = [stopper] { return stopper->stop; };
    first.fit(o);
  }
  std::ofstream(folder / "run/log.jsonl", std::ios::app) << "{\"event\":\"step\",\"st";
  std::ofstream(folder / "run/log.csv", std::ios::app) << "9,9";
  std::ofstream(folder / "run/checkpoints/step-00000040.safetensors", std::ios::trunc) << "garbage";
  std::ofstream(folder / "run/checkpoints/step-00000041.safetensors.tmp-1-1") << "left over";
  toy::Session second(1);
  TrainOptions o = options(folder / "run");
  o.resume = true;
  second.fit(o);
  CHECK(toy::difference(second.net.state_dict(), whole.net.state_dict()) == "");
  CHECK(lines(folder / "run/log.csv").size() == 5);
  for (const std::string& line : lines(folder / "run/log.jsonl")) CHECK(line.back() == '}');
  CHECK_FALSE(
      std::filesystem::exists(folder / "run/checkpoints/step-00000041.safetensors.tmp-1-1"));
}

TEST_CASE("trainer: early stopping, and the best weights are kept") {
  class Spoiler : public train::Callback {  // sets all weights to zero after the second epoch
   public:
    explicit Spoiler(const nn::Module& net) : weights_(net.state_dict()) {}
    void on_epoch(const train::EpochReport& report) override {
      if (report.epoch != 2) return;
      best = toy::snapshot(weights_);
      for (const auto& [name, weight] : weights_) set_value(weight, zeros_like(weight));
    }
    StateDict best;

   private:
    StateDict weights_;
  };
  for (const bool on_disk : {false, true}) {
    CAPTURE(on_disk);
    const TestFolder folder;
    toy::Session s(0, 16, 0.05);
    const auto spoiler = std::make_shared<Spoiler>(s.net);
    TrainOptions o = options(on_disk ? folder / "run" : "");
    o.epochs = 40;
    o.schedule = "constant";
    o.early_stopping = 3;
    o.callbacks = {spoiler};
    const train::TrainResult result = s.fit(o);
    CHECK(result.best_epoch == 2);
    CHECK(result.reason == StopReason::EarlyStop);
    CHECK(result.epochs.size() == 5);
    CHECK(toy::difference(s.net.state_dict(), spoiler->best) == "");
  }
}

TEST_CASE("trainer: a full disk stops the run with an error, and nothing is lost") {
  toy::Session whole(3);
  whole.fit(options());
  const TestFolder folder;
  {
    toy::Session first(3);
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    CHECK_THROWS_AS(first.fit(options(folder / "run")), IoError);
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
  }
  toy::Session second(1);
  TrainOptions o = options(folder / "run");
  o.resume = true;
  second.fit(o);
  CHECK(toy::difference(second.net.state_dict(), whole.net.state_dict()) == "");
}

TEST_CASE("trainer: the loss of an epoch of sequences is the mean over counted targets") {
  for (const std::int64_t batch : {1, 3, 4, 11}) {
    CAPTURE(batch);
    const toy::MeanLosses mean = toy::mean_losses_of_sequences(batch);
    CHECK(mean.trained == doctest::Approx(mean.evaluated).epsilon(1e-6));
    CHECK(mean.accuracy_trained == doctest::Approx(mean.accuracy_evaluated).epsilon(1e-9));
  }
}

TEST_CASE("trainer: samples that are not finite are named, and the learning rate is not blamed") {
  const auto message = [](const Tensor& x, const Tensor& y) {
    const nn::Sequential net(nn::Linear(2, 1));
    optim::Sgd sgd(net, {.lr = 0.1});
    data::Loader loader(data::from_tensors(x, y), {.batch = 16});
    train::Trainer trainer(
        net, [](const Tensor& a, const Tensor& b) { return mse_loss(a, b); }, sgd, options());
    try {
      trainer.fit(loader);
    } catch (const NumericError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  std::vector<float> x(64 * 2, 0.5f), y(64, 1.0f);
  const auto told = [&] { return message(Tensor::from(x, {64, 2}), Tensor::from(y, {64, 1})); };
  CHECK(told().empty());
  y[20] = y[40] = std::numeric_limits<float>::infinity();
  std::string text = told();
  CHECK(text.find("the targets of 2 samples (the first: sample 21) are NaN or infinite") !=
        std::string::npos);
  CHECK(text.find("learning rate") == std::string::npos);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  text = told();
  CHECK(text.find("the input of sample 4 and the targets of 2 samples (the first: sample 21) are "
                  "NaN or infinite") != std::string::npos);
  CHECK(text.find("learning rate") == std::string::npos);
}

TEST_CASE("trainer: NaN stops the run, names the layer and does not change the weights") {
  class Poison : public nn::Module {
   public:
    Tensor forward(const Tensor& x) const override { return log(x - 1e30); }
    std::string describe() const override { return "Poison()"; }
  };
  const auto net =
      nn::Sequential(nn::Linear(2, 4), nn::Sequential(nn::ReLU(), Poison()), nn::Linear(4, 4));
  const StateDict before = toy::snapshot(net.state_dict());
  optim::Sgd sgd(net, {.lr = 0.1});
  data::Loader loader(toy::points(64, 1), {.batch = 16});
  train::Trainer trainer(net, nn::CrossEntropyLoss(), sgd, options());
  CHECK_THROWS_WITH_AS(trainer.fit(loader), doctest::Contains("1.1 (Poison()): output"),
                       NumericError);
  CHECK(toy::difference(net.state_dict(), before) == "");
  CHECK_THROWS_WITH_AS(trainer.fit(loader), doctest::Contains("smaller learning rate"),
                       NumericError);
  set_value(net.parameters()[1], full({4}, std::numeric_limits<double>::infinity()));
  CHECK(train::first_non_finite(net, zeros({2, 2})).find("0 (Linear(2, 4)): parameter 'bias'") ==
        0);
  CHECK(train::first_non_finite(nn::ReLU(), zeros({2})) == "");
  CHECK(train::first_non_finite(nn::ReLU(), full({2}, NAN)) == "the input");
}

TEST_CASE(
    "trainer: a layer of host code with a gradient of its own trains like the built-in layer") {
  class HostTanh : public nn::Module {
   public:
    Tensor forward(const Tensor& x) const override { return tanh_(x); }

   private:
    const Function tanh_{"host_tanh",
                         [](FunctionContext&, const Tensor& x) {
                           return host_call(
                               "host_tanh", {x}, {x.dtype(), x.shape()},
                               [](std::span<const HostInput> in, std::span<const HostOutput> out) {
                                 const auto from = in[0].values<float>();
                                 parallel_for(
                                     0, in[0].numel(), 32, [&](std::int64_t k, std::int64_t end) {
                                       for (; k < end; ++k)
                                         out[0].values<float>()[static_cast<std::size_t>(k)] =
                                             std::tanh(from[static_cast<std::size_t>(k)]);
                                     });
                               });
                         },
                         [](const FunctionContext& context, const Tensor& g) {
                           return g * (1 - square(context.results()[0]));
                         }};
  };
  const auto losses = [](const nn::AnyModule& layer) {
    manual_seed(6);
    nn::Sequential net(nn::Linear(2, 16));
    net.append(layer);
    net.append(nn::Linear(16, 4));
    optim::Adam adam(net, {.lr = 1e-2});
    data::Loader train(toy::points(200, 1), {.batch = 16, .seed = 3}),
        validation(toy::points(50, 2), {.batch = 50});
    TrainOptions o = options();
    o.epochs = 3;
    train::Trainer trainer(net, nn::CrossEntropyLoss(), adam, o);
    std::vector<double> out;
    for (const train::EpochReport& epoch : trainer.fit(train, validation).epochs) {
      out.push_back(epoch.train_loss);
      out.push_back(*epoch.validation_loss);
    }
    return out;
  };
  const std::vector<double> own = losses(HostTanh()), built_in = losses(nn::Tanh());
  REQUIRE(own.size() == built_in.size());
  CHECK(own[4] < 0.9 * own[0]);
  for (std::size_t k = 0; k < own.size(); ++k)
    CHECK(own[k] == doctest::Approx(built_in[k]).epsilon(1e-4));
}

TEST_CASE("trainer: DetectAnomaly names the operation, the layer and the step") {
  // the gradient of the square root becomes infinite in the third step, the loss does not
  class Root : public nn::Module {
   public:
    Tensor forward(const Tensor& x) const override {
      const Scope scope("root");
      const Tensor zero = x * scalar(++calls < 3 ? 1.0 : 0.0);
      return sqrt(square(zero)) + x;
    }
    mutable int calls = 0;
  };
  const Root root;
  const auto net = nn::Sequential(nn::Linear(2, 4), root);
  optim::Sgd sgd(net, {.lr = 0.1});
  data::Loader loader(toy::points(64, 1), {.batch = 16});
  train::Trainer trainer(net, nn::CrossEntropyLoss(), sgd, options());
  const DetectAnomaly detect;
  std::string message;
  try {
    trainer.fit(loader);
  } catch (const NumericError& error) {
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.find("step 3: the first NaN is in the result of ") == 0);
  CHECK(message.find("root, gradient of sqrt") != std::string::npos);
  for (const Tensor& p : net.parameters()) CHECK(isfinite(p).all().item<bool>());
}

TEST_CASE("trainer: one plan per batch size; schedules and clipping need no other plan") {
  toy::Session s;
  TrainOptions o = options();
  o.clip_norm = 1;
  class Count : public train::Callback {
   public:
    void on_step(const train::StepReport& r) override {
      if (r.step == 20) planned = runner_stats().programs_planned;
      if (r.step == 40) planned = runner_stats().programs_planned - planned;
    }
    std::int64_t planned = -1;
  };
  const auto count = std::make_shared<Count>();
  o.callbacks = {count};
  s.fit(o);
  CHECK(count->planned == 0);
}

TEST_CASE("trainer: limits of steps, options outside their range") {
  toy::Session s;
  TrainOptions o = options();
  o.max_steps = 21;
  const train::TrainResult result = s.fit(o);
  CHECK(result.steps == 21);
  CHECK(result.epochs.size() == 2);
  CHECK(result.epochs.back().validation_metrics["accuracy"].has_value());
  CHECK_THROWS_AS(toy::Session().fit({.epochs = 0}), ValueError);
  CHECK_THROWS_AS(toy::Session().fit({.schedule = "never"}), ValueError);
  CHECK_THROWS_AS(toy::Session().fit({.resume = true}), ValueError);
  CHECK_THROWS_AS(toy::Session().fit({.callbacks = {nullptr}}), ValueError);
  const auto without_loss = [&] { train::Trainer(s.net, nn::Loss(), s.optimizer, options()); };
  CHECK_THROWS_AS(without_loss(), ValueError);
}

TEST_CASE("trainer: an optimizer of another network is refused, one for a part is accepted") {
  toy::Session a, b(1);
  const nn::Loss loss = nn::CrossEntropyLoss();
  CHECK_THROWS_WITH_AS(train::Trainer(a.net, loss, b.optimizer),
                       "Trainer: none of the network's 4 parameters belongs to the optimizer, so "
                       "nothing would be trained: the optimizer was made for another network, "
                       "whose first parameter is '0.weight' [24, 2]",
                       ValueError);
  std::vector<nn::NamedTensor> both = a.net.named_parameters();
  both.push_back({"other", b.net.named_parameters()[0].tensor});
  optim::Sgd mixed(std::vector<optim::ParameterGroup>{{both}});
  train::Trainer trainer(a.net, loss, mixed, {.epochs = 1});
  CHECK_THROWS_WITH_AS(trainer.fit(a.train),
                       "Trainer: the optimizer's 'other' [24, 2] is not a parameter of "
                       "the network, and the loss does not depend on it, so it would not be "
                       "trained",
                       ValueError);

  // A part of the network, and a parameter of the loss.
  const Tensor sharpness = variable(scalar(1.0), "sharpness");
  optim::Sgd part(std::vector<Tensor>{both[2].tensor, both[3].tensor, sharpness}, {.lr = 0.1});
  const nn::Loss own = [&](const Tensor& scores, const Tensor& target) {
    return cross_entropy(scores * sharpness, target);
  };
  const StateDict before = toy::snapshot(a.net.state_dict());
  train::Trainer(a.net, own, part, {.epochs = 1, .keep_best = false}).fit(a.train);
  const StateDict after = toy::snapshot(a.net.state_dict());
  CHECK(after.at("0.weight").to_vector<float>() == before.at("0.weight").to_vector<float>());
  CHECK(after.at("3.weight").to_vector<float>() != before.at("3.weight").to_vector<float>());
  CHECK(sharpness.item() != 1);
}

TEST_CASE("trainer: a loss that depends on no parameter is refused") {
  for (const bool detaches : {true, false}) {
    CAPTURE(detaches);
    toy::Session s;
    const nn::Loss loss = [&](const Tensor& scores, const Tensor& target) {
      if (detaches) return cross_entropy(scores.detach(), target);
      const NoGrad constants;
      return cross_entropy(scores, target);
    };
    train::Trainer trainer(s.net, loss, s.optimizer, options());
    CHECK_THROWS_WITH_AS(
        trainer.fit(s.train),
        "Trainer: the loss depends on none of the optimizer's 4 parameters, so "
        "nothing would be trained: the network's output or the loss may be detached, "
        "or built under NoGrad",
        ValueError);
  }
}

TEST_CASE("trainer: a NoGrad around fit() changes nothing") {
  toy::Session s;
  train::Trainer trainer(s.net, nn::CrossEntropyLoss(), s.optimizer, options());
  const NoGrad constants;
  CHECK(trainer.fit(s.train, s.test).epochs.back().train_loss < 0.7);
}

TEST_CASE("trainer: thousands of parameters of the loss are searched at once") {
  toy::Session s;
  std::vector<nn::NamedTensor> all = s.net.named_parameters();
  const std::size_t first = all.size();
  for (int k = 0; k < 6000; ++k) all.push_back({cat("own.", k), variable(ones({1}))});
  optim::Sgd sgd(std::vector<optim::ParameterGroup>{{all}});
  const nn::Loss loss = [&](const Tensor& scores, const Tensor& target) {
    std::vector<Tensor> own;
    for (std::size_t k = first; k < all.size(); ++k) own.push_back(all[k].tensor);
    return cross_entropy(scores, target) + sum(square(concat(own, 0)));
  };
  train::Trainer trainer(s.net, loss, sgd, {.max_steps = 1});
  const auto start = std::chrono::steady_clock::now();
  trainer.fit(s.train);
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 4);
}

TEST_CASE("steps in a launch: a power of two up to 32 that takes four milliseconds") {
  CHECK(train::steps_in_launch(1) == 1);
  CHECK(train::steps_in_launch(4e-3) == 1);
  CHECK(train::steps_in_launch(3e-3) == 2);
  CHECK(train::steps_in_launch(1e-3) == 4);
  CHECK(train::steps_in_launch(0.9e-3) == 8);
  CHECK(train::steps_in_launch(1e-6) == 32);
  CHECK(train::steps_in_launch(0) == 32);
}

TEST_CASE("trainer: its folder is opened with a given module") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  toy::Session s;
  s.fit(options(dir));
  const Tensor x = randn({5, 2}).compute();
  s.net.eval();
  const std::vector<float> expected = s.net(x).to_vector<float>();
  const toy::Session fresh(7);
  const train::TrainedModel model = train::TrainedModel::open(dir, fresh.net);
  CHECK(model.predict(x).to_vector<float>() == expected);
  CHECK_FALSE(model.net().is_training());
  const nn::Sequential other(nn::Linear(2, 24), nn::ReLU(), nn::Dropout(), nn::Linear(24, 4));
  CHECK(train::TrainedModel::open(model.file(), other).predict(x).to_vector<float>() == expected);
  CHECK_THROWS_AS(model.evaluate(), NotSupported);
  CHECK_THROWS_AS(train::TrainedModel::open(dir, nn::Linear(2, 4)), ValueError);
  CHECK_THROWS_AS(train::TrainedModel::open(folder / "absent", other), IoError);
}
