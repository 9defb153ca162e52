// Text generation: decoding token by token equals the whole forward pass, sampling obeys its
// options, and models that cannot generate say so.
#include <fstream>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/models.h>
#include <tenon/tokenizer.h>
#include <tenon/train.h>
#include <tenon/weights.h>

#include "io/folder.h"

using namespace tenon;

namespace {

constexpr char kModel[] = "gpt2:layers=2,heads=2,width=16,context=8";

std::string trained(const TestFolder& folder, const std::string& by,
                    const std::string& classes = "0") {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "ab cd, ef. ";
  std::ofstream(folder / "text.txt") << text;
  train::Settings s =
      train::Settings::resolve(kModel, "",
                               {{"data", "text:" + (folder / "text.txt") + ",by=" + by},
                                {"classes", classes},
                                {"max_steps", "150"},
                                {"batch", "16"},
                                {"lr", "0.01"}});
  train::start_run(s, folder / "run");
  return folder / "run";
}

}  // namespace

TEST_CASE("generate: a token at a time gives the scores of all at once") {
  for (const char* name : {kModel, "lstm", "keras_rnn:units=12"}) {
    CAPTURE(name);
    manual_seed(3);
    const nn::AnyModule net = models::create(name, {.classes = 11});
    const auto* decoder = net.as<models::Decoder>();
    REQUIRE(decoder != nullptr);
    CHECK(decoder->context() == (name == kModel ? 8 : 0));
    const Tensor tokens = randint(0, 11, {3, 8}).compute();
    const Tensor whole = net(tokens).compute();
    std::vector<Tensor> state = decoder->initial_state(3);
    for (std::int64_t t = 0; t < 8; ++t) {
      models::Decoder::Next next =
          decoder->decode(select(tokens, 1, t), scalar(t, DType::Int64), state);
      CHECK(norm(next.scores - select(whole, 1, t)).item() < 1e-4 * norm(whole).item());
      state = std::move(next.state);
      for (Tensor& part : state) part = part.compute();
    }
  }
}

TEST_CASE("generate: a model continues a learned pattern beyond its context") {
  const TestFolder folder;
  const train::TrainedModel model = train::TrainedModel::open(trained(folder, "chars"));
  const std::string wanted = "cd, ef. ab cd, ef. ab cd, ef. ";
  CHECK(model.generate("ab ", {.tokens = 30, .temperature = 0}) == wanted);
  CHECK(model.generate("ab ", {.tokens = 30, .temperature = 3, .top_k = 1}) == wanted);
  CHECK(model.generate("ab ", {.tokens = 30, .top_p = 1e-6}) == wanted);
  const std::string hot = model.generate("ab ", {.tokens = 30, .temperature = 5, .seed = 1});
  CHECK(hot == model.generate("ab ", {.tokens = 30, .temperature = 5, .seed = 1}));
  CHECK(hot != model.generate("ab ", {.tokens = 30, .temperature = 5, .seed = 2}));
  CHECK(hot != wanted);
  std::string heard;
  model.generate("ab ", {.tokens = 30, .temperature = 0, .on_text = [&](const std::string& piece) {
                           heard += piece;
                           return heard.size() < 4;
                         }});
  CHECK(heard == "cd, ");
  CHECK(model.generate("", {.tokens = 0}).empty());
  CHECK_THROWS_AS(model.generate("xyz"), ValueError);
  CHECK_THROWS_AS(model.generate("ab", {.tokens = -1}), ValueError);
  CHECK_THROWS_AS(model.generate("ab", {.temperature = -1}), ValueError);
  CHECK_THROWS_AS(model.generate("ab", {.top_k = -1}), ValueError);
  CHECK_THROWS_AS(model.generate("ab", {.top_p = 0}), ValueError);
  // The weight file contains the tokens; neither the run nor the text is needed.
  const train::TrainedModel file = train::TrainedModel::open(folder / "run/model.safetensors");
  CHECK(file.generate("ab ", {.tokens = 30, .temperature = 0}) == wanted);
  const train::Evaluation test = model.evaluate();
  CHECK(test.accuracy > 0.6);
  CHECK(test.loss < 1);
}

TEST_CASE("generate: words are joined with natural spaces") {
  const TestFolder folder;
  const train::TrainedModel model = train::TrainedModel::open(trained(folder, "words"));
  CHECK(model.generate("ab", {.tokens = 9, .temperature = 0}) == " cd, ef. ab cd, ef.");
}

TEST_CASE("generate: a network may have more outputs than its text has tokens") {
  const TestFolder folder;
  const train::TrainedModel model = train::TrainedModel::open(trained(folder, "words", "20"));
  CHECK(model.evaluate().accuracy > 0.6);
  CHECK(model.generate("ab", {.tokens = 9, .temperature = 0}) == " cd, ef. ab cd, ef.");
  CHECK_NOTHROW(model.generate("ab", {.tokens = 40, .temperature = 1000}));
  const auto& names = model.class_names();
  REQUIRE(names.size() == 20);
  CHECK(names[0] == "<unk>");
  CHECK(names[19] == "<19>");
  CHECK(model.test_set(model.settings().data)->class_names().size() < 20);
}

