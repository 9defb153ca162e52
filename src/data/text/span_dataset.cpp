// Questions about texts: their files, the tokens of their answers, and windows.
#include "data/text/span_dataset.h"

#include <algorithm>
#include <set>

#include <tenon/error.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"
#include "data/samples/split.h"
#include "data/text/encode_within.h"
#include "data/text/text_parts.h"
#include "data/text/text_readers.h"
#include "data/tokens/unicode.h"
#include "io/text/encoding.h"
#include "io/text/json.h"
#include "io/text/numbers.h"

namespace tenon::data {
namespace {

using TokenRow = std::vector<std::int64_t>;
using io::Json;

constexpr std::int64_t kAround = 3;  // [CLS], and [SEP] after question and text

// ---- Tokens and their positions

// Byte ranges of the words of a text. With split_punctuation each punctuation character and
// ideograph is a separate word, as in BERT; otherwise words are separated by white space.
std::vector<std::pair<std::size_t, std::size_t>> words_of(std::string_view text,
                                                          bool split_punctuation) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  bool open = false;
  std::size_t at_byte = 0;
  for (const char32_t c : code_points(text)) {
    const std::size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    const bool apart = split_punctuation && (is_punctuation(c) || is_chinese(c));
    if (is_white_space(c) && !is_control_character(c)) {  // BERT removes control characters
      open = false;
    } else if (open && !apart) {
      out.back().second += bytes;
    } else {
      out.emplace_back(at_byte, at_byte + bytes);
      open = !apart;
    }
    at_byte += bytes;
  }
  return out;
}

// ---- Files

std::size_t byte_of_character(std::string_view text, std::int64_t character) {
  std::size_t at_byte = 0;
  for (; character > 0 && at_byte < text.size(); --character)
    for (++at_byte;
         at_byte < text.size() && (static_cast<unsigned char>(text[at_byte]) & 0xc0) == 0x80;)
      ++at_byte;
  return character > 0 ? text.size() + 1 : at_byte;
}

class QuestionReader {
 public:
  explicit QuestionReader(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::vector<SpanQuestion> read(std::string_view bytes) {
    const std::size_t first = bytes.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && bytes[first] == '{')
      read_json(bytes);
    else
      read_lines(bytes);
    return std::move(out_);
  }

 private:
  void add(const std::string& id, const std::string& question, const std::string& text,
           std::vector<std::string> answers, std::int64_t character) {
    if (text_ == nullptr || text_->text != text) text_ = span_text(tokenizer_, text);
    SpanQuestion asked{id, question, text_, std::move(answers), -1, {}};
    if (character >= 0) {
      const std::size_t place = byte_of_character(text, character);
      const std::string& answer = asked.answers[0];
      if (place > text.size() || text.compare(place, answer.size(), answer) != 0)
        throw FormatError(
            cat(id, ": its answer '", answer, "' is not at character ", character, " of its text"));
      asked.place = static_cast<std::int64_t>(place);
    }
    out_.push_back(std::move(asked));
  }

  void read_lines(std::string_view bytes) {
    std::int64_t number = 0;
    for (std::size_t from = 0; from < bytes.size();) {
      const std::size_t end = std::min(bytes.find('\n', from), bytes.size());
      std::string_view line = bytes.substr(from, end - from);
      if (line.ends_with('\r')) line.remove_suffix(1);
      from = end + 1;
      ++number;
      if (line.empty()) continue;
      std::vector<std::string> parts(1);
      for (const char c : line)
        if (c == '\t')
          parts.emplace_back();
        else
          parts.back().push_back(c);
      double place = -1;
      const bool has_place = parts.size() == 4 && !parts[2].empty();
      if (parts.size() < 3 || parts.size() > 4 || parts[0].empty() ||
          (has_place && !(io::parse_number(parts[3], place) && place >= 0 && place < 1e9)))
        throw make_error<FormatError>("line ", LineNumber{number},
                                      " is not QUESTION TAB TEXT TAB ANSWER TAB POSITION");
      const std::string id = cat("line ", number);
      if (parts[2].empty())
        add(id, parts[0], parts[1], {}, -1);
      else
        add(id, parts[0], parts[1], {parts[2]}, static_cast<std::int64_t>(place));
    }
  }

