// Registered tasks with other targets than one class or number: a class for each pixel, and a class
// and a number in one target. Runs, resumes, opened models, evaluations and predictions take them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/metrics.h>
#include <tenon/ops.h>
#include <tenon/task.h>
#include <tenon/train.h>

#include "io/folder.h"

using namespace tenon;

namespace {

constexpr std::int64_t kSide = 12;
constexpr char kPixels[] = "pixels", kShare[] = "kind_accuracy", kError[] = "size_error";

class MeanMeter : public train::Meter {
 public:
  explicit MeanMeter(const char* name) : name_(name) {}
  void add(const train::MeasuredBatch& batch) override {
    const Tensor right = eq(argmax(batch.scores, 1), batch.target);
    mean_.add(mean(cast(right, DType::Float64)).item(), static_cast<double>(right.numel()));
  }
  void finish(train::Evaluation& out) const override { out.metrics.set(name_, mean_.value()); }

 private:
  const char* name_;
  metrics::RunningMean mean_;
};

// Targets [N, H, W] of classes, data::kIgnoredTarget where a pixel has none; scores [N, 2, H, W].
class Segmentation : public train::Task {
 public:
  std::string name() const override { return "test_segmentation"; }
  std::int64_t outputs(const data::Dataset&) const override { return 2; }
  nn::Loss loss(const train::TaskNetwork&) const override {
    return nn::CrossEntropyLoss{.ignore_index = data::kIgnoredTarget};
  }
  std::vector<train::MetricInfo> metrics() const override {
    return {{.name = kPixels, .label = "pixels right", .form = train::MetricForm::Share}};
  }
  std::string monitored() const override { return kPixels; }
  std::unique_ptr<train::Meter> meter(const data::Dataset&) const override {
    return std::make_unique<MeanMeter>(kPixels);
  }
  Tensor correct(const Tensor& scores, const Tensor& target, const Tensor& kept) const override {
    const Tensor right = eq(argmax(scores, 1), target);
    return sum(kept.defined() ? logical_and(right, kept) : right);
  }
  bool has_training_accuracy(const data::Dataset&) const override { return true; }
  Tensor predictions(const Tensor& scores) const override { return softmax(scores, 1); }
};

// Targets [N, 2] of float32: a class from 0 to 2 and a size; scores [N, 4].
class KindAndSize : public train::Task {
 public:
  std::string name() const override { return "test_kind_and_size"; }
  std::int64_t outputs(const data::Dataset&) const override { return 4; }
  nn::Loss loss(const train::TaskNetwork&) const override {
    return [](const Tensor& scores, const Tensor& target) {
      const Tensor kinds = cast(select(target, 1, 0), DType::Int64);
      return cross_entropy(narrow(scores, 1, 0, 3), kinds) +
             mse_loss(select(scores, 1, 3), select(target, 1, 1));
    };
  }
  std::vector<train::MetricInfo> metrics() const override {
    return {{.name = kShare, .form = train::MetricForm::Share},
            {.name = kError, .form = train::MetricForm::Quantity, .higher_is_better = false}};
  }
  std::string monitored() const override { return kError; }
  std::unique_ptr<train::Meter> meter(const data::Dataset&) const override {
    class Both : public train::Meter {
     public:
      void add(const train::MeasuredBatch& batch) override {
        kinds_.add({.scores = narrow(batch.scores, 1, 0, 3),
                    .target = cast(select(batch.target, 1, 0), DType::Int64)});
        const Tensor off = abs(select(batch.scores, 1, 3) - select(batch.target, 1, 1));
        sizes_.add(mean(off).item(), static_cast<double>(off.numel()));
      }
      void finish(train::Evaluation& out) const override {
        kinds_.finish(out);
        out.metrics.set(kError, sizes_.value());
      }

     private:
      MeanMeter kinds_{kShare};
      metrics::RunningMean sizes_;
    };
    return std::make_unique<Both>();
  }
  Tensor predictions(const Tensor& scores) const override {
    return concat({softmax(narrow(scores, 1, 0, 3)), narrow(scores, 1, 3, 1)}, 1);
  }
};

template <class T>
void register_once() {
  const auto task = std::make_shared<T>();
  const std::vector<std::string> names = train::task_names();
  if (std::find(names.begin(), names.end(), task->name()) == names.end())
    train::register_task(task);
}

// Noisy images with a bright rectangle, and which pixels belong to it. The last row has no class.
void write_rectangles(const TestFolder& folder, std::int64_t count) {
  Generator random(1);
  const Tensor corners = rand({count, 2}, DType::Float32, random) * 6,
               places = arange(0, kSide, 1, DType::Float32);
  const auto within = [&](int axis, const Ints& shape) {
    const Tensor from = reshape(select(corners, 1, axis), {count, 1, 1}),
                 place = reshape(places, shape);
    return logical_and(ge(place, from), lt(place, from + 6));
  };
  const Tensor mask = logical_and(within(0, {1, kSide, 1}), within(1, {1, 1, kSide}));
  const Tensor image =
      cast(mask, DType::Float32) + randn({count, kSide, kSide}, DType::Float32, random) * 0.3;
  const Tensor last = reshape(ge(places, kSide - 1.0), {1, kSide, 1});
  io::save_npy(folder / "images.npy", unsqueeze(image, 1).compute());
  io::save_npy(folder / "maps.npy",
               where(last, data::kIgnoredTarget, cast(mask, DType::Int64)).compute());
  io::write_file(folder / "net.toml", R"(input = [1, 12, 12]
classes = 2
layers = [ { conv2d = 6, kernel = 5, padding = 2 }, "relu",
           { conv2d = "classes", kernel = 5, padding = 2 } ]
)");
}

train::Settings settings_of(const std::string& model, const std::string& data,
                            const std::string& task) {
  train::Settings settings = train::Settings::for_model(model);
  for (const auto& [key, value] :
       {std::pair("data", data.c_str()), std::pair("task", task.c_str()), std::pair("epochs", "3"),
        std::pair("batch", "16"), std::pair("optimizer", "adam"), std::pair("lr", "0.02"),
        std::pair("threads", "1")})
    settings.set(key, value);
  return settings;
}

}  // namespace

