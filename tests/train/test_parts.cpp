// Metrics of a part do not depend on batches, order or padding, for each kind of task. A part that
// does not fit is refused by name before the first step.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
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

// A task: samples, a network with a different output for each of them, a loss.
struct Kind {
  const char* name;
  Tensor input, target;
  nn::AnyModule net;
  nn::Loss loss;
  bool tokens = false;
};

std::vector<Kind> kinds() {
  manual_seed(11);
  const std::int64_t count = 23;
  const Tensor x = randn({count, 3}).compute();
  std::vector<std::int64_t> labels, some_left_out, words, rows;
  for (std::int64_t n = 0; n < count; ++n) {
    labels.push_back(n % 4 == 3 ? 0 : n % 3);
    some_left_out.push_back(n % 5 == 1 || n > 18 ? data::kIgnoredTarget : n % 3);
    for (std::int64_t t = 0; t < 6; ++t) {
      words.push_back((n * 5 + t * 3) % 7);
      rows.push_back(t <= n % 6 ? (n * 5 + t * 3 + 1) % 7 : data::kIgnoredTarget);
    }
  }
  const Tensor classes = Tensor::from(labels, {count}),
               left_out = Tensor::from(some_left_out, {count}),
               weights = Tensor::from(std::vector<float>{0.2f, 0, 3}, {3}),
               quantities = randn({count, 2}).compute(),
               tags = cast(gt(rand({count, 3}), 0.6), DType::Float32).compute(),
               shares = softmax(randn({count, 3})).compute();
  const auto linear = [](std::int64_t out) { return nn::AnyModule(nn::Linear(3, out)); };
  using nn::CrossEntropyLoss;
  const nn::Loss own = [](const Tensor& out, const Tensor& target) {
    return mean(abs(out - target) * 3);
  };
  const auto left_out_loss = CrossEntropyLoss{.ignore_index = data::kIgnoredTarget};
  return {
      {"classes", x, classes, linear(3), CrossEntropyLoss()},
      {"classes, smoothed", x, classes, linear(3), CrossEntropyLoss{.label_smoothing = 0.2}},
      {"classes of other weights", x, classes, linear(3), CrossEntropyLoss{.weight = weights}},
      {"classes of other weights, smoothed", x, classes, linear(3),
       CrossEntropyLoss{.label_smoothing = 0.3, .weight = weights}},
      {"classes, some left out", x, left_out, linear(3), left_out_loss},
      {"quantities", x, quantities, linear(2), nn::MSELoss()},
      {"quantities, absolute", x, quantities, linear(2), nn::L1Loss()},
      {"quantities, a loss of one's own", x, quantities, linear(2), own},
      {"tags", x, tags, linear(3),
       [](const Tensor& out, const Tensor& target) {
         return binary_cross_entropy_with_logits(out, target);
       }},
      {"shares of classes", x, shares, linear(3), CrossEntropyLoss()},
      {"tokens", Tensor::from(words, {count, 6}), Tensor::from(rows, {count, 6}),
       nn::Sequential(nn::Embedding(7, 7)), left_out_loss, true},
  };
}

std::shared_ptr<data::Dataset> set_of(const Kind& kind, const Tensor& order) {
  const auto in_order = [&](const Tensor& of) { return index_select(of, 0, order).compute(); };
  if (!kind.tokens) return data::from_tensors(in_order(kind.input), in_order(kind.target));
  class Tokens : public data::Dataset {
   public:
    Tokens(Tensor input, Tensor target)
        : Dataset({.input_shape = {input.size(1)},
                   .input_dtype = DType::Int64,
                   .target_shape = {input.size(1)},
                   .classes = 7,
                   .in_memory = true}),
          input_(std::move(input)),
          target_(std::move(target)) {}
    std::int64_t size() const override { return input_.size(0); }
    void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
      auto *in = static_cast<std::int64_t*>(inputs), *out = static_cast<std::int64_t*>(targets);
      for (const std::int64_t n : indices) {
        in = std::copy_n(input_.data_as<std::int64_t>() + n * input_.size(1), input_.size(1), in);
        out =
            std::copy_n(target_.data_as<std::int64_t>() + n * input_.size(1), input_.size(1), out);
      }
    }

   private:
    Tensor input_, target_;
  };
  return std::make_shared<Tokens>(in_order(kind.input), in_order(kind.target));
}

struct Figures {
  double trained = 0, validated = 0, evaluated = 0;
  std::optional<double> accuracy_trained{}, accuracy_validated{};
  double accuracy_evaluated = 0;
};

