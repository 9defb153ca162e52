// State that a network renews while it is trained: by the Trainer, step for step, left alone by
// steps that are left out.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/io.h>

#include "io/folder.h"
#include "train/run_folder.h"
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

/// Six batches of eight; there is no number in the fifth.
data::Loader poisoned() {
  std::vector<float> x(48 * 2, 0.5f);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 7);
  x[33 * 2] = std::numeric_limits<float>::quiet_NaN();
  const Tensor labels = remainder(arange(0, 48), 4).eval();
  return data::Loader(data::from_tensors(Tensor::from(x, {48, 2}), labels, 4),
                      {.batch = 8, .shuffle = false});
}

}  // namespace

TEST_CASE("trainer: batch norm counts every step, none of an evaluation, and learns") {
  Course course(0);
  const train::TrainResult result = course.fit(options(4));
  CHECK(result.steps == 64);
  CHECK(tracked(course.net) == 64);
  CHECK(result.epochs.back().train_accuracy > 0.7);
  CHECK(*result.epochs.back().test_accuracy > 0.7);
}

TEST_CASE("trainer: batch norm's state is that of a plain loop") {
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

TEST_CASE("trainer: the checkpoint of a run that a loss stops is of the step before") {
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
  CHECK_THROWS_WITH_AS(trainer.fit(loader), doctest::Contains("which are not saved"), NumericError);
  const auto newest = train::load_latest_checkpoint(folder / "run");
  REQUIRE(newest);
  for (const auto& [name, tensor] : newest->model_state())
    CHECK_MESSAGE(all(isfinite(tensor)).item() == 1, name);
}

TEST_CASE("trainer: a step that is left out renews nothing") {
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
      return cross_entropy(scores, target) * 1e36;  // 65536 times that is no float
    });
    set_precision(Precision::Fp32);
    CHECK(toy::difference(course.net.state_dict(), before) == "");
  }
}
