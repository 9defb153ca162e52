// Transfer learning: loaded weights, frozen parts, and their outputs, computed once.
#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "io/folder.h"
#include "train/toy.h"

using namespace tenon;
using train::Settings;

namespace {

class ToldNotes : public train::Callback {
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

TEST_CASE("frozen: a pretrained base keeps its weights and is computed once") {
  const TestFolder folder;
  const std::string base = folder / "base.safetensors";
  manual_seed(7);
  const StateDict given = models::create("resnet20:width=4", {.classes = 5}).state_dict();
  io::save_safetensors(base, given);
  const auto notes = std::make_shared<ToldNotes>();
  train::start_run(with_head(base), folder / "run", {.callbacks = {notes}});
  CHECK(notes->all.find("tensors are from") != std::string::npos);
  CHECK(notes->all.find("computed once: of 65 samples") != std::string::npos);
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
  // The saved model is the whole network: it takes images.
  const train::TrainedModel model = train::TrainedModel::open(folder / "run");
  CHECK(model.evaluate().items == 12);
  CHECK(model.predict(zeros({2, 3, 32, 32}, DType::UInt8)).shape() == Shape{2, 10});
  std::filesystem::copy_file(folder / "run/model.safetensors", folder / "alone.safetensors");
  const train::TrainedModel alone = train::TrainedModel::open(folder / "alone.safetensors");
  CHECK(alone.predict(zeros({2, 3, 32, 32}, DType::UInt8)).shape() == Shape{2, 10});
  for (const train::VerifyCheck& check : train::verify_run(folder / "run", 6).checks) {
    CAPTURE(check.name);
    CAPTURE(check.detail);
    CHECK(check.passed);
  }
  // Resuming does not need the weight file.
  io::write_file(base, "no weights");
  CHECK(train::resume_run(folder / "run", {}, {{"epochs", "3"}}).epochs.size() == 3);
}

// Images from files are normalized by channel; outputs of a frozen part are not.
TEST_CASE("frozen: the base of a folder of images is computed once") {
  const TestFolder folder;
  for (const char* kind : {"a", "b"}) {
    std::filesystem::create_directories(folder / "images/" + kind);
    for (int k = 0; k < 10; ++k)
      io::save_png(folder / "images/" + kind + "/" + std::to_string(k) + ".png",
                   {40, 36, 3, std::vector<std::uint8_t>(40 * 36 * 3, kind[0] == 'a' ? 50 : 200)});
  }
  const auto notes = std::make_shared<ToldNotes>();
  Settings settings = with_head("", "none");
  settings.weights = "";
  settings.data = "folder:" + (folder / "images,split=0.2");
  train::start_run(settings, folder / "run", {.callbacks = {notes}});
  CAPTURE(notes->all);
  CHECK(notes->all.find("computed once: of 20 samples") != std::string::npos);
  CHECK(train::TrainedModel::open(folder / "run").evaluate().items == 4);

  // Evaluation uses ten crops of each image and leaves out the broken image.
  io::write_file(folder / "images/a/3.png", "");
  std::filesystem::copy(folder / "images", folder / "same",
                        std::filesystem::copy_options::recursive);
  settings.data = "folder:" + (folder / "images,test=") + (folder / "same");
  settings.preprocess = "resize,ten_crop";
  notes->all.clear();
  const train::TrainResult result =
      train::start_run(settings, folder / "ten", {.callbacks = {notes}});
  CHECK(notes->all.find("computed once: of 40 samples") != std::string::npos);
  const train::Evaluation whole = train::TrainedModel::open(folder / "ten").evaluate();
  CHECK(whole.items == 19);
  CHECK(whole.broken.size() == 1);
  CHECK(result.test->samples == 19);
  CHECK(result.test->loss == doctest::Approx(whole.loss).epsilon(1e-4));
}

TEST_CASE("frozen: kept outputs train like outputs computed in every step") {
  const TestFolder folder;
  std::vector<std::vector<double>> losses;
  for (const char* augment : {"none", "cutout=1"}) {  // the latter changes one pixel
    const auto notes = std::make_shared<ToldNotes>();
    const train::TrainResult result =
        train::start_run(with_head("", augment), folder / augment, {.callbacks = {notes}});
    const bool once = notes->all.find("is computed once") != std::string::npos;
    CHECK(once == (std::string(augment) == "none"));
    losses.push_back({result.epochs[0].train_loss, *result.epochs[1].validation_loss});
  }
  for (std::size_t k = 0; k < 2; ++k)
    CHECK(losses[0][k] == doctest::Approx(losses[1][k]).epsilon(0.05));
}

TEST_CASE("frozen: impossible settings are refused with an alternative") {
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

TEST_CASE("rates of parts: factors of the learning rate; the most specific name applies") {
  const TestFolder folder;
  const auto run = [&](const std::string& name, const std::string& rates, const char* epochs) {
    const Settings s = Settings::resolve("resnet20:width=4", "",
                                         {{"data", "scenes:40,10"},
                                          {"augment", "none"},
                                          {"batch", "10"},
                                          {"optimizer", "sgd"},
                                          {"momentum", "0"},
                                          {"weight_decay", "0"},
                                          {"schedule", "constant"},
                                          {"warmup", "0"},
                                          {"lr", "0.5"},
                                          {"max_steps", "1"},
                                          {"epochs", epochs},
                                          {"keep_best", "false"},
                                          {"rate_of", rates}});
    train::start_run(s, folder / name);
    return io::load_safetensors(folder / name + "/model.safetensors").tensors;
  };
  // One plain SGD step: each weight changes by its rate times the same gradient.
  const StateDict start = run("start",
                              "conv1=1e-30,bn1=1e-30,layer1=1e-30,layer2=1e-30,"
                              "layer3=1e-30,linear=1e-30",
                              "1");
  const StateDict plain = run("plain", "", "1");
  const StateDict shared = run("shared", "layer1=0.5,layer1.0=0.25,linear=2", "1");
  const auto moved = [&start](const StateDict& to, const std::string& name) {
    return to.at(name) - start.at(name);
  };
  for (const auto& [name, share] :
       std::vector<std::pair<std::string, double>>{{"conv1.weight", 1},
                                                   {"layer1.1.conv1.weight", 0.5},
                                                   {"layer1.0.conv1.weight", 0.25},
                                                   {"layer3.2.conv2.weight", 1},
                                                   {"linear.weight", 2}}) {
    CAPTURE(name);
    const Tensor once = moved(plain, name), by_share = moved(shared, name);
    const double length = sqrt(sum(square(once))).item<float>();
    CHECK(length > 1e-6);
    CHECK(sqrt(sum(square(by_share - once * share))).item<float>() < 1e-4 * length);
  }
  CHECK_THROWS_WITH_AS(run("a", "layr1=0.5", "1"), doctest::Contains("did you mean 'layer1'"),
                       ValueError);
  CHECK_THROWS_WITH_AS(run("a", "backbone=0.5", "1"),
                       doctest::Contains("is in 'backbone'. The parts of"), ValueError);
  for (const char* bad : {"layer1", "layer1=0", "layer1=-1", "=2", "layer1=nan", "layer1=1,"})
    CHECK_THROWS_AS(run("b", bad, "1"), ValueError);
}

// The published normalization is used, so that an image gives the published result.
TEST_CASE("frozen: weights with torchvision's names fit and scale images as torchvision does") {
  const TestFolder folder;
  const std::string file = folder / "alexnet.safetensors";
  io::save_safetensors(file, models::create("alexnet:width=4", {.classes = 6}).state_dict());
  Settings settings = Settings::for_model("alexnet:width=4");
  settings.classes = 6;
  const train::TrainedModel model = train::TrainedModel::with_weights(settings, file);
  CHECK(model.settings().normalize == "imagenet");
  CHECK(model.fits_images());
  const io::Image photo{256, 300, 3, std::vector<std::uint8_t>(256 * 300 * 3, 124)};
  CHECK(model.fit(photo).shape() == Shape{1, 3, 224, 224});
  // resnet20 has the same names, for images of 32 pixels.
  const std::string small = folder / "small.safetensors";
  io::save_safetensors(small, models::create("resnet20:width=4").state_dict());
  CHECK_FALSE(train::TrainedModel::with_weights(Settings::for_model("resnet20:width=4"), small)
                  .fits_images());
  // A given setting is kept.
  settings.normalize = "0.5,0.5,0.5/0.25,0.25,0.25";
  CHECK(train::TrainedModel::with_weights(settings, file).settings().normalize ==
        settings.normalize);
}
