// The Trainer with a sparse embedding: the rows that a batch reads are updated as an update of the
// whole table updates them, also with clipping and loss scaling, and runs resume.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/optimizers.h>
#include <tenon/precision.h>
#include <tenon/train.h>

#include "io/folder.h"
#include "train/toy.h"

using namespace tenon;
using train::TrainOptions;

namespace {

constexpr std::int64_t kTokens = 40, kLength = 3;

data::Loader sequences() {
  Generator g(4);
  const Tensor x = randint(0, kTokens, {64, kLength}, DType::Int64, g).compute();
  const Tensor y = remainder(sum(x, {1}), 2).compute();
  return {data::from_tensors(x, y, 2), {.batch = 8, .seed = 3}};
}

nn::Sequential network(bool sparse) {
  manual_seed(7);
  return nn::Sequential(nn::Embedding(kTokens, 4, {.sparse = sparse}), nn::Flatten(),
                        nn::Linear(kLength * 4, 2));
}

std::vector<float> fitted(bool sparse, const TrainOptions& options) {
  const nn::Sequential net = network(sparse);
  optim::Sgd sgd(net, {.lr = 0.5});
  data::Loader loader = sequences();
  train::Trainer(net, nn::CrossEntropyLoss(), sgd, options).fit(loader);
  return net.state_dict().at("0.weight").to_vector<float>();
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : HUGE_VAL;
  for (std::size_t k = 0; k < a.size() && k < b.size(); ++k)
    most = std::max(most, std::abs(double{a[k]} - double{b[k]}));
  return most;
}

}  // namespace

TEST_CASE("trainer: a sparse embedding learns what any other learns") {
  const TrainOptions plain{.epochs = 3, .keep_best = false};
  CHECK(fitted(true, plain) == fitted(false, plain));
  TrainOptions clipped = plain;
  clipped.clip_norm = 0.2;
  clipped.clip_value = 0.1;
  CHECK(largest_difference(fitted(true, clipped), fitted(false, clipped)) < 1e-5);
  CHECK(largest_difference(fitted(true, clipped), fitted(true, plain)) > 1e-3);
  const PrecisionScope scaled(Precision::Fp16);
  CHECK(fitted(true, plain) == fitted(false, plain));
}

TEST_CASE("trainer: a run of sparse_adam resumes with the same bits") {
  const auto run = [](const std::string& folder, int epochs, bool resume) {
    const nn::Sequential net = network(true);
    optim::SparseAdam adam(net, {.lr = 0.02});
    data::Loader loader = sequences();
    TrainOptions options{.epochs = epochs, .keep_best = false, .run_dir = folder};
    options.resume = resume;
    train::Trainer(net, nn::CrossEntropyLoss(), adam, options).fit(loader);
    StateDict all = net.state_dict();
    for (const auto& [name, state] : adam.state_dict()) all.emplace("optimizer." + name, state);
    return toy::snapshot(all);
  };
  const TestFolder folder;
  const StateDict whole = run(folder / "whole", 4, false);
  run(folder / "parts", 2, false);
  CHECK(toy::difference(run(folder / "parts", 4, true), whole) == "");
}

TEST_CASE("trainer: accumulation and dense optimizers refuse a sparse embedding") {
  TrainOptions options{.epochs = 1, .keep_best = false};
  options.accumulate = 2;
  CHECK_THROWS_AS(fitted(true, options), ValueError);
  const nn::Sequential net = network(true);
  optim::Adam adam(net);
  data::Loader loader = sequences();
  CHECK_THROWS_AS(train::Trainer(net, nn::CrossEntropyLoss(), adam, {.epochs = 1}).fit(loader),
                  ValueError);
}
