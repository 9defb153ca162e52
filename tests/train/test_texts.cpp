// Training on text by a tokenizer: masked words, classes of texts, and going on from weights; the
// tokenizer stays with the run.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/tokenizer.h>
#include <tenon/train.h>

#include "io/folder.h"

using namespace tenon;

namespace {

constexpr char kSizes[] = ":layers=1,heads=2,width=32,context=16";

struct Corpus {
  explicit Corpus(const TestFolder& folder)
      : text(folder / "text.txt"), lines(folder / "lines.txt"), tokens(folder / "tokens.json") {
    const char* const wet[] = {"sea", "rain", "lake"};
    const char* const dry[] = {"sand", "stone", "dust"};
    std::string all, classes;
    for (int k = 0; k < 400; ++k) {
      const std::string a = std::string("water is the ") + wet[k % 3];
      const std::string b = std::string("desert is the ") + dry[k % 3];
      all.append(a).append(" . ").append(b).append(" .\n");
      if (k < 100) classes.append("wet\t").append(a).append("\ndry\t").append(b).append("\n");
    }
    std::ofstream(text) << all;
    std::ofstream(lines) << classes;
    data::Tokenizer::train(all, {.kind = data::TokenizerKind::WordPiece, .tokens = 80})
        .save(tokens);
  }
  std::string text, lines, tokens;
};

train::Settings settings_of(const std::string& model, const std::string& data, const Corpus& corpus,
                            const std::string& steps) {
  return train::Settings::resolve(model, "",
                                  {{"data", data},
                                   {"tokenizer", corpus.tokens},
                                   {"max_steps", steps},
                                   {"epochs", "50"},
                                   {"batch", "16"},
                                   {"lr", "0.01"}});
}

std::string likeliest(const train::TrainedModel& model, const std::string& text) {
  const auto shares = model.predict_text(text).to_vector<float>();
  const auto best = std::max_element(shares.begin(), shares.end()) - shares.begin();
  return model.class_names()[static_cast<std::size_t>(best)];
}

}  // namespace

TEST_CASE("texts: BERT learns hidden words, keeps its tokenizer, and its classes begin from it") {
  const TestFolder folder;
  const Corpus corpus(folder);
  const std::string windows = "text:" + corpus.text + ",length=14";
  const train::Settings words = settings_of(std::string("bert") + kSizes, windows, corpus, "300");
  train::start_run(words, folder / "words");
  std::filesystem::rename(corpus.tokens, corpus.tokens + ".away");  // the run has its own

  const auto model = train::TrainedModel::open(folder / "words");
  CHECK(likeliest(model, "water [MASK] the sea . desert is the sand .") == "is");
  const train::Evaluation found = model.evaluate();
  CHECK(found.accuracy > 0.35);
  CHECK(found.loss == model.evaluate().loss);  // the same words are hidden every time
  CHECK_THROWS_AS(model.predict_text("water is the sea"), ValueError);
  const auto alone = train::TrainedModel::open(folder / "words/model.safetensors");
  REQUIRE(alone.tokenizer() != nullptr);
  CHECK(alone.evaluate(windows).loss == found.loss);
  CHECK(train::resume_run(folder / "words", {}, {{"epochs", "51"}}).steps >= 300);
  std::filesystem::rename(corpus.tokens + ".away", corpus.tokens);

  train::Settings classes = settings_of(std::string("bert_classifier") + kSizes + ",vocabulary=80",
                                        "lines:" + corpus.lines, corpus, "40");
  classes.weights = folder / "words/model.safetensors";
  CHECK_THROWS_WITH_AS(
      [&] {
        train::Settings few = classes;
        few.model = std::string("bert_classifier") + kSizes + ",vocabulary=9";
        train::start_run(few, "");
      }(),
      doctest::Contains("vocabulary="), ValueError);
  train::start_run(classes, folder / "classes");
  const auto told = train::TrainedModel::open(folder / "classes");
  CHECK(told.evaluate().accuracy == 1);
  CHECK(likeliest(told, "water is the lake") == "wet");
  CHECK(likeliest(told, "desert is the dust") == "dry");
}

TEST_CASE("texts: hidden words are the same bits when a run was stopped and goes on") {
  const TestFolder folder;
  const Corpus corpus(folder);
  train::Settings s =
      settings_of(std::string("bert") + kSizes, "text:" + corpus.text + ",length=14", corpus, "0");
  s.max_steps = 60;
  train::start_run(s, folder / "whole");
  train::RunOptions stopping;
  struct Stop : train::Callback {
    std::int64_t step = 0;
    void on_step(const train::StepReport& report) override { step = report.step; }
  };
  const auto stop = std::make_shared<Stop>();
  stopping.callbacks.push_back(stop);
  stopping.stop = [stop] { return stop->step >= 23; };
  CHECK(train::start_run(s, folder / "parts", stopping).reason == train::StopReason::Interrupted);
  train::resume_run(folder / "parts");
  const auto whole = train::TrainedModel::open(folder / "whole").net().state_dict();
  for (const auto& [name, value] : train::TrainedModel::open(folder / "parts").net().state_dict())
    CHECK(all(eq(value, whole.at(name))).item() == 1);
}

TEST_CASE("texts: GPT-2 goes on learning from weights by a tokenizer, and writes by it") {
  const TestFolder folder;
  const Corpus corpus(folder);
  const std::string data = "text:" + corpus.text + ",length=14";
  train::Settings s = settings_of(std::string("gpt2") + kSizes, data, corpus, "150");
  const double before = train::start_run(s, folder / "first").epochs.back().train_loss;
  s.weights = folder / "first/model.safetensors";
  s.max_steps = 30;
  const train::TrainResult later = train::start_run(s, folder / "second");
  CHECK(later.epochs.front().train_loss < 2 * before);  // it does not begin anew
  const std::string text = train::TrainedModel::open(folder / "second/best.safetensors")
                               .generate("water is", {.tokens = 4, .temperature = 0});
  CHECK(text.find("the") != std::string::npos);
}

TEST_CASE("texts: what does not go together is said before there is a run") {
  const TestFolder folder;
  const Corpus corpus(folder);
  const auto refused = [&](const std::string& model, const std::string& data,
                           const std::string& tokens, const char* words) {
    CAPTURE(model);
    train::Settings s = settings_of(model, data, corpus, "1");
    s.tokenizer = tokens;
    CHECK_THROWS_WITH_AS(train::start_run(s, folder / "none"), doctest::Contains(words),
                         ValueError);
    CHECK(!std::filesystem::exists(folder / "none"));
  };
  const std::string windows = "text:" + corpus.text, lines = "lines:" + corpus.lines;
  refused(std::string("bert") + kSizes, windows, "", "--tokenizer");
  refused(std::string("bert") + kSizes, windows + ",length=20", corpus.tokens, "length=16");
  refused(std::string("bert") + kSizes, lines, corpus.tokens, "text:FILE");
  refused(std::string("bert_classifier") + kSizes, windows, corpus.tokens, "CLASS TAB TEXT");
  refused(std::string("bert_spans") + kSizes, windows, corpus.tokens, "Trainer");
  refused("lenet5", lines, corpus.tokens, "lenet5");
  refused("lenet5", lines, "", "--tokenizer");
}
