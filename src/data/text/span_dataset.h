// Questions with answers in texts, and the windows that a network reads: for training, evaluation,
// and a single question of a user.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "base/str.h"

namespace tenon::data {

/// A text as tokens, and for each token the byte range of the word that it belongs to.
struct SpanText {
  std::string text;
  std::vector<std::int64_t> tokens;
  std::vector<std::pair<std::size_t, std::size_t>> bytes;
  std::int64_t unknown = 0;  ///< words or characters that are not in the vocabulary
};
/// Throws ValueError if the tokenizer encodes single words differently from the whole text.
std::shared_ptr<const SpanText> span_text(const Tokenizer& tokenizer, const std::string& text);

struct SpanQuestion {
  std::string id, question;
  std::shared_ptr<const SpanText> text;
  std::vector<std::string> answers{};  ///< none: the text has no answer
  std::int64_t place = -1;             ///< of the first answer, in bytes; -1: searched
  std::string file{};                  ///< the file of the question
};

/// Parses the bytes of a file: SQuAD's JSON, or lines. Throws FormatError naming a line or a
/// question, and as span_text().
std::vector<SpanQuestion> read_questions(const Tokenizer& tokenizer, std::string_view bytes);

/// A part of a text after its question.
struct SpanWindow {
  std::int64_t question = 0;          ///< number of the question
  std::int64_t first = 0, count = 0;  ///< tokens of the text
  std::int64_t begin = 0, end = 0;    ///< positions of the answer in the row; 0: not in this window
  std::int64_t number = 0;            ///< number among the windows of its question
};

class SpanDataset : public Dataset, public Provenance {
 public:
  /// Throws FormatError for an answer that is not at its position, and ValueError for lengths that
  /// leave no room for a text.
  SpanDataset(std::vector<SpanQuestion> questions, const Tokenizer& tokenizer,
              const SpanOptions& options, std::string about, Split part = Split::All);

  const std::vector<SpanQuestion>& questions() const { return questions_; }
  const std::vector<SpanWindow>& windows() const { return windows_; }
  /// At most `count` questions from `first` on. Throws ValueError if there are none.
  SpanDataset part(std::int64_t first, std::int64_t count) const;
  /// Where a window's part of the text begins in its row.
  std::int64_t text_start(const SpanWindow& window) const;

  std::int64_t size() const override { return std::ssize(windows_); }
  std::string sample_name(std::int64_t index) const override {
    const SpanWindow& window = windows_[static_cast<std::size_t>(index)];
    const SpanQuestion& asked = questions_[static_cast<std::size_t>(window.question)];
    return cat(asked.file, ", ", asked.id,
               window.number > 0 ? cat(", window ", window.number + 1) : "");
  }
  Notes notes() const override { return notes_; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override;

 private:
  void capabilities(Capabilities& offered) const override {
    offered.add<Provenance>(this);
    offered.add<SpanDataset>(this);  // for callers that ask for questions
  }
  void add_windows(std::int64_t question, const SpanOptions& options);
  std::vector<SpanQuestion> questions_;
  std::vector<std::vector<std::int64_t>> asked_;  // tokens of each question
  std::vector<SpanWindow> windows_;
  std::vector<std::pair<std::int64_t, std::int64_t>> answers_;  // tokens of the texts; -1: none
  std::int64_t begin_, end_, length_ = 1;
  Notes notes_;
};

}  // namespace tenon::data
