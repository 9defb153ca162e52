// State that a network updates in training: by the Trainer, step by step, and not by skipped steps.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/io.h>

#include "io/folder.h"
#include "train/runs/records.h"
#include "train/runs/run_folder.h"
#include "train/toy.h"

using namespace tenon;

namespace {

nn::Sequential network(std::uint64_t seed) {
  manual_seed(seed);
  return nn::Sequential(nn::Linear(2, 24), nn::BatchNorm1d(24), nn::ReLU(), nn::Linear(24, 4));
}

double tracked(const nn::Module& net) {
  return net.state_dict().at("1.num_batches_tracked").item();
}

train::TrainOptions options(int epochs, const std::string& folder = "") {
  train::TrainOptions o;
  o.epochs = epochs;
  o.keep_best = false;
  o.run_dir = folder;
  return o;
}

struct Course {
  explicit Course(std::uint64_t seed)
      : net(network(seed)),
        sgd(net, {.lr = 0.1, .momentum = 0.9}),
        train(toy::points(250, 1), {.batch = 16, .seed = 5}),
        test(toy::points(100, 2), {.batch = 30, .shuffle = false}) {}
  train::TrainResult fit(const train::TrainOptions& o, nn::Loss loss = nn::CrossEntropyLoss()) {
    return train::Trainer(net, std::move(loss), sgd, o).fit(train, test);
  }
  nn::Sequential net;
  optim::Sgd sgd;
  data::Loader train, test;
};

/// Six batches of eight; the fifth contains NaN.
data::Loader poisoned() {
  std::vector<float> x(48 * 2, 0.5f);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 7);
  x[33 * 2] = std::numeric_limits<float>::quiet_NaN();
  const Tensor labels = remainder(arange(0, 48), 4).eval();
  return data::Loader(data::from_tensors(Tensor::from(x, {48, 2}), labels, 4),
                      {.batch = 8, .shuffle = false});
}

}  // namespace

TEST_CASE("trainer: batch norm counts training steps only, and learns") {
  Course course(0);
  const train::TrainResult result = course.fit(options(4));
  CHECK(result.steps == 64);
  CHECK(tracked(course.net) == 64);
  CHECK(result.epochs.back().train_accuracy > 0.7);
  CHECK(*result.epochs.back().validation_metrics["accuracy"] > 0.7);
}

TEST_CASE("trainer: batch norm's state equals that of a plain loop") {
  Course trained(0), plain(0);
  trained.fit(options(1));
  plain.net.train();
  data::Batch batch;
  while (plain.train.next(batch))
    plain.sgd.step(cross_entropy(plain.net(batch.input), batch.target));
  for (const auto& [name, value] : trained.net.state_dict()) {
    CAPTURE(name);
    const Tensor other = plain.net.state_dict().at(name);
    CHECK(amax(abs(cast(value, DType::Float32) - cast(other, DType::Float32))).item() < 1e-4);
  }
}

TEST_CASE("trainer: a run with batch norm that was stopped and resumed ends with the same bits") {
  Course whole(0);
  whole.fit(options(3));
  const TestFolder folder;
  train::TrainOptions o = options(3, folder / "run");
  o.stop_after = 21;
  Course(0).fit(o);
  o.stop_after = 0;
  o.resume = true;
  Course resumed(1);
  resumed.fit(o);
  CHECK(toy::difference(resumed.net.state_dict(), whole.net.state_dict()) == "");
}

TEST_CASE("trainer: when a loss stops a run, the checkpoint has the step before") {
  const TestFolder folder;
  const auto newest = [&folder](const std::string& name, int steps) {
    manual_seed(3);
    const nn::Sequential net(nn::Linear(2, 24), nn::BatchNorm1d(24), nn::Dropout(0.3), nn::ReLU(),
                             nn::Linear(24, 4));
    optim::Adam adam(net, {.lr = 0.02});
    data::Loader loader = poisoned();
    train::TrainOptions o = options(1, folder / name);
    o.stop_after = steps;
    o.clip_norm = 1;
    train::Trainer trainer(net, nn::CrossEntropyLoss(), adam, o);
    if (steps == 0)
      CHECK_THROWS_AS(trainer.fit(loader), NumericError);
    else
      trainer.fit(loader);
    return train::load_latest_checkpoint(folder / name);
  };
  const auto stopped = newest("stopped", 0), wanted = newest("wanted", 4);
  REQUIRE(stopped);
  REQUIRE(wanted);
  CHECK(stopped->progress.step == 4);
  CHECK(io::read_file(folder / "stopped/log.jsonl").find("\"not_finite\",\"step\":5,") !=
        std::string::npos);
  CHECK(stopped->progress.generator_counter == wanted->progress.generator_counter);
  CHECK(stopped->progress.loss_sum == wanted->progress.loss_sum);
  CHECK(toy::difference(stopped->tensors, wanted->tensors) == "");
}

