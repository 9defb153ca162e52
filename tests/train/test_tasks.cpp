// Tasks: their names, the task of a run, a user's tasks in a Trainer and in runs, losses that
// name their task, and multi-label classification.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/task.h>
#include <tenon/train.h>

#include "data/large_samples.h"
#include "io/folder.h"
#include "train/toy.h"

using namespace tenon;

namespace {

constexpr char kDistance[] = "distance";

// Classes with an order: how far predictions are from them is measured, and decides.
class DistanceMeter : public train::Meter {
 public:
  void add(const train::MeasuredBatch& batch) override {
    const auto predicted = argmax(batch.scores, 1).to_vector<std::int64_t>(),
               wanted = batch.target.to_vector<std::int64_t>();
    for (std::size_t k = 0; k < wanted.size(); ++k)
      mean_.add(static_cast<double>(std::abs(predicted[k] - wanted[k])));
  }
  void finish(train::Evaluation& out) const override { out.metrics.set(kDistance, mean_.value()); }

 private:
  metrics::RunningMean mean_;
};

class Ordinal : public train::Classification {
 public:
  explicit Ordinal(std::string name = "test_ordinal") : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::vector<train::MetricInfo> metrics() const override {
    return {{.name = kDistance,
             .label = "mean distance",
             .form = train::MetricForm::Quantity,
             .higher_is_better = false}};
  }
  std::string monitored() const override { return kDistance; }
  std::unique_ptr<train::Meter> meter(const data::Dataset&) const override {
    return std::make_unique<DistanceMeter>();
  }

