// Unfreezing during training: what learns when, optimizer state that starts then, and equal bits
// wherever a run is killed.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/train.h>

#include "io/folder.h"
#include "train/toy.h"

using namespace tenon;
using train::Settings;

namespace {

constexpr std::int64_t kSteps = 4;  // of an epoch

Settings later(const std::vector<std::pair<std::string, std::string>>& more = {}) {
  std::vector<std::pair<std::string, std::string>> all{
      {"data", "scenes:40,10"}, {"freeze", "conv1,bn1,layer1,layer2,layer3"},
      {"head", "8,tanh"},       {"augment", "none"},
      {"batch", "10"},          {"epochs", "4"},
      {"lr", "0.02"},           {"warmup", "0.5"},
      {"keep_best", "false"},   {"keep_frozen", "memory"},
      {"unfreeze_after", "2"}};
  all.insert(all.end(), more.begin(), more.end());
  return Settings::resolve("resnet20:width=4", "", all);
}

StateDict weights_of(const std::string& run) {
  return io::load_safetensors(run + "/model.safetensors").tensors;
}

class ToldNotes : public train::Callback {
 public:
  void on_note(const std::string& note) override { all += note + "; "; }
  std::string all;
};

struct Killed {};

// Ends a run like kill -9.
class Killer : public train::Callback {
 public:
  explicit Killer(std::int64_t step) : step_(step) {}
  void on_step(const train::StepReport& report) override {
    if (report.step == step_) throw Killed();
  }

 private:
  std::int64_t step_;
};

}  // namespace

TEST_CASE("unfreeze: parts are frozen for N epochs, then everything learns") {
  const TestFolder folder;
  const auto notes = std::make_shared<ToldNotes>();
  train::RunOptions stopping;
  stopping.callbacks = {notes};
  const train::TrainResult whole = train::start_run(later(), folder / "whole", stopping);
  CAPTURE(notes->all);
  CHECK(notes->all.find("until 2 epochs are done") != std::string::npos);
  CHECK(notes->all.find("from epoch 3 on") != std::string::npos);
  CHECK(whole.epochs.size() == 4);
  const StateDict end = weights_of(folder / "whole");
  // After only frozen epochs the frozen parts have their initial values.
  train::start_run(later({{"epochs", "2"}}), folder / "two");
  train::start_run(later({{"epochs", "2"}, {"unfreeze_after", "0"}}), folder / "never");
  const StateDict two = weights_of(folder / "two");
  CHECK(toy::difference(two, weights_of(folder / "never")) == "");
  for (const auto& entry : end) {
    const std::string& name = entry.first;
    const Tensor& value = entry.second;
    CAPTURE(name);
    const bool same = toy::difference({{"t", two.at(name)}}, {{"t", value}}) == "";
    const bool stays = name.find("num_batches") != std::string::npos && value.item() == 0;
    CHECK((!same || stays));
  }
  // Running statistics are updated from the third epoch on.
  CHECK(end.at("bn1.num_batches_tracked").item() == 2 * kSteps);
  CHECK(two.at("bn1.num_batches_tracked").item() == 0);
  // The same without a run folder.
  const train::TrainResult without = train::start_run(later(), "");
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(without.epochs[k].train_loss == whole.epochs[k].train_loss);
    CHECK(*without.epochs[k].validation_loss == *whole.epochs[k].validation_loss);
  }
  // The same, except for the last digits, if frozen parts are computed in every step.
  const train::TrainResult every = train::start_run(later({{"keep_frozen", "off"}}), "");
  for (std::size_t k = 0; k < 4; ++k)
    CHECK(every.epochs[k].train_loss == doctest::Approx(whole.epochs[k].train_loss).epsilon(1e-3));
  for (const train::VerifyCheck& check : train::verify_run(folder / "whole", 12).checks) {
    CAPTURE(check.name);
    CAPTURE(check.detail);
    CHECK(check.passed);
  }
}

