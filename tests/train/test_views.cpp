// Evaluation with several views of each sample; each image counts once.
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "io/folder.h"

using namespace tenon;
using train::mean_of_views;

namespace {

// Scores of three classes: the means of the channels, so that every crop has other scores.
struct Means : nn::Module {
  Means() {
    weight = parameter("weight", Tensor::from<float>({4, -3, 1, -2, 5, 2, 3, 1, -4}, {3, 3}));
  }
  Tensor forward(const Tensor& x) const override { return matmul(mean(x, {2, 3}), weight); }
  Tensor weight;
};

// Images of colour gradients, one class for each direction.
void make_images(const TestFolder& dir) {
  for (int k = 0; k < 3; ++k)
    for (int number = 0; number < 7; ++number) {
      io::Image image{31 + number, 40 - number, 3, {}};
      for (int y = 0; y < image.height; ++y)
        for (int x = 0; x < image.width; ++x)
          for (int c = 0; c < 3; ++c)
            image.pixels.push_back(static_cast<std::uint8_t>(c == k ? 6 * x : 5 * y + 3 * number));
      const std::string folder = dir / ("in/" + std::to_string(k));
      std::filesystem::create_directories(folder);
      io::save_png(folder + "/" + std::to_string(number) + ".png", image);
    }
}

data::ImageOptions ten_crops() {
  data::ImageOptions how;
  how.input = {3, 24, 20};
  how.resize = data::Transforms::parse("resize,ten_crop");
  how.broken_left_out = true;
  return how;
}

}  // namespace

TEST_CASE("views: the softmax of mean_of_views() is the mean of softmaxes, also for large scores") {
  const std::vector<double> scores{1, 2, -1, 0.5, 0,    3,     -90, 4, 80,
                                   5, 5, 5,  0,   1000, -1000, 7,   1, 2};
  const Tensor mean = mean_of_views(Tensor::from(scores, {6, 3}), 3);
  CHECK(mean.shape() == Shape{2, 3});
  const std::vector<double> found = softmax(mean).to_vector<double>();
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t c = 0; c < 3; ++c) {
      double wanted = 0;
      for (std::size_t v = 0; v < 3; ++v) {
        const double* row = &scores[(n * 3 + v) * 3];
        const double most = std::max({row[0], row[1], row[2]});
        wanted += std::exp(row[c] - most) /
                  (std::exp(row[0] - most) + std::exp(row[1] - most) + std::exp(row[2] - most)) / 3;
      }
      CHECK(found[n * 3 + c] == doctest::Approx(wanted).epsilon(1e-12));
    }
  // Equal views give the result of one view.
  const Tensor one = Tensor::from<double>({3, -1, 0.25}, {1, 3});
  const std::vector<double> same =
      mean_of_views(concat({one, one, one, one, one}, 0), 5).to_vector<double>();
  CHECK(same[0] == doctest::Approx(3));
  CHECK(same[2] == doctest::Approx(0.25));
  CHECK(mean_of_views(Tensor::from<double>({1, 2, 5, 8}, {4, 1}), 2, true).to_vector<double>() ==
        std::vector<double>{1.5, 6.5});
  CHECK_THROWS_AS(mean_of_views(Tensor::from(scores, {6, 3}), 4), ShapeError);
}

