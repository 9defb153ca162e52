// Answers in texts: spans from start and end scores, and their exact match and F1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/nn.h>
#include <tenon/train.h>

#include "data/span_dataset.h"

namespace tenon::train {

/// One answer to each question of the set: of all its windows the span of up to 30 tokens whose two
/// ends score highest together. Where `may_lack`, there is none if [CLS] scores higher in every
/// window.
std::vector<Answer> answers_of(const nn::AnyModule& net, const data::SpanDataset& set,
                               bool may_lack);

/// SQuAD's measures of an answer, the best over those that are right: equal, and F1 of the words,
/// both without capitals, punctuation and articles.
struct SpanMeasure {
  double exact = 0, f1 = 0;
};
SpanMeasure measure_answer(const std::string& given, const std::vector<std::string>& right);
/// Whether a question of the set has no answer.
bool lacks_answers(const data::SpanDataset& set);
/// In the mean over the set's questions. Texts may lack an answer where one of the set does.
SpanMeasure measure_spans(const nn::AnyModule& net, const data::SpanDataset& set);

}  // namespace tenon::train