TEST_CASE("unfreeze: a run that is killed anywhere and resumed ends with the same bits") {
  for (const char* optimizer : {"sgd", "adam"})
    for (const char* precision : {"fp32", "fp16"}) {
      const TestFolder folder;
      const Settings s = later({{"optimizer", optimizer},
                                {"lr", "0.01"},
                                {"precision", precision},
                                {"rate_of", "layer1=0.5"},
                                {"checkpoint_steps", "3"}});
      train::start_run(s, folder / "whole");
      const StateDict whole = weights_of(folder / "whole");
      // Killed in the first stage, at its last step, after it, and before the next checkpoint.
      for (const std::int64_t step : {2, 7, 8, 9, 11}) {
        CAPTURE(optimizer);
        CAPTURE(precision);
        CAPTURE(step);
        const std::string run = folder / ("killed" + std::to_string(step));
        train::RunOptions killed;
        killed.callbacks = {std::make_shared<Killer>(step)};
        CHECK_THROWS_AS(train::start_run(s, run, killed), Killed);
        CHECK(train::resume_run(run).steps == 4 * kSteps);
        CHECK(toy::difference(weights_of(run), whole) == "");
      }
      // Stopped at the end of the last frozen epoch, where the next stage starts.
      train::RunOptions stopping;
      std::int64_t epochs = 0;
      struct Count : train::Callback {
        explicit Count(std::int64_t& count) : count_(count) {}
        void on_epoch(const train::EpochReport&) override { ++count_; }
        std::int64_t& count_;
      };
      stopping.callbacks = {std::make_shared<Count>(epochs)};
      stopping.stop = [&epochs] { return epochs >= 2; };
      CHECK(train::start_run(s, folder / "stopped", stopping).steps == 2 * kSteps);
      train::resume_run(folder / "stopped");
      CHECK(toy::difference(weights_of(folder / "stopped"), whole) == "");
    }
}

TEST_CASE("unfreeze: impossible settings are refused with an alternative") {
  const TestFolder folder;
  CHECK_THROWS_WITH_AS(train::start_run(later({{"freeze", ""}}), folder / "a"),
                       doctest::Contains("--freeze features"), ValueError);
  CHECK_THROWS_WITH_AS(later({{"unfreeze_after", "-1"}}), doctest::Contains("unfreeze_after"),
                       ValueError);
  train::start_run(later({{"epochs", "1"}}), folder / "run");
  CHECK_THROWS_WITH_AS(train::resume_run(folder / "run", {}, {{"unfreeze_after", "1"}}),
                       doctest::Contains("cannot become"), ValueError);
  CHECK(train::resume_run(folder / "run", {}, {{"epochs", "3"}}).steps == 3 * kSteps);
}

TEST_CASE("trainer: a user's second stage") {
  const auto points = toy::points(64, 1);
  manual_seed(4);
  const nn::Sequential net(nn::Linear(2, 16), nn::Tanh(), nn::Linear(16, 4));
  data::Loader loader(points, {.batch = 16, .seed = 3}), test(points, {.batch = 64});
  net.freeze("0");
  optim::Adam head(net, {.lr = 0.01});
  net.unfreeze("0");
  std::vector<nn::NamedTensor> first, rest;
  for (const nn::NamedTensor& p : net.named_parameters())
    (p.name.starts_with("0.") ? rest : first).push_back(p);
  optim::Adam all(std::vector<optim::ParameterGroup>{{.parameters = first},
                                                     {.parameters = rest, .own_steps = true}},
                  {.lr = 0.01});
  const StateDict before = toy::snapshot(net.state_dict());
  train::TrainOptions options;
  options.epochs = 3;
  options.keep_best = false;
  options.stage_epochs = 2;
  int asked = 0;
  data::Loader* next = &loader;
  options.next_stage = [&] {
    if (++asked == 1)
      CHECK(toy::difference({{"w", net.state_dict().at("0.weight")}},
                            {{"w", before.at("0.weight")}}) == "");
    return train::Stage{net, &all, next, &test};
  };
  train::Trainer trainer(net, nn::CrossEntropyLoss(), head, options);
  CHECK(trainer.fit(loader, test).steps == 12);
  CHECK(asked == 1);
  CHECK(all.steps() == 12);
  const StateDict state = all.state_dict();
  CHECK(state.at("0.weight.step").item() == 4);
  CHECK(toy::difference({{"w", net.state_dict().at("0.weight")}}, {{"w", before.at("0.weight")}}) !=
        "");
  data::Loader other(points, {.batch = 8});
  next = &other;
  CHECK_THROWS_WITH_AS(trainer.fit(loader, test), doctest::Contains("batches of 8"), ValueError);
  options.next_stage = {};
  CHECK_THROWS_WITH_AS(train::Trainer(net, nn::CrossEntropyLoss(), head, options),
                       doctest::Contains("next_stage"), ValueError);
}
