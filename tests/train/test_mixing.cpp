// MixUp and CutMix: equal to torchvision's with the same random numbers, which depend on (seed,
// epoch, batch) only; the loss uses mixed labels.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "io/folder.h"
#include "train/batches/mixing.h"
#include "train/toy.h"

using namespace tenon;
using data::MixDraw;

namespace {

double most_apart(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  return amax(abs(a - b)).item();
}

MixDraw mix_up(double share) { return {.pixels = share, .share = share}; }

Tensor row_of(const MixDraw& d) {
  return Tensor::from(
      std::vector<float>{static_cast<float>(d.pixels), static_cast<float>(1 - d.pixels),
                         static_cast<float>(d.share), static_cast<float>(1 - d.share),
                         static_cast<float>(d.left), static_cast<float>(d.top),
                         static_cast<float>(d.right), static_cast<float>(d.bottom)},
      {train::kMixNumbers});
}

}  // namespace

TEST_CASE(
    "mixing: images, labels, losses and gradients equal torchvision's with equal random numbers") {
  const io::TensorMap fixtures =
      io::load_safetensors("tests/e2e/fixtures/mixing.safetensors").tensors;
  const Tensor images = fixtures.at("images"), labels = fixtures.at("labels");
  struct Case {
    std::string name;
    MixDraw draw;
  };
  const std::vector<Case> cases = {{"mixup", mix_up(0.37)},
                                   {"cutmix", data::cut_mix(0.6, 5, 4, 9, 11)},
                                   {"cutmix_corner", data::cut_mix(0.3, 0, 8, 9, 11)},
                                   {"cutmix_whole", data::cut_mix(0, 5, 4, 9, 11)}};
  for (const auto& [name, draw] : cases) {
    CAPTURE(name);
    if (name != "mixup")
      CHECK(fixtures.at(name + ".box").to_vector<std::int64_t>() ==
            std::vector<std::int64_t>{draw.left, draw.top, draw.right, draw.bottom});
    const data::Batch mixed = train::mixed({images, labels, 4}, draw, 5);
    CHECK(most_apart(mixed.input, fixtures.at(name)) <= (name == "mixup" ? 2e-7 : 0));
    CHECK(most_apart(mixed.target, fixtures.at(name + ".labels")) <= 1e-7);
    const train::Mixed how(row_of(draw));
    for (const double smoothing : {0.0, 0.1}) {
      const std::string key = name + (smoothing > 0 ? ".smooth" : "");
      const Tensor scores = variable(fixtures.at("scores"));
      const Tensor loss = how.loss(nn::CrossEntropyLoss{smoothing}, scores, labels);
      CHECK(std::abs(loss.item() - fixtures.at(key + ".loss").item()) <= 1e-6);
      CHECK(most_apart(grad(loss, scores), fixtures.at(key + ".grad")) <= 1e-7);
    }
  }
}

TEST_CASE("mixing: weights follow Beta, both kinds equally often, by seed, epoch and batch only") {
  for (const double alpha : {0.2, 1.0, 4.0}) {
    CAPTURE(alpha);
    constexpr int kDraws = 20000;
    double sum = 0, squares = 0;
    for (int k = 0; k < kDraws; ++k) {
      const double share = data::draw_mix({.mixup = alpha}, 8, 8, 1, 2, k).share;
      REQUIRE(share >= 0);
      REQUIRE(share <= 1);
      sum += share, squares += share * share;
    }
    const double mean = sum / kDraws, variance = squares / kDraws - mean * mean;
    CHECK(std::abs(mean - 0.5) < 0.01);
    CHECK(std::abs(variance - 1 / (4 * (2 * alpha + 1))) < 0.004);
  }
  const data::Mixing both{.mixup = 0.4, .cutmix = 1};
  int cuts = 0;
  for (int k = 0; k < 2000; ++k) {
    const MixDraw a = data::draw_mix(both, 12, 20, 1, 2, k),
                  b = data::draw_mix(both, 12, 20, 1, 2, k);
    CHECK(a.share == b.share);
    CHECK(a.left == b.left);
    const bool cut = a.pixels == 1;
    cuts += cut ? 1 : 0;
    REQUIRE(a.right <= 20);
    REQUIRE(a.bottom <= 12);
    if (cut) CHECK(std::abs(1 - a.share - (a.right - a.left) * (a.bottom - a.top) / 240.0) < 1e-12);
  }
  CHECK(std::abs(cuts - 1000) < 120);
  const auto share = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t batch) {
    return data::draw_mix({.mixup = 1}, 8, 8, seed, epoch, batch).share;
  };
  CHECK(share(1, 2, 3) != share(2, 2, 3));
  CHECK(share(1, 2, 3) != share(1, 3, 3));
  CHECK(share(1, 2, 3) != share(1, 2, 4));
}