TEST_CASE("own targets: a run learns a class for each pixel") {
  register_once<Segmentation>();
  const TestFolder folder;
  write_rectangles(folder, 160);
  const std::string data = "npy:" + (folder / "images.npy") + "," + (folder / "maps.npy"),
                    run = folder / "run";
  train::Settings settings = settings_of(folder / "net.toml", data, "test_segmentation");
  const train::TrainResult result = train::start_run(settings, run);
  CHECK(result.best_figure == "validation pixels right");
  REQUIRE(result.epochs.size() == 3);
  CHECK(*result.epochs.back().train_accuracy > 0.9);
  CHECK(*result.epochs.back().train_accuracy <= 1);
  // The row without classes is never right: 11 of 12 at most.
  CHECK(*result.test->metrics[kPixels] > 0.85);
  CHECK(*result.test->metrics[kPixels] <= 11.0 / 12);
  CHECK(train::resume_run(run, {}, {{"epochs", "4"}}).epochs.size() == 4);

  for (const std::string& opened : {run, run + "/model.safetensors"}) {
    const train::TrainedModel model = train::TrainedModel::open(opened);
    const train::Evaluation found = model.evaluate(data, {.part = data::Split::Test});
    CHECK(found.targets == found.items * (kSide - 1) * kSide);
    CHECK(found.ignored == found.items * kSide);
    CHECK(*found.metrics[kPixels] > 0.85);
    const Tensor images = io::load_npy(folder / "images.npy");
    const Tensor shares = model.predict(narrow(images, 0, 0, 5).compute());
    CHECK(shares.shape() == Shape{5, 2, kSide, kSide});
    CHECK(amax(abs(sum(shares, {1}) - 1)).item() < 1e-5);
    std::int64_t predicted = 0;
    model.predict(*model.test_set(data), 0, 3, [&](train::Prediction&& p, const Tensor& input) {
      ++predicted;
      CHECK(p.values.size() == 2 * kSide * kSide);
      CHECK(p.label == -1);
      CHECK(input.shape() == Shape{1, 1, kSide, kSide});
    });
    CHECK(predicted == 3);
  }

  // Pixels that move leave their classes behind.
  settings.set("augment", "flip");
  CHECK_THROWS_WITH_AS(train::start_run(settings, ""), doctest::Contains("setting 'augment'"),
                       ValueError);
}

TEST_CASE("own targets: a run learns a class and a number from one target") {
  register_once<KindAndSize>();
  const TestFolder folder;
  Generator random(2);
  const Tensor x = rand({300, 2}, DType::Float32, random).compute();
  const Tensor kind = floor(select(x, 1, 0) * 3), size = select(x, 1, 1) * 2 + 1;
  io::save_npy(folder / "x.npy", x);
  io::save_npy(folder / "y.npy", stack({kind, size}, 1).compute());
  const std::string data = "npy:" + (folder / "x.npy") + "," + (folder / "y.npy");
  train::Settings settings = settings_of("mlp:2-32-4", data, "test_kind_and_size");
  settings.set("epochs", "30");
  const std::string run = folder / "run";
  const train::TrainResult result = train::start_run(settings, run);
  CHECK(result.best_figure == "validation size_error");
  CHECK(*result.test->metrics[kShare] > 0.85);
  CHECK(*result.test->metrics[kError] < 0.1);
  CHECK_FALSE(result.epochs.back().train_accuracy);

  const train::TrainedModel model = train::TrainedModel::open(run);
  const train::Evaluation found = model.evaluate();
  CHECK(*found.metrics[kError] == *result.test->metrics[kError]);
  CHECK(model.task().rows(found).size() == 2);
  const std::vector<float> told =
      model.predict(Tensor::from(std::vector<float>{0.9f, 0.5f}, {1, 2})).to_vector<float>();
  REQUIRE(told.size() == 4);
  CHECK(told[2] > 0.5f);
  CHECK(told[3] == doctest::Approx(2).epsilon(0.1));
  model.predict(*model.test_set(data), 0, 1, [&](train::Prediction&& p, const Tensor&) {
    CHECK(p.values.size() == 4);
    CHECK(p.target.empty());  // not one number for each value
  });
}

TEST_CASE("own targets: random targets have the form that a task's loss takes") {
  const train::Settings settings;
  const models::Info info = settings.model_info();
  const nn::AnyModule net = nn::Linear(1, 1);
  const auto loss_of = [&](const char* name, const Shape& shape) {
    const auto task = train::find_task(name);
    const Tensor scores = task->scores(randn(shape));
    return task->loss({settings, info, net})(scores, task->random_targets(scores.shape())).item();
  };
  CHECK(loss_of("classification", {8, 5}) > 0);
  CHECK(loss_of("classification", {2, 5, 3, 3}) > 0);  // a class for each place
  CHECK(loss_of("multi_label", {8, 5}) > 0);
  CHECK(loss_of("regression", {8, 5}) > 0);
  for (const char* name : {"language", "masked_language", "translation", "spans"})
    CHECK(loss_of(name, {4, 6, 9}) > 0);
  const auto labels = train::find_task("multi_label")->random_targets({50, 4});
  CHECK(all(logical_or(eq(labels, 0), eq(labels, 1))).item() == 1);
  CHECK_THROWS_AS(train::find_task("classification")->random_targets({8}), ShapeError);
}