TEST_CASE("trainer: weights that are not finite are not saved when a loss stops the run") {
  const TestFolder folder;
  manual_seed(3);
  const nn::Sequential net(nn::Linear(2, 4));
  optim::Sgd sgd(net, {.lr = 1e6});
  data::Loader loader(
      data::from_tensors(full({32, 2}, 1e34).eval(), remainder(arange(0, 32), 4).eval(), 4),
      {.batch = 8, .shuffle = false});
  train::Trainer trainer(net, nn::CrossEntropyLoss(), sgd, options(1, folder / "run"));
  CHECK_THROWS_WITH_AS(trainer.fit(loader), doctest::Contains("they are not saved"), NumericError);
  const auto newest = train::load_latest_checkpoint(folder / "run");
  REQUIRE(newest);
  for (const auto& [name, tensor] : newest->model_state())
    CHECK_MESSAGE(all(isfinite(tensor)).item() == 1, name);
}

TEST_CASE("trainer: non-finite weights end the run before they would be saved") {
  const TestFolder folder;
  // The first step's loss is finite, its updated weights are not.
  const auto fit = [](train::TrainOptions o, std::int64_t batch) {
    manual_seed(3);
    const nn::Sequential net(nn::Linear(2, 4));
    optim::Sgd sgd(net, {.lr = 1e6});
    data::Loader loader(
        data::from_tensors(full({32, 2}, 1e34).eval(), remainder(arange(0, 32), 4).eval(), 4),
        {.batch = batch, .shuffle = false});
    train::Trainer trainer(net, nn::CrossEntropyLoss(), sgd, std::move(o));
    CHECK_THROWS_WITH_AS(
        trainer.fit(loader),
        doctest::Contains("step 1: the loss is finite, but the step produced weights or running "
                          "statistics that are not (the first: 0.weight); they are not saved"),
        NumericError);
  };
  SUBCASE("after the last step") {
    train::TrainOptions o = options(1);
    o.max_steps = 1;
    fit(o, 8);
    o.run_dir = folder / "run";
    fit(o, 8);
  }
  SUBCASE("after the last step of an epoch") { fit(options(2, folder / "run"), 32); }
  SUBCASE("between two steps") {
    train::TrainOptions o = options(1, folder / "run");
    o.checkpoint_steps = 1;
    fit(o, 8);
  }
  SUBCASE("where it is interrupted") {
    train::TrainOptions o = options(1, folder / "run");
    o.stop_after = 1;
    fit(o, 8);
  }
  SUBCASE("as the best so far") {
    train::TrainOptions o = options(2);
    o.keep_best = true;
    fit(o, 32);
    o.run_dir = folder / "run";
    fit(o, 32);
    CHECK_FALSE(std::filesystem::exists(folder / "run/best.safetensors"));
  }
  const auto newest = train::load_latest_checkpoint(folder / "run");
  REQUIRE(newest);
  CHECK(newest->progress.step == 0);
  for (const auto& [name, tensor] : newest->model_state()) CHECK(all(isfinite(tensor)).item() == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "run/model.safetensors"));
  CHECK(io::read_file(folder / "run/log.jsonl").find("\"not_finite\",\"step\":1,") !=
        std::string::npos);
}

TEST_CASE("trainer: a run without its checkpoints is refused, not started again") {
  const TestFolder folder;
  const std::string run = folder / "run";
  toy::Session().fit(options(2, run));
  const std::string model = io::read_file(run + "/model.safetensors");
  std::filesystem::remove_all(run + "/checkpoints");
  train::TrainOptions again = options(3, run);
  again.resume = true;
  CHECK_THROWS_WITH_AS(toy::Session().fit(again), doctest::Contains("has lost its checkpoints"),
                       IoError);
  CHECK(io::read_file(run + "/model.safetensors") == model);
}

