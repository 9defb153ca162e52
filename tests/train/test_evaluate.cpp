// Evaluation: averages over the targets that count, independent of batches, for the requested part
// of the data.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <vector>

#include <tenon/compose.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "io/folder.h"

using namespace tenon;

namespace {

constexpr std::int64_t kSamples = 53, kClasses = 4;

// A network whose scores are its inputs, so that no product rounds differently in another batch.
struct Given : nn::Module {
  Given() : unused(parameter("unused", zeros({1}))) {}
  Tensor forward(const Tensor& x) const override { return x; }
  Tensor unused;
};

struct Scored {
  Tensor scores, targets;
};

// Every third sample is ignored, and all of the first ten.
Scored scored(std::uint64_t seed) {
  Generator g(seed);
  const Tensor scores = randn({kSamples, kClasses}, DType::Float32, g).compute();
  auto targets = argmax(scores + randn({kSamples, kClasses}, DType::Float32, g), 1)
                     .compute()
                     .to_vector<std::int64_t>();
  for (std::size_t n = 0; n < targets.size(); ++n)
    if (n % 3 == 0 || n < 10) targets[n] = data::kIgnoredTarget;
  return {scores, Tensor::from(targets, {kSamples})};
}

Scored reordered(const Scored& s, std::uint64_t seed) {
  std::vector<std::int64_t> order(kSamples);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t k = order.size(); k > 1; --k)
    std::swap(order[k - 1], order[static_cast<std::size_t>((seed * 7919 + k * 104729) % k)]);
  const Tensor rows = Tensor::from(order, {kSamples});
  return {index_select(s.scores, 0, rows).compute(), index_select(s.targets, 0, rows).compute()};
}

train::Evaluation measured(const Scored& s, const nn::Loss& loss, std::int64_t batch) {
  const nn::Sequential net(Given{});
  optim::Sgd sgd(net, {.lr = 0});
  data::Loader loader(data::from_tensors(s.scores, s.targets, kClasses),
                      {.batch = batch, .shuffle = false});
  train::Trainer trainer(net, loss, sgd, {.epochs = 1});
  return trainer.evaluate(loader);
}

// Checks that two numbers agree to twelve digits.
void check_equal(double a, double b) { CHECK(a == doctest::Approx(b).epsilon(1e-12)); }

void check_equal(const train::Evaluation& a, const train::Evaluation& b) {
  check_equal(a.loss, b.loss);
  check_equal(a.accuracy, b.accuracy);
  check_equal(a.top3_accuracy, b.top3_accuracy);
  check_equal(a.log_loss, b.log_loss);
  check_equal(*a.roc_auc, *b.roc_auc);
  check_equal(*a.average_precision, *b.average_precision);
  check_equal(a.confusion.macro_f1(), b.confusion.macro_f1());
  CHECK(a.ignored == b.ignored);
  CHECK(a.targets == b.targets);
}

std::vector<nn::Loss> losses() {
  const Tensor weight = Tensor::from({0.1f, 1.f, 5.f, 2.f}, {kClasses});
  return {nn::CrossEntropyLoss{.ignore_index = data::kIgnoredTarget},
          nn::CrossEntropyLoss{.weight = weight, .ignore_index = data::kIgnoredTarget},
          nn::CrossEntropyLoss{
              .label_smoothing = 0.2, .weight = weight, .ignore_index = data::kIgnoredTarget}};
}

}  // namespace

TEST_CASE("evaluate: metrics do not depend on batch size and order, with ignored targets") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Scored s = scored(seed);
    for (const nn::Loss& loss : losses()) {
      const train::Evaluation whole = measured(s, loss, kSamples);
      CHECK(whole.loss == doctest::Approx(loss(s.scores, s.targets).item()).epsilon(1e-6));
      CHECK(whole.targets + whole.ignored == kSamples);
      for (const std::int64_t batch : {1, 7, 10, 52}) check_equal(measured(s, loss, batch), whole);
      check_equal(measured(reordered(s, seed), loss, 7), whole);
    }
  }
}

TEST_CASE("evaluate: accuracy is a share of the targets that count") {
  const Scored s = scored(3);
  const auto targets = s.targets.to_vector<std::int64_t>();
  const auto guesses = metrics::predictions(s.scores);
  double right = 0, counted = 0;
  for (std::size_t n = 0; n < targets.size(); ++n) {
    counted += targets[n] >= 0;
    right += targets[n] == guesses[n];
  }
  const train::Evaluation e = measured(s, losses()[0], 7);
  CHECK(e.accuracy == doctest::Approx(right / counted).epsilon(1e-12));
  CHECK(e.items == kSamples);
  CHECK(e.targets == counted);
  CHECK(e.confusion.total() == counted);
}

