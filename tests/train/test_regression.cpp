// Regression: metrics, columns of tables standardized in the model, and errors for networks whose
// outputs do not fit the data.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/train.h>

#include "io/folder.h"

using namespace tenon;

namespace {

// Columns of very different magnitudes, and a price that depends on all of them.
std::string houses(int rows) {
  std::string out = "area,rooms,age,price\n";
  for (int i = 0; i < rows; ++i) {
    const int area = 40 + (i * 37) % 200, rooms = 1 + (i * 7) % 6, age = (i * 13) % 90;
    out += std::to_string(area * 100) + "," + std::to_string(rooms) + "," +
           std::to_string(age * 1e-3) + "," +
           std::to_string(area * 3000 + rooms * 9000 - age * 800) + ".5\n";
  }
  return out;
}

train::Settings settings_for(const std::string& data) {
  train::Settings s = train::Settings::for_model("mlp:3-16-1");
  s.task = "regression";
  s.data = data;
  s.epochs = 30;
  s.batch = 16;
  s.threads = 1;
  return s;
}

}  // namespace

TEST_CASE("regression: a trainer reports the loss and no accuracy") {
  manual_seed(1);
  const Tensor x = randn({200, 3}).eval(), y = sum(x, {1}, true).eval();
  data::Loader train(data::from_tensors(x, y), {.batch = 20}),
      test(data::from_tensors(x, y), {.batch = 50, .shuffle = false});
  nn::Sequential net(nn::Linear(3, 1));
  optim::Adam adam(net, {.lr = 0.05});
  struct Watch : train::Callback {
    void on_step(const train::StepReport& r) override { accuracy = accuracy || r.accuracy; }
    bool accuracy = false;
  };
  const auto watch = std::make_shared<Watch>();
  train::Trainer trainer(net, nn::MSELoss(), adam, {.epochs = 8, .callbacks = {watch}});
  const train::TrainResult result = trainer.fit(train, test);
  CHECK(*result.best > 0);
  CHECK(*result.best < 0.01);
  CHECK(result.best_figure == "validation loss");
  CHECK(*result.best ==
        *result.epochs[static_cast<std::size_t>(result.best_epoch - 1)].validation_loss);
  CHECK(!watch->accuracy);
  const train::EpochReport& last = result.epochs.back();
  CHECK(!last.train_accuracy);
  CHECK(!last.validation_metrics["accuracy"]);
  CHECK(*last.validation_metrics["r2"] > 0.99);
  CHECK(*last.validation_metrics["mae"] < 0.1);
  const train::Evaluation evaluation = trainer.evaluate(test);
  CHECK(evaluation.errors->rmse() == doctest::Approx(std::sqrt(evaluation.loss)).epsilon(1e-3));
  // Without a validation set the training loss is monitored.
  const train::TrainResult alone =
      train::Trainer(net, nn::MSELoss(), adam, {.epochs = 1}).fit(train);
  CHECK(alone.best_figure == "training loss");
  CHECK(*alone.best >= 0);
}

TEST_CASE("regression: errors of columns, R2 of a constant column") {
  metrics::RegressionErrors errors;
  errors.add(Tensor::from<float>({1, 5, 2, 5}, {2, 2}), Tensor::from<float>({0, 5, 4, 5}, {2, 2}));
  CHECK(errors.cases() == 2);
  CHECK(errors.mae() == doctest::Approx(3.0 / 4));
  CHECK(errors.rmse() == doctest::Approx(std::sqrt(5.0 / 4)));
  CHECK(errors.r2() == doctest::Approx((1 - 5.0 / 8 + 1) / 2));
  metrics::RegressionErrors parts;  // in parts and at once
  parts.add(Tensor::from<float>({1, 2}, {2, 1}), Tensor::from<std::int64_t>({0, 4}, {2}));
  parts.add(Tensor::from<float>({3}, {1, 1}), Tensor::from<std::int64_t>({5}, {1}));
  CHECK(parts.r2() == doctest::Approx(1 - 9.0 / 14));
  CHECK_THROWS_AS(parts.add(zeros({2, 2}), zeros({2})), ShapeError);
  CHECK(std::isnan(metrics::RegressionErrors().r2()));
  CHECK(std::isnan(metrics::RegressionErrors().mae()));
  metrics::RegressionErrors one;
  one.add(zeros({1}), ones({1}));
  CHECK(one.mae() == 1);
  CHECK(std::isnan(one.r2()));  // one target has no variance
}

