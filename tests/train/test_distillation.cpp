// Distillation: the loss compared with PyTorch's, and runs that learn from another run.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/distillation.h>
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "io/folder.h"
#include "train/toy.h"

using namespace tenon;
using train::Settings;

namespace {

Settings digits(const std::string& model, const std::string& teacher = "",
                const std::string& weight = "0.5") {
  return Settings::resolve(model, "",
                           {{"data", "digits:200,50"},
                            {"teacher", teacher},
                            {"distill_weight", weight},
                            {"epochs", "2"},
                            {"batch", "20"},
                            {"keep_best", "false"}});
}

}  // namespace

// torch 2: s.requires_grad_(); F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1),
// reduction='batchmean') * T * T, with T = 3, and its gradient.
TEST_CASE("distillation_loss: PyTorch's kl_div with batchmean, times the temperature squared") {
  const Tensor s = variable(Tensor::from(std::vector<double>{1, -2, 0.5, 3, 0, -1}, {2, 3}));
  const Tensor t = variable(Tensor::from(std::vector<double>{0.5, 1.5, -1, 2, 2, -3}, {2, 3}));
  const Tensor loss = distillation_loss(s, t, 3);
  CHECK(loss.item() == doctest::Approx(1.7204079347010284).epsilon(1e-12));
  const std::vector<Tensor> grads = grad(loss, std::vector<Tensor>{s, t});
  const std::vector<double> wanted{0.1777531983892727,  -0.44810792022357565, 0.27035472183430304,
                                   0.23412917691015847, -0.34705038170607333, 0.11292120479591494};
  const std::vector<double> given = grads[0].to_vector<double>();
  for (std::size_t k = 0; k < wanted.size(); ++k)
    CHECK(given[k] == doctest::Approx(wanted[k]).epsilon(1e-10));
  CHECK(amax(abs(grads[1])).item() == 0);
  CHECK(distillation_loss(s, t, 3, Reduction::None).shape() == Shape{2});
  CHECK(distillation_loss(t, t, 2).item() == doctest::Approx(0));
  CHECK_THROWS_AS(distillation_loss(s, t, 0), ValueError);
  CHECK_THROWS_AS(distillation_loss(s, zeros({2, 4}, DType::Float64)), ShapeError);
  CHECK_THROWS_AS(distillation_loss(zeros({3}), zeros({3})), ShapeError);
}

TEST_CASE("teacher: a run learns from another run's scores") {
  const TestFolder folder;
  train::start_run(digits("mlp:784-32-10"), folder / "teacher");
  const auto run = [&](const std::string& name, const std::string& weight) {
    train::start_run(digits("mlp:784-12-10", folder / "teacher", weight), folder / name);
    return io::load_safetensors(folder / name + "/model.safetensors").tensors;
  };
  const StateDict half = run("half", "0.5");
  CHECK(toy::difference(half, run("again", "0.5")) == "");
  // With weight 0 the run equals a run without a teacher.
  train::start_run(digits("mlp:784-12-10"), folder / "alone");
  const StateDict alone = io::load_safetensors(folder / "alone/model.safetensors").tensors;
  CHECK(toy::difference(half, alone) != "");
  const Tensor apart = run("none", "0").at("0.weight") - alone.at("0.weight");
  CHECK(amax(abs(apart)).item<float>() < 1e-5);
  for (const train::VerifyCheck& check : train::verify_run(folder / "half", 6).checks) {
    CAPTURE(check.name);
    CAPTURE(check.detail);
    CHECK(check.passed);
  }
  // The saved model does not need the teacher; resuming does.
  std::filesystem::remove(folder / "teacher/model.safetensors");
  CHECK(train::TrainedModel::open(folder / "half").evaluate().items == 50);
}

TEST_CASE("teacher: weights other than those that the run began with are refused") {
  const TestFolder folder;
  Settings s = digits("mlp:784-32-10");
  train::start_run(s, folder / "teacher");
  train::start_run(digits("mlp:784-12-10", folder / "teacher"), folder / "student");
  const std::vector<std::pair<std::string, std::string>> longer{{"epochs", "2"}};
  // The same weights elsewhere are the same teacher.
  std::filesystem::rename(folder / "teacher", folder / "kept");
  s.set("seed", "7");
  train::start_run(s, folder / "teacher");
  CHECK_THROWS_WITH_AS(train::resume_run(folder / "student", {}, longer),
                       doctest::Contains("was written with another teacher"), ValueError);
  std::filesystem::remove_all(folder / "teacher");
  std::filesystem::rename(folder / "kept", folder / "teacher");
  CHECK(train::resume_run(folder / "student", {}, longer).epochs.size() == 2);
}

