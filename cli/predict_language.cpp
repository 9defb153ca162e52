// Prints predicted tokens, translations and answers, as text or as JSON.
#include "predict_language.h"

#include <fmt/core.h>
#include <tenon/data.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "errors.h"
#include "json.h"
#include "progress.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

using Tokens = std::vector<std::int64_t>;

// On one line; of a long text the end, because the prediction continues it.
std::string one_line(const std::string& text) {
  constexpr std::size_t kMost = 100;
  std::size_t from = text.size() > kMost ? text.size() - kMost : 0;
  while (from < text.size() && (text[from] & 0xc0) == 0x80) ++from;
  return (from > 0 ? "..." : "") + printable(text.substr(from));
}

// A network may have more outputs than the vocabulary has tokens.
std::string token_name(const train::TrainedModel& model, std::int64_t token) {
  const data::Tokenizer* tokenizer = model.tokenizer().get();
  if (tokenizer == nullptr) return model.class_names()[static_cast<std::size_t>(token)];
  std::string name;
  if (token < tokenizer->size()) name = model.text_of(std::span(&token, 1));
  if (name.empty()) name = tokenizer->token(token);
  return name.empty() ? fmt::format("<{}>", token) : name;
}

// A JSON row for a text; a text from the command line has no name.
Json row_of_text(const std::string& name, const std::string& text) {
  return {{"name", name.empty() ? text : name}, {"text", text}};
}

struct Window {
  std::string name, text;
  Tokens tokens;
  std::int64_t truth = -1;  ///< the next token, if it is known
};

// Prints the predicted next token of a window, and returns whether it is correct.
bool show_next(const train::TrainedModel& model, const Window& window, int top, Json* json) {
  const std::vector<float> shares =
      (window.tokens.empty() ? model.predict_text(window.text) : model.next_token(window.tokens))
          .to_vector<float>();
  Tokens order(shares.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto shown =
      static_cast<std::ptrdiff_t>(std::min(order.size(), static_cast<std::size_t>(top)));
  const auto share = [&](std::int64_t token) {
    return static_cast<double>(shares[static_cast<std::size_t>(token)]);
  };
  std::partial_sort(order.begin(), order.begin() + shown, order.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      return share(a) != share(b) ? share(a) > share(b) : a < b;
                    });
  const bool right = window.truth == order[0];
  if (json != nullptr) {
    Json one = row_of_text(window.name, window.text);
    one["likeliest"] = Json::array();
    for (std::ptrdiff_t k = 0; k < shown; ++k)
      one["likeliest"].push_back({{"token", token_name(model, order[static_cast<std::size_t>(k)])},
                                  {"probability", share(order[static_cast<std::size_t>(k)])}});
    if (window.truth >= 0) {
      one["token"] = token_name(model, window.truth);
      one["probability"] = share(window.truth);
      one["right"] = right;
    }
    json->push_back(one);
    return right;
  }
  const Terminal& terminal = stdout_terminal();
  fmt::print("{}\n", terminal.paint(TextStyle::Bold, one_line(window.text)));
  for (std::ptrdiff_t k = 0; k < shown; ++k) {
    const std::int64_t token = order[static_cast<std::size_t>(k)];
    const std::string name = fmt::format("'{}'", one_line(token_name(model, token)));
    fmt::print("  {} {:>8}{}\n", pad_right(name, 16), percent(share(token)),
               token == window.truth ? terminal.paint(TextStyle::Green, "  it is") : "");
  }
  if (window.truth >= 0 &&
      std::find(order.begin(), order.begin() + shown, window.truth) == order.begin() + shown)
    fmt::print("  {}\n",
               terminal.paint(TextStyle::Red, fmt::format("it is '{}', {}",
                                                          one_line(token_name(model, window.truth)),
                                                          percent(share(window.truth)))));
  return right;
}

bool show_translation(const TextQuestion& asked, const std::string& made, const std::string* right,
                      Json* json) {
  const std::string& source = asked.text;
  const bool exact = right != nullptr && made == *right;
  if (json != nullptr) {
    Json one = row_of_text(asked.name, source);
    one["translation"] = made;
    if (right != nullptr) one["target"] = *right, one["right"] = exact;
    json->push_back(one);
    return exact;
  }
  const Terminal& terminal = stdout_terminal();
  fmt::print("{}\n  {}{}\n", terminal.paint(TextStyle::Bold, printable(source)), printable(made),
             right == nullptr ? std::string()
             : exact          ? terminal.paint(TextStyle::Green, "  right")
                     : terminal.paint(TextStyle::Red, "  wrong: it is " + printable(*right)));
  return exact;
}

std::string text_until_end(const train::TrainedModel& model, std::span<const std::int64_t> row) {
  return model.text_of(row.first(
      static_cast<std::size_t>(std::find(row.begin(), row.end(), data::kEnd) - row.begin())));
}

// Refuses data that does not fit: translation needs pairs, language models need text windows.
void check_data(const train::TrainedModel& model, const data::Dataset& set,
                const std::string& data) {
  const Shape input = set.input_shape(), target = set.target_shape();
  const bool pairs = translates(model);
  const bool fits = pairs ? input.rank() == 2 && input[0] == 2 && target == Shape{input[1]}
                          : input.rank() == 1 && target == input;
  if (fits && set.input_dtype() == DType::Int64 && set.classes() > 0) return;
  throw ShapeError(fmt::format("--data {}: {} takes {}, and a sample is {} {}: {}", data,
                               model.settings().model, pairs ? "pairs of texts" : "text",
                               name(set.input_dtype()), input.str(),
                               pairs ? "name such, as in --data pairs:FILE or --data numbers"
                                     : "name a text file, as in --data text:FILE"));
}