TEST_CASE(
    "regression: a run on a table learns in standard units and predicts in the table's units") {
  const TestFolder folder;
  const std::string table = folder / "houses.csv", run = folder / "run";
  io::write_file(table, houses(300));
  const train::TrainResult result =
      train::start_run(settings_for("csv:" + table + ",label=price"), run);
  CHECK(*result.epochs.back().validation_metrics["r2"] > 0.98);
  CHECK(*result.best < 0.05);  // in units of the targets' deviation
  CHECK(result.best_figure == "validation loss");

  const train::TrainedModel model = train::TrainedModel::open(run);
  CHECK(model.task().name() == "regression");
  CHECK(model.class_names().empty());
  const train::Evaluation evaluation = model.evaluate();
  CHECK(result.test->epoch == result.best_epoch);  // the model is that of the best epoch
  CHECK(evaluation.errors->r2() == *result.test->metrics["r2"]);
  CHECK(evaluation.errors->mae() == *result.test->metrics["mae"]);
  CHECK(evaluation.loss == doctest::Approx(result.test->loss).epsilon(1e-6));
  const double price = model.predict(Tensor::from<float>({10000, 3, 0.045f}, {1, 3})).item();
  CHECK(price == doctest::Approx(100 * 3000 + 3 * 9000 - 45 * 800).epsilon(0.1));
  // The statistics are those of the training part, and are saved in the model file.
  const StateDict state = io::load_safetensors(run + "/model.safetensors").tensors;
  const auto rows = data::open_dataset("csv:" + table + ",label=price", data::Split::Train, false);
  double sum = 0;
  for (std::int64_t i = 0; i < rows->size(); ++i) {
    float row[3], target = 0;
    rows->get({&i, 1}, row, &target);
    sum += static_cast<double>(row[0]);
  }
  CHECK(state.at("input_mean").to_vector<float>()[0] ==
        doctest::Approx(sum / static_cast<double>(rows->size())));
  CHECK(train::verify_run(run, 8).passed());
}

TEST_CASE("regression: a table of classes is standardized too, unless switched off") {
  const TestFolder folder;
  const std::string table = folder / "t.csv";
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += std::to_string(5000 + i % 7) + ",7," + (i % 7 < 3 ? "low" : "high") + "\n";
  io::write_file(table, text);
  train::Settings s = train::Settings::for_model("mlp:2-8-2");
  s.data = "csv:" + table;
  s.epochs = 20;
  s.batch = 8;
  const std::string run = folder / "run";
  CHECK(*train::start_run(s, run).best == 1.0);
  CHECK(train::TrainedModel::open(run + "/model.safetensors")
            .net()
            .state_dict()
            .count("input_mean") == 1);
  s.standardize = false;
  const std::string plain = folder / "plain";
  train::start_run(s, plain);
  CHECK(io::load_safetensors(plain + "/model.safetensors").tensors.count("input_mean") == 0);
}