TEST_CASE("teacher: of sequences, whose padding does not count") {
  const TestFolder folder;
  const auto run = [&](const std::string& name, const std::string& sizes,
                       const std::string& teacher, const std::string& lora) {
    Settings s = Settings::resolve("transformer:" + sizes, "",
                                   {{"data", "numbers:300,40,below=1000,to=french"},
                                    {"epochs", "1"},
                                    {"batch", "30"},
                                    {"teacher", teacher},
                                    {"lora", lora}});
    if (!teacher.empty()) s.set("distill_weight", "1"), s.set("temperature", "2");
    return train::start_run(s, folder / name);
  };
  run("teacher", "layers=1,heads=2,width=16", "", "");
  const double from_other =
      run("student", "layers=1,heads=2,width=8", folder / "teacher", "").epochs[0].train_loss;
  CHECK(from_other > 0);
  CHECK(from_other < 4);
  // Adapters in a translation network, which then translates.
  run("adapted", "layers=1,heads=2,width=16", "", "rank=2");
  CHECK(train::TrainedModel::open(folder / "adapted").task().name() == "translation");
}

TEST_CASE("teacher: options of a teacher are refused without a teacher") {
  const TestFolder folder;
  Settings s = digits("mlp:784-8-10");
  train::start_run(s, folder / "run");
  s.set("temperature", "2");
  CHECK_THROWS_WITH_AS(train::start_run(s, folder / "refused"),
                       doctest::Contains("'temperature' is 2, but there is no teacher"),
                       ValueError);
  CHECK(!std::filesystem::exists(folder / "refused"));
  // For a run this is a changed setting.
  std::ofstream(folder / "run/settings.toml") << s.toml();
  CHECK_THROWS_WITH_AS(train::resume_run(folder / "run"),
                       doctest::Contains("'temperature' is '2', and '4' in the newest checkpoint"),
                       ValueError);
}

TEST_CASE("teacher: one of other classes or inputs is refused") {
  const TestFolder folder;
  train::start_run(digits("mlp:784-8-10"), folder / "teacher");
  Settings s = Settings::resolve("resnet20:width=4", "",
                                 {{"data", "scenes:20,10"},
                                  {"augment", "none"},
                                  {"teacher", folder / "teacher"},
                                  {"epochs", "1"}});
  CHECK_THROWS_WITH_AS(train::start_run(s, ""), doctest::Contains("same data"), ValueError);
  CHECK_THROWS_AS(train::start_run(digits("mlp:784-8-10", folder / "nothing"), ""), Error);
}

TEST_CASE("teacher: pixels must be scaled alike, by whichever setting") {
  const TestFolder folder;
  const auto scenes = [&](const std::string& normalize, const std::string& mean,
                          const std::string& teacher) {
    return Settings::resolve("resnet20:width=2", "",
                             {{"data", "scenes:20,10"},
                              {"batch", "10"},
                              {"augment", "none"},
                              {"normalize", normalize},
                              {"input_mean", mean},
                              {"teacher", teacher},
                              {"epochs", "1"}});
  };
  train::start_run(scenes("imagenet", "0.1", ""), folder / "teacher");
  // Neither network uses input_mean.
  train::start_run(scenes("imagenet", "0.3", folder / "teacher"), folder / "student");
  CHECK_THROWS_WITH_AS(train::start_run(scenes("none", "0.1", folder / "teacher"), ""),
                       doctest::Contains("mean 0.485,0.456,0.406 and deviation"), ValueError);
  CHECK_THROWS_WITH_AS(
      train::start_run(scenes("0.5,0.5,0.5/0.2,0.2,0.2", "0.1", folder / "teacher"), ""),
      doctest::Contains("this run has 0.5 and deviation 0.2: set normalize"), ValueError);
  // One number for all channels, or the same number for each.
  Settings plain = scenes("none", "0.5", "");
  plain.set("input_std", "0.2");
  train::start_run(plain, folder / "plain");
  train::start_run(scenes("0.5,0.5,0.5/0.2,0.2,0.2", "0.1", folder / "plain"), folder / "same");
}