  // {"data": [{"paragraphs": [{"context", "qas": [{"id", "question", "answers": […]}]}]}]}
  void read_json(std::string_view bytes) {
    const Json json = io::parse_json_or_discard(bytes);
    if (json.is_discarded()) throw FormatError("is not complete JSON");
    for (const Json& article : list(json, "data", "the file"))
      for (const Json& paragraph : list(article, "paragraphs", "an article")) {
        const std::string context = text(paragraph, "context", "a paragraph");
        for (const Json& asked : list(paragraph, "qas", "a paragraph")) {
          const std::string question = text(asked, "question", "a question");
          const std::string id = asked.contains("id") && asked["id"].is_string()
                                     ? cat("question ", asked["id"].get<std::string>())
                                     : cat("question '", question, "'");
          std::vector<std::string> answers;
          std::int64_t place = -1;
          if (asked.contains("answers"))
            for (const Json& answer : list(asked, "answers", id)) {
              answers.push_back(text(answer, "text", id));
              if (answers.size() > 1) continue;
              const Json* start = answer.find("answer_start");
              if (start == nullptr || !start->is_number_integer() || start->get<double>() < 0 ||
                  start->get<double>() > 1e9)
                throw FormatError(cat(id, " has no 'answer_start'"));
              place = start->get<std::int64_t>();
            }
          if (!answers.empty() && answers[0].empty())
            throw FormatError(cat(id, ": its answer is empty"));
          add(id, question, context, std::move(answers), place);
        }
      }
  }
  static const Json& list(const Json& json, const char* key, const std::string& what) {
    if (!json.is_object() || !json.contains(key) || !json.at(key).is_array())
      throw FormatError(cat(what, " has no list '", key, "': it is not as SQuAD's files are"));
    return json.at(key);
  }
  static std::string text(const Json& json, const char* key, const std::string& what) {
    if (!json.is_object() || !json.contains(key) || !json.at(key).is_string())
      throw FormatError(cat(what, " has no string '", key, "': it is not as SQuAD's files are"));
    return json.at(key).get<std::string>();
  }

  const Tokenizer& tokenizer_;
  std::vector<SpanQuestion> out_;
  std::shared_ptr<const SpanText> text_;  // of the last question: questions of a text are adjacent
};

// The first and last token of the first answer; -1 if there is no answer.
std::pair<std::int64_t, std::int64_t> tokens_of_answer(const SpanQuestion& asked,
                                                       const Tokenizer& tokenizer) {
  if (asked.answers.empty()) return {-1, -1};
  const SpanText& text = *asked.text;
  const std::string& answer = asked.answers[0];
  const std::size_t from = asked.place >= 0 ? at(asked.place) : text.text.find(answer);
  if (from == std::string::npos)
    throw FormatError(cat(asked.id, ": its answer '", answer, "' does not occur in its text"));
  std::int64_t first = std::ssize(text.tokens), last = -1;
  for (std::int64_t k = 0; k < std::ssize(text.tokens); ++k) {
    if (text.bytes[at(k)].second <= from || text.bytes[at(k)].first >= from + answer.size())
      continue;
    first = std::min(first, k);
    last = k;
  }
  if (last < 0) return {-1, -1};
  // If the answer begins or ends inside a word, only the tokens that belong to the answer.
  const TokenRow own = tokenizer.encode(answer, false);
  for (std::int64_t k = first; k + std::ssize(own) <= last + 1 && !own.empty(); ++k)
    if (std::equal(own.begin(), own.end(), text.tokens.begin() + k))
      return {k, k + std::ssize(own) - 1};
  return {first, last};
}

}  // namespace

std::shared_ptr<const SpanText> span_text(const Tokenizer& tokenizer, const std::string& text) {
  std::int64_t unknown = 0;
  const TokenRow wanted = tokenizer.encode(text, false, &unknown);
  for (const bool split_punctuation : {true, false}) {
    SpanText out{text, {}, {}, unknown};
    for (const auto& [from, to] : words_of(text, split_punctuation))
      for (const std::int64_t token :
           tokenizer.encode(std::string_view(text).substr(from, to - from), false)) {
        out.tokens.push_back(token);
        out.bytes.emplace_back(from, to);
      }
    if (out.tokens == wanted) return std::make_shared<const SpanText>(std::move(out));
  }
  throw ValueError(
      "its tokenizer gives single words other tokens than the whole text, so that answers "
      "cannot be found again: use a WordPiece tokenizer, such as BERT's");
}