TEST_CASE("regression: a table's columns are saved in the model, and words are not scaled") {
  const TestFolder folder;
  const std::string table = folder / "t.csv", run = folder / "run";
  std::string text = "x,town,y\n";
  for (int i = 0; i < 100; ++i)
    text += (i % 8 == 0 ? "" : std::to_string(5000 + i % 7)) + (i % 50 == 3 ? ",Aix," : ",Bonn,") +
            (i % 7 < 3 ? "low" : "high") + "\n";
  io::write_file(table, text);
  train::Settings s = train::Settings::for_model("mlp:3-8-2");
  s.data = "csv:" + table + ",split=0.3,seed=2,stratify";
  s.epochs = 2;
  s.batch = 8;
  train::start_run(s, run);
  for (const std::string& file : {run, run + "/model.safetensors"}) {
    const train::TrainedModel model = train::TrainedModel::open(file);
    REQUIRE(model.table());
    CHECK(model.table()->columns[0].fill > 5000);
    CHECK(model.table()->columns[1].values == std::vector<std::string>{"Aix", "Bonn"});
    CHECK(model.table()->label == "y");
    CHECK(model.table()->class_names == std::vector<std::string>{"high", "low"});
  }
  const StateDict state = io::load_safetensors(run + "/model.safetensors").tensors;
  const std::vector<float> mean = state.at("input_mean").to_vector<float>(),
                           deviation = state.at("input_deviation").to_vector<float>();
  CHECK(mean[0] > 5000);
  CHECK(mean[1] == 0);
  CHECK(mean[2] == 0);
  CHECK(deviation[1] == 1);
  CHECK(deviation[2] == 1);
  // A file with another column order gets the same predictions.
  const train::TrainedModel model = train::TrainedModel::open(run);
  io::write_file(folder / "a.csv", "x,town\n5003,Aix\n,Bonn\n");
  io::write_file(folder / "b.csv", "town;note;x\nAix;\"1;2\";5003\nBonn;;?\n");
  CHECK(model.predict_csv(folder / "a.csv", folder / "a.out") == 2);
  CHECK(model.predict_csv(folder / "b.csv", folder / "b.out") == 2);
  const auto tail = [](const std::string& path, char separator) {
    const std::string bytes = io::read_file(path);
    const std::size_t last = bytes.rfind('\n', bytes.size() - 2);
    const std::string line = bytes.substr(last + 1);
    return line.substr(line.rfind(separator) + 1);
  };
  CHECK(tail(folder / "a.out", ',') == tail(folder / "b.out", ';'));
  CHECK(io::read_file(folder / "b.out")
            .starts_with("town;note;x;prediction;probability\nAix;\"1;2\";5003;"));
}

TEST_CASE("regression: outputs that do not fit the data are refused before a run has a folder") {
  const TestFolder folder;
  const std::string table = folder / "t.csv", run = folder / "run";
  std::string text;
  for (int i = 0; i < 30; ++i) text += std::to_string(i) + ",1," + std::to_string(i % 3) + "\n";
  io::write_file(table, text);
  train::Settings s = train::Settings::for_model("mlp:2-8-2");
  s.data = "csv:" + table;
  CHECK_THROWS_WITH_AS(train::start_run(s, run), doctest::Contains("gives 2 numbers for a sample"),
                       ShapeError);
  s.task = "regression";
  CHECK_THROWS_WITH_AS(train::start_run(s, run), doctest::Contains("1 target"), ShapeError);
  s.data = "digits:20,10";
  CHECK_THROWS_WITH_AS(train::start_run(s, run), doctest::Contains("not quantities"), ValueError);
  CHECK(!std::filesystem::exists(run));
  // A user's network in a trainer.
  nn::Sequential net(nn::Linear(2, 2));
  optim::Sgd sgd(net);
  data::Loader loader(data::open_csv(table), {.batch = 10});
  train::Trainer trainer(net, nn::CrossEntropyLoss(), sgd, {.epochs = 1});
  CHECK_THROWS_WITH_AS(trainer.fit(loader), doctest::Contains("3 classes"), ShapeError);
}

TEST_CASE("regression: rows of a table, a layer with one output and mse_loss fit together") {
  const TestFolder dir;
  io::write_file(dir / "points.csv", "a,b,value\n0,1,0.5\n1,1,2.5\n2,0,1.5\n1,0,0.5\n");
  const auto points = data::open_csv(dir / "points.csv", {.label_name = "value", .classes = false});
  CHECK(points->target_shape() == Shape{1});
  data::Loader loader(points, {.batch = 2, .shuffle = false});
  manual_seed(1);
  nn::Sequential net(nn::Linear(2, 1));
  optim::Adam adam(net, {.lr = 0.1});
  data::Batch batch;
  loader.next(batch);
  double loss = 0;
  for (int step = 0; step < 100; ++step) loss = adam.step(mse_loss(net(batch.input), batch.target));
  CHECK(loss < 0.1);
  data::Loader test(points, {.batch = 4, .shuffle = false});
  train::Trainer trainer(net, nn::MSELoss(), adam, {.epochs = 3});
  CHECK(*trainer.fit(loader, test).best < 2);
  // Targets of another shape are refused with the reshape that makes them fit.
  try {
    mse_loss(net(batch.input), reshape(batch.target, {2}));
    FAIL("[2, 1] and [2] are no pair");
  } catch (const ShapeError& error) {
    CHECK(std::string(error.what()).find("reshape(target, [2, 1]) makes them so") !=
          std::string::npos);
  }
}
