// Predictions of text models that are not classes: the next token, a translation, an answer.
#pragma once

#include <tenon/train.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trained.h"

namespace tenon::cli {

struct TextQuestion {
  std::string name{};  ///< "lines.txt, line 3"; "" for a text on the command line
  std::string text{};
  bool shown = true;  ///< number of samples to print, unless JSON is requested
};
struct TextQuestions {
  std::vector<TextQuestion> texts{};
  std::vector<std::string> questions{};
  std::string data{};  ///< windows, pairs or questions of this source; or ""
  PartOptions part{};
  std::int64_t start = 0, count = 5;
  std::int64_t left_out = 0;  ///< texts that are not shown
  int top = 3;
  bool json = false;
};
/// Prints the most likely next tokens of each text, or its translation, and how many predictions of
/// the source are correct. JSON contains every text and every sample of the source from `start` on;
/// at most `count` of the samples are printed. Throws UsageError if the source has fewer samples
/// than `start`.
int predict_language(const train::TrainedModel& model, const TextQuestions& asked);
/// Prints the answer to every question for every text, or the answers to the source's questions
/// next to the correct ones.
int predict_answers(const train::TrainedModel& model, const TextQuestions& asked);

}  // namespace tenon::cli
