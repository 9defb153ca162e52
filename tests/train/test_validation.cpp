// Weights are selected by the validation part, and the test part is measured once.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/layers.h>

#include "io/folder.h"
#include "train/toy.h"

namespace {

using namespace tenon;
using train::StopReason;
using train::TrainOptions;

// Network and loaders of points in the plane; a share of the labels is wrong.
struct Course {
  explicit Course(std::uint64_t seed = 0)
      : net((manual_seed(seed),
             nn::Sequential(nn::Linear(2, 24), nn::ReLU(), nn::Dropout(0.1), nn::Linear(24, 4)))),
        sgd(net, {.lr = 0.3, .momentum = 0.9}),
        train(toy::points(120, 1), {.batch = 16, .seed = seed}),
        validation(toy::points(40, 2), {.batch = 30, .shuffle = false}),
        test(toy::points(70, 3), {.batch = 30, .shuffle = false}) {}
  train::TrainResult fit(const TrainOptions& o) {
    return train::Trainer(net, nn::CrossEntropyLoss(), sgd, o).fit(train, validation, test);
  }

  nn::Sequential net;
  optim::Sgd sgd;
  data::Loader train, validation, test;
};

// Counts passes over each part, and can stop after a step.
class Counter : public train::Callback {
 public:
  explicit Counter(std::int64_t stop_after = 0) : stop_after_(stop_after) {}
  void on_evaluation(data::Split part, std::int64_t batch, std::int64_t batches) override {
    if (batch == batches) ++(part == data::Split::Test ? tests : validations);
    if (batch == batches && part == data::Split::Test) order += "test ";
  }
  void on_epoch(const train::EpochReport& report) override {
    order += "epoch" + std::to_string(report.epoch) + " ";
  }
  void on_step(const train::StepReport& report) override { stop = report.step >= stop_after_; }
  int validations = 0, tests = 0;
  bool stop = false;
  std::string order;

 private:
  std::int64_t stop_after_;
};

TrainOptions options(const std::string& dir, int epochs = 4) {
  TrainOptions o;
  o.epochs = epochs;
  o.run_dir = dir;
  o.checkpoint_seconds = 0;
  return o;
}

std::vector<std::string> lines_with(const std::string& file, const std::string& word) {
  std::ifstream in(file);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);)
    if (line.find(word) != std::string::npos) out.push_back(line);
  return out;
}

// Number of rows of log.csv with a test result.
int tested_rows(const std::string& dir) {
  std::ifstream in(dir + "/log.csv");
  std::string line;
  std::getline(in, line);
  REQUIRE(line.find("validation_loss") != std::string::npos);
  REQUIRE(line.ends_with("best,test_loss,test_accuracy,test_mae,test_r2"));
  int count = 0;
  while (std::getline(in, line)) count += !line.ends_with(",,,,");
  return count;
}

void same(const train::TestReport& a, const train::TestReport& b) {
  CHECK(a.epoch == b.epoch);
  CHECK(a.step == b.step);
  CHECK(a.samples == b.samples);
  CHECK(a.loss == b.loss);
  CHECK(a.metrics["accuracy"] == b.metrics["accuracy"]);
}

}  // namespace

TEST_CASE("validation: the test part is measured once, after training, with the kept weights") {
  for (const bool keep_best : {true, false}) {
    CAPTURE(keep_best);
    Course course;
    TrainOptions o = options("");
    o.keep_best = keep_best;
    const auto counter = std::make_shared<Counter>();
    o.callbacks = {counter};
    const train::TrainResult result = course.fit(o);
    CHECK(counter->validations == 4);
    CHECK(counter->tests == 1);
    CHECK(counter->order == "epoch1 epoch2 epoch3 epoch4 test ");
    CHECK(result.best_figure == "validation accuracy");
    CHECK(result.validation_samples == 40);
    REQUIRE(result.test.has_value());
    CHECK(result.test->samples == 70);
    CHECK(result.kept_epoch == (keep_best ? result.best_epoch : 4));
    CHECK(result.test->epoch == result.kept_epoch);
    train::Trainer trainer(course.net, nn::CrossEntropyLoss(), course.sgd);
    const train::Evaluation again = trainer.evaluate(course.test);
    CHECK(again.loss == result.test->loss);
    CHECK(again.accuracy == *result.test->metrics["accuracy"]);
  }
}