TEST_CASE("mixing: parsed from a list of transforms, and refused for single images") {
  const data::Transforms list = data::Transforms::parse("flip,mixup=0.2,cutmix");
  CHECK(list.mixing().mixup == 0.2);
  CHECK(list.mixing().cutmix == 1);
  CHECK(list.without_mixing().text() == "flip");
  CHECK(data::Transforms({data::transforms::mixup(0.3)}).mixing().mixup == 0.3);
  CHECK(data::Transforms({data::transforms::cutmix()}).mixing().cutmix == 1);
  CHECK_FALSE(data::Transforms::parse("flip").mixing().any());
  CHECK_THROWS_AS(data::Transforms::parse("mixup=0"), ValueError);
  CHECK_THROWS_AS(list.apply({1, 1, 1, {0}}, 1, 1, 0, 0, 0), ValueError);
  CHECK_THROWS_AS(data::augmented(data::drawn_digits(0, 10), list), ValueError);
  CHECK_THROWS_AS(data::draw_mix({}, 8, 8, 0, 0, 0), ValueError);
  CHECK_THROWS_AS(train::mix_rows({.cutmix = 1}, {2}, {}, 0, 1), ValueError);
  const data::Batch bytes{zeros({2, 1, 3, 3}, DType::UInt8), zeros({2}, DType::Int64), 2};
  CHECK_THROWS_AS(train::mixed(bytes, mix_up(0.5), 2), DTypeError);
}

TEST_CASE("mixing: a trainer learns with mixing, and a resumed run ends with the same bits") {
  train::TrainOptions o{.epochs = 6, .mixing = {.mixup = 0.3}, .keep_best = false};
  toy::Session whole(3), plain(3);
  const train::TrainResult result = whole.fit(o);
  CHECK(*result.epochs.back().train_accuracy > 0.7);
  CHECK(result.epochs.back().train_loss > 0.4);  // mixed labels keep the loss above 0
  CHECK(*result.epochs.back().validation_metrics["accuracy"] > 0.9);
  o.mixing = {};
  plain.fit(o);
  CHECK(toy::difference(whole.net.state_dict(), plain.net.state_dict()) != "");
  o.mixing = {.mixup = 0.3};
  const TestFolder folder;
  o.run_dir = folder / "run";
  o.stop_after = 39;
  toy::Session first(3);
  CHECK(first.fit(o).reason == train::StopReason::Interrupted);
  o.stop_after = 0;
  o.resume = true;
  toy::Session second(9);
  second.fit(o);
  CHECK(toy::difference(second.net.state_dict(), whole.net.state_dict()) == "");
  o = {.task = train::find_task("language"), .mixing = {.mixup = 1}};
  CHECK_THROWS_AS(train::Trainer(whole.net, nn::CrossEntropyLoss(), whole.optimizer, o),
                  ValueError);
}

TEST_CASE("mixing: set in a run's settings, by name and in a file") {
  train::Settings settings = train::Settings::for_model("lenet5");
  settings.set("data", "digits:64,32");
  settings.set("epochs", "1");
  settings.set("batch", "16");
  const auto loss = [&](const std::string& augment) {
    settings.set("augment", augment);
    return train::start_run(settings, "").epochs.back().train_loss;
  };
  const double none = loss("none"), mixed = loss("mixup=0.2,cutmix=1");
  CHECK(mixed != none);
  CHECK(mixed == loss("cutmix=1,mixup=0.2"));
  CHECK(loss("crop=2") != loss("crop=2,mixup=1"));
  const TestFolder folder;
  io::write_file(folder / "s.toml", "model = \"lenet5\"\naugment = \"flip,mixup=0.2,cutmix=1\"\n");
  CHECK(train::Settings::resolve("", folder / "s.toml", {}).augment == "flip,mixup=0.2,cutmix=1");
  CHECK_THROWS_AS(settings.set("augment", "mixup=-1"), ValueError);
}
