// Translation: decoding position by position equals the whole forward pass, beam search finds a
// likelier result, and a network learns to write unseen numbers.
#include <cmath>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/models.h>
#include <tenon/text.h>
#include <tenon/train.h>

#include "io/folder.h"
#include "train/texts/translate.h"

using namespace tenon;
using train::Tokens;

namespace {

// A model whose scores depend on the last token only.
class Chain : public models::Translator {
 public:
  explicit Chain(const std::vector<float>& likelihoods, std::int64_t tokens)
      : scores_(log(Tensor::from(likelihoods, {tokens, tokens}))) {}
  Tensor forward(const Tensor& x) const override { return x; }
  std::vector<Tensor> encode(const Tensor& source) const override { return {source}; }
  std::vector<Tensor> initial_state(std::int64_t batch, std::int64_t) const override {
    return {zeros({batch})};
  }
  models::Decoder::Next decode(const Tensor& tokens, const Tensor&, const std::vector<Tensor>&,
                               const std::vector<Tensor>& state) const override {
    return {index_select(scores_, 0, tokens), state};
  }

 private:
  Tensor scores_;
};

}  // namespace

TEST_CASE("translate: decoding by position gives the scores of all positions at once") {
  manual_seed(3);
  const nn::AnyModule net =
      models::create("transformer:layers=2,heads=2,width=16", {.classes = 11});
  net.eval();
  const auto* translator = net.as<models::Translator>();
  REQUIRE(translator != nullptr);
  Tensor pairs = randint(3, 11, {3, 2, 7});
  // The second source is shorter; its padding is masked.
  pairs =
      where(logical_and(reshape(eq(arange(0, 3), 1), {3, 1, 1}),
                        logical_and(reshape(eq(arange(0, 2), 0), {1, 2, 1}), ge(arange(0, 7), 4))),
            zeros_like(pairs), pairs)
          .eval();
  const Tensor whole = net(pairs).eval();
  const Tensor target = select(pairs, 1, 1);
  const std::vector<Tensor> encoded = translator->encode(select(pairs, 1, 0));
  std::vector<Tensor> state = translator->initial_state(3, 7);
  for (std::int64_t t = 0; t < 7; ++t) {
    models::Decoder::Next next =
        translator->decode(select(target, 1, t), scalar(t, DType::Int64), encoded, state);
    CHECK(norm(next.scores - select(whole, 1, t)).item() < 1e-4 * norm(whole).item());
    state = std::move(next.state);
    for (Tensor& part : state) part = part.eval();
  }
  const Tensor filled = concat({pairs, zeros({3, 2, 4}, DType::Int64)}, 2);
  CHECK(norm(narrow(net(filled), 1, 0, 7) - whole).item() < 1e-4 * norm(whole).item());
}

TEST_CASE("translate: beam search finds a likelier result than greedy decoding") {
  // After <s>: 3 (.6) or 4 (.4). After 3 several tokens are similar; after 4 the end is certain.
  const float e = 1e-9F;
  const std::vector<float> likelihoods{e, e, 1,    e,    e,    e,     //
                                       e, e, e,    0.6F, 0.4F, e,     //
                                       e, e, 1,    e,    e,    e,     //
                                       e, e, 0.3F, 0.3F, 0.2F, 0.2F,  //
                                       e, e, 1,    e,    e,    e,     //
                                       e, e, 1,    e,    e,    e};
  const Chain chain(likelihoods, 6);
  const std::vector<Tokens> sources{{3}, {4, 4}, {5}};
  const std::vector<Tokens> one =
      train::translate(chain, sources, {.beam = 1, .length_penalty = 0});
  const std::vector<Tokens> two =
      train::translate(chain, sources, {.beam = 2, .length_penalty = 0, .batch = 2});
  CHECK(one == std::vector<Tokens>(3, {3}));
  CHECK(two == std::vector<Tokens>(3, {4}));
  CHECK(train::translate(chain, {}, {}).empty());
  CHECK_THROWS_AS(train::translate(chain, sources, {.beam = 0}), ValueError);
  CHECK_THROWS_AS(train::translate(chain, sources, {.length_penalty = -1}), ValueError);
  CHECK_THROWS_AS(train::translate(chain, sources, {.batch = 0}), ValueError);
}

TEST_CASE("translate: a network translates unseen numbers") {
  const TestFolder folder;
  const train::Settings s =
      train::Settings::resolve("transformer:layers=1,heads=2,width=32", "",
                               {{"data", "numbers:3000,200,below=1000,to=french"},
                                {"epochs", "6"},
                                {"batch", "32"},
                                {"lr", "0.004"},
                                {"warmup", "1"}});
  train::start_run(s, folder / "run");
  const train::TrainedModel model = train::TrainedModel::open(folder / "run");
  CHECK(model.task().name() == "translation");
  const train::Evaluation test = model.evaluate();
  MESSAGE("exact " << *test.exact << ", tokens " << test.accuracy);
  CHECK(*test.exact > 0.5);
  CHECK(test.accuracy > 0.8);
  CHECK(model.translate({"French: two hundred twenty-three", "French: forty-one"}) ==
        std::vector<std::string>{"deux cent vingt-trois", "quarante et un"});
  CHECK_THROWS_AS(model.translate({"9"}), ValueError);
  CHECK_THROWS_AS(model.generate("French: two"), ValueError);
  // Numbers with another seed use the same pieces.
  CHECK(model.test_set("numbers:30,20,5,below=1000")->class_names() == model.class_names());
  const train::TrainedModel file = train::TrainedModel::open(folder / "run/model.safetensors");
  CHECK(file.translate({"French: seven"}) == std::vector<std::string>{"sept"});
}

TEST_CASE("translate: a network may have more outputs than its pairs have tokens") {
  const TestFolder folder;
  train::start_run(
      train::Settings::resolve("transformer:layers=1,heads=2,width=8", "",
                               {{"data", "numbers:30,20"}, {"max_steps", "1"}, {"classes", "900"}}),
      folder / "run");
  const train::TrainedModel model = train::TrainedModel::open(folder / "run");
  CHECK(model.evaluate().items == 20);
  CHECK(model.translate({"French: two"}).size() == 1);
}

TEST_CASE("translate: the reported loss does not depend on the batch") {
  const TestFolder folder;
  train::start_run(train::Settings::resolve(
                       "transformer:layers=1,heads=2,width=16", "",
                       {{"data", "numbers:300,90,below=1000"}, {"epochs", "2"}, {"batch", "32"}}),
                   folder / "run");
  const train::TrainedModel model = train::TrainedModel::open(folder / "run");
  const train::Evaluation one = model.evaluate("", {.batch = 1});
  for (const std::int64_t batch : {2, 7, 64, 90}) {
    const train::Evaluation many = model.evaluate("", {.batch = batch});
    CHECK(many.loss == doctest::Approx(one.loss).epsilon(1e-6));
    CHECK(many.accuracy == doctest::Approx(one.accuracy).epsilon(1e-9));
  }
}

TEST_CASE("translate: data without pairs is refused before a run starts") {
  const TestFolder folder;
  train::Settings s = train::Settings::for_model("transformer:layers=1,heads=1,width=4");
  s.data = "digits:20,10";
  CHECK_THROWS_AS(train::start_run(s, folder / "run"), ShapeError);
  CHECK(train::Settings::for_model("transformer").label_smoothing == 0.1);
}