TEST_CASE("validation: a test part changes only its own result") {
  for (const bool validates : {true, false}) {
    CAPTURE(validates);
    std::vector<StateDict> states;
    std::vector<train::TrainResult> results;
    for (const bool tests : {true, false}) {
      Course course(5);
      TrainOptions o = options("", 12);
      o.schedule = "plateau";
      o.early_stopping = 3;
      train::Trainer trainer(course.net, nn::CrossEntropyLoss(), course.sgd, o);
      results.push_back(trainer.fit(course.train, validates ? &course.validation : nullptr,
                                    tests ? &course.test : nullptr));
      states.push_back(toy::snapshot(course.net.state_dict()));
    }
    CHECK(toy::difference(states[0], states[1]) == "");
    CHECK(results[0].steps == results[1].steps);
    CHECK(results[0].best_epoch == results[1].best_epoch);
    CHECK(results[0].best_figure == (validates ? "validation accuracy" : "training loss"));
    CHECK(results[0].test.has_value());
    CHECK_FALSE(results[1].test.has_value());
  }
}

TEST_CASE("validation: without a validation part the last epoch's weights are kept") {
  const TestFolder folder;
  for (const std::string& dir : {std::string(), folder / "run"}) {
    Course course;
    TrainOptions o = options(dir);
    train::Trainer trainer(course.net, nn::CrossEntropyLoss(), course.sgd, o);
    struct Last : train::Callback {
      explicit Last(const nn::Sequential& net) : of(net) {}
      void on_epoch(const train::EpochReport&) override { state = toy::snapshot(of.state_dict()); }
      nn::Sequential of;
      StateDict state;
    };
    const auto last = std::make_shared<Last>(course.net);
    o.callbacks = {last};
    const train::TrainResult result =
        train::Trainer(course.net, nn::CrossEntropyLoss(), course.sgd, o)
            .fit(course.train, nullptr, &course.test);
    CHECK(toy::difference(course.net.state_dict(), last->state) == "");
    CHECK(result.kept_epoch == 4);
    CHECK(result.test->epoch == 4);
    CHECK(result.validation_samples == 0);
    if (!dir.empty()) CHECK_FALSE(std::filesystem::exists(dir + "/best.safetensors"));
  }
}

TEST_CASE(
    "validation: early stopping and the best epoch follow the validation part, not the test part") {
  // The labels of one part are shifted: the better the training, the worse its result.
  const auto shifted = [](std::int64_t count, std::uint64_t seed) {
    const auto set = toy::points(count, seed);
    std::vector<std::int64_t> all(static_cast<std::size_t>(count)), labels(all.size());
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<std::int64_t>(k);
    std::vector<float> points(all.size() * 2);
    set->get(all, points.data(), labels.data());
    for (std::int64_t& label : labels) label = (label + 1) % 4;
    return data::from_tensors(Tensor::from(points, {count, 2}), Tensor::from(labels, {count}), 4);
  };
  for (const bool shifted_validation : {true, false}) {
    CAPTURE(shifted_validation);
    Course course(2);
    data::Loader other(shifted(200, 7), {.batch = 50, .shuffle = false});
    TrainOptions o = options("", 8);
    o.early_stopping = 2;
    train::Trainer trainer(course.net, nn::CrossEntropyLoss(), course.sgd, o);
    const train::TrainResult result = shifted_validation
                                          ? trainer.fit(course.train, other, course.validation)
                                          : trainer.fit(course.train, course.validation, other);
    if (shifted_validation) {
      CHECK(result.reason == StopReason::EarlyStop);
      CHECK(result.best_epoch == 1);
    } else {
      CHECK(result.best_epoch > 1);
      CHECK(*result.test->metrics["accuracy"] < 0.25);  // not measured during training
    }
  }
}

