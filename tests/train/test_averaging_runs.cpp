// The Trainer with averaged weights and accumulated gradients: equal to plain loops, resumed with
// the same bits.
#include <doctest/doctest.h>

#include <cmath>

#include <tenon/averaging.h>
#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "io/folder.h"
#include "train/toy.h"

using namespace tenon;

namespace {

struct Course {
  Course()
      : net((manual_seed(3), nn::Sequential(nn::Linear(2, 16), nn::BatchNorm1d(16), nn::ReLU(),
                                            nn::Dropout(0.1), nn::Linear(16, 4)))),
        sgd(net, {.lr = 0.1, .momentum = 0.9}),
        train(toy::points(96, 1), {.batch = 16, .seed = 5}),
        test(toy::points(60, 2), {.batch = 30, .shuffle = false}) {}
  train::TrainResult fit(const train::TrainOptions& o) {
    manual_seed(11);  // of dropout
    return train::Trainer(net, nn::CrossEntropyLoss(), sgd, o).fit(train, test);
  }
  nn::Sequential net;
  optim::Sgd sgd;
  data::Loader train, test;
};

train::TrainOptions options(int epochs, const optim::Averaging& averaging = {},
                            int accumulate = 1) {
  train::TrainOptions o;
  o.epochs = epochs;
  o.keep_best = false;
  o.averaging = averaging;
  o.accumulate = accumulate;
  return o;
}

// The same training written as a loop.
void loop(Course& course, int epochs, optim::AveragedModel* average, bool each_step, int accumulate,
          int start = 0) {
  manual_seed(11);
  course.net.train();
  optim::GradientAccumulator accumulated(course.sgd, accumulate);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    course.train.set_epoch(epoch);
    for (data::Batch batch; course.train.next(batch);) {
      accumulated.step(cross_entropy(course.net(batch.input), batch.target));
      if (average != nullptr && each_step && epoch >= start && accumulated.pending() == 0)
        average->update();
    }
    if (average != nullptr && !each_step && epoch >= start) average->update();
  }
}

// Interrupts the run after a step and resumes it with new objects.
StateDict resumed(const train::TrainOptions& given, std::int64_t stop_after) {
  const TestFolder folder;
  train::TrainOptions o = given;
  o.run_dir = folder / "run";
  {
    Course first;
    o.stop_after = stop_after;
    CHECK(first.fit(o).reason == train::StopReason::Interrupted);
  }
  Course second;
  for (const Tensor& p : second.net.parameters()) set_value(p, zeros(p.shape()));
  o.stop_after = 0;
  o.resume = true;
  second.fit(o);
  const StateDict saved = io::load_safetensors(o.run_dir + "/model.safetensors").tensors;
  CHECK(toy::difference(saved, toy::snapshot(second.net.state_dict())).empty());
  return toy::snapshot(second.net.state_dict());
}

}  // namespace

TEST_CASE("trainer: accumulated gradients equal a plain loop") {
  Course trained, plain;
  trained.fit(options(3, {}, 4));  // six batches in an epoch: an update spans two epochs
  loop(plain, 3, nullptr, false, 4);
  CHECK(trained.sgd.steps() == 4);
  CHECK(toy::difference(toy::snapshot(trained.net.state_dict()),
                        toy::snapshot(plain.net.state_dict()))
            .empty());
}

TEST_CASE("trainer: an exponential average equals a plain loop, and is what the run leaves") {
  for (const int accumulate : {1, 2})
    for (const int start : {0, 2}) {
      CAPTURE(accumulate);
      CAPTURE(start);
      Course trained, plain;
      const train::TrainResult result = trained.fit(options(3, optim::ema(0.9, start), accumulate));
      optim::AveragedModel average(plain.net, optim::ema(0.9));
      loop(plain, 3, &average, true, accumulate, start);
      const StateDict left = toy::snapshot(trained.net.state_dict());
      CHECK(toy::difference(left, toy::snapshot(average.net().state_dict())).empty());
      CHECK(!toy::difference(left, toy::snapshot(plain.net.state_dict())).empty());
      // The validation of the last epoch measured it.
      optim::Sgd unused(average.net());
      train::Trainer measuring(average.net(), nn::CrossEntropyLoss(), unused);
      CHECK(measuring.evaluate(plain.test).loss == *result.epochs.back().validation_loss);
    }
}

TEST_CASE("trainer: swa averages epochs and measures batch normalization again") {
  Course trained, plain;
  const train::TrainResult result = trained.fit(options(5, optim::swa(2)));
  optim::AveragedModel average(plain.net, optim::swa());
  loop(plain, 5, &average, false, 1, 2);
  CHECK(average.count() == 3);
  const Tensor before = clone(average.net().state_dict().at("1.running_mean"));
  plain.train.set_epoch(4);
  train::update_batch_norm(average.net(), plain.train);
  CHECK(!equal(before, average.net().state_dict().at("1.running_mean")));
  CHECK(average.net().state_dict().at("1.num_batches_tracked").item() == 6);
  const StateDict left = trained.net.state_dict();
  for (const auto& entry : average.net().state_dict()) {
    const auto& name = entry.first;
    const Tensor& tensor = entry.second;
    CAPTURE(name);
    if (name.find("running") == std::string::npos)
      CHECK(equal(tensor, left.at(name)));
    else
      CHECK(allclose(tensor, left.at(name), 1e-4, 1e-6));
  }
  CHECK(*result.epochs.back().validation_metrics["accuracy"] > 0.5);
}

