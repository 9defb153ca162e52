// Predictions of an opened model: the bits of its network, one run of one kept program a request,
// from any number of threads.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "io/folder.h"

using namespace tenon;
using train::Settings;
using train::TrainedModel;

namespace {

// A model with random weights.
TrainedModel opened(const TestFolder& folder, const Settings& settings) {
  const nn::AnyModule net = settings.create_model({.classes = settings.classes});
  io::save_safetensors(folder / "weights.safetensors", net.state_dict());
  return TrainedModel::with_weights(settings, folder / "weights.safetensors");
}

TrainedModel lenet5(const TestFolder& folder) {
  Settings settings = Settings::for_model("lenet5");
  settings.classes = 10;
  return opened(folder, settings);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.data(), b.data(),
                     static_cast<std::size_t>(a.numel()) * item_size(a.dtype())) == 0;
}

// The pixels as the data loader scales them.
Tensor loaded(const Tensor& bytes, const data::LoaderOptions& scaling) {
  data::LoaderOptions options = scaling;
  options.batch = bytes.size(0);
  options.shuffle = false;
  data::Loader loader(data::from_tensors(bytes, zeros({bytes.size(0)}, DType::Int64)), options);
  data::Batch batch;
  REQUIRE(loader.next(batch));
  return batch.input;
}

}  // namespace

TEST_CASE("predictor: the bits of the network, in every precision and batch size") {
  const TestFolder folder;
  TrainedModel model = lenet5(folder);
  const Settings& settings = model.settings();
  for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
    model.set_precision(precision);
    CAPTURE(name(precision));
    Context context = current_context();
    context.precision = precision;
    const ContextScope scope(context);
    for (const std::int64_t batch : {1, 3, 64, 100, 3}) {
      CAPTURE(batch);
      const Tensor bytes = randint(0, 256, {batch, 1, 28, 28}, DType::UInt8).eval(),
                   numbers = rand({batch, 1, 28, 28}).eval();
      CHECK(same_bits(model.predict(numbers), softmax(model.net()(numbers)).eval()));
      const Tensor pixels = loaded(bytes, {.mean = settings.input_mean, .std = settings.input_std});
      CHECK(same_bits(model.predict(bytes), softmax(model.net()(pixels)).eval()));
    }
  }
}

TEST_CASE("predictor: the mean of an image's views, with scaled channels") {
  const TestFolder folder;
  Settings settings = Settings::for_model("resnet20");
  settings.classes = 4;
  settings.normalize = "0.5,0.4,0.3/0.2,0.3,0.4";
  const TrainedModel model = opened(folder, settings);
  const data::LoaderOptions scaling{.channel_mean = {0.5, 0.4, 0.3},
                                    .channel_std = {0.2, 0.3, 0.4}};
  const Tensor views = randint(0, 256, {2, 5, 3, 32, 32}, DType::UInt8).eval();
  const Tensor pixels = reshape(loaded(views, scaling), {10, 3, 32, 32});
  CHECK(same_bits(model.predict(views),
                  softmax(train::mean_of_views(model.net()(pixels), 5)).eval()));
  const Tensor one = select(views, 0, 0).eval();
  CHECK(same_bits(model.predict(one), softmax(model.net()(loaded(one, scaling))).eval()));
  CHECK_THROWS_WITH_AS(model.predict(zeros({2, 3072}, DType::UInt8)),
                       doctest::Contains("scales 3 channels"), ShapeError);
}

TEST_CASE("predictor: a request runs one program and plans none") {
  const TestFolder folder;
  const TrainedModel model = lenet5(folder);
  const Tensor bytes = randint(0, 256, {4, 1, 28, 28}, DType::UInt8).eval(),
               numbers = rand({4, 1, 28, 28}).eval();
  const Tensor first = model.predict(bytes);
  (void)model.predict(numbers);
  const RunnerStats before = runner_stats();
  const std::int64_t traces = cache_stats().traces.count;
  for (int k = 0; k < 10; ++k) {
    CHECK(same_bits(model.predict(bytes), first));
    (void)model.predict(numbers);
  }
  const RunnerStats after = runner_stats();
  CHECK(after.programs_run - before.programs_run == 20);
  CHECK(after.programs_planned == before.programs_planned);
  CHECK(cache_stats().traces.count == traces);
}

TEST_CASE(
    "predictor: new weights count, and kept programs are bounded by the limit of the caches") {
  const TestFolder folder;
  const TrainedModel model = lenet5(folder);
  const Tensor x = rand({2, 1, 28, 28}).eval(), before = model.predict(x);
  nn::AnyModule net = model.net();
  net.load_state_dict(models::create("lenet5").state_dict());
  CHECK_FALSE(same_bits(model.predict(x), before));
  CHECK(same_bits(model.predict(x), softmax(net(x)).eval()));
  const std::int64_t limit = cache_stats().limit;
  set_cache_limit(1);
  for (const std::int64_t batch : {2, 3, 4, 2}) {
    const Tensor images = rand({batch, 1, 28, 28}).eval();
    CHECK(same_bits(model.predict(images), softmax(net(images)).eval()));
  }
  set_cache_limit(limit);
}

TEST_CASE("predictor: threads get the bits of one thread, also for new batch sizes") {
  const TestFolder folder;
  const TrainedModel model = lenet5(folder), expected = lenet5(folder);
  nn::AnyModule net = expected.net();
  net.load_state_dict(model.net().state_dict());
  std::vector<Tensor> inputs, outputs;
  for (std::int64_t batch = 1; batch <= 6; ++batch) {
    inputs.push_back(randint(0, 256, {batch, 1, 28, 28}, DType::UInt8).eval());
    outputs.push_back(expected.predict(inputs.back()));
  }
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (std::size_t k = 0; k < 60; ++k) {
        const std::size_t which = (k + t) % inputs.size();
        if (!same_bits(model.predict(inputs[which]), outputs[which])) ++wrong[t];
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}
