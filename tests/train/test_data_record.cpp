// The record of its data that a run folder gets during the first steps.
#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/layers.h>
#include <tenon/ops.h>

#include "io/folder.h"
#include "train/runs/sample_record.h"
#include "train/sessions/data_record.h"
#include "train/toy.h"

using namespace tenon;
using train::DataRecord;
using train::SampleRecord;

namespace {

std::shared_ptr<data::Dataset> rows(std::int64_t first, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t k = first; k < first + count; ++k) values.push_back(static_cast<float>(k));
  return data::from_tensors(Tensor::from(values, {count, 1}),
                            zeros({count}, DType::Int64).compute());
}

// Samples that nobody gets before the gate is opened.
class Gated : public data::Dataset {
 public:
  Gated() : Dataset({.input_shape = {1}, .classes = 1}) {}
  std::int64_t size() const override { return 10; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
    for (std::size_t k = 0; k < indices.size(); ++k) {
      static_cast<float*>(inputs)[k] = static_cast<float>(indices[k]);
      static_cast<std::int64_t*>(targets)[k] = 0;
    }
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable opened_;
  bool is_open_ = false;
};

std::string record_of(const std::string& dir) { return dir + "/" + train::kSampleRecordFile; }

// Notes when results are written and when steps end.
class Order : public train::Callback {
 public:
  void on_step(const train::StepReport& report) override {
    if (report.step == 1) text += "step ";
  }
  void on_checkpoint(const std::string& path) override {
    text += path.find("step-00000000") != std::string::npos ? "first " : "checkpoint ";
  }
  std::string text;
};

}  // namespace

TEST_CASE("data record: is written in the background, and finish() waits for it") {
  const TestFolder folder;
  const auto training = std::make_shared<Gated>();
  const train::DataSets sets{training, nullptr, rows(8, 5)};
  DataRecord record(sets, "");
  record.begin(folder.path());  // returns although no sample can be read yet
  CHECK(!std::filesystem::exists(record_of(folder.path())));
  training->open();
  record.finish();
  CHECK(SampleRecord::load(record_of(folder.path())).is_of(*training));
  const auto seen = record.test_seen();
  REQUIRE(seen.has_value());
  CHECK(seen->seen == 2);
  CHECK(seen->samples == 5);
}

TEST_CASE("data record: what cannot be written is an error of finish()") {
  const train::DataSets sets{rows(0, 4), nullptr, nullptr};
  DataRecord record(sets, "");
  record.begin("/dev/null/nowhere");
  CHECK_THROWS_AS(record.finish(), IoError);
  CHECK(!record.test_seen().has_value());
}

TEST_CASE(
    "data record: a held-out part that has changed since is told, and its first digest stays") {
  const TestFolder folder;
  {
    const train::DataSets sets{rows(0, 10), rows(10, 3), rows(20, 4)};
    DataRecord record(sets, "");
    record.begin(folder.path());
    record.finish();
  }
  const auto changes = [&](std::int64_t validation, std::int64_t test) {
    const train::DataSets sets{rows(0, 10), rows(validation, 3), rows(test, 4)};
    DataRecord record(sets, folder.path());
    record.begin(folder.path());
    record.finish();
    std::string all;
    for (const Note& note : record.changes()) all += note.text;
    return all;
  };
  CHECK(changes(10, 20) == "");
  CHECK(changes(10, 21).find("the test part has changed since the run began") == 0);
  CHECK(changes(11, 20).find("the validation part has changed since the run began") == 0);
  CHECK(changes(10, 20) == "");
}

TEST_CASE("data record: a run asks for it before it writes what steps have changed, not earlier") {
  const TestFolder folder;
  const auto order = std::make_shared<Order>();
  manual_seed(0);
  const nn::Sequential net(nn::Linear(2, 8), nn::ReLU(), nn::Linear(8, 4));
  optim::Sgd sgd(net, {.lr = 0.1});
  data::Loader train(toy::points(120, 1), {.batch = 16}),
      validation(toy::points(40, 2), {.batch = 30, .shuffle = false});
  train::TrainOptions o;
  o.epochs = 1;
  o.run_dir = folder / "run";
  o.callbacks = {order};
  o.write_extra_files = [&](const std::string&) { order->text += "beside "; };
  o.before_results = [&] { order->text += "results "; };
  train::Trainer(net, nn::CrossEntropyLoss(), sgd, o).fit(train, validation);
  // The best weights, the checkpoint behind the epoch, and the end.
  CHECK(order->text == "beside first step results results checkpoint results ");
}