std::vector<SpanQuestion> read_questions(const Tokenizer& tokenizer, std::string_view bytes) {
  return QuestionReader(tokenizer).read(bytes);
}

SpanDataset::SpanDataset(std::vector<SpanQuestion> questions, const Tokenizer& tokenizer,
                         const SpanOptions& options, std::string about, Split part)
    : Dataset(DatasetInfo()),
      questions_(std::move(questions)),
      begin_(token_of(tokenizer, "[CLS]")),
      end_(token_of(tokenizer, "[SEP]")) {
  if (tokenizer.number("[PAD]") > 0)
    throw ValueError(
        cat("its tokenizer's [PAD] is ", tokenizer.number("[PAD]"), ", must be 0: BERT's"));
  TextLosses question_losses, text_losses;
  if (tokenizer.unknown() < 0) question_losses.leave_out_unknown(), text_losses.leave_out_unknown();
  std::set<const SpanText*> known;
  for (std::int64_t k = 0; k < std::ssize(questions_); ++k) {
    const SpanQuestion& question = questions_[at(k)];
    const std::string where = cat(question.file, question.file.empty() ? "" : ", ", question.id);
    std::int64_t unknown = 0;
    TokenRow asked = tokenizer.encode(question.question, false, &unknown);
    const std::size_t most = at(std::max<std::int64_t>(0, options.question));
    question_losses.add(asked.size() > most, unknown, where);
    if (known.insert(question.text.get()).second)
      text_losses.add(false, question.text->unknown, where);
    asked.resize(std::min(asked.size(), most));
    asked_.push_back(std::move(asked));
    answers_.push_back(tokens_of_answer(questions_[at(k)], tokenizer));
    add_windows(k, options);
  }
  notes_ = question_losses.notes(options.question, part_text("questions", part));
  for (Note& note : text_losses.notes(0, part_text("texts", part)))
    notes_.push_back(std::move(note));
  set_info({.input_shape = {2, length_},
            .input_dtype = DType::Int64,
            .target_shape = {2},
            .classes = length_,  // places of a row
            .description = std::move(about),
            .in_memory = true});
}

SpanDataset SpanDataset::part(std::int64_t first, std::int64_t count) const {
  const std::int64_t all = std::ssize(questions_), end = std::min(all - first, count) + first;
  if (first < 0 || end <= first)
    throw ValueError(cat("there is no question ", first, ": there are ", all, ", counted from 0"));
  SpanDataset out = *this;
  const auto cut = [&](auto& list) {
    list.erase(list.begin() + end, list.end());
    list.erase(list.begin(), list.begin() + first);
  };
  cut(out.questions_);
  cut(out.asked_);
  cut(out.answers_);
  std::erase_if(out.windows_, [&](const SpanWindow& window) {
    return window.question < first || window.question >= end;
  });
  for (SpanWindow& window : out.windows_) window.question -= first;
  return out;
}

std::int64_t SpanDataset::text_start(const SpanWindow& window) const {
  return std::ssize(asked_[at(window.question)]) + 2;
}

// Adds windows that overlap by `stride` tokens; the last one reaches the end of the text.
void SpanDataset::add_windows(std::int64_t question, const SpanOptions& options) {
  const std::int64_t asked = std::ssize(asked_[at(question)]),
                     room = options.length - kAround - asked,
                     all = std::ssize(questions_[at(question)].text->tokens);
  if (options.stride < 0 || room <= (room < all ? options.stride : 0))
    throw ValueError(cat(questions_[at(question)].id, ": rows of ", options.length,
                         " tokens leave its text ", std::max<std::int64_t>(0, room), " behind ",
                         asked, " of the question",
                         room > 0 ? cat(", and neighbours share ", options.stride) : "",
                         ": give a longer length, or a smaller stride"));
  const auto [first, last] = answers_[at(question)];
  std::int64_t number = 0;
  for (std::int64_t from = 0;; from += room - options.stride) {
    SpanWindow window{question, from, std::min(room, all - from), 0, 0, number++};
    if (first >= from && last < from + window.count) {
      window.begin = first - from + asked + 2;
      window.end = last - from + asked + 2;
    }
    length_ = std::max(length_, asked + kAround + window.count);
    windows_.push_back(window);
    if (from + window.count >= all) return;
  }
}