TEST_CASE("validation: a run resumed after its end keeps its result and does not measure again") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  Course first(1);
  const train::TrainResult whole = first.fit(options(dir));
  CHECK(lines_with(dir + "/log.jsonl", "\"event\":\"test\"").size() == 1);
  CHECK(tested_rows(dir) == 1);
  TrainOptions o = options(dir);
  o.resume = true;
  const auto counter = std::make_shared<Counter>();
  o.callbacks = {counter};
  for (int time = 0; time < 2; ++time) {
    Course again(7);
    const train::TrainResult result = again.fit(o);
    CHECK(counter->tests == 0);
    REQUIRE(result.test.has_value());
    same(*result.test, *whole.test);
    CHECK(lines_with(dir + "/log.jsonl", "\"event\":\"test\"").size() == 1);
    CHECK(tested_rows(dir) == 1);
    CHECK(toy::difference(again.net.state_dict(), first.net.state_dict()) == "");
  }
  // Killed before or while the result was written to the log.
  std::string log = io::read_file(dir + "/log.jsonl");
  const std::size_t at = log.find("{\"event\":\"test\"");
  for (const std::size_t length : {at, at + 20}) {
    io::write_file(dir + "/log.jsonl", log.substr(0, length));
    std::filesystem::remove(dir + "/model.safetensors");
    Course again(8);
    same(*again.fit(o).test, *whole.test);
    CHECK(lines_with(dir + "/log.jsonl", "\"event\":\"test\"").size() == 1);
    CHECK(tested_rows(dir) == 1);
    CHECK(std::filesystem::exists(dir + "/model.safetensors"));
  }
  CHECK(counter->tests == 2);
  // With more epochs it is measured at the new end, unless the kept weights are the same.
  TrainOptions longer = options(dir, 9);
  longer.resume = true;
  Course on(9);
  const train::TrainResult result = on.fit(longer);
  CHECK(result.test->epoch == result.best_epoch);
  CHECK(tested_rows(dir) == (result.best_epoch == whole.best_epoch ? 1 : 2));
}

TEST_CASE(
    "validation: a run stopped anywhere and resumed measures the test part once, with the same "
    "bits") {
  const TestFolder folder;
  Course whole(3);
  const train::TrainResult expected = whole.fit(options(folder / "whole"));
  for (const std::int64_t stop : {1, 8, 13, 31, 32}) {
    CAPTURE(stop);
    const std::string dir = folder / std::to_string(stop);
    const auto counter = std::make_shared<Counter>(stop);
    TrainOptions o = options(dir);
    o.callbacks = {counter};
    o.stop = [counter] { return counter->stop; };
    Course first(3);
    const train::TrainResult stopped = first.fit(o);
    if (stopped.reason == StopReason::Interrupted) {
      CHECK_FALSE(stopped.test.has_value());
      CHECK(counter->tests == 0);
      CHECK(lines_with(dir + "/log.jsonl", "\"event\":\"test\"").empty());
    }
    TrainOptions on = options(dir);
    on.resume = true;
    on.callbacks = {counter};
    Course second(4);
    same(*second.fit(on).test, *expected.test);
    CHECK(counter->tests == 1);
    CHECK(lines_with(dir + "/log.jsonl", "\"event\":\"test\"").size() == 1);
    CHECK(toy::difference(second.net.state_dict(), whole.net.state_dict()) == "");
    CHECK(io::read_file(dir + "/log.jsonl").find("\"validation_accuracy\"") != std::string::npos);
  }
}

TEST_CASE("validation: with random labels the test accuracy is that of chance") {
  double validation = 0, test = 0;
  constexpr int kTimes = 12;
  for (int time = 0; time < kTimes; ++time) {
    manual_seed(static_cast<std::uint64_t>(100 + time));
    const auto noise = [](std::int64_t count) {
      const Tensor x = randn({count, 8}), y = cast(gt(rand({count}), 0.5), DType::Int64);
      return data::from_tensors(x.eval(), y.eval(), 2);
    };
    data::Loader training(noise(150), {.batch = 16}), chosen_by(noise(50)), held_out(noise(200));
    nn::Sequential net(nn::Linear(8, 32), nn::ReLU(), nn::Linear(32, 2));
    optim::Adam adam(net, {.lr = 0.01});
    TrainOptions o;
    o.epochs = 20;
    const train::TrainResult result =
        train::Trainer(net, nn::CrossEntropyLoss(), adam, o).fit(training, chosen_by, held_out);
    validation += *result.best / kTimes;
    test += *result.test->metrics["accuracy"] / kTimes;
  }
  CHECK(validation > 0.55);             // the best of twenty epochs is too good by chance
  CHECK(std::abs(test - 0.5) < 0.035);  // three standard deviations of 2,400 tosses
}

