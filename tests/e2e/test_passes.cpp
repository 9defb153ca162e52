// Every pass switched off in turn: programs grow, results stay.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/models.h>
#include <tenon/optim.h>

#include "../base/distance.h"

using namespace tenon;
using test::distance;

namespace {

struct Outcome {
  std::vector<double> losses;
  std::vector<float> weight;
};

/// Four steps of a network with convolutions, pooling, dropout's random numbers and an optimizer
/// with several states.
Outcome train() {
  manual_seed(9);
  Generator generator(4);
  const nn::AnyModule net = nn::Sequential(
      nn::Conv2d(1, 3, 3, {.padding = 1}), nn::Tanh(), nn::MaxPool2d(2), nn::Conv2d(3, 5, 3),
      nn::GELU(), nn::Flatten(), nn::Dropout(0.2), nn::Linear(5 * 4 * 3, 4));
  optim::Adam adam(net, {.lr = 0.01});
  const Tensor x = randn({7, 1, 12, 10}, DType::Float32, &generator).eval(),
               y = randint(0, 4, {7}, DType::Int64, &generator).eval();
  Outcome out;
  for (int k = 0; k < 4; ++k) out.losses.push_back(adam.step(cross_entropy(net(x), y)));
  out.weight = net.named_parameters()[2].tensor.to_vector<float>();
  return out;
}

/// False for a pass without which nothing runs.
bool switch_off(const std::string& pass) {
  try {
    set_pass_enabled(pass, false);
    return true;
  } catch (const ValueError& error) {
    CHECK(std::string(error.what()).find("cannot be switched off") != std::string::npos);
    return false;
  }
}

}  // namespace

TEST_CASE(
    "passes: each may be switched off without a change of the results, or says that it may not") {
  const Outcome expected = train();
  CHECK(expected.losses.back() < expected.losses.front());
  int switched = 0;
  for (const std::string& pass : pass_names()) {
    CAPTURE(pass);
    if (!switch_off(pass)) continue;
    ++switched;
    const Outcome found = train();
    set_pass_enabled(pass, true);
    for (std::size_t k = 0; k < expected.losses.size(); ++k)
      CHECK(found.losses[k] == doctest::Approx(expected.losses[k]).epsilon(1e-5));
    CHECK(distance(found.weight, expected.weight) < 1e-4);
  }
  CHECK(switched >= 30);
}

TEST_CASE("passes: all of them off at once") {
  const Outcome expected = train();
  for (const std::string& pass : pass_names()) switch_off(pass);
  const Outcome found = train();
  for (const std::string& pass : pass_names()) set_pass_enabled(pass, true);
  CHECK(distance(found.weight, expected.weight) < 1e-4);
}

TEST_CASE("passes: the reference engine trains the same network") {
  const Outcome expected = train();
  set_engine("reference");
  const Outcome found = train();
  set_engine("fast");
  CHECK(distance(found.weight, expected.weight) < 1e-4);
}

TEST_CASE("passes: an unknown name is refused with the nearest one") {
  CHECK_THROWS_WITH_AS(set_pass_enabled("fusee", false), doctest::Contains("did you mean 'fuse'"),
                       ValueError);
}

TEST_CASE("threads: results are the same bits for every number of threads") {
  const int before = threads();
  set_threads(1);
  const Outcome one = train();
  for (const int count : {2, 3, 5}) {
    set_threads(count);
    const Outcome found = train();
    CHECK(found.losses == one.losses);
    CHECK(found.weight == one.weight);
  }
  set_threads(before);
}