TEST_CASE("evaluate: a class that the loss ignores does not count") {
  Scored s = scored(4);
  auto targets = s.targets.to_vector<std::int64_t>();
  for (std::int64_t& target : targets) target = std::max<std::int64_t>(target, 0);
  s.targets = Tensor::from(targets, {kSamples});
  const train::Evaluation e = measured(s, nn::CrossEntropyLoss{.ignore_index = 0}, 6);
  CHECK(e.ignored == std::count(targets.begin(), targets.end(), 0));
  CHECK(e.confusion.support(0) == 0);
}

TEST_CASE("evaluate: a user's loss is averaged over its samples") {
  Scored s = scored(5);
  const nn::Loss own = [](const Tensor& scores, const Tensor& target) {
    return cross_entropy(scores, target, ClassLossOptions{.ignore_index = data::kIgnoredTarget});
  };
  const double whole = own(s.scores, s.targets).item();
  for (const std::int64_t batch : {1, 7, 10})
    CHECK(measured(s, own, batch).loss == doctest::Approx(whole).epsilon(1e-6));
}

TEST_CASE("evaluate: a loss that is a sum is averaged over its samples, too") {
  const Scored s = scored(6);
  const nn::Loss summed =
      nn::CrossEntropyLoss{.ignore_index = data::kIgnoredTarget, .reduction = Reduction::Sum};
  const double mean = measured(s, losses()[0], kSamples).loss;
  for (const std::int64_t batch : {1, 7, 53}) check_equal(measured(s, summed, batch).loss, mean);
}

TEST_CASE("evaluate: NaN scores are never correct") {
  Scored s = scored(7);
  std::vector<float> scores = s.scores.to_vector<float>();
  scores[4 * 20 + 1] = std::numeric_limits<float>::quiet_NaN();
  s.scores = Tensor::from(scores, {kSamples, kClasses});
  const train::Evaluation e = measured(s, losses()[0], 7);
  CHECK(e.confusion.undecided() == 1);
  CHECK(std::isnan(e.loss));
  CHECK(e.accuracy < 1);
}

TEST_CASE("evaluate: targets that a function makes of images, some of which are broken") {
  const TestFolder dir;
  for (const char* kind : {"cat", "dog"}) {
    std::filesystem::create_directories(dir / ("in/" + std::string(kind)));
    for (int k = 0; k < 2; ++k)
      io::save_png(dir / ("in/" + std::string(kind) + "/" + std::to_string(k) + ".png"),
                   {4, 4, 3, std::vector<std::uint8_t>(4 * 4 * 3, std::uint8_t{9})});
  }
  io::write_file(dir / "in/cat/1.png", "no image");
  data::ImageOptions how;
  how.input = {3, 4, 4};
  how.broken_left_out = true;
  const auto images =
      data::image_dataset(data::open_image_folder(dir / "in", data::Split::All), how);
  const auto evaluate = [&](Shape target, DType dtype, const data::ConvertFunction& convert) {
    const auto set = data::map(images,
                               {.input_shape = target,
                                .input_dtype = DType::Float32,
                                .target_shape = target,
                                .target_dtype = dtype},
                               convert);
    const nn::Sequential net(Given{});
    optim::Sgd sgd(net, {.lr = 0});
    train::Trainer trainer(net, nn::Loss([](const Tensor& scores, const Tensor& targets) {
                                  return mse_loss(scores, cast(targets, scores.dtype()));
                                }).for_task("regression"),
                           sgd);
    data::Loader loader(set, {.batch = 4, .shuffle = false});
    return trainer.evaluate(loader);
  };
  const train::Evaluation quantities =
      evaluate({1}, DType::Float32, [](const data::Sample& from, data::Sample& to) {
        const bool absent = from.target<std::int64_t>()[0] == data::kIgnoredTarget;
        to.input<float>()[0] = 1;
        to.target<float>()[0] = absent ? 1 : 3;
      });
  CHECK(quantities.items == 4);
  CHECK(quantities.loss == doctest::Approx(3));
  // Whole numbers, several for each sample: absent is the sample whose targets are all ignored.
  const train::Evaluation several =
      evaluate({3}, DType::Int64, [](const data::Sample& from, data::Sample& to) {
        const bool absent = from.target<std::int64_t>()[0] == data::kIgnoredTarget;
        for (std::size_t k = 0; k < 3; ++k) {
          to.input<float>()[k] = 0;
          to.target<std::int64_t>()[k] = absent || k == 1 ? data::kIgnoredTarget : 0;
        }
      });
  CHECK(several.items == 3);
  CHECK(several.broken.size() == 1);
}