TEST_CASE("generate: the token after a text, from the tokens that fit the context") {
  const TestFolder folder;
  const train::TrainedModel model = train::TrainedModel::open(trained(folder, "chars"));
  const auto likeliest = [&](const Tensor& shares) {
    CHECK(sum(shares).item() == doctest::Approx(1));
    return model.class_names()[static_cast<std::size_t>(argmax(shares).item<std::int64_t>())];
  };
  CHECK(likeliest(model.predict_text("ab ")) == "c");
  const std::int64_t planned = runner_stats().programs_planned;
  CHECK(likeliest(model.predict_text("ef ")) == "a");
  CHECK(runner_stats().programs_planned == planned);
  CHECK(likeliest(model.predict_text("ab cd, ef. ab cd, ef. ab cd,")) == " ");
  CHECK(model.text_of(std::vector<std::int64_t>{0, 1}) == " ,");
  CHECK_THROWS_AS(model.predict_text(""), ValueError);
  CHECK_THROWS_AS(model.predict_text("xyz"), ValueError);
  CHECK_THROWS_AS(model.text_of(std::vector<std::int64_t>{99}), ValueError);
}

TEST_CASE("generate: other texts are read by the tokens that the model knows") {
  const TestFolder folder;
  const train::TrainedModel model = train::TrainedModel::open(trained(folder, "chars"));
  std::string fewer, foreign;
  for (int i = 0; i < 100; ++i) fewer += "cd, ef. ", foreign += "ab xy. ";
  std::ofstream(folder / "fewer.txt") << fewer;  // among this text's own characters c is the first
  std::ofstream(folder / "foreign.txt") << foreign;
  const std::string spec = "text:" + (folder / "fewer.txt") + ",length=8";
  const auto set = model.test_set(spec);
  CHECK(set->class_names() == model.class_names());
  CHECK(model.evaluate(spec).accuracy > 0.6);
  CHECK(model.test_set("text:" + (folder / "fewer.txt"))->input_shape() == Shape{8});
  CHECK_THROWS_AS(model.test_set(spec + ",by=words"), ValueError);
  CHECK_THROWS_AS(model.test_set("text:" + (folder / "foreign.txt") + ",length=8"), ValueError);
}

TEST_CASE("generate: a classifier cannot generate") {
  const TestFolder folder;
  train::Settings s = train::Settings::for_model("mlp:784-4-10");
  s.data = "digits:20,10";
  s.epochs = 1;
  train::start_run(s, folder / "run");
  CHECK_THROWS_AS(train::TrainedModel::open(folder / "run").generate("a"), ValueError);
}

TEST_CASE("generate: published weights generate with their tokenizer") {
  const TestFolder folder;
  const auto tokenizer = std::make_shared<const data::Tokenizer>(
      data::Tokenizer::open("tests/e2e/fixtures/tokenizers/gpt2"));
  manual_seed(5);
  const nn::AnyModule net = models::create(kModel, {.classes = tokenizer->size()});
  io::save_weights(folder / "w.pt", net.state_dict());
  train::Settings settings = train::Settings::resolve(kModel, "", {});
  settings.classes = tokenizer->size();
  const train::TrainedModel model = train::TrainedModel::with_weights(settings, folder / "w.pt");
  std::string told;
  const train::GenerateOptions options{
      .tokens = 40, .seed = 2, .tokenizer = tokenizer, .on_text = [&](const std::string& piece) {
        told += piece;
        return true;
      }};
  const std::string text = model.generate("The quick", options);
  CHECK(text == told);
  CHECK(!text.empty());
  CHECK(model.generate("The quick", options) == text);
  // Without the tokenizer the weights cannot generate.
  CHECK_THROWS_WITH_AS(model.generate("The", {}), doctest::Contains("tokenizer"), ValueError);
  settings.classes = 7;
  io::save_weights(folder / "few.pt", models::create(kModel, {.classes = 7}).state_dict());
  const train::TrainedModel few = train::TrainedModel::with_weights(settings, folder / "few.pt");
  CHECK_THROWS_WITH_AS(few.generate("The", options),
                       doctest::Contains("the tokenizer belongs to another network"), ValueError);
  settings.tokenizer = "tests/e2e/fixtures/tokenizers/gpt2";
  CHECK_THROWS_WITH_AS(
      train::TrainedModel::with_weights(settings, folder / "few.pt").next_token({0}),
      doctest::Contains("the tokenizer belongs to another network"), ValueError);
}