TEST_CASE("trainer: running statistics and optimizers' state that are not finite are not saved") {
  const TestFolder folder;
  manual_seed(3);
  const nn::Sequential net(nn::Linear(2, 4), nn::BatchNorm1d(4));
  std::string what;
  const auto fit = [&](optim::Optimizer& optimizer, double size, const nn::Sequential& of) {
    data::Loader loader(
        data::from_tensors((randn({32, 2}) * size).eval(), remainder(arange(0, 32), 4).eval(), 4),
        {.batch = 32, .shuffle = false});
    train::Trainer trainer(of, nn::CrossEntropyLoss(), optimizer, options(1, folder / "run"));
    CHECK_THROWS_WITH_AS(trainer.fit(loader), doctest::Contains(what.c_str()), NumericError);
    CHECK_FALSE(std::filesystem::exists(folder / "run/model.safetensors"));
    std::filesystem::remove_all(folder / "run");
  };
  SUBCASE("a variance") {
    what = "(the first: 1.running_var); they are not saved";
    optim::Sgd sgd(net, {.lr = 1e-9});
    fit(sgd, 1e25, net);
  }
  SUBCASE("a moment") {
    what = "the loss is finite, but the optimizer state is not";
    const nn::Sequential plain(nn::Linear(2, 4));
    optim::Adam adam(plain, {.lr = 1e-30});
    fit(adam, 1e22, plain);
  }
}

TEST_CASE("trainer: an epoch with a NaN validation loss is never the best") {
  // Has no effect in training mode.
  class Factor : public nn::Module {
   public:
    Tensor forward(const Tensor& x) const override { return is_training() ? x : x * value; }
    std::string describe() const override { return "Factor()"; }
    Tensor value = variable(full({}, std::numeric_limits<double>::quiet_NaN()));
  };
  class Mend : public train::Callback {
   public:
    Mend(Tensor value, int after) : value_(std::move(value)), after_(after) {}
    void on_epoch(const train::EpochReport& report) override {
      if (report.epoch == after_) set_value(value_, ones({}));
    }

   private:
    Tensor value_;
    int after_;
  };
  const auto fit = [](int mended_after, int evaluate_every) {
    manual_seed(3);
    const Factor factor;
    const nn::Sequential net(nn::Linear(2, 24), nn::ReLU(), nn::Linear(24, 4), factor);
    optim::Sgd sgd(net, {.lr = 0.1, .momentum = 0.9});
    data::Loader train(toy::points(250, 1), {.batch = 16, .seed = 5}),
        test(toy::points(100, 2), {.batch = 30, .shuffle = false});
    train::TrainOptions o = options(6);
    o.keep_best = true;
    o.early_stopping = 2;
    o.evaluate_every = evaluate_every;
    o.callbacks = {std::make_shared<Mend>(factor.value, mended_after)};
    return train::Trainer(net, nn::CrossEntropyLoss(), sgd, o).fit(train, test);
  };
  const train::TrainResult mended = fit(1, 1);
  CHECK(std::isnan(*mended.epochs[0].validation_loss));
  CHECK_FALSE(mended.epochs[0].best);
  CHECK(mended.epochs[1].best);
  CHECK(*mended.best > 0.5);
  const train::TrainResult never = fit(0, 1);
  CHECK(never.reason == train::StopReason::EarlyStop);
  CHECK(never.epochs.size() == 3);  // as if no epoch improved on the first
  CHECK_FALSE(never.best.has_value());
  CHECK(never.best_epoch == 0);
  CHECK(fit(0, 2).epochs.size() == 4);
}

TEST_CASE("trainer: a checkpoint keeps the weights of its losses and the lengths of its epochs") {
  train::Progress progress;
  progress.steps_per_epoch = 3;
  progress.step = 11;
  progress.first_epoch = 2;
  progress.first_step = 8;
  progress.weight = 6.5;
  const train::Progress read = train::progress_from_json(train::to_json(progress), "own");
  CHECK(read.weight == 6.5);
  CHECK(read.epochs_in(11) == 3);
  CHECK(read.steps_behind_epochs(10) == 2);
  CHECK(read.epoch_of(8 + 3) == 3);
  CHECK(read.epoch_of(8 + 4) == 4);
  CHECK(read.steps_of_epochs(4) == 14);
}
TEST_CASE("trainer: a skipped step updates nothing") {
  SUBCASE("a loss that is not finite") {
    data::Loader loader = poisoned();
    Course course(0);
    train::Trainer trainer(course.net, nn::CrossEntropyLoss(), course.sgd, options(1));
    CHECK_THROWS_AS(trainer.fit(loader), NumericError);
    CHECK(tracked(course.net) == 4);
    for (const nn::NamedTensor& b : course.net.named_buffers())
      CHECK(all(isfinite(cast(b.tensor, DType::Float32))).item() == 1);
  }
  SUBCASE("a scaled gradient that overflows") {
    set_precision(Precision::Fp16);
    Course course(0);
    train::TrainOptions o = options(1);
    o.max_steps = 3;
    const StateDict before = toy::snapshot(course.net.state_dict());
    course.fit(o, [](const Tensor& scores, const Tensor& target) {
      return cross_entropy(scores, target) * 1e36;  // times 65536 it exceeds float32
    });
    set_precision(Precision::Fp32);
    CHECK(toy::difference(course.net.state_dict(), before) == "");
  }
}