TEST_CASE("training: averages over counted targets; a batch without any changes nothing") {
  const Scored s = scored(8);  // the first ten do not count
  for (const std::int64_t batch : {5, 10, 53}) {
    manual_seed(3);
    const nn::Sequential net(nn::Linear(kClasses, kClasses));
    const Tensor before = net.named_parameters()[0].tensor.to(DType::Float32);
    const std::vector<float> weights = before.compute().to_vector<float>();
    optim::Sgd sgd(net, {.lr = 0, .momentum = 0.9, .weight_decay = 0.1});
    data::Loader loader(data::from_tensors(s.scores, s.targets, kClasses),
                        {.batch = batch, .shuffle = false});
    const nn::Loss loss = losses()[1];
    train::Trainer trainer(net, loss, sgd, {.epochs = 1, .keep_best = false});
    const double by_hand = loss(net(s.scores), s.targets).item();
    const train::EpochReport epoch = trainer.fit(loader).epochs.at(0);
    CHECK(epoch.train_loss == doctest::Approx(by_hand).epsilon(1e-6));
    CHECK(*epoch.train_accuracy ==
          doctest::Approx(trainer.evaluate(loader).accuracy).epsilon(1e-12));
    CHECK(net.named_parameters()[0].tensor.compute().to_vector<float>() == weights);
  }
}

TEST_CASE("training: a batch without counted targets changes neither weights nor momentum") {
  manual_seed(4);
  const Tensor x = randn({8, kClasses}).compute();
  const Tensor none = full({8}, data::kIgnoredTarget, DType::Int64).compute();
  const nn::Sequential net(nn::Linear(kClasses, kClasses), nn::BatchNorm1d(kClasses));
  const auto state = [&] {
    std::vector<std::vector<float>> out;
    for (const auto& [name, tensor] : net.state_dict())
      out.push_back(tensor.to(DType::Float32).compute().to_vector<float>());
    return out;
  };
  const auto before = state();
  optim::Sgd sgd(net, {.lr = 0.5, .momentum = 0.9, .weight_decay = 0.1});
  data::Loader loader(data::from_tensors(x, none, kClasses), {.batch = 4, .shuffle = false});
  train::Trainer trainer(net, nn::CrossEntropyLoss{.ignore_index = data::kIgnoredTarget}, sgd,
                         {.epochs = 2, .keep_best = false});
  CHECK_NOTHROW(trainer.fit(loader));
  CHECK(state() == before);
}