 private:
  std::string name_;
};

void register_ordinal() {
  const std::vector<std::string> names = train::task_names();
  if (std::find(names.begin(), names.end(), "test_ordinal") == names.end())
    train::register_task(std::make_shared<Ordinal>());
}

std::string said(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// x in [0, 1) and its third of the range, as a table.
void write_thirds(const std::string& file) {
  std::ofstream out(file);
  out << "x,label\n";
  for (int k = 0; k < 300; ++k) {
    const int x = k * 37 % 300;
    out << x / 300.0 << "," << x / 100 << "\n";
  }
}

train::Settings ordinal_settings(const std::string& table) {
  train::Settings settings;
  settings.set("model", "mlp:1-16-3");
  settings.set("data", "csv:" + table);
  settings.set("task", "test_ordinal");
  settings.set("epochs", "6");
  settings.set("batch", "16");
  settings.set("threads", "1");
  return settings;
}

double best_of(const train::TrainResult& result) {
  double best = 1e9;
  for (const train::EpochReport& e : result.epochs)
    best = std::min(best, *e.validation_metrics[kDistance]);
  return best;
}

}  // namespace

TEST_CASE("tasks: names, and what is refused") {
  const std::vector<std::string> names = train::task_names();
  for (const char* name : {"classification", "multi_label", "regression", "language",
                           "masked_language", "translation", "spans"}) {
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
    CHECK(train::find_task(name)->name() == name);
  }
  const std::string unknown = said([] { train::find_task("regresion"); });
  CHECK(unknown.find("did you mean 'regression'?") != std::string::npos);
  CHECK(unknown.find("multi_label") != std::string::npos);
  CHECK_THROWS_AS(train::register_task(nullptr), ValueError);
  for (const char* name : {"", "Two words", "regression"})
    CHECK_THROWS_AS(train::register_task(std::make_shared<Ordinal>(name)), ValueError);
  train::Settings settings;
  const std::string setting = said([&] { settings.set("task", "nope"); });
  CHECK(setting.find("setting 'task' is 'nope', must be one of classification") == 0);
}

TEST_CASE("tasks: networks of text have their own, which the setting can replace") {
  const auto task = [](const std::string& model) {
    return train::task_of(train::Settings::for_model(model))->name();
  };
  CHECK(task("lenet5") == "classification");
  CHECK(task("bert_classifier") == "classification");
  CHECK(task("gpt2") == "language");
  CHECK(task("bert") == "masked_language");
  CHECK(task("transformer") == "translation");
  CHECK(task("bert_spans") == "spans");
  train::Settings settings = train::Settings::for_model("gpt2");
  settings.set("task", "regression");
  CHECK(train::task_of(settings)->name() == "regression");
}

TEST_CASE("tasks: a task without a loss is for a Trainer") {
  class Bare : public train::Task {
   public:
    std::string name() const override { return "bare"; }
  };
  const Bare bare;
  const train::Settings settings;
  const models::Info info = settings.model_info();
  const nn::AnyModule net = nn::Linear(1, 1);
  CHECK_THROWS_AS(bare.loss({settings, info, net}), NotSupported);
  CHECK(bare.metrics().empty());
  CHECK(bare.words(info).does.find("'bare'") != std::string::npos);
}

TEST_CASE("tasks: a Trainer chooses the best epoch by a user's task") {
  toy::Session session(5);
  const train::TrainResult result = session.fit({.epochs = 5, .task = std::make_shared<Ordinal>()});
  CHECK(result.best_figure == "validation mean distance");
  CHECK(*result.best == best_of(result));
  CHECK(*result.epochs[static_cast<std::size_t>(result.best_epoch - 1)]
             .validation_metrics[kDistance] == *result.best);
  CHECK(!result.epochs[0].validation_metrics["accuracy"]);
}

TEST_CASE("tasks: a monitored metric that is never set is refused") {
  class Silent : public Ordinal {
   public:
    std::string monitored() const override { return "silence"; }
  };
  toy::Session session(5);
  const std::string message =
      said([&] { session.fit({.epochs = 1, .task = std::make_shared<Silent>()}); });
  CHECK(message.find("monitors 'silence'") != std::string::npos);
}

TEST_CASE("tasks: names of metrics that the logs cannot store are refused") {
  class Named : public Ordinal {
   public:
    explicit Named(std::vector<std::string> names) : names_(std::move(names)) {}
    std::vector<train::MetricInfo> metrics() const override {
      std::vector<train::MetricInfo> out = Ordinal::metrics();
      for (const std::string& name : names_) out.push_back({.name = name});
      return out;
    }

   private:
    std::vector<std::string> names_;
  };
  const auto message = [](std::vector<std::string> names) {
    toy::Session session(5);
    return said([&] { session.fit({.epochs = 1, .task = std::make_shared<Named>(names)}); });
  };
  CHECK(message({"f1", "precision@5"}).empty());
  CHECK(message({"loss"}).find("a metric 'loss', which the logs have already") !=
        std::string::npos);
  CHECK(message({"samples"}).find("which the logs have already") != std::string::npos);
  CHECK(message({"f1", "f1"}).find("a metric 'f1' twice") != std::string::npos);
  for (const char* name : {"", "a,b", "a\"b", "a\nb"})
    CHECK(message({name}).find("without commas, quotes and line breaks") != std::string::npos);
}

TEST_CASE("tasks: a metric that is never a number has no best epoch") {
  class Nowhere : public train::Meter {
   public:
    void add(const train::MeasuredBatch&) override {}
    void finish(train::Evaluation& out) const override { out.metrics.set(kDistance, NAN); }
  };
  class Undefined : public Ordinal {
   public:
    std::unique_ptr<train::Meter> meter(const data::Dataset&) const override {
      return std::make_unique<Nowhere>();
    }
  };
  class Told : public train::Callback {
   public:
    void on_note(const std::string& note) override { all += note; }
    std::string all;
  };
  const auto told = std::make_shared<Told>();
  toy::Session session(5);
  const train::TrainResult result =
      session.fit({.epochs = 2, .task = std::make_shared<Undefined>(), .callbacks = {told}});
  CHECK(!result.best);
  CHECK(result.kept_epoch == 2);
  CHECK(told->all.find("the validation mean distance was NaN in all 2 times") == 0);
}

TEST_CASE("tasks: a registered task in a run, its logs, a resume and an evaluation") {
  register_ordinal();
  const TestFolder folder;
  write_thirds(folder / "thirds.csv");
  train::Settings settings = ordinal_settings(folder / "thirds.csv");
  const std::string run = folder / "run";
  const train::TrainResult first = train::start_run(settings, run);
  CHECK(first.best_figure == "validation mean distance");
  CHECK(*first.best == best_of(first));
  CHECK(*first.best < 0.5);
  CHECK(train::Settings::of_run(run).task == "test_ordinal");

  const std::string csv = io::read_file(run + "/log.csv");
  CHECK(csv.find(",validation_r2,validation_distance,lr,") != std::string::npos);
  CHECK(csv.find(",test_r2,test_distance\n") != std::string::npos);
  const std::string json = io::read_file(run + "/log.jsonl");
  CHECK(json.find("\"validation_distance\":") != std::string::npos);
  CHECK(json.find("\"test_distance\":") != std::string::npos);

  const train::TrainedModel model = train::TrainedModel::open(run);
  CHECK(model.task().name() == "test_ordinal");
  const train::Evaluation evaluation = model.evaluate();
  CHECK(*evaluation.metrics[kDistance] == *first.test->metrics[kDistance]);
  const std::vector<train::EvaluationRow> rows = model.task().rows(evaluation);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].title == "mean distance");
  CHECK(rows[0].headline);
  const Tensor shares = model.predict(Tensor::from(std::vector<float>{0.1f, 0.9f}, {2, 1}));
  CHECK(shares.shape() == Shape{2, 3});
  CHECK(sum(shares).item() == doctest::Approx(2));

  // Earlier measurements are known after a resume.
  const train::TrainResult longer = train::resume_run(run, {}, {{"epochs", "8"}});
  REQUIRE(longer.epochs.size() == 8);
  for (std::size_t k = 0; k < first.epochs.size(); ++k) {
    CHECK(*longer.epochs[k].validation_metrics[kDistance] ==
          *first.epochs[k].validation_metrics[kDistance]);
    CHECK(std::distance(longer.epochs[k].validation_metrics.begin(),
                        longer.epochs[k].validation_metrics.end()) == 1);
  }
  CHECK(*longer.best == best_of(longer));

  settings.early_stopping = 1;
  settings.epochs = 50;
  const train::TrainResult stopped = train::start_run(settings, "");
  CHECK(stopped.reason == train::StopReason::EarlyStop);
  CHECK(std::ssize(stopped.epochs) == stopped.best_epoch + 1);
}