void SpanDataset::get(std::span<const std::int64_t> indices, void* inputs, void* targets) const {
  auto *row = static_cast<std::int64_t*>(inputs), *target = static_cast<std::int64_t*>(targets);
  for (const std::int64_t index : indices) {
    const SpanWindow& window = windows_[at(index)];
    const TokenRow& asked = asked_[at(window.question)];
    const TokenRow& tokens = questions_[at(window.question)].text->tokens;
    std::fill(row, row + 2 * length_, kPad);
    row[0] = begin_;
    std::int64_t* to = std::copy(asked.begin(), asked.end(), row + 1);
    *to++ = end_;
    std::int64_t* type = row + length_ + (to - row);
    to = std::copy_n(tokens.begin() + window.first, window.count, to);
    *to = end_;
    std::fill_n(type, window.count + 1, 1);
    row += 2 * length_;
    *target++ = window.begin;
    *target++ = window.end;
  }
}

namespace {

std::vector<SpanQuestion> questions_of(const std::string& file, const Tokenizer& tokenizer) {
  std::vector<SpanQuestion> questions = naming_file(file, [&] {
    std::vector<SpanQuestion> out = read_questions(tokenizer, io::read_text(file));
    if (out.empty()) throw FormatError("has no questions");
    return out;
  });
  for (SpanQuestion& question : questions) question.file = file;
  return questions;
}

// Chooses the questions of a part.
std::vector<SpanQuestion> chosen_questions(const std::vector<const SpanQuestion*>& all,
                                           Samples samples, const std::string& file, Split split,
                                           const SpanOptions& options) {
  samples.name = file, samples.count = std::ssize(all);
  std::vector<std::string_view> texts;
  texts.reserve(all.size());
  for (const SpanQuestion* question : all) texts.push_back(question->text->text);
  samples.marks.units = numbers_of_words(texts);
  const Chosen chosen =
      choose_samples(options.test_file.empty() ? options.split : without_test(options.split, file),
                     split, samples);
  std::vector<SpanQuestion> part;
  for (const std::int64_t i : chosen.samples) part.push_back(*all[at(i)]);
  return part;
}

}  // namespace

PartReader read_spans(const std::string& file, std::shared_ptr<const Tokenizer> kept,
                      const SpanOptions& options) {
  if (!options.split.group.empty())
    throw make_error<ValueError>(FileName{file},
                                 ": questions about one text stay in one part: leave out 'group'");
  const bool own_test = !options.test_file.empty();
  const auto own = once([=] { return questions_of(file, *kept); });
  const auto test = once([=] { return questions_of(options.test_file, *kept); });
  return [=](Split split) -> std::shared_ptr<Dataset> {
    const Tokenizer& tokenizer = *kept;
    Samples samples;
    std::vector<const SpanQuestion*> all;
    const auto add = [&](const std::vector<SpanQuestion>& questions,
                         std::optional<Split> fixed_part) {
      for (const SpanQuestion& question : questions)
        all.push_back(&question), samples.fixed_parts.push_back(fixed_part);
    };
    if (!own_test || split != Split::Test) add(own(), std::nullopt);
    if (own_test && (split == Split::Test || split == Split::All)) add(test(), Split::Test);
    const std::string& reading = own_test && split == Split::Test ? options.test_file : file;
    return naming_file(reading, [&]() -> std::shared_ptr<Dataset> {
      std::vector<SpanQuestion> part =
          chosen_questions(all, std::move(samples), file, split, options);
      if (part.empty()) return nullptr;
      std::string about =
          cat(part.size(), " questions of ", of_files(file, options.test_file, split));
      return std::make_shared<SpanDataset>(std::move(part), tokenizer, options, std::move(about),
                                           split);
    });
  };
}

std::shared_ptr<Dataset> open_spans(const std::string& file, Split split,
                                    const Tokenizer& tokenizer, const SpanOptions& options) {
  return read_spans(file, non_owning(tokenizer), options)(split);
}

}  // namespace tenon::data