namespace {

// Rows whose class depends on the first column; numbered from `first` on.
std::string rows(int count, int first) {
  std::string out = "a,b,label\n";
  for (int k = 0; k < count; ++k) {
    const int n = first + k;
    out += std::to_string((n * 37) % 100) + "," + std::to_string((n * 11) % 7) + "," +
           ((n * 37) % 100 < 50 ? "low" : "high") + "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("evaluate: the run's data is measured on its test part, other files completely") {
  const TestFolder folder;
  io::write_file(folder / "rows.csv", rows(200, 0));
  io::write_file(folder / "others.csv", rows(30, 1000));
  train::Settings settings = train::Settings::for_model("mlp:2-8-2");
  settings.data = "csv:" + (folder / "rows.csv") + ",split=0.25,seed=3";
  settings.epochs = 2;
  train::start_run(settings, folder / "run");
  const train::TrainedModel model = train::TrainedModel::open(folder / "run");

  const train::Evaluation own = model.evaluate();
  CHECK(own.part == data::Split::Test);
  CHECK(own.items == 50);
  CHECK(own.of_items == 200);
  for (const std::string& given :
       {"csv:" + (folder / "rows.csv"), "csv:" + (folder / "run/../rows.csv") + ",split=0.5"}) {
    const train::Evaluation same = model.evaluate(given);
    CHECK(same.items == 50);
    CHECK(same.loss == own.loss);
    CHECK(same.data == settings.data);
  }
  const train::Evaluation others = model.evaluate("csv:" + (folder / "others.csv"));
  CHECK(others.part == data::Split::All);
  CHECK(others.items == 30);
  CHECK(others.of_items == 30);
  CHECK(model.evaluate("", {.part = data::Split::All}).items == 200);
  CHECK(model.evaluate("csv:" + (folder / "others.csv"), {.part = data::Split::Test}).items == 3);

  // The data is read once, when it is selected.
  const train::Selection chosen = model.select_data("");
  io::write_file(folder / "rows.csv", rows(80, 0));
  CHECK(model.open_set(chosen)->size() == 50);
  CHECK(model.open_set(model.select_data(""))->size() == 20);

  // The moved file is recognised by its name.
  std::filesystem::create_directory(folder / "moved");
  io::write_file(folder / "moved/rows.csv", rows(200, 0));
  std::filesystem::remove(folder / "rows.csv");
  const train::Evaluation moved = model.evaluate("csv:" + (folder / "moved/rows.csv"));
  CHECK(moved.items == 50);
  CHECK(moved.loss == own.loss);
}

TEST_CASE(
    "predict: a table that changes meanwhile gets predictions beside the rows that were read") {
  const TestFolder folder;
  io::write_file(folder / "rows.csv", rows(60, 0));
  train::Settings settings = train::Settings::for_model("mlp:2-8-2");
  settings.data = "csv:" + (folder / "rows.csv");
  settings.epochs = 1;
  train::start_run(settings, folder / "run");
  const train::TrainedModel model = train::TrainedModel::open(folder / "run");
  io::write_file(folder / "some.csv", rows(5, 0));
  CHECK(model.predict_csv(folder / "some.csv", folder / "before.csv") == 5);
  CHECK(model.predict_csv(folder / "some.csv", folder / "after.csv", [&](const data::Dataset& set) {
    CHECK(set.size() == 5);
    io::write_file(folder / "some.csv", rows(9, 3));
  }) == 5);
  CHECK(io::read_file(folder / "after.csv") == io::read_file(folder / "before.csv"));
  // Who refuses the rows keeps the file from being written.
  CHECK_THROWS_AS(model.predict_csv(folder / "some.csv", folder / "none.csv",
                                    [](const data::Dataset&) { throw ValueError("no"); }),
                  ValueError);
  CHECK_FALSE(std::filesystem::exists(folder / "none.csv"));
}

TEST_CASE("evaluate: the names of broken samples are listed a fixed number of times") {
  // Every tenth sample cannot be read, and has no target.
  class Broken : public data::DatasetWith<data::Provenance> {
   public:
    Broken() : DatasetWith({.input_shape = {kClasses}, .classes = kClasses}) {}
    std::int64_t size() const override { return 400; }
    void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
      auto* x = static_cast<float*>(inputs);
      auto* y = static_cast<std::int64_t*>(targets);
      for (const std::int64_t k : indices) {
        x = std::fill_n(x, kClasses, static_cast<float>(k % 7));
        *y++ = k % 10 == 0 ? data::kIgnoredTarget : k % kClasses;
      }
    }
    std::vector<std::string> broken() const override {
      ++lists;
      std::vector<std::string> out;
      for (std::int64_t k = 0; k < size(); k += 10) out.push_back(sample_name(k));
      return out;
    }
    bool any_broken() const override { return true; }
    mutable std::atomic<int> lists = 0;
  };
  const auto lists_for = [](std::int64_t batch) {
    const auto set = std::make_shared<Broken>();
    data::Loader loader(data::subset(set,
                                     [] {
                                       std::vector<std::int64_t> all(400);
                                       std::iota(all.begin(), all.end(), std::int64_t{0});
                                       return all;
                                     }()),
                        {.batch = batch, .shuffle = false});
    const Given net;
    optim::Sgd sgd(net, {.lr = 0});
    train::Trainer trainer(net, nn::CrossEntropyLoss(), sgd, {});
    CHECK(trainer.evaluate(loader).items == 360);
    return set->lists.load();
  };
  CHECK(lists_for(2) == lists_for(400));
}

TEST_CASE("predict: all samples of a set in order, in batches, with names") {
  const TestFolder folder;
  io::write_file(folder / "rows.csv", rows(60, 0));
  train::Settings settings = train::Settings::for_model("mlp:2-8-2");
  settings.data = "csv:" + (folder / "rows.csv");
  settings.epochs = 1;
  train::start_run(settings, folder / "run");
  const train::TrainedModel model = train::TrainedModel::open(folder / "run");
  io::write_file(folder / "labelled.csv", rows(1500, 0));
  const auto labelled = model.open_rows(folder / "labelled.csv");
  CHECK(labelled->size() == 1500);
  std::int64_t next = 0, known = 0;
  model.predict(*labelled, 0, -1, [&](train::Prediction&& p, const Tensor& input) {
    CHECK(p.index == next++);
    CHECK(p.name == labelled->sample_name(p.index));
    CHECK(p.values.size() == 2);
    known += p.label >= 0;
    if (p.index % 500 == 0)
      CHECK(static_cast<double>(p.values[0]) ==
            doctest::Approx(select(model.predict(input), 1, 0).item()).epsilon(1e-5));
  });
  CHECK(next == 1500);
  CHECK(known == 1500);
  io::write_file(folder / "bare.csv", "1,2\n3,4\n");
  CHECK(model.open_rows(folder / "bare.csv")->classes() == 0);
  std::int64_t some = 0;
  model.predict(*labelled, 1490, 100, [&](train::Prediction&&, const Tensor&) { ++some; });
  CHECK(some == 10);
}