// Metrics of an epoch with learning rate 0, of its validation part, and of separate evaluations.
Figures measure(const Kind& kind, const Tensor& order, std::int64_t batch, bool shuffle) {
  optim::Sgd sgd(kind.net, {.lr = 0});
  TrainOptions o;
  o.epochs = 1;
  o.keep_best = false;
  if (kind.tokens) o.task = train::find_task("language");
  const auto set = set_of(kind, order);
  data::Loader loader(set, {.batch = batch, .shuffle = shuffle, .seed = 3}),
      validation(set, {.batch = 7, .shuffle = false});
  train::Trainer trainer(kind.net, kind.loss, sgd, o);
  const train::EpochReport epoch = trainer.fit(loader, validation).epochs.at(0);
  const train::Evaluation evaluation = trainer.evaluate(loader);
  return {epoch.train_loss,
          *epoch.validation_loss,
          evaluation.loss,
          epoch.train_accuracy,
          epoch.validation_metrics["accuracy"],
          evaluation.accuracy};
}

bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-6 * (1 + std::abs(a));
}

class Told : public train::Callback {
 public:
  void on_note(const std::string& note) override { all += note + "\n"; }
  std::string all;
};

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("parts: metrics depend on neither batches, order nor padding, for every task") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    const std::int64_t count = kind.input.size(0);
    const Tensor in_order = arange(0, count, 1, DType::Int64).compute(),
                 reversed = (count - 1 - in_order).compute();
    const Figures whole = measure(kind, in_order, count, false);
    CHECK(whole.trained > 0);
    for (const std::int64_t batch : {1, 2, 5, 22, 23})
      for (const Tensor& order : {in_order, reversed}) {
        CAPTURE(batch);
        const Figures f = measure(kind, order, batch, batch % 2 == 1);
        for (const double loss : {f.trained, f.validated, f.evaluated}) {
          CAPTURE(loss);
          CHECK(same_number(loss, whole.evaluated));
        }
        CHECK(same_number(f.accuracy_evaluated, whole.accuracy_evaluated));
        if (f.accuracy_trained) CHECK(same_number(*f.accuracy_trained, whole.accuracy_evaluated));
        if (f.accuracy_validated)
          CHECK(same_number(*f.accuracy_validated, whole.accuracy_evaluated));
      }
  }
}

TEST_CASE("parts: without counted targets there is no metric") {
  manual_seed(1);
  const nn::Linear net(2, 3);
  optim::Sgd sgd(net, {.lr = 0.1});
  TrainOptions o;
  o.epochs = 2;
  const auto notes = std::make_shared<Told>();
  o.callbacks = {notes};
  data::Loader loader(data::from_tensors(randn({12, 2}).compute(), full({12}, 1, DType::Int64), 3),
                      {.batch = 5});
  const nn::CrossEntropyLoss loss{.weight = Tensor::from(std::vector<float>{1, 0, 1}, {3})};
  const train::TrainResult result = train::Trainer(net, loss, sgd, o).fit(loader);
  CHECK(std::isnan(result.epochs[0].train_loss));
  CHECK_FALSE(result.best.has_value());
  CHECK(result.best_figure == "training loss");
  CHECK(notes->all.find("the training loss was NaN in all 2 times") != std::string::npos);
}

TEST_CASE("parts: a part that does not fit is named before the first step") {
  const auto points = toy::points(40, 1);
  const auto set = [](const Shape& input, DType dtype, std::int64_t classes, std::int64_t most) {
    Shape shape{8};
    for (const std::int64_t size : input) shape.push_back(size);
    return data::from_tensors(zeros(shape, dtype).compute(),
                              full({8}, static_cast<double>(most), DType::Int64).compute(),
                              classes);
  };
  const TestFolder folder;
  int tried = 0;
  const auto refused = [&](const std::shared_ptr<data::Dataset>& other,
                           const std::vector<std::string>& words) {
    for (const bool is_test : {false, true}) {
      toy::Session s;
      TrainOptions o;
      o.run_dir = folder / std::to_string(tried++);
      class NoStep : public train::Callback {
        void on_step(const train::StepReport&) override { FAIL("a step was taken"); }
      };
      o.callbacks = {std::make_shared<NoStep>()};
      train::Trainer trainer(s.net, nn::CrossEntropyLoss(), s.optimizer, o);
      data::Loader good(points, {.batch = 8}), bad(other, {.batch = 4, .shuffle = false});
      const std::string said = refusal([&] {
        if (is_test)
          trainer.fit(good, good, bad);
        else
          trainer.fit(good, bad);
      });
      CAPTURE(said);
      CHECK(said.find(is_test ? "the test part does not fit"
                              : "the validation part does not fit") != std::string::npos);
      for (const std::string& word : words) CHECK(said.find(word) != std::string::npos);
      CHECK_FALSE(std::filesystem::exists(o.run_dir));
      CHECK(s.net.is_training());
    }
  };
  refused(set({3}, DType::Float32, 4, 0), {"float32 [3]", "float32 [2]"});
  refused(set({2}, DType::Float64, 4, 0), {"float64 [2]", "same dtype"});
  refused(set({2}, DType::Int64, 4, 0), {"int64 [2]", "same dtype"});
  refused(set({2}, DType::Float32, 6, 5), {"of 6 classes", "[4, 4]"});
  refused(data::from_tensors(zeros({8, 2}).compute(), zeros({8, 3}).compute()),
          {"targets float32 [3]"});
  // Fewer classes than the network's outputs, and other batch sizes, are allowed.
  toy::Session s;
  data::Loader few(set({2}, DType::Float32, 2, 1), {.batch = 3});
  TrainOptions o;
  o.epochs = 1;
  CHECK(train::Trainer(s.net, nn::CrossEntropyLoss(), s.optimizer, o)
            .fit(s.train, few, s.test)
            .test->samples == 100);
}