TEST_CASE("validation: fit, evaluate and predict restore the modes of modules") {
  Course course;
  const nn::Dropout dropout(0.5);
  nn::Sequential net(course.net, dropout);
  optim::Sgd sgd(net, {.lr = 0.01});
  TrainOptions o = options("", 1);
  for (const bool inner : {true, false})
    for (const bool outer : {true, false}) {
      net.train(outer);
      dropout.train(inner);
      const auto unchanged = [&](const char* by) {
        CAPTURE(by);
        CHECK(net.is_training() == outer);
        CHECK(course.net.is_training() == outer);
        CHECK(dropout.is_training() == inner);
      };
      train::Trainer trainer(net, nn::CrossEntropyLoss(), sgd, o);
      trainer.fit(course.train, course.validation);
      unchanged("fit");
      trainer.evaluate(course.test);
      unchanged("evaluate");
      (void)trainer.predict(zeros({3, 2}));
      unchanged("predict");
      const nn::Loss bad = [](const Tensor& scores, const Tensor&) { return mean(scores) / 0.0; };
      train::Trainer failing(net, bad, sgd, o);
      CHECK_THROWS_AS(failing.fit(course.train), NumericError);
      unchanged("a fit that fails");
    }
}

TEST_CASE("validation: a checkpoint of an older version is refused with a message") {
  const TestFolder folder;
  const std::string dir = folder / "run";
  Course(1).fit(options(dir));
  for (const auto& entry : std::filesystem::directory_iterator(dir + "/checkpoints")) {
    if (entry.path().extension() != ".safetensors") continue;
    io::SafeTensors file = io::load_safetensors(entry.path().string());
    file.metadata["format"] = "tenon.checkpoint.1";
    io::save_safetensors(entry.path().string(), file.tensors, file.metadata);
  }
  TrainOptions o = options(dir);
  o.resume = true;
  Course again(1);
  CHECK_THROWS_WITH_AS(again.fit(o), doctest::Contains("start a new run"), FormatError);
}

