// Things that a program registers by name: used by runs, and refused where names or facts are
// wrong.
#include <doctest/doctest.h>

#include <tenon/tenon.h>

#include "io/folder.h"

using namespace tenon;

namespace {

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "";
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

data::RegisteredSource source(const std::string& name) {
  return {.name = name,
          .usage = name + ":N",
          .open = [](const std::string& rest, const data::SourceOptions&) {
            const auto n = static_cast<std::int64_t>(std::stoll(rest));
            return [n](data::Split part) -> std::shared_ptr<data::Dataset> {
              if (part == data::Split::Validation) return nullptr;
              const Tensor target = (arange(0, n) % 2).compute();
              return data::from_tensors(
                  (reshape(cast(target, DType::Float32), {-1, 1}) * ones({n, 3})).compute(),
                  target);
            };
          }};
}

models::RegisteredNetwork network(const std::string& name, bool takes_sizes) {
  models::RegisteredNetwork out;
  out.info.name = name;
  out.info.input = {3};
  out.info.classes = 2;
  out.takes_sizes = takes_sizes;
  out.make = [](const models::Options& options, const std::string& sizes) {
    const std::int64_t hidden = sizes.empty() ? 4 : std::stoll(sizes);
    return nn::Sequential(nn::Linear(3, hidden), nn::ReLU(), nn::Linear(hidden, options.classes));
  };
  return out;
}

optim::OptimizerMaker plain_sgd() {
  return [](optim::Parameters parameters, const optim::OptimizerOptions& options) {
    return optim::create("sgd", std::move(parameters), {.lr = options.lr.value_or(0.5)});
  };
}

struct Counter : train::Callback {
  static inline int epochs = 0;
  void on_epoch(const train::EpochReport&) override { ++epochs; }
};

}  // namespace

TEST_CASE("registered: a run of a source, a network, a loss, an optimizer and a callback") {
  data::register_source(source("pairs_of_ones"));
  models::register_network(network("tiny_net", true));
  optim::register_optimizer("plain_sgd", {.lr = 0.5}, plain_sgd());
  int losses = 0;
  train::register_loss("counted", [&](const train::TaskNetwork&) {
    ++losses;
    return nn::Loss(
        [](const Tensor& scores, const Tensor& target) { return cross_entropy(scores, target); });
  });
  train::register_callback("counter", [](const train::Settings&, const std::string&) {
    return std::make_shared<Counter>();
  });
  const TestFolder folder;
  train::Settings settings = train::Settings::resolve("tiny_net:6", "",
                                                      {{"data", "pairs_of_ones:40"},
                                                       {"loss", "counted"},
                                                       {"callbacks", "counter"},
                                                       {"optimizer", "plain_sgd"},
                                                       {"epochs", "3"},
                                                       {"batch", "8"}});
  CHECK(settings.lr == 0.5);
  CHECK(settings.momentum == 0);
  const train::TrainResult result = train::start_run(settings, folder / "run");
  CHECK(result.test->metrics["accuracy"] == 1.0);
  CHECK(losses > 0);
  CHECK(Counter::epochs == 3);
  train::Settings back = train::Settings::of_run(folder / "run");
  CHECK(back.loss == "counted");
  CHECK(back.callbacks == "counter");
  CHECK(back.plugins.empty());
  CHECK(models::info("tiny_net").parameters == 3 * 4 + 4 + 4 * 2 + 2);
  CHECK(models::create("tiny_net:7").parameters()[0].shape() == Shape{7, 3});
  CHECK_THROWS_AS(models::toml("tiny_net"), NotSupported);
  CHECK(data::source_kind("pairs_of_ones:4")->needs_path);
  CHECK(has(refusal([] { data::open_dataset("pairs_of_ones", data::Split::Train); }),
            "name what to read: pairs_of_ones:N"));
  CHECK(has(refusal([&] { optim::create("plain_sgd", {variable(ones({2}))}, {.beta1 = 0.5}); }),
            "has no option 'beta1'"));
}

TEST_CASE("registered: names and facts that are refused") {
  CHECK(has(refusal([] { data::register_source(source("csv")); }), "'csv' already"));
  CHECK(has(refusal([] { data::register_source(source("Csv")); }), "lower-case"));
  CHECK(has(refusal([] { data::register_source({.name = "no_function"}); }), "no open()"));
  CHECK(
      has(refusal([] { models::register_network(network("lenet5", false)); }), "'lenet5' already"));
  CHECK(has(refusal([] { models::register_network(network("a:b", false)); }), "lower-case"));
  CHECK(has(refusal([] { models::register_network({}); }), "lower-case"));
  models::register_network(network("plain_net", false));
  CHECK(has(refusal([] { models::create("plain_net:3"); }), "takes no sizes"));
  CHECK(has(refusal([] { models::register_network(network("plain_net", false)); }), "already"));
  CHECK(has(refusal([] { optim::register_optimizer("sgd", {.lr = 1}, plain_sgd()); }),
            "'sgd' already"));
  CHECK(has(refusal([] { optim::register_optimizer("no_rate", {}, plain_sgd()); }),
            "default learning rate"));
  CHECK(has(refusal([] { train::register_loss("none", {}); }), "is empty"));
  CHECK(has(refusal([] { train::Settings().set("loss", "nonesuch"); }), "no loss 'nonesuch'"));
  CHECK(has(refusal([] { train::Settings().set("callbacks", "nonesuch"); }), "no callback"));
  CHECK(has(refusal([] { train::Settings().set("plugins", "mine"); }), "NAME VERSION DIGEST FILE"));
  CHECK(has(refusal([] { train::Settings().set("plugins", "mine 1.0 00ff lib mine.so"); }),
            "needs the plugin 'mine' 1.0 (lib mine.so)"));
}