TEST_CASE("parts: a network that fits no part is reported without blaming a part") {
  const auto points = data::from_tensors(zeros({16, 2}).compute(), zeros({16}).compute());
  data::Loader train(points, {.batch = 8}), validation(points, {.batch = 4});
  nn::Sequential net(nn::Linear(2, 1));
  optim::Sgd sgd(net, {.lr = 0.1});
  train::Trainer trainer(net, nn::MSELoss(), sgd, {.epochs = 1});
  const std::string said = refusal([&] { trainer.fit(train, validation); });
  CHECK(said.find("does not fit") == std::string::npos);
  CHECK(said.find("input is [8, 1], target [8]") != std::string::npos);
}

TEST_CASE("parts: a NaN validation loss is never the best, and is reported at the end") {
  const nn::Loss poisoned = [](const Tensor& scores, const Tensor&) {
    return mean(scores) * std::numeric_limits<double>::quiet_NaN();
  };
  for (const int epochs : {1, 3}) {
    toy::Session s;
    TrainOptions o;
    o.epochs = epochs;
    o.evaluation_loss = poisoned;
    const auto notes = std::make_shared<Told>();
    o.callbacks = {notes};
    const train::TrainResult result = s.fit(o);
    CHECK_FALSE(result.best.has_value());
    CHECK(result.best_epoch == 0);
    CHECK(result.best_figure == "validation accuracy");
    CHECK(result.kept_epoch == epochs);
    CHECK(notes->all.find("the validation loss was NaN in all " + std::to_string(epochs)) == 0);
    CHECK(notes->all.find("the weights of the last epoch are kept") != std::string::npos);
  }
  toy::Session s;
  TrainOptions o;
  o.epochs = 2;
  const auto notes = std::make_shared<Told>();
  o.callbacks = {notes};
  CHECK(s.fit(o).best.has_value());
  CHECK(notes->all.empty());
}

TEST_CASE("parts: epochs are compared by one metric, also after a resume without that part") {
  const TestFolder folder;
  const auto fit = [&](int epochs, bool validates, bool resume) {
    toy::Session s(0, 16, 0.05);
    TrainOptions o;
    o.epochs = epochs;
    o.schedule = "constant";
    o.early_stopping = 3;
    o.run_dir = folder / "run";
    o.resume = resume;
    train::Trainer trainer(s.net, nn::CrossEntropyLoss(), s.optimizer, o);
    return trainer.fit(s.train, validates ? &s.test : nullptr);
  };
  CHECK(fit(3, true, false).best_figure == "validation accuracy");
  const train::TrainResult blind = fit(6, false, true);
  REQUIRE(blind.epochs.size() == 6);
  CHECK(blind.best_figure == "training loss");
  CHECK(blind.best_epoch > 3);
  CHECK(*blind.best == blind.epochs[static_cast<std::size_t>(blind.best_epoch - 1)].train_loss);
  CHECK(blind.kept_epoch == 6);
  const train::TrainResult seeing = fit(7, true, true);
  CHECK(seeing.best_figure == "validation accuracy");
  CHECK(*seeing.best == *seeing.epochs[static_cast<std::size_t>(seeing.best_epoch - 1)]
                             .validation_metrics["accuracy"]);
  CHECK(seeing.kept_epoch == seeing.best_epoch);
}

TEST_CASE("parts: an error of the training data is not reported as an error of a part") {
  class Reads : public nn::Module {
   public:
    Tensor forward(const Tensor& x) const override { return sum(x).item() > 0 ? x : -x; }
    std::string describe() const override { return "Reads()"; }
  };
  toy::Session s;
  const nn::Sequential net(s.net, Reads());
  train::Trainer trainer(net, nn::CrossEntropyLoss(), s.optimizer, {.epochs = 1});
  const std::string said = refusal([&] { trainer.fit(s.train, s.test); });
  CHECK(said.find("have no values yet") != std::string::npos);
  CHECK(said.find("does not fit") == std::string::npos);
}

