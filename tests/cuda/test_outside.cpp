// Indices outside their axis on a GPU, real or emulated: the next read of a value throws, captured
// steps included, and nothing is left behind.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include "gpu.h"

using namespace tenon;

TEST_CASE("outside: an index in a captured step is reported with layer and position") {
  if (!test::has_gpu()) return;
  set_device("cuda");
  const Scope scope("words");
  const Tensor table = Tensor::from(std::vector<float>{1, 2, 3}, {3});
  const CompiledFunction pick = compile([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{index_select(table, 0, in[0]) * 2};
  });
  const auto picked = [&](std::int64_t k) {
    const Tensor index = Tensor::from(std::vector<std::int64_t>{0, k}, {2});
    return pick({index})[0].to_vector<float>();
  };
  for (int call = 0; call < 3; ++call) {  // the third is a replay
    CHECK(picked(2) == std::vector<float>{2, 6});
    CHECK_THROWS_WITH_AS(
        picked(3),
        doctest::Contains("index_select (words): index 3 is out of range for axis 0 of size 3, "
                          "at element 1 of the indices"),
        ValueError);
  }
  CHECK(picked(1) == std::vector<float>{2, 4});
  set_device("cpu");
}

TEST_CASE("outside: a class in a captured training step is reported at the next read") {
  if (!test::has_gpu()) return;
  set_device("cuda");
  nn::Linear net(3, 4);
  optim::Sgd sgd(net.parameters(), {.lr = 0.1});
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const auto step = [&](std::int64_t label) {
    const Tensor target = Tensor::from(std::vector<std::int64_t>{0, label}, {2});
    const Tensor loss = cross_entropy(net(x), target);
    sgd.step(loss);
    return loss.item();
  };
  for (int k = 0; k < 3; ++k) {  // the third is a replay
    CHECK(std::isfinite(step(3)));
    CHECK_THROWS_WITH_AS(step(4),
                         doctest::Contains("cross_entropy: index 4 is out of range for axis 0 of "
                                           "size 4, at element 1"),
                         ValueError);
    CHECK_THROWS_WITH_AS(step(4), doctest::Contains("updates included"), ValueError);
  }
  const auto guarded = [&](std::int64_t label) {
    const Tensor target = Tensor::from(std::vector<std::int64_t>{0, label}, {2});
    const Tensor loss = cross_entropy(net(x), target);
    eval(sgd.updates(grad(loss, sgd.parameters()), isfinite(loss)));
  };
  const std::vector<float> before = net.parameters()[0].to_vector<float>();
  guarded(4);
  CHECK_THROWS_AS(net.parameters()[0].to_vector<float>(), ValueError);
  CHECK(net.parameters()[0].to_vector<float>() == before);
  guarded(3);
  CHECK(net.parameters()[0].to_vector<float>() != before);
  const Tensor index = Tensor::from(std::vector<std::int64_t>{0, 7}, {2});
  CHECK_THROWS_WITH_AS(one_hot(index, 4).to_vector<std::int64_t>(),
                       doctest::Contains("one_hot: index 7"), ValueError);
  set_device("cpu");
}
