// The reports of epochs in a checkpoint: every value is read back, and damaged tensors are refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/ops.h>

#include "train/runs/epoch_table.h"
#include "train/runs/records.h"

using namespace tenon;
using train::EpochReport;

namespace {

std::vector<EpochReport> some_epochs() {
  std::vector<EpochReport> out(4);
  for (std::size_t k = 0; k < out.size(); ++k) {
    EpochReport& e = out[k];
    e.epoch = static_cast<int>(k) + 1;
    e.step = (std::int64_t{1} << 40) + e.epoch;
    e.train_loss = 1.0 / 3 / e.epoch;
    e.lr = 1e-300;
    e.seconds = 0.1;
    e.items_per_s = 1e9;
    e.best = k == 1;
  }
  out[0].train_loss = std::numeric_limits<double>::quiet_NaN();
  out[1].train_accuracy = 0.25;
  out[1].validation_loss = std::numeric_limits<double>::infinity();
  out[1].validation_samples = 17;
  out[1].validation_metrics.set("accuracy", 0.5);
  out[1].validation_metrics.set("own", std::numeric_limits<double>::quiet_NaN());
  out[3].validation_metrics.set("own", 2);  // in another order, and one is new
  out[3].validation_metrics.set("late", 3);
  out[3].validation_metrics.set("accuracy", 1);
  return out;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool same(const std::optional<double>& a, const std::optional<double>& b) {
  return a.has_value() == b.has_value() && same(a.value_or(0), b.value_or(0));
}

void check_same(const EpochReport& a, const EpochReport& b) {
  CHECK(a.epoch == b.epoch);
  CHECK(a.step == b.step);
  CHECK(same(a.train_loss, b.train_loss));
  CHECK(same(a.train_accuracy, b.train_accuracy));
  CHECK(same(a.validation_loss, b.validation_loss));
  CHECK(a.validation_samples == b.validation_samples);
  CHECK(a.lr == b.lr);
  CHECK(a.seconds == b.seconds);
  CHECK(a.items_per_s == b.items_per_s);
  CHECK(a.best == b.best);
  for (const char* name : {"accuracy", "own", "late"})
    CHECK(same(a.validation_metrics[name], b.validation_metrics[name]));
}

}  // namespace

TEST_CASE("epoch table: every value of a report is read back") {
  const std::vector<EpochReport> written = some_epochs();
  io::TensorMap tensors{{"model.weight", ones({2})}};
  const std::string columns = train::add_epochs(written, tensors);
  CHECK(tensors.size() == 3);
  const std::vector<EpochReport> read = train::take_epochs(columns, tensors, "own");
  CHECK(tensors.size() == 1);
  REQUIRE(read.size() == written.size());
  for (std::size_t k = 0; k < read.size(); ++k) {
    CAPTURE(k);
    check_same(read[k], written[k]);
  }
  CHECK(train::add_epochs({}, tensors).empty());
  CHECK(train::take_epochs("", tensors, "own").empty());
  CHECK(tensors.size() == 1);
}

TEST_CASE("epoch table: damaged tensors are refused") {
  io::TensorMap whole;
  const std::string columns = train::add_epochs(some_epochs(), whole);
  const auto refused = [&](const std::string& names, io::TensorMap tensors) {
    CHECK_THROWS_WITH_AS(train::take_epochs(names, tensors, "step-7"),
                         doctest::Contains("step-7: the reports of its epochs"), FormatError);
  };
  refused("a,b", whole);
  refused(columns + ",more", whole);
  refused(columns, {});
  for (const double bad : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    io::TensorMap other = whole;
    const Tensor values = other["epochs.values"];
    other["epochs.values"] = full(values.shape(), bad, DType::Float64).compute();
    refused(columns, other);
  }
  io::TensorMap other = whole;
  other["epochs.values"] = zeros({4, 3}, DType::Float64).compute();
  refused(columns, other);
  other = whole;
  other["epochs.present"] = zeros(whole["epochs.values"].shape()).compute();
  refused(columns, other);
}

TEST_CASE("epoch table: checkpoints of earlier builds have the reports in their state") {
  train::Progress progress;
  progress.steps_per_epoch = 3;
  std::string text = train::to_json(progress);
  text.insert(text.size() - 1,
              R"(,"history":[{"epoch":1,"step":3,"train_loss":"nan","validation_loss":0.5,)"
              R"("validation_accuracy":0.75,"lr":0.1,"seconds":1,"items_per_s":2,"best":true}])");
  const train::Progress read = train::progress_from_json(text, "own");
  REQUIRE(read.history.size() == 1);
  CHECK(std::isnan(read.history[0].train_loss));
  CHECK(*read.history[0].validation_metrics["accuracy"] == 0.75);
  CHECK(read.history[0].best);
}

// As text, 10,000 reports took 27 ms of processor time in each checkpoint.
TEST_CASE("epoch table: ten thousand epochs take a few milliseconds") {
  const std::vector<EpochReport> one = some_epochs();
  std::vector<EpochReport> many;
  for (int k = 0; k < 10'000; ++k) many.push_back(one[1]);
  double best = 1;
  for (int round = 0; round < 10; ++round) {
    io::TensorMap tensors;
    const auto start = std::chrono::steady_clock::now();
    (void)train::add_epochs(many, tensors);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  CHECK(best < 0.01);
}