TEST_CASE("tasks: a regression with another loss, from a table to predictions") {
  class Absolute : public train::Regression {
   public:
    std::string name() const override { return "test_absolute"; }
    nn::Loss loss(const train::TaskNetwork&) const override {
      return [](const Tensor& output, const Tensor& target) {
        return l1_loss(reshape(output, {output.numel()}), reshape(target, {target.numel()}));
      };
    }
  };
  train::register_task(std::make_shared<Absolute>());
  const TestFolder folder;
  std::ofstream(folder / "prices.csv") << [] {
    std::string rows = "size,price\n";
    for (int k = 0; k < 200; ++k) {
      const int size = k * 37 % 200;
      rows += std::to_string(size) + "," + std::to_string(500 + 3 * size) + ".5\n";
    }
    return rows;
  }();
  train::Settings settings;
  for (const auto& [key, value] : {std::pair("model", "mlp:1-16-1"), std::pair("epochs", "40"),
                                   std::pair("batch", "16"), std::pair("lr", "0.001")})
    settings.set(key, value);
  settings.set("data", "csv:" + (folder / "prices.csv"));
  settings.set("task", "test_absolute");
  const std::string run = folder / "run";
  const train::TrainResult result = train::start_run(settings, run);
  CHECK(result.best_figure == "validation loss");
  CHECK(*result.test->metrics["r2"] > 0.9);
  CHECK(result.test->loss == doctest::Approx(*result.test->metrics["mae"]).epsilon(1e-4));
  // The task is read from the model's file.
  const train::TrainedModel model = train::TrainedModel::open(run + "/model.safetensors");
  CHECK(model.task().name() == "test_absolute");
  CHECK(model.class_names().empty());
  CHECK(model.predict_csv(folder / "prices.csv", folder / "told.csv") == 200);
  CHECK(io::read_file(folder / "told.csv").find("size,price,prediction\n") == 0);
  CHECK(model.predict(Tensor::from(std::vector<float>{100}, {1, 1})).item() ==
        doctest::Approx(800).epsilon(0.1));
}