TEST_CASE("parts: a finished run is recognised by its epochs, even if drop_last changed") {
  const TestFolder folder;
  const auto fit = [&](bool drop_last, int epochs, bool resume) {
    toy::Session s;
    data::Loader loader(toy::points(250, 1), {.batch = 16, .drop_last = drop_last});
    TrainOptions o;
    o.epochs = epochs;
    o.keep_best = false;
    o.run_dir = folder / "run";
    o.resume = resume;
    return train::Trainer(s.net, nn::CrossEntropyLoss(), s.optimizer, o).fit(loader);
  };
  CHECK(fit(false, 3, false).steps == 48);
  const std::string said = refusal([&] { fit(true, 2, true); });
  CHECK(said.find("has done 48 steps (3 epochs), more than the 2 epochs") != std::string::npos);
  const train::TrainResult same = fit(true, 3, true);
  CHECK(same.steps == 48);
  CHECK(same.kept_epoch == 3);
  CHECK(same.epochs.size() == 3);
  const train::TrainResult more = fit(true, 4, true);
  CHECK(more.steps == 48 + 15);
  CHECK(more.kept_epoch == 4);
}

TEST_CASE("parts: modules' modes are restored, however a call ends") {
  class Failing : public data::Dataset {
   public:
    explicit Failing(std::int64_t at)
        : Dataset({.input_shape = {2}, .classes = 4}), points_(toy::points(40, 1)), at_(at) {}
    std::int64_t size() const override { return 40; }
    void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
      if (std::find(indices.begin(), indices.end(), at_) != indices.end())
        throw IoError("the disk is gone");
      points_->get(indices, inputs, targets);
    }

   private:
    std::shared_ptr<data::Dataset> points_;
    std::int64_t at_;
  };
  class Leaves : public train::Callback {
   public:
    explicit Leaves(int moment) : moment_(moment) {}
    void on_step(const train::StepReport& r) override { leave(0, r.step == 2); }
    void on_evaluation(data::Split part, std::int64_t batch, std::int64_t) override {
      leave(part == data::Split::Test ? 2 : 1, batch == 2);
    }
    void on_epoch(const train::EpochReport&) override { leave(3, true); }
    void on_start(std::int64_t, std::int64_t) override { leave(4, true); }

   private:
    void leave(int moment, bool now) const {
      if (now && moment == moment_) throw std::runtime_error("left");
    }
    int moment_;
  };
  manual_seed(0);
  nn::Dropout dropout(0.5);
  nn::Sequential net(nn::Linear(2, 4), dropout);
  nn::Sequential teacher(nn::Linear(2, 4), nn::Dropout(0.5));
  optim::Sgd sgd(net, {.lr = 0.01});
  data::Loader good(toy::points(40, 1), {.batch = 8}),
      measured(toy::points(40, 2), {.batch = 8, .shuffle = false});
  for (const bool outer : {true, false})
    for (const bool inner : {true, false}) {
      net.train(outer);
      dropout.train(inner);
      teacher.train(inner);
      const auto unchanged = [&] {
        CHECK(net.is_training() == outer);
        CHECK(dropout.is_training() == inner);
        CHECK(teacher.is_training() == inner);
      };
      for (int moment = 0; moment < 5; ++moment) {
        CAPTURE(moment);
        TrainOptions o;
        o.epochs = 1;
        o.teacher = teacher;
        o.callbacks = {std::make_shared<Leaves>(moment)};
        train::Trainer trainer(net, nn::CrossEntropyLoss(), sgd, o);
        CHECK_THROWS_AS(trainer.fit(good, measured, measured), std::runtime_error);
        unchanged();
      }
      for (const std::int64_t at : {0, 39}) {
        data::Loader failing(std::make_shared<Failing>(at), {.batch = 8, .workers = 0});
        TrainOptions o;
        o.epochs = 1;
        train::Trainer trainer(net, nn::CrossEntropyLoss(), sgd, o);
        CHECK_THROWS_AS(trainer.fit(failing, measured), IoError);
        unchanged();
        CHECK_THROWS_AS(trainer.fit(good, failing), IoError);
        unchanged();
        CHECK_THROWS_AS(trainer.fit(good, measured, failing), IoError);
        unchanged();
        CHECK_THROWS_AS(trainer.evaluate(failing), IoError);
        unchanged();
        CHECK_THROWS_AS(trainer.predict(zeros({3, 5})), ShapeError);
        unchanged();
      }
      TrainOptions o;
      o.epochs = 2;
      o.stop = [] { return true; };
      CHECK(train::Trainer(net, nn::CrossEntropyLoss(), sgd, o).fit(good).reason ==
            StopReason::Interrupted);
      unchanged();
    }
}