TEST_CASE("validation: a last batch of one sample is refused before the first step") {
  const auto net = [] {
    manual_seed(1);
    return nn::Sequential(nn::Linear(2, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Linear(8, 4));
  };
  const TestFolder folder;
  const auto fit = [&](const nn::Sequential& of, std::int64_t count, data::LoaderOptions how,
                       const std::string& dir) {
    optim::Sgd sgd(of, {.lr = 0.1});
    data::Loader loader(toy::points(count, 1), how);
    TrainOptions o = options(dir, 2);
    return train::Trainer(of, nn::CrossEntropyLoss(), sgd, o).fit(loader);
  };
  const nn::Sequential normalized = net();
  const StateDict before = toy::snapshot(normalized.state_dict());
  CHECK_THROWS_WITH_AS(fit(normalized, 33, {.batch = 16}, folder / "a"),
                       doctest::Contains("drop_last"), ValueError);
  CHECK_THROWS_WITH_AS(fit(normalized, 33, {.batch = 16}, folder / "a"),
                       doctest::Contains("33 samples make 2 batches of 16 and one more"),
                       ValueError);
  CHECK_THROWS_WITH_AS(fit(normalized, 33, {.batch = 1}, folder / "a"),
                       doctest::Contains("Use a larger batch size"), ValueError);
  CHECK(toy::difference(before, normalized.state_dict()) == "");
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
  CHECK(fit(normalized, 33, {.batch = 16, .drop_last = true}, folder / "b").steps == 4);
  CHECK(fit(normalized, 34, {.batch = 16}, folder / "c").steps == 6);
  // A network that can train on one sample does so.
  CHECK(fit(nn::Sequential(nn::Linear(2, 4)), 33, {.batch = 16}, folder / "d").steps == 6);
  nn::Sequential evaluated(nn::Linear(2, 8), nn::LayerNorm({8}), nn::Linear(8, 4));
  CHECK(fit(evaluated, 33, {.batch = 16}, folder / "e").steps == 6);
}

TEST_CASE("validation: drop_last may change on resume, from the current position on") {
  const TestFolder folder;
  // 120 samples are 7 batches of 16 and one of 8.
  const auto run = [&](const std::string& dir, bool drop, bool resume, int epochs,
                       std::int64_t stop) {
    Course course(6);
    data::Loader training(toy::points(120, 1), {.batch = 16, .drop_last = drop, .seed = 6});
    TrainOptions o = options(dir, epochs);
    o.resume = resume;
    o.stop_after = stop;
    struct Losses : train::Callback {
      void on_step(const train::StepReport& r) override {
        seen.push_back({r.epoch, r.step, r.step_in_epoch, r.steps_per_epoch});
        losses.push_back(r.loss);
      }
      std::vector<std::vector<std::int64_t>> seen;
      std::vector<double> losses;
    };
    const auto losses = std::make_shared<Losses>();
    o.callbacks = {losses};
    o.schedule = "constant";
    const train::TrainResult result =
        train::Trainer(course.net, nn::CrossEntropyLoss(), course.sgd, o)
            .fit(training, course.validation);
    return std::make_pair(result, *losses);
  };
  const auto whole = run(folder / "whole", false, false, 2, 0);
  const auto dropped = run(folder / "dropped", true, false, 2, 0);
  SUBCASE("at an epoch's end") {
    run(folder / "a", false, false, 1, 0);
    const auto [result, steps] = run(folder / "a", true, true, 3, 0);
    CHECK(result.steps == 8 + 7 + 7);
    CHECK(steps.seen.front() == std::vector<std::int64_t>{2, 9, 1, 7});
    CHECK(steps.seen.back() == std::vector<std::int64_t>{3, 22, 7, 7});
    // The second epoch has the same order: its batches equal those of an unchanged run.
    for (std::size_t k = 0; k < 7; ++k) CHECK(steps.losses[k] == whole.second.losses[8 + k]);
    CHECK(result.epochs.size() == 3);
    // Changed back in a second resume in the middle of an epoch.
    run(folder / "a", false, true, 5, 26);
    const auto [last, behind] = run(folder / "a", false, true, 5, 0);
    CHECK(last.steps == 8 + 7 + 7 + 8 + 8);
    CHECK(behind.seen.front() == std::vector<std::int64_t>{4, 27, 5, 8});
    CHECK(last.epochs.size() == 5);
  }
  SUBCASE("within an epoch") {
    for (const std::int64_t stop : {3, 7}) {
      const std::string dir = folder / std::to_string(stop);
      run(dir, false, false, 2, stop);
      const auto [result, steps] = run(dir, true, true, 2, 0);
      CHECK(result.steps == 14);
      CHECK(result.epochs.size() == 2);
      CHECK(result.epochs[0].step == 7);
      for (std::size_t k = 0; k < steps.losses.size(); ++k)
        CHECK(steps.losses[k] == dropped.second.losses[static_cast<std::size_t>(stop) + k]);
      CHECK(*result.epochs[1].validation_loss == *dropped.first.epochs[1].validation_loss);
    }
  }
  SUBCASE("not with other batches") {
    run(folder / "b", false, false, 1, 0);
    Course course(6);
    data::Loader training(toy::points(120, 1), {.batch = 20, .seed = 6});
    TrainOptions o = options(folder / "b", 2);
    o.resume = true;
    train::Trainer trainer(course.net, nn::CrossEntropyLoss(), course.sgd, o);
    CHECK_THROWS_WITH_AS(trainer.fit(training), doctest::Contains("batches of 16"), ValueError);
  }
}