TEST_CASE("tasks: a user's loss declares that it is a regression") {
  // Classes that are predicted as numbers.
  const auto distance = [](const Tensor& output, const Tensor& target) {
    return l1_loss(reshape(output, {output.numel()}), cast(target, output.dtype()));
  };
  const auto fit = [](const nn::Loss& loss) {
    manual_seed(2);
    const nn::Sequential net(nn::Linear(2, 8), nn::Tanh(), nn::Linear(8, 1));
    optim::Adam adam(net, {.lr = 0.02});
    data::Loader train(toy::points(200, 1), {.batch = 20}), validation(toy::points(60, 2));
    train::Trainer trainer(net, loss, adam, {.epochs = 3});
    const train::TrainResult result = trainer.fit(train, validation);
    return std::pair(result, trainer.evaluate(validation));
  };
  struct Named {
    Tensor operator()(const Tensor& output, const Tensor& target) const {
      return mse_loss(reshape(output, {output.numel()}), cast(target, output.dtype()));
    }
    const char* task = "regression";
  };
  CHECK(nn::Loss(Named()).task() == "regression");
  CHECK(nn::Loss(distance).task().empty());
  for (const nn::Loss& loss : {nn::Loss(Named()), nn::Loss(distance).for_task("regression")}) {
    const auto [result, evaluation] = fit(loss);
    CHECK(result.best_figure == "validation loss");
    const train::EpochReport& last = result.epochs.back();
    CHECK(!last.train_accuracy);
    CHECK(!last.validation_metrics["accuracy"]);
    CHECK(last.validation_metrics["mae"].has_value());
    CHECK(*last.validation_metrics["r2"] > 0);
    REQUIRE(evaluation.errors.has_value());
    CHECK(evaluation.errors->cases() == 60);
    CHECK(std::isnan(evaluation.accuracy));
  }
  // Without it the classes are taken for classes, which one output cannot tell.
  CHECK_THROWS_AS(fit(distance), ShapeError);
  CHECK_THROWS_AS(fit(nn::Loss(distance).for_task("nope")), ValueError);
}

TEST_CASE("tasks: the metrics of several labels") {
  nn::Linear net(2, 2);
  net.load_state_dict({{"weight", Tensor::from(std::vector<float>{1, 0, 0, 1}, {2, 2})},
                       {"bias", zeros({2}).compute()}});
  optim::Sgd sgd(net, {.lr = 0});
  const auto set =
      data::from_tensors(Tensor::from(std::vector<float>{1, -1, 2, 3, -1, -2, 1, 1}, {4, 2}),
                         Tensor::from(std::vector<float>{1, 0, 1, 0, 0, 1, 1, 1}, {4, 2}));
  data::Loader loader(set, {.batch = 3, .shuffle = false});
  const auto task = train::find_task("multi_label");
  train::Trainer trainer(net,
                         [](const Tensor& scores, const Tensor& target) {
                           return binary_cross_entropy_with_logits(scores, target);
                         },
                         sgd, {.epochs = 1, .task = task});
  const train::Evaluation e = trainer.evaluate(loader);
  CHECK(*e.metrics["f1"] == doctest::Approx(0.8));
  CHECK(*e.metrics["exact"] == doctest::Approx(0.5));
  CHECK(*e.metrics["accuracy"] == doctest::Approx(0.75));
  CHECK(e.targets == 8);
  const train::TrainResult result = trainer.fit(loader, loader);
  CHECK(result.best_figure == "validation F1");
  CHECK(*result.epochs[0].train_accuracy == doctest::Approx(0.75));
  const std::vector<float> shares =
      task->predictions(Tensor::from(std::vector<float>{0, 100}, {1, 2}))
          .compute()
          .to_vector<float>();
  CHECK(shares == std::vector<float>{0.5f, 1});
}

