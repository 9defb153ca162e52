// The plans of the example models as text, compared with the committed ones: a refactor shows here
// what it changed.
//
// When a plan is meant to change, record it with ./dev replay and commit the difference.
#include <doctest/doctest.h>

#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/optim.h>

#include <string>
#include <vector>

#include "recorded.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Recorded {
  const char* file;
  const char* model;
  const char* optimizer;  // nullptr: inference
  std::int64_t batch;
};

const Recorded kRecorded[] = {
    {"lenet5_train", "lenet5", "sgd", 64},         {"lenet5_infer", "lenet5", nullptr, 1},
    {"keras_cnn_train", "keras_cnn", "adam", 128}, {"keras_cnn_infer", "keras_cnn", nullptr, 128},
    {"mlp_train", "mlp:784-300-10", "adamw", 32},
};

/// Data, not a constant, and bound at each call: what a plan holds does not depend on it.
std::vector<Tensor> batch_of(std::int64_t n) {
  return {Tensor::from(std::vector<float>(static_cast<std::size_t>(n * 784)), {n, 1, 28, 28}),
          Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(n)), {n})};
}

std::string plan_text(const Recorded& r) {
  const nn::AnyModule net = models::create(r.model);
  std::vector<Tensor> batch = batch_of(r.batch);
  if (r.optimizer == nullptr) {
    net.eval();
    batch.pop_back();
    return compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; })
        .plan(batch)
        .steps();
  }
  optim::OptimizerOptions options;
  options.momentum = 0.9;
  if (std::string(r.optimizer) != "sgd") options = {};
  const auto optimizer = optim::create(r.optimizer, net, options);
  return compile([&](const std::vector<Tensor>& in) {
           const Tensor loss = cross_entropy(net(in[0]), in[1]);
           std::vector<Tensor> out = optimizer->updates(grad(loss, optimizer->parameters()));
           out.insert(out.begin(), loss);
           return out;
         })
      .plan(batch)
      .steps();
}

}  // namespace

TEST_CASE("replay: the plans of the example models are the recorded ones") {
  const std::string whole = whole_texts_folder();
  for (const Recorded& r : kRecorded) {
    CAPTURE(std::string(r.file));
    const std::string text = plan_text(r);
    if (whole.empty())
      check_recorded(std::string("tests/replay/plans/") + r.file + ".txt", text);
    else
      io::write_file(whole + "/cpu_" + r.file + ".txt", text);
  }
}

TEST_CASE("replay: planning twice gives the same plan") {
  for (const Recorded& r : kRecorded) CHECK(plan_text(r) == plan_text(r));
}