TEST_CASE("views: a trainer evaluates with the mean over crops, each image once") {
  const TestFolder dir;
  make_images(dir);
  const std::vector<std::string> bad{dir / "in/0/2.png", dir / "in/2/0.png"};
  for (const std::string& file : bad) io::write_file(file, "no image");
  const auto images = data::open_image_folder(dir / "in", data::Split::Test, {.whole = true});
  const data::ImageOptions how = ten_crops();
  const Means net;
  double loss = 0;
  int right = 0, count = 0;
  for (std::int64_t i = 0; i < images->size(); ++i) {
    if (images->name(i) == bad[0] || images->name(i) == bad[1]) continue;
    const Tensor crops = data::preprocess_image(io::load_image(images->name(i), 3), how);
    const Tensor pixels = cast(select(crops, 0, 0), DType::Float32) / 255.0;
    const std::vector<float> p = mean(softmax(net.forward(pixels)), 0).to_vector<float>();
    const auto label = static_cast<std::size_t>(images->label(i));
    loss -= std::log(static_cast<double>(p[label]));
    right += std::max_element(p.begin(), p.end()) - p.begin() == static_cast<std::ptrdiff_t>(label);
    ++count;
  }
  optim::Sgd optimizer(net, {.lr = 1e-30});
  train::TrainOptions options;
  options.epochs = 1;
  train::Trainer trainer(net, nn::CrossEntropyLoss(), optimizer, options);
  for (const std::int64_t batch : {1, 4, 100}) {  // with size 1 some batches are empty
    data::Loader test(data::image_dataset(images, how), {.batch = batch, .shuffle = false});
    const train::Evaluation found = trainer.evaluate(test);
    CHECK(found.items == count);
    CHECK(count == 19);
    CHECK(found.loss == doctest::Approx(loss / count).epsilon(1e-5));
    CHECK(found.accuracy == doctest::Approx(static_cast<double>(right) / count));
    CHECK(found.confusion.total() == count);
    CHECK(test.dataset().broken() == bad);
  }
  // The evaluation after an epoch is the same; training uses one crop per image.
  data::ImageOptions training = how;
  training.resize = how.resize.middle_only();
  training.broken_left_out = false;
  data::Loader train(data::image_dataset(images, training), {.batch = 7}),
      test(data::image_dataset(images, how), {.batch = 4, .shuffle = false});
  const train::TrainResult result = trainer.fit(train, test);
  CHECK(*result.epochs[0].validation_loss == doctest::Approx(loss / count).epsilon(1e-5));

  for (std::int64_t i = 0; i < images->size(); ++i) io::write_file(images->name(i), "none");
  data::Loader nothing(data::image_dataset(images, how), {.batch = 4, .shuffle = false});
  CHECK_THROWS_WITH_AS(trainer.evaluate(nothing), doctest::Contains("no sample of 21 images"),
                       FormatError);
}

TEST_CASE(
    "views: a run keeps its preprocessing, and a trained model can be evaluated with another") {
  const TestFolder dir;
  make_images(dir);
  train::Settings settings = train::Settings::for_model("resnet20");
  std::filesystem::copy(dir / "in", dir / "same", std::filesystem::copy_options::recursive);
  settings.set("data", "folder:" + (dir / "in,test=") + (dir / "same"));
  settings.set("preprocess", "resize,ten_crop");
  settings.set("epochs", "1");
  settings.set("lr", "0.0001");  // keeps scores small, so that probabilities differ
  settings.set("batch", "7");
  settings.set("augment", "none");
  train::start_run(settings, dir / "run");
  train::TrainedModel model = train::TrainedModel::open(dir / "run/model.safetensors");
  CHECK(model.fitting() == "resize,ten_crop");
  const io::Image image = io::load_image(dir / "in/1/3.png", 3);
  const Tensor crops = model.fit(image);
  CHECK(crops.shape() == Shape{1, 10, 3, 32, 32});
  const std::vector<float> found = model.predict(crops).to_vector<float>(),
                           wanted = mean(model.predict(select(crops, 0, 0)), 0).to_vector<float>();
  for (std::size_t c = 0; c < 3; ++c) CHECK(found[c] == doctest::Approx(wanted[c]).epsilon(1e-5));
  const train::Evaluation ten = model.evaluate(settings.data);
  CHECK(ten.items == 21);
  double loss = 0;
  for (int k = 0; k < 21; ++k) {
    const std::string file =
        dir / ("in/" + std::to_string(k / 7) + "/" + std::to_string(k % 7) + ".png");
    const std::vector<float> p =
        model.predict(model.fit(io::load_image(file, 3))).to_vector<float>();
    loss -= std::log(static_cast<double>(p[static_cast<std::size_t>(k / 7)])) / 21;
  }
  CHECK(ten.loss == doctest::Approx(loss).epsilon(1e-4));
  model.set_preprocess("resize,center_crop");
  CHECK(model.fit(image).shape() == Shape{1, 3, 32, 32});
  CHECK(model.evaluate(settings.data).loss != doctest::Approx(ten.loss).epsilon(1e-6));
  for (const char* text : {"ten_crop,center_crop", "resize", "resize,ten_crop,flip"})
    CHECK_THROWS_AS(model.set_preprocess(text), ValueError);
}