Json json_of(const std::string& name, const std::string& question, const train::Answer& answer) {
  return {{"name", name},
          {"question", question},
          {"answer", answer.text},
          {"place", answer.place},
          {"probability", answer.probability}};
}

std::string answer_text(const train::Answer& answer) {
  if (answer.text.empty()) return stdout_terminal().paint(TextStyle::Dim, "no answer");
  return fmt::format("{}  {}", stdout_terminal().paint(TextStyle::Bold, printable(answer.text)),
                     percent(answer.probability));
}

}  // namespace

namespace {

// Range of samples to predict.
struct Samples {
  std::shared_ptr<data::Dataset> set;
  train::Selection selection;
  std::int64_t end = 0;
};

Samples open_samples(const train::TrainedModel& model, const TextQuestions& asked) {
  Samples out;
  out.selection = model.select_data(asked.data, asked.part.split());
  print_notes(out.selection.notes);
  out.set = model.open_set(out.selection, asked.part.strict);
  if (asked.start >= out.set->size())
    throw UsageError(fmt::format("--start: {} has {}, numbered from 0",
                                 part_text(out.selection.part, out.selection.data),
                                 part_size_text(out.set->size(), 0)));
  const std::int64_t rest = out.set->size() - asked.start;
  out.end = asked.start + (asked.json ? rest : std::min(rest, asked.count));
  return out;
}

// The evaluated samples, and the number of omitted ones.
void print_right(const Samples& samples, std::int64_t right, const TextQuestions& asked) {
  const std::int64_t shown = samples.end - asked.start, all = samples.set->size();
  fmt::print("{} of {} right ({} of {})\n", right, shown, part_size_text(shown, all),
             printable(the_part_text(samples.selection.part, samples.selection.data)));
}

void predict_samples(const train::TrainedModel& model, const TextQuestions& asked, Json* json) {
  const Samples samples = open_samples(model, asked);
  const data::Dataset& set = *samples.set;
  check_data(model, set, asked.data);
  Tokens input(static_cast<std::size_t>(set.input_shape().numel())),
      target(static_cast<std::size_t>(set.target_shape().numel()));
  std::int64_t right = 0;
  for (std::int64_t i = asked.start; i < samples.end; ++i) {
    set.get({&i, 1}, input.data(), target.data());
    if (translates(model)) {
      const TextQuestion one{set.sample_name(i),
                             text_until_end(model, std::span(input).first(target.size()))};
      const std::string wanted = text_until_end(model, target);
      right += show_translation(one, model.translate({one.text})[0], &wanted, json);
    } else {
      right += show_next(model, {set.sample_name(i), model.text_of(input), input, target.back()},
                         asked.top, json);
    }
  }
  if (asked.part.strict) refuse_notes(set.notes());
  print_notes(set.notes());
  if (json == nullptr) print_right(samples, right, asked);
}

}  // namespace

int predict_language(const train::TrainedModel& model, const TextQuestions& asked) {
  Json list = Json::array();
  Json* const json = asked.json ? &list : nullptr;
  std::vector<TextQuestion> texts = asked.texts;
  if (json == nullptr) std::erase_if(texts, [](const TextQuestion& t) { return !t.shown; });
  if (translates(model)) {
    std::vector<std::string> sources;
    sources.reserve(texts.size());
    for (const TextQuestion& one : texts) sources.push_back(one.text);
    const std::vector<std::string> made = model.translate(sources);
    for (std::size_t k = 0; k < made.size(); ++k)
      show_translation(texts[k], made[k], nullptr, json);
  } else {
    for (const TextQuestion& one : texts)
      show_next(model, {one.name, one.text, {}, -1}, asked.top, json);
  }
  if (json == nullptr && asked.left_out > 0)
    fmt::print("{} more lines are not shown: --count says how many are, --json prints all\n",
               thousands(asked.left_out));
  if (!asked.data.empty()) predict_samples(model, asked, json);
  if (json != nullptr) print(list);
  return kOk;
}

int predict_answers(const train::TrainedModel& model, const TextQuestions& asked) {
  Json json = Json::array();
  for (const TextQuestion& text : asked.texts)
    for (const std::string& question : asked.questions) {
      const train::Answer answer = model.answer(question, text.text);
      if (asked.json)
        json.push_back(json_of(text.name.empty() ? text.text : text.name, question, answer));
      else
        fmt::print("{}  {}\n", printable(question), answer_text(answer));
    }
  if (!asked.data.empty()) {
    const train::Selection selection = model.select_data(asked.data, asked.part.split());
    print_notes(selection.notes);
    const std::vector<train::AskedQuestion> answers =
        model.answers(selection, asked.start, asked.json ? -1 : asked.count);
    double exact = 0;
    for (const train::AskedQuestion& one : answers) {
      exact += one.exact;
      if (asked.json) {
        json.push_back(json_of(one.name, one.question, one.answer));
        json.back().update(Json{{"right", one.right}, {"exact", one.exact}, {"f1", one.f1}});
        continue;
      }
      const std::string right = one.right.empty()
                                    ? std::string("there is none")
                                    : fmt::format("it is {}", printable(join(one.right, ", ")));
      fmt::print("{}  {}{}\n", printable(one.question), answer_text(one.answer),
                 one.exact == 1 ? std::string() : fmt::format("  ({})", right));
    }
    if (!asked.json)
      fmt::print("{} of {} exact, from question {} of {} on\n", exact, answers.size(),
                 asked.start + 1, printable(the_part_text(selection.part, selection.data)));
  }
  if (asked.json) print(json);
  return kOk;
}

}  // namespace tenon::cli
