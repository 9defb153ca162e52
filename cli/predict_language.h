// Predictions of text models that are not classes: the next token, a translation, an answer.
#pragma once

#include <tenon/train.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trained.h"

namespace tenon::cli {

struct TextQuestion {
  std::string name{};  ///< "lines.txt, line 3"; "" for a text that was given itself
  std::string text{};
  bool shown = true;  ///< printed, where JSON is not asked for
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
/// Prints the likeliest tokens behind each text, or its translation, and how many of the source's
/// are right. JSON has every text and every sample of the source from `start` on; of those no more
/// than `count` are printed. Throws UsageError for a source that has not so many.
int predict_language(const train::TrainedModel& model, const TextQuestions& asked);
/// Prints the answer to every question in every text, or to those of the source beside what is
/// right.
int predict_answers(const train::TrainedModel& model, const TextQuestions& asked);

}  // namespace tenon::cli