TEST_CASE("tasks: labels of large inputs are checked a few samples at a time") {
  const LargeSamples set({.target_shape = {2}, .target_dtype = DType::Float32},
                         [](std::span<const std::int64_t> indices, void* targets) {
                           std::fill_n(static_cast<float*>(targets), 2 * indices.size(), 1.0f);
                         });
  const train::Settings settings;
  const models::Info info = models::info("mlp:1048576-2");
  train::find_task("multi_label")->check_data({settings, info, set}, data::Split::Train);
  CHECK(set.most() > 0);
  CHECK(set.most() <= std::size_t{32} << 20);
}

TEST_CASE("tasks: a run learns several labels from arrays, and refuses other targets") {
  const TestFolder folder;
  Generator random(3);
  const Tensor x = (rand({240, 3}, DType::Float32, random) * 2 - 1).compute();
  io::save_npy(folder / "x.npy", x);
  io::save_npy(folder / "y.npy", cast(gt(x, 0), DType::Float32).compute());
  io::save_npy(folder / "prices.npy", (x * 3).compute());
  train::Settings settings;
  settings.set("model", "mlp:3-16-3");
  settings.set("data", "npy:" + (folder / "x.npy") + "," + (folder / "y.npy"));
  settings.set("task", "multi_label");
  settings.set("epochs", "8");
  settings.set("batch", "16");
  const std::string run = folder / "run";
  const train::TrainResult result = train::start_run(settings, run);
  CHECK(result.best_figure == "validation F1");
  CHECK(*result.test->metrics["f1"] > 0.9);
  CHECK(*result.test->metrics["accuracy"] > 0.9);
  const train::TrainedModel model = train::TrainedModel::open(run);
  CHECK(model.class_names() == std::vector<std::string>{"0", "1", "2"});
  const std::vector<float> shares =
      model.predict(Tensor::from(std::vector<float>{0.9f, -0.9f, 0.9f}, {1, 3})).to_vector<float>();
  CHECK(shares[0] > 0.5f);
  CHECK(shares[1] < 0.5f);
  CHECK(shares[2] > 0.5f);
  std::vector<float> target;
  model.predict(*model.test_set(settings.data), 0, 1,
                [&](train::Prediction&& p, const Tensor&) { target = p.target; });
  CHECK(target.size() == 3);

  // Other data is held to the same.
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), 2.0f}) {
    std::vector<float> labels(240 * 3, 1);
    labels[7] = value;
    io::save_npy(folder / "others.npy", Tensor::from(labels, {240, 3}));
    const std::string refused =
        said([&] { model.evaluate("npy:" + (folder / "x.npy") + "," + (folder / "others.npy")); });
    CHECK(refused.find("a label is 0 or 1") != std::string::npos);
  }

  settings.set("data", "npy:" + (folder / "x.npy") + "," + (folder / "prices.npy"));
  const std::string numbers = said([&] { train::start_run(settings, ""); });
  CHECK(numbers.find("a label is 0 or 1") != std::string::npos);
  settings.set("data", "npy:" + (folder / "x.npy") + "," + (folder / "y.npy"));
  settings.set("model", "mlp:3-16-2");
  CHECK(said([&] { train::start_run(settings, ""); }).find("has 3 labels") != std::string::npos);
}
