// Fuzzes question files: SQuAD's JSON and lines, the positions of answers in tokens, and the
// windows of the texts.
#include "data/text/span_dataset.h"
#include "fuzz/fuzz.h"

#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon::data;
  static const Tokenizer tokenizer =
      Tokenizer::train("who is it ? the sea is wide, in 1990 .",
                       {.kind = TokenizerKind::WordPiece, .tokens = 60, .least = 1});
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    try {
      std::vector<SpanQuestion> questions = read_questions(tokenizer, bytes);
      if (questions.empty()) return;
      const SpanDataset set(std::move(questions), tokenizer,
                            {.length = 16, .stride = 3, .question = 5}, "input");
      std::vector<std::int64_t> row(static_cast<std::size_t>(set.input_shape().numel()));
      std::int64_t ends[2];
      for (std::int64_t k = 0; k < set.size(); ++k) set.get({&k, 1}, row.data(), ends);
    } catch (const tenon::ValueError&) {  // tokens that cannot be found in the text
    }
  });
}
