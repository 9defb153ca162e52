// Training on text with a tokenizer: masked words, text classes, and starting from weights; the run
// keeps the tokenizer.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/tokenizer.h>
#include <tenon/train.h>

#include "io/folder.h"
#include "train/texts/spans.h"

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

// Requests with as many tokens as one before them run a program each, and trace and plan nothing.
template <typename Request>
void check_plans_nothing(Request request) {
  request();
  const RunnerStats before = runner_stats();
  const std::int64_t traces = cache_stats().traces.count;
  for (int k = 0; k < 3; ++k) request();
  CHECK(runner_stats().programs_run == before.programs_run + 3);
  CHECK(runner_stats().programs_planned == before.programs_planned);
  CHECK(cache_stats().traces.count == traces);
}

}  // namespace

TEST_CASE("texts: BERT learns masked words, keeps its tokenizer, and a classifier starts from it") {
  const TestFolder folder;
  const Corpus corpus(folder);
  const std::string windows = "text:" + corpus.text + ",length=14";
  const train::Settings words = settings_of(std::string("bert") + kSizes, windows, corpus, "300");
  train::start_run(words, folder / "words");
  std::filesystem::rename(corpus.tokens, corpus.tokens + ".away");  // the run has its own copy

  const auto model = train::TrainedModel::open(folder / "words");
  CHECK(likeliest(model, "water [MASK] the sea . desert is the sand .") == "is");
  const train::Evaluation found = model.evaluate();
  CHECK(found.accuracy > 0.35);
  CHECK(found.loss == model.evaluate().loss);  // the same words are masked every time
  CHECK_THROWS_AS(model.predict_text("water is the sea"), ValueError);
  int place = 0;
  check_plans_nothing([&] {
    const char* texts[] = {"[MASK] is the sea .", "water [MASK] the sea .",
                           "water is [MASK] sea ."};
    (void)model.predict_text(texts[place++ % 3]);
  });
  const auto alone = train::TrainedModel::open(folder / "words/model.safetensors");
  REQUIRE(alone.tokenizer() != nullptr);
  CHECK(alone.evaluate(windows, {.part = data::Split::Test}).loss == found.loss);
  CHECK(alone.evaluate(windows).items == found.items);  // inside its run's folder
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
  check_plans_nothing([&] { (void)told.predict_text("water is the sea"); });
  // Classes of other files are matched by name.
  io::write_file(folder / "one.txt", "wet\twater is the sea\n");
  const std::string one = "lines:" + corpus.lines + ",test=" + (folder / "one.txt");
  CHECK(told.evaluate(one).accuracy == 1);
  std::string wet, warm;
  for (int k = 0; k < 20; ++k) wet += "wet\twater is the lake\n", warm += "warm\tthe sand\n";
  io::write_file(folder / "wet.txt", wet);
  io::write_file(folder / "warm.txt", wet + warm);
  CHECK(told.evaluate("lines:" + (folder / "wet.txt")).accuracy == 1);
  CHECK(told.test_set("lines:" + (folder / "wet.txt"))->class_names() == told.class_names());
  CHECK_THROWS_WITH_AS(told.evaluate("lines:" + (folder / "warm.txt")),
                       doctest::Contains("'warm' is not one of the model's classes (dry, wet)"),
                       FormatError);
  CHECK_THROWS_WITH_AS(
      train::resume_run(folder / "classes", {}, {{"data", "lines:" + (folder / "warm.txt")}}),
      doctest::Contains("(warm, wet) differ from those"), ValueError);
}

