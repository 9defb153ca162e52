// Transfer learning: weights that fit, parts that do not learn, and what they give, computed once.
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

class Notes : public train::Callback {
 public:
  void on_note(const std::string& note) override { all += note + "; "; }
  std::string all;
};

Settings with_head(const std::string& weights, const std::string& more = "none") {
  return Settings::resolve("resnet20:width=4", "",
                           {{"data", "scenes:48,12"},
                            {"weights", weights},
                            {"freeze", "conv1,bn1,layer1,layer2,layer3"},
                            {"head", "8,relu,dropout=0.2"},
                            {"augment", more},
                            {"batch", "10"},
                            {"epochs", "2"},
                            {"warmup", "0"},
                            {"keep_best", "false"}});
}

}  // namespace

TEST_CASE("frozen: a base of other people's weights stays, and is computed once") {
  const TestFolder folder;
  const std::string base = folder / "base.safetensors";
  manual_seed(7);
  const StateDict given = models::create("resnet20:width=4", {.classes = 5}).state_dict();
  io::save_safetensors(base, given);
  const auto notes = std::make_shared<Notes>();
  train::start_run(with_head(base), folder / "run", {.callbacks = {notes}});
  CHECK(notes->all.find("tensors are from") != std::string::npos);
  CHECK(notes->all.find("computed once: of 60 examples") != std::string::npos);
  const StateDict learnt = io::load_safetensors(folder / "run/model.safetensors").tensors;
  int same = 0;
  for (const auto& entry : given)
    if (!entry.first.starts_with("linear.")) {
      CAPTURE(entry.first);
      CHECK(toy::difference({{"t", learnt.at(entry.first)}}, {{"t", entry.second}}) == "");
      ++same;
    }
  CHECK(same > 100);
  CHECK(learnt.at("linear.3.weight").shape() == Shape{10, 8});
  // The saved model is whole: it takes pictures.
  const train::TrainedModel model = train::TrainedModel::open(folder / "run");
  CHECK(model.evaluate().items == 12);
  CHECK(model.predict(zeros({2, 3, 32, 32}, DType::UInt8)).shape() == Shape{2, 10});
  for (const train::VerifyCheck& check : train::verify_run(folder / "run", 6).checks) {
    CAPTURE(check.name);
    CAPTURE(check.detail);
    CHECK(check.passed);
  }
  // A run that goes on needs the file no more.
  io::write_file(base, "no weights");
  CHECK(train::resume_run(folder / "run", {}, {{"epochs", "3"}}).epochs.size() == 3);
}

TEST_CASE("frozen: what is kept trains as what is computed in every step") {
  const TestFolder folder;
  std::vector<std::vector<double>> losses;
  for (const char* augment : {"none", "cutout=1"}) {  // the latter changes one pixel
    const auto notes = std::make_shared<Notes>();
    const train::TrainResult result =
        train::start_run(with_head("", augment), folder / augment, {.callbacks = {notes}});
    const bool once = notes->all.find("once") != std::string::npos;
    CHECK(once == (std::string(augment) == "none"));
    losses.push_back({result.epochs[0].train_loss, *result.epochs[1].test_loss});
  }
  for (std::size_t k = 0; k < 2; ++k)
    CHECK(losses[0][k] == doctest::Approx(losses[1][k]).epsilon(0.05));
}

TEST_CASE("frozen: what cannot be is refused with a way out") {
  const TestFolder folder;
  const std::string file = folder / "other.safetensors";
  io::save_safetensors(file, {{"something", zeros({3})}});
  CHECK_THROWS_WITH_AS(train::start_run(with_head(file), ""), doctest::Contains("something"),
                       ValueError);
  Settings s = with_head("");
  s.freeze = "layer4";
  CHECK_THROWS_WITH_AS(train::start_run(s, ""), doctest::Contains("layer"), ValueError);
  s.freeze = "layer1,";
  CHECK_THROWS_WITH_AS(train::start_run(s, ""), doctest::Contains("freeze"), ValueError);
  s = with_head("");
  for (const char* head : {"8,,relu", "0", "8,relu=2", "dropout=1", "nonsense"}) {
    s.head = head;
    CHECK_THROWS_AS(train::start_run(s, ""), ValueError);
  }
  CHECK_THROWS_WITH_AS(models::create("lenet5", {.head = "8"}), doctest::Contains("vgg16"),
                       ValueError);
}