TEST_CASE("trainer: update_batch_norm is the mean over batches, and disturbs nothing") {
  manual_seed(9);
  nn::Sequential net(nn::BatchNorm1d(2), nn::Dropout(0.5));
  net.eval();
  data::Loader loader(toy::points(50, 1), {.batch = 16, .seed = 5});
  const std::uint64_t counter = Generator::current().counter();
  train::update_batch_norm(net, loader);
  CHECK(Generator::current().counter() == counter);
  CHECK(!net.is_training());
  CHECK(loader.state() == data::LoaderState{5, 0, 0});
  Tensor mean_sum = zeros({2}, DType::Float64), var_sum = mean_sum;
  int batches = 0;
  for (data::Batch batch; loader.next(batch); ++batches) {
    mean_sum = mean_sum + mean(batch.input.to(DType::Float64), {0});
    var_sum = var_sum + var(batch.input.to(DType::Float64), {0});
  }
  CHECK(allclose(net.state_dict().at("0.running_mean").to(DType::Float64), mean_sum / batches));
  CHECK(allclose(net.state_dict().at("0.running_var").to(DType::Float64), var_sum / batches));
  CHECK(net.state_dict().at("0.num_batches_tracked").item() == 4);
  const nn::Sequential without(nn::Linear(2, 2));
  train::update_batch_norm(without, loader);
}

TEST_CASE("trainer: averages and accumulated gradients are resumed with the same bits") {
  const train::TrainOptions all[] = {options(3, optim::ema(0.9), 4), options(3, optim::ema(0.9, 1)),
                                     options(4, optim::swa(1), 2)};
  for (const train::TrainOptions& o : all) {
    Course whole;
    whole.fit(o);
    const StateDict expected = toy::snapshot(whole.net.state_dict());
    for (const std::int64_t stop : {3, 7, 12, 15}) {
      CAPTURE(stop);
      CHECK(toy::difference(resumed(o, stop), expected).empty());
    }
  }
}

TEST_CASE("trainer: the best epoch is chosen among averages") {
  Course course;
  train::TrainOptions o = options(4, optim::ema(0.5));
  o.keep_best = true;
  const train::TrainResult result = course.fit(o);
  REQUIRE(result.best_epoch > 0);
  train::Trainer measuring(course.net, nn::CrossEntropyLoss(), course.sgd);
  REQUIRE(result.best);
  CHECK(measuring.evaluate(course.test).accuracy == doctest::Approx(*result.best));
  // A second call trains on from there with a new average.
  train::Trainer again(course.net, nn::CrossEntropyLoss(), course.sgd, o);
  again.fit(course.train, course.test);
  again.fit(course.train, course.test);
}

TEST_CASE("trainer: a schedule of one's own decides the learning rates, also of a resumed run") {
  struct Halving : optim::Schedule {
    explicit Halving(double steps) : total(steps) {}
    double factor(std::int64_t step) const override {
      return std::pow(0.5, static_cast<double>(step)) * total / 12;
    }
    double total;
  };
  struct Rates : train::Callback {
    void on_step(const train::StepReport& report) override { seen.push_back(report.lr); }
    std::vector<double> seen;
  };
  const auto rates = std::make_shared<Rates>();
  Course course;
  train::TrainOptions o = options(2);
  o.make_schedule = [](const optim::ScheduleOptions& given) {
    return std::make_unique<Halving>(static_cast<double>(given.total_steps));
  };
  o.callbacks = {rates};
  course.fit(o);
  REQUIRE(rates->seen.size() == 12);
  CHECK(rates->seen[0] == doctest::Approx(0.1));
  CHECK(rates->seen[3] == doctest::Approx(0.1 / 8));
  const StateDict expected = toy::snapshot(course.net.state_dict());
  CHECK(toy::difference(resumed(o, 5), expected).empty());
  o.make_schedule = [](const optim::ScheduleOptions&) {
    return std::unique_ptr<optim::Schedule>();
  };
  CHECK_THROWS_WITH_AS(course.fit(o), doctest::Contains("make_schedule"), ValueError);
}

TEST_CASE("trainer: an average goes on in the next stage") {
  Course whole, staged;
  train::TrainOptions o = options(3, optim::ema(0.9));
  whole.fit(o);
  optim::Sgd second(staged.net, {.lr = 0.1, .momentum = 0.9});
  o.stage_epochs = 1;
  o.next_stage = [&] { return train::Stage{staged.net, &second, &staged.train, &staged.test}; };
  staged.fit(o);
  CHECK(second.steps() == 18);
  CHECK(
      toy::difference(toy::snapshot(staged.net.state_dict()), toy::snapshot(whole.net.state_dict()))
          .empty());
}