TEST_CASE("texts: masked words and results have equal bits after a resume") {
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

TEST_CASE("texts: GPT-2 trains from weights with a tokenizer, and generates with it") {
  const TestFolder folder;
  const Corpus corpus(folder);
  const std::string data = "text:" + corpus.text + ",length=14";
  train::Settings s = settings_of(std::string("gpt2") + kSizes, data, corpus, "150");
  const double before = train::start_run(s, folder / "first").epochs.back().train_loss;
  s.weights = folder / "first/model.safetensors";
  s.max_steps = 30;
  const train::TrainResult later = train::start_run(s, folder / "second");
  CHECK(later.epochs.front().train_loss < 2 * before);  // training does not start from scratch
  const std::string text = train::TrainedModel::open(folder / "second/best.safetensors")
                               .generate("water is", {.tokens = 4, .temperature = 0});
  CHECK(text.find("the") != std::string::npos);
}

TEST_CASE("texts: a tokenizer in the folder does not belong to a run without one") {
  const TestFolder folder;
  const Corpus corpus(folder);
  const std::string clean = folder / "clean", shared = folder / "shared";
  std::filesystem::create_directory(shared);
  io::write_file(shared + "/tokenizer.json", io::read_file(corpus.tokens));
  const train::Settings s =
      train::Settings::resolve(std::string("gpt2") + kSizes, "",
                               {{"data", "text:" + corpus.text + ",by=words"}, {"max_steps", "3"}});
  std::string texts[2];
  for (std::string& text : texts) {
    const std::string& run = &text == texts ? clean : shared;
    train::start_run(s, run);
    CHECK(train::resume_run(run, {}, {{"max_steps", "5"}}).steps == 5);
    const train::TrainedModel model = train::TrainedModel::open(run);
    CHECK(model.tokenizer() == nullptr);
    text = model.generate("water is", {.tokens = 4, .temperature = 0});
  }
  CHECK(texts[0] == texts[1]);
  CHECK(std::filesystem::exists(shared + "/tokenizer.json"));
}

TEST_CASE("texts: incompatible options are refused before a run is created") {
  const TestFolder folder;
  const Corpus corpus(folder);
  const auto refused = [&](const std::string& model, const std::string& data,
                           const std::string& tokens, const char* words, bool misfit = false) {
    CAPTURE(model);
    train::Settings s = settings_of(model, data, corpus, "1");
    s.tokenizer = tokens;
    if (misfit)
      CHECK_THROWS_WITH_AS(train::start_run(s, folder / "none"), doctest::Contains(words),
                           ShapeError);
    else
      CHECK_THROWS_WITH_AS(train::start_run(s, folder / "none"), doctest::Contains(words),
                           ValueError);
    CHECK(!std::filesystem::exists(folder / "none"));
  };
  const std::string windows = "text:" + corpus.text, lines = "lines:" + corpus.lines;
  refused(std::string("bert") + kSizes, windows, "", "--tokenizer");
  refused(std::string("bert") + kSizes, windows + ",length=20", corpus.tokens, "length=16", true);
  refused(std::string("bert") + kSizes, lines, corpus.tokens, "text:FILE", true);
  refused(std::string("bert_classifier") + kSizes, windows, corpus.tokens, "CLASS TAB TEXT", true);
  refused(std::string("bert_spans") + kSizes + ",vocabulary=80", windows, corpus.tokens,
          "spans:FILE", true);
  io::write_file(folder / "few.toml",
                 models::toml(std::string("bert_classifier") + kSizes + ",vocabulary=9"));
  refused(folder / "few.toml", lines, corpus.tokens, "write vocabulary = ");
  refused("lenet5", lines, corpus.tokens, "lenet5");
  refused("lenet5", lines, "", "--tokenizer");
}

TEST_CASE("texts: BERT classifies pairs of texts, as a built-in network and from a file") {
  const TestFolder folder;
  const Corpus corpus(folder);
  {
    std::ofstream pairs(folder / "pairs.txt");
    const char* const one[] = {"water is the sea", "desert is the sand"};
    for (int k = 0; k < 120; ++k)
      pairs << (k % 2 == k / 2 % 2 ? "same\t" : "other\t") << one[k % 2] << '\t' << one[k / 2 % 2]
            << '\n';
  }
  const std::string name = std::string("bert_classifier") + kSizes + ",vocabulary=80",
                    file = folder / "pairs.toml";
  io::write_file(file, models::toml(name));
  const std::string data = "lines:" + (folder / "pairs.txt") + ",seed=2";
  train::start_run(settings_of(name, data, corpus, "300"), folder / "page");
  const auto model = train::TrainedModel::open(folder / "page");
  CHECK(model.evaluate().accuracy == 1);
  CHECK(likeliest(model, "water is the sea\tdesert is the sand") == "other");
  CHECK(likeliest(model, "desert is the sand\tdesert is the sand") == "same");
  train::Settings of_file = settings_of(file, data, corpus, "3");
  train::start_run(of_file, folder / "file");
  train::start_run(settings_of(name, data, corpus, "3"), folder / "again");
  const auto whole = train::TrainedModel::open(folder / "again").net().state_dict();
  for (const auto& [key, value] : train::TrainedModel::open(folder / "file").net().state_dict())
    CHECK(all(eq(value, whole.at(key))).item() == 1);
}

TEST_CASE("texts: BERT finds answers, as a built-in network and from a file") {
  const TestFolder folder;
  const Corpus corpus(folder);
  {
    std::ofstream asked(folder / "asked.tsv");
    const char* const wet[] = {"sea", "rain", "lake"};
    const char* const dry[] = {"sand", "stone", "dust"};
    for (int k = 0; k < 240; ++k) {
      const std::string text = std::string(k % 2 == 0 ? "water is the " : "desert is the ") +
                               (k % 2 == 0 ? wet[k % 3] : dry[k % 3]) + " .";
      asked << "is the\t" << text << '\t' << (k % 2 == 0 ? wet[k % 3] : dry[k % 3]) << '\n';
    }
  }
  const std::string data = "spans:" + (folder / "asked.tsv") + ",length=16,stride=2",
                    name = std::string("bert_spans") + kSizes + ",vocabulary=80";
  train::start_run(settings_of(name, data, corpus, "200"), folder / "page");
  const auto model = train::TrainedModel::open(folder / "page");
  const train::Evaluation found = model.evaluate();
  REQUIRE(found.exact.has_value());
  REQUIRE(found.f1.has_value());
  CHECK(*found.exact > 0.9);
  CHECK(*found.f1 >= *found.exact);
  CHECK(found.accuracy > 0.9);
  const train::Answer answer = model.answer("is the", "Water is the Rain.");
  CHECK(answer.text == "Rain");
  CHECK(answer.place == 13);
  CHECK(answer.probability > 0.2);
  CHECK(answer.probability <= 1);
  check_plans_nothing([&] { (void)model.answer("is the", "Water is the Rain."); });
  const std::vector<train::AskedQuestion> asked = model.answers({data, data::Split::Test}, 20, 9);
  REQUIRE(asked.size() == 9);  // questions about one of the six texts
  for (const train::AskedQuestion& one : asked) {
    CHECK(one.question == "is the");
    CHECK(one.right.size() == 1);
    CHECK(one.exact == (one.answer.text == one.right[0] ? 1 : 0));
  }
  CHECK_THROWS_WITH_AS(model.answers({data, data::Split::Test}, 40, 1),
                       doctest::Contains("there are 40"), ValueError);
  CHECK_THROWS_AS(model.answers({"digits", data::Split::Test}, 0, 1), ShapeError);
  CHECK_THROWS_WITH_AS(model.predict_text("water"), doctest::Contains("question"), ValueError);
  io::write_file(folder / "spans.toml", models::toml(name));
  train::start_run(settings_of(folder / "spans.toml", data, corpus, "3"), folder / "file");
  train::start_run(settings_of(name, data, corpus, "3"), folder / "again");
  const auto whole = train::TrainedModel::open(folder / "again").net().state_dict();
  for (const auto& [key, value] : train::TrainedModel::open(folder / "file").net().state_dict())
    CHECK(all(eq(value, whole.at(key))).item() == 1);
}

TEST_CASE("texts: answers are measured like SQuAD's") {
  const auto measure = [](const std::string& given, const std::vector<std::string>& right) {
    const train::SpanMeasure m = train::measure_answer(given, right);
    return std::pair(m.exact, m.f1);
  };
  CHECK(measure("The  Sea!", {"a sea"}) == std::pair(1.0, 1.0));
  CHECK(measure("wide sea", {"green sea"}) == std::pair(0.0, 0.5));
  CHECK(measure("wide sea", {"land", "wide green sea"}).second == doctest::Approx(0.8));
  CHECK(measure("", {}) == std::pair(1.0, 1.0));
  CHECK(measure("sea", {}) == std::pair(0.0, 0.0));
  CHECK(measure("sea sea", {"sea"}).second == doctest::Approx(2.0 / 3));
  CHECK(measure("\xc3\x89t\xc3\xa9", {"\xc3\xa9t\xc3\xa9"}) == std::pair(1.0, 1.0));
}
