// What models tell of texts that are no classes: which token follows, the translation, the answer.
#pragma once

#include <tenon/train.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::cli {

struct TextQuestions {
  std::vector<std::string> texts, questions;
  std::string data;  ///< held-out windows, pairs or questions of this source; or ""
  std::int64_t start = 0, count = 5;
  int top = 3;
  bool json = false;
};
/// Prints the likeliest tokens behind each text, or its translation, and how many of the source's
/// are right. Throws UsageError for a source that has not so many.
int predict_language(const train::TrainedModel& model, const TextQuestions& asked);
/// Prints the answer to every question in every text, or to those of the source beside what is
/// right.
int predict_answers(const train::TrainedModel& model, const TextQuestions& asked);

}  // namespace tenon::cli
